"""The front end of a running vector function: walks the loop nests and sends trips through the serial port."""

from __future__ import annotations

from simpy import Event

from castsim.engines.event_dataflow.pipes import PipeProcess
from castsim.engines.event_dataflow.records import Entry, Steps
from castsim.engines.event_function.stores import PendingStore, StoreQueue
from castsim.engines.event_function.trip import Trip
from castsim.execution.dataflow.timing import TICKS, cycle_from
from castsim.machines.vector_function.nest_plan import NestPlan, plan_nest
from castsim.machines.vector_function.operations import Nest, VectorFunction
from castsim.machines.vector_function.timing import (
    FunctionTicks,
    branch_rest,
    busy_of_hold,
    bytes_of_row,
    bytes_of_store,
)
from castsim.machines.vector_function.trip_shape import LoadStep, StoreStep
from castsim.machines.vector_function.trip_timing import MemoryPath, RowState, SpecialPorts
from castsim.targets.vector_function import VectorFunctionTarget
from castsim.timing import Cause


class FrontEnd:
    """One launch. `now` is the tick up to which the front end has worked."""

    def __init__(
        self,
        pipe: PipeProcess,
        entry: Entry,
        function: VectorFunction,
        target: VectorFunctionTarget,
        facts: FunctionTicks,
    ) -> None:
        self._pipe = pipe
        self._entry = entry
        self._function = function
        self._target = target
        self._facts = facts
        self._path = MemoryPath()
        self._special = SpecialPorts(self._facts.special_ports)
        self.stores = StoreQueue(pipe.machine, entry, self._facts)
        self.now = int(pipe.machine.env.now) * TICKS

    def launch(self) -> Steps:
        """Send every trip of every nest."""
        yield from self._spend(self._facts.startup, Cause.FILL)
        begun = self.now
        nests = [nest for nest in self._function.timed if nest.runs]
        if any(nest.loops for nest in nests):
            yield from self._spend(self._facts.setup, Cause.LOOP_TURNAROUND)
        for nest in nests:
            yield from self._walk(plan_nest(self._function, nest, self._target), begun)
            begun = self.now
        self.stores.close()

    def _walk(self, plan: NestPlan, begun: int) -> Steps:
        """Send the trips of one nest, which the front end has begun to set up at tick `begun`."""
        nest = plan.nest
        self._pipe.machine.facts.update(plan.facts)
        yield from self._spend(plan.row_loop, Cause.LOOP_TURNAROUND)
        yield from self._spend(plan.unpack_head, Cause.BANK_CONFLICT)
        yield from self._spend(plan.post_update, Cause.LOOP_TURNAROUND)
        opened = None if plan.path_opened is None else begun + plan.path_opened
        for row in range(nest.rows):
            if row:
                yield from self._spend(plan.next_row, Cause.LOOP_TURNAROUND)
            if plan.branches:
                yield from self._spend(self._facts.branch, Cause.SERIALISING_BRANCH)
            state = RowState()
            for trip in range(nest.trips):
                yield from self._send(plan, opened, state, row, trip)

    def _send(self, plan: NestPlan, opened: int | None, state: RowState, row: int, trip: int) -> Steps:
        """Send one trip, for whose nest the memory path was `opened`; the front end is free for the next behind it."""
        nest, shape = plan.nest, plan.shape
        env = self._pipe.machine.env
        released: Event | None = None
        if plan.branches:
            yield from self._spend(self._facts.branch, Cause.SERIALISING_BRANCH)
            released = env.event()
        last = trip == nest.trips - 1
        stores = tuple(self._pending(nest, row, trip, step) for step in shape.stores if last or not step.closing)
        for store in stores:
            self.stores.append(store)
        loads = (*shape.row_loads, *shape.loads) if trip == 0 else shape.loads
        flight = Trip(
            machine=self._pipe.machine,
            entry=self._entry,
            facts=self._facts,
            shape=shape,
            path=self._path,
            path_hold=plan.path_hold,
            path_opened=opened,
            special=self._special,
            row=state,
            loads=tuple((step, self._address(step, row, trip)) for step in loads),
            steps=(*shape.steps, *shape.closing) if last else shape.steps,
            stores=stores,
            sent=self.now,
            released=released,
        )
        env.process(flight.fly())
        if released is not None:
            yield from self._spend(shape.hold, Cause.BUSY)
            rest = branch_rest(self._facts.branch, shape.hold)
            yield from self._spend(rest, Cause.SERIALISING_BRANCH)
            released.succeed(self.now)
            return
        busy = busy_of_hold(shape.hold)
        yield from self._spend(busy, Cause.BUSY)
        yield from self._spend(shape.hold - busy, Cause.INITIATION_INTERVAL)

    def _address(self, step: LoadStep, row: int, trip: int) -> int:
        """Return the place from which one trip loads."""
        row_step, trip_step = step.steps
        return self._function.operand(step.operand) + row * row_step + trip * trip_step

    def _pending(self, nest: Nest, row: int, trip: int, step: StoreStep) -> PendingStore:
        """Return a store of one trip, cut to the bytes of its row; or of the row, behind its last trip."""
        function = self._function
        place = function.destination if nest.writes is None else function.operand(nest.writes)
        start = step.offset if step.closing else trip * nest.destination_trip + step.offset
        address = place + row * nest.destination_row + start
        size = step.size
        if not step.closing:
            row_bytes = bytes_of_row(nest.count, nest.destination_trip, nest.elements)
            size = bytes_of_store(size, row_bytes, start)
        return PendingStore(self._pipe.machine.env.event(), address, size)

    def _spend(self, duration: int, cause: Cause) -> Steps:
        """Work for so many ticks."""
        if duration <= 0:
            return
        self.now += duration
        env = self._pipe.machine.env
        self._pipe.account.spend(cause, self.now // TICKS, self._entry)
        due = cycle_from(self.now)
        if due > env.now:
            yield env.timeout(due - int(env.now))
