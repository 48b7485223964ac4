"""Estimating the cycles of one tile load or store without writing a program."""

from __future__ import annotations

from pathlib import Path

from castsim.estimating.estimates import HERE, Estimate, timed_alone
from castsim.execution.tiles import Part, Tile, TileTransfer
from castsim.isa.errors import TileError
from castsim.isa.formats import format_named
from castsim.isa.pto.program import TileType
from castsim.machines.mechanisms import lowerer_of
from castsim.targets import Target, load_target
from castsim.targets.transfers import with_cores


def estimate_load(
    element: str,
    rows: int,
    cols: int,
    *,
    target: str | Path | Target,
    transfers: int = 1,
    by_column: bool = False,
    cores: int | None = None,
    store: bool = False,
) -> Estimate:
    """Simulate the load of `rows` x `cols` elements that are adjacent in global memory and return its cycles.

    Args:
        element: name of the element format.
        rows, cols: what is loaded, in elements; lines of the tile are as long as their whole blocks.
        target: a chip.
        transfers: leading extent of the view, and with it transfer instructions; each takes an equal share.
        cores: how many cores load at once; None: one, or what the target's description says.
        store: whether they are stored instead.
        by_column: whether view and tile are column-major (`dn`) and the transfers share the columns.

    Raises:
        TileError: the lines cannot be shared equally; see also `castsim.isa.errors`.
    """
    chip = target if not isinstance(target, str | Path) else load_target(target)
    if cores is not None:
        chip = with_cores(chip, cores)
    lines, length = (cols, rows) if by_column else (rows, cols)
    if lines % transfers:
        raise TileError(f"{lines} lines cannot be shared by {transfers} transfers")
    lowerer, fmt, each = lowerer_of(chip), format_named(element), lines // transfers
    bits = lowerer.element_bits(fmt)
    per_block = max(1, chip.memories["ub"].alignment_bytes * 8 // bits)
    padded = -(-length // per_block) * per_block
    if by_column:
        # A tile counts every part of a view as further rows of the same columns.
        held = -(-transfers * length // per_block) * per_block
        kind = TileType("vec", fmt.name, held, each, transfers * length, each, block_layout="col_major")
        sizes, strides = (1, 1, transfers, length, each), (0, 0, each * length, 1, length)
    else:
        kind = TileType("vec", fmt.name, lines, padded, lines, length)
        sizes, strides = (1, 1, transfers, each, length), (0, 0, each * length, length, 1)
    tile = Tile("dst", fmt, kind, 0, kind.valid_rows or 0, kind.valid_cols or 0, bits)
    lowerer.check_tile(tile, HERE)
    part = Part("src", fmt, 0, sizes, strides, "dn" if by_column else "nd")
    moved = lowerer.transfer(TileTransfer(tile, part, load=not store, span=HERE))
    return timed_alone(chip, moved, f"{'tstore' if store else 'tload'} {element}")
