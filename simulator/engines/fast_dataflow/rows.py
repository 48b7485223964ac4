"""Classes of rows: integers with names, as dataclasses with slots have them, without what these take to be made.

Some thirty classes are made whenever the engine is imported, and most programs use half of them. So the initialiser of
a class is written when its first row is made.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, dataclass_transform


@dataclass_transform()
class _RowType(type):
    """Gives a class a slot for every annotated field, and keeps the defaults for its initialiser."""

    def __new__(cls, name: str, bases: tuple[type, ...], body: dict[str, Any]) -> _RowType:
        names = tuple(body.get("__annotations__", ()))
        defaults = {field: body.pop(field) for field in names if field in body}
        made = super().__new__(cls, name, bases, {**body, "__slots__": names})
        made.__defaults = defaults
        return made

    __defaults: dict[str, int]

    def write_initialiser(cls) -> Callable[..., None]:
        """Return a function that sets all fields of a row, in order or by name."""
        parameters = [f"{name}={cls.__defaults[name]}" if name in cls.__defaults else name for name in names_of(cls)]
        lines = [f"    self.{name} = {name}" for name in names_of(cls)]
        made: dict[str, Any] = {}
        source = "\n".join((f"def initialise(self, {', '.join(parameters)}):", *lines))
        exec(source, made)
        initialise: Callable[..., None] = made["initialise"]
        return initialise


class Row(metaclass=_RowType):
    """A row; its fields are integers."""

    def __init__(self, *values: int, **named: int) -> None:
        kind = type(self)
        initialise = kind.write_initialiser()
        kind.__init__ = initialise  # type: ignore[method-assign]  # the next rows get it at once
        initialise(self, *values, **named)


def names_of(row: type) -> tuple[str, ...]:
    """Return the fields of a class of rows, in order."""
    names: tuple[str, ...] = row.__dict__["__slots__"]
    return names
