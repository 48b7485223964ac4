"""Editing single facts of a loaded description, and the limits that a description names for lifting.

A limit is lifted by editing facts, so a run with it lifted is a run on a description with those facts edited, and
nothing else.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from decimal import Decimal
from typing import Any, TypeVar

from pydantic import BaseModel, ValidationError

from castsim.isa.errors import ReadError, TargetDataError
from castsim.targets.schema import TargetHeader

ANY = "*"
"""In a path: every key of a table."""

_Target = TypeVar("_Target", bound=TargetHeader)


def limits_of(target: TargetHeader) -> Mapping[str, str]:
    """Return the limits that a target names for lifting, and what each is, in the order of the description."""
    return {name: limit.title for name, limit in target.what_if.items()}


def lifted(target: _Target, name: str) -> _Target:
    """Return the target with one limit lifted.

    Raises:
        ReadError: the target names no such limit; those that it names are listed.
        TargetDataError: the description would set a fact to what it cannot be.
    """
    if name not in target.what_if:
        raise ReadError(f"{target.name} knows no what-if '{name}'", legal=target.what_if)
    return with_facts(target, target.what_if[name].set)


def with_facts(target: _Target, facts: Mapping[str, object]) -> _Target:
    """Return the target with facts edited; `timing.vector.*.tail_cycles` names one in every row of a table.

    Raises:
        TargetDataError: no such fact, or a value that it cannot have.
    """
    for path, value in facts.items():
        try:
            target = _edited(target, path.split("."), value)
        except ValidationError as error:
            reason = error.errors()[0]["msg"]
            raise TargetDataError(f"{target.name}: {path} cannot be {value}: {reason}") from None
        except (AttributeError, KeyError):
            raise TargetDataError(f"{target.name} has no fact '{path}'") from None
    return target


def with_values(target: _Target, facts: Mapping[str, Decimal | int]) -> _Target:
    """Return the target with numbers edited, each of a kind that its fact can have: nothing is checked again."""
    for path, value in facts.items():
        target = _replaced(target, path.split("."), value)
    return target


def _replaced(held: Any, path: Sequence[str], value: Decimal | int) -> Any:
    if not path:
        return value
    name, *rest = path
    if isinstance(held, BaseModel):
        return held.model_copy(update={name: _replaced(getattr(held, name), rest, value)})
    return {**held, name: _replaced(held[name], rest, value)}


def _edited(held: Any, path: Sequence[str], value: object) -> Any:
    """Return a table, or what a table holds, with the fact at `path` below it edited.

    Raises:
        AttributeError, KeyError: there is none.
        pydantic.ValidationError: a value that the fact cannot have.
    """
    if not path:
        return Decimal(value) if isinstance(held, Decimal) and isinstance(value, int) else value
    name, *rest = path
    if isinstance(held, BaseModel):
        changed = _edited(getattr(held, name), rest, value)
        return type(held).model_validate({**_fields(held), name: changed})
    if not isinstance(held, Mapping):
        raise KeyError(name)
    names = list(held) if name == ANY else [name]
    return {**held, **{each: _edited(held[each], rest, value) for each in names}}


def _fields(table: BaseModel) -> dict[str, Any]:
    return {name: getattr(table, name) for name in type(table).model_fields}
