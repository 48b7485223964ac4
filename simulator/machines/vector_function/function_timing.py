"""Ticks of heads, trips, loads, instructions, stores and ports of a vector function (docs/reference/a5.md sections 6.2,
7 and 8).

Each rule is defined here once, as a function on integers: times are ticks of 1/100 cycle unless stated as cycles. The
scoreboard and the event engine call the functions, the fast engine compiles those of ports.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from castsim.execution.transfer_timing import NO_TICK, TICKS, rounded, ticks
from castsim.isa.dataclass import dataclass

if TYPE_CHECKING:
    from castsim.targets.vector_function import VectorFunctionTarget


@dataclass(frozen=True, slots=True)
class FunctionTicks:
    """The facts of a target that all its functions depend on, in ticks.

    `load_use` is the time from a load to the use of its register. `special_ports` is a number of ports.
    """

    startup: int
    setup: int
    row_loop: int
    drain: int
    store_interval: int
    store_barrier: int
    store_latency: int
    branch: int
    load_use: int
    second_load: int
    forwarding: int
    special_ports: int
    memory_barrier: int

    @classmethod
    def of(cls, target: VectorFunctionTarget) -> FunctionTicks:
        """Return the ticks of a target."""
        timing = target.timing
        return cls(
            startup=ticks(timing.launch.startup_cycles),
            setup=ticks(timing.loops.setup_cycles),
            row_loop=ticks(timing.loops.row_loop_cycles),
            drain=ticks(timing.launch.drain_cycles),
            store_interval=ticks(timing.port.store_cycles),
            store_barrier=ticks(timing.store_barrier.cycles),
            store_latency=ticks(timing.access.store_cycles),
            branch=ticks(timing.branch.cycles),
            load_use=ticks(timing.access.load_cycles - timing.chain.forwarding_cycles),
            second_load=ticks(timing.loads.second_load_cycles),
            forwarding=ticks(timing.chain.forwarding_cycles),
            special_ports=timing.special_function.ports,
            memory_barrier=ticks(timing.micro.memory_barrier.cycles),
        )


# ------------------------------------------------------------------------------------------------- heads and the front


def head_penalty(source_bytes: int, waits: int, wait: int, line_bytes: int, step_bytes: int, bank_bit: int) -> int:
    """Return the delay that an unpacking load adds to the start of a 1D kernel, by source bytes; also for arrays.

    It is `waits` times `wait`, once less for each step of bytes; zero on whole lines or if the size has the bit
    of a bank.
    """
    left = waits - source_bytes // step_bytes
    uneven = (source_bytes % line_bytes != 0) & (source_bytes >> bank_bit & 1 == 0)
    return left * wait * (left > 0) * uneven


def row_turn(turnaround: int, hidden: int, hold: int) -> int:
    """Return the front end's time between rows: it turns while the port processes the last trip.

    `hidden` is the time that each cycle of the port hides, except the first one of the trip's `hold`.
    """
    return max(0, turnaround - hidden * max(0, hold - TICKS) // TICKS)


def busy_of_hold(hold: int) -> int:
    """Return for how much of its hold of the front end a trip counts as busy; the rest is the initiation interval."""
    return min(hold, TICKS)


def branch_rest(branch: int, hold: int) -> int:
    """Return the remainder of a serialising branch after the hold of its trip; 0 if the hold is longer."""
    return max(0, branch - hold)


def function_end(completed: int, front_end: int, drain: int) -> int:
    """Return the cycle in which a function ends: after its last effect and the front end, plus the drain, rounded."""
    return rounded(max(completed, front_end) + drain)


# ------------------------------------------------------------------------------------------------- loads and computing


def loaded(sent: int, number: int, second_load: int, wait: int, load_use: int) -> int:
    """Return the tick at which the register of load `number` of a trip is usable; the distance may hide a wait."""
    return sent + max(number * second_load, wait) + load_use


def path_through(free: int, arrival: int, hold: int, opened: int) -> int:
    """Return when a line has passed the memory path, which is `free` for it and takes `hold`.

    A path that was `opened` at some tick passes line after line from then on, regardless of their arrival: the floor of
    kernels with two loads. Any other passes them as they arrive.
    """
    return (free if opened else max(free, arrival)) + hold


# ------------------------------------------------------------------------------------------------------------- stores


def bytes_of_row(count: int, destination_trip: int, elements: int) -> int:
    """Return the bytes that a row of `count` elements writes."""
    return -(-count * destination_trip // elements)


def store_start(data_at: int, latest: int, interval: int, barrier_at: int, barrier: int) -> int:
    """Return when a store leaves: its data is ready, and the previous store, at `latest`, is an interval away.

    After an earlier-stores-first barrier it waits for all preceding work in program order, `barrier_at` (NO_TICK: there
    is no barrier), and all earlier stores.
    """
    start = max(data_at, latest + interval)
    if barrier_at != NO_TICK:
        start = max(start, max(barrier_at, latest) + barrier)
    return start


# -------------------------------------------------------------------------------------------------------------- ports


def group_has_room(
    reads: int, writes: int, write: int, reads_per_group: int, reads_beside_write: int, writes_per_group: int
) -> bool:
    """Return whether a bank group with these reads and writes in a cycle can serve one more."""
    if write:
        return writes < writes_per_group and reads <= reads_beside_write
    return reads < (reads_beside_write if writes else reads_per_group)


ACCESS_BITS, GROUP_BITS, GROUPS_PER_WORD = 4, 8, 7
"""Number of bits per access count, of the reads and the writes of a group in a cycle, and of groups per word."""

MOST_ACCESSES = (1 << ACCESS_BITS) - 1


def words_of_cycle(groups: int) -> int:
    """Return the number of words for the accesses of a cycle."""
    return -(-groups // GROUPS_PER_WORD)


def launch_reads(word: int, group: int) -> int:
    """Return the reads of a group from the word that contains them."""
    return word >> GROUP_BITS * (group % GROUPS_PER_WORD) & MOST_ACCESSES


def launch_writes(word: int, group: int) -> int:
    """Return the writes of a group from the word that contains them."""
    return word >> GROUP_BITS * (group % GROUPS_PER_WORD) + ACCESS_BITS & MOST_ACCESSES
