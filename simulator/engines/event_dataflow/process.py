"""The process behind every pipe: take what stands at the head of the queue and execute it."""

from __future__ import annotations

from collections.abc import Callable

from castsim.engines.event_dataflow.issue import Issuer
from castsim.engines.event_dataflow.pipes import DrainMarker, PipeProcess, Wait
from castsim.engines.event_dataflow.records import Completion, Entry, Steps, await_end
from castsim.engines.event_dataflow.transfer import run_placeholder, run_transfer
from castsim.execution.dataflow.operations import Barrier, Placeholder, SetFlag, Transfer, WaitFlag
from castsim.timing import Cause


def serve(pipe: PipeProcess, issuer: Issuer) -> Steps:
    """Execute the operations of `pipe` one after the other, for ever."""
    env = pipe.machine.env
    while True:
        if not pipe.queue:
            issuer.demand(pipe)
        if not pipe.queue:
            pipe.wakeup = env.event()
            yield pipe.wakeup
        item = pipe.queue.popleft()
        if isinstance(item, DrainMarker):
            _after_retirement(pipe, item.reached)
            continue
        pipe.current = item
        pipe.waited = item.arrival > pipe.free
        if item.arrival > env.now:
            yield env.timeout(item.arrival - int(env.now))
        pipe.rest(Cause.EMPTY, int(env.now), None)
        yield from _execute(pipe, issuer, item)
        pipe.free = int(env.now)
        pipe.current = None


def _execute(pipe: PipeProcess, issuer: Issuer, entry: Entry) -> Steps:
    operation = entry.operation
    entry.start = int(pipe.machine.env.now)
    match operation:
        case Transfer():
            pipe.ask_from(entry.arrival)
            yield from _await_operands(pipe, entry)
            yield from run_transfer(pipe, entry, operation)
        case Placeholder():
            pipe.ask_from(entry.arrival)
            yield from _await_operands(pipe, entry)
            yield from run_placeholder(pipe, entry, operation)
        case SetFlag():
            _after_retirement(pipe, _signal(pipe, entry, operation))
        case WaitFlag():
            yield from _await_flag(pipe, issuer, entry, operation)
        case Barrier():
            yield from _await_retirement(pipe, entry)
        case _:
            yield from _await_operands(pipe, entry)
            yield from pipe.machine.vector.run(pipe, entry)


def _await_operands(pipe: PipeProcess, entry: Entry) -> Steps:
    """Wait until the earlier instructions whose bytes this one needs have ended."""
    for needed in entry.execution.needs:
        pipe.wait = Wait(entry, needed=needed)
        yield from await_end(pipe.machine.env, needed)
    pipe.wait = None
    # Ended instructions must not keep their predecessors, and those theirs, in memory.
    entry.execution.needs = ()
    now = int(pipe.machine.env.now)
    if now > entry.start:
        pipe.ask_from(now)
    pipe.rest(Cause.OPERAND_WAIT, now, entry)


def _await_flag(pipe: PipeProcess, issuer: Issuer, entry: Entry, operation: WaitFlag) -> Steps:
    machine = pipe.machine
    key = (operation.signaller, operation.pipe, operation.event)
    cycle = machine.flags.take(key)
    if cycle is None:
        pipe.wait = Wait(entry, flag=operation)
        signal = machine.env.event()
        machine.flags.wait(key, signal.succeed)
        if operation.signaller == machine.target.pipes.scalar:
            issuer.demand(pipe)
        cycle = yield signal
        pipe.wait = None
    if cycle > machine.env.now:
        yield machine.env.timeout(cycle - int(machine.env.now))
    now = int(machine.env.now)
    pipe.ask_from(cycle)
    pipe.rest(Cause.FLAG_WAIT, now, entry)
    machine.ledger.finish(entry, now)


def _await_retirement(pipe: PipeProcess, entry: Entry) -> Steps:
    env = pipe.machine.env
    for earlier in pipe.retire():
        yield from await_end(env, earlier)
    pipe.ask_from(int(env.now))
    pipe.rest(Cause.BARRIER, int(env.now), entry)
    pipe.machine.ledger.finish(entry, int(env.now))


def _signal(pipe: PipeProcess, entry: Entry, operation: SetFlag) -> Callable[[int], None]:
    def fire(cycle: int) -> None:
        pipe.machine.ledger.finish(entry, cycle)
        pipe.machine.flags.fire((operation.pipe, operation.waiter, operation.event), cycle)

    return fire


def _after_retirement(pipe: PipeProcess, action: Callable[[int], None]) -> None:
    """Call `action` once everything started on the pipe has ended; the pipe itself goes on at once."""
    env = pipe.machine.env
    earlier = tuple(pipe.retire())
    if earlier:
        env.process(_later(pipe, earlier, action))
    else:
        action(int(env.now))


def _later(pipe: PipeProcess, earlier: tuple[Completion, ...], action: Callable[[int], None]) -> Steps:
    for completion in earlier:
        yield from await_end(pipe.machine.env, completion)
    action(int(pipe.machine.env.now))
