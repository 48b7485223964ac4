"""The special functions of TPC-C: arithmetic on f32, emitted as assembly and run, and words of tensor descriptors.

A module is imported when one of its names is used: finding a function by its name needs no machine.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from castsim.isa.lazy_exports import lazy_exports

if TYPE_CHECKING:
    from castsim.tpc_compiler.special_functions.calling import (
        FunctionProgram,
        FunctionResult,
        call_function,
        function_program,
    )
    from castsim.tpc_compiler.special_functions.descriptors import DescriptorCall, arguments_of, descriptor_call

__all__ = [
    "DescriptorCall",
    "FunctionProgram",
    "FunctionResult",
    "arguments_of",
    "call_function",
    "descriptor_call",
    "function_program",
]

_HOMES = dict.fromkeys(__all__, "calling") | {
    "DescriptorCall": "descriptors",
    "arguments_of": "descriptors",
    "descriptor_call": "descriptors",
}

__getattr__ = lazy_exports(__name__, _HOMES)
