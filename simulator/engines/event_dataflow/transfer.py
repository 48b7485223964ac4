"""A transfer between global memory and the unified buffer, block by block (`dataflow.transfer_plan`)."""

from __future__ import annotations

from collections.abc import Iterator

from castsim.engines.event_dataflow.events import At
from castsim.engines.event_dataflow.pipes import PipeProcess
from castsim.engines.event_dataflow.records import Entry, Steps
from castsim.execution.dataflow.operations import BLOCK, Placeholder, Transfer
from castsim.execution.dataflow.timing import let_through, stream_start, transfer_due, transfer_end
from castsim.execution.dataflow.transfer_plan import TransferPlan
from castsim.timing import Cause


def run_transfer(pipe: PipeProcess, entry: Entry, operation: Transfer) -> Steps:
    """Execute `operation`; returns when it has ended, or its stream where the next one may overlap with the rest."""
    machine, env = pipe.machine, pipe.machine.env
    plan = TransferPlan.of(operation, machine.target)
    machine.facts.update(plan.facts)
    start = int(env.now)
    entry.begin(start)
    pipe.retire()
    stream = stream_start(start, plan.ahead, pipe.answered)
    pattern = machine.ports.pattern((0,), operation.load)
    asked, passed, held = -1, -1, 0
    for delay, block in _blocks(operation, plan):
        if stream + delay != asked:
            asked = stream + delay
            yield At(env, asked - int(env.now), entry.index)
        passed = max(passed, machine.ports.grant(asked, pattern, block, entry))
        held = max(held, machine.ports.held)
    due = transfer_due(stream, plan.streaming, asked)
    stream_end = transfer_end(due, passed)
    end = stream_end + plan.behind
    machine.ledger.finish(entry, end)
    pipe.account.spend(Cause.MEMORY_LATENCY, stream, entry)
    pipe.account.spend(Cause.BUSY, due, entry)
    pipe.account.spend_excess(due, stream_end, held, entry)
    if plan.overlaps:
        pipe.in_flight.append(entry)
        pipe.note_drain(entry, end)
        end = stream_end
    pipe.account.spend(Cause.MEMORY_LATENCY, end, entry)
    yield env.timeout(end - int(env.now))


def run_placeholder(pipe: PipeProcess, entry: Entry, operation: Placeholder) -> Steps:
    """Keep the pipe as long as `operation` is taken to last; it asks for no block."""
    env = pipe.machine.env
    start = int(env.now)
    entry.begin(start)
    end = start + operation.cycles
    pipe.machine.ledger.finish(entry, end)
    pipe.account.spend(Cause.BUSY, end, entry)
    yield env.timeout(operation.cycles)


def _blocks(operation: Transfer, plan: TransferPlan) -> Iterator[tuple[int, int]]:
    """Yield every block's number with the cycles after which the rate has let all bytes before it through."""
    for burst in range(operation.bursts):
        first = (operation.ub_address + burst * operation.ub_pitch) // BLOCK
        before = burst * operation.burst_bytes
        for block in range(-(-operation.burst_bytes // BLOCK)):
            yield let_through(before + block * BLOCK, plan.rate, plan.per), first + block
