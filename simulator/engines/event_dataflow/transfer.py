"""A transfer between global memory and the unified buffer, block by block.

A load waits for memory first and then fills the buffer at its rate; a store empties the buffer at its rate and then
waits for memory. Rates have two decimals, so time inside a transfer is counted exactly and rounded once.
"""

from __future__ import annotations

from collections.abc import Iterator
from decimal import Decimal

from simulator.dataflow.operations import BLOCK, Transfer
from simulator.engines.event_dataflow.machine import At
from simulator.engines.event_dataflow.pipes import Pipe
from simulator.engines.event_dataflow.records import Entry, Steps
from simulator.timing import Cause

_TICKS = 100
"""Ticks per cycle: rates have at most two decimals."""


def run_transfer(pipe: Pipe, entry: Entry, operation: Transfer) -> Steps:
    """Execute `operation`; returns when it has ended."""
    machine, env = pipe.machine, pipe.machine.env
    timing = machine.target.timing.load if operation.load else machine.target.timing.store
    machine.facts.update(("timing.load" if operation.load else "timing.store", "banks"))
    rate = _ticks(timing.bytes_per_cycle)
    start = int(env.now)
    entry.begin(start)
    stream = start + (timing.startup_cycles if operation.load else 0)
    pattern = machine.ports.pattern((0,), operation.load)
    asked, passed, held = -1, -1, 0
    for delay, block in _blocks(operation, rate):
        if stream + delay != asked:
            asked = stream + delay
            yield At(env, asked - int(env.now), entry.index)
        passed = max(passed, machine.ports.grant(asked, pattern, block, entry))
        held = max(held, machine.ports.held)
    # Rounded half up; the last block needs its cycle in any case.
    due = max(stream + _rounded(operation.bursts * operation.burst_bytes, rate), asked + 1)
    stream_end = max(due, passed + 1)
    end = stream_end if operation.load else stream_end + timing.startup_cycles
    machine.ledger.finish(entry, end)
    pipe.account.spend(Cause.MEMORY_LATENCY, stream, entry)
    pipe.account.spend(Cause.BUSY, due, entry)
    pipe.account.spend_excess(due, stream_end, held, entry)
    pipe.account.spend(Cause.MEMORY_LATENCY, end, entry)
    yield env.timeout(end - int(env.now))


def _blocks(operation: Transfer, rate: int) -> Iterator[tuple[int, int]]:
    """Yield every block's number with the cycles after which the rate has let all bytes before it through."""
    for burst in range(operation.bursts):
        first = (operation.ub_address + burst * operation.ub_pitch) // BLOCK
        before = burst * operation.burst_bytes
        for block in range(-(-operation.burst_bytes // BLOCK)):
            yield (before + block * BLOCK) * _TICKS // rate, first + block


def _ticks(rate: Decimal) -> int:
    """Return bytes per 100 cycles, exactly."""
    return int(rate * _TICKS)


def _rounded(total: int, rate: int) -> int:
    """Return the cycles that `total` bytes take, rounded half up."""
    return (2 * total * _TICKS + rate) // (2 * rate)
