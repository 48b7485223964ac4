"""Work that asks for blocks of the buffer: transfers and strided-repeat instructions, request by request."""

from __future__ import annotations

from castsim.engines.fast_dataflow.pipe_steps import begin, finish, launch, note_drain, retire, spend
from castsim.engines.fast_dataflow.state import MachineState, TransferRow
from castsim.engines.fast_dataflow.state_codes import (
    BANK_CONFLICT,
    BUSY,
    DRAIN,
    FILL,
    MEMORY_LATENCY,
    NEVER,
    NO_TIME,
    NONE,
    WORKING,
)
from castsim.execution.dataflow.pipe_operations import BLOCK
from castsim.execution.dataflow.transfer_timing import let_through, stream_start, transfer_due, transfer_end
from castsim.machines.strided.repeat_timing import (
    drained,
    fills,
    next_repeat,
    passes,
    results_due,
    write_asked,
    written,
)
from castsim.machines.vector_function.function_timing import group_has_room

# Ports and banks of the buffer: blocks are served first come, first served.
#
# Two rules (see `event_strided`, `event_function`). Banked: each group has a port for reads and one for
# writes, and no bank is read and written in one cycle, as far as the facts say so. Grouped: a group serves so many
# reads and writes per cycle, fewer reads beside a write.


def grant_pattern(m: MachineState, now: int, block: int, first: int, count: int, write: int) -> int:
    """Ask at `now` for blocks at known distances from `block`, banked; return the cycle in which the last passes."""
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
        # `strided.repeat_timing.passes`, spelled out: it would be a call for every block.
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
    """Ask at `now` for one block; return the cycle in which it passes."""
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


def grant_bytes(m: MachineState, now: int, address: int, size: int, write: int) -> int:
    """Ask at `now` for `size` bytes; return the cycle in which the last block passes, `now` if there is none."""
    last = now
    if size > 0:
        for block in range(address // BLOCK, (address + size - 1) // BLOCK + 1):
            last = max(last, grant_block(m, now, block, write))
    return last


def _pass(m: MachineState, group: int, now: int, write: int) -> int:
    """Serve a block of a group in its latest cycle, if there is room, or later.

    `port_free` holds that cycle, `bank_free` the reads it serves, plus a number beyond all reads for each write.
    """
    ports, latest, served = m.ports, m.port_free[group], m.bank_free[group]
    cycle = max(now, latest)
    if cycle == latest and not group_has_room(
        served % WRITE_SERVED,
        served // WRITE_SERVED,
        write,
        ports.reads_per_group,
        ports.reads_beside_write,
        ports.writes_per_group,
    ):
        cycle += 1
    if cycle > latest:
        m.port_free[group] = cycle
        served = 0
    m.bank_free[group] = served + (WRITE_SERVED if write else 1)
    return cycle


WRITE_SERVED = 1 << 20
"""What a write counts in the number of accesses that a group serves in a cycle."""


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
    progress.passed = NONE
    if transfer.bursts == 0 or transfer.burst_bytes == 0:
        _end_transfer(m, p, transfer, NONE)
    else:
        pipe.request = progress.stream
        pipe.wake = NEVER


def serve_transfer(m: MachineState, p: int) -> None:
    """Ask for the blocks that the rate has let through by now."""
    progress = m.progress[p]
    transfer = m.transfers[m.operations[m.entries[m.pipes[p].current].operation].row]
    now, length = m.now, transfer.burst_bytes
    burst, block, passed = progress.step, progress.block, progress.passed
    asked = now
    while asked == now:
        place = (transfer.address + burst * transfer.pitch) // BLOCK + block
        passed = max(passed, grant_block(m, now, place, transfer.write))
        block += 1
        if block * BLOCK >= length:
            block = 0
            burst += 1
            if burst == transfer.bursts:
                progress.passed = passed
                _end_transfer(m, p, transfer, now)
                return
        asked = progress.stream + let_through(burst * length + block * BLOCK, transfer.rate, transfer.per)
    progress.step, progress.block, progress.passed = burst, block, passed
    m.pipes[p].request = asked


def _end_transfer(m: MachineState, p: int, transfer: TransferRow, asked: int) -> None:
    """Settle when a transfer ends that has asked for its last block."""
    pipe, progress = m.pipes[p], m.progress[p]
    e = pipe.current
    due = transfer_due(progress.stream, transfer.streaming, asked)
    stream_end = transfer_end(due, progress.passed)
    end = stream_end + transfer.behind
    finish(m, m.entries[e], end)
    spend(m, p, MEMORY_LATENCY, progress.stream, e)
    spend(m, p, BUSY, due, e)
    spend(m, p, BANK_CONFLICT, stream_end, e)
    if transfer.overlaps:
        launch(m, p, e)
        note_drain(m, p, e, end)
        end = stream_end
    spend(m, p, MEMORY_LATENCY, end, e)
    pipe.request = NEVER
    pipe.wake = end


def change_mask(m: MachineState, p: int, e: int) -> None:
    """Record when a written mask holds; the pipe itself goes on at once."""
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
    """Read the operands of the next repeat and send its results on their way."""
    pipe, progress = m.pipes[p], m.progress[p]
    e = pipe.current
    entry = m.entries[e]
    vector = m.vectors[m.operations[entry.operation].row]
    start, repeat = m.now, progress.step
    interval_end = start + vector.interval
    following = interval_end
    for number in range(vector.first_walk + 1, vector.first_walk + 1 + vector.sources):
        walk = m.walks[number]
        block = (walk.address + repeat * walk.step) // BLOCK
        following = next_repeat(following, grant_pattern(m, start, block, walk.first, walk.count, 0))
    if following > interval_end:
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
    """Let the pipe take its next operation in `cycle`; the results of this one are still on their way."""
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
    """Write the results that ask first."""
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
