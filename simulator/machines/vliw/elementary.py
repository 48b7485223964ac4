"""Correctly rounded f32 values of elementary functions: what a result is where the vendor's tables are not known.

Nearly all come from f64; where that lies too near to the middle of two f32 numbers, decimal arithmetic decides.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from decimal import Decimal, localcontext
from fractions import Fraction

import numpy as np
from numpy.typing import NDArray

from castsim.isa.codes import Codes
from castsim.isa.formats import FORMATS
from castsim.isa.tpc.program import Register, TpcInstruction
from castsim.machines.vliw.semantics import Effects, OperandValues, State
from castsim.machines.vliw.semantics.lanes import elements, merged, vector_of
from castsim.machines.vliw.semantics.registers import plain_registers
from castsim.machines.vliw.tables import Tables, function_of
from castsim.targets.vliw import VliwTarget

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


def _asin(x: Decimal) -> Decimal:
    return _pi() / 2 - _acos(x)


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
    "asin": _asin,
    "asinh": _asinh,
    "cos": lambda x: _sin_cos(x)[1],
    "div": lambda x, y: Fraction(x) / Fraction(y),
    "exp": lambda x: x.exp(),
    "pow": _pow,
    "pow2": lambda x: _pow(Decimal(2), x),
    "reciprocal": lambda x: 1 / Fraction(x),
    "rsqrt": lambda x: 1 / x.sqrt(),
    "sin": lambda x: _sin_cos(x)[0],
    "sqrt": lambda x: x.sqrt(),
    "tan": lambda x: _sin_cos(x)[0] / _sin_cos(x)[1],
    "tanh": _tanh,
}

_WIDE: Mapping[str, Callable[..., NDArray[np.float64]]] = {
    "acos": np.arccos,
    "asin": np.arcsin,
    "asinh": np.arcsinh,
    "cos": np.cos,
    "div": np.divide,
    "exp": np.exp,
    "pow": np.power,
    "pow2": np.exp2,
    "reciprocal": np.reciprocal,
    "rsqrt": lambda x: 1 / np.sqrt(x),
    "sin": np.sin,
    "sqrt": np.sqrt,
    "tan": np.tan,
    "tanh": np.tanh,
}
KNOWN = tuple(_WIDE)
"""The functions of this module."""
BINARY = ("div", "pow")
"""Those of two operands."""


def computed_by(name: str) -> str:
    """Return the function that one of the vendor's library computes: `v_exp_fast_f32` is `exp`."""
    return next(each for each in KNOWN if name.removeprefix("v_").startswith(f"{each}_"))


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


@dataclass(frozen=True, slots=True)
class Rounded:
    """`rounded.f32`, an instruction of castsim's own, ready to run: what a library function is without its table.

    The result is what the instructions before it have made of a table that has values, else the function of the
    operands, correctly rounded.
    """

    instruction: TpcInstruction
    target: VliwTarget
    tables: Tables

    def __call__(self, operands: OperandValues, state: State) -> Effects:
        """Return the values of all lanes."""
        number = function_of(self.instruction)
        assert number is not None
        table = self.tables.declared.get((False, number))
        known = None if table is None else self.tables.codes.get(table.name)
        if known is not None and known.any():
            return Effects(merged(operands.sources["src_c"], operands))
        fmt = FORMATS["f32"]
        function = str(self.instruction.switch("computes"))
        roles = ("src_a", "src_b") if function in BINARY else ("src_a",)
        found = rounded(function, *(elements(operands.sources[role], fmt) for role in roles))
        return Effects(merged(vector_of(found, fmt), operands))

    def registers(self) -> Mapping[str, tuple[Register, ...]]:
        """Return the registers that the operands stand for."""
        return plain_registers(self.instruction, self.target)
