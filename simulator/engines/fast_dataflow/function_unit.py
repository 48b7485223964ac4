"""Vector functions as rows, and the groups of their buffer (docs/reference/a5.md sections 6 to 8)."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace

from castsim.engines.fast_dataflow import state_rows
from castsim.engines.fast_dataflow.encoding import Encoder, UnitOperation
from castsim.engines.fast_dataflow.execution_rows import MachineMemory
from castsim.engines.fast_dataflow.state import PortsRow
from castsim.engines.fast_dataflow.state_rows import CAUSES, FUNCTION, NONE
from castsim.execution.transfer_timing import NO_TICK
from castsim.execution.tree import Operation
from castsim.machines.vector_function.function_launches import FACTS, MicroFunction, PlacedFunctions, check_function
from castsim.machines.vector_function.function_operations import VectorFunction
from castsim.machines.vector_function.function_timing import FunctionTicks, bytes_of_row
from castsim.machines.vector_function.instruction_scoreboard import ScopeTiming
from castsim.machines.vector_function.trip_timing import ComputeStep, LoadStep, NestPlan, StoreStep, plan_nest
from castsim.targets.vector_function import VectorFunctionTarget


@dataclass(frozen=True, slots=True)
class FunctionRows:
    """The vector unit of one target."""

    target: VectorFunctionTarget
    placed: PlacedFunctions = field(init=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "placed", PlacedFunctions(self.target))

    def set_up(self, memory: MachineMemory) -> None:
        """Put the groups of the buffer into a machine, and the facts that every function rests on."""
        facts = self.target.banks
        memory.machine.ports = PortsRow(
            period=facts.groups,
            grouped=1,
            reads_per_group=facts.reads_per_group,
            reads_beside_write=facts.reads_beside_write,
            writes_per_group=facts.writes_per_group,
        )
        memory.take("port_free", facts.groups, NONE)
        memory.take("bank_free", facts.groups)
        memory.append("ticks", [FunctionTicks.of(self.target)])

    def check(self, operation: object) -> None:
        """Reject what is not a vector function, and instructions for which the target has no latency."""
        check_function(operation, self.target)

    def encode(self, operation: Operation, addresses: tuple[int, ...], encoder: Encoder) -> UnitOperation:
        """Put a function, with these addresses, into the tables."""
        assert isinstance(operation, MicroFunction | VectorFunction)  # checked before the run
        if isinstance(operation, MicroFunction):
            return self._placed(operation.timed(self.target), encoder)
        if operation.placed:
            destination, source, *others = addresses
            moved = replace(operation, destination=destination, source=source, operands=tuple(others))
            return self._placed(self.placed.timed(moved), encoder)
        plans = [plan_nest(operation, nest, self.target) for nest in operation.timed if nest.runs]
        registers = {name: number for number, name in enumerate(sorted(_registers(plans)))}
        nests = [_Nest(plan, addresses, registers, encoder).row() for plan in plans]
        function = state_rows.FunctionRow(
            registers=len(registers),
            loops=int(any(plan.nest.loops for plan in plans)),
            first_nest=encoder.memory.append("nests", nests),
            nests=len(nests),
        )
        encoder.make_room(
            trips=1 + sum(plan.nest.rows * plan.nest.trips for plan in plans),
            pending=1 + sum(plan.nest.rows * plan.nest.trips * len(plan.shape.stores) for plan in plans),
            registers=1 + len(registers) * (1 + 2 * sum(plan.nest.rows for plan in plans)),
            special=1 + self.target.timing.special_function.ports,
        )
        row = encoder.memory.append("functions", [function])
        return UnitOperation(FUNCTION, row, (*FACTS, *(fact for plan in plans for fact in plan.facts)))

    def _placed(self, timing: ScopeTiming, encoder: Encoder) -> UnitOperation:
        """Put a function into the tables that is timed as a whole."""
        spans = tuple(number for span in timing.spans for number in (CAUSES.index(span.cause), span.until))
        encoder.most_spans = max(encoder.most_spans, len(timing.spans))
        function = state_rows.FunctionRow(first_span=encoder.integers(spans), spans=len(timing.spans))
        return UnitOperation(FUNCTION, encoder.memory.append("functions", [function]), (*FACTS, *timing.facts))


@dataclass(frozen=True, slots=True)
class _Nest:
    """One nest on its way to numbers. `addresses` are those of the function: the destination, then the operands."""

    plan: NestPlan
    addresses: Sequence[int]
    registers: dict[str, int]
    encoder: Encoder

    def row(self) -> state_rows.NestRow:
        """Put what the nest consists of into the tables and return the nest."""
        plan, nest, shape, add = self.plan, self.plan.nest, self.plan.shape, self.encoder.memory.append
        closing = sum(store.closing for store in shape.stores)
        return state_rows.NestRow(
            rows=nest.rows,
            trips=nest.trips,
            row_loop=plan.row_loop,
            unpack_head=plan.unpack_head,
            post_update=plan.post_update,
            path_hold=plan.path_hold,
            path_opened=int(plan.path_opened is not None),
            path_offset=plan.path_opened or 0,
            next_row=plan.next_row,
            branches=int(plan.branches),
            hold=shape.hold,
            row_bytes=bytes_of_row(nest.count, nest.destination_trip, nest.elements),
            destination_row=nest.destination_row,
            destination_trip=nest.destination_trip,
            first_load=add("load_steps", [self._load(load) for load in (*shape.row_loads, *shape.loads)]),
            row_loads=len(shape.row_loads),
            loads=len(shape.loads),
            first_step=add("steps", [self._step(step) for step in (*shape.steps, *shape.closing)]),
            steps=len(shape.steps),
            closing_steps=len(shape.closing),
            first_store=add("store_steps", [self._store(store) for store in shape.stores]),
            stores=len(shape.stores) - closing,
            closing_stores=closing,
        )

    def _numbers(self, names: Sequence[str]) -> int:
        """Store the numbers of registers and return where they begin."""
        return self.encoder.integers(tuple(self.registers[name] for name in names))

    def _load(self, load: LoadStep) -> state_rows.LoadStepRow:
        address = self.addresses[1 + load.operand]
        return state_rows.LoadStepRow(address, *load.steps, load.size, self._numbers(load.results), len(load.results))

    def _step(self, step: ComputeStep) -> state_rows.ComputeStepRow:
        sources = [name for name in step.sources if name not in step.results]
        optional = (step.occupancy, step.special, step.again)
        occupancy, special, again = (NO_TICK if number is None else number for number in optional)
        first = self._numbers((*sources, *step.results))
        return state_rows.ComputeStepRow(
            step.latency, occupancy, special, again, first, len(sources), len(step.results)
        )

    def _store(self, store: StoreStep) -> state_rows.StoreStepRow:
        nest = self.plan.nest
        place = self.addresses[0] if nest.writes is None else self.addresses[1 + nest.writes]
        return state_rows.StoreStepRow(
            address=place + store.offset,
            offset=store.offset,
            size=store.size,
            source=self.registers.get(store.source, NONE),
            predicate=self.registers.get(store.predicate, NONE),
            barrier=int(store.barrier),
        )


def _registers(plans: Sequence[NestPlan]) -> set[str]:
    """Return the registers that loads fill or instructions name; all others are ready when wanted."""
    names: set[str] = set()
    for plan in plans:
        shape = plan.shape
        for load in (*shape.row_loads, *shape.loads):
            names.update(load.results)
        for step in (*shape.steps, *shape.closing):
            names.update(step.sources)
            names.update(step.results)
    return names
