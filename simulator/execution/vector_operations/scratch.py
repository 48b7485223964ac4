"""Scratch tiles of vector operations: which a target takes, and how large they have to be."""

from __future__ import annotations

from dataclasses import dataclass

from castsim.execution.tiles import ResolvedTileOp, Tile
from castsim.execution.vector_operations.boxes import box_scratch
from castsim.execution.vector_operations.shapes import BLOCK, block_end, is_column, transposes_by_blocks
from castsim.isa.errors import IllegalError, ReadError, ScratchError, TileError
from castsim.isa.pto.vector_operations import Kind, VectorOperation
from castsim.targets.dataflow import DataflowTarget
from castsim.targets.tile_operations import TileOperationFacts


@dataclass(frozen=True, slots=True)
class ExtremeScratch:
    """Where the steps of a row arg-reduction lie in its tmp tile, in bytes; pairs of value and place come first.

    `values` and `places` are those of the pairs, `second` the pairs of the second stage, `size` is all of it.
    """

    values: int
    places: int
    second: int
    size: int


def extreme_scratch(source: Tile, piece_bytes: int) -> ExtremeScratch:
    """Return the layout of the scratch of a row arg-reduction whose instructions take so many bytes of a row."""
    size = source.element_bits // 8
    rows, pieces = source.valid_rows, -(-source.valid_cols * size // piece_bytes)
    values = rows * pieces * 2 * size
    if pieces == 1:
        return ExtremeScratch(values, values, values, values + rows * size)
    places = values + rows * pieces * size
    second = places + rows * pieces * size
    return ExtremeScratch(values, places, second, second + rows * 2 * size)


def check_scratch(
    target: DataflowTarget, work: ResolvedTileOp, operation: VectorOperation, rule: TileOperationFacts
) -> None:
    """Refuse a scratch tile of the wrong type, shape or size.

    Raises:
        IllegalError: the target takes none. ReadError, TileError: not of the type or valid region that it must have.
        ScratchError: it is too small; names the missing bytes.
    """
    tmp = work.tmp
    if tmp is None:
        return
    if rule.tmp == "refused":
        raise IllegalError(
            f"pto.{work.mnemonic} takes no tmp tile on {target.name}", span=work.span, legal=operation.spellings[:1]
        )
    if operation.kind is Kind.RAMP:
        _check_ramp_scratch(target, work, tmp, rule)
        return
    like = work.sources[0]
    must_match = operation.tmp_like_source and not tmp.added
    if must_match and (tmp.format, tmp.valid_rows, tmp.valid_cols) != (
        like.format,
        like.valid_rows,
        like.valid_cols,
    ):
        raise TileError(
            f"{work.mnemonic} wants a tmp tile of the type and valid region of %{like.name}: "
            f"{like.valid_rows} x {like.valid_cols} {like.format.name}",
            span=work.span,
        )
    if rule.tmp != "used":
        return
    if operation.kind is Kind.SELECT and work.scalars and tmp.format != like.format:
        raise ReadError(f"{work.mnemonic} keeps its scalar in tmp: %{tmp.name} must hold {like.format.name}")
    _check_size(work, tmp, scratch_bytes(target, work, operation))


def _check_size(work: ResolvedTileOp, tmp: Tile, need: int) -> None:
    if tmp.size < need:
        raise ScratchError(
            f"tmp %{tmp.name} has {tmp.size} bytes, {work.mnemonic} needs {need}: {need - tmp.size} missing",
            span=work.span,
        )


def _check_ramp_scratch(target: DataflowTarget, work: ResolvedTileOp, tmp: Tile, rule: TileOperationFacts) -> None:
    sizes = target.ramp_scratch
    if rule.tmp != "used" or sizes is None:
        return
    if tmp.element_bits != sizes.element_bits or is_column(tmp):
        raise TileError(
            f"{work.mnemonic}: tmp %{tmp.name} must be row-major, its elements of {sizes.element_bits} bits",
            span=work.span,
        )
    _check_size(work, tmp, sizes.bytes_32 if work.dst.element_bits == 32 else sizes.bytes_16)


def scratch_bytes(target: DataflowTarget, work: ResolvedTileOp, operation: VectorOperation) -> int:
    """Return the bytes of scratch that an operation is known to need on a target that uses it."""
    rule = target.broadcast_scratch
    if rule is not None and operation.kind is Kind.ROW_BROADCAST and any(map(is_column, work.sources)):
        rows = work.dst.valid_rows
        return -(-rows // rule.rows) * rule.bytes if rows < rule.limit else rule.most
    if work.binary:
        source = work.sources[0]
        return (source.valid_rows + 1) // 2 * source.row_pitch
    if operation.kind is Kind.ROW_ARGUMENT:
        return extreme_scratch(work.sources[0], target.tile_arithmetic.piece_bytes).size
    if operation.kind is Kind.COLUMN_ARGUMENT:
        line = block_end(work.sources[0].valid_cols * work.sources[0].element_bits // 8, BLOCK)
        bits = block_end(-(-work.sources[0].valid_cols // 8), BLOCK)
        return line + bits if work.sources[0].valid_rows > 1 else 0
    if operation.kind is Kind.BOX:
        return box_scratch(work)
    if operation.kind is Kind.QUANTISE:
        return 0  # its shape is asked for; what is written behind it is told in a warning
    if operation.kind is Kind.SORT:
        first = work.sources[0]
        return first.valid_rows * block_end(first.valid_cols * first.element_bits // 8, BLOCK)
    if operation.function == "xor":
        return work.dst.valid_rows * work.dst.row_pitch
    if operation.function == "rem":
        return work.dst.row_pitch
    if operation.kind is Kind.TRANSPOSE and transposes_by_blocks(work):
        return work.sources[0].size
    return target.block_bytes
