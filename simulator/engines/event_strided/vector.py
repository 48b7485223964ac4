"""A strided-repeat vector instruction on its pipe, repeat by repeat."""

from __future__ import annotations

from simpy import Event

from castsim.engines.event_dataflow.events import At
from castsim.engines.event_dataflow.pipes import DataflowRun, Entry, Pattern, PipeProcess, Steps
from castsim.machines.strided.geometry import repeat_blocks
from castsim.machines.strided.operations import BLOCK, Stream, VectorOperation
from castsim.machines.strided.timing import (
    drained,
    fills,
    next_repeat,
    result_delay,
    results_due,
    write_asked,
    written,
)
from castsim.machines.strided.timing_facts import always_fills, changes_mask, check_vector, facts_of, pace_of
from castsim.targets.strided_repeat import StridedRepeatTarget
from castsim.timing import Cause


class _Walk:
    """The blocks of one operand: `byte` is where the next repeat starts."""

    __slots__ = ("byte", "pattern", "step")

    def __init__(self, machine: DataflowRun, operation: VectorOperation, stream: Stream, *, write: bool) -> None:
        offsets = repeat_blocks(stream, operation.lanes, operation.mask)
        self.pattern: Pattern = machine.ports.pattern(offsets, write)
        self.byte = stream.address
        self.step = stream.step

    def grant(self, machine: DataflowRun, now: int, entry: Entry) -> int:
        """Ask for the blocks of the next repeat; return when the last one passes."""
        last = machine.ports.grant(now, self.pattern, self.byte // BLOCK, entry)
        self.byte += self.step
        return last


class _WriteBack:
    """Callback of the write events of one operation, which come in the order of its repeats.

    `due` is when the results of the last repeat should be in the buffer.
    """

    __slots__ = ("_entry", "_machine", "_passed", "_walk", "due")

    def __init__(self, machine: DataflowRun, entry: Entry, walk: _Walk) -> None:
        self.due = 0
        self._passed = 0
        self._machine = machine
        self._entry = entry
        self._walk = walk

    def __call__(self, _event: Event) -> None:
        machine, entry = self._machine, self._entry
        self._passed = max(self._passed, self._walk.grant(machine, int(machine.env.now), entry))
        entry.held = max(entry.held, machine.ports.held)
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
        """Reject what is not a vector instruction of this mechanism, and timing rows that the target does not have."""
        check_vector(operation, self._target)

    def run(self, pipe: PipeProcess, entry: Entry) -> Steps:
        """Execute an instruction; returns when the pipe can take the next one, before the results are in the buffer."""
        operation = entry.operation
        if changes_mask(operation, self._target):
            change = self._target.timing.vector_pipe.mask_change_cycles
            self._left = entry.arrival if pipe.waited else self._left
            self._mask_ready = self._left + change
            pipe.machine.facts.add("timing.vector_pipe")
            pipe.machine.ledger.finish(entry, int(pipe.machine.env.now))
            return
        assert isinstance(operation, VectorOperation)  # checked before the run
        ready, self._mask_ready = self._mask_ready, None
        yield from _run(self._target, pipe, entry, operation, ready)
        late = pace_of(self._target, operation.timing, operation.repeats).late
        self._left = int(pipe.machine.env.now) + late


def _run(
    target: StridedRepeatTarget, pipe: PipeProcess, entry: Entry, operation: VectorOperation, ready: int | None
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
        next_start, held = interval_end, 0
        for walk in reads:
            next_start = next_repeat(next_start, walk.grant(machine, start, entry))
            held = max(held, machine.ports.held)
        if next_start > interval_end:
            delayed += 1
        if repeat + 1 == operation.repeats:
            interval_end += pace.rest
            next_start += pace.rest + pace.lost[delayed]
        if next_start > interval_end:
            pipe.account.spend(Cause.BUSY, interval_end, entry)
            pipe.account.spend_excess(interval_end, next_start, held, entry)
        At(env, next_start + asks - start, entry.index).callbacks.append(write_back)
        start = next_start
    if operation.repeats:
        write_back.due = results_due(start, delay)
    pipe.account.spend(Cause.BUSY, start, entry)
    pipe.note_drain(entry, drained(write_back.due, pace.tail, delay) if operation.repeats else 0)
    yield env.timeout(start - int(env.now))
