"""Where parts and slots of tiles lie, as far as the text of a program tells (docs/reference/pto.md section 5.1)."""

from __future__ import annotations

from dataclasses import dataclass, replace

from castsim.execution.interpreter.places import slot_bytes
from castsim.isa.pto import program as pto
from castsim.synchronisation.flags.elements import Buffer


@dataclass(frozen=True, slots=True)
class Placed:
    """A tile at a known address: its first bit, and the bits from one row, and from one column, to the next."""

    start: int
    row_bits: int
    column_bits: int

    @classmethod
    def of(cls, kind: pto.TileType, address: int, bits: int) -> Placed:
        """Place a tile of its own."""
        rows_first = kind.block_layout != "row_major"
        return cls(address * 8, bits if rows_first else kind.cols * bits, kind.rows * bits if rows_first else bits)

    def part(self, row: int, column: int) -> Placed:
        """Return the place of a part, which keeps the distances between rows and between columns."""
        return replace(self, start=self.start + row * self.row_bits + column * self.column_bits)

    def lines(self, kind: pto.TileType) -> tuple[tuple[int, int], ...]:
        """Return the bytes of a part of this type, one range a row, or a column where columns lie together."""
        by_rows = self.column_bits <= self.row_bits
        count, length = (kind.rows, kind.cols) if by_rows else (kind.cols, kind.rows)
        step, unit = (self.row_bits, self.column_bits) if by_rows else (self.column_bits, self.row_bits)
        starts = [self.start + number * step for number in range(count)]
        return tuple((start // 8, -(-(start + length * unit) // 8)) for start in starts)


def slots_of(kind: pto.MultiTileType, whole: Buffer, size: int, alignment: int) -> tuple[Buffer, ...]:
    """Return the buffers of several tiles of `size` bytes, one behind the other; one for all if nothing tells where."""
    if whole.ranges is None:
        return (whole,)
    (first, _), step = whole.ranges[0], slot_bytes(size, alignment)
    starts = [first + number * step for number in range(kind.count)]
    return tuple(replace(whole, ranges=((start, start + size),)) for start in starts)
