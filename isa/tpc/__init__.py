"""The assembly text of Habana TPC: reading, printing, the instruction table.

A module is imported when one of its names is used: a description of a chip names registers but parses no text.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from castsim.isa.lazy_exports import lazy_exports

if TYPE_CHECKING:
    from castsim.isa.tpc.dialect import Dialect, Feature
    from castsim.isa.tpc.forms import Form, OperandSpec, Predication, Switch, Value
    from castsim.isa.tpc.instructions import FORMS, available, forms_of, mnemonics
    from castsim.isa.tpc.parser import parse, target_declared_in, target_named_in
    from castsim.isa.tpc.printer import (
        canonical_text,
        print_bundle,
        print_declaration,
        print_instruction,
        print_program,
    )
    from castsim.isa.tpc.program import (
        Bundle,
        Comparison,
        Declaration,
        DimensionMask,
        Directive,
        File,
        Immediate,
        LabelDefinition,
        LabelUse,
        Operand,
        Predicate,
        Register,
        RegisterDeclaration,
        Slot,
        Special,
        TableDeclaration,
        TargetDeclaration,
        TensorDeclaration,
        TpcInstruction,
        TpcProgram,
        VlmDeclaration,
    )

__all__ = [
    "FORMS",
    "Bundle",
    "Comparison",
    "Declaration",
    "Dialect",
    "DimensionMask",
    "Directive",
    "Feature",
    "File",
    "Form",
    "Immediate",
    "LabelDefinition",
    "LabelUse",
    "Operand",
    "OperandSpec",
    "Predicate",
    "Predication",
    "Register",
    "RegisterDeclaration",
    "Slot",
    "Special",
    "Switch",
    "TableDeclaration",
    "TargetDeclaration",
    "TensorDeclaration",
    "TpcInstruction",
    "TpcProgram",
    "Value",
    "VlmDeclaration",
    "available",
    "canonical_text",
    "forms_of",
    "mnemonics",
    "parse",
    "print_bundle",
    "print_declaration",
    "print_instruction",
    "print_program",
    "target_declared_in",
    "target_named_in",
]

_HOMES = dict.fromkeys(__all__, "program") | {
    "Dialect": "dialect",
    "Feature": "dialect",
    "Form": "forms",
    "OperandSpec": "forms",
    "Predication": "forms",
    "Switch": "forms",
    "Value": "forms",
    "FORMS": "instructions",
    "available": "instructions",
    "forms_of": "instructions",
    "mnemonics": "instructions",
    "parse": "parser",
    "target_declared_in": "parser",
    "target_named_in": "parser",
    "canonical_text": "printer",
    "print_bundle": "printer",
    "print_declaration": "printer",
    "print_instruction": "printer",
    "print_program": "printer",
}

__getattr__ = lazy_exports(__name__, _HOMES)
