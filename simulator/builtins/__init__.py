"""The cast builtins of TPC-C, emitted as assembly and run on the machine."""

from simulator.builtins.calling import Builtin, BuiltinResult, builtin, emitted
from simulator.builtins.lookup import find_builtin

__all__ = ["Builtin", "BuiltinResult", "builtin", "emitted", "find_builtin"]
