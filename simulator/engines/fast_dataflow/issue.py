"""The scalar unit: executes control in program order and sends everything else to the queues.

It runs ahead of the clock, and only as far as some pipe needs it (see `event_dataflow.issue`).
"""

from __future__ import annotations

from simulator.engines.fast_dataflow.executions import at
from simulator.engines.fast_dataflow.layout import (
    ALL_ISSUED,
    AWAITING_FLAG,
    BARRIER,
    BEGIN,
    BEYOND,
    BLOCKED,
    BLOCKED_ENTRY,
    CHECKPOINT,
    CLOCK,
    CLOSING,
    CROWDED,
    DEMANDS,
    DRAINED_AT,
    E_ARRIVAL,
    E_END,
    E_EXECUTION,
    E_INDEX,
    E_KNOWN,
    E_START,
    END,
    ENTRY_SPARE,
    EXECUTION,
    EXECUTION_MASK,
    FENCE_ALL,
    FINISHED,
    FIRST_EXECUTION,
    FLAG_WAIT,
    FLAG_WAITER,
    GO,
    GROW,
    INDEX,
    INTERLOCKED,
    ISSUED,
    L_COUNT,
    L_INSTRUCTION,
    L_OPERATIONS,
    LIMIT,
    LIVE,
    MARKER,
    MAXIMUM,
    MOST_ACCESSES,
    NO_MORE,
    NO_TIME,
    NODE_SPARE,
    NONE,
    NOW,
    O_CAUSE,
    O_COST,
    O_FLAG,
    O_KIND,
    O_PIPE,
    ONE_OPEN,
    OPERATION,
    OPERATION_END,
    P_DEMANDS,
    P_PATIENT,
    P_REMAINING,
    P_STATUS,
    PART,
    PIPES,
    REMAINING,
    RESUMED_AT,
    SCALAR_AWAITS_DRAIN,
    SCALAR_AWAITS_FLAG,
    SCALAR_END,
    SCALAR_PIPE,
    SCALAR_RUNS,
    SET,
    SIGNIFICANT,
    TOKEN,
    TOKEN_END,
    TOKENS,
    UNDRAINED,
    URGENT,
    WAIT,
    WHOLE,
    X_END,
    X_INSTRUCTION,
    X_NEEDS,
    X_OPEN,
    X_START,
    Cells,
)
from simulator.engines.fast_dataflow.pipes import (
    close_one,
    fire,
    free_entry,
    new_entry,
    push,
    settle,
    spend,
    take,
)
from simulator.engines.fast_dataflow.scoreboard import enter


def advance(m: Cells) -> int:
    """Go on while a pipe demands it, or nothing but scalar work is left; return why it stopped."""
    while m[BLOCKED] == SCALAR_RUNS and not m[ALL_ISSUED] and _is_wanted(m):
        code = issue_one(m)
        if code != GO:
            return code
    return GO


def issue_one(m: Cells) -> int:
    """Issue the next operation, or take the next token; return why that is impossible."""
    if not has_room(m):
        return GROW
    if m[OPERATION] == m[OPERATION_END]:
        return _fetch(m)
    row = m[m[OPERATION]]
    m[OPERATION] += 1
    _issue(m, row)
    return GO if m[BEYOND] == NONE else LIMIT


def _is_wanted(m: Cells) -> bool:
    return m[URGENT] != 0 or m[REMAINING] == 0 or (m[DEMANDS] != 0 and m[CROWDED] == 0)


def demand(m: Cells, p: int) -> None:
    """Note that a pipe wants something to do."""
    if not m[P_DEMANDS + p]:
        m[P_DEMANDS + p] = 1
        m[DEMANDS] += 1 - m[P_PATIENT + p]


def has_room(m: Cells) -> bool:
    """Whether the columns have room for whatever one step may need."""
    return (
        m[EXECUTION] - m[FIRST_EXECUTION] < m[EXECUTION_MASK]
        and m[ENTRY_SPARE] > m[PIPES] + 1
        and m[NODE_SPARE] > (m[LIVE] + 2) * (2 * m[MOST_ACCESSES] + 1)
    )


def resume(m: Cells, cause: int, cycle: int) -> None:
    """End the wait of the scalar unit in `cycle`, or at once if that is past."""
    e = m[BLOCKED_ENTRY]
    m[BLOCKED] = SCALAR_RUNS
    m[BLOCKED_ENTRY] = NONE
    m[RESUMED_AT] = NONE
    m[SIGNIFICANT] += 1
    m[CLOCK] = max(m[CLOCK], cycle)
    spend(m, SCALAR_PIPE, cause, m[CLOCK], e)
    _finish(m, e)


def _fetch(m: Cells) -> int:
    """Take the next token; return why that is impossible."""
    if m[TOKEN] == m[TOKEN_END]:
        if not m[NO_MORE]:
            return TOKENS
        _close(m)
        m[ALL_ISSUED] = 1
        return GO
    token = m[m[TOKEN]]
    m[TOKEN] += 1
    _close(m)
    if token < 0:
        return CHECKPOINT
    kind, row = token & 3, token >> 2
    if kind in (WHOLE, BEGIN):
        _open(m, row)
    if kind in (WHOLE, PART):
        m[OPERATION] = row + L_OPERATIONS
        m[OPERATION_END] = row + L_OPERATIONS + m[row + L_COUNT]
    m[CLOSING] = 1 if kind in (WHOLE, END) else 0
    return GO


def _open(m: Cells, lowered: int) -> None:
    """Begin an execution."""
    m[EXECUTION] += 1
    x = m[EXECUTION]
    row = at(m, x)
    m[row + X_INSTRUCTION] = m[lowered + L_INSTRUCTION]
    m[row + X_START] = m[CLOCK]
    m[row + X_END] = m[CLOCK]
    m[row + X_OPEN] = SCALAR_END
    m[row + X_NEEDS] = NONE
    if m[INTERLOCKED]:
        enter(m, x, lowered)


def _close(m: Cells) -> None:
    """Note that all operations of the execution were issued, if that is so."""
    if m[CLOSING]:
        m[CLOSING] = 0
        row = at(m, m[EXECUTION])
        m[row + X_OPEN] |= ISSUED
        if m[row + X_OPEN] < ONE_OPEN:
            settle(m, row)


def _issue(m: Cells, row: int) -> None:
    """Spend the scalar unit's own cycles on an operation and execute it or send it."""
    e = new_entry(m, row)
    x = m[EXECUTION]
    m[at(m, x) + X_OPEN] += ONE_OPEN
    m[e + E_EXECUTION] = x
    m[e + E_INDEX] = m[INDEX]
    m[INDEX] += 1
    m[e + E_START] = m[CLOCK]
    m[CLOCK] += m[row + O_COST]
    p = m[row + O_PIPE]
    # What the scalar unit spends on sending an operation is not among the operation's own cycles.
    spend(m, SCALAR_PIPE, m[row + O_CAUSE], m[CLOCK], e if p == SCALAR_PIPE else NONE)
    if m[CLOCK] > m[MAXIMUM]:
        m[BEYOND] = e
    elif p == SCALAR_PIPE:
        _execute(m, e, row)
    else:
        m[e + E_ARRIVAL] = m[CLOCK]
        m[P_REMAINING + p] -= 1
        m[REMAINING] -= 1
        if m[P_STATUS + p] != AWAITING_FLAG:  # else it wants a flag of the scalar unit
            _satisfy(m, p)
        push(m, p, e)


def _execute(m: Cells, e: int, row: int) -> None:
    """Do what an operation of the scalar unit does once its cycles are spent."""
    kind = m[row + O_KIND]
    if kind == SET:
        waiter = fire(m, m[row + O_FLAG], m[CLOCK])
        if waiter != NONE:
            _satisfy(m, waiter)
            if m[CLOCK] > m[NOW]:
                m[SIGNIFICANT] += 1
        _finish(m, e)
    elif kind == WAIT:
        m[BLOCKED] = SCALAR_AWAITS_FLAG
        m[BLOCKED_ENTRY] = e
        cycle = take(m, m[row + O_FLAG])
        if cycle == NONE:
            m[m[row + O_FLAG] + FLAG_WAITER] = SCALAR_PIPE
        else:
            resume(m, FLAG_WAIT, cycle)
    elif kind == FENCE_ALL:
        m[BLOCKED] = SCALAR_AWAITS_DRAIN
        m[BLOCKED_ENTRY] = e
        m[UNDRAINED] = m[PIPES] - 1
        m[DRAINED_AT] = NO_TIME
        for p in range(1, m[PIPES]):
            marker = new_entry(m, MARKER)
            m[marker + E_INDEX] = NONE
            push(m, p, marker)
    else:
        _finish(m, e)


def drained(m: Cells, cycle: int) -> None:
    """Note that one more pipe has drained, in `cycle`, for the barrier that the scalar unit is at."""
    m[DRAINED_AT] = max(m[DRAINED_AT], cycle)
    m[UNDRAINED] -= 1
    if m[UNDRAINED] == 0:
        resume(m, BARRIER, m[DRAINED_AT])


def signalled(m: Cells) -> None:
    """Let the scalar unit go on whose flag was set."""
    resume(m, FLAG_WAIT, m[RESUMED_AT])


def _satisfy(m: Cells, p: int) -> None:
    """Note that a pipe has got what it demanded."""
    if m[P_DEMANDS + p]:
        m[P_DEMANDS + p] = 0
        m[DEMANDS] -= 1 - m[P_PATIENT + p]
    m[URGENT] = 0


def _finish(m: Cells, e: int) -> None:
    """Settle that an operation of the scalar unit ends now."""
    m[e + E_END] = m[CLOCK]
    m[e + E_KNOWN] = m[NOW] + 1
    row = at(m, m[e + E_EXECUTION])
    if m[CLOCK] > m[row + X_END]:
        if not m[row + X_OPEN] & SCALAR_END:
            m[SIGNIFICANT] += 1
        m[row + X_END] = m[CLOCK]
        m[row + X_OPEN] |= SCALAR_END
    close_one(m, row)
    m[FINISHED] += 1
    free_entry(m, e)
