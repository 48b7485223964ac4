"""What a loop nest costs beside its trips' own work: the numbers that every engine takes from the facts, in ticks."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from castsim.execution.dataflow.timing import TICKS, ticks
from castsim.machines.vector_function.operations import INTEGER_DIVISION, LONG_DIVISION, Compute, Nest, VectorFunction
from castsim.machines.vector_function.profile import profile
from castsim.machines.vector_function.timing import head_penalty, row_turn
from castsim.machines.vector_function.trip_shape import TripShape, trip_shape
from castsim.targets.vector_function import VectorFunctionTarget


@dataclass(frozen=True, slots=True)
class NestPlan:
    """One nest as the front end walks it.

    `row_loop`, `unpack_head` and `post_update` are spent before its first row, `next_row` from row to row; `first_row`
    is what `row_loop` holds for the address of the first row. `branches`:
    a serialising branch stands before each row and around each trip. Lines hold the memory path for `path_hold` each
    (0: there is none); if `path_opened` is not None they follow each other from that many ticks after the nest was
    begun, whenever they arrive. `facts` are the paths of the facts it rests on, beyond those of every function.
    """

    nest: Nest
    shape: TripShape
    row_loop: int
    first_row: int
    unpack_head: int
    post_update: int
    next_row: int
    branches: bool
    path_hold: int
    path_opened: int | None
    facts: frozenset[str]


def plan_nest(function: VectorFunction, nest: Nest, target: VectorFunctionTarget) -> NestPlan:
    """Work out one of the timed nests of a function (docs/reference/a5.md section 6.2)."""
    timing, loops = target.timing, target.timing.loops
    seen = profile(function, nest)
    shape = trip_shape(nest, target)
    facts = set(_told_facts(nest, shape, target))
    unpack_head = between = 0
    first_row = row_address(function, nest, target)
    if seen.barrier:
        facts.add("timing.store_barrier")
    if seen.branch:
        facts.add("timing.branch")
    if seen.unpacks and not seen.row_loop:
        facts.update(HEAD_FACTS)
        unpack_head = head_of(target, seen.source_bytes)
    every = len(shape.row_loads) + len(shape.loads)
    known_late = nest.runtime_trips and nest.row_loop
    ahead = nest.broadcasts * TICKS if known_late else 0
    if nest.paced is not None:
        ahead += ticks(timing.paced[nest.paced].row(nest.trips))
    if (seen.trips > 1 or known_late) and not seen.branch:  # a serialising branch has turned already
        between = row_turn(ticks(loops.turnaround_cycles), ticks(loops.turnaround_hidden_cycles), shape.hold)
    between += first_row + ahead
    hold, opened, path_facts = _memory_path(nest, shape, target)
    if opened is not None and nest is not function.timed[0]:  # the launch hides nothing of a later nest's first line
        opened = ticks(timing.access.load_cycles - timing.chain.forwarding_cycles)
    return NestPlan(
        nest=nest,
        shape=shape,
        row_loop=(ticks(loops.row_loop_cycles) if nest.rows > 1 or known_late else 0) + first_row + ahead,
        first_row=first_row,
        unpack_head=unpack_head,
        post_update=every * ticks(timing.loads.post_update_cycles) if nest.post_update else 0,
        next_row=between,
        branches=seen.branch,
        path_hold=hold,
        path_opened=opened,
        facts=frozenset(facts | path_facts),
    )


def row_address(function: VectorFunction, nest: Nest, target: VectorFunctionTarget) -> int:
    """Return the ticks that the address of each row of a nest takes, the first one included: it counts half bytes.

    Source: docs/reference/a5.md section 6.2, rule 10.
    """
    seen = profile(function, nest)
    if not seen.half_bytes or not seen.loads:
        return 0
    if nest.trips == 1 and (seen.barrier or not nest.row_loop):  # a barrier in each row takes longer and hides it
        return 0
    loops = target.timing.loops
    return ticks(loops.half_byte_row_cycles if nest.trips > 1 else loops.half_byte_trip_row_cycles)


HEAD_FACTS = ("timing.unpack_head", "timing.store_barrier")
"""What the head of a kernel with an unpacking load rests on."""


def head_of(target: VectorFunctionTarget, source_bytes: int) -> int:
    """Return the ticks by which an unpacking load delays the start of a 1D kernel over so many source bytes; also on
    arrays.

    Source: docs/reference/a5.md section 6.2, rule 9.
    """
    facts, wait = target.timing.unpack_head, ticks(target.timing.store_barrier.cycles)
    return head_penalty(source_bytes, facts.waits, wait, facts.line_bytes, facts.step_bytes, facts.bank_bit)


def _told_facts(nest: Nest, shape: TripShape, target: VectorFunctionTarget) -> Iterator[str]:
    """Yield the paths of the facts that the trips of a nest rest on."""
    steps = (*shape.steps, *shape.closing)
    if nest.post_update or len(shape.row_loads) + len(shape.loads) > 1:
        yield "timing.loads"
    if nest.paced is not None:
        yield f"timing.paced.{nest.paced}"
    if any(step.special is not None for step in steps):
        yield "timing.special_function"
    for item in (*nest.trip, *nest.close):
        if isinstance(item, Compute):
            if item.mnemonic in (LONG_DIVISION, INTEGER_DIVISION):
                yield "timing.division"
            elif item.mnemonic in target.arithmetic:
                yield f"arithmetic.{item.mnemonic}"


def _memory_path(nest: Nest, shape: TripShape, target: VectorFunctionTarget) -> tuple[int, int | None, set[str]]:
    """Return what the lines of a nest pass between load and store (docs/reference/a5.md section 6.2, rule 5).

    The floor of two loads counts from launch to end of a function: less what surrounds its trips.
    """
    timing = target.timing
    lines = sum(not load.mask for load in shape.loads)
    if all(store.closing for store in shape.stores):
        return 0, None, set()
    if lines == 2:
        floor = timing.memory_floor["two_loads"]
        around = timing.launch.startup_cycles + timing.access.store_cycles + timing.launch.drain_cycles
        return ticks(floor.trip_cycles), ticks(floor.start_cycles - around), {"timing.memory_floor.two_loads"}
    if lines == 1 and nest.row_loop and nest.trips > 1:
        return ticks(timing.memory_path.trip_cycles), None, {"timing.memory_path"}
    return 0, None, set()
