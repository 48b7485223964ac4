"""One pipe: its queue, the operation at its head, the operations in flight, and the attribution of its cycles.

Names and rules are those of `event_pipes` and `event_dataflow`; while a pipe there would wait for an
event, `wake` here is NEVER until the time is known.
"""

from __future__ import annotations

from castsim.engines.fast_dataflow.state import (
    BANK_CONFLICT,
    BEGUN,
    BUSY,
    DRAIN,
    EMPTY,
    FILL,
    FLAG_WAIT,
    FREE,
    ISSUED,
    MEMORY_BANDWIDTH,
    MEMORY_LATENCY,
    NEVER,
    NO_TIME,
    NONE,
    ONE_OPEN,
    SCALAR_END,
    SCALAR_PIPE,
    WIDTH,
    WORKING,
    EntryRow,
    ExecutionRow,
    FlagRow,
    MachineState,
    TransferRow,
)
from castsim.execution.pipe_operations import BLOCK
from castsim.execution.transfer_timing import (
    NO_TICK,
    TICKS,
    cycle_from,
    let_through,
    memory_served,
    next_request,
    stream_start,
    transfer_end,
)
from castsim.machines.strided.strided_instructions import (
    drained,
    fills,
    is_delayed,
    next_repeat,
    passes,
    results_due,
    write_asked,
    written,
)
from castsim.machines.vector_function.function_timing import (
    GROUPS_PER_WORD,
    group_has_room,
    launch_reads,
    launch_writes,
    words_of_cycle,
)

# Executions: the latest ones lie in a ring; those that nothing refers to any more are taken out of it.


def execution_of(m: MachineState, x: int) -> ExecutionRow:
    """Return the row of an execution."""
    return m.executions[x & m.execution_mask]


def over(m: MachineState, x: int, cycle: int) -> bool:
    """Return whether an execution has ended by a cycle."""
    execution = m.executions[x & m.execution_mask]
    return execution.open < ONE_OPEN and execution.open & ISSUED != 0 and execution.end <= cycle


def known(m: MachineState, x: int) -> bool:
    """Return whether the end of an execution is certain."""
    execution = m.executions[x & m.execution_mask]
    return execution.open < ONE_OPEN and execution.open & ISSUED != 0


# ------------------------------------------------------------------------------------------------ entries and nodes


def new_entry(m: MachineState, operation: int) -> int:
    """Return a new entry; the caller has ensured that there is room."""
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
    """Release an entry; if operations are recorded it is kept."""
    entry = m.entries[e]
    if m.recording and entry.operation != NONE:
        return
    entry.next = m.entry_free
    m.entry_free = e
    m.entry_spare += 1


def new_node(m: MachineState) -> int:
    """Return a new list node; the caller has ensured that there is room."""
    n = m.node_free
    node = m.nodes[n]
    m.node_free = node.next
    m.node_spare -= 1
    node.next = NONE
    return n


def free_node(m: MachineState, n: int) -> None:
    """Release a list node."""
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
    if pipe.wake == NEVER and pipe.status == FREE:
        pipe.wake = pipe.local


def pop(m: MachineState, p: int) -> int:
    """Remove and return the entry at the head of a pipe's queue, NONE if there is none."""
    pipe = m.pipes[p]
    e = pipe.queue
    if e != NONE:
        entry = m.entries[e]
        pipe.queue = entry.next
        entry.next = NONE
        pipe.queued -= 1
    return e


# ------------------------------------------------------------------------------------------------------- accounting


def spend(m: MachineState, p: int, cause: int, until: int, e: int) -> None:
    """Attribute the cycles of a pipe up to `until` to a cause, on behalf of entry `e`."""
    _charge(m, p, cause, until, NONE if e == NONE else m.entries[e].index)


def _charge(m: MachineState, p: int, cause: int, until: int, index: int) -> None:
    """Attribute cycles to the operation with an index, whose entry may already be released."""
    account = m.accounts[p]
    cycles = until - account.cursor
    if cycles <= 0:
        return
    m.causes[p * WIDTH + cause] += cycles
    if m.recording and index != NONE:
        m.operation_causes[index * WIDTH + cause] += cycles
    if m.telling and (cause != account.segment_cause or index != account.segment_index):
        close_segment(m, p)
        account.segment_start = account.cursor
        account.segment_cause = cause
        account.segment_index = index
    account.cursor = until


def close_segment(m: MachineState, p: int) -> None:
    """Append the latest cycles of a pipe to the segments."""
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
    """Attribute cycles without new work: first the remaining earlier work, then `cause`."""
    account = m.accounts[p]
    if account.drain_end != NO_TIME and (cause in (EMPTY, FLAG_WAIT)):
        _charge(m, p, m.pipes[p].behind, min(until, account.drain_end), account.draining)
        if account.cursor < until:
            _spend_late_writes(m, p, until)
    spend(m, p, cause, until, e)


def _spend_late_writes(m: MachineState, p: int, until: int) -> None:
    """Attribute the cycles that the buffer delayed beyond the nominal drain."""
    retire(m, p)
    latest, end = NONE, NO_TIME
    local = m.pipes[p].local
    e = m.pipes[p].in_flight
    while e != NONE:
        entry = m.entries[e]
        if not 0 < entry.known <= local:  # its end is not certain yet
            spend(m, p, BANK_CONFLICT, until, e)
            return
        if entry.end > end:
            latest, end = entry.index, entry.end
        e = entry.next
    account = m.accounts[p]
    if account.latest_end > end:
        latest, end = account.latest, account.latest_end
    _charge(m, p, BANK_CONFLICT, min(until, end), latest)


def note_drain(m: MachineState, p: int, e: int, end: int) -> None:
    """Record that a pipe should finish an entry in cycle `end`."""
    account = m.accounts[p]
    if end >= account.drain_end:
        account.drain_end = end
        account.draining = m.entries[e].index if m.recording or m.telling else NONE


def ask_from(m: MachineState, p: int, cycle: int) -> None:
    """Record that the operations from the head of a pipe on request memory in `cycle` at the earliest.

    Before the pipe has reached them, an answer makes no difference.
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
    """Remove the operations that have ended at the pipe's current time."""
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
    """Record the end of a pipe's operation, if none was later."""
    account, end = m.accounts[p], m.entries[e].end
    if end > account.latest_end:
        account.latest_end = end
        account.latest = m.entries[e].index if m.recording or m.telling else NONE


def drained_at(m: MachineState, p: int, last: int) -> int:
    """Return when the operations in flight up to that with index `last` have ended, NEVER if that is unknown."""
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
    """Record that an operation ends in cycle `end`."""
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
    """Record that one operation of an execution has its end."""
    execution.open -= ONE_OPEN
    if execution.open < ONE_OPEN and execution.open & ISSUED:
        settle(m, execution)


def settle(m: MachineState, execution: ExecutionRow) -> None:
    """Record that all operations of an execution were issued and have their ends."""
    clear_needs(m, execution)
    m.changed = 1


def clear_needs(m: MachineState, execution: ExecutionRow) -> None:
    """Remove the needs of an execution."""
    n = execution.needs
    while n != NONE:
        following = m.nodes[n].next
        free_node(m, n)
        n = following
    execution.needs = NONE


def begin(m: MachineState, p: int, entry: EntryRow, cycle: int) -> None:
    """Record that a pipe starts to work for an entry; the first one of an execution moves its start.

    Waiting in the queue is not the instruction's own time. Of operations that start in one cycle, the one issued first
    counts.
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
    """Set a flag in `cycle`; return the pipe that was already waiting for it, NONE if there was none."""
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


# Work that asks for blocks of the buffer: transfers and strided-repeat instructions, request by request.

# Ports and banks of the buffer: blocks are served first come, first served.
#
# Two rules (see `event_strided`, `event_function`). Banked: each group has a port for reads and one for
# writes, and no bank is read and written in one cycle, as far as the facts say so. Grouped: a group serves so many
# reads and writes per cycle, fewer reads beside a write.


def grant_pattern(m: MachineState, now: int, block: int, first: int, count: int, write: int) -> int:
    """Request blocks at known distances from `block`, banked, at `now`; return the cycle in which the last passes."""
    ports, period = m.ports, m.ports.period
    phase = block % period
    port_of, bank_of, distances = m.port_of, m.bank_of, m.numbers
    port_free, bank_free = m.port_free, m.bank_free
    exclusive_ports, exclusive_banks = ports.exclusive_ports, ports.exclusive_banks
    own, other, of_writes = ports.banks * write, ports.banks * (1 - write), period * write
    last = now
    for k in range(first, first + count):
        cell = phase + distances[k]
        if cell >= period:
            cell -= period
        port = port_of[of_writes + cell]
        bank = bank_of[cell]
        # `strided.strided_instructions.passes`, spelled out: it would be a call for every block.
        cycle = now
        if port_free[port] > cycle:  # noqa: PLR1730 - max would be a call
            cycle = port_free[port]
        if bank_free[own + bank] > cycle:  # noqa: PLR1730
            cycle = bank_free[own + bank]
        if exclusive_ports:
            port_free[port] = cycle + 1
        if exclusive_banks:
            bank_free[other + bank] = cycle + 1
        if cycle > last:  # noqa: PLR1730
            last = cycle
    return last


def grant_block(m: MachineState, now: int, block: int, write: int) -> int:
    """Request one block at `now`; return the cycle in which it passes."""
    ports = m.ports
    cell = block % ports.period
    if ports.grouped:
        return _pass(m, cell, now, write)
    port, bank = m.port_of[ports.period * write + cell], m.bank_of[cell]
    cycle = passes(now, m.port_free[port], m.bank_free[bank + ports.banks * write])
    if ports.exclusive_ports:
        m.port_free[port] = cycle + 1
    if ports.exclusive_banks:
        m.bank_free[bank + ports.banks * (1 - write)] = cycle + 1
    return cycle


def _pass(m: MachineState, group: int, now: int, write: int) -> int:
    """Serve a block of a group in its latest cycle, if there is room, or later.

    `port_free` is that cycle, `bank_free` the reads it serves, plus a number beyond all reads for each write.
    """
    latest = m.port_free[group]
    cycle = max(now, latest)
    served = m.bank_free[group] if cycle == latest else 0
    while not _has_room(m, group, cycle, now, served, write):
        cycle += 1
        served = 0
    m.port_free[group] = cycle
    m.bank_free[group] = served + (WRITE_SERVED if write else 1)
    return cycle


def _has_room(m: MachineState, group: int, cycle: int, now: int, served: int, write: int) -> bool:
    """Return whether a cycle of a group has room for a block requested at `now`, besides its blocks and the launch's.

    Requests in the cycle of a launch precede it.
    """
    ports, reads, writes = m.ports, served % WRITE_SERVED, served // WRITE_SERVED
    if ports.launch != NONE and now > ports.launched:
        function = m.functions[ports.launch]
        index = (cycle - ports.launched) * words_of_cycle(ports.period) + group // GROUPS_PER_WORD
        if index < function.accesses:
            word = m.numbers[function.first_access + index]
            reads += launch_reads(word, group)
            writes += launch_writes(word, group)
    return group_has_room(reads, writes, write, ports.reads_per_group, ports.reads_beside_write, ports.writes_per_group)


WRITE_SERVED = 1 << 20
"""Weight of a write in the number of accesses that a group serves in a cycle."""


def begin_transfer(m: MachineState, p: int, e: int) -> None:
    """Start a transfer."""
    pipe, progress, entry = m.pipes[p], m.progress[p], m.entries[e]
    transfer = m.transfers[m.operations[entry.operation].row]
    begin(m, p, entry, pipe.local)
    pipe.status = WORKING
    retire(m, p)
    answered = m.accounts[p].answered if transfer.overlaps else 0  # a placeholder asks memory for nothing
    progress.stream = stream_start(pipe.local, transfer.ahead, answered)
    progress.step = 0
    progress.block = 0
    progress.passed = NO_TIME
    progress.served = NO_TICK
    if transfer.bursts == 0 or transfer.burst_bytes == 0:
        _end_transfer(m, p, transfer)
    else:
        pipe.request = progress.stream
        pipe.wake = NEVER


def serve_transfer(m: MachineState, p: int) -> None:
    """Request the blocks that the rate has passed by now."""
    progress = m.progress[p]
    transfer = m.transfers[m.operations[m.entries[m.pipes[p].current].operation].row]
    now, length = m.now, transfer.burst_bytes
    burst, block, passed = progress.step, progress.block, progress.passed
    asked = now
    while asked == now:
        block_number = (transfer.address + burst * transfer.pitch) // BLOCK + block
        passed = max(passed, grant_block(m, now, block_number, transfer.write))
        if transfer.turns:
            number = transfer.blocks // transfer.bursts * burst + block
            m.memory_free = memory_served(now, m.memory_free, number, transfer.blocks, transfer.turns)
            progress.served = m.memory_free
        block += 1
        if block * BLOCK >= length:
            block = 0
            burst += 1
        if burst == transfer.bursts:
            progress.passed = passed
            _end_transfer(m, p, transfer)
            return
        paced = progress.stream + let_through(burst * length + block * BLOCK, transfer.rate, transfer.per)
        asked = next_request(paced, progress.served)
    progress.step, progress.block, progress.passed = burst, block, passed
    m.pipes[p].request = asked


def _end_transfer(m: MachineState, p: int, transfer: TransferRow) -> None:
    """Decide when a transfer ends that has requested its last block."""
    pipe, progress = m.pipes[p], m.progress[p]
    e = pipe.current
    due = progress.stream + transfer.streaming
    served = cycle_from(progress.served)
    moved = max(due, served)
    m.memory_free = max(m.memory_free, served * TICKS)
    stream_end = transfer_end(moved, progress.passed)
    end = stream_end + transfer.behind
    finish(m, m.entries[e], end)
    spend(m, p, MEMORY_LATENCY, progress.stream, e)
    spend(m, p, BUSY, due, e)
    spend(m, p, MEMORY_BANDWIDTH, moved, e)
    spend(m, p, BANK_CONFLICT, stream_end, e)
    if transfer.overlaps:
        launch(m, p, e)
        note_drain(m, p, e, end)
        end = stream_end
    spend(m, p, MEMORY_LATENCY, end, e)
    pipe.request = NEVER
    pipe.wake = end


def change_mask(m: MachineState, p: int, e: int) -> None:
    """Record when a written mask takes effect; the pipe itself continues immediately."""
    pipe, entry, account = m.pipes[p], m.entries[e], m.accounts[p]
    ready = account.left + m.operations[entry.operation].row
    account.mask_ready = ready if ready > pipe.local else NO_TIME
    finish(m, entry, pipe.local)
    pipe.status = WORKING
    pipe.wake = pipe.local


def begin_vector(m: MachineState, p: int, e: int) -> None:
    """Start a strided-repeat instruction."""
    pipe, entry = m.pipes[p], m.entries[e]
    vector = m.vectors[m.operations[entry.operation].row]
    now = pipe.local
    retire(m, p)
    in_flight = 0 if pipe.in_flight == NONE else 1
    empty = fills(vector.always, in_flight, now, m.accounts[p].drain_end)
    begin(m, p, entry, now)
    entry.pending = vector.repeats
    entry.written = 0
    launch(m, p, e)
    start, ready = now, m.accounts[p].mask_ready
    m.accounts[p].mask_ready = NO_TIME
    if ready > start:
        start, empty = ready, 1
        spend(m, p, DRAIN, start, e)
    if empty:
        start += vector.head
        spend(m, p, FILL, start, e)
    entry.due = now if vector.repeats else 0
    pipe.status = WORKING
    m.progress[p].step = 0
    m.progress[p].block = 0
    if vector.repeats == 0:
        _leave(m, p, e, start)
    else:
        pipe.request = start
        pipe.wake = NEVER


def serve_vector(m: MachineState, p: int) -> None:
    """Read the operands of the next repeat and send its results."""
    pipe, progress = m.pipes[p], m.progress[p]
    e = pipe.current
    entry = m.entries[e]
    vector = m.vectors[m.operations[entry.operation].row]
    start, repeat = m.now, progress.step
    interval_end = start + vector.interval
    passed = start
    for number in range(vector.first_walk + 1, vector.first_walk + 1 + vector.sources):
        walk = m.walks[number]
        block = (walk.address + repeat * walk.step) // BLOCK
        passed = max(passed, grant_pattern(m, start, block, walk.first, walk.count, 0))
    following = next_repeat(interval_end, passed)
    if is_delayed(passed, start, vector.sources):
        progress.block += 1
    if repeat + 1 == vector.repeats:
        interval_end += vector.rest
        following += vector.rest + m.numbers[vector.lost + progress.block]
    if following > interval_end:
        spend(m, p, BUSY, interval_end, e)
        spend(m, p, BANK_CONFLICT, following, e)
    entry.due = results_due(following, vector.delay)
    _send_result(m, write_asked(entry.due), e)
    progress.step = repeat + 1
    if repeat + 1 == vector.repeats:
        _leave(m, p, e, following)
    else:
        pipe.request = following


def _leave(m: MachineState, p: int, e: int, cycle: int) -> None:
    """Let the pipe accept its next operation in `cycle`, while results of this one are still in flight."""
    spend(m, p, BUSY, cycle, e)
    entry = m.entries[e]
    vector = m.vectors[m.operations[entry.operation].row]
    end = drained(entry.due, vector.tail, vector.delay) if vector.repeats else entry.due
    note_drain(m, p, e, end)
    m.pipes[p].request = NEVER
    m.pipes[p].wake = cycle
    m.accounts[p].left = cycle + vector.late


def _send_result(m: MachineState, time: int, e: int) -> None:
    """Have the results of a repeat ask for their blocks in cycle `time`; equal times go by operation, then in turn."""
    mask, head, k = m.result_mask, m.result_head, m.result_count
    index = m.entries[e].index
    while k > 0:
        before = m.results[(head + k - 1) & mask]
        if before.time < time or (before.time == time and m.entries[before.entry].index <= index):
            break
        later = m.results[(head + k) & mask]
        later.time = before.time
        later.entry = before.entry
        k -= 1
    result = m.results[(head + k) & mask]
    result.time = time
    result.entry = e
    m.result_count += 1


def serve_write(m: MachineState) -> None:
    """Write the results that request first."""
    entry = m.entries[m.results[m.result_head].entry]
    m.result_head = (m.result_head + 1) & m.result_mask
    m.result_count -= 1
    vector = m.vectors[m.operations[entry.operation].row]
    walk = m.walks[vector.first_walk]
    block = (walk.address + (vector.repeats - entry.pending) * walk.step) // BLOCK
    passed = grant_pattern(m, m.now, block, walk.first, walk.count, 1)
    entry.written = max(entry.written, written(passed))
    entry.pending -= 1
    if entry.pending == 0:
        finish(m, entry, max(entry.due, entry.written))
