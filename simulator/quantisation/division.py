"""Quotients of float64 that may be rounded once more: the bits behind the last one are kept in it."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

F64 = NDArray[np.float64]

_REACH = 400
"""Largest exponent of a quotient that any element or scale format could tell from a larger one."""

_SPLIT = float((1 << 27) + 1)


def quotient(numbers: F64, divisors: F64 | np.float64) -> F64:
    """Return numbers / divisors, rounded to odd at 53 bits, so that a further rounding is as if from the exact one.

    Divisors have up to 24 significant bits and are positive. Exponents beyond those of any narrow format are clamped;
    NaN and infinities divide as usual.
    """
    numerator, up = np.frexp(numbers)
    denominator, down = np.frexp(divisors)
    with np.errstate(invalid="ignore"):
        found = numerator / denominator
        finite = np.isfinite(found)
        # The remainder is exact: the halves of the quotient, of 26 and 27 bits, times 24 bits fit 53.
        spread = found * _SPLIT
        upper = spread - (spread - found)
        rest = (numerator - upper * denominator) - (found - upper) * denominator
    inexact = finite & (rest != 0)
    bits = found.view(np.int64)
    # Where the quotient was rounded away from zero, the truncated one is the number before it.
    away = inexact & ((rest < 0) != (found < 0))
    bits = np.where(away, bits - 1, bits) | inexact
    made: F64 = np.ldexp(bits.view(np.float64), np.clip(up - down, -_REACH, _REACH))
    return made
