"""Correctly rounded f32 values of elementary functions: what a result is where the vendor's tables are not known.

Nearly all come from f64; where that lies too near to the middle of two f32 numbers, decimal arithmetic decides.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from decimal import Decimal, localcontext
from fractions import Fraction

import numpy as np
from numpy.typing import NDArray

from castsim.isa.codes import Codes

_Words = NDArray[np.uint32]
_NAN = 0x7FFFFFFF
_DOUBT = 2.0**-47
"""Far above the relative error of the f64 functions."""
_DIGITS = 130
"""Enough for the reduction of the largest f32 number by pi, and 90 more."""
_MOST_POWER = 256
"""Powers up to here are computed exactly."""


def _pi() -> Decimal:
    """Return pi by Machin's formula."""
    return 4 * (4 * _atan_small(Decimal(1) / 5) - _atan_small(Decimal(1) / 239))


def _atan_small(x: Decimal) -> Decimal:
    """Return the arc tangent of a small number by its series."""
    total, power, n = x, x, 1
    while abs(power) > Decimal(10) ** -(_DIGITS + 5):
        power *= -x * x
        n += 2
        total += power / n
    return total


def _sin_cos(x: Decimal) -> tuple[Decimal, Decimal]:
    """Return sine and cosine, after the reduction to within pi by whole turns."""
    turn = 2 * _pi()
    r = x - turn * (x / turn).to_integral_value()
    sine, cosine, term, n = Decimal(0), Decimal(0), Decimal(1), 0
    while abs(term) > Decimal(10) ** -_DIGITS or n < 8:
        if n % 2:
            sine += term if n % 4 == 1 else -term
        else:
            cosine += term if n % 4 == 0 else -term
        n += 1
        term *= r / n
    return sine, cosine


def _acos(x: Decimal) -> Decimal:
    """Return the arc cosine: twice the arc tangent of sqrt((1 - x) / (1 + x)), halved to where the series is short."""
    if x == -1:
        return _pi()
    t = ((1 - x) / (1 + x)).sqrt()
    factor = 2
    while t > Decimal("0.1"):
        t = t / (1 + (1 + t * t).sqrt())
        factor *= 2
    return factor * _atan_small(t)


def _asinh(x: Decimal) -> Decimal:
    size = abs(x)
    return ((size + (size * size + 1).sqrt()).ln()).copy_sign(x)


def _tanh(x: Decimal) -> Decimal:
    power = (2 * x).exp()
    return (power - 1) / (power + 1)


def _pow(x: Decimal, y: Decimal) -> Decimal | Fraction:
    if y == y.to_integral_value() and abs(y) <= _MOST_POWER:
        return Fraction(x) ** int(y)
    found = (abs(x).ln() * y).exp()
    return -found if x < 0 and y % 2 else found


_EXACT: Mapping[str, Callable[..., Decimal | Fraction]] = {
    "acos": _acos,
    "asinh": _asinh,
    "cos": lambda x: _sin_cos(x)[1],
    "pow": _pow,
    "reciprocal": lambda x: 1 / Fraction(x),
    "sin": lambda x: _sin_cos(x)[0],
    "sqrt": lambda x: x.sqrt(),
    "tan": lambda x: _sin_cos(x)[0] / _sin_cos(x)[1],
    "tanh": _tanh,
}

_WIDE: Mapping[str, Callable[..., NDArray[np.float64]]] = {
    "acos": np.arccos,
    "asinh": np.arcsinh,
    "cos": np.cos,
    "pow": np.power,
    "reciprocal": np.reciprocal,
    "sin": np.sin,
    "sqrt": np.sqrt,
    "tan": np.tan,
    "tanh": np.tanh,
}
KNOWN = tuple(_WIDE)
"""The functions of this module."""


def rounded(function: str, *given: Codes) -> _Words:
    """Return the codes of the f32 nearest to a function's values, ties to even; operands are codes of f32.

    NaN is 0x7fffffff. Subnormal numbers are kept.
    """
    numbers = [np.asarray(each, "<u4").view("<f4").astype(np.float64) for each in given]
    with np.errstate(all="ignore"):
        values = np.asarray(_WIDE[function](*numbers), np.float64)
        nearest = values.astype("<f4")
        doubtful = (values * (1 - _DOUBT)).astype("<f4") != (values * (1 + _DOUBT)).astype("<f4")
        doubtful |= np.isfinite(values) & (np.abs(values) < 2.0**-1020) & (values != 0)
    found: _Words = nearest.view("<u4").copy()
    found[np.isnan(values)] = _NAN
    for place in np.flatnonzero(doubtful & np.isfinite(values)):
        found[place] = _decided(function, tuple(float(each[place]) for each in numbers), nearest[place])
    return found


def _decided(function: str, given: tuple[float, ...], near: np.float32) -> int:
    """Return the code nearest to a value by decimal arithmetic; f64 found a neighbour of it."""
    with localcontext() as context:
        context.prec = _DIGITS
        value = Fraction(_EXACT[function](*map(Decimal, given)))
    with np.errstate(all="ignore"):
        around = [near, np.nextafter(near, np.float32(-np.inf)), np.nextafter(near, np.float32(np.inf))]
    finite = [each for each in around if np.isfinite(each)]
    distances = [abs(Fraction(float(each)) - value) for each in finite]
    least = min(distances)
    best = [each for each, distance in zip(finite, distances, strict=True) if distance == least]
    codes = sorted((int(each.view(np.uint32)) for each in best), key=lambda code: code & 1)
    return codes[0]
