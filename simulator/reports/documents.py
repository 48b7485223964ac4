"""JSON derived from what is reported: the fields of a dataclass, under their own names or those of `key`."""

from __future__ import annotations

import sys
from collections.abc import Mapping, Sequence
from dataclasses import Field, fields, is_dataclass
from decimal import Decimal
from enum import Enum
from pathlib import PurePath
from typing import TypeAlias

from castsim.isa.formats import Format
from castsim.targets.description import Table, TargetHeader
from castsim.timing import Cause

Json: TypeAlias = "bool | int | float | str | Sequence[Json] | Mapping[str, Json] | None"
"""A value that JSON can hold."""

Document: TypeAlias = dict[str, Json]
"""A JSON object."""

VERSIONS: Mapping[str, int] = {
    "run": 7,
    "diff": 2,
    "cast": 3,
    "graph": 3,
    "lower": 2,
    "lower-matrix": 2,
    "conform": 4,
    "accuracy": 5,
    "advise": 2,
    "verify": 3,
    "verify-lowering": 3,
    "verify-substitutions": 2,
    "targets-pair": 2,
    "targets-diff": 3,
    "specification": 2,
    "specification-pair": 2,
}
"""The `schema_version` of each document whose shape has changed since the first; the others have 1."""

_KEY = "json"


def key(name: str) -> dict[str, str]:
    """Return the metadata of a dataclass field whose key in JSON is not its name."""
    return {_KEY: name}


def document(value: object, *only: str, **named: str) -> Document:
    """Return a dataclass as JSON, its fields in their order.

    `only` asks for these attributes in their order, properties among them; `named` gives attributes another key.

    Raises:
        TypeError: a value that has no JSON form, or a name that `value` has no field or attribute for.
    """
    kept = only or tuple(each.name for each in _fields(value))
    strange = [name for name in (*kept, *named) if not hasattr(value, name)] + [
        name for name in named if name not in kept
    ]
    if strange:
        raise TypeError(f"{type(value).__name__} shows nothing named {', '.join(dict.fromkeys(strange))}")
    keys = {each.name: each.metadata.get(_KEY, each.name) for each in _fields(value)} | named
    return {keys.get(name, name): json_of(getattr(value, name)) for name in kept}


def json_of(value: object) -> Json:
    """Return a value as JSON holds it.

    A format or a target is its name, an enumeration member its value, a cause with underscores, a decimal a number
    (they have few places and survive as floats), bytes are hexadecimal, a path is its text; dataclasses are objects, as
    `document` has them.

    Raises:
        TypeError: it has no JSON form.
    """
    if isinstance(value, Format | TargetHeader):
        return value.name
    match value:
        case Enum():
            return _member(value)
        case None | bool() | int() | float() | str():
            return value
        case Decimal():
            return int(value) if value == int(value) else float(value)
        case bytes():
            return value.hex()
        case PurePath():
            return str(value)
        case Table():
            return {name: json_of(getattr(value, name)) for name in type(value).model_fields}
        case Mapping():
            return {_name(name): json_of(item) for name, item in value.items()}
        case list() | tuple():
            return [json_of(item) for item in value]
    if (numpy := sys.modules.get("numpy")) and isinstance(value, numpy.generic):  # loaded if there is such a value
        return json_of(value.item())
    if is_dataclass(value):
        return document(value)
    raise TypeError(f"no JSON form of a {type(value).__name__}")


def identifier(words: str) -> str:
    """Return words as one identifier: `operand_wait` for `operand wait`; keys have no blanks."""
    return words.replace(" ", "_")


def numbered(values: Mapping[str, str]) -> Document:
    """Return attribute values by name, those that are spelt in digits as numbers."""
    return {name: int(value) if value.isascii() and value.isdigit() else value for name, value in values.items()}


def _member(value: Enum) -> Json:
    return identifier(value) if isinstance(value, Cause) else json_of(value.value)


def _name(key: object) -> str:
    return identifier(key) if isinstance(key, Cause) else str(key)


def _fields(value: object) -> tuple[Field[object], ...]:
    return fields(value) if is_dataclass(value) else ()
