"""The front end of a running vector function: walks the loop nests and sends trips through the serial port."""

from __future__ import annotations

from collections.abc import Iterator

from simpy import Event

from simulator.engines.event_dataflow.pipes import Pipe
from simulator.engines.event_dataflow.records import Entry, Steps
from simulator.engines.event_function.shape import TICKS, LoadStep, StoreStep, TripShape, ticks, trip_shape
from simulator.engines.event_function.stores import PendingStore, StoreQueue
from simulator.engines.event_function.trip import MemoryPath, RowState, SpecialPorts, Trip
from simulator.timing import Cause
from simulator.vector_function.operations import LONG_DIVISION, Compute, Nest, VectorFunction
from simulator.vector_function.profile import NestProfile, profile
from targets.vector_function import VectorFunctionTarget
from targets.vector_function_timing import UnpackHeadTiming


def head_penalty(facts: UnpackHeadTiming, source_bytes: int) -> int:
    """Return the ticks by which an unpacking load delays the start of a 1D kernel over so many source bytes."""
    if source_bytes % facts.line_bytes == 0 or source_bytes >> facts.bank_bit & 1:
        return 0
    fall = facts.first_cycles - facts.second_cycles
    return max(0, ticks(facts.first_cycles - fall * (source_bytes // facts.step_bytes)))


def told_facts(nest: Nest, shape: TripShape, target: VectorFunctionTarget) -> Iterator[str]:
    """Yield the paths of the facts that the trips of a nest rest on, beyond those of every function."""
    steps = (*shape.steps, *shape.closing)
    if nest.post_update or len(shape.row_loads) + len(shape.loads) > 1:
        yield "timing.loads"
    if any(step.special is not None for step in steps):
        yield "timing.special_function"
    for item in (*nest.trip, *nest.close):
        if isinstance(item, Compute):
            if item.mnemonic == LONG_DIVISION:
                yield "timing.division"
            elif item.mnemonic in target.arithmetic:
                yield f"arithmetic.{item.mnemonic}"


class FrontEnd:
    """One launch. `now` is the tick up to which the front end has worked."""

    def __init__(self, pipe: Pipe, entry: Entry, function: VectorFunction, target: VectorFunctionTarget) -> None:
        self._pipe = pipe
        self._entry = entry
        self._function = function
        self._target = target
        self._timing = target.timing
        self._special = SpecialPorts(target.timing.special_function.ports)
        self.stores = StoreQueue(pipe.machine, entry, target.timing)
        self.now = int(pipe.machine.env.now) * TICKS

    def launch(self) -> Steps:
        """Send every trip of every nest."""
        timing = self._timing
        yield from self._spend(ticks(timing.launch.startup_cycles), Cause.FILL)
        begun = self.now
        nests = [nest for nest in self._function.timed if nest.runs]
        if any(nest.rows > 1 or nest.trips > 1 for nest in nests):
            yield from self._spend(ticks(timing.loops.setup_cycles), Cause.LOOP_TURNAROUND)
        for nest in nests:
            if nest.rows > 1:
                yield from self._spend(ticks(timing.loops.row_loop_cycles), Cause.LOOP_TURNAROUND)
            yield from self._walk(nest, begun)
            begun = self.now
        self.stores.close()

    def _walk(self, nest: Nest, begun: int) -> Steps:
        """Send the trips of one nest, which the front end has begun to set up at tick `begun`."""
        seen = profile(self._function, nest)
        shape = trip_shape(nest, self._target)
        facts = self._pipe.machine.facts
        facts.update(told_facts(nest, shape, self._target))
        if seen.barrier:
            facts.add("timing.store_barrier")
        if seen.branch:
            facts.add("timing.branch")
        if seen.unpacks and not seen.row_loop:
            facts.add("timing.unpack_head")
            penalty = head_penalty(self._timing.unpack_head, seen.source_bytes)
            yield from self._spend(penalty, Cause.BANK_CONFLICT)
        if nest.post_update:
            every = len(shape.row_loads) + len(shape.loads)
            yield from self._spend(every * ticks(self._timing.loads.post_update_cycles), Cause.LOOP_TURNAROUND)
        path = self._path(nest, shape, begun)
        for row in range(nest.rows):
            if row:
                yield from self._next_row(seen, shape)
            if seen.branch:
                yield from self._branch()
            state = RowState()
            for trip in range(nest.trips):
                yield from self._send(nest, shape, path, state, row, trip, branches=seen.branch)

    def _path(self, nest: Nest, shape: TripShape, begun: int) -> MemoryPath:
        """Return what the lines of a nest pass between load and store (a5.md section 6.2, rule 5).

        The floor of two loads counts from launch to end of a function: less what surrounds its trips.
        """
        timing, facts = self._timing, self._pipe.machine.facts
        lines = sum(not load.mask for load in shape.loads)
        if all(store.closing for store in shape.stores):
            return MemoryPath(0)
        if lines == 2:
            facts.add("timing.memory_floor.two_loads")
            floor = timing.memory_floor["two_loads"]
            around = timing.launch.startup_cycles + timing.access.store_cycles + timing.launch.drain_cycles
            return MemoryPath(ticks(floor.trip_cycles), begun + ticks(floor.start_cycles - around))
        if lines == 1 and nest.row_loop and nest.trips > 1:
            facts.add("timing.memory_path")
            return MemoryPath(ticks(timing.memory_path.trip_cycles))
        return MemoryPath(0)

    def _next_row(self, seen: NestProfile, shape: TripShape) -> Steps:
        """Close one inner loop and open the next; without an inner loop there is nothing to do."""
        loops = self._timing.loops
        if seen.trips == 1:
            return
        if not seen.branch:  # a serialising branch has turned already
            # While the port is at work on the last trip, the front end is already turning.
            hidden = int(loops.turnaround_hidden_cycles * max(0, shape.hold - TICKS))
            yield from self._spend(max(0, ticks(loops.turnaround_cycles) - hidden), Cause.LOOP_TURNAROUND)
        if seen.half_bytes:
            yield from self._spend(ticks(loops.half_byte_row_cycles), Cause.LOOP_TURNAROUND)

    def _send(
        self, nest: Nest, shape: TripShape, path: MemoryPath, state: RowState, row: int, trip: int, *, branches: bool
    ) -> Steps:
        """Send one trip; the front end is free for the next when this returns."""
        env = self._pipe.machine.env
        released: Event | None = None
        if branches:
            yield from self._branch()
            released = env.event()
        last = trip == nest.trips - 1
        stores = tuple(self._pending(nest, row, trip, step) for step in shape.stores if last or not step.closing)
        for store in stores:
            self.stores.append(store)
        loads = (*shape.row_loads, *shape.loads) if trip == 0 else shape.loads
        flight = Trip(
            machine=self._pipe.machine,
            entry=self._entry,
            timing=self._timing,
            shape=shape,
            path=path,
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
            yield from self._branch(begun=shape.hold)
            released.succeed(self.now)
            return
        yield from self._spend(min(shape.hold, TICKS), Cause.BUSY)
        yield from self._spend(shape.hold - TICKS, Cause.INITIATION_INTERVAL)

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
            row_bytes = -(-nest.count * nest.destination_trip // nest.elements)
            size = max(0, min(size, row_bytes - start))
        return PendingStore(self._pipe.machine.env.event(), address, size)

    def _branch(self, begun: int = 0) -> Steps:
        """Stand still for a serialising branch that has begun so many ticks ago."""
        return self._spend(ticks(self._timing.branch.cycles) - begun, Cause.SERIALISING_BRANCH)

    def _spend(self, duration: int, cause: Cause) -> Steps:
        """Work for so many ticks."""
        if duration <= 0:
            return
        self.now += duration
        env = self._pipe.machine.env
        self._pipe.account.spend(cause, self.now // TICKS, self._entry)
        due = -(-self.now // TICKS)
        if due > env.now:
            yield env.timeout(due - int(env.now))
