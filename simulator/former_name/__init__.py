"""The former import name: `import simulator` gives `castsim`, and `simulator.X` is the very module `castsim.X`.

Installed under the name `simulator`. In a checkout the folder `simulator/` itself answers to that name when it stands
on the path; its `__init__` comes here.
"""

from __future__ import annotations

import sys
from collections.abc import Sequence
from importlib import import_module
from importlib.abc import Loader, MetaPathFinder
from importlib.machinery import ModuleSpec
from types import ModuleType

import castsim

FORMER, NAME = "simulator", "castsim"


class _Alias(MetaPathFinder, Loader):
    """Finds `simulator.X` as the module `castsim.X`, so that no module exists twice."""

    def __init__(self) -> None:
        self._own: dict[str, ModuleSpec | None] = {}

    def find_spec(
        self, fullname: str, path: Sequence[str] | None, target: ModuleType | None = None
    ) -> ModuleSpec | None:
        """Return a spec that this object loads, None for any other name."""
        return ModuleSpec(fullname, self) if fullname.startswith(f"{FORMER}.") else None

    def create_module(self, spec: ModuleSpec) -> ModuleType:
        """Return the module of today's name."""
        module = import_module(NAME + spec.name.removeprefix(FORMER))
        self._own[spec.name] = module.__spec__
        return module

    def exec_module(self, module: ModuleType) -> None:
        """Give the module its own specification back: it has been executed under its name."""
        module.__spec__ = self._own.pop(getattr(module.__spec__, "name", ""), module.__spec__)


def take_over() -> None:
    """Let `simulator` and everything below it stand for `castsim`."""
    if not any(isinstance(finder, _Alias) for finder in sys.meta_path):
        sys.meta_path.insert(0, _Alias())
    sys.modules[FORMER] = castsim


take_over()
