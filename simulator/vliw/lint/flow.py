"""Which bundle may follow which: delay bundles, jumps, loops, the end."""

from __future__ import annotations

from functools import cached_property

from isa.tpc import Bundle, Instruction, Program, Slot
from simulator.vliw.plans import InstructionPlan, prepared
from simulator.vliw.registers import Registers
from simulator.vliw.structure import LoopShape, Structure
from targets.vliw import VliwTarget

Jump = tuple[int, Instruction]
"""The bundle of a jump, and the jump."""


class Flow:
    """A program prepared for the linter: bundles, looked-up instructions, successors and predecessors.

    A jump through a register may go anywhere; only what follows if it is not taken is known of it.

    Raises:
        IllegalError: what the machine refuses before it runs.
    """

    def __init__(self, program: Program, target: VliwTarget) -> None:
        self.target = target
        self.bundles: tuple[Bundle, ...] = program.bundles
        self.structure = Structure(program, target)
        registers = Registers(target)
        self.plans: tuple[tuple[InstructionPlan, ...], ...] = tuple(
            tuple(
                prepared(instruction, index, Slot(slot), registers, target)
                for slot, instruction in enumerate(bundle.slots)
                if instruction is not None
            )
            for index, bundle in enumerate(self.bundles)
        )
        self.jumps: tuple[Jump, ...] = tuple(
            (index, bundle.spu)
            for index, bundle in enumerate(self.bundles)
            if bundle.spu is not None and bundle.spu.mnemonic in ("jmpr", "jmpa")
        )
        self.loops: tuple[LoopShape, ...] = self.structure.loops

    def at(self, index: int, slot: Slot) -> InstructionPlan | None:
        """Return what is in a slot of a bundle."""
        return next((plan for plan in self.plans[index] if plan.site.slot is slot), None)

    def loop_head(self, loop: LoopShape) -> InstructionPlan:
        """Return the LOOP of a loop."""
        found = self.at(loop.head, Slot.SPU)
        assert found is not None
        return found

    def halts(self, index: int) -> bool:
        """Whether a bundle ends the program."""
        return any(plan.instruction.mnemonic == "halt" for plan in self.plans[index])

    @cached_property
    def successors(self) -> tuple[frozenset[int], ...]:
        """For each bundle, those that may be issued next."""
        count = len(self.bundles)
        found: list[set[int]] = [set() if self.halts(index) else {index + 1} for index in range(count)]
        for index, jump in self.jumps:
            last = index + self.target.jump_rules.delay_bundles
            if last < count:
                goal = self.structure.static_target(index, jump)
                if jump.predicate is None:
                    found[last] = set()
                found[last] |= set() if goal is None else {goal}
        for loop in self.loops:
            found[loop.start - 1] = {loop.start, loop.end}
        return tuple(
            frozenset(place for each in following for place in self._around(index, each) if place < count)
            for index, following in enumerate(found)
        )

    @cached_property
    def predecessors(self) -> tuple[frozenset[int], ...]:
        """For each bundle, those that may be issued before."""
        found: list[set[int]] = [set() for _ in self.bundles]
        for index, following in enumerate(self.successors):
            for each in following:
                found[each].add(index)
        return tuple(map(frozenset, found))

    def after(self, index: int, distance: int) -> frozenset[int]:
        """Return the bundles that may be issued a number of bundles later."""
        return self._reach(index, distance, self.successors)

    def before(self, index: int, distance: int) -> frozenset[int]:
        """Return the bundles that may be issued a number of bundles earlier."""
        return self._reach(index, distance, self.predecessors)

    def _reach(self, index: int, distance: int, edges: tuple[frozenset[int], ...]) -> frozenset[int]:
        places = frozenset({index})
        for _ in range(distance):
            places = frozenset(each for place in places for each in edges[place])
        return places

    def _around(self, index: int, following: int) -> set[int]:
        """Return where the end of a loop body leads: to the next bundle and, from inside the body, to its start."""
        starts = {loop.start for loop in self.loops if loop.end == following and loop.holds(index)}
        return {following, *starts}
