"""Operations on unsigned words for compiled code.

Python's operators on 32-bit integers widen to 64 bits in numba, and the loop loses half of its lanes or more. These
stay in the type of their first operand, whatever the type of the second; shift counts must be below its width.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from llvmlite import ir
from numba import types
from numba.core.base import BaseContext
from numba.core.typing.context import Context
from numba.core.typing.templates import Signature
from numba.extending import intrinsic

from castsim.isa.codes import Codes

_EmitOne = Callable[[ir.IRBuilder, ir.Value], ir.Value]
_Emit = Callable[[ir.IRBuilder, ir.Value, ir.Value], ir.Value]
_Generate = Callable[[BaseContext, ir.IRBuilder, Signature, Sequence[ir.Value]], ir.Value]
_Typed = tuple[Signature, _Generate]
"""What numba requires of an intrinsic: its types and its code generator."""
Word = Any
"""An unsigned word of compiled code, of the width that a kernel is compiled for: numba knows its type, nobody else."""

KernelFunction = Callable[[Codes, Codes, Codes, Codes], None]
"""What a kernel is before it is compiled: (codes, results, random words or a table, fields of the cast)."""

Operation = Callable[..., Word]
"""An operation that compiled code calls."""

_plain: Callable[[types.Type], types.Type] = types.unliteral
"""The type of a constant as that of any number of its kind."""


def _binary(emit: _Emit) -> Operation:
    """Make an operation of two words out of what it emits: (LLVM builder, first, second) -> result."""

    def operation(_context: Context, first: types.Type, second: types.Type) -> _Typed:
        kind = _plain(first)

        def generate(
            context: BaseContext, builder: ir.IRBuilder, signature: Signature, arguments: Sequence[ir.Value]
        ) -> ir.Value:
            converted = context.cast(builder, arguments[1], signature.args[1], kind)
            return emit(builder, arguments[0], converted)

        return kind(kind, _plain(second)), generate

    return intrinsic(operation)


def _unary(emit: _EmitOne, result: types.Type | None = None) -> Operation:
    def operation(_context: Context, value: types.Type) -> _Typed:
        def generate(
            _codegen: BaseContext, builder: ir.IRBuilder, _signature: Signature, arguments: Sequence[ir.Value]
        ) -> ir.Value:
            return emit(builder, arguments[0])

        return (result or value)(value), generate

    return intrinsic(operation)


def _choose(predicate: str) -> _Emit:
    return lambda builder, a, b: builder.select(builder.icmp_unsigned(predicate, a, b), a, b)


add = _binary(lambda builder, a, b: builder.add(a, b))
sub = _binary(lambda builder, a, b: builder.sub(a, b))
shl = _binary(lambda builder, a, b: builder.shl(a, b))
shr = _binary(lambda builder, a, b: builder.lshr(a, b))
sar = _binary(lambda builder, a, b: builder.ashr(a, b))
"""Shift right, the top bit staying."""
band = _binary(lambda builder, a, b: builder.and_(a, b))
bor = _binary(lambda builder, a, b: builder.or_(a, b))
bxor = _binary(lambda builder, a, b: builder.xor(a, b))
lesser = _binary(_choose("<"))
greater = _binary(_choose(">"))
above = _binary(lambda builder, a, b: builder.zext(builder.icmp_unsigned(">", a, b), a.type))
"""1 where the first word is greater, else 0."""
equal = _binary(lambda builder, a, b: builder.zext(builder.icmp_unsigned("==", a, b), a.type))
"""1 where the words are equal, else 0."""
leading_zeros = _unary(lambda builder, a: builder.ctlz(a, ir.Constant(ir.IntType(1), 0)))


def _like(_context: Context, value: types.Type, model: types.Type) -> _Typed:
    kind = _plain(model)

    def generate(
        context: BaseContext, builder: ir.IRBuilder, signature: Signature, arguments: Sequence[ir.Value]
    ) -> ir.Value:
        return context.cast(builder, arguments[0], signature.args[0], kind)

    return kind(_plain(value), kind), generate


like: Operation = intrinsic(_like)
"""An integer in the type of a second one: `like(value, model)`."""


def _pick(_context: Context, condition: types.Type, first: types.Type, second: types.Type) -> _Typed:
    kind = _plain(condition)

    def generate(
        context: BaseContext, builder: ir.IRBuilder, signature: Signature, arguments: Sequence[ir.Value]
    ) -> ir.Value:
        chosen = [context.cast(builder, arguments[n], signature.args[n], kind) for n in (1, 2)]
        truth = builder.icmp_unsigned("!=", arguments[0], ir.Constant(arguments[0].type, 0))
        return builder.select(truth, *chosen)

    return kind(kind, _plain(first), _plain(second)), generate


pick: Operation = intrinsic(_pick)
"""`pick(condition, first, second)`: the first where the word `condition` is not 0, in the type of `condition`."""


def _called(name: str, kind: ir.Type) -> _EmitOne:
    """Emit a call of an LLVM intrinsic with one operand of its result's type."""

    def emit(builder: ir.IRBuilder, value: ir.Value) -> ir.Value:
        function = builder.module.declare_intrinsic(name, [kind])
        return builder.call(function, [value])

    return emit


_FLOAT, _HALF = ir.FloatType(), ir.HalfType()

float_of_bits = _unary(lambda builder, a: builder.bitcast(a, _FLOAT), types.float32)
bits_of_float = _unary(lambda builder, a: builder.bitcast(a, ir.IntType(32)), types.uint32)
half_bits_of_float = _unary(
    lambda builder, a: builder.zext(builder.bitcast(builder.fptrunc(a, _HALF), ir.IntType(16)), ir.IntType(32)),
    types.uint32,
)
"""The processor's conversion to f16, to nearest even; its NaN results are implementation-defined."""
float_of_half_bits = _unary(
    lambda builder, a: builder.fpext(builder.bitcast(builder.trunc(a, ir.IntType(16)), _HALF), _FLOAT), types.float32
)
to_nearest = _unary(_called("llvm.rint", _FLOAT))
to_floor = _unary(_called("llvm.floor", _FLOAT))
to_ceil = _unary(_called("llvm.ceil", _FLOAT))
to_zero = _unary(_called("llvm.trunc", _FLOAT))
signed_of_float = _unary(lambda builder, a: builder.fptosi(a, ir.IntType(32)), types.uint32)
"""A float in the range of int32, as the bits of that integer."""
unsigned_of_float = _unary(lambda builder, a: builder.fptoui(a, ir.IntType(32)), types.uint32)
float_of_signed = _unary(lambda builder, a: builder.sitofp(a, _FLOAT), types.float32)
"""The bits of an int32 as a float, to nearest even."""
float_of_unsigned = _unary(lambda builder, a: builder.uitofp(a, _FLOAT), types.float32)
double_bits_of_float = _unary(
    lambda builder, a: builder.bitcast(builder.fpext(a, ir.DoubleType()), ir.IntType(64)), types.uint64
)

float_bits_of_double_bits = _unary(
    lambda builder, a: builder.bitcast(builder.fptrunc(builder.bitcast(a, ir.DoubleType()), _FLOAT), ir.IntType(32)),
    types.uint32,
)
"""The processor's conversion of f64 to f32, to nearest even."""


def _float_choice(predicate: str) -> Operation:
    def operation(_context: Context, first: types.Type, second: types.Type) -> _Typed:
        def generate(
            _codegen: BaseContext, builder: ir.IRBuilder, _signature: Signature, arguments: Sequence[ir.Value]
        ) -> ir.Value:
            return builder.select(builder.fcmp_ordered(predicate, *arguments), *arguments)

        return types.float32(types.float32, types.float32), generate

    return intrinsic(operation)


lesser_float = _float_choice("<")
"""The lesser of two floats; the second if either is NaN."""
greater_float = _float_choice(">")
"""The greater of two floats; the second if either is NaN."""


def _float_at_least(_context: Context, first: types.Type, second: types.Type) -> _Typed:
    def generate(
        _codegen: BaseContext, builder: ir.IRBuilder, _signature: Signature, arguments: Sequence[ir.Value]
    ) -> ir.Value:
        return builder.zext(builder.fcmp_ordered(">=", *arguments), ir.IntType(32))

    return types.uint32(types.float32, types.float32), generate


float_at_least: Operation = intrinsic(_float_at_least)
"""The word 1 where the first float is at least the second, else 0."""
