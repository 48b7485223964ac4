"""A shipped description written out as a file to start a chip from: all tables, a comment on each and on each key.

Comments are what the schema says: docstrings of tables, the strings below keys, and the kind of value.
"""

from __future__ import annotations

import ast
import inspect
import json
import re
import textwrap
import typing
from collections.abc import Iterator, Mapping
from decimal import Decimal
from enum import Enum
from functools import cache
from types import UnionType
from typing import Any

from castsim.targets.csv_tables import TableFile
from castsim.targets.description import Table
from castsim.targets.loader import FACT, described, load_target

_BARE = re.compile(r"[A-Za-z0-9_-]+")
_WIDTH = 100
_KINDS = {int: "whole number", Decimal: "number", str: "text", bool: "true or false"}


def template(name: str) -> str:
    """Return the complete description of a target as TOML with comments, inherited parts included, without CSV tables.

    Raises:
        ReadError: the target does not exist.
        TargetDataError: the description is invalid.
    """
    model = type(load_target(name))
    head = (
        f"A chip to start from: all facts of {name} in castsim. Change name, title and what differs, and state source "
        "and status of every number that you change. Tables in CSV files are those of castsim until you put "
        "a file of that name beside this one."
    )
    lines = [*_comment(head), *_TemplateWriter().table((), described(name), model)]
    return "\n".join(lines).rstrip() + "\n"


class _TemplateWriter:
    """Writer of tables; the schema's description of a key or table precedes its first use."""

    def __init__(self) -> None:
        self.explained: set[object] = set()

    def table(self, path: tuple[str, ...], data: Mapping[str, Any], model: object) -> Iterator[str]:
        """Yield the lines of a table: its keys, then the tables and lists of tables in it."""
        below = {}
        for key, value in data.items():
            if isinstance(value, TableFile):
                below[key] = [{"table": value.name, **data.get(f"{key}{FACT}", {})}]
            elif isinstance(value, dict) and (value or not path):
                below[key] = [value]
            elif isinstance(value, list) and value and all(isinstance(element, dict) for element in value):
                below[key] = value
            else:
                yield from self._said((_owner(model, key), key), key_text(model, key))
                yield f"{_name(key)} = {_value(value)}"
        for key, tables in below.items():
            if key.endswith(FACT) and key.removesuffix(FACT) in below:
                continue
            kind, name = _inside(model, key), ".".join(map(_name, (*path, key)))
            about = [_told(model, key)] if key in _fields(model) else []
            about += [_docstring(kind)] if kind is not model else []
            yield ""
            yield from self._said((kind, key if about and about[0] else ""), " ".join(filter(None, about)))
            for table_entry in tables:
                if isinstance(data[key], list):
                    yield f"[[{name}]]"
                elif not table_entry or any(not inner or not isinstance(inner, dict) for inner in table_entry.values()):
                    yield f"[{name}]"
                yield from self.table((*path, key), table_entry, kind)

    def _said(self, what: object, text: str) -> list[str]:
        if what in self.explained:
            return []
        self.explained.add(what)
        return _comment(text)


def key_text(model: object, key: str) -> str:
    """Return a schema's description of a key, and the kind of its value."""
    if key == "table" and key not in _fields(model):
        return "a CSV file with the rows"
    kind, owner = _kind(_annotation(model, key)), _owner(model, key)
    of_owner = [] if owner is model else [sentence for sentence in _sentences(owner) if f"`{key}`" in sentence]
    description = " ".join(filter(None, (_told(model, key), *of_owner)))
    return f"{description} ({kind})" if description and kind else description or kind


@cache
def told(owner: type) -> dict[str, str]:
    """Return the string below each name that a class assigns or annotates, by name; names without one are left out."""
    body = ast.parse(inspect.cleandoc("\n" + inspect.getsource(owner))).body[0]
    assert isinstance(body, ast.ClassDef)
    texts = {}
    for statement, after in zip(body.body, body.body[1:], strict=False):
        targets = statement.targets if isinstance(statement, ast.Assign) else [getattr(statement, "target", None)]
        text = after.value.value if isinstance(after, ast.Expr) and isinstance(after.value, ast.Constant) else None
        if isinstance(text, str) and isinstance(targets[0], ast.Name):
            texts[targets[0].id] = " ".join(text.split())
    return texts


def _told(model: object, key: str) -> str:
    owners = model.__mro__ if isinstance(model, type) else ()
    ours = (owner for owner in owners if issubclass(owner, Table))
    return next((told(owner)[key] for owner in ours if key in told(owner)), "")


def _fields(model: object) -> Mapping[str, Any]:
    return getattr(model, "model_fields", {})


def _owner(model: object, key: str) -> object:
    """Return the schema, or base schema, that defines a key."""
    owners = model.__mro__ if isinstance(model, type) else ()
    return next((owner for owner in owners if key in vars(owner).get("__annotations__", {})), model)


def _sentences(model: object) -> list[str]:
    return re.split(r"(?<=\.) ", _docstring(model))


def _docstring(model: object) -> str:
    return " ".join((model.__doc__ or "").split()) if isinstance(model, type) and issubclass(model, Table) else ""


def _annotation(model: object, key: str) -> object:
    return _fields(model)[key].annotation if key in _fields(model) else None


def _inside(model: object, key: str) -> object:
    """Return the schema of the tables at a key; for a dictionary of named tables, the schema of each table."""
    return _tables_of(_annotation(model, key)) if key in _fields(model) else model


def _tables_of(annotation: object) -> object:
    if isinstance(annotation, type) and issubclass(annotation, Table):
        return annotation
    tables = (_tables_of(part) for part in typing.get_args(annotation))
    return next((candidate for candidate in tables if candidate is not None), None)


def _kind(annotation: object) -> str:
    """Return the kind of a value in words, '' for a table."""
    if annotation in _KINDS:
        return _KINDS[annotation]
    origin, arguments = typing.get_origin(annotation), typing.get_args(annotation)
    if isinstance(annotation, type) and issubclass(annotation, Enum):
        texts = told(annotation)
        return "; ".join(f"{member.value}: {texts.get(member.name, '')}".rstrip(": .") for member in annotation)
    if origin is typing.Annotated:
        return _kind(arguments[0])
    if origin is typing.Literal:
        return ", ".join(str(getattr(argument, "value", argument)) for argument in arguments)
    if origin in (typing.Union, UnionType):
        return " or ".join(dict.fromkeys(filter(None, map(_kind, arguments))))
    if origin in (tuple, list, frozenset):
        return " ".join(("list:", *dict.fromkeys(filter(None, map(_kind, arguments)))))
    return ""


def _comment(text: str) -> list[str]:
    return textwrap.wrap(text, _WIDTH, initial_indent="# ", subsequent_indent="# ")


def _name(key: str) -> str:
    return key if _BARE.fullmatch(key) else json.dumps(key)


def _value(value: object) -> str:
    if isinstance(value, Mapping):
        return "{ " + ", ".join(f"{_name(key)} = {_value(item)}" for key, item in value.items()) + " }"
    if isinstance(value, list):
        return f"[{', '.join(map(_value, value))}]"
    return str(value) if isinstance(value, Decimal) else json.dumps(value, ensure_ascii=False)
