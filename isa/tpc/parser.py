"""TPC assembly text to a program: lines, labels, directives, and bundles in their layouts.

Three layouts may be mixed. Slots separated by `;` on one line stand in the order LOAD; SPU; VPU; STORE, trailing ones
may be missing. In `{ }`, one instruction per line or separated by `;`, and on a line that joins instructions by `||`
or holds only one, the slot follows from the mnemonic and the operands: of several possible ones the first that is
free in the order above. Source: docs/reference/tpc.md section 7.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from castsim.isa.errors import CastsimError, ErrorList, ReadError, Span
from castsim.isa.limits import MAX_STATEMENTS, too_many_statements
from castsim.isa.tpc.declarations import declared_target, read_declarations
from castsim.isa.tpc.dialect import Dialect
from castsim.isa.tpc.matching import read_in_slot, read_instruction
from castsim.isa.tpc.program import (
    Bundle,
    Directive,
    Item,
    LabelDefinition,
    LabelUse,
    Slot,
    TargetDeclaration,
    TpcInstruction,
    TpcProgram,
)
from castsim.isa.tpc.text import AssemblySource, Word

LABEL = re.compile(r"\s*([A-Za-z_.$][\w.$]*)\s*:")
"""A label, which begins a line."""
_SEPARATOR = re.compile(r";|\|\|")
_NOP = "nop"


def parse(text: str, dialect: Dialect, file: str = "<text>", max_statements: int = MAX_STATEMENTS) -> TpcProgram:
    """Read an assembly text of one generation.

    Raises:
        LimitError: it has more bundles, labels and directives than `max_statements`.
        ReadError: anything that cannot be read, an instruction in a slot that does not execute it, two instructions
            for one slot, an undefined or redefined label, a bad declaration.
        IllegalError: an instruction, form, switch or mode that this generation lacks.

    The error raised is the first in the text; `further` holds the others.
    """
    source = AssemblySource(text, file)
    errors = ErrorList()
    declarations = read_declarations(source, dialect, errors)
    program = TpcProgram(declarations, tuple(_counted(_Reader(source, dialect, errors).items(), max_statements)))
    _check_labels(program, errors)
    errors.raise_found()
    return program


def _counted(items: Iterator[Item], limit: int) -> Iterator[Item]:
    """Hand items on; reject the first one beyond a limit."""
    for number, item in enumerate(items):
        if number == limit:
            raise too_many_statements(limit, item.span, "bundles, labels and directives")
        yield item


def target_declared_in(text: str, file: str = "<text>") -> TargetDeclaration | None:
    """Return the declaration of the target in a text (`// castsim: target NAME`), None if there is none."""
    return declared_target(AssemblySource(text, file))


def target_named_in(text: str, file: str = "<text>") -> str | None:
    """Return the name of the target that a text declares, None if it declares none."""
    declared = target_declared_in(text, file)
    return None if declared is None else declared.name


@dataclass(frozen=True, slots=True)
class _Segment:
    """Part of a line that holds one instruction or nothing."""

    line: int
    start: int
    end: int


class _Reader:
    """Goes through the lines of one text."""

    def __init__(self, source: AssemblySource, dialect: Dialect, errors: ErrorList) -> None:
        self.source = source
        self.dialect = dialect
        self.errors = errors
        self.line = 0
        self._known: dict[tuple[Slot, str], tuple[TpcInstruction, int] | None] = {}

    def items(self) -> Iterator[Item]:
        """Yield bundles, labels and directives in the order of the text."""
        while self.line < len(self.source.lines):
            text = self.source.lines[self.line]
            start = 0
            while match := LABEL.match(text, start):
                yield LabelDefinition(match[1], span=self.source.span(self.line, match.start(1), len(match[1])))
                start = match.end()
            opened = self.line
            try:
                yield from self._rest(text, start)
            except CastsimError as error:
                self.errors.take(error)
                self._leave_block(opened, start)
            self.line += 1

    def _leave_block(self, opened: int, start: int) -> None:
        """Go to the last line of what cannot be read, a bundle in braces that begins in a line or that line alone."""
        lines = self.source.lines
        if lines[opened][start:].lstrip().startswith("{"):
            closing = next((n for n in range(opened, len(lines)) if "}" in lines[n]), opened)
            self.line = max(self.line, closing)

    def _rest(self, text: str, start: int) -> Iterator[Item]:
        """Yield what a line holds behind its labels."""
        rest = text[start:].strip()
        column = start + len(text[start:]) - len(text[start:].lstrip())
        if not rest:
            return
        if rest.startswith("."):
            directive = " ".join(rest.split())
            yield Directive(directive, span=self.source.span(self.line, column, len(rest)))
        elif rest.startswith("{"):
            yield self._block(column)
        else:
            yield self._bundle_line(text, start, column)

    # -------------------------------------------------------------------------------------------------- bundles

    def _bundle_line(self, text: str, start: int, column: int) -> Bundle:
        """Read a bundle that is one line."""
        brace = re.compile(r"[{}]").search(text, start)
        if brace:
            raise self.source.error("a brace stands alone or begins a bundle", self.line, brace.start())
        span = self.source.span(self.line, column, len(text.rstrip()) - column)
        if ";" not in text[start:]:
            joined = list(self._segments(self.line, start, len(text), re.compile(r"\|\|")))
            return _bundle(self._placed(joined), span)
        segments = list(self._segments(self.line, start, len(text), re.compile(";")))
        if not text[segments[-1].start : segments[-1].end].strip():
            segments.pop()
        if len(segments) > len(Slot):
            place = segments[len(Slot)]
            message = f"a bundle has {len(Slot)} slots"
            raise self.source.error(message, place.line, place.start, legal=[slot.name for slot in Slot])
        slots: dict[str, TpcInstruction] = {}
        for slot, segment in zip(Slot, segments, strict=False):
            if not text[segment.start : segment.end].strip():
                raise self.source.error(f"the {slot.name} slot is empty", segment.line, segment.start, legal=(_NOP,))
            try:
                instruction = self._in_slot(slot, segment)
            except CastsimError as error:
                self.errors.take(error)
                continue
            if instruction is not None:
                slots[slot.name.lower()] = instruction
        return _bundle(slots, span, len(segments))

    def _in_slot(self, slot: Slot, segment: _Segment) -> TpcInstruction | None:
        """Read what stands in a slot, None for a NOP; text that stood in this slot before is not read again."""
        text = self.source.lines[segment.line][segment.start : segment.end]
        key = (slot, text.strip())
        if key not in self._known:
            words = self._words(segment)
            read = None if self._is_nop(words) else read_in_slot(self.source, words, slot, self.dialect)
            self._known[key] = None if read is None else (read, len(words[0].text))
            return read
        known = self._known[key]
        if known is None:
            return None
        column = segment.start + len(text) - len(text.lstrip())
        return known[0].at(self.source.span(segment.line, column, known[1]))

    def _block(self, column: int) -> Bundle:
        """Read a bundle in braces; leave `line` at its last line."""
        span = self.source.span(self.line, column)
        opened = self.line
        segments: list[_Segment] = []
        start = column + 1
        while self.line < len(self.source.lines):
            text = self.source.lines[self.line]
            close = text.find("}", start)
            end = len(text) if close < 0 else close
            inner = text.find("{", start, end)
            if inner >= 0:
                raise self.source.error("bundles cannot be nested", self.line, inner)
            segments.extend(self._segments(self.line, start, end, _SEPARATOR))
            if close >= 0:
                if text[close + 1 :].strip(" \t;"):
                    raise self.source.error("nothing may follow a bundle on its line", self.line, close + 1)
                return _bundle(self._placed(segments), span)
            self.line += 1
            start = 0
        raise self.source.error("the bundle is not closed", opened, column, legal=("}",))

    def _segments(self, line: int, start: int, end: int, separator: re.Pattern[str]) -> Iterator[_Segment]:
        """Cut part of a line at separators."""
        text = self.source.lines[line]
        for match in separator.finditer(text, start, end):
            yield _Segment(line, start, match.start())
            start = match.end()
        yield _Segment(line, start, end)

    def _placed(self, segments: list[_Segment]) -> dict[str, TpcInstruction]:
        """Read instructions that do not say their slots, and give each one."""
        choices: list[tuple[Word, dict[Slot, TpcInstruction]]] = []
        for segment in segments:
            words = self._words(segment)
            try:
                if words and not self._is_nop(words):
                    choices.append((words[0], read_instruction(self.source, words, self.dialect)))
            except CastsimError as error:
                self.errors.take(error)
        taken = _assign([found for _, found in choices], frozenset())
        if taken is None:
            raise self._crowded(choices)
        return {slot.name.lower(): found[slot] for slot, (_, found) in zip(taken, choices, strict=True)}

    def _crowded(self, choices: list[tuple[Word, dict[Slot, TpcInstruction]]]) -> ReadError:
        """Reject the first instruction for which no slot is left."""
        count = next(n for n in range(1, len(choices) + 1) if _assign([f for _, f in choices[:n]], frozenset()) is None)
        word, found = choices[count - 1]
        message = f"no slot of the bundle is left for {word.text}"
        return ReadError(message, span=self.source.word_span(word), legal=[slot.name for slot in found])

    def _words(self, segment: _Segment) -> list[Word]:
        return self.source.words(segment.line, segment.start, segment.end)

    def _is_nop(self, words: list[Word]) -> bool:
        if words[0].text.lower() != _NOP:
            return False
        if len(words) > 1:
            message = "nop takes neither operands nor a predicate"
            raise ReadError(message, span=self.source.word_span(words[1]))
        return True


def _bundle(slots: Mapping[str, TpcInstruction], span: Span, written: int | None = None) -> Bundle:
    return Bundle(*(slots.get(slot.name.lower()) for slot in Slot), written=written, span=span)


def _assign(choices: list[dict[Slot, TpcInstruction]], taken: frozenset[Slot]) -> tuple[Slot, ...] | None:
    """Give each instruction a slot of its own, the first ones their first choice where possible; None: impossible."""
    if not choices:
        return ()
    for slot in sorted(choices[0]):
        if slot not in taken:
            rest = _assign(choices[1:], taken | {slot})
            if rest is not None:
                return (slot, *rest)
    return None


def _check_labels(program: TpcProgram, errors: ErrorList) -> None:
    """Take note of labels defined twice and of uses of undefined ones."""
    places: dict[str, LabelDefinition] = {}
    for item in program.items:
        if isinstance(item, LabelDefinition):
            if item.name in places:
                message = f"label '{item.name}' is defined twice, first in line {places[item.name].span.line}"
                errors.take(ReadError(message, span=item.span))
            places.setdefault(item.name, item)
    for bundle in program.bundles:
        for instruction in bundle.slots:
            for operand in instruction.operands if instruction else ():
                if isinstance(operand, LabelUse) and operand.name not in places:
                    assert instruction is not None
                    legal = tuple(places) or ("a label defined as NAME:",)
                    errors.take(ReadError(f"label '{operand.name}' is not defined", span=instruction.span, legal=legal))
