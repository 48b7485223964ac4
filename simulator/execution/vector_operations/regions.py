"""The shapes and valid regions that operands of a vector operation must have (docs/reference/pto.md section 7)."""

from __future__ import annotations

from collections.abc import Callable, Mapping

from castsim.execution.tree import ResolvedTileOp, Tile
from castsim.execution.vector_operations.quantising import FLAT_NV, FORMS, check_block_quantisation
from castsim.execution.vector_operations.rearranging import GROUP, block_elements, gathered_elements, pairs_of
from castsim.execution.vector_operations.shapes import BLOCK, is_column, region, shape_text, tile_error, vector_operand
from castsim.isa.dataclass import replace
from castsim.isa.errors import TileError
from castsim.isa.formats import IntFormat
from castsim.isa.pto.vector_operations import PAIR_BYTES, VECTOR_OPERATIONS, Kind, VectorOperation
from castsim.targets.dataflow import DataflowTarget


def check_regions(target: DataflowTarget, work: ResolvedTileOp, operation: VectorOperation) -> None:
    """Reject shapes and valid regions that do not fit together.

    Raises:
        TileError: regions do not fit; the message names both tiles and their extents.
    """
    check = _CHECKS.get(operation.kind)
    if check is not None:
        check(target, work, operation)


def over_destination(target: DataflowTarget, work: ResolvedTileOp) -> tuple[ResolvedTileOp, tuple[str, ...]]:
    """Return an operation as the library's release code runs it: over the valid region of the destination.

    This holds for operations whose valid regions only debug builds of the library compare, and where run-time extents
    keep the assembler from comparing them. A warning reports each source with another region; a smaller one keeps its
    own.
    """
    operation = VECTOR_OPERATIONS.get(work.mnemonic)
    if operation is None or operation.kind not in _OVER_DESTINATION or 0 in region(work.dst):
        return work, ()
    facts = target.tile_arithmetic
    if work.mnemonic in facts.columns_only:
        return work, ()
    checked = work.mnemonic not in facts.debug_regions
    sources, dst = list(work.sources), work.dst
    whole = operation.kind is Kind.PART and any(
        source.valid_rows >= dst.valid_rows and source.valid_cols >= dst.valid_cols for source in sources
    )
    for number, source in enumerate(sources):
        wanted = _region_over(operation.kind, number == len(sources) - 1, source, dst, whole=whole)
        fits = wanted[0] <= source.rows and wanted[1] <= source.cols
        dynamic = any(None in (tile.type.valid_rows, tile.type.valid_cols) for tile in (source, dst))
        if wanted != region(source) and fits and 0 not in region(source) and (dynamic or not checked):
            sources[number] = replace(source, valid_rows=wanted[0], valid_cols=wanted[1])
    warnings = tuple(
        f"pto.{work.mnemonic}: valid region of %{given.name} is {shape_text(region(given))}, of %{dst.name} "
        f"{shape_text(region(dst))}: {shape_text(region(taken))} elements of %{given.name} are read, valid or not; the "
        f"library refuses that in debug builds only"
        for given, taken in zip(work.sources, sources, strict=True)
        if given is not taken
    )
    return (replace(work, sources=tuple(sources)) if warnings else work), warnings


def _as_library(target: DataflowTarget) -> bool:
    """Return whether operands are judged by the library alone, as of kernels in C++."""
    return target.option("library_types") == "accept"


def _region_over(kind: Kind, last: bool, source: Tile, dst: Tile, *, whole: bool) -> tuple[int, int]:
    """Return a source's region for the whole destination; `whole`: another part covers that."""
    if kind is Kind.PART and whole:
        return min(source.valid_rows, dst.valid_rows), min(source.valid_cols, dst.valid_cols)
    if last and kind in (Kind.COLUMN_EXPAND, Kind.COLUMN_BROADCAST):
        return source.valid_rows, dst.valid_cols
    return region(dst)


_OVER_DESTINATION = (Kind.ELEMENTWISE, Kind.NARROW, Kind.COLUMN_EXPAND, Kind.COLUMN_BROADCAST, Kind.PART)


def _refusal(work: ResolvedTileOp, what: str, first: Tile, ours: object, second: Tile, theirs: object) -> TileError:
    return tile_error(work, f"{what} of %{first.name} is {ours}, of %{second.name} {theirs}")


def _other_region(work: ResolvedTileOp, first: Tile, second: Tile) -> TileError:
    return _refusal(work, "valid region", first, shape_text(region(first)), second, shape_text(region(second)))


def _same_region(work: ResolvedTileOp, tile: Tile) -> None:
    if region(tile) != region(work.dst):
        raise _other_region(work, tile, work.dst)


def _same_shape(work: ResolvedTileOp, tile: Tile) -> None:
    ours, theirs = (tile.rows, tile.cols), (work.dst.rows, work.dst.cols)
    if ours != theirs:
        raise _refusal(work, "shape", tile, shape_text(ours), work.dst, shape_text(theirs))


def _rows(work: ResolvedTileOp, tile: Tile) -> None:
    if tile.valid_rows != work.dst.valid_rows:
        raise _refusal(work, "number of valid rows", tile, tile.valid_rows, work.dst, work.dst.valid_rows)


def _columns(work: ResolvedTileOp, tile: Tile) -> None:
    if tile.valid_cols != work.dst.valid_cols:
        raise _refusal(work, "number of valid columns", tile, tile.valid_cols, work.dst, work.dst.valid_cols)


def _not_empty(work: ResolvedTileOp) -> None:
    """Refuse a source without elements for a destination that has some."""
    if 0 in region(work.sources[0]) and 0 not in region(work.dst):
        raise tile_error(work, f"%{work.sources[0].name} has no valid elements")


def _check_fill(_target: DataflowTarget, work: ResolvedTileOp, operation: VectorOperation) -> None:
    (source,), dst = work.sources, work.dst
    if dst.type.pad == 0:
        raise tile_error(work, f"tile %{dst.name} does not declare a pad value", "pad=1", "2", "3")
    if dst.element_bits > 32:
        raise tile_error(work, f"elements of {dst.element_bits // 8} bytes have no pad value")
    if operation.enlarges:
        if source.rows > dst.rows or source.cols > dst.cols:
            shapes = shape_text((source.rows, source.cols)), shape_text((dst.rows, dst.cols))
            raise _refusal(work, "shape", source, shapes[0], dst, f"smaller: {shapes[1]}")
    else:
        _same_shape(work, source)
    if operation.in_place and source.address != dst.address:
        raise tile_error(
            work,
            f"%{source.name} (byte {source.address}) and %{dst.name} (byte {dst.address}) must be at the same address",
        )


def _check_elementwise(target: DataflowTarget, work: ResolvedTileOp, _operation: VectorOperation) -> None:
    for source in work.sources:
        if work.mnemonic in target.tile_arithmetic.columns_only:
            _columns(work, source)
            if source.rows < work.dst.valid_rows:
                raise _refusal(work, "number of rows", source, source.rows, work.dst, f"{work.dst.valid_rows} valid")
        else:
            _same_region(work, source)


def _check_selection(target: DataflowTarget, work: ResolvedTileOp, operation: VectorOperation) -> None:
    _check_elementwise(target, work, operation)
    mask = work.mask
    assert mask is not None
    if not isinstance(mask.format, IntFormat):
        raise tile_error(work, f"mask %{mask.name} holds {mask.format.name}, not bits")
    _holds_bits(work, mask, work.dst)
    if mask.rows < work.dst.valid_rows:
        raise _refusal(work, "number of rows", mask, mask.rows, work.dst, f"{work.dst.valid_rows} valid")


def _holds_bits(work: ResolvedTileOp, bits: Tile, elements: Tile) -> None:
    need = (elements.valid_cols + 7) // 8
    if bits.row_pitch < need:
        raise tile_error(work, f"a row of %{bits.name} has {bits.row_pitch} bytes, {elements.valid_cols} bits {need}")


def _check_compare(target: DataflowTarget, work: ResolvedTileOp, _operation: VectorOperation) -> None:
    first = work.sources[0]
    for other in work.sources[1:]:
        if region(other) != region(first):
            raise _other_region(work, other, first)
    if target.tile_arithmetic.mask_has_source_shape and not _as_library(target):
        _same_region(work, first)
        _same_shape(work, first)
    _rows(work, first)
    _holds_bits(work, work.dst, first)


def _check_row_reduction(_target: DataflowTarget, work: ResolvedTileOp, _operation: VectorOperation) -> None:
    dst = work.dst
    _rows(work, work.sources[0])
    if dst.valid_cols != 1 or (is_column(dst) and dst.cols != 1):
        raise tile_error(
            work,
            f"%{dst.name} must have one valid column, not {dst.valid_cols} of {dst.cols}",
            f"{dst.rows}x1 column-major",
            f"{dst.rows}x{dst.cols} row-major with valid={dst.valid_rows}x1",
        )
    _not_empty(work)


def _check_row_broadcast(_target: DataflowTarget, work: ResolvedTileOp, _operation: VectorOperation) -> None:
    index = vector_operand(work)
    full, vector = work.sources[1 - index], work.sources[index]
    _same_region(work, full)
    _rows(work, vector)
    per_block = BLOCK * 8 // vector.element_bits
    if is_column(vector):
        if (vector.cols, vector.valid_cols) != (1, 1):
            raise tile_error(work, f"column-major %{vector.name} must have one column, not {vector.cols}")
    elif (vector.cols, vector.valid_cols) != (per_block, per_block):
        raise tile_error(
            work,
            f"row-major %{vector.name} must have rows of one full block, {per_block} elements of "
            f"{vector.format.name}; it has {vector.valid_cols} valid of {vector.cols}",
            f"{vector.rows}x{per_block} row-major",
            f"{vector.rows}x1 column-major",
        )


def _check_move(target: DataflowTarget, work: ResolvedTileOp, _operation: VectorOperation) -> None:
    if target.tile_arithmetic.move_needs_one_shape and not work.part:
        _same_shape(work, work.sources[0])


def _check_row_expansion(_target: DataflowTarget, work: ResolvedTileOp, _operation: VectorOperation) -> None:
    _rows(work, work.sources[0])
    _not_empty(work)


def _check_column_reduction(_target: DataflowTarget, work: ResolvedTileOp, _operation: VectorOperation) -> None:
    _columns(work, work.sources[0])
    _not_empty(work)
    _check_pair_scratch(work)


def _check_pair_scratch(work: ResolvedTileOp) -> None:
    source, tmp = work.sources[0], work.tmp
    if not work.binary or tmp is None:
        return
    if tmp.format != source.format or tmp.cols < source.valid_cols or tmp.rows < (source.valid_rows + 1) // 2:
        raise tile_error(
            work,
            f"tmp %{tmp.name} must hold {(source.valid_rows + 1) // 2} rows of {source.valid_cols} "
            f"{source.format.name}, it has {tmp.rows} x {tmp.cols} {tmp.format.name}",
        )


def _check_columns_broadcast(_target: DataflowTarget, work: ResolvedTileOp, operation: VectorOperation) -> None:
    for source in work.sources:
        _columns(work, source)
    vector = work.sources[-1]
    if not vector.valid_rows and work.dst.valid_rows:
        raise tile_error(work, f"%{vector.name} has no valid row")
    if operation.kind is Kind.COLUMN_BROADCAST:
        _same_region(work, work.sources[0])
        _same_shape(work, work.sources[0])


def _check_ramp(_target: DataflowTarget, work: ResolvedTileOp, _operation: VectorOperation) -> None:
    dst = work.dst
    if dst.rows != 1 or dst.cols == 1:
        raise tile_error(
            work,
            f"%{dst.name} must have one row of more than one element, not {shape_text((dst.rows, dst.cols))}",
            f"1x{max(2, dst.cols)}",
        )


def _check_gather(target: DataflowTarget, work: ResolvedTileOp, _operation: VectorOperation) -> None:
    (source, places), dst = work.sources, work.dst
    for tile in (dst, places):
        if tile.type.valid_cols not in (None, tile.cols):
            raise tile_error(work, f"all columns of %{tile.name} must be valid, {tile.valid_cols} of {tile.cols} are")
    if places.valid_rows < dst.valid_rows or places.valid_cols < dst.valid_cols:
        raise _other_region(work, places, dst)
    tmp = work.tmp
    if not target.tile_arithmetic.gather_scales_in_tmp:
        return
    if tmp is None:
        raise TileError(
            f"{work.mnemonic} on {target.name} needs a tmp tile of the type and valid region of %{places.name}",
            span=work.span,
            legal=(f"ins(%{source.name}, %{places.name}, %tmp)",),
        )
    if (tmp.format, region(tmp)) != (places.format, region(places)):
        raise TileError(
            f"{work.mnemonic} needs a tmp tile of the type and valid region of %{places.name}: "
            f"{shape_text(region(places))} {places.format.name}",
            span=work.span,
        )


def _check_pattern(_target: DataflowTarget, work: ResolvedTileOp, _operation: VectorOperation) -> None:
    assert work.pattern is not None
    (source,), dst = work.sources, work.dst
    times = 4 // work.pattern.count("1")
    wanted = (dst.valid_rows * times, dst.valid_cols) if work.by_columns else (dst.valid_rows, dst.valid_cols * times)
    if region(source) != wanted:
        raise TileError(
            f"{work.mnemonic} by P{work.pattern}: valid region of %{source.name} is {shape_text(region(source))}, "
            f"%{dst.name} with {shape_text(region(dst))} takes {shape_text(wanted)}",
            span=work.span,
        )


def _check_comparison(target: DataflowTarget, work: ResolvedTileOp, _operation: VectorOperation) -> None:
    (source,), counts = work.sources, work.counts
    assert counts is not None
    _rows(work, source)
    if counts.valid_rows != source.valid_rows and region(counts) != (1, source.valid_rows):
        raise _other_region(work, counts, source)
    if target.tile_arithmetic.gather_scales_in_tmp and work.tmp is None:
        raise TileError(
            f"{work.mnemonic} on {target.name} needs a tmp tile",
            span=work.span,
            legal=(f"ins(%{source.name}, %scalar, %tmp)",),
        )
    if source.format.name in target.tile_arithmetic.equality_only and work.mode not in (None, "eq"):
        raise TileError(
            f"{work.mnemonic} of {source.format.name} can only compare for equality on {target.name}",
            span=work.span,
            legal=("cmpMode = #pto<cmp eq>",),
        )


def _check_sort(target: DataflowTarget, work: ResolvedTileOp, _operation: VectorOperation) -> None:
    source, places = work.sources
    _rows(work, source)
    one_row = region(places) == (1, source.valid_cols)  # serves every row of the source
    if region(places) != region(source) and not one_row:
        raise _other_region(work, places, source)
    _holds_pairs(work, source.valid_cols)
    ragged = source.valid_cols % GROUP
    if ragged and target.tile_arithmetic.sort_pads_in_tmp and work.tmp is None and source.valid_rows:
        raise TileError(
            f"{work.mnemonic} on {target.name} needs a tmp tile to pad rows of {source.valid_cols} elements to a "
            f"multiple of {GROUP}",
            span=work.span,
            legal=(f"ins(%{source.name}, %{places.name}, %tmp)",),
        )


def _holds_pairs(work: ResolvedTileOp, count: int) -> None:
    if work.dst.valid_rows and work.dst.row_pitch < count * PAIR_BYTES:
        raise tile_error(
            work, f"{count} pairs are {count * PAIR_BYTES} bytes, a row of %{work.dst.name} has {work.dst.row_pitch}"
        )


def _check_merge(_target: DataflowTarget, work: ResolvedTileOp, _operation: VectorOperation) -> None:
    for source in work.sources:
        _rows(work, source)
        if source.valid_cols * source.element_bits // 8 % PAIR_BYTES:
            raise tile_error(work, f"{source.valid_cols} elements of %{source.name} are not whole pairs")
    _holds_pairs(work, sum(map(pairs_of, work.sources)))
    if work.scalars:
        length, (source,) = block_elements(work), work.sources
        if length <= 0 or length * source.element_bits // 8 % PAIR_BYTES or source.valid_cols % (4 * length):
            raise tile_error(
                work,
                f"four blocks of {length} elements, whole pairs, do not divide the "
                f"{source.valid_cols} valid ones of a row of %{source.name}",
            )


def _check_part(target: DataflowTarget, work: ResolvedTileOp, _operation: VectorOperation) -> None:
    """Check that one source covers the destination, and the other is within it; the library requires no covering."""
    dst = work.dst
    for source in work.sources:
        if source.valid_rows > dst.valid_rows or source.valid_cols > dst.valid_cols:
            raise _other_region(work, source, dst)
    if all(region(source) != region(dst) for source in work.sources) and not _as_library(target):
        _same_region(work, work.sources[0])


def _check_part_argument(target: DataflowTarget, work: ResolvedTileOp, operation: VectorOperation) -> None:
    """Numbers have the regions of their elements."""
    first, second, *numbered = work.sources
    _check_part(target, replace(work, sources=(first, second)), operation)
    for tile, number in zip((first, second, work.dst), (*numbered, *work.further), strict=True):
        if region(tile) != region(number):
            raise _other_region(work, tile, number)


def _check_pairs(_target: DataflowTarget, work: ResolvedTileOp, _operation: VectorOperation) -> None:
    (source,), dst = work.sources, work.dst
    _rows(work, source)
    if source.valid_cols != 2 * dst.valid_cols:
        raise _other_region(work, source, dst)


def _check_interleaving(_target: DataflowTarget, work: ResolvedTileOp, operation: VectorOperation) -> None:
    """Check an interleaving: equal rows; results as wide as the sources, except for even and odd columns."""
    first, dst, other = work.sources[0], work.dst, work.further[0]
    for tile in (*work.sources, other):
        _rows(work, tile)
    total = sum(tile.valid_cols for tile in work.sources)
    turns = operation.function == "interleave"
    if (turns and total != 2 * first.valid_cols) or dst.valid_cols + other.valid_cols != total:
        raise tile_error(
            work, f"{total} valid columns of the sources do not make {dst.valid_cols} of %{dst.name} and "
            f"{other.valid_cols} of %{other.name}"
        )  # fmt: skip
    if not turns and dst.valid_cols != (total + 1) // 2:
        raise _refusal(work, "number of valid columns", dst, dst.valid_cols, other, other.valid_cols)


def _check_block_gather(_target: DataflowTarget, work: ResolvedTileOp, _operation: VectorOperation) -> None:
    offsets, dst = work.sources[1], work.dst
    if offsets.valid_rows < dst.valid_rows or offsets.valid_cols * gathered_elements(work) < dst.valid_cols:
        raise _other_region(work, offsets, dst)


def _check_transposition(_target: DataflowTarget, work: ResolvedTileOp, _operation: VectorOperation) -> None:
    (source,), dst = work.sources, work.dst
    if 0 in region(source):
        return
    if dst.rows < source.valid_cols or dst.cols < source.valid_rows:
        raise tile_error(
            work,
            f"{shape_text(region(source))} elements of %{source.name} become "
            f"{shape_text((source.valid_cols, source.valid_rows))}, %{dst.name} has {shape_text((dst.rows, dst.cols))}",
        )


def _check_concatenation(target: DataflowTarget, work: ResolvedTileOp, _operation: VectorOperation) -> None:
    dst = work.dst
    for source in work.sources:
        _rows(work, source)
    joined = sum(source.valid_cols for source in work.sources)
    exactly = target.tile_arithmetic.concatenation_fills
    room = dst.valid_cols if exactly else dst.cols
    if joined > room or (exactly and joined < room):
        first, second = work.sources
        raise tile_error(
            work,
            f"{first.valid_cols} and {second.valid_cols} columns of %{first.name} and %{second.name} do not "
            f"{'make' if exactly else 'fit into'} the {room} of %{dst.name}",
        )


def _check_counted_concatenation(_target: DataflowTarget, work: ResolvedTileOp, _operation: VectorOperation) -> None:
    for source in work.sources:
        _rows(work, source)
    for counts in work.sources[2:]:
        if not counts.valid_cols and work.dst.valid_rows:
            raise tile_error(work, f"%{counts.name} has no valid columns of counts")


def _check_quantisation(target: DataflowTarget, work: ResolvedTileOp, operation: VectorOperation) -> None:
    """Check equal regions, parameters for every row, and scratch with the source's columns if the target uses one."""
    source, *parameters = work.sources
    _same_region(work, source)
    for tile in parameters:
        _rows(work, tile)
    rule = target.tile_operation(work.mnemonic)
    if operation.kind is not Kind.QUANTISE or rule is None or rule.tmp != "used":
        return
    for tile in parameters:
        if not is_column(tile) or tile.valid_cols != 1:
            raise tile_error(
                work,
                f"%{tile.name} must be a column of one factor per row on {target.name}",
                f"{tile.rows}x1 column-major",
            )
    tmp = work.tmp
    if tmp is None:
        raise TileError(
            f"{work.mnemonic} on {target.name} needs a tmp tile of the shape of %{source.name}",
            span=work.span,
            legal=(f"outs(%{work.dst.name}, %tmp : T, T)",),
        )
    if (tmp.rows, tmp.cols, region(tmp)) != (source.rows, source.cols, region(source)):
        raise TileError(
            f"{work.mnemonic} needs a tmp tile of shape and valid region of %{source.name}: "
            f"{shape_text((source.rows, source.cols))}, valid {shape_text(region(source))}",
            span=work.span,
        )


def _check_block_quantisation(target: DataflowTarget, work: ResolvedTileOp, _operation: VectorOperation) -> None:
    check_block_quantisation(work, str(target.option(FORMS)), str(target.option(FLAT_NV)))


def _check_packing(_target: DataflowTarget, work: ResolvedTileOp, _operation: VectorOperation) -> None:
    _same_region(work, work.sources[0])


_CHECKS: Mapping[Kind, Callable[[DataflowTarget, ResolvedTileOp, VectorOperation], None]] = {
    Kind.MOVE: _check_move,
    Kind.FILL: _check_fill,
    Kind.ELEMENTWISE: _check_elementwise,
    Kind.SELECT: _check_selection,
    Kind.COMPARE: _check_compare,
    Kind.ROW_REDUCE: _check_row_reduction,
    Kind.ROW_EXPAND: _check_row_expansion,
    Kind.ROW_BROADCAST: _check_row_broadcast,
    Kind.COLUMN_REDUCE: _check_column_reduction,
    Kind.ROW_ARGUMENT: _check_row_reduction,
    Kind.COLUMN_ARGUMENT: _check_column_reduction,
    Kind.COLUMN_EXPAND: _check_columns_broadcast,
    Kind.COLUMN_BROADCAST: _check_columns_broadcast,
    Kind.PART: _check_part,
    Kind.PART_ARGUMENT: _check_part_argument,
    Kind.NARROW: _check_elementwise,
    Kind.PAIR_REDUCE: _check_pairs,
    Kind.INTERLEAVE: _check_interleaving,
    Kind.BLOCK_GATHER: _check_block_gather,
    Kind.RAMP: _check_ramp,
    Kind.GATHER: _check_gather,
    Kind.TRANSPOSE: _check_transposition,
    Kind.PATTERN_GATHER: _check_pattern,
    Kind.COMPARE_GATHER: _check_comparison,
    Kind.SORT: _check_sort,
    Kind.MERGE: _check_merge,
    Kind.QUANTISE: _check_quantisation,
    Kind.DEQUANTISE: _check_quantisation,
    Kind.PACK: _check_packing,
    Kind.BLOCK_QUANTISE: _check_block_quantisation,
    Kind.CONCATENATE: _check_concatenation,
    Kind.COUNTED_CONCATENATE: _check_counted_concatenation,
}
"""The checks of operands by kind; scalars need none."""
