"""Rules for the scale of a block, from its largest magnitude.

Four give powers of two, whatever the scale format: `floor` (OCP MX 1.0, section 6.3), `ceil`, `even` (both after
the names in PyTorch's torchao) and `rceil` (NVIDIA's). `nearest` divides by the largest element, as kernels with f32
and e4m3 scales do. All are defined here on exact numbers; docs/quantisation.md has the table.
"""

from __future__ import annotations

import math
from enum import StrEnum

import numpy as np
from numpy.typing import NDArray

from castsim.isa.codes import Codes
from castsim.isa.formats import FORMATS, FloatFormat, Format, IntFormat, TaperedFormat
from castsim.isa.modes import Overflow, Rounding
from castsim.numerics import Policy, convert_codes, decode_to_float64
from castsim.quantisation.division import quotient

F64 = NDArray[np.float64]


class ScaleRule(StrEnum):
    """How a block's scale follows from its largest magnitude m; e is the exponent of the largest element."""

    FLOOR = "floor"
    """2**(floor(log2 m) - e): elements beyond the largest one are clamped."""
    CEIL = "ceil"
    """2**(ceil(log2 m) - e)."""
    EVEN = "even"
    """As floor, of m rounded to the fraction bits of the element, ties to even."""
    RCEIL = "rceil"
    """The smallest power of two by which m divided does not exceed the largest element."""
    NEAREST = "nearest"
    """m divided by the largest element, rounded to the scale format: ties to even, or up in e8m0."""


RULES = tuple(rule.value for rule in ScaleRule)

INFINITE_EXPONENT = 128
"""Of the power of two as which an infinity counts in the rules that take the exponent of m: that of f32's infinity."""


def largest(element: Format) -> float:
    """Return the largest finite element."""
    code = element.maximum if isinstance(element, IntFormat) else element.max_finite_code
    dtype = np.dtype(f"u{element.storage_bits // 8}")
    return float(decode_to_float64(np.array([code], dtype), element)[0])


def _top_fraction_bits(element: Format) -> int:
    """Return the fraction bits of the largest elements."""
    if isinstance(element, IntFormat):
        return element.bits - 2
    return element.binades[-1].fraction_bits if isinstance(element, TaperedFormat) else element.fraction_bits


def scale_codes(
    magnitudes: F64, element: Format, unit_exponent: int, scale: FloatFormat, rule: ScaleRule, *, zero_is_one: bool
) -> Codes:
    """Return the codes of the scales of blocks, given their largest magnitudes.

    A NaN gives the scale NaN. An infinity counts as 2**128 for floor, ceil and even, and gives the largest scale by
    rceil and nearest. Zeros have the smallest scale there is, zero where the format has it, or 1; other blocks have
    no scale below the smallest positive one.
    """
    top = math.ldexp(largest(element), unit_exponent)
    zero, nan = magnitudes == 0, np.isnan(magnitudes)
    greatest = np.where(zero | nan, 1.0, magnitudes)
    if rule is ScaleRule.NEAREST:
        exact = quotient(greatest, np.float64(top))
    else:
        low = scale.min_exponent - (scale.fraction_bits if scale.has_zero else 0)
        powers = _exponents(greatest, top, _top_fraction_bits(element), rule)
        exact = np.ldexp(1.0, np.clip(powers, low, math.frexp(largest(scale))[1] - 1))
    policy = Policy(Rounding.RINT if scale.has_zero else Rounding.ROUND, Overflow.SATURATE)
    codes = convert_codes(exact.view(np.uint64), FORMATS["f64"], scale, policy)
    if scale.has_zero:
        codes = np.maximum(codes, codes.dtype.type(1))
    codes = np.where(zero, codes.dtype.type(scale.bias << scale.fraction_bits if zero_is_one else 0), codes)
    assert scale.nan_code is not None
    return np.where(nan, codes.dtype.type(scale.nan_code), codes)


def _exponents(greatest: F64, top: float, fraction_bits: int, rule: ScaleRule) -> NDArray[np.int64]:
    """Return the exponents of the powers of two of blocks without zeros and NaN; `top` is the largest element."""
    fraction, exponent = np.frexp(greatest)  # fraction in [1/2, 1)
    top_fraction, top_exponent = math.frexp(top)
    powers: NDArray[np.int64] = exponent.astype(np.int64) - top_exponent
    if rule is ScaleRule.CEIL:
        powers += fraction != 0.5
    elif rule is ScaleRule.EVEN:
        powers += fraction >= 1 - math.ldexp(1, -fraction_bits - 2)
    elif rule is ScaleRule.RCEIL:
        powers += fraction > top_fraction
    infinite = np.iinfo(np.int32).max if rule is ScaleRule.RCEIL else INFINITE_EXPONENT + 1 - top_exponent
    return np.where(np.isinf(greatest), infinite, powers)
