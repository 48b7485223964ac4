"""PTO C++ kernels: the library of tile operations for the recorder of kernels in C++.

The header (`include/`) has the names of the vendor's library and sends tiles with their addresses, transfers, flags.
"""

from __future__ import annotations

import re
from functools import partial
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from castsim.cpp_recording import recording
from castsim.cpp_recording.compiling import CppKernel, Library, blanked, candidates, entry_of, for_host
from castsim.cpp_recording.recording import CppRecording, Dialect, Lockstep, Request, check_names
from castsim.execution.input_data import empty_memory
from castsim.execution.interpreter.interpreter import execute
from castsim.isa.dataclass import dataclass, field
from castsim.isa.pto import program as pto
from castsim.machines.mechanisms import compute_of
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


@dataclass(slots=True)
class TileLockstep(Lockstep):
    """Computes tile operations, those that are pending as a function of their own."""

    _pending: list[str] = field(default_factory=list)
    _buffer: NDArray[np.uint8] | None = None
    _memory: dict[str, NDArray[np.uint8]] = field(default_factory=dict)

    def note(self, line: str) -> None:
        """Take in what the kernel has done."""
        self._pending.append(line)
        Lockstep.note(self, line)

    def advance(self) -> None:
        """Compute what is pending."""
        maker = self.maker()
        for line in self._pending:
            if line[0] not in "qp":
                maker.take(line)
        self._pending.clear()
        function = maker.function("kernel", sorted(maker.elements))
        executed = execute(pto.Program((function,)), function, self.lowerer, {})
        for name, use in executed.arguments.items():
            position = maker.names.index(name)
            held = self._memory.get(name, self.given.get(position, np.zeros(0, np.uint8)))
            room = empty_memory(use)
            if held.size < room.size or name not in self._memory:
                room = np.zeros(max(room.size, held.size), np.uint8)
                room[: held.size] = held
                self._memory[name] = room
        compute_of(self.target)(executed.tree, self.buffer(), self._memory)

    def buffer(self) -> NDArray[np.uint8]:
        """Return the bytes of the buffer."""
        if self._buffer is None:
            self._buffer = np.zeros(self.target.memories["ub"].capacity_bytes, np.uint8)
        return self._buffer

    def held(self, name: str) -> NDArray[np.uint8] | None:
        """Return the bytes of an argument that has been computed."""
        return self._memory.get(name)


PTO = Dialect(Maker, TileLockstep, _prepared)
record = partial(recording.record, PTO)
record_all = partial(recording.record_all, PTO)
run = partial(recording.run, PTO)
