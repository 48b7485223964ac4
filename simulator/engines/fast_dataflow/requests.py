"""Work that asks for blocks of the buffer: transfers and strided-repeat instructions, request by request."""

from __future__ import annotations

from simulator.engines.fast_dataflow.layout import (
    BANK_CONFLICT,
    BUSY,
    E_DUE,
    E_INDEX,
    E_OPERATION,
    E_PENDING,
    E_WRITTEN,
    FILL,
    MEMORY_LATENCY,
    NEVER,
    NONE,
    NOW,
    O_VALUES,
    P_BLOCK,
    P_CURRENT,
    P_DRAIN_END,
    P_DRAINING,
    P_FLIGHT,
    P_LOCAL,
    P_PASSED,
    P_REQUEST,
    P_STATUS,
    P_STEP,
    P_STREAM,
    P_WAKE,
    RECORDING,
    W_ENTRY,
    W_TIME,
    WORKING,
    WRITE_COUNT,
    WRITE_HEAD,
    WRITE_MASK,
    WRITE_WIDTH,
    WRITES_AT,
    Cells,
)
from simulator.engines.fast_dataflow.pipes import (
    begin,
    finish,
    launch,
    retire,
    spend,
)
from simulator.engines.fast_dataflow.ports import BLOCK, grant_block, grant_pattern

# Values of a transfer; rates are bytes per 100 cycles.
AHEAD, BEHIND, RATE, STORES, ADDRESS, PITCH, BURSTS, BURST_BYTES, STREAMING = range(9)
TICKS = 100

# Values of a strided-repeat instruction; from STREAMS on, for each operand, the destination first: address, step,
# first of its distances, number of them.
HEAD, INTERVAL, TAIL, REPEATS, ALWAYS, SOURCES, STREAMS = range(7)
PER_STREAM = 4


def begin_transfer(m: Cells, p: int, e: int) -> None:
    """Start a transfer."""
    now, v = m[P_LOCAL + p], m[e + E_OPERATION] + O_VALUES
    begin(m, p, e, now)
    m[P_STATUS + p] = WORKING
    m[P_STREAM + p] = now + m[v + AHEAD]
    m[P_STEP + p] = 0
    m[P_BLOCK + p] = 0
    m[P_PASSED + p] = NONE
    if m[v + BURSTS] == 0 or m[v + BURST_BYTES] == 0:
        _end_transfer(m, p, e, NONE)
    else:
        m[P_REQUEST + p] = m[P_STREAM + p]
        m[P_WAKE + p] = NEVER


def serve_transfer(m: Cells, p: int) -> None:
    """Ask for the blocks that the rate has let through by now."""
    e = m[P_CURRENT + p]
    v = m[e + E_OPERATION] + O_VALUES
    now, stream = m[NOW], m[P_STREAM + p]
    rate, length, write = m[v + RATE], m[v + BURST_BYTES], m[v + STORES]
    burst, block, passed = m[P_STEP + p], m[P_BLOCK + p], m[P_PASSED + p]
    asked = now
    while asked == now:
        place = (m[v + ADDRESS] + burst * m[v + PITCH]) // BLOCK + block
        passed = max(passed, grant_block(m, now, place, write))
        block += 1
        if block * BLOCK >= length:
            block = 0
            burst += 1
            if burst == m[v + BURSTS]:
                m[P_PASSED + p] = passed
                _end_transfer(m, p, e, now)
                return
        asked = stream + (burst * length + block * BLOCK) * TICKS // rate
    m[P_STEP + p], m[P_BLOCK + p], m[P_PASSED + p] = burst, block, passed
    m[P_REQUEST + p] = asked


def _end_transfer(m: Cells, p: int, e: int, asked: int) -> None:
    """Settle when a transfer ends that has asked for its last block."""
    v = m[e + E_OPERATION] + O_VALUES
    stream = m[P_STREAM + p]
    # The last block needs its cycle in any case.
    due = max(stream + m[v + STREAMING], asked + 1)
    stream_end = max(due, m[P_PASSED + p] + 1)
    end = stream_end + m[v + BEHIND]
    finish(m, e, end)
    spend(m, p, MEMORY_LATENCY, stream, e)
    spend(m, p, BUSY, due, e)
    spend(m, p, BANK_CONFLICT, stream_end, e)
    spend(m, p, MEMORY_LATENCY, end, e)
    m[P_REQUEST + p] = NEVER
    m[P_WAKE + p] = end


def begin_vector(m: Cells, p: int, e: int) -> None:
    """Start a strided-repeat instruction."""
    now, v = m[P_LOCAL + p], m[e + E_OPERATION] + O_VALUES
    retire(m, p)
    fills = m[v + ALWAYS] or m[P_FLIGHT + p] == NONE
    begin(m, p, e, now)
    m[e + E_PENDING] = m[v + REPEATS]
    m[e + E_WRITTEN] = 0
    launch(m, p, e)
    start = now
    if fills:
        start += m[v + HEAD]
        spend(m, p, FILL, start, e)
    m[e + E_DUE] = now if m[v + REPEATS] else 0
    m[P_STATUS + p] = WORKING
    m[P_STEP + p] = 0
    if m[v + REPEATS] == 0:
        _leave(m, p, e, start)
    else:
        m[P_REQUEST + p] = start
        m[P_WAKE + p] = NEVER


def serve_vector(m: Cells, p: int) -> None:
    """Read the operands of the next repeat and send its results on their way."""
    e = m[P_CURRENT + p]
    v = m[e + E_OPERATION] + O_VALUES
    start, repeat = m[NOW], m[P_STEP + p]
    interval_end = start + m[v + INTERVAL]
    following = interval_end
    s = v + STREAMS
    for _ in range(m[v + SOURCES]):
        s += PER_STREAM
        block = (m[s] + repeat * m[s + 1]) // BLOCK
        following = max(following, grant_pattern(m, start, block, m[s + 2], m[s + 3], 0) + 1)
    if following > interval_end:
        spend(m, p, BUSY, interval_end, e)
        spend(m, p, BANK_CONFLICT, following, e)
    m[e + E_DUE] = following + m[v + TAIL]
    _send_result(m, m[e + E_DUE] - 1, e)
    m[P_STEP + p] = repeat + 1
    if repeat + 1 == m[v + REPEATS]:
        _leave(m, p, e, following)
    else:
        m[P_REQUEST + p] = following


def _leave(m: Cells, p: int, e: int, cycle: int) -> None:
    """Let the pipe take its next operation in `cycle`; the results of this one are still on their way."""
    spend(m, p, BUSY, cycle, e)
    if m[e + E_DUE] >= m[P_DRAIN_END + p]:
        m[P_DRAIN_END + p] = m[e + E_DUE]
        m[P_DRAINING + p] = e if m[RECORDING] else NONE
    m[P_REQUEST + p] = NEVER
    m[P_WAKE + p] = cycle


def _send_result(m: Cells, time: int, e: int) -> None:
    """Have the results of a repeat ask for their blocks in cycle `time`; equal times go by operation, then in turn."""
    mask, ring = m[WRITE_MASK], m[WRITES_AT]
    head, k = m[WRITE_HEAD], m[WRITE_COUNT]
    while k > 0:
        before = ring + ((head + k - 1) & mask) * WRITE_WIDTH
        other = m[before + W_ENTRY]
        if m[before + W_TIME] < time or (m[before + W_TIME] == time and m[other + E_INDEX] <= m[e + E_INDEX]):
            break
        place = ring + ((head + k) & mask) * WRITE_WIDTH
        m[place + W_TIME] = m[before + W_TIME]
        m[place + W_ENTRY] = other
        k -= 1
    place = ring + ((head + k) & mask) * WRITE_WIDTH
    m[place + W_TIME] = time
    m[place + W_ENTRY] = e
    m[WRITE_COUNT] += 1


def serve_write(m: Cells) -> None:
    """Write the results that ask first."""
    e = m[m[WRITES_AT] + m[WRITE_HEAD] * WRITE_WIDTH + W_ENTRY]
    m[WRITE_HEAD] = (m[WRITE_HEAD] + 1) & m[WRITE_MASK]
    m[WRITE_COUNT] -= 1
    v = m[e + E_OPERATION] + O_VALUES
    s = v + STREAMS
    repeat = m[v + REPEATS] - m[e + E_PENDING]
    block = (m[s] + repeat * m[s + 1]) // BLOCK
    # A block is in the buffer one cycle after it has passed the port.
    passed = grant_pattern(m, m[NOW], block, m[s + 2], m[s + 3], 1)
    m[e + E_WRITTEN] = max(m[e + E_WRITTEN], passed + 1)
    m[e + E_PENDING] -= 1
    if m[e + E_PENDING] == 0:
        finish(m, e, max(m[e + E_DUE], m[e + E_WRITTEN]))
