"""A change to a program's text, the run that checks it, its result, and the text as editable lines."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from difflib import unified_diff
from enum import StrEnum

from castsim.execution.run_limits import DEFAULT_LIMITS, Limits
from castsim.execution.synchronisation.flags import Place
from castsim.isa.dataclass import dataclass, field, replace
from castsim.isa.errors import CastsimError, ReadError, WarningKind
from castsim.isa.formats import Codes, format_named
from castsim.isa.pto import program as pto
from castsim.isa.pto.lexer import options_named
from castsim.isa.pto.pto_parser import parse
from castsim.isa.pto.pto_printer import operation_text, print_program
from castsim.isa.pto.types import format_type, parse_type
from castsim.isa.reading import Source
from castsim.running.loaded import Loaded, LoadedProgram
from castsim.running.program_loading import load
from castsim.targets.description import with_options
from castsim.targets.loader import Target

TRIES = 4
"""Minimum number of inputs on which an unproven change is tried."""

SECONDS = 10.0
"""Processor time in seconds for making changes, and again for checking them."""


class SuggestionEvidence(StrEnum):
    """Evidence that a change keeps every bit of the outputs."""

    PROVEN = "proven"
    """Every output byte is the same term of the same input bytes."""
    TRIED = "tried"
    """Equal bit for bit on random and boundary inputs."""


@dataclass(frozen=True, slots=True)
class ProposedChange:
    """A text that may be better: `kind` names the change, `line` its position, `reason` its expected effect.

    `recasts` marks a change of intermediate formats, which must be tried on every code; `warns` are the warnings that
    the change inherently adds.
    """

    kind: str
    title: str
    reason: str
    line: int
    text: str
    recasts: bool = False
    warns: frozenset[WarningKind] = frozenset()


@dataclass(frozen=True, slots=True)
class Rejection:
    """A change that was examined and rejected, and `why`."""

    change: ProposedChange
    why: str


@dataclass(frozen=True, slots=True)
class Suggestion:
    """A change that keeps the outputs and saves cycles; `runs` is the number of inputs that it was tried on."""

    change: ProposedChange
    how: SuggestionEvidence
    runs: int
    cycles_before: int
    cycles: int
    diff: str

    @property
    def gained(self) -> int:
        """Number of cycles saved."""
        return self.cycles_before - self.cycles

    @property
    def gained_percent(self) -> float:
        """Cycles saved, in percent of those of the unchanged program."""
        return round(100 * self.gained / self.cycles_before, 2)

    @property
    def evidence(self) -> str:
        """Evidence that the outputs stay the same, in words."""
        return self.how.value if self.how is SuggestionEvidence.PROVEN else f"{self.how} on {self.runs} inputs"


@dataclass(frozen=True, slots=True)
class RunConfig:
    """Target and arguments for runs of the original and the changed program."""

    target: str | Target | None = None
    entry: str | None = None
    args: Mapping[str, int | float] = field(default_factory=dict)
    inputs: Mapping[str, Codes | str] = field(default_factory=dict)
    options: Mapping[str, int | str] = field(default_factory=dict)
    ranges: Mapping[str, tuple[float, float]] = field(default_factory=dict)
    tries: int = TRIES
    seconds: float = SECONDS
    limits: Limits = DEFAULT_LIMITS

    def loaded(self, source: Source) -> LoadedProgram:
        """Read a program.

        Raises:
            CastsimError: the program is refused.
        """
        return load(
            source, self.target, self.entry, self.args, lambda chosen: with_options(chosen, self.options),
            limits=self.limits,
        )  # fmt: skip


def diff_of(file: str, before: str, after: str) -> str:
    """Return a unified diff that `patch` applies to the file."""
    lines: Sequence[str] = list(
        unified_diff(before.splitlines(keepends=True), after.splitlines(keepends=True), file, file)
    )
    ended = [line if line.endswith("\n") else f"{line}\n\\ No newline at end of file\n" for line in lines]
    return "".join(ended)


# The text of a tile program as lines that can be edited, each statement with the lines it stands on.

VALUE = re.compile(r"%([A-Za-z0-9_$.\-]+)")
"""Pattern of a value in the text; the group is its name."""

_COMMENT = re.compile(r"//.*")
_TYPE = re.compile(r"!pto\.[a-z_]+<[^<>]*(?:<[^<>]*>[^<>]*)*>")


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
    statements: tuple[TextOperation, ...]

    def all(self) -> Iterator[TextOperation]:
        """Yield every statement in the order of the text."""
        yield from each_of(self.statements)

    def has(self, *kinds: type[pto.Operation]) -> bool:
        """Return whether it has a statement of any of some kinds."""
        return any(isinstance(one.node, kinds) for one in self.all())

    def written(self, statement: TextOperation) -> list[str]:
        """Return the lines of a statement."""
        return list(self.lines[statement.first : statement.last + 1])

    def edited(self) -> Edited:
        """Return an empty set of edits."""
        return Edited(self.lines)

    def constants(self) -> dict[str, int]:
        """Return the integer constants of the function by name."""
        return {
            one.node.result: one.node.value
            for one in self.all()
            if isinstance(one.node, pto.Constant) and isinstance(one.node.value, int)
        }


def each_of(statements: Sequence[TextOperation]) -> Iterator[TextOperation]:
    """Yield statements and those inside them."""
    for one in statements:
        yield one
        yield from each_of(one.body)


def read_text(text: str, file: str, entry: str | None) -> TileText | None:
    """Return the entry function of a text for editing; None if a line contains several statements.

    Also None for a text that is refused.
    """
    try:
        program = parse(text, file)
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
) -> tuple[TextOperation, ...] | None:
    found = []
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
        found.append(TextOperation(node, first, last, path, inside))
    return tuple(found)


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


def defined(lines: Sequence[str]) -> set[str]:
    """Return the names that lines define: before an equals sign at their start, or as a loop variable."""
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
    """Return every name in the lines."""
    return {name for line in lines for name in VALUE.findall(_COMMENT.sub("", line))}


def renamed(lines: Sequence[str], names: Mapping[str, str]) -> list[str]:
    """Return lines with values renamed."""
    return [VALUE.sub(lambda found: f"%{names.get(found[1], found[1])}", line) for line in lines]


def fresh(name: str, taken: set[str], suffix: str = "b") -> str:
    """Return an unused name derived from another one, and reserve it."""
    number, found = 1, f"{name}_{suffix}"
    while found in taken:
        number += 1
        found = f"{name}_{suffix}{number}"
    taken.add(found)
    return found


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
    statements = {} if text is None else {one.number: one for one in text.all()}
    if text is None or not all(note.span.line in statements for note in inserted.notes):
        options = [f"// castsim: option {one.name}={one.value}\n" for one in options_named(loaded.source, loaded.file)]
        program = parse(loaded.source, loaded.file, go_past_refused=True)
        return "".join(options) + print_program(replace(program, functions=(inserted.function,)))
    edited = text.edited()
    for note in inserted.notes:
        one = statements[note.span.line]
        goes_before = note.place is Place.BEFORE or isinstance(one.node, pto.Return)
        line = one.first if goes_before else one.last + 1
        edited.insert(line, [indent(text.lines[one.first]) + note.text])
    return edited.text()


def retyped(lines: Sequence[str], change: Callable[[pto.Type], pto.Type | None]) -> list[str]:
    """Return lines with changed types; `change` returns None to keep the spelling."""

    def one(found: re.Match[str]) -> str:
        kind = parse_type(found[0])
        other = change(kind)
        return found[0] if other is None or other == kind else format_type(other)

    return [_TYPE.sub(one, line) for line in lines]


def types_in(lines: Sequence[str]) -> list[pto.Type]:
    """Return the types that lines spell out, in order."""
    return [parse_type(found[0]) for line in lines for found in _TYPE.finditer(_COMMENT.sub("", line))]


# What kinds of changes share about tiles: which value each type of a statement belongs to, sizes, addresses.

_PLAIN = (pto.TileType, pto.PartitionType, pto.ViewType, pto.PointerType, pto.MultiTileType)

Retype = Callable[[str, pto.Type], pto.Type | None]
"""Function from a value's name and type to its new type; None keeps the type."""


def typed_names(node: pto.Operation) -> list[str] | None:
    """Return the value of every type that a statement spells out, in order; None if that is ambiguous."""
    match node:
        case pto.AllocTile():
            return [node.result]
        case pto.Tcvt():
            return [node.src, *([node.tmp] if node.tmp else []), node.dst]
        case pto.TileOperation():
            pairs = [
                *zip(node.inputs, node.input_types, strict=True),
                *zip(node.outputs, node.output_types, strict=True),
            ]
            return [name for name, kind in pairs if isinstance(kind, _PLAIN)]
        case pto.PartitionView():
            return [node.view, node.result]
        case pto.MakeView() | pto.SetValidShape():
            return [node.result if isinstance(node, pto.MakeView) else node.tile]
        case pto.Subview():
            return [node.source, node.result]
    return None


def retype(text: TileText, edited: Edited, change: Retype, only: Iterable[TextOperation] | None = None) -> bool:
    """Change types by the values that they belong to; False if a statement's types are ambiguous."""
    for one in text.all() if only is None else only:
        if one.body:
            continue
        lines = text.written(one)
        spelled = types_in(lines)
        if not spelled:
            continue
        names = typed_names(one.node)
        if names is None or len(names) != len(spelled):
            if any(isinstance(kind, pto.TileType) for kind in spelled):
                return False
            continue
        order = iter(names)
        found = retyped(lines, lambda kind, order=order: change(next(order), kind))  # type: ignore[misc]
        if found != lines:
            edited.replace(one, found)
    return True


def tile_types(text: TileText) -> dict[str, pto.TileType]:
    """Return the types of tiles by value name."""
    found: dict[str, pto.TileType] = {}
    for one in text.all():
        names = typed_names(one.node)
        kinds = types_in(text.written(one)) if names and not one.body else []
        if names and len(names) == len(kinds):
            found |= {name: kind for name, kind in zip(names, kinds, strict=True) if isinstance(kind, pto.TileType)}
    return found


def tile_size(kind: pto.TileType) -> int:
    """Return the size of a tile in bytes."""
    fmt = format_named(kind.element)
    return kind.rows * kind.cols * (fmt.bits if fmt.bits == 4 else fmt.storage_bits) // 8


def row_aligned(kind: pto.TileType) -> bool:
    """Return whether the rows of a tile are whole blocks of 32 bytes."""
    return kind.block_layout != "row_major" or tile_size(kind) // kind.rows % 32 == 0


def placed_sizes(text: TileText) -> dict[str, int] | None:
    """Return the bytes of the largest tile at each address, by the name of its constant; None if one has none."""
    found: dict[str, int] = {}
    constants = text.constants()
    for one in text.all():
        node = one.node
        if isinstance(node, pto.AllocTiles) and node.address is not None:
            return None
        if isinstance(node, pto.AllocTile) and node.address is not None:
            if node.address not in constants:
                return None
            found[node.address] = max(found.get(node.address, 0), tile_size(node.type))
    return found


def first_free(text: TileText) -> int | None:
    """Return the first byte after all tiles with explicit addresses; None if an address is not a constant."""
    sizes, constants = placed_sizes(text), text.constants()
    if sizes is None or text.has(pto.AllocTiles):
        return None
    return -(-max((constants[name] + size for name, size in sizes.items()), default=0) // 256) * 256


def written_by(node: pto.Operation) -> tuple[str, ...]:
    """Return the tiles, or views, that an operation writes."""
    if isinstance(node, pto.Tcvt):
        return (node.dst,)
    return node.outputs if isinstance(node, pto.TileOperation) else ()


def read_by(node: pto.Operation) -> tuple[str, ...]:
    """Return the tiles and views that an operation reads, including its tmp tile."""
    if isinstance(node, pto.Tcvt):
        return (node.src, *([node.tmp] if node.tmp else []))
    if isinstance(node, pto.TileOperation):
        return node.inputs
    return ()
