"""What kinds of changes share about tiles: which value each type of a statement belongs to, sizes, addresses."""

from __future__ import annotations

from collections.abc import Callable, Iterable

from castsim.exploration.advice.text import Edited, Statement, TileText, retyped, types_in
from castsim.isa import pto
from castsim.isa.formats import format_named

_PLAIN = (pto.TileType, pto.PartitionType, pto.ViewType, pto.PointerType, pto.MultiTileType)

Retype = Callable[[str, pto.Type], pto.Type | None]
"""Takes a value's name and type, and returns the type that it gets; None for its own."""


def typed_names(node: pto.Operation) -> list[str] | None:
    """Return the value of every type that a statement spells out, in their order; None if that is not told."""
    match node:
        case pto.AllocTile():
            return [node.result]
        case pto.Tcvt():
            return [node.src, *([node.tmp] if node.tmp else []), node.dst]
        case pto.TileOperation():
            pairs = [
                *zip(node.inputs, node.input_types, strict=True),
                *zip(node.outputs, node.output_types, strict=True),
            ]
            return [name for name, kind in pairs if isinstance(kind, _PLAIN)]
        case pto.PartitionView():
            return [node.view, node.result]
        case pto.MakeView() | pto.SetValidShape():
            return [node.result if isinstance(node, pto.MakeView) else node.tile]
        case pto.Subview():
            return [node.source, node.result]
    return None


def retype(text: TileText, edited: Edited, change: Retype, only: Iterable[Statement] | None = None) -> bool:
    """Change types by the values that they belong to; False if a statement with types cannot be told apart."""
    for one in text.all() if only is None else only:
        if one.body:
            continue
        lines = text.written(one)
        spelled = types_in(lines)
        if not spelled:
            continue
        names = typed_names(one.node)
        if names is None or len(names) != len(spelled):
            if any(isinstance(kind, pto.TileType) for kind in spelled):
                return False
            continue
        order = iter(names)
        found = retyped(lines, lambda kind, order=order: change(next(order), kind))  # type: ignore[misc]
        if found != lines:
            edited.replace(one, found)
    return True


def tile_types(text: TileText) -> dict[str, pto.TileType]:
    """Return the types of tiles, by the names of their values."""
    found: dict[str, pto.TileType] = {}
    for one in text.all():
        names = typed_names(one.node)
        kinds = types_in(text.written(one)) if names and not one.body else []
        if names and len(names) == len(kinds):
            found |= {name: kind for name, kind in zip(names, kinds, strict=True) if isinstance(kind, pto.TileType)}
    return found


def tile_size(kind: pto.TileType) -> int:
    """Return the bytes that a tile takes."""
    fmt = format_named(kind.element)
    return kind.rows * kind.cols * (fmt.bits if fmt.bits == 4 else fmt.storage_bits) // 8


def row_aligned(kind: pto.TileType) -> bool:
    """Whether the rows of a tile are whole blocks of 32 bytes."""
    return kind.block_layout != "row_major" or tile_size(kind) // kind.rows % 32 == 0


def first_free(text: TileText) -> int | None:
    """Return the first byte behind all tiles that are placed by hand; None if an address is no constant."""
    constants, end = text.constants(), 0
    for one in text.all():
        if isinstance(one.node, pto.AllocTiles):
            return None
        if isinstance(one.node, pto.AllocTile) and one.node.address is not None:
            if one.node.address not in constants:
                return None
            end = max(end, constants[one.node.address] + tile_size(one.node.type))
    return -(-end // 256) * 256


def written_by(node: pto.Operation) -> tuple[str, ...]:
    """Return the tiles, or views, that an operation writes."""
    if isinstance(node, pto.Tcvt):
        return (node.dst,)
    return node.outputs if isinstance(node, pto.TileOperation) else ()


def read_by(node: pto.Operation) -> tuple[str, ...]:
    """Return what an operation reads, its tmp tile among it."""
    if isinstance(node, pto.Tcvt):
        return (node.src, *([node.tmp] if node.tmp else []))
    if isinstance(node, pto.TileOperation):
        return node.inputs
    return ()
