"""Block quantisation in exact arithmetic, without a division and without a line of the product.

Numbers of f32, element midpoints (17 bits or fewer) times scales (24 bits) and largest elements times midpoints of
scales are exact in float64, so comparing them decides every rounding. Rules: docs/tools/quantise.md.
"""

from __future__ import annotations

import math
from functools import cache
from typing import Any

import numpy as np
from oracle_formats import FLOATS, INTS, codebook

POWERS = np.ldexp(1.0, np.arange(-1074, 1024))
"""Every power of two of float64."""


@cache
def ladder(element: str, unit: int) -> tuple[Any, Any]:
    """Magnitudes of an element format in rising order, and their codes."""
    if element in INTS:
        numbers = np.arange(1 - INTS[element].low)
        return np.ldexp(numbers.astype(float), unit), numbers
    numbers, codes = zip(*codebook(element)[:-1], strict=True)
    return np.ldexp(np.array(numbers, float), unit), np.array(codes)


def top_of(element: str, unit: int) -> float:
    """The largest finite element: of integers the positive one."""
    numbers, _ = ladder(element, unit)
    return float(numbers[-2 if element in INTS else -1])


def fraction_bits(element: str) -> int:
    if element in INTS:
        return INTS[element].bits - 2
    return 1 if element == "hif8" else FLOATS[element].fraction_bits


@cache
def scale_numbers(scale: str) -> Any:
    """The finite numbers of a scale format other than f32, in rising order."""
    return np.array([float(number) for number, _ in codebook(scale)[:-1]])


def scale_values(greatest: Any, element: str, unit: int, scale: str, rule: str) -> Any:
    """Scales of blocks from their largest magnitudes, by a rule of powers of two; NaN and zero as documented."""
    top, (low, high) = top_of(element, unit), scale_range(scale)
    at = math.floor(math.log2(top))
    clean = np.where(np.isfinite(greatest) & (greatest > 0), greatest, 1.0)
    if rule == "floor":
        powers = POWERS[np.searchsorted(POWERS, clean, side="right") - 1]
    elif rule == "ceil":
        powers = POWERS[np.searchsorted(POWERS, clean, side="left")]
    elif rule == "even":
        carries = POWERS[:-1] * (2 - 2.0 ** -(fraction_bits(element) + 1))
        powers = POWERS[np.searchsorted(carries, clean, side="right")]
    else:
        assert rule == "rceil"
        reach = POWERS[100:-40]  # whose products with the largest element are normal numbers
        at, powers = 0, reach[np.searchsorted(reach * top, clean, side="left")]
    with np.errstate(over="ignore"):
        found = np.clip(powers * 2.0**-at, low, high)
        infinite = high if rule == "rceil" else np.clip(2.0 ** (128 - at), low, high)
    return special(np.where(np.isinf(greatest), infinite, found), greatest, scale)


def special(scales: Any, greatest: Any, scale: str) -> Any:
    """Scales, with those of zeros and of blocks that hold NaN."""
    smallest = 2.0**-127 if scale == "e8m0" else 0.0
    return np.where(np.isnan(greatest), np.nan, np.where(greatest == 0, smallest, scales))


@cache
def scale_range(scale: str) -> tuple[float, float]:
    """The smallest and the largest power of two that a scale format has."""
    if scale == "f32":
        return 2.0**-149, 2.0**127
    powers = [float(each) for each in scale_numbers(scale) if each and math.frexp(each)[0] == 0.5]
    return powers[0], powers[-1]


def nearest_is_right(scales: Any, greatest: Any, element: str, unit: int, scale: str) -> Any:
    """Whether each scale is the number of its format nearest to the largest magnitude over the largest element."""
    top = top_of(element, unit)
    usual = np.isfinite(greatest) & (greatest > 0)
    if scale == "f32":
        held = np.where(usual, scales, 1.0).astype(np.float32)
        below, above = (np.nextafter(held, np.float32(end)).astype(float) for end in (0, np.inf))
        even = held.view(np.uint32) % 2 == 0
        most, least = float(np.finfo(np.float32).max), 2.0**-149
    else:
        numbers = scale_numbers(scale)
        at = np.clip(np.searchsorted(numbers, np.where(usual, scales, 1.0)), 0, len(numbers) - 1)
        held = numbers[at]
        below, above = numbers[np.maximum(at - 1, 0)], numbers[np.minimum(at + 1, len(numbers) - 1)]
        even = at % 2 == 0
        most, least = numbers[-1], numbers[numbers > 0][0]
    held = held.astype(float)
    first, last = (held + below) / 2 * top, (held + above) / 2 * top
    if scale == "e8m0":  # ties go up
        good = (greatest >= first) & (greatest < last)
    else:
        good = ((greatest > first) | ((greatest == first) & even)) & ((greatest < last) | ((greatest == last) & even))
    good |= (held == most) & (greatest >= first)
    good |= (held == least) & (greatest < last)
    expected = special(np.where(np.isinf(greatest), most, 0.0), greatest, scale)
    return np.where(usual, good & (held == np.where(usual, scales, 1.0)), same(scales, expected))


def same(found: Any, expected: Any) -> Any:
    """Where two arrays of float64 are equal, NaN to NaN."""
    return (found == expected) | (np.isnan(found) & np.isnan(expected))


def element_codes(numbers: Any, scales: Any, element: str, unit: int) -> Any:
    """Codes of elements: numbers of float64 over the scales of their blocks, rounded to nearest.

    Every step compares a number with a midpoint times a scale.
    """
    rungs, codes = ladder(element, unit)
    size, divisor = np.abs(numbers), np.where((scales == 0) | np.isnan(scales), 1.0, scales)
    place = np.zeros(numbers.shape, np.int64)
    step = 1 << (len(rungs) - 1).bit_length()
    middles = (rungs[1:] + rungs[:-1]) / 2
    ties_up = codes[1:] % 2 == 0 if element != "hif8" else np.ones(len(middles), bool)
    while step:
        tried = np.minimum(place + step, len(rungs) - 1) - 1
        middle = middles[tried] * divisor
        up = ((size > middle) | ((size == middle) & ties_up[tried])) & (place + step < len(rungs))
        place += np.where(up, step, 0)
        step >>= 1
    negative = np.signbit(numbers)
    if element in INTS:
        row = INTS[element]
        signed = np.where(negative, -place, np.minimum(place, row.high))
        return np.where(np.isnan(scales), 0, signed) & ((1 << row.bits) - 1)
    row = FLOATS[element]
    kept = negative & (row.negative_zero | (place > 0))
    return np.where(np.isnan(scales), row.nan or 0, codes[place] | np.where(kept, row.sign_code, 0))
