"""Reading target descriptions: TOML files with inheritance and CSV tables, validated as a whole."""

from __future__ import annotations

import csv
import re
import tomllib
from decimal import Decimal
from functools import cache
from pathlib import Path
from typing import Any

from pydantic import ValidationError

from isa.errors import IllegalError, ReadError, Span, TargetDataError
from targets.schema import Kind
from targets.specification import Specification
from targets.strided_repeat import StridedRepeatTarget
from targets.vector_function import VectorFunctionTarget
from targets.vliw import VliwTarget

SHIPPED = Path(__file__).parent
"""Folder of the shipped descriptions."""

Target = StridedRepeatTarget | VectorFunctionTarget | VliwTarget
"""Any loaded target; one class per mechanism."""

_MECHANISMS: dict[str, type[Target]] = {
    "strided-repeat": StridedRepeatTarget,
    "vector-function": VectorFunctionTarget,
    "vliw": VliwTarget,
}
_KIND = re.compile(r'^kind *= *"(\w+)"', re.MULTILINE)
_LIST_SEPARATOR = ";"


def target_names() -> tuple[str, ...]:
    """Return the names of the shipped targets, sorted; specifications, on which nothing runs, are not among them."""
    return tuple(name for name, kind in _shipped() if kind == Kind.CHIP)


def specification_names() -> tuple[str, ...]:
    """Return the names of the shipped specifications, sorted."""
    return tuple(name for name, kind in _shipped() if kind == Kind.SPECIFICATION)


def load_target(name: str | Path) -> Target:
    """Load a shipped target by name or a user-written one by path (anything that ends in `.toml`).

    Raises:
        ReadError: no such target or file; lists the shipped ones.
        IllegalError: the name of a specification.
        TargetDataError: malformed TOML, unknown key, missing source, contradiction; names file and key.
    """
    path = _user_file(name, target_names())
    if path is not None:
        return _load(path)  # each time anew: the file, its base or its tables may have changed
    text = str(name).lower()
    if text in specification_names():
        raise _not_runnable(text)
    if text not in target_names():
        raise ReadError(f"unknown target '{name}'", legal=(*target_names(), "PATH.toml"))
    return _load_shipped(text)


def load_specification(name: str | Path) -> Specification:
    """Load a shipped specification by name or a user-written one by path (anything that ends in `.toml`).

    Raises:
        ReadError: no such specification or file; lists the shipped ones.
        TargetDataError: as `load_target`, or the description of a chip.
    """
    path = _user_file(name, specification_names())
    if path is not None:
        return _load_specification(path)
    text = str(name).lower()
    if text not in specification_names():
        raise ReadError(f"unknown specification '{name}'", legal=(*specification_names(), "PATH.toml"))
    return _load_shipped_specification(text)


def is_specification(name: str | Path) -> bool:
    """Whether a name or path means a specification; False also where there is no such thing."""
    path = Path(name) if str(name).endswith(".toml") else None
    if path is None:
        return str(name).lower() in specification_names()
    return path.is_file() and _read_toml(path).get("kind") == Kind.SPECIFICATION


def _user_file(name: str | Path, legal: tuple[str, ...]) -> Path | None:
    """Return the file that a path means, None if it is a name."""
    text = str(name)
    if not text.endswith(".toml"):
        return None
    path = Path(text)
    if not path.is_file():
        raise ReadError(f"target file '{text}' does not exist", legal=legal)
    return path.resolve()


def _not_runnable(name: str) -> IllegalError:
    return IllegalError(
        f"{name} is a specification: it says what casts must give, nothing runs on it", legal=target_names()
    )


@cache
def _shipped() -> tuple[tuple[str, str], ...]:
    """Return name and kind of every shipped description, sorted; the kind stands on a line of its own."""
    found = []
    for path in sorted(SHIPPED.glob("*.toml")):
        kind = _KIND.search(path.read_text(encoding="utf-8"))
        found.append((path.stem, kind[1] if kind else Kind.CHIP.value))
    return tuple(found)


def target_for_architecture(architecture: str) -> Target | None:
    """Return the shipped target that programs ask for as `architecture`, None if there is none."""
    return next((target for target in map(load_target, target_names()) if architecture in target.architectures), None)


@cache
def _load_shipped(name: str) -> Target:
    return _load(SHIPPED / f"{name}.toml")


@cache
def _load_shipped_specification(name: str) -> Specification:
    return _load_specification(SHIPPED / f"{name}.toml")


def _load_specification(path: Path) -> Specification:
    data = _merged(path, ())
    if data.get("kind") != Kind.SPECIFICATION:
        raise TargetDataError(f"{path.name}: is the description of a chip, not of a specification")
    try:
        return Specification.model_validate(data)
    except ValidationError as error:
        raise TargetDataError(_sentence(path, error)) from None


def _load(path: Path) -> Target:
    data = _merged(path, ())
    if data.get("kind") == Kind.SPECIFICATION:
        raise _not_runnable(path.name)
    mechanism = data.get("mechanism")
    if not isinstance(mechanism, str) or mechanism not in _MECHANISMS:
        raise TargetDataError(f"{path.name}: unknown mechanism {mechanism!r}", legal=_MECHANISMS)
    try:
        return _MECHANISMS[mechanism].model_validate(data)
    except ValidationError as error:
        raise TargetDataError(_sentence(path, error)) from None


def _merged(path: Path, seen: tuple[Path, ...]) -> dict[str, Any]:
    """Read a file, resolve its CSV tables and lay it over the file that its `base` names."""
    if path in seen:
        raise TargetDataError(f"{path.name}: base refers back to itself through {' -> '.join(p.name for p in seen)}")
    data = _read_toml(path)
    for name, table in list(data.items()):  # the rows of a top-level table may stand in a CSV file
        if isinstance(table, dict) and "table" in table:
            data[f"{name}_fact"] = {key: value for key, value in table.items() if key != "table"}
            data[name] = _read_csv(path, name, table["table"])
    base = data.pop("base", None)
    if base is None:
        return data
    base_path = (path.parent / base if str(base).endswith(".toml") else SHIPPED / f"{base}.toml").resolve()
    if not base_path.is_file():
        raise TargetDataError(f"{path.name}: base '{base}' does not exist", legal=target_names())
    return _overlay(_merged(base_path, (*seen, path)), data)


def _overlay(base: dict[str, Any], change: dict[str, Any]) -> dict[str, Any]:
    """Lay `change` over `base`: tables merge key by key, everything else is replaced."""
    merged = dict(base)
    for key, value in change.items():
        below = merged.get(key)
        merged[key] = _overlay(below, value) if isinstance(below, dict) and isinstance(value, dict) else value
    return merged


def _read_toml(path: Path) -> dict[str, Any]:
    try:
        text = path.read_text(encoding="utf-8")
        return tomllib.loads(text, parse_float=Decimal)
    except tomllib.TOMLDecodeError as error:
        place = re.search(r"\(at line (\d+), column (\d+)\)", str(error))
        lines = text.splitlines()
        line, column = (
            (int(place[1]), int(place[2])) if place else (max(len(lines), 1), 1)
        )  # else: at the end of the file
        source = lines[line - 1] if 0 < line <= len(lines) else ""
        raise TargetDataError(f"malformed TOML: {error}", span=Span(str(path), line, column, source)) from None
    except (OSError, UnicodeDecodeError) as error:
        raise TargetDataError(f"{path}: cannot be read: {error}") from None


def _read_csv(owner: Path, table: str, name: object) -> list[dict[str, Any]]:
    """Read a table kept as CSV: one model per row, cells typed by the column's form."""
    if not isinstance(name, str):
        raise TargetDataError(f"{owner.name}: {table}.table must name a CSV file")
    path = owner.parent / name
    if not path.is_file():
        path = SHIPPED / name  # a copy of a shipped description keeps the tables it does not bring itself
    if not path.is_file():
        raise TargetDataError(f"{owner.name}: {table}.table '{name}' does not exist beside it")
    try:
        with path.open(newline="", encoding="utf-8") as file:
            rows = list(csv.DictReader(file, strict=True))
    except (OSError, UnicodeDecodeError, csv.Error) as error:
        raise TargetDataError(f"{path}: cannot be read: {error}") from None
    for number, row in enumerate(rows):
        if None in row:
            raise TargetDataError(f"{owner.name}: {name}: row {number} has more cells than the header")
    return [{key: _cell(value) for key, value in row.items()} for row in rows]


def _cell(text: str | None) -> Any:
    """Type one CSV cell: integer, true/false, `key=value;...` table, empty (None), or text."""
    if text is None or text == "-":
        return None
    if text.isdecimal():
        return int(text)
    if text in ("true", "false"):
        return text == "true"
    if text == "{}":
        return {}
    pairs = text.split(_LIST_SEPARATOR)
    if all("=" in pair and " " not in pair for pair in pairs):
        return dict(pair.split("=", 1) for pair in pairs)
    return text


def _sentence(path: Path, error: ValidationError) -> str:
    """Say what is wrong as file, key and reason; several findings on lines of their own."""
    findings = []
    for finding in error.errors():
        place = ".".join(str(part) for part in finding["loc"]) or "the whole file"
        reason = finding["msg"].removeprefix("Value error, ")
        kind = {"extra_forbidden": "unknown key", "missing": "missing"}.get(finding["type"], reason)
        findings.append(f"{path.name}: {place}: {kind}")
    return "\n".join(findings)
