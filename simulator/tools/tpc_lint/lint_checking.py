"""All rules of the linter, and their application to a program."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Set

from castsim.isa.dataclass import replace
from castsim.isa.tpc.forms import LOCAL_VECTORS, STORES, TENSORS, Family, Half, MemoryOperation, ShortImmediates
from castsim.isa.tpc.program import (
    PREDICATES,
    File,
    Immediate,
    LabelUse,
    Register,
    RegisterDeclaration,
    Slot,
    TpcInstruction,
    TpcProgram,
    is_constant,
)
from castsim.machines.vliw.control import innermost
from castsim.machines.vliw.findings import InstructionSite, LintFinding
from castsim.machines.vliw.latency_bound import SlottedInstruction, applies
from castsim.machines.vliw.plans import VECTOR_LFSR, InstructionPlan, in_multiplier, keeps_income, rounds_by_register
from castsim.machines.vliw.stage_latency import STORED, horizon
from castsim.machines.vliw.storage import ConfigurationSpace
from castsim.targets.vliw import VliwTarget, names
from castsim.tools.tpc_lint.lint_flow import (
    Flow,
    MissedWrite,
    ReadPlace,
    WriteHistory,
    Writers,
    facts_at,
    live_behind,
    trip_counts,
)

# Results that nothing reads: liveness of registers over all paths.


def unread_result(flow: Flow) -> Iterator[LintFinding]:
    """A result whose registers are not read before they are overwritten or the program ends; code may go on reading."""
    reads = [_reads(plans) for plans in flow.plans]
    kills = [
        {name for plan in plans if not keeps_income(plan.instruction) for name in plan.written} for plans in flow.plans
    ]
    live = live_behind(flow.predecessors, lambda index, behind: (behind - kills[index]) | reads[index])
    for index, plan in flow.every:
        names = [cell.name for cell in plan.results]
        if names and not plan.samples and not live[index].intersection(names):
            message = f"the result of {plan.instruction.mnemonic} is never read: {', '.join(names)}"
            yield LintFinding("unread result", index, message, plan.site.span, certain=False)


def _reads(plans: tuple[InstructionPlan, ...]) -> set[str]:
    """Return the registers that a bundle reads, destinations that keep a part among them."""
    cells: set[str] = set()
    for plan in plans:
        keeps = plan.income is not None and keeps_income(plan.instruction)
        cells |= plan.read | (plan.written if keeps else frozenset())
    return cells


def scalar_load_in_loop(flow: Flow) -> Iterator[LintFinding]:
    """LD_G in a loop: no fault, but the core waits for it in every trip, at any distance to a reader."""
    latency = flow.target.element_loads.latency_cycles
    for index, plan in flow.every if latency else ():
        if plan.memory is MemoryOperation.ELEMENT_LOAD and innermost(flow.loops, index) is not None:
            message = (
                f"every {_name(plan)} takes {latency} cycles, during which the core is stalled; the loop repeats it"
            )
            yield LintFinding("scalar load in loop", index, message, plan.site.span, certain=False)


# Rules between bundles: how far apart instructions must be issued.

Wanted = Callable[[InstructionPlan], bool]


def tensor_store_spacing(flow: Flow) -> Iterator[LintFinding]:
    """Tensor accesses at a forbidden distance after a tensor store."""
    distance = flow.target.issue_rules.forbidden_after_tensor_store
    if not distance:
        return
    for index, _, _, later, other in _pairs(flow, lambda plan: plan.memory is MemoryOperation.TENSOR_STORE, [distance]):
        if other.memory in TENSORS:
            message = f"{other.instruction.mnemonic} is {distance} bundles after ST_TNSR of bundle {index}"
            yield LintFinding("tensor store spacing", later, message, other.site.span)


def tensor_half_spacing(flow: Flow) -> Iterator[LintFinding]:
    """Loads of tensor halves too close to each other, and whole loads too close after a lower half."""
    needed = flow.target.issue_rules.tensor_half_distance
    low, high = _loads_half(Half.LOW), _loads_half(Half.HIGH)
    yield from _too_close(flow, "tensor half spacing", low, _loads_half(Half.HIGH, None), needed)
    yield from _too_close(flow, "tensor half spacing", high, low, needed)
    for half in (low, high):
        yield from _too_close(flow, "tensor half spacing", half, half, min(needed, 1))


def mapped_store(flow: Flow) -> Iterator[LintFinding]:
    """Instructions that depend on the configuration space too soon after a store there."""
    rules = flow.target.issue_rules
    stores: Wanted = lambda plan: plan.stores_mapped  # noqa: E731
    yield from _too_close(flow, "mapped store", stores, _rounds_by_register, rules.mapped_store_to_rounding)
    for finding in _too_close(flow, "mapped store", stores, _depends_on_space, rules.mapped_store_to_access):
        # The vendor's compiler keeps two stores apart as well, and a public kernel that runs on cards does not.
        both = all(plan.stores_mapped for plan in flow.plans[finding.bundle] if plan.site.span == finding.span)
        yield replace(finding, certain=not both)


def random_spacing(flow: Flow) -> Iterator[LintFinding]:
    """Uses of the random generator too close to each other."""
    draws: Wanted = lambda plan: VECTOR_LFSR in plan.depends  # noqa: E731
    yield from _too_close(flow, "random spacing", draws, draws, flow.target.issue_rules.random_distance)


def product_write(flow: Flow) -> Iterator[LintFinding]:
    """Writes of a register too soon after a result of the multiplier pipe for it."""
    distances = range(1, flow.target.issue_rules.product_write_distance)
    multiplies: Wanted = lambda plan: in_multiplier(plan.instruction, flow.target)  # noqa: E731
    for index, plan, distance, later, other in _pairs(flow, multiplies, distances):
        for cell in other.results:
            if cell.name in plan.written:
                first = f"{plan.instruction.mnemonic} of bundle {index}, which writes it too"
                message = f"{cell.name} is written {distance} after {first}"
                yield LintFinding("product write", later, message, other.site.span)


def issue_distance(flow: Flow) -> Iterator[LintFinding]:
    """Two instructions too close to each other by a rule that no other rule of the linter covers."""
    rules = [rule for rule in flow.target.bundle_distances if not rule.linted]
    for index, plan in flow.every:
        for rule in rules:
            if not names(rule.first, plan.site.slot.name.lower(), plan.instruction.mnemonic):
                continue
            for distance, later, other in _behind(flow, index, sorted({*range(1, rule.distance), *rule.excluded})):
                first, second = (SlottedInstruction(nearby.site.slot, nearby.instruction) for nearby in (plan, other))
                if applies(rule, flow.target, first, second):
                    who = f"{other.instruction.mnemonic} is {distance} bundles after {plan.instruction.mnemonic}"
                    message = f"{who} of bundle {index}: {rule.rule}"
                    yield LintFinding("issue distance", later, message, other.site.span)


def overtaken_predicate(flow: Flow) -> Iterator[LintFinding]:
    """A write of a predicate that lands before an earlier load into it."""
    distances = range(1, flow.target.distances.predicate_load_then_write)
    loads: Wanted = lambda plan: plan.into_predicate and plan.loads  # noqa: E731
    for index, plan, distance, later, other in _pairs(flow, loads, distances):
        for cell in other.results:
            if cell.name in plan.written and not other.loads:
                message = f"{cell.name} is written {distance} after the load of bundle {index}"
                yield LintFinding("overtaken predicate", later, message, other.site.span)


def _too_close(flow: Flow, rule: str, first: Wanted, second: Wanted, needed: int) -> Iterator[LintFinding]:
    for index, plan, distance, later, other in _pairs(flow, first, range(needed)):
        if second(other) and (distance or other.site.slot > plan.site.slot):
            who = f"{other.instruction.mnemonic} is {distance} bundles after {plan.instruction.mnemonic}"
            yield LintFinding(rule, later, f"{who} of bundle {index}; needed: {needed}", other.site.span)


def _pairs(
    flow: Flow, first: Wanted, distances: Iterable[int]
) -> Iterator[tuple[int, InstructionPlan, int, int, InstructionPlan]]:
    """Yield the wanted instructions, and those at some distances after them: bundle, plan, distance, bundle, plan."""
    for index, plan in flow.every:
        for distance, later, other in _behind(flow, index, distances) if first(plan) else ():
            yield index, plan, distance, later, other


def _behind(flow: Flow, index: int, distances: Iterable[int]) -> Iterator[tuple[int, int, InstructionPlan]]:
    """Yield the instructions that may be issued at some distances after a bundle: distance, bundle, plan."""
    for distance in distances:
        for later in sorted(flow.after(index, distance)):
            yield from ((distance, later, other) for other in flow.plans[later])


def _loads_half(*halves: Half | None) -> Wanted:
    return lambda plan: plan.memory is MemoryOperation.TENSOR_LOAD and plan.instruction.form.half in halves


def _rounds_by_register(plan: InstructionPlan) -> bool:
    """Return whether an instruction takes its rounding from a register: float arithmetic, conversions in mode CSR."""
    instruction = plan.instruction
    return rounds_by_register(instruction) or instruction.switch("rounding") == "csr"


def _depends_on_space(plan: InstructionPlan) -> bool:
    """Return whether an instruction accesses the configuration space, tensors or a generator."""
    tensors = plan.memory in TENSORS or plan.memory is MemoryOperation.ADDRESS
    return plan.mapped or tensors or plan.samples is not None or plan.instruction.draws


# Reads that come before what they should see: stale values, and registers that nothing has written.


def stale_read(flow: Flow) -> Iterator[LintFinding]:
    """A register, configuration register or generator read inside the latency window of its last write.

    Occurrences on only some paths, or under a predicate, are possible rather than certain.
    """
    places = _AccessedPlaces(flow)
    far = horizon(flow.target)
    history = WriteHistory(flow, places.writers, trip_counts(flow, far + 2), far + 2)
    for reading in places.readings():
        verdict = history.judge(reading)
        for missed in sorted(verdict.certain | verdict.possible, key=lambda miss: (miss.distance, miss.writer.bundle)):
            message = _sentence(reading, missed)
            yield LintFinding("stale read", reading.bundle, message, reading.plan.site.span, missed in verdict.certain)


def unwritten_register(flow: Flow) -> Iterator[LintFinding]:
    """A register read that no path has written; possible only, because the caller may have given it a value."""
    written = _written_before(flow)
    for index, plan in flow.every:
        for cell in (cell for operand in plan.operands for cell in operand.cells):
            if index in flow.reached and cell.name not in written.get(index, ()) and not cell.written:
                message = f"{plan.instruction.mnemonic} reads {cell.name}, which is never written"
                yield LintFinding("unwritten register", index, message, plan.site.span, certain=False)


def _sentence(reading: ReadPlace, missed: MissedWrite) -> str:
    site = missed.writer
    plural = "s" * (missed.distance != 1)
    late = ", in the previous trip" if site.bundle >= reading.bundle else ""
    return (
        f"{reading.plan.instruction.mnemonic} reads {reading.place} {missed.distance} bundle{plural} after "
        f"{site.instruction.mnemonic} in bundle {site.bundle} (line {site.span.line}){late}, and gets the old value; "
        f"needed: {missed.needed}"
    )


class _AccessedPlaces:
    """The places that a program writes and reads: registers, and other state that is written late."""

    def __init__(self, flow: Flow) -> None:
        self._flow = flow
        self._space = ConfigurationSpace(flow.target, horizon(flow.target))
        self.writers: Writers = tuple(map(self._written, flow.plans))
        self._by_place: dict[str, dict[object, InstructionPlan]] = {}  # one of those that no reader tells apart
        for own in self.writers:
            for cell, plans in own.items():
                accesses = self._by_place.setdefault(cell, {})
                for plan in plans:
                    accesses.setdefault((plan.stage, plan.random.commit, plan.reseeds is None), plan)

    def readings(self) -> Iterator[ReadPlace]:
        """Yield the reads that may be stale: of a place that is written late enough."""
        for index, plan in self._flow.every:
            if index in self._flow.reached and not _never_acts(plan):
                yield from self._of_registers(index, plan)
                yield from self._of_state(index, plan)

    def _of_registers(self, index: int, plan: InstructionPlan) -> Iterator[ReadPlace]:
        for operand in plan.operands:
            if plan.instruction.mnemonic == "loop" and operand is not plan.predicate:
                continue  # the rule on registers of loops tells of these
            for name, file in {cell.name: cell.file for cell in operand.cells}.items():
                reach = max(map(operand.needed, self._by_place.get(name, {}).values()), default=0)
                if reach > 1:
                    in_order = file not in PREDICATES
                    yield ReadPlace(index, plan, operand.role, name, operand.needed, reach, in_order)

    def _of_state(self, index: int, plan: InstructionPlan) -> Iterator[ReadPlace]:
        for name in sorted(plan.generators) if plan.reseeds is None else ():
            seen = self._seen_by(plan)
            reach = max(map(seen, self._by_place.get(name, {}).values()), default=0)
            if reach:
                yield ReadPlace(index, plan, "random", name, seen, reach, in_order=False)
        loaded = self._mapped(plan) if plan.memory is MemoryOperation.SCALAR_LOAD else None
        for name in (*plan.depends, *([loaded] if loaded else [])):
            if name in self._by_place:
                needed = self._space.distances(name)[STORED]
                yield ReadPlace(index, plan, "configuration", name, _always(needed), needed)

    def _seen_by(self, plan: InstructionPlan) -> Callable[[InstructionPlan], int]:
        """Return the distance from which a draw sees the effect of another instruction on its generator."""
        reseed = self._flow.target.distances.reseed
        return lambda writer: plan.random.distance_from(writer.random.commit) if writer.reseeds is None else reseed

    def _written(self, plans: tuple[InstructionPlan, ...]) -> dict[str, tuple[InstructionPlan, ...]]:
        """Return the writes of a bundle by place."""
        writers: dict[str, tuple[InstructionPlan, ...]] = {}
        for plan in plans:
            stored = self._mapped(plan) if plan.memory is MemoryOperation.SCALAR_STORE else None
            steps = plan.reseeds is None and (plan.samples is None or plan.samples.steps)
            stepped = sorted(plan.generators) if steps else ()
            state = [*(name for name in (stored, plan.reseeds) if name is not None), *stepped]
            for name in dict.fromkeys([*(cell.name for cell in plan.results), *state]):
                writers[name] = (*writers.get(name, ()), plan)
        return writers

    def _mapped(self, plan: InstructionPlan) -> str | None:
        """Return the configuration register that an access names by an immediate address, None for others."""
        address = plan.instruction.operand("src_a")
        if not plan.mapped or not isinstance(address, Immediate):
            return None
        return self._space.name_at(address.value) or f"mmio {address.value:#x}"


def _always(needed: int) -> Callable[[InstructionPlan], int]:
    return lambda _: needed


def _never_acts(plan: InstructionPlan) -> bool:
    """Return whether a predicate that is constantly false keeps an instruction from doing anything."""
    predicate = plan.instruction.predicate
    return predicate is not None and predicate.inverted and is_constant(predicate.register)


def _written_before(flow: Flow) -> Mapping[int, Set[str]]:
    """Return, for each reached bundle, the registers that some path to it may have written."""
    declared = {
        str(declaration.register)
        for declaration in flow.program.declarations
        if isinstance(declaration, RegisterDeclaration)
    }
    own = [frozenset(cell.name for plan in plans for cell in plan.results) for plans in flow.plans]
    for loop in flow.loops:
        own[loop.head] |= {str(flow.structure.iterator(loop.depth))}
    return facts_at(flow.successors, lambda index, facts: facts | own[index], {0: declared} if own else {})


# Rules of jumps, hardware loops and the end of the program.

_BOUNDS = ("start", "bound", "step")


def jump_delay(flow: Flow) -> Iterator[LintFinding]:
    """An instruction in a delay bundle of a jump, outside the permitted slots."""
    rules = flow.target.jump_rules
    for index, jump in flow.jumps:
        for delay in range(index + 1, index + 1 + rules.delay_bundles):
            if delay >= len(flow.bundles):
                yield LintFinding("jump delay", index, f"no delay bundle follows {jump.mnemonic}", jump.span)
                continue
            for plan in flow.plans[delay]:
                if plan.site.slot.name.lower() not in rules.delay_slots:
                    message = f"{plan.instruction.mnemonic} in the delay bundle of {jump.mnemonic}, which allows only"
                    yield LintFinding("jump delay", delay, f"{message} {', '.join(rules.delay_slots)}", plan.site.span)


def convert_before_delay(flow: Flow) -> Iterator[LintFinding]:
    """A scalar conversion shortly before the delay bundle of a jump or loop, or in it."""
    reach = flow.target.jump_rules.scalar_convert_distance
    ends = [index + flow.target.jump_rules.delay_bundles for index, _ in flow.jumps]
    ends += [loop.start - 1 for loop in flow.loops]
    for delay in ends:
        if delay >= len(flow.bundles):
            continue
        for distance in range(reach + 1):
            for index in sorted(flow.before(delay, distance)):
                plan = flow.at(index, Slot.SPU)
                if plan is not None and plan.instruction.form.family is Family.CONVERSION:
                    message = f"{plan.instruction.mnemonic} of the SPU is {distance} before delay bundle {delay}"
                    yield LintFinding("convert before delay", index, message, plan.site.span)


def after_jump(flow: Flow) -> Iterator[LintFinding]:
    """A scalar conversion or HALT too soon after a jump, whether or not it is taken."""
    rules = flow.target.jump_rules
    for index, jump in flow.jumps:
        for distance in range(1, max(rules.scalar_convert_after, rules.halt_distance)):
            for later in sorted(flow.after(index, distance)):
                plan = flow.at(later, Slot.SPU)
                if plan is None:
                    continue
                mnemonic = plan.instruction.mnemonic
                needed = rules.halt_distance if mnemonic == "halt" else 0
                needed = rules.scalar_convert_after if plan.instruction.form.family is Family.CONVERSION else needed
                if distance < needed:
                    message = f"{mnemonic} is {distance} after {jump.mnemonic} of bundle {index}; needed: {needed}"
                    yield LintFinding("after jump", later, message, plan.site.span)


def loop_body(flow: Flow) -> Iterator[LintFinding]:
    """A loop body that is too short."""
    least = flow.target.loop_rules.body_bundles
    for loop in flow.loops:
        if loop.end - loop.start < least:
            message = f"the body of the loop has {loop.end - loop.start} bundles; needed: {least}"
            yield LintFinding("loop body", loop.head, message, flow.loop_head(loop).site.span)


def loop_registers(flow: Flow) -> Iterator[LintFinding]:
    """Start, bound or step of a loop written too shortly before it."""
    needed = flow.target.loop_rules.register_distance
    for loop in flow.loops:
        head = flow.loop_head(loop)
        read = {str(head.instruction.operand(r)) for r in _BOUNDS if isinstance(head.instruction.operand(r), Register)}
        for distance in range(1, needed):
            for index in sorted(flow.before(loop.head, distance)):
                for plan in flow.plans[index]:
                    for cell in plan.results:
                        if cell.name in read:
                            message = f"{cell.name} is written {distance} bundles before LOOP; needed: {needed}"
                            yield LintFinding("loop registers", index, message, plan.site.span)


def iterator_read(flow: Flow) -> Iterator[LintFinding]:
    """A loop's iterator read shortly before the loop, or by the VPU at the end of its body."""
    rules = flow.target.loop_rules
    for loop in flow.loops:
        name = str(flow.structure.iterator(loop.depth))
        for distance in range(1, max(rules.iterator_before, rules.iterator_before_access) + 1):
            for index in sorted(flow.before(loop.head, distance)):
                for plan in flow.plans[index]:
                    most = rules.iterator_before if plan.site.slot is Slot.VPU else rules.iterator_before_access
                    if distance <= most and _uses(plan, name):
                        message = (
                            f"{plan.instruction.mnemonic} reads the iterator {name} in the {most} bundles before LOOP"
                        )
                        yield LintFinding("iterator read", index, message, plan.site.span)
        for index in range(max(loop.start, loop.end - rules.iterator_at_end), loop.end):
            vector = flow.at(index, Slot.VPU)
            if vector is not None and _uses(vector, name):
                where = f"in the last {rules.iterator_at_end} bundles of the body"
                message = f"{vector.instruction.mnemonic} reads the iterator {name} {where}"
                yield LintFinding("iterator read", index, message, vector.site.span)


def _uses(plan: InstructionPlan, iterator: str) -> bool:
    """Return whether a VPU instruction, an access of vector memory or a MOV of the LOAD slot reads a register."""
    slot, moves = plan.site.slot, plan.instruction.mnemonic == "mov"
    concerned = slot is Slot.VPU or plan.memory in LOCAL_VECTORS or (slot is Slot.LOAD and moves)
    return concerned and any(cell.name == iterator for source in plan.sources for cell in source.cells)


def jump_in_loop(flow: Flow) -> Iterator[LintFinding]:
    """A jump, or its target, too near the end of a loop body."""
    rules = flow.target.loop_rules
    for index, jump in flow.jumps:
        loop = innermost(flow.loops, index)
        if loop is None:
            continue
        if loop.end - index < rules.jump_before_end:
            message = f"{jump.mnemonic} is {loop.end - index} before the end of the loop body; needed: "
            yield LintFinding("jump in loop", index, f"{message}{rules.jump_before_end}", jump.span)
        goal = flow.structure.static_target(index, jump)
        if goal is not None and loop.end - goal < rules.target_before_end:
            message = f"{jump.mnemonic} goes to {loop.end - goal} before the end of the loop body; needed: "
            yield LintFinding("jump in loop", index, f"{message}{rules.target_before_end}", jump.span)


def halt(flow: Flow) -> Iterator[LintFinding]:
    """A missing HALT, or one without all the slots that it needs."""
    wanted = flow.target.end_rules.halt_slots
    halts = [index for index in range(len(flow.bundles)) if flow.halts(index)]
    if not halts:
        last = len(flow.bundles) - 1
        if last >= 0:
            yield LintFinding("halt", last, "the program has no HALT", flow.bundles[last].span)
    for index in halts:
        slots = [plan.site.slot.name.lower() for plan in flow.plans[index] if plan.instruction.mnemonic == "halt"]
        if set(slots) != set(wanted):
            message = f"HALT is in {', '.join(slots)}; it needs {', '.join(wanted)} of one bundle"
            yield LintFinding("halt", index, message, flow.bundles[index].span)


def stores_at_end(flow: Flow) -> Iterator[LintFinding]:
    """Too few empty bundles after the last store; those after HALT count."""
    needed = flow.target.end_rules.empty_after_store
    stores = [(index, plan) for index, plans in enumerate(flow.plans) for plan in plans if plan.memory in STORES]
    if not stores:
        return
    index, plan = stores[-1]
    empty = sum(not plans for plans in flow.plans[index + 1 :])
    if empty < needed:
        message = f"{empty} empty bundles follow the last store; needed: {needed}"
        yield LintFinding("stores at end", index, message, plan.site.span)


# Rules within one bundle: shared fields, immediates, units that exclude each other.

_FIELD_OF_ROLE = {"src_a": "src_a", "src_b": "src_b", "src_c": "src_c", "src_d": "src_d"}
_FIELDS_BESIDE_OPERANDS = {
    (Slot.VPU, "mov_dg.all"): ("src_c",),
    (Slot.VPU, "mov_dg.unpack"): ("src_c",),
    (Slot.VPU, "unpack"): ("src_c",),
    (Slot.VPU, "form_fp_num"): ("src_d",),
    (Slot.LOAD, "ld_l"): ("src_b",),
    (Slot.LOAD, "set_indx"): ("src_b",),
}
"""Operand fields that hold switches or masks.

Source: docs/reference/tpc.md section 1 (bundle conflicts) and 8 (fields).
"""
_TENSOR_FIELD = "src_b"
_TYPE_FIELD = "src_b"  # of a MOV in the LOAD slot
_STORED_DESTINATION = "src_c"  # the STORE slot has no destination field
_IMMEDIATE_ROLES = ("src_a", "src_b", "src_c", "src_d", "byte_mask")
_MINIFLOAT = "f8_143"
_MINIFLOAT_OPERATIONS = ("convert", "mul", "add", "sub", "mac", "madd", "nearbyint")


def slot_count(flow: Flow) -> Iterator[LintFinding]:
    """A line that omits slots: a slot forgotten at its beginning looks the same as one omitted at its end."""
    for index, bundle in enumerate(flow.bundles):
        if bundle.written is not None and bundle.written < len(Slot):
            message = f"{bundle.written} of {len(Slot)} slots are written; the missing ones count as nop"
            yield LintFinding("slot count", index, message, bundle.span)


def field_overlay(flow: Flow) -> Iterator[LintFinding]:
    """Two instructions need operand fields that share bits of the bundle."""
    for index, plans in enumerate(flow.plans):
        used = {f"{plan.site.slot.name.lower()}.{field}": plan for plan in plans for field in _fields(plan)}
        for overlay in flow.target.bundle_rules.overlays:
            if overlay.first in used and overlay.second in used:
                first, second = used[overlay.first], used[overlay.second]
                yield LintFinding(
                    "field overlay",
                    index,
                    f"{_name(first)} needs {overlay.first}, which has the same bits as {overlay.second} of "
                    f"{_name(second)}",
                    second.site.span,
                )


def immediates(flow: Flow) -> Iterator[LintFinding]:
    """More different 32-bit immediates than the bundle has fields for.

    Small ones are separate operand codes on some generations (docs/reference/tpc.md section 8).
    """
    short = flow.target.encoding.short
    limit = flow.target.bundle_rules.immediates
    for index, plans in enumerate(flow.plans):
        values = [value for plan in plans for value in _immediates(plan.site, short=short)]
        different = list(dict.fromkeys(values))
        if len(different) > limit:
            shown = ", ".join(different)
            message = f"{len(different)} different immediates ({shown}); a bundle can hold {limit}"
            yield LintFinding("immediates", index, message, flow.bundles[index].span)


def shared_predicate(flow: Flow) -> Iterator[LintFinding]:
    """Slots with one predicate field that have different predicates."""
    names = flow.target.bundle_rules.shared_predicate
    for index, plans in enumerate(flow.plans):
        inside = [plan for plan in plans if plan.site.slot.name.lower() in names]
        different = {str(plan.instruction.predicate) for plan in inside}
        if len(different) > 1:
            shown = " and ".join(f"{_name(p)} under {p.instruction.predicate or 'SP0'}" for p in inside)
            message = f"{shown}: the slots {' and '.join(names)} share a predicate"
            yield LintFinding("shared predicate", index, message, inside[-1].site.span)


def two_results(flow: Flow) -> Iterator[LintFinding]:
    """Two instructions of a bundle write one register."""
    for index, plans in enumerate(flow.plans):
        writers: dict[str, InstructionPlan] = {}
        for plan in plans:
            for cell in plan.results:
                first = writers.setdefault(cell.name, plan)
                if first is not plan:
                    message = f"{_name(first)} and {_name(plan)} write {cell.name} in one bundle"
                    yield LintFinding("two results", index, message, plan.site.span)


def loop_bundle(flow: Flow) -> Iterator[LintFinding]:
    """LOOP in a bundle with other instructions, although it needs all fields."""
    for loop in flow.loops:
        for plan in flow.plans[loop.head]:
            if plan.instruction.mnemonic != "loop":
                message = f"{_name(plan)} beside LOOP, whose fields fill the whole bundle"
                yield LintFinding("loop bundle", loop.head, message, plan.site.span)


def scalar_beside_load(flow: Flow) -> Iterator[LintFinding]:
    """A VPU instruction with a scalar operand beside a load or move on the same path."""
    if not flow.target.bundle_rules.vector_scalar_excludes_load:
        return
    for index in range(len(flow.bundles)):
        vector, load = flow.at(index, Slot.VPU), flow.at(index, Slot.LOAD)
        if vector is None or load is None or not _reads_scalar(vector.instruction):
            continue
        moved = load.instruction.mnemonic == "mov" and _reads_scalar(load.instruction) and load.vector
        if moved or load.memory is MemoryOperation.VECTOR_LOAD:
            message = f"{_name(vector)} has a scalar operand, so {_name(load)} cannot be in the LOAD slot"
            yield LintFinding("scalar beside load", index, message, load.site.span)


def minifloat_beside_store(flow: Flow) -> Iterator[LintFinding]:
    """A VPU operation on f8_143 beside a tensor store."""
    if not flow.target.bundle_rules.minifloat_excludes_tensor_store:
        return
    for index in range(len(flow.bundles)):
        vector, store = flow.at(index, Slot.VPU), flow.at(index, Slot.STORE)
        if vector is None or store is None or store.memory is not MemoryOperation.TENSOR_STORE:
            continue
        kinds = (vector.instruction.type, vector.instruction.switch("target_type"))
        if _MINIFLOAT in kinds and vector.instruction.mnemonic in _MINIFLOAT_OPERATIONS:
            message = f"{_name(vector)} on {_MINIFLOAT} cannot share a bundle with {_name(store)}"
            yield LintFinding("minifloat beside store", index, message, store.site.span)


_BETWEEN_INSTRUCTIONS = (
    two_results,
    field_overlay,
    immediates,
    shared_predicate,
    scalar_beside_load,
    minifloat_beside_store,
)


def side_by_side(flow: Flow) -> bool:
    """Return whether the instructions of each bundle may share it; schedulers use this check."""
    return not any(True for rule in _BETWEEN_INSTRUCTIONS for _ in rule(flow))


def _fields(plan: InstructionPlan) -> tuple[str, ...]:
    """Return the operand fields that an instruction occupies, as far as overlays care."""
    slot, instruction = plan.site.slot, plan.instruction
    fields = list(_FIELDS_BESIDE_OPERANDS.get((slot, instruction.mnemonic), ()))
    if slot is Slot.LOAD and instruction.mnemonic == "mov" and instruction.type is not None:
        fields.append(_TYPE_FIELD)
    for spec in instruction.form.operands:
        if spec.role in _FIELD_OF_ROLE:
            fields.append(_FIELD_OF_ROLE[spec.role])
        elif spec.role == "tensor":
            fields.append(_TENSOR_FIELD)
        elif spec.role == "dest" and slot is Slot.STORE:
            fields.append(_STORED_DESTINATION)
    return tuple(fields)


def _immediates(site: InstructionSite, *, short: ShortImmediates) -> Iterator[str]:
    """Yield the values that need the bundle's immediate field; a jump's label is one."""
    instruction = site.instruction
    for spec, operand in instruction.specified:
        if spec.role not in _IMMEDIATE_ROLES:
            continue
        if isinstance(operand, LabelUse):
            yield operand.name
        elif isinstance(operand, Immediate):
            fits = spec.role != "byte_mask" and operand.value < short.count(instruction.type)
            if not fits:
                yield f"{operand.value:#x}"


def _reads_scalar(instruction: TpcInstruction) -> bool:
    """Return whether a source is an S register."""
    return any(
        isinstance(operand, Register) and operand.file is File.S and spec.role != "dest"
        for spec, operand in instruction.specified
    )


def _name(plan: InstructionPlan) -> str:
    return plan.instruction.mnemonic


# All rules, and their application to a program.

RULES: Mapping[str, Callable[[Flow], Iterator[LintFinding]]] = {
    "stale read": stale_read,
    "slot count": slot_count,
    "two results": two_results,
    "field overlay": field_overlay,
    "immediates": immediates,
    "shared predicate": shared_predicate,
    "loop bundle": loop_bundle,
    "scalar beside load": scalar_beside_load,
    "minifloat beside store": minifloat_beside_store,
    "tensor store spacing": tensor_store_spacing,
    "tensor half spacing": tensor_half_spacing,
    "mapped store": mapped_store,
    "random spacing": random_spacing,
    "product write": product_write,
    "issue distance": issue_distance,
    "overtaken predicate": overtaken_predicate,
    "jump delay": jump_delay,
    "convert before delay": convert_before_delay,
    "after jump": after_jump,
    "loop body": loop_body,
    "loop registers": loop_registers,
    "iterator read": iterator_read,
    "jump in loop": jump_in_loop,
    "halt": halt,
    "stores at end": stores_at_end,
    "unwritten register": unwritten_register,
    "unread result": unread_result,
    "scalar load in loop": scalar_load_in_loop,
}
"""The names of the rules in findings, with their checks."""


def lint(program: TpcProgram, target: VliwTarget) -> tuple[LintFinding, ...]:
    """Return every violation of an issue rule, in text order.

    Raises:
        IllegalError: the machine refuses an instruction or path before the run.
    """
    return breaches(Flow(program, target))


def breaches(flow: Flow) -> tuple[LintFinding, ...]:
    """Return every violation of an issue rule by a prepared program, in text order."""
    findings = dict.fromkeys(finding for rule in RULES.values() for finding in rule(flow))
    return tuple(sorted(findings, key=lambda finding: (finding.bundle, list(RULES).index(finding.rule))))
