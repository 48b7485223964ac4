"""Transfer times of chips whose pipes move tiles through one buffer, in ticks.

Rules are functions on integers alone: the event engine and the closed forms call them directly, the fast engine
compiles them. The engines decide who waits for whom.
"""

from __future__ import annotations

from decimal import Decimal
from fractions import Fraction
from math import prod

from castsim.execution.pipe_operations import BLOCK, Transfer
from castsim.execution.tree import GlobalSpace, Tree, issued, moved_accesses, run_length
from castsim.isa.dataclass import dataclass
from castsim.targets.dataflow import MEMORY_OPTIONS, DataflowTarget
from castsim.targets.description import TransferTiming

TICKS = 100
"""Number of ticks per cycle: facts have at most two decimals."""

NO_TICK = -(1 << 60)
"""A tick that stands for none: before all others, even with any duration added."""


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
    """Return the cycles after which a rate of bytes per `per` cycles has passed all `before` bytes."""
    return before * per // rate


def streaming(total: int, rate: int, per: int) -> int:
    """Return the cycles that `total` bytes take at a rate, rounded half up."""
    return (2 * total * per + rate) // (2 * rate)


def stream_start(start: int, ahead: int, waited: int) -> int:
    """Return the cycle in which the stream of a transfer starts if its pipe accepts it in cycle `start`.

    Memory needs `ahead` cycles to answer; a request at the earliest possible time is answered in cycle `waited`.
    """
    return max(start + ahead, waited)


def memory_served(asked: int, free: int, number: int, blocks: int, turns: int) -> int:
    """Return the tick in which memory shared by all cores has moved block `number` of `blocks`.

    The block is requested in cycle `asked`; the core's part of memory is free from tick `free` on. All blocks of the
    transfer take `turns` ticks of it.
    """
    return max(asked * TICKS, free) + turns * (number + 1) // blocks - turns * number // blocks


def next_request(paced: int, served: int) -> int:
    """Return the cycle in which a transfer requests a block that its rate allows in cycle `paced`.

    Shared memory has moved the previous block by tick `served`.
    """
    return max(paced, served // TICKS)


def transfer_end(due: int, passed: int) -> int:
    """Return the end of a transfer whose last block passed the buffer's port in cycle `passed`."""
    return max(due, passed + 1)


# Global memory as all cores share it.
#
# Every core at work gets an equal part of one total for both directions. Inside a core, loads and stores take turns,
# block by block: a transfer requests its next block when the last one has been moved. So two that stream at once get
# half each, and one alone gets all, up to the rate of its own path.


@dataclass(frozen=True, slots=True)
class SharedMemory:
    """One of `cores` equal parts of global memory: `rate` bytes per cycle, loads and stores together.

    All cores move `total` gigabytes per second. Of the bytes that the launch touches, the shared cache holds
    `cached_bytes`. `basis` and `choices` are the evidence for the total rate, as in reports.
    """

    cores: int
    total: Fraction
    rate: Fraction
    cached_bytes: int
    basis: str
    choices: tuple[str, ...]
    facts: tuple[str, ...]

    @classmethod
    def of(cls, tree: Tree, target: DataflowTarget) -> SharedMemory | None:
        """Return the part for a program on a target; None for one core, or if no source states a total."""
        cores, total = target.cores_at_work, target.memory_total()
        if cores == 1 or total is None:
            return None
        memory, facts = total
        touched, cached, seconds = 0, Fraction(0), 1 / Fraction(memory.gigabytes_per_second)
        if (warm := target.warm_cache) is not None:
            cache, more = warm
            touched, facts = cores * touched_bytes(tree), (*facts, *more)
            cached = cache.share(touched)
            seconds = cached / Fraction(cache.gigabytes_per_second) + (1 - cached) * seconds
        return cls(
            cores=cores,
            total=1 / seconds,
            rate=1000 / (seconds * target.frequency.megahertz * cores),
            cached_bytes=int(cached * touched),
            basis=f"{memory.status} on {memory.rests_on}",
            choices=tuple(f"{name} {target.options[name].value}" for name in MEMORY_OPTIONS if name in target.options),
            facts=("cores", "frequency", *facts),
        )


def moved_bytes(tree: Tree) -> int:
    """Return the bytes that a program moves to and from global memory."""
    return sum(_moved(tree).values())


def touched_bytes(tree: Tree) -> int:
    """Return the bytes of global memory that a program touches, each once.

    For every argument these are the bytes between its first and last one, but no more than are moved.
    """
    reaches: dict[str, tuple[int, int]] = {}
    for _, access, (down, up) in moved_accesses(tree.root):
        if isinstance(access.space, GlobalSpace):
            low, high = reaches.get(access.space, (access.start + down, access.end + up))
            reaches[access.space] = min(low, access.start + down), max(high, access.end + up)
    return sum(min(moved, reaches[space][1] - reaches[space][0]) for space, moved in _moved(tree).items())


def _moved(tree: Tree) -> dict[str, int]:
    """Return the bytes that a program moves, by argument."""
    moved: dict[str, int] = {}
    for times, lowered in issued(tree.root):
        for access in lowered.accesses:
            if isinstance(access.space, GlobalSpace):
                runs = prod(count for count, _ in access.runs)
                moved[access.space] = moved.get(access.space, 0) + times * runs * run_length(access)
    return moved


# A transfer in numbers: the facts that it rests on, applied to its size.
#
# A load waits for memory first and then fills the buffer at its rate; a store empties the buffer at its rate and then
# waits for memory. Rates are ratios of integers, so time inside a transfer is counted exactly and rounded once.


@dataclass(frozen=True, slots=True)
class TransferPlan:
    """The memory cycles `ahead` of the stream and `behind` it, the rate in bytes (`rate`) `per` cycles, and the cycles
    of the stream.

    Shared memory takes `turns` ticks for all `blocks`; 0 if nothing is shared.
    `overlaps`: successive transfers wait for memory together, and only their streams follow each other; the memory time
    ahead of them then counts from the earliest request (`latency_ahead`), and `ahead` is 0.
    """

    ahead: int
    behind: int
    rate: int
    per: int
    streaming: int
    blocks: int
    turns: int
    overlaps: bool
    facts: tuple[str, ...]

    @classmethod
    def of(cls, operation: Transfer, target: DataflowTarget, shared: SharedMemory | None) -> TransferPlan:
        """Return the plan of a transfer on a target whose cores share global memory."""
        timing, fact = target.transfer_timing(load=operation.load)
        total, cost, startup = operation.bursts * operation.burst_bytes, _cost(operation, timing), timing.startup_cycles
        rate, per = (Fraction(timing.bytes_per_cycle) / cost).as_integer_ratio()
        blocks = operation.bursts * -(-operation.burst_bytes // BLOCK)
        last = let_through((operation.burst_bytes - 1) // BLOCK * BLOCK + total - operation.burst_bytes, rate, per)
        return cls(
            ahead=startup if operation.load and not timing.overlaps else 0,
            behind=0 if operation.load else startup,
            rate=rate,
            per=per,
            # The last block needs its cycle in any case.
            streaming=max(timing.descriptor_cycles, streaming(total, rate, per), last + 1 if blocks else 0),
            blocks=blocks,
            turns=0 if shared is None else round(total * cost * TICKS / shared.rate),
            overlaps=timing.overlaps,
            facts=(fact, "banks", *target.transfer_options, *(() if shared is None else shared.facts)),
        )


def latency_ahead(target: DataflowTarget, pipe: str) -> int:
    """Return the cycles in which memory answers the transfers of a pipe, 0 if these do not overlap."""
    timing, _ = target.transfer_timing(load=True)
    return timing.startup_cycles if pipe == target.pipes.load and timing.overlaps else 0


def _cost(operation: Transfer, timing: TransferTiming) -> Fraction:
    """Return the time of a byte relative to adjacent rows: separate rows move in transactions."""
    whole, length = timing.transaction_bytes, operation.burst_bytes
    if whole is None or not length or operation.bursts < 2 or operation.gm_pitch == length:
        return Fraction(1)
    return Fraction(-(-length // whole) * whole, length) if length >= whole else Fraction(2)
