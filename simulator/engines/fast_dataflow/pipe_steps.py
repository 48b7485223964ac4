"""One pipe: its queue, what it does at the head of it, the operations in flight, and its account.

Names and rules are those of `event_pipes` and `event_dataflow`; a pipe that would wait there for an
event has `wake` NEVER here until it is known when it goes on.
"""

from __future__ import annotations

from castsim.engines.fast_dataflow.state import EntryRow, ExecutionRow, FlagRow, MachineState
from castsim.engines.fast_dataflow.state_codes import (
    BANK_CONFLICT,
    BEGUN,
    EMPTY,
    FLAG_WAIT,
    FREE,
    ISSUED,
    NEVER,
    NO_TIME,
    NONE,
    ONE_OPEN,
    SCALAR_END,
    SCALAR_PIPE,
    WIDTH,
)

# Executions: the latest ones lie in a ring; those that nothing refers to any more are taken out of it.


def execution_of(m: MachineState, x: int) -> ExecutionRow:
    """Return the row of an execution."""
    return m.executions[x & m.execution_mask]


def over(m: MachineState, x: int, cycle: int) -> bool:
    """Whether an execution has ended by a cycle."""
    execution = m.executions[x & m.execution_mask]
    return execution.open < ONE_OPEN and execution.open & ISSUED != 0 and execution.end <= cycle


def known(m: MachineState, x: int) -> bool:
    """Whether the end of an execution is certain."""
    execution = m.executions[x & m.execution_mask]
    return execution.open < ONE_OPEN and execution.open & ISSUED != 0


# ------------------------------------------------------------------------------------------------ entries and nodes


def new_entry(m: MachineState, operation: int) -> int:
    """Return a fresh entry; there is room, the caller has seen to it."""
    e = m.entry_free
    entry = m.entries[e]
    m.entry_free = entry.next
    m.entry_spare -= 1
    entry.operation = operation
    entry.next = NONE
    entry.known = 0
    entry.pending = 0
    entry.end = 0
    return e


def free_entry(m: MachineState, e: int) -> None:
    """Give an entry back; where operations are recorded it is kept."""
    entry = m.entries[e]
    if m.recording and entry.operation != NONE:
        return
    entry.next = m.entry_free
    m.entry_free = e
    m.entry_spare += 1


def new_node(m: MachineState) -> int:
    """Return a fresh list node; there is room, the caller has seen to it."""
    n = m.node_free
    node = m.nodes[n]
    m.node_free = node.next
    m.node_spare -= 1
    node.next = NONE
    return n


def free_node(m: MachineState, n: int) -> None:
    """Give a list node back."""
    m.nodes[n].next = m.node_free
    m.node_free = n
    m.node_spare += 1


def push(m: MachineState, p: int, e: int) -> None:
    """Append an entry to the queue of a pipe."""
    pipe = m.pipes[p]
    if pipe.queue == NONE:
        pipe.queue = e
    else:
        m.entries[pipe.queue_end].next = e
    pipe.queue_end = e
    pipe.version += 1
    pipe.queued += 1
    if pipe.queued == m.issuer.patience:
        m.issuer.crowded += 1
    if pipe.wake == NEVER and pipe.status == FREE:
        pipe.wake = pipe.local


def pop(m: MachineState, p: int) -> int:
    """Take the entry at the head of the queue of a pipe, NONE if there is none."""
    pipe = m.pipes[p]
    e = pipe.queue
    if e != NONE:
        entry = m.entries[e]
        pipe.queue = entry.next
        entry.next = NONE
        if pipe.queued == m.issuer.patience:
            m.issuer.crowded -= 1
        pipe.queued -= 1
    return e


# ------------------------------------------------------------------------------------------------------- accounting


def spend(m: MachineState, p: int, cause: int, until: int, e: int) -> None:
    """Charge the cycles of a pipe up to `until` to a cause, on behalf of entry `e`."""
    _charge(m, p, cause, until, e, NONE if e == NONE else m.entries[e].index)


def _charge(m: MachineState, p: int, cause: int, until: int, e: int, index: int) -> None:
    """Do so for the operation of an index, whose entry may be gone by now (NONE)."""
    account = m.accounts[p]
    cycles = until - account.cursor
    if cycles <= 0:
        return
    m.causes[p * WIDTH + cause] += cycles
    # What the scalar unit spends on sending an operation is not among the operation's own cycles.
    if m.recording and e != NONE and m.operations[m.entries[e].operation].pipe == p:
        m.entry_causes[e * WIDTH + cause] += cycles
    if m.telling and (cause != account.segment_cause or index != account.segment_index):
        close_segment(m, p)
        account.segment_start = account.cursor
        account.segment_cause = cause
        account.segment_index = index
    account.cursor = until


def close_segment(m: MachineState, p: int) -> None:
    """Put what the latest cycles of a pipe went to among the segments."""
    account = m.accounts[p]
    if account.segment_cause == NONE:
        return
    segment = m.segments[m.segment_count]
    m.segment_count += 1
    segment.pipe = p
    segment.start = account.segment_start
    segment.end = account.cursor
    segment.cause = account.segment_cause
    segment.index = account.segment_index


def rest(m: MachineState, p: int, cause: int, until: int, e: int) -> None:
    """Account for cycles without new work: first what is left of earlier work, then `cause`."""
    account = m.accounts[p]
    if account.drain_end != NO_TIME and (cause in (EMPTY, FLAG_WAIT)):
        _charge(m, p, m.pipes[p].behind, min(until, account.drain_end), account.draining, account.draining_index)
        if account.cursor < until:
            _spend_late_writes(m, p, until)
    spend(m, p, cause, until, e)


def _spend_late_writes(m: MachineState, p: int, until: int) -> None:
    """Charge what the buffer kept back beyond the nominal drain."""
    retire(m, p)
    latest, index, end = NONE, NONE, NO_TIME
    local = m.pipes[p].local
    e = m.pipes[p].in_flight
    while e != NONE:
        entry = m.entries[e]
        if not 0 < entry.known <= local:  # its end is not certain yet
            spend(m, p, BANK_CONFLICT, until, e)
            return
        if entry.end > end:
            latest, index, end = e, entry.index, entry.end
        e = entry.next
    account = m.accounts[p]
    if account.latest_end > end:
        latest, index, end = account.latest, account.latest_index, account.latest_end
    _charge(m, p, BANK_CONFLICT, min(until, end), latest, index)


def note_drain(m: MachineState, p: int, e: int, end: int) -> None:
    """Record that a pipe should have no more to do for an entry in cycle `end`."""
    account = m.accounts[p]
    if end >= account.drain_end:
        account.drain_end = end
        account.draining = e if m.recording else NONE
        account.draining_index = m.entries[e].index


def ask_from(m: MachineState, p: int, cycle: int) -> None:
    """Record that memory is asked by what stands at the head of a pipe, and all behind it, in `cycle` at the earliest.

    Before the pipe has got there an answer makes no difference.
    """
    pipe, account = m.pipes[p], m.accounts[p]
    if pipe.reach:
        account.answered = max(account.answered, cycle + pipe.reach, pipe.local)


# -------------------------------------------------------------------------------------------------------- in flight


def launch(m: MachineState, p: int, e: int) -> None:
    """Append an entry to those in flight."""
    pipe = m.pipes[p]
    m.entries[e].next = NONE
    if pipe.in_flight == NONE:
        pipe.in_flight = e
    else:
        m.entries[pipe.in_flight_end].next = e
    pipe.in_flight_end = e


def retire(m: MachineState, p: int) -> None:
    """Forget the operations that have ended at the time at which the pipe is."""
    pipe = m.pipes[p]
    now = pipe.local
    before, e = NONE, pipe.in_flight
    while e != NONE:
        entry = m.entries[e]
        following = entry.next
        if entry.known and entry.end <= now:
            note_latest(m, p, e)
            if before == NONE:
                pipe.in_flight = following
            else:
                m.entries[before].next = following
            if following == NONE:
                pipe.in_flight_end = before
            free_entry(m, e)
        else:
            before = e
        e = following


def note_latest(m: MachineState, p: int, e: int) -> None:
    """Record the end of an operation of a pipe, if none was later."""
    account, end = m.accounts[p], m.entries[e].end
    if end > account.latest_end:
        account.latest_end = end
        account.latest = e if m.recording else NONE
        account.latest_index = m.entries[e].index


def drained_at(m: MachineState, p: int, last: int) -> int:
    """Return when the operations in flight up to that of index `last` have ended, NEVER if that is not known yet."""
    end = m.pipes[p].local
    e = m.pipes[p].in_flight
    while e != NONE:
        entry = m.entries[e]
        if entry.index > last:
            break
        if not entry.known:
            return NEVER
        end = max(end, entry.end)
        e = entry.next
    return end


def finish(m: MachineState, entry: EntryRow, end: int) -> None:
    """Settle that an operation ends in cycle `end`."""
    entry.end = end
    entry.known = m.now + 1
    execution = execution_of(m, entry.execution)
    if end >= execution.end:
        execution.end = end
        execution.open &= ~SCALAR_END
    else:
        # The scalar unit came later: what the end is may depend on how far it has fallen back.
        m.issuer.significant += execution.open & SCALAR_END
    close_one(m, execution)
    m.latest = max(m.latest, end)
    m.finished += 1
    m.changed = 1


def close_one(m: MachineState, execution: ExecutionRow) -> None:
    """Record that one operation of an execution has got its end."""
    execution.open -= ONE_OPEN
    if execution.open < ONE_OPEN and execution.open & ISSUED:
        settle(m, execution)


def settle(m: MachineState, execution: ExecutionRow) -> None:
    """Record that all operations of an execution were issued and have got their ends."""
    clear_needs(m, execution)
    m.changed = 1


def clear_needs(m: MachineState, execution: ExecutionRow) -> None:
    """Forget what an execution waited for."""
    n = execution.needs
    while n != NONE:
        following = m.nodes[n].next
        free_node(m, n)
        n = following
    execution.needs = NONE


def begin(m: MachineState, p: int, entry: EntryRow, cycle: int) -> None:
    """Record that a pipe starts to work for an entry; the first one of an execution moves its start.

    Waiting in the queue is not the instruction's own time. Of operations that start in one cycle the one counts that
    was issued first.
    """
    entry.start = cycle
    execution = execution_of(m, entry.execution)
    if not execution.open & BEGUN:
        execution.open |= BEGUN
        execution.start += cycle - entry.arrival
        _note_beginning(m, p, entry, cycle)
        return
    for q in range(1, m.pipe_count):
        pipe = m.pipes[q]
        if pipe.began == entry.execution and pipe.began_at == cycle and pipe.began_index > entry.index:
            execution.start += pipe.began_arrival - entry.arrival
            pipe.began = NONE
            _note_beginning(m, p, entry, cycle)
            return


def _note_beginning(m: MachineState, p: int, entry: EntryRow, cycle: int) -> None:
    pipe = m.pipes[p]
    pipe.began = entry.execution
    pipe.began_at = cycle
    pipe.began_index = entry.index
    pipe.began_arrival = entry.arrival


# ------------------------------------------------------------------------------------------------------------ flags


def fire(m: MachineState, flag: FlagRow, cycle: int) -> int:
    """Set a flag in `cycle`; return the pipe that was already waiting for it, NONE if none was."""
    waiter = flag.waiter
    flag.version += 1
    if waiter == NONE:
        n = new_node(m)
        m.nodes[n].first = cycle
        if flag.signals == NONE:
            flag.signals = n
        else:
            m.nodes[flag.signals_end].next = n
        flag.signals_end = n
        return NONE
    flag.waiter = NONE
    if waiter == SCALAR_PIPE:
        m.issuer.resumed_at = cycle
    else:
        pipe = m.pipes[waiter]
        ask_from(m, waiter, cycle)
        pipe.wake = max(pipe.local, cycle)
        pipe.version += 1
    return waiter


def take(m: MachineState, flag: FlagRow) -> int:
    """Consume the oldest signal of a flag and return its cycle, NONE if there is none."""
    n = flag.signals
    if n == NONE:
        return NONE
    node = m.nodes[n]
    cycle = node.first
    flag.version += 1
    flag.signals = node.next
    free_node(m, n)
    return cycle
