"""Let a loop take more of its rows, or columns, per trip, or fewer: tiles as large as the buffer holds, or as it suits.

Every trip pays for starting transfers, instructions and loops; fewer and larger trips pay less often. Smaller ones
leave room for a second set of tiles.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from fractions import Fraction

from castsim.exploration.advice.buffering import (
    Edited,
    Statement,
    TileText,
    each_of,
    fresh,
    indent,
    read_by,
    read_text,
    renamed,
    retype,
    tile_size,
    tile_types,
    used,
    written_by,
)
from castsim.exploration.advice.merging import MERGING
from castsim.exploration.advice.suggestion import Change
from castsim.isa import pto
from castsim.targets.dataflow import BLOCK_BYTES

# Tiles that a program places by hand, moved apart after their sizes have changed.


def placed_anew(before: TileText, after: TileText) -> str | None:
    """Return a text with the addresses of its tiles moved apart as their sizes ask for, in the order they had.

    Tiles of one address stay at one. None where addresses are no constants of their own, or tiles overlapped otherwise.
    """
    old, new = _extents(before), _extents(after)
    if old is None or new is None:
        return None
    if old == new or not new:
        return after.text
    if old.keys() != new.keys():
        return None
    constants = before.constants()
    end = limit = 0
    places: dict[int, int] = {}
    for address in sorted({constants[name] for name in old}):
        names = [name for name in old if constants[name] == address]
        if address < limit:
            return None
        limit = address + max(old[name] for name in names)
        places[address] = end
        end = -(-(end + max(new[name] for name in names)) // BLOCK_BYTES) * BLOCK_BYTES
    edited = after.edited()
    for one in after.all():
        node = one.node
        if isinstance(node, pto.Constant) and node.result in new and isinstance(node.value, int):
            line = re.sub(r"constant\s+\d+", f"constant {places[node.value]}", after.lines[one.first])
            edited.instead[one.first] = (line,)
    return edited.text()


def _extents(text: TileText) -> dict[str, int] | None:
    """Return the bytes of the largest tile at each address, by the name of its constant; None if one is not."""
    found: dict[str, int] = {}
    constants = text.constants()
    for one in text.all():
        node = one.node
        if isinstance(node, pto.AllocTiles) and node.address is not None:
            return None
        if isinstance(node, pto.AllocTile) and node.address is not None:
            if node.address not in constants:
                return None
            found[node.address] = max(found.get(node.address, 0), tile_size(node.type))
    return found


RESIZING = "resize tiles"
FACTORS = (Fraction(2), Fraction(4), Fraction(8), Fraction(16), Fraction(1, 2), Fraction(1, 4))


@dataclass(frozen=True, slots=True)
class _Strip:
    """A loop over strips of views: `size` elements along one axis per trip; `parts` are its partition views.

    `parts` holds, by the line of the view, the axis along which the loop moves it. `rows` says that tiles hold that
    axis in their rows.
    """

    loop: Statement
    node: pto.For
    size: int
    parts: Mapping[int, int]
    tiles: frozenset[str]
    rows: bool


def resized_strips(text: TileText) -> Iterator[Change]:
    """Yield the text with each loop's strips made larger or smaller by powers of two."""
    constants = text.constants()
    for one in text.all():
        strip = _strip_of(text, one, constants)
        if strip is None:
            continue
        node, span = strip.node, None
        if node.upper in constants and node.lower in constants:
            span = constants[node.upper] - constants[node.lower]
        factors = [*FACTORS, *([Fraction(span, strip.size)] if span and span % strip.size == 0 else [])]
        for factor in dict.fromkeys(factors):
            size = strip.size * factor
            if size.denominator != 1 or factor == 1 or (span is not None and size > span):
                continue
            if not _clamped(strip) and (strip.size % int(size) if span is None else span % int(size)):
                continue  # a strip would go past the end
            changed = _resized(text, strip, int(size))
            if changed is not None:
                what = "rows" if strip.rows else "columns"
                merged = strip.size == 1
                title = (
                    f"take {size} {what} at a time in the loop of line {one.number}, not one by one"
                    if merged
                    else f"take {size} {what} per trip in the loop of line {one.number}, not {strip.size}"
                )
                reason = (
                    "every trip pays for starting its transfers and instructions"
                    if factor > 1
                    else "smaller tiles are done sooner, so that more overlaps"
                )
                yield Change(MERGING if merged else RESIZING, title, reason, one.number, changed)


def _strip_of(text: TileText, loop: Statement, constants: Mapping[str, int]) -> _Strip | None:
    """Return how a loop goes over strips of views; None if it does not."""
    node = loop.node
    if not isinstance(node, pto.For) or node.carried or constants.get(node.step, 0) < 1:
        return None
    size, parts, moved = constants[node.step], {}, {}
    for one in each_of(loop.body):
        part = one.node
        if isinstance(part, pto.PartitionView) and node.variable in part.offsets:
            axis = part.offsets.index(node.variable)
            if part.sizes[axis] in constants and constants[part.sizes[axis]] != size:
                return None
            parts[one.first] = axis
            moved[part.result] = axis - len(part.sizes)
    fixed = _fixed_tiles(loop, moved)
    inside = {name for one in each_of(loop.body) for name in (*read_by(one.node), *written_by(one.node))}
    written = {name for one in each_of(loop.body) for name in written_by(one.node)}
    tmps = {name for one in each_of(loop.body) for name in read_by(one.node) if _is_tmp(one.node, name)}
    kinds = tile_types(text)
    tiles = frozenset(name for name in inside & ((written | tmps) - fixed) if name in kinds)
    if not parts or not tiles:
        return None
    along = [
        axis
        for one in each_of(loop.body)
        for name, axis in moved.items()
        if name in (*read_by(one.node), *written_by(one.node))
        for tile in (*read_by(one.node), *written_by(one.node))
        if tile in kinds and kinds[tile].rows == size
    ]
    return _Strip(loop, node, size, parts, tiles, rows=-2 in along or (size == 1 and -2 in moved.values()))


def _is_tmp(node: pto.Operation, name: str) -> bool:
    if isinstance(node, pto.Tcvt):
        return node.tmp == name
    return isinstance(node, pto.TileOperation) and len(node.inputs) > 1 and name == node.inputs[-1]


def _fixed_tiles(loop: Statement, moved: Mapping[str, int]) -> set[str]:
    """Return the tiles that hold the same in every trip: loaded from views that the loop does not move."""
    loaded: dict[str, bool] = {}
    for one in each_of(loop.body):
        for name in written_by(one.node):
            still = (
                isinstance(one.node, pto.TileOperation)
                and one.node.mnemonic == "tload"
                and not any(view in moved for view in one.node.inputs)
            )
            loaded[name] = loaded.get(name, True) and still
    return {name for name, still in loaded.items() if still}


def _clamped(strip: _Strip) -> bool:
    """Whether the loop itself sees to it that its last strip does not go past the end."""
    return any(isinstance(one.node, pto.Arith) and one.node.operation.startswith("min") for one in strip.loop.body)


def _resized(text: TileText, strip: _Strip, size: int) -> str | None:
    """Return the text with strips of another size; None if a type cannot be told apart, or tiles do not fit."""
    edited = text.edited()
    views = {one.node.result: strip.parts[one.first] for one in each_of(strip.loop.body)
             if one.first in strip.parts and isinstance(one.node, pto.PartitionView)}  # fmt: skip

    def change(name: str, kind: pto.Type) -> pto.Type | None:
        if isinstance(kind, pto.PartitionType) and name in views and kind.dims[views[name]] == strip.size:
            axis = views[name]
            return replace(kind, dims=(*kind.dims[:axis], size, *kind.dims[axis + 1 :]))
        return _scaled(kind, strip, size) if isinstance(kind, pto.TileType) and name in strip.tiles else None

    if not retype(text, edited, change):
        return None
    _rename(text, edited, strip, size)
    changed = edited.text()
    again = read_text(changed, "resized", text.function.name)
    return None if again is None else placed_anew(text, again)


def _scaled(kind: pto.TileType, strip: _Strip, size: int) -> pto.TileType | None:
    """Return a tile type whose rows, or columns, along the strip have another extent."""
    by_rows = kind.rows == strip.size if strip.rows else False
    if by_rows:
        valid = size if kind.valid_rows == strip.size else kind.valid_rows
        return replace(kind, rows=size, valid_rows=valid)
    if kind.cols == strip.size and (not strip.rows or kind.rows == 1):
        valid = size if kind.valid_cols == strip.size else kind.valid_cols
        return replace(kind, cols=size, valid_cols=valid)
    return None


def _rename(text: TileText, edited: Edited, strip: _Strip, size: int) -> None:
    """Let the loop step, and the sizes of its views, be a constant of its own, or the old one with another value."""
    name, loop = strip.node.step, strip.loop
    here = re.compile(rf"%{re.escape(name)}(?![\w$.\-])")
    lines: dict[int, str] = {}

    def line(number: int) -> str:
        return (edited.instead.get(number) or (text.lines[number],))[0]

    other = fresh(name, set(used(text.lines)), str(size))
    head = line(loop.first)
    lines[loop.first] = re.sub(rf"step\s+%{re.escape(name)}(?![\w$.\-])", f"step %{other}", head)
    for one in each_of(loop.body):
        if one.body:
            continue
        if isinstance(one.node, pto.PartitionView):
            axis = strip.parts.get(one.first)
            if axis is not None and name == one.node.sizes[axis]:
                lines[one.first] = _with_size(line(one.first), axis, other)
        elif strip.size > 1 and here.search(line(one.first)):
            lines[one.first] = renamed([line(one.first)], {name: other})[0]
    for number, changed in lines.items():
        edited.instead[number] = (changed,)
    origin = next((one for one in text.all() if isinstance(one.node, pto.Constant) and one.node.result == name), None)
    left = [
        number
        for number in range(len(text.lines))
        if here.search(line(number).split("//")[0]) and (origin is None or number != origin.first)
    ]
    if origin is not None and not left:
        for number, changed in lines.items():
            edited.instead[number] = tuple(renamed([changed], {other: name}))
        edited.instead[origin.first] = (re.sub(r"constant\s+-?\d+", f"constant {size}", text.lines[origin.first]),)
        return
    kind = strip.node.type.name
    edited.insert(loop.first, [f"{indent(head)}%{other} = arith.constant {size} : {kind}"])


def _with_size(line: str, axis: int, name: str) -> str:
    """Return a partition view with another name at one place of its sizes."""
    found = re.search(r"sizes\s*=\s*\[([^\]]*)\]", line)
    if found is None:
        return line
    names = [each.strip() for each in found[1].split(",")]
    names[axis] = f"%{name}"
    return line[: found.start(1)] + ", ".join(names) + line[found.end(1) :]
