"""The instructions of a launch in sequence: when each is dispatched, starts and completes.

Source of the rules: docs/reference/micro.md 6.2.
"""

from __future__ import annotations

from array import array
from bisect import bisect_right, insort
from collections import defaultdict
from collections.abc import Mapping, Sequence
from heapq import heappush, heapreplace

from castsim.execution.pipe_operations import BLOCK
from castsim.execution.timing import Cause
from castsim.execution.transfer_timing import NO_TICK, TICKS, cycle_from, ticks
from castsim.isa.dataclass import dataclass, field, replace
from castsim.machines.vector_function.function_timing import (
    ACCESS_BITS,
    GROUP_BITS,
    GROUPS_PER_WORD,
    MOST_ACCESSES,
    group_has_room,
    loaded,
    path_through,
    store_start,
    words_of_cycle,
)
from castsim.machines.vector_function.launched_scope import ScopeFacts, ScopeInstruction, ScopeIssue, TimingKind
from castsim.targets.vector_function import FunctionBufferPorts

# Where the time of a launch went: spans of one cause after the other, from its launch to its end.


@dataclass(frozen=True, slots=True)
class CauseSpan:
    """The cycles up to `until`, counted from the launch, spent for `cause` on behalf of a line (0: none)."""

    cause: Cause
    until: int
    line: int


@dataclass(slots=True)
class LineUse:
    """The activity of a line of a launch: its executions, and their total wait after dispatch.

    `texts` are the report labels of its instructions. `waits` are ticks by cause and by the line waited for (0: none);
    executions wait in parallel, so these overlap.
    """

    executions: int = 0
    waits: dict[tuple[Cause, int], int] = field(default_factory=dict)
    texts: list[str] = field(default_factory=list)

    def execute(self, text: str) -> None:
        """Count an execution."""
        self.executions += 1
        if text not in self.texts:
            self.texts.append(text)

    def wait(self, cause: Cause, behind: int, ticks: int) -> None:
        """Add ticks of waiting."""
        if ticks > 0:
            key = cause, behind
            self.waits[key] = self.waits.get(key, 0) + ticks


@dataclass(frozen=True, slots=True)
class ScopeTiming:
    """A launch: its cycles, and its spans without a gap; `facts` are the paths of the facts behind it.

    `uses` are those of its lines that execute instructions, `accesses` those of bank groups from its first cycle on
    (`function_timing.launch_reads`).
    """

    cycles: int
    spans: tuple[CauseSpan, ...]
    facts: frozenset[str]
    uses: Mapping[int, LineUse] = field(default_factory=dict)
    accesses: tuple[int, ...] = ()

    @property
    def causes(self) -> Mapping[Cause, int]:
        """Cycles by cause; they add up to `cycles`."""
        totals: defaultdict[Cause, int] = defaultdict(int)
        for (_, cause), cycles in self.by_line.items():
            totals[cause] += cycles
        return totals

    @property
    def by_line(self) -> Mapping[tuple[int, Cause], int]:
        """Cycles by line and cause."""
        durations: defaultdict[tuple[int, Cause], int] = defaultdict(int)
        before = 0
        for span in self.spans:
            durations[span.line, span.cause] += span.until - before
            before = span.until
        return durations


@dataclass(slots=True)
class PortSpans:
    """Spans so far, and the uses of lines; `now` is the tick up to which time is attributed."""

    now: int = 0
    spans: list[CauseSpan] = field(default_factory=list)
    uses: defaultdict[int, LineUse] = field(default_factory=lambda: defaultdict(LineUse))

    def spend(self, cause: Cause, until: int, line: int = 0) -> None:
        """Attribute the time up to tick `until`; a whole cycle counts once it has passed."""
        self.now = max(self.now, until)
        self.settle(cause, self.now // TICKS, line)

    def settle(self, cause: Cause, cycle: int, line: int = 0) -> None:
        """Attribute the cycles before `cycle`."""
        before = self.spans[-1].until if self.spans else 0
        if cycle <= before:
            return
        if self.spans and (self.spans[-1].cause, self.spans[-1].line) == (cause, line):
            self.spans.pop()
        self.spans.append(CauseSpan(cause, cycle, line))


# What the instructions of a launch compete for: places in the queue, registers, execution ports, the buffer.
#
# An instruction joins the queue of an execution port at dispatch, and no other port can start it. Instructions are
# placed in program order, each as early as the older ones allow: a port starts its oldest ready one. Times are ticks.

_LONG = 1000 * TICKS
"""Longer than any special function holds its port."""

_ENDLESS = 1 << 62


class Queue:
    """Instructions that have been dispatched and wait for their start: at most `places`."""

    def __init__(self, places: int) -> None:
        self._places = places
        self._latest: list[tuple[int, int]] = []

    @property
    def gate(self) -> tuple[int, int]:
        """Return when the next instruction gets a slot, and the number of the one that leaves it; (0, -1): now."""
        return self._latest[0] if len(self._latest) == self._places else (0, -1)

    def add(self, start: int, number: int) -> None:
        """Record that instruction `number` starts at tick `start`."""
        if len(self._latest) < self._places:
            heappush(self._latest, (start, number))
        elif start > self._latest[0][0]:
            heapreplace(self._latest, (start, number))


class RegisterPool:
    """Physical registers: each is allocated at dispatch and returns some time after its last reader has started."""

    def __init__(self, physical: int) -> None:
        self._physical = physical
        self._held = 0
        self._returns: list[tuple[int, int]] = []

    @property
    def gate(self) -> tuple[int, int]:
        """Return when a register is free, and the number of the instruction that frees it; (0, -1): now."""
        spare = self._physical - self._held
        if spare > len(self._returns):
            return 0, -1
        return self._returns[-spare] if spare > 0 else (self._returns[-1] if self._returns else (0, -1))

    def take(self) -> None:
        """Allocate a register."""
        self._held += 1

    def give(self, tick: int, number: int) -> None:
        """Return a register to the pool at `tick`, after instruction `number` has read it."""
        self._held -= 1
        insort(self._returns, (tick, number))
        if len(self._returns) > self._physical:
            del self._returns[0]


class ExecutionPorts:
    """Execution ports: each starts one instruction per cycle, and one of its results returns per cycle.

    A special function excludes others of its kind from its port for some cycles; other instructions may start after it.
    Converts and similar instructions use only the first port.
    """

    def __init__(self, ports: int, special: int) -> None:
        self._starts = [_Cycles() for _ in range(ports)]
        self._queued: list[list[int]] = [[] for _ in range(ports)]
        """The start times of instructions on each port, in order."""
        self._results: list[set[int]] = [set() for _ in range(ports)]
        self._special: list[list[int]] = [[] for _ in range(special)]
        self._turn = 0
        self._serial: list[tuple[int, int]] = []
        """When instructions for the first port alone hold it."""

    def start(self, dispatched: int, ready: int, latency: int, cycles: int = 1) -> int:
        """Start an instruction and occupy its port for `cycles`; return the start.

        It joins the port with the shorter queue at its dispatch, or if equal the port that is free first.
        """
        firsts = [self._first(port, ready, latency, cycles) for port in range(len(self._starts))]
        waiting = [len(starts) - bisect_right(starts, dispatched) for starts in self._queued]
        port = min(range(len(firsts)), key=lambda port_number: (waiting[port_number], firsts[port_number]))
        return self._take(port, firsts[port], latency, cycles)

    def start_serial(self, ready: int, duration: int) -> int:
        """Start an instruction on the first port only; its result has a separate path."""
        starts, serial, tick, cycles = self._starts[0], self._serial, ready, -(-duration // TICKS)
        while True:
            near = bisect_right(serial, (tick, _ENDLESS))
            before = serial[near - 1][1] if near else 0
            if before > tick or (near < len(serial) and serial[near][0] < tick + duration):
                tick = before if before > tick else serial[near][1]
                continue
            first = tick // TICKS
            taken = [candidate for candidate in range(first, first + cycles) if starts.first(candidate) != candidate]
            if not taken:
                break
            tick = (taken[-1] + 1) * TICKS
        for cycle in range(first, first + cycles):
            starts.take(cycle)
        insort(serial, (tick, tick + duration))
        insort(self._queued[0], tick)
        return tick

    def start_special(self, ready: int, latency: int, duration: int) -> int:
        """Start a special function; they alternate between the ports, and those of one port start `duration` apart."""
        number, self._turn = self._turn, (self._turn + 1) % len(self._special)
        tick = self._first_special(number, ready, latency, duration)
        insort(self._special[number], tick)
        return self._take(number % len(self._starts), tick, latency)

    def forget(self, tick: int) -> None:
        """Discard the state of earlier cycles, in which no more instructions start."""
        cycle = tick // TICKS
        for starts in self._starts:
            starts.forget(cycle)
        self._results = [
            {result_cycle for result_cycle in results if result_cycle >= cycle} for results in self._results
        ]
        self._queued = [starts[bisect_right(starts, tick) :] for starts in self._queued]
        self._serial = [interval for interval in self._serial if interval[1] >= tick - _LONG]
        self._special = [
            [start_tick for start_tick in special if start_tick >= tick - _LONG] for special in self._special
        ]

    def _first_special(self, number: int, tick: int, latency: int, duration: int) -> int:
        special = self._special[number]
        while True:
            tick = self._first(number % len(self._starts), tick, latency)
            near = bisect_right(special, tick - duration)
            if near == len(special) or special[near] >= tick + duration:
                return tick
            tick = special[near] + duration

    def _first(self, port: int, tick: int, latency: int, cycles: int = 1) -> int:
        starts, results = self._starts[port], self._results[port]
        while True:
            free = starts.first(tick // TICKS)
            tick = max(tick, free * TICKS)
            is_free = all(starts.first(free + more) == free + more for more in range(1, cycles))
            if is_free and (tick + latency) // TICKS not in results:
                return tick
            tick = _next_cycle(tick)

    def _take(self, port: int, tick: int, latency: int, cycles: int = 1) -> int:
        for cycle in range(tick // TICKS, tick // TICKS + cycles):
            self._starts[port].take(cycle)
        self._results[port].add((tick + latency) // TICKS)
        insort(self._queued[port], tick)
        return tick


class _Cycles:
    """Occupied cycles; `_after` leads from each towards the next free one."""

    def __init__(self) -> None:
        self._after: dict[int, int] = {}

    def first(self, cycle: int) -> int:
        """Return the first free cycle from this one on."""
        after, passed = self._after, []
        while cycle in after:
            passed.append(cycle)
            cycle = after[cycle]
        for passed_cycle in passed:
            after[passed_cycle] = cycle
        return cycle

    def take(self, cycle: int) -> None:
        """Occupy a cycle."""
        self._after[cycle] = cycle + 1

    def forget(self, cycle: int) -> None:
        """Discard the state of earlier cycles."""
        self._after = {key: after for key, after in self._after.items() if key >= cycle}


def _next_cycle(tick: int) -> int:
    return (tick // TICKS + 1) * TICKS


class BufferGroups:
    """The bank groups of the buffer as one launch uses them: reads and writes of every group in each cycle."""

    def __init__(self, facts: FunctionBufferPorts) -> None:
        self._facts = facts
        self._used: defaultdict[int, int] = defaultdict(int)
        self._words = array("q")
        self._line_cycle, self._line_banks = 0, [0] * facts.banks_per_group

    def grant(self, cycle: int, address: int, size: int, *, write: bool) -> int:
        """Request the blocks of an access in `cycle`; return the cycle in which the last one passes."""
        groups, last = self._facts.groups, cycle
        for block in range(address // BLOCK, -(-(address + size) // BLOCK)):
            last = max(last, self._pass(block % groups, cycle, write=write))
        return last

    def pass_line(self, cycle: int, address: int, size: int) -> int:
        """Return when a load passes: whole lines in program order, a limited number of one bank per cycle."""
        facts = self._facts
        line, bank = divmod(address, BLOCK * facts.groups)
        if bank or size < BLOCK * facts.groups:
            return cycle
        cycle, bank = max(cycle, self._line_cycle), line % facts.banks_per_group
        cycle += cycle == self._line_cycle and self._line_banks[bank] >= facts.reads_per_bank
        if cycle > self._line_cycle:
            self._line_cycle, self._line_banks = cycle, [0] * facts.banks_per_group
        self._line_banks[bank] += 1
        return cycle

    def forget(self, cycle: int) -> None:
        """Pack the state of earlier cycles, which no later access requests."""
        per_cycle, bits = words_of_cycle(self._facts.groups), GROUP_BITS * GROUPS_PER_WORD
        for number in range(len(self._words) // per_cycle, min(cycle, max(self._used, default=-1) + 1)):
            used = self._used.pop(number, 0)
            self._words.extend(used >> bits * slot & (1 << bits) - 1 for slot in range(per_cycle))

    @property
    def words(self) -> tuple[int, ...]:
        """The accesses of all cycles from the launch to the last access, in words (`function_timing`)."""
        self.forget(_ENDLESS)
        return tuple(self._words)

    def _pass(self, group: int, cycle: int, *, write: bool) -> int:
        facts, shift = self._facts, GROUP_BITS * group
        while True:
            used = self._used[cycle]
            if group_has_room(
                used >> shift & MOST_ACCESSES,
                used >> shift + ACCESS_BITS & MOST_ACCESSES,
                write,
                facts.reads_per_group,
                facts.reads_beside_write,
                facts.writes_per_group,
            ):
                self._used[cycle] += 1 << shift + ACCESS_BITS * write
                return cycle
            cycle += 1


_REMEMBERED = 2000 * TICKS
"""The time after which the board discards cycles before the front end."""

_LINKS = 32
"""Links of a chain that are remembered."""

Chain = tuple[tuple[int, int], ...]
"""Lines and the ticks at which their instructions started, the earliest first."""

INTERLEAVING = "INTLV"
"""The name prefix of the distributions of stores of two registers."""


@dataclass(slots=True)
class ScoreboardValue:
    """A register or mask: its producer, its ready time, and the waits of its chain for ports, buffer and barriers.

    `loaded` is when a loaded register can be used; NO_TICK if an instruction computed it. `physical`: it takes one of
    the vector registers, unlike masks. `chain` has line and start of its inputs, always of the latest operand, up to
    its own. `trip` is the number of the trip that loaded it.
    """

    producer: ScopeInstruction
    start: int
    loaded: int
    port: int = 0
    buffer: int = 0
    barrier: int = 0
    physical: bool = True
    latest_read: int = 0
    chain: Chain = ()
    trip: int = 0


@dataclass(slots=True)
class LastStore:
    """The delay of the last store by cause, and the chain that ends with it."""

    path: int = 0
    barrier: int = 0
    port: int = 0
    buffer: int = 0
    line: int = 0
    chain: Chain = ()


class Board:
    """The scoreboard of one launch. `account.now` is the tick up to which the front end has worked."""

    def __init__(self, facts: ScopeFacts, readers: dict[int, int], account: PortSpans) -> None:
        micro = facts.target.timing.micro
        self.facts, self.account = facts, account
        self.used: set[str] = set()
        self._path_free = self.path_hold = 0
        self.path_opened: int | None = None
        self.released = NO_TICK
        self._arrival = self._trip = 0
        self._through: int | None = 0
        self.held = LastStore()
        self.holding: Sequence[tuple[int, int]] = ()
        """Lines that occupy the front end in this trip anyway, and until when."""
        self.completed = self.serving = 0
        self._readers = readers
        self._values: dict[int, ScoreboardValue] = {}
        self._queue = Queue(micro.dispatch.queue + micro.execution.ports * micro.dispatch.port_queue)
        self._registers = RegisterPool(micro.registers.physical)
        self._reductions, self._reducing = Queue(micro.reductions.in_flight), micro.reductions.mnemonics
        self._reduced: set[int] = set()  # results that no instruction has read
        self._ports = ExecutionPorts(micro.execution.ports, facts.function.special_ports)
        self.groups = BufferGroups(facts.target.banks)
        self.waited = False
        """Whether a store of this trip waited at the buffer."""
        self._lines: list[tuple[Cause, int]] = []
        self._cycle, self._sent, self._loads = NO_TICK, 0, 0
        self._latest_store = NO_TICK
        self._forget_at = _REMEMBERED
        self._loaded = self._last_start = self._serial = 0
        self.serial_bound = False
        """Whether the trip occupies the front end only for its work at the first port."""
        self._store_barrier = NO_TICK
        self._no_load_before = self._no_store_before = NO_TICK
        self._latest_load = self._barrier_passed = NO_TICK
        self._per_cycle = micro.dispatch.per_cycle

    @property
    def stored(self) -> int:
        """Return the tick after the last store's start."""
        return self._latest_store + self.facts.function.store_interval

    # ------------------------------------------------------------------------------------------------- dispatching

    def step(self, issue: ScopeIssue) -> None:
        """Dispatch an instruction and place it."""
        kind = issue.instruction.kind
        self.account.uses[issue.instruction.line].execute(issue.instruction.text or issue.instruction.mnemonic)
        if kind is TimingKind.BARRIER:
            self._order(issue.instruction.word)
        elif kind is TimingKind.PREDICATE:
            self._name(issue)
        elif kind in (TimingKind.LOAD, TimingKind.STORE, TimingKind.COMPUTE):
            self._dispatch(issue)
            {TimingKind.LOAD: self._load, TimingKind.STORE: self._store, TimingKind.COMPUTE: self._compute}[kind](issue)

    def begin_trip(self) -> None:
        """Begin a trip: its lines pass the memory path together."""
        if self.account.now > self._forget_at:
            self._forget_at = self.account.now + _REMEMBERED
            self._ports.forget(self.account.now)
            self.groups.forget(self.account.now // TICKS)
        self._arrival, self._through, self.waited = self.account.now, None, False
        self._trip += 1
        self._serial, self.serial_bound = self.account.now, False

    def _arrive(self) -> None:
        """Begin a cycle of the front end."""
        self._cycle, self._sent, self._loads = self.account.now, 0, 0

    def _dispatch(self, issue: ScopeIssue) -> None:
        """Dispatch an instruction by the front end: a limited number a cycle, once there is a register and a place."""
        account, instruction = self.account, issue.instruction
        if account.now != self._cycle:
            self._arrive()
        if self._sent == self._per_cycle:
            line = next((line for line, until in self.holding if account.now < until), instruction.line)
            account.spend(Cause.BUSY, account.now + TICKS, line)
            self.used.add("timing.micro.dispatch")
            self._arrive()
        gates = [("timing.micro.registers", self._registers.gate)] if self._takes_register(issue) else []
        if instruction.kind is not TimingKind.LOAD:
            gates.append(("timing.micro.dispatch", self._queue.gate))
        if instruction.mnemonic in self._reducing:
            gates.append(("timing.micro.reductions", self._reductions.gate))
        for fact, (tick, number) in gates:
            if tick > account.now:
                cause, line = self._lines[number]
                account.spend(cause, tick, line)
                self.used.add(fact)
                self._arrive()
        self._sent += 1

    def _takes_register(self, issue: ScopeIssue) -> bool:
        return bool(issue.writes) and not issue.instruction.masks

    # -------------------------------------------------------------------------------------------------- instructions

    def _load(self, issue: ScopeIssue) -> None:
        sent, instruction = self.account.now, issue.instruction
        begun = max(sent, self._no_load_before)
        asked = cycle_from(begun)
        passed = self.groups.grant(asked, issue.address, instruction.size, write=False)
        passed = self.groups.pass_line(passed, issue.address, instruction.size)
        wait = (passed - asked) * TICKS
        function = self.facts.function
        alone = self.facts.alone(instruction) or 0
        if alone > 1 and self._latest_store > begun and not self.holding:  # between trips: due stores wait for it
            self._latest_store += alone * TICKS
        number = self._loads if begun == sent else 0
        if number:
            self.used.add("timing.loads")
        there = loaded(begun, number, function.second_load, wait, function.load_use)
        self._loads += 1
        self._arrival = max(self._arrival, there)
        number = self._note(Cause.STORE_BARRIER if begun > sent else Cause.BANK_CONFLICT, instruction.line)
        self._read(issue, begun, begun, number)
        use = self.account.uses[instruction.line]
        use.wait(Cause.STORE_BARRIER, 0, begun - sent)
        use.wait(Cause.BANK_CONFLICT, 0, wait)
        chain = ((instruction.line, begun),)
        for name in issue.writes:
            value = ScoreboardValue(instruction, begun, there, 0, wait, begun - sent, chain=chain, trip=self._trip)
            self._write(name, value, number)
        self._latest_load = max(self._latest_load, begun)
        self._loaded = max(self._loaded, begun + ticks(self.facts.target.timing.access.load_cycles))

    def _compute(self, issue: ScopeIssue) -> None:
        facts, instruction = self.facts, issue.instruction
        cost = facts.cost(instruction)
        ready = port = buffer = barrier = 0
        chain: Chain = ()
        for name in issue.reads:
            value = self._values.get(name)
            if value is None:
                continue
            there = self._usable(value, instruction, first=name == issue.reads[0])
            if there > ready:
                ready, port, buffer, barrier, chain = there, value.port, value.buffer, value.barrier, value.chain
        use = self.account.uses[instruction.line]
        use.wait(Cause.DEPENDENCE, chain[-1][0] if chain else 0, ready - self.account.now)
        ready = max(ready, self.account.now)
        if cost.serial:
            if self.serial_bound:  # the front end leaves time for its converts, which keep their order
                start = max(ready, self._serial)
                self._serial = start + cost.serial
            else:
                start = self._ports.start_serial(ready, cost.serial)
            self.serving = max(self.serving, self.account.now + cost.serial)
        elif cost.special:
            start = self._ports.start_special(ready, cost.latency, cost.special)
        else:
            start = self._ports.start(self.account.now, ready, cost.latency, cost.held)
        use.wait(Cause.PORT, 0, start - ready)
        self.used.update(cost.facts)
        chain = (*chain[1 - _LINKS :], (instruction.line, start))
        number = self._note(Cause.PORT if start > ready else Cause.DEPENDENCE, instruction.line)
        self._queue.add(start, number)
        self._read(issue, start, start + cost.latency, number)
        for name in issue.writes:
            waits = (port + start - ready, buffer, barrier, True, 0, chain, self._trip)
            self._write(name, ScoreboardValue(instruction, start, NO_TICK, *waits), number)
        self._last_start = max(self._last_start, start)

    def _store(self, issue: ScopeIssue) -> None:
        facts, instruction = self.facts, issue.instruction
        function = facts.function
        data, store = max(self.account.now, self.released), LastStore(line=instruction.line)
        for name in issue.reads:
            value = self._values.get(name)
            if value is None:
                continue
            there = value.loaded + (function.forwarding if value.trip < self._trip else 0)
            if value.loaded == NO_TICK:
                spread = len(value.chain) > 1 and not (value.producer.profiled and value.trip == self._trip)
                late = facts.forwarded(value.producer, instruction) if spread else 0
                there = value.start + max(facts.cost(value.producer).to_store, late)
            if there >= data:
                data, store.port, store.buffer, store.chain = there, value.port, value.buffer, value.chain
                store.barrier = value.barrier
        if instruction.mnemonic in facts.target.timing.micro.store_port.stores:
            self.used.add("timing.micro.store_port")
            passed_port = self._ports.start(self.account.now, data, function.store_latency)
            store.port += passed_port - data
            data = passed_port
        blocked = max(0, self._no_store_before - data)
        data += blocked
        if self._through is None:
            self._through = self._pass_path()
        through = max(data, self._through)
        store.path = through - data
        start = store_start(
            through, self._latest_store, function.store_interval, self._store_barrier, function.store_barrier
        )
        behind = blocked + (start - through if self._store_barrier != NO_TICK else 0)
        store.barrier += behind
        asked = cycle_from(start)
        passed = self.groups.grant(asked, issue.address, instruction.size, write=True)
        store.buffer += (passed - asked) * TICKS
        self.waited = self.waited or passed > asked
        waits = (
            (Cause.STORE_BARRIER, behind), (Cause.BANK_CONFLICT, (passed - asked) * TICKS),
            (Cause.MEMORY_BANDWIDTH, store.path), (Cause.PORT, start - through), (Cause.DEPENDENCE, 1),
        )  # fmt: skip
        number = self._note(next(cause for cause, wait in waits if wait > 0), instruction.line)
        self._waited(instruction.line, data - blocked, start, store, behind, passed - asked)
        self._latest_store = start + (passed - asked) * TICKS
        store.chain = (*store.chain, (instruction.line, self._latest_store))
        self._store_barrier = NO_TICK
        self.held = store
        self._queue.add(self._latest_store, number)
        takes = function.store_latency
        if instruction.word.startswith(INTERLEAVING):
            takes = ticks(facts.target.timing.micro.interleaved_store.store_cycles)
            self.used.add("timing.micro.interleaved_store")
        self._read(issue, self._latest_store, self._latest_store + takes, number)
        self.completed = max(self.completed, self._latest_store + takes)

    def _pass_path(self) -> int:
        """Return when the line of a trip has passed the memory path, which a nest may have opened at some tick."""
        if not self.path_hold:
            return self._arrival
        opened = self.path_opened is not None
        self._path_free = path_through(
            max(self._path_free, self.path_opened or 0), self._arrival, self.path_hold, opened
        )
        return self._path_free

    def _waited(self, line: int, data: int, start: int, store: LastStore, behind: int, conflict: int) -> None:
        """Record the waits of a store after its dispatch: for its data, the path, a barrier or earlier stores."""
        use = self.account.uses[line]
        use.wait(Cause.DEPENDENCE, store.chain[-1][0] if store.chain else 0, data - self.account.now)
        use.wait(Cause.MEMORY_BANDWIDTH, 0, store.path)
        use.wait(Cause.STORE_BARRIER if behind else Cause.PORT, 0, start - data - store.path)
        use.wait(Cause.BANK_CONFLICT, 0, conflict * TICKS)

    def _name(self, issue: ScopeIssue) -> None:
        """Set the name of a mask: those by counters and patterns are ready on demand, derived ones with their source.

        Logic of masks takes its latency, and no execution port.
        """
        instruction, now = issue.instruction, self.account.now
        sources = (self._values[name] for name in issue.reads if name in self._values)
        latest = max(sources, key=lambda value: max(value.loaded, value.start), default=None)
        if instruction.mnemonic in self.facts.target.arithmetic:
            start = now if latest is None else max(now, self._usable(latest, instruction))
            chain = (*(() if latest is None else latest.chain)[1 - _LINKS :], (instruction.line, start))
            latest = ScoreboardValue(instruction, start, NO_TICK, chain=chain)
        self._read(issue, now, now, -1)
        if latest is not None:
            for name in issue.writes:
                self._values[name] = replace(latest, physical=False)

    def _usable(self, value: ScoreboardValue, consumer: ScopeInstruction, *, first: bool = True) -> int:
        """Return when an instruction can compute with a value, which is its `first` operand or another."""
        if value.loaded != NO_TICK:
            return value.loaded
        return value.start + self.facts.forwarded(value.producer, consumer, first=first)

    def _order(self, word: str) -> None:
        """Make later accesses of the second kind wait for earlier ones of the first (docs/reference/micro.md 6.4)."""
        function = self.facts.function
        if word == "VST_VST":
            self.used.add("timing.store_barrier")
            behind = self._store_barrier  # a barrier right behind another one begins when that has ended
            ended = NO_TICK if behind == NO_TICK else max(behind, self._latest_store) + function.store_barrier
            self._store_barrier = max(self._last_start, self.released, self.account.now, ended)
            return
        self.used.add("timing.micro.memory_barrier")
        before, _, after = word.partition("_")
        every = after == "ALL"
        begun, drained = max(self.account.now, self._barrier_passed), NO_TICK
        if every or before == "VST":
            begun, drained = max(begun, self._latest_store), self.completed
        if every or before == "VLD":
            begun, drained = max(begun, self._latest_load), max(drained, self._loaded)
        passed = max(begun + function.memory_barrier, drained)
        self._barrier_passed = passed
        if every or after == "VLD":
            self._no_load_before = passed
        if every or after == "VST":
            self._no_store_before = passed

    # ------------------------------------------------------------------------------------------------------ registers

    def _read(self, issue: ScopeIssue, started: int, completed: int, number: int) -> None:
        """Record that an instruction has read its registers: the last reader of each returns it on completion."""
        for name in self._reduced.intersection(issue.reads):
            self._reduced.remove(name)
            self._reductions.add(started, number)
        for name in set(issue.reads):
            value = self._values.get(name)
            self._readers[name] -= 1
            if value is None:
                continue
            value.latest_read = max(value.latest_read, completed)
            if self._readers[name] == 0:
                del self._values[name]
                if value.physical:
                    self._registers.give(value.latest_read, number)

    def _write(self, name: int, value: ScoreboardValue, number: int) -> None:
        value.physical = not value.producer.masks
        if value.physical:
            self._registers.take()
        if value.producer.mnemonic in self._reducing:
            self._reduced.add(name)
        if self._readers.get(name, 0):
            self._values[name] = value
        elif value.physical:
            self._registers.give(value.start, number)

    def _note(self, cause: Cause, line: int) -> int:
        """Return the number of an instruction; a wait for it has this cause, on behalf of its line."""
        self._lines.append((cause, line))
        return len(self._lines) - 1
