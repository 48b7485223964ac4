"""Reading the text of a description: limits on what it may hold, and the place of every key."""

from __future__ import annotations

import re
import tomllib
from collections.abc import Callable, Iterator, Mapping, Sequence
from decimal import Decimal, InvalidOperation
from functools import lru_cache
from pathlib import Path
from typing import Any

from castsim.isa.errors import Span, TargetDataError

MOST_BYTES = 1 << 20
"""Size of a description: the shipped ones have some 40 KB."""
MOST_DEPTH = 24
"""Tables and arrays in each other: the schema has fewer than ten."""
MOST_DIGITS = 40
MOST_EXPONENT = 30
"""Of a number with a point or an exponent; whole numbers are those of 64 bits, as TOML has them."""
_LEAST, _GREATEST = -(1 << 63), (1 << 63) - 1

_PART = r"(?:[A-Za-z0-9_-]+|\"(?:[^\"\\]|\\.)*\"|'[^']*')"
_DOTTED = rf"{_PART}(?:[ \t]*\.[ \t]*{_PART})*"
_HEADER = re.compile(rf"[ \t]*(\[\[?)[ \t]*({_DOTTED})[ \t]*\]\]?")
_KEY = re.compile(rf"[ \t]*({_DOTTED})[ \t]*=")
_LONG_NUMBER = re.compile(r"[0-9_]{1000,}")
_OPENED = re.compile(r"[\[{]")
_SHOWN = 60

Path_ = tuple[str | int, ...]


class _BadNumberError(ValueError):
    """A number that no fact can be; `text` is how it is written."""

    def __init__(self, text: str, reason: str) -> None:
        super().__init__(reason)
        self.text = text


def read_toml(path: Path) -> dict[str, Any]:
    """Read a description; numbers with a point come as `Decimal`.

    Raises:
        TargetDataError: it cannot be read, is not TOML, or holds what no description can; names file, line and column.
    """
    text = _text(path)
    try:
        data = tomllib.loads(text, parse_float=_decimal)
    except tomllib.TOMLDecodeError as error:
        raise TargetDataError(f"malformed TOML: {error}", span=_syntax_place(path, text, str(error))) from None
    except _BadNumberError as error:
        span = _place(path, text, text.find(error.text))
        raise TargetDataError(f"{_short(error.text)} cannot be a fact: {error}", span=span) from None
    except ValueError:  # Python reads no decimal numbers of thousands of digits
        found = _LONG_NUMBER.search(text)
        raise TargetDataError(
            "a whole number does not fit into 64 bits", span=_place(path, text, found.start() if found else 0)
        ) from None
    except RecursionError:
        raise TargetDataError(
            f"tables and arrays are nested more than {MOST_DEPTH} deep", span=_deepest(path, text)
        ) from None
    _check_values(path, text, data)
    return data


def place_of(path: Path, keys: Sequence[str | int]) -> Span | None:
    """Return the place in a file of the innermost table or key on the path `keys`, None if it has none of them."""
    return places_of(path)(keys)


def places_of(path: Path) -> Callable[[Sequence[str | int]], Span | None]:
    """Return `place_of` for one file, which is read once."""
    try:
        text = _text(path)
    except TargetDataError:
        return lambda _: None
    found, lines = _keys(text), text.splitlines()

    def place(keys: Sequence[str | int]) -> Span | None:
        prefixes = (tuple(keys[:length]) for length in range(len(keys), 0, -1))
        at = next((found[prefix] for prefix in prefixes if prefix in found), None)
        return None if at is None else Span(str(path), *at, lines[at[0] - 1])

    return place


def _text(path: Path) -> str:
    try:
        if path.stat().st_size > MOST_BYTES:
            raise TargetDataError(
                f"a description of more than {MOST_BYTES} bytes is not read", span=Span(str(path), 1, 1)
            )
        return path.read_text(encoding="utf-8")
    except UnicodeDecodeError:
        raise TargetDataError(f"{path}: is not UTF-8 text") from None
    except OSError as error:
        raise TargetDataError(f"{path}: cannot be read: {error.strerror or error}") from None


def _decimal(text: str) -> Decimal:
    """Return a number with a point or an exponent, if it is one that a fact can be."""
    if len(text) > MOST_DIGITS:
        raise _BadNumberError(text, f"it has more than {MOST_DIGITS} digits")
    try:
        value = Decimal(text)
    except InvalidOperation:
        raise _BadNumberError(text, "its exponent is beyond all use") from None
    if not value.is_finite():
        raise _BadNumberError(text, "it is not finite")
    exponent = value.as_tuple().exponent
    if not isinstance(exponent, int) or abs(exponent) > MOST_EXPONENT or abs(value.adjusted()) > MOST_EXPONENT:
        raise _BadNumberError(text, f"its exponent is beyond -{MOST_EXPONENT} .. {MOST_EXPONENT}")
    return value


def _check_values(path: Path, text: str, data: dict[str, Any]) -> None:
    """Reject numbers beyond 64 bits and what stands too deep."""
    waiting: list[tuple[Path_, object]] = [((), data)]
    while waiting:
        keys, value = waiting.pop()
        if len(keys) > MOST_DEPTH:
            span = place_of(path, keys) or _deepest(path, text)
            raise TargetDataError(f"tables and arrays are nested more than {MOST_DEPTH} deep", span=span)
        if isinstance(value, dict):
            waiting += [((*keys, key), inner) for key, inner in value.items()]
        elif isinstance(value, list):
            waiting += [((*keys, number), inner) for number, inner in enumerate(value)]
        elif isinstance(value, int) and not _LEAST <= value <= _GREATEST:
            name = ".".join(map(str, keys))
            raise TargetDataError(f"{name}: a whole number does not fit into 64 bits", span=place_of(path, keys))


@lru_cache(maxsize=32)
def _keys(text: str) -> Mapping[Path_, tuple[int, int]]:
    """Return line and column of every table header and key that begins a line, by its path; the first of each.

    A table without a header of its own stands where the first one inside of it does.
    """
    found: dict[Path_, tuple[int, int]] = {}
    around: dict[Path_, tuple[int, int]] = {}
    for path, line, column in _found_keys(text):
        found.setdefault(path, (line, column))
        for length in range(1, len(path)):
            around.setdefault(path[:length], (line, column))
    return around | found


def _found_keys(text: str) -> Iterator[tuple[Path_, int, int]]:
    table: Path_ = ()
    counts: dict[Path_, int] = {}
    quoted = False
    for number, line in enumerate(text.splitlines(), 1):
        within, quoted = quoted, quoted ^ bool((line.count('"""') + line.count("'''")) % 2)
        if within:
            continue
        if header := _HEADER.match(line):
            table = _indexed(_parts(header[2]), counts)
            if header[1] == "[[":
                counts[table] = counts.get(table, -1) + 1
                table = (*table, counts[table])
            yield table, number, header.start(2) + 1
        elif key := _KEY.match(line):
            yield (*table, *_parts(key[1])), number, key.start(1) + 1


def _indexed(parts: Path_, counts: dict[Path_, int]) -> Path_:
    """Return a path with the numbers of the arrays of tables on its way, the last part left out."""
    path: Path_ = ()
    for part in parts[:-1]:
        path = (*path, part)
        if path in counts:
            path = (*path, counts[path])
    return (*path, parts[-1])


def _parts(dotted: str) -> Path_:
    return tuple(part.strip("\"'") for part in re.findall(_PART, dotted))


def _place(path: Path, text: str, offset: int) -> Span:
    before = text[: max(offset, 0)]
    line = before.count("\n") + 1
    return Span(str(path), line, len(before) - (before.rfind("\n") + 1) + 1, _short(text.splitlines()[line - 1]))


def _syntax_place(path: Path, text: str, message: str) -> Span:
    """Return the place that the parser names, the end of the file if it names none."""
    place = re.search(r"\(at line (\d+), column (\d+)\)", message)
    lines = text.splitlines()
    line, column = (int(place[1]), int(place[2])) if place else (max(len(lines), 1), 1)
    return Span(str(path), line, column, lines[line - 1] if 0 < line <= len(lines) else "")


def _deepest(path: Path, text: str) -> Span:
    lines = text.splitlines() or [""]
    number = max(range(len(lines)), key=lambda number: len(_OPENED.findall(lines[number])) + lines[number].count("."))
    return Span(str(path), number + 1, 1, _short(lines[number]))


def _short(text: str) -> str:
    return text if len(text) <= _SHOWN else f"{text[:_SHOWN]}..."
