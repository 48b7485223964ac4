"""ADD, SUB and MUL of floats: the exact result, rounded once (docs/reference/tpc.md section 5.1)."""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache

import numpy as np

from castsim.isa.codes import Codes
from castsim.isa.errors import IllegalError
from castsim.isa.formats import FloatFormat
from castsim.isa.modes import Overflow, Rounding
from castsim.isa.tpc.program import TpcInstruction
from castsim.machines.vliw.semantics.configuration import arithmetic_rounding, configured
from castsim.machines.vliw.semantics.interface import State
from castsim.machines.vliw.semantics.lanes import is_nan
from castsim.machines.vliw.semantics.policies import nan_code
from castsim.numerics import NanToFloat, Policy
from castsim.numerics.pack import pack
from castsim.numerics.rounding import U64
from castsim.numerics.unpack import Mask, Unpacked, normalise, unpack
from castsim.targets.vliw import VliwTarget

_FLUSH_REGISTER = "f16_flush_inputs"
_FLUSH_SWITCH = "fp16_ftz_in"


@dataclass(frozen=True, slots=True)
class FloatRules:
    """The rules of an operation on floats: rounding, and whether subnormals become zero on their way in and out."""

    rounding: Rounding
    flush_operands: bool
    flush_results: bool


def rules_of(instruction: TpcInstruction, target: VliwTarget, state: State) -> FloatRules:
    """Return the rules of an instruction on floats, from configuration registers, options and switches."""
    values, name = target.special_values, instruction.type
    flushed = name in values.flushed and target.option("arithmetic_subnormals") == "flush"
    asked = instruction.switch(_FLUSH_SWITCH) == 1
    if _FLUSH_REGISTER in target.configuration:
        asked = asked or configured(state, target, _FLUSH_REGISTER) != 0
    requested = name in values.flushed_on_request and asked
    return FloatRules(arithmetic_rounding(target, state), flushed or requested, flushed)


def check_switches(instruction: TpcInstruction, target: VliwTarget) -> None:
    """Reject switches that mean nothing for floats.

    Raises:
        IllegalError: saturation, or flushing of a format that has no such switch.
    """
    legal = target.special_values.flushed_on_request
    if instruction.switch(_FLUSH_SWITCH) == 1 and instruction.type not in legal:
        message = f"{instruction.mnemonic}.{instruction.type} has no switch {_FLUSH_SWITCH}"
        raise IllegalError(message, span=instruction.span, legal=[f"{instruction.mnemonic}.{name}" for name in legal])
    if instruction.switch("st") == 1:
        message = f"{instruction.mnemonic}.{instruction.type} has no switch st"
        raise IllegalError(message, span=instruction.span, legal=("integer types",))


def add(a: Codes, b: Codes, fmt: FloatFormat, rules: FloatRules) -> Codes:
    """Return a + b.

    An exact zero is negative if both operands are, or if rounding goes down and they are not both positive.
    """
    first, second = (normalise(_unpacked(codes, fmt, rules)) for codes in (a, b))
    swap = second.exponent > first.exponent
    low, high = np.where(swap, first.exponent, second.exponent), np.where(swap, second.exponent, first.exponent)
    large, small = (
        np.where(swap, *pair) >> np.uint64(1)  # room for the carry
        for pair in ((second.significand, first.significand), (first.significand, second.significand))
    )
    distance = np.minimum(high - low, 63).view(np.uint64)
    shifted = small >> distance
    # What falls off is kept as one bit far below the last one that any format keeps.
    shifted |= (shifted << distance) != small
    large_negative = np.where(swap, second.negative, first.negative)
    opposite = first.negative != second.negative
    below = opposite & (shifted > large)
    magnitude = np.where(opposite, np.where(below, shifted - large, large - shifted), large + shifted)
    negative = large_negative ^ below
    nothing = magnitude == 0
    zero_sign = np.where(opposite, np.uint64(rules.rounding is Rounding.FLOOR), first.negative)
    negative = np.where(nothing, zero_sign, negative)

    infinities = tuple(_mask(one.infinite, a) for one in (first, second))
    negative = np.where(infinities[0], first.negative, np.where(infinities[1], second.negative, negative))
    nan = _mask(first.nan, a) | _mask(second.nan, a) | (infinities[0] & infinities[1] & opposite)
    result = Unpacked(negative, high + 1, magnitude, nan, (infinities[0] | infinities[1]) & ~nan)
    return _packed(result, fmt, rules)


def subtract(a: Codes, b: Codes, fmt: FloatFormat, rules: FloatRules) -> Codes:
    """Return a - b."""
    return add(a, b ^ b.dtype.type(fmt.sign_bit), fmt, rules)


def multiply(a: Codes, b: Codes, fmt: FloatFormat, rules: FloatRules) -> Codes:
    """Return a * b."""
    first, second = (_unpacked(codes, fmt, rules) for codes in (a, b))
    # No format here has more than 32 bits of significand: the halves hold them, and their product is exact.
    half = np.uint64(32)
    product = (first.significand >> half) * (second.significand >> half)
    infinite = _mask(first.infinite, a) | _mask(second.infinite, a)
    nothing = (first.significand == 0) & ~_special(first, a) | (second.significand == 0) & ~_special(second, a)
    nan = _mask(first.nan, a) | _mask(second.nan, a) | (infinite & nothing)
    exponent = first.exponent + second.exponent + 1
    result = Unpacked(first.negative ^ second.negative, exponent, product, nan, infinite & ~nan)
    return _packed(result, fmt, rules)


def negated(codes: Codes, fmt: FloatFormat) -> Codes:
    """Return the numbers with the other sign; NaN stays as it is."""
    return np.where(is_nan(codes, fmt), codes, codes ^ codes.dtype.type(fmt.sign_bit))


def _unpacked(codes: Codes, fmt: FloatFormat, rules: FloatRules) -> Unpacked:
    return unpack(codes.astype(np.uint64), fmt, rules.flush_operands)


def _mask(found: Mask | None, like: Codes) -> Mask:
    return np.zeros(like.shape, np.bool_) if found is None else found


def _special(value: Unpacked, like: Codes) -> Mask:
    return _mask(value.nan, like) | _mask(value.infinite, like)


@lru_cache(maxsize=64)
def _policy(fmt: FloatFormat, rounding: Rounding) -> Policy:
    return Policy(rounding, Overflow.SPECIAL, nan_to_float=NanToFloat.FIXED, nan_code=nan_code(fmt))


def _packed(result: Unpacked, fmt: FloatFormat, rules: FloatRules) -> Codes:
    codes = pack(result, fmt, _policy(fmt, rules.rounding))
    if rules.flush_results:
        codes = _flushed(codes, fmt, rules.rounding)
    return codes.astype(f"u{fmt.storage_bits // 8}")


def _flushed(codes: U64, fmt: FloatFormat, rounding: Rounding) -> U64:
    """Replace subnormal results: by zero of their sign, or by the smallest normal number where rounding leads there."""
    sign = codes & np.uint64(fmt.sign_bit)
    magnitude = codes ^ sign
    smallest = np.uint64(1 << fmt.fraction_bits)
    subnormal = (magnitude != 0) & (magnitude < smallest)
    away = {Rounding.CEIL: sign == 0, Rounding.FLOOR: sign != 0}.get(rounding, np.zeros(codes.shape, np.bool_))
    return np.where(subnormal, sign | np.where(away, smallest, np.uint64(0)), codes)
