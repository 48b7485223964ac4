"""castsim: cycle-approximate, bit-exact simulation of the vector cast units of NPUs.

    from simulator import run, cast, estimate, builtin
    from targets import load_target

Nothing heavy is imported before one of the names is used.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from simulator.builtins import BuiltinResult, builtin
    from simulator.casting import cast
    from simulator.estimating import Estimate, estimate
    from simulator.running import Result, run

__version__ = "0.2.0"
__all__ = ["BuiltinResult", "Estimate", "Result", "__version__", "builtin", "cast", "estimate", "run"]

_HOMES = {
    "builtin": "simulator.builtins",
    "BuiltinResult": "simulator.builtins",
    "run": "simulator.running",
    "Result": "simulator.running",
    "cast": "simulator.casting",
    "estimate": "simulator.estimating",
    "Estimate": "simulator.estimating",
}


def __getattr__(name: str) -> Any:
    if name not in _HOMES:
        raise AttributeError(f"module 'simulator' has no attribute '{name}'")
    from importlib import import_module  # noqa: PLC0415

    return getattr(import_module(_HOMES[name]), name)
