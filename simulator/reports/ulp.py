"""The distance between two results, in steps from one number of the format to the next."""

from __future__ import annotations

import math
from bisect import bisect_right
from functools import lru_cache

from castsim.isa.formats import Format, IntFormat, TaperedFormat
from castsim.numerics import value_of


def ulp_distance(first: int, second: int, fmt: Format) -> int | None:
    """Return the number of steps from one code's number up to another's, negative if they lead down.

    Both zeros are one number, infinity is one step beyond the largest. From NaN to NaN it is 0 steps, from NaN to a
    number there is no way: None.
    """
    one, other = ordinal(first, fmt), ordinal(second, fmt)
    if one is None or other is None:
        return 0 if one is other else None
    return other - one


def ordinal(code: int, fmt: Format) -> int | None:
    """Return the place of a number among those of its format, zero (or, without one, code 0) at 0; None for NaN."""
    value = value_of(code, fmt)
    if isinstance(fmt, IntFormat):
        return int(value)
    if math.isnan(value):
        return None
    magnitude = code & ~fmt.sign_bit if fmt.signed else code
    place = _tapered_place(magnitude, fmt) if isinstance(fmt, TaperedFormat) else magnitude
    return -place if fmt.signed and code & fmt.sign_bit else place


def _tapered_place(magnitude: int, fmt: TaperedFormat) -> int:
    if magnitude == 0:
        return 0
    codes, places = _tapered_places(fmt)
    index = bisect_right(codes, magnitude) - 1
    return places[index] + magnitude - codes[index]


@lru_cache(maxsize=8)
def _tapered_places(fmt: TaperedFormat) -> tuple[list[int], list[int]]:
    """Return the first code of every binade, rising, and the place of that code among the positive numbers."""
    place, found = 1, {}
    for binade in sorted(fmt.binades, key=lambda binade: binade.exponent):
        found[binade.first_code] = place
        place += 1 << binade.fraction_bits
    codes = sorted(found)
    return codes, [found[code] for code in codes]
