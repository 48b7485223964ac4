"""The bytes that a vector operation touches, operand by operand."""

from __future__ import annotations

from castsim.execution.pipe_operations import check_tile
from castsim.execution.tree import Access, ResolvedTileOp, Tile, common_bytes, strided
from castsim.execution.vector_operations.quantising import (
    FLAT_NV,
    QUANTISING,
    block_surprises,
    bytes_to_quantise,
    clobbered_bytes,
    group_bytes,
    is_narrow,
    quantised_bytes,
    spread_end,
)
from castsim.execution.vector_operations.rearranging import (
    REARRANGING,
    kept_columns,
    pairs_of,
    read_bytes,
    written_bytes,
)
from castsim.execution.vector_operations.regions import check_regions
from castsim.execution.vector_operations.shapes import (
    BUFFER,
    as_rows,
    compared_bytes,
    expands_column,
    is_column,
    moved_columns,
    moves_columns,
    padded_rows,
    region,
    row_bytes,
    tile_error,
    transposes_by_blocks,
    vector_operand,
    widens,
)
from castsim.execution.vector_operations.target_rules import (
    Behaviour,
    behaviour_of,
    check_boxes,
    check_scratch,
    compared_format,
    float_route,
)
from castsim.isa.dataclass import replace
from castsim.isa.errors import IllegalError, ReadError, TileError, closest
from castsim.isa.formats import IntFormat
from castsim.isa.pto.vector_operations import NARROWER, PAIR_BYTES, VECTOR_OPERATIONS, Kind, VectorOperation
from castsim.targets.dataflow import DataflowTarget, TileOperationFacts


def work_accesses(work: ResolvedTileOp, behaviour: Behaviour) -> tuple[Access, ...]:
    """Return the bytes of an operation: dst (written), every source, tmp (read, then written), mask, in this order.

    A loop that moves the operation moves tile n of a `TileEffect` with its access, so all of these are always listed.
    Additional bytes that a target touches follow: a source converted in place, scratch without a tile.
    """
    accesses = [_written(work, behaviour), *_read(work, behaviour)]
    if work.tmp is not None:
        accesses += [Access(BUFFER, work.tmp.address, work.tmp.end, write) for write in (False, True)]
    if work.mask is not None:
        accesses.append(row_bytes(work.mask, work.dst.valid_rows, (work.dst.valid_cols + 7) // 8, write=False))
    if work.counts is not None:
        accesses.append(count_bytes(work, work.counts))
    if VECTOR_OPERATIONS[work.mnemonic].kind is Kind.BLOCK_QUANTISE:
        accesses += group_bytes(work)
    else:
        accesses += [tile_bytes(tile, write=True) for tile in work.further]
    if VECTOR_OPERATIONS[work.mnemonic].accumulates:
        accesses.append(tile_bytes(work.dst, write=False))
    if float_route(work, behaviour.facts) is not None:
        accesses.append(tile_bytes(work.sources[0], write=True))
    accesses += clobbered_bytes(work, behaviour)
    if behaviour.window is not None:
        accesses += [Access(BUFFER, *behaviour.window, write) for write in (False, True)]
    return tuple(accesses)


def count_bytes(work: ResolvedTileOp, counts: Tile) -> Access:
    """Return the bytes of the counts of a gather by comparison: one element per row, in a column or in one row."""
    rows, size = work.dst.valid_rows, counts.element_bits // 8
    if is_column(counts) or (counts.valid_rows, counts.valid_cols) == (1, rows):
        return Access(BUFFER, counts.address, counts.address + rows * size, write=True)
    return row_bytes(counts, rows, size, write=True)


def tile_bytes(tile: Tile, *, write: bool) -> Access:
    """Return the bytes of the valid elements of a tile, row by row (column by column if it is column-major).

    4-bit elements are packed from the start of each row, whatever the pitch counts per element, as transfers move them;
    casts may leave gaps.
    """
    if is_column(tile):
        lines, length, pitch = tile.valid_cols, tile.valid_rows, tile.rows * tile.element_bits // 8
    else:
        lines, length, pitch = tile.valid_rows, tile.valid_cols, tile.row_pitch
    if not lines or not length:
        return Access(BUFFER, tile.address, tile.address, write)
    return strided(BUFFER, tile.address, ((lines, pitch),), (length * tile.packed_bits + 7) // 8, write=write)


def _written(work: ResolvedTileOp, behaviour: Behaviour) -> Access:
    dst, facts = work.dst, behaviour.facts
    match VECTOR_OPERATIONS[work.mnemonic].kind:
        case Kind.MOVE:
            rows = min(work.sources[0].valid_rows, dst.valid_rows)
            return row_bytes(dst, rows, moved_columns(work, facts.move_bytes) * dst.element_bits // 8, write=True)
        case Kind.FILL:
            return row_bytes(dst, padded_rows(work), dst.row_pitch, write=True)
        case Kind.COMPARE:
            if facts.inverts_whole_mask and work.mode == "ne":
                return Access(BUFFER, dst.address, dst.end, write=True)
            return row_bytes(dst, dst.valid_rows, compared_bytes(work, facts.compare_bytes)[1], write=True)
        case Kind.COLUMN_REDUCE | Kind.COLUMN_ARGUMENT:
            return row_bytes(dst, 1, dst.valid_cols * dst.element_bits // 8, write=True)
        case Kind.SORT:
            return row_bytes(dst, dst.valid_rows, work.sources[0].valid_cols * PAIR_BYTES, write=True)
        case Kind.MERGE:
            return row_bytes(dst, dst.valid_rows, sum(map(pairs_of, work.sources)) * PAIR_BYTES, write=True)
        case kind if kind in QUANTISING:
            return quantised_bytes(work, behaviour)
        case kind if kind in REARRANGING:
            return written_bytes(work, behaviour)
        case _:
            return tile_bytes(dst, write=True)


def _read(work: ResolvedTileOp, behaviour: Behaviour) -> list[Access]:
    kind = VECTOR_OPERATIONS[work.mnemonic].kind
    if kind in QUANTISING:
        return bytes_to_quantise(work, behaviour)
    if kind in REARRANGING:
        return read_bytes(work, behaviour)
    accesses = [tile_bytes(source, write=False) for source in work.sources]
    first = work.sources[0] if work.sources else None
    if first is None:
        return accesses
    if kind is Kind.MOVE:
        rows = min(first.valid_rows, work.dst.valid_rows)
        length = moved_columns(work, behaviour.facts.move_bytes) * first.element_bits // 8
        return [row_bytes(first, rows, length, write=False)]
    if kind is Kind.FILL:
        length = kept_columns(work, behaviour) * first.element_bits // 8
        return [row_bytes(first, first.valid_rows, length, write=False)]
    if kind is Kind.COMPARE:
        length = compared_bytes(work, behaviour.facts.compare_bytes)[0]
        return [row_bytes(source, source.valid_rows, length, write=False) for source in work.sources]
    if kind is Kind.ROW_EXPAND:
        return [row_bytes(first, first.valid_rows, first.element_bits // 8, write=False)]
    if kind in (Kind.COLUMN_EXPAND, Kind.COLUMN_BROADCAST):
        vector = work.sources[-1]
        accesses[-1] = row_bytes(vector, 1, vector.valid_cols * vector.element_bits // 8, write=False)
    return accesses


# Which operands of a vector operation may share bytes: in place where every element is read before it is written.

_IN_PLACE = (
    Kind.MOVE,
    Kind.FILL,
    Kind.ELEMENTWISE,
    Kind.SELECT,
    Kind.ROW_EXPAND,
    Kind.ROW_BROADCAST,
    Kind.COLUMN_REDUCE,
    Kind.COLUMN_EXPAND,
    Kind.COLUMN_BROADCAST,
    Kind.PART,
    Kind.GATHER,
    Kind.TRANSPOSE,
)


def check_overlaps(
    target: DataflowTarget, work: ResolvedTileOp, operation: VectorOperation, behaviour: Behaviour
) -> tuple[str, ...]:
    """Refuse operands that destroy each other; return warnings.

    A destination may be one of its sources, element by element. Scratch and masks share no bytes.

    Raises:
        TileError: operands overlap; the message names both tiles and the shared bytes.
    """
    if 0 in (work.dst.valid_rows, work.dst.valid_cols):
        return ()
    accesses = work_accesses(work, behaviour)
    written, read = accesses[0], accesses[1 : 1 + len(work.sources)]
    for number, (source, access) in enumerate(zip(work.sources, read, strict=True)):
        shared = common_bytes(written, access)
        if shared is not None and not _in_place(target, work, operation, number):
            raise _refusal(work, work.dst, source, shared)
    rest = accesses[1 + len(work.sources) :]
    outputs, inputs = [(work.dst, written)], [*zip(work.sources, read, strict=True)]
    scratch: list[tuple[Tile, Access]] = []
    if work.tmp is not None:
        scratch = [(work.tmp, rest[0])]
        _check_apart(work, "tmp", work.tmp, rest[0], [*outputs, *inputs])
        rest = rest[2:]
    if work.counts is not None:
        _check_apart(work, "counts", work.counts, rest[0], [*outputs, *inputs, *scratch])
    for tile, access in zip(work.further, rest, strict=False):
        _check_apart(work, "output", tile, access, [*outputs, *inputs])
    if work.mask is not None:
        _check_apart(work, "mask", work.mask, rest[0], [*outputs, *scratch])
    return _beyond(work, written)


def _in_place(target: DataflowTarget, work: ResolvedTileOp, operation: VectorOperation, number: int) -> bool:
    source, dst = work.sources[number], work.dst
    if operation.kind is Kind.TRANSPOSE:
        # All of the source is in tmp before anything is written.
        return target.tile_arithmetic.transposes_through_tmp and work.tmp is not None and transposes_by_blocks(work)
    if operation.kind in (Kind.QUANTISE, Kind.PACK) and number == 0:  # every store trails its load
        return work.tmp is None and source.address == dst.address
    if operation.kind is Kind.PART and region(source) != region(dst):
        return False  # the other one is copied over it first
    if operation.kind is Kind.ROW_BROADCAST and _rows_in_order(work, number):
        return True
    if operation.kind is Kind.GATHER and number == 0:
        return False  # its elements are read for every row
    same = (source.address, source.element_bits, source.type.block_layout) == (
        dst.address,
        dst.element_bits,
        dst.type.block_layout,
    )
    if not same or operation.kind not in _IN_PLACE or (source.row_pitch != dst.row_pitch and dst.valid_rows > 1):
        return False
    if operation.kind is Kind.COLUMN_BROADCAST and number == 1:
        return False  # its first row is read for every row
    if operation.kind is Kind.ROW_BROADCAST and number == vector_operand(work):
        return source.valid_cols == dst.valid_cols
    if operation.function == "addc" and number == 2 and target.tile_arithmetic.sums_in_steps:
        return False  # the sum of the first two is written over it
    if operation.divides_constant or work.scalar_first:
        return target.tile_arithmetic.scalar_dividend_in_place
    return True


def _rows_in_order(work: ResolvedTileOp, number: int) -> bool:
    """Return whether a row broadcast writes each row only after its last read.

    Rows run one after the other; each reads its element of the vector before it is written, and its other source piece
    by piece (docs/reference/pto.md section 7.4).
    """
    source, dst = work.sources[number], work.dst
    vector = number == vector_operand(work)
    pitch, length = source.row_pitch, source.valid_cols * source.element_bits // 8
    written = dst.valid_cols * dst.element_bits // 8
    for row in range(dst.valid_rows):
        start, end = source.address + row * pitch, source.address + row * pitch + length
        # The rows of the destination that share bytes with this one of the source.
        first = max(0, (start - dst.address - written) // dst.row_pitch + 1)
        last = min(dst.valid_rows - 1, (end - 1 - dst.address) // dst.row_pitch)
        same = start == dst.address + row * dst.row_pitch and source.element_bits == dst.element_bits
        if first <= last and (first < row or (first == row and not vector and not same)):
            return False
    return True


def _check_apart(
    work: ResolvedTileOp, role: str, tile: Tile, access: Access, others: list[tuple[Tile, Access]]
) -> None:
    for other, bytes_of in others:
        shared = common_bytes(bytes_of, access)
        if shared is not None:
            what = f"bytes {shared[0]} .. {shared[1] - 1}"
            raise tile_error(work, f"{role} %{tile.name} and %{other.name} share {what}")


def _refusal(work: ResolvedTileOp, written: Tile, other: Tile, shared: tuple[int, int]) -> TileError:
    what = f"bytes {shared[0]} .. {shared[1] - 1}"
    if written.address == other.address and written.name == other.name:
        return TileError(f"{work.mnemonic} cannot run in place: it writes %{written.name} ({what})", span=work.span)
    return tile_error(work, f"%{written.name} and %{other.name} share {what}")


def _beyond(work: ResolvedTileOp, written: Access) -> tuple[str, ...]:
    if written.end <= work.dst.end:
        return ()
    return (f"{work.mnemonic} writes bytes {work.dst.end} .. {written.end - 1}, past the end of %{work.dst.name}",)


# What a vector operation refuses on a target before anything is issued (docs/reference/pto.md section 7).


def check_work(target: DataflowTarget, work: ResolvedTileOp) -> tuple[str, ...]:
    """Reject an operation that the target lacks in this form; return warnings.

    Raises:
        IllegalError: there is no such operation, or not for this element type or with a scratch tile.
        ReadError: the operands have different element types.
        TileError: shapes, layouts or positions of operands do not fit together.
        ScratchError: a scratch tile is too small.
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
    """Return warnings about differences between the library and the text (docs/reference/pto.md section 7.3)."""
    facts = target.tile_arithmetic
    surprises = []
    if work.mode not in (None, "eq") and compared_format(work) in facts.equality_only:
        surprises.append(
            f"pto.{work.mnemonic} of {compared_format(work)} compares for equality only on {target.name}: "
            f"'{work.mode}' acts as 'eq'"
        )
    route = float_route(work, facts)
    if route is not None and work.sources[0].address != work.dst.address:
        surprises.append(
            f"pto.{work.mnemonic} converts its source in place: %{work.sources[0].name} is left holding {route}"
        )
    kind, unit = VECTOR_OPERATIONS[work.mnemonic].kind, facts.move_bytes
    if kind is Kind.BLOCK_QUANTISE:
        surprises += block_surprises(work, str(target.option(FLAT_NV)), str(target.option("tquant_mx_ctrl")))
    if kind is Kind.QUANTISE and work.tmp is not None:
        surprises.append(
            f"pto.{work.mnemonic} works in its source on {target.name}: %{work.sources[0].name} is left holding the "
            f"rounded products as f16"
        )
        behind = spread_end(work, facts)
        if behind > work.tmp.end:
            surprises.append(
                f"pto.{work.mnemonic} spreads its parameters to bytes {work.tmp.end} .. {behind - 1}, behind its tmp "
                f"tile %{work.tmp.name}"
            )
    if kind is Kind.RAMP and work.descending and work.tmp is not None and facts.ramp_negates_sum:
        surprises.append(
            f"pto.{work.mnemonic} with tmp negates what ascends on {target.name}: it descends from the negated scalar"
        )
    if kind is Kind.TRANSPOSE and unit is not None and transposes_by_blocks(work):
        length = work.sources[0].valid_rows * work.dst.element_bits // 8
        if length % unit:
            surprises.append(
                f"pto.{work.mnemonic} copies whole blocks on {target.name}: in each row of %{work.dst.name} the "
                f"{-length % unit} bytes behind the result are overwritten by what tmp holds, which is not claimed"
            )
    return tuple(surprises)


def _known(target: DataflowTarget, work: ResolvedTileOp) -> tuple[VectorOperation, TileOperationFacts]:
    rule = target.tile_operation(work.mnemonic)
    operation = VECTOR_OPERATIONS.get(work.mnemonic)
    if rule is None or operation is None:
        names = [entry.mnemonic for entry in target.tile_operations]
        near = [f"pto.{name}" for name in closest(work.mnemonic, names)]
        raise IllegalError(f"{target.name} has no operation pto.{work.mnemonic}", span=work.span, legal=near)
    return operation, rule


def _check_types(
    target: DataflowTarget, work: ResolvedTileOp, operation: VectorOperation, rule: TileOperationFacts
) -> None:
    """Reject element types that differ or that the operation does not support."""
    if operation.kind in (Kind.MOVE, Kind.FILL):
        for source in work.sources:
            if source.element_bits != work.dst.element_bits:
                raise ReadError(
                    f"{work.mnemonic} cannot change the element size: %{source.name} holds {source.format.name}, "
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
            f"pto.{work.mnemonic} of {fmt.name} exists only in the library; option library_types=accept allows it",
            span=work.span,
            legal=rule.types,
        )
    raise IllegalError(
        f"pto.{work.mnemonic} does not take {fmt.name} on {target.name}", span=work.span, legal=rule.types
    )


_ALIKE = {Kind.GATHER: 1, Kind.SORT: 1, Kind.COUNTED_CONCATENATE: 2, Kind.BLOCK_GATHER: 1, Kind.PART_ARGUMENT: 2}
"""The number of sources with the computed element type, where not all have it; the others hold numbers."""


_BYTES = ("i8", "u8")


def _check_quantised_types(work: ResolvedTileOp, operation: VectorOperation) -> None:
    """Refuse parameters and scratch that are not f32, results of another width, packing that does not narrow."""
    if operation.kind is Kind.PACK:
        (source,) = work.sources
        if (source.element_bits, work.dst.element_bits) not in ((32, 16), (32, 8), (16, 8)):
            raise ReadError(
                f"{work.mnemonic} packs 4-byte elements to 2 or 1 bytes and 2-byte elements to 1: %{source.name} holds "
                f"{source.format.name}, %{work.dst.name} {work.dst.format.name}",
                span=work.span,
            )
        return
    if operation.kind is Kind.BLOCK_QUANTISE:
        for index, output in enumerate((work.dst, *work.further)):
            legal = _BYTES if index < 2 else (work.sources[0].format.name,)
            if output.format.name not in legal and not (index == 0 and is_narrow(work)):
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
    _check_numbers(work, operation, work.sources[alike:])
    named = [(source.name, source.format.name) for source in work.sources[1:alike]]
    if operation.kind is Kind.COMPARE:
        fmt = work.dst.format
        if not isinstance(fmt, IntFormat) or fmt.bits != 8:
            raise ReadError(
                f"{work.mnemonic} writes bits into a tile of bytes, %{work.dst.name} holds {fmt.name}",
                span=work.span,
                legal=("i8", "ui8"),
            )
    elif operation.kind is Kind.NARROW:
        _check_narrowed(work, wanted)
    elif not operation.kind.gives_places and not widens(work, operation):
        named.append((work.dst.name, work.dst.format.name))
        named += [(tile.name, tile.format.name) for tile in work.further if operation.kind is Kind.INTERLEAVE]
    if operation.kind is Kind.MERGE:
        named += [("the scalar", "no integer") for _, fmt in work.scalars if not isinstance(fmt, IntFormat)]
    else:
        scaled = operation.kind is Kind.NARROW  # by a scale in f32
        named += [("the scalar", wanted if scaled and fmt.name == "f32" else fmt.name) for _, fmt in work.scalars]
    for name, element_type in named:
        if element_type != wanted:
            shown = name if name == "the scalar" else f"%{name}"
            raise ReadError(
                f"{work.mnemonic} needs a single element type: {shown} is {element_type}, not {wanted}",
                span=work.span,
                legal=(wanted,),
            )


def _check_narrowed(work: ResolvedTileOp, source: str) -> None:
    """Refuse a result with other elements than those that the sources become."""
    narrower, dst = NARROWER.get(source), work.dst
    if narrower is not None and dst.format.name != narrower:
        text = f"{work.mnemonic} narrows {source} to {narrower}: %{dst.name} holds {dst.format.name}"
        raise ReadError(text, span=work.span, legal=(narrower,))


def _check_numbers(work: ResolvedTileOp, operation: VectorOperation, numbers: tuple[Tile, ...]) -> None:
    """Refuse tiles of element numbers, read or written, with another element type."""
    if operation.kind is Kind.PART_ARGUMENT:
        number = work.further[0]
        for tile in (number, *numbers):
            if tile.format != number.format or not isinstance(tile.format, IntFormat):
                text = f"{work.mnemonic} needs numbers of one integer type: %{tile.name} holds {tile.format.name}"
                raise ReadError(text, span=work.span, legal=("i32", "ui32", "i16", "ui16"))
    elif operation.kind is not Kind.GATHER:
        for tile in numbers:
            _check_counting(work, tile, "takes numbers from")
    if operation.kind.gives_places:
        for tile in (work.dst, *((work.counts,) if work.counts is not None else ())):
            _check_counting(work, tile, "writes numbers of elements into")


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
    """Reject column-major tiles if the operation reads rows; a move accepts them if both are, a fill any."""
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
    if operation.kind is not Kind.BLOCK_QUANTISE:
        tiles += work.further
    for tile in tiles:
        if is_column(tile):
            raise tile_error(
                work,
                f"tile %{tile.name} is column-major",
                "blayout=row_major",
                f"pto.treshape %{tile.name} to a row-major tile of the same bytes",
            )
