"""One simulation: the tree walked, and what came of it reported."""

from __future__ import annotations

from collections.abc import Mapping

from castsim.engines.fast_vliw.bundle_recurrence import MemoryTiming, RecurrenceCore
from castsim.engines.fast_vliw.history import IssueHistory, Kinds
from castsim.engines.fast_vliw.loops import Stepper
from castsim.engines.fast_vliw.outcome import Executions, Finishes, Operations, Rows, parts_of
from castsim.execution.tree import Block, Loop, Lowered, Node, Tree
from castsim.isa.errors import IllegalError
from castsim.machines.vliw.operations import SLOTS, BundleOperation
from castsim.machines.vliw.timing import MEMORY_FACTS, SEPARATE_PORTS, SHARED_PORT, load_cycles
from castsim.targets.vliw import VliwTarget
from castsim.timing import Cause, Listener, PipeTiming, Timing

_WIDTH_FACT = "options.all_lanes_cycles"


def simulate_bundles(
    tree: Tree,
    target: VliwTarget,
    max_cycles: int,
    listener: Listener | None = None,
    *,
    record_operations: bool = True,
    skip: bool = True,
) -> Timing:
    """Return how long a tree of bundles takes; `skip` False steps through every trip of every loop.

    Raises:
        IllegalError: the tree holds operations of another mechanism.
        EngineError: the end lies beyond `max_cycles`.
    """
    issued = _operations(tree, target)
    kinds = Kinds()
    history = IssueHistory(kinds.all)
    memory = _memory(target)
    core = RecurrenceCore(history, tree.instructions, memory, max_cycles, listener, keep_waits=record_operations)
    reach = max((operation.effect for operation in issued), default=0) + 1
    Stepper(core, kinds, reach, skip=skip).walk(tree.root)
    stepped = core.now + core.skipped
    core.drain()
    parts = parts_of(history)
    total = Finishes(history).latest(parts)
    if total > max_cycles:
        raise core.beyond_limit()
    count = core.totals.operations(kinds.all)
    if listener is not None:
        listener.progress(total, count)
    rows = Rows(history, parts)
    facts = {*core.facts, *(MEMORY_FACTS if any(each.loads or each.stores for each in issued) else ())}
    if any(max(kind.operation.slot_cycles) > 1 for kind in kinds.all):
        facts.add(_WIDTH_FACT)
    return Timing(
        total,
        {**_slots(core, kinds, stepped, total), **_ports(core, kinds, memory, total)},
        Executions(rows),
        Operations(rows, count) if record_operations else (),
        frozenset(facts),
    )


def _operations(tree: Tree, target: VliwTarget) -> list[BundleOperation]:
    """Return the distinct bundles of a tree; a node that stands in many places is looked at once."""
    found: list[BundleOperation] = []
    seen: set[int] = set()
    nodes: list[Node] = [tree.root]
    while nodes:
        node = nodes.pop()
        if isinstance(node, BundleOperation):
            found.append(node)
        elif isinstance(node, Block):
            fresh = {id(item): item for item in node.items if id(item) not in seen}
            seen.update(fresh)
            nodes.extend(reversed(fresh.values()))
        elif isinstance(node, Loop | Lowered):
            nodes.append(node.body)
        else:
            raise IllegalError(f"{target.name} issues bundles; {type(node).__name__} is not a bundle")
    return found


def _memory(target: VliwTarget) -> MemoryTiming:
    interval = target.global_memory.cycles_per_access
    return MemoryTiming(
        interval=interval,
        load_cycles=load_cycles(interval, int(target.option("global_latency_cycles"))),
        entries=int(target.option("global_queue_entries")),
        shared=target.option("global_ports") == "shared",
    )


def _slots(core: RecurrenceCore, kinds: Kinds, stepped: int, total: int) -> Mapping[str, PipeTiming]:
    """Return the cycles of the slots: they stand still together."""
    bundles = sum(core.totals.issues)
    busy = [0] * len(SLOTS)
    for kind, count in zip(kinds.all, core.totals.issues, strict=True):
        for place, cycles in enumerate(kind.operation.slot_cycles):
            busy[place] += count if cycles else 0
    return {
        slot: _timing(
            {
                **core.totals.stalls,
                Cause.BUSY: busy[place],
                Cause.EMPTY: bundles - busy[place],
                Cause.DRAIN: total - stepped,
            }
        )
        for place, slot in enumerate(SLOTS)
    }


def _ports(core: RecurrenceCore, kinds: Kinds, memory: MemoryTiming, total: int) -> Mapping[str, PipeTiming]:
    """Return the cycles of the ports of global memory."""
    loads = sum(kind.loads * count for kind, count in zip(kinds.all, core.totals.issues, strict=True))
    stores = sum(kind.stores * count for kind, count in zip(kinds.all, core.totals.issues, strict=True))
    names, found = (SHARED_PORT, (loads + stores,)) if memory.shared else (SEPARATE_PORTS, (loads, stores))
    return {
        name: _timing({Cause.BUSY: count * memory.interval, Cause.EMPTY: total - count * memory.interval})
        for name, count in zip(names, found, strict=True)
    }


def _timing(causes: Mapping[Cause, int]) -> PipeTiming:
    return PipeTiming({cause: cycles for cause, cycles in causes.items() if cycles})
