"""Whether a run goes on interpreted or compiled: whichever has the machine at its end sooner."""

from __future__ import annotations

import sys
from collections.abc import Callable
from functools import cache
from pathlib import Path
from time import perf_counter

from castsim.engines.fast_dataflow.machine_sources import sources
from castsim.engines.fast_dataflow.machine_steps import run
from castsim.engines.fast_dataflow.state import MachineState

Step = Callable[[MachineState], int]

_COMPILING = "castsim.engines.fast_dataflow.compiled_machine"
_KEPT = f"compiled_machine._machine.*.py{sys.version_info[0]}{sys.version_info[1]}{getattr(sys, 'abiflags', '')}.*.nbc"
"""What numba calls the file in which it keeps the machine for this version of Python."""

_LOADED, _ON_DISK, _TO_COMPILE = (3, 4), (200, 1000), (3000, 40_000)
"""Milliseconds that a run must have taken, and promise still to take, until compiled code pays: it is loaded, lies on
disk, or has to be made first. Only how long a run takes depends on them, not what comes out.
"""


class Driver:
    """The machine of one run: interpreted, until the run proves long. `total`: operations it has to execute."""

    def __init__(self, total: int) -> None:
        self._total = total
        self._began = perf_counter()
        self._possible = True
        self.step: Step = run

    def pays_to_compile(self, remaining: int) -> bool:
        """Whether the rest of the run, with so many operations, is worth compiled code."""
        if not self._possible or self.step is not run:
            return False
        elapsed = int((perf_counter() - self._began) * 1000)
        if elapsed < _LOADED[0]:
            return False
        patience, promise = _LOADED if _COMPILING in sys.modules else _ON_DISK if _is_kept() else _TO_COMPILE
        done = max(1, self._total - remaining)
        return elapsed > patience and elapsed * remaining / done > promise

    def compile(self) -> bool:
        """Go on with compiled code; return whether there is a compiler."""
        try:
            from castsim.engines.fast_dataflow.compiled_machine import compiled_machine  # noqa: PLC0415 - imports numba
        except ImportError:
            self._possible = False
            return False
        self.step = compiled_machine()
        return True


@cache
def _is_kept() -> bool:
    """Whether the machine has been compiled since its sources were written."""
    from castsim.files.kept_code import folder_of  # noqa: PLC0415 - short runs ask for none of it

    folder = folder_of(Path(__file__).parent)
    kept = [] if folder is None else [file.stat().st_mtime for file in folder.glob(_KEPT)]
    return bool(kept) and max(kept) > max(file.stat().st_mtime for file in sources())
