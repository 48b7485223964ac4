"""The values of one key of a grid: one value, a list, or a range."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from decimal import Decimal
from math import isfinite
from typing import NoReturn

from castsim.exploration.sweeps.grid import DEFAULT, Setting
from castsim.isa.errors import ReadError, Span
from castsim.isa.formats import format_named
from castsim.isa.mode_words import mode_named
from castsim.isa.modes import Saturation
from castsim.isa.spans import SourceText
from castsim.isa.value_lists import read_value, read_values

MOST_VALUES = 10_000_000
"""Values of one key."""
LARGEST_EXTENT = 1 << 28
"""Rows, columns and strides of a cast: bytes of a tile stay within 63 bits."""

_EXTENTS = ("rows", "cols", "row_stride")
_RANGES = ("8", "[8, 16]", '"8..64"', '"8..64:8"', '"8..64*2"', "{ from = 8, to = 64, step = 8 }")
_WORDS = ('"word"', '["one", "two"]')
_RANGE_KEYS = ("from", "to", "step", "times")


def is_argument(name: str) -> bool:
    """Whether a key is `args.NAME`."""
    return name.startswith("args.")


def is_option(name: str) -> bool:
    """Whether a key is `option.NAME`."""
    return name.startswith("option.")


def bare(name: str) -> str:
    """Return NAME of `args.NAME` or `option.NAME`."""
    return name.partition(".")[2]


def read_axis(name: str, given: object, span: Span | None, table: str = "grid") -> Sequence[Setting]:
    """Return the values of a key, each once, in their order; `span` is its place, `table` the table that it stands in.

    Raises:
        ReadError: a malformed value or range, none at all, too many, a format or mode that there is not.
    """
    try:
        return _axis(name, given)
    except ReadError as error:
        raise ReadError(f"{table}.{name}: {error.message}", span=span, legal=error.legal) from None


def _axis(name: str, given: object) -> Sequence[Setting]:
    found: Sequence[Setting]
    if isinstance(given, Mapping):
        found = _range(name, given)
    else:
        items = given if isinstance(given, list | tuple | range) else [given]
        if len(items) > MOST_VALUES:
            _refuse_count(len(items))
        unique: dict[Setting, Setting] = {}
        for item in items:
            for value in _range(name, item) if isinstance(item, Mapping) else _values(name, item):
                unique.setdefault(meaning(name, value), value)
            if len(unique) > MOST_VALUES:
                _refuse_count(len(unique))
        found = tuple(unique.values())
        _refuse_inexact(name, found)
    if not found:
        raise ReadError("there are no values", legal=_legal(name))
    return found


def _values(name: str, item: object) -> Sequence[Setting]:
    """Return what one item of a list stands for."""
    if isinstance(item, Decimal | float) and is_argument(name) and isfinite(item):
        return (float(item),)
    if isinstance(item, int) and not isinstance(item, bool):
        if not _has_numbers(name):
            raise ReadError(f"{item} is not a word", legal=_WORDS)
        _refuse_long(name, (item,))
        return (item,)
    if not isinstance(item, str) or not item:
        raise ReadError(f"{shown(item)} is not a value", legal=_legal(name))
    if (name in _EXTENTS and not (name == "row_stride" and item == DEFAULT)) or (is_argument(name) and ".." in item):
        return _typed_range(name, item)
    return (_typed_argument(item),) if is_argument(name) else (item,)


def _typed_argument(text: str) -> int | str:
    """Return an argument that is written as text: digits are a number, as in `--arg NAME=16`."""
    try:
        return read_value(text, Span("", 1, 1))
    except ReadError:  # whether a program takes such a text, its run tells
        return text


def _typed_range(name: str, text: str) -> Sequence[Setting]:
    try:
        found = read_values(SourceText("", text), 0, len(text))
    except ReadError as error:  # without its place, which is one in the text
        raise ReadError(error.message, legal=_RANGES) from None
    for value in found:
        if isinstance(value, str):
            raise ReadError(f"'{value}' is not an integer", legal=_RANGES)
    return found


def _range(name: str, given: Mapping[str, object]) -> Sequence[Setting]:
    """Return the values of `{ from = 8, to = 64, step = 8 }`, the end included if a step leads there."""
    if not _has_numbers(name):
        raise ReadError("only numbers have ranges", legal=_WORDS)
    for key, value in given.items():
        if key not in _RANGE_KEYS:
            raise ReadError(f"unknown key '{key}' of a range", legal=_RANGE_KEYS)
        if not isinstance(value, int) or isinstance(value, bool):
            raise ReadError(f"'{key}', {shown(value)}, is not an integer", legal=_RANGES)
    numbers = {key: value for key, value in given.items() if isinstance(value, int)}
    missing = [key for key in ("from", "to") if key not in numbers]
    if missing:
        raise ReadError(f"the range has no '{missing[0]}'", legal=_RANGES)
    _refuse_long(name, numbers.values())
    first, last = numbers["from"], numbers["to"]
    if "step" in numbers and "times" in numbers:
        raise ReadError("the range has both 'step' and 'times'", legal=_RANGES)
    if "times" in numbers:
        times = numbers["times"]
        if times < 2 or first < 1:
            raise ReadError("the range never gets to its end", legal=_RANGES)
        found = []
        while first <= last:
            found.append(first)
            first *= times
        return _checked(name, tuple(found))
    step = numbers.get("step", 1)
    if step < 1:
        raise ReadError("the range never gets to its end", legal=_RANGES)
    count = (last - first) // step + 1  # a range may have more than Python counts
    if count > MOST_VALUES:
        _refuse_count(count)
    return _checked(name, range(first, last + 1, step))


def _checked(name: str, found: Sequence[int]) -> Sequence[int]:
    if not found:
        raise ReadError("the range is empty: it ends before it begins", legal=_RANGES)
    for value in (found[0], found[-1]):
        meaning(name, value)
    return found


def meaning(name: str, value: Setting) -> Setting:
    """Return what a value of a key stands for: two spellings of one format, mode or number have the same.

    Raises:
        ReadError: it cannot be a value of this key.
    """
    if name in _EXTENTS:
        if isinstance(value, int) and not -LARGEST_EXTENT <= value <= LARGEST_EXTENT:
            raise ReadError(f"{value} is too large", legal=(f"up to {LARGEST_EXTENT}",))
        return value
    try:
        if name in ("src", "dst"):
            return format_named(str(value)).name
        if name == "saturation" and value != DEFAULT:
            return str(mode_named(Saturation, str(value), "saturation"))
        if name == "rounding":  # which modes there are, the target says
            return str(value).lower()
    except ReadError as error:
        legal = (*error.legal, DEFAULT) if name == "saturation" else error.legal
        raise ReadError(error.message, legal=legal) from None
    return str(value) if is_option(name) else value


def shown(item: object) -> str:
    """Return a value much as TOML writes it, for messages."""
    if isinstance(item, bool):
        return str(item).lower()
    return f"{item!r:.80}" if isinstance(item, str | list | dict) else f"{item!s:.80}"


def _has_numbers(name: str) -> bool:
    return name in _EXTENTS or is_argument(name) or is_option(name)


def _legal(name: str) -> tuple[str, ...]:
    return _RANGES if name in _EXTENTS or is_argument(name) else _WORDS


def _refuse_long(name: str, numbers: Iterable[int]) -> None:
    """Refuse numbers that no column of integers holds."""
    for number in numbers:
        if not -(1 << 63) <= number < 1 << 63:
            raise ReadError("a whole number does not fit into 64 bits", legal=_legal(name))


def _refuse_inexact(name: str, found: Sequence[Setting]) -> None:
    """Refuse whole numbers beside fractions if their common column, of doubles, would round them."""
    if any(isinstance(value, float) for value in found):
        for value in found:
            if isinstance(value, int) and int(float(value)) != value:
                raise ReadError(
                    f"{value} beside fractions is more than a double holds",
                    legal=("whole numbers only", f"up to {1 << 53}"),
                )  # fmt: skip


def _refuse_count(count: int) -> NoReturn:
    raise ReadError(f"{count} values are more than {MOST_VALUES}", legal=("fewer values",))
