"""PTO C++ kernels: the library of tile operations for the recorder of kernels in C++.

The header (`include/`) has the names of the vendor's library and sends tiles with their addresses, transfers, flags.
"""

from __future__ import annotations

import re
import zipfile
from collections.abc import Collection, Mapping
from functools import partial
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from castsim.execution.input_data import empty_memory
from castsim.execution.interpreter.interpreter import execute
from castsim.isa.dataclass import dataclass, field, replace
from castsim.isa.errors import ReadError
from castsim.isa.formats import Codes
from castsim.isa.pto import program as pto
from castsim.languages.cpp_recording import recording
from castsim.languages.cpp_recording.host_compiler import (
    Candidate,
    CppKernel,
    Library,
    blanked,
    candidates,
    entry_of,
    for_host,
)
from castsim.languages.cpp_recording.recording import (
    MEMORY,
    CppRecording,
    Dialect,
    Lockstep,
    Request,
    check_names,
    is_drawn,
)
from castsim.languages.pto_cpp.program_making import Maker
from castsim.machines.mechanisms import compute_of

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
    functions = candidates(text)
    shown = blanked(text)
    if not functions:
        if re.search(r"^\s*T[A-Z]\w*\s*\([^{};]*\)\s*;", shown, re.MULTILINE):
            return f"void example() {{ {text}\n}}"
        return text
    end = functions[-1].end
    rest = shown[end + 1 :]
    if re.search(r"(?:^|[;}])\s*T[A-Z]\w*\s*\([^{};]*\)\s*;", rest) is None:
        return text
    return f"{text[:end]} {text[end + 1 :]}\n}}"


# Arrays of arguments, as simpler's runtime hands them over: `kernel_entry(int64_t *args)`.

_ARRAY = r"\(\s*(?:const\s+)?(?:__gm__\s+)?u?int64_t\s*(?:__gm__\s*)?\*\s*(?:const\s+)?{}\s*\)"
_SLOT = re.compile(
    r"(?:(?:const\s+)?([A-Za-z_][\w:]*)\s*(?:__gm__\s*)?\*\s*(?:>\s*\(|\))[\s(]*(?:(?:uintptr_t|u?int64_t)\s*\)\s*\(*)?\s*)?"
    r"\b(\w+)\s*\[\s*([^\]]*?)\s*\]"
)
_ELEMENTS = re.compile(r"void|float|half|bool|char|bfloat16_t|u?int\d+_t|float\d\w*|hifloat8_t|T|DType|E|[a-z]\w*::\w+")
_OPEN = 16
"""Places that an array of arguments is taken to have whose indices are computed."""
MOST_SLOTS = 63
"""Arguments that an array has at most; as many buffers, less its own, as the header follows."""


@dataclass(frozen=True, slots=True)
class ArgumentArray:
    """The array that a kernel unpacks: its name, and the C++ expression of each of its places by what it holds.

    `tensors` are places that are cast to a pointer, with its type; `numbers` others that the kernel reads.
    """

    name: str
    tensors: Mapping[int, str]
    numbers: frozenset[int]
    descriptor: str | None
    """The structure of those descriptors whose own type is not seen; None: places hold addresses of elements."""
    space: str
    """The namespace of the kernel, empty if it has none."""

    @property
    def names(self) -> tuple[str, ...]:
        """Names of the places as arguments: the name of the parameter with their numbers behind it."""
        return tuple(f"{self.name}{index}" for index in range(1 + max((*self.tensors, *self.numbers), default=-1)))

    def expressions(self, given: Collection[str]) -> str:
        """Return what fills the places; `given` are the names of those for which the user has an array."""
        words = []
        for index, name in enumerate(self.names):
            kind = self.tensors.get(index, (self.descriptor or "") if name in given else None)
            if kind is None:
                words.append("castsim::number_of" if index in self.numbers else "castsim::unused")
            else:
                words.append(f"castsim::descriptor_of<{kind}>" if kind else "castsim::data_of")
        space = f"using namespace {self.space}; " if self.space else ""
        return f"[] {{ {space}return std::vector<castsim::Slot>{{{', '.join(words)}}}; }}()"


def argument_array(text: str, function: Candidate) -> ArgumentArray | None:
    """Return the array of arguments that a kernel takes; None: it takes its arguments themselves."""
    shown = blanked(text)
    plain = function.name.rpartition("::")[2]
    if len(function.parameters) != 1 or not re.search(rf"\b{plain}\s*{_ARRAY.format(function.parameters[0])}", shown):
        return None
    uses = [(kind, array, index) for kind, array, index in _SLOT.findall(text)]
    casts = [kind for kind, _, _ in uses if kind] + re.findall(
        r"cast<\s*(?:__gm__\s+)?(\w+)\s*(?:__gm__\s*)?\*\s*>", shown
    )
    structures = [kind for kind in casts if not _ELEMENTS.fullmatch(kind)]
    tensors: dict[int, str] = {}
    numbers: set[int] = set()
    for kind, array, index in uses:
        slot = _constant(text, index)
        if array != function.parameters[0] or slot is None or not 0 <= slot < MOST_SLOTS:
            continue
        if kind:
            tensors[slot] = "" if _ELEMENTS.fullmatch(kind) else kind
        else:
            numbers.add(slot)
    if not tensors and not structures:
        return None
    if any(_constant(text, index) is None for kind, _, index in uses if kind):  # by a function that takes the place
        tensors |= {
            place: structures[0] if structures else "" for place in range(_OPEN) if place not in numbers | {*tensors}
        }
    return ArgumentArray(
        function.parameters[0], tensors, frozenset(numbers - set(tensors)), structures[0] if structures else None,
        function.name.rpartition("::")[0],
    )  # fmt: skip


def _constant(text: str, word: str) -> int | None:
    """Return the number that an index is, by itself or by a constant of the text."""
    if word.isdecimal() or not word.isidentifier():
        return int(word) if word.isdecimal() else None
    match = re.search(rf"\b(?:const|constexpr)\b[^;{{}}()]*\b{word}\s*=\s*(\d+)|#\s*define\s+{word}\s+\(?(\d+)", text)
    return int(match[1] or match[2]) if match else None


def unpacked(request: Request, array: ArgumentArray) -> Request:
    """Return a request with what is given for an array of arguments as inputs and scalars of its places.

    Raises:
        ReadError: a file of something else than arrays, or of more of them than the array has.
    """
    given = request.inputs.get(array.name)
    if given is None:
        return request
    inputs = {name: value for name, value in request.inputs.items() if name != array.name}
    args: dict[str, int | float] = dict(request.args)
    if isinstance(given, str) and is_drawn(given):
        own: dict[str, Codes | str] = {array.names[index]: given for index in array.tensors}
        args = {**{array.names[index]: 0 for index in array.numbers if given == "zeros"}, **args}
        return replace(request, inputs=own | inputs, args=args)
    values = _arrays_of(given, array.name)
    if len(values) > len(array.names):
        text = f"--in {array.name}: {len(values)} arrays, but the kernel unpacks {len(array.names)}"
        raise ReadError(text, legal=array.names)
    for name, value in zip(array.names, values, strict=False):
        if value.ndim:
            inputs.setdefault(name, value)
        else:
            args.setdefault(name, value.item())
    return replace(request, inputs=inputs, args=args)


def _arrays_of(given: Codes | str, name: str) -> list[Codes]:
    """Return the arrays of a file that NumPy's `savez` wrote, in their order, or of a sequence."""
    if not isinstance(given, str):
        return [np.asarray(value) for value in given]
    legal = ("an .npz file with one array per argument; numbers have no dimensions",)
    try:
        with zipfile.ZipFile(given) as archive:
            names = [entry.filename for entry in archive.infolist()]
            if (size := sum(entry.file_size for entry in archive.infolist())) > MEMORY:
                raise ReadError(f"input '{name}': the arrays of '{given}' take {size:,} bytes, more than {MEMORY:,}")
        with np.load(given, allow_pickle=False) as file:
            return [file[name] for name in names]
    except FileNotFoundError:
        raise ReadError(f"input '{name}': file '{given}' does not exist", legal=legal) from None
    except (OSError, ValueError, KeyError, EOFError, MemoryError, zipfile.BadZipFile) as error:
        raise ReadError(f"input '{name}': '{given}' cannot be read: {error}", legal=legal) from None


@dataclass(slots=True)
class TileLockstep(Lockstep):
    """Computes tile operations, those that are pending as a function of their own."""

    _pending: list[str] = field(default_factory=list)
    _buffer: NDArray[np.uint8] | None = None
    _memory: dict[str, NDArray[np.uint8]] = field(default_factory=dict)

    def note(self, line: str) -> None:
        """Record the kernel's new operations."""
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
            content = self._memory.get(name, self.given.get(position, np.zeros(0, np.uint8)))
            room = empty_memory(use)
            if content.size < room.size or name not in self._memory:
                room = np.zeros(max(room.size, content.size), np.uint8)
                room[: content.size] = content
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
