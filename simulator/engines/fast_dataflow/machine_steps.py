"""The machine: it does everything that is due now, then advances time to the next event.

Order within a cycle: first all control, then block requests by operation, those of one operation in
turn. A request has no effect before the following cycle, so the order of control within a cycle does not matter.
"""

from __future__ import annotations

from castsim.engines.fast_dataflow.issue import advance, awaited, demand, drained, resume
from castsim.engines.fast_dataflow.pipe_steps import (
    ask_from,
    begin,
    begin_transfer,
    begin_vector,
    change_mask,
    clear_needs,
    drained_at,
    execution_of,
    finish,
    fire,
    free_entry,
    pop,
    rest,
    retire,
    serve_transfer,
    serve_vector,
    serve_write,
    spend,
    take,
)
from castsim.engines.fast_dataflow.state import (
    ARRIVING,
    AWAITING_DRAIN,
    AWAITING_FLAG,
    AWAITING_OPERANDS,
    BARRIER,
    DONE,
    EMPTY,
    FENCE,
    FLAG_WAIT,
    FREE,
    GO,
    GROW,
    LIMIT,
    MARKER,
    MASK,
    MISSED,
    NEVER,
    NONE,
    OPERAND_WAIT,
    PAUSE,
    SCALAR_RUNS,
    SET,
    TRANSFER,
    VECTOR,
    WAIT,
    WORKING,
    FlagRow,
    MachineState,
)


def run(m: MachineState) -> int:
    """Run until nothing is left to do, or something is needed; return why it stopped."""
    while True:
        # First of all: making room forgets when executions ended that are over by now.
        if m.changed:
            _look_again(m)
        if m.node_spare <= 2 * m.pipe_count or m.result_count >= m.result_mask or m.segment_count > m.segment_most:
            return GROW
        code = advance(m)
        if m.changed:
            _look_again(m)
        if code != GO:
            return MISSED if m.late else code
        if not _control(m):
            code = MISSED if m.late else _move_on(m)
            if code != GO:
                return code


def _control(m: MachineState) -> bool:
    """Execute everything that is due now, at most one step and one action of every pipe; return whether any was."""
    now, acted = m.now, False
    if m.issuer.resumed_at != NONE:
        resume(m, FLAG_WAIT, m.issuer.resumed_at)
        acted = True
    for p in range(1, m.pipe_count):
        pipe = m.pipes[p]
        action = pipe.action
        if action != NONE and m.entries[action].due <= now:
            _act(m, p, action)
            acted = True
        if pipe.wake <= now:
            pipe.local = pipe.wake
            _step(m, p)
            pipe.version += 1
            acted = True
    return acted


def _move_on(m: MachineState) -> int:
    """Advance to the next cycle in which something is due; serve all earlier requests first."""
    if m.finished >= m.pause_at:
        return PAUSE
    wake = NEVER
    for p in range(1, m.pipe_count):
        pipe = m.pipes[p]
        if pipe.wake < wake:  # noqa: PLR1730 - min would be a call
            wake = pipe.wake
        if pipe.action != NONE:
            wake = min(wake, m.entries[pipe.action].due)
    while True:
        asking, when = _first_request(m)
        if when >= wake:
            break
        if when > m.maximum:
            return LIMIT
        m.now = when
        _serve(m, asking)
        if m.changed or m.result_count >= m.result_mask or m.segment_count > m.segment_most:
            return GO
        if asking != NONE and m.pipes[asking].wake != NEVER:
            return GO
    if wake == NEVER:
        return _stand_still(m)
    if wake > m.maximum:
        return LIMIT
    m.now = wake
    return GO


def _first_request(m: MachineState) -> tuple[int, int]:
    """Return the pipe that asks next, NONE if results on their way do or no pipe does, and when."""
    request = first = NEVER
    asking = NONE
    if m.result_count:
        result = m.results[m.result_head]
        request = result.time
        first = m.entries[result.entry].index
    for p in range(1, m.pipe_count):
        pipe = m.pipes[p]
        asked = pipe.request
        if asked <= request and asked != NEVER:
            index = m.entries[pipe.current].index
            if asked < request or index < first:
                request, asking, first = asked, p, index
    return asking, request


def _stand_still(m: MachineState) -> int:
    """Serve even patient pipes if nothing else is left to do."""
    issuer = m.issuer
    if issuer.wait == SCALAR_RUNS and not issuer.all_issued and not issuer.urgent:
        for p in range(1, m.pipe_count):
            if m.pipes[p].demands:
                issuer.urgent = 1
                return GO
    return DONE


def _serve(m: MachineState, p: int) -> None:
    """Serve the request of a pipe, or of the results on their way."""
    if p == NONE:
        serve_write(m)
        return
    pipe = m.pipes[p]
    kind = m.operations[m.entries[pipe.current].operation].kind
    pipe.version += 1
    if kind == VECTOR:
        serve_vector(m, p)
    else:
        serve_transfer(m, p)


def _look_again(m: MachineState) -> None:
    """Recompute when pipes continue that wait for the end of something."""
    m.changed = 0
    for p in range(1, m.pipe_count):
        pipe = m.pipes[p]
        if pipe.wake == NEVER:
            if pipe.status == AWAITING_OPERANDS:
                # It is over by `local` where both this pipe and the one that was waited for are served late.
                until = awaited(m, m.entries[pipe.current].execution, pipe.local)
                pipe.wake = pipe.local if until == NONE else max(pipe.local, until)
            elif pipe.status == AWAITING_DRAIN:
                pipe.wake = drained_at(m, p, NEVER)
        action = pipe.action
        while action != NONE:
            entry = m.entries[action]
            if entry.due == NEVER:
                entry.due = drained_at(m, p, entry.behind)
            action = entry.next


def _step(m: MachineState, p: int) -> None:
    """Advance a pipe."""
    pipe = m.pipes[p]
    status, e = pipe.status, pipe.current
    if status == AWAITING_DRAIN:
        ask_from(m, p, pipe.local)
    if status == FREE:
        _take_next(m, p)
    elif status == ARRIVING:
        if m.operations[m.entries[e].operation].kind == MASK:
            m.accounts[p].left = pipe.local
        _arrive(m, p, e)
    elif status == AWAITING_OPERANDS:
        _await_operands(m, p, e)
    elif status in (AWAITING_FLAG, AWAITING_DRAIN):
        rest(m, p, FLAG_WAIT if status == AWAITING_FLAG else BARRIER, pipe.local, e)
        finish(m, m.entries[e], pipe.local)
        _end(m, p, e)
    else:
        _end(m, p, e)


def _take_next(m: MachineState, p: int) -> None:
    """Start the operation at the head of the queue, or demand work."""
    pipe, e = m.pipes[p], pop(m, p)
    if e == NONE:
        pipe.wake = NEVER
        if pipe.remaining:
            demand(m, p)
        return
    entry = m.entries[e]
    if entry.operation == MARKER:
        _after_retirement(m, p, e)
        return
    pipe.current = e
    if entry.arrival + pipe.reach > pipe.local:
        m.issuer.significant += 1
    if entry.arrival > pipe.local:
        pipe.status = ARRIVING
        pipe.wake = entry.arrival
    else:
        _arrive(m, p, e)


def _arrive(m: MachineState, p: int, e: int) -> None:
    """Begin with the operation at the head of the queue."""
    pipe, entry = m.pipes[p], m.entries[e]
    now = pipe.local
    rest(m, p, EMPTY, now, NONE)
    if now < m.accounts[p].latest_end:
        m.late = 1
    entry.start = now
    operation = m.operations[entry.operation]
    kind = operation.kind
    if kind == SET:
        pipe.current = NONE
        pipe.status = FREE
        pipe.wake = now
        _after_retirement(m, p, e)
    elif kind == WAIT:
        _await_flag(m, p, m.flags[operation.flag])
    elif kind == FENCE:
        retire(m, p)
        pipe.status = AWAITING_DRAIN
        pipe.wake = drained_at(m, p, NEVER)
    else:
        ask_from(m, p, entry.arrival)
        _await_operands(m, p, e)


def _await_operands(m: MachineState, p: int, e: int) -> None:
    """Wait until the earlier instructions whose bytes this one needs have ended, then start."""
    pipe, entry = m.pipes[p], m.entries[e]
    now = pipe.local
    if m.interlocked:
        until = awaited(m, entry.execution, now)
        if until != NONE:
            pipe.status = AWAITING_OPERANDS
            pipe.wake = until
            return
        _forget_needs(m, p, entry.execution)
    if now > entry.start:
        ask_from(m, p, now)
    rest(m, p, OPERAND_WAIT, now, e)
    if now < m.now:
        m.late = 1
    kind = m.operations[entry.operation].kind
    if kind == VECTOR:
        begin_vector(m, p, e)
    elif kind == TRANSFER:
        begin_transfer(m, p, e)
    elif kind == MASK:
        change_mask(m, p, e)
    else:
        _begin_function(m, p, e)


def _forget_needs(m: MachineState, p: int, x: int) -> None:
    """Remove the needs of an execution if all have ended, unless another pipe still needs the time."""
    execution = execution_of(m, x)
    if execution.needs == NONE:
        return
    for q in range(1, m.pipe_count):
        other = m.pipes[q]
        if q != p and other.status == AWAITING_OPERANDS and m.entries[other.current].execution == x:
            return
    clear_needs(m, execution)


def _await_flag(m: MachineState, p: int, flag: FlagRow) -> None:
    pipe = m.pipes[p]
    pipe.status = AWAITING_FLAG
    cycle = take(m, flag)
    if cycle == NONE:
        pipe.wake = NEVER
        flag.waiter = p
        if flag.from_scalar:
            demand(m, p)
        return
    if cycle + pipe.reach > pipe.local:
        m.issuer.significant += 1
    ask_from(m, p, cycle)
    pipe.wake = max(pipe.local, cycle)


def _after_retirement(m: MachineState, p: int, e: int) -> None:
    """Act once everything started on the pipe has ended; the pipe itself continues immediately."""
    retire(m, p)
    pipe, entry = m.pipes[p], m.entries[e]
    entry.behind = m.entries[pipe.in_flight_end].index if pipe.in_flight != NONE else NONE
    entry.due = drained_at(m, p, entry.behind)
    if pipe.action == NONE:
        pipe.action = e
    else:
        m.entries[pipe.action_end].next = e
    pipe.action_end = e


def _act(m: MachineState, p: int, e: int) -> None:
    """Set a flag, or notify the scalar unit that the pipe has drained."""
    pipe, entry = m.pipes[p], m.entries[e]
    now = entry.due
    pipe.action = entry.next
    entry.next = NONE
    pipe.version += 1
    if entry.operation == MARKER:
        drained(m, now)
    else:
        finish(m, entry, now)
        fire(m, m.flags[m.operations[entry.operation].flag], now)
    free_entry(m, e)


def _end(m: MachineState, p: int, e: int) -> None:
    """Release an operation and continue with the next."""
    pipe = m.pipes[p]
    pipe.current = NONE
    pipe.status = FREE
    operation = m.operations[m.entries[e].operation]
    if operation.kind != VECTOR and not (operation.kind == TRANSFER and m.transfers[operation.row].overlaps):
        free_entry(m, e)
    _take_next(m, p)


def _begin_function(m: MachineState, p: int, e: int) -> None:
    """Launch a function: its instructions have been placed, so its time passes."""
    pipe, entry = m.pipes[p], m.entries[e]
    now = pipe.local
    begin(m, p, entry, now)
    # The published cycles of a cast count from here: they leave out the control writes.
    execution_of(m, entry.execution).start = now
    for q in range(1, m.pipe_count):
        if m.pipes[q].began == entry.execution:
            m.pipes[q].began = NONE  # no other that begins in this cycle counts instead
    pipe.status = WORKING
    m.ports.launch, m.ports.launched = m.operations[entry.operation].row, now
    function = m.functions[m.ports.launch]
    cycle = pipe.local
    for number in range(function.spans):
        offset = function.first_span + 2 * number
        cycle = pipe.local + m.numbers[offset + 1]
        spend(m, p, m.numbers[offset], cycle, e)
    finish(m, m.entries[e], cycle)
    pipe.wake = cycle
    pipe.request = NEVER
