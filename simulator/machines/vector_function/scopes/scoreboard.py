"""The instructions of a launch after each other: when each is dispatched, starts and completes.

Source of the rules: docs/reference/micro.md 6.2.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

from castsim.execution.dataflow.timing import NO_TICK, TICKS, cycle_from, ticks
from castsim.machines.vector_function.scopes.account import Account
from castsim.machines.vector_function.scopes.facts import ScopeFacts
from castsim.machines.vector_function.scopes.resources import BufferGroups, Ports, Queue, Registers
from castsim.machines.vector_function.scopes.scope import Instruction, Issue, Kind
from castsim.machines.vector_function.timing import loaded, store_asked, store_start
from castsim.machines.vector_function.trip_timing import MemoryPath
from castsim.timing import Cause

_REMEMBERED = 2000 * TICKS
"""After so long the board forgets what lies behind the front end."""

_LINKS = 32
"""Links of a chain that are remembered."""

Chain = tuple[tuple[int, int], ...]
"""Lines and the ticks at which their instructions started, the earliest first."""

INTERLEAVING = "INTLV"
"""Stores of two registers have a distribution whose name begins so."""


@dataclass(slots=True)
class Value:
    """A register or mask: what made it and when, and how long its chain waited for ports and for the buffer.

    `loaded` is when a loaded register can be used; NO_TICK if an instruction computed it. `physical`: it takes one of
    the vector registers, as masks do not. `chain` are line and start of what it was made of, the latest operand each
    time, up to its own.
    """

    producer: Instruction
    start: int
    loaded: int
    port: int = 0
    buffer: int = 0
    physical: bool = True
    latest_read: int = 0
    chain: Chain = ()


@dataclass(slots=True)
class Store:
    """How long each cause held the last store, and the chain that ends with it."""

    path: int = 0
    barrier: int = 0
    port: int = 0
    buffer: int = 0
    line: int = 0
    chain: Chain = ()


class Board:
    """One launch. `account.now` is the tick up to which the front end has worked."""

    def __init__(self, facts: ScopeFacts, readers: dict[int, int], account: Account) -> None:
        micro = facts.target.timing.micro
        self.facts, self.account = facts, account
        self.used: set[str] = set()
        self.path = MemoryPath()
        self.path_hold = 0
        self.path_opened: int | None = None
        self.released = NO_TICK
        self._arrival = 0
        self._through: int | None = 0
        self.held = Store()
        self.holding: Sequence[tuple[int, int]] = ()
        """Lines that keep the front end in this trip anyway, and until when."""
        self.completed = 0
        self._readers = readers
        self._values: dict[int, Value] = {}
        self._queue = Queue(micro.dispatch.queue + micro.execution.ports * micro.dispatch.port_queue)
        self._registers = Registers(micro.registers.physical)
        self._ports = Ports(micro.execution.ports)
        self._groups = BufferGroups(facts.target.banks)
        self._lines: list[tuple[Cause, int]] = []
        self._cycle, self._sent, self._loads = NO_TICK, 0, 0
        self._latest_store = NO_TICK
        self._forget_at = _REMEMBERED
        self._loaded = self._last_start = self._serial = 0
        self.serial_bound = False
        """Whether the trip keeps the front end for its work at the first port alone."""
        self._store_barrier = NO_TICK
        self._no_load_before = self._no_store_before = NO_TICK
        self._per_cycle = micro.dispatch.per_cycle

    @property
    def stored(self) -> int:
        """Return the tick behind the last store's start."""
        return self._latest_store + self.facts.function.store_interval

    # ------------------------------------------------------------------------------------------------- dispatching

    def step(self, issue: Issue) -> None:
        """Dispatch an instruction and place it."""
        kind = issue.instruction.kind
        self.account.uses[issue.instruction.line].execute(issue.instruction.text or issue.instruction.mnemonic)
        if kind is Kind.BARRIER:
            self._order(issue.instruction.word)
        elif kind is Kind.PREDICATE:
            self._name(issue)
        elif kind in (Kind.LOAD, Kind.STORE, Kind.COMPUTE):
            self._dispatch(issue)
            {Kind.LOAD: self._load, Kind.STORE: self._store, Kind.COMPUTE: self._compute}[kind](issue)

    def begin_trip(self) -> None:
        """Begin a trip: its lines pass the memory path together."""
        if self.account.now > self._forget_at:
            self._forget_at = self.account.now + _REMEMBERED
            self._ports.forget(self.account.now)
            self._groups.forget(self.account.now // TICKS)
        self._arrival, self._through = self.account.now, None
        self._serial, self.serial_bound = self.account.now, False

    def _arrive(self) -> None:
        """Begin a cycle of the front end."""
        self._cycle, self._sent, self._loads = self.account.now, 0, 0

    def _dispatch(self, issue: Issue) -> None:
        """Let the front end send an instruction: so many a cycle, once there is a register and a place to wait."""
        account, instruction = self.account, issue.instruction
        if account.now != self._cycle:
            self._arrive()
        if self._sent == self._per_cycle:
            line = next((line for line, until in self.holding if account.now < until), instruction.line)
            account.spend(Cause.BUSY, account.now + TICKS, line)
            self.used.add("timing.micro.dispatch")
            self._arrive()
        gates = [("timing.micro.registers", self._registers.gate)] if self._takes_register(issue) else []
        if instruction.kind is not Kind.LOAD:
            gates.append(("timing.micro.dispatch", self._queue.gate))
        for fact, (tick, number) in gates:
            if tick > account.now:
                cause, line = self._lines[number]
                account.spend(cause, tick, line)
                self.used.add(fact)
                self._arrive()
        self._sent += 1

    def _takes_register(self, issue: Issue) -> bool:
        return bool(issue.writes) and not issue.instruction.masks

    # -------------------------------------------------------------------------------------------------- instructions

    def _load(self, issue: Issue) -> None:
        sent, instruction = self.account.now, issue.instruction
        begun = max(sent, self._no_load_before)
        asked = cycle_from(begun)
        passed = self._groups.grant(asked, issue.address, instruction.size, write=False)
        wait = (passed - asked) * TICKS
        function = self.facts.function
        number = self._loads if begun == sent else 0
        there = loaded(begun, number, function.second_load, wait, function.load_use)
        self._loads += 1
        self._arrival = max(self._arrival, there)
        number = self._note(Cause.STORE_BARRIER if begun > sent else Cause.BANK_CONFLICT, instruction.line)
        self._read(issue, begun, number)
        use = self.account.uses[instruction.line]
        use.wait(Cause.STORE_BARRIER, 0, begun - sent)
        use.wait(Cause.BANK_CONFLICT, 0, wait)
        for name in issue.writes:
            self._write(name, Value(instruction, begun, there, buffer=wait, chain=((instruction.line, begun),)), number)
        self._loaded = max(self._loaded, begun + ticks(self.facts.target.timing.access.load_cycles))

    def _compute(self, issue: Issue) -> None:
        facts, instruction = self.facts, issue.instruction
        cost = facts.cost(instruction)
        ready = port = buffer = 0
        chain: Chain = ()
        for name in issue.reads:
            value = self._values.get(name)
            if value is None:
                continue
            there = (
                value.loaded if value.loaded != NO_TICK else value.start + facts.forwarded(value.producer, instruction)
            )
            if there > ready:
                ready, port, buffer, chain = there, value.port, value.buffer, value.chain
        use = self.account.uses[instruction.line]
        use.wait(Cause.DEPENDENCE, chain[-1][0] if chain else 0, ready - self.account.now)
        ready = max(ready, self.account.now)
        if cost.serial:
            if self.serial_bound:  # the front end leaves time for its converts, which keep their order
                start = max(ready, self._serial)
                self._serial = start + cost.serial
            else:
                start = self._ports.start_serial(ready, cost.serial)
        elif cost.special:
            start = self._ports.start_special(ready, cost.latency, cost.special)
        else:
            start = self._ports.start(ready, cost.latency, cost.held)
        use.wait(Cause.PORT, 0, start - ready)
        chain = (*chain[1 - _LINKS :], (instruction.line, start))
        number = self._note(Cause.PORT if start > ready else Cause.DEPENDENCE, instruction.line)
        self._queue.add(start, number)
        self._read(issue, start + cost.latency, number)
        for name in issue.writes:
            self._write(name, Value(instruction, start, NO_TICK, port + start - ready, buffer, chain=chain), number)
        self._last_start = max(self._last_start, start)

    def _store(self, issue: Issue) -> None:
        facts, instruction = self.facts, issue.instruction
        function = facts.function
        data, held = max(self.account.now, self.released, self._no_store_before), Store(line=instruction.line)
        for name in issue.reads:
            value = self._values.get(name)
            if value is None:
                continue
            there = value.loaded
            if there == NO_TICK:
                there = value.start + facts.cost(value.producer).to_store
            if there >= data:
                data, held.port, held.buffer, held.chain = there, value.port, value.buffer, value.chain
        if self._through is None:
            self._through = self.path.take(self._arrival, self.path_hold, self.path_opened)
        through = max(data, self._through)
        held.path = through - data
        start = store_start(
            through, self._latest_store, function.store_interval, self._store_barrier, function.store_barrier
        )
        held.barrier = start - through if self._store_barrier != NO_TICK else 0
        asked = store_asked(start)
        passed = self._groups.grant(asked, issue.address, instruction.size, write=True)
        held.buffer += (passed - asked) * TICKS
        waits = (
            (Cause.STORE_BARRIER, held.barrier), (Cause.BANK_CONFLICT, (passed - asked) * TICKS),
            (Cause.MEMORY_BANDWIDTH, held.path), (Cause.PORT, start - through), (Cause.DEPENDENCE, 1),
        )  # fmt: skip
        number = self._note(next(cause for cause, wait in waits if wait > 0), instruction.line)
        self._waited(instruction.line, data, start, held, passed - asked)
        self._latest_store = start + (passed - asked) * TICKS
        held.chain = (*held.chain, (instruction.line, self._latest_store))
        self._store_barrier = NO_TICK
        self.held = held
        self._queue.add(self._latest_store, number)
        takes = function.store_latency
        if instruction.word.startswith(INTERLEAVING):
            takes = ticks(facts.target.timing.micro.interleaved_store.store_cycles)
            self.used.add("timing.micro.interleaved_store")
        self._read(issue, self._latest_store + takes, number)
        self.completed = max(self.completed, self._latest_store + takes)

    def _waited(self, line: int, data: int, start: int, held: Store, conflict: int) -> None:
        """Note what a store waited for from its dispatch on: its data, the path, a barrier or those before it."""
        use = self.account.uses[line]
        use.wait(Cause.DEPENDENCE, held.chain[-1][0] if held.chain else 0, data - self.account.now)
        use.wait(Cause.MEMORY_BANDWIDTH, 0, held.path)
        use.wait(Cause.STORE_BARRIER if held.barrier else Cause.PORT, 0, start - data - held.path)
        use.wait(Cause.BANK_CONFLICT, 0, conflict * TICKS)

    def _name(self, issue: Issue) -> None:
        """Masks by counters and patterns are ready when wanted; one made of another is ready when that is."""
        latest = max((self._values[name] for name in issue.reads if name in self._values), key=_known_at, default=None)
        self._read(issue, self.account.now, -1)
        if latest is not None:
            for name in issue.writes:
                self._values[name] = replace(latest, physical=False)

    def _order(self, word: str) -> None:
        """Let later accesses of the second kind wait for earlier ones of the first (docs/reference/micro.md 6.4)."""
        before, _, after = word.partition("_")
        every = "VV_ALL" in word or "VS_ALL" in word or "SV_ALL" in word
        if word == "VST_VST":
            self.used.add("timing.store_barrier")
            self._store_barrier = max(self._last_start, self.released)
            return
        if every or before in ("VST",):
            if every or after == "VLD":
                self._no_load_before = max(self._no_load_before, self.completed)
            if every:
                self._no_store_before = max(self._no_store_before, self.completed)
        if every or before == "VLD":
            self._no_store_before = max(self._no_store_before, self._loaded)

    # ------------------------------------------------------------------------------------------------------ registers

    def _read(self, issue: Issue, completed: int, number: int) -> None:
        """Note that an instruction has read its registers: the last reader of each gives it back as it completes."""
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

    def _write(self, name: int, value: Value, number: int) -> None:
        value.physical = not value.producer.masks
        if value.physical:
            self._registers.take()
        if self._readers.get(name, 0):
            self._values[name] = value
        elif value.physical:
            self._registers.give(value.start, number)

    def _note(self, cause: Cause, line: int) -> int:
        """Return the number of an instruction; whoever waits for it waits for this cause, on behalf of its line."""
        self._lines.append((cause, line))
        return len(self._lines) - 1


def _known_at(value: Value) -> int:
    return value.loaded if value.loaded != NO_TICK else value.start
