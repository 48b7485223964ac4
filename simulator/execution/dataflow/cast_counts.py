"""What the casts of a run did to their numbers, counted instruction by instruction."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace

import numpy as np
from numpy.lib.stride_tricks import as_strided
from numpy.typing import NDArray

from castsim.execution.outcomes import CastPlace, Judge, Outcomes
from castsim.execution.tiles import CastTiles, Tile
from castsim.execution.tree import Deltas, Instruction, Lowered
from castsim.isa.codes import Codes

Bytes = NDArray[np.uint8]


@dataclass(slots=True)
class CastCounts:
    """The outcomes of every executed cast, by the number of its instruction."""

    found: dict[int, Outcomes] = field(default_factory=dict)

    def before(self, lowered: Lowered, deltas: Sequence[Deltas] | None, buffer: Bytes) -> PendingCast | None:
        """Return what a cast is about to read; None for any other instruction."""
        if lowered.cast is None or not lowered.accesses:
            return None
        cast = lowered.cast if deltas is None else _moved(lowered, deltas[0])
        if any(tile.address < 0 or tile.end > buffer.size for tile in (cast.src, cast.dst)):
            return None  # executing it says so
        return PendingCast(cast, tile_codes(buffer, cast.src))

    def after(self, lowered: Lowered, pending: PendingCast, buffer: Bytes) -> None:
        """Count what the cast has written."""
        cast = pending.cast
        judge = Judge(cast.src.format, cast.dst.format, cast.rounding, cast.wraps)
        counts = judge.count(pending.codes, tile_codes(buffer, cast.dst))
        self.found.setdefault(lowered.instruction, Outcomes()).add(counts)

    def by_place(self, instructions: Sequence[Instruction]) -> Mapping[CastPlace, Outcomes]:
        """Return the same by the place of each instruction, in their order."""
        return {
            CastPlace(instructions[number].span.line, instructions[number].text, src, dst, number): counts
            for number, counts in sorted(self.found.items())
            for src, dst in instructions[number].casts[:1]
        }


@dataclass(frozen=True, slots=True)
class PendingCast:
    """A cast that is being executed, and the codes that it reads."""

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


def tile_codes(buffer: Bytes, tile: Tile) -> Codes:
    """Return a copy of the codes of a tile's valid elements, line by line as they lie in memory."""
    column = tile.type.block_layout == "col_major"
    lines, length = (tile.valid_cols, tile.valid_rows) if column else (tile.valid_rows, tile.valid_cols)
    pitch = tile.rows * tile.element_bits // 8 if column else tile.row_pitch
    if tile.format.bits == 4:  # packed, whatever the pitch counts an element as
        packed = as_strided(buffer[tile.address :], (lines, -(-length // 2)), (pitch, 1))
        codes = np.empty((lines, 2 * packed.shape[1]), np.uint8)
        codes[:, 0::2], codes[:, 1::2] = packed & 15, packed >> 4
        return codes[:, :length]
    size = tile.element_bits // 8
    first = buffer[tile.address : tile.address + size].view(f"<u{size}")
    return as_strided(first, (lines, length), (pitch, size)).copy()
