"""Casts of C and of LLVM IR on TPC, as its compiler makes them: rules, chains, programs that run, tables.

cast = compile_cast("float128", "ushort128", "gaudi")    # as_ushort128(x)
cast.path                                                # f32 -> i32 -> u32 -> u16
cast.values(codes)                                       # what its assembly computes
cast.kernel.text()                                       # the assembly
"""

from simulator.compiled_casts.building import Order
from simulator.compiled_casts.c_table import CastTable, cast_table
from simulator.compiled_casts.comparing import Column, Comparison, Difference, compare, source_format
from simulator.compiled_casts.compiling import CompiledCast, Form, compile_cast, compiled_cast, tpc_target
from simulator.compiled_casts.matrix import Entry, entries, lowered

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
