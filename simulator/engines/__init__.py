"""Engines: from an operation tree to cycles, with one interface for all of them (`castsim.execution.timing`)."""

from __future__ import annotations

from typing import Protocol

from castsim.execution.run_limits import MAX_CYCLES
from castsim.execution.timing import IgnoresBlocks, Listener, Observer, Timing, Watcher
from castsim.execution.tree import Tree
from castsim.isa.errors import ReadError
from castsim.machines.registry import MachinePart
from castsim.targets.loader import Target

__all__ = ["ENGINES", "engine_for", "observe", "simulate"]

ENGINES = ("fast", "event")
"""Available engines; the first is the default."""


def simulate(
    tree: Tree,
    target: Target,
    observer: Listener | None = None,
    *,
    engine: str | None = None,
    max_cycles: int = MAX_CYCLES,
    record_operations: bool = True,
    skip: bool = True,
) -> Timing:
    """Return how long `tree` takes on `target`, every cycle of every pipe with its cause.

    Args:
        tree: the issued operations; only addresses, shapes and order matter, never values.
        target: supplies every number.
        observer: receives the progress of the run; an `Observer` also segments and block accesses.
        engine: `event` is the discrete-event reference, `fast` a recurrence with the same cycles and causes. None
            takes `fast`, unless the observer wants segments, which only `event` reports.
        max_cycles: maximum number of cycles of the run.
        record_operations: False leaves `Timing.operations` empty.
        skip: False makes the fast engine execute every trip of every loop, as the event engine always does.

    Raises:
        ReadError: the engine is unknown, the limit is not positive, or segments of the fast engine are requested.
        IllegalError: the target lacks a pipe or a timing row of an operation.
        EngineError: deadlock (with all waits), or the cycle limit (with the position).
    """
    name = engine_for(engine, observer)
    if name not in ENGINES:
        raise ReadError(f"unknown engine '{name}'", legal=ENGINES)
    if max_cycles < 1:
        raise ReadError(f"cycle limit {max_cycles} is not positive")
    if name == "event":
        return EVENT.of(target)(tree, target, observer, record_operations=record_operations).run(max_cycles)
    if isinstance(observer, Observer):
        raise ReadError("engine 'fast' does not report segments and block accesses", legal=("event",))
    return FAST.of(target)(tree, target, max_cycles, observer, record_operations=record_operations, skip=skip)


def observe(tree: Tree, target: Target, watcher: Watcher, *, engine: str | None = None) -> int:
    """Report to `watcher` the events before the cycle until which it listens, and simulate no further.

    It receives the same events of those cycles as in the whole run; segments may extend beyond. Returns an exclusive
    bound on the numbers of operations that had left the scalar unit by then, or were first in line.

    Args:
        tree, target: see `simulate`.
        watcher: receives segments, and block accesses unless it is of `IgnoresBlocks`.
        engine: None takes the fastest one that reports all requested events; all report the same.

    Raises:
        IllegalError: see `simulate`.
    """
    if engine != "event" and isinstance(watcher, IgnoresBlocks) and target.has_tiles:
        return TELLING.of(target)(tree, target, watcher)
    return EVENT.of(target)(tree, target, watcher, record_operations=False).watch(watcher)


def engine_for(engine: str | None, observer: Listener | None) -> str:
    """Return the engine for `simulate`: the requested one, or the first that reports enough to the observer."""
    return engine or ("event" if isinstance(observer, Observer) else ENGINES[0])


class Simulation(Protocol):
    """One run of the event engine, which can be started once."""

    def run(self, max_cycles: int) -> Timing:
        """Simulate to the end."""

    def watch(self, watcher: Watcher) -> int:
        """Simulate as far as the watcher listens."""


class EventEngine(Protocol):
    """The event engine of a mechanism; `target` has that mechanism."""

    def __call__(
        self, tree: Tree, target: Target, observer: Listener | None = None, *, record_operations: bool = True
    ) -> Simulation:
        """Return a run of `tree`."""


class FastEngine(Protocol):
    """The fast engine of a mechanism; `target` has that mechanism."""

    def __call__(
        self,
        tree: Tree,
        target: Target,
        max_cycles: int,
        listener: Listener | None = None,
        *,
        record_operations: bool = True,
        skip: bool = True,
    ) -> Timing:
        """Return how long `tree` takes."""


class SegmentTracer(Protocol):
    """A fast engine that reports segments; `target` has its mechanism."""

    def __call__(self, tree: Tree, target: Target, watcher: Watcher) -> int:
        """Simulate like `observe`."""


# simpy takes as long to import as the rest of a small run, so engines are imported by who simulates with them.
EVENT: MachinePart[EventEngine] = MachinePart(
    "event engine",
    {
        "strided-repeat": "castsim.engines.event_strided:EventSimulation",
        "vector-function": "castsim.engines.event_function:FunctionSimulation",
        "vliw": "castsim.engines.event_vliw:VliwSimulation",
    },
)
FAST: MachinePart[FastEngine] = MachinePart(
    "fast engine",
    {
        "strided-repeat": "castsim.engines.fast_dataflow.tile_simulation:simulate_tiles",
        "vector-function": "castsim.engines.fast_dataflow.tile_simulation:simulate_tiles",
        "vliw": "castsim.machines.vliw.fast_engine:simulate_bundles",
    },
)
TELLING: MachinePart[SegmentTracer] = MachinePart(
    "fast engine that tells of segments",
    {
        "strided-repeat": "castsim.engines.fast_dataflow.tile_simulation:tell_tiles",
        "vector-function": "castsim.engines.fast_dataflow.tile_simulation:tell_tiles",
    },
)
