"""A vector function at work: its front end, and the order of its requests. The rules are those of `event_function`.

One function runs at a time. Its front end is a chain of phases that take some ticks each. Whatever it sends in one
cycle loads in that cycle.
"""

from __future__ import annotations

from castsim.engines.fast_dataflow.codes import (
    BANK_CONFLICT,
    BRANCHING,
    BUSY,
    CLOSED,
    DEPENDENCE,
    DRAIN,
    FILL,
    HOLDING,
    INITIATION_INTERVAL,
    LAUNCHING,
    LOOP_TURNAROUND,
    LOOPING,
    MEMORY_BANDWIDTH,
    NEVER,
    NONE,
    PORT,
    ROW_BRANCHING,
    ROW_TURNING,
    SENDING,
    SERIALISING_BRANCH,
    SETTING_UP,
    STORE_BARRIER,
    UNPACKING,
    UPDATING,
    WORKING,
)
from castsim.engines.fast_dataflow.executions import execution_of
from castsim.engines.fast_dataflow.function_state import FunctionRow
from castsim.engines.fast_dataflow.function_trips import (
    open_row,
    queue_store,
    release,
    send,
    serve_load,
    serve_store,
)
from castsim.engines.fast_dataflow.pipes import begin, finish, spend
from castsim.engines.fast_dataflow.state import MachineState
from castsim.execution.dataflow.timing import NO_TICK, TICKS, cycle_from
from castsim.machines.vector_function.timing import branch_rest, busy_of_hold, function_end


def begin_function(m: MachineState, p: int, e: int) -> None:
    """Launch a function."""
    pipe, entry = m.pipes[p], m.entries[e]
    now = pipe.local
    begin(m, p, entry, now)
    # The published cycles of a cast count from here: they leave out the control writes.
    execution_of(m, entry.execution).start = now
    for q in range(1, m.pipe_count):
        if m.pipes[q].began == entry.execution:
            m.pipes[q].began = NONE  # no other that begins in this cycle counts instead
    pipe.status = WORKING
    function = m.functions[m.operations[entry.operation].row]
    if function.spans:
        _pass(m, p, e, function)
        return
    _reset(m, now)
    for port in range(function.special_ports):
        m.special[port] = 0
    resume_function(m, p)


def _pass(m: MachineState, p: int, e: int, function: FunctionRow) -> None:
    """Let the time of a function pass whose instructions have been placed."""
    pipe = m.pipes[p]
    cycle = pipe.local
    for number in range(function.spans):
        place = function.first_span + 2 * number
        cycle = pipe.local + m.numbers[place + 1]
        spend(m, p, m.numbers[place], cycle, e)
    finish(m, m.entries[e], cycle)
    pipe.wake = cycle
    pipe.request = NEVER


def _reset(m: MachineState, now: int) -> None:
    """Put front end and store queue into the state in which they begin with a function."""
    front, stores = m.front_end, m.store_queue
    front.now = now * TICKS
    front.phase = LAUNCHING
    front.first_flight = front.flights = 0
    front.unreleased = NONE
    front.special_next = 0
    stores.first = stores.count = 0
    stores.asked = NEVER
    stores.latest = NO_TICK
    stores.completed_at = 0
    stores.held_port = stores.held_operand = stores.held_path = stores.held_barrier = stores.held_block = 0


def resume_function(m: MachineState, p: int) -> None:
    """Let the front end go on, as far as it gets in this cycle."""
    front, pipe = m.front_end, m.pipes[p]
    function = m.functions[m.operations[m.entries[pipe.current].operation].row]
    pipe.wake = NEVER
    while front.phase != CLOSED:
        if front.phase < ROW_TURNING:
            _open(m, p, function)
        else:
            _go_on(m, p, function)
        due = cycle_from(front.now)
        if due > m.now:
            pipe.wake = due
            break
    _ask(m, p, function)


def serve_function(m: MachineState, p: int) -> None:
    """Serve what asks first: a store that has been sent in an earlier cycle, loads, a store sent in this one."""
    front, stores, now = m.front_end, m.store_queue, m.now
    function = m.functions[m.operations[m.entries[m.pipes[p].current].operation].row]
    loads = front.first_flight < front.flights
    if loads and not (stores.asked == now and stores.sent < now):
        serve_load(m, function)
    else:
        serve_store(m, function)
    _ask(m, p, function)


def _ask(m: MachineState, p: int, function: FunctionRow) -> None:
    """Work out when the function asks for blocks next; end it if it never will."""
    front, stores, pipe = m.front_end, m.store_queue, m.pipes[p]
    queue_store(m, function)
    if front.first_flight < front.flights:
        pipe.request = m.now
        return
    front.first_flight = front.flights = 0
    pipe.request = stores.asked
    if front.phase == CLOSED and stores.first == stores.count and pipe.wake == NEVER:
        _end(m, p, function)


def _end(m: MachineState, p: int, function: FunctionRow) -> None:
    """Settle when the function ends, and what held its last store."""
    pipe, stores = m.pipes[p], m.store_queue
    e = pipe.current
    cycle = function_end(stores.completed_at, m.front_end.now, function.drain)
    _spend_held(m, p, PORT, stores.held_port, cycle)
    _spend_held(m, p, DEPENDENCE, stores.held_operand, cycle)
    _spend_held(m, p, MEMORY_BANDWIDTH, stores.held_path, cycle)
    _spend_held(m, p, STORE_BARRIER, stores.held_barrier, cycle)
    _spend_held(m, p, BANK_CONFLICT, stores.held_block, cycle)
    spend(m, p, DRAIN, cycle, e)
    finish(m, m.entries[e], cycle)
    pipe.wake = cycle


def _spend_held(m: MachineState, p: int, cause: int, held: int, cycle: int) -> None:
    spend(m, p, cause, min(cycle, m.accounts[p].cursor + held // TICKS), m.pipes[p].current)


def _work(m: MachineState, p: int, duration: int, cause: int) -> None:
    """Spend so many ticks."""
    if duration > 0:
        front = m.front_end
        front.now += duration
        spend(m, p, cause, front.now // TICKS, m.pipes[p].current)


def _open(m: MachineState, p: int, function: FunctionRow) -> None:
    """Do one of the phases before the first row of a nest."""
    front = m.front_end
    phase = front.phase
    front.phase = phase + 1
    if phase == LAUNCHING:
        _work(m, p, function.startup, FILL)
    elif phase == SETTING_UP:
        front.begun = front.now
        front.path_free = 0
        front.number = 0
        front.row_state = -function.registers
        _work(m, p, function.setup, LOOP_TURNAROUND)
    elif phase == LOOPING:
        if front.number == function.nests:
            front.phase = CLOSED
            return
        front.nest = function.first_nest + front.number
        _work(m, p, m.nests[front.nest].row_loop, LOOP_TURNAROUND)
    elif phase == UNPACKING:
        _work(m, p, m.nests[front.nest].unpack_head, BANK_CONFLICT)
    elif phase == UPDATING:
        _work(m, p, m.nests[front.nest].post_update, LOOP_TURNAROUND)
    else:
        nest = m.nests[front.nest]
        front.row = 0
        if nest.path_opened:
            front.path_free = max(front.path_free, front.begun + nest.path_offset)


def _go_on(m: MachineState, p: int, function: FunctionRow) -> None:
    """Do one of the phases of rows and trips."""
    front, nest = m.front_end, m.nests[m.front_end.nest]
    phase, branches = front.phase, nest.branches
    front.phase = phase + 1
    if phase == ROW_TURNING:
        front.trip = 0
        open_row(m, function.registers)
        if front.row:
            _work(m, p, nest.next_row, LOOP_TURNAROUND)
    elif phase in (ROW_BRANCHING, BRANCHING):
        if branches:
            _work(m, p, function.branch, SERIALISING_BRANCH)
    elif phase == SENDING:
        send(m, function)
        _work(m, p, nest.hold if branches else busy_of_hold(nest.hold), BUSY)
    elif phase == HOLDING:
        if branches:
            _work(m, p, branch_rest(function.branch, nest.hold), SERIALISING_BRANCH)
        else:
            _work(m, p, nest.hold - busy_of_hold(nest.hold), INITIATION_INTERVAL)
    else:
        if branches:
            release(m)
        _next_trip(m)


def _next_trip(m: MachineState) -> None:
    """Go to the next trip, row or nest."""
    front, nest = m.front_end, m.nests[m.front_end.nest]
    front.trip += 1
    front.phase = BRANCHING
    if front.trip == nest.trips:
        front.row += 1
        front.phase = ROW_TURNING
        if front.row == nest.rows:
            front.number += 1
            front.begun = front.now
            front.phase = LOOPING
