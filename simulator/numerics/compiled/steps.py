"""The reference's steps on one element, for compiled code: unpack, normalise, shift and round, pack.

All values are unsigned words, 32 or 64 bits wide, including truth values (0 or 1) and exponents (made positive by
`EXPONENT_ZERO`). A significand's leading bit is the top bit of the word. `rounding.increment` decides whether to round
up, the same source as everywhere. `p` is a `Fields`, of constants or of words.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from enum import IntEnum
from math import isqrt
from typing import Any, NamedTuple, TypeVar, cast

import numba
import numpy as np
from llvmlite import ir
from numba import types
from numba.core.base import BaseContext
from numba.core.typing.context import Context
from numba.core.typing.templates import Signature
from numba.extending import intrinsic
from numpy.typing import NDArray

from castsim.isa.formats import (
    Codes,
    FloatFormat,
    Format,
    IntFormat,
    Overflow,
    Rounding,
    Specials,
    TaperedFormat,
    code_bits,
)
from castsim.numerics import rounding
from castsim.numerics.pack import infinity_codes, nan_codes, overflow_codes, tapered_layout, tapered_tables
from castsim.numerics.policy import HYBRID_WORDS, E8M0Rule, NanToFloat, Policy, is_power_format
from castsim.numerics.rounding import U64, UNGUARDED, rule_of

# The parameters of a compiled kernel: formats and policy of a cast as plain integers.
#
# The codes of special results come from the functions the reference uses, so there is one definition of each.

EXPONENT_ZERO = 1 << 13
"""Bias that keeps exponents above zero, beyond the range of f64 scaled by any shift."""


class FormatFamily(IntEnum):
    """Family of formats that unpack or pack alike."""

    FLOAT = 0
    INTEGER = 1
    TAPERED = 2
    POWER = 3
    BOOLEAN = 4


class Fields(NamedTuple):
    """One cast, for words of a given width. The names identify the side; `rule` and codes as in the reference."""

    src_width: int = 0
    src_signed: int = 0
    src_magnitude: int = 0
    src_fraction: int = 0
    src_fraction_mask: int = 0
    src_left: int = 0
    src_hidden: int = 0
    src_first: int = 0
    src_offset: int = 0
    src_flush: int = 0
    src_infinity: int = 0
    src_nan_above: int = 0
    src_nan_exact: int = 0
    src_nan_signed: int = 0
    src_one: int = 0
    normalise: int = 1
    dst_width: int = 0
    dst_fraction: int = 0
    dst_lowest: int = 0
    dst_highest: int = 0
    dst_largest: int = 0
    dst_signed_zero: int = 0
    dst_one: int = 0
    dst_cut: int = 0
    dst_flush: int = 0
    dst_clamps: int = 0
    dst_limit: int = 0
    dst_limit_negative: int = 0
    dst_mask: int = 0
    dst_extend: int = 0
    rule: int = 0
    rule_tiny: int = 0
    rule_widest: int = 0
    widest: int = 0
    draws: int = 0
    draw_mask: int = 0
    draw_left: int = 0
    draw_low: int = 0
    far_is_zero: int = 0
    over: int = 0
    over_negative: int = 0
    infinity: int = 0
    infinity_negative: int = 0
    nan: int = 0
    nan_negative: int = 0
    payload: int = 0
    payload_right: int = 0
    payload_left: int = 0
    payload_code: int = 0
    asl: int = 0
    saturates: int = 0
    root_of_two: int = 0


def family_of(fmt: Format) -> FormatFamily:
    """Return the family of a format as a destination; as a source, powers are floats."""
    if isinstance(fmt, IntFormat):
        return FormatFamily.BOOLEAN if fmt.boolean else FormatFamily.INTEGER
    if isinstance(fmt, TaperedFormat):
        return FormatFamily.TAPERED
    return FormatFamily.POWER if is_power_format(fmt) else FormatFamily.FLOAT


def word_bits(src: Format, dst: Format, policy: Policy) -> int:
    """Return the word width for computing a cast: 32 if everything fits."""
    wide = max(src.storage_bits, dst.storage_bits) > 32 or (policy.wrap_bits or 0) > 32
    return 64 if wide else 32


def fields_of(src: Format, dst: Format, policy: Policy) -> Fields:
    """Return the integers that describe a legal cast to the kernels."""
    bits = word_bits(src, dst, policy)
    fields = _source(src, policy, bits)
    fields |= _destination(dst, policy, bits)
    fields |= _rules(src, dst, policy)
    fields |= _special_codes(src, dst, policy)
    if isinstance(src, FloatFormat) and isinstance(dst, FloatFormat) and dst.has_zero:
        # Subnormal sources all lie among the destination's: the rounding position does not depend on their size.
        fields["normalise"] = int(src.min_exponent > dst.min_exponent)
    return Fields(**fields)


def _source(src: Format, policy: Policy, bits: int) -> dict[str, int]:
    ones = (1 << bits) - 1
    if isinstance(src, IntFormat):
        width = code_bits(src)
        return {"src_width": width, "src_signed": int(src.signed), "src_magnitude": (1 << width) - 1}
    fields = {
        "src_width": src.bits,
        "src_signed": int(src.signed),
        "src_magnitude": (1 << src.bits) - 1 - (src.sign_bit if src.signed else 0),
        "src_nan_signed": int(src.nan_has_sign),
        "src_infinity": ones if src.infinity_code is None else src.infinity_code,
        "src_nan_above": ones,
        "src_nan_exact": ones,
    }
    if isinstance(src, TaperedFormat):
        return fields | {"src_nan_exact": src.nan_code}
    if src.specials is Specials.NAN_NEGATIVE_ZERO:
        fields["src_nan_exact"] = src.sign_bit
    elif src.has_nan:
        fields["src_nan_above"] = src.infinity_code if src.infinity_code is not None else src.max_finite_code
    return fields | {
        "src_fraction": src.fraction_bits,
        "src_fraction_mask": src.fraction_mask,
        "src_left": bits - 1 - src.fraction_bits,
        "src_hidden": 1 << src.fraction_bits,
        "src_first": int(src.has_zero),
        "src_offset": EXPONENT_ZERO - src.bias,
        "src_one": _single_precision(src.min_exponent),
        "src_flush": int(policy.flush_source and src.has_zero),
    }


def _destination(dst: Format, policy: Policy, bits: int) -> dict[str, int]:
    fields = {"dst_width": dst.bits, "saturates": int(policy.overflow is Overflow.SATURATE)}
    if isinstance(dst, IntFormat):
        return fields | _integer_destination(dst, policy, bits)
    fields["dst_largest"] = dst.max_finite_code
    fields["dst_signed_zero"] = int(dst.has_negative_zero and not policy.drop_negative_zero)
    if isinstance(dst, TaperedFormat):
        lowest, highest = dst.binades[0].exponent, dst.binades[-1].exponent
        return fields | {"dst_lowest": EXPONENT_ZERO + lowest, "dst_highest": EXPONENT_ZERO + highest}
    return fields | {
        "dst_fraction": dst.fraction_bits,
        "dst_lowest": EXPONENT_ZERO + dst.min_exponent,
        "dst_one": _single_precision(dst.min_exponent),
        "dst_cut": _first_cut(dst),
        "dst_flush": int(policy.flush_result),
        "asl": int(policy.e8m0_rule is E8M0Rule.ASL),
        "root_of_two": isqrt(1 << (2 * bits - 1)),
    }


def _single_precision(exponent: int) -> int:
    """Return the f32 bits of a power of two, 0 beyond its normal range."""
    return (exponent + 127) << 23 if -126 <= exponent <= 127 else 0


def _first_cut(dst: FloatFormat) -> int:
    """Return the f32 bits of the largest finite number, if f32 holds it with room to spare.

    For small formats a number that overflows instead: the power of two beyond all exponents.
    """
    if dst.bits <= 8:
        return _single_precision(dst.exponent_mask + 1 - dst.bias)
    exponent = (dst.max_finite_code >> dst.fraction_bits) - dst.bias
    fraction = (dst.max_finite_code & dst.fraction_mask) << 23 >> dst.fraction_bits
    return _single_precision(exponent) + fraction


def _integer_destination(dst: IntFormat, policy: Policy, bits: int) -> dict[str, int]:
    limits: tuple[int, int] | None = (dst.maximum, -dst.minimum)
    if policy.overflow is Overflow.WRAP:
        half = 1 << (policy.wrap_bits or 1) - 1
        limits = (half - 1, half) if policy.wrap_bits else None
    ones = (1 << bits) - 1
    positive, negative = limits or (ones, ones)
    return {
        "dst_clamps": int(limits is not None),
        "dst_limit": positive,
        "dst_limit_negative": negative,
        "dst_mask": (1 << dst.bits) - 1,
        "dst_extend": -dst.minimum if code_bits(dst) > dst.bits else 0,
    }


def _rules(src: Format, dst: Format, policy: Policy) -> dict[str, int]:
    rounding = policy.rounding
    rule = UNGUARDED if rounding is Rounding.STOCHASTIC and not policy.stochastic_guard else rule_of(rounding)
    tiny, widest_rule, widest = rule, rule, 0
    if isinstance(dst, TaperedFormat):
        widest = max(binade.fraction_bits for binade in dst.binades)
        if rounding is Rounding.HYBRID:
            # As the reference: ties away where the fraction is widest, nothing below the smallest number's half.
            tiny, widest_rule = rule_of(Rounding.TRUNC), rule_of(Rounding.ROUND)
    elif policy.subnormal_rounding is not None:
        tiny = rule_of(policy.subnormal_rounding)
    mask, left, low = (0, 0, 0)
    if rounding is Rounding.HYBRID:
        mask, left, low = HYBRID_WORDS[src.name]
    return {
        "rule": rule,
        "rule_tiny": tiny,
        "rule_widest": widest_rule,
        "widest": widest,
        "draws": int(rounding in (Rounding.STOCHASTIC, Rounding.HYBRID)),
        "draw_mask": mask,
        "draw_left": left,
        "draw_low": low,
        "far_is_zero": int(policy.stochastic_far_zero),
    }


def _special_codes(src: Format, dst: Format, policy: Policy) -> dict[str, int]:
    fields: dict[str, int] = {}
    fields["infinity"], fields["infinity_negative"] = infinity_codes(dst, policy)
    fields["nan"], fields["nan_negative"] = nan_codes(dst, policy)
    if isinstance(dst, FloatFormat) and not dst.has_zero:
        assert dst.nan_code is not None
        fields["over"] = dst.nan_code  # of negative numbers too
    elif not isinstance(dst, IntFormat):
        fields["over"], fields["over_negative"] = overflow_codes(dst, policy)
    ieee = all(isinstance(fmt, FloatFormat) and fmt.specials is Specials.IEEE for fmt in (src, dst))
    if ieee and policy.nan_to_float is NanToFloat.PAYLOAD:
        source, destination = cast(FloatFormat, src), cast(FloatFormat, dst)
        narrowing = source.fraction_bits - destination.fraction_bits
        fields["payload"] = 1
        fields["payload_right"], fields["payload_left"] = max(narrowing, 0), max(-narrowing, 0)
        fields["payload_code"] = destination.exponent_mask << destination.fraction_bits
    return fields


TABLE_WIDTH = 1 << 8
"""Number of entries of a row of `tables_of`: codes of a tapered format without their sign, or its binades."""


def tables_of(src: Format | None, dst: Format | None, bits: int) -> U64 | NDArray[np.uint32]:
    """Return the rows that tapered formats need, as words: significand and exponent by source code without sign,
    first code and fraction bits by destination binade.
    """
    rows = np.zeros((4, TABLE_WIDTH), np.uint64)
    if isinstance(src, TaperedFormat):
        significands, exponents = tapered_tables(src)
        rows[0, : significands.size] = significands >> np.uint64(64 - bits)
        rows[1, : exponents.size] = np.maximum(exponents + EXPONENT_ZERO, 0).view(np.uint64)
    if isinstance(dst, TaperedFormat):
        first, fraction_bits = tapered_layout(dst)
        rows[2, : first.size] = first
        rows[3, : fraction_bits.size] = fraction_bits
    return rows.astype(np.dtype(f"u{bits // 8}"))


# Operations on unsigned words for compiled code.
#
# Python's operators on 32-bit integers widen to 64 bits in numba, and the loop loses half of its lanes or more. These
# stay in the type of their first operand, whatever the type of the second; shift counts must be below its width.

_EmitOne = Callable[[ir.IRBuilder, ir.Value], ir.Value]
_Emit = Callable[[ir.IRBuilder, ir.Value, ir.Value], ir.Value]
_Generate = Callable[[BaseContext, ir.IRBuilder, Signature, Sequence[ir.Value]], ir.Value]
_Typed = tuple[Signature, _Generate]
"""The return type of numba intrinsics: types and code generator."""
Word = Any
"""An unsigned word of compiled code, of the kernel's width, whose type only numba knows."""

KernelFunction = Callable[[Codes, Codes, Codes, Codes], bool]
"""A kernel before compilation: (codes, results, random words or a table, fields of the cast) -> whether it ran."""

Operation = Callable[..., Word]
"""An operation that compiled code calls."""

_plain: Callable[[types.Type], types.Type] = types.unliteral
"""The type of a constant as that of any number of its kind."""


def _binary(emit: _Emit) -> Operation:
    """Return an operation on two words from its emitter: (LLVM builder, first, second) -> result."""

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
"""Arithmetic right shift."""
band = _binary(lambda builder, a, b: builder.and_(a, b))
bor = _binary(lambda builder, a, b: builder.or_(a, b))
bxor = _binary(lambda builder, a, b: builder.xor(a, b))
lesser = _binary(_choose("<"))
greater = _binary(_choose(">"))
above = _binary(lambda builder, a, b: builder.zext(builder.icmp_unsigned(">", a, b), a.type))
"""1 if the first word is greater, otherwise 0."""
equal = _binary(lambda builder, a, b: builder.zext(builder.icmp_unsigned("==", a, b), a.type))
"""1 if the words are equal, otherwise 0."""
leading_zeros = _unary(lambda builder, a: builder.ctlz(a, ir.Constant(ir.IntType(1), 0)))


def _like(_context: Context, value: types.Type, model: types.Type) -> _Typed:
    kind = _plain(model)

    def generate(
        context: BaseContext, builder: ir.IRBuilder, signature: Signature, arguments: Sequence[ir.Value]
    ) -> ir.Value:
        # Every loop takes its codes by this operation. Where a processor has registers of 512 bits, LLVM uses half of
        # them by default on some, which takes 1.4 to 1.9 times as long. llvmlite knows no attributes of this kind.
        set.add(builder.function.attributes, '"prefer-vector-width"="512"')
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
"""`pick(condition, first, second)`: the first if the word `condition` is not 0, in the type of `condition`."""


def _called(name: str, kind: ir.Type) -> _EmitOne:
    """Emit a call of an LLVM intrinsic with one operand of its result's type."""

    def emit(builder: ir.IRBuilder, value: ir.Value) -> ir.Value:
        function = builder.module.declare_intrinsic(name, [kind])
        return builder.call(function, [value])

    return emit


_FLOAT, _HALF = ir.FloatType(), ir.HalfType()

float_of_bits = _unary(lambda builder, a: builder.bitcast(a, _FLOAT), types.float32)
bits_of_float = _unary(lambda builder, a: builder.bitcast(a, ir.IntType(32)), types.uint32)
QUIET_HALF, QUIET_HALF_NEGATIVE = 0x7E00, 0xFE00
"""The canonical NaN of f16."""


def _half_bits(builder: ir.IRBuilder, value: ir.Value) -> ir.Value:
    bits = builder.bitcast(builder.fptrunc(value, _HALF), ir.IntType(16))
    # The conversion keeps the sign of NaN and sets its first fraction bit. What may follow is cut off by two minima:
    # all other codes of that sign are smaller, those of the other sign too, as signed and as unsigned integers.
    positive = ir.Constant(bits.type, QUIET_HALF)
    bits = builder.select(builder.icmp_signed("<", bits, positive), bits, positive)
    negative = ir.Constant(bits.type, QUIET_HALF_NEGATIVE)
    bits = builder.select(builder.icmp_unsigned("<", bits, negative), bits, negative)
    return builder.zext(bits, ir.IntType(32))


half_bits_of_float = _unary(_half_bits, types.uint32)
"""The processor's conversion to f16, to nearest even, with canonical NaN."""
float_of_half_bits = _unary(
    lambda builder, a: builder.fpext(builder.bitcast(builder.trunc(a, ir.IntType(16)), _HALF), _FLOAT), types.float32
)
to_nearest = _unary(_called("llvm.rint", _FLOAT))
to_floor = _unary(_called("llvm.floor", _FLOAT))
to_ceil = _unary(_called("llvm.ceil", _FLOAT))
to_zero = _unary(_called("llvm.trunc", _FLOAT))
signed_of_float = _unary(lambda builder, a: builder.fptosi(a, ir.IntType(32)), types.uint32)
"""The conversion of a float in the range of int32 to the bits of that integer."""
unsigned_of_float = _unary(lambda builder, a: builder.fptoui(a, ir.IntType(32)), types.uint32)
float_of_signed = _unary(lambda builder, a: builder.sitofp(a, _FLOAT), types.float32)
"""The conversion of the bits of an int32 to a float, to nearest even."""
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
"""1 if the first float is at least the second, otherwise 0."""

_Step = TypeVar("_Step", bound=Callable[..., Word])


def inline(step: _Step) -> _Step:
    """Mark a function to be compiled into its callers."""
    return cast(_Step, numba.njit(forceinline=True)(step))


increment = inline(rounding.increment)


@inline
def unpack_float(code: Word, p: Word) -> Word:
    """Return sign, exponent, significand, whether NaN, whether infinite."""
    magnitude = band(code, p.src_magnitude)
    field = shr(magnitude, p.src_fraction)
    hidden = equal(greater(field, p.src_first), field)
    fraction = band(magnitude, p.src_fraction_mask)
    significand = shl(bor(fraction, pick(hidden, p.src_hidden, 0)), p.src_left)
    significand = pick(band(bxor(hidden, 1), p.src_flush), 0, significand)
    exponent = add(greater(field, p.src_first), p.src_offset)
    negative = band(shr(code, sub(like(p.src_width, code), 1)), p.src_signed)
    nan = bor(above(magnitude, p.src_nan_above), equal(code, p.src_nan_exact))
    negative = pick(nan, band(negative, p.src_nan_signed), negative)
    return negative, exponent, significand, nan, equal(magnitude, p.src_infinity)


@inline
def unpack_integer(code: Word, p: Word, top: Word) -> Word:
    """Return the same of an integer; `top` is the exponent of the word's leading place."""
    zero = like(0, code)
    negative = band(shr(code, sub(like(p.src_width, code), 1)), p.src_signed)
    magnitude = band(add(bxor(code, sub(zero, negative)), negative), p.src_magnitude)
    return negative, add(like(top, code), EXPONENT_ZERO), magnitude, zero, zero


@inline
def unpack_tapered(code: Word, p: Word, tables: Codes) -> Word:
    """Return the same of a tapered code; the tables are indexed by the code without its sign."""
    magnitude = band(code, p.src_magnitude)
    nan = equal(code, p.src_nan_exact)
    negative = band(shr(code, sub(like(p.src_width, code), 1)), bxor(nan, 1))
    exponent, significand = like(tables[1, magnitude], code), like(tables[0, magnitude], code)
    return negative, exponent, significand, nan, equal(magnitude, p.src_infinity)


@inline
def normalise(exponent: Word, significand: Word, last: Word) -> Word:
    """Shift the leading bit to the top; zero gets an exponent below every format. `last` is the top bit's number."""
    distance = band(leading_zeros(significand), last)
    return pick(significand, sub(exponent, distance), 0), shl(significand, distance)


@inline
def drawn_up(fraction: Word, significand: Word, far: Word, word: Word, p: Word) -> Word:
    """Compare the first 32 dropped bits with a word; zero never rounds up."""
    fraction = pick(band(far, p.far_is_zero), 0, fraction)
    up = band(bxor(above(like(word, fraction), fraction), 1), p.draws)
    return pick(significand, up, 0)


@inline
def shift_round(significand: Word, shift: Word, negative: Word, rule: Word, word: Word, p: Word, width: Word) -> Word:
    """Return the significand shifted right by at least 1 and rounded; bits may lie far below the word."""
    near = lesser(shift, width)
    kept = shr(shr(significand, 1), sub(near, 1))
    dropped = shl(significand, sub(like(width, significand), near))
    far = above(shift, width)
    beyond = sub(shift, near)
    distant = pick(above(beyond, width - 1), 0, shr(significand, band(beyond, width - 1)))
    lost = band(far, above(significand, 0))
    dropped = pick(far, distant, dropped)
    half = shr(dropped, width - 1)
    sticky = bor(above(shl(dropped, 1), 0), lost)
    drawn = drawn_up(shr(dropped, width - 32), significand, far, word, p)
    last = band(kept, 1)
    return add(kept, increment(last, half, sticky, negative, drawn, like(rule, kept)))


@inline
def pack_float(negative: Word, exponent: Word, significand: Word, word: Word, p: Word, width: Word) -> Word:
    """Return the code of a finite number in a float format, with overflow handled."""
    lowest = like(p.dst_lowest, exponent)
    below = sub(greater(lowest, exponent), exponent)
    field = sub(greater(exponent, lowest), lowest)
    # Without a leading bit it is a subnormal source of the destination's own smallest exponent.
    headless = bxor(shr(significand, width - 1), 1)
    rule = pick(bor(below, headless), p.rule_tiny, p.rule)
    shift = add(below, sub(like(width - 1, exponent), p.dst_fraction))
    kept = shift_round(significand, shift, negative, rule, word, p, width)
    kept = pick(band(equal(shr(kept, p.dst_fraction), 0), p.dst_flush), 0, kept)
    code = add(kept, shl(field, p.dst_fraction))
    return settle_sign(code, above(code, p.dst_largest), negative, p)


@inline
def settle_sign(code: Word, over: Word, negative: Word, p: Word) -> Word:
    """Apply the sign to a magnitude, or replace it if it is beyond the finite range."""
    signs = pick(bor(above(code, 0), p.dst_signed_zero), negative, 0)
    signed = bor(code, shl(signs, sub(like(p.dst_width, code), 1)))
    return pick(over, pick(negative, p.over_negative, p.over), signed)


@inline
def pack_tapered(
    negative: Word, exponent: Word, significand: Word, word: Word, p: Word, width: Word, tables: Codes
) -> Word:
    """Return the code of a finite number in a tapered format, with overflow handled; tables by binade."""
    lowest, highest = like(p.dst_lowest, exponent), like(p.dst_highest, exponent)
    below = sub(greater(lowest, exponent), exponent)
    index = sub(greater(lesser(exponent, highest), lowest), lowest)
    fraction = like(tables[3, index], exponent)
    shift = add(below, sub(like(width - 1, exponent), fraction))
    away = pick(above(below, 1), p.rule_tiny, p.rule)
    rule = pick(equal(fraction, p.widest), p.rule_widest, away)
    kept = shift_round(significand, shift, negative, rule, word, p, width)
    carried = shr(shr(kept, 1), fraction)
    inside = sub(add(like(tables[2, index], kept), kept), shl(like(1, kept), fraction))
    code = pick(carried, tables[2, add(index, 1)], inside)
    code = pick(kept, code, 0)
    last = equal(index, sub(highest, lowest))
    over = bor(above(exponent, highest), band(last, above(code, p.dst_largest)))
    return settle_sign(code, over, negative, p)


@inline
def pack_integer(negative: Word, exponent: Word, significand: Word, word: Word, p: Word, width: Word) -> Word:
    """Return the code of a finite number in an integer format, clamped or its low bits."""
    top = add(like(width - 1, exponent), EXPONENT_ZERO)
    shift = sub(greater(top, exponent), exponent)
    rounded = shift_round(significand, greater(shift, 1), negative, p.rule, word, p, width)
    left = sub(greater(exponent, top), top)
    lifted = pick(above(left, width - 1), 0, shl(significand, band(left, width - 1)))
    magnitude = pick(shift, rounded, lifted)
    limit = pick(negative, p.dst_limit_negative, p.dst_limit)
    wide = band(pick(significand, above(left, 0), 0), p.dst_clamps)
    magnitude = pick(wide, limit, lesser(magnitude, limit))
    code = band(add(bxor(magnitude, sub(like(0, magnitude), negative)), negative), p.dst_mask)
    return sub(bxor(code, p.dst_extend), p.dst_extend)


@inline
def rounded_power(negative: Word, exponent: Word, significand: Word, word: Word, p: Word, width: Word) -> Word:
    """Return the exponent of the power of two that the ONNX rule rounds to."""
    leading = shift_round(significand, like(width - 1, exponent), negative, p.rule, word, p, width)
    return add(exponent, equal(leading, 2))


@inline
def rounded_power_asl(exponent: Word, significand: Word, p: Word, width: Word) -> Word:
    """Return the exponent that the ASL rule rounds to: the nearest integer to the logarithm, by mode."""
    zero = like(EXPONENT_ZERO, exponent)
    sticky = bxor(equal(significand, shl(like(1, significand), width - 1)), 1)
    upper = above(significand, p.root_of_two)
    down = band(above(zero, exponent), sticky)
    # As the reference: the magnitude of a negative logarithm is one less than -e, plus what the fraction leaves.
    kept = pick(down, sub(sub(zero, exponent), 1), sub(exponent, zero))
    up = increment(band(kept, 1), band(bxor(upper, down), sticky), sticky, down, like(0, kept), like(p.rule, kept))
    grown = add(kept, up)
    return pick(down, sub(zero, grown), add(zero, grown))


@inline
def pack_power(negative: Word, exponent: Word, significand: Word, word: Word, p: Word, width: Word) -> Word:
    """Return the code of a finite number in a format of powers of two."""
    lowest, largest = like(p.dst_lowest, exponent), like(p.dst_largest, exponent)
    power = shl(like(1, significand), width - 1)
    zero = equal(significand, 0)
    onnx = rounded_power(negative, exponent, significand, word, p, width)
    rounded = pick(like(p.asl, exponent), rounded_power_asl(exponent, significand, p, width), onnx)
    top = add(lowest, largest)
    low = above(lowest, exponent)
    high = bor(above(exponent, top), band(equal(exponent, top), above(significand, power)))
    field = sub(lesser(greater(rounded, lowest), top), lowest)
    outside = bor(bor(low, high), bor(above(lowest, rounded), above(rounded, top)))
    invalid = bor(band(negative, bxor(zero, 1)), band(zero, p.asl))
    invalid = pick(like(p.saturates, exponent), invalid, bor(invalid, bor(zero, outside)))
    clamped = pick(low, 0, pick(high, largest, field))
    return pick(invalid, p.over, pick(like(p.saturates, exponent), clamped, field))


@inline
def settle_specials(code: Word, source: Word, negative: Word, nan: Word, infinite: Word, p: Word) -> Word:
    """Replace the results of infinities and NaN by their codes."""
    code = pick(infinite, pick(negative, p.infinity_negative, p.infinity), code)
    canonical = pick(negative, p.nan_negative, p.nan)
    fraction = shl(shr(band(source, p.src_fraction_mask), p.payload_right), p.payload_left)
    sign = shl(negative, sub(like(p.dst_width, negative), 1))
    kept = bor(bor(sign, p.payload_code), fraction)
    canonical = pick(band(above(fraction, 0), p.payload), kept, canonical)
    return pick(nan, canonical, code)
