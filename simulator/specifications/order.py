"""The order of codes by value."""

from __future__ import annotations

from functools import lru_cache

import numpy as np
from numpy.typing import NDArray

from castsim.isa.codes import Codes
from castsim.isa.formats import FloatFormat, Format, IntFormat, TaperedFormat
from castsim.numerics import decode_to_float64
from castsim.numerics.unpack import code_bits, tapered_tables

Keys = NDArray[np.int64]


def order_keys(codes: Codes, fmt: Format) -> Keys:
    """Return integers that are ordered as the numbers that codes stand for, consecutive where the numbers are.

    Minus zero comes right before zero, infinity right after the largest number. Keys of NaN mean nothing.
    """
    wide = codes.astype(np.uint64)
    if isinstance(fmt, IntFormat):
        if not fmt.signed:
            return (wide ^ np.uint64(1 << 63)).view(np.int64)
        left = np.uint64(64 - code_bits(fmt))
        return (wide << left).view(np.int64) >> left.astype(np.int64)
    sign = np.uint64(fmt.sign_bit)
    magnitude = wide & ~sign
    place = _places(fmt)[magnitude] if isinstance(fmt, TaperedFormat) else magnitude.view(np.int64)
    return np.where((wide & sign) != 0, -1 - place, place)


def is_nan(codes: Codes, fmt: Format) -> NDArray[np.bool_]:
    """Return a mask of the codes that are NaN."""
    if isinstance(fmt, IntFormat) or not fmt.has_nan:
        return np.zeros(codes.shape, bool)
    nan: NDArray[np.bool_]
    if isinstance(fmt, FloatFormat) and fmt.infinity_code is not None:  # all magnitudes beyond infinity's
        nan = (codes & (fmt.sign_bit - 1)) > fmt.infinity_code
    else:
        nan = np.isnan(decode_to_float64(codes, fmt))
    return nan


@lru_cache(maxsize=8)
def _places(fmt: TaperedFormat) -> Keys:
    """Return the rank of every code without sign among the positive numbers; code 0 has rank 0."""
    significand, exponent = tapered_tables(fmt)
    places = np.empty(significand.size, np.int64)
    places[np.lexsort((significand, exponent))] = np.arange(significand.size)
    return places
