"""Which bundle may follow which: delay bundles, jumps, loops, the end."""

from __future__ import annotations

from collections.abc import Mapping
from functools import cached_property

from castsim.isa.tpc import Bundle, Slot, TpcProgram
from castsim.isa.tpc.program import JUMPS
from castsim.machines.vliw.lint.edges import Edge, Jump, edges_of
from castsim.machines.vliw.plans import InstructionPlan, planned
from castsim.machines.vliw.registers import Registers
from castsim.machines.vliw.structure import LoopShape, Structure
from castsim.targets.vliw import VliwTarget


class Flow:
    """A program prepared for the linter: bundles, looked-up instructions, successors and predecessors.

    A jump through a register may go anywhere; only what follows if it is not taken is known of it.

    Raises:
        IllegalError: what the machine refuses before it runs.
    """

    def __init__(self, program: TpcProgram, target: VliwTarget) -> None:
        self.target = target
        self.program = program
        self.bundles: tuple[Bundle, ...] = program.bundles
        self.structure = Structure(program, target)
        self.registers = Registers(target)
        self.plans: tuple[tuple[InstructionPlan, ...], ...] = planned(program, self.registers, target)
        self.jumps: tuple[Jump, ...] = tuple(
            (index, bundle.spu)
            for index, bundle in enumerate(self.bundles)
            if bundle.spu is not None and bundle.spu.mnemonic in JUMPS
        )
        self.loops: tuple[LoopShape, ...] = self.structure.loops

    def at(self, index: int, slot: Slot) -> InstructionPlan | None:
        """Return the instruction in a slot of a bundle."""
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
    def writers(self) -> Mapping[str, tuple[tuple[int, InstructionPlan], ...]]:
        """For each register, the instructions that write it, with their bundles."""
        found: dict[str, list[tuple[int, InstructionPlan]]] = {}
        for index, plans in enumerate(self.plans):
            for plan in plans:
                for cell in plan.results:
                    found.setdefault(cell.name, []).append((index, plan))
        return {name: tuple(writes) for name, writes in found.items()}

    @cached_property
    def edges(self) -> tuple[tuple[Edge, ...], ...]:
        """For each bundle, the steps that may follow it."""
        halts = [self.halts(index) for index in range(len(self.bundles))]
        return edges_of(self.bundles, self.structure, self.jumps, halts, self.target)

    @cached_property
    def incoming(self) -> tuple[tuple[Edge, ...], ...]:
        """For each bundle, the steps that may lead to it from bundles that can be reached at all."""
        found: list[list[Edge]] = [[] for _ in self.bundles]
        for index, following in enumerate(self.edges):
            for edge in following if index in self.reached else ():
                found[edge.second].append(edge)
        return tuple(map(tuple, found))

    @cached_property
    def reached(self) -> frozenset[int]:
        """The bundles that some path leads to; all of them, if a jump goes where a register says."""
        if any(self.structure.static_target(index, jump) is None for index, jump in self.jumps):
            return frozenset(range(len(self.bundles)))
        found, waiting = {0}, [0]
        while waiting:
            index = waiting.pop()
            for edge in self.edges[index] if index < len(self.bundles) else ():
                if edge.second not in found:
                    found.add(edge.second)
                    waiting.append(edge.second)
        return frozenset(found)

    @cached_property
    def successors(self) -> tuple[frozenset[int], ...]:
        """For each bundle, those that may be issued next."""
        return tuple(frozenset(edge.second for edge in following) for following in self.edges)

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
