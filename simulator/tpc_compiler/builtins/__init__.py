"""The cast builtins of TPC-C, emitted as assembly and run on the machine.

A module is imported when one of its names is used: the lane moves do not wait for the lists of builtins.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from castsim.isa.lazy_exports import lazy_exports

if TYPE_CHECKING:
    from castsim.tpc_compiler.builtins.calling import Builtin, BuiltinResult, builtin, emitted
    from castsim.tpc_compiler.builtins.lookup import find_builtin

__all__ = ["Builtin", "BuiltinResult", "builtin", "emitted", "find_builtin"]

_HOMES = {
    "Builtin": "calling",
    "BuiltinResult": "calling",
    "builtin": "calling",
    "emitted": "calling",
    "find_builtin": "lookup",
}

__getattr__ = lazy_exports(__name__, _HOMES)
