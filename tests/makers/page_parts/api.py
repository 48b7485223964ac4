"""The public names of `castsim`, each under the heading of its kind: signature, what it is, fields and methods."""

from __future__ import annotations

import ast
import inspect
import re
from collections.abc import Callable, Iterator
from textwrap import dedent, fill
from typing import Any

from makers.page_parts.markdown import codes, first_sentence, prose

import castsim
from castsim.execution.outcomes import NotebookMixin

FIRST = ("cast", "run", "estimate", "lower", "check")
_END = re.compile(r"(?<=[^.]\.)\s(?=[A-Z`])|(?<=:)\s*$")


def names() -> str:
    """Return a section per public name: functions, what they return, errors."""
    parts = []
    for heading, group in (("Functions", _functions()), ("Results and types", _types()), ("Errors", _errors())):
        parts += [f"## {heading}", *(_section(name) for name in group)]
    parts += [
        "## Results in notebooks",
        "What results have in common that can be shown in a notebook.",
        _members(NotebookMixin),
    ]
    return "\n\n".join(parts) + "\n"


def _section(name: str) -> str:
    found = getattr(castsim, name)
    heading = f"### castsim.{name}\n"
    if not isinstance(found, type):
        return f"{heading}\n```python\n{_on_lines(_signature(found))}\n```\n\n{_said(found)}"
    shown = "[Shown in notebooks](#results-in-notebooks)." if issubclass(found, NotebookMixin) else ""
    parts = [heading.rstrip("\n"), f"{_said(found)} {shown}".strip(), _fields(found), _members(found)]
    return "\n\n".join(text for text in parts if text)


def _on_lines(signature: str) -> str:
    """Return a signature that is too long for one line with its parameters on lines of their own."""
    if len(signature) <= 100:
        return signature
    name, _, rest = signature.partition("(")
    parameters, _, result = rest.rpartition(")")
    kept = re.sub(r"(?<!,) ", "\N{NO-BREAK SPACE}", parameters)  # lines end behind parameters only
    lines = fill(f"{kept},", 96, initial_indent="    ", subsequent_indent="    ", break_long_words=False)
    return f"{name}(\n{lines}\n){result}".replace("\N{NO-BREAK SPACE}", " ")


def _said(owner: object) -> str:
    """Return the first sentence of a docstring."""
    return prose(_END.split(first_sentence(inspect.getdoc(owner)))[0])


def _fields(owner: type) -> str:
    """Return the fields that a class annotates itself."""
    found = [
        name for name, kind in vars(owner).get("__annotations__", {}).items()
        if not name.startswith("_") and not str(kind).startswith("ClassVar") and name not in _properties(owner)
    ]  # fmt: skip
    return f"Fields: {codes(found, ', ')}." if found else ""


def _properties(owner: type) -> dict[str, property]:
    return {name: found for name, found in vars(owner).items() if isinstance(found, property)}


def _members(owner: type) -> str:
    """Return a line per public method and property that a class defines itself."""
    lines = []
    for name, found in tuple(vars(owner).items()):
        if isinstance(found, property) and not name.startswith("_"):
            lines.append(f"* `{name}`: {_said(found)}")
        member = getattr(found, "func", found)
        member = getattr(member, "__func__", member)
        if not name.startswith(("_", "model_")) and inspect.isfunction(member):  # of pydantic
            plain = member is not found and not isinstance(found, (classmethod, staticmethod))
            call = name if plain else _signature(member)
            lines.append(f"* `{call}`: {_said(member)}")
    return "\n".join(lines)


def _signature(function: Callable[..., Any]) -> str:
    """Return a function's signature as its source writes it, without annotations of parameters."""
    node = ast.parse(dedent(inspect.getsource(inspect.unwrap(function)))).body[0]
    assert isinstance(node, ast.FunctionDef)
    for each in (argument for argument in ast.walk(node.args) if isinstance(argument, ast.arg)):
        each.annotation = None
    result = f" -> {ast.unparse(node.returns)}" if node.returns else ""
    parameters = re.sub(r"^(self|cls)\b(, )?", "", ast.unparse(node.args))
    return f"{node.name}({parameters}){result}"


def _functions() -> list[str]:
    """Return the functions, those that most readers come for first."""
    found = [name for name in castsim.__all__ if inspect.isfunction(getattr(castsim, name))]
    return [*FIRST, *(name for name in found if name not in FIRST)]


def _errors() -> Iterator[str]:
    return (name for name in castsim.__all__ if _is_error(getattr(castsim, name)))


def _types() -> Iterator[str]:
    known = {*_functions(), *_errors(), "__version__"}
    return (name for name in castsim.__all__ if name not in known)


def _is_error(found: object) -> bool:
    return isinstance(found, type) and issubclass(found, Exception)
