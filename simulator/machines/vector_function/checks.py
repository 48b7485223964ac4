"""What a cast refuses on a vector-function chip before anything is issued."""

from __future__ import annotations

from dataclasses import replace

from castsim.execution.dataflow.checks import check_equal_regions, check_overlap, check_tile
from castsim.execution.tiles import TileCast
from castsim.isa.errors import TileError
from castsim.isa.warning_text import Warnings
from castsim.targets.vector_function import VectorFunctionTarget


def check_cast(target: VectorFunctionTarget, cast: TileCast, *, fills: bool) -> Warnings:
    """Refuse tiles that one cast cannot combine; return warnings about combinations that merely surprise.

    `fills` says whether the cast clears its destination first.

    Raises:
        TileError: see `castsim.execution.dataflow.checks.check_tile`; also different valid regions, a column-major
        tile,
            operands that overlap in a way in which a write would destroy unread elements.
    """
    src, dst = cast.src, cast.dst
    for tile in (src, dst):
        check_tile(target, tile, cast.span)
        if tile.type.block_layout != "row_major":
            raise TileError(f"tile %{tile.name} is {tile.type.block_layout}; tcvt takes row_major", span=cast.span)
    check_equal_regions(cast)
    if fills and src.address < dst.end and dst.address < src.end:
        raise TileError(f"%{dst.name} is cleared before %{src.name} is read, so they cannot overlap", span=cast.span)
    return check_overlap(replace(cast, tmp=None))  # no kernel uses a tmp tile
