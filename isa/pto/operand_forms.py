"""Forms of operations that share a name: gathers and moves (docs/reference/pto.md sections 7.7 and 7.12)."""

from __future__ import annotations

import re
from collections.abc import Sequence

from castsim.isa.pto.attributes import Attribute, Attributes, enum_word
from castsim.isa.pto.lexer import TokenKind
from castsim.isa.pto.packed import element_format
from castsim.isa.pto.program import ScalarType, TileType, Type
from castsim.isa.pto.statement_reader import PtoReader
from castsim.isa.pto.vector_operations import CHOOSING, DIRECTIONS, VECTOR_OPERATIONS, Kind, Role, VectorOperation

_WHOLE = re.compile(r"-?\d{1,10}")

DIRECTION = "direction"
"""Key under which the direction of a gather by pattern, which has none in the text, stands with the attributes."""


OFFSET = "offset"
"""Attribute of a gather by comparison: what is added to the numbers."""


def variant_of(mnemonic: str, attributes: Attributes, inputs: Sequence[Type], outputs: Sequence[Type]) -> str:
    """Return the mnemonic of the form that an operation is written in: of a gather and of a move there are three."""
    if "maskPattern" in attributes:
        return f"{mnemonic}.mask"
    if mnemonic == "tgather" and (len(outputs) > 1 or any(isinstance(kind, ScalarType) for kind in inputs)):
        return f"{mnemonic}.compare"
    return f"{mnemonic}{_boxes(inputs, outputs)}" if mnemonic == "tmov" else mnemonic


def _boxes(inputs: Sequence[Type], outputs: Sequence[Type]) -> str:
    """Return the end of the mnemonic of a move of bytes into boxes of the vector unit's buffer: none of another move.

    With scratch it is one of shared exponents (ZZ), else one of codes (NZ).
    """
    if not inputs or any(not isinstance(kind, TileType) or kind.foreign for kind in inputs) or len(outputs) != 1:
        return ""
    (dst,) = outputs
    bits = element_format(dst.element).storage_bits if isinstance(dst, TileType) else 0
    if not isinstance(dst, TileType) or dst.location != "vec" or dst.scatter_layout != "row_major" or bits != 8:
        return ""
    boxed = {("row_major", 2): ".zz", ("col_major", 1): ".nz"}
    return boxed.get((dst.block_layout, len(inputs)), "")


def check_comparison(reader: PtoReader, attributes: Attributes) -> None:
    """Reject attributes that a gather by comparison cannot have: another comparison, an offset that is no i32."""
    mode, offset = attributes.get("cmpMode"), attributes.get(OFFSET)
    if mode is not None:
        enum_word(reader, mode, "cmp", CHOOSING)
    if offset is not None and offset_of(offset.text) is None:
        raise reader.error(f"{OFFSET} is a number of type i32, not {offset.text}", offset.value_index, ("0 : i32",))


def offset_of(text: str) -> int | None:
    """Return the number of `5 : i32` or `5`, None if that is none."""
    number, _, kind = text.partition(" : ")
    return int(number) if kind in ("", "i32") and _WHOLE.fullmatch(number) and abs(int(number)) < 1 << 31 else None


def types_by_pattern(reader: PtoReader, attributes: Attributes) -> list[tuple[Type, int]]:
    """Read `type [, "row"]`, what stands behind the colon of a gather by pattern."""
    index = reader.position
    types = [(reader.type(), index)]
    if reader.take(","):
        index = reader.position
        text = reader.next_of(TokenKind.STRING, "a direction", DIRECTIONS)
        if text not in DIRECTIONS:
            raise reader.error(f"unknown direction {text}", index, DIRECTIONS)
        attributes[DIRECTION] = Attribute(text, index, index)
    return types


# Forms of vector operations without the tmp tile that older assemblers want.
#
# Newer ones give the operation a tile of its own (docs/reference/pto.md section 1.3).

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
