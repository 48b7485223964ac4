"""The public names of `castsim`, each under the heading of its kind: signature, docstring, fields and methods."""

from __future__ import annotations

import ast
import inspect
import re
from collections.abc import Callable, Iterator
from textwrap import dedent
from typing import Any

import castsim
from castsim.execution.notebook_display import Presented
from page_parts.markdown import prose
from page_parts.source_text import told

_SECTION = re.compile(r"^(Args|Returns|Yields|Raises):\n((?:    .*\n?|\n)+)", re.MULTILINE)
_ENTRY = re.compile(r"^([\w*., ]+): (.*)", re.DOTALL)


def names() -> str:
    """Return a section per public name: functions, what they return, errors."""
    parts = []
    for heading, group in (("Functions", _functions()), ("Results and types", _types()), ("Errors", _errors())):
        parts += [f"## {heading}", *(_section(name) for name in group)]
    parts += [
        "## Results in notebooks",
        "What results have in common that can be shown in a notebook.",
        _members(Presented, ""),
    ]
    return "\n\n".join(parts) + "\n"


def _section(name: str) -> str:
    found = getattr(castsim, name)
    heading = f"### castsim.{name}\n"
    if not isinstance(found, type):
        return f"{heading}\n{_signature(found)}\n\n{_docstring(found)}"
    parts = [heading, _docstring(found)]
    if issubclass(found, Presented):
        parts.append("It [can be shown in a notebook](#results-in-notebooks).")
    parts += [text for text in (_fields(found), _members(found, f"{name}.")) if text]
    return "\n\n".join(parts).replace("\n\n\n", "\n\n")


def _fields(owner: type) -> str:
    """Return a list of the fields that a class annotates itself, with what it says below them."""
    texts = told(owner)
    return "\n".join(
        f"* `{name}` (`{_plain(kind)}`)" + (f": {prose(texts[name])}" if name in texts else "")
        for name, kind in vars(owner).get("__annotations__", {}).items()
        if not name.startswith("_") and not str(kind).startswith("ClassVar")
    )


def _members(owner: type, prefix: str) -> str:
    """Return a section per public method and property that a class defines itself, the prefix before their names."""
    parts = []
    for name, found in tuple(vars(owner).items()):
        member = found.fget if isinstance(found, property) else getattr(found, "func", found)
        member = getattr(member, "__func__", member)
        if not name.startswith("_") and inspect.isfunction(member):
            call = (
                "" if member is not found and not isinstance(found, (classmethod, staticmethod)) else _signature(member)
            )
            parts.append(f"#### {prefix}{name}\n\n" + (f"{call}\n\n" if call else "") + _docstring(member))
    return "\n\n".join(parts)


def _signature(function: Callable[..., Any]) -> str:
    """Return a function's signature as its source writes it, one parameter to a line where it is long."""
    node = ast.parse(dedent(inspect.getsource(inspect.unwrap(function)))).body[0]
    assert isinstance(node, ast.FunctionDef)
    node.args.posonlyargs = [each for each in node.args.posonlyargs if each.arg not in ("self", "cls")]
    node.args.args = [each for each in node.args.args if each.arg not in ("self", "cls")]
    result = f" -> {ast.unparse(node.returns)}" if node.returns else ""
    parameters = [*_parameters(node.args)]
    whole = f"{node.name}({', '.join(parameters)}){result}"
    if len(whole) > 100:
        each = "".join(f"    {parameter},\n" for parameter in parameters)
        whole = f"{node.name}(\n{each}){result}"
    return f"```python\n{whole}\n```"


def _parameters(arguments: ast.arguments) -> Iterator[str]:
    """Yield the parameters of a signature."""
    plain = [*arguments.posonlyargs, *arguments.args]
    missing: list[ast.expr | None] = [None] * (len(plain) - len(arguments.defaults))
    for each, default in zip(plain, [*missing, *arguments.defaults], strict=True):
        yield ast.unparse(each) + (f" = {ast.unparse(default)}" if default else "")
    if arguments.vararg or arguments.kwonlyargs:
        yield f"*{ast.unparse(arguments.vararg)}" if arguments.vararg else "*"
    for each, default in zip(arguments.kwonlyargs, arguments.kw_defaults, strict=True):
        yield ast.unparse(each) + (f" = {ast.unparse(default)}" if default else "")
    if arguments.kwarg:
        yield f"**{ast.unparse(arguments.kwarg)}"


def _docstring(owner: object) -> str:
    """Return a docstring as Markdown: indented lines are code, sections are lists."""
    text = inspect.getdoc(owner) or ""
    parts = [_block(block) for block in _SECTION.sub("", text).strip().split("\n\n") if block.strip()]
    for match in _SECTION.finditer(text):
        parts.append(f"**{match[1]}**" if match[1] != "Args" else "**Arguments**")
        entries = re.split(r"\n(?=\S)", dedent(match[2]).strip())
        found = [_ENTRY.match(entry) for entry in entries]
        if match[1] in ("Args", "Raises") and all(found):
            parts.append("\n".join(f"* {_each(entry[1])}: {prose(entry[2])}" for entry in found if entry))
        else:
            parts.append(prose(match[2]))
    return "\n\n".join(parts)


def _block(block: str) -> str:
    if all(line.startswith("    ") for line in block.splitlines()):
        return f"```python\n{dedent(block)}\n```"
    items = re.split(r"\n(?=- )", block)
    return "\n".join(f"* {prose(item[2:])}" for item in items) if block.startswith("- ") else prose(block)


def _each(words: str) -> str:
    """Return the names in front of an entry, each as code."""
    return ", ".join(f"`{name.strip()}`" for name in words.split(","))


def _plain(kind: object) -> str:
    return kind if isinstance(kind, str) else getattr(kind, "__name__", str(kind))


def _functions() -> Iterator[str]:
    return (name for name in castsim.__all__ if inspect.isfunction(getattr(castsim, name)))


def _errors() -> Iterator[str]:
    return (name for name in castsim.__all__ if _is_error(getattr(castsim, name)))


def _types() -> Iterator[str]:
    known = {*_functions(), *_errors(), "__version__"}
    return (name for name in castsim.__all__ if name not in known)


def _is_error(found: object) -> bool:
    return isinstance(found, type) and issubclass(found, Exception)
