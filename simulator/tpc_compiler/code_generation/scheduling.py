"""Bundles for a sequence: every instruction as early as latencies, slots and bundle rules let it stand.

Instructions keep their order wherever one depends on the other, so that no read comes early. Distances are those of
the machine itself; what may share a bundle is asked of the linter.
"""

from __future__ import annotations

from collections.abc import Sequence as Items

from castsim.isa.tpc import Bundle, Slot, Special, TpcProgram, parse
from castsim.isa.tpc.forms import TENSORS, MemoryOperation
from castsim.machines.vliw.lint_bundles import side_by_side
from castsim.machines.vliw.lint_checking import issue_distance
from castsim.machines.vliw.lint_flow import Flow
from castsim.machines.vliw.lookup_tables import LOOKUPS
from castsim.machines.vliw.plans import InstructionPlan, in_multiplier, prepared
from castsim.machines.vliw.registers import Registers
from castsim.machines.vliw.stage_latency import horizon
from castsim.targets.vliw import VliwTarget
from castsim.tpc_compiler.code_generation.allocation import allocate, spelled, text_of
from castsim.tpc_compiler.code_generation.kernel import NOTHING, AccessPlan, Line, ScheduledKernel, planned
from castsim.tpc_compiler.code_generation.sequence import EmittedInstruction, Sequence

_FILE = "<sequence>"
_SWITCHES = ("vpu.src_d", "load.src_b")


def schedule(
    sequence: Sequence, target: VliwTarget, setup: Items[EmittedInstruction] = (), name: str = "kernel"
) -> ScheduledKernel:
    """Give a sequence registers, bundles and tensors.

    `setup` is done once, before everything else: each of its instructions is visible to all that follows. It mentions
    scalars and immediates only (a store to a rounding register, for example). `name` is what messages call it.

    Raises:
        ReadError: an instruction that cannot be read.
        IllegalError: one that the target lacks; more registers or tensors than it has.
    """
    plan = planned(sequence, target)
    kept = [scalar.value for scalar in sequence.scalars]
    kept += [index for placed in plan.ports for index in placed.indices]
    numbers = allocate((*setup, *plan.steps), kept, target)
    body, advances = _body(plan, [text_of(step, numbers) for step in plan.steps], target)
    before: list[Line] = []
    for step in setup:
        before += [_line(step, text_of(step, numbers)), *[NOTHING] * (horizon(target) - 1)]
    return ScheduledKernel(
        target=target,
        setup=tuple(before),
        body=body,
        advances=advances,
        ports=plan.ports,
        scalars=tuple((scalar, spelled(scalar.value, numbers)) for scalar in sequence.scalars),
        index_registers={index.number: spelled(index, numbers) for placed in plan.ports for index in placed.indices},
        name=name,
    )


def _line(step: EmittedInstruction, text: str) -> Line:
    return tuple(text if slot is step.slot else None for slot in Slot)


def _body(plan: AccessPlan, texts: list[str], target: VliwTarget) -> tuple[tuple[Line, ...], frozenset[int]]:
    body, places = arranged([(step.slot, text) for step, text in zip(plan.steps, texts, strict=True)], target)
    return body, frozenset(places[plan.advances :])


def arranged(instructions: Items[tuple[Slot, str]], target: VliwTarget) -> tuple[tuple[Line, ...], list[int]]:
    """Return bundles for instructions in program order, given as slot and text, and the bundle of each.

    Memory is not a dependence: loads and stores of one place must not depend on their order.

    Raises:
        ReadError, IllegalError: an instruction that cannot be read, or that the target lacks.
    """
    lines = [tuple(text if slot is own else None for slot in Slot) for own, text in instructions]
    source = "".join(f"{'; '.join(text or 'nop' for text in line)}\n" for line in lines)
    program = parse(source, target.dialect, _FILE)
    places = _Scheduler(program.bundles, target).places()
    body: list[list[str | None]] = [list(NOTHING) for _ in range(max(places, default=-1) + 1)]
    for place, (slot, text) in zip(places, instructions, strict=True):
        body[place][slot] = text
    return tuple(tuple(line) for line in body), places


class _Scheduler:
    """Places the instructions of bundles that hold one each."""

    def __init__(self, singles: tuple[Bundle, ...], target: VliwTarget) -> None:
        self.target = target
        self.singles = singles
        self.registers = Registers(target)
        self.plans = [self._plan(index, bundle) for index, bundle in enumerate(singles)]
        self.written = [frozenset(cell.name for cell in plan.results) for plan in self.plans]
        self.read = [
            frozenset(cell.name for operand in plan.sources for cell in operand.cells)
            | frozenset(cell.name for cell in (plan.predicate.cells if plan.predicate else ()))
            for plan in self.plans
        ]
        self.bundles: dict[int, Bundle] = {}

    def places(self) -> list[int]:
        """Return the number of the bundle of each instruction."""
        found: list[int] = []
        for index in range(len(self.plans)):
            place = max(0, max((found[other] + self._distance(other, index) for other in range(index)), default=0))
            while not self._fits(index, place, found):
                place += 1
            found.append(place)
            self.bundles[place] = _joined(self.bundles.get(place, Bundle()), self.singles[index])
        return found

    def _plan(self, index: int, bundle: Bundle) -> InstructionPlan:
        slot = next(slot for slot in Slot if bundle.slots[slot] is not None)
        instruction = bundle.slots[slot]
        assert instruction is not None
        return prepared(instruction, index, slot, self.registers, self.target)

    def _distance(self, earlier: int, later: int) -> int:
        """Return the smallest distance in bundles from an instruction to a later one, far below 0 if there is none."""
        first, second = self.plans[earlier], self.plans[later]
        written = self.written[earlier]
        found = [-len(self.plans) * horizon(self.target)]
        if written & self.read[later]:
            operands = (*second.sources, *([second.predicate] if second.predicate else []))
            found += [
                operand.distances[first.stage]
                for operand in operands
                if any(cell.name in written for cell in operand.cells)
            ]
        if written & self.written[later]:
            found += [1, self.target.distances.tied_income]
            if in_multiplier(first.instruction, self.target):
                found.append(self.target.issue_rules.product_write_distance)
        if self.read[earlier] & self.written[later]:
            found.append(1)
        if _draws(first) and _draws(second):
            found += [1, self.target.issue_rules.random_distance, second.random.distance_from(first.random.commit)]
        return max(found)

    def _fits(self, index: int, place: int, found: list[int]) -> bool:
        """Whether a bundle has room for an instruction."""
        plan = self.plans[index]
        beside = self.bundles.get(place)
        if beside is not None:
            if beside.slots[plan.site.slot] is not None:
                return False
            flow = Flow(TpcProgram((), (_joined(beside, self.singles[index]),)), self.target)
            if not side_by_side(flow):
                return False
        if self._beside_lookup(index, place) or self._beside_switches(index, place):
            return False
        distance = self.target.issue_rules.forbidden_after_tensor_store
        if distance == 0 or plan.memory not in TENSORS:
            return True
        accesses = [(other, self.plans[number].memory) for number, other in enumerate(found)]
        if any(memory is MemoryOperation.TENSOR_STORE and place - other == distance for other, memory in accesses):
            return False
        later = (other for other, memory in accesses if memory in TENSORS)
        return plan.memory is not MemoryOperation.TENSOR_STORE or all(other - place != distance for other in later)

    def _beside_switches(self, index: int, place: int) -> bool:
        """Whether FORM_FP_NUM, whose switches fill src_d, would share its bundle with a MOV, whose type needs src_b."""
        own = _joined(self.bundles.get(place, Bundle()), self.singles[index])
        shared = any((each.first, each.second) == _SWITCHES for each in self.target.bundle_rules.overlays)
        forms = own.vpu is not None and own.vpu.mnemonic == "form_fp_num"
        return shared and forms and own.load is not None and own.load.mnemonic == "mov"

    def _beside_lookup(self, index: int, place: int) -> bool:
        """Whether a bundle or the next would hold what must not follow a look-up at once."""
        own = _joined(self.bundles.get(place, Bundle()), self.singles[index])
        before, after = (self.bundles.get(place + step, Bundle()) for step in (-1, 1))
        for pair in ((before, own), (own, after)):
            if pair[0].load is None or pair[0].load.mnemonic not in LOOKUPS:
                continue
            if any(True for _ in issue_distance(Flow(TpcProgram((), pair), self.target))):
                return True
        return False


def _draws(plan: InstructionPlan) -> bool:
    """Whether an instruction uses the vector generator or changes it; such instructions stay in order."""
    named = (Special("LFSR"), Special("LFSR_NO_CHANGE"))
    return plan.instruction.draws or any(operand in named for operand in plan.instruction.operands)


def _joined(one: Bundle, other: Bundle) -> Bundle:
    return Bundle(one.load or other.load, one.spu or other.spu, one.vpu or other.vpu, one.store or other.store)
