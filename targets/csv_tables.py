"""Tables of a description that stand in CSV files beside it: one model per row, cells typed by their form."""

from __future__ import annotations

import csv
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import zip_longest
from pathlib import Path
from typing import Any

from castsim.isa.errors import Span, TargetDataError
from castsim.isa.reading import is_file
from castsim.targets.cells import LIST_SEPARATOR
from castsim.targets.toml_text import place_of

SHIPPED = Path(__file__).parent
"""Folder of the shipped descriptions and their tables."""

_MOST_BYTES = 16 << 20
"""Size of a CSV table; the largest shipped one has 0.3 MB."""
_MOST_DIGITS = 18


class CsvRows(list[dict[str, Any]]):
    """The rows of a CSV file, with its name and their lines, so that what is wrong in one can be placed."""

    def __init__(self, rows: list[dict[str, Any]], file: str, lines: list[int]) -> None:
        super().__init__(rows)
        self.file = file
        self.lines = lines


@dataclass(frozen=True, slots=True)
class TableFile:
    """A table that a description keeps as CSV; read only if no description above replaces it."""

    owner: Path
    table: str
    name: object

    def rows(self) -> CsvRows:
        """Read the rows.

        Raises:
            TargetDataError: no name of a file, no such file, unreadable, a row longer than the header, a number with
                more digits than any of them needs.
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
        """Read the rows as tables by their column `name`; empty cells leave a key out.

        Raises:
            TargetDataError: as `rows`, or a name that is missing or stands twice.
        """
        rows, found = self.rows(), dict[str, dict[str, Any]]()
        for line, row in zip(rows.lines, rows, strict=True):
            name = row.pop("name", None)
            if not isinstance(name, str) or name in found:
                raise TargetDataError(f"{rows.file}:{line}: name {name!r} is missing or stands twice")
            found[name] = {key: value for key, value in row.items() if value not in (None, "")}
        return found

    def _path(self) -> Path:
        name = self.name
        if not isinstance(name, str) or "\0" in name:
            raise TargetDataError(f"{self.table}.table must name a CSV file, not {name!r:.80}", span=self._place())
        path = self.owner.parent / name
        if not is_file(path):
            path = SHIPPED / name  # a copy of a shipped description keeps the tables it does not bring itself
        if not is_file(path):
            raise TargetDataError(
                f"{self.owner.name}: {self.table}.table {name!r:.80} does not exist beside it", span=self._place()
            )
        return path

    def _place(self) -> Span | None:
        return place_of(self.owner, (*self.table.split("."), "table"))


def _csv_rows(path: Path) -> Iterator[tuple[int, dict[str, str | None]]]:
    """Yield line and cells of every row."""
    try:
        if path.stat().st_size > _MOST_BYTES:
            raise TargetDataError(f"a table of more than {_MOST_BYTES} bytes is not read", span=Span(str(path), 1, 1))
        with path.open(newline="", encoding="utf-8") as file:
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
    """Type one CSV cell: integer, true/false, `key=value;...` table, empty (None), or text."""
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
