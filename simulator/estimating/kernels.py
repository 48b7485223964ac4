"""What the closed form of vector-function casts needs to know of a kernel, and whether the form covers it at all."""

from __future__ import annotations

from dataclasses import dataclass, replace
from math import gcd

from castsim.estimating.dual import DualTrips
from castsim.execution.dataflow.timing import TICKS, ticks
from castsim.machines.vector_function.lowering import LoweredCast
from castsim.machines.vector_function.nest_plan import NestPlan, plan_nest
from castsim.machines.vector_function.operations import Nest
from castsim.machines.vector_function.profile import profile
from castsim.machines.vector_function.timing import FunctionTicks, branch_rest, loaded
from castsim.machines.vector_function.trip_shape import TripShape
from castsim.machines.vector_function.trip_timing import Computation, RowState, SpecialPorts
from castsim.targets.vector_function import VectorFunctionTarget

_MOST_PHASES = 4
"""Rows may begin at so many different fractions of a cycle."""


@dataclass(frozen=True, slots=True)
class Chain:
    """A trip that is sent at tick 0: when its loaded registers can be used, and for each store when its data is there
    and what its barrier waits for.
    """

    arrival: int
    data: tuple[int, ...]
    barrier_at: int


@dataclass(frozen=True, slots=True)
class Kernel:
    """One code variant with one or several trips per row: all numbers but the extents.

    `branch` is what a serialising branch takes, 0 if there is none. `intervals` are the ticks from the store before to
    each store of a trip, `every` their sum; `effect` is when a trip that is sent at tick 0 lets the first store after
    it leave, less all intervals in between. `filled` is the size of the stores that clear the destination beforehand,
    0 if none do.
    """

    elements: int
    timed_elements: int
    flat: bool
    source_bits: int
    plan: NestPlan
    branch: int
    chain: Chain
    intervals: tuple[int, ...]
    every: int
    effect: int
    filled: int
    fill_is_limited: bool
    restores: int
    trip_ticks: int
    """Ticks from trip to trip of a row."""
    phases: int
    """Fractions of a cycle at which rows begin."""
    last_waits: bool
    """Whether a barrier stands before the last store."""
    dual: DualTrips | None


def kernel_of(target: VectorFunctionTarget, lowered: LoweredCast) -> Kernel | None:
    """Return the numbers of a lowered sample, None if the closed form does not cover what it does."""
    function, text = lowered.function, lowered.plan.kernel
    *clearing, nest = function.timed
    plan = plan_nest(function, nest, target)
    seen = profile(function, nest)
    shape, timing = plan.shape, target.timing
    branch = ticks(timing.branch.cycles) if plan.branches else 0
    sent_for = shape.hold + branch_rest(branch, shape.hold)
    chain = chain_of(shape, target, released=sent_for if branch else 0)
    interval, barrier = ticks(timing.port.store_cycles), ticks(timing.store_barrier.cycles)
    intervals = tuple(max(interval, barrier) if store.barrier else interval for store in shape.stores)
    there = (
        max(data, chain.barrier_at + barrier) if store.barrier else data
        for store, data in zip(shape.stores, chain.data, strict=True)
    )
    kernel = Kernel(
        elements=text.elements,
        timed_elements=nest.elements,
        flat=not nest.row_loop,
        source_bits=nest.source_trip * 8 // nest.elements,
        plan=replace(plan, unpack_head=int(seen.unpacks and not seen.row_loop)),
        branch=branch,
        chain=chain,
        intervals=intervals,
        every=sum(intervals),
        effect=max(at + sum(intervals[place + 1 :]) for place, at in enumerate(there)),
        filled=clearing[0].elements if clearing else 0,
        fill_is_limited=bool(clearing and clearing[0].counters),
        restores=len(lowered.plan.restores),
        trip_ticks=branch + sent_for,
        last_waits=shape.stores[-1].barrier,
        phases=TICKS // gcd(plan.next_row + branch, TICKS),
        dual=None,
    )
    if not _is_covered(target, kernel) or any(_waits(plan_nest(function, each, target)) for each in clearing):
        return None
    if _reads_per_group(target, nest, shape) <= target.banks.reads_beside_write:
        return kernel
    shifted = chain_of(shape, target, released=0, waited=TICKS)
    dual = DualTrips.of(target, plan, (chain.arrival, chain.data[0]), (shifted.arrival, shifted.data[0]), intervals)
    covered = _reads_per_group(target, nest, shape) == 2 <= target.banks.reads_per_group and not clearing
    return replace(kernel, dual=dual) if dual is not None and covered else None


def _is_covered(target: VectorFunctionTarget, kernel: Kernel) -> bool:
    """Whether trips depend on nothing but when they are sent, and no two of them read or write in one cycle."""
    plan = kernel.plan
    shape, nest = plan.shape, plan.nest
    plain = not (shape.row_loads or shape.closing or plan.post_update) and plan.path_opened is None
    plain = plain and len(shape.loads) == 1 and bool(shape.stores)
    plain = plain and all(step.special is None and step.again is None for step in shape.steps)
    apart = shape.hold >= TICKS and ticks(target.timing.port.store_cycles) >= TICKS
    steps = (nest.source_trip, nest.destination_trip, *(store.offset for store in shape.stores))
    aligned = all(step % target.registers.block_bytes == 0 for step in steps)
    few = kernel.trip_ticks % TICKS == 0 and kernel.phases <= _MOST_PHASES
    written = max(store.size for store in shape.stores) // target.registers.block_bytes
    return plain and apart and aligned and few and written <= target.banks.groups


def _waits(plan: NestPlan) -> bool:
    """Whether a loop that clears the destination does more than send its stores at once."""
    shape = plan.shape
    return bool(plan.branches or shape.hold or shape.loads or len(shape.stores) != 1 or shape.stores[0].barrier)


def _reads_per_group(target: VectorFunctionTarget, nest: Nest, shape: TripShape) -> int:
    blocks = -(-shape.loads[0].size // target.registers.block_bytes)
    return -(-blocks // target.banks.groups)


def chain_of(shape: TripShape, target: VectorFunctionTarget, *, released: int, waited: int = 0) -> Chain:
    """Follow one trip that is sent at tick 0, whose load waits so long and whose stores are released then."""
    facts = FunctionTicks.of(target)
    arrival = loaded(0, 0, facts.second_load, waited, facts.load_use)
    ready = {name: arrival for load in shape.loads for name in load.results}
    computation = Computation(0, ready, RowState(), SpecialPorts(facts.special_ports), facts.forwarding)
    waits = computation.follow(shape.steps)
    of = computation.of
    data = tuple(max(released, of(store.source), of(store.predicate)) for store in shape.stores)
    return Chain(arrival, data, max(released, waits.last))
