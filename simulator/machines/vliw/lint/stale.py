"""Reads that come before what they should see: stale values, and registers that nothing has written."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterator

from castsim.isa.tpc import Immediate, RegisterDeclaration
from castsim.isa.tpc.forms import MemoryOperation
from castsim.isa.tpc.program import PREDICATES
from castsim.machines.vliw.configuration_space import ConfigurationSpace
from castsim.machines.vliw.latency import STORED, horizon
from castsim.machines.vliw.lint.counts import trip_counts
from castsim.machines.vliw.lint.finding import LintFinding
from castsim.machines.vliw.lint.flow import Flow
from castsim.machines.vliw.lint.history import MissedWrite, Reading, WriteHistory, Writers
from castsim.machines.vliw.plans import InstructionPlan, OperandPlan
from castsim.machines.vliw.registers import is_constant


def stale_read(flow: Flow) -> Iterator[LintFinding]:
    """A register, configuration register or generator read inside the latency window of its last write.

    What happens on some paths only, or under a predicate, is possible and not certain.
    """
    places = _Places(flow)
    far = horizon(flow.target)
    history = WriteHistory(flow, places.writers, trip_counts(flow, far + 2), far + 2)
    for reading in places.readings():
        verdict = history.judge(reading)
        for missed in sorted(verdict.certain | verdict.possible, key=lambda each: (each.distance, each.writer.bundle)):
            message = _sentence(reading, missed)
            yield LintFinding("stale read", reading.bundle, message, reading.plan.site.span, missed in verdict.certain)


def unwritten_register(flow: Flow) -> Iterator[LintFinding]:
    """A register read that nothing has written on any path; possible only: the caller may have given it a value."""
    written = _written_before(flow)
    for index, plans in enumerate(flow.plans):
        if index not in flow.reached:
            continue
        for plan in plans:
            for operand in _operands(plan):
                for cell in operand.cells:
                    if cell.name not in written[index] and not cell.written:
                        message = f"{plan.instruction.mnemonic} reads {cell.name}, which nothing has written"
                        yield LintFinding("unwritten register", index, message, plan.site.span, certain=False)


def _sentence(reading: Reading, missed: MissedWrite) -> str:
    site = missed.writer
    plural = "s" * (missed.distance != 1)
    late = ", in the previous trip" if site.bundle >= reading.bundle else ""
    return (
        f"{reading.plan.instruction.mnemonic} reads {reading.place} {missed.distance} bundle{plural} after "
        f"{site.instruction.mnemonic} in bundle {site.bundle} (line {site.span.line}){late}, and gets the old value; "
        f"needed: {missed.needed}"
    )


class _Places:
    """The places that a program writes and reads: registers, and the state beside them that is written late."""

    def __init__(self, flow: Flow) -> None:
        self._flow = flow
        self._space = ConfigurationSpace(flow.target, horizon(flow.target))
        self.writers: Writers = tuple(map(self._written, flow.plans))
        self._by_place: dict[str, dict[object, InstructionPlan]] = {}  # one of those that no reader tells apart
        for own in self.writers:
            for place, plans in own.items():
                found = self._by_place.setdefault(place, {})
                for plan in plans:
                    found.setdefault((plan.stage, plan.random.commit, plan.reseeds is None), plan)

    def readings(self) -> Iterator[Reading]:
        """Yield the reads that could be stale: of a place that something writes late enough."""
        for index, plans in enumerate(self._flow.plans):
            for plan in plans if index in self._flow.reached else ():
                if not _never_acts(plan):
                    yield from self._of_registers(index, plan)
                    yield from self._of_state(index, plan)

    def _of_registers(self, index: int, plan: InstructionPlan) -> Iterator[Reading]:
        for operand in _operands(plan):
            if plan.instruction.mnemonic == "loop" and operand is not plan.predicate:
                continue  # the rule on registers of loops tells of these
            for name, file in {cell.name: cell.file for cell in operand.cells}.items():
                reach = max(map(operand.needed, self._by_place.get(name, {}).values()), default=0)
                if reach > 1:
                    in_order = file not in PREDICATES
                    yield Reading(index, plan, operand.role, name, operand.needed, reach, in_order)

    def _of_state(self, index: int, plan: InstructionPlan) -> Iterator[Reading]:
        for name in sorted(plan.generators) if plan.reseeds is None else ():
            seen = self._seen_by(plan)
            reach = max(map(seen, self._by_place.get(name, {}).values()), default=0)
            if reach:
                yield Reading(index, plan, "random", name, seen, reach, in_order=False)
        loaded = self._mapped(plan) if plan.memory is MemoryOperation.SCALAR_LOAD else None
        for name in (*plan.depends, *([loaded] if loaded else [])):
            if name in self._by_place:
                needed = self._space.distances(name)[STORED]
                yield Reading(index, plan, "configuration", name, _always(needed), needed)

    def _seen_by(self, plan: InstructionPlan) -> Callable[[InstructionPlan], int]:
        """Return from which distance on a draw sees what another instruction did to its generator."""
        reseed = self._flow.target.distances.reseed
        return lambda writer: plan.random.distance_from(writer.random.commit) if writer.reseeds is None else reseed

    def _written(self, plans: tuple[InstructionPlan, ...]) -> dict[str, tuple[InstructionPlan, ...]]:
        """Return the writes of a bundle by place."""
        found: dict[str, tuple[InstructionPlan, ...]] = {}
        for plan in plans:
            stored = self._mapped(plan) if plan.memory is MemoryOperation.SCALAR_STORE else None
            steps = plan.reseeds is None and (plan.samples is None or plan.samples.steps)
            stepped = sorted(plan.generators) if steps else ()
            state = [*(name for name in (stored, plan.reseeds) if name is not None), *stepped]
            for name in dict.fromkeys([*(cell.name for cell in plan.results), *state]):
                found[name] = (*found.get(name, ()), plan)
        return found

    def _mapped(self, plan: InstructionPlan) -> str | None:
        """Return the configuration register that an access names by an immediate address, None for others."""
        address = plan.instruction.operand("src_a")
        if not plan.instruction.switch("mmio") or not isinstance(address, Immediate):
            return None
        return self._space.name_at(address.value) or f"mmio {address.value:#x}"


def _always(needed: int) -> Callable[[InstructionPlan], int]:
    return lambda _: needed


def _operands(plan: InstructionPlan) -> tuple[OperandPlan, ...]:
    return (*plan.sources, *([plan.predicate] if plan.predicate else []))


def _never_acts(plan: InstructionPlan) -> bool:
    """Whether a predicate that is constantly false keeps an instruction from doing anything."""
    predicate = plan.instruction.predicate
    return predicate is not None and predicate.inverted and is_constant(predicate.register)


def _written_before(flow: Flow) -> list[frozenset[str]]:
    """Return, for each bundle, the registers that some path to it may have written."""
    declared = {str(each.register) for each in flow.program.declarations if isinstance(each, RegisterDeclaration)}
    own = [frozenset(cell.name for plan in plans for cell in plan.results) for plans in flow.plans]
    for loop in flow.loops:
        own[loop.head] |= {str(flow.structure.iterator(loop.depth))}
    before: list[frozenset[str] | None] = [None] * len(flow.bundles)
    if before:
        before[0] = frozenset(declared)
    waiting = deque([0] if before else [])
    while waiting:
        index = waiting.popleft()
        known = before[index]
        assert known is not None
        left = known | own[index]
        for edge in flow.edges[index]:
            old = before[edge.second]
            if old is None or not left <= old:
                before[edge.second] = left if old is None else old | left
                waiting.append(edge.second)
    return [frozenset() if each is None else each for each in before]
