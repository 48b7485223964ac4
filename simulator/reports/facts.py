"""The facts of a target by path, and which of those that a run rested on are less than documented."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from decimal import Decimal

from castsim.reports.documents import Json, json_of
from castsim.targets import Target
from castsim.targets.description import DOUBTFUL, Fact, Option, Table

OPTIONS = "options"
"""The part of a description that holds the options."""

_ABOUT = frozenset({*Fact.model_fields, "validated"})
"""Fields that say where a fact is from and how well it is known, not what it is."""


@dataclass(frozen=True, slots=True)
class NamedFact:
    """One fact table: its path in the description, its values, and how well it is known."""

    name: str
    status: str
    value: Json
    source: str
    note: str


def facts_by_part(target: Target) -> dict[str, tuple[NamedFact, ...]]:
    """Return the fact tables of a target by the part of its description, in the order of the description."""
    return {
        part: tuple(_named(path, fact) for path, fact in _facts(getattr(target, part), part))
        for part in type(target).model_fields
    }


def facts_of(target: Target) -> Iterator[NamedFact]:
    """Yield every fact table of a target, in the order of its description."""
    for found in facts_by_part(target).values():
        yield from found


def doubtful_facts(target: Target, paths: Iterable[str]) -> tuple[NamedFact, ...]:
    """Return those of the facts at `paths` that are assumed, fitted or a vendor's model, sorted by path.

    A path is that of the description, `timing.vector.vconv`.
    """
    wanted = set(paths)
    found = [(path, fact) for path, fact in _facts(target, "") if path in wanted and fact.status in DOUBTFUL]
    return tuple(_named(path, fact) for path, fact in sorted(found, key=lambda pair: pair[0]))


def described(value: object) -> str:
    """Return the value of a fact in one line."""
    if isinstance(value, Mapping):
        return ", ".join(f"{key} {described(item)}" for key, item in value.items())
    if isinstance(value, list | tuple):
        return " ".join(described(item) for item in value)
    return str(value)


def _facts(node: object, path: str) -> Iterator[tuple[str, Fact]]:
    if isinstance(node, Fact):
        yield path, node
    elif isinstance(node, Table):
        for name in type(node).model_fields:
            yield from _facts(getattr(node, name), f"{path}.{name}" if path else name)
    elif isinstance(node, Mapping):
        for key, item in node.items():
            yield from _facts(item, f"{path}.{key}")
    elif isinstance(node, tuple):
        for number, item in enumerate(node):
            yield from _facts(item, f"{path}[{number}]")


def _named(path: str, fact: Fact) -> NamedFact:
    if isinstance(fact, Option):
        value: Json = fact.value
    else:
        value = {name: _plain(getattr(fact, name)) for name in type(fact).model_fields if _is_told(fact, name)}
    return NamedFact(path, fact.status.value, value, fact.source, fact.note)


def _is_told(fact: Fact, name: str) -> bool:
    """Whether a field says what a fact is; one that no chip is known to use is left out while it has its default."""
    field = type(fact).model_fields[name]
    return name not in _ABOUT and (field.repr or getattr(fact, name) != field.default)


def _plain(value: object) -> Json:
    """Return a value that JSON can hold: decimals as `documents` has them, what a target writes as text as its text."""
    if isinstance(value, Table):
        return {name: _plain(getattr(value, name)) for name in type(value).model_fields}
    if isinstance(value, Mapping):
        return {str(key): _plain(item) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [_plain(item) for item in value]
    return json_of(value) if value is None or isinstance(value, bool | int | float | str | Decimal) else str(value)
