"""Casts of C and of LLVM IR on TPC, as its compiler makes them: rules, chains, programs that run, tables.

cast = compile_cast("float128", "ushort128", "gaudi")    # as_ushort128(x)
cast.path                                                # f32 -> i32 -> u32 -> u16
cast.values(codes)                                       # what its assembly computes
cast.kernel.text()                                       # the assembly

A module is imported when one of its names is used: planning takes the lane moves and none of the rules.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from castsim.isa.on_use import on_use

if TYPE_CHECKING:
    from castsim.tpc_compiler.compiled_casts.building import Order
    from castsim.tpc_compiler.compiled_casts.c_table import CastTable, cast_table
    from castsim.tpc_compiler.compiled_casts.comparing import Column, Comparison, Difference, compare, source_format
    from castsim.tpc_compiler.compiled_casts.compiling import (
        CompiledCast,
        Form,
        compile_cast,
        compiled_cast,
        tpc_target,
    )
    from castsim.tpc_compiler.compiled_casts.matrix import Entry, entries, lowered

__all__ = [
    "CastTable",
    "Column",
    "Comparison",
    "CompiledCast",
    "Difference",
    "Entry",
    "Form",
    "Order",
    "cast_table",
    "compare",
    "compile_cast",
    "compiled_cast",
    "entries",
    "lowered",
    "source_format",
    "tpc_target",
]

_HOMES = {
    "Order": "building",
    "CastTable": "c_table",
    "cast_table": "c_table",
    "Column": "comparing",
    "Comparison": "comparing",
    "Difference": "comparing",
    "compare": "comparing",
    "source_format": "comparing",
    "CompiledCast": "compiling",
    "Form": "compiling",
    "compile_cast": "compiling",
    "compiled_cast": "compiling",
    "tpc_target": "compiling",
    "Entry": "matrix",
    "entries": "matrix",
    "lowered": "matrix",
}

__getattr__ = on_use(__name__, _HOMES)
