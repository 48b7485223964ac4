"""PTO C++ kernels: the library of tile operations for the recorder of kernels in C++.

The header (`include/`) has the names of the vendor's library and sends tiles with their addresses, transfers, flags.
"""

from __future__ import annotations

import re
from functools import partial
from pathlib import Path

from castsim.cpp_recording import recording
from castsim.cpp_recording.compiling import CppKernel, Library, blanked, candidates, entry_of, for_host
from castsim.cpp_recording.recording import CppRecording, Dialect, Request, check_names
from castsim.pto_cpp.argument_arrays import argument_array, unpacked
from castsim.pto_cpp.program_making import Maker

__all__ = ["PTO", "CppRecording", "Request", "record", "record_all", "run"]

LIBRARY = Library(
    title="PTO",
    headers=Path(__file__).parent / "include",
    main="castsim_pto.hpp",
    names=(
        "pto/pto-inst.hpp",
        "pto/common/pto_instr.hpp",
        "pto/common/pto_tile.hpp",
        "pto/common/constants.hpp",
        "pto/common/type.hpp",
        "pto/common/event.hpp",
        "pto/common/debug.hpp",
        "pto/common/memory.hpp",
        "pto/common/pto_instr_impl.hpp",
        "pto/common/utils.hpp",
        "pto/common/arch_macro.hpp",
        "acl/acl.h",
        "runtime/rt_ffts.h",
        "kernel_operator.h",
        "tensor.h",
        "intrinsic.h",
        "kernel_utils.h",
        "int4_cvt.hpp",
    ),
    prefix=("pto/",),
    architectures={
        False: "__CCE_AICORE__=220 __DAV_VEC__ __DAV_C220__ __DAV_C220_VEC__ PTO_NPU_ARCH_A2A3 MEMORY_BASE",
        True: "__CCE_AICORE__=310 __DAV_VEC__ __DAV_C310__ __DAV_C310_VEC__ PTO_NPU_ARCH_A5 REGISTER_BASE",
    },
    silent=(
        "__global__ __aicore__ AICORE PTO_INST __tf__ __in__ __out__ __gm__ __ubuf__ __cbuf__ __ca__ __cb__ __cc__ "
        "__fbuf__ __biasbuf__"
    ),
    own=r"M?T?[A-Z][A-Z0-9_]{3,}",
)


def _prepared(request: Request, text: str, a5: bool) -> tuple[Request, CppKernel]:
    text = continued(text)
    entry, function = entry_of(text, request.entry, str(request.file))
    array = argument_array(text, function)
    names = function.parameters + (array.names if array else ())
    request = unpacked(request, array) if array else request
    check_names(request, entry, names)
    folders = tuple(path.resolve() for path in request.folders)
    slots = array.expressions(request.inputs) if array else "{}"
    places = array.names if array else ()
    file = request.file.resolve()
    return request, CppKernel(
        file, for_host(text), entry, names, LIBRARY, folders, request.macros, a5, slots, places
    )  # fmt: skip


def continued(text: str) -> str:
    """Return a text whose statements behind the last function stand at the end of that function.

    So documents write examples: the second goes on where the first ended.
    """
    found = candidates(text)
    shown = blanked(text)
    if not found:
        if re.search(r"^\s*T[A-Z]\w*\s*\([^{};]*\)\s*;", shown, re.MULTILINE):
            return f"void example() {{ {text}\n}}"
        return text
    end = found[-1].end
    rest = shown[end + 1 :]
    if re.search(r"(?:^|[;}])\s*T[A-Z]\w*\s*\([^{};]*\)\s*;", rest) is None:
        return text
    return f"{text[:end]} {text[end + 1 :]}\n}}"


PTO = Dialect(Maker, _prepared)
record = partial(recording.record, PTO)
record_all = partial(recording.record_all, PTO)
run = partial(recording.run, PTO)
