"""Casts of C and of LLVM IR on TPC, as its compiler makes them: rules, chains, programs that run, tables.

cast = compile_cast("float128", "ushort128", "gaudi")    # as_ushort128(x)
cast.path                                                # f32 -> i32 -> u32 -> u16
cast.values(codes)                                       # what its assembly computes
cast.kernel.text()                                       # the assembly

A module is imported when one of its names is used: planning takes the lane moves and none of the rules.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from castsim.isa.lazy_exports import lazy_exports

if TYPE_CHECKING:
    from castsim.tpc_compiler.compiled_casts.building import Order
    from castsim.tpc_compiler.compiled_casts.c_table import CompiledCastTable, cast_table
    from castsim.tpc_compiler.compiled_casts.comparing import (
        Column,
        Difference,
        ResultComparison,
        compare,
        source_format,
    )
    from castsim.tpc_compiler.compiled_casts.compiling import (
        CompiledCast,
        SourceForm,
        compile_cast,
        compiled_cast,
        tpc_target,
    )
    from castsim.tpc_compiler.compiled_casts.matrix import MatrixEntry, entries, lowered

__all__ = [
    "Column",
    "CompiledCast",
    "CompiledCastTable",
    "Difference",
    "MatrixEntry",
    "Order",
    "ResultComparison",
    "SourceForm",
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
    "CompiledCastTable": "c_table",
    "cast_table": "c_table",
    "Column": "comparing",
    "ResultComparison": "comparing",
    "Difference": "comparing",
    "compare": "comparing",
    "source_format": "comparing",
    "CompiledCast": "compiling",
    "SourceForm": "compiling",
    "compile_cast": "compiling",
    "compiled_cast": "compiling",
    "tpc_target": "compiling",
    "MatrixEntry": "matrix",
    "entries": "matrix",
    "lowered": "matrix",
}

__getattr__ = lazy_exports(__name__, _HOMES)
