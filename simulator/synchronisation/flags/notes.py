"""How often each inserted instruction is executed."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from castsim.execution.interpreter import Executed
from castsim.execution.tree import Block, Loop, Lowered, Node
from castsim.isa.errors import Span
from castsim.synchronisation.flags.insertion import Insert, Place


@dataclass(frozen=True, slots=True)
class Note:
    """An inserted instruction: how a program spells it, where it stands, and how often it is executed."""

    text: str
    place: Place
    span: Span
    times: int


@dataclass(frozen=True, slots=True)
class Synchronised:
    """What was inserted into a program, in the order of its text."""

    notes: tuple[Note, ...]


def noted(inserts: Sequence[Insert], executed: Executed) -> Synchronised:
    """Return what was inserted into a function that has been walked since."""
    times: dict[int, int] = {}
    _count(executed.tree.root, 1, times)
    return Synchronised(tuple(_note(each, executed.numbers, times) for each in inserts))


def _note(each: Insert, numbers: Mapping[int, int], times: Mapping[int, int]) -> Note:
    return Note(each.text, each.place, each.span, times.get(numbers.get(id(each.node), -1), 0))


def _count(node: Node, factor: int, times: dict[int, int]) -> None:
    """Add up the executions of every instruction of a node that is executed so many times."""
    if isinstance(node, Lowered):
        times[node.instruction] = times.get(node.instruction, 0) + factor
    elif isinstance(node, Loop):
        _count(node.body, factor * node.trips, times)
    elif isinstance(node, Block):
        for item in node.items:
            _count(item, factor, times)
