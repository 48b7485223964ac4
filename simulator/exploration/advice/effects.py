"""The terms of what a vector operation on tiles computes, element by element, row by row, or as bytes that it moves."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
from numpy.lib.stride_tricks import as_strided

from castsim.execution.tiles import ResolvedTileOp, Tile
from castsim.execution.vector_operations.accesses import work_accesses
from castsim.execution.vector_operations.behaviour import float_route
from castsim.execution.vector_operations.effect import TileEffect
from castsim.execution.vector_operations.shapes import is_column, vector_operand
from castsim.exploration.advice.value_numbering import Fingerprints, applied, gathered, joined, key_of, spread
from castsim.isa.pto.vector_operations import VECTOR_OPERATIONS, Kind

_PER_ELEMENT = (
    Kind.ELEMENTWISE, Kind.BROADCAST, Kind.ROW_EXPAND, Kind.ROW_BROADCAST, Kind.COLUMN_EXPAND, Kind.COLUMN_BROADCAST,
)  # fmt: skip
_PER_ROW = (Kind.ROW_REDUCE, Kind.ROW_ARGUMENT)
_MOVED = (Kind.MOVE, Kind.FILL, Kind.TRANSPOSE, Kind.CONCATENATE, Kind.PATTERN_GATHER)


@dataclass(frozen=True, slots=True)
class Memory:
    """The terms of the buffer's bytes by one seed, and those of the 256 constants that a byte can hold."""

    seed: int
    buffer: Fingerprints
    constants: Fingerprints

    def elements(self, tile: Tile, rows: int, cols: int) -> Fingerprints:
        """Return a writable view of the bytes of a tile's first elements, shape (rows, cols, bytes)."""
        size = tile.element_bits // 8
        down, across = (size, tile.rows * size) if is_column(tile) else (tile.row_pitch, size)
        return as_strided(self.buffer[tile.address :], (rows, cols, size), (down * 8, across * 8, 8), writeable=True)

    def valid(self, tile: Tile) -> Fingerprints:
        """Return the terms of a tile's valid elements."""
        return joined(self.elements(tile, tile.valid_rows, tile.valid_cols))


def effect_words(effect: TileEffect) -> tuple[object, ...]:
    """Return all that says what an operation does to its elements, wherever they lie and however many there are."""
    work, behaviour = effect.work, effect.behaviour
    in_place = [source.address == work.dst.address for source in work.sources]
    return (
        work.mnemonic, work.dst.format.name, [source.format.name for source in work.sources],
        [(code, fmt.name) for code, fmt in work.scalars], work.mode, work.scalar_first, work.binary, work.descending,
        work.pattern, work.by_columns, work.offset, behaviour.saturates, behaviour.uses_tmp, behaviour.choices,
        behaviour.window is None, in_place if VECTOR_OPERATIONS[work.mnemonic].divides_by_scalar else (),
    )  # fmt: skip


def effect_terms(memory: Memory, effect: TileEffect) -> bool:
    """Follow an operation; False if nothing finer is known of it than what it touches."""
    work, behaviour = effect.work, effect.behaviour
    kind = VECTOR_OPERATIONS[work.mnemonic].kind
    if float_route(work, behaviour.facts) is not None or any(
        tile.element_bits < 8 for tile in (work.dst, *work.sources)
    ):
        return False
    if behaviour.window is not None or work.mask is not None or work.counts is not None:
        return False
    if kind in _MOVED:
        _moved(memory, effect)
    elif kind in _PER_ELEMENT:
        _per_element(memory, effect, kind)
    elif kind in _PER_ROW:
        source = work.sources[0]
        key = key_of(memory.seed, *effect_words(effect), source.valid_cols)
        rows = gathered(key, memory.valid(source))
        _spoil_tmp(memory, work, rows)
        _write(memory, work.dst, rows[:, None])
    else:
        return False
    return True


def _per_element(memory: Memory, effect: TileEffect, kind: Kind) -> None:
    work = effect.work
    operands = [memory.valid(source) for source in work.sources]
    if kind is Kind.ROW_EXPAND:
        operands = [operands[0][:, :1]]
    elif kind in (Kind.COLUMN_EXPAND, Kind.COLUMN_BROADCAST):
        operands[-1] = operands[-1][:1]
    elif kind is Kind.ROW_BROADCAST:
        place = vector_operand(work)
        vector = operands[place]
        if not is_column(work.sources[place]):
            operands[place] = vector[:, np.arange(work.dst.valid_cols) % vector.shape[1]]
    if VECTOR_OPERATIONS[work.mnemonic].accumulates:
        operands.append(memory.valid(work.dst))
    shape = (work.dst.valid_rows, work.dst.valid_cols)
    found = applied(key_of(memory.seed, *effect_words(effect)), operands, shape)
    _spoil_tmp(memory, work, found)
    _write(memory, work.dst, found)


def _write(memory: Memory, tile: Tile, terms: Fingerprints) -> None:
    view = memory.elements(tile, *terms.shape)
    view[...] = spread(terms, view.shape[-1])


def _spoil_tmp(memory: Memory, work: ResolvedTileOp, terms: Fingerprints) -> None:
    """Let what a tmp tile holds rest on the whole operation."""
    if work.tmp is not None:
        key = key_of(memory.seed, "tmp", work.mnemonic, terms.shape)
        memory.buffer[work.tmp.address : work.tmp.end] = spread(gathered(key, terms.reshape(-1)), work.tmp.size)


def _moved(memory: Memory, effect: TileEffect) -> None:
    """Run a move on the numbers of its bytes: what comes from where, and what is constant."""
    work = effect.work
    touched = work_accesses(work, effect.behaviour)
    base, end = min(access.start for access in touched), max(access.end for access in touched)
    moved = replace(effect, work=_shifted(work, -base))
    size = end - base
    numbers = np.arange(size)
    runs = [np.zeros(size, np.uint8), np.full(size, 255, np.uint8)]
    runs += [(numbers >> shift & 255).astype(np.uint8) for shift in (0, 8, 16)]
    for run in runs:
        moved.apply(run)
    constant = (runs[0] == runs[1]) & np.array(True)
    origin = runs[2].astype(np.int64) | runs[3].astype(np.int64) << 8 | runs[4].astype(np.int64) << 16
    before = memory.buffer[base:end].copy()
    memory.buffer[base:end] = np.where(
        constant, memory.constants[runs[0]], before[np.where(constant, 0, np.minimum(origin, size - 1))]
    )


def _shifted(work: ResolvedTileOp, delta: int) -> ResolvedTileOp:
    def shifted(tile: Tile) -> Tile:
        return replace(tile, address=tile.address + delta)

    tmp = None if work.tmp is None else shifted(work.tmp)
    return replace(work, dst=shifted(work.dst), sources=tuple(map(shifted, work.sources)), tmp=tmp)
