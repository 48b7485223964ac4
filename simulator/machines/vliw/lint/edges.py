"""From which bundle to which: every step that a program may take, with what hardware loops do on the way.

Meaning of LOOP and the jumps: docs/reference/tpc.md section 7.1, control.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from enum import StrEnum

from castsim.isa.tpc import Bundle
from castsim.isa.tpc.program import TpcInstruction
from castsim.machines.vliw.registers import is_constant
from castsim.machines.vliw.structure import LoopShape, Structure
from castsim.targets.vliw import VliwTarget

Jump = tuple[int, TpcInstruction]
"""The bundle of a jump, and the jump."""


class LoopStep(StrEnum):
    """The action of a hardware loop on a step from one bundle to another."""

    ENTER = "enter"
    """Its first trip begins."""
    BACK = "back"
    """Another trip begins."""
    EXIT = "exit"
    """The last trip has ended."""
    SKIP = "skip"
    """The loop runs zero times."""


@dataclass(frozen=True, slots=True)
class Edge:
    """A step from one bundle to another.

    `cycles` is what the distance between the two counts (1, and the bubbles of a taken jump), `loops` what hardware
    loops do on the way, in the order of time, each with its number.
    """

    first: int
    second: int
    cycles: int = 1
    loops: tuple[tuple[LoopStep, int], ...] = ()


def edges_of(
    bundles: Sequence[Bundle], structure: Structure, jumps: Sequence[Jump], halts: Sequence[bool], target: VliwTarget
) -> tuple[tuple[Edge, ...], ...]:
    """Return, for each bundle, the steps that may follow it; those of a jump through a register are not known."""
    return _Steps(bundles, structure, jumps, halts, target).all()


class _Steps:
    """Finds the steps of one program."""

    def __init__(
        self,
        bundles: Sequence[Bundle],
        structure: Structure,
        jumps: Sequence[Jump],
        halts: Sequence[bool],
        target: VliwTarget,
    ) -> None:
        self._count = len(bundles)
        self._structure = structure
        self._halts = halts
        self._entered = {loop.start - 1: loop for loop in structure.loops}
        self._ending: dict[int, list[LoopShape]] = {}
        for loop in sorted(structure.loops, key=lambda loop: -loop.depth):
            self._ending.setdefault(loop.end, []).append(loop)
        self._cost = 1 + int(target.option("taken_jump_cycles"))
        delay = target.jump_rules.delay_bundles
        self._jumps = {index + delay: (index, jump) for index, jump in jumps}
        goals = {structure.static_target(index, jump) for index, jump in jumps}
        self._landed_on = goals | {loop.start for loop in structure.loops} | {loop.end for loop in structure.loops}

    def all(self) -> tuple[tuple[Edge, ...], ...]:
        """Return the steps behind every bundle."""
        return tuple(
            tuple(edge for edge in self._behind(index) if edge.second < self._count) for index in range(self._count)
        )

    def _behind(self, index: int) -> Iterator[Edge]:
        loop = self._entered.get(index)
        if loop is not None:
            yield Edge(index, loop.start, 1, ((LoopStep.ENTER, loop.number),))
            yield from self._arrivals(index, loop.end, 1, ((LoopStep.SKIP, loop.number),))
            return
        goes_on = not self._halts[index]
        if index in self._jumps:
            place, jump = self._jumps[index]
            goal = self._structure.static_target(place, jump)
            if goal is not None:
                yield from self._arrivals(index, goal, self._cost, ())
            # A delay bundle that is reached on another way than from its jump goes on to the next one.
            goes_on &= not _surely_taken(jump) or index in self._landed_on
        if goes_on:
            yield from self._arrivals(index, index + 1, 1, ())

    def _arrivals(
        self, index: int, following: int, cycles: int, before: tuple[tuple[LoopStep, int], ...]
    ) -> Iterator[Edge]:
        """Yield where a step leads: the end of a body leads to its start and, the loop over, on to what follows."""
        for loop in self._ending.get(following, ()):
            if loop.holds(index):
                yield Edge(index, loop.start, cycles, (*before, (LoopStep.BACK, loop.number)))
                before = (*before, (LoopStep.EXIT, loop.number))
        yield Edge(index, following, cycles, before)


def _surely_taken(jump: TpcInstruction) -> bool:
    """Whether a jump has no predicate, or one that is constantly true."""
    predicate = jump.predicate
    return predicate is None or (is_constant(predicate.register) and not predicate.inverted)
