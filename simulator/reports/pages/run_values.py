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


def value_blocks(result: Result) -> Iterator[Block]:
    """Yield a histogram for each output that was computed."""
    for name, array in result.outputs.items():
        fmt = result.loaded.arguments[name].format
        shape = " x ".join(map(str, array.shape))
        yield from _blocks(f"Output {name}: {fmt.name} [{shape}]", array, fmt)


def _blocks(caption: str, array: Codes, fmt: Format) -> Iterator[Block]:
    codes = array if is_codes(array, fmt) else codes_from_array(array, fmt)
    values = decode_to_float64(np.ascontiguousarray(codes).reshape(-1), fmt)
    if not values.size:
        yield Text((Line(f"{caption}: no elements", "dim"),))
        return
    finite = values[np.isfinite(values)]
    marks = tuple((label, float(count)) for label, count in _counts(values, fmt))
    if not finite.size:
        yield Histogram(f"{caption}: no finite values", (), (), marks)
        return
    counts, edges = np.histogram(finite, bins=_edges(finite))
    low, high, mean = finite.min(), finite.max(), finite.mean()
    caption = f"{caption}, {low:.6g} .. {high:.6g}, mean {mean:.6g}"
    yield Histogram(caption, tuple(map(float, edges)), tuple(map(int, counts)), marks)


def _counts(values: NDArray[np.float64], fmt: Format) -> Iterator[tuple[str, int]]:
    """Yield how many values are special: those at the largest finite value of either sign are `saturated`."""
    low, high = finite_range(fmt)
    yield "values", values.size
    yield "saturated", int(np.count_nonzero((values == high) | ((values == low) & (low != 0))))
    yield "zero", int(np.count_nonzero(values == 0))
    if not isinstance(fmt, IntFormat):
        yield "NaN", int(np.count_nonzero(np.isnan(values)))
        yield "infinite", int(np.count_nonzero(np.isinf(values)))


def finite_range(fmt: Format) -> tuple[float, float]:
    """Return the least and the largest finite value of a format."""
    if isinstance(fmt, IntFormat):
        return float(fmt.minimum), float(fmt.maximum)
    ends = np.array([fmt.max_finite_code], dtype=np.uint64)
    dtype = np.dtype(f"u{max(1, fmt.storage_bits // 8)}")
    high = float(decode_to_float64(ends.astype(dtype), fmt)[0])
    return -high, high


def _edges(finite: NDArray[np.float64]) -> NDArray[np.float64]:
    """Return the edges of bins: one a value where there are few whole numbers, else equal ones."""
    low, high = float(finite.min()), float(finite.max())
    if high - low < _BINS and np.array_equal(finite, np.rint(finite)):
        return np.arange(low, high + 2)
    if not np.isfinite(high - low):
        return np.linspace(low / 2, high / 2, _BINS + 1) * 2
    return np.linspace(low, high, _BINS + 1)
