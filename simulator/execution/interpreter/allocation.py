"""Allocating tiles on the walk: where the program says, or where the next free byte is."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field, replace

from castsim.execution.interpreter.lifetimes import share_bytes
from castsim.execution.interpreter.lowerer import Lowerer
from castsim.execution.interpreter.places import Allocator, slot_bytes
from castsim.execution.interpreter.structure import has_addresses
from castsim.execution.interpreter.tile_operations import foreign_tile, is_foreign
from castsim.execution.interpreter.tile_parts import TileSlots, part_of
from castsim.execution.tiles import Tile
from castsim.isa.errors import ReadError, Span, TileError
from castsim.isa.pto import program as pto
from castsim.isa.pto.packed import element_format
from castsim.isa.warning_text import WarningText

Number = Callable[[str], int]
"""Returns the integer that a name stands for, which something is decided by."""


@dataclass(slots=True)
class TileMaker:
    """Makes the tiles of one function; `warning` tells that they share bytes."""

    function: pto.Function
    lowerer: Lowerer
    warning: WarningText | None = None
    allocator: Allocator = field(init=False)
    fixed_addresses: bool = field(init=False)

    def __post_init__(self) -> None:
        _, capacity, alignment = self.lowerer.buffer()
        self.allocator = Allocator(capacity, alignment)
        self.fixed_addresses = has_addresses(self.function.body or ())
        if not self.fixed_addresses:
            found = share_bytes(self.function, self.allocator, self.lowerer)
            self.warning = None if found is None else found.at(self.function.span)

    def allocate(self, node: pto.AllocTile | pto.AllocTiles, key: int, number: Number) -> Tile | TileSlots:
        """Place a tile, or several; `key` identifies the source operation, which gets the same place each time.

        Raises:
            ReadError: it has no address though others have.
            IllegalError, TileError: the buffer cannot take it.
        """
        if self.fixed_addresses and node.address is None:
            raise ReadError(
                f"%{node.result}: other tiles of this function have addresses (level 3), so this one needs one too",
                span=node.span,
                legal=("addr = %value",),
            )
        kind = node.type.tile if isinstance(node, pto.AllocTiles) else node.type
        rows = _extent(kind.valid_rows, node.valid_row, number)
        cols = _extent(kind.valid_cols, node.valid_col, number)
        count = node.type.count if isinstance(node, pto.AllocTiles) else None
        if kind.location != "vec":
            foreign = foreign_tile(node.result, kind, rows, cols)
            return foreign if count is None else TileSlots(foreign, count, 0)
        fmt = element_format(kind.element)
        bits = self.lowerer.element_bits(fmt)
        size = kind.rows * kind.cols * bits // 8
        distance = slot_bytes(size, self.allocator.alignment)
        if node.address is not None:
            address = number(node.address)
        else:
            whole = size if count is None else distance * (count - 1) + size
            address = self.allocator.place(key, node.result, kind, whole, node.span)
        added = isinstance(node, pto.AllocTile) and node.added
        tile = Tile(node.result, fmt, kind, address, rows, cols, bits, added=added)
        if count is None:
            self._check(tile, node.span)
            return tile
        slots = TileSlots(tile, count, distance)
        for slot in range(count):
            self._check(slots.tile(node.result, slot, node.span), node.span)
        return slots

    def _check(self, tile: Tile, span: Span) -> None:
        """Refuse a tile that the buffer cannot take; of a boxed one only its place is looked at.

        Raises:
            TileError: it cannot.
        """
        if not is_foreign(tile.type):
            self.lowerer.check_tile(tile, span)
            return
        if not tile.rows or not tile.cols:
            raise TileError(f"tile %{tile.name} of {tile.rows} rows and {tile.cols} columns has no element", span=span)
        capacity, alignment = self.allocator.capacity, self.allocator.alignment
        if tile.address % alignment:
            raise TileError(f"tile %{tile.name} starts at byte {tile.address}, not {alignment}-byte aligned", span=span)
        if not 0 <= tile.address <= tile.end <= capacity:
            what = f"bytes {tile.address} .. {tile.end - 1}, the buffer has {capacity}"
            raise TileError(f"tile %{tile.name} takes {what}", span=span)

    def part(self, node: pto.Subview, source: Tile, number: Number) -> Tile:
        """Return a part of a tile.

        Raises:
            TileError: it leaves its tile.
        """
        names = node.valid or (None, None)
        stated = (node.type.valid_rows, node.type.valid_cols)
        rows, cols = (
            _extent(None if name else extent, name, number) for extent, name in zip(stated, names, strict=True)
        )
        if is_foreign(node.type):  # of a boxed tile, which bytes the part has is not known
            return replace(
                source, name=node.result, type=node.type, valid_rows=rows, valid_cols=cols, reach=source.size
            )
        return part_of(node, source, (number(node.offsets[0]), number(node.offsets[1])), (rows, cols))


def _extent(stated: int | None, operand: str | None, number: Number) -> int:
    if operand is not None:
        given = number(operand)
        if given < 0 or (stated is not None and stated != given):
            raise TileError(f"valid extent {given} where the type says {'?' if stated is None else stated}")
        return given
    assert stated is not None
    return stated
