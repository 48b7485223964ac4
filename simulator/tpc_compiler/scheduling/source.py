"""The text that is scheduled: one instruction a line, labels, declarations; registers may be virtual."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass, replace

from castsim.isa.errors import CastsimError, IllegalError, ReadError, Span
from castsim.isa.reading import MAX_STATEMENTS, too_many_statements
from castsim.isa.tpc import (
    Declaration,
    Immediate,
    LabelUse,
    Register,
    RegisterDeclaration,
    Slot,
    TargetDeclaration,
    TensorDeclaration,
    TpcInstruction,
)
from castsim.isa.tpc.forms import MemoryOperation
from castsim.isa.tpc.matching import read_instruction
from castsim.isa.tpc.parser import LABEL, read_declarations
from castsim.isa.tpc.program import JUMPS
from castsim.isa.tpc.text import AssemblySource, Comment, Word
from castsim.isa.tpc.values import read_register
from castsim.targets.vliw import VliwTarget
from castsim.tpc_compiler.scheduling.names import NAME, SPELLINGS, Names, unit_of, unit_of_cell, widened

_LIKE_A_NAME = re.compile(r"%\w+\.[\w.]*")
_BUNDLE = re.compile(r";|\|\||[{}]")
_NOP, _HALT = "nop", "halt"


@dataclass(frozen=True, slots=True)
class Written:
    """An instruction as written, for every slot that it may stand in."""

    slots: dict[Slot, TpcInstruction]
    span: Span

    @property
    def instruction(self) -> TpcInstruction:
        """The instruction, as in its first slot."""
        return next(iter(self.slots.values()))


@dataclass(frozen=True, slots=True)
class Label:
    """The place of a label: before the instruction of that number."""

    name: str
    place: int
    span: Span


@dataclass(frozen=True, slots=True)
class SequentialProgram:
    """A text that is to be scheduled. `names` are its virtual registers."""

    file: str
    declarations: tuple[Declaration, ...]
    instructions: tuple[Written, ...]
    labels: tuple[Label, ...]
    directives: tuple[str, ...]
    names: Names


def read_sequential(
    text: str, file: str, target: VliwTarget, max_statements: int = MAX_STATEMENTS
) -> SequentialProgram:
    """Read a text of one instruction a line.

    Raises:
        ReadError: a line that cannot be read, or that holds a bundle; an undefined or redefined label.
        IllegalError: an instruction that the target lacks; a jump that counts bytes; a tensor that is not declared
            where others are, or is not to be stored to.
        LimitError: more instructions than `max_statements`.
    """
    return _Reader(text, file, target, max_statements).program()


class _Reader:
    """Reads one text."""

    def __init__(self, text: str, file: str, target: VliwTarget, limit: int) -> None:
        self._file = file
        self._limit = limit
        self._target = target
        self._source = AssemblySource(text, file)
        self._dialect = target.dialect
        self._wide = widened(target.dialect)
        self._names = Names()
        self._directives: list[str] = []
        self._labels: dict[str, Label] = {}

    def program(self) -> SequentialProgram:
        """Return what the text says."""
        declarations = self._declarations()
        found: list[Written] = []
        for line, text in enumerate(self._source.lines):
            start = self._labels_of(line, text, len(found))
            for written in self._line(line, text, start):
                if len(found) == self._limit:
                    raise too_many_statements(self._limit, written.span, "instructions")
                halts = written.instruction.mnemonic == _HALT
                behind = bool(found) and found[-1].instruction.mnemonic == _HALT
                labelled = any(label.place == len(found) for label in self._labels.values())
                if not (halts and behind and not labelled):  # HALT is written for either of its slots
                    found.append(written)
        self._check_labels(found)
        _check_tensors(found, declarations)
        return SequentialProgram(
            self._file, declarations, tuple(found), tuple(self._labels.values()), tuple(self._directives), self._names
        )

    # ----------------------------------------------------------------------------------------------- declarations

    def _declarations(self) -> tuple[Declaration, ...]:
        for place, comment in enumerate(self._source.comments):
            span = self._source.span(comment.line, comment.column, max(1, len(comment.text)))
            self._check_spelling(comment)
            text = NAME.sub(lambda found, at=span: self._names.placeholder(found[0], at), comment.text)  # type: ignore[misc]
            self._source.comments[place] = replace(comment, text=text)
        try:
            found = read_declarations(self._source, self._wide)
        except CastsimError as error:
            raise self._names.named(error, self._dialect) from None
        for declaration in found:
            if isinstance(declaration, RegisterDeclaration):
                self._check_real(declaration.register, declaration.span)
        kept = tuple(each for each in found if not isinstance(each, TargetDeclaration))
        return (TargetDeclaration(self._target.name), *kept)

    def _check_spelling(self, comment: Comment) -> None:
        """Reject what looks like a virtual register and names none."""
        for match in _LIKE_A_NAME.finditer(comment.text):
            if NAME.fullmatch(match[0]) is None:
                span = self._source.span(comment.line, comment.column + match.start(), len(match[0]))
                raise ReadError(f"'{match[0][:40]}' names no virtual register", span=span, legal=SPELLINGS)

    # ------------------------------------------------------------------------------------------------------- lines

    def _labels_of(self, line: int, text: str, place: int) -> int:
        """Take the labels that a line begins with; return where the rest begins."""
        start = 0
        while match := LABEL.match(text, start):
            span = self._source.span(line, match.start(1), len(match[1]))
            if match[1] in self._labels:
                first = self._labels[match[1]].span.line
                raise ReadError(f"label '{match[1]}' is defined twice, first in line {first}", span=span)
            self._labels[match[1]] = Label(match[1], place, span)
            start = match.end()
        return start

    def _line(self, line: int, text: str, start: int) -> Iterator[Written]:
        rest = text[start:].strip()
        if not rest:
            return
        if rest.startswith("."):
            self._directives.append(" ".join(rest.split()))
            return
        bundle = _BUNDLE.search(text, start)
        if bundle is not None:
            message = "the text has bundles already; one instruction a line is scheduled, without slots"
            legal = ("one instruction a line", "castsim lint and castsim run take bundles")
            raise self._source.error(message, line, bundle.start(), len(bundle[0]), legal)
        words = self._source.words(line, start, len(text))
        if words[0].text.lower() == _NOP:
            if len(words) > 1:
                message = "nop takes neither operands nor a predicate"
                raise ReadError(message, span=self._source.word_span(words[1]))
            return
        yield self._instruction(words)

    def _instruction(self, words: list[Word]) -> Written:
        span = self._source.word_span(words[0])
        virtual = False
        replaced = []
        for word in words:
            if word.text.startswith("%") and "." in word.text:
                virtual = True
                text = self._names.placeholder(word.text, self._source.word_span(word))
                unit = unit_of_cell(text)
                assert unit is not None
                self._names.places.setdefault((span.line, unit), self._source.word_span(word))
                replaced.append(replace(word, text=text))
            else:
                replaced.append(word)
        if not virtual:
            slots = read_instruction(self._source, words, self._dialect)
        else:
            try:
                slots = read_instruction(self._source, replaced, self._wide)
            except CastsimError as error:
                raise self._names.named(error, self._dialect) from None
            self._check_registers(slots, words, span)
        instruction = next(iter(slots.values()))
        if instruction.mnemonic in JUMPS and not isinstance(instruction.operand("src_a"), LabelUse):
            how = (
                "by a number of bytes" if isinstance(instruction.operand("src_a"), Immediate) else "through a register"
            )
            message = f"{instruction.mnemonic} {how} cannot be scheduled: bundles move"
            raise IllegalError(message, span=span, legal=("a jump to a label",))
        if instruction.mnemonic == "loop" and not isinstance(instruction.operand("end"), LabelUse):
            message = "a LOOP that ends at a number of bytes cannot be scheduled: bundles move"
            raise IllegalError(message, span=span, legal=("a label at the end of the body",))
        return Written({slot: replace(each, span=span) for slot, each in slots.items()}, span)

    def _check_registers(self, slots: dict[Slot, TpcInstruction], words: list[Word], span: Span) -> None:
        """Reject real registers that the files do not have."""
        for instruction in slots.values():
            predicate = instruction.predicate
            for operand in (*instruction.operands, *([predicate.register] if predicate else [])):
                if isinstance(operand, Register):
                    near = (word for word in words if word.text.upper().removeprefix("%") == str(operand))
                    word = next(near, None)
                    self._check_real(operand, span if word is None else self._source.word_span(word))

    def _check_real(self, register: Register, span: Span) -> None:
        unit = unit_of(register)
        if unit is not None and unit in self._names.shown:
            return
        try:
            read_register(str(register), self._dialect)
        except ValueError as error:
            raise ReadError(str(error), span=span) from None

    def _check_labels(self, found: list[Written]) -> None:
        for place, written in enumerate(found):
            instruction = written.instruction
            for operand in instruction.operands:
                if not isinstance(operand, LabelUse):
                    continue
                label = self._labels.get(operand.name)
                if label is None:
                    legal = tuple(self._labels) or ("a label defined as NAME:",)
                    raise ReadError(f"label '{operand.name}' is not defined", span=written.span, legal=legal)
                if instruction.mnemonic == "loop" and label.place <= place:
                    message = f"the body of the loop is empty: it ends at '{label.name}', in line {label.span.line}"
                    raise IllegalError(message, span=written.span, legal=("a label after the body",))


def _check_tensors(written: list[Written], declarations: tuple[Declaration, ...]) -> None:
    """Reject tensors that are not declared where others are, and stores to those that are only read."""
    known = {each.number: each for each in declarations if isinstance(each, TensorDeclaration)}
    for each in written if known else ():
        number = each.instruction.operand("tensor")
        if not isinstance(number, Immediate):
            continue
        tensor = known.get(number.value)
        if tensor is None:
            legal = tuple(f"{one.number} ({one.name})" for one in known.values())
            raise IllegalError(f"tensor {number.value} is not declared", span=each.span, legal=legal)
        if each.instruction.form.memory is MemoryOperation.TENSOR_STORE and tensor.direction == "in":
            message = f"tensor {tensor.number} ({tensor.name}) is declared `in` and cannot be stored to"
            raise IllegalError(message, span=each.span, legal=("out", "inout"))
