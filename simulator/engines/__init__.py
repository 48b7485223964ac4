"""Engines: from an operation tree to cycles. One contract for every mechanism and engine (`simulator.timing`)."""

from __future__ import annotations

from isa.errors import ReadError
from simulator.timing import Listener, Timing
from simulator.tree import Tree
from targets.loader import Target
from targets.vector_function import VectorFunctionTarget
from targets.vliw import VliwTarget

__all__ = ["CYCLE_LIMIT", "ENGINES", "simulate"]

ENGINES = ("event",)
"""Engines that can be asked for."""

CYCLE_LIMIT = 10**10
"""Default of `max_cycles`: far beyond any sensible kernel, so that a runaway program ends with a message."""


def simulate(
    tree: Tree,
    target: Target,
    observer: Listener | None = None,
    *,
    engine: str = "event",
    max_cycles: int = CYCLE_LIMIT,
    record_operations: bool = True,
) -> Timing:
    """Return how long `tree` takes on `target`, every cycle of every pipe with its cause.

    Args:
        tree: what the machine issues; only addresses, shapes and order matter, never values.
        target: supplies every number.
        observer: hears of segments and block accesses; None costs nothing.
        engine: `event` is the discrete-event reference.
        max_cycles: a run that would take longer is given up.
        record_operations: False leaves `Timing.operations` empty and saves its memory.

    Raises:
        ReadError: unknown engine, or no positive limit.
        IllegalError: an operation names a pipe or a timing row that the target does not have.
        EngineError: deadlock (says who waits for whom); cycle limit (says where).
    """
    if engine == "fast":
        raise ReadError("engine 'fast' is not available yet", legal=ENGINES)
    if engine not in ENGINES:
        raise ReadError(f"unknown engine '{engine}'", legal=ENGINES)
    if max_cycles < 1:
        raise ReadError(f"cycle limit {max_cycles} is not positive")
    if isinstance(target, VliwTarget):
        from simulator.engines.event_vliw import VliwSimulation  # noqa: PLC0415 - as below

        return VliwSimulation(tree, target, observer, record_operations=record_operations).run(max_cycles)
    if isinstance(target, VectorFunctionTarget):
        from simulator.engines.event_function import FunctionSimulation  # noqa: PLC0415 - as below

        return FunctionSimulation(tree, target, observer, record_operations=record_operations).run(max_cycles)
    # simpy takes as long to import as the rest of a small run: only who simulates pays for it.
    from simulator.engines.event_strided import EventSimulation  # noqa: PLC0415

    return EventSimulation(tree, target, observer, record_operations=record_operations).run(max_cycles)
