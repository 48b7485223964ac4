"""AscendC kernels: the library of calls on tensors for the recorder of kernels in C++.

The header (`include/`) has the names of the vendor's library; queues become flags, calls instructions.
"""

from __future__ import annotations

import re
from functools import partial
from pathlib import Path

from castsim.ascendc.record_making import AscendMaker, InstructionLockstep
from castsim.ascendc.tiling import tiled
from castsim.cpp_recording import recording
from castsim.cpp_recording.compiling import CppKernel, Library, entry_of, for_host
from castsim.cpp_recording.recording import CppRecording, Dialect, Request, check_names
from castsim.isa.errors import ReadError

__all__ = ["ASCENDC", "CppRecording", "Request", "record", "record_all", "run"]

LIBRARY = Library(
    title="AscendC",
    headers=Path(__file__).parent / "include",
    main="castsim_ascendc.hpp",
    names=(
        "kernel_operator.h", "kernel_basic_intf.h", "kernel_tensor.h", "kernel_utils.h", "kernel_common.h",
        "kernel_tiling/kernel_tiling.h", "register/tilingdata_base.h", "register/op_def_registry.h", "acl/acl.h",
        "tiling/tiling_api.h", "lib/matmul_intf.h",
    ),
    prefix=("lib/", "adv_api/", "basic_api/", "kernel_tiling/", "register/", "tiling/", "ascendc/"),
    architectures={
        False: "__CCE_AICORE__=220 __NPU_ARCH__=2201 __DAV_C220__ __DAV_C220_VEC__ __DAV_VEC__ ASCENDC_CPU_DEBUG_OFF",
        True: "__CCE_AICORE__=310 __NPU_ARCH__=3510 __DAV_C310__ __DAV_C310_VEC__ __DAV_VEC__ ASCENDC_CPU_DEBUG_OFF",
    },
    silent=(
        "__global__ __aicore__ AICORE __gm__ __ubuf__ __cbuf__ __ca__ __cb__ __cc__ __fbuf__ __biasbuf__ __in__ "
        "__out__ __inout__ __force_inline__"
    ),
    own=r"[A-Z]\w{3,}",
)  # fmt: skip


def _prepared(request: Request, text: str, a5: bool) -> tuple[Request, CppKernel]:
    entry, function = entry_of(text, request.entry, str(request.file))
    defined = {macro.partition("=")[0] for macro in request.macros}
    for name in re.findall(r"\bORIG_DTYPE_\w+", re.sub(r"//[^\n]*|/\*.*?\*/", " ", text, flags=re.DOTALL)):
        if name not in defined:
            raise ReadError(
                f"{request.file}: {name} is defined by an operator's build", legal=(f"-D {name}=DT_FLOAT16",)
            )
    names = function.parameters
    file = request.file.resolve()
    folders = tuple(path.resolve() for path in request.folders)
    tiling = tiled(request, text, function, folders)
    own = [name for name in request.args if name == "tiling_key" or name in tiling.fields]
    plain = {name: value for name, value in request.args.items() if name not in own}
    check_names(Request(request.file, args=plain, inputs=request.inputs), entry, names)
    return request, CppKernel(
        file, for_host(text), entry, names, LIBRARY, folders, (*request.macros, *tiling.macros), a5,
        before=tiling.statements, ahead=tiling.ahead,
    )  # fmt: skip


ASCENDC = Dialect(AscendMaker, InstructionLockstep, _prepared)
record = partial(recording.record, ASCENDC)
record_all = partial(recording.record_all, ASCENDC)
run = partial(recording.run, ASCENDC)
