"""The text of a tile program as lines that can be edited, each statement with the lines it stands on."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence

from castsim.isa.dataclass import dataclass, field, replace
from castsim.isa.errors import CastsimError, ReadError, Span
from castsim.isa.pto import program as pto
from castsim.isa.pto.lexer import PtoSource, options_named, parameters, unknown_parameter, with_values
from castsim.isa.pto.pto_parser import parse
from castsim.isa.pto.pto_printer import operation_text, print_program
from castsim.isa.reading import Language, Source
from castsim.isa.value_expressions import read_value
from castsim.running.loaded import Loaded
from castsim.running.synchronisation.flags import Place

COMMENT = re.compile(r"//.*")
"""Pattern of a comment."""


@dataclass(frozen=True, slots=True)
class TextOperation:
    """An operation on whole lines of the text: `first` to `last`, counted from 0, including both braces of a region.

    `path` are the regions around it, outermost first; `body` the statements of its own region.
    """

    node: pto.Operation
    first: int
    last: int
    path: tuple[pto.Operation, ...] = ()
    body: tuple[TextOperation, ...] = ()

    @property
    def number(self) -> int:
        """Its line number, from 1."""
        return self.first + 1


@dataclass(frozen=True, slots=True)
class Edited:
    """Edits of a text by lines: replacements and insertions before a line; a line may have both."""

    lines: tuple[str, ...]
    instead: dict[int, tuple[str, ...]] = field(default_factory=dict)
    before: dict[int, list[str]] = field(default_factory=dict)

    def remove(self, statement: TextOperation) -> None:
        """Remove a statement."""
        for line in range(statement.first, statement.last + 1):
            self.instead[line] = ()

    def replace(self, statement: TextOperation, lines: Sequence[str]) -> None:
        """Replace a statement by lines."""
        self.remove(statement)
        self.instead[statement.first] = tuple(lines)

    def rewrite(self, statement: TextOperation, *nodes: pto.Operation) -> None:
        """Replace a statement by operations with the same indentation."""
        margin = indent(self.lines[statement.first])
        self.replace(statement, [margin + operation_text(node) for node in nodes])

    def insert(self, line: int, lines: Sequence[str]) -> None:
        """Insert lines before a line."""
        self.before.setdefault(line, []).extend(lines)

    def text(self) -> str:
        """Return the whole text after all edits."""
        lines: list[str] = []
        for number, line in enumerate(self.lines):
            lines += self.before.get(number, ())
            lines += self.instead.get(number, (line,))
        lines += self.before.get(len(self.lines), ())
        return "\n".join(lines)


@dataclass(frozen=True, slots=True)
class TileText:
    """A function of a tile program and the lines of its file."""

    text: str
    lines: tuple[str, ...]
    function: pto.Function
    statements: tuple[TextOperation, ...]

    def all(self) -> Iterator[TextOperation]:
        """Yield every statement in the order of the text."""
        yield from each_of(self.statements)

    def has(self, *kinds: type[pto.Operation]) -> bool:
        """Return whether it has a statement of any of some kinds."""
        return any(isinstance(statement.node, kinds) for statement in self.all())

    def written(self, statement: TextOperation) -> list[str]:
        """Return the lines of a statement."""
        return list(self.lines[statement.first : statement.last + 1])

    def edited(self) -> Edited:
        """Return an empty set of edits."""
        return Edited(self.lines)

    def constants(self) -> dict[str, int]:
        """Return the integer constants of the function by name."""
        return {
            statement.node.result: statement.node.value
            for statement in self.all()
            if isinstance(statement.node, pto.Constant) and isinstance(statement.node.value, int)
        }


def each_of(statements: Sequence[TextOperation]) -> Iterator[TextOperation]:
    """Yield statements and those inside them."""
    for statement in statements:
        yield statement
        yield from each_of(statement.body)


def read_text(text: str, file: str, entry: str | None) -> TileText | None:
    """Return the entry function of a text for editing; None if a line contains several statements.

    Also None for a text that is refused.
    """
    try:
        program = parse(text, file)
    except CastsimError:
        return None
    with_body = [declaration for declaration in program.functions if declaration.body is not None]
    named = [declaration for declaration in with_body if declaration.name == (entry or "").removeprefix("@")]
    chosen = named or [declaration for declaration in with_body if declaration.is_entry] or with_body
    if not chosen:
        return None
    function, lines = chosen[0], tuple(text.split("\n"))
    bare = [COMMENT.sub("", line) for line in lines]
    statements = _statements(function.body or (), bare, ())
    if statements is None:
        return None
    starts = [statement.first for statement in each_of(statements)]
    return TileText(text, lines, function, statements) if len(set(starts)) == len(starts) else None


def _statements(
    body: Sequence[pto.Operation], bare: Sequence[str], path: tuple[pto.Operation, ...]
) -> tuple[TextOperation, ...] | None:
    statements = []
    for node in body:
        first = node.span.line - 1
        last = _end(bare, first)
        if last is None:
            return None
        inside: tuple[TextOperation, ...] | None = ()
        if isinstance(node, pto.For | pto.Section):
            inside = _statements(node.body, bare, (*path, node))
        elif isinstance(node, pto.If):
            inside = _statements((*node.then_body, *node.else_body), bare, (*path, node))
        if inside is None:
            return None
        statements.append(TextOperation(node, first, last, path, inside))
    return tuple(statements)


def _end(bare: Sequence[str], first: int) -> int | None:
    """Return the line that closes all brackets of a statement."""
    depth = 0
    for line in range(first, len(bare)):
        depth += sum(bare[line].count(opening) for opening in "{([") - sum(bare[line].count(end) for end in "})]")
        if depth == 0:
            return line
        if depth < 0:
            return None
    return None


def indent(line: str) -> str:
    """Return the blanks at the start of a line."""
    return line[: len(line) - len(line.lstrip())]


def with_inserted_flags(loaded: Loaded) -> str:
    """Return the text of a tile program with the flags and barriers that were inserted when it was loaded.

    Its lines are unchanged; if functions are called or operations share a line, the function is printed again.

    Raises:
        ReadError: nothing was inserted.
    """
    inserted = loaded.synchronised
    if inserted is None:
        reason = "its pipes wait for each other's bytes" if loaded.tree.interlocked else "the program has its own"
        raise ReadError(f"no flags were inserted into @{loaded.entry}: {reason}", legal=("--sync insert",))
    text = read_text(loaded.source, loaded.file, loaded.entry)
    statements = {} if text is None else {statement.number: statement for statement in text.all()}
    if text is None or not all(note.span.line in statements for note in inserted.notes):
        options = [
            f"// castsim: option {option.name}={option.value}\n" for option in options_named(loaded.source, loaded.file)
        ]
        program = parse(loaded.source, loaded.file, go_past_refused=True)
        return "".join(options) + print_program(replace(program, functions=(inserted.function,)))
    edited = text.edited()
    for note in inserted.notes:
        statement = statements[note.span.line]
        goes_before = note.place is Place.BEFORE or isinstance(statement.node, pto.Return)
        line = statement.first if goes_before else statement.last + 1
        edited.insert(line, [indent(text.lines[statement.first]) + note.text])
    return edited.text()


def with_parameters(source: Source, given: Mapping[str, str]) -> Source:
    """Return a tile program with values of its parameters, by name, as `--tile NAME=VALUE` gives them.

    Raises:
        ReadError: the program declares no such parameter, a value is no number, or it is in another language.
    """
    if source.language is not Language.TILES:
        first = next(f"{name}={text}" for name, text in given.items())
        raise ReadError(f"--tile {first}: only tile programs take parameters", legal=("a .pto file",))
    declared = parameters(PtoSource(source.file, source.text))
    values = {}
    for name, text in given.items():
        typed = f"{name}={text}"
        if name not in declared:
            raise unknown_parameter(name, declared, source.file, Span("--tile", 1, 1, typed, len(name)))
        values[name] = read_value(text, Span("--tile", 1, len(name) + 2, typed, len(text)))
    return replace(source, text=with_values(source.text, source.file, values))
