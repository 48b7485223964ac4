"""The bytes that each part of a tree touches, by pipe; a loop as a whole touches what all of its trips do."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from castsim.execution.byte_sets import widened
from castsim.execution.tree import Access, Block, Deltas, Instruction, Loop, Lowered, Node, width

Rows = tuple[Sequence[Deltas], ...]
"""Steps of the addressed elements of a node in each loop around it, outermost first."""


@dataclass(frozen=True, slots=True)
class Touch:
    """Bytes that some instruction on `pipe` touches in the first trips of all loops around it.

    `steps` says how far each of those loops moves them per trip, outermost first.
    """

    pipe: str
    access: Access
    steps: tuple[int, ...]


def touches(node: Node, rows: Rows, instructions: Sequence[Instruction]) -> dict[Touch, None]:
    """Return the touches of a node, each once, in program order."""
    return dict.fromkeys(_touches(node, rows, instructions))


def slices(block: Block, rows: Rows) -> Iterator[tuple[Node, Rows]]:
    """Yield the items of a block with their own steps."""
    start = 0
    for item in block.items:
        end = start + width(item)
        yield item, tuple(row[start:end] for row in rows)
        start = end


def _touches(node: Node, rows: Rows, instructions: Sequence[Instruction]) -> Iterator[Touch]:
    if isinstance(node, Lowered):
        pipe = instructions[node.instruction].pipe
        for number, access in enumerate(node.accesses):
            if access.start < access.end:
                yield Touch(pipe, access, tuple(row[0][number] for row in rows))
    elif isinstance(node, Loop):
        for inner in touches(node.body, (*rows, node.steps), instructions):
            yield Touch(inner.pipe, widened(inner.access, node.trips, inner.steps[-1]), inner.steps[:-1])
    elif isinstance(node, Block):
        for item, below in slices(node, rows):
            yield from _touches(item, below, instructions)
