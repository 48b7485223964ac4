"""Transfer times of chips whose pipes move tiles through one buffer, in ticks.

Rules are functions on integers alone: the event engine and the closed forms call them as they are, the fast engine
compiles them. Who waits for whom is the business of the engines.
"""

from __future__ import annotations

from dataclasses import dataclass
from decimal import Decimal
from fractions import Fraction

from castsim.execution.pipe_operations import Transfer
from castsim.targets.dataflow import DataflowTarget
from castsim.targets.description import TransferTiming

TICKS = 100
"""Ticks per cycle: facts have at most two decimals."""

NO_TICK = -(1 << 60)
"""A tick that is not there: before all others, and still so with any duration added."""


def ticks(cycles: Decimal | int) -> int:
    """Return a fact in ticks."""
    return int(cycles * TICKS)


def cycle_from(tick: int) -> int:
    """Return the first whole cycle that is not earlier than a tick."""
    return -(-tick // TICKS)


def rounded(tick: int) -> int:
    """Return a tick as a whole cycle, rounded half up."""
    return (tick + TICKS // 2) // TICKS


def let_through(before: int, rate: int, per: int) -> int:
    """Return the cycles after which a rate of bytes `per` cycles has passed all `before` bytes."""
    return before * per // rate


def streaming(total: int, rate: int, per: int) -> int:
    """Return the cycles that `total` bytes take at a rate, rounded half up."""
    return (2 * total * per + rate) // (2 * rate)


def stream_start(start: int, ahead: int, waited: int) -> int:
    """Return the cycle in which the stream of a transfer starts that its pipe takes in cycle `start`.

    Memory takes `ahead` to answer it; a request at the earliest possible time is answered in cycle `waited`.
    """
    return max(start + ahead, waited)


def transfer_due(stream: int, cycles: int, asked: int) -> int:
    """Return the due end of a transfer that streams from cycle `stream` on and requests its last block in cycle
    `asked`.

    The last block needs its cycle in any case.
    """
    return max(stream + cycles, asked + 1)


def transfer_end(due: int, passed: int) -> int:
    """Return the end of a transfer whose last block passed the buffer's port in cycle `passed`."""
    return max(due, passed + 1)


# A transfer in numbers: the facts that it rests on, applied to its size.
#
# A load waits for memory first and then fills the buffer at its rate; a store empties the buffer at its rate and then
# waits for memory. Rates are ratios of integers, so time inside a transfer is counted exactly and rounded once.


@dataclass(frozen=True, slots=True)
class TransferPlan:
    """The memory cycles `ahead` of the stream and `behind` it, the rate in bytes (`rate`) `per` cycles, and the cycles
    of the stream.

    `overlaps`: successive transfers wait for memory together, and only their streams follow each other; the memory time
    ahead of them then counts from the earliest request (`latency_ahead`), and `ahead` is 0.
    """

    ahead: int
    behind: int
    rate: int
    per: int
    streaming: int
    overlaps: bool
    facts: tuple[str, ...]

    @classmethod
    def of(cls, operation: Transfer, target: DataflowTarget) -> TransferPlan:
        """Return that of a transfer on a target."""
        timing, fact = target.transfer_timing(load=operation.load)
        total = operation.bursts * operation.burst_bytes
        startup, rate = _limit(timing, target.cores_at_work, Fraction(total) * (cost := _cost(operation, timing)))
        rate /= cost
        stream = max(timing.descriptor_cycles, streaming(total, rate.numerator, rate.denominator))
        return cls(
            ahead=startup if operation.load and not timing.overlaps else 0,
            behind=0 if operation.load else startup,
            rate=rate.numerator,
            per=rate.denominator,
            streaming=stream,
            overlaps=timing.overlaps,
            facts=(fact, "banks", *target.transfer_options, *(("cores",) if target.cores_at_work > 1 else ())),
        )


def latency_ahead(target: DataflowTarget, pipe: str) -> int:
    """Return the cycles that memory takes to answer the transfers of a pipe, 0 if these do not overlap."""
    timing, _ = target.transfer_timing(load=True)
    return timing.startup_cycles if pipe == target.pipes.load and timing.overlaps else 0


def _cost(operation: Transfer, timing: TransferTiming) -> Fraction:
    """Return the time of a byte relative to adjacent rows: separate rows move in transactions."""
    whole, length = timing.transaction_bytes, operation.burst_bytes
    if whole is None or not length or operation.bursts < 2 or operation.gm_pitch == length:
        return Fraction(1)
    return Fraction(-(-length // whole) * whole, length) if length >= whole else Fraction(2)


def _limit(timing: TransferTiming, cores: int, size: Fraction) -> tuple[int, Fraction]:
    """Return start-up and bytes per cycle of a transfer: those of its core, or of the shared memory."""
    own = timing.startup_cycles, Fraction(timing.bytes_per_cycle)
    if timing.shared_bytes_per_cycle is None:
        return own
    startup = timing.startup_cycles if timing.shared_startup_cycles is None else timing.shared_startup_cycles
    shared = startup, Fraction(timing.shared_bytes_per_cycle) / cores
    return shared if cores > 1 and shared[0] + size / shared[1] > own[0] + size / own[1] else own
