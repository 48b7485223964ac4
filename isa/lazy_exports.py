"""Packages whose modules are imported when one of their names is used: who asks for one does not wait for all."""

from __future__ import annotations

import sys
from collections.abc import Callable, Mapping
from importlib import import_module
from typing import Any


def lazy_exports(package: str, homes: Mapping[str, str]) -> Callable[[str], Any]:
    """Return the `__getattr__` of a package (PEP 562); `homes` says in which of its modules each name lives.

    The package also gets a `__dir__` that lists these names.
    """
    module = vars(sys.modules[package])
    module["__dir__"] = lambda: sorted({*module, *homes})

    def get(name: str) -> Any:
        if name not in homes:
            raise AttributeError(f"module '{package}' has no attribute '{name}'")
        return getattr(import_module(f"{package}.{homes[name]}"), name)

    return get
