"""What a vector operation refuses on a target before anything is issued."""

from __future__ import annotations

from simulator.dataflow.checks import check_tile
from simulator.tiles import TileWork
from targets.dataflow import DataflowTarget


def check_work(target: DataflowTarget, work: TileWork) -> tuple[str, ...]:
    """Refuse an operation that the target does not have in this form; return warnings.

    Raises:
        IllegalError: no such operation, or not for this element type.
        TileError: operands whose shapes, layouts or places do not fit together.
        ScratchError: a scratch tile that is too small.
    """
    tiles = (work.dst, *work.sources, work.tmp, work.mask)
    for tile in tiles:
        if tile is not None:
            check_tile(target, tile, work.span)
    return ()
