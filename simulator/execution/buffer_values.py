"""Computation of bytes by a walk over a tree: transfers, and two 4-bit elements per byte."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from math import gcd, prod
from typing import Generic, Protocol, TypeVar

import numpy as np
from numpy.lib.stride_tricks import as_strided
from numpy.typing import NDArray

from castsim.execution.outcomes import CastPlace, Judge, Listener, Outcomes, changes, heard_by
from castsim.execution.pipe_operations import BLOCK, NO_VALUES, Idle, ScalarElementAccess, Transfer
from castsim.execution.tree import (
    Access,
    CastTiles,
    Deltas,
    GlobalSpace,
    Instruction,
    Lowered,
    Operation,
    Tile,
    Tree,
    accesses,
    instances,
    operations,
    run_length,
    scratch_reads,
)
from castsim.execution.vector_operations.effect import TileEffect
from castsim.execution.vector_operations.shapes import tile_view
from castsim.isa.dataclass import dataclass, field, replace
from castsim.isa.errors import TileError
from castsim.isa.formats import Codes, Format
from castsim.isa.pto.vector_operations import VECTOR_OPERATIONS, Kind

# What the casts of a run did to their numbers, counted instruction by instruction.

Bytes = NDArray[np.uint8]


@dataclass(slots=True)
class CastCounts:
    """The outcomes of every executed cast and other converting instruction, by instruction and formats."""

    found: dict[tuple[int, str, str], Outcomes] = field(default_factory=dict)

    def before(self, lowered: Lowered, deltas: Sequence[Deltas] | None, buffer: Bytes) -> PendingCast | None:
        """Return the source of a cast before it executes; None for any other instruction."""
        if lowered.cast is None or not lowered.accesses:
            return None
        cast = lowered.cast if deltas is None else _moved(lowered, deltas[0])
        if any(tile.address < 0 or tile.end > buffer.size for tile in (cast.src, cast.dst)):
            return None  # executing it says so
        return PendingCast(cast, tile_codes(buffer, cast.src, cast.stretches))

    def after(self, lowered: Lowered, pending: PendingCast, buffer: Bytes) -> None:
        """Count the results of a cast."""
        cast = pending.cast
        judge = Judge(cast.src.format, cast.dst.format, cast.rounding, cast.wraps)
        counts = judge.count(pending.codes, tile_codes(buffer, cast.dst, cast.stretches))
        self._add(lowered.instruction, cast.src.format, cast.dst.format, counts)

    def listener(self, instruction: int) -> Listener:
        """Return a listener for an operation that converts or saturates."""

        def hear(judge: Judge, before: Codes, after: Codes, converts: bool) -> None:
            counts = changes(judge, before, after, converts=converts)
            if counts is not None:
                self._add(instruction, judge.src if converts else judge.dst, judge.dst, counts)

        return hear

    def _add(self, instruction: int, src: Format, dst: Format, counts: Outcomes) -> None:
        self.found.setdefault((instruction, src.name, dst.name), Outcomes()).add(counts)

    def by_place(self, instructions: Sequence[Instruction]) -> Mapping[CastPlace, Outcomes]:
        """Return the counts ordered by the position of each instruction."""
        return {
            CastPlace(instructions[number].span.line, instructions[number].text, src, dst, number): counts
            for (number, src, dst), counts in sorted(self.found.items())
        }


@dataclass(frozen=True, slots=True)
class PendingCast:
    """A cast that is being executed, and its source codes."""

    cast: CastTiles
    codes: Codes


def _moved(lowered: Lowered, deltas: Deltas) -> CastTiles:
    """Return the tiles of a cast as loops have moved them."""
    cast = lowered.cast
    assert cast is not None
    moves = {access.write: delta for access, delta in zip(lowered.accesses[:2], deltas[:2], strict=True)}
    src, dst = (
        replace(tile, address=tile.address + moves[write]) for tile, write in ((cast.src, False), (cast.dst, True))
    )
    return replace(cast, src=src, dst=dst)


def tile_codes(buffer: Bytes, tile: Tile, stretches: Sequence[tuple[int, int]] = ()) -> Codes:
    """Return a copy of the codes of a tile's valid elements, line by line in memory order.

    For `stretches` see `CastTiles`.
    """
    column = tile.type.block_layout == "col_major"
    lines, length = (tile.valid_cols, tile.valid_rows) if column else (tile.valid_rows, tile.valid_cols)
    pitch = tile.rows * tile.element_bits // 8 if column else tile.row_pitch
    if tile.format.bits == 4:  # packed, whatever the pitch counts an element as
        rows = []
        for start, elements in stretches or ((0, length),):
            packed = as_strided(buffer[tile.address + start :], (lines, -(-elements // 2)), (pitch, 1))
            rows.append(unpack_nibbles(packed)[:, :elements])
        return np.concatenate(rows, axis=1)
    size = tile.element_bits // 8
    first = buffer[tile.address : tile.address + size].view(f"<u{size}")
    return as_strided(first, (lines, length), (pitch, size)).copy()


_Cell = TypeVar("_Cell", bound=np.generic)


class Follower(Protocol):
    """Observer of every instruction besides its values."""

    def step(self, lowered: Lowered, deltas: Sequence[Deltas] | None) -> bool:
        """Process an instruction before its execution; return whether to execute it."""
        ...


def compute_tree(
    tree: Tree,
    buffer: Bytes,
    arguments: Mapping[str, Bytes],
    whole_tile: Callable[[object, Bytes], bool],
    execute: Callable[[Operation, Bytes], object],
    follower: Follower | None = None,
    counts: CastCounts | None = None,
) -> None:
    """Run all operations of a tree on the unified buffer and the global memory, both changed in place.

    A `TileEffect` always runs whole: the operations of its instruction carry time and streams only.

    Args:
        tree: the issued operations.
        buffer: the unified buffer.
        arguments: global memory by argument name.
        whole_tile: executes an instruction's shortcut, if allowed, and returns whether it did; called only while no
            loop has moved the operations for which the shortcut was proven.
        execute: runs an operation of the vector unit and ignores all others; transfers run here.
        follower: receives every instruction, and may skip it.
        counts: receives the effects of casts on their numbers.
    """
    for lowered, deltas in instances(tree, Idle(NO_VALUES)):
        if follower is not None and not follower.step(lowered, deltas):
            continue
        if isinstance(lowered.shortcut, TileEffect):
            effect = lowered.shortcut if deltas is None else lowered.shortcut.moved(deltas[0])
            with heard_by(None if counts is None else counts.listener(lowered.instruction)):
                effect.apply(buffer)
            continue
        pending = None if counts is None else counts.before(lowered, deltas, buffer)
        unmoved = deltas is None or not any(map(any, deltas))
        if not (unmoved and lowered.shortcut is not None and whole_tile(lowered.shortcut, buffer)):
            for operation in operations(lowered, deltas):
                _execute(operation, buffer, arguments, execute)
        if counts is not None and pending is not None:
            counts.after(lowered, pending, buffer)


def _execute(
    operation: Operation, buffer: Bytes, arguments: Mapping[str, Bytes], execute: Callable[[Operation, Bytes], object]
) -> None:
    if isinstance(operation, Transfer):
        execute_transfer(operation, buffer, arguments)
    elif isinstance(operation, ScalarElementAccess):
        _write_element(operation, buffer, arguments)
    else:
        execute(operation, buffer)


def execute_transfer(operation: Transfer, buffer: Bytes, arguments: Mapping[str, Bytes]) -> None:
    """Copy the bursts of one DMA instruction; `buffer` is the unified buffer, `arguments` the global memory."""
    copy_bursts(operation, buffer, arguments[operation.argument], np.frombuffer(operation.pad_pattern, np.uint8))


def copy_bursts(operation: Transfer, near: NDArray[_Cell], far: NDArray[_Cell], pattern: NDArray[_Cell]) -> None:
    """Perform the copy of a DMA instruction between arrays with one cell per byte: its value, or its origin.

    Args:
        operation: the instruction.
        near: the unified buffer.
        far: the argument in global memory.
        pattern: the bytes of `pad_pattern`, which fill the last block of every loaded burst.

    Raises:
        TileError: a burst reaches beyond its memory.
    """
    shape = (operation.bursts, operation.burst_bytes)
    outside = _rows(far, operation.gm_address, operation.gm_pitch, shape)
    inside = _rows(near, operation.ub_address, operation.ub_pitch, shape)
    if not operation.load:
        outside[...] = inside
        return
    inside[...] = outside
    gap = -operation.burst_bytes % BLOCK
    if pattern.size and gap:
        padding = _rows(near, operation.ub_address + operation.burst_bytes, operation.ub_pitch, (operation.bursts, gap))
        padding[...] = np.resize(pattern, gap)


def _write_element(operation: ScalarElementAccess, buffer: Bytes, arguments: Mapping[str, Bytes]) -> None:
    """Write an element; reads were resolved by the walk."""
    if not operation.code:
        return
    memory = buffer if operation.argument is None else arguments[operation.argument]
    end = operation.address + len(operation.code)
    if operation.address < 0 or end > memory.size:
        raise TileError(
            f"{operation.kind} accesses bytes {operation.address} .. {end - 1} of a memory of {memory.size}"
        )
    memory[operation.address : end] = np.frombuffer(operation.code, np.uint8)


def unpack_nibbles(packed: Codes) -> Codes:
    """Spread bytes of shape (rows, n) into codes of shape (rows, 2n), low nibble first."""
    codes = np.empty((packed.shape[0], packed.shape[1] * 2), np.uint8)
    codes[:, 0::2] = packed & 15
    codes[:, 1::2] = packed >> 4
    return codes


def pack_nibbles(codes: Codes) -> Codes:
    """Join codes of shape (rows, 2n) into bytes of shape (rows, n), low nibble first."""
    packed: Codes = codes[:, 0::2] | codes[:, 1::2] << 4
    return packed


def _rows(memory: NDArray[_Cell], address: int, pitch: int, shape: tuple[int, int]) -> NDArray[_Cell]:
    """Return rows of cells, checked against the end of the memory."""
    rows, length = shape
    last = address + (rows - 1) * pitch + length
    if address < 0 or last > memory.size or pitch < 0:
        raise TileError(f"a transfer accesses bytes {address} .. {last - 1} of a memory of {memory.size}")
    return as_strided(memory[address:], shape, (pitch * memory.itemsize, memory.itemsize), writeable=True)


# What is not computed: the results of opaque operations, what nothing wrote, and whatever is made of either.
#
# Beside every byte of the buffer and of the arguments stands one that tells whether it is known. Transfers carry that
# along byte by byte, operations on elements element by element; of any other, all that it writes is unknown if
# anything that it reads is.
#
# Source: docs/reference/pto.md section 8.

_UNKNOWN = 255


@dataclass(frozen=True, slots=True)
class Unknown:
    """The action of the opaque operation `name`: its results are unknown, those of its accesses and `further` ones."""

    name: str
    further: tuple[Access, ...] = ()


@dataclass(slots=True)
class TaintTracker:
    """Tracker of unknown bytes of the buffer and of the arguments: 255 if unknown, otherwise 0.

    `by` is the opaque operation that came last, by its name.
    """

    buffer: Bytes
    arguments: dict[str, Bytes] = field(default_factory=dict)
    by: str = ""

    @classmethod
    def beside(cls, buffer: Bytes, arguments: Mapping[str, Bytes], *, written: bool = True) -> TaintTracker:
        """Return a tracker for arguments that are all known, and a known buffer if it counts as `written`."""
        marks = np.full_like(buffer, 0 if written else _UNKNOWN)
        return cls(marks, {name: np.zeros(codes.size, np.uint8) for name, codes in arguments.items()})

    def grow(self, arguments: Mapping[str, Bytes]) -> None:
        """Extend the marks to arguments that have become longer."""
        for name, codes in arguments.items():
            marks = self.arguments.get(name, np.zeros(0, np.uint8))
            self.arguments[name] = np.concatenate([marks, np.zeros(max(0, codes.size - marks.size), np.uint8)])

    def blamed(self, space: str, start: int, size: int) -> str | None:
        """Return the opaque operation that makes any of some bytes unknown, None if all are known."""
        memory = self._memory(space)
        return self.by if memory is not None and memory[max(start, 0) : start + size].any() else None

    def step(self, lowered: Lowered, deltas: Sequence[Deltas] | None) -> bool:
        """Process an instruction; return whether to compute it: False if an opaque operation makes all its results
        unknown."""
        shortcut = lowered.shortcut
        touched = accesses(lowered, deltas)
        if isinstance(shortcut, Unknown):
            self.by = shortcut.name
            self._write((*touched, *shortcut.further), _UNKNOWN)
            return False
        issued = list(operations(lowered, deltas)) if shortcut is None else []
        if any(isinstance(operation, Transfer | ScalarElementAccess) for operation in issued):
            for operation in issued:
                self._move(operation)
            return True
        own = scratch_reads(touched)
        read = [access for number, access in enumerate(touched) if not access.write and number not in own]
        if not any(self._any(access) for access in read):
            self._write(touched, 0)
            return True
        if isinstance(shortcut, TileEffect):
            effect = shortcut if deltas is None else shortcut.moved(deltas[0])
            if self._by_elements(effect, touched):
                return True
        elif self._alongside(touched):
            return True
        self._write(touched, _UNKNOWN)
        return not self.by

    # ----------------------------------------------------------------------------------------------------- transfers

    def _move(self, operation: Operation) -> None:
        if isinstance(operation, Transfer):
            transfer = replace(operation, pad_pattern=bytes(len(operation.pad_pattern)))
            execute_transfer(transfer, self.buffer, self.arguments)
        elif isinstance(operation, ScalarElementAccess) and operation.code:
            space = "ub" if operation.argument is None else GlobalSpace.of(operation.argument)
            memory = self._memory(space)
            if memory is not None:
                memory[operation.address : operation.address + len(operation.code)] = 0

    # ---------------------------------------------------------------------------------------------------- operations

    def _by_elements(self, effect: TileEffect, touched: Sequence[Access]) -> bool:
        """Propagate unknown values for elementwise operations; return whether the operation is elementwise.

        Other written bytes, such as scratch and the ends of blocks, become unknown.
        """
        work = effect.work
        operation = VECTOR_OPERATIONS[work.mnemonic]
        tiles = (work.dst, *work.sources)
        if any(tile.element_bits < 8 for tile in tiles) or work.mask is not None:
            return False
        shape = work.dst.valid_rows, work.dst.valid_cols
        masks = [tile_view(self.buffer, tile, tile.valid_rows, tile.valid_cols) != 0 for tile in work.sources]
        tainted: NDArray[np.bool_] | None = None
        match operation.kind:
            case Kind.ELEMENTWISE if all(mask.shape == shape for mask in masks) and not operation.accumulates:
                tainted = np.logical_or.reduce(masks)
            case Kind.MOVE:
                shape = min(shape[0], len(masks[0])), min(shape[1], masks[0].shape[1])
                tainted = masks[0][: shape[0], : shape[1]]
            case Kind.COLUMN_BROADCAST if masks[0].shape == shape and len(masks[1]):
                tainted = masks[0] | masks[1][0]
            case Kind.COLUMN_EXPAND if len(masks[0]):
                tainted = np.broadcast_to(masks[0][0], shape)
            case Kind.COLUMN_REDUCE:
                shape, tainted = (1, masks[0].shape[1]), masks[0].any(axis=0, keepdims=True)
            case Kind.ROW_BROADCAST if all(len(mask) == shape[0] for mask in masks):
                full = next((mask for mask in masks if mask.shape == shape), np.zeros(shape, bool))
                tainted = full | np.logical_or.reduce([mask.any(axis=1) for mask in masks if mask is not full])[:, None]
            case Kind.ROW_EXPAND | Kind.ROW_REDUCE if len(masks[0]) == shape[0]:
                tainted = np.broadcast_to(masks[0].any(axis=1)[:, None], shape)
        if tainted is None:
            return False
        self._write(touched, _UNKNOWN)
        view = tile_view(self.buffer, work.dst, *shape)
        view[...] = np.where(tainted, np.iinfo(view.dtype).max, 0)
        return True

    def _alongside(self, touched: Sequence[Access]) -> bool:
        """Propagate unknown values from one read stretch to one written stretch: a cast without scratch."""
        if len(touched) != 2 or {access.write for access in touched} != {True, False}:
            return False
        source, dst = sorted(touched, key=lambda access: access.write)
        marks, other = self._stretches(source), self._stretches(dst)
        if marks is None or other is None or marks.shape[:-1] != other.shape[:-1]:
            return False
        parts = gcd(marks.shape[-1], other.shape[-1])
        tainted = marks.reshape(*marks.shape[:-1], parts, -1).any(axis=-1)
        width = other.shape[-1] // parts
        other[...] = np.where(np.repeat(tainted, width, axis=-1), _UNKNOWN, 0)
        return True

    # --------------------------------------------------------------------------------------------------------- bytes

    def _memory(self, space: str) -> Bytes | None:
        if isinstance(space, GlobalSpace):
            return self.arguments.get(space.argument)
        return self.buffer

    def _stretches(self, access: Access) -> Bytes | None:
        """Return the bytes of an access as a view, one row per stretch."""
        memory = self._memory(access.space)
        if memory is None or access.start < 0 or access.end > memory.size:
            return None
        shape = (*(count for count, _ in access.runs), run_length(access))
        if not prod(shape):
            return None
        strides = (*(distance for _, distance in access.runs), 1)
        return as_strided(memory[access.start :], shape, strides, writeable=True)

    def _any(self, access: Access) -> bool:
        marks = self._stretches(access)
        return marks is not None and bool(marks.any())

    def _write(self, touched: Sequence[Access], value: int) -> None:
        for access in touched:
            view = self._stretches(access) if access.write else None
            if view is not None:
                view[...] = value


# What the operations of a tile program make of bytes: the walk that all mechanisms share, with the parts of one.

_Shortcut = TypeVar("_Shortcut")
_Work = TypeVar("_Work", bound=Operation)


@dataclass(frozen=True, slots=True)
class TileValues(Generic[_Shortcut, _Work]):
    """Evaluator of a mechanism's trees; see `castsim.machines.mechanisms.ComputeValues`."""

    shortcut: type[_Shortcut]
    """The action for a whole tile at once, if it is proven to equal the instruction's operations."""
    convert_whole: Callable[[_Shortcut, Bytes], object]
    """Function that converts that tile in the buffer."""
    work: type[_Work]
    """The operations of the vector unit."""
    execute: Callable[[_Work, Bytes], object]
    """Function that runs one of them on the buffer."""

    def __call__(
        self,
        tree: Tree,
        buffer: Bytes,
        arguments: Mapping[str, Bytes],
        *,
        shortcuts: bool = True,
        follower: Follower | None = None,
        counts: CastCounts | None = None,
    ) -> None:
        """Run a tree like `compute_tree`; `shortcuts` False runs operation by operation even where proofs exist."""

        def whole_tile(shortcut: object, buffer: Bytes) -> bool:
            if not shortcuts or not isinstance(shortcut, self.shortcut):
                return False
            self.convert_whole(shortcut, buffer)
            return True

        def execute(operation: Operation, buffer: Bytes) -> None:
            if isinstance(operation, self.work):
                self.execute(operation, buffer)

        compute_tree(tree, buffer, arguments, whole_tile, execute, follower, counts)
