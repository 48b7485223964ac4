"""JSON documents: records whose fields, documented beside them, are the keys of an object."""

from __future__ import annotations

import sys
from collections.abc import Callable, Mapping, Sequence
from decimal import Decimal
from enum import Enum
from inspect import get_annotations
from math import isfinite
from operator import attrgetter
from pathlib import PurePath
from types import UnionType
from typing import (
    Annotated,
    Any,
    ClassVar,
    Literal,
    TypeAlias,
    TypeVar,
    Union,
    dataclass_transform,
    get_args,
    get_origin,
    get_type_hints,
)

from castsim.execution.timing import Cause
from castsim.isa.dataclass import MISSING, dataclass, field, fields, is_dataclass
from castsim.isa.formats import Format
from castsim.targets.description import Table, TargetHeader

Json: TypeAlias = "bool | int | float | str | Sequence[Json] | Mapping[str, Json] | None"
"""A value that JSON can represent."""

Document: TypeAlias = dict[str, Json]
"""A JSON object."""

# The keys of an object: what each means, and where its value is from.

_KEY = "json"


class Absent(Enum):
    """The value of a key that is left out."""

    ABSENT = 0


ABSENT = Absent.ABSENT


@dataclass(frozen=True, slots=True)
class KeyMeaning:
    """The meaning of a key of a document.

    `source` reads the value from the reported object; None means the attribute of the same name. An `optional` key may
    be absent. `key` is the key if it differs from the name. Tables show the key in a column with this `heading`,
    its numbers in this `form`.
    """

    text: str
    source: Callable[[Any], object] | None = None
    optional: bool = False
    key: str = ""
    heading: str = ""
    form: str = ""


def says(
    text: str = "",
    of: str | Callable[[Any], object] | None = None,
    *,
    optional: bool = False,
    key: str = "",
    heading: str = "",
    form: str = "",
    default: Any = MISSING,
    default_factory: Any = MISSING,
) -> Any:  # whose result stands for every type
    """Return a field with the meaning of its key, which replaces the text below it; also for dataclasses.

    `of` gives the source of the value: a path of attributes or a function of the reported object; None: the attribute
    of the same name. An `optional` key is left out if its value is `ABSENT` or it has no source. See `KeyMeaning` for
    the others.
    """
    source = attrgetter(of) if isinstance(of, str) else of
    meaning = KeyMeaning(text, source, optional, key, heading, form)
    return field(default=default, default_factory=default_factory, metadata={_KEY: meaning})


def apart(*, default: Any = MISSING, default_factory: Any = MISSING, compare: bool = True) -> Any:
    """Return a field of a record that is not a key of its document."""
    return field(default=default, default_factory=default_factory, compare=compare, metadata={_KEY: None})


class DerivedKey(property):
    """A property of a record that is a key of its document."""

    def __init__(self, meaning: KeyMeaning) -> None:
        super().__init__(meaning.source)
        self.__doc__ = meaning.text
        self.metadata = {_KEY: meaning}


def derived(
    text: str, of: str | Callable[[Any], object], *, key: str = "", init: Literal[False] = False
) -> Any:  # as for `says`
    """Return a key of a record whose value is computed: by a path of attributes or a function of the record."""
    assert not init  # which tells type checkers that no argument sets it
    source = attrgetter(of) if isinstance(of, str) else of
    return DerivedKey(KeyMeaning(text, source, key=key))


class Keys:
    """A JSON object with exactly these keys; the text beside or below a key is its meaning.

    A `record` is such an object; others take the values of their keys from the reported object.
    """

    __slots__ = ()

    TITLE: ClassVar[str]
    """Its name in schemas."""

    def __init_subclass__(cls, *, title: str = "") -> None:
        super().__init_subclass__()
        if title or "TITLE" not in vars(cls):  # a record is created again, with slots
            cls.TITLE = title or cls.__name__

    def as_json(self) -> Document:
        """Return the record as JSON."""
        return self.of(self)

    @classmethod
    def further_keys(cls) -> Sequence[type[Keys]]:
        """Return the source of further keys."""
        return ()

    @classmethod
    def of(cls, reported: object = None, /, **given: object) -> Document:
        """Return the object of a reported value, which may be JSON already; `given` overrides keys.

        Raises:
            TypeError: a key is unknown, or its value is missing or has no JSON form.
        """
        result: Document = {}
        for name, (meaning, _, form) in keys_of(cls).items():
            if name in given:
                value = given.pop(name)
            elif meaning.source is not None:
                value = meaning.source(reported)
            elif meaning.optional:
                continue
            elif hasattr(reported, name):
                value = getattr(reported, name)
            else:
                raise TypeError(f"no value for '{name}' of {cls.__name__} in a {type(reported).__name__}")
            if value is not ABSENT:
                result[meaning.key or name] = form(value)
        if given:
            raise TypeError(f"{cls.__name__} has no key named {', '.join(given)}")
        return result


class CommandDocument(Keys):
    """A document that a command writes; `name` and `version` of its class are its own."""

    __slots__ = ()

    NAME: ClassVar[str]
    VERSION: ClassVar[int]
    """Its `schema_version`, which grows with every change of the structure."""

    def __init_subclass__(cls, *, name: str = "", version: int = 1, title: str = "") -> None:
        super().__init_subclass__(title=title)
        if name:
            cls.NAME, cls.VERSION = name, version
        if "NAME" in vars(cls):  # else what several forms have in common; a record is created again, with slots
            FORMS[cls.NAME] = cls

    schema_version: int = says(
        "Version of the shape of this document; it grows with every change of the shape.", lambda _: ABSENT
    )

    @classmethod
    def of(cls, reported: object = None, /, **given: object) -> Document:
        """Return the document, starting with its version."""
        return {"schema_version": cls.VERSION, **super().of(reported, **given)}


FORMS: dict[str, type[CommandDocument]] = {}
"""The documents of all modules that were imported, by their names."""

_KEYS: dict[type[Keys], Mapping[str, tuple[KeyMeaning, Any, Callable[[Any], Json]]]] = {}
"""Cached keys of classes."""


def keys_of(form: type[Keys]) -> Mapping[str, tuple[KeyMeaning, Any, Callable[[Any], Json]]]:
    """Return the keys of an object in order, each with its type and the converter of its value."""
    if form in _KEYS:
        return _KEYS[form]
    hints = get_type_hints(form, include_extras=True)
    own = {name: attribute for base in reversed(form.__mro__) for name, attribute in vars(base).items()}
    declared = own | getattr(form, "__dataclass_fields__", {})
    keys = {
        name: (meaning, hint, _form_of(hint) or json_of)
        for name, hint in hints.items()
        if get_origin(hint) is not ClassVar
        and (meaning := getattr(declared.get(name), "metadata", {}).get(_KEY, _UNTOLD)) is not None
    }
    for part in form.further_keys():
        keys |= keys_of(part)
    _KEYS[form] = keys
    return keys


_UNTOLD = KeyMeaning("")

_Record = TypeVar("_Record", bound=Keys)


@dataclass_transform(frozen_default=True, field_specifiers=(says, derived, apart))
def record(form: type[_Record]) -> type[_Record]:
    """Return a class as a record: a frozen dataclass with slots that is its document."""
    hints = get_annotations(form)
    form.__annotations__ = {
        name: hint for name, hint in hints.items() if not isinstance(vars(form).get(name), DerivedKey)
    }
    declared = dataclass(frozen=True, slots=True)(form)
    declared.__annotations__ = hints
    return declared


def extended(form: type[_Record], base: Keys, **further: object) -> _Record:
    """Return a record with the fields of another one, and further ones."""
    names: Mapping[str, object] = form.__dataclass_fields__  # type: ignore[attr-defined]  # which every record has
    shared = {name: getattr(base, name) for name in names if hasattr(base, name)}
    return form(**(shared | further))


def _form_of(hint: Any) -> Callable[[Any], Json] | None:
    """Return the class of the objects in a key's type; None if it contains none."""
    if isinstance(hint, type) and issubclass(hint, Keys):
        return lambda value: value if isinstance(value, dict) else hint.of(value)
    for mark in getattr(hint, "__metadata__", ()):
        if mark in _NULL_IF:
            return _NULL_IF[mark]
    inner = [inner_form for argument in get_args(hint) if (inner_form := _form_of(argument)) is not None]
    if not inner or get_origin(hint) is Annotated:
        return inner[0] if inner else None
    form = inner[-1]
    if get_origin(hint) in (Union, UnionType):
        return lambda value: None if value is None else form(value)
    if get_origin(hint) in (dict, Mapping):
        return lambda value: {_name(key): form(item) for key, item in value.items()}
    return lambda value: [form(item) for item in value]


_NULL_IF: Mapping[tuple[str, str], Callable[[Any], Json]] = {
    ("empty", "null"): lambda value: value or None,
    ("infinite", "null"): lambda value: value if value is not None and isfinite(value) else None,
}

TextOrNull: TypeAlias = Annotated[str, ("empty", "null")]
"""A text that is null in JSON if it is empty."""

INFINITE_IS_NULL = ("infinite", "null")
"""Mark of a number that is null in JSON if it is infinite or NaN."""

# Values as JSON holds them.


def document(value: Any) -> Document:
    """Return a dataclass as JSON, its fields in their order.

    Raises:
        TypeError: a value has no JSON form.
    """
    return {attribute.name: json_of(getattr(value, attribute.name)) for attribute in fields(value)}


def json_of(value: object) -> Json:
    """Return a value in its JSON form.

    A format or a target becomes its name, an enumeration member its value, a cause a word with underscores, a decimal a
    float (it has few digits), bytes become hexadecimal, a path its text; an object with `as_json` converts
    itself, other dataclasses become objects (see `document`).

    Raises:
        TypeError: the value has no JSON form.
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
    if hasattr(value, "as_json") or is_dataclass(value):
        return value.as_json() if hasattr(value, "as_json") else document(value)
    raise TypeError(f"no JSON form of a {type(value).__name__}")


def shortened(content: Document, key: str, most: int) -> Document:
    """Return a document without one of its lists if that has more than `most` entries."""
    listed = content.get(key)
    long = isinstance(listed, list) and len(listed) > most
    return {name: value for name, value in content.items() if not (long and name == key)}


def identifier(words: str) -> str:
    """Return words as one identifier, with underscores for blanks: keys have no blanks."""
    return words.replace(" ", "_")


def numbered(values: Mapping[str, str]) -> Document:
    """Return attribute values by name, with digits converted to numbers."""
    return {name: int(value) if value.isascii() and value.isdigit() else value for name, value in values.items()}


def _member(value: Enum) -> Json:
    return identifier(value) if isinstance(value, Cause) else json_of(value.value)


def _name(key: object) -> str:
    return identifier(key) if isinstance(key, Cause) else str(key)
