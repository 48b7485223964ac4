"""A vector function at work: its front end, and the order of its requests. The rules are those of `event_function`.

One function runs at a time. Its front end is a chain of phases that take some ticks each. Whatever it sends in one
cycle loads in that cycle.
"""

from __future__ import annotations

from castsim.engines.fast_dataflow.pipe_steps import begin, execution_of, finish, grant_bytes, spend
from castsim.engines.fast_dataflow.state import MachineState
from castsim.engines.fast_dataflow.state_rows import (
    BANK_CONFLICT,
    BRANCHING,
    BUSY,
    CLOSED,
    COMPUTED,
    DEPENDENCE,
    DRAIN,
    EXPECTED,
    FILL,
    HOLDING,
    INITIATION_INTERVAL,
    LAUNCHING,
    LOOP_TURNAROUND,
    LOOPING,
    MEMORY_BANDWIDTH,
    NEVER,
    NO_TIME,
    NONE,
    PORT,
    RELEASED,
    ROW_BRANCHING,
    ROW_TURNING,
    SENDING,
    SERIALISING_BRANCH,
    SETTING_UP,
    STORE_BARRIER,
    UNPACKING,
    UPDATING,
    WORKING,
    ComputeStepRow,
    FunctionRow,
    NestRow,
    PendingStoreRow,
    TripRow,
)
from castsim.execution.transfer_timing import NO_TICK, TICKS, cycle_from
from castsim.machines.vector_function.function_timing import (
    accumulation_start,
    branch_rest,
    busy_of_hold,
    bytes_of_store,
    function_end,
    loaded,
    path_through,
    result_ready,
    store_asked,
    store_start,
)

# Trips of a vector function: load, compute, store. Who waits for whom is that of `event_function`.
#
# What each costs is a rule of `vector_function.function_timing`.


def open_row(m: MachineState, registers: int) -> None:
    """Begin a row: no register has been loaded for it and nothing accumulated."""
    front = m.front_end
    front.row_state += 2 * registers
    for k in range(front.row_state, front.row_state + 2 * registers):
        m.registers[k] = NO_TICK


def send(m: MachineState, function: FunctionRow) -> None:
    """Send one trip: it computes at once if it loads nothing."""
    front, stores = m.front_end, m.store_queue
    nest, flight = m.nests[front.nest], m.trips[front.flights]
    flight.nest = front.nest
    flight.row = front.row
    flight.trip = front.trip
    flight.sent = front.now
    flight.store = stores.count
    flight.state = front.row_state
    flight.released = NO_TICK if nest.branches else front.now
    for number in range(_stores_of(nest, front.trip)):
        _append(m, nest, number)
    front.unreleased = front.flights
    if nest.loads or (front.trip == 0 and nest.row_loads):
        front.flights += 1
        return
    for k in range(function.registers):
        m.registers[k] = NO_TICK
    _compute(m, function, flight, 0, front.now)


def release(m: MachineState) -> None:
    """Let the stores of the trip go that was sent last."""
    front = m.front_end
    flight = m.trips[front.unreleased]
    flight.released = front.now
    for number in range(flight.store, m.store_queue.count):
        store = m.pending[number]
        if store.ready == COMPUTED:
            _let_go(store, front.now)


def serve_load(m: MachineState, function: FunctionRow) -> None:
    """Load for the trip that was sent first, and compute."""
    front, now, registers, ticks = m.front_end, m.now, m.registers, m.ticks[0]
    flight = m.trips[front.first_flight]
    front.first_flight += 1
    nest = m.nests[flight.nest]
    for k in range(function.registers):
        registers[k] = NO_TICK
    waited = number = 0
    arrival = NO_TICK
    for k in range(nest.row_loads + nest.loads):
        if flight.trip == 0 or k >= nest.row_loads:
            load = m.load_steps[nest.first_load + k]
            address = load.address + flight.row * load.row_step + flight.trip * load.trip_step
            wait = (grant_bytes(m, now, address, load.size, 0) - now) * TICKS
            waited = max(waited, wait)
            there = loaded(flight.sent, number, ticks.second_load, wait, ticks.load_use)
            number += 1
            for result in range(load.first_result, load.first_result + load.results):
                registers[m.numbers[result]] = there
    for k in range(function.registers):
        arrival = max(arrival, registers[k])
    _compute(m, function, flight, waited, arrival)


def _stores_of(nest: NestRow, trip: int) -> int:
    """Return how many stores a trip has: behind the last one, those of its row too."""
    return nest.stores + nest.closing_stores if trip == nest.trips - 1 else nest.stores


def _append(m: MachineState, nest: NestRow, number: int) -> None:
    """Append a store of the trip to the queue, cut to the bytes of its row; or of the row, behind its last trip."""
    front, step = m.front_end, m.store_steps[nest.first_store + number]
    store = m.pending[m.store_queue.count]
    m.store_queue.count += 1
    place, size = step.address + front.row * nest.destination_row, step.size
    if number < nest.stores:
        start = front.trip * nest.destination_trip
        place += start
        size = bytes_of_store(size, nest.row_bytes, start + step.offset)
    store.ready = EXPECTED
    store.address = place
    store.size = size


def _compute(m: MachineState, function: FunctionRow, flight: TripRow, waited: int, arrival: int) -> None:
    """Execute the instructions of a trip and tell its stores when they may leave."""
    front, waits = m.front_end, m.waits
    nest, sent = m.nests[flight.nest], flight.sent
    through = arrival
    if nest.path_hold:
        through = front.path_free = path_through(front.path_free, arrival, nest.path_hold, nest.path_opened)
    waits.row = flight.state
    _keep_row_loads(m, nest)
    waits.last = waits.serial_free = sent
    waits.port = waits.operand = 0
    steps = nest.steps + nest.closing_steps if flight.trip == nest.trips - 1 else nest.steps
    for number in range(nest.first_step, nest.first_step + steps):
        _execute(m, function, m.steps[number], sent)
    for number in range(_stores_of(nest, flight.trip)):
        step, store = m.store_steps[nest.first_store + number], m.pending[flight.store + number]
        store.ready = COMPUTED
        store.data_at = max(_ready(m, step.source, sent), _ready(m, step.predicate, sent))
        store.through = through
        store.block_wait = waited
        store.barrier_wait = 0
        store.port_wait = waits.port
        store.operand_wait = waits.operand
        store.barrier_at = waits.last if step.barrier else NO_TICK
        if flight.released != NO_TICK:
            _let_go(store, flight.released)


def _let_go(store: PendingStoreRow, released: int) -> None:
    """Let a store leave from tick `released` on."""
    data = max(released, store.data_at)
    store.data_at = max(data, store.through)
    store.path_wait = store.data_at - data
    if store.barrier_at != NO_TICK:
        store.barrier_at = max(released, store.barrier_at)
    store.ready = RELEASED


def _ready(m: MachineState, register: int, sent: int) -> int:
    """Return when a register of the trip or of its row can be used; predicates and constants always can."""
    if register == NONE:
        return sent
    of_trip = m.registers[register]
    if of_trip != NO_TICK:
        return of_trip
    of_row = m.registers[m.waits.row + register]
    return of_row if of_row != NO_TICK else sent


def _keep_row_loads(m: MachineState, nest: NestRow) -> None:
    """Keep for the row what its own loads have loaded."""
    for number in range(nest.first_load, nest.first_load + nest.row_loads):
        load = m.load_steps[number]
        for result in range(load.first_result, load.first_result + load.results):
            register = m.numbers[result]
            if m.registers[register] != NO_TICK:
                m.registers[m.waits.row + register] = m.registers[register]


def _execute(m: MachineState, function: FunctionRow, step: ComputeStepRow, sent: int) -> None:
    """Start a compute instruction once its operands and ports are there.

    Those that pass the serial port keep their order; those that take ports of the special functions do so in turn.
    """
    waits, registers, numbers, ticks = m.waits, m.registers, m.numbers, m.ticks[0]
    first_result = step.first_source + step.sources
    end = first_result + step.results
    started = waits.row + function.registers
    start = sent
    for k in range(step.first_source, first_result):
        start = max(start, _ready(m, numbers[k], sent))
    if step.again != NO_TICK:
        begun = start
        for k in range(first_result, end):
            start = accumulation_start(start, registers[started + numbers[k]], step.again)
        waits.operand += start - begun
    if step.occupancy != NO_TICK:
        start = max(start, waits.serial_free)
        waits.serial_free = start + step.occupancy
    if step.special != NO_TICK:
        port, begun = m.front_end.special_next, start
        m.front_end.special_next = (port + 1) % ticks.special_ports
        start = max(start, m.special[port])
        m.special[port] = start + step.special
        waits.port += start - begun
    waits.last = max(waits.last, start)
    for k in range(first_result, end):
        registers[numbers[k]] = result_ready(start, step.latency, ticks.forwarding)
        if step.again != NO_TICK:
            registers[started + numbers[k]] = start


def queue_store(m: MachineState) -> None:
    """Send the next store of the queue on its way, if it may leave and none is on its way."""
    stores = m.store_queue
    if stores.asked != NEVER or stores.first == stores.count:
        return
    store = m.pending[stores.first]
    if store.ready == RELEASED:
        ticks = m.ticks[0]
        stores.started = store_start(
            store.data_at, stores.latest, ticks.store_interval, store.barrier_at, ticks.store_barrier
        )
        stores.asked = store_asked(stores.started)
        stores.sent = m.now


def serve_store(m: MachineState) -> None:
    """Write the store that is on its way."""
    stores = m.store_queue
    store = m.pending[stores.first]
    stores.first += 1
    stores.asked = NEVER
    waited = (grant_bytes(m, m.now, store.address, store.size, 1) - m.now) * TICKS
    stores.latest = stores.started + waited
    store.barrier_wait = stores.started - store.data_at if store.barrier_at != NO_TICK else 0
    store.block_wait += waited
    stores.completed_at = max(stores.completed_at, stores.latest + m.ticks[0].store_latency)
    stores.started, stores.sent = NO_TICK, NO_TIME


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
    for port in range(m.ticks[0].special_ports):
        m.special[port] = NO_TICK
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
    stores.completed_at = NO_TICK


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
    _ask(m, p)


def serve_function(m: MachineState, p: int) -> None:
    """Serve what asks first: a store that has been sent in an earlier cycle, loads, a store sent in this one."""
    front, stores, now = m.front_end, m.store_queue, m.now
    function = m.functions[m.operations[m.entries[m.pipes[p].current].operation].row]
    loads = front.first_flight < front.flights
    if loads and not (stores.asked == now and stores.sent < now):
        serve_load(m, function)
    else:
        serve_store(m)
    _ask(m, p)


def _ask(m: MachineState, p: int) -> None:
    """Work out when the function asks for blocks next; end it if it never will."""
    front, stores, pipe = m.front_end, m.store_queue, m.pipes[p]
    queue_store(m)
    if front.first_flight < front.flights:
        pipe.request = m.now
        return
    front.first_flight = front.flights = 0
    pipe.request = stores.asked
    if front.phase == CLOSED and stores.first == stores.count and pipe.wake == NEVER:
        _end(m, p)


def _end(m: MachineState, p: int) -> None:
    """Settle when the function ends, and what held its last store."""
    pipe, stores = m.pipes[p], m.store_queue
    e = pipe.current
    cycle = function_end(stores.completed_at, m.front_end.now, m.ticks[0].drain)
    if stores.count:
        store = m.pending[stores.count - 1]
        _spend_held(m, p, PORT, store.port_wait, cycle)
        _spend_held(m, p, DEPENDENCE, store.operand_wait, cycle)
        _spend_held(m, p, MEMORY_BANDWIDTH, store.path_wait, cycle)
        _spend_held(m, p, STORE_BARRIER, store.barrier_wait, cycle)
        _spend_held(m, p, BANK_CONFLICT, store.block_wait, cycle)
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
    front, ticks = m.front_end, m.ticks[0]
    phase = front.phase
    front.phase = phase + 1
    if phase == LAUNCHING:
        _work(m, p, ticks.startup, FILL)
    elif phase == SETTING_UP:
        front.begun = front.now
        front.path_free = NO_TICK
        front.number = 0
        front.row_state = -function.registers
        _work(m, p, ticks.setup if function.loops else 0, LOOP_TURNAROUND)
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
            _work(m, p, m.ticks[0].branch, SERIALISING_BRANCH)
    elif phase == SENDING:
        send(m, function)
        _work(m, p, nest.hold if branches else busy_of_hold(nest.hold), BUSY)
    elif phase == HOLDING:
        if branches:
            _work(m, p, branch_rest(m.ticks[0].branch, nest.hold), SERIALISING_BRANCH)
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
