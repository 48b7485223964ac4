"""Which earlier executions an execution has to wait for, in programs that synchronise nothing themselves.

The rule is that of `event_dataflow.scoreboard`: of every byte the last writer counts, and the readers since. Here each
access in flight is a node of its space's list, in program order, less the bytes that somebody has written since.
"""

from __future__ import annotations

from simulator.engines.fast_dataflow.executions import at, known, over
from simulator.engines.fast_dataflow.layout import (
    A_END,
    A_SPACE,
    A_START,
    A_WRITE,
    ACCESS_WIDTH,
    L_ACCESSES,
    L_COUNT,
    L_OPERATIONS,
    LIVE,
    N_EXECUTION,
    N_FIRST,
    N_KIND,
    N_LAST,
    N_NEXT,
    NEVER,
    NONE,
    NOW,
    SCALAR_END,
    SIGNIFICANT,
    SPACE_FIRST,
    SPACE_LAST,
    STALE,
    WRITTEN,
    X_END,
    X_NEEDS,
    X_OPEN,
    Cells,
)
from simulator.engines.fast_dataflow.pipes import free_node, new_node


def enter(m: Cells, x: int, lowered: int) -> None:
    """Note the accesses of the next execution in program order, and whom it needs."""
    first = lowered + L_OPERATIONS + m[lowered + L_COUNT]
    for number in range(m[lowered + L_ACCESSES]):
        _need(m, x, first + number * ACCESS_WIDTH, number)
    for number in range(m[lowered + L_ACCESSES]):
        a = first + number * ACCESS_WIDTH
        if m[a + A_WRITE]:
            _overwrite(m, a)
        n = new_node(m)
        m[n + N_FIRST] = m[a + A_START]
        m[n + N_LAST] = m[a + A_END]
        m[n + N_EXECUTION] = x
        m[n + N_KIND] = m[a + A_WRITE]
        _append(m, m[a + A_SPACE], n)


def awaited(m: Cells, x: int, cycle: int) -> int:
    """Return the end of the need that an execution waits for in a cycle, NEVER if it is not known; NONE: for nothing.

    It waits for one need after the other, by access, then place, writers before readers.
    """
    first = first_need(m, x, cycle)
    if first == NONE:
        return NONE
    needed = m[first + N_EXECUTION]
    if not known(m, needed):
        return NEVER
    row = at(m, needed)
    m[SIGNIFICANT] += m[row + X_OPEN] & SCALAR_END
    return m[row + X_END]


def first_need(m: Cells, x: int, cycle: int) -> int:
    """Return the node of the need that an execution waits for in a cycle, NONE if all are over."""
    n, first = m[at(m, x) + X_NEEDS], NONE
    while n != NONE:
        # Of a stale one only is known that it has ended: whoever starts before that starts too early, and is amiss.
        if (
            not m[n + N_KIND] & STALE
            and not over(m, m[n + N_EXECUTION], cycle)
            and (first == NONE or m[n + N_FIRST] < m[first + N_FIRST])
        ):
            first = n
        n = m[n + N_NEXT]
    return first


def _need(m: Cells, x: int, a: int, number: int) -> None:
    """Add the executions that touched the bytes of an access in a conflicting way."""
    space, start, end, write = m[a + A_SPACE], m[a + A_START], m[a + A_END], m[a + A_WRITE]
    before, n = NONE, m[space + SPACE_FIRST]
    while n != NONE:
        following = m[n + N_NEXT]
        if m[n + N_FIRST] < end and m[n + N_LAST] > start and (write or m[n + N_KIND] & WRITTEN):
            place = max(m[n + N_FIRST], start)
            _add(m, x, n, ((number << PLACE_BITS) + place) * 2 + 1 - (m[n + N_KIND] & WRITTEN))
        if m[n + N_KIND] & STALE or over(m, m[n + N_EXECUTION], m[NOW]):
            _unlink(m, space, before, n)
        else:
            before = n
        n = following


PLACE_BITS = 48
"""Addresses are below 2 to this."""


def _add(m: Cells, x: int, access: int, order: int) -> None:
    """Add the execution of an access to the needs of another, once, at its first place in the order."""
    needed, kind = m[access + N_EXECUTION], m[access + N_KIND]
    last, n = NONE, m[at(m, x) + X_NEEDS]
    while n != NONE:
        if m[n + N_EXECUTION] == needed:
            m[n + N_FIRST] = min(m[n + N_FIRST], order)
            return
        last, n = n, m[n + N_NEXT]
    node = new_node(m)
    m[node + N_EXECUTION] = needed
    m[node + N_FIRST] = order
    m[node + N_KIND] = kind
    if last == NONE:
        m[at(m, x) + X_NEEDS] = node
    else:
        m[last + N_NEXT] = node


def _overwrite(m: Cells, a: int) -> None:
    """Take the bytes of a write from all accesses before it."""
    space, start, end = m[a + A_SPACE], m[a + A_START], m[a + A_END]
    before, n = NONE, m[space + SPACE_FIRST]
    while n != NONE:
        following = m[n + N_NEXT]
        if m[n + N_FIRST] < end and m[n + N_LAST] > start:
            if m[n + N_LAST] > end:
                if m[n + N_FIRST] < start:
                    _split(m, space, n, end)
                    m[n + N_LAST] = start
                    before = m[n + N_NEXT]
                else:
                    m[n + N_FIRST] = end
                    before = n
            elif m[n + N_FIRST] < start:
                m[n + N_LAST] = start
                before = n
            else:
                _unlink(m, space, before, n)
        else:
            before = n
        n = following


def _split(m: Cells, space: int, n: int, end: int) -> None:
    """Put the part of an access from `end` on into a node of its own, right behind."""
    rest = new_node(m)
    m[rest + N_FIRST] = end
    m[rest + N_LAST] = m[n + N_LAST]
    m[rest + N_EXECUTION] = m[n + N_EXECUTION]
    m[rest + N_KIND] = m[n + N_KIND]
    m[rest + N_NEXT] = m[n + N_NEXT]
    m[n + N_NEXT] = rest
    if m[space + SPACE_LAST] == n:
        m[space + SPACE_LAST] = rest
    m[LIVE] += 1


def _append(m: Cells, space: int, n: int) -> None:
    if m[space + SPACE_FIRST] == NONE:
        m[space + SPACE_FIRST] = n
    else:
        m[m[space + SPACE_LAST] + N_NEXT] = n
    m[space + SPACE_LAST] = n
    m[LIVE] += 1


def _unlink(m: Cells, space: int, before: int, n: int) -> None:
    if before == NONE:
        m[space + SPACE_FIRST] = m[n + N_NEXT]
    else:
        m[before + N_NEXT] = m[n + N_NEXT]
    if m[space + SPACE_LAST] == n:
        m[space + SPACE_LAST] = before
    free_node(m, n)
    m[LIVE] -= 1
