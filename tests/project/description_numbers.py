"""Every number of the shipped descriptions, and derived descriptions in which one of them is another.

A number is a leaf of a TOML file, or a cell (or a number inside one) of a CSV table that the file names. Names of
formats are none, nor are the cells by which notes pick published rows. Versions of specifications are, where they are
whole numbers.
"""

from __future__ import annotations

import csv
import io
import json
import random
import re
from collections.abc import Iterator, Mapping
from copy import deepcopy
from dataclasses import dataclass, replace
from decimal import Decimal
from functools import cache
from pathlib import Path
from typing import Any

from castsim.targets.csv_tables import SHIPPED, read_toml

Leaf = int | Decimal | str
Keys = tuple[str | int, ...]

_WORDED = {  # numbers that have a letter before them, by the key or column in which they stand
    "stage": re.compile(r"(?P<letter>[de])(?P<number>\d+)"),
    "specials": re.compile(r"(?P<letter>[VS])(?P<number>\d+)"),
    "since": re.compile(r"(?P<letter>)(?P<number>\d+)"),
}
_NUMBER = re.compile(r"\d+(?:\.\d+)?")
_PROSE = ("note", "source", "status", "title", "meaning", "reason", "set_by", "where")
"""Keys and columns below which digits are part of names and sentences."""
_TEXT_COLUMNS = (
    *_PROSE, "mnemonic", "mnemonics", "builtin", "signature", "before", "joint", "after", "steps", "types",
    "library_types", "validated", "src", "dst", "element", "result", "lanes", "masks", "shifts", "switches", "formats",
    "field", "layout", "compute", "kernel", "suffixes", "dtype", "extra", "case", "source_file", "op_params",
)  # fmt: skip


@dataclass(frozen=True)
class Number:
    """One number: the description, the keys to it, its value; of a cell the file, row (from 0), column and place."""

    target: str
    keys: Keys
    value: Leaf
    file: str = ""
    row: int = 0
    column: str = ""
    place: int = 0

    def __str__(self) -> str:
        where = f"{self.file}:{self.row + 2}:{self.column}:{self.place}" if self.file else f"{self.target}.toml"
        return ".".join([where, *map(str, self.keys)])


# ------------------------------------------------------------------------------------------------------------ finding


def numbers(name: str) -> list[Number]:
    """Return every number that the TOML file of a description states itself."""
    return list(_leaves(name, plain(name), ()))


@cache
def plain(name: str) -> Mapping[str, Any]:
    """Return what a shipped TOML file says, nothing inherited."""
    return read_toml(SHIPPED / f"{name}.toml")


@cache
def inherited(name: str) -> Mapping[str, Any]:
    """Return what a description says with what it inherits; the names of tables instead of their rows."""
    own = plain(name)
    return _laid(inherited(own["base"]), own) if "base" in own else own


def _laid(base: Mapping[str, Any], over: Mapping[str, Any]) -> dict[str, Any]:
    both = {key: _laid(base[key], value) for key, value in over.items() if _are_tables(base.get(key), value)}
    return {**base, **over, **both}


def _are_tables(*values: object) -> bool:
    return all(isinstance(value, Mapping) for value in values)


def _leaves(name: str, held: Any, keys: Keys) -> Iterator[Number]:
    if keys and keys[-1] in _PROSE and not isinstance(held, int):
        return
    if isinstance(held, Mapping):
        for key, value in held.items():
            yield from _leaves(name, value, (*keys, key))
    elif isinstance(held, list):
        for index, value in enumerate(held):
            yield from _leaves(name, value, (*keys, index))
    elif (isinstance(held, int | Decimal) and not isinstance(held, bool)) or (
        isinstance(held, str)
        and any(pattern.fullmatch(held) for key, pattern in _WORDED.items() if key in map(_singular, keys))
    ):
        yield Number(name, keys, held)


def _singular(key: str | int) -> str:
    return "stage" if key == "stages" else str(key)


def heirs(number: Number) -> Iterator[Number]:
    """Yield the number as the description that states it has it, then as those that inherit it."""
    for name in (number.target, *_built_on(number.target)):
        held: Any = inherited(name)
        if number.file:
            if held[number.keys[0]]["table"] == number.file:
                yield replace(number, target=name)
        elif _at(held, number.keys) == number.value:
            yield replace(number, target=name)


def is_informational(number: Number) -> bool:
    """Whether a table around the number says that no model reads it."""
    held: Any = inherited(number.target)
    for key in number.keys:
        if isinstance(held, Mapping) and held.get("informational") is True:
            return True
        held = held[key] if isinstance(held, list) else held.get(str(key))
    return False


def _at(held: Any, keys: Keys) -> Any:
    """Return what a description has there, None if it has nothing."""
    for key in keys:
        try:
            held = held[key]
        except (KeyError, IndexError):
            return None
    return held


@cache
def _built_on(name: str) -> tuple[str, ...]:
    """Return the descriptions that build on one."""
    names = sorted(path.stem for path in SHIPPED.glob("*.toml"))
    return tuple(each for each in names if name in _bases(each))


def _bases(name: str) -> tuple[str, ...]:
    """Return the descriptions on which one builds."""
    base = plain(name).get("base")
    return () if base is None else (base, *_bases(base))


def tables(name: str) -> dict[str, str]:
    """Return the CSV files that a TOML file names itself, by the name of the table."""
    found = {key: value["table"] for key, value in plain(name).items() if _are_tables(value) and "table" in value}
    return found | {
        key: plain(name)[key]["file"] for key in ("measured_casts", "measured_operations") if key in plain(name)
    }


def row_of(number: Number) -> Mapping[str, str]:
    """Return the row of a CSV table in which a number stands."""
    return _read(number.file)[number.row]


def cells(name: str, table: str, file: str) -> list[Number]:
    """Return every number of a CSV table."""
    found = []
    for number, row in enumerate(_read(file)):
        for column, text in row.items():
            if column not in _TEXT_COLUMNS:
                for place, match in enumerate(_in_cell(column, text)):
                    value = match[0]
                    found.append(
                        Number(
                            name, (table,), value if column in _WORDED else Decimal(value), file, number, column, place
                        )
                    )
    return found


def _in_cell(column: str, text: str) -> list[re.Match[str]]:
    worded = _WORDED.get(column)
    if worded is not None:
        match = worded.fullmatch(text)
        return [match] if match else []
    if not re.fullmatch(r"[\w ]+=\d.*|[\d.:;]+", text):
        return []
    return list(re.finditer(rf"(?<![\w.]){_NUMBER.pattern}(?![\w.])", text))


@cache
def _read(file: str) -> list[dict[str, str]]:
    with (SHIPPED / file).open(newline="", encoding="utf-8") as opened:
        return list(csv.DictReader(opened))


def sampled(found: list[Number], per_column: int, seed: int) -> list[Number]:
    """Return some numbers of every column."""
    source, columns = random.Random(seed), dict.fromkeys(number.column for number in found)
    chosen = []
    for column in columns:
        among = [number for number in found if number.column == column]
        chosen += source.sample(among, min(per_column, len(among)))
    return chosen


# ----------------------------------------------------------------------------------------------------------- changing


def others(value: Leaf) -> list[Leaf]:
    """Return other values for a number, the nearest first; all of its own kind and none negative unless it is."""
    if isinstance(value, str):
        match = re.fullmatch(r"([A-Za-z]*)(\d+)", value)
        assert match, f"no number in '{value}'"
        return [f"{match[1]}{number}" for number in others(int(match[2]))]
    steps: list[int | Decimal] = [
        value + 1,
        value * 2,
        value / 2 if isinstance(value, Decimal) else value // 2,
        value - 1,
    ]
    steps += [value + 3, value * 16, 1, 0]
    steps = [1, *steps] if value >= 10**6 else steps  # no limit at all: a little more is none either
    found = dict.fromkeys(step for step in steps if step != value and (step >= 0 or value < 0))
    return [Decimal(int(step)) if isinstance(step, Decimal) and step == int(step) else step for step in found]


def derived(number: Number, value: Leaf, folder: Path, *, said: bool = True) -> Path:
    """Write a description in which one number is another, with a source and a status of its own; return its path.

    It keeps the name of its base, so that what is seen of it differs by the number alone.
    """
    path = folder / "changed.toml"
    change: dict[str, Any] = {}
    if number.file:
        (folder / "changed.csv").write_text(changed_table(number, value), encoding="utf-8", newline="")
        change = {number.keys[0]: {"table": "changed.csv", **(_SAID if said else {})}}
    else:
        _put(change, inherited(number.target), number.keys, value, said=said)
    text = f"base = {_written(number.target)}\nname = {_written(number.target)}\n"
    path.write_text(text + "".join(f"{_written_key(key)} = {_written(held)}\n" for key, held in change.items()))
    return path


_SAID = {"source": "changed by a test", "status": "assumed"}


def changed_table(number: Number, value: Leaf) -> str:
    """Return the text of a CSV table in which one number is another."""
    rows = [dict(row) for row in _read(number.file)]
    text = rows[number.row][number.column]
    match = _in_cell(number.column, text)[number.place]
    rows[number.row][number.column] = f"{text[: match.start()]}{value}{text[match.end() :]}"
    out = io.StringIO()
    writer = csv.DictWriter(out, list(rows[0]))
    writer.writeheader()
    writer.writerows(rows)
    return out.getvalue()


def _put(change: dict[str, Any], base: Mapping[str, Any], keys: Keys, value: Leaf, *, said: bool) -> None:
    """Write what changes into nested tables, and who says so into the innermost one that has a source."""
    owner = change if "source" in base else None
    for index, key in enumerate(keys):
        held = base[str(key)]
        if isinstance(held, Mapping) and index < len(keys) - 1:
            change, base = change.setdefault(str(key), {}), held
            owner = change if "source" in base else owner
            continue
        change[str(key)] = _replaced(held, keys[index + 1 :], value)
        break
    if owner is not None and said:
        owner.update(_SAID)


def _replaced(held: Any, keys: Keys, value: Leaf) -> Any:
    if not keys:
        return value
    copy = deepcopy(held)
    inner = copy
    for key in keys[:-1]:
        inner = inner[key]
    inner[keys[-1]] = value
    if (
        isinstance(copy, list)
        and isinstance(keys[0], int)
        and isinstance(copy[keys[0]], dict)
        and "source" in copy[keys[0]]
    ):
        copy[keys[0]].update(_SAID)
    return copy


def _written(value: Any) -> str:
    if isinstance(value, Mapping):
        return "{ " + ", ".join(f"{_written_key(key)} = {_written(inner)}" for key, inner in value.items()) + " }"
    if isinstance(value, list):
        return f"[{', '.join(map(_written, value))}]"
    if isinstance(value, bool | str):
        return json.dumps(value, ensure_ascii=False)
    return str(value)


def _written_key(key: str) -> str:
    return json.dumps(key)
