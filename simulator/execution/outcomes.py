"""Effects of casts on numbers: how many were rounded, clamped, wrapped, or overflowed.

They are derived from codes before and after. Comparisons are exact, also those of 64-bit integers with floats.
"""

from __future__ import annotations

import math
import sys
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from contextvars import ContextVar
from enum import StrEnum
from fractions import Fraction
from functools import cache
from typing import TYPE_CHECKING, Any, Generic, Literal, TypeVar, overload

import numpy as np
from numpy.typing import NDArray

import castsim
from castsim.isa.dataclass import dataclass, field, fields
from castsim.isa.errors import ReadError
from castsim.isa.formats import Codes, FloatFormat, Format, IntFormat, Rounding, code_bits
from castsim.numerics.blocks import code_dtype
from castsim.numerics.codec import decode_to_float64, value_of

if TYPE_CHECKING:
    from typing import TypeAlias

    import pandas
    import polars
    from matplotlib.figure import Figure

    Frame: TypeAlias = pandas.DataFrame | polars.DataFrame


Numbers = Codes
"""The values of codes: integers or floats of NumPy."""

_BLOCK = 1 << 14
"""Elements at a time: a block stays in the cache from the first comparison to the last."""


class Outcome(StrEnum):
    """The effect of a cast on a number.

    A number is beyond the range of a format if rounding, with larger numbers available, would give one of these.
    """

    EXACT = "exact"
    """The result is the same number. NaN that stays NaN counts, and so do zeros of either sign."""
    ROUNDED = "rounded"
    """The result is another number, and the number was within the range."""
    CLAMPED = "clamped"
    """The number was beyond the range and became the end of the range on its side."""
    WRAPPED = "wrapped"
    """The number was beyond the range and became another one, usually by its low bits."""
    OVERFLOW = "overflow"
    """The number became infinity, or NaN."""
    NAN = "nan"
    """NaN became a number."""


@dataclass(slots=True)
class Outcomes:
    """The number of elements per outcome; all others were exact."""

    elements: int = 0
    rounded: int = 0
    clamped: int = 0
    wrapped: int = 0
    overflow: int = 0
    nan: int = 0

    @property
    def exact(self) -> int:
        """Elements that stayed the same number."""
        return self.elements - self.rounded - self.clamped - self.wrapped - self.overflow - self.nan

    def add(self, other: Outcomes) -> None:
        """Add the counts of another object."""
        for attribute in fields(self):
            setattr(self, attribute.name, getattr(self, attribute.name) + getattr(other, attribute.name))


@dataclass(frozen=True, slots=True)
class Judge:
    """Judge of casts from one format to another, which finds the outcomes.

    `rounding` is the mode in force. `wraps` tells whether integers beyond the range keep their low bits, None if only
    the result shows it: then the end of the range counts as clamped.
    """

    src: Format
    dst: Format
    rounding: Rounding
    wraps: bool | None = None

    def outcome(self, before: int, after: int) -> Outcome:
        """Return the outcome of one element, given as codes."""
        codes = (np.array([code], code_dtype(fmt)) for code, fmt in ((before, self.src), (after, self.dst)))
        counts = self.count(*codes)
        return next(
            (candidate for candidate in Outcome if candidate is not Outcome.EXACT and getattr(counts, candidate)),
            Outcome.EXACT,
        )

    def count(self, before: Codes, after: Codes) -> Outcomes:
        """Return the outcomes of all elements; the arrays are codes of one shape."""
        counts = Outcomes(before.size)
        before, after = before.reshape(-1), after.reshape(-1)
        for start in range(0, before.size, _BLOCK):
            block = slice(start, start + _BLOCK)
            self._count(_numbers(before[block], self.src), _numbers(after[block], self.dst), counts)
        return counts

    @property
    def _limits(self) -> tuple[float, float]:
        """The end of the range; integer to integer is exact, but doubles do not hold all integers."""
        integers = isinstance(self.src, IntFormat) and isinstance(self.dst, IntFormat)
        return _ends(self.dst) if integers else limits(self.dst, self.rounding)

    def _count(self, x: Numbers, y: Numbers, counts: Outcomes) -> None:
        differ = _differ(x, y)
        changed = int(np.count_nonzero(differ))
        if not changed:
            return
        low, high = self._limits
        # NaN compares as False, and so do the smallest and the largest of numbers among which there is one.
        if low <= x.min().item() and x.max().item() <= high and (y.dtype.kind != "f" or bool(np.isfinite(y).all())):
            counts.rounded += changed
            return
        self._count_singly(x[differ], y[differ], counts)

    def _count_singly(self, x: Numbers, y: Numbers, counts: Outcomes) -> None:
        """Count changed elements, some of which are special or beyond the range."""
        low, high = self._limits
        lost, special = _is_nan(x), ~np.isfinite(y) if y.dtype.kind == "f" else np.zeros(y.shape, np.bool_)
        both = lost & _is_nan(y)
        counts.nan += int(np.count_nonzero(lost & ~both))
        counts.overflow += int(np.count_nonzero(special & ~lost))
        x, y = x[~(lost | special)], y[~(lost | special)]
        wide = x.astype(np.float64) if x.dtype.kind == "f" else x
        above, below = wide > high, wide < low
        smallest, largest = _ends(self.dst)
        ended = (above & (y == largest)) | (below & (y == smallest))
        if self.wraps and wide.dtype.kind == "f":
            ended &= np.isinf(wide)
        elif self.wraps:
            ended[:] = False
        beyond, clamped = int(np.count_nonzero(above | below)), int(np.count_nonzero(ended))
        counts.clamped += clamped
        counts.wrapped += beyond - clamped
        counts.rounded += x.size - beyond


@cache
def limits(fmt: Format, rounding: Rounding) -> tuple[float, float]:
    """Return the smallest and the largest double within the range of a format.

    Numbers between the largest number and its hypothetical successor are within the range if the mode rounds them to
    the largest. For stochastic rounding all of them are.
    """
    if isinstance(fmt, IntFormat):
        least, most, step, odd = Fraction(fmt.minimum), Fraction(fmt.maximum), Fraction(1), True
        low_odd = bool(fmt.minimum & 1)
    else:
        most = Fraction(value_of(fmt.max_finite_code, fmt))
        step, odd = _top_step(fmt), bool(fmt.max_finite_code & 1)
        least, low_odd = (-most, odd) if fmt.signed else (Fraction(value_of(0, fmt)), False)
    upper = _past(most, step, rounding, odd=odd, outward=Rounding.CEIL)
    if least > 0:  # powers of two: nothing is rounded to the smallest from beyond it
        return float(least), _double(*upper)
    lower = _past(-least, step, rounding, odd=low_odd, outward=Rounding.FLOOR)
    return -_double(*lower), _double(*upper)


def _past(end: Fraction, step: Fraction, rounding: Rounding, *, odd: bool, outward: Rounding) -> tuple[Fraction, bool]:
    """Return up to where numbers beyond an end are rounded to it, and whether that bound is one of them."""
    inward = Rounding.FLOOR if outward is Rounding.CEIL else Rounding.CEIL
    match rounding:
        case Rounding.TRUNC | Rounding.STOCHASTIC:
            return end + step, False
        case _ if rounding is inward:
            return end + step, False
        case _ if rounding is outward:
            return end, True
        case Rounding.ODD:
            return (end + step, False) if odd else (end, True)
        case Rounding.RINT:
            return end + step / 2, not odd
        case Rounding.HALF_UP:
            return end + step / 2, outward is Rounding.FLOOR
        case _:
            return end + step / 2, False


def _double(bound: Fraction, included: bool) -> float:
    """Return the largest double that does not exceed a bound, or is below it."""
    if bound >= Fraction(sys.float_info.max):
        return sys.float_info.max
    nearest = float(bound)
    while Fraction(nearest) > bound or (not included and Fraction(nearest) == bound):
        nearest = math.nextafter(nearest, -math.inf)
    return nearest


def _top_step(fmt: Format) -> Fraction:
    """Return the distance between the largest number of a float format and its hypothetical successor."""
    assert not isinstance(fmt, IntFormat)
    if isinstance(fmt, FloatFormat):
        exponent, bits = math.frexp(float(value_of(fmt.max_finite_code, fmt)))[1] - 1, fmt.fraction_bits
    else:
        exponent, bits = fmt.binades[-1].exponent, fmt.binades[-1].fraction_bits
    return Fraction(2) ** (exponent - bits)


@cache
def _ends(fmt: Format) -> tuple[float, float]:
    """Return the smallest and the largest finite number of a format."""
    if isinstance(fmt, IntFormat):
        return fmt.minimum, fmt.maximum
    most = float(value_of(fmt.max_finite_code, fmt))
    return (-most, most) if fmt.signed else (float(value_of(0, fmt)), most)


def _numbers(codes: Codes, fmt: Format) -> Numbers:
    """Return the exact values of codes: integers, floats of 32 bits, or of 64 for f64."""
    if isinstance(fmt, IntFormat):
        if fmt.bits >= 8:
            return np.ascontiguousarray(codes).view(f"<{'i' if fmt.signed else 'u'}{fmt.storage_bits // 8}")
        return _table(fmt)[codes]
    if fmt.bits >= 32:
        return np.ascontiguousarray(codes).view(f"<f{fmt.bits // 8}")
    if isinstance(fmt, FloatFormat) and (fmt.exponent_bits, fmt.fraction_bits) == (8, 7):
        return (codes.astype(np.uint32) << np.uint32(16)).view(np.float32)
    return _table(fmt)[codes]


@cache
def _table(fmt: Format) -> Numbers:
    """Return the numbers of all codes of a format of up to 16 bits."""
    used = np.arange(1 << code_bits(fmt), dtype=code_dtype(fmt))
    numbers = decode_to_float64(used, fmt)
    return numbers.astype(np.int8 if isinstance(fmt, IntFormat) else np.float32)


def _is_nan(numbers: Numbers) -> NDArray[np.bool_]:
    return np.isnan(numbers) if numbers.dtype.kind == "f" else np.zeros(numbers.shape, np.bool_)


def _differ(x: Numbers, y: Numbers) -> NDArray[np.bool_]:
    """Return where two arrays have different numbers, or one of them has NaN."""
    kinds = {x.dtype.kind, y.dtype.kind}
    with np.errstate(invalid="ignore"):  # signalling NaN
        if len(kinds) == 2 and "f" in kinds:
            whole, real = (y, x) if x.dtype.kind == "f" else (x, y)
            if whole.dtype.itemsize == 8:
                return ~_equal_wide(whole, real.astype(np.float64))
        return np.asarray(x != y)


def _equal_wide(whole: Numbers, real: NDArray[np.float64]) -> NDArray[np.bool_]:
    """Return where integers of 64 bits equal doubles: no common type of NumPy holds both."""
    info = np.iinfo(whole.dtype)
    in_range = (
        (real >= float(info.min)) & (real < float(info.max)) & (real == np.floor(real))
    )  # the double of max is max + 1
    as_whole = np.where(in_range, real, 0.0).astype(whole.dtype)
    return np.asarray(in_range & (as_whole == whole))


# Where a program casts, and what casts that come register by register did to their numbers.

_BATCH = 1 << 14
"""The number of elements judged together: judging a single register costs more than converting it."""


@dataclass(frozen=True, slots=True)
class CastPlace:
    """A cast of the source: its line, the instruction as reports print it, and the formats that it casts between.

    `number` separates casts of one line that are reported separately, None if a line has one row.
    """

    line: int
    op: str
    src: str
    dst: str
    number: int | None = None


@dataclass(slots=True)
class CastBatch:
    """Executions of one cast that one judge counts; some are queued first."""

    judge: Judge
    found: Outcomes
    _before: list[Codes] = field(default_factory=list)
    _after: list[Codes] = field(default_factory=list)
    _waiting: int = 0

    def add(self, before: Codes, after: Codes) -> None:
        """Add the codes of one execution, arrays of one size that nothing writes to later."""
        self._before.append(before)
        self._after.append(after)
        self._waiting += before.size
        if self._waiting >= _BATCH:
            self.finish()

    def finish(self) -> None:
        """Judge the queued executions."""
        if self._waiting:
            self.found.add(self.judge.count(np.concatenate(self._before), np.concatenate(self._after)))
        self._before.clear()
        self._after.clear()
        self._waiting = 0


@dataclass(slots=True)
class CastTally:
    """The outcomes of casts by position, in the order of their first execution."""

    _found: dict[CastPlace, Outcomes] = field(default_factory=dict)
    _batches: list[CastBatch] = field(default_factory=list)

    def batch(self, location: CastPlace, judge: Judge) -> CastBatch:
        """Return the batch for more executions of a cast; those at one position are counted together."""
        cast_batch = CastBatch(judge, self._found.setdefault(location, Outcomes()))
        self._batches.append(cast_batch)
        return cast_batch

    def add(self, location: CastPlace, counts: Outcomes) -> None:
        """Add outcomes that were already counted."""
        self._found.setdefault(location, Outcomes()).add(counts)

    def count(self, line: int, mnemonic: str, judge: Judge, before: Codes, after: Codes, *, converts: bool) -> None:
        """Count what an operation changes of the numbers of active lanes; one that only saturates may lose nothing."""
        counts = changes(judge, before, after, converts=converts)
        if counts is not None:
            src, dst = (judge.src if converts else judge.dst).name, judge.dst.name
            self.add(CastPlace(line, f"{mnemonic} {src} -> {dst}", src, dst), counts)

    def finish(self) -> Mapping[CastPlace, Outcomes]:
        """Return the outcomes of all executions, in the order of lines."""
        for batch in self._batches:
            batch.finish()
        return dict(sorted(self._found.items(), key=lambda entry: entry[0].line))


# What an operation changes beside casts: it tells whoever runs it, who knows its line and which lanes are active.

Listener = Callable[[Judge, Codes, Codes, bool], None]
"""Function that receives a judge, codes before and after, and whether every element counts or only misfits."""

_LISTENER: ContextVar[Listener | None] = ContextVar("listener", default=None)


@contextmanager
def heard_by(listener: Listener | None) -> Iterator[None]:
    """Call a listener for the changes of operations inside."""
    token = _LISTENER.set(listener)
    try:
        yield
    finally:
        _LISTENER.reset(token)


def tell_change(judge: Judge, before: Codes, after: Codes, *, converts: bool = True) -> None:
    """Report a conversion or (not `converts`) a saturation; the codes before and after have one shape."""
    listener = _LISTENER.get()
    if listener is not None:
        listener(judge, before, after, converts)


def changes(judge: Judge, before: Codes, after: Codes, *, converts: bool) -> Outcomes | None:
    """Return the outcomes; None if an operation that only saturates loses nothing (its rounding is arithmetic)."""
    counts = judge.count(before, after)
    if converts:
        return counts
    counts.rounded = 0
    return None if counts.exact == counts.elements else counts


# What results can do in a notebook: show themselves as HTML, become frames, draw themselves.
#
# How is the subject of a feature, whose functions `castsim` hands on when a result is first looked at; neither pandas
# nor polars nor matplotlib is imported before it is asked for.

TableName = TypeVar("TableName", bound=str)
"""The names of the tables of a kind of result."""


def notebook_function(name: str) -> Callable[..., Any]:
    """Return a function of the feature for notebooks, by its name in `castsim`.

    Raises:
        ReadError: this installation lacks the feature.
    """
    function: Callable[..., Any] | None = getattr(castsim, name, None)
    if function is None:
        raise ReadError("this castsim was installed without notebooks")
    return function


class NotebookMixin(Generic[TableName]):
    """A result that notebooks show, and that can be converted to frames."""

    __slots__ = ()

    def _repr_html_(self) -> str:
        """Return the HTML for a notebook: one self-contained element in the colours of the page."""
        html: str = notebook_function("presentation_of")(self).html()
        return html

    @overload
    def to_frame(self, table: TableName | None = None, *, library: Literal["pandas"]) -> pandas.DataFrame: ...

    @overload
    def to_frame(self, table: TableName | None = None, *, library: Literal["polars"]) -> polars.DataFrame: ...

    @overload
    def to_frame(self, table: TableName | None = None, *, library: None = None) -> Frame: ...

    def to_frame(self, table: TableName | None = None, *, library: Literal["pandas", "polars"] | None = None) -> Frame:
        """Return a table of the result as a frame; numbers are int64 or float64, words are strings.

        Args:
            table: its name; None takes the first table of the class.
            library: `pandas` or `polars`; None takes the installed one, pandas if both are.

        Raises:
            ReadError: the table or library does not exist, or is not installed: the extra `notebook` installs pandas.
            EngineError: the table needs cycles, which the result lacks.
            LimitError: the table has more rows than a frame should.
        """
        frame: Frame = notebook_function("presentation_of")(self).frame(table, library)
        return frame


class PlotMixin(NotebookMixin[TableName]):
    """A result that can also be drawn."""

    __slots__ = ()

    def plot(self) -> Figure:
        """Return a figure of the result (see its class), which notebooks show and `savefig` writes to a file.

        Raises:
            ReadError: matplotlib is not installed; the extra `notebook` installs it.
            EngineError: the figure shows cycles, and the result has none.
        """
        figure: Figure = notebook_function("plot_of")(self)
        return figure
