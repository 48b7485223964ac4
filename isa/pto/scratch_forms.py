"""Forms of vector operations without the tmp tile that older assemblers want.

Newer ones give the operation a tile of its own (docs/reference/pto.md section 1.3).
"""

from __future__ import annotations

from collections.abc import Sequence

from castsim.isa.pto.value_types import ScalarType, Type
from castsim.isa.pto.vector_operations import VECTOR_OPERATIONS, Kind, Role, VectorOperation

_SPARED = (Kind.ROW_REDUCE, Kind.ROW_ARGUMENT, Kind.COLUMN_ARGUMENT, Kind.SELECT)
"""Kinds of which every older form has a tmp tile."""

Form = tuple[Role, ...]


def legal_forms(operation: VectorOperation) -> tuple[Form, ...]:
    """Return the operand lists that some assembler accepts."""
    if operation.kind not in _SPARED:
        return operation.forms
    return operation.forms + tuple(_without(form) for form in operation.forms if Role.TMP in form)


def form_of(operation: VectorOperation, types: Sequence[Type]) -> Form | None:
    """Return the form in which operands of these types stand, None if there is none."""
    scalar = [isinstance(kind, ScalarType) for kind in types]
    return next((one for one in legal_forms(operation) if [role is Role.SCALAR for role in one] == scalar), None)


def scratch_of(mnemonic: str, names: Sequence[str], types: Sequence[Type]) -> tuple[str, ...]:
    """Return those operands of an operation that are scratch tiles."""
    operation = VECTOR_OPERATIONS.get(mnemonic)
    form = () if operation is None else form_of(operation, types) or ()
    return tuple(name for role, name in zip(form, names, strict=False) if role is Role.TMP)


def form_with_tmp(operation: VectorOperation, form: Form) -> Form | None:
    """Return the form that has a tmp tile beside these operands, None if there is none or they have one."""
    return next((one for one in operation.forms if Role.TMP in one and _without(one) == form), None)


def is_older(operation: VectorOperation, form: Form, *, binary: bool) -> bool:
    """Whether older assemblers know a form too; `binary`: it carries that attribute."""
    return form in operation.forms and not (binary and Role.TMP not in form)


def _without(form: Form) -> Form:
    return tuple(role for role in form if role is not Role.TMP)
