"""Where the state of a vector function lies, and the numbers that describe one; times in ticks of 1/100 cycle."""

from __future__ import annotations

from simulator.engines.fast_dataflow.layout import FUNCTION_AT

TICKS = 100
"""Ticks per cycle: facts have at most two decimals."""
NO_TICK = -(1 << 60)
"""A time that is not there."""

# Values of a function; from NESTS + 1 on, where the values of each of its nests are.
(
    STARTUP,
    SETUP,
    DRAIN_TICKS,
    STORE_INTERVAL,
    BARRIER_TICKS,
    STORE_LATENCY,
    BRANCH_TICKS,
    LOAD_USE,
    SECOND_LOAD,
    FORWARDING,
    SPECIAL_PORTS,
    REGISTERS_USED,
    NESTS,
) = range(13)

# Values of a nest. Loads, steps and stores are lists elsewhere: `..._AT` says where, behind it are the numbers of those
# of the row (before its first trip, or behind its last one) and of every trip.
(
    ROWS,
    TRIPS,
    ROW_LOOP,
    HEAD_TICKS,
    POST_UPDATE,
    PATH_HOLD,
    PATH_OPENED,
    PATH_OFFSET,
    NEXT_ROW,
    BRANCHES,
    HOLD,
    ROW_BYTES,
    STORE_ROW,
    STORE_TRIP,
    LOADS_AT,
    ROW_LOADS,
    LOADS,
    STEPS_AT,
    STEPS,
    CLOSING_STEPS,
    STORES_AT,
    STORES,
    CLOSING_STORES,
) = range(23)

# A load: address, distances from row to row and trip to trip, bytes, number of registers, then these.
L_ADDRESS, L_ROW, L_TRIP, L_SIZE, L_RESULTS = range(5)
# A compute instruction; NO_TICK for what does not apply. Then its sources, then its results.
C_LATENCY, C_OCCUPANCY, C_SPECIAL, C_AGAIN, C_SOURCES, C_RESULTS = range(6)
# A store: address and place in the row of its first trip, bytes, register, predicate, whether a barrier precedes it.
T_ADDRESS, T_PLACE, T_SIZE, T_SOURCE, T_PREDICATE, T_BARRIER, STORE_VALUES = range(7)

# Registers of the function at work.
(
    TICK,
    PHASE,
    BEGUN_AT,
    NEST,
    NEST_VALUES,
    ROW,
    TRIP,
    PATH_FREE,
    SPECIAL_NEXT,
    FLIGHT_FIRST,
    FLIGHT_COUNT,
    UNRELEASED,
    STORE_FIRST,
    STORE_COUNT,
    STORE_ASKED,
    STORE_STARTED,
    STORE_SENT,
    LATEST_STORE,
    COMPLETED,
    HELD_PORT,
    HELD_OPERAND,
    HELD_PATH,
    HELD_BARRIER,
    HELD_BLOCK,
    SERIAL_FREE,
    LAST_START,
    WAITED_PORT,
    WAITED_OPERAND,
    ROW_STATE,
    STATE,
) = range(FUNCTION_AT, FUNCTION_AT + 30)

# A trip that loads in this cycle: the first of its stores, what its row remembers, when it was released if it was.
F_NEST, F_ROW, F_TRIP, F_SENT, F_STORE, F_STATE, F_RELEASED, FLIGHT_WIDTH = range(8)

# The table `READY` holds when each vector register of the trip that computes can be used; then, for every row of the
# function, the same of those that its own loads fill, and when each was last accumulated in. ROW_STATE is where that of
# the row lies which the front end is at, STATE that of the trip that computes.

# A store in the queue. READY: 0 its trip has not computed, 1 it has but is not released, 2 it may leave.
S_READY, S_ADDRESS, S_SIZE, S_DATA, S_THROUGH, S_PATH, S_LOAD, S_PORT, S_OPERAND, S_BARRIER, STORE_WIDTH = range(11)
COMPUTED, RELEASED = 1, 2
