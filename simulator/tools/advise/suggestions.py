"""Changes to a program: the text, the run that checks it and its result; edits of the lines of a tile program."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from difflib import unified_diff
from enum import StrEnum
from pathlib import Path
from typing import Annotated, TypeAlias

from castsim.execution.run_limits import DEFAULT_LIMITS, Limits
from castsim.isa.dataclass import dataclass, field
from castsim.isa.errors import WarningKind
from castsim.isa.formats import Codes, format_named
from castsim.isa.pto import program as pto
from castsim.isa.pto.types import format_type, parse_type
from castsim.isa.reading import Source
from castsim.reports.documents import Keys, apart, derived, record, says
from castsim.reports.schemas.keys import Cycles, Line, Percent
from castsim.running.loaded import LoadedProgram
from castsim.running.program_edits import COMMENT, Edited, TextOperation, TileText
from castsim.running.program_loading import load
from castsim.targets.description import with_options
from castsim.targets.loader import Target

TRIES = 4
"""Minimum number of inputs on which an unproven change is tried."""

SECONDS = 3.0
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


@record
class RejectedChange(Keys):
    """A change that was tried and rejected."""

    change: ProposedChange = apart()
    kind: str = derived("Kind of the change, as in docs/tools/advise.md.", "change.kind")
    title: str = derived("The change and its place.", "change.title")
    line: Line = derived("The line where it begins.", "change.line")
    why: str = says("The reason why it is not offered.")


HowKept: TypeAlias = Annotated[SuggestionEvidence, ("enum", tuple(SuggestionEvidence)), ("type", "string")]
"""Evidence that the outputs stay the same."""


def _gained_percent(change: Change) -> float:
    return round(100 * change.gained / change.cycles_before, 2)


@record
class Change(Keys):
    """A change that keeps the outputs and saves cycles."""

    change: ProposedChange = apart()
    number: int = says("Number of the change, from 1, for `--apply`.")
    kind: str = derived("Kind of the change, as in docs/tools/advise.md.", "change.kind")
    title: str = derived("The change and its place.", "change.title")
    reason: str = derived("The reason why it saves cycles.", "change.reason")
    line: Line = derived("The line where it begins.", "change.line")
    how: HowKept = says("Evidence that the outputs stay the same.")
    runs: int = says("Number of inputs for which both programs gave the same bits.")
    cycles_before: int = apart()
    cycles: Cycles = says("Cycles of the changed program.")
    gained: Cycles = derived("Cycles saved.", lambda change: change.cycles_before - change.cycles)
    gained_percent: Percent = derived(
        "Cycles saved, as a percentage of those of the original program.", _gained_percent
    )
    diff: str = says("A unified diff of the file.")

    @property
    def evidence(self) -> str:
        """Evidence that the outputs stay the same, in words."""
        return self.how.value if self.how is SuggestionEvidence.PROVEN else f"{self.how} on {self.runs} inputs"


@dataclass(frozen=True, slots=True)
class SearchConfig:
    """A search for changes: target and arguments of the runs, ranges of inputs, and limits of the search."""

    target: str | Path | Target | None = None
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


# The lines of a tile program: the names, types and sizes in them, and their changes.

VALUE = re.compile(r"%([A-Za-z0-9_$.\-]+)")
"""Pattern of a value in the text; the group is its name."""

_TYPE = re.compile(r"!pto\.[a-z_]+<[^<>]*(?:<[^<>]*>[^<>]*)*>")


def defined(lines: Sequence[str]) -> set[str]:
    """Return the names that lines define: before an equals sign at their start, or as a loop variable."""
    names: set[str] = set()
    for line in lines:
        plain = COMMENT.sub("", line).strip()
        head, equals, _ = plain.partition(" = ")
        if equals and plain.startswith("%"):
            names |= {name.split(":")[0] for name in VALUE.findall(head)}
        loop = re.search(r"scf\.for %([A-Za-z0-9_$.\-]+) =", plain)
        if loop:
            names.add(loop[1])
    return names


def used(lines: Sequence[str]) -> set[str]:
    """Return every name in the lines."""
    return {name for line in lines for name in VALUE.findall(COMMENT.sub("", line))}


def renamed(lines: Sequence[str], names: Mapping[str, str]) -> list[str]:
    """Return lines with values renamed."""
    return [VALUE.sub(lambda found: f"%{names.get(found[1], found[1])}", line) for line in lines]


def fresh(name: str, taken: set[str], suffix: str = "b") -> str:
    """Return an unused name derived from another one, and reserve it."""
    number, candidate = 1, f"{name}_{suffix}"
    while candidate in taken:
        number += 1
        candidate = f"{name}_{suffix}{number}"
    taken.add(candidate)
    return candidate


def retyped(lines: Sequence[str], change: Callable[[pto.Type], pto.Type | None]) -> list[str]:
    """Return lines with changed types; `change` returns None to keep the spelling."""

    def replaced(match: re.Match[str]) -> str:
        kind = parse_type(match[0])
        other = change(kind)
        return match[0] if other is None or other == kind else format_type(other)

    return [_TYPE.sub(replaced, line) for line in lines]


def types_in(lines: Sequence[str]) -> list[pto.Type]:
    """Return the types that lines spell out, in order."""
    return [parse_type(match[0]) for line in lines for match in _TYPE.finditer(COMMENT.sub("", line))]


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
    for statement in text.all() if only is None else only:
        if statement.body:
            continue
        lines = text.written(statement)
        spelled = types_in(lines)
        if not spelled:
            continue
        names = typed_names(statement.node)
        if names is None or len(names) != len(spelled):
            if any(isinstance(kind, pto.TileType) for kind in spelled):
                return False
            continue
        order = iter(names)
        changed_lines = retyped(lines, lambda kind, order=order: change(next(order), kind))  # type: ignore[misc]
        if changed_lines != lines:
            edited.replace(statement, changed_lines)
    return True


def tile_types(text: TileText) -> dict[str, pto.TileType]:
    """Return the types of tiles by value name."""
    types_by_name: dict[str, pto.TileType] = {}
    for statement in text.all():
        names = typed_names(statement.node)
        kinds = types_in(text.written(statement)) if names and not statement.body else []
        if names and len(names) == len(kinds):
            types_by_name |= {
                name: kind for name, kind in zip(names, kinds, strict=True) if isinstance(kind, pto.TileType)
            }
    return types_by_name


def tile_size(kind: pto.TileType) -> int:
    """Return the size of a tile in bytes."""
    fmt = format_named(kind.element)
    return kind.rows * kind.cols * (fmt.bits if fmt.bits == 4 else fmt.storage_bits) // 8


def row_aligned(kind: pto.TileType) -> bool:
    """Return whether the rows of a tile are whole blocks of 32 bytes."""
    return kind.block_layout != "row_major" or tile_size(kind) // kind.rows % 32 == 0


def placed_sizes(text: TileText) -> dict[str, int] | None:
    """Return the bytes of the largest tile at each address, by the name of its constant; None if one has none."""
    sizes: dict[str, int] = {}
    constants = text.constants()
    for statement in text.all():
        node = statement.node
        if isinstance(node, pto.AllocTiles) and node.address is not None:
            return None
        if isinstance(node, pto.AllocTile) and node.address is not None:
            if node.address not in constants:
                return None
            sizes[node.address] = max(sizes.get(node.address, 0), tile_size(node.type))
    return sizes


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
