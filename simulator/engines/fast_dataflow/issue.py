"""The scalar unit: executes control in program order and sends everything else to the queues.

It runs ahead of the clock, and only as far as some pipe needs it (see `event_dataflow`).
"""

from __future__ import annotations

from castsim.engines.fast_dataflow.pipe_steps import (
    close_one,
    execution_of,
    fire,
    free_entry,
    free_node,
    known,
    new_entry,
    new_node,
    over,
    push,
    settle,
    spend,
    take,
)
from castsim.engines.fast_dataflow.state import (
    AWAITING_FLAG,
    BARRIER,
    BEGIN,
    CHECKPOINT,
    END,
    FENCE_ALL,
    FLAG_WAIT,
    GO,
    GROW,
    ISSUED,
    LIMIT,
    MARKER,
    NEVER,
    NO_TIME,
    NONE,
    ONE_OPEN,
    PART,
    SCALAR_AWAITS_DRAIN,
    SCALAR_AWAITS_FLAG,
    SCALAR_END,
    SCALAR_PIPE,
    SCALAR_RUNS,
    SET,
    STALE,
    TOKENS,
    WAIT,
    WHOLE,
    WRITTEN,
    AccessRow,
    LoweredRow,
    MachineState,
    NodeRow,
    OperationRow,
    SpaceRow,
)

# Which earlier executions an execution has to wait for, in programs that synchronise nothing themselves.
#
# The rule is that of `event_dataflow`: of every byte the last writer counts, and the readers since. Here each access
# in flight is a node of its space's list, in program order, less the bytes written since.


def enter(m: MachineState, x: int, lowered: LoweredRow) -> None:
    """Record the accesses of the next execution in program order, and its needs."""
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
    """Return the end of the need that an execution waits for in a cycle, NEVER if it is unknown, NONE if there is none.

    It waits for its needs in sequence, by access, then address, writers before readers.
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
    """Return the node of the need that an execution waits for in a cycle, NONE if all have ended."""
    n, need, first = execution_of(m, x).needs, NONE, 0
    while n != NONE:
        node = m.nodes[n]
        # Of a stale one only is known that it has ended: what starts before that starts too early, and is late.
        if not node.kind & STALE and not over(m, node.execution, cycle) and (need == NONE or node.first < first):
            need, first = n, node.first
        n = node.next
    return need


def _need(m: MachineState, x: int, access: AccessRow, number: int, sweeps: bool) -> None:
    """Add the executions that touched the bytes of an access in a conflicting way; remove those that have ended."""
    space = m.spaces[access.space]
    before, n = NONE, space.first
    while n != NONE:
        node = m.nodes[n]
        following = node.next
        if node.first < access.end and node.last > access.start and (access.write or node.kind & WRITTEN):
            position = max(node.first, access.start)
            _add(m, x, node, ((number << PLACE_BITS) + position) * 2 + 1 - (node.kind & WRITTEN))
        if sweeps and (node.kind & STALE or over(m, node.execution, m.now)):
            _unlink(m, space, before, n)
        else:
            before = n
        n = following


PLACE_BITS = 48
"""Number of bits of an address."""


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
    """Remove the bytes of a write from all earlier accesses."""
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
    """Move the part of an access from `end` on to a new node directly after it."""
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


def advance(m: MachineState) -> int:
    """Continue while a pipe demands it, or only scalar work is left; return why it stopped."""
    issuer = m.issuer
    while issuer.wait == SCALAR_RUNS and not issuer.all_issued and _is_wanted(m):
        code = issue_one(m)
        if code != GO:
            return code
    return GO


def issue_one(m: MachineState) -> int:
    """Issue the next operation, or read the next token; return why that is impossible."""
    if not has_room(m):
        return GROW
    issuer = m.issuer
    if issuer.next == issuer.end:
        return _fetch(m)
    number = m.numbers[issuer.next]
    issuer.next += 1
    _issue(m, number)
    return GO if issuer.beyond == NONE else LIMIT


def _is_wanted(m: MachineState) -> bool:
    issuer = m.issuer
    if issuer.clock >= issuer.until:
        return False
    return (issuer.urgent | issuer.eager | issuer.demands) != 0 or issuer.remaining == 0


def demand(m: MachineState, p: int) -> None:
    """Record that a pipe demands work."""
    pipe = m.pipes[p]
    if not pipe.demands:
        pipe.demands = 1
        m.issuer.demands += 1 - pipe.patient


def has_room(m: MachineState) -> bool:
    """Return whether the tables have room for any single step."""
    return (
        m.issuer.execution - m.first_execution < m.execution_mask
        and m.entry_spare > m.pipe_count + 1
        and m.node_spare > (m.live + 2) * (2 * m.most_accesses + 1)
        and m.segment_count <= m.segment_most
    )


def resume(m: MachineState, cause: int, cycle: int) -> None:
    """End the wait of the scalar unit in `cycle`, or immediately if that is past."""
    issuer = m.issuer
    e = issuer.waiting
    issuer.wait = SCALAR_RUNS
    issuer.waiting = NONE
    issuer.resumed_at = NONE
    issuer.significant += 1
    issuer.clock = max(issuer.clock, cycle)
    spend(m, SCALAR_PIPE, cause, issuer.clock, e)
    _finish(m, e)


def _fetch(m: MachineState) -> int:
    """Read the next token; return why that is impossible."""
    issuer = m.issuer
    if issuer.token == issuer.token_end:
        if not issuer.no_more:
            return TOKENS
        _close(m)
        issuer.all_issued = 1
        return GO
    token = m.tokens[issuer.token]
    issuer.token += 1
    _close(m)
    if token < 0:
        return CHECKPOINT
    kind, lowered = token & 3, m.lowered[token >> 2]
    if kind in (WHOLE, BEGIN):
        _open(m, lowered)
    if kind in (WHOLE, PART):
        issuer.next = lowered.first
        issuer.end = lowered.first + lowered.count
    issuer.closing = 1 if kind in (WHOLE, END) else 0
    return GO


def _open(m: MachineState, lowered: LoweredRow) -> None:
    """Begin an execution."""
    issuer = m.issuer
    issuer.execution += 1
    execution = execution_of(m, issuer.execution)
    execution.instruction = lowered.instruction
    execution.start = issuer.clock
    execution.end = issuer.clock
    execution.open = SCALAR_END
    execution.needs = NONE
    if m.interlocked:
        enter(m, issuer.execution, lowered)


def _close(m: MachineState) -> None:
    """Record that all operations of the execution were issued, if that is so."""
    if m.issuer.closing:
        m.issuer.closing = 0
        execution = execution_of(m, m.issuer.execution)
        execution.open |= ISSUED
        if execution.open < ONE_OPEN:
            settle(m, execution)


def _issue(m: MachineState, number: int) -> None:
    """Spend the scalar unit's own cycles on an operation and execute it or send it."""
    issuer, operation = m.issuer, m.operations[number]
    e = new_entry(m, number)
    entry = m.entries[e]
    execution_of(m, issuer.execution).open += ONE_OPEN
    entry.execution = issuer.execution
    entry.index = issuer.index
    issuer.index += 1
    entry.start = issuer.clock
    issuer.clock += operation.cost
    p = operation.pipe
    # The cycles of sending an operation are not among its own; segments name it all the same.
    spend(m, SCALAR_PIPE, operation.cause, issuer.clock, e if p == SCALAR_PIPE or m.telling else NONE)
    if issuer.clock > m.maximum and not m.telling:
        issuer.beyond = e
    elif p == SCALAR_PIPE:
        _execute(m, e, operation)
    else:
        pipe = m.pipes[p]
        entry.arrival = issuer.clock
        pipe.remaining -= 1
        issuer.remaining -= 1
        if pipe.status != AWAITING_FLAG:  # else it wants a flag of the scalar unit
            _satisfy(m, p)
        push(m, p, e)


def _execute(m: MachineState, e: int, operation: OperationRow) -> None:
    """Execute a scalar operation's effect after its cycles."""
    issuer, kind = m.issuer, operation.kind
    if kind == SET:
        waiter = fire(m, m.flags[operation.flag], issuer.clock)
        if waiter != NONE:
            _satisfy(m, waiter)
            if issuer.clock > m.pipes[waiter].local:
                issuer.significant += 1
        _finish(m, e)
    elif kind == WAIT:
        issuer.wait = SCALAR_AWAITS_FLAG
        issuer.waiting = e
        flag = m.flags[operation.flag]
        cycle = take(m, flag)
        if cycle == NONE:
            flag.waiter = SCALAR_PIPE
        else:
            resume(m, FLAG_WAIT, cycle)
    elif kind == FENCE_ALL:
        issuer.wait = SCALAR_AWAITS_DRAIN
        issuer.waiting = e
        issuer.undrained = m.pipe_count - 1
        issuer.drained_at = NO_TIME
        for p in range(1, m.pipe_count):
            marker = new_entry(m, MARKER)
            m.entries[marker].index = NONE
            push(m, p, marker)
    else:
        _finish(m, e)


def drained(m: MachineState, cycle: int) -> None:
    """Record that one more pipe has drained, in `cycle`, for the scalar unit's current barrier."""
    issuer = m.issuer
    issuer.drained_at = max(issuer.drained_at, cycle)
    issuer.undrained -= 1
    if issuer.undrained == 0:
        resume(m, BARRIER, issuer.drained_at)


def _satisfy(m: MachineState, p: int) -> None:
    """Record that a pipe's demand is met."""
    pipe = m.pipes[p]
    if pipe.demands:
        pipe.demands = 0
        m.issuer.demands -= 1 - pipe.patient
    m.issuer.urgent = 0


def _finish(m: MachineState, e: int) -> None:
    """Settle that an operation of the scalar unit ends now."""
    entry, clock = m.entries[e], m.issuer.clock
    entry.end = clock
    entry.known = m.now + 1
    execution = execution_of(m, entry.execution)
    if clock > execution.end:
        if not execution.open & SCALAR_END:
            m.issuer.significant += 1
        execution.end = clock
        execution.open |= SCALAR_END
    close_one(m, execution)
    m.finished += 1
    free_entry(m, e)
