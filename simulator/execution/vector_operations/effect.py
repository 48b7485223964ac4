"""The effect of a vector operation on the bytes of the buffer; comparisons and selections."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

import numpy as np
from numpy.typing import NDArray

from castsim.execution.outcomes import Judge, tell_change
from castsim.execution.tree import ResolvedTileOp, Tile
from castsim.execution.vector_operations.arithmetic import (
    apply,
    constant_codes,
    places_of_extremes,
    reduce_columns,
    reduce_columns_by_pairs,
    reduce_rows,
)
from castsim.execution.vector_operations.quantising import QUANTISING, quantise_tiles
from castsim.execution.vector_operations.rearranging import REARRANGING, fill, merge_lists, move, rearrange, sort_groups
from castsim.execution.vector_operations.shapes import (
    BLOCK,
    Bytes,
    compared_bytes,
    is_column,
    numbers,
    region,
    tile_error,
    tile_view,
    valid_codes,
    vector_operand,
    widens,
)
from castsim.execution.vector_operations.target_rules import Behaviour, float_route
from castsim.isa.dataclass import dataclass, replace
from castsim.isa.formats import Codes, Format, IntFormat, Overflow, Rounding, format_named
from castsim.isa.pto.vector_operations import VECTOR_OPERATIONS, Kind
from castsim.numerics.policy import NanToInteger, Policy, abstract_policy
from castsim.numerics.tiers import convert_codes

# Comparisons, which write one bit per element, and selections, which read them (docs/reference/pto.md section 7.3).

UNORDERED = "unordered"
"""A comparison that no text can name: whether either side is NaN."""

COMPARISONS: dict[str, Callable[..., NDArray[np.bool_]]] = {
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

    NaN compares false, and unequal true unless option `unequal_of_nan` overrides it.
    """
    facts = behaviour.facts
    fmt = work.sources[0].format
    only_equality = fmt.name in facts.equality_only
    mode = "eq" if only_equality else work.mode or "eq"
    inverted = facts.inverts_whole_mask and mode == "ne"
    read, written = compared_bytes(work, facts.compare_bytes)
    matches = _compared(buffer, work, "eq" if inverted else mode, read)
    if inverted and not isinstance(fmt, IntFormat) and behaviour.choice("unequal_of_nan") == 0:
        matches |= _compared(buffer, work, UNORDERED, read)
    _write_bits(buffer, work, matches, written, keep=facts.compare_bytes is None and _keeps(behaviour))
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


def choose(buffer: Bytes, work: ResolvedTileOp, _: Behaviour) -> None:
    """Write the indices of the columns whose elements satisfy a comparison with the scalar, packed to the left, and
    their count.

    Elements of the result row beyond them are unchanged.

    Raises:
        TileError: a row has more matches than the result has columns.
    """
    dst, (source,), counts = work.dst, work.sources, work.counts
    assert counts is not None
    fmt = source.format
    wanted = numbers(np.array([work.scalars[0][0]], _dtype(fmt)), fmt)
    matches = COMPARISONS[work.mode or "eq"](numbers(valid_codes(buffer, source), fmt), wanted)
    result = tile_view(buffer, dst, dst.valid_rows, dst.valid_cols)
    for row, chosen in enumerate(matches):
        places = np.flatnonzero(chosen) + work.offset
        if places.size > dst.valid_cols:
            raise tile_error(
                work,
                f"{places.size} elements of row {row} of %{source.name} match, but a row "
                f"of %{dst.name} has {dst.valid_cols} valid columns",
            )
        result[row, : places.size] = places.astype(result.dtype)
    totals = matches.sum(axis=1)
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
    matches: NDArray[np.bool_] = COMPARISONS[mode](*operands)
    return matches


def _rows(buffer: Bytes, tile: Tile, length: int, fmt: Format) -> Codes:
    """Return `length` bytes of each valid row as codes; bytes beyond the buffer read as its last one."""
    places = tile.address + np.arange(tile.valid_rows)[:, None] * tile.row_pitch + np.arange(length)[None, :]
    codes: Codes = buffer[np.minimum(places, buffer.size - 1)].view(_dtype(fmt))
    return codes


def _dtype(fmt: Format) -> str:
    return f"<u{(fmt.bits if isinstance(fmt, IntFormat) else fmt.storage_bits) // 8}"


def _write_bits(buffer: Bytes, work: ResolvedTileOp, matches: NDArray[np.bool_], written: int, *, keep: bool) -> None:
    """Write the rows in sequence: the next row overwrites bytes beyond the pitch."""
    dst = work.dst
    packed = np.packbits(matches, axis=1, bitorder="little")
    spare = matches.shape[1] % 8
    for row, line in enumerate(packed):
        start = dst.address + row * dst.row_pitch
        old = buffer[start : start + written]
        if keep and spare:
            mask = np.uint8((1 << spare) - 1)
            line[-1] = line[-1] & mask | old[-1] & ~mask
        old[...] = line[: old.size]


@dataclass(frozen=True, slots=True)
class TileEffect:
    """The action of one vector operation as a whole, for all operations that it is lowered to.

    The value path always runs it whole and skips those operations, which carry time and byte streams only. What a
    kernel leaves in its tmp tile is modelled if the text or the library states it: a block of ones (`trsqrt`), the
    scalar (`tsels`), the pair sums (`tcolsum`); elsewhere tmp keeps its bytes.
    """

    work: ResolvedTileOp
    behaviour: Behaviour

    def moved(self, deltas: Sequence[int]) -> TileEffect:
        """Return the effect on moved tiles; `deltas` belong to the accesses of `work_accesses`, in bytes."""
        if not any(deltas):
            return self
        work, remaining = self.work, iter(deltas)

        def shifted(tile: Tile) -> Tile:
            return replace(tile, address=tile.address + next(remaining))

        dst = shifted(work.dst)
        sources = tuple(shifted(source) for source in work.sources)
        tmp = mask = counts = None
        if work.tmp is not None:
            tmp = shifted(work.tmp)
            next(remaining)  # tmp is read and written: two accesses that move together
        if work.mask is not None:
            mask = shifted(work.mask)
        if work.counts is not None:
            counts = shifted(work.counts)
        further = tuple(shifted(tile) for tile in work.further)
        moved = replace(work, dst=dst, sources=sources, tmp=tmp, mask=mask, counts=counts, further=further)
        return replace(self, work=moved)

    def apply(self, buffer: Bytes) -> None:
        """Run the operation on the unified buffer; every source is read before anything is written."""
        act = _ACTIONS.get(VECTOR_OPERATIONS[self.work.mnemonic].kind, _per_element)
        act(buffer, self.work, self.behaviour)


def _per_element(buffer: Bytes, work: ResolvedTileOp, behaviour: Behaviour) -> None:
    operation = VECTOR_OPERATIONS[work.mnemonic]
    if float_route(work, behaviour.facts) is not None:
        result = _routed_quotient(buffer, work, behaviour)
    else:
        operands = _operands(buffer, work, operation.kind)
        if widens(work, operation):
            operands = [_widened(codes, work.sources[0].format, work.dst.format) for codes in operands]
        if operation.accumulates:
            operands.append(valid_codes(buffer, work.dst))
        if _divides_by_reciprocal(work, behaviour):
            reciprocal = apply("recip", operands[1:], work.dst.format, behaviour)
            result = apply("mul", (operands[0], reciprocal), work.dst.format, behaviour)
        else:
            result = apply(operation.function, operands, work.dst.format, behaviour)
    if operation.function == "rsqrt" and behaviour.uses_tmp and work.tmp is not None:
        ones = constant_codes(1, work.dst.format)
        count = BLOCK // ones.itemsize
        buffer[work.tmp.address : work.tmp.address + BLOCK] = np.repeat(ones, count).view(np.uint8)
    tile_view(buffer, work.dst, work.dst.valid_rows, work.dst.valid_cols)[...] = result


def _widened(codes: Codes, narrow: Format, wide: Format) -> Codes:
    return convert_codes(np.ascontiguousarray(codes), narrow, wide, abstract_policy(narrow, wide))


def _in_part(buffer: Bytes, work: ResolvedTileOp, behaviour: Behaviour) -> None:
    """Apply the function where both operands are valid; elsewhere keep the valid one, and uncovered elements."""
    rows, cols = (min(extents) for extents in zip(*map(region, work.sources), strict=True))
    both = [valid_codes(buffer, source)[:rows, :cols] for source in work.sources]
    function, fmt = VECTOR_OPERATIONS[work.mnemonic].function, work.dst.format
    _join(buffer, work.dst, work.sources, apply(function, both, fmt, behaviour) if rows and cols else both[0])


def _join(buffer: Bytes, dst: Tile, parts: Sequence[Tile], common: Codes) -> None:
    """Write the parts to a tile, and the given values where both are valid."""
    view = tile_view(buffer, dst, dst.valid_rows, dst.valid_cols)
    result = view.copy()
    for part in parts:
        result[: part.valid_rows, : part.valid_cols] = valid_codes(buffer, part)
    result[: common.shape[0], : common.shape[1]] = common
    view[...] = result


def _better_in_part(buffer: Bytes, work: ResolvedTileOp, _: Behaviour) -> None:
    """Write the better operand and its index, the second's if equal; elsewhere the valid one."""
    first, second, *numbered = work.sources
    rows, cols = (min(extents) for extents in zip(region(first), region(second), strict=True))
    a, b = (numbers(valid_codes(buffer, source)[:rows, :cols], source.format) for source in (first, second))
    better = a < b if VECTOR_OPERATIONS[work.mnemonic].function == "min" else a > b
    for tile, parts in ((work.dst, (first, second)), (work.further[0], numbered)):
        _join(buffer, tile, parts, np.where(better, *(valid_codes(buffer, part)[:rows, :cols] for part in parts)))


_DEQUANTISED_BY = np.float32(2.0**-17)
"""Factor by which a sum of integers is reduced before scaling, and increased after it, all in f32."""


def _narrowed(buffer: Bytes, work: ResolvedTileOp, behaviour: Behaviour) -> None:
    """Compute in the sources' format, then convert to the narrower one: to nearest even, clamped, NaN to integer 0."""
    operation, fmt = VECTOR_OPERATIONS[work.mnemonic], work.sources[0].format
    operands = [valid_codes(buffer, source) for source in work.sources]
    if work.scalars:
        total = numbers(apply("add", operands, fmt, behaviour), fmt).astype(np.float32)
        scale = np.array([work.scalars[0][0]], "<u4").view("<f4")
        with np.errstate(all="ignore"):
            scaled = total * _DEQUANTISED_BY * scale / _DEQUANTISED_BY
        fmt = format_named("f32")
        codes = apply("relu", (scaled.view("<u4"),), fmt, behaviour)
    else:
        codes = apply(operation.function, operands, fmt, behaviour)
    policy = Policy(Rounding.RINT, Overflow.SATURATE)
    result = convert_codes(np.ascontiguousarray(codes), fmt, work.dst.format, policy)
    tell_change(Judge(fmt, work.dst.format, policy.rounding, wraps=False), codes, result)
    tile_view(buffer, work.dst, work.dst.valid_rows, work.dst.valid_cols)[...] = result


def _paired(buffer: Bytes, work: ResolvedTileOp, behaviour: Behaviour) -> None:
    codes, dst = valid_codes(buffer, work.sources[0]), work.dst
    pairs = apply(VECTOR_OPERATIONS[work.mnemonic].function, (codes[:, ::2], codes[:, 1::2]), dst.format, behaviour)
    tile_view(buffer, dst, dst.valid_rows, dst.valid_cols)[...] = pairs


def _operands(buffer: Bytes, work: ResolvedTileOp, kind: Kind) -> list[Codes]:
    """Return the operands in the order of the text, in shapes that broadcast to the destination's valid region."""
    tiles = [valid_codes(buffer, source) for source in work.sources]
    scalars = [np.array([[code]], f"<u{fmt.storage_bits // 8}") for code, fmt in work.scalars]
    if kind is Kind.ROW_EXPAND:
        tiles = [tiles[0][:, :1]]
    elif kind in (Kind.COLUMN_EXPAND, Kind.COLUMN_BROADCAST):
        tiles[-1] = tiles[-1][:1]
    elif kind is Kind.ROW_BROADCAST:
        index = vector_operand(work)
        tiles[index] = _per_row(tiles[index], work.sources[index], work.dst.valid_cols)
    return [*scalars, *tiles] if work.scalar_first else [*tiles, *scalars]


def _per_row(vector: Codes, tile: Tile, columns: int) -> Codes:
    """Return the partner of each element of a row: a single element, or the elements of one block repeatedly."""
    return vector if is_column(tile) else vector[:, np.arange(columns) % vector.shape[1]]


def _divides_by_reciprocal(work: ResolvedTileOp, behaviour: Behaviour) -> bool:
    """Return whether a division by a scalar multiplies by the rounded reciprocal instead."""
    return (
        VECTOR_OPERATIONS[work.mnemonic].divides_by_scalar
        and not work.scalar_first
        and work.dst.format.name in behaviour.facts.in_place_reciprocal
        and work.dst.address == work.sources[0].address
    )


def _routed_quotient(buffer: Bytes, work: ResolvedTileOp, behaviour: Behaviour) -> Codes:
    """Divide integers in a float format; the source tile is left holding its elements in that format."""
    (source,) = work.sources
    name = float_route(work, behaviour.facts)
    assert name is not None
    fmt, integer = format_named(name), work.dst.format
    operands = [_converted(codes, integer, fmt) for codes in _operands(buffer, work, Kind.ELEMENTWISE)]
    tile_view(buffer, source, source.valid_rows, source.valid_cols)[...] = operands[1 if work.scalar_first else 0]
    quotient = apply("div", operands, fmt, behaviour)
    wraps = behaviour.choice("integer_saturation_off_at_start") == 1
    policy = Policy(
        Rounding.TRUNC,
        Overflow.WRAP if wraps else Overflow.SATURATE,
        nan_to_integer=NanToInteger(str(behaviour.choice("nan_to_integer"))),
    )
    codes = convert_codes(quotient, fmt, integer, policy)
    tell_change(Judge(fmt, integer, Rounding.TRUNC, wraps), quotient, codes, converts=False)
    return codes


def _converted(codes: Codes, integer: Format, fmt: Format) -> Codes:
    assert isinstance(integer, IntFormat)
    policy = abstract_policy(integer, fmt)
    result = convert_codes(np.ascontiguousarray(codes), integer, fmt, policy)
    tell_change(Judge(integer, fmt, policy.rounding), codes, result)
    return result


def _reduce(buffer: Bytes, work: ResolvedTileOp, behaviour: Behaviour) -> None:
    operation = VECTOR_OPERATIONS[work.mnemonic]
    codes, fmt, dst = valid_codes(buffer, work.sources[0]), work.dst.format, work.dst
    if operation.kind is Kind.ROW_REDUCE:
        tile_view(buffer, dst, dst.valid_rows, 1)[:, 0] = reduce_rows(operation.function, codes, fmt, behaviour)
        return
    if work.binary and work.tmp is not None:
        scratch = tile_view(buffer, work.tmp, (len(codes) + 1) // 2, codes.shape[1])
        result = reduce_columns_by_pairs(operation.function, codes, fmt, behaviour, scratch)
    else:
        result = reduce_columns(operation.function, codes, fmt, behaviour)
    tile_view(buffer, dst, 1, codes.shape[1])[0] = result


def _locate(buffer: Bytes, work: ResolvedTileOp, behaviour: Behaviour) -> None:
    """Write the number of the column, or row, of the first extreme element of every row, or column."""
    operation, dst, (source,) = VECTOR_OPERATIONS[work.mnemonic], work.dst, work.sources
    codes = valid_codes(buffer, source)
    by_rows = operation.kind is Kind.ROW_ARGUMENT
    places = places_of_extremes(operation.function, codes if by_rows else codes.T, source.format, behaviour)
    shape = (len(places), 1) if by_rows else (1, len(places))
    tile_view(buffer, dst, *shape)[...] = places.reshape(shape)


_ACTIONS: Mapping[Kind, Callable[[Bytes, ResolvedTileOp, Behaviour], None]] = {
    Kind.MOVE: move,
    Kind.FILL: fill,
    Kind.COMPARE: compare,
    **dict.fromkeys((Kind.ROW_REDUCE, Kind.COLUMN_REDUCE), _reduce),
    **dict.fromkeys((Kind.ROW_ARGUMENT, Kind.COLUMN_ARGUMENT), _locate),
    Kind.SELECT: select,
    Kind.PART: _in_part,
    Kind.PART_ARGUMENT: _better_in_part,
    Kind.NARROW: _narrowed,
    Kind.PAIR_REDUCE: _paired,
    Kind.COMPARE_GATHER: choose,
    Kind.SORT: sort_groups,
    Kind.MERGE: merge_lists,
    **dict.fromkeys(REARRANGING, rearrange),
    **dict.fromkeys(QUANTISING, quantise_tiles),
}
"""The actions of each kind of operation on the buffer; all others apply a function per element."""
