"""Recording of a run: the initial memories, and the changes of each operation."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from math import prod
from tempfile import SpooledTemporaryFile
from typing import NamedTuple
from weakref import finalize

import numpy as np
from numpy.typing import NDArray

from castsim.execution.buffer_values import Follower, TaintTracker
from castsim.execution.input_data import ArgumentUse
from castsim.execution.interpreter.vector_unit import BytePointer, Copy, MicroMemory, Value, VectorIssue, VectorUnit
from castsim.execution.tree import Deltas, GlobalSpace, Instruction, Lowered, Part, Tile, accesses
from castsim.execution.vector_operations.shapes import is_column
from castsim.isa.dataclass import dataclass, field, replace
from castsim.isa.errors import LimitError, ReadError
from castsim.isa.formats import Codes, Format
from castsim.isa.pto import program as pto
from castsim.isa.pto.value_types import MaskType, MicroOperation, PointerType, ScalarType, VectorType, held_format
from castsim.isa.tpc.forms import MemoryOperation
from castsim.isa.tpc.program import File, Register
from castsim.machines.vliw.machine import VliwCore
from castsim.machines.vliw.storage import RegisterCell
from castsim.numerics.blocks import code_dtype

# What operations changed, in the order of the program: enough to go either way.
#
# A change of bytes is kept as the exclusive or of what was there and what came: applied once more it takes itself
# back.

Bytes = NDArray[np.uint8]

IN_MEMORY = 64 << 20
"""Maximum number of bytes of changes in memory; more go to a temporary file without a name."""
MOST_BYTES = 8 << 30
"""Maximum number of bytes of changes in a run, so the temporary folder does not fill up."""
_GAP = 64
"""Number of unchanged bytes that are stored anyway, because another stretch would take more."""
_WORD = 8


class ChangedBytes(NamedTuple):
    """Changed bytes of a memory: the first, their number, and their position in the journal."""

    space: str
    start: int
    size: int
    kept: int


class StateChange(NamedTuple):
    """Changes by one operation: stretches of memories, and registers with their old and new contents."""

    stretches: tuple[ChangedBytes, ...] = ()
    registers: tuple[tuple[str, object, object], ...] = ()


class Journal:
    """The changes of all operations; their bytes are in one file, kept in memory while it is small."""

    def __init__(self) -> None:
        self._changes: list[StateChange] = []
        self._file = SpooledTemporaryFile(max_size=IN_MEMORY)  # noqa: SIM115 - lives as long as the journal
        finalize(self, self._file.close)
        self._size = 0

    def __len__(self) -> int:
        return len(self._changes)

    def add(self, stretches: list[tuple[str, int, Bytes]], registers: list[tuple[str, object, object]]) -> None:
        """Append the changes of one operation, with bytes as the exclusive or of old and new.

        Raises:
            LimitError: the changes together exceed `MOST_BYTES`.
        """
        kept = []
        for space, start, changed in stretches:
            kept.append(ChangedBytes(space, start, changed.size, self._size))
            self._file.write(changed.tobytes())
            self._size += changed.size
        if self._size > MOST_BYTES:
            raise LimitError(
                f"the results of all operations need more than {MOST_BYTES >> 30} GiB: too much to step through",
                legal=("a smaller run",),
            )
        self._changes.append(StateChange(tuple(kept), tuple(registers)))

    def apply(self, number: int, memories: Mapping[str, Bytes], registers: dict[str, object], *, back: bool) -> None:
        """Apply the changes of one operation, or revert them."""
        change = self._changes[number]
        for stretch in change.stretches:
            self._file.seek(stretch.kept)
            changed = np.frombuffer(self._file.read(stretch.size), np.uint8)
            memories[stretch.space][stretch.start : stretch.start + stretch.size] ^= changed
        for name, before, after in change.registers:
            value = before if back else after
            if value is None:
                registers.pop(name, None)
            else:
                registers[name] = value


def changed_bytes(before: Bytes, now: Bytes, start: int = 0, end: int | None = None) -> list[tuple[int, Bytes]]:
    """Return where bytes [start, end) differ, as stretches of their exclusive or, and update `before`."""
    end = now.size if end is None else min(end, now.size)
    start = max(0, start - start % _WORD)
    whole = end - (end - start) % _WORD
    changes = []
    for low, high, word in ((start, whole, _WORD), (whole, end, 1)):
        if low >= high:
            continue
        old, new = before[low:high].view(f"u{word}"), now[low:high].view(f"u{word}")
        places = np.flatnonzero(old != new)
        if not places.size:
            continue
        breaks = np.flatnonzero(np.diff(places) > max(1, _GAP // word)) + 1
        for run in np.split(places, breaks):
            first, last = low + int(run[0]) * word, low + (int(run[-1]) + 1) * word
            changes.append((first, before[first:last] ^ now[first:last]))
            before[first:last] = now[first:last]
    return changes


# Arrays of elements in the memories of a stopped program: where their bits are, and what they stand for.

BUFFER = "ub"
"""The memory of tiles."""
UNKNOWN = "?"
"""Prefix of the name of a memory that marks the bytes of another that are not computed (255; others 0)."""
_BYTE = 8


def packed_bits(fmt: Format) -> int:
    """Return the distance in bits between elements of a dense row: formats of 2 and 4 bits share bytes."""
    return fmt.bits if fmt.bits in (2, 4) else fmt.storage_bits


@dataclass(frozen=True, slots=True)
class ElementPlace:
    """Elements of `format`: the first at bit `offset` of a memory, `strides` the distances in bits."""

    space: str
    offset: int
    shape: tuple[int, ...]
    strides: tuple[int, ...]
    format: Format

    def moved(self, count: int) -> ElementPlace:
        """Return the same elements, moved by some bytes."""
        return replace(self, offset=self.offset + count * _BYTE) if count else self

    def read_as(self, fmt: Format) -> ElementPlace:
        """Return the same bits as elements of another format, whose indices count its own elements.

        Raises:
            ReadError: elements that are not adjacent have another width.
        """
        old, new = packed_bits(self.format), packed_bits(fmt)
        if old == new or (self.strides and self.strides[-1] == new):
            return replace(self, format=fmt)
        dense = self.strides and self.strides[-1] == old and self.shape[-1] * old >= new
        if not dense:
            raise ReadError(
                f"elements of {old} bits that are not adjacent cannot be read as {fmt.name} of {new}",
                legal=(self.format.name,),
            )
        shape = (*self.shape[:-1], self.shape[-1] * old // new)
        return replace(self, shape=shape, strides=(*self.strides[:-1], new), format=fmt)

    def part(self, index: Sequence[slice | int]) -> tuple[ElementPlace, list[tuple[int, ...]]]:
        """Return some of the elements, and the index of each in this object.

        Raises:
            IndexError: an index is out of range.
        """
        taken = [range(extent)[selector] for selector, extent in zip(index, self.shape, strict=False)]
        ranges = [
            part_range if isinstance(part_range, range) else range(part_range, part_range + 1) for part_range in taken
        ]
        ranges += [range(extent) for extent in self.shape[len(ranges) :]]
        offset = self.offset + sum(
            part_range.start * step for part_range, step in zip(ranges, self.strides, strict=True)
        )
        shape = tuple(map(len, ranges))
        grids = np.indices(shape).reshape(len(shape), -1) if shape else np.zeros((0, 1), int)
        starts = np.array([part_range.start for part_range in ranges], int).reshape(-1, 1)
        indices = [tuple(map(int, column)) for column in (grids + starts).T]
        return replace(self, offset=offset, shape=shape), indices

    def codes(self, memories: Mapping[str, Bytes]) -> Codes:
        """Return the codes of all elements, flat, in C order.

        Raises:
            ReadError: the elements reach beyond the memory.
        """
        bits = np.full(self.shape or (1,), self.offset, np.int64)
        for axis, (extent, stride) in enumerate(zip(self.shape, self.strides, strict=True)):
            bits += (np.arange(extent) * stride).reshape((-1,) + (1,) * (len(self.shape) - axis - 1))
        places = bits.reshape(-1)
        size = packed_bits(self.format)
        memory = memories[self.space]
        if places.size and (places.min() < 0 or (places.max() + size - 1) // _BYTE >= memory.size):
            raise ReadError(f"the elements exceed the {memory.size} bytes of their memory")
        if size < _BYTE:
            result: Codes = memory[places // _BYTE] >> (places % _BYTE).astype(np.uint8) & np.uint8((1 << size) - 1)
            return result
        count = size // _BYTE
        rows = memory[(places // _BYTE)[:, None] + np.arange(count)]
        codes: Codes = np.ascontiguousarray(rows).view(f"<u{count}").reshape(-1).astype(code_dtype(self.format))
        return codes

    @property
    def size(self) -> int:
        """Number of elements."""
        return prod(self.shape)


def tile_place(tile: Tile) -> ElementPlace:
    """Return the valid elements of a tile."""
    fmt, _ = held_format(tile.format)
    inner = tile.element_bits if tile.element_bits >= _BYTE and fmt.bits not in (2, 4) else packed_bits(fmt)
    strides = (inner, tile.rows * inner) if is_column(tile) else (tile.row_pitch * _BYTE, inner)
    return ElementPlace(BUFFER, tile.address * _BYTE, (tile.valid_rows, tile.valid_cols), strides, fmt)


def part_place(part: Part) -> ElementPlace:
    """Return the elements of a part of an argument, without leading dimensions of one element."""
    fmt, count = held_format(part.format)
    first = next((axis for axis, size in enumerate(part.sizes[:-2]) if size != 1), len(part.sizes) - 2)
    bits = packed_bits(fmt) * count
    sizes, strides = part.sizes[first:], tuple(stride * bits for stride in part.strides[first:])
    if count > 1:
        sizes, strides = (*sizes, count), (*strides, packed_bits(fmt))
    return ElementPlace(global_space(part.argument), part.offset * bits, sizes, strides, fmt)


def global_space(argument: str) -> str:
    """Return the name of an argument's memory."""
    return f"gm:{argument}"


def argument_place(name: str, use: ArgumentUse, memory: Bytes) -> ElementPlace:
    """Return the elements of an argument in the layout of its arrays."""
    bits = packed_bits(use.format)
    capacity = memory.size * _BYTE // bits
    shape = (capacity,) if use.is_open and capacity > use.elements else use.shape
    return dense(global_space(name), 0, shape, use.format)


def dense(space: str, address: int, shape: tuple[int, ...], fmt: Format, bits: int | None = None) -> ElementPlace:
    """Return adjacent elements from a byte on, the last dimension fastest; `bits` from one to the next."""
    strides = []
    step = packed_bits(fmt) if bits is None else bits
    for extent in reversed(shape):
        strides.append(step)
        step *= extent
    return ElementPlace(space, address * _BYTE, shape, tuple(reversed(strides)), fmt)


Reach = tuple[str, int, int | None]
"""A memory, the first byte that an operation may change, and the byte after the last (None: to the end)."""

_ELEMENT_STORES = (MemoryOperation.ELEMENT_STORE, MemoryOperation.TENSOR_STORE)


class RecordedOperation(NamedTuple):
    """An operation of a program of vector instructions: its node, whether a vector function issues it, its pointers."""

    node: pto.Operation
    inside: bool
    pointers: tuple[tuple[str, BytePointer], ...] = ()


@dataclass(slots=True)
class StepRecording:
    """Recording of one run; see `castsim.running.loaded.Watch`. `initial` and `registers` are those of its start.

    `seen` are the operations of a program of vector instructions, `bundles` those of assembly, each in program order;
    the journal has a change for each, and for each operation of a tile program that computes something.
    """

    journal: Journal = field(default_factory=Journal)
    initial: dict[str, Bytes] = field(default_factory=dict)
    registers: dict[str, object] = field(default_factory=dict)
    seen: list[RecordedOperation] = field(default_factory=list)
    bundles: list[int] = field(default_factory=list)
    files: dict[str, File | None] = field(default_factory=dict)
    """The files of assembly registers by name; None for those that have no number."""
    core: VliwCore | None = None
    _live: dict[str, Bytes] = field(default_factory=dict)
    _before: dict[str, Bytes] = field(default_factory=dict)
    _reach: Sequence[Reach] | None = None
    _written: list[tuple[str, object, object]] = field(default_factory=list)
    _held: dict[str, object] = field(default_factory=dict)
    _cells: list[RegisterCell] = field(default_factory=list)
    _stores: dict[int, list[Reach]] = field(default_factory=dict)

    def tiles(self, buffer: Bytes, arguments: Mapping[str, Bytes], follower: Follower | None) -> Follower:
        """Start to follow a tile program."""
        self._follow({BUFFER: buffer, **_global(arguments)})
        if isinstance(follower, TaintTracker):
            marks = {BUFFER: follower.buffer, **_global(follower.arguments)}
            self._follow({f"{UNKNOWN}{name}": memory for name, memory in marks.items()})
        return _Following(self, follower)

    def micro(self, unit: VectorUnit, memory: MicroMemory) -> VectorUnit:
        """Start to follow a program of vector instructions."""
        self._follow({BUFFER: memory.buffer, **_global(memory.arguments)})
        return _Recorded(self, unit)

    def bundle(self, core: VliwCore, index: int) -> None:
        """Receive the bundle that a core is about to issue."""
        if self.core is None:
            self._begin_core(core)
        self.begin(self._stores[index])
        self.bundles.append(index)

    def finish(self) -> None:
        """Store the changes of the last operation, and release data that only a run needs."""
        self._close()
        self._live, self._before, self._cells = {}, {}, []

    def begin(self, reach: Sequence[Reach]) -> None:
        """Start an operation that changes only bytes in reach, and end the previous one."""
        self._close()
        self._reach = reach

    def write(self, register: str, value: object) -> None:
        """Record that the current operation has written a register."""
        self._written.append((register, self._held.get(register), value))
        self._held[register] = value

    def knows(self, space: str) -> bool:
        """Return whether a memory is followed."""
        return space in self._live

    # --------------------------------------------------------------------------------------------------------- inside

    def _follow(self, memories: Mapping[str, Bytes]) -> None:
        self._live.update(memories)
        self.initial.update({name: memory.copy() for name, memory in memories.items()})
        self._before.update({name: memory.copy() for name, memory in memories.items()})

    def _close(self) -> None:
        if self._reach is None:
            return
        for cell in self._cells:
            if cell.newest is not self._held[cell.name]:
                self.write(cell.name, cell.newest)
        changed = [
            (space, first, changes)
            for space, start, end in self._reach
            for first, changes in changed_bytes(self._before[space], self._live[space], start, end)
        ]
        self.journal.add(changed, self._written)
        self._written, self._reach = [], None

    def _begin_core(self, core: VliwCore) -> None:
        self.core = core
        tensors = core.globals.memory.tensors.values()
        local = {memory.name: memory.bytes for memory in (core.local.vlm, core.local.slm)}
        self._follow({**local, **_global({tensor.name: tensor.codes.view(np.uint8) for tensor in tensors})})
        sizes = core.target.registers
        named = [Register(file, index) for file in _FILES for index in range(getattr(sizes, file.value))]
        cells = {cell.name: cell for operand in named for cell in core.registers.cells(operand)}
        cells |= {cell.name: cell for plans in core.plans for plan in plans for cell in plan.results}
        self._cells = list(cells.values())
        self.registers = {cell.name: cell.newest for cell in self._cells}
        self._held = dict(self.registers)
        self.files = {cell.name: cell.file for cell in self._cells}
        writable = [tensor.name for tensor in core.globals.memory.declared if tensor.direction != "in"]
        for index, plans in enumerate(core.plans):
            kinds = {plan.memory for plan in plans}
            reach: list[Reach] = [("vlm", 0, None)] if MemoryOperation.VECTOR_STORE in kinds else []
            reach += [("slm", 0, None)] if MemoryOperation.SCALAR_STORE in kinds else []
            reach += [(global_space(name), 0, None) for name in writable if kinds.intersection(_ELEMENT_STORES)]
            self._stores[index] = reach


_FILES = (File.V, File.S, File.I, File.AD, File.SP, File.VP)


def _global(arguments: Mapping[str, Bytes]) -> dict[str, Bytes]:
    return {global_space(name): memory for name, memory in arguments.items()}


@dataclass(slots=True)
class _Following:
    """Follower of a tile program's instructions for a recording; see `buffer_values.Follower`."""

    recording: StepRecording
    inner: Follower | None

    def step(self, lowered: Lowered, deltas: Sequence[Deltas] | None) -> bool:
        reach: list[Reach] = [(BUFFER, 0, None)]
        for access in accesses(lowered, deltas):
            if access.write and isinstance(access.space, GlobalSpace):
                reach.append((str(access.space), access.start, access.end))
        marks = [(f"{UNKNOWN}{space}", start, end) for space, start, end in reach]
        self.recording.begin([*reach, *(mark for mark in marks if self.recording.knows(mark[0]))])
        return True if self.inner is None else self.inner.step(lowered, deltas)


@dataclass(slots=True)
class _Recorded:
    """A vector unit that wraps another one and records its actions; see `vector_unit.VectorUnit`."""

    recording: StepRecording
    inner: VectorUnit
    inside: bool = False
    """Whether a vector function is running."""

    def enter(self, scope: pto.Section) -> None:
        self._begin(RecordedOperation(scope, inside=False))
        self.inside = True
        self.inner.enter(scope)

    def leave(self, scope: pto.Section) -> None:
        self.inside = False
        self.inner.leave(scope)

    def loop(self, loop: pto.For, trips: int, *, fixed: bool) -> None:
        self.inner.loop(loop, trips, fixed=fixed)

    def trip(self, loop: pto.For) -> None:
        self.inner.trip(loop)

    def execute(self, issue: VectorIssue) -> tuple[Value, ...]:
        node = issue.node
        self._begin(
            RecordedOperation(node, inside=True, pointers=_pointers(node, issue.operands)),
            [] if issue.address is None else [(BUFFER, 0, None)],
        )
        results = self.inner.execute(issue)
        values = iter(results)
        for name, kind in zip(node.results, node.result_types, strict=True):
            if isinstance(kind, PointerType | ScalarType):
                continue
            value = next(values)
            if isinstance(kind, VectorType | MaskType):
                self.recording.write(name, value)
        return results

    def strided(self, node: pto.StridedStatement, operands: tuple[Value, ...], control: int) -> int:
        self._begin(RecordedOperation(node, inside=False, pointers=_pointers(node, operands)), [(BUFFER, 0, None)])
        return self.inner.strided(node, operands, control)

    def control(self, node: MicroOperation, value: int) -> None:
        self.inner.control(node, value)

    def branch(self, node: pto.Operation) -> None:
        self.inner.branch(node)

    def transfer(self, copy: Copy, node: MicroOperation) -> None:
        pointers = _pointers(node, (copy.source, copy.destination))
        to = copy.destination
        reach = (BUFFER, 0, None) if to.argument is None else _reach(to, *copy.reach(1))
        self._begin(RecordedOperation(node, inside=False, pointers=pointers), [reach])
        self.inner.transfer(copy, node)

    def synchronise(self, node: pto.SetFlag | pto.WaitFlag | pto.Barrier, event: int) -> None:
        self._begin(RecordedOperation(node, inside=False))
        self.inner.synchronise(node, event)

    def element(self, node: pto.ScalarAccess, pointer: BytePointer, code: bytes) -> None:
        reach = [_reach(pointer, pointer.address, pointer.address + len(code))] if code else []
        self._begin(RecordedOperation(node, inside=self.inside), reach)
        self.inner.element(node, pointer, code)

    def hold(self, node: MicroOperation, pipe: str, buffer: int, *, release: bool) -> None:
        self._begin(RecordedOperation(node, inside=False))
        self.inner.hold(node, pipe, buffer, release=release)

    def tile(self, node: pto.Operation, lowered: Lowered, instruction: Instruction) -> None:
        self._begin(RecordedOperation(node, inside=False), [(BUFFER, 0, None)])
        self.inner.tile(node, lowered, instruction)

    def external(self, node: pto.External) -> None:
        self._begin(RecordedOperation(node, inside=False), [(BUFFER, 0, None)])
        self.inner.external(node)

    def _begin(self, seen: RecordedOperation, reach: Sequence[Reach] = ()) -> None:
        self.recording.begin(reach)
        self.recording.seen.append(seen)


def _pointers(
    node: MicroOperation | pto.StridedStatement, values: Sequence[Value]
) -> tuple[tuple[str, BytePointer], ...]:
    pairs = zip(node.operands, values, strict=False)
    return tuple((name, value) for name, value in pairs if isinstance(value, BytePointer))


def _reach(pointer: BytePointer, start: int, end: int) -> Reach:
    space = BUFFER if pointer.argument is None else global_space(pointer.argument)
    return space, max(start, 0), end
