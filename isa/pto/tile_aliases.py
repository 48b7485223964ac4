"""Operations that name tiles and parts of tiles: no instruction, no bytes of their own but those of several tiles.

Source: docs/reference/pto.md section 7.8.
"""

from __future__ import annotations

from dataclasses import dataclass

from castsim.isa.located import Located
from castsim.isa.pto.value_types import MultiTileType, TileType


@dataclass(frozen=True, slots=True)
class Subview(Located):
    """`%r = pto.subview %t[%i, %j] sizes [R, C] [valid [%vr, %vc]] : T -> T`; the result has R rows and C columns."""

    result: str
    source: str
    offsets: tuple[str, str]
    source_type: TileType
    type: TileType
    valid: tuple[str, str] | None = None


@dataclass(frozen=True, slots=True)
class AllocTiles(Located):
    """`%m = pto.alloc_multi_tile [addr = %a] [valid_row = %r] [valid_col = %c] : !pto.multi_tile_buf<...>`."""

    result: str
    type: MultiTileType
    address: str | None = None
    valid_row: str | None = None
    valid_col: str | None = None


@dataclass(frozen=True, slots=True)
class GetTile(Located):
    """`%t = pto.multi_tile_get %m[%k] : !pto.multi_tile_buf<...> -> T`."""

    result: str
    source: str
    slot: str
    source_type: MultiTileType

    @property
    def type(self) -> TileType:
        """The type of the result."""
        return self.source_type.tile
