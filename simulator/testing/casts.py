"""Casts under test: converted as a chip or the abstract cast does, then compared."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike

import castsim
from castsim.isa.codes import Codes
from castsim.isa.errors import ReadError
from castsim.isa.formats import Format, IntFormat, format_named
from castsim.numerics import (
    FormatLike,
    array_from_codes,
    code_dtype,
    codes_from_array,
    decode_to_float64,
    encode_value,
    format_name,
    value_of,
)
from castsim.targets import Target

# Comparing codes element by element, and saying where they differ.

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


Oracle = Callable[[Codes], ArrayLike]
"""A function of the source array, in its native dtype or as codes, that returns the results likewise."""


@dataclass(frozen=True, slots=True)
class CheckedCast:
    """The results of a cast: `source` and `result` are codes with their formats."""

    source: Coded
    result: Coded
    label: str
    """The cast in messages, as in `f32 -> f16 on a2a3`."""

    @property
    def values(self) -> Codes:
        """The results in the native dtype of their format, or as codes where there is none."""
        return array_from_codes(self.result.codes, self.result.format)

    def assert_values(self, expected: Sequence[float | str]) -> None:
        """Assert that the results are these numbers; texts such as `1/3`, `nan` and `-inf` are numbers too.

        Any NaN stands for every NaN; zeros have a sign.

        Raises:
            AssertionError: one differs, or is not a number of the format.
        """
        __tracebackhide__ = True
        fmt = self.result.format
        encoded = [encode_value(value, fmt) for value in expected]
        wrong = [str(value) for value, one in zip(expected, encoded, strict=True) if one.inexact]
        if wrong:
            raise AssertionError(f"{self.label}: expected {', '.join(wrong)}, which {fmt.name} does not hold exactly")
        codes = np.array([one.code for one in encoded], code_dtype(fmt))
        self._compare(Coded(codes.reshape(self._shape(codes)), fmt), any_nan=True)

    def assert_bits(self, expected: ArrayLike) -> None:
        """Assert that the results are these codes, unsigned integers.

        Raises:
            AssertionError: one differs.
        """
        __tracebackhide__ = True
        codes = np.asarray(expected).astype(code_dtype(self.result.format))
        self._compare(Coded(codes.reshape(self._shape(codes)), self.result.format))

    def assert_equal(self, oracle: Oracle, *, any_nan: bool = False) -> None:
        """Assert that the results are those of a function of the source array, bit by bit.

        Args:
            oracle: takes the source array; returns an array of the native dtype of the result's format, or of codes.
            any_nan: whether every NaN is as good as every other.

        Raises:
            AssertionError: one differs, or the oracle's array has another shape or dtype.
        """
        __tracebackhide__ = True
        made = np.asarray(oracle(array_from_codes(self.source.codes, self.source.format)))
        self._compare(coded(made, self.result.format, f"{self.label}: the oracle's result"), any_nan=any_nan)

    def _shape(self, codes: Codes) -> tuple[int, ...]:
        """Return the shape of the results for a list of as many elements, else the list's own."""
        return self.result.codes.shape if codes.size == self.result.codes.size else codes.shape

    def _compare(self, expected: Coded, *, any_nan: bool = False) -> None:
        __tracebackhide__ = True
        assert_same(f"{self.label}: the result", self.result, expected, {"source": self.source}, any_nan=any_nan)


class CastChecker:
    """Called with what `castsim.cast` takes, returns a `CheckedCast`.

    castsim_cast([1.5, 70000.0], "f32", "f16", target="a2a3").assert_values([1.5, 65504.0])
    """

    def __call__(
        self,
        values: ArrayLike,
        src: FormatLike,
        dst: FormatLike | None = None,
        *,
        target: str | Path | Target | None = None,
        rounding: str | None = None,
        overflow: str | None = None,
        saturation: str | None = None,
        scratch: bool = False,
    ) -> CheckedCast:
        """Convert values.

        Args:
            values: an array of any shape, or numbers; numbers that the source format lacks are rounded to it.
            src, dst: formats; only one, of an array with a dtype, is that of the results.
            target, rounding, overflow, saturation, scratch: as for `castsim.cast`.

        Raises:
            CastsimError: as `castsim.cast`.
        """
        if dst is None:
            src, dst = np.asarray(values).dtype, src
        source, result = format_named(format_name(src)), format_named(format_name(dst))
        array = values if isinstance(values, np.ndarray) else _array(values, source)
        made = castsim.cast(
            array, src, dst, target=target, rounding=rounding, overflow=overflow, saturation=saturation, scratch=scratch
        )
        where = "" if target is None else f" on {target if isinstance(target, str | Path) else target.name}"
        label = f"{source.name} -> {result.name}{where}"
        return CheckedCast(
            Coded(codes_from_array(array, source), source), Coded(codes_from_array(made, result), result), label
        )


def _array(values: ArrayLike, fmt: Format) -> Codes:
    """Return numbers in the native dtype of a format, or as its codes where it has none.

    Raises:
        ReadError: a number that an integer format does not hold.
    """
    numbers = np.asarray(values)
    encoded = [encode_value(number, fmt) for number in numbers.reshape(-1).tolist()]
    if isinstance(fmt, IntFormat) and any(one.inexact for one in encoded):
        raise ReadError(f"{fmt.name} does not hold all of {str(numbers.tolist())[:60]}")
    return array_from_codes(np.array([one.code for one in encoded], code_dtype(fmt)).reshape(numbers.shape), fmt)
