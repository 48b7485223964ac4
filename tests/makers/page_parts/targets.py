"""Tables of target descriptions: keys, statuses, options and limits, from the schema and the shipped files."""

from __future__ import annotations

import typing
from collections.abc import Iterator

from makers.page_parts.markdown import code, codes, csv_text, first_sentence, table

from castsim.reports.target_template import told
from castsim.targets.description import Fact, Status, Table, TargetHeader
from castsim.targets.loader import load_target, target_names
from castsim.targets.strided_repeat import StridedRepeatTarget
from castsim.targets.vector_function import VectorFunctionTarget
from castsim.targets.vliw import VliwTarget

MECHANISMS = {"strided-repeat": StridedRepeatTarget, "vector-function": VectorFunctionTarget, "vliw": VliwTarget}

HEADER = ("name", "title", "kind", "mechanism", "languages", "architectures")
"""The keys that every description begins with."""


def keys() -> str:
    """Return the keys that every description begins with."""
    return table(("key", "what it holds"), ((code(name), told_above(TargetHeader, name)) for name in HEADER))


def key_file() -> str:
    """Return the tables that a description of each mechanism has, with their keys, as CSV."""
    rows = (
        (name, path, "optional" if optional else "required", _about(kind), " ".join(_own_keys(kind)))
        for name, model in MECHANISMS.items()
        for path, kind, optional in _tables(model, "", depth=2)
    )
    return csv_text(("mechanism", "key", "presence", "what it holds", "keys in it"), rows)


def _tables(model: type[Table], above: str, depth: int) -> Iterator[tuple[str, object, bool]]:
    for name, field in model.model_fields.items():
        kind = _model_of(field.annotation)
        path = f"{above}{name}"
        if kind is field.annotation and depth > 1 and not issubclass(kind, Fact):  # not a list or dictionary of them
            yield from _tables(kind, f"{path}.", depth - 1)
        else:
            yield path, kind or _Plain(told_above(model, name)), not field.is_required()


class _Plain:
    """A key without keys of its own, and what the schema says of it."""

    def __init__(self, about: str) -> None:
        self.about = about


def told_above(model: type, name: str) -> str:
    """Return what a schema, or one that it builds on, says below a field; '' if none does."""
    for owner in model.__mro__:
        if isinstance(owner, type) and owner.__module__.startswith("castsim") and name in told(owner):
            return told(owner)[name]
    return ""


def _about(kind: object) -> str:
    if isinstance(kind, _Plain):
        return kind.about
    return first_sentence(getattr(kind, "__doc__", ""))


def _own_keys(kind: object) -> tuple[str, ...]:
    if isinstance(kind, _Plain):
        return ()
    assert isinstance(kind, type) and issubclass(kind, Table)
    return tuple(name for name in kind.model_fields if name not in Fact.model_fields)


def _model_of(annotation: object) -> type[Table] | None:
    """Return the schema of a table within an annotation such as `dict[str, Option]`."""
    if isinstance(annotation, type) and issubclass(annotation, Table):
        return annotation
    inner = (_model_of(part) for part in typing.get_args(annotation))
    return next((found for found in inner if found is not None), None)


def statuses() -> str:
    """Return what each status means."""
    return table(("status", "what it says"), ((code(status.value), told(Status)[status.name]) for status in Status))


def options() -> str:
    """Return the names of the options by the targets that have them."""
    assembly = [name for name in target_names() if "tpc" in load_target(name).languages]
    groups: dict[str, list[str]] = {}
    for (option, *_), owners in _options().items():
        groups.setdefault("TPC" if owners == assembly else ", ".join(owners), []).append(option)
    return "\n".join(f"* {owners}: {codes(options)}" for owners, options in groups.items())


def option_file() -> str:
    """Return the options of every target as CSV, with their meaning and status."""
    rows = (
        (" ".join(owners), option, default, " ".join(map(str, legal)), meaning, status)
        for (option, default, legal, meaning, status), owners in _options().items()
    )
    return csv_text(("targets", "option", "default", "values", "meaning", "status"), rows)


def _options() -> dict[tuple[str, object, tuple[object, ...], str, str], list[str]]:
    """Return the targets that have each option with the same default, values, meaning and status."""
    found: dict[tuple[str, object, tuple[object, ...], str, str], list[str]] = {}
    for name in target_names():
        for option, one in load_target(name).options.items():
            key = (option, one.value, tuple(one.legal), one.meaning, one.status.value)
            found.setdefault(key, []).append(name)
    return found


def limit_file() -> str:
    """Return the limits that `--what-if` lifts as CSV, with the facts that each sets."""
    rows = (
        (name, limit, one.title, " ".join(one.set))
        for name in target_names()
        for limit, one in load_target(name).what_if.items()
    )
    return csv_text(("target", "limit", "what lifting it means", "facts that it sets"), rows)
