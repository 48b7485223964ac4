"""A vector function at work: its front end, and the order of its requests. The rules are those of `event_function`.

One function runs at a time. Its front end is a chain of phases that take some ticks each. Whatever it sends in one
cycle loads in that cycle.
"""

from __future__ import annotations

from simulator.engines.fast_dataflow.executions import at
from simulator.engines.fast_dataflow.function_layout import (
    BEGUN_AT,
    BRANCH_TICKS,
    BRANCHES,
    COMPLETED,
    DRAIN_TICKS,
    FLIGHT_COUNT,
    FLIGHT_FIRST,
    HEAD_TICKS,
    HELD_BARRIER,
    HELD_BLOCK,
    HELD_OPERAND,
    HELD_PATH,
    HELD_PORT,
    HOLD,
    LATEST_STORE,
    NEST,
    NEST_VALUES,
    NESTS,
    NEXT_ROW,
    NO_TICK,
    PATH_FREE,
    PATH_OFFSET,
    PATH_OPENED,
    PHASE,
    POST_UPDATE,
    REGISTERS_USED,
    ROW,
    ROW_LOOP,
    ROW_STATE,
    ROWS,
    SETUP,
    SPECIAL_NEXT,
    SPECIAL_PORTS,
    STARTUP,
    STORE_ASKED,
    STORE_COUNT,
    STORE_FIRST,
    STORE_SENT,
    TICK,
    TICKS,
    TRIP,
    TRIPS,
    UNRELEASED,
)
from simulator.engines.fast_dataflow.function_trips import (
    open_row,
    queue_store,
    release,
    send,
    serve_load,
    serve_store,
)
from simulator.engines.fast_dataflow.layout import (
    BANK_CONFLICT,
    BARRIER,
    BUSY,
    DRAIN,
    E_EXECUTION,
    E_OPERATION,
    FILL,
    INITIATION_INTERVAL,
    LOOP_TURNAROUND,
    MEMORY_BANDWIDTH,
    NEVER,
    NONE,
    NOW,
    O_VALUES,
    OPERAND_WAIT,
    P_BEGAN,
    P_CURRENT,
    P_CURSOR,
    P_LOCAL,
    P_REQUEST,
    P_STATUS,
    P_WAKE,
    PIPES,
    PORT,
    SERIALISING_BRANCH,
    SPECIAL,
    WORKING,
    X_START,
    Cells,
)
from simulator.engines.fast_dataflow.pipes import begin, finish, spend

# Phases of the front end, in their order.
LAUNCHING, SETTING_UP, LOOPING, UNPACKING, UPDATING, OPENING = range(6)
ROW_TURNING, ROW_BRANCHING, BRANCHING, SENDING, HOLDING, TURNING, CLOSED = range(6, 13)


def begin_function(m: Cells, p: int, e: int) -> None:
    """Launch a function."""
    now = m[P_LOCAL + p]
    begin(m, p, e, now)
    # The published cycles of a cast count from here: they leave out the control writes.
    x = m[e + E_EXECUTION]
    m[at(m, x) + X_START] = now
    for q in range(1, m[PIPES]):
        if m[P_BEGAN + q] == x:
            m[P_BEGAN + q] = NONE  # nobody who begins in this cycle too counts instead
    m[P_STATUS + p] = WORKING
    m[TICK] = now * TICKS
    m[PHASE] = LAUNCHING
    m[FLIGHT_FIRST] = m[FLIGHT_COUNT] = 0
    m[STORE_FIRST] = m[STORE_COUNT] = 0
    m[STORE_ASKED] = NEVER
    m[LATEST_STORE] = NO_TICK
    m[COMPLETED] = 0
    m[UNRELEASED] = NONE
    m[HELD_PORT] = m[HELD_OPERAND] = m[HELD_PATH] = m[HELD_BARRIER] = m[HELD_BLOCK] = 0
    m[SPECIAL_NEXT] = 0
    for k in range(m[m[e + E_OPERATION] + O_VALUES + SPECIAL_PORTS]):
        m[m[SPECIAL] + k] = 0
    resume_function(m, p)


def resume_function(m: Cells, p: int) -> None:
    """Let the front end go on, as far as it gets in this cycle."""
    now = m[NOW]
    m[P_WAKE + p] = NEVER
    while m[PHASE] != CLOSED:
        if m[PHASE] < ROW_TURNING:
            _open(m, p)
        else:
            _go_on(m, p)
        due = -(-m[TICK] // TICKS)
        if due > now:
            m[P_WAKE + p] = due
            break
    _ask(m, p)


def serve_function(m: Cells, p: int) -> None:
    """Serve what asks first: a store that has been sent in an earlier cycle, loads, a store sent in this one."""
    now = m[NOW]
    loads = m[FLIGHT_FIRST] < m[FLIGHT_COUNT]
    if loads and not (m[STORE_ASKED] == now and m[STORE_SENT] < now):
        serve_load(m, p)
    else:
        serve_store(m, p)
    _ask(m, p)


def _ask(m: Cells, p: int) -> None:
    """Work out when the function asks for blocks next; end it if it never will."""
    queue_store(m, p)
    if m[FLIGHT_FIRST] < m[FLIGHT_COUNT]:
        m[P_REQUEST + p] = m[NOW]
        return
    m[FLIGHT_FIRST] = m[FLIGHT_COUNT] = 0
    m[P_REQUEST + p] = m[STORE_ASKED]
    if m[PHASE] == CLOSED and m[STORE_FIRST] == m[STORE_COUNT] and m[P_WAKE + p] == NEVER:
        _end(m, p)


def _end(m: Cells, p: int) -> None:
    """Settle when the function ends, rounded once, half up, and what held its last store."""
    e = m[P_CURRENT + p]
    end = max(m[COMPLETED], m[TICK]) + m[m[e + E_OPERATION] + O_VALUES + DRAIN_TICKS]
    cycle = (end + TICKS // 2) // TICKS
    _spend_held(m, p, PORT, m[HELD_PORT], cycle)
    _spend_held(m, p, OPERAND_WAIT, m[HELD_OPERAND], cycle)
    _spend_held(m, p, MEMORY_BANDWIDTH, m[HELD_PATH], cycle)
    _spend_held(m, p, BARRIER, m[HELD_BARRIER], cycle)
    _spend_held(m, p, BANK_CONFLICT, m[HELD_BLOCK], cycle)
    spend(m, p, DRAIN, cycle, e)
    finish(m, e, cycle)
    m[P_WAKE + p] = cycle


def _spend_held(m: Cells, p: int, cause: int, held: int, cycle: int) -> None:
    spend(m, p, cause, min(cycle, m[P_CURSOR + p] + held // TICKS), m[P_CURRENT + p])


def _work(m: Cells, p: int, duration: int, cause: int) -> None:
    """Spend so many ticks."""
    if duration > 0:
        m[TICK] += duration
        spend(m, p, cause, m[TICK] // TICKS, m[P_CURRENT + p])


def _open(m: Cells, p: int) -> None:
    """Do one of the phases before the first row of a nest."""
    v = m[m[P_CURRENT + p] + E_OPERATION] + O_VALUES
    phase = m[PHASE]
    m[PHASE] = phase + 1
    if phase == LAUNCHING:
        _work(m, p, m[v + STARTUP], FILL)
    elif phase == SETTING_UP:
        m[BEGUN_AT] = m[TICK]
        m[NEST] = 0
        m[ROW_STATE] = -m[v + REGISTERS_USED]
        _work(m, p, m[v + SETUP], LOOP_TURNAROUND)
    elif phase == LOOPING:
        if m[NEST] == m[v + NESTS]:
            m[PHASE] = CLOSED
            return
        m[NEST_VALUES] = m[v + NESTS + 1 + m[NEST]]
        _work(m, p, m[m[NEST_VALUES] + ROW_LOOP], LOOP_TURNAROUND)
    elif phase == UNPACKING:
        _work(m, p, m[m[NEST_VALUES] + HEAD_TICKS], BANK_CONFLICT)
    elif phase == UPDATING:
        _work(m, p, m[m[NEST_VALUES] + POST_UPDATE], LOOP_TURNAROUND)
    else:
        nest = m[NEST_VALUES]
        m[ROW] = 0
        m[PATH_FREE] = m[BEGUN_AT] + m[nest + PATH_OFFSET] if m[nest + PATH_OPENED] else 0


def _go_on(m: Cells, p: int) -> None:
    """Do one of the phases of rows and trips."""
    v, nest = m[m[P_CURRENT + p] + E_OPERATION] + O_VALUES, m[NEST_VALUES]
    phase, branches = m[PHASE], m[nest + BRANCHES]
    m[PHASE] = phase + 1
    if phase == ROW_TURNING:
        m[TRIP] = 0
        open_row(m, m[v + REGISTERS_USED])
        if m[ROW]:
            _work(m, p, m[nest + NEXT_ROW], LOOP_TURNAROUND)
    elif phase in (ROW_BRANCHING, BRANCHING):
        if branches:
            _work(m, p, m[v + BRANCH_TICKS], SERIALISING_BRANCH)
    elif phase == SENDING:
        send(m, p)
        hold = m[nest + HOLD]
        _work(m, p, hold if branches else min(hold, TICKS), BUSY)
    elif phase == HOLDING:
        if branches:
            _work(m, p, m[v + BRANCH_TICKS] - m[nest + HOLD], SERIALISING_BRANCH)
        else:
            _work(m, p, m[nest + HOLD] - TICKS, INITIATION_INTERVAL)
    else:
        if branches:
            release(m)
        _next_trip(m, nest)


def _next_trip(m: Cells, nest: int) -> None:
    """Go to the next trip, row or nest."""
    m[TRIP] += 1
    m[PHASE] = BRANCHING
    if m[TRIP] == m[nest + TRIPS]:
        m[ROW] += 1
        m[PHASE] = ROW_TURNING
        if m[ROW] == m[nest + ROWS]:
            m[NEST] += 1
            m[BEGUN_AT] = m[TICK]
            m[PHASE] = LOOPING
