"""Which earlier executions an execution has to wait for, in programs that synchronise nothing themselves.

The rule is that of `event_dataflow.scoreboard`: of every byte the last writer counts, and the readers since. Here each
access in flight is a node of its space's list, in program order, less the bytes written since.
"""

from __future__ import annotations

from castsim.engines.fast_dataflow.codes import NEVER, NONE, SCALAR_END, STALE, WRITTEN
from castsim.engines.fast_dataflow.executions import execution_of, known, over
from castsim.engines.fast_dataflow.pipes import free_node, new_node
from castsim.engines.fast_dataflow.state import AccessRow, LoweredRow, MachineState, NodeRow, SpaceRow


def enter(m: MachineState, x: int, lowered: LoweredRow) -> None:
    """Record the accesses of the next execution in program order, and whom it needs."""
    first, swept = lowered.first_access, NONE
    for number in range(lowered.accesses):
        access = m.accesses[first + number]
        _need(m, x, access, number, access.space != swept)
        swept = access.space
    for a in range(first, first + lowered.accesses):
        access = m.accesses[a]
        if access.write:
            _overwrite(m, access)
        n = new_node(m)
        node = m.nodes[n]
        node.first = access.start
        node.last = access.end
        node.execution = x
        node.kind = access.write
        _append(m, m.spaces[access.space], n)


def awaited(m: MachineState, x: int, cycle: int) -> int:
    """Return the end of the need that an execution waits for in a cycle, NEVER if it is not known; NONE: for nothing.

    It waits for one need after the other, by access, then place, writers before readers.
    """
    first = first_need(m, x, cycle)
    if first == NONE:
        return NONE
    needed = m.nodes[first].execution
    if not known(m, needed):
        return NEVER
    execution = execution_of(m, needed)
    m.issuer.significant += execution.open & SCALAR_END
    return execution.end


def first_need(m: MachineState, x: int, cycle: int) -> int:
    """Return the node of the need that an execution waits for in a cycle, NONE if all are over."""
    n, found, first = execution_of(m, x).needs, NONE, 0
    while n != NONE:
        node = m.nodes[n]
        # Of a stale one only is known that it has ended: what starts before that starts too early, and is late.
        if not node.kind & STALE and not over(m, node.execution, cycle) and (found == NONE or node.first < first):
            found, first = n, node.first
        n = node.next
    return found


def _need(m: MachineState, x: int, access: AccessRow, number: int, sweeps: bool) -> None:
    """Add the executions that touched the bytes of an access in a conflicting way; forget what has ended."""
    space = m.spaces[access.space]
    before, n = NONE, space.first
    while n != NONE:
        node = m.nodes[n]
        following = node.next
        if node.first < access.end and node.last > access.start and (access.write or node.kind & WRITTEN):
            place = max(node.first, access.start)
            _add(m, x, node, ((number << PLACE_BITS) + place) * 2 + 1 - (node.kind & WRITTEN))
        if sweeps and (node.kind & STALE or over(m, node.execution, m.now)):
            _unlink(m, space, before, n)
        else:
            before = n
        n = following


PLACE_BITS = 48
"""Addresses are below 2 to this."""


def _add(m: MachineState, x: int, access: NodeRow, order: int) -> None:
    """Add the execution of an access to the needs of another, once, at its first place in the order."""
    execution = execution_of(m, x)
    last, n = NONE, execution.needs
    while n != NONE:
        node = m.nodes[n]
        if node.execution == access.execution:
            node.first = min(node.first, order)
            return
        last, n = n, node.next
    need = new_node(m)
    node = m.nodes[need]
    node.execution = access.execution
    node.first = order
    node.kind = access.kind
    if last == NONE:
        execution.needs = need
    else:
        m.nodes[last].next = need


def _overwrite(m: MachineState, access: AccessRow) -> None:
    """Take the bytes of a write from all accesses before it."""
    space, start, end = m.spaces[access.space], access.start, access.end
    before, n = NONE, space.first
    while n != NONE:
        node = m.nodes[n]
        following = node.next
        if node.first < end and node.last > start:
            if node.last > end:
                if node.first < start:
                    _split(m, space, n, end)
                    node.last = start
                    before = node.next
                else:
                    node.first = end
                    before = n
            elif node.first < start:
                node.last = start
                before = n
            else:
                _unlink(m, space, before, n)
        else:
            before = n
        n = following


def _split(m: MachineState, space: SpaceRow, n: int, end: int) -> None:
    """Put the part of an access from `end` on into a node of its own, right behind."""
    r = new_node(m)
    node, rest = m.nodes[n], m.nodes[r]
    rest.first = end
    rest.last = node.last
    rest.execution = node.execution
    rest.kind = node.kind
    rest.next = node.next
    node.next = r
    if space.last == n:
        space.last = r
    m.live += 1


def _append(m: MachineState, space: SpaceRow, n: int) -> None:
    if space.first == NONE:
        space.first = n
    else:
        m.nodes[space.last].next = n
    space.last = n
    m.live += 1


def _unlink(m: MachineState, space: SpaceRow, before: int, n: int) -> None:
    if before == NONE:
        space.first = m.nodes[n].next
    else:
        m.nodes[before].next = m.nodes[n].next
    if space.last == n:
        space.last = before
    free_node(m, n)
    m.live -= 1
