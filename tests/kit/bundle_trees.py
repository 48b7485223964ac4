"""Random trees of bundles, and engines compared over them."""

from __future__ import annotations

from dataclasses import dataclass
from random import Random

from castsim.engines.event_vliw import VliwSimulation
from castsim.execution.timing import Timing
from castsim.execution.tree import Block, Instruction, Loop, Lowered, Node, Tree, elements
from castsim.isa.errors import Span
from castsim.machines.vliw.fast_engine import simulate_bundles
from castsim.machines.vliw.stage_latency import SLOTS, BundleOperation
from castsim.targets.description import with_cores, with_options
from castsim.targets.vliw import VliwTarget

NOWHERE = Span("random.tpc", 1, 1)


@dataclass(frozen=True, slots=True)
class Mix:
    """How a random tree is made: kinds of bundles, items of a block, depth of loops, trips, share of accesses."""

    kinds: int = 6
    items: int = 5
    depth: int = 2
    trips: int = 12
    memory: float = 0.3


def random_bundle(random: Random, mix: Mix) -> BundleOperation:
    """Return a bundle with every field drawn over what the fields of real ones can be, and a bit beyond."""
    work = [random.choice((0, 1, 1)) for _ in SLOTS]
    if work[SLOTS.index("VPU")] and random.random() < 0.3:
        work[SLOTS.index("VPU")] = random.randint(2, 5)
    touches = random.random() < mix.memory
    loads, stores = (random.randint(0, 3), random.randint(0, 2)) if touches else (0, 0)
    return BundleOperation(
        slot_cycles=tuple(work),  # type: ignore[arg-type]
        names=tuple(slot.lower() if cycles else "" for slot, cycles in zip(SLOTS, work, strict=True)),  # type: ignore[arg-type]
        loads=loads,
        stores=stores,
        data_due=random.randint(1, 8) if loads else 0,
        effect=random.randint(1, 9),
        bubbles=random.randint(1, 6) if random.random() < 0.15 else 0,
        elements=random.randint(0, loads),
    )


def random_tree(random: Random, mix: Mix) -> Tree:
    """Return a tree of blocks and loops over a few distinct bundles."""
    kinds = [Lowered(number, Block((random_bundle(random, mix),))) for number in range(mix.kinds)]

    def block(depth: int) -> Block:
        items: list[Node] = []
        for _ in range(random.randint(1, mix.items)):
            if depth and random.random() < 0.4:
                items.append(loop(depth - 1))
            else:
                items.append(random.choice(kinds))
        return Block(tuple(items))

    def loop(depth: int) -> Loop:
        body = block(depth)
        steps = tuple(() for _ in elements(body))
        return Loop(random.randint(1, mix.trips), body, steps)

    instructions = tuple(Instruction(f"bundle {number}", "VPU", NOWHERE) for number in range(mix.kinds))
    return Tree(block(mix.depth), instructions, interlocked=False)


def random_row(random: Random, mix: Mix) -> Tree:
    """Return a tree of bundles in a row, most of which repeat: with periods up to and beyond those that are looked for.

    The row may stand in a loop.
    """
    kinds = [Lowered(number, Block((random_bundle(random, mix),))) for number in range(mix.kinds)]
    items: list[Node] = []
    for _ in range(random.randint(1, mix.items)):
        period = [random.choice(kinds) for _ in range(random.choice((1, 2, 3, 7, 15, 16, 17, 33, 70)))]
        items += period * random.choice((1, 5, 40)) + period[: random.randint(0, len(period))]
    row = Block(tuple(items))
    looped = Block((Loop(random.randint(2, mix.trips), row, tuple(() for _ in elements(row))), *items[:9]))
    instructions = tuple(Instruction(f"bundle {number}", "VPU", NOWHERE) for number in range(mix.kinds))
    return Tree(random.choice((row, row, looped)), instructions, interlocked=False)


def random_target(random: Random, target: VliwTarget) -> VliwTarget:
    """Return a target with other options of global memory, latencies of LD_G and cores at work."""
    latency = random.choice((0, 3, 30))
    target = target.model_copy(
        update={"element_loads": target.element_loads.model_copy(update={"latency_cycles": latency})}
    )
    if target.cores is not None and random.random() < 0.5:
        target = with_cores(target, random.randint(1, target.cores.count))
    return with_options(
        target,
        {
            name: str(random.choice(target.options[name].legal))
            for name in ("global_ports", "global_latency_cycles", "global_queue_entries")
        },
    )


def by_events(tree: Tree, target: VliwTarget, limit: int = 10**9) -> Timing:
    """Return what the reference engine says."""
    return VliwSimulation(tree, target).run(limit)


def fast(tree: Tree, target: VliwTarget, limit: int = 10**9, *, skip: bool = True) -> Timing:
    """Return what the fast engine says."""
    return simulate_bundles(tree, target, limit, skip=skip)
