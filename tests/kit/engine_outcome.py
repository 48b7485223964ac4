"""What two engines must agree on: a timing taken apart, or the words of a refusal."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from castsim.engines import simulate
from castsim.execution.timing import Timing
from castsim.isa.errors import EngineError


def plain(timing: Timing) -> dict[str, Any]:
    """Return everything that engines must agree on."""
    return {
        "total": timing.total,
        "pipes": {name: {c: n for c, n in pipe.causes.items() if n} for name, pipe in timing.pipes.items()},
        "executions": tuple(timing.executions),
        "operations": tuple(timing.operations),
        "facts": timing.facts,
    }


def outcome(*args: Any, run: Callable[..., Timing] = simulate, **options: Any) -> Any:
    """Return what a run gives: its timing, or why it is given up."""
    try:
        return plain(run(*args, **options))
    except EngineError as error:
        return str(error)
