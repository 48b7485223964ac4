"""Give a loop a second set of tiles, so that it loads the next part while it works on this one.

The body is written twice, the second time for the next trip and on tiles of its own. Where the number of trips may be
odd, the second half stands behind a comparison.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from castsim.exploration.advice.suggestion import Change
from castsim.exploration.advice.text import Edited, Statement, TileText, defined, fresh, indent, renamed, used
from castsim.exploration.advice.tiles import first_free, read_by, tile_size, written_by
from castsim.isa import pto

KIND = "double-buffer"


@dataclass(slots=True)
class _Loop:
    """A loop that may be unrolled: `trips` is None where the text does not tell."""

    statement: Statement
    node: pto.For
    trips: int | None


def changes(text: TileText) -> Iterator[Change]:
    """Yield each innermost loop with two or four sets of its tiles: those that are transferred, and all of its own."""
    if any(isinstance(one.node, pto.SetFlag | pto.WaitFlag) for one in text.all()):
        return  # events would have to be told apart as well
    for one in text.all():
        if not isinstance(one.node, pto.For) or one.node.carried or any(inner.body for inner in one.body):
            continue
        loop = _Loop(one, one.node, trips_of(one.node, text.constants()))
        own = _own_tiles(text, one)
        moved = [name for name in own if _is_transferred(one, name)]
        for copies in (2, 4):
            if loop.trips is not None and loop.trips < copies:
                continue
            if copies > 2 and (loop.trips is None or loop.trips % copies):
                continue
            for tiles, words in ((moved, "the tiles that are loaded or stored"), (own, "all of its tiles")):
                if tiles and (tiles is moved or len(own) > len(moved)):
                    changed = unrolled(text, loop, tiles, copies)
                    if changed is not None:
                        yield Change(
                            KIND, f"{_TIMES[copies]} {words} in the loop of line {one.number}",
                            "a transfer no longer waits until the previous trip has finished with its tile",
                            one.number, changed,
                        )  # fmt: skip


_TIMES = {2: "double-buffer", 4: "four sets of"}


def trips_of(node: pto.For, known: Mapping[str, int]) -> int | None:
    """Return how often a loop runs; None if a bound is not known."""
    bounds = [known.get(name) for name in (node.lower, node.upper, node.step)]
    if any(bound is None for bound in bounds) or not bounds[2]:
        return None
    low, high, step = (bound or 0 for bound in bounds)
    return max(0, -(-(high - low) // step))


def _own_tiles(text: TileText, loop: Statement) -> list[str]:
    """Return the tiles that every trip writes before it reads them, and that nothing but the loop reads."""
    allocated = [one.node.result for one in text.all() if isinstance(one.node, pto.AllocTile)]
    inside = {name for one in loop.body for name in (*read_by(one.node), *written_by(one.node))}
    outside = {
        name
        for one in text.all()
        if not (loop.first <= one.first <= loop.last) and not isinstance(one.node, pto.AllocTile) and not one.body
        for name in used(text.written(one))
    }
    return [name for name in allocated if name in inside - outside and _written_first(loop, name)]


def _written_first(loop: Statement, name: str) -> bool:
    for one in loop.body:
        if name in read_by(one.node):
            return False
        if name in written_by(one.node):
            return True
    return False


def _is_transferred(loop: Statement, name: str) -> bool:
    return any(
        isinstance(one.node, pto.TileOperation)
        and one.node.mnemonic in ("tload", "tstore")
        and name in (*one.node.inputs, *one.node.outputs)
        for one in loop.body
    )


def unrolled(text: TileText, loop: _Loop, tiles: list[str], copies: int) -> str | None:
    """Return the text with a loop's body written several times on tiles of its own; None if there is no place."""
    statement, node = loop.statement, loop.node
    taken, edited, margin = used(text.lines), text.edited(), indent(text.lines[statement.first])
    body = list(text.lines[statement.first + 1 : statement.last])
    free = first_free(text)
    if free is None:
        return None
    step = fresh(node.step, taken, str(copies))
    adding = [f"{margin}%{step} = arith.constant {_constant(text, node.step, copies)} : {node.type.name}"]
    if _constant(text, node.step, copies) is None:
        adding = [f"{margin}%{step} = arith.addi %{node.step}, %{node.step} : {node.type.name}"]
        if copies != 2:
            return None
    inner, variable, lines = margin + "  ", node.variable, list(body)
    for _ in range(copies - 1):
        names = {name: fresh(name, taken) for name in sorted(defined(body))}
        following = fresh(node.variable, taken)
        for name in tiles:
            if name not in names:
                names[name] = fresh(name, taken)
        free = _allocate(text, edited, statement, (names, taken), free, tiles)
        placed = _placed(text, statement, body, names, taken, free, adding, margin)
        second, free = placed
        ahead = f"{inner}%{following} = arith.addi %{variable}, %{node.step} : {node.type.name}"
        second = renamed(second, {**names, node.variable: following})
        if loop.trips is None or loop.trips % copies:
            more = fresh("more", taken)
            test = f"{inner}%{more} = arith.cmpi slt, %{following}, %{node.upper} : {node.type.name}"
            second = [
                test,
                f"{inner}scf.if %{more} {{",
                *(f"  {line}" if line else line for line in second),
                f"{inner}}}",
            ]
        lines += [ahead, *second]
        variable = following
    head = text.lines[statement.first]
    edited.insert(statement.first, adding)
    edited.instead[statement.first] = (re.sub(rf"step\s+%{re.escape(node.step)}(?![\w$.\-])", f"step %{step}", head),)
    for number in range(statement.first + 1, statement.last):
        edited.instead[number] = ()
    edited.instead[statement.first + 1] = tuple(lines)
    return edited.text()


def _constant(text: TileText, name: str, copies: int) -> int | None:
    value = text.constants().get(name)
    return None if value is None else value * copies


def _allocate(
    text: TileText, edited: Edited, loop: Statement, naming: tuple[dict[str, str], set[str]], free: int,
    tiles: list[str],
) -> int:  # fmt: skip
    """Allocate copies of tiles that stand before the loop; return the first free byte behind them."""
    names, taken = naming
    for one in text.all():
        node = one.node
        if not isinstance(node, pto.AllocTile) or node.result not in tiles or loop.first <= one.first <= loop.last:
            continue
        lines = renamed(text.written(one), {node.result: names[node.result]})
        if node.address is not None:
            address = fresh(node.address, taken)
            lines = renamed(lines, {node.address: address})
            lines = [f"{indent(lines[0])}%{address} = arith.constant {free} : i64", *lines]
            free = -(-(free + tile_size(node.type)) // 256) * 256
        edited.insert(one.last + 1, lines)
    return free


def _placed(
    text: TileText, loop: Statement, body: list[str], names: Mapping[str, str], taken: set[str], free: int,
    adding: list[str], margin: str,
) -> tuple[list[str], int]:  # fmt: skip
    """Give tiles that the body itself allocates other addresses; those of one address stay at one."""
    moved: dict[str, str] = {}
    found = list(body)
    for one in loop.body:
        node = one.node
        if not isinstance(node, pto.AllocTile) or node.address is None:
            continue
        if node.address not in moved:
            moved[node.address] = fresh(node.address, taken)
            adding.append(f"{margin}%{moved[node.address]} = arith.constant {free} : i64")
            sizes = [
                tile_size(each.node.type)
                for each in loop.body
                if isinstance(each.node, pto.AllocTile) and each.node.address == node.address
            ]
            free = -(-(free + max(sizes)) // 256) * 256
        for line in range(one.first, one.last + 1):
            place = line - loop.first - 1
            found[place] = renamed([found[place]], {node.address: moved[node.address]})[0]
    return found, free
