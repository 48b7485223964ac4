"""Loads and stores between a view's part and a valid region of another size: what is moved.

Source: docs/reference/pto.md section 3.5; the target's option `transfer_region` chooses.
"""

from __future__ import annotations

from dataclasses import replace

from castsim.execution.tiles import Part, TileTransfer
from castsim.isa.errors import TileError
from castsim.isa.warning_text import WarningKind, Warnings, WarningText
from castsim.targets.dataflow import DataflowTarget

OPTION = "transfer_region"


def fitted(target: DataflowTarget, transfer: TileTransfer) -> tuple[TileTransfer, Warnings]:
    """Return a transfer whose part and valid region have one size, and a warning if they had not.

    Raises:
        TileError: they differ, and the option refuses that; the valid region reaches behind the part; rows of the part
            leave the tile.
    """
    tile, part = transfer.tile, transfer.part
    if (part.rows, part.cols) == (tile.valid_rows, tile.valid_cols):
        return transfer, ()
    what = (
        f"{'tload' if transfer.load else 'tstore'}: the view's part is {part.rows} x {part.cols}, the valid region of "
        f"%{tile.name} is {tile.valid_rows} x {tile.valid_cols}"
    )
    how = target.option(OPTION) if OPTION in target.options else "tile"
    if how == "refuse":
        raise TileError(what, span=transfer.span)
    if how == "tile":
        found = replace(transfer, part=_cut(transfer, what))
        moved = f"{tile.valid_rows} x {tile.valid_cols}"
    else:
        found = _as_the_library(target, transfer, what)
        moved = f"{found.part.rows} x {found.part.cols}"
    return found, (WarningText(WarningKind.REGION, f"{what}: {moved} are moved"),)


def _cut(transfer: TileTransfer, what: str) -> Part:
    """Return the first rows and columns of the part, as many as are valid.

    Raises:
        TileError: it has fewer, or its rows come from several dimensions of which some would be cut.
    """
    tile, part = transfer.tile, transfer.part
    if not tile.valid_rows or not tile.valid_cols:
        return replace(part, sizes=(1, 1, 1, tile.valid_rows, tile.valid_cols))
    if tile.valid_rows > part.rows or tile.valid_cols > part.cols:
        raise TileError(f"{what}, which reaches beyond the part", span=transfer.span)
    first, second, third, rows, _ = part.sizes
    if tile.valid_rows != part.rows:
        if first * second * third != 1:
            raise TileError(f"{what}; rows of several dimensions are not cut", span=transfer.span)
        rows = tile.valid_rows
    return replace(part, sizes=(first, second, third, rows, tile.valid_cols))


def _as_the_library(target: DataflowTarget, transfer: TileTransfer, what: str) -> TileTransfer:
    """Return what the library moves: lines as many as the view's part has, each as long as the tile's valid ones.

    Raises:
        TileError: lines leave the tile.
    """
    tile, part = transfer.tile, transfer.part
    first, second, third, rows, cols = part.sizes
    one, two, three, down, across = part.strides
    skewed = target.transfer_limits.skewed_lines
    if part.layout == "dn":
        sizes = (first, second, third, tile.valid_rows, cols)
        across = tile.valid_rows + across - rows if skewed else across
        tile = replace(tile, valid_cols=cols)
        leaves = cols > tile.cols
    else:
        sizes = (first, second, third, rows, tile.valid_cols)
        down = tile.valid_cols + down - cols if skewed else down
        tile = replace(tile, valid_rows=part.rows)
        leaves = part.rows > tile.rows
    if leaves or down < 0 or across < 0:
        raise TileError(f"{what}; the part's lines leave the tile", span=transfer.span)
    return replace(transfer, tile=tile, part=replace(part, sizes=sizes, strides=(one, two, three, down, across)))
