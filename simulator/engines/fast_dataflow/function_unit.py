"""Vector functions as rows, and the groups of their buffer (a5.md sections 6 to 8)."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

from simulator.engines.event_function.legality import FACTS, check_function
from simulator.engines.event_function.nest_plan import NestPlan, plan_nest
from simulator.engines.event_function.shape import LoadStep, Step, StoreStep, ticks
from simulator.engines.fast_dataflow.function_layout import NO_TICK
from simulator.engines.fast_dataflow.layout import FUNCTION, NONE
from simulator.engines.fast_dataflow.units import Banking, Places, Work
from simulator.tree import Operation
from simulator.vector_function.operations import VectorFunction
from targets.vector_function import VectorFunctionTarget


@dataclass(frozen=True, slots=True)
class FunctionRows:
    """The vector unit of one target."""

    target: VectorFunctionTarget
    banking: Banking = field(init=False)

    def __post_init__(self) -> None:
        banks = self.target.banks
        banking = Banking(
            period=banks.groups,
            port_of=[],
            bank_of=[],
            ports=banks.groups,
            banks=banks.groups,
            grouped=True,
            reads_per_group=banks.reads_per_group,
            reads_beside_write=banks.reads_beside_write,
            writes_per_group=banks.writes_per_group,
        )
        object.__setattr__(self, "banking", banking)

    def check(self, operation: object) -> None:
        """Refuse what is no vector function, and instructions for which the target has no latency."""
        check_function(operation, self.target)

    def encode(self, operation: Operation, addresses: tuple[int, ...], places: Places) -> Work:
        """Return a function with its addresses as numbers, in the order of `function_layout`."""
        assert isinstance(operation, VectorFunction)  # checked before the run
        timing = self.target.timing
        plans = [plan_nest(operation, nest, self.target) for nest in operation.timed if nest.runs]
        registers = {name: number for number, name in enumerate(sorted(_registers(plans)))}
        loops = any(plan.nest.rows > 1 or plan.nest.trips > 1 for plan in plans)
        special = timing.special_function.ports
        nests = [_Nest(plan, addresses, registers, places).place() for plan in plans]
        values = (
            ticks(timing.launch.startup_cycles),
            ticks(timing.loops.setup_cycles) if loops else 0,
            ticks(timing.launch.drain_cycles),
            ticks(timing.port.store_cycles),
            ticks(timing.store_barrier.cycles),
            ticks(timing.access.store_cycles),
            ticks(timing.branch.cycles),
            ticks(timing.access.load_cycles - timing.chain.forwarding_cycles),
            ticks(timing.loads.second_load_cycles),
            ticks(timing.chain.forwarding_cycles),
            special,
            len(registers),
            len(plans),
            *nests,
        )
        trips = sum(plan.nest.rows * plan.nest.trips for plan in plans)
        stores = sum(plan.nest.rows * plan.nest.trips * len(plan.shape.stores) for plan in plans)
        rows = sum(plan.nest.rows for plan in plans)
        places.function_room(trips, stores, len(registers) * (1 + 2 * rows), special)
        return Work(FUNCTION, values, (*FACTS, *(fact for plan in plans for fact in plan.facts)))


@dataclass(frozen=True, slots=True)
class _Nest:
    """One nest on its way to numbers. `addresses` are those of the function: the destination, then the operands."""

    plan: NestPlan
    addresses: Sequence[int]
    registers: dict[str, int]
    places: Places

    def place(self) -> int:
        """Store the values of the nest and return where they begin."""
        plan, nest, shape = self.plan, self.plan.nest, self.plan.shape
        loads = [number for load in (*shape.row_loads, *shape.loads) for number in self._load(load)]
        steps = [number for step in (*shape.steps, *shape.closing) for number in self._step(step)]
        stores = [number for store in shape.stores for number in self._store(store)]
        closing = sum(store.closing for store in shape.stores)
        values = (
            nest.rows,
            nest.trips,
            plan.row_loop,
            plan.unpack_head,
            plan.post_update,
            plan.path_hold,
            int(plan.path_opened is not None),
            plan.path_opened or 0,
            plan.next_row,
            int(plan.branches),
            shape.hold,
            -(-nest.count * nest.destination_trip // nest.elements),
            nest.destination_row,
            nest.destination_trip,
            self.places.values(loads),
            len(shape.row_loads),
            len(shape.loads),
            self.places.values(steps),
            len(shape.steps),
            len(shape.closing),
            self.places.values(stores),
            len(shape.stores) - closing,
            closing,
        )
        return self.places.values(values)

    def _load(self, load: LoadStep) -> tuple[int, ...]:
        return (
            self.addresses[1 + load.operand],
            *load.steps,
            load.size,
            len(load.results),
            *(self.registers[name] for name in load.results),
        )

    def _step(self, step: Step) -> tuple[int, ...]:
        sources = [self.registers[name] for name in step.sources if name not in step.results]
        optional = (step.occupancy, step.special, step.again)
        return (
            step.latency,
            *(NO_TICK if number is None else number for number in optional),
            len(sources),
            len(step.results),
            *sources,
            *(self.registers[name] for name in step.results),
        )

    def _store(self, store: StoreStep) -> tuple[int, ...]:
        nest = self.plan.nest
        place = self.addresses[0] if nest.writes is None else self.addresses[1 + nest.writes]
        return (
            place + store.offset,
            store.offset,
            store.size,
            self.registers.get(store.source, NONE),
            self.registers.get(store.predicate, NONE),
            int(store.barrier),
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
