"""What a vector operation refuses on a target before anything is issued (docs/reference/pto.md section 7)."""

from __future__ import annotations

from dataclasses import replace

from castsim.execution.dataflow.checks import check_tile
from castsim.execution.tiles import ResolvedTileOp, Tile
from castsim.execution.vector_operations.behaviour import behaviour_of, compared_format, float_route
from castsim.execution.vector_operations.block_groups import FLAT_NV, block_surprises, is_narrow
from castsim.execution.vector_operations.boxes import check_boxes
from castsim.execution.vector_operations.overlaps import check_overlaps
from castsim.execution.vector_operations.quantising import QUANTISING, spread_end
from castsim.execution.vector_operations.regions import check_regions
from castsim.execution.vector_operations.scratch import check_scratch
from castsim.execution.vector_operations.shapes import (
    as_rows,
    expands_column,
    is_column,
    moves_columns,
    transposes_by_blocks,
    widens,
)
from castsim.isa.errors import IllegalError, ReadError, TileError
from castsim.isa.formats import IntFormat
from castsim.isa.pto.spelling import closest
from castsim.isa.pto.vector_operations import VECTOR_OPERATIONS, Kind, VectorOperation
from castsim.targets.dataflow import DataflowTarget
from castsim.targets.tile_operations import TileOperationFacts


def check_work(target: DataflowTarget, work: ResolvedTileOp) -> tuple[str, ...]:
    """Refuse an operation that the target does not have in this form; return warnings.

    Raises:
        IllegalError: no such operation, or not for this element type, or not with a scratch tile.
        ReadError: operands of different element types.
        TileError: operands whose shapes, layouts or places do not fit together.
        ScratchError: a scratch tile that is too small.
    """
    operation, rule = _known(target, work)
    for tile in (work.dst, *work.sources, work.tmp, work.mask, work.counts, *work.further):
        if tile is not None and not (operation.kind is Kind.BOX and tile is work.dst):
            check_tile(target, tile, work.span)
    if operation.kind is Kind.BOX:
        check_boxes(work, rule.types)
    else:
        _check_types(target, work, operation, rule)
        _check_layouts(work, operation)
    check_scratch(target, work, operation, rule)
    check_regions(target, work, operation)
    seen = work if rule.tmp == "used" else replace(work, tmp=None)
    seen = as_rows(seen)
    return _surprises(target, seen) + check_overlaps(target, seen, operation, behaviour_of(target, seen))


def _surprises(target: DataflowTarget, work: ResolvedTileOp) -> tuple[str, ...]:
    """Return warnings of what the library does otherwise than the text says (docs/reference/pto.md section 7.3)."""
    facts = target.tile_arithmetic
    found = []
    if work.mode not in (None, "eq") and compared_format(work) in facts.equality_only:
        found.append(
            f"pto.{work.mnemonic} of {compared_format(work)} compares for equality only on {target.name}: "
            f"'{work.mode}' acts as 'eq'"
        )
    route = float_route(work, facts)
    if route is not None and work.sources[0].address != work.dst.address:
        found.append(
            f"pto.{work.mnemonic} converts its source in place: %{work.sources[0].name} is left holding {route}"
        )
    kind, unit = VECTOR_OPERATIONS[work.mnemonic].kind, facts.move_bytes
    if kind is Kind.BLOCK_QUANTISE:
        found += block_surprises(work, str(target.option(FLAT_NV)), str(target.option("tquant_mx_ctrl")))
    if kind is Kind.QUANTISE and work.tmp is not None:
        found.append(
            f"pto.{work.mnemonic} works in its source on {target.name}: %{work.sources[0].name} is left holding the "
            f"rounded products as f16"
        )
        behind = spread_end(work, facts)
        if behind > work.tmp.end:
            found.append(
                f"pto.{work.mnemonic} spreads its parameters to bytes {work.tmp.end} .. {behind - 1}, behind its tmp "
                f"tile %{work.tmp.name}"
            )
    if kind is Kind.RAMP and work.descending and work.tmp is not None and facts.ramp_negates_sum:
        found.append(
            f"pto.{work.mnemonic} with tmp negates what ascends on {target.name}: it descends from the negated scalar"
        )
    if kind is Kind.TRANSPOSE and unit is not None and transposes_by_blocks(work):
        length = work.sources[0].valid_rows * work.dst.element_bits // 8
        if length % unit:
            found.append(
                f"pto.{work.mnemonic} copies whole blocks on {target.name}: in each row of %{work.dst.name} the "
                f"{-length % unit} bytes behind the result are overwritten by what tmp holds, which is not claimed"
            )
    return tuple(found)


def _known(target: DataflowTarget, work: ResolvedTileOp) -> tuple[VectorOperation, TileOperationFacts]:
    rule = target.tile_operation(work.mnemonic)
    operation = VECTOR_OPERATIONS.get(work.mnemonic)
    if rule is None or operation is None:
        names = [one.mnemonic for one in target.tile_operations]
        near = [f"pto.{name}" for name in closest(work.mnemonic, names)]
        raise IllegalError(f"{target.name} has no operation pto.{work.mnemonic}", span=work.span, legal=near)
    return operation, rule


def _check_types(
    target: DataflowTarget, work: ResolvedTileOp, operation: VectorOperation, rule: TileOperationFacts
) -> None:
    """Refuse element types that differ or that the operation does not take."""
    if operation.kind in (Kind.MOVE, Kind.FILL):
        for source in work.sources:
            if source.element_bits != work.dst.element_bits:
                raise ReadError(
                    f"{work.mnemonic} copies elements of one size: %{source.name} holds {source.format.name}, "
                    f"%{work.dst.name} {work.dst.format.name}",
                    span=work.span,
                )
    elif operation.kind in QUANTISING:
        _check_quantised_types(work, operation)
    else:
        _check_equal_types(work, operation)
    if operation.kind is Kind.GATHER:
        _check_widths(target, work)
    fmt = work.dst.format if operation.kind in (Kind.MOVE, Kind.FILL) else (work.sources or (work.dst,))[0].format
    # The front end compares widths only: unsigned integers pass where the signed ones of their width are listed.
    name = f"i{fmt.bits}" if isinstance(fmt, IntFormat) else fmt.name
    if name in rule.types:
        return
    if name in rule.library_types:
        if target.option("library_types") == "accept":
            return
        raise IllegalError(
            f"pto.{work.mnemonic} of {fmt.name} exists in the library only; option library_types=accept takes it",
            span=work.span,
            legal=rule.types,
        )
    raise IllegalError(
        f"pto.{work.mnemonic} does not take {fmt.name} on {target.name}", span=work.span, legal=rule.types
    )


_ALIKE = {Kind.GATHER: 1, Kind.SORT: 1, Kind.COUNTED_CONCATENATE: 2}
"""How many sources have the element type that is computed in, where not all have; the others hold numbers."""


_BYTES = ("i8", "u8")


def _check_quantised_types(work: ResolvedTileOp, operation: VectorOperation) -> None:
    """Refuse parameters and scratch that are not f32, results of another width, packing that does not narrow."""
    if operation.kind is Kind.PACK:
        (source,) = work.sources
        if (source.element_bits, work.dst.element_bits) not in ((32, 16), (32, 8), (16, 8)):
            raise ReadError(
                f"{work.mnemonic} packs elements of 4 bytes to 2 or 1, and of 2 to 1: %{source.name} holds "
                f"{source.format.name}, %{work.dst.name} {work.dst.format.name}",
                span=work.span,
            )
        return
    if operation.kind is Kind.BLOCK_QUANTISE:
        for place, output in enumerate((work.dst, *work.further)):
            legal = _BYTES if place < 2 else (work.sources[0].format.name,)
            if output.format.name not in legal and not (place == 0 and is_narrow(work)):
                text = f"{work.mnemonic}: %{output.name} holds {output.format.name}"
                raise ReadError(text, span=work.span, legal=legal)
        return
    plain = [*work.sources[1:], work.tmp if operation.kind is Kind.QUANTISE else work.dst]
    for tile in plain:
        if tile is not None and tile.format.name != "f32":
            raise ReadError(
                f"{work.mnemonic}: %{tile.name} holds {tile.format.name}, not f32", span=work.span, legal=("f32",)
            )
    fmt = work.dst.format
    if operation.kind is Kind.QUANTISE and not (isinstance(fmt, IntFormat) and fmt.bits == 8):
        raise ReadError(
            f"{work.mnemonic} writes integers of 8 bits, %{work.dst.name} holds {fmt.name}",
            span=work.span,
            legal=("i8", "ui8"),
        )


def _check_equal_types(work: ResolvedTileOp, operation: VectorOperation) -> None:
    wanted, alike = compared_format(work), _ALIKE.get(operation.kind, len(work.sources))
    if operation.kind is not Kind.GATHER:
        for tile in work.sources[alike:]:
            _check_counting(work, tile, "takes numbers from")
    named = [(source.name, source.format.name) for source in work.sources[1:alike]]
    if operation.kind is Kind.COMPARE:
        fmt = work.dst.format
        if not isinstance(fmt, IntFormat) or fmt.bits != 8:
            raise ReadError(
                f"{work.mnemonic} writes bits into a tile of bytes, %{work.dst.name} holds {fmt.name}",
                span=work.span,
                legal=("i8", "ui8"),
            )
    elif operation.kind.gives_places:
        for tile in (work.dst, *((work.counts,) if work.counts is not None else ())):
            _check_counting(work, tile, "writes numbers of elements into")
    elif not widens(work, operation):
        named.append((work.dst.name, work.dst.format.name))
    if operation.kind is Kind.MERGE:
        named += [("the scalar", "no integer") for _, fmt in work.scalars if not isinstance(fmt, IntFormat)]
    else:
        named += [("the scalar", fmt.name) for _, fmt in work.scalars]
    for name, found in named:
        if found != wanted:
            shown = name if name == "the scalar" else f"%{name}"
            raise ReadError(
                f"{work.mnemonic} works on one element type: {shown} is {found}, not {wanted}",
                span=work.span,
                legal=(wanted,),
            )


def _check_counting(work: ResolvedTileOp, tile: Tile, what: str) -> None:
    """Refuse numbers of elements that are no integers of 32 bits."""
    fmt = tile.format
    if not isinstance(fmt, IntFormat) or fmt.bits != 32:
        raise ReadError(
            f"{work.mnemonic} {what} a tile of 32-bit integers, %{tile.name} holds {fmt.name}",
            span=work.span,
            legal=("i32", "ui32"),
        )


def _check_widths(target: DataflowTarget, work: ResolvedTileOp) -> None:
    """Refuse numbers of elements that are no signed integers, or of a width that the elements do not go with."""
    source, places = work.sources
    widths = (16, 32) if source.element_bits == 16 else (max(16, source.element_bits),)
    legal = [name for name in target.tile_arithmetic.gather_numbers if name in [f"i{width}" for width in widths]]
    if places.format.name not in legal:
        raise ReadError(
            f"{work.mnemonic} of {source.format.name} on {target.name}: %{places.name} holds {places.format.name}",
            span=work.span,
            legal=legal,
        )


def _check_layouts(work: ResolvedTileOp, operation: VectorOperation) -> None:
    """Refuse column-major tiles where the operation reads rows; a move takes them if both are."""
    if moves_columns(work):
        return
    tiles: list[Tile] = list(work.sources)
    if expands_column(work):
        tiles = []
    if operation.kind in (Kind.QUANTISE, Kind.DEQUANTISE):
        tiles = [work.sources[0]]  # parameters may be columns
    if operation.kind is Kind.ROW_BROADCAST:
        columns = [tile for tile in work.sources if is_column(tile)]
        tiles = columns if len(columns) == len(work.sources) else []
    if operation.kind not in (Kind.ROW_REDUCE, Kind.ROW_ARGUMENT):
        tiles.append(work.dst)
    if work.mask is not None:
        tiles.append(work.mask)
    for tile in tiles:
        if is_column(tile):
            raise TileError(
                f"{work.mnemonic}: tile %{tile.name} is column-major",
                span=work.span,
                legal=("blayout=row_major", f"pto.treshape %{tile.name} to a row-major tile of the same bytes"),
            )
