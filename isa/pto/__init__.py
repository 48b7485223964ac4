"""The `.pto` assembly text of Ascend PTO: reading, checking, printing.

A module is imported when one of its names is used: what only names types or pipes does not wait for the parser.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from castsim.isa.lazy_exports import lazy_exports

if TYPE_CHECKING:
    from castsim.isa.pto.program import (
        AddPointer,
        AllocTile,
        AllocTiles,
        Argument,
        Arith,
        Barrier,
        CacheOperation,
        Call,
        Compare,
        Condition,
        Constant,
        Convert,
        External,
        For,
        ForeignOperation,
        Function,
        GetTile,
        If,
        MakeView,
        MultiTileType,
        Operation,
        PartitionType,
        PartitionView,
        Pipe,
        PointerType,
        Program,
        Return,
        RoundMode,
        ScalarAccess,
        ScalarType,
        Section,
        SetFlag,
        SetValidShape,
        Subview,
        Tcvt,
        TileOperation,
        TileType,
        Type,
        ViewType,
        WaitFlag,
        While,
        Yield,
    )
    from castsim.isa.pto.pto_parser import parse
    from castsim.isa.pto.pto_printer import print_program
    from castsim.isa.pto.types import format_type, parse_type

__all__ = [
    "AddPointer",
    "AllocTile",
    "AllocTiles",
    "Argument",
    "Arith",
    "Barrier",
    "CacheOperation",
    "Call",
    "Compare",
    "Condition",
    "Constant",
    "Convert",
    "External",
    "For",
    "ForeignOperation",
    "Function",
    "GetTile",
    "If",
    "MakeView",
    "MultiTileType",
    "Operation",
    "PartitionType",
    "PartitionView",
    "Pipe",
    "PointerType",
    "Program",
    "Return",
    "RoundMode",
    "ScalarAccess",
    "ScalarType",
    "Section",
    "SetFlag",
    "SetValidShape",
    "Subview",
    "Tcvt",
    "TileOperation",
    "TileType",
    "Type",
    "ViewType",
    "WaitFlag",
    "While",
    "Yield",
    "format_type",
    "parse",
    "parse_type",
    "print_program",
]

_HOMES = dict.fromkeys(__all__, "program") | {
    "parse": "pto_parser",
    "print_program": "pto_printer",
    "format_type": "types",
    "parse_type": "types",
}

__getattr__ = lazy_exports(__name__, _HOMES)
