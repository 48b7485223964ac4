"""Names, types and sizes in the lines of a tile program, and their changes."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping, Sequence

from castsim.isa.formats import format_named
from castsim.isa.pto import program as pto
from castsim.isa.pto.types import format_type, parse_type
from castsim.running.program_edits import COMMENT, Edited, TextOperation, TileText

VALUE = re.compile(r"%([A-Za-z0-9_$.\-]+)")
"""Pattern of a value in the text; the group is its name."""

_TYPE = re.compile(r"!pto\.[a-z_]+<[^<>]*(?:<[^<>]*>[^<>]*)*>")


def defined(lines: Sequence[str]) -> set[str]:
    """Return the names that lines define: before an equals sign at their start, or as a loop variable."""
    names: set[str] = set()
    for line in lines:
        plain = COMMENT.sub("", line).strip()
        head, equals, _ = plain.partition(" = ")
        if equals and plain.startswith("%"):
            names |= {name.split(":")[0] for name in VALUE.findall(head)}
        loop = re.search(r"scf\.for %([A-Za-z0-9_$.\-]+) =", plain)
        if loop:
            names.add(loop[1])
    return names


def used(lines: Sequence[str]) -> set[str]:
    """Return every name in the lines."""
    return {name for line in lines for name in VALUE.findall(COMMENT.sub("", line))}


def renamed(lines: Sequence[str], names: Mapping[str, str]) -> list[str]:
    """Return lines with values renamed."""
    return [VALUE.sub(lambda found: f"%{names.get(found[1], found[1])}", line) for line in lines]


def fresh(name: str, taken: set[str], suffix: str = "b") -> str:
    """Return an unused name derived from another one, and reserve it."""
    number, candidate = 1, f"{name}_{suffix}"
    while candidate in taken:
        number += 1
        candidate = f"{name}_{suffix}{number}"
    taken.add(candidate)
    return candidate


def retyped(lines: Sequence[str], change: Callable[[pto.Type], pto.Type | None]) -> list[str]:
    """Return lines with changed types; `change` returns None to keep the spelling."""

    def replaced(match: re.Match[str]) -> str:
        kind = parse_type(match[0])
        other = change(kind)
        return match[0] if other is None or other == kind else format_type(other)

    return [_TYPE.sub(replaced, line) for line in lines]


def types_in(lines: Sequence[str]) -> list[pto.Type]:
    """Return the types that lines spell out, in order."""
    return [parse_type(match[0]) for line in lines for match in _TYPE.finditer(COMMENT.sub("", line))]


# What kinds of changes share about tiles: which value each type of a statement belongs to, sizes, addresses.

_PLAIN = (pto.TileType, pto.PartitionType, pto.ViewType, pto.PointerType, pto.MultiTileType)

Retype = Callable[[str, pto.Type], pto.Type | None]
"""Function from a value's name and type to its new type; None keeps the type."""


def typed_names(node: pto.Operation) -> list[str] | None:
    """Return the value of every type that a statement spells out, in order; None if that is ambiguous."""
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


def retype(text: TileText, edited: Edited, change: Retype, only: Iterable[TextOperation] | None = None) -> bool:
    """Change types by the values that they belong to; False if a statement's types are ambiguous."""
    for statement in text.all() if only is None else only:
        if statement.body:
            continue
        lines = text.written(statement)
        spelled = types_in(lines)
        if not spelled:
            continue
        names = typed_names(statement.node)
        if names is None or len(names) != len(spelled):
            if any(isinstance(kind, pto.TileType) for kind in spelled):
                return False
            continue
        order = iter(names)
        changed_lines = retyped(lines, lambda kind, order=order: change(next(order), kind))  # type: ignore[misc]
        if changed_lines != lines:
            edited.replace(statement, changed_lines)
    return True


def tile_types(text: TileText) -> dict[str, pto.TileType]:
    """Return the types of tiles by value name."""
    types_by_name: dict[str, pto.TileType] = {}
    for statement in text.all():
        names = typed_names(statement.node)
        kinds = types_in(text.written(statement)) if names and not statement.body else []
        if names and len(names) == len(kinds):
            types_by_name |= {
                name: kind for name, kind in zip(names, kinds, strict=True) if isinstance(kind, pto.TileType)
            }
    return types_by_name


def tile_size(kind: pto.TileType) -> int:
    """Return the size of a tile in bytes."""
    fmt = format_named(kind.element)
    return kind.rows * kind.cols * (fmt.bits if fmt.bits == 4 else fmt.storage_bits) // 8


def row_aligned(kind: pto.TileType) -> bool:
    """Return whether the rows of a tile are whole blocks of 32 bytes."""
    return kind.block_layout != "row_major" or tile_size(kind) // kind.rows % 32 == 0


def placed_sizes(text: TileText) -> dict[str, int] | None:
    """Return the bytes of the largest tile at each address, by the name of its constant; None if one has none."""
    sizes: dict[str, int] = {}
    constants = text.constants()
    for statement in text.all():
        node = statement.node
        if isinstance(node, pto.AllocTiles) and node.address is not None:
            return None
        if isinstance(node, pto.AllocTile) and node.address is not None:
            if node.address not in constants:
                return None
            sizes[node.address] = max(sizes.get(node.address, 0), tile_size(node.type))
    return sizes


def first_free(text: TileText) -> int | None:
    """Return the first byte after all tiles with explicit addresses; None if an address is not a constant."""
    sizes, constants = placed_sizes(text), text.constants()
    if sizes is None or text.has(pto.AllocTiles):
        return None
    return -(-max((constants[name] + size for name, size in sizes.items()), default=0) // 256) * 256


def written_by(node: pto.Operation) -> tuple[str, ...]:
    """Return the tiles, or views, that an operation writes."""
    if isinstance(node, pto.Tcvt):
        return (node.dst,)
    return node.outputs if isinstance(node, pto.TileOperation) else ()


def read_by(node: pto.Operation) -> tuple[str, ...]:
    """Return the tiles and views that an operation reads, including its tmp tile."""
    if isinstance(node, pto.Tcvt):
        return (node.src, *([node.tmp] if node.tmp else []))
    if isinstance(node, pto.TileOperation):
        return node.inputs
    return ()
