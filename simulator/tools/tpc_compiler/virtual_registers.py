"""The text to be scheduled: one instruction a line, labels, declarations; registers may be virtual.

`%v.x` and similar names have numbers above their files until real registers are allocated.
"""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping
from functools import lru_cache

from castsim.isa.dataclass import dataclass, field, replace
from castsim.isa.errors import MAX_STATEMENTS, CastsimError, IllegalError, ReadError, Span, too_many_statements
from castsim.isa.tpc.forms import Dialect, MemoryOperation
from castsim.isa.tpc.matching import read_instruction
from castsim.isa.tpc.parser import LABEL, VIRTUAL_REGISTER, is_nop, read_declarations
from castsim.isa.tpc.program import (
    GROUPED,
    JUMPS,
    AssemblySource,
    Comment,
    Declaration,
    File,
    Immediate,
    LabelUse,
    Predicate,
    Register,
    RegisterDeclaration,
    Slot,
    TargetDeclaration,
    TensorDeclaration,
    TpcInstruction,
    Word,
    is_constant,
    read_register,
)
from castsim.targets.vliw import VliwTarget

# Virtual registers: how a text names them, and the numbers beyond the files that stand for them until allocation.
#
# `%v.x`, `%s.x`, `%i.x`, `%ad.x`, `%vp.x` and `%sp.x` are registers of a file; `%d.x` and `%a.x` are a pair and a quad
# of V, `%z.x` a pair of S, whose single registers are `%v.x.0`, `%v.x.1` and so on. One name of one file is one
# register or group: `%d.x` and `%v.x.0` begin at the same place. Grammar: docs/reference/tpc.md section 7.3.

FIRST = 1000
"""The number of the first virtual register, above that of every file."""
STRIDE = 4
"""Numbers per virtual register: those of the largest group."""
_MOST = 999_996
"""Upper limit of numbers: the reader accepts up to six digits."""


SPELLINGS = ("%v.NAME", "%s.NAME", "%i.NAME", "%ad.NAME", "%vp.NAME", "%sp.NAME", "%d.NAME", "%a.NAME", "%z.NAME")

_PLACEHOLDER = re.compile(rf"\b(VP|SP|AD|[VDASZI])(\d{{{len(str(FIRST))},6}})\b")
_RANGE = re.compile(rf"\b(VP|SP|AD|[VDASZI])0 \.\. {_MOST - 1}\b")
"""The registers of a widened file, as messages list them."""
_GROUPS = {file: [group for group, (whole, _) in GROUPED.items() if whole is file] for file in (File.V, File.S)}


@dataclass(frozen=True, slots=True)
class VirtualRegister:
    """A virtual register or group: its file, and its number among those of the file."""

    file: File
    number: int

    @property
    def base(self) -> int:
        """The number that represents its first register."""
        return FIRST + STRIDE * self.number


def unit_of(register: Register) -> VirtualRegister | None:
    """Return the virtual register of a register, None for a real one."""
    if register.index < FIRST:
        return None
    return VirtualRegister(GROUPED.get(register.file, (register.file, 1))[0], (register.index - FIRST) // STRIDE)


@lru_cache(maxsize=1 << 16)
def unit_of_cell(name: str) -> VirtualRegister | None:
    """Return the virtual register of a register cell, `V1004`; None for a real one."""
    match = _PLACEHOLDER.fullmatch(name)
    return None if match is None else unit_of(Register(File(match[1]), int(match[2])))


Numbers = Mapping[VirtualRegister, int]
"""The first of the registers that replace each virtual one."""


def in_place_of(register: Register, numbers: Numbers) -> Register:
    """Return the register that replaces a virtual one; others are unchanged."""
    unit = unit_of(register)
    if unit is None or unit not in numbers:
        return register
    return Register(register.file, numbers[unit] + register.index - unit.base)


def with_registers(instruction: TpcInstruction, read: Numbers, written: Numbers) -> TpcInstruction:
    """Return an instruction with other registers: by `written` in its destination, by `read` elsewhere."""
    operands = tuple(
        in_place_of(operand, written if spec.role == "dest" else read) if isinstance(operand, Register) else operand
        for spec, operand in instruction.specified
    )
    predicate = instruction.predicate
    if predicate is not None:
        predicate = Predicate(in_place_of(predicate.register, read), predicate.inverted)
    return replace(instruction, operands=operands, predicate=predicate)


def free_registers(target: VliwTarget, used: Iterable[Register]) -> dict[File, list[int]]:
    """Return the registers of each file that allocation may use: neither named in the text nor fixed."""
    sizes = target.registers
    taken: dict[File, set[int]] = defaultdict(set)
    for register in used:
        whole, count = GROUPED.get(register.file, (register.file, 1))
        taken[whole].update(range(register.index, register.index + count))
    registers = {}
    for file in (File.V, File.S, File.I, File.AD, File.SP, File.VP):
        last = getattr(sizes, file.value) - (sizes.loop_iterators if file is File.S else 0)
        registers[file] = [
            index for index in range(last) if index not in taken[file] and not is_constant(Register(file, index))
        ]
    return registers


@dataclass(slots=True)
class Names:
    """The virtual registers of a text. `sizes` are their numbers of registers, 1, 2 or 4."""

    units: dict[tuple[File, str], VirtualRegister] = field(default_factory=dict)
    shown: dict[VirtualRegister, str] = field(default_factory=dict)
    sizes: dict[VirtualRegister, int] = field(default_factory=dict)
    counts: dict[File, int] = field(default_factory=dict)
    places: dict[tuple[int, VirtualRegister], Span] = field(default_factory=dict)
    """The positions of virtual registers in the instruction of a line."""

    def placeholder(self, text: str, span: Span) -> str:
        """Return the register that represents a virtual one in the text, `V1004` for `%v.x`.

        Raises:
            ReadError: the text is not the name of a virtual register, or a member of a file without groups.
        """
        match = VIRTUAL_REGISTER.fullmatch(text)
        if match is None:
            raise ReadError(f"'{text[:40]}' does not name a virtual register", span=span, legal=SPELLINGS)
        file = File(match[1].upper())
        whole, size = GROUPED.get(file, (file, 1))
        member = int(match[3] or 0)
        if match[3] is not None and (size > 1 or whole not in _GROUPS):
            message = f"'{text[:40]}': only registers of a group have numbers, and those name single registers"
            raise ReadError(message, span=span, legal=("%v.NAME.0 .. %v.NAME.3", "%s.NAME.0", "%s.NAME.1"))
        unit = self.unit(whole, match[2])
        self.need(unit, max(size, member + 1), span)
        return f"{file}{unit.base + member}"

    def unit(self, file: File, name: str) -> VirtualRegister:
        """Return the virtual register of a name, a new one if there is none."""
        register = self.units.get((file, name))
        if register is None:
            register = self.units[file, name] = self.fresh(file, name)
        return register

    def fresh(self, file: File, name: str) -> VirtualRegister:
        """Return a new virtual register that is not in the text; messages call it `name`."""
        register = VirtualRegister(file, self.counts.get(file, 0))
        self.counts[file] = register.number + 1
        self.shown[register] = name
        self.sizes[register] = 1
        return register

    def renamed(self, unit: VirtualRegister) -> VirtualRegister:
        """Return a new virtual register for another value of an existing one."""
        register = self.fresh(unit.file, self.shown[unit])
        self.sizes[register] = self.sizes[unit]
        return register

    def need(self, unit: VirtualRegister, registers: int, span: Span | None = None) -> None:
        """Record the number of registers of a unit: 1, 2 or 4.

        Raises:
            ReadError: there are more virtual registers than numbers.
        """
        size = 1 if registers == 1 else 2 if registers == 2 else STRIDE
        self.sizes[unit] = max(self.sizes[unit], size)
        if unit.base > _MOST - STRIDE:
            raise ReadError("too many virtual registers", span=span)

    def spelling(self, unit: VirtualRegister) -> str:
        """Return the name of a virtual register in a text: `%v.x`, or `%d.x` for a pair."""
        size = self.sizes[unit]
        group = next(
            (group_name for group_name in _GROUPS.get(unit.file, ()) if GROUPED[group_name][1] == size), unit.file
        )
        return f"%{group.value.lower()}.{self.shown[unit]}"

    def named(self, error: CastsimError, dialect: Dialect) -> CastsimError:
        """Return an error that uses the names of virtual registers."""
        error.legal = tuple(
            _RANGE.sub(lambda match: f"{match[1]}0 .. {dialect.registers[match[1]] - 1}", spelling)
            for spelling in error.legal
        )
        error.message = _PLACEHOLDER.sub(
            lambda placeholder_match: self._name(placeholder_match, dialect), error.message
        )
        error.legal = tuple(
            _PLACEHOLDER.sub(lambda found: self._name(found, dialect), spelling) for spelling in error.legal
        )
        return error

    def _name(self, match: re.Match[str], dialect: Dialect) -> str:
        register = Register(File(match[1]), int(match[2]))
        whole, size = GROUPED.get(register.file, (register.file, 1))
        unit = unit_of(register)
        if unit not in self.shown:
            return f"{register.file}{dialect.registers[whole] - size}"
        member = (register.index - FIRST) % STRIDE
        return f"%{register.file.value.lower()}.{self.shown[unit]}{f'.{member}' if member else ''}"


def widened(dialect: Dialect) -> Dialect:
    """Return a dialect whose files have room for virtual registers."""
    return replace(dialect, registers=dict.fromkeys(dialect.registers, _MOST))


_LIKE_A_NAME = re.compile(r"%\w+\.[\w.]*")
_BUNDLE = re.compile(r";|\|\||[{}]")
_HALT = "halt"


@dataclass(frozen=True, slots=True)
class WrittenInstruction:
    """An instruction as written, for every slot that it may be in."""

    slots: dict[Slot, TpcInstruction]
    span: Span

    @property
    def instruction(self) -> TpcInstruction:
        """The instruction, as in its first slot."""
        return next(iter(self.slots.values()))


def written_as(text: str, file: str, dialect: Dialect) -> WrittenInstruction:
    """Return an instruction as if it were written. Errors: see `read_instruction`."""
    source = AssemblySource(text, file)
    slots = read_instruction(source, source.words(0, 0, len(text)), dialect)
    return WrittenInstruction(slots, source.span(0, 0, len(text)))


@dataclass(frozen=True, slots=True)
class LabelPlace:
    """The place of a label: before the instruction with that number."""

    name: str
    place: int
    span: Span


@dataclass(frozen=True, slots=True)
class SequentialProgram:
    """A text to be scheduled. `names` are its virtual registers.

    `local` is the end of the accesses through registers to `vlm` and `slm`; None if that is unknown.
    """

    file: str
    declarations: tuple[Declaration, ...]
    instructions: tuple[WrittenInstruction, ...]
    labels: tuple[LabelPlace, ...]
    directives: tuple[str, ...]
    names: Names
    local: Mapping[str, int] | None = None


def read_sequential(
    text: str, file: str, target: VliwTarget, max_statements: int = MAX_STATEMENTS
) -> SequentialProgram:
    """Read a text of one instruction a line.

    Raises:
        ReadError: a line is malformed or holds a bundle, or a label is undefined or redefined.
        IllegalError: the target lacks an instruction; a jump counts bytes; a tensor is not declared where
            others are, or must not be stored to.
        LimitError: there are more instructions than `max_statements`.
    """
    return _ScheduleReader(text, file, target, max_statements).program()


class _ScheduleReader:
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
        self._labels: dict[str, LabelPlace] = {}

    def program(self) -> SequentialProgram:
        """Return the program of the text."""
        declarations = self._declarations()
        instructions: list[WrittenInstruction] = []
        for line, text in enumerate(self._source.lines):
            start = self._labels_of(line, text, len(instructions))
            for written in self._line(line, text, start):
                if len(instructions) == self._limit:
                    raise too_many_statements(self._limit, written.span, "instructions")
                halts = written.instruction.mnemonic == _HALT
                behind = bool(instructions) and instructions[-1].instruction.mnemonic == _HALT
                labelled = any(label.place == len(instructions) for label in self._labels.values())
                if not (halts and behind and not labelled):  # HALT is written for either of its slots
                    instructions.append(written)
        self._check_labels(instructions)
        _check_tensors(instructions, declarations)
        return SequentialProgram(
            self._file,
            declarations,
            tuple(instructions),
            tuple(self._labels.values()),
            tuple(self._directives),
            self._names,
        )

    # ----------------------------------------------------------------------------------------------- declarations

    def _declarations(self) -> tuple[Declaration, ...]:
        for index, comment in enumerate(self._source.comments):
            span = self._source.span(comment.line, comment.column, max(1, len(comment.text)))
            self._check_spelling(comment)
            text = VIRTUAL_REGISTER.sub(lambda match, at=span: self._names.placeholder(match[0], at), comment.text)  # type: ignore[misc]
            self._source.comments[index] = replace(comment, text=text)
        try:
            declarations = read_declarations(self._source, self._wide)
        except CastsimError as error:
            raise self._names.named(error, self._dialect) from None
        for declaration in declarations:
            if isinstance(declaration, RegisterDeclaration):
                self._check_real(declaration.register, declaration.span)
        kept = tuple(entry for entry in declarations if not isinstance(entry, TargetDeclaration))
        return (TargetDeclaration(self._target.name), *kept)

    def _check_spelling(self, comment: Comment) -> None:
        """Reject text that resembles a virtual register but is not one."""
        for match in _LIKE_A_NAME.finditer(comment.text):
            if VIRTUAL_REGISTER.fullmatch(match[0]) is None:
                span = self._source.span(comment.line, comment.column + match.start(), len(match[0]))
                raise ReadError(f"'{match[0][:40]}' does not name a virtual register", span=span, legal=SPELLINGS)

    # ------------------------------------------------------------------------------------------------------- lines

    def _labels_of(self, line: int, text: str, index: int) -> int:
        """Record the labels at the beginning of a line; return the position after them."""
        start = 0
        while match := LABEL.match(text, start):
            span = self._source.span(line, match.start(1), len(match[1]))
            if match[1] in self._labels:
                first = self._labels[match[1]].span.line
                raise ReadError(f"label '{match[1]}' is defined twice; the first is in line {first}", span=span)
            self._labels[match[1]] = LabelPlace(match[1], index, span)
            start = match.end()
        return start

    def _line(self, line: int, text: str, start: int) -> Iterator[WrittenInstruction]:
        rest = text[start:].strip()
        if not rest:
            return
        if rest.startswith("."):
            self._directives.append(" ".join(rest.split()))
            return
        bundle = _BUNDLE.search(text, start)
        if bundle is not None:
            message = "the text already has bundles; write one instruction a line, without slots"
            legal = ("one instruction a line", "castsim lint and castsim run take bundles")
            raise self._source.error(message, line, bundle.start(), len(bundle[0]), legal)
        words = self._source.words(line, start, len(text))
        if not is_nop(self._source, words):
            yield self._instruction(words)

    def _instruction(self, words: list[Word]) -> WrittenInstruction:
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
        return WrittenInstruction({slot: replace(content, span=span) for slot, content in slots.items()}, span)

    def _check_registers(self, slots: dict[Slot, TpcInstruction], words: list[Word], span: Span) -> None:
        """Reject real registers that the files do not have."""
        for instruction in slots.values():
            for register in instruction.registers:
                near = (word for word in words if word.text.upper().removeprefix("%") == str(register))
                word = next(near, None)
                self._check_real(register, span if word is None else self._source.word_span(word))

    def _check_real(self, register: Register, span: Span) -> None:
        unit = unit_of(register)
        if unit is not None and unit in self._names.shown:
            return
        try:
            read_register(str(register), self._dialect)
        except ValueError as error:
            raise ReadError(str(error), span=span) from None

    def _check_labels(self, instructions: list[WrittenInstruction]) -> None:
        for index, written in enumerate(instructions):
            instruction = written.instruction
            for operand in instruction.operands:
                if not isinstance(operand, LabelUse):
                    continue
                label = self._labels.get(operand.name)
                if label is None:
                    legal = tuple(self._labels) or ("a label defined as NAME:",)
                    raise ReadError(f"label '{operand.name}' is not defined", span=written.span, legal=legal)
                if instruction.mnemonic == "loop" and label.place <= index:
                    message = f"the body of the loop is empty: it ends at '{label.name}', in line {label.span.line}"
                    raise IllegalError(message, span=written.span, legal=("a label after the body",))


def _check_tensors(written: list[WrittenInstruction], declarations: tuple[Declaration, ...]) -> None:
    """Reject tensors that are not declared where others are, and stores to those that are only read."""
    tensors = {
        declaration.number: declaration for declaration in declarations if isinstance(declaration, TensorDeclaration)
    }
    for instruction in written if tensors else ():
        number = instruction.instruction.operand("tensor")
        if not isinstance(number, Immediate):
            continue
        tensor = tensors.get(number.value)
        if tensor is None:
            legal = tuple(
                f"{tensor_declaration.number} ({tensor_declaration.name})" for tensor_declaration in tensors.values()
            )
            raise IllegalError(f"tensor {number.value} is not declared", span=instruction.span, legal=legal)
        if instruction.instruction.form.memory is MemoryOperation.TENSOR_STORE and tensor.direction == "in":
            message = f"tensor {tensor.number} ({tensor.name}) is declared `in` and cannot be stored to"
            raise IllegalError(message, span=instruction.span, legal=("out", "inout"))
