"""What is not computed: the results of opaque operations, what nothing wrote, and whatever is made of either.

Beside every byte of the buffer and of the arguments stands one that tells whether it is known. Transfers carry that
along byte by byte, operations on elements element by element; of any other, all that it writes is unknown if anything
that it reads is.

Source: docs/reference/pto.md section 9.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from math import gcd, prod

import numpy as np
from numpy.lib.stride_tricks import as_strided
from numpy.typing import NDArray

from castsim.execution.byte_sets import run_length
from castsim.execution.dataflow.operations import ScalarAccess, Transfer
from castsim.execution.dataflow.values import execute_transfer
from castsim.execution.tree import Access, Deltas, GlobalSpace, Lowered, Operation, accesses, operations, scratch_reads
from castsim.execution.vector_operations.effect import TileEffect
from castsim.execution.vector_operations.elements import tile_view
from castsim.isa.pto.vector_operations import VECTOR_OPERATIONS, Kind

Bytes = NDArray[np.uint8]
_UNKNOWN = 255


@dataclass(frozen=True, slots=True)
class Unknown:
    """The action of the opaque operation `name`: what it writes is unknown, `further` beside what its accesses say."""

    name: str
    further: tuple[Access, ...] = ()


@dataclass(slots=True)
class TaintTracker:
    """Which bytes of the buffer and of the arguments are unknown: 255, others 0.

    `by` is the opaque operation that came last, by its name.
    """

    buffer: Bytes
    arguments: dict[str, Bytes] = field(default_factory=dict)
    by: str = ""

    @classmethod
    def beside(cls, buffer: Bytes, arguments: Mapping[str, Bytes], *, written: bool = True) -> TaintTracker:
        """Return one for arguments that are all known, and a buffer that is if it counts as `written`."""
        marks = np.full_like(buffer, 0 if written else _UNKNOWN)
        return cls(marks, {name: np.zeros(found.size, np.uint8) for name, found in arguments.items()})

    def grow(self, arguments: Mapping[str, Bytes]) -> None:
        """Take in arguments that have become longer."""
        for name, found in arguments.items():
            known = self.arguments.get(name, np.zeros(0, np.uint8))
            self.arguments[name] = np.concatenate([known, np.zeros(max(0, found.size - known.size), np.uint8)])

    def blamed(self, space: str, start: int, size: int) -> str | None:
        """Return the opaque operation for which any of some bytes is unknown, None if all are known."""
        memory = self._memory(space)
        return self.by if memory is not None and memory[max(start, 0) : start + size].any() else None

    def step(self, lowered: Lowered, deltas: Sequence[Deltas] | None) -> bool:
        """Take in an instruction; return whether it computes anything: not what has nothing but results that an opaque
        operation leaves unknown.
        """
        shortcut = lowered.shortcut
        touched = accesses(lowered, deltas)
        if isinstance(shortcut, Unknown):
            self.by = shortcut.name
            self._write((*touched, *shortcut.further), _UNKNOWN)
            return False
        issued = list(operations(lowered, deltas)) if shortcut is None else []
        if any(isinstance(operation, Transfer | ScalarAccess) for operation in issued):
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
            known = replace(operation, pad_pattern=bytes(len(operation.pad_pattern)))
            execute_transfer(known, self.buffer, self.arguments)
        elif isinstance(operation, ScalarAccess) and operation.code:
            space = "ub" if operation.argument is None else GlobalSpace.of(operation.argument)
            memory = self._memory(space)
            if memory is not None:
                memory[operation.address : operation.address + len(operation.code)] = 0

    # ---------------------------------------------------------------------------------------------------- operations

    def _by_elements(self, effect: TileEffect, touched: Sequence[Access]) -> bool:
        """Carry along what is unknown where elements answer to elements; return whether they do.

        What is written besides, scratch and the ends of blocks, is unknown.
        """
        work = effect.work
        operation = VECTOR_OPERATIONS[work.mnemonic]
        tiles = (work.dst, *work.sources)
        if any(tile.element_bits < 8 for tile in tiles) or work.mask is not None:
            return False
        shape = work.dst.valid_rows, work.dst.valid_cols
        masks = [tile_view(self.buffer, tile, tile.valid_rows, tile.valid_cols) != 0 for tile in work.sources]
        found: NDArray[np.bool_] | None = None
        match operation.kind:
            case Kind.ELEMENTWISE if all(mask.shape == shape for mask in masks) and not operation.accumulates:
                found = np.logical_or.reduce(masks)
            case Kind.MOVE:
                shape = min(shape[0], len(masks[0])), min(shape[1], masks[0].shape[1])
                found = masks[0][: shape[0], : shape[1]]
            case Kind.COLUMN_BROADCAST if masks[0].shape == shape and len(masks[1]):
                found = masks[0] | masks[1][0]
            case Kind.COLUMN_EXPAND if len(masks[0]):
                found = np.broadcast_to(masks[0][0], shape)
            case Kind.COLUMN_REDUCE:
                shape, found = (1, masks[0].shape[1]), masks[0].any(axis=0, keepdims=True)
            case Kind.ROW_BROADCAST if all(len(mask) == shape[0] for mask in masks):
                full = next((mask for mask in masks if mask.shape == shape), np.zeros(shape, bool))
                found = full | np.logical_or.reduce([mask.any(axis=1) for mask in masks if mask is not full])[:, None]
            case Kind.ROW_EXPAND | Kind.ROW_REDUCE if len(masks[0]) == shape[0]:
                found = np.broadcast_to(masks[0].any(axis=1)[:, None], shape)
        if found is None:
            return False
        self._write(touched, _UNKNOWN)
        view = tile_view(self.buffer, work.dst, *shape)
        view[...] = np.where(found, np.iinfo(view.dtype).max, 0)
        return True

    def _alongside(self, touched: Sequence[Access]) -> bool:
        """Carry along what is unknown from one stretch that is read to one that is written: a cast without scratch."""
        if len(touched) != 2 or {access.write for access in touched} != {True, False}:
            return False
        source, dst = sorted(touched, key=lambda access: access.write)
        one, other = self._stretches(source), self._stretches(dst)
        if one is None or other is None or one.shape[:-1] != other.shape[:-1]:
            return False
        parts = gcd(one.shape[-1], other.shape[-1])
        found = one.reshape(*one.shape[:-1], parts, -1).any(axis=-1)
        each = other.shape[-1] // parts
        other[...] = np.where(np.repeat(found, each, axis=-1), _UNKNOWN, 0)
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
        found = self._stretches(access)
        return found is not None and bool(found.any())

    def _write(self, touched: Sequence[Access], value: int) -> None:
        for access in touched:
            view = self._stretches(access) if access.write else None
            if view is not None:
                view[...] = value
