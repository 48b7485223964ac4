"""The `.pto` assembly text of Ascend PTO: reading, checking, printing.

A module is imported when one of its names is used: what only names types or pipes does not wait for the parser.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from isa.pto.parser import parse
    from isa.pto.printer import print_program
    from isa.pto.program import (
        AllocTile,
        Argument,
        Arith,
        Barrier,
        Compare,
        Constant,
        Convert,
        For,
        Function,
        If,
        MakeView,
        Operation,
        PartitionType,
        PartitionView,
        Pipe,
        PointerType,
        Program,
        Return,
        RoundMode,
        ScalarType,
        Section,
        SetFlag,
        SetValidShape,
        Tcvt,
        TileOperation,
        TileType,
        Type,
        ViewType,
        WaitFlag,
        Yield,
    )
    from isa.pto.types import format_type, parse_type

__all__ = [
    "AllocTile",
    "Argument",
    "Arith",
    "Barrier",
    "Compare",
    "Constant",
    "Convert",
    "For",
    "Function",
    "If",
    "MakeView",
    "Operation",
    "PartitionType",
    "PartitionView",
    "Pipe",
    "PointerType",
    "Program",
    "Return",
    "RoundMode",
    "ScalarType",
    "Section",
    "SetFlag",
    "SetValidShape",
    "Tcvt",
    "TileOperation",
    "TileType",
    "Type",
    "ViewType",
    "WaitFlag",
    "Yield",
    "format_type",
    "parse",
    "parse_type",
    "print_program",
]

_HOMES = {
    "parse": "parser",
    "print_program": "printer",
    "format_type": "types",
    "parse_type": "types",
}
"""Where a name lives, if not in the module `program`."""


def __getattr__(name: str) -> Any:
    if name not in __all__:
        raise AttributeError(f"module 'isa.pto' has no attribute '{name}'")
    return getattr(import_module(f"isa.pto.{_HOMES.get(name, 'program')}"), name)
