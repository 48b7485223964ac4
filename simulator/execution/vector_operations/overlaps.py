"""Which operands of a vector operation may share bytes: in place where every element is read before it is written."""

from __future__ import annotations

from castsim.execution.byte_sets import common_bytes
from castsim.execution.tiles import ResolvedTileOp, Tile
from castsim.execution.tree import Access
from castsim.execution.vector_operations.accesses import work_accesses
from castsim.execution.vector_operations.behaviour import Behaviour
from castsim.execution.vector_operations.shapes import region, transposes_by_blocks, vector_operand
from castsim.isa.errors import TileError
from castsim.isa.pto.vector_operations import Kind, VectorOperation
from castsim.targets.dataflow import DataflowTarget

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

    A destination may be one of its sources, element on element. Scratch and masks share bytes with nothing.

    Raises:
        TileError: names both tiles and the bytes that they share.
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
    if work.tmp is not None:
        others = [(work.dst, written), *zip(work.sources, read, strict=True)]
        _check_apart(work, "tmp", work.tmp, rest[0], others)
        rest = rest[2:]
    if work.counts is not None:
        held = work.tmp, accesses[1 + len(work.sources)]
        others = [(work.dst, written), *zip(work.sources, read, strict=True)]
        others += [(held[0], held[1])] if held[0] is not None else []
        _check_apart(work, "counts", work.counts, rest[0], others)
    for tile, access in zip(work.further, rest, strict=False):
        _check_apart(work, "output", tile, access, [(work.dst, written), *zip(work.sources, read, strict=True)])
    if work.mask is not None:
        others = [(work.dst, written)] + ([(work.tmp, accesses[1 + len(work.sources)])] if work.tmp else [])
        _check_apart(work, "mask", work.mask, rest[0], others)
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
    """Whether no row of a row broadcast is written before what a later one, or it itself, reads there.

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
            raise TileError(f"{work.mnemonic}: {role} %{tile.name} and %{other.name} share {what}", span=work.span)


def _refusal(work: ResolvedTileOp, one: Tile, two: Tile, shared: tuple[int, int]) -> TileError:
    what = f"bytes {shared[0]} .. {shared[1] - 1}"
    if one.address == two.address and one.name == two.name:
        return TileError(f"{work.mnemonic} cannot run in place: it writes %{one.name} ({what})", span=work.span)
    return TileError(f"{work.mnemonic}: %{one.name} and %{two.name} share {what}", span=work.span)


def _beyond(work: ResolvedTileOp, written: Access) -> tuple[str, ...]:
    if written.end <= work.dst.end:
        return ()
    return (
        f"{work.mnemonic} writes bytes {work.dst.end} .. {written.end - 1}, behind its destination %{work.dst.name}",
    )
