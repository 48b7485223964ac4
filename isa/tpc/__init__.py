"""The assembly text of Habana TPC: reading, printing, the instruction table.

A module is imported when one of its names is used: a description of a chip names registers but parses no text.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from castsim.isa.lazy_exports import lazy_exports

if TYPE_CHECKING:
    from castsim.isa.tpc.forms import Dialect, Feature, Form, OperandSpec, Predication, Switch, Value
    from castsim.isa.tpc.instructions import FORMS, available, forms_of, mnemonics
    from castsim.isa.tpc.parser import (
        canonical_text,
        parse,
        print_bundle,
        print_declaration,
        print_instruction,
        print_program,
        target_declared_in,
        target_named_in,
    )
    from castsim.isa.tpc.program import (
        Bundle,
        Declaration,
        DimensionMask,
        Directive,
        File,
        Immediate,
        LabelDefinition,
        LabelUse,
        LoopComparison,
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
    "FORMS", "Bundle", "Declaration", "Dialect", "DimensionMask", "Directive", "Feature", "File", "Form",
    "Immediate", "LabelDefinition", "LabelUse", "LoopComparison", "Operand", "OperandSpec", "Predicate",
    "Predication", "Register", "RegisterDeclaration", "Slot", "Special", "Switch", "TableDeclaration",
    "TargetDeclaration", "TensorDeclaration", "TpcInstruction", "TpcProgram", "Value", "VlmDeclaration",
    "available", "canonical_text", "forms_of", "mnemonics", "parse", "print_bundle", "print_declaration",
    "print_instruction", "print_program", "target_declared_in", "target_named_in",
]  # fmt: skip

_HOMES = dict.fromkeys(__all__, "program") | {
    name: module
    for module, names in {
        "forms": ("Dialect", "Feature", "Form", "OperandSpec", "Predication", "Switch", "Value"),
        "instructions": ("FORMS", "available", "forms_of", "mnemonics"),
        "parser": (
            "canonical_text", "parse", "print_bundle", "print_declaration", "print_instruction", "print_program",
            "target_declared_in", "target_named_in",
        ),
    }.items()
    for name in names
}  # fmt: skip

__getattr__ = lazy_exports(__name__, _HOMES)
