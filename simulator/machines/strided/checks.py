"""What a strided-repeat cast or transfer refuses before anything is issued: layout, alignment, extent, overlap."""

from __future__ import annotations

from castsim.execution.dataflow.checks import check_equal_regions, check_overlap, check_tile
from castsim.execution.tiles import TileCast
from castsim.isa.errors import TileError
from castsim.isa.warning_text import Warnings
from castsim.targets.strided_repeat import StridedRepeatTarget


def check_cast(target: StridedRepeatTarget, cast: TileCast) -> Warnings:
    """Refuse tiles that one cast cannot combine; return warnings about combinations that merely surprise.

    Raises:
        TileError: see `check_tile`; also different shapes or valid regions, a column-major tile, an odd number of
            4-bit columns, operands that overlap in a way in which a write would destroy unread elements.
    """
    tiles = [cast.src, cast.dst] + ([cast.tmp] if cast.tmp else [])
    for tile in tiles:
        check_tile(target, tile, cast.span)
    for tile in (cast.src, cast.dst):
        if tile.type.block_layout != "row_major":
            raise TileError(f"tile %{tile.name} is {tile.type.block_layout}; tcvt takes row_major", span=cast.span)
    check_equal_regions(cast)
    for tile in (cast.src, cast.dst):
        if tile.format.bits == 4 and tile.valid_cols % 2:
            raise TileError(
                f"tile %{tile.name} has {tile.valid_cols} valid columns of {tile.format.name}; "
                "two share a byte and a mask bit pair, so the number must be even",
                span=cast.span,
            )
    return check_overlap(cast)
