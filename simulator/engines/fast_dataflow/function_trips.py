"""Trips of a vector function: load, compute, store. The rules are those of `event_function.trip` and `.stores`."""

from __future__ import annotations

from simulator.engines.fast_dataflow.function_layout import (
    BARRIER_TICKS,
    BRANCHES,
    C_AGAIN,
    C_LATENCY,
    C_OCCUPANCY,
    C_RESULTS,
    C_SOURCES,
    C_SPECIAL,
    CLOSING_STEPS,
    CLOSING_STORES,
    COMPLETED,
    COMPUTED,
    F_NEST,
    F_RELEASED,
    F_ROW,
    F_SENT,
    F_STATE,
    F_STORE,
    F_TRIP,
    FLIGHT_COUNT,
    FLIGHT_FIRST,
    FLIGHT_WIDTH,
    FORWARDING,
    HELD_BARRIER,
    HELD_BLOCK,
    HELD_OPERAND,
    HELD_PATH,
    HELD_PORT,
    L_ADDRESS,
    L_RESULTS,
    L_ROW,
    L_SIZE,
    L_TRIP,
    LAST_START,
    LATEST_STORE,
    LOAD_USE,
    LOADS,
    LOADS_AT,
    NEST_VALUES,
    NO_TICK,
    PATH_FREE,
    PATH_HOLD,
    PATH_OPENED,
    REGISTERS_USED,
    RELEASED,
    ROW,
    ROW_BYTES,
    ROW_LOADS,
    ROW_STATE,
    S_ADDRESS,
    S_BARRIER,
    S_DATA,
    S_LOAD,
    S_OPERAND,
    S_PATH,
    S_PORT,
    S_READY,
    S_SIZE,
    S_THROUGH,
    SECOND_LOAD,
    SERIAL_FREE,
    SPECIAL_NEXT,
    SPECIAL_PORTS,
    STATE,
    STEPS,
    STEPS_AT,
    STORE_ASKED,
    STORE_COUNT,
    STORE_FIRST,
    STORE_INTERVAL,
    STORE_LATENCY,
    STORE_ROW,
    STORE_SENT,
    STORE_STARTED,
    STORE_TRIP,
    STORE_VALUES,
    STORE_WIDTH,
    STORES,
    STORES_AT,
    T_ADDRESS,
    T_BARRIER,
    T_PLACE,
    T_PREDICATE,
    T_SIZE,
    T_SOURCE,
    TICK,
    TICKS,
    TRIP,
    TRIPS,
    UNRELEASED,
    WAITED_OPERAND,
    WAITED_PORT,
)
from simulator.engines.fast_dataflow.layout import (
    E_OPERATION,
    FLIGHTS,
    NEVER,
    NONE,
    NOW,
    O_VALUES,
    P_CURRENT,
    PENDING,
    READY,
    SPECIAL,
    Cells,
)
from simulator.engines.fast_dataflow.ports import grant_bytes


def open_row(m: Cells, registers: int) -> None:
    """Begin a row: no register has been loaded for it and nothing accumulated."""
    m[ROW_STATE] += 2 * registers
    first = m[READY] + m[ROW_STATE]
    for k in range(first, first + 2 * registers):
        m[k] = NO_TICK


def send(m: Cells, p: int) -> None:
    """Send one trip: it computes at once if it loads nothing."""
    nest, row, trip = m[NEST_VALUES], m[ROW], m[TRIP]
    f = m[FLIGHTS] + m[FLIGHT_COUNT] * FLIGHT_WIDTH
    m[f + F_NEST] = nest
    m[f + F_ROW] = row
    m[f + F_TRIP] = trip
    m[f + F_SENT] = m[TICK]
    m[f + F_STORE] = m[STORE_COUNT]
    m[f + F_STATE] = m[ROW_STATE]
    m[f + F_RELEASED] = NO_TICK if m[nest + BRANCHES] else m[TICK]
    count = m[nest + STORES]
    if trip == m[nest + TRIPS] - 1:
        count += m[nest + CLOSING_STORES]
    for number in range(count):
        _append(m, nest, row, trip, number)
    m[UNRELEASED] = m[FLIGHT_COUNT]
    if m[nest + LOADS] or (trip == 0 and m[nest + ROW_LOADS]):
        m[FLIGHT_COUNT] += 1
        return
    for k in range(m[m[m[P_CURRENT + p] + E_OPERATION] + O_VALUES + REGISTERS_USED]):
        m[m[READY] + k] = NO_TICK
    _compute(m, p, f, 0, m[TICK])


def release(m: Cells) -> None:
    """Let the stores of the trip go that was sent last."""
    f = m[FLIGHTS] + m[UNRELEASED] * FLIGHT_WIDTH
    m[f + F_RELEASED] = m[TICK]
    for number in range(m[f + F_STORE], m[STORE_COUNT]):
        s = m[PENDING] + number * STORE_WIDTH
        if m[s + S_READY] == COMPUTED:
            _let_go(m, s, m[TICK])


def serve_load(m: Cells, p: int) -> None:
    """Load for the trip that was sent first, and compute."""
    now = m[NOW]
    v = m[m[P_CURRENT + p] + E_OPERATION] + O_VALUES
    f = m[FLIGHTS] + m[FLIGHT_FIRST] * FLIGHT_WIDTH
    m[FLIGHT_FIRST] += 1
    nest, row, trip, sent = m[f], m[f + F_ROW], m[f + F_TRIP], m[f + F_SENT]
    registers = m[v + REGISTERS_USED]
    for k in range(registers):
        m[m[READY] + k] = NO_TICK
    load = m[nest + LOADS_AT]
    waited = number = 0
    arrival = NO_TICK
    for k in range(m[nest + ROW_LOADS] + m[nest + LOADS]):
        results = m[load + L_RESULTS]
        if trip == 0 or k >= m[nest + ROW_LOADS]:
            address = m[load + L_ADDRESS] + row * m[load + L_ROW] + trip * m[load + L_TRIP]
            wait = (grant_bytes(m, now, address, m[load + L_SIZE], 0) - now) * TICKS
            waited = max(waited, wait)
            there = sent + max(number * m[v + SECOND_LOAD], wait) + m[v + LOAD_USE]
            number += 1
            for result in range(load + L_RESULTS + 1, load + L_RESULTS + 1 + results):
                m[m[READY] + m[result]] = there
        load += L_RESULTS + 1 + results
    for k in range(registers):
        arrival = max(arrival, m[m[READY] + k])
    _compute(m, p, f, waited, arrival)


def _append(m: Cells, nest: int, row: int, trip: int, number: int) -> None:
    """Append a store of one trip to the queue, cut to the bytes of its row; or of the row, behind its last trip."""
    t = m[nest + STORES_AT] + number * STORE_VALUES
    s = m[PENDING] + m[STORE_COUNT] * STORE_WIDTH
    m[STORE_COUNT] += 1
    place = m[t + T_ADDRESS] + row * m[nest + STORE_ROW]
    size = m[t + T_SIZE]
    if number < m[nest + STORES]:
        start = trip * m[nest + STORE_TRIP]
        place += start
        size = max(0, min(size, m[nest + ROW_BYTES] - start - m[t + T_PLACE]))
    m[s + S_READY] = 0
    m[s + S_ADDRESS] = place
    m[s + S_SIZE] = size


def _compute(m: Cells, p: int, f: int, waited: int, arrival: int) -> None:
    """Execute the instructions of a trip and tell its stores when they may leave."""
    v = m[m[P_CURRENT + p] + E_OPERATION] + O_VALUES
    nest, trip, sent = m[f + F_NEST], m[f + F_TRIP], m[f + F_SENT]
    through = arrival
    if m[nest + PATH_HOLD]:
        free = m[PATH_FREE] if m[nest + PATH_OPENED] else max(m[PATH_FREE], arrival)
        m[PATH_FREE] = free + m[nest + PATH_HOLD]
        through = m[PATH_FREE]
    m[STATE] = m[f + F_STATE]
    _keep_row_loads(m, nest)
    m[LAST_START] = m[SERIAL_FREE] = sent
    m[WAITED_PORT] = m[WAITED_OPERAND] = 0
    count, stores = m[nest + STEPS], m[nest + STORES]
    if trip == m[nest + TRIPS] - 1:
        count += m[nest + CLOSING_STEPS]
        stores += m[nest + CLOSING_STORES]
    step = m[nest + STEPS_AT]
    for _ in range(count):
        step = _execute(m, v, step, sent)
    for number in range(stores):
        t = m[nest + STORES_AT] + number * STORE_VALUES
        s = m[PENDING] + (m[f + F_STORE] + number) * STORE_WIDTH
        data = max(_ready(m, m[t + T_SOURCE], sent), _ready(m, m[t + T_PREDICATE], sent))
        m[s + S_READY] = COMPUTED
        m[s + S_DATA] = data
        m[s + S_THROUGH] = through
        m[s + S_LOAD] = waited
        m[s + S_PORT] = m[WAITED_PORT]
        m[s + S_OPERAND] = m[WAITED_OPERAND]
        m[s + S_BARRIER] = m[LAST_START] if m[t + T_BARRIER] else NO_TICK
        if m[f + F_RELEASED] != NO_TICK:
            _let_go(m, s, m[f + F_RELEASED])


def _let_go(m: Cells, s: int, released: int) -> None:
    """Let a store leave from tick `released` on."""
    data = max(released, m[s + S_DATA])
    m[s + S_DATA] = max(data, m[s + S_THROUGH])
    m[s + S_PATH] = m[s + S_DATA] - data
    if m[s + S_BARRIER] != NO_TICK:
        m[s + S_BARRIER] = max(released, m[s + S_BARRIER])
    m[s + S_READY] = RELEASED


def _ready(m: Cells, register: int, sent: int) -> int:
    """Return when a register of the trip or of its row can be used; predicates and constants always can."""
    if register == NONE:
        return sent
    if m[m[READY] + register] != NO_TICK:
        return m[m[READY] + register]
    of_row = m[m[READY] + m[STATE] + register]
    return of_row if of_row != NO_TICK else sent


def _keep_row_loads(m: Cells, nest: int) -> None:
    """Keep for the row what its own loads have loaded."""
    load = m[nest + LOADS_AT]
    for _ in range(m[nest + ROW_LOADS]):
        first = load + L_RESULTS + 1
        load = first + m[load + L_RESULTS]
        for result in range(first, load):
            register = m[result]
            if m[m[READY] + register] != NO_TICK:
                m[m[READY] + m[STATE] + register] = m[m[READY] + register]


def _execute(m: Cells, v: int, step: int, sent: int) -> int:
    """Start a compute instruction once its operands and ports are there; return where the next one lies.

    Those that pass the serial port keep their order; those that take ports of the special functions do so in turn.
    """
    sources = step + C_RESULTS + 1
    results = sources + m[step + C_SOURCES]
    end = results + m[step + C_RESULTS]
    started = m[READY] + m[STATE] + m[v + REGISTERS_USED]
    start = sent
    for k in range(sources, results):
        start = max(start, _ready(m, m[k], sent))
    again = m[step + C_AGAIN]
    if again != NO_TICK:
        begun = start
        for k in range(results, end):
            if m[started + m[k]] != NO_TICK:
                start = max(start, m[started + m[k]] + again)
        m[WAITED_OPERAND] += start - begun
    if m[step + C_OCCUPANCY] != NO_TICK:
        start = max(start, m[SERIAL_FREE])
        m[SERIAL_FREE] = start + m[step + C_OCCUPANCY]
    if m[step + C_SPECIAL] != NO_TICK:
        port, begun = m[SPECIAL_NEXT], start
        m[SPECIAL_NEXT] = (port + 1) % m[v + SPECIAL_PORTS]
        start = max(start, m[m[SPECIAL] + port])
        m[m[SPECIAL] + port] = start + m[step + C_SPECIAL]
        m[WAITED_PORT] += start - begun
    m[LAST_START] = max(m[LAST_START], start)
    for k in range(results, end):
        m[m[READY] + m[k]] = start + m[step + C_LATENCY] - m[v + FORWARDING]
        if again != NO_TICK:
            m[started + m[k]] = start
    return end


def queue_store(m: Cells, p: int) -> None:
    """Send the next store of the queue on its way, if it may leave and none is on its way."""
    if m[STORE_ASKED] != NEVER or m[STORE_FIRST] == m[STORE_COUNT]:
        return
    s = m[PENDING] + m[STORE_FIRST] * STORE_WIDTH
    if m[s + S_READY] != RELEASED:
        return
    v = m[m[P_CURRENT + p] + E_OPERATION] + O_VALUES
    data, barrier, latest = m[s + S_DATA], m[s + S_BARRIER], m[LATEST_STORE]
    start = data if latest == NO_TICK else max(data, latest + m[v + STORE_INTERVAL])
    if barrier != NO_TICK:
        start = max(start, max(barrier, latest) + m[v + BARRIER_TICKS])
    m[STORE_STARTED] = start
    m[STORE_ASKED] = -(-start // TICKS)
    m[STORE_SENT] = m[NOW]


def serve_store(m: Cells, p: int) -> None:
    """Write the store that is on its way."""
    now = m[NOW]
    v = m[m[P_CURRENT + p] + E_OPERATION] + O_VALUES
    s = m[PENDING] + m[STORE_FIRST] * STORE_WIDTH
    m[STORE_FIRST] += 1
    m[STORE_ASKED] = NEVER
    waited = (grant_bytes(m, now, m[s + S_ADDRESS], m[s + S_SIZE], 1) - now) * TICKS
    m[LATEST_STORE] = m[STORE_STARTED] + waited
    m[HELD_PORT] = m[s + S_PORT]
    m[HELD_OPERAND] = m[s + S_OPERAND]
    m[HELD_PATH] = m[s + S_PATH]
    m[HELD_BARRIER] = m[STORE_STARTED] - m[s + S_DATA] if m[s + S_BARRIER] != NO_TICK else 0
    m[HELD_BLOCK] = waited + m[s + S_LOAD]
    m[COMPLETED] = max(m[COMPLETED], m[LATEST_STORE] + m[v + STORE_LATENCY])
