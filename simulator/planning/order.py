"""Codes of a wide format by their place in the order of values, and the codes nearest to zero first."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from castsim.isa.codes import Codes
from castsim.isa.formats import FloatFormat, Format, IntFormat
from castsim.numerics import code_dtype
from castsim.numerics.unpack import code_bits

Places = NDArray[np.uint64]


def is_ordered(fmt: Format) -> bool:
    """Whether the codes of all numbers follow each other as `codes_at` counts them."""
    return isinstance(fmt, IntFormat) or (isinstance(fmt, FloatFormat) and fmt.signed and fmt.has_negative_zero)


def number_count(fmt: Format) -> int:
    """Return how many codes stand for numbers, infinities and both zeros among them."""
    if isinstance(fmt, IntFormat):
        return 1 << fmt.bits
    assert isinstance(fmt, FloatFormat)
    return 2 * (_largest(fmt) + 1)


def codes_at(places: Places, fmt: Format) -> Codes:
    """Return codes by place: 0 is the lowest value, minus zero comes right before zero."""
    if isinstance(fmt, IntFormat):
        if not fmt.signed:
            return places.astype(code_dtype(fmt))
        codes = places - np.uint64(1 << (fmt.bits - 1))  # modulo 2**64
        mask = np.uint64((1 << code_bits(fmt)) - 1)
        return (codes & mask).astype(code_dtype(fmt))
    assert isinstance(fmt, FloatFormat)
    middle = np.uint64(_largest(fmt) + 1)
    negative = places < middle
    codes = np.where(negative, (middle - np.uint64(1) - places) | np.uint64(fmt.sign_bit), places - middle)
    return codes.astype(code_dtype(fmt))


def distinct(codes: Codes) -> Codes:
    """Return the codes without repetitions, in rising order; `np.unique` would load masked arrays."""
    rising = np.sort(codes, axis=None)
    found: Codes = rising[np.concatenate((np.ones(min(rising.size, 1), np.bool_), rising[1:] != rising[:-1]))]
    return found


def nearest_zero_first(codes: Codes, fmt: Format) -> NDArray[np.intp]:
    """Return the order of codes by magnitude, the positive of two first; NaN last."""
    if isinstance(fmt, IntFormat):
        values = codes.astype(np.uint64)
        if not fmt.signed:
            return np.argsort(values, kind="stable")
        left = np.uint64(64 - code_bits(fmt))
        signed = (values << left).view(np.int64) >> left.astype(np.int64)
        magnitude = np.where(signed < 0, np.uint64(0) - signed.view(np.uint64), signed.view(np.uint64))
        return np.lexsort((signed < 0, magnitude))
    sign = np.uint64(fmt.sign_bit)
    wide = codes.astype(np.uint64)
    return np.lexsort(((wide & sign) != 0, wide & ~sign))


def _largest(fmt: FloatFormat) -> int:
    """Code of the number of largest magnitude, infinity where there is one."""
    return fmt.max_finite_code if fmt.infinity_code is None else fmt.infinity_code
