"""Inputs on which two programs are compared: random numbers, random bits, and the numbers at which casts differ."""

from __future__ import annotations

from collections.abc import Mapping
from math import prod

import numpy as np

from castsim.execution.inputs import make_inputs, random_codes
from castsim.execution.interpreter import ArgumentUse
from castsim.exploration.advice.suggestion import RunConfig
from castsim.isa.codes import Codes
from castsim.isa.formats import FloatFormat, Format, IntFormat, format_named
from castsim.numerics import abstract_policy, array_from_codes, cast_codes, code_dtype, codes_from_array

_WIDE = format_named("f64")
_STEPS = 24
"""Powers of two up to which neighbours and ties are tried."""


def boundary_numbers() -> list[float]:
    """Return numbers at which formats end and roundings tie: powers of two, halves, neighbours, both signs."""
    found = [0.0, 0.5, 1.0, 1.5, 2.5, 3.5, 448.0, 464.0, 480.0, 65504.0, 65519.0, 65520.0, 57344.0, 61440.0, 3.4e38]
    for power in (*range(-_STEPS, _STEPS), 31, 32, 53, 63, 64, 127, -126, -149):
        base = 2.0**power
        found += [base, base * (1 + 2**-11), base * (1 + 2**-8), base * (1 + 2**-4), base * 1.5, base - 0.5, base - 1]
    found += [float(value) + part for value in (126, 127, 128, 254, 255, 256, 32767, 32768) for part in (0, 0.49, 0.5)]
    return [*found, *(-value for value in found)]


def boundary_codes(fmt: Format, generator: np.random.Generator, size: int, number: int) -> Codes:
    """Return `size` codes of a format: all there are of a small one, else those of boundaries among random bits.

    The next `number` goes on where one ends, so that several hold all of them.
    """
    bits = fmt.bits
    if bits <= 16:
        every = np.random.default_rng(bits).permutation(1 << bits).astype(code_dtype(fmt))
        return np.resize(np.roll(every, -number * size), size)
    found = generator.integers(0, 1 << bits, size, dtype=np.uint64, endpoint=False) if bits < 64 else None
    drawn = generator.integers(0, 2**64 - 1, size, dtype=np.uint64, endpoint=True) if found is None else found
    codes = drawn.astype(code_dtype(fmt))
    special = np.random.default_rng(bits).permutation(_special(fmt))
    places = generator.permutation(size)[: (size + 1) // 2]
    codes[places] = np.resize(np.roll(special, -number * places.size), places.size)
    return codes


def _special(fmt: Format) -> Codes:
    if isinstance(fmt, IntFormat):
        ends = [0, 1, 2, -1, -2, fmt.minimum, fmt.maximum, fmt.minimum + 1, fmt.maximum - 1]
        ends += [sign * (2**power + more) for power in range(fmt.bits - 1) for more in (-1, 0, 1) for sign in (1, -1)]
        return np.array([value & ((1 << fmt.bits) - 1) for value in ends], np.uint64).astype(code_dtype(fmt))
    wide = np.array(boundary_numbers(), np.float64).view("<u8")
    codes = cast_codes(wide, _WIDE, fmt, abstract_policy(_WIDE, fmt))
    if not isinstance(fmt, FloatFormat):
        return codes
    extra = [code for code in (fmt.infinity_code, fmt.nan_code, 0, 1, 2) if code is not None]
    extra += [code | fmt.sign_bit for code in extra]
    return np.concatenate([codes, np.array(extra, codes.dtype)])


def ranged_codes(fmt: Format, generator: np.random.Generator, size: int, ends: tuple[float, float]) -> Codes:
    """Return codes of numbers between two ends, both of them among these: even over the range, and towards zero."""
    low, high = ends
    even = generator.uniform(low, high, size)
    small = even * np.exp2(-generator.integers(0, _STEPS, size).astype(np.float64))
    halves = np.round(even * 2) / 2
    drawn = np.where(generator.random(size) < 0.4, even, np.where(generator.random(size) < 0.5, small, halves))
    known = np.array([low, high, *(value for value in boundary_numbers() if low <= value <= high)])
    places = generator.permutation(size)[: min(known.size, size)]
    drawn[places] = known[: places.size]
    drawn = np.clip(drawn, low, high)
    if isinstance(fmt, IntFormat):
        values = np.clip(np.trunc(drawn), max(np.ceil(low), fmt.minimum), min(np.floor(high), fmt.maximum))
        return (values.astype(np.int64).astype(np.uint64) & np.uint64((1 << fmt.bits) - 1)).astype(code_dtype(fmt))
    codes = cast_codes(drawn.view("<u8"), _WIDE, fmt, abstract_policy(_WIDE, fmt))
    back = cast_codes(codes, fmt, _WIDE, abstract_policy(fmt, _WIDE)).view("<f8")
    inside = np.asarray(codes)[(back >= low) & (back <= high)]
    return np.resize(inside, size) if inside.size else codes


def trial_inputs(
    number: int, uses: Mapping[str, ArgumentUse], setting: RunConfig, deciding: frozenset[str] = frozenset()
) -> dict[str, Codes]:
    """Return the inputs of a trial: boundaries and random bits first, then plain random numbers, by turns.

    Those of which elements decide the path are small integers, numbers of elements, or zeros.
    """
    generator = np.random.default_rng([20, number])
    found: dict[str, Codes] = {}
    for name, use in uses.items():
        if not use.needs_input and name not in setting.inputs:
            continue
        size = prod(use.shape)
        ends = setting.ranges.get(name)
        if name in deciding:
            most = (2, 4, size, 1)[number % 4]
            codes = generator.integers(0, most, size).astype(code_dtype(use.format))
        elif ends is not None:
            codes = ranged_codes(use.format, generator, size, ends)
        elif number % 2 == 0:
            codes = boundary_codes(use.format, generator, size, number // 2)
        else:
            codes = random_codes(generator, use.format, (size,))
        found[name] = array_from_codes(codes.reshape(use.shape), use.format)
    return found


def given_inputs(uses: Mapping[str, ArgumentUse], setting: RunConfig) -> dict[str, Codes]:
    """Return the inputs that were given; arrays as they are."""
    named = {name: text for name, text in setting.inputs.items() if isinstance(text, str)}
    arrays = {name: array for name, array in setting.inputs.items() if not isinstance(array, str)}
    return {**make_inputs(named, uses), **arrays}


def bits_equal(one: Mapping[str, Codes], other: Mapping[str, Codes], uses: Mapping[str, ArgumentUse]) -> bool:
    """Whether two runs gave the same outputs to the bit; their shapes may differ."""
    if one.keys() != other.keys():
        return False
    for name, array in one.items():
        fmt = uses[name].format
        codes, others = codes_from_array(array, fmt).ravel(), codes_from_array(other[name], fmt).ravel()
        if not np.array_equal(codes, others):
            return False
    return True
