"""The state of a vector function at work, relative to now."""

from __future__ import annotations

from simulator.engines.fast_dataflow.function_layout import (
    BEGUN_AT,
    COMPLETED,
    F_RELEASED,
    F_SENT,
    F_STORE,
    FLIGHT_COUNT,
    FLIGHT_FIRST,
    FLIGHT_WIDTH,
    HELD_BARRIER,
    HELD_BLOCK,
    HELD_OPERAND,
    HELD_PATH,
    HELD_PORT,
    LATEST_STORE,
    NEST,
    NO_TICK,
    PATH_FREE,
    PHASE,
    REGISTERS_USED,
    ROW,
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
    SPECIAL_NEXT,
    SPECIAL_PORTS,
    STORE_ASKED,
    STORE_COUNT,
    STORE_FIRST,
    STORE_SENT,
    STORE_STARTED,
    STORE_WIDTH,
    TICK,
    TICKS,
    TRIP,
    UNRELEASED,
)
from simulator.engines.fast_dataflow.layout import (
    E_OPERATION,
    FLIGHTS,
    NEVER,
    NONE,
    O_VALUES,
    P_CURRENT,
    PENDING,
    READY,
    SPECIAL,
    Cells,
)

State = tuple[object, ...]

_PLAIN = (PHASE, NEST, ROW, TRIP, SPECIAL_NEXT, FLIGHT_FIRST, FLIGHT_COUNT, STORE_FIRST, STORE_COUNT, ROW_STATE,
          HELD_PORT, HELD_OPERAND, HELD_PATH, HELD_BARRIER, HELD_BLOCK)  # fmt: skip


def function_state(m: Cells, p: int, now: int) -> State:
    """Return what the rest of the function on pipe `p` depends on.

    A function is at the same place in the same tick after its launch, or it is not the same state: so the trips it
    has sent and the stores it has written need not be compared, only what is still to come.
    """
    tick = now * TICKS
    registers = int(m[m[m[P_CURRENT + p] + E_OPERATION] + O_VALUES + REGISTERS_USED])
    special = int(m[m[m[P_CURRENT + p] + E_OPERATION] + O_VALUES + SPECIAL_PORTS])

    def since(time: int) -> int:
        return NO_TICK if time == NO_TICK else int(time) - tick

    def recent(time: int) -> int:
        # Nothing is sent before the cycle that ends now, so times before it are all the same.
        return max(int(time) - tick, -TICKS)

    asked, unreleased = int(m[STORE_ASKED]), int(m[UNRELEASED])
    flights = []
    for number in range(m[FLIGHT_FIRST], m[FLIGHT_COUNT]):
        f = int(m[FLIGHTS]) + number * FLIGHT_WIDTH
        flight = [int(value) for value in m[f : f + FLIGHT_WIDTH]]
        flight[F_SENT] -= tick
        flight[F_RELEASED] = since(flight[F_RELEASED])
        flights.append(tuple(flight))
    stores = []
    for number in range(m[STORE_FIRST], m[STORE_COUNT]):
        s = int(m[PENDING]) + number * STORE_WIDTH
        row = [int(value) for value in m[s : s + STORE_WIDTH]]
        fixed = tuple(row[k] for k in (S_READY, S_ADDRESS, S_SIZE))
        if row[S_READY]:
            fixed += tuple(since(row[k]) for k in (S_DATA, S_THROUGH, S_BARRIER))
            fixed += tuple(row[k] for k in (S_PATH, S_LOAD, S_PORT, S_OPERAND))
        stores.append(fixed)
    first = int(m[READY]) + max(0, int(m[ROW_STATE]))
    held = NONE if unreleased == NONE else int(m[m[FLIGHTS] + unreleased * FLIGHT_WIDTH + F_STORE])
    return (
        tuple(int(m[k]) for k in _PLAIN),
        (unreleased, held),
        int(m[TICK]) - tick,
        since(m[BEGUN_AT]),
        recent(m[PATH_FREE]),
        since(m[LATEST_STORE]),
        recent(max(m[COMPLETED], m[TICK])),
        (NEVER, 0, 0) if asked == NEVER else (asked - now, since(m[STORE_STARTED]), int(m[STORE_SENT]) < now),
        tuple(flights),
        tuple(stores),
        tuple(since(time) for time in m[first : first + 2 * registers]),
        tuple(recent(time) for time in m[m[SPECIAL] : m[SPECIAL] + special]),
    )
