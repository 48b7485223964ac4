"""Options of the target that a program names itself: comments `// castsim: option NAME=VALUE`.

Source: docs/reference/micro.md section 1.8.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass

from castsim.isa.errors import ReadError, Span
from castsim.isa.pto.lexer import PtoSource

_COMMENT = re.compile(r'"(?:[^"\\\n]++|\\[^\n])*+"|//([^\n]*+)')
_OPTION = re.compile(r"\s*castsim:\s*option\b\s*")
_ASSIGNMENT = re.compile(r"([\w-]+)=(\S+)\s*")


@dataclass(frozen=True, slots=True)
class NamedOption:
    """An option as a program names it, and where."""

    name: str
    value: str
    span: Span


def options_named(text: str, file: str) -> tuple[NamedOption, ...]:
    """Return the options that a text names, in its order.

    Raises:
        ReadError: a line that is not of the form NAME=VALUE, or an option that is given twice.
    """
    if "castsim:" not in text:
        return ()
    found: dict[str, NamedOption] = {}
    for one in _options(PtoSource(file, text)):
        if one.name in found:
            raise ReadError(
                f"option {one.name} is given twice, first in line {found[one.name].span.line}", span=one.span
            )
        found[one.name] = one
    return tuple(found.values())


def _options(source: PtoSource) -> Iterator[NamedOption]:
    for comment in _COMMENT.finditer(source.text):
        head = None if comment[1] is None else _OPTION.match(source.text, comment.start(1), comment.end())
        if head is None:
            continue
        given = _ASSIGNMENT.fullmatch(source.text, head.end(), comment.end())
        if given is None:
            raise source.error(
                "an option is given as NAME=VALUE", head.end(), max(1, comment.end() - head.end()),
                ("// castsim: option NAME=VALUE",),
            )  # fmt: skip
        yield NamedOption(given[1], given[2], source.span(given.start(1), given.end(2) - given.start(1)))
