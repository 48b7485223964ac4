"""Trips of a vector function: load, compute, store. Who waits for whom is that of `event_function.trip` and `.stores`.

What each costs is a rule of `vector_function.timing`.
"""

from __future__ import annotations

from castsim.engines.fast_dataflow.codes import COMPUTED, EXPECTED, NEVER, NO_TIME, NONE, RELEASED
from castsim.engines.fast_dataflow.function_state import ComputeStepRow, FunctionRow, NestRow, PendingStoreRow, TripRow
from castsim.engines.fast_dataflow.ports import grant_bytes
from castsim.engines.fast_dataflow.state import MachineState
from castsim.execution.dataflow.timing import NO_TICK, TICKS
from castsim.machines.vector_function.timing import (
    accumulation_start,
    bytes_of_store,
    loaded,
    path_through,
    result_ready,
    store_asked,
    store_start,
)


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
    front, now, registers = m.front_end, m.now, m.registers
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
            there = loaded(flight.sent, number, function.second_load, wait, function.load_use)
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
        store.load_wait = waited
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
    waits, registers, numbers = m.waits, m.registers, m.numbers
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
        m.front_end.special_next = (port + 1) % function.special_ports
        start = max(start, m.special[port])
        m.special[port] = start + step.special
        waits.port += start - begun
    waits.last = max(waits.last, start)
    for k in range(first_result, end):
        registers[numbers[k]] = result_ready(start, step.latency, function.forwarding)
        if step.again != NO_TICK:
            registers[started + numbers[k]] = start


def queue_store(m: MachineState, function: FunctionRow) -> None:
    """Send the next store of the queue on its way, if it may leave and none is on its way."""
    stores = m.store_queue
    if stores.asked != NEVER or stores.first == stores.count:
        return
    store = m.pending[stores.first]
    if store.ready == RELEASED:
        stores.started = store_start(
            store.data_at, stores.latest, function.store_interval, store.barrier_at, function.store_barrier
        )
        stores.asked = store_asked(stores.started)
        stores.sent = m.now


def serve_store(m: MachineState, function: FunctionRow) -> None:
    """Write the store that is on its way."""
    stores = m.store_queue
    store = m.pending[stores.first]
    stores.first += 1
    stores.asked = NEVER
    waited = (grant_bytes(m, m.now, store.address, store.size, 1) - m.now) * TICKS
    stores.latest = stores.started + waited
    stores.held_port = store.port_wait
    stores.held_operand = store.operand_wait
    stores.held_path = store.path_wait
    stores.held_barrier = stores.started - store.data_at if store.barrier_at != NO_TICK else 0
    stores.held_block = waited + store.load_wait
    stores.completed_at = max(stores.completed_at, stores.latest + function.store_latency)
    stores.started, stores.sent = NO_TICK, NO_TIME
