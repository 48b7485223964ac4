"""The machine: what is due now is done, then time moves on to what comes next.

Order within a cycle: first everything that control does, then block requests by operation, those of one operation in
turn. A request has no effect before the following cycle, so the order of control within a cycle does not matter.
"""

from __future__ import annotations

from simulator.engines.fast_dataflow.executions import at
from simulator.engines.fast_dataflow.functions import begin_function, resume_function, serve_function
from simulator.engines.fast_dataflow.issue import advance, demand, drained, signalled
from simulator.engines.fast_dataflow.layout import (
    ALL_ISSUED,
    AMISS,
    ARRIVING,
    AWAITING_DRAIN,
    AWAITING_FLAG,
    AWAITING_OPERANDS,
    BARRIER,
    BLOCKED,
    CHANGED,
    DONE,
    E_ARRIVAL,
    E_BEHIND,
    E_DUE,
    E_EXECUTION,
    E_INDEX,
    E_KNOWN,
    E_NEXT,
    E_OPERATION,
    E_START,
    EMPTY,
    FENCE,
    FINISHED,
    FLAG_SCALAR,
    FLAG_WAIT,
    FLAG_WAITER,
    FREE,
    FUNCTION,
    GO,
    GROW,
    INTERLOCKED,
    LIMIT,
    MARKER,
    MAXIMUM,
    MISSED,
    NEVER,
    NEXT_REQUEST,
    NODE_SPARE,
    NONE,
    NOW,
    O_FLAG,
    O_KIND,
    OPERAND_WAIT,
    P_ACTION,
    P_ACTION_END,
    P_CURRENT,
    P_DEMANDS,
    P_FLIGHT,
    P_FLIGHT_END,
    P_LATEST_END,
    P_LOCAL,
    P_REMAINING,
    P_REQUEST,
    P_STATUS,
    P_VERSION,
    P_WAKE,
    PAUSE,
    PAUSE_AT,
    PIPES,
    RESUMED_AT,
    SCALAR_RUNS,
    SET,
    SIGNIFICANT,
    TRANSFER,
    URGENT,
    VECTOR,
    W_ENTRY,
    W_TIME,
    WAIT,
    WRITE_COUNT,
    WRITE_HEAD,
    WRITE_MASK,
    WRITE_WIDTH,
    WRITES_AT,
    Cells,
)
from simulator.engines.fast_dataflow.pipes import (
    clear_needs,
    drained_at,
    finish,
    fire,
    free_entry,
    pop,
    rest,
    retire,
    take,
)
from simulator.engines.fast_dataflow.requests import (
    begin_transfer,
    begin_vector,
    serve_transfer,
    serve_vector,
    serve_write,
)
from simulator.engines.fast_dataflow.scoreboard import awaited


def run(m: Cells) -> int:
    """Run until nothing is left to do, or something is needed; return why it stopped."""
    while True:
        if m[NODE_SPARE] <= 2 * m[PIPES] or m[WRITE_COUNT] >= m[WRITE_MASK]:
            return GROW
        code = advance(m)
        if code != GO:
            return code
        if m[CHANGED]:
            _look_again(m)
        if not _control(m):
            code = MISSED if m[AMISS] else _move_on(m)
            if code != GO:
                return code


def _control(m: Cells) -> bool:
    """Do what is due now, at most one step and one action of every pipe; return whether there was anything."""
    now, acted = m[NOW], False
    if m[RESUMED_AT] != NONE:
        signalled(m)
        acted = True
    for p in range(1, m[PIPES]):
        action = m[P_ACTION + p]
        if action != NONE and m[action + E_DUE] <= now:
            _act(m, p, action)
            acted = True
        if m[P_WAKE + p] <= now:
            m[P_LOCAL + p] = m[P_WAKE + p]
            _step(m, p)
            m[P_VERSION + p] += 1
            acted = True
    return acted


def _move_on(m: Cells) -> int:
    """Go to the next cycle in which something is due; serve all requests before anything else is."""
    if m[FINISHED] >= m[PAUSE_AT]:
        return PAUSE
    wake = NEVER
    for p in range(1, m[PIPES]):
        wake = min(wake, m[P_WAKE + p])
        action = m[P_ACTION + p]
        if action != NONE:
            wake = min(wake, m[action + E_DUE])
    while True:
        asking = _first_request(m)
        when = m[NEXT_REQUEST]
        if when >= wake:
            break
        if when > m[MAXIMUM]:
            return LIMIT
        m[NOW] = when
        _serve(m, asking)
        if m[CHANGED] or m[WRITE_COUNT] >= m[WRITE_MASK] or (asking != NONE and m[P_WAKE + asking] != NEVER):
            return GO
    if wake == NEVER:
        return _stand_still(m)
    if wake > m[MAXIMUM]:
        return LIMIT
    m[NOW] = wake
    return GO


def _first_request(m: Cells) -> int:
    """Return the pipe that asks next, NONE if results on their way do or nobody does; `NEXT_REQUEST` is when."""
    request = first = NEVER
    asking = NONE
    if m[WRITE_COUNT]:
        head = m[WRITES_AT] + m[WRITE_HEAD] * WRITE_WIDTH
        request = m[head + W_TIME]
        first = m[m[head + W_ENTRY] + E_INDEX]
    for p in range(1, m[PIPES]):
        asked = m[P_REQUEST + p]
        if asked < request or (asked == request and asked != NEVER and m[m[P_CURRENT + p] + E_INDEX] < first):
            request, asking, first = asked, p, m[m[P_CURRENT + p] + E_INDEX]
    m[NEXT_REQUEST] = request
    return asking


def _stand_still(m: Cells) -> int:
    """Serve even patient pipes where nothing else is left to do."""
    if m[BLOCKED] == SCALAR_RUNS and not m[ALL_ISSUED] and not m[URGENT]:
        for p in range(1, m[PIPES]):
            if m[P_DEMANDS + p]:
                m[URGENT] = 1
                return GO
    return DONE


def _serve(m: Cells, p: int) -> None:
    """Serve the request of a pipe, or of the results on their way."""
    if p == NONE:
        serve_write(m)
        return
    kind = m[m[m[P_CURRENT + p] + E_OPERATION] + O_KIND]
    m[P_VERSION + p] += 1
    if kind == VECTOR:
        serve_vector(m, p)
    elif kind == TRANSFER:
        serve_transfer(m, p)
    else:
        serve_function(m, p)


def _look_again(m: Cells) -> None:
    """Work out anew when those go on that wait for the end of something."""
    m[CHANGED] = 0
    for p in range(1, m[PIPES]):
        if m[P_WAKE + p] == NEVER:
            if m[P_STATUS + p] == AWAITING_OPERANDS:
                until = awaited(m, m[m[P_CURRENT + p] + E_EXECUTION], m[P_LOCAL + p])
                # Nothing is left if another pipe has just gone on with the same instruction.
                m[P_WAKE + p] = m[NOW] if until == NONE else max(m[P_LOCAL + p], until)
            elif m[P_STATUS + p] == AWAITING_DRAIN:
                m[P_WAKE + p] = drained_at(m, p, NEVER)
        action = m[P_ACTION + p]
        while action != NONE:
            if m[action + E_DUE] == NEVER:
                m[action + E_DUE] = drained_at(m, p, m[action + E_BEHIND])
            action = m[action + E_NEXT]


def _step(m: Cells, p: int) -> None:
    """Let a pipe go on."""
    status = m[P_STATUS + p]
    e = m[P_CURRENT + p]
    now = m[P_LOCAL + p]
    if status == FREE:
        _take_next(m, p)
    elif status == ARRIVING:
        _arrive(m, p, e)
    elif status == AWAITING_OPERANDS:
        _await_operands(m, p, e)
    elif status == AWAITING_FLAG:
        rest(m, p, FLAG_WAIT, now, e)
        finish(m, e, now)
        _end(m, p, e)
    elif status == AWAITING_DRAIN:
        rest(m, p, BARRIER, now, e)
        finish(m, e, now)
        _end(m, p, e)
    elif m[m[e + E_OPERATION] + O_KIND] == FUNCTION and not m[e + E_KNOWN]:
        resume_function(m, p)
    else:
        _end(m, p, e)


def _take_next(m: Cells, p: int) -> None:
    """Take what stands at the head of the queue, or demand something."""
    e = pop(m, p)
    if e == NONE:
        m[P_WAKE + p] = NEVER
        if m[P_REMAINING + p]:
            demand(m, p)
        return
    if m[e + E_OPERATION] == MARKER:
        _after_retirement(m, p, e)
        return
    m[P_CURRENT + p] = e
    if m[e + E_ARRIVAL] > m[P_LOCAL + p]:
        m[SIGNIFICANT] += 1
        m[P_STATUS + p] = ARRIVING
        m[P_WAKE + p] = m[e + E_ARRIVAL]
    else:
        _arrive(m, p, e)


def _arrive(m: Cells, p: int, e: int) -> None:
    """Begin with the operation at the head of the queue."""
    now = m[P_LOCAL + p]
    rest(m, p, EMPTY, now, NONE)
    if now < m[P_LATEST_END + p]:
        m[AMISS] = 1
    m[e + E_START] = now
    row = m[e + E_OPERATION]
    kind = m[row + O_KIND]
    if kind == SET:
        m[P_CURRENT + p] = NONE
        m[P_STATUS + p] = FREE
        m[P_WAKE + p] = now
        _after_retirement(m, p, e)
    elif kind == WAIT:
        _await_flag(m, p, e, m[row + O_FLAG])
    elif kind == FENCE:
        retire(m, p)
        m[P_STATUS + p] = AWAITING_DRAIN
        m[P_WAKE + p] = drained_at(m, p, NEVER)
    else:
        _await_operands(m, p, e)


def _await_operands(m: Cells, p: int, e: int) -> None:
    """Wait until the earlier instructions whose bytes this one needs have ended, then start."""
    now, x = m[P_LOCAL + p], m[e + E_EXECUTION]
    until = awaited(m, x, now) if m[INTERLOCKED] else NONE
    if until != NONE:
        m[P_STATUS + p] = AWAITING_OPERANDS
        m[P_WAKE + p] = until
        return
    if m[INTERLOCKED]:
        clear_needs(m, at(m, x))
    rest(m, p, OPERAND_WAIT, now, e)
    if now < m[NOW]:
        m[AMISS] = 1
    kind = m[m[e + E_OPERATION] + O_KIND]
    if kind == VECTOR:
        begin_vector(m, p, e)
    elif kind == TRANSFER:
        begin_transfer(m, p, e)
    else:
        begin_function(m, p, e)


def _await_flag(m: Cells, p: int, e: int, flag: int) -> None:
    m[P_STATUS + p] = AWAITING_FLAG
    cycle = take(m, flag)
    if cycle == NONE:
        m[P_WAKE + p] = NEVER
        m[flag + FLAG_WAITER] = p
        if m[flag + FLAG_SCALAR]:
            demand(m, p)
        return
    if cycle > m[P_LOCAL + p]:
        m[SIGNIFICANT] += 1
    m[P_WAKE + p] = max(m[P_LOCAL + p], cycle)


def _after_retirement(m: Cells, p: int, e: int) -> None:
    """Act once everything started on the pipe has ended; the pipe itself goes on at once."""
    retire(m, p)
    m[e + E_BEHIND] = m[m[P_FLIGHT_END + p] + E_INDEX] if m[P_FLIGHT + p] != NONE else NONE
    m[e + E_DUE] = drained_at(m, p, m[e + E_BEHIND])
    if m[P_ACTION + p] == NONE:
        m[P_ACTION + p] = e
    else:
        m[m[P_ACTION_END + p] + E_NEXT] = e
    m[P_ACTION_END + p] = e


def _act(m: Cells, p: int, e: int) -> None:
    """Set a flag, or tell the scalar unit that the pipe has drained."""
    now = m[e + E_DUE]
    m[P_ACTION + p] = m[e + E_NEXT]
    m[e + E_NEXT] = NONE
    m[P_VERSION + p] += 1
    if m[e + E_OPERATION] == MARKER:
        drained(m, now)
    else:
        finish(m, e, now)
        fire(m, m[m[e + E_OPERATION] + O_FLAG], now)
    free_entry(m, e)


def _end(m: Cells, p: int, e: int) -> None:
    """Let go of an operation and go on with the next."""
    m[P_CURRENT + p] = NONE
    m[P_STATUS + p] = FREE
    if m[m[e + E_OPERATION] + O_KIND] != VECTOR:
        free_entry(m, e)
    _take_next(m, p)
