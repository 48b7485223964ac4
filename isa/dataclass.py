"""The decorator `dataclass` without generated source, because a command declares hundreds of dataclasses.

It takes the arguments of `dataclasses.dataclass`, and means the same; `fields`, `replace`, `asdict`, pickling, copying
and type checkers treat its classes alike. The standard decorator compiles the source of up to six methods
for each class, which is most of what an import takes. Here one function serves all classes for each method but
`__init__`: calls of it set the fields one by one, until it has been called so often that compiling pays.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Mapping
from dataclasses import MISSING, Field, FrozenInstanceError, asdict, astuple, field, fields, is_dataclass, replace
from inspect import get_annotations
from operator import attrgetter, ge, gt, le, lt
from reprlib import recursive_repr
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any

__all__ = ["MISSING", "asdict", "astuple", "dataclass", "field", "fields", "is_dataclass", "replace"]

CALLS_UNCOMPILED = 40
"""Calls of an `__init__` that take as long as compiling it."""

_FIELD: Any = dataclasses._FIELD  # type: ignore[attr-defined]
"""What marks a field for `dataclasses.fields`."""


def _dataclass(
    cls: type | None = None,
    /,
    *,
    frozen: bool = False,
    slots: bool = False,
    eq: bool = True,
    order: bool = False,
    repr: bool = True,  # noqa: A002 - the name of dataclasses
    kw_only: bool = False,
) -> Any:
    """Return a class as a dataclass; without one, the decorator."""
    options = SimpleNamespace(init=True, frozen=frozen, slots=slots, eq=eq, order=order, repr=repr, kw_only=kw_only)
    options.unsafe_hash = False
    if cls is None:
        return lambda declared: _declared(declared, options)
    return _declared(cls, options)


if TYPE_CHECKING:
    from dataclasses import dataclass
else:
    dataclass = _dataclass


def _declared(cls: type, options: SimpleNamespace) -> type:
    inherited: dict[str, Field[Any]] = {}
    for base in cls.__mro__[-1:0:-1]:
        inherited |= getattr(base, "__dataclass_fields__", {})
    own = {
        name: _field(cls, name, annotation, options.kw_only)
        for name, annotation in get_annotations(cls).items()
        if not str(annotation).startswith(("ClassVar", "typing.ClassVar"))
    }
    fields = inherited | own
    methods = _methods(cls, fields, options)
    if options.slots:
        taken = {name for base in cls.__mro__[1:-1] for name in getattr(base, "__slots__", ())}
        content = {name: value for name, value in cls.__dict__.items() if name not in fields}
        content.pop("__dict__", None)
        content.pop("__weakref__", None)
        content = methods | content | {"__slots__": tuple(name for name in fields if name not in taken)}
        qualified = cls.__qualname__
        cls = type(cls)(cls.__name__, cls.__bases__, content)
        cls.__qualname__ = qualified
        _rebind_super(cls)
    else:
        for name, entry in own.items():
            if entry.default is not MISSING:
                setattr(cls, name, entry.default)
            elif name in cls.__dict__:
                delattr(cls, name)
    present = cls.__dict__
    for name, method in methods.items():
        if name not in present:
            setattr(cls, name, method)
    if options.frozen:
        _freeze(cls, fields)
    if "__init__" not in present:
        setattr(cls, "__init__", _Initialiser(cls, fields, options))  # noqa: B010 - which type checkers refuse
    return cls


def _rebind_super(cls: type) -> None:
    """Make `super()` in the methods of a class that was created again refer to this class."""
    for value in vars(cls).values():
        for function in (value, *(getattr(value, name, None) for name in ("__func__", "fget", "func"))):
            code = getattr(function, "__code__", None)
            if code is not None and "__class__" in code.co_freevars:
                function.__closure__[code.co_freevars.index("__class__")].cell_contents = cls
                return  # the methods of a class share the cell


def _field(cls: type, name: str, annotation: object, kw_only: bool) -> Field[Any]:
    if str(annotation).removeprefix("dataclasses.").startswith(("InitVar", "KW_ONLY")):
        raise TypeError(f"{cls.__qualname__}.{name}: {annotation} is a matter of dataclasses.dataclass alone")
    default = cls.__dict__.get(name, MISSING)
    entry: Field[Any] = default if isinstance(default, Field) else dataclasses.field(default=default)
    if entry.default.__class__.__hash__ is None:
        raise ValueError(f"{cls.__qualname__}.{name}: a mutable default {entry.default!r} needs default_factory")
    entry.name, entry.type = name, annotation
    entry._field_type = _FIELD  # type: ignore[attr-defined]
    if entry.kw_only is MISSING:
        entry.kw_only = kw_only
    return entry


def _methods(cls: type, fields: Mapping[str, Field[Any]], options: SimpleNamespace) -> dict[str, Any]:
    """Return the attributes that a class gets unless it declares them itself."""
    methods: dict[str, Any] = {
        "__dataclass_fields__": fields,
        "__dataclass_params__": options,
        "__match_args__": tuple(name for name, entry in fields.items() if entry.init and not entry.kw_only),
    }
    if options.repr:
        methods["__repr__"] = _shown
    if options.eq:
        compared = tuple(name for name, entry in fields.items() if entry.compare)
        values = _values_of(compared)
        methods["__eq__"] = _equality(values)
        hashed = tuple(name for name, entry in fields.items() if (entry.compare if entry.hash is None else entry.hash))
        explicit = cls.__dict__.get("__hash__", MISSING)
        if explicit is MISSING or (explicit is None and "__eq__" in cls.__dict__):
            if explicit is None:
                del cls.__hash__
            methods["__hash__"] = _hashing(_values_of(hashed)) if options.frozen else None
        if options.order:
            methods |= {f"__{each.__name__}__": _comparison(values, each) for each in (lt, le, gt, ge)}
    if options.slots and options.frozen:  # where copies and pickles could not set what they read
        methods |= {"__getstate__": _state, "__setstate__": _restore}
    return methods


def _values_of(names: tuple[str, ...]) -> Callable[[Any], tuple[Any, ...]]:
    """Return the function that gives the values of some fields as a tuple."""
    if not names:
        return lambda own: ()
    if len(names) > 1:
        return attrgetter(*names)
    value = attrgetter(*names)
    return lambda own: (value(own),)


def _equality(values: Callable[[Any], object]) -> Any:
    def __eq__(self: object, other: object) -> Any:  # noqa: N807 - becomes a method
        if other.__class__ is self.__class__:
            return values(self) == values(other)
        return NotImplemented

    return __eq__


def _hashing(values: Callable[[Any], object]) -> Any:
    def __hash__(self: object) -> int:  # noqa: N807 - becomes a method
        return hash(values(self))

    return __hash__


def _comparison(values: Callable[[Any], object], compare: Callable[[Any, Any], bool]) -> Any:
    def compared(self: object, other: object) -> Any:
        if other.__class__ is self.__class__:
            return compare(values(self), values(other))
        return NotImplemented

    return compared


@recursive_repr()
def _shown(self: Any) -> str:
    shown = (f"{name}={getattr(self, name)!r}" for name, entry in self.__dataclass_fields__.items() if entry.repr)
    return f"{self.__class__.__qualname__}({', '.join(shown)})"


def _state(self: Any) -> list[Any]:
    return [getattr(self, name) for name in self.__dataclass_fields__]


def _restore(self: Any, state: list[Any]) -> None:
    for name, value in zip(self.__dataclass_fields__, state, strict=True):
        object.__setattr__(self, name, value)


def _freeze(cls: type, fields: Mapping[str, Field[Any]]) -> None:
    owner: Any = cls

    def __setattr__(self: object, name: str, value: object) -> None:  # noqa: N807 - becomes a method
        if type(self) is cls or name in fields:
            raise FrozenInstanceError(f"cannot assign to field {name!r}")
        super(owner, self).__setattr__(name, value)

    def __delattr__(self: object, name: str) -> None:  # noqa: N807 - becomes a method
        if type(self) is cls or name in fields:
            raise FrozenInstanceError(f"cannot delete field {name!r}")
        super(owner, self).__delattr__(name)

    setattr(cls, "__setattr__", __setattr__)  # noqa: B010 - which type checkers refuse
    setattr(cls, "__delattr__", __delattr__)  # noqa: B010 - the same


class _Initialiser:
    """The `__init__` of a dataclass, until it is compiled."""

    __slots__ = ("calls", "cls", "fields", "positional", "put")

    def __init__(self, cls: type, fields: Mapping[str, Field[Any]], options: SimpleNamespace) -> None:
        self.cls, self.fields, self.calls = cls, fields, 0
        self.positional: tuple[str, ...] = cls.__dict__["__match_args__"]
        self.put: Callable[[Any, str, Any], None] = object.__setattr__ if options.frozen else setattr

    def __get__(self, instance: object, owner: type | None = None) -> Any:
        if instance is None or self.calls == CALLS_UNCOMPILED:
            method = self.compiled()
            return method if instance is None else method.__get__(instance)
        self.calls += 1

        def initialise(*values: Any, **named: Any) -> None:
            self.initialise(instance, values, named)

        return initialise

    def initialise(self, instance: Any, values: tuple[Any, ...], named: dict[str, Any]) -> None:
        """Set the fields of an object; a wrong call is left to the compiled method to refuse."""
        given = dict(zip(self.positional, values, strict=False))
        given.update(named)
        taken = 0
        for name, entry in self.fields.items():
            if entry.init and name in given:
                value = given[name]
                taken += 1
            elif entry.default is not MISSING:
                value = entry.default
            elif entry.default_factory is not MISSING:
                value = entry.default_factory()
            elif entry.init:
                break
            else:
                continue
            self.put(instance, name, value)
        else:
            if taken == len(values) + len(named):
                if hasattr(self.cls, "__post_init__"):
                    instance.__post_init__()
                return
        self.compiled()(instance, *values, **named)

    def compiled(self) -> Any:
        """Return the method, which takes its place in the class from now on."""
        names: dict[str, Any] = {"_put_": object.__setattr__, "_MISSING_": MISSING}
        positional, by_name, body = ["self"], ["*"], []
        for name, entry in self.fields.items():
            parameter, value = name, name
            if entry.default is not MISSING:
                names[f"_default_{name}"] = entry.default
                parameter, value = (f"{name}=_default_{name}", name) if entry.init else ("", f"_default_{name}")
            elif entry.default_factory is not MISSING:
                names[f"_new_{name}"] = entry.default_factory
                parameter, value = f"{name}=_MISSING_", f"_new_{name}() if {name} is _MISSING_ else {name}"
                if not entry.init:
                    parameter, value = "", f"_new_{name}()"
            elif not entry.init:
                continue
            if parameter:
                (by_name if entry.kw_only else positional).append(parameter)
            body.append(f" self.{name} = {value}" if self.put is setattr else f" _put_(self, {name!r}, {value})")
        if hasattr(self.cls, "__post_init__"):
            body.append(" self.__post_init__()")
        parameters = ", ".join(positional + by_name * (len(by_name) > 1))
        exec(f"def __init__({parameters}):\n" + ("\n".join(body) or " pass"), names)
        method = names["__init__"]
        method.__qualname__, method.__module__ = f"{self.cls.__qualname__}.__init__", self.cls.__module__
        method.__annotations__ = {name: entry.type for name, entry in self.fields.items() if entry.init}
        method.__annotations__["return"] = None
        setattr(self.cls, "__init__", method)  # noqa: B010 - which type checkers refuse
        return method
