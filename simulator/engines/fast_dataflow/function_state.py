"""The rows of a vector function: what it is made of, and what is at work; times in ticks of 1/100 cycle.

Rows are named after the objects of `event_function` and `vector_function.trip_shape`.
"""

from __future__ import annotations

from castsim.engines.fast_dataflow.codes import EXPECTED, LAUNCHING, NEVER, NO_TIME, NONE
from castsim.engines.fast_dataflow.relative import Cycle, RecentCycle, RecentTick, Tick, Value
from castsim.engines.fast_dataflow.rows import Row
from castsim.execution.dataflow.timing import NO_TICK

# ------------------------------------------------------------------------------------------ what a function is made of


class FunctionRow(Row):
    """A function: the facts it rests on (`vector_function.timing.FunctionTicks`), its registers, its nests.

    `setup` is 0 if it has no loop. Its nests are `nests` rows from `first_nest` on. A function of `spans` has been
    timed as a whole: `numbers` hold a cause and the cycle after the launch up to which it lasted for each.
    """

    startup: int
    setup: int
    drain: int
    store_interval: int
    store_barrier: int
    store_latency: int
    branch: int
    load_use: int
    second_load: int
    forwarding: int
    special_ports: int
    registers: int
    first_nest: int
    nests: int
    first_span: int = 0
    spans: int = 0


class NestRow(Row):
    """A nest (`nest_plan.NestPlan`): times, then rows of `load_steps`, `steps`, `store_steps`.

    Of each, first come those of the row (before its first trip) or those of every trip, then the rest: `row_loads` and
    `loads`, `steps` and `closing_steps`, `stores` and `closing_stores`. `path_opened` says whether the memory path is
    opened, `path_offset` then when.
    """

    rows: int
    trips: int
    row_loop: int
    unpack_head: int
    post_update: int
    path_hold: int
    path_opened: int
    path_offset: int
    next_row: int
    branches: int
    hold: int
    row_bytes: int
    destination_row: int
    destination_trip: int
    first_load: int
    row_loads: int
    loads: int
    first_step: int
    steps: int
    closing_steps: int
    first_store: int
    stores: int
    closing_stores: int


class LoadStepRow(Row):
    """A load: address, distances from row to row and trip to trip, bytes, where its registers stand in `numbers`."""

    address: int
    row_step: int
    trip_step: int
    size: int
    first_result: int
    results: int


class ComputeStepRow(Row):
    """A compute instruction, NO_TICK for what does not apply; its registers, sources and results, are `numbers`."""

    latency: int
    occupancy: int
    special: int
    again: int
    first_source: int
    sources: int
    results: int


class StoreStepRow(Row):
    """A store: address and place in the row of its first trip; `barrier` says whether one precedes it."""

    address: int
    offset: int
    size: int
    source: int
    predicate: int
    barrier: int


# ------------------------------------------------------------------------------------------------- what is at work


class FrontEndRow(Row):
    """The front end of the function at work. `now` is the tick up to which it has worked, `begun` that of its nest.

    `number` counts its nests, `nest` is the row of one. `first_flight` to `flights` are the trips that have not loaded,
    `unreleased` the one whose stores wait for a branch. Where registers of the row stand, see `MachineState.registers`:
    `row_state`. `path_free` and `special_next` belong to the memory path and the ports of the special functions.
    """

    now: Tick = 0
    phase: Value = LAUNCHING
    begun: Tick = 0
    number: Value = 0
    nest: int = NONE
    row: Value = 0
    trip: Value = 0
    first_flight: Value = 0
    flights: Value = 0
    unreleased: Value = NONE
    row_state: Value = 0
    path_free: RecentTick = 0
    special_next: Value = 0


class ComputeWaitsRow(Row):
    """A trip that computes: its last start, its waits, when the serial port is free; `row` is its row's registers."""

    last: int = 0
    port: int = 0
    operand: int = 0
    serial_free: int = 0
    row: int = 0


class StoreQueueRow(Row):
    """Stores from `first` to `count` wait. The first one, if it is on its way, was sent in cycle `sent` to start at
    tick `started` and asks in cycle `asked`; the one before it left at tick `latest`. `held_...`: by how many ticks
    each cause delayed the last store.
    """

    first: Value = 0
    count: Value = 0
    asked: Cycle = NEVER
    started: Tick = NO_TICK
    sent: RecentCycle = NO_TIME
    latest: Tick = NO_TICK
    completed_at: RecentTick = 0
    held_port: Value = 0
    held_operand: Value = 0
    held_path: Value = 0
    held_barrier: Value = 0
    held_block: Value = 0


class TripRow(Row):
    """A trip in flight, sent at tick `sent`: its first store, its row's registers, when its stores were let go."""

    nest: Value = 0
    row: Value = 0
    trip: Value = 0
    sent: Tick = NO_TICK
    store: Value = 0
    state: Value = 0
    released: Tick = NO_TICK


class PendingStoreRow(Row):
    """A store in the queue; `ready` says whether its times hold."""

    ready: Value = EXPECTED
    address: Value = 0
    size: Value = 0
    data_at: Tick = NO_TICK
    through: Tick = NO_TICK
    path_wait: Value = 0
    load_wait: Value = 0
    port_wait: Value = 0
    operand_wait: Value = 0
    barrier_at: Tick = NO_TICK
