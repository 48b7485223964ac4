"""Discrete-event engine of the VLIW mechanism, on simpy.

There are two kinds of process: the core issues one bundle per cycle and stalls while data is missing or
the queue of global memory is full; each port of global memory serves that queue in order. Rules and facts:
docs/reference/tpc.md sections 6.2 and 6.3; options of the target decide the points that these leave open.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Generator, Mapping
from typing import Any

from simpy import AnyOf, Environment, Event, Store

from castsim.engines.event_pipes import PipeAccount
from castsim.execution.timing import Cause, Execution, Listener, Observer, OperationTiming, Timing, Watcher
from castsim.execution.tree import Lowered, Tree, elements, instances, operations
from castsim.isa.dataclass import dataclass, field
from castsim.isa.errors import EngineError, IllegalError
from castsim.machines.vliw.stage_latency import (
    ELEMENT_FACT,
    LATENCY_FACT,
    SEPARATE_PORTS,
    SHARED_PORT,
    SLOTS,
    BundleOperation,
    MemoryTiming,
)
from castsim.targets.vliw import VliwTarget

# Global memory: accesses wait in a queue and cross a port one after the other (`vliw.stage_latency`).
#
# Until they are done they hold a place in the queue.


@dataclass(slots=True)
class MemoryRequest:
    """One access: `due` is the number of the bundle slot at which the core needs its data (None: a store).

    All waits for an `element` count as latency.
    """

    operation: int
    due: int | None
    done: Event
    element: bool
    crossed_at: int = 0
    done_at: int = 0

    def blame(self, begin: int) -> tuple[Cause, int]:
        """Return why the core stalled for it from `begin` on, and until when for that reason."""
        if begin < self.crossed_at and not self.element:
            return Cause.MEMORY_BANDWIDTH, self.crossed_at
        return Cause.MEMORY_LATENCY, self.done_at


class Port:
    """One port of global memory and the accesses that wait for it."""

    def __init__(self, env: Environment, account: PipeAccount, memory: MemoryTiming) -> None:
        self.account = account
        self.queue: Store = Store(env)
        self._crossing: MemoryRequest | None = None
        self._env = env
        self._memory = memory
        self._crossed = 0
        self._element_free = 0

    def serve(self) -> Generator[Event, Any, None]:
        """Let the accesses cross in order, forever."""
        while True:
            got: Any = yield self.queue.get()
            request: MemoryRequest = got
            if request.element and self._element_free > self._env.now:
                yield self._env.timeout(self._element_free - int(self._env.now))
            begin = int(self._env.now)
            self.account.charge(Cause.EMPTY, begin)
            self._crossing = request
            interval = self._memory.interval(self._crossed)
            self._crossed += 1
            request.crossed_at = begin + interval
            request.done_at = request.crossed_at
            if request.due is not None:
                request.done_at = begin + self._memory.load_cycles(interval, element=request.element)
            if request.element:
                self._element_free = request.done_at
            yield self._env.timeout(interval)
            self.account.charge(Cause.BUSY, request.crossed_at, request.operation)
            self._crossing = None
            self._env.process(self._finish(request))

    def pause(self, until: int) -> None:
        """Attribute the cycles up to `until`, before which no other access begins to cross."""
        if self._crossing is None:
            self.account.charge(Cause.EMPTY, until)
        else:
            self.account.charge(Cause.BUSY, until, self._crossing.operation)

    def _finish(self, request: MemoryRequest) -> Generator[Event, Any, None]:
        """End the access, while the next one crosses."""
        yield self._env.timeout(request.done_at - int(self._env.now))
        request.done.succeed()


# The core: one bundle per cycle, all slots in step.
#
# It stands still before a bundle that needs the VPU while a longer conversion occupies it, before the bundle slot at
# which a load must deliver, and before a bundle whose accesses find no place in the queue. `clock` counts bundle
# slots, which is what latencies count: standing still does not advance it, bubbles do.

_PROGRESS_INTERVAL = 4096
"""Bundles between two calls of `Listener.progress`."""


@dataclass(slots=True)
class _BundleInFlight:
    """A bundle under way: when it was issued, the bundle slot of its last effect, its accesses, its waits."""

    instruction: int
    start: int
    effect_clock: int
    operation: BundleOperation
    first_index: int
    requests: list[MemoryRequest]
    waits: dict[Cause, int]
    end: int = 0


@dataclass(slots=True)
class Record:
    """The record of all bundles."""

    bundles: list[_BundleInFlight] = field(default_factory=list)
    operations: int = 0


class IssueProcess:
    """The issuing process. `beyond` is set to the bundle that met the cycle limit."""

    def __init__(
        self,
        env: Environment,
        tree: Tree,
        accounts: Mapping[str, PipeAccount],
        ports: tuple[Port, Port],
        memory: MemoryTiming,
        listener: Listener | None,
    ) -> None:
        self.record = Record()
        self.facts: set[str] = set()
        self.current = 0
        self.finished = False
        self._env = env
        self._tree = tree
        self._accounts = accounts
        self._ports = ports
        self._memory = memory
        self._listener = listener
        self._clock = 0
        self._vpu_free = 0
        self._outstanding: list[MemoryRequest] = []
        self._open: deque[_BundleInFlight] = deque()

    def run(self) -> Generator[Event, Any, None]:
        """Issue the whole tree, then wait for operations in flight."""
        for lowered, deltas in instances(self._tree):
            for operation in operations(lowered, deltas):
                assert isinstance(operation, BundleOperation)
                self.current = lowered.instruction
                waits: dict[Cause, int] = {}
                yield from self._wait(operation, waits)
                self._issue(lowered.instruction, operation, waits)
                yield self._env.timeout(1)
                if operation.bubbles:
                    self.facts.add("options.taken_jump_cycles")
                    yield self._env.timeout(operation.bubbles)
                    self._spend_all(Cause.SERIALISING_BRANCH)
                    self._clock += operation.bubbles
        yield from self._drain()
        self.finished = True

    # ---------------------------------------------------------------------------------------------------- waiting

    def _wait(self, operation: BundleOperation, waits: dict[Cause, int]) -> Generator[Event, Any, None]:
        """Stand still until the bundle can go."""
        now = int(self._env.now)
        if operation.slot_cycles[SLOTS.index("VPU")] and self._vpu_free > now:
            yield self._env.timeout(self._vpu_free - now)
            self._stall(Cause.INITIATION_INTERVAL, self._vpu_free, waits)
        for request in [r for r in self._outstanding if r.due is not None and r.due <= self._clock]:
            yield from self._until_done(request, waits)
        count = operation.loads + operation.stores
        while count and len(self._waiting()) + count > max(self._memory.entries, count):
            begin = int(self._env.now)
            pending = self._waiting()
            yield AnyOf(self._env, [request.done for request in pending])
            freed = min((r for r in pending if 0 < r.done_at <= self._env.now), key=lambda r: (r.done_at, r.operation))
            self._blame(freed, begin, waits)
        self._settle(self._clock)

    def _waiting(self) -> list[MemoryRequest]:
        self._outstanding = [request for request in self._outstanding if not request.done.processed]
        return self._outstanding

    def _until_done(self, request: MemoryRequest, waits: dict[Cause, int]) -> Generator[Event, Any, None]:
        begin = int(self._env.now)
        if not request.done.processed:
            yield request.done
            self._blame(request, begin, waits)

    def _blame(self, request: MemoryRequest, begin: int, waits: dict[Cause, int]) -> None:
        """Attribute the cycles from `begin` to now to the cause of the access's delay."""
        now = int(self._env.now)
        if begin < now:
            self.facts.add(ELEMENT_FACT if request.element else LATENCY_FACT)
        while begin < now:
            cause, until = request.blame(begin)
            begin = min(now, until)
            self._stall(cause, begin, waits)

    def _stall(self, cause: Cause, until: int, waits: dict[Cause, int]) -> None:
        spent = until - self._accounts[SLOTS[0]].cursor
        if spent > 0:
            waits[cause] = waits.get(cause, 0) + spent
        for slot in SLOTS:
            self._accounts[slot].charge(cause, until, self.record.operations)

    def _spend_all(self, cause: Cause) -> None:
        for slot in SLOTS:
            self._accounts[slot].charge(cause, int(self._env.now))

    # ---------------------------------------------------------------------------------------------------- issuing

    def _issue(self, instruction: int, operation: BundleOperation, waits: dict[Cause, int]) -> None:
        now = int(self._env.now)
        first = self.record.operations
        issued = _BundleInFlight(instruction, now, self._clock + operation.effect, operation, first, [], waits)
        for index, slot in enumerate(SLOTS):
            busy = bool(operation.slot_cycles[index])
            self._accounts[slot].charge(Cause.BUSY if busy else Cause.EMPTY, now + 1, first if busy else None)
            self.record.operations += busy
        self._vpu_free = max(self._vpu_free, now + operation.slot_cycles[SLOTS.index("VPU")])
        if max(operation.slot_cycles) > 1:
            self.facts.add("options.all_lanes_cycles")
        for count, port, due in (
            (operation.loads, self._ports[0], self._clock + operation.data_due),
            (operation.stores, self._ports[1], None),
        ):
            elements = operation.elements if due is not None and self._memory.element else 0
            for number in range(count):
                request = MemoryRequest(first, due, self._env.event(), number < elements)
                issued.requests.append(request)
                self._outstanding.append(request)
                port.queue.put(request)
        self.record.bundles.append(issued)
        self._open.append(issued)
        self._clock += 1
        if self._listener is not None and len(self.record.bundles) % _PROGRESS_INTERVAL == 0:
            self._listener.progress(now, self.record.operations)

    def _settle(self, clock: int) -> None:
        """Record the ends of bundles whose last effect has come by bundle slot `clock`."""
        now = int(self._env.now)
        for issued in [operation for operation in self._open if operation.effect_clock <= clock]:
            issued.end = now
            self._open.remove(issued)

    def _drain(self) -> Generator[Event, Any, None]:
        """Complete the last effects, stalling for loads that are due meanwhile."""
        while self._open:
            clock = min(issued.effect_clock for issued in self._open)
            if clock > self._clock:
                yield self._env.timeout(clock - self._clock)
                self._clock = clock
            self._settle(self._clock)
        for request in list(self._outstanding):
            if not request.done.processed:
                yield request.done

    # ------------------------------------------------------------------------------------------------- the outcome

    def executions(self) -> tuple[Execution, ...]:
        """Return the issued bundles in order."""
        return tuple(Execution(issued.instruction, issued.start, _end(issued)) for issued in self.record.bundles)

    def operations(self) -> tuple[OperationTiming, ...]:
        """Return the instructions in their slots; stalls of the core are attributed to the first one of its bundle."""
        timings = []
        for number, issued in enumerate(self.record.bundles):
            index, waits = issued.first_index, issued.waits
            for position, slot in enumerate(SLOTS):
                if issued.operation.slot_cycles[position]:
                    causes = {**waits, Cause.BUSY: 1}
                    name = issued.operation.names[position]
                    timings.append(OperationTiming(index, number, slot, name, issued.start, _end(issued), causes))
                    index, waits = index + 1, {}
        return tuple(timings)

    def total(self) -> int:
        """Return the end of the last effect."""
        return max((_end(issued) for issued in self.record.bundles), default=0)


def _end(issued: _BundleInFlight) -> int:
    return max([issued.end, *(request.done_at for request in issued.requests)])


class VliwSimulation:
    """A run of `tree` on `target`, which can be started once with `run`.

    Raises:
        IllegalError: the tree has operations of another mechanism.
    """

    def __init__(
        self, tree: Tree, target: VliwTarget, observer: Listener | None = None, *, record_operations: bool = True
    ) -> None:
        issued = [element for element in elements(tree.root) if not isinstance(element, Lowered)]
        strange = next((operation for operation in issued if not isinstance(operation, BundleOperation)), None)
        if strange is not None:
            raise IllegalError(f"{target.name} issues bundles; {type(strange).__name__} is not a bundle")
        details = observer if isinstance(observer, Observer) else None
        self._tree = tree
        self._listener = observer
        self._record_operations = record_operations
        self._env = Environment()
        memory = MemoryTiming.of(target)
        names = SHARED_PORT if memory.shared else SEPARATE_PORTS
        accesses = any(
            operation.loads or operation.stores for operation in issued if isinstance(operation, BundleOperation)
        )
        self._accounts = {name: PipeAccount(name, details) for name in (*SLOTS, *names)}
        self._ports = ports = [Port(self._env, self._accounts[name], memory) for name in names]
        for port in ports:
            self._env.process(port.serve())
        self._core = IssueProcess(self._env, tree, self._accounts, (ports[0], ports[-1]), memory, observer)
        self._core.facts.update(memory.facts if accesses else ())

    def run(self, max_cycles: int) -> Timing:
        """Simulate to the end and return cycles and causes.

        Raises:
            EngineError: the end is beyond `max_cycles`.
        """
        core = self._core
        self._env.process(core.run())
        while self._env.peek() <= max_cycles and not core.finished:
            self._env.step()
        total = core.total()
        if not core.finished or total > max_cycles:
            source = self._tree.instructions[core.current]
            raise EngineError(
                f"cycle limit of {max_cycles} reached at '{source.text}' ({source.span})", span=source.span
            )
        for name, account in self._accounts.items():
            account.charge(Cause.DRAIN if name in SLOTS else Cause.EMPTY, total)
        if self._listener is not None:
            self._listener.progress(total, core.record.operations)
        pipes = {name: account.close() for name, account in self._accounts.items()}
        operations = core.operations() if self._record_operations else ()
        return Timing(total, pipes, core.executions(), operations, frozenset(core.facts))

    def watch(self, watcher: Watcher) -> int:
        """Simulate as far as the watcher listens; return one more than the number of instructions issued."""
        core = self._core
        self._env.process(core.run())
        while not core.finished and not self._heard(watcher.until):
            self._env.step()
        # One bundle may stand still, with its stall told of, beyond the last that was issued.
        for name in SLOTS if core.finished else ():
            self._accounts[name].charge(Cause.DRAIN, core.total())
        for port in self._ports:
            port.pause(core.total() if core.finished or watcher.until is None else watcher.until)
        for account in self._accounts.values():
            account.close()
        return core.record.operations + 1

    def _heard(self, until: int | None) -> bool:
        """Return whether all that happens before `until` has happened, and every slot has accounted for it."""
        return (
            until is not None
            and self._env.peek() > until
            and all(self._accounts[name].cursor >= until for name in SLOTS)
        )
