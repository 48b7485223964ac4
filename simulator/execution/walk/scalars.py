"""Scalar arithmetic of `.pto` programs: whatever decides the path or an address is computed here.

Integers are kept modulo 2^width (`index` has 64 bits, docs/reference/pto.md section 7.6) and read as signed. Every
value also knows how it depends on loops of which only some trips are walked (`castsim.execution.walk.dependence`).
"""

from __future__ import annotations

import struct
import sys
from collections.abc import Callable

import numpy as np

from castsim.execution.walk.affine import arithmetic_result, comparison_result, reduced
from castsim.execution.walk.dependence import Loops, Scalar, unknown
from castsim.execution.walk.fixed_width import signed, unsigned
from castsim.isa.errors import ReadError, Span
from castsim.isa.formats import format_named
from castsim.isa.pto import program as pto
from castsim.isa.pto.scalars import UNSIGNED
from castsim.numerics import abstract_policy, cast_codes

_FLOAT_CODES = {"f16": ("<e", "<H"), "f32": ("<f", "<I"), "f64": ("<d", "<Q")}
"""struct codes of a float and of the integer of its width; bf16 is the upper half of f32."""

_PREDICATES = {
    "eq": lambda a, b: a == b,
    "ne": lambda a, b: a != b,
    "slt": lambda a, b: a < b,
    "sle": lambda a, b: a <= b,
    "sgt": lambda a, b: a > b,
    "sge": lambda a, b: a >= b,
}


def width_of(kind: str) -> int:
    """Return the bits of a scalar type; `index` has 64."""
    return 64 if kind == "index" else int(kind.lstrip("bfiu"))


def constant(value: int | float, kind: str) -> int | float:
    """Return the value of a constant; an integer with a float type is a bit pattern."""
    is_pattern = not isinstance(value, float) and (kind in _FLOAT_CODES or kind == "bf16")
    return _from_bits(int(value), kind) if is_pattern else value


def argument_value(name: str, value: int | float, kind: str) -> int | float:
    """Return the value of a scalar argument of type `kind`; integers may be given as signed or as unsigned.

    Raises:
        ReadError: no whole number, or one that the type cannot hold.
    """
    if kind in _FLOAT_CODES or kind == "bf16":
        if isinstance(value, int) and abs(value) > sys.float_info.max:
            raise ReadError(
                f"argument %{name} is {kind}, and a number of {len(str(abs(value)))} digits leaves its range"
            )
        return value
    width = width_of(kind)
    low = 0 if kind[0] == "u" or width == 1 else -(1 << (width - 1))
    if (isinstance(value, float) and not value.is_integer()) or not low <= value < 1 << width:
        raise ReadError(
            f"argument %{name} is {kind}, not {value}", legal=(f"whole numbers {low} .. {(1 << width) - 1}",)
        )
    return signed(int(value), width)


def evaluate(node: pto.Arith | pto.Compare | pto.Convert, scalar_of: Callable[[str], Scalar], loops: Loops) -> Scalar:
    """Return the result of a scalar operation whose operands `scalar_of` finds by name.

    Raises:
        ReadError: division by zero. DependentError: a divisor depends on a loop.
    """
    if isinstance(node, pto.Convert):
        return convert(node.operation, scalar_of(node.operand), node.from_type.name, node.to_type.name)
    operands = [scalar_of(name) for name in node.operands]
    width = width_of(node.type.name)
    if isinstance(node, pto.Compare):
        return compare(node.predicate, operands[0], operands[1], width, loops)
    return arithmetic(node.operation, operands, width, node.span, loops)


def compare(predicate: str, left: Scalar, right: Scalar, width: int, loops: Loops | None = None) -> Scalar:
    """Evaluate `arith.cmpi`. `loops` are those that operands depend on."""
    a, b = int(left.value), int(right.value)
    if predicate in UNSIGNED:
        a, b = unsigned(a, width), unsigned(b, width)
    elif width == 1:
        a, b = -a, -b  # the one bit of a truth value is its sign
    value = int(_PREDICATES[UNSIGNED.get(predicate, predicate)](a, b))
    if loops is None or (left.constant and right.constant):
        return Scalar(value)
    return comparison_result(predicate, left, right, width, value, loops)


def arithmetic(operation: str, operands: list[Scalar], width: int, span: Span, loops: Loops | None = None) -> Scalar:
    """Evaluate an integer operation of the `arith` dialect, modulo 2^width. `loops` are those that operands depend on.

    Raises:
        ReadError: division by zero.
        DependentError: a divisor depends on a loop: it may be zero in a trip that is not walked.
    """
    if operation == "select":
        condition, yes, no = operands
        chosen = yes if condition.value else no
        return chosen if condition.constant else unknown(chosen.value, operands)
    left, right = operands
    a, b = int(left.value), int(right.value)
    if operation in ("divsi", "remsi", "divui", "remui"):
        if b == 0:
            raise ReadError(f"arith.{operation}: division by zero", span=span)
        if loops is not None and not right.constant:
            raise loops.refusal(right)
    value = signed(_integer(operation, a, b, width), width)
    if loops is None or (left.constant and right.constant):
        return Scalar(value)
    return arithmetic_result(operation, left, right, width, value, loops)


def _integer(operation: str, a: int, b: int, width: int) -> int:
    ua, ub = unsigned(a, width), unsigned(b, width)
    match operation:
        case "addi":
            return a + b
        case "subi":
            return a - b
        case "muli":
            return a * b
        case "divsi":
            return abs(a) // abs(b) * (1 if (a < 0) == (b < 0) else -1)
        case "remsi":
            return a - b * (abs(a) // abs(b) * (1 if (a < 0) == (b < 0) else -1))
        case "divui":
            return ua // ub
        case "remui":
            return ua % ub
        case "minsi" | "maxsi":
            return min(a, b) if operation == "minsi" else max(a, b)
        case "minui" | "maxui":
            return min(ua, ub) if operation == "minui" else max(ua, ub)
        case _:
            return _bitwise(operation, a, ua, ub, width)


def _bitwise(operation: str, a: int, ua: int, ub: int, width: int) -> int:
    """Shifts by the width or more give 0, or the sign for `shrsi` (MLIR leaves them undefined)."""
    match operation:
        case "andi":
            return ua & ub
        case "ori":
            return ua | ub
        case "xori":
            return ua ^ ub
        case "shli":
            return ua << ub if ub < width else 0
        case "shrui":
            return ua >> ub if ub < width else 0
        case "shrsi":
            return a >> min(ub, width - 1)
        case _:
            raise AssertionError(f"the parser let arith.{operation} through")


def convert(operation: str, operand: Scalar, from_kind: str, to_kind: str) -> Scalar:
    """Evaluate a width or type change.

    `index_cast`, `extsi` and `trunci` sign-extend or truncate, `extui` and `index_castui` zero-extend, `bitcast` keeps
    the bits.
    """
    if operation == "bitcast":
        converted = _from_bits(bits_of(operand.value, from_kind), to_kind)
        return _as_before(converted, operand) if from_kind[0] == to_kind[0] else _of_one(converted, operand)
    value = int(operand.value)
    if operation in ("extui", "index_castui"):
        value = unsigned(value, width_of(from_kind))
    elif width_of(from_kind) == 1:
        value = -value  # the one bit of a truth value is its sign
    if operand.slopes is None or value != operand.value or width_of(from_kind) == 1:
        return _of_one(signed(value, width_of(to_kind)), operand)
    return reduced(value, operand.slopes, width_of(to_kind))


def _of_one(value: int | float, operand: Scalar) -> Scalar:
    """Return a value computed from one operand in a way that is not affine."""
    return Scalar(value) if operand.constant else unknown(value, (operand,))


def _as_before(value: int | float, operand: Scalar) -> Scalar:
    return Scalar(value, operand.slopes, operand.periods)


def bits_of(value: int | float, kind: str) -> int:
    """Return the code of a value in a scalar type; a float is rounded to nearest, ties to even."""
    if kind in _FLOAT_CODES or kind == "bf16":
        wide, fmt = format_named("f64"), format_named(kind)
        (code,) = struct.unpack("<Q", struct.pack("<d", value))
        return int(cast_codes(np.array([code], "<u8"), wide, fmt, abstract_policy(wide, fmt))[0])
    return unsigned(int(value), width_of(kind))


def _from_bits(bits: int, kind: str) -> int | float:
    if kind == "bf16":
        return _from_bits(bits << 16, "f32")
    if kind in _FLOAT_CODES:
        as_float, as_int = _FLOAT_CODES[kind]
        return float(struct.unpack(as_float, struct.pack(as_int, bits))[0])
    return signed(bits, width_of(kind))
