"""Tables of targets: declared like models of pydantic, which is loaded only to validate what is not shipped.

A class of tables is plain Python. Its fields and checks become a model of pydantic when values are first validated;
what that model accepts becomes a table. The shipped descriptions lie in `checked/` as they were when they were
validated (`python tests checked_targets` writes them), each beside the checksums of the files that it was read
from: where one of those differs, the description is read and validated again. All modules that declare tables take the
declarations from here.
"""

from __future__ import annotations

import pickle
import sys
from collections.abc import Callable, Iterable, Iterator, Mapping
from copy import deepcopy
from functools import cache, partial
from operator import itemgetter
from pathlib import Path
from types import FunctionType, UnionType
from typing import (
    TYPE_CHECKING,
    Annotated,
    Any,
    ClassVar,
    Literal,
    Self,
    TypeVar,
    Union,
    cast,
    get_args,
    get_origin,
    get_type_hints,
)
from zlib import crc32

from castsim.isa.dataclass import dataclass

if TYPE_CHECKING:
    from pydantic import (
        AfterValidator,
        BaseModel,
        BeforeValidator,
        ConfigDict,
        Field,
        InstanceOf,
        PrivateAttr,
        ValidationError,
        ValidationInfo,
        model_validator,
    )
    from pydantic_core import PydanticCustomError


__all__ = [
    "AfterValidator", "BaseModel", "BeforeValidator", "ConfigDict", "Field", "InstanceOf", "PrivateAttr",
    "PydanticCustomError", "ValidationError", "ValidationInfo", "model_validator",
]  # fmt: skip
"""What declarations need; `from castsim.targets import validated` for the errors, which load pydantic."""


_Function = TypeVar("_Function", bound=Callable[..., Any])


def _once(function: _Function) -> _Function:
    """Return a function that keeps its results; type checkers take classes of tables for unhashable."""
    return cast("_Function", cache(function))


class Mark:
    """An annotation or default of a field that only pydantic understands: what is called for it, and with what."""

    def __init__(self, called: str, *values: Any, **named: Any) -> None:
        self.called, self.values, self.named = called, values, named

    def of_pydantic(self) -> Any:
        """Return what pydantic makes of it."""
        import pydantic  # noqa: PLC0415 - as the text of the module says

        return getattr(pydantic, self.called)(*self.values, **self.named)


@dataclass(frozen=True, slots=True)
class DeclaredField:
    """A field of a class of tables; `given` is what stands behind its name, `...` if nothing does."""

    table: type
    name: str
    given: object

    @property
    def annotation(self) -> object:
        """The type."""
        hint = _hints(self.table)[self.name]
        return get_args(hint)[0] if get_origin(hint) is Annotated else hint

    @property
    def repr(self) -> bool:
        """Whether the text form of the table has it."""
        hint = _hints(self.table)[self.name]
        marks = (self.given, *(get_args(hint)[1:] if get_origin(hint) is Annotated else ()))
        return all(mark.named.get("repr", True) for mark in marks if isinstance(mark, Mark))

    @property
    def default(self) -> object:
        """The value of a table that does not say it; `...` where it must, or where each gets a new one."""
        return self.given.named.get("default", ...) if isinstance(self.given, Mark) else self.given

    def is_required(self) -> bool:
        """Return whether a table must say it."""
        return self.default is ... and not (isinstance(self.given, Mark) and "default_factory" in self.given.named)


class _Fields:
    """`model_fields` of a class of tables."""

    def __get__(self, table: object, owner: type) -> Mapping[str, DeclaredField]:
        return _declared_fields(owner)


@_once
def _declared_fields(table: type) -> Mapping[str, DeclaredField]:
    fields: dict[str, DeclaredField] = {}
    for owner in reversed(table.__mro__):
        for name, annotation in owner.__dict__.get("__annotations__", {}).items():  # noqa: RUF063 - texts will do
            if not (name.startswith("_") or str(annotation).startswith("ClassVar")):
                fields[name] = DeclaredField(table, name, owner.__dict__.get(name, ...))
    return fields


@_once
def _hints(table: type) -> Mapping[str, Any]:
    return get_type_hints(table, include_extras=True)


class DeclaredTable:
    """A table of values that were validated: as a model of pydantic looks from outside.

    Raises:
        pydantic.ValidationError: when it is made of values that a field or check refuses, or is changed.
    """

    model_config: ClassVar[Mapping[str, Any]] = {}
    model_fields: ClassVar[Any] = _Fields()
    if TYPE_CHECKING:
        model_fields_set: frozenset[str]

    __slots__ = ("__dict__", "__weakref__", "model_fields_set")

    def __init__(self, **values: Any) -> None:
        self.__setstate__(type(self).model_validate(values).__getstate__())

    @classmethod
    def model_validate(cls, values: object, *, context: Mapping[str, object] | None = None) -> Self:
        """Return the table of some values; where pydantic cannot be had, unchecked."""
        try:
            table: Self = validator(cls).validate_python(values, context=context)
        except ImportError:
            return cls._of(dict(values), values) if isinstance(values, Mapping) else cls()
        return table

    @classmethod
    def _of(cls, values: dict[str, Any], stated: Iterable[str]) -> Self:
        table = cls.__new__(cls)
        table.__setstate__((values, _same(frozenset(stated))))
        return table

    def model_copy(self, *, update: Mapping[str, Any] | None = None, deep: bool = False) -> Self:
        """Return a copy with some values replaced, which are not checked."""
        values = deepcopy(self.__dict__) if deep else self.__dict__
        changed = update or {}
        return self._of({**values, **changed}, self.model_fields_set.union(changed))

    def model_dump(self) -> dict[str, Any]:
        """Return the values, those of tables inside as mappings too."""
        return {name: _dumped(self.__dict__[name]) for name in _declared_fields(type(self))}

    def __eq__(self, other: object) -> bool:
        return type(self) is type(other) and _values(self) == _values(other)

    def __hash__(self) -> int:
        return hash(_values(self))

    def __repr__(self) -> str:
        shown = (f"{name}={self.__dict__[name]!r}" for name, field in type(self).model_fields.items() if field.repr)
        return f"{type(self).__name__}({', '.join(shown)})"

    def __setattr__(self, name: str, value: object) -> None:
        if name.startswith("_"):
            self.__dict__[name] = value
        else:
            self._refuse(name, value)

    def __delattr__(self, name: str) -> None:
        self._refuse(name, None)

    def _refuse(self, name: str, value: object) -> None:
        from pydantic_core import ValidationError as Frozen  # noqa: PLC0415 - who changes a table gets that error

        finding: Any = {"type": "frozen_instance", "loc": (name,), "input": value}
        raise Frozen.from_exception_data(type(self).__name__, [finding])

    def __getstate__(self) -> tuple[dict[str, Any], frozenset[str]]:
        fields = _declared_fields(type(self))
        # What was computed of the fields is computed anew.
        values = {key: value for key, value in self.__dict__.items() if key in fields or key.startswith("_")}
        return values, self.model_fields_set

    def __setstate__(self, state: tuple[Mapping[str, Any], frozenset[str]]) -> None:
        values, stated = state
        self.__dict__.update(values)
        object.__setattr__(self, "model_fields_set", stated)

    @classmethod
    def __get_pydantic_core_schema__(cls, _: object, handler: Any) -> Any:
        from pydantic_core import core_schema  # noqa: PLC0415 - as the text of the module says

        checks = _checks(cls)
        before = [name for name, mode in checks.items() if mode == "before"]
        after = [name for name, mode in checks.items() if mode == "after"]

        def validate(values: object, inner: Callable[[object], Any], info: Any) -> object:
            if isinstance(values, cls):
                table = values
            else:
                for name in before:
                    values = getattr(cls, name)(values)
                model = inner(values)
                table = cls._of(model.__dict__, model.model_fields_set)
            for name in after:
                check = getattr(table, name)
                table = check(info) if check.__code__.co_argcount > 1 else check()
            return table

        return core_schema.with_info_wrap_validator_function(validate, handler.generate_schema(_model(cls)))


@_once
def _getter(table: type) -> Callable[[Mapping[str, Any]], Any]:
    names = tuple(_declared_fields(table))
    return itemgetter(*names) if names else lambda _: ()


def _values(table: DeclaredTable) -> Any:
    return _getter(type(table))(table.__dict__)


_same_sets: dict[frozenset[str], frozenset[str]] = {}


def _same(names: frozenset[str]) -> frozenset[str]:
    """Return one object for equal sets, which a file then holds once."""
    return _same_sets.setdefault(names, names)


def _dumped(value: object) -> object:
    if isinstance(value, DeclaredTable):
        return value.model_dump()
    if isinstance(value, Mapping):
        return {key: _dumped(inner) for key, inner in value.items()}
    return tuple(map(_dumped, value)) if isinstance(value, tuple) else value


# What pydantic validates by: a model of the fields alone, whose values go into a table before the checks of that.


@_once
def validator(kind: Any) -> Any:
    """Return pydantic's validator of a type, such as a class of tables or a tuple of them."""
    import pydantic  # noqa: PLC0415 - as the text of the module says

    return pydantic.TypeAdapter(kind)


def _checks(table: type) -> dict[str, str]:
    """Return the names of the checks of a class in their order, and when each runs."""
    checks: dict[str, str] = {}
    for owner in reversed(table.__mro__):
        for name, member in owner.__dict__.items():
            if isinstance(member, FunctionType | classmethod) and (mode := getattr(member, "validates", None)):
                checks[name] = mode
    return checks


def _model(table: type[DeclaredTable]) -> Any:
    import pydantic  # noqa: PLC0415 - as the text of the module says

    fields: dict[str, Any] = {}
    for name, field in table.model_fields.items():
        default = field.given.of_pydantic() if isinstance(field.given, Mark) else field.given
        fields[name] = (_of_pydantic(_hints(table)[name]), default)
    config: Any = dict(table.model_config)
    return pydantic.create_model(table.__name__, __config__=config, __module__=table.__module__, **fields)


def _of_pydantic(hint: Any) -> Any:
    """Return a type with what pydantic makes of the marks in it."""
    origin, arguments = get_origin(hint), get_args(hint)
    if origin is Annotated:
        kind, *marks = arguments
        return Annotated[(_of_pydantic(kind), *(m.of_pydantic() if isinstance(m, Mark) else m for m in marks))]
    if origin is None or origin is Literal:
        return hint
    inner = tuple(map(_of_pydantic, arguments))
    return Union[inner] if origin in (Union, UnionType) else origin[inner]  # noqa: UP007 - of a tuple


def _model_validator(*, mode: str) -> Callable[[Any], Any]:
    """Return the decorator of a check of a whole table: `before` gets its values, `after` the table."""

    def mark(check: Any) -> Any:
        check.validates = mode
        return check

    return mark


def _private(default: object) -> Any:
    """Return the value that a table has until it is given another one."""
    return default


if not TYPE_CHECKING:
    BaseModel, ConfigDict, PrivateAttr, ValidationInfo = DeclaredTable, dict, _private, Any
    AfterValidator, BeforeValidator, Field, InstanceOf = (
        partial(Mark, called) for called in ("AfterValidator", "BeforeValidator", "Field", "InstanceOf")
    )
    model_validator = _model_validator

    def __getattr__(name: str) -> Any:
        """Return an error of pydantic; ValueError where pydantic cannot be had."""
        if name not in ("ValidationError", "PydanticCustomError"):
            raise AttributeError(name)
        try:
            import pydantic_core  # noqa: PLC0415 - as the text of the module says
        except ImportError:
            return ValueError
        return getattr(pydantic_core, name)


def can_validate() -> bool:
    """Return whether pydantic can be had: a browser has none."""
    try:
        import pydantic  # noqa: F401, PLC0415 - as the text of the module says
    except ImportError:
        return False
    return True


def tables_below(table: type[BaseModel]) -> Iterator[type[BaseModel]]:
    """Yield a class of tables and all its subclasses."""
    yield table
    for below in table.__subclasses__():
        yield from tables_below(below)


# The shipped descriptions as they were when they were validated.

CHECKED = Path(__file__).with_name("checked")
"""Folder of what was validated; each file holds the checksums of what it was read from, and tables."""


def checked(name: str) -> Any:
    """Return what was validated under a name; None if it is not there, or the files that it was read from differ."""
    try:
        with (CHECKED / f"{name}.pickle").open("rb") as file:
            if pickle.load(file) != checksums(pickle.load(file)):
                return None
            return pickle.load(file)
    except OSError:
        return None
    except (AttributeError, ImportError, ValueError, TypeError, LookupError, EOFError, pickle.UnpicklingError):
        return None  # of other sources than these


def to_keep(content: object, names: Iterable[str]) -> bytes:
    """Return the file for `checked`; `names` are those of the files that the content was read from."""
    sources = sorted({*names, *(path.name for path in CHECKED.parent.glob("*.py"))})
    return b"".join(pickle.dumps(part, protocol=5) for part in (checksums(sources), sources, content))


def checksums(names: Iterable[str]) -> list[tuple[str, int]]:
    """Return what tells files of this folder from edited ones."""
    return [(sys.intern(name), crc32((CHECKED.parent / name).read_bytes())) for name in names]
