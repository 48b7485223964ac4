"""Exponential, logarithm and reciprocal root against 50-digit decimals, rounded once by exact fractions."""

from __future__ import annotations

from collections.abc import Callable
from decimal import Decimal, localcontext
from fractions import Fraction

import numpy as np
import oracle
import pytest
from work_programs import NATIVE, Spot, computed, noise, program, statement, target

FUNCTIONS: dict[str, tuple[Callable[[Decimal], Decimal], float, float]] = {
    "texp": (lambda x: x.exp(), -20.0, 11.0),
    "tlog": (lambda x: x.ln(), 1e-3, 6e4),
    "tsqrt": (lambda x: x.sqrt(), 1e-3, 6e4),
    "trsqrt": (lambda x: 1 / x.sqrt(), 1e-3, 6e4),
}


def rounded(exact: Fraction, element: str) -> int:
    """The code of the nearest number, ties to even; found between the neighbours of NumPy's guess."""
    dtype = NATIVE[element]
    guess = np.array(float(exact)).astype(dtype)
    below, above = np.nextafter(guess, dtype.type(-np.inf)), np.nextafter(guess, dtype.type(np.inf))
    code = lambda value: int(np.array([value]).view(f"<u{dtype.itemsize}")[0])  # noqa: E731
    near = sorted((below, guess, above), key=lambda v: (abs(Fraction(float(v)) - exact), code(v) & 1))
    return code(near[0])


# A5 rounds the root and the quotient of trsqrt: that is among the formulas.
CASES = [(m, name) for m in FUNCTIONS for name in ("a2a3", "a5") if (m, name) != ("trsqrt", "a5")]


@pytest.mark.parametrize(("mnemonic", "name"), CASES)
@pytest.mark.parametrize("element", ["f16", "f32"])
def test_values_are_rounded_once(mnemonic: str, element: str, name: str) -> None:
    function, low, high = FUNCTIONS[mnemonic]
    rng = np.random.default_rng(3)
    x = np.exp(rng.uniform(np.log(low), np.log(high), 256)) if low > 0 else rng.uniform(low, high, 256)
    x = x.astype(NATIVE[element]).reshape(2, 128)
    a, d = Spot("a", element, 2, 128, 0), Spot("d", element, 2, 128, 4096)
    before = noise(target(name))
    a.put(before, x)
    found = d.get(computed(program(statement(mnemonic, [a], d), [a, d]), target(name), before))
    with localcontext() as context:
        context.prec = 50
        exact = [Fraction(function(Decimal(float(value)))) for value in x.ravel()]
    expected = [rounded(value, element) for value in exact]
    assert found.view(f"<u{a.size}").ravel().tolist() == expected


def test_the_rounding_of_this_test_is_the_oracles() -> None:
    values = np.random.default_rng(4).uniform(-9, 9, 200)
    codes = oracle.cast_array(values.view(np.uint64), "f64", "f16", "rint", "special")
    assert [rounded(Fraction(value), "f16") for value in values.tolist()] == codes.tolist()
