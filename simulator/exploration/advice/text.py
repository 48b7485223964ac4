"""The text of a tile program as lines that can be edited, each statement with the lines it stands on."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field

from castsim.isa import pto
from castsim.isa.errors import CastsimError

VALUE = re.compile(r"%([A-Za-z0-9_$.\-]+)")
"""A value in the text; the group is its name."""

_COMMENT = re.compile(r"//.*")
_TYPE = re.compile(r"!pto\.[a-z_]+<[^<>]*(?:<[^<>]*>[^<>]*)*>")


@dataclass(frozen=True, slots=True)
class Statement:
    """An operation on whole lines of the text: `first` to `last`, counted from 0; of a region both braces are in it.

    `path` holds the regions that it stands in, outermost first; `body` the statements of its own region.
    """

    node: pto.Operation
    first: int
    last: int
    path: tuple[pto.Operation, ...] = ()
    body: tuple[Statement, ...] = ()

    @property
    def number(self) -> int:
        """Its line as people count."""
        return self.first + 1


@dataclass(frozen=True, slots=True)
class Edited:
    """Edits of a text by lines: what comes instead of a line, and before it; a line may get both."""

    lines: tuple[str, ...]
    instead: dict[int, tuple[str, ...]] = field(default_factory=dict)
    before: dict[int, list[str]] = field(default_factory=dict)

    def remove(self, statement: Statement) -> None:
        """Leave a statement out."""
        for line in range(statement.first, statement.last + 1):
            self.instead[line] = ()

    def replace(self, statement: Statement, lines: Sequence[str]) -> None:
        """Write other lines in place of a statement."""
        self.remove(statement)
        self.instead[statement.first] = tuple(lines)

    def insert(self, line: int, lines: Sequence[str]) -> None:
        """Write lines before a line."""
        self.before.setdefault(line, []).extend(lines)

    def text(self) -> str:
        """Return the whole text after all edits."""
        found: list[str] = []
        for number, line in enumerate(self.lines):
            found += self.before.get(number, ())
            found += self.instead.get(number, (line,))
        found += self.before.get(len(self.lines), ())
        return "\n".join(found)


@dataclass(frozen=True, slots=True)
class TileText:
    """A function of a tile program and the lines of its file."""

    text: str
    lines: tuple[str, ...]
    function: pto.Function
    statements: tuple[Statement, ...]

    def all(self) -> Iterator[Statement]:
        """Yield every statement in the order of the text."""
        yield from each_of(self.statements)

    def written(self, statement: Statement) -> list[str]:
        """Return the lines of a statement."""
        return list(self.lines[statement.first : statement.last + 1])

    def edited(self) -> Edited:
        """Return edits that change nothing yet."""
        return Edited(self.lines)

    def constants(self) -> dict[str, int]:
        """Return the integer constants of the function by name."""
        return {
            one.node.result: one.node.value
            for one in self.all()
            if isinstance(one.node, pto.Constant) and isinstance(one.node.value, int)
        }


def each_of(statements: Sequence[Statement]) -> Iterator[Statement]:
    """Yield statements and those inside them."""
    for one in statements:
        yield one
        yield from each_of(one.body)


def read_text(text: str, file: str, entry: str | None) -> TileText | None:
    """Return the entry function of a text for editing; None where its statements do not stand on lines of their own.

    Also None for a text that is refused.
    """
    try:
        program = pto.parse(text, file)
    except CastsimError:
        return None
    with_body = [one for one in program.functions if one.body is not None]
    named = [one for one in with_body if one.name == (entry or "").removeprefix("@")]
    chosen = named or [one for one in with_body if one.is_entry] or with_body
    if not chosen:
        return None
    function, lines = chosen[0], tuple(text.split("\n"))
    bare = [_COMMENT.sub("", line) for line in lines]
    statements = _statements(function.body or (), bare, ())
    if statements is None:
        return None
    starts = [one.first for one in each_of(statements)]
    return TileText(text, lines, function, statements) if len(set(starts)) == len(starts) else None


def _statements(
    body: Sequence[pto.Operation], bare: Sequence[str], path: tuple[pto.Operation, ...]
) -> tuple[Statement, ...] | None:
    found = []
    for node in body:
        first = node.span.line - 1
        last = _end(bare, first)
        if last is None:
            return None
        inside: tuple[Statement, ...] | None = ()
        if isinstance(node, pto.For | pto.Section):
            inside = _statements(node.body, bare, (*path, node))
        elif isinstance(node, pto.If):
            inside = _statements((*node.then_body, *node.else_body), bare, (*path, node))
        if inside is None:
            return None
        found.append(Statement(node, first, last, path, inside))
    return tuple(found)


def _end(bare: Sequence[str], first: int) -> int | None:
    """Return the line on which all brackets that a statement opens are closed."""
    depth = 0
    for line in range(first, len(bare)):
        depth += sum(bare[line].count(opening) for opening in "{([") - sum(bare[line].count(end) for end in "})]")
        if depth == 0:
            return line
        if depth < 0:
            return None
    return None


def defined(lines: Sequence[str]) -> set[str]:
    """Return the names that lines define: before an equals sign at their start, or as what a loop counts."""
    names: set[str] = set()
    for line in lines:
        plain = _COMMENT.sub("", line).strip()
        head, equals, _ = plain.partition(" = ")
        if equals and plain.startswith("%"):
            names |= {name.split(":")[0] for name in VALUE.findall(head)}
        loop = re.search(r"scf\.for %([A-Za-z0-9_$.\-]+) =", plain)
        if loop:
            names.add(loop[1])
    return names


def used(lines: Sequence[str]) -> set[str]:
    """Return every name that lines mention."""
    return {name for line in lines for name in VALUE.findall(_COMMENT.sub("", line))}


def renamed(lines: Sequence[str], names: Mapping[str, str]) -> list[str]:
    """Return lines in which values have other names."""
    return [VALUE.sub(lambda found: f"%{names.get(found[1], found[1])}", line) for line in lines]


def fresh(name: str, taken: set[str], suffix: str = "b") -> str:
    """Return a name that nothing has yet, made of another one, and take it."""
    number, found = 1, f"{name}_{suffix}"
    while found in taken:
        number += 1
        found = f"{name}_{suffix}{number}"
    taken.add(found)
    return found


def indent(line: str) -> str:
    """Return the blanks at the start of a line."""
    return line[: len(line) - len(line.lstrip())]


def retyped(lines: Sequence[str], change: Callable[[pto.Type], pto.Type | None]) -> list[str]:
    """Return lines in which types are changed; None from `change` keeps the spelling as it is."""

    def one(found: re.Match[str]) -> str:
        kind = pto.parse_type(found[0])
        other = change(kind)
        return found[0] if other is None or other == kind else pto.format_type(other)

    return [_TYPE.sub(one, line) for line in lines]


def types_in(lines: Sequence[str]) -> list[pto.Type]:
    """Return the types that lines spell out, in their order."""
    return [pto.parse_type(found[0]) for line in lines for found in _TYPE.finditer(_COMMENT.sub("", line))]
