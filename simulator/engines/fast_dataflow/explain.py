"""Why a run cannot go on, in the words of the event engine (`event_dataflow.failure`)."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from itertools import islice

from isa.errors import EngineError
from simulator.dataflow.operations import SetFlag, WaitFlag
from simulator.engines.event_dataflow.failure import LOOK_AHEAD, Rest, Standstill, explain_deadlock, explain_limit
from simulator.engines.fast_dataflow.encoding import Encoder
from simulator.engines.fast_dataflow.executions import at
from simulator.engines.fast_dataflow.issue import issue_one
from simulator.engines.fast_dataflow.layout import (
    ALL_ISSUED,
    AWAITING_FLAG,
    AWAITING_OPERANDS,
    BEYOND,
    BLOCKED,
    BLOCKED_ENTRY,
    CHECKPOINT,
    E_END,
    E_EXECUTION,
    E_INDEX,
    E_KNOWN,
    E_NEXT,
    E_OPERATION,
    GO,
    GROW,
    MARKER,
    MAXIMUM,
    N_EXECUTION,
    NEVER,
    NONE,
    O_NUMBER,
    OPERATION,
    OPERATION_END,
    P_CURRENT,
    P_FLIGHT,
    P_LOCAL,
    P_QUEUE,
    P_STATUS,
    P_WAKE,
    PIPES,
    SCALAR_AWAITS_FLAG,
    SCALAR_RUNS,
    TOKENS,
    X_INSTRUCTION,
    Cells,
)
from simulator.engines.fast_dataflow.scoreboard import first_need
from simulator.tree import Operation

Refill = Callable[[int], Cells]
"""Gives the machine what it has stopped for (one of its codes)."""


def deadlock(m: Cells, encoder: Encoder, refill: Refill) -> EngineError | None:
    """Return the error that names every wait, None if nothing waits."""
    if not _waits(m, encoder):
        return None
    m = _run_on(m, refill)
    waits = _waits(m, encoder)
    unreached = list(islice(_unreached(m, encoder, refill), LOOK_AHEAD))

    def queued(signal: SetFlag) -> int | None:
        p = encoder.pipes.index(signal.pipe) if signal.pipe in encoder.pipes else 0
        e = m[P_QUEUE + p]
        while p and e != NONE:
            row = m[e + E_OPERATION]
            if row != MARKER and encoder.operations[m[row + O_NUMBER]] == signal:
                return _instruction(m, encoder, e)
            e = m[e + E_NEXT]
        return None

    return explain_deadlock(encoder.tree, waits, Rest(encoder.pipes[0], queued, unreached))


def limit(m: Cells, encoder: Encoder, max_cycles: int) -> EngineError:
    """Return the error of a run that took longer than allowed."""
    reached: list[int] = []
    if m[BEYOND] != NONE:
        reached.append(m[BEYOND])
    else:
        for p in range(1, m[PIPES]):
            e = m[P_FLIGHT + p]
            started = [m[P_CURRENT + p]]
            while e != NONE:
                started.append(e)
                e = m[e + E_NEXT]
            reached += [e for e in started if e != NONE and not (m[e + E_KNOWN] and m[e + E_END] <= m[MAXIMUM])]
    first = min(reached, key=lambda e: m[e + E_INDEX], default=None)
    return explain_limit(encoder.tree, max_cycles, None if first is None else _instruction(m, encoder, first))


def _instruction(m: Cells, encoder: Encoder, e: int) -> int:
    return int(m[at(m, m[e + E_EXECUTION]) + X_INSTRUCTION])


def _waits(m: Cells, encoder: Encoder) -> list[Standstill]:
    """Return who waits for what."""
    found = []
    for p in range(1, m[PIPES]):
        e = m[P_CURRENT + p]
        if m[P_WAKE + p] == NEVER and m[P_STATUS + p] == AWAITING_FLAG:
            found.append(_at_flag(m, encoder, encoder.pipes[p], e))
        elif m[P_WAKE + p] == NEVER and m[P_STATUS + p] == AWAITING_OPERANDS:
            needed = first_need(m, m[e + E_EXECUTION], m[P_LOCAL + p])
            instruction = int(m[at(m, m[needed + N_EXECUTION]) + X_INSTRUCTION])
            found.append(Standstill(encoder.pipes[p], m[e + E_INDEX], _instruction(m, encoder, e), needed=instruction))
    e = m[BLOCKED_ENTRY]
    if m[BLOCKED] == SCALAR_AWAITS_FLAG:
        found.append(_at_flag(m, encoder, encoder.pipes[0], e))
    elif m[BLOCKED] != SCALAR_RUNS:
        found.append(Standstill(encoder.pipes[0], m[e + E_INDEX], _instruction(m, encoder, e)))
    return found


def _at_flag(m: Cells, encoder: Encoder, pipe: str, e: int) -> Standstill:
    flag = encoder.operations[m[m[e + E_OPERATION] + O_NUMBER]]
    assert isinstance(flag, WaitFlag)
    return Standstill(pipe, m[e + E_INDEX], _instruction(m, encoder, e), flag=flag)


def _run_on(m: Cells, refill: Refill) -> Cells:
    """Issue operations that no pipe demands: the machine would have issued them."""
    issued = 0
    while issued < LOOK_AHEAD and m[BLOCKED] == SCALAR_RUNS and m[BEYOND] == NONE and not m[ALL_ISSUED]:
        before = m[OPERATION]
        code = issue_one(m)
        if code in (TOKENS, GROW):
            m = refill(code)
        elif code == GO and m[OPERATION] != before:
            issued += 1
    return m


def _unreached(m: Cells, encoder: Encoder, refill: Refill) -> Iterator[Operation]:
    """Yield the operations that the scalar unit has not issued."""
    while True:
        while m[OPERATION] < m[OPERATION_END]:
            m[OPERATION] += 1
            yield encoder.operations[m[m[m[OPERATION] - 1] + O_NUMBER]]
        if m[ALL_ISSUED]:
            return
        code = issue_one(m)
        if code not in (GO, CHECKPOINT):
            m = refill(code)
