"""Vector functions as rows, and the groups of their buffer (docs/reference/a5.md sections 6 to 8)."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

from castsim.engines.fast_dataflow import state_rows
from castsim.engines.fast_dataflow.encoding import Banking, RowTables, UnitOperation
from castsim.engines.fast_dataflow.state_rows import CAUSES, FUNCTION, NONE
from castsim.execution.transfer_timing import NO_TICK
from castsim.execution.tree import Operation
from castsim.machines.vector_function.function_launches import FACTS, MicroFunction, check_function
from castsim.machines.vector_function.function_operations import VectorFunction
from castsim.machines.vector_function.function_timing import FunctionTicks, bytes_of_row
from castsim.machines.vector_function.trip_timing import ComputeStep, LoadStep, NestPlan, StoreStep, plan_nest
from castsim.targets.vector_function import VectorFunctionTarget


@dataclass(frozen=True, slots=True)
class FunctionRows:
    """The vector unit of one target."""

    target: VectorFunctionTarget
    banking: Banking = field(init=False)
    facts: FunctionTicks = field(init=False)

    def __post_init__(self) -> None:
        banks = self.target.banks
        banking = Banking(
            period=banks.groups,
            port_of=(),
            bank_of=(),
            ports=banks.groups,
            banks=banks.groups,
            grouped=True,
            reads_per_group=banks.reads_per_group,
            reads_beside_write=banks.reads_beside_write,
            writes_per_group=banks.writes_per_group,
        )
        object.__setattr__(self, "banking", banking)
        object.__setattr__(self, "facts", FunctionTicks.of(self.target))

    def check(self, operation: object) -> None:
        """Reject what is not a vector function, and instructions for which the target has no latency."""
        check_function(operation, self.target)

    def encode(self, operation: Operation, addresses: tuple[int, ...], places: RowTables) -> UnitOperation:
        """Put a function, with these addresses, into the tables."""
        if isinstance(operation, MicroFunction):
            return self._placed(operation, places)
        assert isinstance(operation, VectorFunction)  # checked before the run
        plans = [plan_nest(operation, nest, self.target) for nest in operation.timed if nest.runs]
        registers = {name: number for number, name in enumerate(sorted(_registers(plans)))}
        loops = any(plan.nest.loops for plan in plans)
        facts = self.facts
        nests = [_Nest(plan, addresses, registers, places).row() for plan in plans]
        function = state_rows.FunctionRow(
            startup=facts.startup,
            setup=facts.setup if loops else 0,
            drain=facts.drain,
            store_interval=facts.store_interval,
            store_barrier=facts.store_barrier,
            store_latency=facts.store_latency,
            branch=facts.branch,
            load_use=facts.load_use,
            second_load=facts.second_load,
            forwarding=facts.forwarding,
            special_ports=facts.special_ports,
            registers=len(registers),
            first_nest=places.add("nests", nests),
            nests=len(nests),
        )
        places.make_room(
            trips=1 + sum(plan.nest.rows * plan.nest.trips for plan in plans),
            pending=1 + sum(plan.nest.rows * plan.nest.trips * len(plan.shape.stores) for plan in plans),
            registers=1 + len(registers) * (1 + 2 * sum(plan.nest.rows for plan in plans)),
            special=1 + facts.special_ports,
        )
        row = places.add("functions", [function])
        return UnitOperation(FUNCTION, row, (*FACTS, *(fact for plan in plans for fact in plan.facts)))

    def _placed(self, operation: MicroFunction, places: RowTables) -> UnitOperation:
        """Put a function into the tables that is timed as a whole."""
        timing = operation.timed(self.target)
        numbers = [number for span in timing.spans for number in (CAUSES.index(span.cause), span.until)]
        first = places.add("numbers", numbers)
        function = state_rows.FunctionRow(
            startup=0, setup=0, drain=0, store_interval=0, store_barrier=0, store_latency=0, branch=0, load_use=0,
            second_load=0, forwarding=0, special_ports=0, registers=0, first_nest=0, nests=0,
            first_span=first, spans=len(timing.spans),
        )  # fmt: skip
        places.make_room(trips=1, pending=1, registers=1, special=1, segments=len(timing.spans))
        return UnitOperation(FUNCTION, places.add("functions", [function]), (*FACTS, *timing.facts))


@dataclass(frozen=True, slots=True)
class _Nest:
    """One nest on its way to numbers. `addresses` are those of the function: the destination, then the operands."""

    plan: NestPlan
    addresses: Sequence[int]
    registers: dict[str, int]
    places: RowTables

    def row(self) -> state_rows.NestRow:
        """Put what the nest consists of into the tables and return the nest."""
        plan, nest, shape, add = self.plan, self.plan.nest, self.plan.shape, self.places.add
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
        return self.places.add("numbers", [self.registers[name] for name in names])

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
