"""A transfer in numbers: the facts that it rests on, applied to its size.

A load waits for memory first and then fills the buffer at its rate; a store empties the buffer at its rate and then
waits for memory. Rates have two decimals, so time inside a transfer is counted exactly and rounded once.
"""

from __future__ import annotations

from dataclasses import dataclass

from castsim.execution.dataflow.operations import Transfer
from castsim.execution.dataflow.timing import streaming, ticks
from castsim.targets.dataflow import DataflowTarget


@dataclass(frozen=True, slots=True)
class TransferPlan:
    """Cycles that memory takes `ahead` of the stream and `behind` it, bytes per 100 cycles, cycles of the stream."""

    ahead: int
    behind: int
    rate: int
    streaming: int
    facts: tuple[str, ...]

    @classmethod
    def of(cls, operation: Transfer, target: DataflowTarget) -> TransferPlan:
        """Return that of a transfer on a target."""
        timing = target.timing.load if operation.load else target.timing.store
        rate = ticks(timing.bytes_per_cycle)
        return cls(
            ahead=timing.startup_cycles if operation.load else 0,
            behind=0 if operation.load else timing.startup_cycles,
            rate=rate,
            streaming=streaming(operation.bursts * operation.burst_bytes, rate),
            facts=("timing.load" if operation.load else "timing.store", "banks"),
        )
