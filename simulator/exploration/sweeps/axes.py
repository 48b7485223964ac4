"""The values of one key of a grid: one value, a list, or a range."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from decimal import Decimal

from castsim.exploration.sweeps.grid import DEFAULT, Setting
from castsim.isa.errors import ReadError, Span
from castsim.isa.formats import format_named
from castsim.isa.mode_words import mode_named
from castsim.isa.modes import Saturation
from castsim.isa.spans import SourceText
from castsim.isa.value_lists import read_values

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


def read_axis(name: str, given: object, span: Span | None) -> Sequence[Setting]:
    """Return the values of a key, each once, in their order; `span` is its place.

    Raises:
        ReadError: a malformed value or range, none at all, too many, a format or mode that there is not.
    """
    found: Sequence[Setting]
    if isinstance(given, Mapping):
        found = _range(name, given, span)
    else:
        items = given if isinstance(given, list | tuple | range) else [given]
        if len(items) > MOST_VALUES:
            _refuse_count(name, len(items), span)
        unique: dict[Setting, Setting] = {}
        for item in items:
            for value in _range(name, item, span) if isinstance(item, Mapping) else _values(name, item, span):
                unique.setdefault(_meaning(name, value, span), value)
            if len(unique) > MOST_VALUES:
                _refuse_count(name, len(unique), span)
        found = tuple(unique.values())
    if not found:
        raise ReadError(f"grid.{name}: there are no values", span=span, legal=_legal(name))
    return found


def _values(name: str, item: object, span: Span | None) -> Sequence[Setting]:
    """Return what one item of a list stands for."""
    if isinstance(item, Decimal | float) and is_argument(name):
        return (float(item),)
    if isinstance(item, int) and not isinstance(item, bool):
        if not (name in _EXTENTS or (is_argument(name) or is_option(name))):
            raise ReadError(f"grid.{name}: {item} is not a word", span=span, legal=_WORDS)
        return (item,)
    if not isinstance(item, str) or not item:
        raise ReadError(f"grid.{name}: {item!r:.80} is not a value", span=span, legal=_legal(name))
    if (name in _EXTENTS and not (name == "row_stride" and item == DEFAULT)) or (is_argument(name) and ".." in item):
        return _typed_range(name, item, span)
    return (item,)


def _typed_range(name: str, text: str, span: Span | None) -> Sequence[Setting]:
    try:
        found = read_values(SourceText(f"grid.{name}", text), 0, len(text))
    except ReadError as error:
        raise ReadError(f"grid.{name}: {error.message}", span=span, legal=_RANGES) from None
    for value in found:
        if isinstance(value, str):
            raise ReadError(f"grid.{name}: '{value}' is not an integer", span=span, legal=_RANGES)
    return found


def _range(name: str, given: Mapping[str, object], span: Span | None) -> Sequence[Setting]:
    """Return the values of `{ from = 8, to = 64, step = 8 }`, the end included if a step leads there."""
    if not (name in _EXTENTS or (is_argument(name) or is_option(name))):
        raise ReadError(f"grid.{name}: a range of words", span=span, legal=_WORDS)
    for key, value in given.items():
        if key not in _RANGE_KEYS:
            raise ReadError(f"grid.{name}.{key}: unknown key of a range", span=span, legal=_RANGE_KEYS)
        if not isinstance(value, int) or isinstance(value, bool):
            raise ReadError(f"grid.{name}.{key}: {value!r:.80} is not an integer", span=span, legal=_RANGES)
    numbers = {key: value for key, value in given.items() if isinstance(value, int)}
    missing = [key for key in ("from", "to") if key not in numbers]
    if missing:
        raise ReadError(f"grid.{name}: the range has no '{missing[0]}'", span=span, legal=_RANGES)
    first, last = numbers["from"], numbers["to"]
    if "times" in numbers:
        times = numbers["times"]
        if times < 2 or first < 1 or "step" in numbers:
            raise ReadError(f"grid.{name}: the range never gets to its end", span=span, legal=_RANGES)
        found = []
        while first <= last:
            found.append(first)
            first *= times
        return _checked(name, tuple(found), span)
    step = numbers.get("step", 1)
    if step < 1:
        raise ReadError(f"grid.{name}: the range never gets to its end", span=span, legal=_RANGES)
    count = (last - first) // step + 1  # a range may have more than Python counts
    if count > MOST_VALUES:
        _refuse_count(name, count, span)
    return _checked(name, range(first, last + 1, step), span)


def _checked(name: str, found: Sequence[int], span: Span | None) -> Sequence[int]:
    if not found:
        raise ReadError(f"grid.{name}: the range is empty: it ends before it begins", span=span, legal=_RANGES)
    for value in (found[0], found[-1]):
        _meaning(name, value, span)
    return found


def _meaning(name: str, value: Setting, span: Span | None) -> Setting:
    """Return what two values have in common that mean the same.

    Raises:
        ReadError: it cannot be a value of this key.
    """
    if name in _EXTENTS:
        if isinstance(value, int) and not -LARGEST_EXTENT <= value <= LARGEST_EXTENT:
            raise ReadError(f"grid.{name}: {value} is too large", span=span, legal=(f"up to {LARGEST_EXTENT}",))
        return value
    try:
        if name in ("src", "dst"):
            return format_named(str(value)).name
        if name == "saturation" and value != DEFAULT:
            return str(mode_named(Saturation, str(value), "saturation"))
    except ReadError as error:
        legal = (*error.legal, DEFAULT) if name == "saturation" else error.legal
        raise ReadError(f"grid.{name}: {error.message}", span=span, legal=legal) from None
    return str(value) if is_option(name) else value


def _legal(name: str) -> tuple[str, ...]:
    return _RANGES if name in _EXTENTS or is_argument(name) else _WORDS


def _refuse_count(name: str, count: int, span: Span | None) -> None:
    raise ReadError(f"grid.{name}: {count} values are more than {MOST_VALUES}", span=span, legal=("fewer values",))
