"""Parameters of a tile program: comments `// castsim: parameter R = 16`, and `${R}` where the value stands.

`${...}` holds a name or an integer expression (`${R*2}`). A text with the defaults filled in is an ordinary program, so
everything that reads `.pto` reads one with parameters; places are those of the text as it was written. Words in strings
and comments stay as they are. Source: docs/reference/pto.md section 3.6 (this simulator's own; no vendor has it).
"""

from __future__ import annotations

import re
from bisect import bisect_right
from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from castsim.isa.errors import ReadError, Span
from castsim.isa.pto.lexer import PtoSource
from castsim.isa.value_expressions import LEGAL, Expression, Value, read_value, read_values

__all__ = ["FORM", "LEGAL", "RANGED", "Filled", "Parameter", "filled", "parameters", "unknown_parameter", "with_values"]


FORM = "// castsim: parameter NAME = VALUE"
"""How a parameter is declared."""
RANGED = "// castsim: parameter NAME = VALUE in VALUES"
"""The same with the values that are worth a try."""

_HEAD = re.compile(r"\s*castsim:\s*parameter\b")
_DECLARATION = re.compile(r"\s+([A-Za-z_]\w*)\s*=\s*([^\s,]+)(?:\s+in\s+(\S[^\n]*?))?\s*", re.ASCII)
_PARTS = re.compile(r'"(?:[^"\\\n]++|\\[^\n])*+"|//([^\n]*+)|\$\{([^{}\n]*)(\}?)')


@dataclass(frozen=True, slots=True)
class Parameter:
    """A parameter: its default, the values that its text proposes (none: it proposes none), and the places of both."""

    name: str
    default: Value
    values: tuple[Value, ...]
    span: Span
    default_at: tuple[int, int]
    """Offsets of the default in the text."""


@dataclass(frozen=True, slots=True)
class Filled:
    """A text with the values filled in."""

    source: PtoSource
    starts: tuple[int, ...]
    """Offsets in it at which a stretch begins: what stands for a parameter, or what stays."""
    origins: tuple[int, ...]
    """Where each stretch begins in the text as it was written."""
    kept: tuple[bool, ...]
    """Whether a stretch stays."""

    def origin(self, offset: int) -> int:
        """Return the offset in the text as it was written; of what was filled in, that of its `${`."""
        place = bisect_right(self.starts, offset) - 1
        return self.origins[place] + (offset - self.starts[place] if self.kept[place] else 0)


def parameters(source: PtoSource) -> dict[str, Parameter]:
    """Return the parameters that a text declares, by name.

    Raises:
        ReadError: a declaration that is none, or two of one name.
    """
    found: dict[str, Parameter] = {}
    if "castsim:" not in source.text:
        return found
    for part in _PARTS.finditer(source.text):
        head = None if part[1] is None else _HEAD.match(source.text, part.start(1), part.end(1))
        if head is None:
            continue
        one = _declared(source, head.end(), part.end(1))
        if one.name in found:
            raise ReadError(
                f"parameter {one.name} is declared twice, first in line {found[one.name].span.line}", span=one.span
            )
        found[one.name] = one
    return found


def _declared(source: PtoSource, start: int, end: int) -> Parameter:
    given = _DECLARATION.fullmatch(source.text, start, end)
    if given is None:
        raise source.error("a parameter is declared as NAME = VALUE", start, max(1, end - start), (FORM, RANGED))
    value = read_value(given[2], source.span(given.start(2), len(given[2])))
    values = () if given[3] is None else read_values(source, *given.span(3))
    return Parameter(given[1], value, values, source.span(given.start(1), len(given[1])), given.span(2))


def filled(source: PtoSource) -> Filled | None:
    """Return a text with the defaults of its parameters filled in; None if nothing in it is to be filled in.

    Raises:
        ReadError: as `parameters`; a `${...}` that does not close, is no expression, or uses what is not declared.
    """
    if "${" not in source.text:
        return None
    values = {name: one.default for name, one in parameters(source).items()}
    pieces: list[str] = []
    starts, origins, kept = [0], [0], [True]
    length = before = 0
    for part in _PARTS.finditer(source.text):
        if part[2] is None:
            continue
        value = _value(source, part, values)
        pieces += (source.text[before : part.start()], value)
        for piece, origin, stays in ((pieces[-2], part.start(), False), (value, part.end(), True)):
            length += len(piece)
            starts.append(length)
            origins.append(origin)
            kept.append(stays)
        before = part.end()
    pieces.append(source.text[before:])
    return Filled(PtoSource(source.file, "".join(pieces)), tuple(starts), tuple(origins), tuple(kept))


def _value(source: PtoSource, part: re.Match[str], values: Mapping[str, Value]) -> str:
    """Return the text that stands for one `${...}`."""
    span = source.span(part.start(), part.end() - part.start())
    if not part[3]:
        raise ReadError("'${' is not closed on its line", span=span, legal=("${NAME}", "${NAME*2}"))
    expression = Expression(part[2], span)
    unknown = next((name for name in expression.names if name not in values), None)
    if unknown is not None:
        raise ReadError(
            f"parameter {unknown} is not declared", span=span,
            legal=(*values, f"// castsim: parameter {unknown} = VALUE"),
        )  # fmt: skip
    return str(expression.value(values))


def with_values(text: str, file: str, values: Mapping[str, Value]) -> str:
    """Return a text whose parameters have other defaults; nothing else of it changes.

    Raises:
        ReadError: as `parameters`; a parameter that it does not declare.
    """
    known = parameters(PtoSource(file, text))
    for name in values:
        if name not in known:
            raise unknown_parameter(name, known, file)
    places = sorted((known[name].default_at, str(value)) for name, value in values.items())
    for (start, end), value in reversed(places):
        text = text[:start] + value + text[end:]
    return text


def unknown_parameter(name: str, known: Mapping[str, Parameter], file: str, span: Span | None = None) -> ReadError:
    """Return (not raise) the refusal of a parameter that a program does not have."""
    legal = tuple(known) or (f"// castsim: parameter {name} = VALUE in the program, ${{{name}}} where it stands",)
    return ReadError(f"'{name}' is not a parameter of {file}", span=span, legal=legal)


# Options of the target that a program names itself: comments `// castsim: option NAME=VALUE`.
#
# Source: docs/reference/micro.md section 1.8.

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
