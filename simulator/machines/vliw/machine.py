"""The core: issues bundles in program order, reads and commits registers, follows loops and jumps.

One walk computes values and path, because addresses and conditions are scalar values; its timing result is the
operation tree. Without values only the scalar side is computed (design: path first, values second, time third).
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import TypeVar

import numpy as np
from numpy.typing import NDArray

from castsim.execution.outcomes import CastBatch, CastPlace, CastTally, Judge, Listener, heard_by
from castsim.execution.run_limits import walk_limit
from castsim.execution.tree import Access, Block, Instruction, Lowered, Tree
from castsim.isa.dataclass import dataclass, field
from castsim.isa.errors import CastsimError, EngineError, Span, WarningKind, WarningText
from castsim.isa.formats import FORMATS, Codes, Format, Overflow, Rounding
from castsim.isa.tpc.forms import LOADS, Family, MemoryOperation
from castsim.isa.tpc.program import (
    JUMPS,
    WORD_BITS,
    WORD_BYTES,
    Bundle,
    File,
    Immediate,
    Register,
    RegisterDeclaration,
    Slot,
    TpcProgram,
)
from castsim.machines.vliw.control import Control, IssueTrace, RunningLoop, Structure, begins_loop, described, name_of
from castsim.machines.vliw.findings import Findings, StaleReadKind
from castsim.machines.vliw.lookup_tables import uses_tables
from castsim.machines.vliw.memory_access import GlobalAccess, LocalAccess, needs_values
from castsim.machines.vliw.plans import Generator, InstructionPlan, NotComputed, OperandPlan, planned, read_beside
from castsim.machines.vliw.semantics import PreparedInstruction
from castsim.machines.vliw.semantics.convert import (
    ConvertInteger,
    ElementPlacement,
    PreparedConversion,
    admitted,
    policy_of,
)
from castsim.machines.vliw.semantics.operands import (
    Effects,
    OperandValues,
    State,
    Value,
    Words,
    convert_mode,
    element_format,
    elements,
    given,
    integers,
)
from castsim.machines.vliw.stage_latency import BundleOperation, horizon, main_pipe, operand_key
from castsim.machines.vliw.storage import ConfigurationSpace, GlobalMemory, Held, Registers, Write, parts_of, vector
from castsim.machines.vliw.trips import Trips, trips_left
from castsim.numerics.blocks import code_dtype
from castsim.targets.tpc_compiler import descriptors_of
from castsim.targets.vliw import VliwTarget
from castsim.targets.vliw_latency import PREDICATE

# What a bundle means for time, found while it is issued: occupied slots, accesses of global memory, last effect.


class BundleRecorder:
    """Builder of the tree node of each issued bundle; equal ones are one object."""

    def __init__(self, bundles: tuple[Bundle, ...], plans: tuple[tuple[InstructionPlan, ...], ...], target: VliwTarget):
        self._names = [tuple(map(name_of, bundle.slots)) for bundle in bundles]
        per_register = target.option("all_lanes_cycles") == "per_register"
        by_slot = [{plan.site.slot: plan for plan in own} for own in plans]
        self._slot_cycles = [
            tuple(_cycles(own.get(slot), per_register=per_register) for slot in Slot) for own in by_slot
        ]
        self._effect = [max((_effect(plan, target) for plan in own), default=1) for own in plans]
        self._due = [max((plan.stage.number + 1 for plan in own if plan.accesses[0]), default=0) for own in plans]
        self._made: dict[tuple[object, ...], Lowered] = {}

    def node(
        self, index: int, loads: int, stores: int, bubbles: int, touched: tuple[Access, ...], elements: int = 0
    ) -> Lowered:
        """Return the node of one issue of a bundle; `elements` of the loads are LD_G."""
        key = (index, loads, stores, bubbles, touched, elements)
        lowered = self._made.get(key)
        if lowered is None:
            operation = BundleOperation(
                slot_cycles=self._slot_cycles[index],  # type: ignore[arg-type]  # four slots
                names=self._names[index],  # type: ignore[arg-type]
                loads=loads,
                stores=stores,
                data_due=self._due[index] if loads else 0,
                effect=self._effect[index],
                bubbles=bubbles,
                elements=elements,
            )
            lowered = Lowered(index, Block((operation,)), touched)
            self._made[key] = lowered
        return lowered


def _cycles(plan: InstructionPlan | None, *, per_register: bool) -> int:
    """Return how long an instruction occupies its slot; a conversion with several results may take longer."""
    if plan is None:
        return 0
    if per_register and plan.instruction.form.family is Family.CONVERSION:
        return max(1, len(plan.results))
    return 1


def _effect(plan: InstructionPlan, target: VliwTarget) -> int:
    """Return the cycles from issue until the result is visible to the earliest reader, or a store has its data."""
    if plan.results:
        return plan.stage.number + 1
    data = plan.instruction.operand("src_c")
    if plan.site.slot is Slot.STORE and isinstance(data, Register):
        port = target.latencies.port_stage(operand_key(target, Slot.STORE, plan.instruction, "src_c", str(data.file)))
        return 1 if port is None else port + 1
    return 1


# What the CONVERTs of a program did to their numbers, judged from the operands and results of each execution.

_SHIFTED = FORMATS["f64"]
"""Holds every shifted integer exactly."""

_FARTHEST = 900
"""Maximum shift: more bits only give a fraction below every step, or a number beyond every range, like this one."""


@dataclass(slots=True)
class LaneConversionCounts:
    """Counter of conversions by line: lanes that an instruction converts and its predicate admits."""

    places: Mapping[int, CastPlace]
    tally: CastTally = field(default_factory=CastTally)
    _batches: dict[tuple[object, ...], CastBatch] = field(default_factory=dict)

    @classmethod
    def of(cls, plans: Sequence[Sequence[InstructionPlan]]) -> LaneConversionCounts:
        """Return the empty counts of a program."""
        return cls({id(plan.meaning): _place(plan) for own in plans for plan in own if plan.casts})

    def see(self, meaning: PreparedInstruction, operands: OperandValues, state: State, effects: Effects) -> None:
        """Count the effect of an executed instruction, if it is a conversion."""
        cast_place = self.places.get(id(meaning))
        if cast_place is None or effects.result is None:
            return
        unit = meaning.unit
        if isinstance(unit, PreparedConversion):
            self._converted(unit, cast_place, operands, state, effects.result)
        elif isinstance(unit, ConvertInteger):
            self._narrowed(unit, cast_place, operands, effects.result)

    def listener(self, plan: InstructionPlan, operands: OperandValues) -> Listener:
        """Return a listener for instructions that round to integral values or saturate, in admitted lanes."""

        def hear(judge: Judge, before: Codes, after: Codes, converts: bool) -> None:
            predicate = operands.predicate
            if isinstance(predicate, np.ndarray) and before.ndim and predicate.size % max(1, before.size) == 0:
                active = predicate.reshape(-1)[:: predicate.size // before.size]
                before, after = before.reshape(-1)[active], after.reshape(-1)[active]
            line, mnemonic = plan.site.span.line, plan.instruction.mnemonic
            self.tally.count(line, mnemonic, judge, before, after, converts=converts)

        return hear

    def _converted(
        self, unit: PreparedConversion, cast_place: CastPlace, operands: OperandValues, state: State, result: Value
    ) -> None:
        target = unit.target
        src, dst = (element_format(name, target, state) for name in (unit.src, unit.dst))
        mode = convert_mode(unit.mode, target, state, unit.instruction.span)
        assert mode.rounding is not None
        key = id(unit), src.name, dst.name, mode.rounding
        batch = self._batches.get(key)
        if batch is None:
            wraps = policy_of(src, dst, mode, unit.clip, target).overflow is Overflow.WRAP
            batch = self._batches[key] = self.tally.batch(cast_place, Judge(src, dst, mode.rounding, wraps))
        before = _codes(given(unit.instruction, operands, "src_a"), src, unit.placement, scatter=False)
        self._add(batch, before, _codes(result, dst, unit.placement, scatter=True), unit.placement, operands)

    def _narrowed(
        self, unit: ConvertInteger, cast_place: CastPlace, operands: OperandValues, result: Value
    ) -> None:  # fmt: skip
        """Count a narrowing with shift: the number that is cast is the shifted one."""
        batch = self._batches.get((id(unit),))
        if batch is None:
            rounding = unit.mode.rounding or Rounding.RINT
            batch = self._batches[id(unit),] = self.tally.batch(
                cast_place, Judge(_SHIFTED, unit.dst, rounding, wraps=False)
            )
        codes = _codes(given(unit.instruction, operands, "src_a"), unit.src, unit.placement, scatter=False)
        shifts = np.clip(unit.shifts(given(unit.instruction, operands, "src_b")), -_FARTHEST, _FARTHEST).astype(
            np.int32
        )
        numbers = np.ldexp(integers(codes, unit.src).astype(np.float64), shifts)
        after = _codes(result, unit.dst, unit.placement, scatter=True)
        self._add(batch, numbers.view(np.uint64), after, unit.placement, operands)

    def _add(
        self, batch: CastBatch, before: Codes, after: Codes, placement: ElementPlacement | None, operands: OperandValues
    ) -> None:
        active = admitted(placement, operands)
        batch.add(*((before, after) if active is None else (before[active], after[active])))


def _place(plan: InstructionPlan) -> CastPlace:
    ((src, dst),) = plan.casts
    return CastPlace(plan.site.span.line, f"{plan.instruction.mnemonic} {src} -> {dst}", src, dst)


def _codes(value: Value, fmt: Format, placement: ElementPlacement | None, *, scatter: bool) -> Codes:
    """Return the elements that a conversion reads, or with `scatter` those that it writes."""
    if placement is None:
        assert isinstance(value, int)
        return np.array([value & (1 << fmt.bits) - 1], code_dtype(fmt))
    return elements(value, fmt)[placement.scatter if scatter else placement.gather]


# How many bundles a machine executes one by one before it gives up.

_MAY_SKIP = frozenset(("halt", "jmpr", "jmpa"))
"""The instructions that can end a trip before its last bundle."""


class WalkBudget:
    """The rest of a limit; None means no limit."""

    def __init__(self, limit: int | None, structure: Structure, plans: tuple[tuple[InstructionPlan, ...], ...]) -> None:
        self._limit = limit
        self._left = limit
        self._structure = structure
        self._plans = plans

    def spend(self, pc: int) -> None:
        """Deduct the next bundle.

        Raises:
            LimitError: nothing is left; the error has the position of the outermost loop around the bundle, or its own.
        """
        if self._limit is None or self._left is None:
            return
        if self._left == 0:
            around = self._structure.enclosing[pc]
            bundle_index = self._structure.loops[around[0]].head if around else pc
            raise walk_limit(self._limit, "bundles executed one by one", self._structure.bundles[bundle_index].span)
        self._left -= 1

    def foresee(self, plan: InstructionPlan, turn: RunningLoop) -> None:
        """Reject a loop without trips to skip if it exceeds the rest of the budget.

        Raises:
            LimitError: it does; the error has the position of LOOP.
        """
        if self._limit is None or self._left is None:
            return
        body = range(turn.shape.start, turn.shape.end)
        if any(
            instruction_plan.instruction.mnemonic in _MAY_SKIP
            for index in body
            for instruction_plan in self._plans[index]
        ):
            return
        bundles = (trips_left(turn) + 1) * len(body)
        if bundles > self._left:
            raise walk_limit(self._limit, f"{bundles} bundles of this loop executed one by one", plan.site.span)


Mask = NDArray[np.bool_]
_State = TypeVar("_State")

_PROGRESS = 1 << 16
"""Issued bundles between two signs of life."""


class VliwCore:
    """One core with a program.

    `values` False computes scalars only; `skip` then skips trips of loops that repeat earlier ones. `checked` records
    findings, which are `findings.all()` after `run`; `stop` raises at the first stale read. `remarks` are uses that no
    source documents, with their positions. `casts` counts conversions, None without values.

    Raises:
        ReadError, IllegalError: static errors in registers, loops, jumps or declarations.
    """

    def __init__(
        self,
        program: TpcProgram,
        target: VliwTarget,
        memory: GlobalMemory,
        *,
        values: bool = True,
        checked: bool = True,
        stop: bool = False,
        skip: bool = True,
    ) -> None:
        self.target = target
        self.findings = Findings(wanted=checked, stop=stop)
        self.remarks: dict[WarningText, None] = {}
        self.horizon = horizon(target, program)
        self.registers = Registers(target)
        self.configuration = ConfigurationSpace(target, self.horizon)
        descriptors = descriptors_of(target)
        if descriptors is not None:
            self.configuration.describe(memory.tensors.values(), descriptors)
        self.local = LocalAccess(target, self.configuration, self.findings, tables=uses_tables(program))
        writable = frozenset(tensor.name for tensor in memory.declared if tensor.direction != "in")
        self.globals = GlobalAccess(target, memory, writable)
        reseed = target.distances.reseed
        words = np.zeros(target.registers.vector_bytes // WORD_BYTES, np.uint32)
        self.vector_lfsr: Generator[Words] = Generator("LFSR", words, reseed, self.horizon)
        self.scalar_lfsr: Generator[int] = Generator("S_LFSR", 0, reseed, self.horizon)
        self.program = program
        self.structure = Structure(program, target)
        self.plans = planned(program, self.registers, target, memory.tables)
        self._beside = tuple(map(read_beside, self.plans))
        self._values = values
        self.casts = LaneConversionCounts.of(self.plans) if values else None
        self._trace = IssueTrace()
        self._recorder = BundleRecorder(program.bundles, self.plans, target)
        self._control = Control(self.structure, self.registers, self._trace, target)
        self._budget = WalkBudget(None, self.structure, self.plans)
        self._trips: Trips | None = None
        if skip and not values:
            self._trips = Trips(
                self.structure, self.plans, target, self.horizon, self.registers, self.local, self.configuration,
                self.findings, self._control, self._trace,
            )  # fmt: skip
        self._scalar_loads = any(p.accesses[0] and not p.vector for own in self.plans for p in own)
        self._declare_registers()
        self._note_forms()

    def run(
        self, max_bundles: int, heard: Callable[[int], None] = lambda _: None, max_walk: int | None = None,
        watch: Callable[[int], None] | None = None,
    ) -> Tree:  # fmt: skip
        """Run the program to its end; return the issued bundles. `heard` receives their number at intervals, `watch`
        every bundle before its issue.

        Raises:
            EngineError: the run reaches the bundle limit, or the program never ends.
            LimitError: more than `max_walk` bundles would be executed one by one.
            IllegalError, TileError: an instruction is refused; the error has its position.
        """
        control, now, issued, reported = self._control, 0, 0, 0
        self._budget = WalkBudget(max_walk, self.structure, self.plans)
        jump_bubbles = int(self.target.option("taken_jump_cycles"))
        while not control.ended:
            if issued == max_bundles:
                span = self.program.bundles[control.pc].span
                raise EngineError(f"cycle limit of {max_bundles} reached in bundle {control.pc}", span=span)
            index = control.pc
            self._budget.spend(index)
            if watch is not None:
                watch(index)
            loads, stores, elements = self._issue(index, now)
            bubbles = jump_bubbles if control.jumping else 0
            self._trace.add(self._recorder.node(index, loads, stores, bubbles, tuple(self.local.touched), elements))
            turn = control.advance(now, self.horizon)
            now += 1 + bubbles
            issued += 1
            if turn is not None and self._trips is not None:
                skipped = self._trips.skip(turn, now, issued, max_bundles)
                now += skipped.cycles
                issued += skipped.bundles
            if issued >= reported + _PROGRESS:
                reported = issued
                heard(issued)
        self._remark_short_bundles()
        if not control.halted:
            self._warn(WarningKind.NO_HALT, "the program ends after its last bundle, without HALT")
        return Tree(self._trace.finish(), self._sources(), interlocked=False)

    # ------------------------------------------------------------------------------------------------ one bundle

    def _issue(self, index: int, now: int) -> tuple[int, int, int]:
        """Issue one bundle; return its accesses of global memory: loads, stores, and how many of the loads are LD_G."""
        loads = stores = elements = 0
        self.local.touched.clear()
        acted: set[Slot] = set()
        for plan in self.plans[index]:
            predicate = self._predicate(plan, now)
            if plan.instruction.mnemonic == "loop":
                self._loop(plan, now, active=predicate is not False)
                continue
            if predicate is False:
                continue
            acted.add(plan.site.slot)
            loads += plan.accesses[0]
            stores += plan.accesses[1]
            elements += plan.memory is MemoryOperation.ELEMENT_LOAD
            try:
                self._execute(plan, predicate, now)
            except CastsimError as error:
                raise error.at(plan.site.span) from None
        for reader, operand, writer in self._beside[index]:
            reads = operand.role == PREDICATE or reader.site.slot in acted
            if reads and writer.site.slot in acted:
                name = min({cell.name for cell in operand.cells}.intersection(c.name for c in writer.results))
                needed = operand.distances[writer.stage]
                self.findings.add(
                    StaleReadKind.SAME_BUNDLE, name, operand.role, reader.site, now, writer.site, 0, needed
                )
        return loads, stores, elements

    def _execute(self, plan: InstructionPlan, predicate: bool | Mask, now: int) -> None:
        """Execute one instruction whose predicate is not false."""
        sources = {operand.role: self._read(operand, plan, now) for operand in plan.sources}
        if plan.meaning is None and not plan.is_memory:
            self._direct(plan, sources)
            return
        income = None if plan.income is None else self._read(plan.income, plan, now)
        for name in plan.depends:
            self.configuration.depend(name, plan.site, now, self.findings)
        if plan.meaning is None:
            result = self._access(plan, sources, predicate, income, now)
        else:
            result = self._compute(plan.meaning, plan, sources, predicate, income, now)
        if plan.results:
            self._commit(plan, result, now)

    def _compute(
        self,
        meaning: PreparedInstruction,
        plan: InstructionPlan,
        sources: dict[str, Held],
        predicate: bool | Mask,
        income: Held,
        now: int,
    ) -> Held:
        """Return the result of an instruction without memory access; None if an operand is not computed."""
        given: dict[str, Value] = {role: value for role, value in sources.items() if value is not None}
        if plan.program_counter:
            given["src_a"] = self.structure.addresses[self._control.pc]
        missing = len(given) < len(sources) or (income is None and bool(plan.results))
        unknown = isinstance(meaning.unit, NotComputed) and bool(plan.results)
        if missing or ((plan.vector or unknown) and not self._values):
            return None
        words, word = self.vector_lfsr.state(now, plan.random), self.scalar_lfsr.state(now, plan.random)
        state = State(self.configuration.visible(now), words, word)
        operands = OperandValues(given, income, predicate)
        with heard_by(None if self.casts is None else self.casts.listener(plan, operands)):
            effects = meaning(operands, state)
        if self.casts is not None:
            self.casts.see(meaning, operands, state, effects)
        self._draw(plan, effects, now)
        self._remark(plan, effects.remarks)
        return effects.result

    def _draw(self, plan: InstructionPlan, effects: Effects, now: int) -> None:
        """Step or reseed the random generators."""
        self._advance(self.vector_lfsr, effects.vector_lfsr, plan, now)
        self._advance(self.scalar_lfsr, effects.scalar_lfsr, plan, now)
        if effects.scalar_lfsr is not None:
            self._control.changed_at = now

    def _advance(self, generator: Generator[_State], state: _State | None, plan: InstructionPlan, now: int) -> None:
        """Use one generator and advance it to its next state, if there is one."""
        sampled = plan.samples is not None and plan.samples.generator == generator.name
        if sampled or (state is not None and not plan.reseeds):
            generator.used(plan.site, plan.random, now, self.findings)
        if state is not None and plan.reseeds:
            generator.reseed(state, plan.site, now)
        elif state is not None:
            generator.step(state, plan.site, plan.random, now)

    def _access(
        self, plan: InstructionPlan, sources: dict[str, Held], predicate: bool | Mask, income: Held, now: int
    ) -> Held:
        """Load, store, or make an address."""
        memory, values = plan.memory, self._values
        if memory is MemoryOperation.ADDRESS:
            return self.globals.make_address(plan, sources)
        if memory is MemoryOperation.VECTOR_LOAD:
            return self.local.load_vector(plan, sources, predicate, income, now, values=values)
        if memory is MemoryOperation.VECTOR_STORE:
            self.local.store_vector(plan, sources, predicate, now, values=values)
        elif memory is MemoryOperation.SCALAR_LOAD:
            return self.local.load_scalar(plan, sources, now)
        elif memory is MemoryOperation.SCALAR_STORE:
            if self.local.store_scalar(plan, sources, now):
                self._control.changed_at = now
        elif memory is MemoryOperation.ELEMENT_LOAD:
            return self.globals.load_element(plan, sources, predicate, income, values=values)
        elif memory is MemoryOperation.TENSOR_LOAD:
            return self.globals.load_tensor(plan, sources, predicate, income, values=values)
        else:
            if self._scalar_loads:
                self._control.changed_at = now
            if memory is MemoryOperation.ELEMENT_STORE:
                self.globals.store_element(plan, sources, values=values)
            else:
                self.globals.store_tensor(plan, sources, predicate, values=values)
        return None

    # -------------------------------------------------------------------------------------------------- registers

    def _read(self, operand: OperandPlan, plan: InstructionPlan, now: int) -> Held:
        """Return the value that an operand sees: a single one, or a tuple for a group."""
        site, findings = plan.site, self.findings
        if len(operand.cells) == 1:
            return operand.cells[0].read(now, operand.distances, operand.role, site, findings)
        parts = [cell.read(now, operand.distances, operand.role, site, findings) for cell in operand.cells]
        if any(part is None for part in parts):
            return None
        if isinstance(parts[0], int):  # a pair of scalars is one number, low word first
            return sum(
                part << (WORD_BITS * word_index) for word_index, part in enumerate(parts) if isinstance(part, int)
            )
        return tuple(vector(part) for part in parts)

    def _predicate(self, plan: InstructionPlan, now: int) -> bool | Mask:
        """Return the predicate with its polarity; if no computed value decides it, vector instructions execute.

        Raises:
            IllegalError: path or time depends on values that are not computed.
        """
        if plan.predicate is None:
            return True
        predicate = self._read(plan.predicate, plan, now)
        if predicate is None:
            if plan.predicate.cells[0].file is not File.VP:
                raise needs_values(plan, "its predicate")
            return True
        if isinstance(predicate, np.ndarray):
            mask = predicate.astype(np.bool_)
            return ~mask if plan.inverted else mask
        return bool(predicate) != plan.inverted

    def _commit(self, plan: InstructionPlan, result: Held, now: int) -> None:
        """Put a result on its way to its registers."""
        for cell, value in zip(plan.results, parts_of(result, len(plan.results)), strict=True):
            if not plan.vector and value != cell.newest:
                self._control.changed_at = now
            write = Write(now, plan.stage, value, plan.site)
            position = self._overtaken(plan, cell.pending, now) if plan.into_predicate else None
            if position is None:
                cell.write(write, self.horizon)
                continue
            older = cell.pending[position]
            needed = self.target.distances.predicate_load_then_write
            self.findings.add(
                StaleReadKind.OVERTAKEN, cell.name, "dest", plan.site, now, older.writer, now - older.time, needed
            )
            cell.write_before(write, position)

    def _overtaken(self, plan: InstructionPlan, pending: list[Write], now: int) -> int | None:
        """Return the place of a load that lands after this write of the same predicate, None if there is none."""
        if not pending or plan.loads:
            return None
        window = self.target.distances.predicate_load_then_write
        for index, write in enumerate(pending):
            if now - write.time < window and write.writer.instruction.form.memory in LOADS:
                return index
        return None

    # ----------------------------------------------------------------------------------------------------- control

    def _direct(self, plan: InstructionPlan, sources: dict[str, Held]) -> None:
        """Execute an instruction that affects the path; cache instructions have no modelled effect."""
        if plan.instruction.mnemonic == "halt":
            self._control.halted = True
        elif plan.instruction.mnemonic in JUMPS:
            source = sources.get("src_a", 0)
            if not isinstance(source, int):
                raise needs_values(plan, "where it jumps")
            self._control.jump(plan.instruction, source)

    def _loop(self, plan: InstructionPlan, now: int, *, active: bool) -> None:
        sources = {operand.role: self._read(operand, plan, now) for operand in plan.sources} if active else {}
        bounds = {}
        for role in ("start", "bound", "step") if active else ():
            operand = plan.instruction.operand(role)
            bound = operand.value if isinstance(operand, Immediate) else sources[role]
            if not isinstance(bound, int):
                raise needs_values(plan, f"its {role}")
            bounds[role] = bound
        turn = self._control.loop(plan.instruction, bounds, active=active)
        if turn is not None and self._trips is None:
            self._budget.foresee(plan, turn)

    # ------------------------------------------------------------------------------------------------ declarations

    def _declare_registers(self) -> None:
        for declaration in self.program.declarations:
            if isinstance(declaration, RegisterDeclaration):
                (cell,) = self.registers.cells(declaration.register)
                value: Held = declaration.values if len(declaration.values) > 1 else declaration.values[0]
                cell.set(bool(value) if declaration.register.file is File.SP else value)

    def _sources(self) -> tuple[Instruction, ...]:
        """Return one entry per bundle of the text."""
        return tuple(
            Instruction(
                described(bundle),
                main_pipe(tuple(map(name_of, bundle.slots))),
                bundle.span,
                mnemonic="loop" if begins_loop(bundle) else "",
                casts=tuple(pair for plan in plans for pair in plan.casts),
            )
            for bundle, plans in zip(self.program.bundles, self.plans, strict=True)
        )

    def _note_forms(self) -> None:
        """Add remarks on unusual forms, independent of values."""
        for plan in (plan for plans in self.plans for plan in plans):
            for notice in () if plan.meaning is None else plan.meaning.notices:
                self._warn(WarningKind.FORM, f"{plan.instruction.mnemonic}: {notice}", plan.site.span)

    def _remark_short_bundles(self) -> None:
        """Report lines that count slots and leave some out."""
        short = [bundle for bundle in self.program.bundles if (bundle.written or len(Slot)) < len(Slot)]
        if short and self.findings.wanted:
            location = f"{short[0].span}" + (f", and {len(short) - 1} other lines" if len(short) > 1 else "")
            text = f"a bundle with fewer than {len(Slot)} slots; the missing ones count as nop"
            self._warn(WarningKind.SHORT_BUNDLE, text, location)

    def _remark(self, plan: InstructionPlan, remarks: tuple[str, ...]) -> None:
        for remark in remarks if self.findings.wanted else ():
            name = f"{plan.instruction.mnemonic}: "
            self._warn(WarningKind.UNDOCUMENTED, name + remark.replace(name, ""), plan.site.span)

    def _warn(self, kind: WarningKind, text: str, location: Span | str | None = None) -> None:
        self.remarks[WarningText(kind, text, location)] = None
