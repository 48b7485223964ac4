"""Discrete-event engine of the strided-repeat mechanism, on simpy: its vector instructions, repeat by
repeat, and the banks of its buffer (docs/reference/a2a3.md section 8). Everything around them is
`event_dataflow`.
"""

from __future__ import annotations

from functools import lru_cache

from simpy import Event

from castsim.engines.event_dataflow import DataflowSimulation
from castsim.engines.event_pipes import At, BufferPorts, Cell, DataflowRun, Pattern, PipeProcess, QueueEntry, Steps
from castsim.execution.pipe_operations import BLOCK
from castsim.execution.timing import Cause, Observer
from castsim.machines.strided.strided_instructions import (
    Stream,
    StridedInstruction,
    always_fills,
    changes_mask,
    check_vector,
    drained,
    facts_of,
    fills,
    is_delayed,
    next_repeat,
    pace_of,
    passes,
    places_of_blocks,
    repeat_blocks,
    result_delay,
    results_due,
    write_asked,
    written,
)
from castsim.targets.strided_repeat import StridedBufferPorts as BankFacts
from castsim.targets.strided_repeat import StridedRepeatTarget

# A strided-repeat vector instruction on its pipe, repeat by repeat.


class _Walk:
    """The blocks of one operand: `byte` is where the next repeat starts."""

    __slots__ = ("byte", "pattern", "step")

    def __init__(self, machine: DataflowRun, operation: StridedInstruction, stream: Stream, *, write: bool) -> None:
        offsets = repeat_blocks(stream, operation.lanes, operation.mask)
        self.pattern: Pattern = machine.ports.pattern(offsets, write)
        self.byte = stream.address
        self.step = stream.step

    def grant(self, machine: DataflowRun, now: int, entry: QueueEntry) -> int:
        """Request the blocks of the next repeat; return when the last one passes."""
        last = machine.ports.grant(now, self.pattern, self.byte // BLOCK, entry)
        self.byte += self.step
        return last


class _WriteBack:
    """Callback of the write events of one operation, which arrive in the order of its repeats.

    `due` is when the results of the last repeat should be in the buffer.
    """

    __slots__ = ("_entry", "_machine", "_passed", "_walk", "due")

    def __init__(self, machine: DataflowRun, entry: QueueEntry, walk: _Walk) -> None:
        self.due = 0
        self._passed = 0
        self._machine = machine
        self._entry = entry
        self._walk = walk

    def __call__(self, _event: Event) -> None:
        machine, entry = self._machine, self._entry
        self._passed = max(self._passed, self._walk.grant(machine, int(machine.env.now), entry))
        entry.pending -= 1
        if entry.pending == 0:
            machine.ledger.finish(entry, max(self.due, written(self._passed)))


class StridedUnit:
    """The vector pipe of one target."""

    def __init__(self, target: StridedRepeatTarget) -> None:
        self._target = target
        self._mask_ready: int | None = None
        """When the mask holds that was written since the last instruction."""
        self._left = -(1 << 60)
        """When the last instruction had begun all of its repeats and its late cycles were over, or a write of the mask
        arrived at an idle pipe."""

    def check(self, operation: object) -> None:
        """Reject operations other than vector instructions of this mechanism, and timing rows that the target lacks."""
        check_vector(operation, self._target)

    def run(self, pipe: PipeProcess, entry: QueueEntry) -> Steps:
        """Execute an instruction; return when the pipe can accept the next one, before results are in the buffer."""
        operation = entry.operation
        if changes_mask(operation, self._target):
            change = self._target.timing.vector_pipe.mask_change_cycles
            self._left = entry.arrival if pipe.waited else self._left
            self._mask_ready = self._left + change
            pipe.machine.facts.add("timing.vector_pipe")
            pipe.machine.ledger.finish(entry, int(pipe.machine.env.now))
            return
        assert isinstance(operation, StridedInstruction)  # checked before the run
        ready, self._mask_ready = self._mask_ready, None
        yield from _run(self._target, pipe, entry, operation, ready)
        late = pace_of(self._target, operation.timing, operation.repeats).late
        self._left = int(pipe.machine.env.now) + late


def _run(
    target: StridedRepeatTarget, pipe: PipeProcess, entry: QueueEntry, operation: StridedInstruction, ready: int | None
) -> Steps:
    machine, env = pipe.machine, pipe.machine.env
    pace = pace_of(target, operation.timing, operation.repeats)
    machine.facts.update(facts_of(operation))
    start = int(env.now)
    empty = fills(int(always_fills(target)) or pace.always, len(pipe.retire()), start, pipe.drain_end)
    entry.begin(start)
    entry.pending = operation.repeats
    pipe.in_flight.append(entry)
    if ready is not None and ready > start:
        start, empty = ready, 1
        pipe.account.spend(Cause.DRAIN, start, entry)
    if empty:
        start += pace.head
        pipe.account.spend(Cause.FILL, start, entry)
    reads = [_Walk(machine, operation, source, write=False) for source in operation.sources]
    write_back = _WriteBack(machine, entry, _Walk(machine, operation, operation.destination, write=True))
    delay = result_delay(pace.tail, pace.at_once)
    asks = write_asked(results_due(0, delay))
    delayed = 0
    for repeat in range(operation.repeats):
        yield At(env, start - int(env.now), entry.index)
        interval_end = start + pace.interval
        passed = start
        for walk in reads:
            passed = max(passed, walk.grant(machine, start, entry))
        next_start = next_repeat(interval_end, passed)
        delayed += is_delayed(passed, start, len(reads))
        if repeat + 1 == operation.repeats:
            interval_end += pace.rest
            next_start += pace.rest + pace.lost[delayed]
        if next_start > interval_end:
            pipe.account.spend(Cause.BUSY, interval_end, entry)
            pipe.account.spend(Cause.BANK_CONFLICT, next_start, entry)
        At(env, next_start + asks - start, entry.index).callbacks.append(write_back)
        start = next_start
    if operation.repeats:
        write_back.due = results_due(start, delay)
    pipe.account.spend(Cause.BUSY, start, entry)
    pipe.note_drain(entry, drained(write_back.due, pace.tail, delay) if operation.repeats else 0)
    yield env.timeout(start - int(env.now))


# Ports and banks of the unified buffer, block by block (docs/reference/a2a3.md section 8).
#
# Block n lies in group n mod `groups`. With exclusive ports, each group has one read port and one write port, each
# passing one block per cycle; with exclusive banks, no bank is read and written in the same cycle. Blocks are served
# first come, first served.


class BankPorts(BufferPorts):
    """Ports and banks, and when each is free for a read, then for a write. Those that exclude nothing stay free."""

    def __init__(self, banks: BankFacts, observer: Observer | None) -> None:
        super().__init__(_cells(banks), observer)
        self._port_free = [0] * (2 * banks.groups)
        self._banks = banks.groups * banks.banks_per_group
        self._bank_free = [0] * (2 * self._banks)
        self._exclusive_ports = banks.exclusive_ports
        self._exclusive_banks = banks.exclusive_banks

    def grant(self, now: int, pattern: Pattern, block: int, entry: QueueEntry) -> int:
        """Request the blocks of a pattern at `now`; return the cycle in which the last one passes."""
        if self._observer is not None:
            return self._grant_watched(now, pattern, block, entry)
        port_free, bank_free = self._port_free, self._bank_free
        ports, banks = self._exclusive_ports, self._exclusive_banks
        own = self._banks if pattern.write else 0
        other = self._banks - own
        last = now
        # The innermost loop of the simulation: `passes` spelled out, as comparisons are three times as fast as calls.
        for port, bank in pattern.at(block):
            cycle = now
            if port_free[port] > cycle:  # noqa: PLR1730
                cycle = port_free[port]
            if bank_free[own + bank] > cycle:  # noqa: PLR1730
                cycle = bank_free[own + bank]
            if ports:
                port_free[port] = cycle + 1
            if banks:
                bank_free[other + bank] = cycle + 1
            if cycle > last:  # noqa: PLR1730
                last = cycle
        return last

    def _grant_watched(self, now: int, pattern: Pattern, block: int, entry: QueueEntry) -> int:
        """Do the same and notify the observer."""
        last = now
        own = self._banks if pattern.write else 0
        other = self._banks - own
        for (port, bank), distance in zip(pattern.at(block), pattern.distances, strict=True):
            cycle = passes(now, self._port_free[port], self._bank_free[own + bank])
            if self._exclusive_ports:
                self._port_free[port] = cycle + 1
            if self._exclusive_banks:
                self._bank_free[other + bank] = cycle + 1
            last = max(last, cycle)
            self._tell(cycle, now, (block + distance) * BLOCK, pattern.write, entry)
        return last


@lru_cache(maxsize=16)
def _cells(banks: BankFacts) -> dict[bool, tuple[Cell, ...]]:
    """Return port and bank of every block, for reads and for writes."""
    reads, writes, places = places_of_blocks(banks)
    return {write: tuple(zip(ports, places, strict=True)) for write, ports in ((False, reads), (True, writes))}


class EventSimulation(DataflowSimulation):
    """A run of a tree on a target with strided-repeat instructions."""

    VECTOR_UNIT = StridedUnit
    PORTS = BankPorts
