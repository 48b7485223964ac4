"""Type of the tmp tile that the newer assembler gives an operation of a strided-repeat chip.

Source: docs/reference/pto.md section 1.3. What the text leaves to run time counts as large as it can be.
"""

from __future__ import annotations

from dataclasses import replace

from castsim.execution.dataflow.implicit_scratch import Needy
from castsim.execution.interpreter.assembler_forms import is_binary
from castsim.execution.tiles import ResolvedTileOp, Tile
from castsim.execution.vector_operations.scratch import scratch_bytes
from castsim.execution.vector_operations.shapes import is_column, transposes_by_blocks
from castsim.isa.errors import IllegalError
from castsim.isa.formats import format_named
from castsim.isa.modes import Saturation
from castsim.isa.pto import program as pto
from castsim.isa.pto.packed import element_format
from castsim.isa.pto.vector_operations import VECTOR_OPERATIONS, Kind
from castsim.machines.strided.plan import plan_cast
from castsim.machines.strided.scratch import scratch_need
from castsim.targets.strided_repeat import StridedRepeatTarget

_GROUP = 32
"""Elements that tsort32 sorts together (docs/reference/pto.md section 7.7)."""


def implicit_scratch(target: StridedRepeatTarget, node: Needy, pitch: int | None) -> pto.TileType | None:
    """Return the type of the tmp tile of an operation that has none, None if it needs none.

    `pitch` is that of its first source in elements, where that is a part of a wider tile.
    """
    if isinstance(node, pto.Tcvt):
        return _of_cast(target, node, pitch)
    rule = target.tile_operation(node.mnemonic)
    return tmp_of_work(target, _work(node)) if rule is not None and rule.tmp == "used" and _on_vectors(node) else None


def tmp_of_work(target: StridedRepeatTarget, work: ResolvedTileOp) -> pto.TileType | None:
    """Return the type of the tmp tile that an operation needs; None if it needs none, or makes no use of one."""
    rule = target.tile_operation(work.mnemonic)
    if rule is None or rule.tmp != "used":
        return None
    operation = VECTOR_OPERATIONS[work.mnemonic]
    like, dst = (work.sources or (work.dst,))[0], work.dst
    block = target.block_bytes
    match operation.kind:
        case Kind.SORT if _sorts_whole_groups(like.type):
            return None
        case Kind.ROW_REDUCE | Kind.COLUMN_REDUCE | Kind.ROW_ARGUMENT | Kind.COLUMN_ARGUMENT | Kind.SORT:
            return replace(like.type, valid_rows=like.valid_rows, valid_cols=like.valid_cols)
        case Kind.ROW_BROADCAST:
            return _bytes(scratch_bytes(target, work, operation), block) if any(map(is_column, work.sources)) else None
        case Kind.RAMP:
            sizes = target.ramp_scratch
            if sizes is None:
                return None
            size = sizes.bytes_32 if dst.element_bits == 32 else sizes.bytes_16
            return _row(1, size * 8 // sizes.element_bits, f"i{sizes.element_bits}")
        case Kind.TRANSPOSE:
            return replace(like.type, valid_rows=like.rows, valid_cols=like.cols) if transposes_by_blocks(work) else (
                _bytes(block, block)
            )  # fmt: skip
        case Kind.SELECT:
            return _row(1, block * 8 // like.element_bits, like.format.name)
    return _of_function(operation.function, work, block)


def _of_function(function: str, work: ResolvedTileOp, block: int) -> pto.TileType | None:
    """Return the type of the tmp tile of an operation that works element by element."""
    dst = work.dst
    match function:
        case "xor":
            return replace(dst.type, valid_rows=dst.valid_rows, valid_cols=dst.valid_cols)
        case "rem":
            return _row(1 if work.scalars else 2, dst.cols, dst.format.name)
        case "prelu":
            masks = -(-dst.valid_cols // 8)
            return _row(dst.valid_rows + 1, max(block, -(-masks // block) * block), "u8")
    return None


def _of_cast(target: StridedRepeatTarget, node: pto.Tcvt, pitch: int | None) -> pto.TileType | None:
    src, dst = element_format(node.src_type.element), element_format(node.dst_type.element)
    try:
        plan = plan_cast(target, src, dst, node.rounding, Saturation.OFF, scratch=True)
    except IllegalError:
        return None  # the walk says so, if it comes here
    if plan.sequence is None or "vec" not in {node.src_type.location, node.dst_type.location}:
        return None
    kind = node.dst_type
    rows = kind.rows if kind.valid_rows is None else kind.valid_rows
    columns = range(1, kind.cols + 1) if kind.valid_cols is None else (kind.valid_cols,)
    stride = node.src_type.cols if pitch is None else pitch
    need = max(scratch_need(plan, target.repeat, rows, cols, stride).total for cols in columns)
    return _bytes(need, target.block_bytes)


def _bytes(need: int, block: int) -> pto.TileType:
    """Return a tile of bytes, whole blocks and at least one."""
    return _row(1, max(-(-need // block), 1) * block, "i8")


def _row(rows: int, cols: int, element: str) -> pto.TileType:
    return pto.TileType("vec", element, rows, cols, rows, cols)


def _sorts_whole_groups(kind: pto.TileType) -> bool:
    """Whether the text says that a sort works on whole groups."""
    return kind.valid_cols is not None and kind.valid_cols % _GROUP == 0


def _on_vectors(node: pto.TileOperation) -> bool:
    kinds = (*node.input_types, *node.output_types)
    return all(kind.location == "vec" for kind in kinds if isinstance(kind, pto.TileType))


def _work(node: pto.TileOperation) -> ResolvedTileOp:
    """Return the operation with its tiles at no place, as large as they can be."""
    tiles = [_tile(kind) for kind in node.input_types if isinstance(kind, pto.TileType)]
    masked = VECTOR_OPERATIONS[node.mnemonic].kind is Kind.SELECT
    scalars = tuple((0, format_named(kind.name)) for kind in node.input_types if isinstance(kind, pto.ScalarType))
    kind = node.output_types[0]
    assert isinstance(kind, pto.TileType)
    sources = tuple(tiles[1:] if masked else tiles)
    return ResolvedTileOp(node.mnemonic, _tile(kind), sources, node.span, scalars, binary=is_binary(node))


def _tile(kind: pto.TileType) -> Tile:
    fmt = element_format(kind.element)
    rows = kind.rows if kind.valid_rows is None else kind.valid_rows
    cols = kind.cols if kind.valid_cols is None else kind.valid_cols
    return Tile("", fmt, kind, 0, rows, cols, fmt.storage_bits)
