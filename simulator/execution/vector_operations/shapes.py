"""Elements of tiles in the buffer, the range that an operation reads, and the vector operand of a broadcast."""

from __future__ import annotations

from functools import cache

import numpy as np
from numpy.lib.stride_tricks import as_strided
from numpy.typing import NDArray

from castsim.execution.outcomes import Judge, tell_change
from castsim.execution.tree import Access, ResolvedTileOp, Tile, strided
from castsim.isa.dataclass import replace
from castsim.isa.errors import TileError
from castsim.isa.formats import Codes, FloatFormat, Format, IntFormat, Overflow, Rounding, format_named
from castsim.isa.pto.vector_operations import VECTOR_OPERATIONS, Kind, VectorOperation
from castsim.numerics.blocks import code_dtype
from castsim.numerics.policy import NanToFloat, Policy, abstract_policy
from castsim.numerics.tiers import convert_codes
from castsim.targets.dataflow import BLOCK_BYTES

BLOCK = BLOCK_BYTES
"""Number of bytes of one row of a row-major broadcast vector (docs/reference/pto.md section 7.4)."""

BUFFER = "ub"
"""Address space of tiles."""


def region(tile: Tile) -> tuple[int, int]:
    """Return the valid rows and columns."""
    return tile.valid_rows, tile.valid_cols


def shape_text(pair: tuple[int, int]) -> str:
    """Return rows and columns in the form of messages."""
    return f"{pair[0]} x {pair[1]}"


def tile_error(work: ResolvedTileOp, text: str, *legal: str) -> TileError:
    """Return (do not raise) the error about an operation's tiles."""
    return TileError(f"{work.mnemonic}: {text}", span=work.span, legal=legal)


def row_bytes(tile: Tile, rows: int, length: int, *, write: bool) -> Access:
    """Return the first `length` bytes of the first rows of a row-major tile."""
    if not rows or not length:
        return Access(BUFFER, tile.address, tile.address, write)
    return strided(BUFFER, tile.address, ((rows, tile.row_pitch),), length, write=write)


def is_column(tile: Tile) -> bool:
    """Return whether a tile is column-major."""
    return tile.type.block_layout == "col_major"


def moves_columns(work: ResolvedTileOp) -> bool:
    """Return whether an operation copies a column-major tile, or a scalar, to a column-major one."""
    kind = VECTOR_OPERATIONS[work.mnemonic].kind
    return kind in (Kind.MOVE, Kind.BROADCAST) and all(map(is_column, (work.dst, *work.sources)))


def expands_column(work: ResolvedTileOp) -> bool:
    """Return whether an operation spreads the elements of a dense column over rows."""
    if VECTOR_OPERATIONS[work.mnemonic].kind is not Kind.ROW_EXPAND:
        return False
    (source,) = work.sources
    return is_column(source) and source.cols == 1


def as_rows(work: ResolvedTileOp) -> ResolvedTileOp:
    """Return the same operation on the same bytes, with its tiles read as row-major ones.

    A copy of column-major tiles equals one of row-major tiles with rows and columns exchanged (docs/reference/pto.md
    section 7.2). The source of a row expansion that is one dense column consists of adjacent rows of one element. No
    other operation accepts them where this could matter.
    """
    if expands_column(work):
        (source,) = work.sources
        row = replace(source.type, cols=1, valid_cols=1, block_layout="row_major")
        return replace(work, sources=(replace(source, type=row),))
    if not moves_columns(work):
        return work
    return replace(work, dst=_exchanged(work.dst), sources=tuple(map(_exchanged, work.sources)))


def _exchanged(tile: Tile) -> Tile:
    kind = tile.type
    exchanged = replace(
        kind,
        rows=kind.cols,
        cols=kind.rows,
        valid_rows=kind.valid_cols,
        valid_cols=kind.valid_rows,
        block_layout="row_major",
    )
    return replace(tile, type=exchanged, valid_rows=tile.valid_cols, valid_cols=tile.valid_rows)


def vector_operand(work: ResolvedTileOp) -> int:
    """Return which of the two sources of a row or column broadcast is the vector: 0 or 1.

    For a row broadcast it is the column-major one, else the one whose valid region differs from the destination's; if
    both qualify, the second.
    """
    if VECTOR_OPERATIONS[work.mnemonic].kind is not Kind.ROW_BROADCAST:
        return 1
    first, second = work.sources
    if is_column(first) != is_column(second):
        return 0 if is_column(first) else 1
    return 0 if region(second) == region(work.dst) != region(first) else 1


def widens(work: ResolvedTileOp, operation: VectorOperation) -> bool:
    """Return whether an operation reads f16 elements and writes f32 ones."""
    return operation.may_widen and (work.sources[0].format.name, work.dst.format.name) == ("f16", "f32")


def compared_bytes(work: ResolvedTileOp, unit: int | None) -> tuple[int, int]:
    """Return the bytes of each row that a comparison reads and writes in units of `unit` bytes."""
    source = work.sources[0]
    elements = source.valid_cols
    if unit is not None:
        elements = whole_units(elements, source.element_bits, unit)
    return elements * source.element_bits // 8, (elements + 7) // 8


def whole_units(columns: int, element_bits: int, unit: int) -> int:
    """Return the columns of the whole units of bytes that contain `columns`."""
    per_unit = unit * 8 // element_bits
    return -(-columns // per_unit) * per_unit


def moved_columns(work: ResolvedTileOp, unit: int | None) -> int:
    """Return the columns of each row that a move copies in units of `unit` bytes."""
    (source,) = work.sources
    cols = min(source.valid_cols, work.dst.valid_cols)
    return cols if unit is None else whole_units(cols, source.element_bits, unit)


def padded_rows(work: ResolvedTileOp) -> int:
    """Return the rows of the destination that a fill writes, from the first on."""
    return max(work.sources[0].valid_rows, work.dst.valid_rows)


def block_end(length: int, unit: int) -> int:
    """Return the bytes of the whole units that contain `length` bytes."""
    return -(-length // unit) * unit


def transposes_by_blocks(work: ResolvedTileOp) -> bool:
    """Whether a transposition can go through tmp in blocks of 16 rows, 32 of bytes (docs/reference/pto.md section 7.7).

    Otherwise the scalar unit moves its elements one by one.
    """
    (source,) = work.sources
    rows = 32 if source.element_bits == 8 else 16
    return work.dst.cols % rows == 0 and source.row_pitch // BLOCK <= MOST_BLOCKS


MOST_BLOCKS = 255
"""Maximum number of blocks of a source row that a transposition in blocks can step over."""


# Elements of tiles in the buffer, and the numbers that their codes stand for.

Bytes = NDArray[np.uint8]
Numbers = Codes

DOUBLE = format_named("f64")
"""Format for computing with 16-bit floats: wide enough that a second rounding of its result changes nothing.

A sum, product, quotient or root of numbers of p bits rounded to 2p + 2 bits or more and then to p bits equals the
result rounded once; subnormal results of 16-bit formats are exact multiples of what a double holds.
"""


def tile_view(buffer: Bytes, tile: Tile, rows: int, cols: int) -> Codes:
    """Return a writable view of the first rows and columns of a tile as codes."""
    size = tile.element_bits // 8
    down, across = (size, tile.rows * size) if is_column(tile) else (tile.row_pitch, size)
    if not rows or not cols:
        return np.empty((rows, cols), code_dtype(tile.format))
    first = buffer[tile.address : tile.address + size].view(f"<u{size}")
    return as_strided(first, (rows, cols), (down, across), writeable=True)


def valid_codes(buffer: Bytes, tile: Tile) -> Codes:
    """Return a copy of the codes of a tile's valid region."""
    return tile_view(buffer, tile, tile.valid_rows, tile.valid_cols).copy()


def numbers(codes: Codes, fmt: Format) -> Numbers:
    """Return the values of codes: integers of their own width, f32 as float32, 16-bit floats as float64.

    Raises:
        TypeError: nothing is computed in the format.
    """
    plain = np.ascontiguousarray(codes)
    if isinstance(fmt, IntFormat):
        return plain.view(f"<{'i' if fmt.signed else 'u'}{fmt.bits // 8}")
    if isinstance(fmt, FloatFormat) and fmt.fraction_bits == 23:
        return plain.view("<f4")
    if isinstance(fmt, FloatFormat) and fmt.bits == 16:
        widened = convert_codes(plain, fmt, DOUBLE, abstract_policy(fmt, DOUBLE))
        return widened.view("<f8")
    raise TypeError(f"nothing is computed in {fmt.name}")


def encoded(values: Numbers, fmt: Format, *, saturates: bool = False) -> Codes:
    """Return the codes of computed numbers, rounded to nearest, ties to even; every NaN is the canonical one.

    `saturates` clamps overflow and infinity to the largest finite number and turns NaN into 0.
    """
    if isinstance(fmt, IntFormat):
        return np.ascontiguousarray(values).view(f"<u{fmt.bits // 8}")
    assert isinstance(fmt, FloatFormat) and fmt.nan_code is not None
    if values.dtype.itemsize * 8 == fmt.bits:
        codes: Codes = np.ascontiguousarray(values).view(f"<u{fmt.bits // 8}").copy()
        codes[np.isnan(values)] = fmt.nan_code
        return codes
    wide = np.ascontiguousarray(values, "<f8").view("<u8")
    result = convert_codes(wide, DOUBLE, fmt, _result_policy(fmt, saturates=saturates))
    if saturates:
        tell_change(Judge(DOUBLE, fmt, Rounding.RINT), wide, result, converts=False)
    return result


@cache
def _result_policy(fmt: FloatFormat, *, saturates: bool) -> Policy:
    plain = abstract_policy(DOUBLE, fmt)
    if saturates:
        return Policy(plain.rounding, Overflow.SATURATE, nan_to_float=NanToFloat.ZERO)
    return Policy(plain.rounding, Overflow.SPECIAL, nan_to_float=NanToFloat.FIXED, nan_code=fmt.nan_code)
