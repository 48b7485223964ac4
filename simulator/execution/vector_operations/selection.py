"""Comparisons, which write one bit per element, and selections, which read them (docs/reference/pto.md section 7.3)."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from numpy.typing import NDArray

from castsim.execution.tiles import ResolvedTileOp, Tile
from castsim.execution.vector_operations.behaviour import Behaviour
from castsim.execution.vector_operations.elements import Bytes, numbers, tile_view, valid_codes
from castsim.execution.vector_operations.shapes import compared_bytes
from castsim.isa.codes import Codes
from castsim.isa.errors import TileError
from castsim.isa.formats import Format, IntFormat

UNORDERED = "unordered"
"""A comparison that no text can ask for: whether NaN is on either side."""

_COMPARISONS: dict[str, Callable[..., NDArray[np.bool_]]] = {
    "eq": np.equal,
    "ne": np.not_equal,
    "lt": np.less,
    "le": np.less_equal,
    "gt": np.greater,
    "ge": np.greater_equal,
    UNORDERED: lambda a, b: np.isnan(a) | np.isnan(b),
}


def compare(buffer: Bytes, work: ResolvedTileOp, behaviour: Behaviour) -> None:
    """Write packed results, element j of a row as bit j mod 8 of byte j div 8.

    NaN compares false, and unequal true but where option `unequal_of_nan` says otherwise.
    """
    facts = behaviour.facts
    fmt = work.sources[0].format
    only_equality = fmt.name in facts.equality_only
    mode = "eq" if only_equality else work.mode or "eq"
    inverted = facts.inverts_whole_mask and mode == "ne"
    read, written = compared_bytes(work, facts.compare_bytes)
    found = _compared(buffer, work, "eq" if inverted else mode, read)
    if inverted and not isinstance(fmt, IntFormat) and behaviour.choice("unequal_of_nan") == 0:
        found |= _compared(buffer, work, UNORDERED, read)
    _write_bits(buffer, work, found, written, keep=facts.compare_bytes is None and _keeps(behaviour))
    if inverted:
        buffer[work.dst.address : work.dst.end] ^= 0xFF


def select(buffer: Bytes, work: ResolvedTileOp, behaviour: Behaviour) -> None:
    """Take the first operand where the mask bit is 1, the second elsewhere; a scalar second is left in tmp."""
    assert work.mask is not None
    dst = work.dst
    bits = mask_bits(buffer, work.mask, dst.valid_rows, dst.valid_cols)
    operands = [valid_codes(buffer, source) for source in work.sources]
    if work.scalars:
        scalar = np.array([[work.scalars[0][0]]], operands[0].dtype)
        operands.append(scalar)
        if behaviour.uses_tmp and work.tmp is not None:
            tile_view(buffer, work.tmp, 1, 1)[...] = scalar
    tile_view(buffer, dst, dst.valid_rows, dst.valid_cols)[...] = np.where(bits, operands[0], operands[1])


def choose(buffer: Bytes, work: ResolvedTileOp) -> None:
    """Write, packed to the left, the numbers of the columns whose elements compare so with the scalar; count them.

    What of a row of the result they do not fill stays.

    Raises:
        TileError: a row has more of them than the result has columns.
    """
    dst, (source,), counts = work.dst, work.sources, work.counts
    assert counts is not None
    fmt = source.format
    wanted = numbers(np.array([work.scalars[0][0]], _dtype(fmt)), fmt)
    found = _COMPARISONS[work.mode or "eq"](numbers(valid_codes(buffer, source), fmt), wanted)
    result = tile_view(buffer, dst, dst.valid_rows, dst.valid_cols)
    for row, chosen in enumerate(found):
        places = np.flatnonzero(chosen) + work.offset
        if places.size > dst.valid_cols:
            raise TileError(
                f"{work.mnemonic}: {places.size} elements of row {row} of %{source.name} compare so, a row of "
                f"%{dst.name} has {dst.valid_cols} valid columns",
                span=work.span,
            )
        result[row, : places.size] = places.astype(result.dtype)
    totals = found.sum(axis=1)
    across = (counts.valid_rows, counts.valid_cols) == (1, len(totals))
    tile_view(buffer, counts, *((1, len(totals)) if across else (len(totals), 1)))[...] = (
        totals[None, :] if across else totals[:, None]
    )


def mask_bits(buffer: Bytes, mask: Tile, rows: int, cols: int) -> NDArray[np.bool_]:
    """Return the bits of a mask as shape (rows, cols)."""
    starts = mask.address + np.arange(rows)[:, None] * mask.row_pitch
    packed = buffer[starts + np.arange((cols + 7) // 8)[None, :]]
    return np.unpackbits(packed, axis=1, bitorder="little")[:, :cols].astype(np.bool_)


def _keeps(behaviour: Behaviour) -> bool:
    return behaviour.choice("spare_mask_bits") == "keep"


def _compared(buffer: Bytes, work: ResolvedTileOp, mode: str, length: int) -> NDArray[np.bool_]:
    fmt = work.sources[0].format
    operands = [numbers(_rows(buffer, source, length, fmt), fmt) for source in work.sources]
    if work.scalars:
        operands.append(numbers(np.array([work.scalars[0][0]], _dtype(fmt)), fmt))
    found: NDArray[np.bool_] = _COMPARISONS[mode](*operands)
    return found


def _rows(buffer: Bytes, tile: Tile, length: int, fmt: Format) -> Codes:
    """Return `length` bytes of each valid row as codes; bytes behind the end of the buffer read as its last one."""
    places = tile.address + np.arange(tile.valid_rows)[:, None] * tile.row_pitch + np.arange(length)[None, :]
    codes: Codes = buffer[np.minimum(places, buffer.size - 1)].view(_dtype(fmt))
    return codes


def _dtype(fmt: Format) -> str:
    return f"<u{(fmt.bits if isinstance(fmt, IntFormat) else fmt.storage_bits) // 8}"


def _write_bits(buffer: Bytes, work: ResolvedTileOp, found: NDArray[np.bool_], written: int, *, keep: bool) -> None:
    """Write the rows one after the other: what is longer than the pitch is overwritten by the next row."""
    dst = work.dst
    packed = np.packbits(found, axis=1, bitorder="little")
    spare = found.shape[1] % 8
    for row, line in enumerate(packed):
        start = dst.address + row * dst.row_pitch
        old = buffer[start : start + written]
        if keep and spare:
            mask = np.uint8((1 << spare) - 1)
            line[-1] = line[-1] & mask | old[-1] & ~mask
        old[...] = line[: old.size]
