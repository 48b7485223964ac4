"""Records of measurements in `docs/measured/`: the tables of a campaign as JSON, a row a line.

Campaigns write what they measured as Markdown, for people at a terminal; `write` keeps that as data. A number in a cell
is a number, an empty cell or a dash is null, anything else is text.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable
from pathlib import Path
from typing import Any

from kit.paths import ROOT

MEASURED = ROOT / "docs" / "measured"
_NUMBER = re.compile(r"-?\d[\d,]*(\.\d+)?(e[+-]?\d+)?")
_RULE = re.compile(r"\|[\s:|-]+")
_PIPE = re.compile(r"(?<!\\)\|")


def table(columns: str, rows: Iterable[Iterable[object]]) -> str:
    """Return the Markdown of a table; ` | ` stands between its headings."""
    lines = (columns, " | ".join("---" for _ in columns.split(" | ")), *(" | ".join(map(str, row)) for row in rows))
    return "".join(f"| {line} |\n" for line in lines)


def write(path: Path, text: str) -> None:
    """Write a campaign's Markdown as a record."""
    keep(path, document(text))


def replace_section(path: Path, text: str) -> None:
    """Put a section, whose text begins with its heading, in the place of that of the same title, or at the end."""
    record = read(path)
    (section,) = document(f"# -\n\n{text}")["sections"]
    places = [number for number, one in enumerate(record["sections"]) if one["title"] == section["title"]]
    if places:
        record["sections"][places[0]] = section
    else:
        record["sections"].append(section)
    keep(path, record)


def read(path: Path) -> dict[str, Any]:
    """Return a record: `title`, `text` (paragraphs), `tables` (`columns`, `rows`) and `sections` of the same form."""
    found: dict[str, Any] = json.loads(path.read_text(encoding="utf-8"))
    return found


def rows(table: dict[str, Any]) -> list[dict[str, Any]]:
    """Return the rows of a table by the names of its columns."""
    return [dict(zip(table["columns"], row, strict=True)) for row in table["rows"]]


def document(text: str) -> dict[str, Any]:
    """Return the record of a Markdown text of headings, paragraphs, bullets and tables."""
    parts = [_part(part) for part in re.split(r"^#+ ", text, flags=re.MULTILINE)[1:]]
    return {**parts[0], "sections": [part for part in parts[1:] if part["text"] or part["tables"]]}


def _part(text: str) -> dict[str, Any]:
    title, _, body = text.partition("\n")
    words: list[str] = []
    tables = []
    for block in filter(None, (block.strip("\n") for block in re.split(r"\n\s*\n", body))):
        if block.startswith("|"):
            head, *lines = (line for line in block.split("\n") if not _RULE.fullmatch(line))
            tables.append(
                {"columns": _cells(head), "rows": [[_value(cell) for cell in _cells(line)] for line in lines]}
            )
        else:
            words += [" ".join(each.split()) for each in re.split(r"^\* ", block, flags=re.MULTILINE) if each]
    return {"title": title, "text": words, "tables": tables}


def _cells(line: str) -> list[str]:
    return [cell.strip().replace("`", "").replace("\\|", "|") for cell in _PIPE.split(line.strip())[1:-1]]


def _value(cell: str) -> object:
    if cell in ("", "-"):
        return None
    if _NUMBER.fullmatch(cell):
        plain = cell.replace(",", "")
        return float(plain) if {".", "e"} & set(plain) else int(plain)
    return cell


def keep(path: Path, record: dict[str, Any]) -> None:
    """Write a record, a row of its tables to a line."""
    text = json.dumps(record, indent=1, ensure_ascii=False)
    flat = re.sub(
        r"\[\n\s+(?:[^\[\]{}\"]|\"(?:[^\"\\]|\\.)*\")*\]",
        lambda found: json.dumps(json.loads(found[0]), ensure_ascii=False), text,
    )  # fmt: skip
    path.write_text(flat + "\n", encoding="utf-8")
