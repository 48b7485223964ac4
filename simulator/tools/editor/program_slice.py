"""A few statements of a long text with everything that they depend on; the rest is blanked out.

Lines keep their numbers. Around the statements of a `.pto` text, the heads and ends of the enclosing blocks and the
definitions of the named values remain; of assembly, declarations and labels. A statement
of a text of ten thousand lines is therefore read in milliseconds, with the errors that it has in the whole text.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from functools import cached_property

from lsprotocol.types import Position, Range

from castsim.execution.input_data import choose_target
from castsim.execution.tree import Block, Loop, Lowered, Node
from castsim.isa.dataclass import dataclass, field, replace
from castsim.isa.errors import CastsimError, EngineError
from castsim.isa.pto import program as pto
from castsim.isa.pto.program import Operation, nodes
from castsim.isa.pto.pto_parser import parse
from castsim.isa.pto.types import format_type
from castsim.isa.reading import Language, Source
from castsim.machines.vector_function.function_operations import VectorFunction, mnemonic
from castsim.machines.vliw import chosen_target
from castsim.running.loaded import LoadRequest
from castsim.running.micro import MicroProgram
from castsim.running.program_loading import TileProgram, walking_of
from castsim.targets.loader import Target, load_target
from castsim.tools.check.checking import Finding, in_order, of_errors, of_warnings
from castsim.tools.estimate.tile_estimates import estimate
from castsim.tools.expand.expansion import expanded_function

# An open text: what is asked for beside it, its target, and its places as castsim and as clients count them.


@dataclass(frozen=True, slots=True)
class Settings:
    """The editor's settings for a text: a target by name or path, values of scalar arguments; for kernels in C also
    macros and folders of headers.
    """

    target: str | None = None
    args: Mapping[str, int | float] = field(default_factory=dict)
    defines: Mapping[str, str] = field(default_factory=dict)
    folders: tuple[str, ...] = ()

    def request(self) -> LoadRequest:
        """Return the request that loads the program.

        Raises:
            ReadError, TargetDataError: the target cannot be read.
        """
        target: Target | None = None if self.target is None else load_target(self.target)
        return LoadRequest(target, args=self.args)


@dataclass(frozen=True)
class EditedText:
    """One version of a text. `name` is its name in messages, `language` one of `checking.LANGUAGES`."""

    name: str
    language: str
    text: str
    version: int = 0

    @cached_property
    def lines(self) -> list[str]:
        """The lines of the text, without their ends."""
        return self.text.split("\n")

    def with_lines(self, lines: list[str]) -> EditedText:
        """Return another version of the text."""
        return EditedText(self.name, self.language, "\n".join(lines), self.version)


def normalised(text: str) -> str:
    """Return a text with `\\n` at the ends of all lines, as `castsim.check_text` reads it."""
    return text.replace("\r\n", "\n").replace("\r", "\n")


# The target of a text, also of one that cannot be read as a whole.

_ARCHITECTURE = re.compile(r'pto\.target_arch\s*=\s*"([^"\n]*)"')


def target_of_text(text: EditedText, settings: Settings) -> Target | None:
    """Return the requested target, or else the one that a text names; None if there is neither."""
    try:
        asked = settings.request().target
        if text.language == "pto":
            named = _ARCHITECTURE.search(text.text)
            return choose_target(named and named[1], asked)
        return chosen_target(text.text, text.name, asked)
    except CastsimError:
        return None


# Places in a text as castsim counts them (lines from 1, columns in code points from 1) and as clients do.


@dataclass(frozen=True, slots=True)
class TextPlaces:
    """The lines of a text; `units` is the length of a string as the client counts it, by default in UTF-16 units."""

    lines: Sequence[str]
    units: Callable[[str], int]

    def position(self, line: int, column: int) -> Position:
        """Return the position of a column in a line, both from 1."""
        number = min(line, len(self.lines)) - 1
        return Position(number, self.units(self.lines[number][: column - 1]))

    def range(self, line: int, column: int, end: int) -> Range:
        """Return the range between two columns of a line, the end exclusive."""
        return Range(self.position(line, column), self.position(line, max(end, column)))

    def place(self, position: Position) -> tuple[int, int]:
        """Return line and column, both from 1, of a position."""
        number = min(position.line, len(self.lines) - 1)
        column, passed = 0, 0
        for character in self.lines[number]:
            if passed >= position.character:
                break
            passed += self.units(character)
            column += 1
        return number + 1, column + 1


_STARTS = re.compile(r'\s*(?:%[^=\n]*=|[A-Za-z_]\w*\.\w|"|[{}^]|(?:return|module|tcvt)\b|//|$)')
"""Beginning of a line that never continues the previous one."""

_DEFINED = re.compile(r"\s*((?:%[\w.$-]+(?::\d+)?\s*,?\s*)+)=")
_NAME = re.compile(r"%[\w.$-]+")
_OUTSIDE = re.compile(r'//[^\n]*|"(?:[^"\\\n]|\\.)*"')
_ENDS = ("scf.yield", "scf.condition", "return")
_MOST_CONTINUED = 60
"""Maximum number of lines of a statement."""

_LABEL = re.compile(r"\s*[A-Za-z_.$][\w.$]*\s*:")


@dataclass(frozen=True, slots=True)
class Excerpt:
    """A text of the same length; `first` to `last` are the requested lines, extended to whole statements, from 0."""

    text: EditedText
    first: int
    last: int

    def holds(self, line: int | None) -> bool:
        """Return whether a line, counted from 1, is one of the requested lines."""
        return line is not None and self.first < line <= self.last + 1


def excerpt(text: EditedText, first: int, last: int) -> Excerpt | None:
    """Return the excerpt for lines `first` to `last`, counted from 0; None if it needs the whole text."""
    if text.language == "pto":
        return _Tiles(text.lines).excerpt(text, first, last)
    return _of_assembly(text, first, last) if text.language == "tpc" else None


def _of_assembly(text: EditedText, first: int, last: int) -> Excerpt | None:
    lines = text.lines
    if "/*" in text.text:
        return None
    while first > 0 and _is_open(lines, first):
        first -= 1
    while last + 1 < len(lines) and _is_open(lines, last + 1):
        last += 1
    kept = [
        line if first <= number <= last or "castsim" in line or _LABEL.match(line) else ""
        for number, line in enumerate(lines)
    ]
    return Excerpt(text.with_lines(kept), first, last)


def _is_open(lines: list[str], number: int) -> bool:
    """Return whether a line is inside a bundle in braces that an earlier line opens."""
    for line in reversed(lines[max(0, number - _MOST_CONTINUED) : number]):
        plain = _OUTSIDE.sub("", line)
        opened, closed = plain.rfind("{"), plain.rfind("}")
        if opened != closed:
            return opened > closed
    return False


@dataclass(slots=True)
class _Region:
    """A block: the lines of its head and its dividers, its end, and the lines of terminators directly inside."""

    heads: list[int]
    outer: _Region | None
    end: int | None = None
    terminators: list[int] | None = None


class _Tiles:
    """The blocks of the function that contains some lines of a `.pto` text."""

    def __init__(self, lines: list[str]) -> None:
        self.lines = lines
        self.regions: dict[int, _Region | None] = {}
        self.defined: dict[str, list[int]] = {}
        self.kept: set[int] = set()

    def excerpt(self, text: EditedText, first: int, last: int) -> Excerpt | None:
        first, last = self._start(first), self._end(last)
        if any("call" in line for line in self.lines[first : last + 1]):
            return None
        self._scan(first, last)
        self._keep(first, last)
        self._close(range(first, last + 1))
        kept = [line if number in self.kept else "" for number, line in enumerate(self.lines)]
        return Excerpt(text.with_lines(kept), first, last)

    def _start(self, number: int) -> int:
        least = max(0, number - _MOST_CONTINUED)
        while number > least and not _STARTS.match(self.lines[number]):
            number -= 1
        return number

    def _end(self, number: int) -> int:
        most = min(len(self.lines) - 1, number + _MOST_CONTINUED)
        while number < most and not _STARTS.match(self.lines[number + 1]):
            number += 1
        return number

    # ---------------------------------------------------------------------------------------------------- the scan

    def _scan(self, first: int, last: int) -> None:
        """Find the blocks and definitions of the module's head and of the functions that contain the lines."""
        heads = [number for number, line in enumerate(self.lines) if "func.func" in line]
        before = [number for number in heads if number <= first]
        behind = [number for number in heads if number > last]
        start, end = before[-1] if before else 0, behind[0] if behind else len(self.lines)
        region: _Region | None = None
        if heads and any("module" in line for line in self.lines[: heads[0]]):
            region = self._enter(range(heads[0]), None)
            if end < len(self.lines):  # what closes the module stands behind all functions
                region = self._module_end(region)
        self._enter(range(start, end), region)

    def _module_end(self, region: _Region | None) -> _Region | None:
        whole = region
        while whole is not None and whole.outer is not None:
            whole = whole.outer
        if whole is not None:
            number = len(self.lines) - 1
            while number > 0 and "}" not in self.lines[number]:
                number -= 1
            whole.end = number
        return region

    def _enter(self, numbers: range, region: _Region | None) -> _Region | None:
        for number in numbers:
            line = self.lines[number]
            self.regions[number] = region
            if "%" in line and (match := _DEFINED.match(line)) is not None:
                for name in _NAME.findall(match[1]):
                    self.defined.setdefault(name, []).append(number)
            if "{" in line or "}" in line:
                region = self._braces(number, region)
            elif region is not None and line.lstrip().startswith(_ENDS):
                region.terminators = [*(region.terminators or ()), number]
        return region

    def _braces(self, number: int, region: _Region | None) -> _Region | None:
        plain = _OUTSIDE.sub("", self.lines[number])
        depth = plain.count("{") - plain.count("}")
        if depth == 0 and plain.lstrip().startswith("}") and plain.rstrip().endswith("{"):
            if region is not None:
                region.heads.append(number)
            return region
        for _ in range(depth):
            region = _Region([number], region)
        for _ in range(-depth):
            if region is not None:
                region.end = number
                region = region.outer
        return region

    # -------------------------------------------------------------------------------------------------- what is kept

    def _keep(self, first: int, last: int) -> None:
        """Keep lines, the definitions of the values that they name, and the definitions that those need."""
        waiting = [(first, last)]
        while waiting:
            start, end = waiting.pop()
            for number in range(start, end + 1):
                if number in self.kept:
                    continue
                self.kept.add(number)
                for name in dict.fromkeys(_NAME.findall(self.lines[number])):
                    for position in self._definitions(name.partition(":")[0], number):
                        waiting.append((self._start(position), self._whole(position)))
            for number in range(start, end + 1):
                waiting += self._around(number)

    def _definitions(self, name: str, number: int) -> list[int]:
        """Return the lines that define a name, the last visible one for each use."""
        places = self.defined.get(name, [])
        seen = []
        region = self.regions.get(number)
        while region is not None:
            seen.append(region)
            region = region.outer
        visible = [
            position for position in places if self.regions.get(position) is None or self.regions[position] in seen
        ]
        before = [position for position in visible if position < number]
        return before[-1:] + [position for position in visible if position == number]

    def _whole(self, number: int) -> int:
        """Return the last line of a statement, including its block."""
        last = self._end(number)
        inner = [self.regions.get(line + 1) for line in range(number, last + 1) if line + 1 < len(self.lines)]
        for region in inner:
            if region is not None and region.heads[0] in range(number, last + 1) and region.end is not None:
                return max(last, region.end)
        return last

    def _around(self, number: int) -> list[tuple[int, int]]:
        """Return the heads, ends and terminators of the blocks around a line."""
        spans = []
        region = self.regions.get(number)
        while region is not None:
            places = [*region.heads, *(region.terminators or ()), *([] if region.end is None else [region.end])]
            for position in places:
                if position not in self.kept:
                    spans.append(
                        (self._start(position) if position in region.heads else position, self._end_of(position))
                    )
            region = region.outer
        return spans

    def _end_of(self, position: int) -> int:
        return position if "{" in self.lines[position] or "}" in self.lines[position] else self._end(position)

    def _close(self, asked: range) -> None:
        """Keep every line between the head of a function and its first line if the head spans lines."""
        for number in list(self.kept):
            if number not in asked and "func.func" in self.lines[number]:
                while "{" not in self.lines[number] and number + 1 < len(self.lines) and number + 1 not in asked:
                    number += 1  # noqa: PLW2901 - the lines of one head
                    self.kept.add(number)


# Findings in the lines that have just been changed, before the whole text is checked again.


@dataclass(frozen=True, slots=True)
class TextEdit:
    """`added` lines of the new text, from number `first`, replace `removed` lines of the old one; from 0."""

    first: int
    added: int
    removed: int


def change(old: Sequence[str], new: Sequence[str]) -> TextEdit | None:
    """Return the difference between two texts; None if they are equal."""
    most = min(len(old), len(new))
    first = next((number for number in range(most) if old[number] != new[number]), most)
    if first == most and len(old) == len(new):
        return None
    behind = next((n for n in range(most - first) if old[-1 - n] != new[-1 - n]), most - first)
    return TextEdit(first, len(new) - behind - first, len(old) - behind - first)


def quick_findings(
    text: EditedText, edit: TextEdit, before: Sequence[Finding], settings: Settings
) -> tuple[Finding, ...]:
    """Return the earlier findings that an edit keeps, at their new positions, and the findings in the new lines.

    Only syntax and types are checked; `castsim.check_text` on the whole text finds the rest.
    """
    moved = edit.added - edit.removed
    start = min(edit.first, len(text.lines) - 1)
    region = excerpt(text, start, max(start, edit.first + edit.added - 1))
    replaced = range(edit.first, edit.first + edit.removed)
    kept = []
    for finding in before:
        line = None if finding.line is None else finding.line - 1
        if line is None or line < edit.first:
            kept.append(finding)
        elif line not in replaced and finding.line is not None:
            kept.append(replace(finding, line=finding.line + moved, span=None))
    if region is None:
        return tuple(kept)
    fresh = [diagnosed for diagnosed in _read(region, settings) if region.holds(diagnosed.line)]
    return in_order([*(diagnosed for diagnosed in kept if not (fresh and region.holds(diagnosed.line))), *fresh])


def findings_in(text: EditedText, first: int, last: int, settings: Settings) -> list[Finding] | None:
    """Return the syntax and type errors of lines, from 0; None if that needs the whole text."""
    region = excerpt(text, first, last)
    return None if region is None else [finding for finding in _read(region, settings) if region.holds(finding.line)]


def _read(region: Excerpt, settings: Settings) -> list[Finding]:
    text = region.text
    try:
        if text.language == "pto":
            parsed = parse(text.text, text.name, go_past_refused=True)
            refused = [finding for refusal in parsed.refused for finding in of_errors(refusal.error, text.name)]
            return [*refused, *of_warnings(parsed.warnings, text.name)]
        return _read_assembly(text, settings)
    except CastsimError as error:
        return of_errors(error, text.name)


def _read_assembly(text: EditedText, settings: Settings) -> list[Finding]:
    from castsim.isa.tpc.parser import has_virtual_registers  # noqa: PLC0415 - as above
    from castsim.isa.tpc.parser import parse as parse_assembly  # noqa: PLC0415 - only the language in use is loaded
    from castsim.machines.vliw import chosen_target  # noqa: PLC0415 - as above

    if not has_virtual_registers(text.text):
        target = chosen_target(text.text, text.name, settings.request().target)
        parse_assembly(text.text, target.dialect, text.name)
    return []


# One statement of a tile program taken alone: its node, and what its target executes for it in how many cycles.

_SCOPE = re.compile(r"^( *)pto\.vecscope \{\n.*?^\1\}\n", re.MULTILINE | re.DOTALL)
_MOST_LINES = 24
"""Maximum number of lines of vector instructions that are shown."""


def node_at(text: EditedText, line: int) -> tuple[Operation | None, str]:
    """Return the statement that a line, counted from 1, belongs to, and its text; None if it cannot be read."""
    region = excerpt(text, line - 1, line - 1)
    if region is None:
        return None, ""
    try:
        parsed = parse(region.text.text, text.name, go_past_refused=True)
    except CastsimError:
        return None, ""
    within = [
        node for function in parsed.functions for node in nodes(function.body or ()) if region.holds(node.span.line)
    ]
    own = [node for node in within if node.span.line <= line]
    return (own[-1] if own else None), "\n".join(region.text.lines[region.first : region.last + 1])


def work(node: Operation, statement: str, target: Target) -> tuple[str, int | None] | None:
    """Return the instructions that a target executes for a cast or a vector operation, and their cycles alone.

    The instructions are text. None for other operations, and for refused ones.
    """
    declared = _declarations(node)
    if declared is None:
        return None
    head = f'module attributes {{pto.target_arch = "{target.architectures[0]}"}} {{\nfunc.func @alone() {{\n'
    source = Source("statement.pto", Language.TILES, f"{head}{declared}{statement}\nreturn\n}}\n}}\n")
    try:
        walking = walking_of(source, LoadRequest(target))
        if isinstance(walking, MicroProgram):
            return None
        walking = replace(walking, plan=None)
        program = walking.program()
        return _instructions(program, walking.function), _cycles(node, target)
    except (CastsimError, EngineError):
        return None


def _declarations(node: Operation) -> str | None:
    """Return definitions for everything that a statement names; None if it names more than tiles and numbers."""
    used: dict[str, pto.Type]
    if isinstance(node, pto.Tcvt):
        used = {node.src: node.src_type}
        used |= {} if node.defines_dst else {node.dst: node.dst_type}
        used |= {} if node.tmp is None or node.tmp_type is None else {node.tmp: node.tmp_type}
    elif isinstance(node, pto.TileOperation):
        names = (*node.inputs, *node.outputs)
        used = dict(zip(names, (*node.input_types, *node.output_types), strict=True))
    else:
        return None
    lines = []
    for name, kind in used.items():
        if isinstance(kind, pto.TileType) and None not in (kind.valid_rows, kind.valid_cols) and not kind.foreign:
            lines.append(f"%{name} = pto.alloc_tile : {format_type(kind)}\n")
        elif isinstance(kind, pto.ScalarType):
            number = "1.0" if kind.name in ("f16", "bf16", "f32", "f64") else "1"
            lines.append(f"%{name} = arith.constant {number} : {format_type(kind)}\n")
        else:
            return None
    return "".join(lines)


def _cycles(node: Operation, target: Target) -> int | None:
    """Return the estimate of a cast; None for other operations."""
    if not isinstance(node, pto.Tcvt):
        return None
    src, dst = node.src_type, node.dst_type
    estimated = estimate(
        src.element, dst.element, src.rows, src.cols, target=target, dst_row_stride=dst.cols,
        valid_rows=src.valid_rows, valid_cols=src.valid_cols, scratch=node.tmp is not None,
        rounding=None if node.rounding is None else node.rounding.name.lower(),
        saturation=None if node.saturation is None else str(node.saturation),
    )  # fmt: skip
    return estimated.cycles


def _instructions(program: TileProgram, function: pto.Function) -> str:
    """Return vector instructions: as `castsim expand` writes them, or else the names of those that work on memory."""
    try:
        written, _ = expanded_function(function, program.tree, program.target)
    except CastsimError:
        return "\n".join(_counted(program.tree.root))
    scopes = [match[0] for match in _SCOPE.finditer(written)]
    lines = "".join(scopes).rstrip("\n").split("\n")
    indent = min((len(line) - len(line.lstrip()) for line in lines if line), default=0)
    shown = [line[indent:] for line in lines[:_MOST_LINES]]
    return "\n".join([*shown, *(["..."] if len(lines) > _MOST_LINES else [])])


def _counted(root: Node) -> list[str]:
    """Return the instructions of a tree in the order of their first execution, each with its number of executions."""
    counts: dict[str, int] = {}
    _count(root, 1, counts)
    return [f"{name} x {count:,}" if count > 1 else name for name, count in counts.items()]


def _count(node: object, times: int, counts: dict[str, int]) -> None:
    if isinstance(node, Block):
        for item in node.items:
            _count(item, times, counts)
    elif isinstance(node, Loop):
        _count(node.body, times * node.trips, counts)
    elif isinstance(node, Lowered):
        _count(node.body, times, counts)
    elif isinstance(node, VectorFunction):
        for nest in node.nests:
            trips = times * nest.rows * nest.trips
            for instruction in nest.trip:
                name = mnemonic(instruction)
                counts[name] = counts.get(name, 0) + trips
    else:
        own = getattr(node, "mnemonic", None)
        if isinstance(own, str):
            counts[own] = counts.get(own, 0) + times
