"""The public names of `castsim` as directives, each under the heading of its kind."""

from __future__ import annotations

import inspect
from collections.abc import Iterator

import castsim
from castsim.execution.notebook_display import Presented


def names() -> str:
    """Return a directive per public name: functions, what they return, errors."""
    parts = []
    for heading, group in (("Functions", _functions()), ("Results and types", _types()), ("Errors", _errors())):
        parts.append(f"## {heading}\n\n" + "\n\n".join(map(_directive, group)))
    return "\n\n".join(parts) + "\n"


def _directive(name: str) -> str:
    """Return the directive of a name; of results it also shows what all of them can do in a notebook."""
    found = getattr(castsim, name)
    shown = isinstance(found, type) and issubclass(found, Presented)
    return f"::: castsim.{name}\n" + ("    options:\n      inherited_members: true\n" if shown else "")


def _functions() -> Iterator[str]:
    return (name for name in castsim.__all__ if inspect.isfunction(getattr(castsim, name)))


def _errors() -> Iterator[str]:
    return (name for name in castsim.__all__ if _is_error(getattr(castsim, name)))


def _types() -> Iterator[str]:
    known = {*_functions(), *_errors(), "__version__"}
    return (name for name in castsim.__all__ if name not in known)


def _is_error(found: object) -> bool:
    return isinstance(found, type) and issubclass(found, Exception)
