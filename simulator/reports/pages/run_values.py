"""The values of a run's outputs: their spread, and how many are special or at the ends of their format's range."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
from numpy.typing import NDArray

from castsim.isa.codes import Codes
from castsim.isa.formats import Format, IntFormat
from castsim.numerics.arrays import codes_from_array, is_codes
from castsim.numerics.codec import decode_to_float64
from castsim.reports.pages.blocks import Block, Histogram, Line, Text
from castsim.running import Result

_BINS = 48

_COUNTED = 16
"""Bits of formats whose codes are counted; of wider ones each element is looked at."""

_MOST = 1 << 22
"""Elements of wider formats that are looked at."""


def output_blocks(result: Result) -> Iterator[Block]:
    """Yield a histogram for each output that was computed."""
    for name, array in result.outputs.items():
        yield from value_blocks(name, array, result.loaded.arguments[name].format)


def value_blocks(name: str, array: Codes, fmt: Format) -> Iterator[Block]:
    """Yield the histogram of an output: numbers in the native dtype of their format, or codes."""
    caption = f"Output {name}: {fmt.name} [{' x '.join(map(str, array.shape))}]"
    codes = array if is_codes(array, fmt) else codes_from_array(array, fmt)
    if not codes.size:
        yield Text((Line(f"{caption}: no elements", "dim"),))
        return
    every = -(-codes.size // _MOST) if fmt.storage_bits > _COUNTED else 1
    if every > 1:
        caption = f"{caption}, one element in {every}"
    values, times = _distinct(np.ascontiguousarray(codes).reshape(-1)[::every], fmt)
    known = np.isfinite(values)
    marks = tuple((label, float(count)) for label, count in _counts(values, times, fmt))
    if not known.any():
        yield Histogram(f"{caption}: no finite values", (), (), marks)
        return
    finite, weights = values[known], None if times is None else times[known]
    counts, edges = _histogram(finite, weights, fmt)
    low, high = finite.min(), finite.max()
    mean = np.average(finite, weights=weights)
    caption = f"{caption}, {low:.6g} .. {high:.6g}, mean {mean:.6g}"
    yield Histogram(caption, tuple(map(float, edges)), tuple(map(int, counts)), marks)


def _distinct(codes: Codes, fmt: Format) -> tuple[NDArray[np.float64], NDArray[np.int64] | None]:
    """Return numbers and how often each is there; of formats with very many codes each element, None for once."""
    if fmt.storage_bits > _COUNTED:
        return decode_to_float64(codes, fmt), None
    times = np.bincount(codes)
    present = np.flatnonzero(times)
    return decode_to_float64(present.astype(codes.dtype), fmt), times[present]


def _counts(values: NDArray[np.float64], times: NDArray[np.int64] | None, fmt: Format) -> Iterator[tuple[str, int]]:
    """Yield how many values are special: those at the largest finite value of either sign are `saturated`."""

    def count(those: NDArray[np.bool_]) -> int:
        return int(np.count_nonzero(those) if times is None else times[those].sum())

    low, high = finite_range(fmt)
    yield "values", count(np.ones(values.shape, np.bool_))
    yield "saturated", count((values == high) | ((values == low) & (low != 0)))
    yield "zero", count(values == 0)
    if not isinstance(fmt, IntFormat):
        yield "NaN", count(np.isnan(values))
        yield "infinite", count(np.isinf(values))


def finite_range(fmt: Format) -> tuple[float, float]:
    """Return the least and the largest finite value of a format."""
    if isinstance(fmt, IntFormat):
        return float(fmt.minimum), float(fmt.maximum)
    ends = np.array([fmt.max_finite_code], dtype=np.uint64)
    dtype = np.dtype(f"u{max(1, fmt.storage_bits // 8)}")
    high = float(decode_to_float64(ends.astype(dtype), fmt)[0])
    return -high, high


def _histogram(
    finite: NDArray[np.float64], weights: NDArray[np.int64] | None, fmt: Format
) -> tuple[NDArray[np.int64], NDArray[np.float64]]:
    """Return counts and edges of bins.

    Of integers each bin holds equally many; a format of few values has one for each; of others they are equally wide.
    """
    low, high = float(finite.min()), float(finite.max())
    if isinstance(fmt, IntFormat) or (high - low < _BINS and np.array_equal(finite, np.rint(finite))):
        step = max(1.0, -(-(high - low + 1) // _BINS))
        counts, edges = np.histogram(finite, bins=np.arange(low, high + step + 1, step), weights=weights)
        if edges[-2] > high:
            counts, edges = counts[:-1], edges[:-1]
        return counts, edges
    distinct = np.unique(finite)
    if len(distinct) <= _BINS:
        counts, edges = np.histogram(finite, bins=np.append(distinct, np.nextafter(high, np.inf)), weights=weights)
    elif np.isfinite(high - low):
        counts, edges = np.histogram(finite, bins=_BINS, range=(low, high), weights=weights)
    else:
        counts, edges = np.histogram(finite / 2, bins=_BINS, range=(low / 2, high / 2), weights=weights)
        edges = edges * 2
    return counts, edges
