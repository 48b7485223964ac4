"""The interface between the walk through a micro program and a vector unit."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from itertools import product
from typing import Protocol, TypeVar

import numpy as np
from numpy.lib.stride_tricks import as_strided
from numpy.typing import NDArray

from castsim.execution.interpreter.rerolling import DependentScalar
from castsim.execution.tree import Access, Instruction, Lowered, Tree, run_length, strided
from castsim.execution.vector_operations.shapes import encoded, numbers
from castsim.isa.dataclass import dataclass, field, replace
from castsim.isa.errors import Span, TileError, Warnings
from castsim.isa.pto.micro_forms import LOOP_REGISTERS
from castsim.isa.pto.program import Barrier, External, For, Operation, ScalarAccess, Section, SetFlag, WaitFlag
from castsim.isa.pto.types import lane_bits
from castsim.isa.pto.value_types import MicroOperation, StridedStatement, element_format
from castsim.targets.dataflow import BLOCK_BYTES

# Where an instruction or a transfer of a micro program reads or writes.


@dataclass(frozen=True, slots=True)
class BytePointer:
    """A byte address in the buffer, or in an argument's global memory; offsets count elements."""

    argument: str | None
    address: int
    element: str

    @property
    def size(self) -> int:
        """Bytes of an element; two 4-bit elements count as one of 8 bits."""
        return lane_bits(self.element) // 8

    def moved(self, elements: int) -> BytePointer:
        """Return the pointer advanced by some elements."""
        return self.shifted(elements * self.size)

    def shifted(self, count: int) -> BytePointer:
        """Return the pointer advanced by some bytes."""
        return replace(self, address=self.address + count)


# The buffer and the global memory of a micro program, and which of their bytes the program has defined.

Bytes = NDArray[np.uint8]
Marks = NDArray[np.bool_]


@dataclass(slots=True)
class MicroMemory:
    """The bytes of the buffer and of every argument; `defined` marks the bytes of the buffer that were written.

    `undefined` marks the bytes of arguments that were stored while undefined, `written` all that were stored. The bytes
    of several runs of one path have a first axis: which of them are defined is the same in all.
    """

    buffer: Bytes
    arguments: Mapping[str, Bytes]
    defined: Marks = field(init=False)
    undefined: dict[str, Marks] = field(default_factory=dict)
    written: dict[str, Marks] = field(default_factory=dict)

    def __post_init__(self) -> None:
        self.defined = np.zeros(self.buffer.shape[-1], np.bool_)

    def marks(self, argument: str) -> Marks:
        """Return the marks of an argument's bytes that are not defined."""
        return self._marks(self.undefined, argument)

    def stores(self, argument: str) -> Marks:
        """Return the marks of an argument's bytes that were stored."""
        return self._marks(self.written, argument)

    def _marks(self, marks: dict[str, Marks], argument: str) -> Marks:
        if argument not in marks:
            marks[argument] = np.zeros(self.arguments[argument].shape[-1], np.bool_)
        return marks[argument]

    @property
    def runs(self) -> int:
        """The number of runs that are computed together; 0 without an axis for them."""
        return len(self.buffer) if self.buffer.ndim > 1 else 0


class SeparateRunsError(Exception):
    """Runs that cannot be computed together: more than numbers differs between them."""


def mark(marks: Marks, touched: Access) -> None:
    """Mark the bytes of an access."""
    length = run_length(touched)
    for steps in product(*(range(0, count * distance, distance) for count, distance in touched.runs)):
        start = touched.start + sum(steps)
        marks[start : start + length] = True


# Single elements of memory that the scalar unit of a micro program reads and writes.
#
# Source: docs/reference/micro.md section 1.9.


@dataclass(slots=True)
class ReadElements:
    """The elements read in one walk, as codes in program order.

    A walk without values uses those that an earlier walk read (`known`), and 0 beyond them. `arguments` are those
    that were read, each with the position of its first read.
    """

    known: Sequence[int] = ()
    read: list[int] = field(default_factory=list)
    arguments: dict[str, Span] = field(default_factory=dict)

    def load(self, place: BytePointer, span: Span, memory: MicroMemory | None) -> int:
        """Return the code of an element."""
        if place.argument is not None:
            self.arguments.setdefault(place.argument, span)
        if memory is not None:
            held = _bytes(memory, place)
            code = int.from_bytes(held[_elements_bytes(place, held.size)].tobytes(), "little")
        else:
            number = len(self.read)
            code = self.known[number] if number < len(self.known) else 0
        self.read.append(code)
        return code


def store(place: BytePointer, code: bytes, memory: MicroMemory) -> None:
    """Write the code of an element and mark its bytes as defined."""
    held = _bytes(memory, place)
    reached = _elements_bytes(place, held.size)
    held[reached] = list(code)
    if place.argument is None:
        memory.defined[reached] = True
    else:
        memory.marks(place.argument)[reached] = False
        memory.stores(place.argument)[reached] = True


def check_place(place: BytePointer, capacity: int) -> None:
    """Reject an element before its argument, or outside the buffer.

    Raises:
        TileError: the element is there.
    """
    end = place.address + place.size
    if place.argument is None and not 0 <= place.address <= capacity - place.size:
        raise TileError(f"bytes {place.address} .. {end - 1} are outside the buffer of {capacity} bytes")
    if place.address < 0:
        raise TileError(f"an element {-place.address} bytes before %{place.argument}")


def _elements_bytes(place: BytePointer, size: int) -> slice:
    end = place.address + place.size
    if not 0 <= place.address < end <= size:
        raise TileError(f"an element accesses bytes {place.address} .. {end - 1} of a memory of {size}")
    return slice(place.address, end)


# Transfers between global memory and the buffer: what their operands and the loop registers make of them.
#
# All lengths and strides are in bytes, from start to start. Source: docs/reference/micro.md section 1.7.

_Kind = TypeVar("_Kind", np.uint8, np.bool_)

Level = tuple[int, int, int]
"""Count, and the distances of sources and of destinations."""


@dataclass(frozen=True, slots=True)
class Padding:
    """The padding around each row in the buffer: `left` and `right` bytes, then up to the end of a block."""

    pattern: bytes
    left: int = 0
    right: int = 0


@dataclass(frozen=True, slots=True)
class Copy:
    """Rows of `length` bytes; `levels` repeat them, outermost first.

    `atomic` is what a store does with what is there: `add`, `max` or `min` in the destination's elements; empty: it
    overwrites.
    """

    source: BytePointer
    destination: BytePointer
    length: int
    levels: tuple[Level, ...]
    padding: Padding | None = None
    atomic: str = ""

    @property
    def shape(self) -> tuple[int, ...]:
        """Repetitions and the bytes of a row."""
        return (*(count for count, _, _ in self.levels), self.length)

    def reach(self, side: int, more: int = 0) -> tuple[int, int]:
        """Return the first byte and the end of the sources (side 0) or destinations (1)."""
        start = (self.source, self.destination)[side].address
        steps = [(level[0] - 1) * level[1 + side] for level in self.levels]
        low, high = sum(min(0, step) for step in steps), sum(max(0, step) for step in steps)
        return start + low, start + high + self.length + more

    def touched(self, side: int, space: str) -> Access:
        """Return the bytes of the sources (side 0) or destinations (1), in the buffer with their padding."""
        pointer = (self.source, self.destination)[side]
        length = padded_length(self) if side and pointer.argument is None else self.length
        rows = [(level[0], level[1 + side]) for level in self.levels]
        return strided(space, pointer.address, rows, length, write=bool(side))


@dataclass(slots=True)
class CopyRegisters:
    """The registers that the older form of transfers reads: loop counts, strides, the padding value."""

    numbers: dict[tuple[str, str], tuple[int, int]] = field(default_factory=dict)
    pad: bytes = bytes(1)

    def set(self, mnemonic: str, first: int, second: int) -> None:
        """Store the two values of a statement that sets the sizes or the strides of a loop."""
        self.numbers[LOOP_REGISTERS[mnemonic]] = first, second

    def loops(self, way: str) -> tuple[Level, ...]:
        """Return the loops around a transfer, outermost first."""
        inner, outer = self.numbers.get(("_size", way), (1, 1))
        near, far = (self.numbers.get((f"{loop}_stride", way), (0, 0)) for loop in "12")
        levels = ((outer, *far), (inner, *near))
        return tuple(level for level in levels if level[0] != 1)


def resolve(
    node: MicroOperation,
    pointer: Callable[[str], BytePointer],
    number: Callable[[str], int],
    pattern: Callable[[str], bytes],
    registers: CopyRegisters,
) -> Copy:
    """Return the copy that a transfer performs, given its operands by name.

    Raises:
        TileError: a length or count is negative, or the transfer cannot use an address.
    """
    source, destination = pointer(node.operands[0]), pointer(node.operands[1])
    start = len(node.operands) - sum(count for _, count in node.groups)
    plain = [number(name) for name in node.operands[2:start]]
    groups: dict[str, list[tuple[str, ...]]] = {}
    for name, count in node.groups:
        groups.setdefault(name, []).append(node.operands[start : start + count])
        start += count
    make = _OLDER.get(node.mnemonic)
    if make is not None:
        copy = make(source, destination, plain, registers)
    else:
        bursts = [tuple(map(number, names)) for names in groups.get("nburst", [])]
        loops = [tuple(map(number, names)) for names in groups.get("loop", [])]
        pads = [(pattern(names[0]), [number(name) for name in names[1:]]) for names in groups.get("pad", [])]
        copy = _newer(node.mnemonic, source, destination, plain[-1], bursts, loops, pads)
        copy = replace(copy, atomic=(node.word("atomic") or "").lower())
    _check(copy)
    return copy


def _newer(
    mnemonic: str,
    source: BytePointer,
    destination: BytePointer,
    length: int,
    bursts: Sequence[tuple[int, ...]],
    loops: Sequence[tuple[int, ...]],
    pads: Sequence[tuple[bytes, list[int]]],
) -> Copy:
    levels: list[Level] = [(each[0], each[1], each[2]) for each in (*reversed(loops), *bursts)]
    if mnemonic == "mte_ub_ub":
        length *= BLOCK_BYTES
        levels = [(count, gap * BLOCK_BYTES + length, other * BLOCK_BYTES + length) for count, gap, other in levels]
    padding = None
    for code, sides in pads:
        left, right = (side * destination.size for side in (sides or (0, 0)))
        padding = Padding(code, left, right)
    return Copy(source, destination, length, tuple(levels), padding)


def _into_buffer(source: BytePointer, destination: BytePointer, plain: Sequence[int], registers: CopyRegisters) -> Copy:
    _, count, length, left, right, pads, _, far, near = plain
    size = destination.size
    padding = Padding(registers.pad, left * size, right * size) if pads else None
    levels = (*registers.loops("outtoub"), (count, far, near))
    return Copy(source, destination, length, levels, padding)


def _out_of_buffer(
    source: BytePointer, destination: BytePointer, plain: Sequence[int], registers: CopyRegisters
) -> Copy:
    _, count, length, _, far, near = plain
    return Copy(source, destination, length, (*registers.loops("ubtoout"), (count, near, far)))


def _within_buffer(
    source: BytePointer, destination: BytePointer, plain: Sequence[int], registers: CopyRegisters
) -> Copy:
    del registers
    _, count, blocks, near, far = plain
    length = blocks * BLOCK_BYTES
    return Copy(source, destination, length, ((count, near * BLOCK_BYTES + length, far * BLOCK_BYTES + length),))


ATOMICS = ("f32", "f16", "bf16", "i32", "i16", "i8")
"""The elements that a store adds to memory, or of which it keeps an extreme."""

_OLDER = {
    "copy_gm_to_ubuf": _into_buffer,
    "copy_ubuf_to_gm": _out_of_buffer,
    "copy_ubuf_to_ubuf": _within_buffer,
}


def _check(copy: Copy) -> None:
    """Refuse transfers that the transfer engine cannot perform."""
    if copy.atomic:
        element, size = copy.destination.element, copy.destination.size
        if element not in ATOMICS:
            raise TileError(f"an atomic store of {element}", legal=ATOMICS)
        if copy.length % size:
            raise TileError(f"an atomic store of {copy.length} bytes, elements of {element} have {size}")
    for what, value in (("length", copy.length), *(("count", level[0]) for level in copy.levels)):
        if value < 0:
            raise TileError(f"a {what} of {value} in a transfer")
    for side, pointer in enumerate((copy.source, copy.destination)):
        if pointer.argument is not None:
            continue
        starts = [pointer.address, *(level[1 + side] for level in copy.levels if level[0] > 1)]
        if any(start % BLOCK_BYTES for start in starts):
            wrong = next(start for start in starts if start % BLOCK_BYTES)
            what = "address" if wrong == pointer.address else "stride"
            raise TileError(
                f"{what} {wrong} of a transfer in the buffer is not a multiple of {BLOCK_BYTES}",
                legal=(str(wrong // BLOCK_BYTES * BLOCK_BYTES), str((wrong // BLOCK_BYTES + 1) * BLOCK_BYTES)),
            )


def padded_length(copy: Copy) -> int:
    """Return the length of a row in the buffer in bytes, padding included."""
    if copy.padding is None:
        return copy.length
    whole = copy.padding.left + copy.length + copy.padding.right
    return -(-whole // BLOCK_BYTES) * BLOCK_BYTES


def check_buffer(copy: Copy, capacity: int) -> None:
    """Reject bytes outside the buffer.

    Raises:
        TileError: there are some.
    """
    if 0 in copy.shape:
        return
    for side, pointer in enumerate((copy.source, copy.destination)):
        more = padded_length(copy) - copy.length if side else 0
        start, end = copy.reach(side, more)
        if pointer.argument is None and (start < 0 or end > capacity):
            raise TileError(f"a transfer accesses bytes {start} .. {end - 1} of the buffer, which has {capacity}")
        if start < 0:
            raise TileError(f"a transfer starts {-start} bytes before %{pointer.argument}")


def run(copy: Copy, memory: MicroMemory) -> None:
    """Copy the bytes, and their defined marks; if rows overlap, the later row wins."""
    if 0 in copy.shape:
        return
    if copy.levels and _overlaps(copy):
        (count, near, far), *inner = copy.levels
        for number in range(count):
            source, destination = copy.source.shifted(number * near), copy.destination.shifted(number * far)
            run(replace(copy, source=source, destination=destination, levels=tuple(inner)), memory)
        return
    _run(copy, memory)


def _overlaps(copy: Copy) -> bool:
    """Return whether destination rows may overlap; loops with interleaved steps count as overlapping."""
    span = padded_length(copy)
    for step, count in sorted((abs(far), count) for count, _, far in copy.levels if count > 1):
        if step < span:
            return True
        span += (count - 1) * step
    return False


def _run(copy: Copy, memory: MicroMemory) -> None:
    """Copy all rows at once."""
    source, destination = (_bytes(memory, pointer) for pointer in (copy.source, copy.destination))
    left = copy.padding.left if copy.padding else 0
    rows = _rows(source, copy, 0)
    known = np.ones(1, np.bool_)
    if copy.source.argument is None:
        known = _rows(memory.defined, copy, 0)
    if copy.destination.argument is None:
        _rows(memory.defined, copy, 1, left)[...] = known
    else:
        _rows(memory.marks(copy.destination.argument), copy, 1)[...] = ~known
        _rows(memory.stores(copy.destination.argument), copy, 1)[...] = True
    if copy.atomic:
        rows = _combined(copy, np.ascontiguousarray(_rows(destination, copy, 1, left)), np.ascontiguousarray(rows))
    _rows(destination, copy, 1, left)[...] = rows
    if copy.padding is not None:
        _pad(copy, copy.padding, memory)


def _combined(copy: Copy, there: Bytes, more: Bytes) -> Bytes:
    """Return what an atomic store leaves: sums are rounded once, those of integers wrap (assumed)."""
    fmt = element_format(copy.destination.element)
    old, new = (numbers(part.view(f"<u{copy.destination.size}"), fmt) for part in (there, more))
    with np.errstate(all="ignore"):
        result = encoded({"add": np.add, "max": np.fmax, "min": np.fmin}[copy.atomic](old, new), fmt)
    return np.ascontiguousarray(result).view(np.uint8).reshape(more.shape)


def _bytes(memory: MicroMemory, pointer: BytePointer) -> Bytes:
    return memory.buffer if pointer.argument is None else memory.arguments[pointer.argument]


def _rows(
    memory: NDArray[_Kind], copy: Copy, side: int, left: int = 0, span: tuple[int, int] | None = None
) -> NDArray[_Kind]:
    """Return the rows of one side as a view of memory, or `span` of each row: its first byte and its length."""
    first, length = (left, copy.length) if span is None else span
    start = (copy.source, copy.destination)[side].address + first
    shape = (*copy.shape[:-1], length)
    strides = (*(level[1 + side] for level in copy.levels), 1)
    low, high = (first + end for end in copy.reach(side, length - copy.length))
    if low < 0 or high > memory.shape[-1]:
        raise TileError(f"a transfer accesses bytes {low} .. {high - 1} of a memory of {memory.shape[-1]}")
    runs = memory.ndim - 1
    return as_strided(memory[..., start:], memory.shape[:runs] + shape, memory.strides[:runs] + strides, writeable=True)


def _pad(copy: Copy, padding: Padding, memory: MicroMemory) -> None:
    whole = padded_length(copy)
    behind = padding.left + copy.length
    for first, length in ((0, padding.left), (behind, whole - behind)):
        if length:
            _rows(memory.buffer, copy, 1, span=(first, length))[...] = np.resize(
                np.frombuffer(padding.pattern, np.uint8), length
            )
            _rows(memory.defined, copy, 1, span=(first, length))[...] = True


Value = DependentScalar | BytePointer | object
"""A scalar or pointer from the walk; registers and masks belong to the vector unit."""


@dataclass(frozen=True, slots=True)
class VectorIssue:
    """One executed vector instruction: its operands in text order, with registers as the unit returned them.

    `address` is the first byte of the buffer that it reads or writes, None if there is none. `updates` tells that it
    also updates a pointer. `control` is the CTRL register.
    """

    node: MicroOperation
    operands: tuple[Value, ...]
    address: int | None = None
    updates: bool = False
    control: int = 0


class VectorUnit(Protocol):
    """Interface that executes vector instructions in program order.

    A unit may compute values, record issued instructions, or both. Loops are announced, so cycle counters see the
    program's own.
    """

    def enter(self, scope: Section) -> None:
        """Begin a launch of a vector function."""
        ...

    def leave(self, scope: Section) -> None:
        """End a launch of a vector function."""
        ...

    def loop(self, loop: For, trips: int, *, fixed: bool) -> None:
        """Begin a loop inside a vecscope; its bounds may be constants of the text."""
        ...

    def trip(self, loop: For) -> None:
        """End a trip of the innermost loop."""
        ...

    def execute(self, issue: VectorIssue) -> tuple[Value, ...]:
        """Execute an instruction; return its results that are registers, masks and alignment states.

        Raises:
            IllegalError, TileError: the unit lacks it, or it reaches beyond the buffer.
        """
        ...

    def strided(self, node: StridedStatement, operands: tuple[Value, ...], control: int) -> int:
        """Execute an instruction of A2/A3 under CTRL; return CTRL after it.

        Raises:
            IllegalError, TileError: the unit does not have it, or it reaches beyond the buffer.
        """
        ...

    def control(self, node: MicroOperation, value: int) -> None:
        """Hear of a write of CTRL."""
        ...

    def branch(self, node: Operation) -> None:
        """Process a scalar select or a branch inside a vecscope."""
        ...

    def transfer(self, copy: Copy, node: MicroOperation) -> None:
        """Process a transfer, which the walk performs."""
        ...

    def synchronise(self, node: SetFlag | WaitFlag | Barrier, event: int) -> None:
        """Process a flag, with its event, or a barrier."""
        ...

    def element(self, node: ScalarAccess, place: BytePointer, code: bytes) -> None:
        """Process an element that the scalar unit reads, or writes as `code`."""
        ...

    def hold(self, node: MicroOperation, pipe: str, buffer: int, *, release: bool) -> None:
        """Process a pipe's acquisition or release of a buffer, given by number."""
        ...

    def tile(self, node: Operation, lowered: Lowered, instruction: Instruction) -> None:
        """Execute the operations of a tile operation between vector instructions."""
        ...

    def external(self, node: External) -> None:
        """Process a function outside the program, which the walk executes."""
        ...


class RecordingUnit(VectorUnit, Protocol):
    """A unit that records the issued instructions."""

    @property
    def tree(self) -> Tree:
        """The recorded tree."""
        ...

    @property
    def untimed(self) -> str:
        """The reason why the tree has no cycles; empty if it has."""
        ...

    @property
    def incomplete(self) -> bool:
        """Whether the tree lacks work of a pipe."""
        ...

    @property
    def warnings(self) -> Warnings:
        """The warnings of the recording."""
        ...


class Followed:
    """A unit that only executes instructions and ignores everything else."""

    __slots__ = ()

    def _nothing(self, *_: object, **__: object) -> None:
        """Do nothing."""

    enter = leave = loop = trip = branch = transfer = synchronise = element = hold = external = control = _nothing


class PathOnly(Followed):
    """A unit that computes nothing, because the path of a program does not depend on registers."""

    tile = Followed.external

    def execute(self, issue: VectorIssue) -> tuple[Value, ...]:
        """Return a placeholder for each result."""
        return (None,) * len(issue.node.results)

    def strided(self, node: StridedStatement, operands: tuple[Value, ...], control: int) -> int:
        """Return CTRL; that it may count lanes bears on no path."""
        del node, operands
        return control


# Programs of vector instructions as published tables name them: a body, how often it runs, in how many loops.

LOAD, STORE = "vlds", "vsts"


@dataclass(frozen=True, slots=True)
class Body:
    """`loops` successive loops, separated by a barrier `between` ('' for none), of `trips` executions of `steps`.

    The compiler puts `unroll` executions into a trip of the hardware's loop; their instructions alternate. Lanes
    have `width` bits. A load or a store names its buffer as its first operand; no types are stated.
    """

    loops: int
    trips: int
    unroll: int
    steps: tuple[MicroOperation, ...]
    width: int = 32
    between: str = ""
