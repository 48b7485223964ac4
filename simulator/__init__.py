"""castsim: cycle-approximate, bit-exact simulation of the vector cast units of NPUs.

    from castsim import run, cast, estimate, builtin
    from castsim.targets import load_target

Nothing heavy is imported before one of the names is used.
"""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from castsim.casting import cast
    from castsim.estimating import Estimate, estimate
    from castsim.isa.reading import file_limit
    from castsim.running import Result, run
    from castsim.tpc_compiler.builtins import BuiltinResult, builtin

__version__ = "0.2.0"
__all__ = ["BuiltinResult", "Estimate", "Result", "__version__", "builtin", "cast", "estimate", "file_limit", "run"]

_HOMES = {
    "builtin": "castsim.tpc_compiler.builtins",
    "BuiltinResult": "castsim.tpc_compiler.builtins",
    "run": "castsim.running",
    "Result": "castsim.running",
    "cast": "castsim.casting",
    "file_limit": "castsim.isa.reading",
    "estimate": "castsim.estimating",
    "Estimate": "castsim.estimating",
}


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})


def __getattr__(name: str) -> Any:
    if name not in _HOMES:
        raise AttributeError(f"module 'castsim' has no attribute '{name}'")
    from importlib import import_module  # noqa: PLC0415 - not a name of castsim

    return getattr(import_module(_HOMES[name]), name)


if __name__ == "simulator":  # a checkout's folder stands on the path under the former name
    sys.modules.pop(__name__)
    import castsim.former_name  # noqa: F401
