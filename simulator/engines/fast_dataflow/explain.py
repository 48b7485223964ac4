"""Why a run cannot go on, in the words that all engines share (`dataflow.failure`)."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from itertools import islice

from castsim.engines.fast_dataflow.codes import (
    AWAITING_FLAG,
    AWAITING_OPERANDS,
    CHECKPOINT,
    GO,
    GROW,
    MARKER,
    NEVER,
    NONE,
    SCALAR_AWAITS_FLAG,
    SCALAR_RUNS,
    TOKENS,
)
from castsim.engines.fast_dataflow.encoding import Encoder
from castsim.engines.fast_dataflow.executions import execution_of
from castsim.engines.fast_dataflow.issue import issue_one
from castsim.engines.fast_dataflow.scoreboard import first_need
from castsim.engines.fast_dataflow.state import EntryRow, MachineState, chain
from castsim.execution.dataflow.failure import LOOK_AHEAD, Rest, Standstill, explain_deadlock, explain_limit
from castsim.execution.dataflow.operations import SetFlag, WaitFlag
from castsim.execution.tree import Operation
from castsim.isa.errors import EngineError

Refill = Callable[[int], MachineState]
"""Gives the machine what it has stopped for (one of its codes)."""


def deadlock(m: MachineState, encoder: Encoder, refill: Refill) -> EngineError | None:
    """Return the error that names every wait, None if nothing waits."""
    if not _waits(m, encoder):
        return None
    m = _run_on(m, refill)
    waits = _waits(m, encoder)
    unreached = list(islice(_unreached(m, encoder, refill), LOOK_AHEAD))

    def queued(signal: SetFlag) -> int | None:
        p = encoder.pipes.index(signal.pipe) if signal.pipe in encoder.pipes else 0
        for entry in chain(m.entries, m.pipes[p].queue) if p else ():
            if entry.operation != MARKER and _operation(m, encoder, entry) == signal:
                return _instruction(m, entry)
        return None

    return explain_deadlock(encoder.tree, waits, Rest(encoder.pipes[0], queued, unreached))


def limit(m: MachineState, encoder: Encoder, max_cycles: int) -> EngineError:
    """Return the error of a run that took longer than allowed."""
    reached: list[EntryRow] = []
    if m.issuer.beyond != NONE:
        reached.append(m.entries[m.issuer.beyond])
    else:
        for p in range(1, m.pipe_count):
            pipe = m.pipes[p]
            started = [*chain(m.entries, pipe.in_flight)]
            if pipe.current != NONE:
                started.append(m.entries[pipe.current])
            reached += [entry for entry in started if not (entry.known and entry.end <= m.maximum)]
    first = min(reached, key=lambda entry: entry.index, default=None)
    return explain_limit(encoder.tree, max_cycles, None if first is None else _instruction(m, first))


def _instruction(m: MachineState, entry: EntryRow) -> int:
    return execution_of(m, entry.execution).instruction


def _operation(m: MachineState, encoder: Encoder, entry: EntryRow) -> Operation:
    return encoder.operations[m.operations[entry.operation].number]


def _waits(m: MachineState, encoder: Encoder) -> list[Standstill]:
    """Return who waits for what."""
    found = []
    for p in range(1, m.pipe_count):
        pipe, name = m.pipes[p], encoder.pipes[p]
        if pipe.wake == NEVER and pipe.status == AWAITING_FLAG:
            found.append(_at_flag(m, encoder, name, m.entries[pipe.current]))
        elif pipe.wake == NEVER and pipe.status == AWAITING_OPERANDS:
            entry = m.entries[pipe.current]
            need = m.nodes[first_need(m, entry.execution, pipe.local)]
            needed = execution_of(m, need.execution).instruction
            found.append(Standstill(name, entry.index, _instruction(m, entry), needed=needed))
    if m.issuer.wait != SCALAR_RUNS:
        name, entry = encoder.pipes[0], m.entries[m.issuer.waiting]
        if m.issuer.wait == SCALAR_AWAITS_FLAG:
            found.append(_at_flag(m, encoder, name, entry))
        else:
            found.append(Standstill(name, entry.index, _instruction(m, entry)))
    return found


def _at_flag(m: MachineState, encoder: Encoder, pipe: str, entry: EntryRow) -> Standstill:
    flag = _operation(m, encoder, entry)
    assert isinstance(flag, WaitFlag)
    return Standstill(pipe, entry.index, _instruction(m, entry), flag=flag)


def _run_on(m: MachineState, refill: Refill) -> MachineState:
    """Issue operations that no pipe demands: the machine would have issued them."""
    issued = 0
    while issued < LOOK_AHEAD and _goes_on(m):
        before = m.issuer.next
        code = issue_one(m)
        if code in (TOKENS, GROW):
            m = refill(code)
        elif code == GO and m.issuer.next != before:
            issued += 1
    return m


def _goes_on(m: MachineState) -> bool:
    """Whether the scalar unit can issue another operation."""
    return m.issuer.wait == SCALAR_RUNS and m.issuer.beyond == NONE and not m.issuer.all_issued


def _unreached(m: MachineState, encoder: Encoder, refill: Refill) -> Iterator[Operation]:
    """Yield the operations that the scalar unit has not issued."""
    while True:
        issuer = m.issuer
        while issuer.next < issuer.end:
            issuer.next += 1
            yield encoder.operations[m.operations[m.numbers[issuer.next - 1]].number]
        if issuer.all_issued:
            return
        code = issue_one(m)
        if code not in (GO, CHECKPOINT):
            m = refill(code)
