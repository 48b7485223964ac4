"""The accesses that may depend on each other, and the hazards between them."""

from __future__ import annotations

from collections.abc import Sequence

from castsim.execution.tree import Access, Block, Instruction, Lowered, elements
from castsim.targets.dataflow import Hazard


def hazard_between(first: Access, second: Access) -> Hazard | None:
    """Return the hazard between two accesses in program order, None if both only read; bytes are not compared."""
    if first.write:
        return Hazard.WRITE_AFTER_WRITE if second.write else Hazard.READ_AFTER_WRITE
    return Hazard.WRITE_AFTER_READ if second.write else None


def contended_spaces(root: Block, instructions: Sequence[Instruction], vector: str) -> tuple[str, ...]:
    """Return the address spaces in which anything can depend on anything else.

    Not those that are only read, nor global memory that one pipe alone touches, one instruction after the other; the
    pipe `vector` does not wait for the end of one before it starts the next.
    """
    uses: dict[str, tuple[set[str], set[bool]]] = {}
    for element in elements(root):
        if isinstance(element, Lowered):
            for access in element.accesses:
                pipes, writes = uses.setdefault(access.space, (set(), set()))
                pipes.add(instructions[element.instruction].pipe)
                writes.add(access.write)
    return tuple(
        space for space, (pipes, writes) in uses.items() if True in writes and (len(pipes) > 1 or vector in pipes)
    )
