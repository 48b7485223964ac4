"""One pipe: its queue, what it does at the head of it, the operations in flight, and its account.

Names and rules are those of `event_dataflow.pipes` and `event_dataflow.process`; a pipe that would wait there for an
event has `p_wake` NEVER here until somebody knows when it goes on.
"""

from __future__ import annotations

from simulator.engines.fast_dataflow.executions import at
from simulator.engines.fast_dataflow.layout import (
    BANK_CONFLICT,
    BEGUN,
    CAUSES_AT,
    CHANGED,
    CROWDED,
    DRAIN,
    E_ARRIVAL,
    E_CAUSES,
    E_END,
    E_EXECUTION,
    E_INDEX,
    E_KNOWN,
    E_NEXT,
    E_OPERATION,
    E_PENDING,
    E_START,
    EMPTY,
    ENTRY_FREE,
    ENTRY_SPARE,
    FINISHED,
    FLAG_SIGNALS,
    FLAG_SIGNALS_END,
    FLAG_VERSION,
    FLAG_WAIT,
    FLAG_WAITER,
    FREE,
    ISSUED,
    LATEST,
    N_FIRST,
    N_NEXT,
    NEVER,
    NO_TIME,
    NODE_FREE,
    NODE_SPARE,
    NONE,
    NOW,
    ONE_OPEN,
    P_BEGAN,
    P_BEGAN_ARRIVAL,
    P_BEGAN_AT,
    P_BEGAN_INDEX,
    P_CURSOR,
    P_DRAIN_END,
    P_DRAINING,
    P_FLIGHT,
    P_FLIGHT_END,
    P_LATEST,
    P_LATEST_END,
    P_LOCAL,
    P_QUEUE,
    P_QUEUE_END,
    P_QUEUED,
    P_STATUS,
    P_VERSION,
    P_WAKE,
    PATIENCE,
    PIPES,
    RECORDING,
    RESUMED_AT,
    SCALAR_END,
    SCALAR_PIPE,
    SIGNIFICANT,
    WIDTH,
    X_END,
    X_NEEDS,
    X_OPEN,
    X_START,
    Cells,
)

# ------------------------------------------------------------------------------------------------ entries and nodes


def new_entry(m: Cells, operation: int) -> int:
    """Return a fresh entry; there is room, the caller has seen to it."""
    e = m[ENTRY_FREE]
    m[ENTRY_FREE] = m[e + E_NEXT]
    m[ENTRY_SPARE] -= 1
    m[e + E_OPERATION] = operation
    m[e + E_NEXT] = NONE
    m[e + E_KNOWN] = 0
    m[e + E_PENDING] = 0
    m[e + E_END] = 0
    return e


def free_entry(m: Cells, e: int) -> None:
    """Give an entry back; where operations are recorded it is kept."""
    if m[RECORDING] and m[e + E_OPERATION] != NONE:
        return
    m[e + E_NEXT] = m[ENTRY_FREE]
    m[ENTRY_FREE] = e
    m[ENTRY_SPARE] += 1


def new_node(m: Cells) -> int:
    """Return a fresh list node; there is room, the caller has seen to it."""
    n = m[NODE_FREE]
    m[NODE_FREE] = m[n + N_NEXT]
    m[NODE_SPARE] -= 1
    m[n + N_NEXT] = NONE
    return n


def free_node(m: Cells, n: int) -> None:
    """Give a list node back."""
    m[n + N_NEXT] = m[NODE_FREE]
    m[NODE_FREE] = n
    m[NODE_SPARE] += 1


def push(m: Cells, p: int, e: int) -> None:
    """Append an entry to the queue of a pipe."""
    if m[P_QUEUE + p] == NONE:
        m[P_QUEUE + p] = e
    else:
        m[m[P_QUEUE_END + p] + E_NEXT] = e
    m[P_QUEUE_END + p] = e
    m[P_VERSION + p] += 1
    m[P_QUEUED + p] += 1
    if m[P_QUEUED + p] == m[PATIENCE]:
        m[CROWDED] += 1
    if m[P_WAKE + p] == NEVER and m[P_STATUS + p] == FREE:
        m[P_WAKE + p] = m[P_LOCAL + p]


def pop(m: Cells, p: int) -> int:
    """Take the entry at the head of the queue of a pipe, NONE if there is none."""
    e = m[P_QUEUE + p]
    if e != NONE:
        m[P_QUEUE + p] = m[e + E_NEXT]
        m[e + E_NEXT] = NONE
        if m[P_QUEUED + p] == m[PATIENCE]:
            m[CROWDED] -= 1
        m[P_QUEUED + p] -= 1
    return e


# ------------------------------------------------------------------------------------------------------- accounting


def spend(m: Cells, p: int, cause: int, until: int, e: int) -> None:
    """Charge the cycles of a pipe up to `until` to a cause, on behalf of entry `e`."""
    cycles = until - m[P_CURSOR + p]
    if cycles <= 0:
        return
    m[CAUSES_AT + p * WIDTH + cause] += cycles
    if e != NONE and m[RECORDING]:
        m[e + E_CAUSES + cause] += cycles
    m[P_CURSOR + p] = until


def rest(m: Cells, p: int, cause: int, until: int, e: int) -> None:
    """Account for cycles without new work: first what is left of earlier work, then `cause`."""
    if m[P_DRAIN_END + p] != NO_TIME and (cause in (EMPTY, FLAG_WAIT)):
        spend(m, p, DRAIN, min(until, m[P_DRAIN_END + p]), m[P_DRAINING + p])
        if m[P_CURSOR + p] < until:
            _spend_late_writes(m, p, until)
    spend(m, p, cause, until, e)


def _spend_late_writes(m: Cells, p: int, until: int) -> None:
    """Charge what the buffer kept back beyond the nominal drain."""
    retire(m, p)
    latest, end = NONE, NO_TIME
    e = m[P_FLIGHT + p]
    while e != NONE:
        if not is_known(m, p, e):
            spend(m, p, BANK_CONFLICT, until, e)
            return
        if m[e + E_END] > end:
            latest, end = e, m[e + E_END]
        e = m[e + E_NEXT]
    if m[P_LATEST_END + p] > end:
        latest, end = m[P_LATEST + p], m[P_LATEST_END + p]
    spend(m, p, BANK_CONFLICT, min(until, end), latest)


# -------------------------------------------------------------------------------------------------------- in flight


def launch(m: Cells, p: int, e: int) -> None:
    """Append an entry to those in flight."""
    m[e + E_NEXT] = NONE
    if m[P_FLIGHT + p] == NONE:
        m[P_FLIGHT + p] = e
    else:
        m[m[P_FLIGHT_END + p] + E_NEXT] = e
    m[P_FLIGHT_END + p] = e


def is_known(m: Cells, p: int, e: int) -> bool:
    """Whether the end of an operation in flight was certain at the time at which its pipe is."""
    return 0 < m[e + E_KNOWN] <= m[P_LOCAL + p]


def retire(m: Cells, p: int) -> None:
    """Forget the operations that have ended at the time at which the pipe is."""
    now = m[P_LOCAL + p]
    before, e = NONE, m[P_FLIGHT + p]
    while e != NONE:
        following = m[e + E_NEXT]
        if m[e + E_KNOWN] and m[e + E_END] <= now:
            if m[e + E_END] > m[P_LATEST_END + p]:
                m[P_LATEST_END + p] = m[e + E_END]
                m[P_LATEST + p] = e if m[RECORDING] else NONE
            if before == NONE:
                m[P_FLIGHT + p] = following
            else:
                m[before + E_NEXT] = following
            if following == NONE:
                m[P_FLIGHT_END + p] = before
            free_entry(m, e)
        else:
            before = e
        e = following


def drained_at(m: Cells, p: int, last: int) -> int:
    """Return when the operations in flight up to that of index `last` have ended, NEVER if that is not known yet."""
    end = m[P_LOCAL + p]
    e = m[P_FLIGHT + p]
    while e != NONE and m[e + E_INDEX] <= last:
        if not m[e + E_KNOWN]:
            return NEVER
        end = max(end, m[e + E_END])
        e = m[e + E_NEXT]
    return end


def finish(m: Cells, e: int, end: int) -> None:
    """Settle that an operation ends in cycle `end`."""
    m[e + E_END] = end
    m[e + E_KNOWN] = m[NOW] + 1
    row = at(m, m[e + E_EXECUTION])
    if end >= m[row + X_END]:
        m[row + X_END] = end
        m[row + X_OPEN] &= ~SCALAR_END
    else:
        # The scalar unit came later: what the end is may depend on how far it has fallen back.
        m[SIGNIFICANT] += m[row + X_OPEN] & SCALAR_END
    close_one(m, row)
    m[LATEST] = max(m[LATEST], end)
    m[FINISHED] += 1
    m[CHANGED] = 1


def close_one(m: Cells, row: int) -> None:
    """Note that one operation of an execution has got its end."""
    m[row + X_OPEN] -= ONE_OPEN
    if m[row + X_OPEN] < ONE_OPEN and m[row + X_OPEN] & ISSUED:
        settle(m, row)


def settle(m: Cells, row: int) -> None:
    """Note that all operations of an execution were issued and have got their ends."""
    clear_needs(m, row)
    m[CHANGED] = 1


def clear_needs(m: Cells, row: int) -> None:
    """Forget what an execution waited for."""
    n = m[row + X_NEEDS]
    while n != NONE:
        following = m[n + N_NEXT]
        free_node(m, n)
        n = following
    m[row + X_NEEDS] = NONE


def begin(m: Cells, p: int, e: int, cycle: int) -> None:
    """Note that a pipe starts to work for an operation; the first one of an execution moves its start.

    Waiting in the queue is not the instruction's own time. Of operations that start in one cycle the one counts that
    was issued first.
    """
    m[e + E_START] = cycle
    x, arrival, index = m[e + E_EXECUTION], m[e + E_ARRIVAL], m[e + E_INDEX]
    row = at(m, x)
    if not m[row + X_OPEN] & BEGUN:
        m[row + X_OPEN] |= BEGUN
        m[row + X_START] += cycle - arrival
        _note_beginning(m, p, e, cycle)
        return
    for q in range(1, m[PIPES]):
        if m[P_BEGAN + q] == x and m[P_BEGAN_AT + q] == cycle and m[P_BEGAN_INDEX + q] > index:
            m[row + X_START] += m[P_BEGAN_ARRIVAL + q] - arrival
            m[P_BEGAN + q] = NONE
            _note_beginning(m, p, e, cycle)
            return


def _note_beginning(m: Cells, p: int, e: int, cycle: int) -> None:
    m[P_BEGAN + p] = m[e + E_EXECUTION]
    m[P_BEGAN_AT + p] = cycle
    m[P_BEGAN_INDEX + p] = m[e + E_INDEX]
    m[P_BEGAN_ARRIVAL + p] = m[e + E_ARRIVAL]


# ------------------------------------------------------------------------------------------------------------ flags


def fire(m: Cells, flag: int, cycle: int) -> int:
    """Set a flag in `cycle`; return the pipe that was already waiting for it, NONE if none was."""
    waiter = m[flag + FLAG_WAITER]
    m[flag + FLAG_VERSION] += 1
    if waiter == NONE:
        n = new_node(m)
        m[n + N_FIRST] = cycle
        if m[flag + FLAG_SIGNALS] == NONE:
            m[flag + FLAG_SIGNALS] = n
        else:
            m[m[flag + FLAG_SIGNALS_END] + N_NEXT] = n
        m[flag + FLAG_SIGNALS_END] = n
        return NONE
    m[flag + FLAG_WAITER] = NONE
    if waiter == SCALAR_PIPE:
        m[RESUMED_AT] = cycle
    else:
        m[P_WAKE + waiter] = max(m[P_LOCAL + waiter], cycle)
        m[P_VERSION + waiter] += 1
    return waiter


def take(m: Cells, flag: int) -> int:
    """Consume the oldest signal of a flag and return its cycle, NONE if there is none."""
    n = m[flag + FLAG_SIGNALS]
    if n == NONE:
        return NONE
    cycle = m[n + N_FIRST]
    m[flag + FLAG_VERSION] += 1
    m[flag + FLAG_SIGNALS] = m[n + N_NEXT]
    free_node(m, n)
    return cycle
