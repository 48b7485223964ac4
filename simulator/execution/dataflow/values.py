"""The walk over a tree that computes bytes, what transfers do to them, and how two 4-bit elements share one."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Protocol, TypeVar

import numpy as np
from numpy.lib.stride_tricks import as_strided
from numpy.typing import NDArray

from castsim.execution.dataflow.cast_counts import CastCounts
from castsim.execution.dataflow.idle import NO_VALUES, Idle
from castsim.execution.dataflow.operations import BLOCK, ScalarAccess, Transfer
from castsim.execution.tree import Deltas, Lowered, Operation, Tree, instances, operations
from castsim.execution.vector_operations.effect import TileEffect
from castsim.isa.codes import Codes
from castsim.isa.errors import TileError

Bytes = NDArray[np.uint8]

_Cell = TypeVar("_Cell", bound=np.generic)


class Follower(Protocol):
    """What follows every instruction beside its values."""

    def step(self, lowered: Lowered, deltas: Sequence[Deltas] | None) -> bool:
        """Take in an instruction that is about to be executed; return whether it is to be."""
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
        tree: what the machine issues.
        buffer: the unified buffer.
        arguments: global memory by argument name.
        whole_tile: takes an instruction's shortcut, if it may, and says whether it did; asked only while no loop has
            moved the operations that the shortcut was proven of.
        execute: runs an operation of the vector unit and ignores all others; transfers are run here.
        follower: is told of every instruction, and may leave it out.
        counts: gets what casts do to their numbers.
    """
    for lowered, deltas in instances(tree, Idle(NO_VALUES)):
        if follower is not None and not follower.step(lowered, deltas):
            continue
        if isinstance(lowered.shortcut, TileEffect):
            effect = lowered.shortcut if deltas is None else lowered.shortcut.moved(deltas[0])
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
    operation: Operation,
    buffer: Bytes,
    arguments: Mapping[str, Bytes],
    execute: Callable[[Operation, Bytes], object],
) -> None:
    if isinstance(operation, Transfer):
        execute_transfer(operation, buffer, arguments)
    elif isinstance(operation, ScalarAccess):
        _write_element(operation, buffer, arguments)
    else:
        execute(operation, buffer)


def execute_transfer(operation: Transfer, buffer: Bytes, arguments: Mapping[str, Bytes]) -> None:
    """Copy the bursts of one DMA instruction; `buffer` is the unified buffer, `arguments` the global memory."""
    copy_bursts(operation, buffer, arguments[operation.argument], np.frombuffer(operation.pad_pattern, np.uint8))


def copy_bursts(operation: Transfer, near: NDArray[_Cell], far: NDArray[_Cell], pattern: NDArray[_Cell]) -> None:
    """Copy what a DMA instruction copies, between arrays that hold one cell for each byte: its value, or its origin.

    Args:
        operation: the instruction.
        near: the unified buffer.
        far: the argument in global memory.
        pattern: what stands for the bytes of `pad_pattern`, which fill the last block of every burst that is loaded.

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


def _write_element(operation: ScalarAccess, buffer: Bytes, arguments: Mapping[str, Bytes]) -> None:
    """Write an element; what a read finds the walk has found already."""
    if not operation.code:
        return
    memory = buffer if operation.argument is None else arguments[operation.argument]
    end = operation.address + len(operation.code)
    if operation.address < 0 or end > memory.size:
        raise TileError(f"{operation.kind} reaches bytes {operation.address} .. {end - 1} of {memory.size}")
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
        raise TileError(f"a transfer reaches bytes {address} .. {last - 1} of {memory.size}")
    return as_strided(memory[address:], shape, (pitch * memory.itemsize, memory.itemsize), writeable=True)
