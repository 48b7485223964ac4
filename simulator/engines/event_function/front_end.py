"""The front end of a running vector function: walks the loop nests and sends trips through the serial port."""

from __future__ import annotations

from simpy import Event

from simulator.engines.event_dataflow.pipes import Pipe
from simulator.engines.event_dataflow.records import Entry, Steps
from simulator.engines.event_function.shape import TICKS, TripShape, ticks, trip_shape
from simulator.engines.event_function.stores import PendingStore, StoreQueue
from simulator.engines.event_function.trip import MemoryPath, Trip
from simulator.timing import Cause
from simulator.vector_function.operations import Nest, VectorFunction
from simulator.vector_function.profile import NestProfile, profile
from targets.vector_function import VectorFunctionTarget
from targets.vector_function_timing import UnpackHeadTiming


def head_penalty(facts: UnpackHeadTiming, source_bytes: int) -> int:
    """Return the ticks by which an unpacking load delays the start of a 1D kernel over so many source bytes."""
    if source_bytes % facts.line_bytes == 0 or source_bytes >> facts.bank_bit & 1:
        return 0
    fall = facts.first_cycles - facts.second_cycles
    return max(0, ticks(facts.first_cycles - fall * (source_bytes // facts.step_bytes)))


class FrontEnd:
    """One launch. `now` is the tick up to which the front end has worked."""

    def __init__(self, pipe: Pipe, entry: Entry, function: VectorFunction, target: VectorFunctionTarget) -> None:
        self._pipe = pipe
        self._entry = entry
        self._function = function
        self._registers = target.registers.register_bytes
        self._timing = target.timing
        self.stores = StoreQueue(pipe.machine, entry, target.timing)
        self.now = int(pipe.machine.env.now) * TICKS

    def launch(self) -> Steps:
        """Send every trip of every nest."""
        timing = self._timing
        yield from self._spend(ticks(timing.launch.startup_cycles), Cause.FILL)
        nests = [nest for nest in self._function.timed if nest.runs]
        if any(nest.rows > 1 or nest.trips > 1 for nest in nests):
            yield from self._spend(ticks(timing.loops.setup_cycles), Cause.LOOP_TURNAROUND)
        for nest in nests:
            if nest.rows > 1:
                yield from self._spend(ticks(timing.loops.row_loop_cycles), Cause.LOOP_TURNAROUND)
            yield from self._walk(nest)
        self.stores.close()

    def _walk(self, nest: Nest) -> Steps:
        seen = profile(self._function, nest)
        shape = trip_shape(nest, self._timing, self._registers)
        facts = self._pipe.machine.facts
        if seen.barrier:
            facts.add("timing.store_barrier")
        if seen.branch:
            facts.add("timing.branch")
        if seen.unpacks and not seen.row_loop:
            facts.add("timing.unpack_head")
            penalty = head_penalty(self._timing.unpack_head, seen.source_bytes)
            yield from self._spend(penalty, Cause.BANK_CONFLICT)
        inner = nest.row_loop and nest.trips > 1
        if inner:
            facts.add("timing.memory_path")
        path = MemoryPath(ticks(self._timing.memory_path.trip_cycles) if inner else 0)
        for row in range(nest.rows):
            if row:
                yield from self._next_row(seen, shape)
            if seen.branch:
                yield from self._branch()
            for trip in range(nest.trips):
                yield from self._send(nest, shape, path, row, trip, branches=seen.branch)

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

    def _send(self, nest: Nest, shape: TripShape, path: MemoryPath, row: int, trip: int, *, branches: bool) -> Steps:
        """Send one trip; the port is free for the next when this returns."""
        env = self._pipe.machine.env
        released: Event | None = None
        if branches:
            yield from self._branch()
            released = env.event()
        stores = tuple(self._pending(nest, row, trip, step.offset, step.size) for step in shape.stores)
        for store in stores:
            self.stores.append(store)
        source = self._function.source + row * nest.source_row + trip * nest.source_trip
        flight = Trip(self._pipe.machine, self._entry, self._timing, shape, path, source, stores, self.now, released)
        env.process(flight.fly())
        if released is not None:
            yield from self._spend(shape.hold, Cause.BUSY)
            yield from self._branch(begun=shape.hold)
            released.succeed(self.now)
            return
        yield from self._spend(min(shape.hold, TICKS), Cause.BUSY)
        yield from self._spend(shape.hold - TICKS, Cause.INITIATION_INTERVAL)

    def _pending(self, nest: Nest, row: int, trip: int, offset: int, size: int) -> PendingStore:
        """Return a store of one trip, cut to the bytes of its row."""
        start = trip * nest.destination_trip + offset
        row_bytes = -(-nest.count * nest.destination_trip // nest.elements)
        address = self._function.destination + row * nest.destination_row + start
        return PendingStore(self._pipe.machine.env.event(), address, max(0, min(size, row_bytes - start)))

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
