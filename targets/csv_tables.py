"""Tables of a description in CSV files beside it: one model per row, cells typed by their form."""

from __future__ import annotations

import csv
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from decimal import Decimal, InvalidOperation
from functools import lru_cache
from itertools import zip_longest
from pathlib import Path
from typing import Any

from castsim.isa.dataclass import dataclass
from castsim.isa.errors import Span, TargetDataError
from castsim.isa.reading import is_file
from castsim.targets.description import LIST_SEPARATOR

# Reading the text of a description: limits on what it may hold, and the place of every key.

MOST_BYTES = 1 << 20
"""Maximum size of a description in bytes: the shipped ones have about 40 KB."""
MOST_DEPTH = 24
"""Maximum nesting depth of tables and arrays: the schema has fewer than ten levels."""
MOST_DIGITS = 40
MOST_EXPONENT = 30
"""Maximum exponent of a number with a point or an exponent; integers have 64 bits, as in TOML."""
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
    """Return the contents of a description; numbers with a point become `Decimal`.

    Raises:
        TargetDataError: it cannot be read, is not TOML, or has illegal values; the error has file, line and column.
    """
    import tomllib  # noqa: PLC0415 - shipped descriptions are taken as they were validated

    text = _text(path)
    try:
        data = tomllib.loads(text, parse_float=_decimal)
    except tomllib.TOMLDecodeError as error:
        raise TargetDataError(f"malformed TOML: {error}", span=_syntax_place(path, text, str(error))) from None
    except _BadNumberError as error:
        span = _place(path, text, text.find(error.text))
        raise TargetDataError(f"{_short(error.text)} is not usable as a number: {error}", span=span) from None
    except ValueError:  # Python reads no decimal numbers of thousands of digits
        match = _LONG_NUMBER.search(text)
        raise TargetDataError(
            "an integer does not fit into 64 bits", span=_place(path, text, match.start() if match else 0)
        ) from None
    except RecursionError:
        raise TargetDataError(
            f"tables and arrays are nested more than {MOST_DEPTH} deep", span=_deepest(path, text)
        ) from None
    _check_values(path, text, data)
    return data


def place_of(path: Path, keys: Sequence[str | int]) -> Span | None:
    """Return the position of the innermost table or key on the path `keys`, None if the file has none of them."""
    return places_of(path)(keys)


def places_of(path: Path) -> Callable[[Sequence[str | int]], Span | None]:
    """Return `place_of` for one file, which is read once."""
    try:
        text = _text(path)
    except TargetDataError:
        return lambda _: None
    positions, lines = _keys(text), text.splitlines()

    def span_of(keys: Sequence[str | int]) -> Span | None:
        prefixes = (tuple(keys[:length]) for length in range(len(keys), 0, -1))
        at = next((positions[prefix] for prefix in prefixes if prefix in positions), None)
        return None if at is None else Span(str(path), *at, lines[at[0] - 1])

    return span_of


def _text(path: Path) -> str:
    try:
        if path.stat().st_size > MOST_BYTES:
            raise TargetDataError(
                f"the description exceeds the limit of {MOST_BYTES} bytes", span=Span(str(path), 1, 1)
            )
        return path.read_text(encoding="utf-8-sig")
    except UnicodeDecodeError:
        raise TargetDataError(f"{path}: is not UTF-8 text") from None
    except OSError as error:
        raise TargetDataError(f"{path}: cannot be read: {error.strerror or error}") from None


def _decimal(text: str) -> Decimal:
    """Return a number with a point or an exponent, if it is in the range of facts."""
    if len(text) > MOST_DIGITS:
        raise _BadNumberError(text, f"it has more than {MOST_DIGITS} digits")
    try:
        value = Decimal(text)
    except InvalidOperation:
        raise _BadNumberError(text, "its exponent is too large") from None
    if not value.is_finite():
        raise _BadNumberError(text, "it is not finite")
    exponent = value.as_tuple().exponent
    if not isinstance(exponent, int) or abs(exponent) > MOST_EXPONENT or abs(value.adjusted()) > MOST_EXPONENT:
        raise _BadNumberError(text, f"its exponent is outside -{MOST_EXPONENT} .. {MOST_EXPONENT}")
    return value


def _check_values(path: Path, text: str, data: dict[str, Any]) -> None:
    """Reject numbers beyond 64 bits and values nested too deeply."""
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
            raise TargetDataError(f"{name}: an integer does not fit into 64 bits", span=place_of(path, keys))


@lru_cache(maxsize=32)
def _keys(text: str) -> Mapping[Path_, tuple[int, int]]:
    """Return line and column of every table header and every key that begins a line, by path; the first of each.

    A table without its own header has the position of the first one inside it.
    """
    positions: dict[Path_, tuple[int, int]] = {}
    around: dict[Path_, tuple[int, int]] = {}
    for path, line, column in _found_keys(text):
        positions.setdefault(path, (line, column))
        for length in range(1, len(path)):
            around.setdefault(path[:length], (line, column))
    return around | positions


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
    match = re.search(r"\(at line (\d+), column (\d+)\)", message)
    lines = text.splitlines()
    line, column = (int(match[1]), int(match[2])) if match else (max(len(lines), 1), 1)
    return Span(str(path), line, column, lines[line - 1] if 0 < line <= len(lines) else "")


def _deepest(path: Path, text: str) -> Span:
    lines = text.splitlines() or [""]
    number = max(range(len(lines)), key=lambda number: len(_OPENED.findall(lines[number])) + lines[number].count("."))
    return Span(str(path), number + 1, 1, _short(lines[number]))


def _short(text: str) -> str:
    return text if len(text) <= _SHOWN else f"{text[:_SHOWN]}..."


SHIPPED = Path(__file__).parent
"""Folder of the shipped descriptions and their tables."""

_MOST_BYTES = 16 << 20
"""Maximum size of a CSV table in bytes; the largest shipped one has 0.3 MB."""
_MOST_DIGITS = 18


class CsvRows(list[dict[str, Any]]):
    """The rows of a CSV file, with its name and their lines, so errors have a position."""

    def __init__(self, rows: list[dict[str, Any]], file: str, lines: list[int]) -> None:
        super().__init__(rows)
        self.file = file
        self.lines = lines


@dataclass(frozen=True, slots=True)
class TableFile:
    """A table that a description stores as CSV; read only if no derived description replaces it."""

    owner: Path
    table: str
    name: object

    def rows(self) -> CsvRows:
        """Return the rows.

        Raises:
            TargetDataError: the name is not a file's, the file is missing or unreadable, a row is longer than the
                header, or a number has too many digits.
        """
        path = self._path()
        lines, rows = [], []
        typed: dict[str | None, Any] = {}
        for line, row in _csv_rows(path):
            for text in row.values():
                if text not in typed:
                    typed[text] = _cell(text, Span(str(path), line, 1))
            lines.append(line)
            rows.append({key: typed[text] for key, text in row.items()})
        return CsvRows(rows, path.name, lines)

    def keyed(self) -> dict[str, dict[str, Any]]:
        """Return the rows as tables by their column `name`; empty cells omit a key.

        Raises:
            TargetDataError: see `rows`; also a name that is missing or duplicate.
        """
        rows, rows_by_name = self.rows(), dict[str, dict[str, Any]]()
        for line, row in zip(rows.lines, rows, strict=True):
            name = row.pop("name", None)
            if not isinstance(name, str) or name in rows_by_name:
                raise TargetDataError(f"{rows.file}:{line}: name {name!r} is missing or listed twice")
            rows_by_name[name] = {key: value for key, value in row.items() if value not in (None, "")}
        return rows_by_name

    def _path(self) -> Path:
        name = self.name
        if not isinstance(name, str) or "\0" in name:
            raise TargetDataError(f"{self.table}.table must name a CSV file, not {name!r:.80}", span=self._place())
        path = self.owner.parent / name
        if not is_file(path):
            path = SHIPPED / name  # a copy of a shipped description keeps the tables it does not bring itself
        if not is_file(path):
            raise TargetDataError(
                f"{self.owner.name}: {self.table}.table {name!r:.80} does not exist in the same folder",
                span=self._place(),
            )
        return path

    def _place(self) -> Span | None:
        return place_of(self.owner, (*self.table.split("."), "table"))


def _csv_rows(path: Path) -> Iterator[tuple[int, dict[str, str | None]]]:
    """Yield line and cells of every row."""
    try:
        if path.stat().st_size > _MOST_BYTES:
            raise TargetDataError(f"the table exceeds the limit of {_MOST_BYTES} bytes", span=Span(str(path), 1, 1))
        with path.open(newline="", encoding="utf-8-sig") as file:
            reader = csv.reader(file, strict=True)
            header = next(reader, [])
            for cells in reader:
                if len(cells) > len(header):
                    span = Span(str(path), reader.line_num, 1)
                    raise TargetDataError(f"{path.name}: a row has more cells than the header", span=span)
                if cells:
                    yield reader.line_num, dict(zip_longest(header, cells))
    except csv.Error as error:
        raise TargetDataError(f"cannot be read: {error}", span=Span(str(path), reader.line_num, 1)) from None
    except UnicodeDecodeError:
        raise TargetDataError(f"{path}: is not UTF-8 text") from None
    except OSError as error:
        raise TargetDataError(f"{path}: cannot be read: {error.strerror or error}") from None


def _cell(text: str | None, span: Span) -> Any:
    """Return the typed value of a cell: integer, true/false, `key=value;...` table, empty (None), or text."""
    if text is None or text == "-":
        return None
    if text.isdecimal():
        if len(text) > _MOST_DIGITS:
            raise TargetDataError(f"a cell with a number of more than {_MOST_DIGITS} digits", span=span)
        return int(text)
    if text in ("true", "false"):
        return text == "true"
    if text == "{}":
        return {}
    pairs = text.split(LIST_SEPARATOR)
    if all("=" in pair and " " not in pair for pair in pairs):
        return dict(pair.split("=", 1) for pair in pairs)
    return text
