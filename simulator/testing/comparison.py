"""Comparing codes element by element, and saying where they differ."""

from __future__ import annotations

from collections.abc import Mapping
from typing import NamedTuple

import numpy as np

from castsim.isa.codes import Codes
from castsim.isa.errors import ReadError
from castsim.isa.formats import Format, IntFormat
from castsim.numerics import codes_from_array, decode_to_float64, value_of

MOST_SHOWN = 8
"""Differing elements that a message lists."""

_GAP = "  "


class Coded(NamedTuple):
    """An array of codes with their format."""

    codes: Codes
    format: Format


def coded(array: Codes, fmt: Format, what: str) -> Coded:
    """Return an array, of the native dtype of a format or of its codes, as codes.

    Raises:
        AssertionError: its dtype is neither; the message names the array by `what`.
    """
    try:
        return Coded(codes_from_array(np.asarray(array), fmt), fmt)
    except ReadError as error:
        raise AssertionError(f"{what}: {error.message}") from None


def element_text(code: int, fmt: Format) -> str:
    """Return a code in hexadecimal with the number it stands for: `0x3e00 1.5`."""
    value = value_of(code, fmt)
    number = str(int(value)) if isinstance(fmt, IntFormat) else repr(float(value))
    return f"0x{code & ((1 << fmt.bits) - 1):0{-(-fmt.bits // 4)}x} {number}"


def assert_same(
    what: str, got: Coded, expected: Coded, beside: Mapping[str, Coded] | None = None, *, any_nan: bool = False
) -> None:
    """Assert that two arrays hold the same codes.

    Args:
        what: the array's name in the message.
        got, expected: arrays of one format.
        beside: arrays whose elements at the same places the message shows; those of other shapes it leaves out.
        any_nan: whether every NaN is as good as every other.

    Raises:
        AssertionError: shapes or elements differ; the message lists the first ones, decoded.
    """
    __tracebackhide__ = True
    if got.codes.shape != expected.codes.shape:
        raise AssertionError(f"{what} has shape {list(got.codes.shape)}, expected {list(expected.codes.shape)}")
    apart = got.codes != expected.codes
    if any_nan and apart.any() and not isinstance(got.format, IntFormat):
        apart &= ~(np.isnan(_decoded(got)) & np.isnan(_decoded(expected)))
    count = int(np.count_nonzero(apart))
    if count == 0:
        return
    elements = f"element{'s' * (apart.size != 1)}"
    head = f"{what} differs in {count:,} of {apart.size:,} {elements} ({got.format.name})"
    raise AssertionError("\n".join([head, *_listed(apart, got, expected, beside or {}, count)]))


def _decoded(array: Coded) -> Codes:
    return decode_to_float64(array.codes, array.format)


def _listed(apart: Codes, got: Coded, expected: Coded, beside: Mapping[str, Coded], count: int) -> list[str]:
    """Return the lines of a table of the first differing elements."""
    columns = {"got": got, "expected": expected}
    columns |= {name: array for name, array in beside.items() if array.codes.shape == apart.shape}
    places = [np.unravel_index(flat, apart.shape) for flat in np.flatnonzero(apart)[:MOST_SHOWN]]
    rows = [("index", *columns)]
    rows += [
        (
            str([int(axis) for axis in place]),
            *(element_text(int(one.codes[place]), one.format) for one in columns.values()),
        )
        for place in places
    ]
    widths = [max(map(len, cells)) for cells in zip(*rows, strict=True)]
    lines = [
        _GAP + _GAP.join(f"{cell:{width}}" for cell, width in zip(row, widths, strict=True)).rstrip() for row in rows
    ]
    return [*lines, f"  and {count - MOST_SHOWN:,} more"] if count > MOST_SHOWN else lines
