"""Tables of targets as data that was validated when it was written, for places where pydantic cannot validate.

`docs/playground/build.py` adds `validated.pickle` to the package that a browser loads. Where that file lies, tables are
plain records of its values; elsewhere they are models of pydantic, which checks the descriptions. All modules that
declare tables take the declarations from here.
"""

from __future__ import annotations

import io
import pickle
from collections.abc import Iterator, Mapping
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Any, get_type_hints

from castsim.isa.dataclass import dataclass

DATA = Path(__file__).with_name("validated.pickle")
VALIDATED = DATA.is_file()
"""Whether tables are records of `DATA`."""


@dataclass(frozen=True, slots=True)
class DeclaredField:
    """A field of a class of tables; `default` is `...` where the field has none."""

    table: type
    name: str
    repr: bool
    default: object

    @property
    def annotation(self) -> object:
        """The type."""
        return get_type_hints(self.table)[self.name]


class Record:
    """A table whose values were validated when they were written."""

    def __init__(self, **values: Any) -> None:
        self.__dict__.update(values)

    def __eq__(self, other: object) -> bool:
        return type(self) is type(other) and _values(self) == _values(other)

    def __hash__(self) -> int:
        return hash(tuple(_values(self)))

    def __repr__(self) -> str:
        shown = [name for name, field in declared_fields(type(self)).items() if field.repr]
        return f"{type(self).__name__}({', '.join(f'{name}={getattr(self, name)!r}' for name in shown)})"

    @classmethod
    def model_validate(cls, values: Mapping[str, Any]) -> Record:
        """Return a table of values; only shipped what-ifs and checked options get here."""
        return cls(**values)

    def model_copy(self, *, update: Mapping[str, Any] | None = None, deep: bool = False) -> Record:
        """Return a copy with some values replaced."""
        return type(self)(**{**self.__dict__, **(update or {})})


def _values(table: object) -> list[object]:
    return [getattr(table, name) for name in declared_fields(type(table))]


class _Fields:
    """`model_fields` of a class of tables."""

    def __get__(self, table: object, owner: type) -> Mapping[str, DeclaredField]:
        return declared_fields(owner)


def _declaration(*_: Any, **__: Any) -> Any:
    """Return the mark of a check, which a record does not make."""
    return lambda checked: checked


if TYPE_CHECKING or not VALIDATED:
    import pydantic
    from pydantic_core import PydanticCustomError as CustomError

    AfterValidator = pydantic.AfterValidator
    BaseModel = pydantic.BaseModel
    BeforeValidator = pydantic.BeforeValidator
    ConfigDict = pydantic.ConfigDict
    Field = pydantic.Field
    InstanceOf: Any = pydantic.InstanceOf
    PrivateAttr = pydantic.PrivateAttr
    TypeAdapter = pydantic.TypeAdapter
    ValidationError = pydantic.ValidationError
    ValidationInfo = pydantic.ValidationInfo
    model_validator = pydantic.model_validator
    PydanticCustomError = CustomError
else:
    BaseModel = Record
    BaseModel.model_fields = _Fields()
    AfterValidator = BeforeValidator = ConfigDict = Field = InstanceOf = ValidationInfo = model_validator = _declaration
    TypeAdapter = type
    ValidationError = PydanticCustomError = ValueError

    def PrivateAttr(default: Any) -> Any:  # noqa: N802 - the name of pydantic
        """Return the value that a record has until it is given another one."""
        return default


# The file: fields of classes, and tables, each pickled on its own, so that a run loads only what it needs.


def tables_below(table: type[BaseModel]) -> Iterator[type[BaseModel]]:
    """Yield a class of tables and all that build on it."""
    yield table
    for below in table.__subclasses__():
        yield from tables_below(below)


def key_of(table: type) -> str:
    """Return the name of a class in the file."""
    return f"{table.__module__}.{table.__qualname__}"


class _Writer(pickle.Pickler):
    """Writes models of pydantic as records."""

    def reducer_override(self, table: Any) -> Any:
        """Return the class and the values of a model."""
        if not isinstance(table, BaseModel):
            return NotImplemented
        return _record, (type(table), {name: getattr(table, name) for name in type(table).model_fields})


def _record(table: type, values: Mapping[str, Any]) -> Any:
    return table(**values)


def packed(content: object) -> bytes:
    """Return tables as the file holds them."""
    buffer = io.BytesIO()
    _Writer(buffer, protocol=5).dump(content)
    return buffer.getvalue()


def fields_to_write(table: type[BaseModel]) -> bytes:
    """Return the fields of a class as the file holds them: `repr` and default of each."""
    fields = table.model_fields.items()
    without = [name for name, field in fields if field.is_required() or field.default_factory]
    return packed({name: (field.repr, ... if name in without else field.default) for name, field in fields})


@cache
def _parts() -> Mapping[tuple[str, str], bytes]:
    parts: Mapping[tuple[str, str], bytes] = pickle.loads(DATA.read_bytes())
    return parts


def validated(kind: str, name: str) -> Any:
    """Return a part of the file; KeyError if it was not written."""
    return pickle.loads(_parts()[kind, name])


_fields: dict[type, Mapping[str, DeclaredField]] = {}


def declared_fields(table: type) -> Mapping[str, DeclaredField]:
    """Return the fields of a class of records."""
    if table not in _fields:
        fields = validated("fields", key_of(table)).items()
        _fields[table] = {name: DeclaredField(table, name, shown, default) for name, (shown, default) in fields}
    return _fields[table]
