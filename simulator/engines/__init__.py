"""Engines: from an operation tree to cycles. One contract for every mechanism and engine (`simulator.timing`)."""

from __future__ import annotations

from typing import Protocol

from isa.errors import ReadError
from simulator.timing import Listener, Observer, Timing, Watcher
from simulator.tree import Tree
from targets.loader import Target
from targets.vector_function import VectorFunctionTarget
from targets.vliw import VliwTarget

__all__ = ["CYCLE_LIMIT", "ENGINES", "engine_for", "observe", "simulate"]

ENGINES = ("fast", "event")
"""Engines that can be asked for; the first is taken where nobody asks."""

CYCLE_LIMIT = 10**10
"""Default of `max_cycles`: far beyond any sensible kernel, so that a runaway program ends with a message."""


def simulate(
    tree: Tree,
    target: Target,
    observer: Listener | None = None,
    *,
    engine: str | None = None,
    max_cycles: int = CYCLE_LIMIT,
    record_operations: bool = True,
    skip: bool = True,
) -> Timing:
    """Return how long `tree` takes on `target`, every cycle of every pipe with its cause.

    Args:
        tree: what the machine issues; only addresses, shapes and order matter, never values.
        target: supplies every number.
        observer: hears how far the run has come; an `Observer` of segments and block accesses too.
        engine: `event` is the discrete-event reference, `fast` a recurrence with the same cycles and causes. None
            takes `fast`, unless the observer wants to hear of segments, which only `event` tells.
        max_cycles: a run that would take longer is given up.
        record_operations: False leaves `Timing.operations` empty.
        skip: False makes the fast engine execute every trip of every loop, as the event engine always does.

    Raises:
        ReadError: unknown engine, or no positive limit; segments of the fast engine are asked for.
        IllegalError: an operation names a pipe or a timing row that the target does not have.
        EngineError: deadlock (says who waits for whom); cycle limit (says where).
    """
    name = engine_for(engine, observer)
    if name not in ENGINES:
        raise ReadError(f"unknown engine '{name}'", legal=ENGINES)
    if max_cycles < 1:
        raise ReadError(f"cycle limit {max_cycles} is not positive")
    if name == "event":
        return _event(tree, target, observer, record_operations=record_operations).run(max_cycles)
    if isinstance(observer, Observer):
        raise ReadError("engine 'fast' tells nobody of segments and block accesses", legal=("event",))
    return _fast(tree, target, observer, max_cycles, record_operations=record_operations, skip=skip)


def observe(tree: Tree, target: Target, watcher: Watcher) -> int:
    """Let the event engine tell `watcher` what happens before the cycle until which it listens, and no further.

    What it hears of those cycles is what it would hear of them in the whole run; segments may reach beyond. Returns a
    bound on the operations that had left the scalar unit by then, or stood first in line: none of a higher number had.

    Raises:
        IllegalError: as `simulate`.
    """
    return _event(tree, target, watcher, record_operations=False).watch(watcher)


def engine_for(engine: str | None, observer: Listener | None) -> str:
    """Return the engine that `simulate` takes: the one asked for, else the first that tells the observer enough."""
    return engine or ("event" if isinstance(observer, Observer) else ENGINES[0])


class _Simulation(Protocol):
    """One run, to be started once."""

    def run(self, max_cycles: int) -> Timing:
        """Simulate to the end."""

    def watch(self, watcher: Watcher) -> int:
        """Simulate as far as the watcher listens."""


# simpy takes as long to import as the rest of a small run, so engines are imported by who simulates with them.
# ruff: noqa: PLC0415


def _event(tree: Tree, target: Target, observer: Listener | None, *, record_operations: bool) -> _Simulation:
    if isinstance(target, VliwTarget):
        from simulator.engines.event_vliw import VliwSimulation

        return VliwSimulation(tree, target, observer, record_operations=record_operations)
    if isinstance(target, VectorFunctionTarget):
        from simulator.engines.event_function import FunctionSimulation

        return FunctionSimulation(tree, target, observer, record_operations=record_operations)
    from simulator.engines.event_strided import EventSimulation

    return EventSimulation(tree, target, observer, record_operations=record_operations)


def _fast(
    tree: Tree, target: Target, listener: Listener | None, max_cycles: int, *, record_operations: bool, skip: bool
) -> Timing:
    if isinstance(target, VliwTarget):
        from simulator.engines.fast_vliw import simulate_bundles

        return simulate_bundles(tree, target, max_cycles, listener, record_operations=record_operations, skip=skip)
    from simulator.engines.fast_dataflow.simulation import FastSimulation

    run = FastSimulation(tree, target, listener, record_operations=record_operations, skip=skip)
    return run.run(max_cycles)
