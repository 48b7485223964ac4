"""Loads that fetch the same bytes in every trip of a loop, moved before it."""

from __future__ import annotations

from collections.abc import Iterator

from castsim.exploration.advice.buffering import Statement, TileText, defined, each_of, indent, used, written_by
from castsim.exploration.advice.suggestion import Change
from castsim.isa import pto

HOISTING = "hoist loads"

_MOVABLE = (pto.Constant, pto.Arith, pto.Convert, pto.Compare, pto.MakeView, pto.PartitionView, pto.AllocTile)


def hoisted_loads(text: TileText) -> Iterator[Change]:
    """Yield each loop with its invariant loads before it."""
    if any(isinstance(one.node, pto.SetFlag | pto.WaitFlag | pto.Barrier) for one in text.all()):
        return
    for loop in text.all():
        if not isinstance(loop.node, pto.For):
            continue
        moved = _invariant(text, loop)
        loads = [one for one in moved if isinstance(one.node, pto.TileOperation)]
        if not loads:
            continue
        edited, margin = text.edited(), indent(text.lines[loop.first])
        lines = []
        for one in moved:
            lines += [margin + line.strip() for line in text.written(one)]
            edited.remove(one)
        edited.insert(loop.first, lines)
        names = ", ".join(f"%{one.node.outputs[0]}" for one in loads if isinstance(one.node, pto.TileOperation))
        yield Change(
            HOISTING, f"load {names} once, before the loop of line {loop.number}",
            "the loop does not change what is loaded, nor the tile that holds it",
            loop.number, edited.text(),
        )  # fmt: skip


def _invariant(text: TileText, loop: Statement) -> list[Statement]:
    """Return the loads whose operands the loop leaves alone, and the statements that these need, in their order."""
    varying = defined(text.lines[loop.first : loop.last + 1])
    writes = [name for one in each_of(loop.body) for name in written_by(one.node)]
    still: list[Statement] = []
    for one in loop.body:
        node, lines = one.node, text.written(one)
        free = not (used(lines) - defined(lines)) & varying
        if isinstance(node, _MOVABLE) and free:
            still.append(one)
            varying -= defined(lines)
        elif free and _is_only_load(node, writes):
            still.append(one)
    needed: set[str] = set()
    kept = []
    for one in reversed(still):
        lines = text.written(one)
        if isinstance(one.node, pto.TileOperation) or defined(lines) & needed:
            needed |= used(lines)
            kept.append(one)
    return kept[::-1]


def _is_only_load(node: pto.Operation, writes: list[str]) -> bool:
    """Whether a load alone writes its tile; `writes` are the tiles that the loop writes."""
    return isinstance(node, pto.TileOperation) and node.mnemonic == "tload" and writes.count(node.outputs[0]) == 1
