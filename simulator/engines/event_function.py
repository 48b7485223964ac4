"""Discrete-event engine of the vector-function mechanism, on simpy: its vector unit (all else: `event_dataflow`).

A launched function is a set of processes. The front end walks the loop nests and sends trip after trip through the
serial convert port; every trip loads, computes and hands its results to the store queue, which writes in program order
and obeys memory barriers. Loads and stores meet the transfers at the ports of the buffer. Rules: docs/reference/a5.md
sections 6.2, 7 and 8.

Facts of this mechanism may have two decimals, so processes carry exact times in ticks of 1/100 cycle; they wake up in
the first whole cycle that is not earlier, and a function's end is rounded once. Program order decides all ties.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Generator, Iterable
from dataclasses import dataclass
from typing import Any

from simpy import Event

from castsim.engines.event_dataflow import DataflowSimulation
from castsim.engines.event_pipes import At, BufferPorts, DataflowRun, Pattern, PipeProcess, QueueEntry, Steps
from castsim.execution.pipe_operations import BLOCK
from castsim.execution.timing import Cause, Observer
from castsim.execution.transfer_timing import NO_TICK, TICKS, cycle_from
from castsim.machines.vector_function.function_launches import FACTS, MicroFunction, PlacedFunctions, check_function
from castsim.machines.vector_function.function_operations import Nest, VectorFunction
from castsim.machines.vector_function.function_timing import (
    FunctionTicks,
    branch_rest,
    busy_of_hold,
    bytes_of_row,
    bytes_of_store,
    function_end,
    group_has_room,
    loaded,
    store_asked,
    store_start,
)
from castsim.machines.vector_function.instruction_scoreboard import ScopeTiming
from castsim.machines.vector_function.trip_timing import (
    Computation,
    ComputeStep,
    LoadStep,
    MemoryPath,
    NestPlan,
    RowState,
    SpecialPorts,
    StoreStep,
    plan_nest,
)
from castsim.targets.vector_function import FunctionBufferPorts as PortFacts
from castsim.targets.vector_function import VectorFunctionTarget

# The store queue of a running vector function: stores leave in program order, barriers and the buffer hold them.


@dataclass(slots=True, eq=False)
class PendingStore:
    """A store in the queue; the times, in ticks, hold once `ready` has happened.

    `data_at`: its register, predicate and place on the memory path are there, the last of these `path_wait` ticks after
    the others; its load waited `load_wait` ticks at the buffer, its instructions `port_wait` for ports of the special
    functions and `operand_wait` for the trip before. `barrier_at`: what precedes its barrier in program
    order has begun; NO_TICK if it has none. `address` and `size` are the bytes it writes (none if empty).
    """

    ready: Event
    address: int
    size: int
    data_at: int = 0
    path_wait: int = 0
    load_wait: int = 0
    port_wait: int = 0
    operand_wait: int = 0
    barrier_at: int = NO_TICK


class StoreQueue:
    """Stores in program order. `held` are the ticks by which each cause delayed the last one.

    The ports of its load and its instructions are included.
    """

    def __init__(self, machine: DataflowRun, entry: QueueEntry, facts: FunctionTicks) -> None:
        self._machine = machine
        self._entry = entry
        self._facts = facts
        self._queue: deque[PendingStore] = deque()
        self._wakeup: Event | None = None
        self._closed = False
        self._latest = NO_TICK
        self.completed_at = 0
        self.held: dict[Cause, int] = {}

    def append(self, store: PendingStore) -> None:
        """Take the next store in program order."""
        self._queue.append(store)
        self._wake()

    def close(self) -> None:
        """Declare that no store follows."""
        self._closed = True
        self._wake()

    def serve(self) -> Steps:
        """Write store after store until the queue is closed and empty."""
        env = self._machine.env
        while self._queue or not self._closed:
            if not self._queue:
                self._wakeup = env.event()
                yield self._wakeup
                continue
            store = self._queue.popleft()
            if not store.ready.processed:
                yield store.ready
            yield from self._write(store)

    def _write(self, store: PendingStore) -> Steps:
        facts, machine = self._facts, self._machine
        start = store_start(store.data_at, self._latest, facts.store_interval, store.barrier_at, facts.store_barrier)
        asked = store_asked(start)
        yield At(machine.env, asked - int(machine.env.now), self._entry.index)
        passed = grant(machine, self._entry, store.address, store.size, write=True, asked=asked)
        self._latest = start + (passed - asked) * TICKS
        self.held = {
            Cause.PORT: store.port_wait,
            Cause.DEPENDENCE: store.operand_wait,
            Cause.MEMORY_BANDWIDTH: store.path_wait,
            Cause.STORE_BARRIER: start - store.data_at if store.barrier_at != NO_TICK else 0,
            Cause.BANK_CONFLICT: (passed - asked) * TICKS + store.load_wait,
        }
        self.completed_at = max(self.completed_at, self._latest + facts.store_latency)

    def _wake(self) -> None:
        if self._wakeup is not None and not self._wakeup.triggered:
            self._wakeup.succeed()


def grant(machine: DataflowRun, entry: QueueEntry, address: int, size: int, *, write: bool, asked: int) -> int:
    """Ask for `size` bytes at `address`; return the cycle in which the last block passes, `asked` if there is none."""
    if size <= 0:
        return asked
    first = address // BLOCK
    blocks = -(-(address + size) // BLOCK) - first
    pattern = machine.ports.pattern(tuple(BLOCK * number for number in range(blocks)), write)
    return machine.ports.grant(asked, pattern, first, entry)


# One trip of a loop nest in flight: load, compute, hand over to the store queue.


@dataclass(slots=True, eq=False)
class SentTrip:
    """A trip sent by the front end at tick `sent`; `stores` are in the order of its shape.

    `loads` are the loads to make, with their addresses, `steps` the instructions to execute: a row's first and last
    trip have those of the row as well. `opened` is the tick at which the memory path was, for this nest. `released`
    happens, with the tick as its value, when the front end lets the stores go; None: at once.
    """

    front: FrontEnd
    plan: NestPlan
    opened: int | None
    row: RowState
    loads: tuple[tuple[LoadStep, int], ...]
    steps: tuple[ComputeStep, ...]
    stores: tuple[PendingStore, ...]
    sent: int
    released: Event | None

    def fly(self) -> Steps:
        """Load, compute, and tell the stores when they may leave."""
        ready: dict[str, int] = {}
        waited = 0
        arrival = self.sent
        if self.loads:
            loading = yield from self._load()
            waited = max(loading)
            ready = self._arrivals(loading)
            arrival = max(ready.values())
        front, shape = self.front, self.plan.shape
        through = front.path.take(arrival, self.plan.path_hold, self.opened)
        for load in shape.row_loads:
            self.row.ready.update({name: ready[name] for name in load.results if name in ready})
        computation = Computation(self.sent, ready, self.row, front.special, front.facts.forwarding)
        waits = computation.follow(self.steps)
        released = self.sent
        if self.released is not None:
            released = yield self.released
        # A row's last trip is the only one with the stores of the row.
        for store, step in zip(self.stores, shape.stores, strict=False):
            data = max(released, computation.of(step.source), computation.of(step.predicate))
            store.data_at = max(data, through)
            store.path_wait = store.data_at - data
            store.load_wait = waited
            store.port_wait, store.operand_wait = waits.port, waits.operand
            store.barrier_at = max(released, waits.last) if step.barrier else NO_TICK
            store.ready.succeed()

    def _load(self) -> Generator[Event, Any, list[int]]:
        """Ask for the blocks of every load; return the ticks for which the last one of each had to wait."""
        machine, entry = self.front.machine, self.front.entry
        asked = cycle_from(self.sent)
        yield At(machine.env, asked - int(machine.env.now), entry.index)
        return [
            (grant(machine, entry, address, step.size, write=False, asked=asked) - asked) * TICKS
            for step, address in self.loads
        ]

    def _arrivals(self, waits: Iterable[int]) -> dict[str, int]:
        """Return when each loaded register can be used."""
        facts = self.front.facts
        ready: dict[str, int] = {}
        for number, ((step, _), wait) in enumerate(zip(self.loads, waits, strict=True)):
            there = loaded(self.sent, number, facts.second_load, wait, facts.load_use)
            ready.update(dict.fromkeys(step.results, there))
        return ready


# The front end of a running vector function: walks the loop nests and sends trips through the serial port.


class FrontEnd:
    """One launch. `now` is the tick up to which the front end has worked."""

    def __init__(
        self,
        pipe: PipeProcess,
        entry: QueueEntry,
        function: VectorFunction,
        target: VectorFunctionTarget,
        facts: FunctionTicks,
    ) -> None:
        self._pipe = pipe
        self._function = function
        self._target = target
        self.machine = pipe.machine
        self.entry = entry
        self.facts = facts
        self.path = MemoryPath()
        self.special = SpecialPorts(facts.special_ports)
        self.stores = StoreQueue(pipe.machine, entry, facts)
        self.now = int(pipe.machine.env.now) * TICKS

    def launch(self) -> Steps:
        """Send every trip of every nest."""
        yield from self._spend(self.facts.startup, Cause.FILL)
        begun = self.now
        nests = [nest for nest in self._function.timed if nest.runs]
        if any(nest.loops for nest in nests):
            yield from self._spend(self.facts.setup, Cause.LOOP_TURNAROUND)
        for nest in nests:
            yield from self._walk(plan_nest(self._function, nest, self._target), begun)
            begun = self.now
        self.stores.close()

    def _walk(self, plan: NestPlan, begun: int) -> Steps:
        """Send the trips of one nest, which the front end has begun to set up at tick `begun`."""
        nest = plan.nest
        self.machine.facts.update(plan.facts)
        yield from self._spend(plan.row_loop, Cause.LOOP_TURNAROUND)
        yield from self._spend(plan.unpack_head, Cause.BANK_CONFLICT)
        yield from self._spend(plan.post_update, Cause.LOOP_TURNAROUND)
        opened = None if plan.path_opened is None else begun + plan.path_opened
        for row in range(nest.rows):
            if row:
                yield from self._spend(plan.next_row, Cause.LOOP_TURNAROUND)
            if plan.branches:
                yield from self._spend(self.facts.branch, Cause.SERIALISING_BRANCH)
            state = RowState()
            for trip in range(nest.trips):
                yield from self._send(plan, opened, state, row, trip)

    def _send(self, plan: NestPlan, opened: int | None, state: RowState, row: int, trip: int) -> Steps:
        """Send one trip, for whose nest the memory path was `opened`; the front end is free for the next behind it."""
        nest, shape = plan.nest, plan.shape
        env = self.machine.env
        released: Event | None = None
        if plan.branches:
            yield from self._spend(self.facts.branch, Cause.SERIALISING_BRANCH)
            released = env.event()
        last = trip == nest.trips - 1
        stores = tuple(self._pending(nest, row, trip, step) for step in shape.stores if last or not step.closing)
        for store in stores:
            self.stores.append(store)
        loads = (*shape.row_loads, *shape.loads) if trip == 0 else shape.loads
        flight = SentTrip(
            front=self,
            plan=plan,
            opened=opened,
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
            rest = branch_rest(self.facts.branch, shape.hold)
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
        return PendingStore(self.machine.env.event(), address, size)

    def _spend(self, duration: int, cause: Cause) -> Steps:
        """Work for so many ticks."""
        if duration <= 0:
            return
        self.now += duration
        env = self.machine.env
        self._pipe.account.spend(cause, self.now // TICKS, self.entry)
        due = cycle_from(self.now)
        if due > env.now:
            yield env.timeout(due - int(env.now))


# The vector pipe of a vector-function chip: launches one function after the other.


class FunctionUnit:
    """The vector pipe of one target. A function ends before the next one is launched."""

    def __init__(self, target: VectorFunctionTarget) -> None:
        self._target = target
        self._facts = FunctionTicks.of(target)
        self._placed = PlacedFunctions(target)

    def check(self, operation: object) -> None:
        """Reject what is not a vector function, and instructions for which the target has no latency."""
        check_function(operation, self._target)

    def run(self, pipe: PipeProcess, entry: QueueEntry) -> Steps:
        """Launch a function; returns when it has ended."""
        env = pipe.machine.env
        function = entry.operation
        pipe.machine.facts.update(FACTS)
        # The published cycles of a cast count from here: they leave out the control writes.
        entry.begin(int(env.now))
        entry.execution.start_at(entry.start)
        if isinstance(function, MicroFunction):
            yield from self._pass(pipe, entry, function.timed(self._target))
            return
        assert isinstance(function, VectorFunction)  # checked before the run
        if function.placed:
            yield from self._pass(pipe, entry, self._placed.timed(function))
            return
        front_end = FrontEnd(pipe, entry, function, self._target, self._facts)
        stores = front_end.stores
        served = env.process(stores.serve())
        yield from front_end.launch()
        if served.is_alive:
            yield served
        cycle = function_end(stores.completed_at, front_end.now, self._facts.drain)
        for cause, held in stores.held.items():
            pipe.account.spend(cause, min(cycle, pipe.account.cursor + held // TICKS), entry)
        pipe.account.spend(Cause.DRAIN, cycle, entry)
        pipe.machine.ledger.finish(entry, cycle)
        yield env.timeout(cycle - int(env.now))

    def _pass(self, pipe: PipeProcess, entry: QueueEntry, timing: ScopeTiming) -> Steps:
        """Let the time of a launch pass whose instructions have been placed."""
        pipe.machine.facts.update(timing.facts)
        for span in timing.spans:
            pipe.account.spend(span.cause, entry.start + span.until, entry)
        pipe.machine.ledger.finish(entry, entry.start + timing.cycles)
        yield pipe.machine.env.timeout(timing.cycles)


# Ports of the buffer by bank group (docs/reference/a5.md section 8): so many reads or writes per cycle, fewer reads
# beside a write.
#
# Blocks of a group are served first come, first served; those of different groups do not wait for each other.


class GroupPorts(BufferPorts):
    """For each group the latest cycle that serves a block, and how many reads and writes it serves."""

    def __init__(self, facts: PortFacts, observer: Observer | None) -> None:
        cells = tuple((group, 0) for group in range(facts.groups))
        super().__init__({False: cells, True: cells}, observer)
        self._facts = facts
        self._cycle = [-1] * facts.groups
        self._reads = [0] * facts.groups
        self._writes = [0] * facts.groups

    def grant(self, now: int, pattern: Pattern, block: int, entry: QueueEntry) -> int:
        """Ask at `now` for the blocks of a pattern; return the cycle in which the last one passes."""
        last = now
        for (group, _), distance in zip(pattern.at(block), pattern.distances, strict=True):
            cycle = self._pass(group, now, pattern.write)
            last = max(last, cycle)
            self._tell(cycle, now, (block + distance) * BLOCK, pattern.write, entry)
        return last

    def _pass(self, group: int, now: int, write: bool) -> int:
        cycle = max(now, self._cycle[group])
        if cycle == self._cycle[group] and not self._fits(group, write):
            cycle += 1
        if cycle > self._cycle[group]:
            self._cycle[group], self._reads[group], self._writes[group] = cycle, 0, 0
        if write:
            self._writes[group] += 1
        else:
            self._reads[group] += 1
        return cycle

    def _fits(self, group: int, write: bool) -> bool:
        """Whether the group's latest cycle has room for one more block."""
        facts, reads, writes = self._facts, self._reads[group], self._writes[group]
        return group_has_room(
            reads, writes, write, facts.reads_per_group, facts.reads_beside_write, facts.writes_per_group
        )


class FunctionSimulation(DataflowSimulation):
    """A run of a tree on such a target."""

    VECTOR_UNIT = FunctionUnit
    PORTS = GroupPorts
