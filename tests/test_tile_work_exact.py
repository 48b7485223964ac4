"""Remainders, shifts, taxpy, exponentials, logarithms and roots against exact arithmetic; unstated points."""

from __future__ import annotations

import math
from collections.abc import Callable
from decimal import Decimal, localcontext
from fractions import Fraction

import numpy as np
import oracle
import pytest
from work_model import NAN, special
from work_programs import NATIVE, Spot, computed, noise, program, statement, target

TARGETS = ("a2a3", "a5")
VALID = (3, 70)


def codes(values: np.ndarray | np.generic) -> np.ndarray:
    return np.asarray(values).view(f"<u{values.dtype.itemsize}")


def rounded(exact: Fraction, element: str) -> np.generic:
    """The nearest number, ties to the even code; found between the neighbours of NumPy's guess."""
    dtype = NATIVE[element]
    guess = np.array(float(exact)).astype(dtype)[()]
    near = [np.nextafter(guess, dtype.type(-np.inf)), guess, np.nextafter(guess, dtype.type(np.inf))]
    finite = [number for number in near if np.isfinite(number)]
    return min(finite, key=lambda number: (abs(Fraction(float(number)) - exact), codes(number) & 1))


def found(mnemonic: str, name: str, values: dict[Spot, np.ndarray], d: Spot, *options: tuple[str, str]) -> np.ndarray:
    """The valid region of the destination."""
    chip = target(name, *options)
    buffer = noise(chip)
    for spot, given in values.items():
        spot.put(buffer, given)
    return d.get(computed(program(statement(mnemonic, list(values), d), [*values, d]), chip, buffer))


def spots(element: str) -> tuple[Spot, Spot, Spot]:
    one, two, three = (Spot(n, element, 3, 128, at, VALID) for n, at in (("a", 0), ("b", 4096), ("d", 8192)))
    return one, two, three


@pytest.mark.parametrize("name", TARGETS)
def test_remainders_of_small_integers_are_exact(name: str) -> None:
    """Below 2^24 no step rounds: the sign is that of the divisor, of tfmod that of the dividend."""
    rng = np.random.default_rng(5)
    a, b, d = spots("i32")
    x, y = rng.integers(-(2**12), 2**12, VALID, dtype="<i4"), rng.integers(1, 99, VALID, dtype="<i4")
    y *= rng.choice(np.array([-1, 1], "<i4"), VALID)
    pairs = list(zip(x.ravel().tolist(), y.ravel().tolist(), strict=True))
    assert found("trem", name, {a: x, b: y}, d).ravel().tolist() == [p % q for p, q in pairs]
    assert found("tfmod", name, {a: x, b: y}, d).ravel().tolist() == [int(math.fmod(p, q)) for p, q in pairs]


@pytest.mark.parametrize("name", TARGETS)
def test_options_of_what_no_source_states(name: str) -> None:
    a, b, d = spots("i32")
    x, y = np.full(VALID, 7, "<i4"), np.zeros(VALID, "<i4")
    assert (found("trem", name, {a: x, b: y}, d) == 0).all()
    assert (found("trem", name, {a: x, b: y}, d, ("remainder_by_zero", "dividend")) == 7).all()
    y[:] = 33
    assert (found("tshl", name, {a: x, b: y}, d) == 0).all()
    assert (found("tshl", name, {a: x, b: y}, d, ("shift_beyond_width", "modulo")) == 14).all()
    assert (found("tshr", name, {a: -x, b: y}, d) == -1).all()


@pytest.mark.parametrize("name", TARGETS)
@pytest.mark.parametrize("element", ["f16", "f32"])
@pytest.mark.parametrize("rounding", ["once", "twice"])
def test_axpy_adds_to_what_is_there(name: str, element: str, rounding: str) -> None:
    """One rounding of the exact sum, by fractions; or two, in NumPy's own arithmetic."""
    kind, chip = NATIVE[element], target(name, ("axpy_rounding", rounding))
    a, _, d = spots(element)
    x, before = special(element, VALID, 1), special(element, VALID, 2)
    x[0, :8], before[0, :8] = kind.type(1 + 2.0**-10), -kind.type(1.25)
    s = kind.type(1.25 + 2.0**-9)
    buffer = noise(chip)
    a.put(buffer, x)
    d.put(buffer, before)
    text = program(statement("taxpy", [a, ("s", element)], d), [a, d], {"s": (hex(codes(s)), element)})
    result = d.get(computed(text, chip, buffer))
    with np.errstate(all="ignore"):
        rough = before + x * s
    for got, twice, u, v in zip(result.flat, rough.flat, x.flat, before.flat, strict=True):
        if not np.isfinite(twice):
            clamps = name == "a5" and element == "f16"
            limit = np.finfo(kind).max
            expected = (0 if np.isnan(twice) else math.copysign(limit, twice)) if clamps else twice
            assert float(got) == expected or (np.isnan(got) and np.isnan(expected))
            if np.isnan(got):
                assert codes(got) == NAN[element]
        elif rounding == "twice":
            assert got == twice
        else:
            exact = Fraction(float(u)) * Fraction(float(s)) + Fraction(float(v))
            assert got == rounded(exact, element), (u, v)


# --------------------------------------------------------------------- against 50-digit decimals, rounded by fractions
FUNCTIONS: dict[str, tuple[Callable[[Decimal], Decimal], float, float]] = {
    "texp": (lambda x: x.exp(), -20.0, 11.0),
    "tlog": (lambda x: x.ln(), 1e-3, 6e4),
    "tsqrt": (lambda x: x.sqrt(), 1e-3, 6e4),
    "trsqrt": (lambda x: 1 / x.sqrt(), 1e-3, 6e4),
}


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
    assert codes(found).ravel().tolist() == [codes(rounded(value, element)) for value in exact]


def test_the_rounding_of_this_test_is_the_oracles() -> None:
    values = np.random.default_rng(4).uniform(-9, 9, 200)
    right = oracle.cast_array(values.view(np.uint64), "f64", "f16", "rint", "special")
    assert [codes(rounded(Fraction(value), "f16")) for value in values.tolist()] == right.tolist()
