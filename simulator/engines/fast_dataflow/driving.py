"""Whether a run goes on interpreted or compiled: whichever has the machine at its end sooner."""

from __future__ import annotations

import os
import sys
from collections.abc import Callable, Iterator
from functools import cache
from hashlib import sha1
from pathlib import Path
from time import perf_counter

from castsim.engines.fast_dataflow.machine import run
from castsim.engines.fast_dataflow.sources import sources
from castsim.engines.fast_dataflow.state import MachineState

Step = Callable[[MachineState], int]

_COMPILING = "castsim.engines.fast_dataflow.compiling"
_KEPT = f"compiling._machine.*.py{sys.version_info[0]}{sys.version_info[1]}{getattr(sys, 'abiflags', '')}.*.nbc"
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
            from castsim.engines.fast_dataflow.compiling import compiled_machine  # noqa: PLC0415 - imports numba
        except ImportError:
            self._possible = False
            return False
        self.step = compiled_machine()
        return True


@cache
def _is_kept() -> bool:
    """Whether the machine has been compiled since its sources were written."""
    folder = next((each for each in _folders(Path(__file__).parent) if _is_writable(each)), None)
    kept = [] if folder is None else [file.stat().st_mtime for file in folder.glob(_KEPT)]
    return bool(kept) and max(kept) > max(file.stat().st_mtime for file in sources())


def _folders(package: Path) -> Iterator[Path]:
    """Yield the folders of which numba takes the first that it can write to (the locators of `numba.core.caching`).

    numba itself is not asked: importing it takes longer than most runs.
    """
    own = f"{package.name}_{sha1(str(package).encode(), usedforsecurity=False).hexdigest()}"
    settings = sys.modules.get("numba.core.config")
    asked = os.environ.get("NUMBA_CACHE_DIR", "") if settings is None else settings.CACHE_DIR
    if asked:
        yield Path(asked) / own
    yield package / "__pycache__"
    yield _user_wide() / own


def _user_wide() -> Path:
    """Return numba's folder among the user's caches."""
    home = Path.home()
    if sys.platform == "win32":
        return Path(os.environ.get("LOCALAPPDATA", home / "AppData" / "Local")) / "numba" / "Cache"
    if sys.platform == "darwin":
        return home / "Library" / "Caches" / "numba"
    return Path(os.environ.get("XDG_CACHE_HOME", home / ".cache")) / "numba"


def _is_writable(folder: Path) -> bool:
    """Whether files can be made in a folder, which need not be there yet."""
    there = next(each for each in (folder, *folder.parents) if each.exists())
    return there.is_dir() and os.access(there, os.W_OK | os.X_OK)
