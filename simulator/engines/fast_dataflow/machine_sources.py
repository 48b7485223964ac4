"""The files on which compiled code of the machine depends."""

from __future__ import annotations

from pathlib import Path

from castsim import timing
from castsim.execution.dataflow import pipe_operations, transfer_timing
from castsim.machines.strided import repeat_timing as strided_timing
from castsim.machines.vector_function import function_timing


def sources() -> tuple[Path, ...]:
    """Return the files in which the machine stands, the rules of timing that it calls, and constants of both."""
    modules = (timing, pipe_operations, transfer_timing, strided_timing, function_timing)
    outside = (Path(module.__file__) for module in modules if module.__file__ is not None)
    return (*sorted(Path(__file__).parent.glob("*.py")), *outside)
