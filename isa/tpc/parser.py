"""Reader and printer of TPC assembly: lines, labels, directives, declarations, and bundles in their layouts.

Three layouts may be mixed. Slots separated by `;` on one line are in the order LOAD; SPU; VPU; STORE, trailing ones may
be missing. In `{ }`, one instruction per line or separated by `;`, and on a line that joins instructions by `||`
or has only one, the slot follows from the mnemonic and the operands: of several possible ones, the first that is
free in the order above. Source: docs/reference/tpc.md section 7.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping
from math import prod

from castsim.isa.dataclass import dataclass
from castsim.isa.errors import MAX_STATEMENTS, CastsimError, ErrorList, ReadError, Span, too_many_statements
from castsim.isa.formats import FORMATS, format_named
from castsim.isa.tpc.forms import SELECTORS, Dialect, Feature, OperandSpec, Show
from castsim.isa.tpc.matching import read_in_slot, read_instruction
from castsim.isa.tpc.program import (
    ADDRESS_BITS,
    INDEX_DIMENSIONS,
    AssemblySource,
    Bundle,
    Comment,
    Declaration,
    Directive,
    File,
    Immediate,
    Item,
    LabelDefinition,
    LabelUse,
    Operand,
    Register,
    RegisterDeclaration,
    Slot,
    TableDeclaration,
    TargetDeclaration,
    TensorDeclaration,
    TpcInstruction,
    TpcProgram,
    VlmDeclaration,
    Word,
    read_immediate,
    read_register,
)

# Look-up tables that a program declares: their form, and the sizes that function ids stand for.
#
# Source: docs/reference/tpc.md section 5.5 (function ids, entries, layouts); the form of the declaration is castsim's.

TABLE_FORM = "table NAME [lut_ptr] NUMBER FORMAT [ENTRIES] or [VALUES, ENTRIES], then = FILE or = NUMBER, .. if known"
"""One-line grammar of a table declaration."""

TABLE = re.compile(
    r"(?P<name>[A-Za-z_]\w*)\s+(?P<pointer>lut_ptr\s+)?(?P<number>0[xX][0-9A-Fa-f]{1,8}|\d{1,9})"
    r"\s+(?P<format>[\w@]+)\s*\[(?P<shape>[^\]]*)\](?:\s*=\s*(?P<content>\S.*))?"
)
"""The text after the word `table`."""

_ENTRIES = (256, 128, 64, 64)
"""Entries by the upper two bits of a function id; gaudi and later number 128 tables of a group, goya 16."""

_POINTED = (256, 128, 64, 32)
"""The numbers of entries by the lower two bits of the S register of `lut_ptr`."""

_NUMBERS, _GOYA_NUMBERS = 128, 16
_MOST_VALUES = 3


def entries_of(function: int, dialect: Dialect, *, by_pointer: bool) -> int:
    """Return the number of entries of the table with a function id."""
    if by_pointer:
        return _POINTED[function & 3]
    numbers = _NUMBERS if Feature.TYPED_LOOKUP in dialect.features else _GOYA_NUMBERS
    return _ENTRIES[function // numbers]


def check_table(table: TableDeclaration, dialect: Dialect) -> None:
    """Check a declaration against the look-ups of the generation.

    Raises:
        ReadError: the generation lacks the function id, no look-up reads the size or element type, or the number of
            values differs from the declared size.
    """
    if table.by_pointer and Feature.LOOKUP_POINTER not in dialect.features:
        raise ReadError(
            f"{dialect.name} has no look-ups with lut_ptr", span=table.span, legal=("table NAME NUMBER ..",)
        )
    last = len(_ENTRIES) * (_NUMBERS if Feature.TYPED_LOOKUP in dialect.features else _GOYA_NUMBERS) - 1
    if not table.by_pointer and table.function > last:
        raise ReadError(f"function id {table.function} does not exist", span=table.span, legal=(f"0 .. {last}",))
    _check_format(table, dialect)
    _check_size(table, dialect)


def _check_format(table: TableDeclaration, dialect: Dialect) -> None:
    widths = {32, 16} if Feature.TYPED_LOOKUP in dialect.features else {32}
    if FORMATS[table.format].bits not in widths:
        types = ("f32", "i32", "u32", *(("bf16", "f16", "i16", "u16") if len(widths) > 1 else ()))
        legal = [name for name, fmt in FORMATS.items() if fmt.bits in widths and name in types]
        message = f"look-ups of {dialect.name} cannot read entries of {table.format}"
        raise ReadError(message, span=table.span, legal=legal)


def _check_size(table: TableDeclaration, dialect: Dialect) -> None:
    entries = entries_of(table.function, dialect, by_pointer=table.by_pointer)
    most = _MOST_VALUES if FORMATS[table.format].bits == 32 else _MOST_VALUES - 1
    legal = [f"[{entries}]", *(f"[{values}, {entries}]" for values in range(2, most + 1))]
    if len(table.shape) > 2 or table.columns > most or table.entries != entries:
        which = f"lut_ptr {table.function}" if table.by_pointer else f"function id {table.function}"
        shape = ", ".join(map(str, table.shape))
        message = f"the table of {which} has {entries} entries of 1 to {most} values of {table.format}, not [{shape}]"
        raise ReadError(message, span=table.span, legal=legal)
    if table.content is None or table.file is not None:
        return
    given = table.content.count(",") + 1
    if given != prod(table.shape):
        message = f"{table.name} is declared with {prod(table.shape)} values, but {given} follow"
        raise ReadError(message, span=table.span, legal=("FILE.npy", "FILE.csv", f"{prod(table.shape)} numbers"))


# The `// castsim:` comments, which declare what assembly text cannot: target, tensors, start values.
#
# Grammar: design of castsim, section 5. The vendor's assembler takes them for comments.

_DIRECTIONS = ("in", "out", "inout")
_NUMBER = r"(?P<number>0[xX][0-9A-Fa-f]{1,16}|\d{1,20})"
_DATA = r"(?P<name>[A-Za-z_]\w*)(?:\s+(?P<direction>in|out|inout))?\s+(?P<format>[\w@]+)\s*\[(?P<shape>[^\]]*)\]"
_TARGET = re.compile(r"(?P<name>[\w./\\-]+)")
_TENSOR = re.compile(rf"{_NUMBER}\s+{_DATA}")
_VLM = re.compile(rf"{_NUMBER}\s+{_DATA}")
_REG = re.compile(r"(?P<register>%?\w+)\s*=\s*(?P<values>\[[^\]]*\]|[-+]?\w+)")
_LARGEST_SIZE = 1 << 31  # coordinates are signed integers of 32 bits

_SHAPES = {
    "target": "target NAME",
    "tensor": "tensor NUMBER NAME in|out|inout FORMAT [SIZE, ..]",
    "reg": "reg REGISTER = VALUE",
    "vlm": "vlm ADDRESS NAME FORMAT [SIZE, ..]",
    "table": TABLE_FORM,
}


def declared_target(source: AssemblySource) -> TargetDeclaration | None:
    """Return the declaration of the target in a text, before the rest is read."""
    for comment in source.comments:
        word, _, rest = comment.text.strip().partition(" ")
        if word == "target" and (match := _TARGET.fullmatch(rest.strip())):
            return TargetDeclaration(match["name"], span=_place(source, comment))
    return None


def read_declarations(
    source: AssemblySource, dialect: Dialect, errors: ErrorList | None = None
) -> tuple[Declaration, ...]:
    """Read all declarations of a text.

    Errors are collected without raising: an unknown or malformed declaration, an unknown format or register,
    or a repeated declaration.
    """
    errors = ErrorList(most=1) if errors is None else errors
    declarations: list[Declaration] = []
    seen: dict[object, Span] = {}
    for comment in source.comments:
        try:
            declaration = _read(source, comment, dialect)
        except ReadError as error:
            errors.take(error)
            continue
        for key in _keys(declaration):
            if key in seen:
                what = " ".join(str(part) for part in key)
                message = f"{what} is declared twice; the first is in line {seen[key].line}"
                errors.take(ReadError(message, span=declaration.span))
            seen.setdefault(key, declaration.span)
        declarations.append(declaration)
    return tuple(declarations)


def _keys(declaration: Declaration) -> tuple[tuple[object, ...], ...]:
    """Return the parts that a declaration must not share with another."""
    if isinstance(declaration, TargetDeclaration):
        return (("the target",),)
    if isinstance(declaration, RegisterDeclaration):
        return (("register", declaration.register),)
    if isinstance(declaration, TensorDeclaration):
        return (("tensor", declaration.number), ("name", declaration.name))
    if isinstance(declaration, TableDeclaration):
        which = "table of lut_ptr" if declaration.by_pointer else "table"
        return ((which, declaration.function), ("name", declaration.name))
    return (("vlm address", declaration.address), ("name", declaration.name))


def _read(source: AssemblySource, comment: Comment, dialect: Dialect) -> Declaration:
    text = comment.text.strip()
    span = _place(source, comment)
    word, _, rest = text.partition(" ")
    patterns = {"target": _TARGET, "tensor": _TENSOR, "reg": _REG, "vlm": _VLM, "table": TABLE}
    if word not in patterns:
        raise ReadError(f"unknown declaration '{word[:40]}'", span=span, legal=_SHAPES.values())
    match = patterns[word].fullmatch(rest.strip())
    if not match:
        raise ReadError(f"malformed declaration of {word}", span=span, legal=(_SHAPES[word],))
    readers: dict[str, Callable[[re.Match[str], Dialect, Span], Declaration]] = {
        "target": lambda match, _dialect, span: TargetDeclaration(match["name"], span=span),
        "tensor": _tensor,
        "reg": _register,
        "vlm": _vlm,
        "table": _table,
    }
    return readers[word](match, dialect, span)


def _place(source: AssemblySource, comment: Comment) -> Span:
    """Return the place of a declaration, white space around it left out."""
    text = comment.text.strip()
    indent = len(comment.text) - len(comment.text.lstrip())
    return source.span(comment.line, comment.column + indent, max(1, len(text)))


def _tensor(match: re.Match[str], _dialect: Dialect, span: Span) -> Declaration:
    if not match["direction"]:
        raise ReadError("the direction of the tensor is missing", span=span, legal=_DIRECTIONS)
    number, shape = int(match["number"], 0), _shape(match["shape"], span)
    return TensorDeclaration(number, match["name"], match["direction"], _format(match, span), shape, span=span)


def _vlm(match: re.Match[str], _dialect: Dialect, span: Span) -> Declaration:
    address, shape = int(match["number"], 0), _shape(match["shape"], span)
    return VlmDeclaration(address, match["name"], match["direction"] or "in", _format(match, span), shape, span=span)


def _table(match: re.Match[str], dialect: Dialect, span: Span) -> Declaration:
    function, shape, content = int(match["number"], 0), _shape(match["shape"], span), match["content"]
    pointer = match["pointer"] is not None
    table = TableDeclaration(match["name"], pointer, function, _format(match, span), shape, content, span=span)
    check_table(table, dialect)
    return table


def _format(match: re.Match[str], span: Span) -> str:
    try:
        return format_named(match["format"]).name
    except ReadError as error:
        raise error.at(span) from None


def _shape(text: str, span: Span) -> tuple[int, ...]:
    sizes = [size.strip() for size in text.split(",")]
    for size in sizes:
        if not (size.isascii() and size.isdecimal() and 0 < int(size) <= _LARGEST_SIZE):
            raise ReadError(
                f"a shape must be a list of positive sizes, not '{size[:40]}' in [{text[:40]}]",
                span=span,
                legal=(f"sizes of 1 to {_LARGEST_SIZE}, such as [64, 1024]",),
            )
    if len(sizes) > INDEX_DIMENSIONS:
        raise ReadError(f"a shape has at most {INDEX_DIMENSIONS} dimensions, not {len(sizes)}", span=span)
    return tuple(map(int, sizes))


def _register(match: re.Match[str], dialect: Dialect, span: Span) -> Declaration:
    try:
        register = read_register(match["register"], dialect)
    except ValueError as error:
        raise ReadError(str(error), span=span) from None
    legal = ("S", "SP", "I", "AD")
    if not isinstance(register, Register) or register.file not in legal:
        raise ReadError(f"{match['register']} cannot have a start value", span=span, legal=legal)
    count = INDEX_DIMENSIONS if register.file is File.I else 1
    texts = match["values"].strip("[]").split(",")
    if len(texts) != count or (match["values"][0] == "[") != (count > 1):
        wanted = "[c0, c1, c2, c3, c4]" if count > 1 else "one number"
        raise ReadError(f"{register} takes {wanted}", span=span, legal=(f"reg {register} = {wanted}",))
    return RegisterDeclaration(register, tuple(_number(text.strip(), register, span) for text in texts), span=span)


def _number(text: str, register: Register, span: Span) -> int:
    if register.file is File.AD:
        if re.fullmatch(r"0[xX][0-9A-Fa-f]{1,16}|\d{1,20}", text) and int(text, 0) < 1 << ADDRESS_BITS:
            return int(text, 0)
        raise ReadError(f"'{text[:40]}' is not a {ADDRESS_BITS}-bit address", span=span)
    try:
        immediate = read_immediate(text)
    except ValueError as error:
        raise ReadError(str(error), span=span) from None
    if immediate is None or (register.file is File.SP and immediate.value > 1):
        raise ReadError(f"'{text[:40]}' is not a value for {register}", span=span)
    return immediate.signed if register.file is File.I else immediate.value


VIRTUAL_REGISTER = re.compile(r"%(vp|sp|ad|[vsidaz])\.([A-Za-z0-9_]+)(?:\.([0-3]))?", re.IGNORECASE)
"""A virtual register in a text."""


def has_virtual_registers(text: str) -> bool:
    """Return whether an assembly text has virtual registers and must be scheduled before it can run."""
    return VIRTUAL_REGISTER.search(text) is not None


LABEL = re.compile(r"\s*([A-Za-z_.$][\w.$]*)\s*:")
"""A label, which begins a line."""
_SEPARATOR = re.compile(r";|\|\|")
_JOIN = "||"
_JOINED = re.compile(r"\|\|")
_METADATA = re.compile(r"D[BHWDQ]\s", re.IGNORECASE)
"""The data of a metadata section, after the name of a field."""
_SCEV = re.compile(r"\s*SCEV", re.IGNORECASE)
_NOP = "nop"


def parse(text: str, dialect: Dialect, file: str = "<text>", max_statements: int = MAX_STATEMENTS) -> TpcProgram:
    """Read an assembly text of one generation.

    Raises:
        LimitError: it has more bundles, labels and directives than `max_statements`.
        ReadError: something cannot be read, an instruction is in a slot that does not execute it, two instructions
            share one slot, a label is undefined or redefined, or a declaration is invalid.
        IllegalError: this generation lacks an instruction, form, switch or mode.

    The error raised is the first in the text; `further` has the others.
    """
    source = AssemblySource(text, file)
    errors = ErrorList()
    declarations = read_declarations(source, dialect, errors)
    program = TpcProgram(declarations, tuple(_counted(_Reader(source, dialect, errors).items(), max_statements)))
    _check_labels(program, errors)
    errors.raise_found()
    return program


def _counted(items: Iterator[Item], limit: int) -> Iterator[Item]:
    """Yield items; reject the first one beyond a limit."""
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
    """Part of a line with one instruction or nothing."""

    line: int
    start: int
    end: int


class _Reader:
    """Reader of the lines of one text."""

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
            if _SCEV.match(text):
                column = len(text) - len(text.lstrip())
                message = "SCEV lines are not supported: no source documents them"
                self.errors.take(self.source.error(message, self.line, column, legal=("a comment: // ..",)))
                self.line += 1
                continue
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
        """Skip to the last line of unreadable text: a bundle in braces that begins in a line, or that line alone."""
        lines = self.source.lines
        if lines[opened][start:].lstrip().startswith("{"):
            closing = next((n for n in range(opened, len(lines)) if "}" in lines[n]), opened)
            self.line = max(self.line, closing)

    def _rest(self, text: str, start: int) -> Iterator[Item]:
        """Yield the text of a line after its labels."""
        rest = text[start:].strip()
        column = start + len(text[start:]) - len(text[start:].lstrip())
        if not rest:
            return
        if rest.startswith(".") or _METADATA.match(rest):
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
            raise self.source.error("a brace must be alone on its line or start a bundle", self.line, brace.start())
        span = self.source.span(self.line, column, len(text.rstrip()) - column)
        if ";" not in text[start:]:
            return _bundle(self._placed(list(self._joined(start))), span)
        segments = list(self._segments(self.line, start, len(text), re.compile(";")))
        if not text[segments[-1].start : segments[-1].end].strip():
            segments.pop()
        if len(segments) > len(Slot):
            extra = segments[len(Slot)]
            message = f"a bundle has {len(Slot)} slots"
            raise self.source.error(message, extra.line, extra.start, legal=[slot.name for slot in Slot])
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

    def _joined(self, start: int) -> Iterator[_Segment]:
        """Yield the instructions of a bundle joined by `||`, on one line or several; leave `line` at its last line."""
        lines = self.source.lines
        while True:
            text = lines[self.line]
            yield from self._segments(self.line, start, len(text), _JOINED)
            following = next((n for n in range(self.line + 1, len(lines)) if lines[n].strip()), None)
            if following is None or not (text.rstrip().endswith(_JOIN) or lines[following].lstrip().startswith(_JOIN)):
                return
            self.line, start = following, 0

    def _in_slot(self, slot: Slot, segment: _Segment) -> TpcInstruction | None:
        """Read the text of a slot, None for a NOP; the last text of this slot is cached."""
        text = self.source.lines[segment.line][segment.start : segment.end]
        key = (slot, text.strip())
        if key not in self._known:
            words = self._words(segment)
            read = None if is_nop(self.source, words) else read_in_slot(self.source, words, slot, self.dialect)
            self._known[key] = None if read is None else (read, len(words[0].text))
            return read
        message = self._known[key]
        if message is None:
            return None
        column = segment.start + len(text) - len(text.lstrip())
        return message[0].at(self.source.span(segment.line, column, message[1]))

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
                    raise self.source.error("unexpected text after the bundle", self.line, close + 1)
                return _bundle(self._placed(segments), span)
            self.line += 1
            start = 0
        raise self.source.error("missing '}' at the end of the bundle", opened, column, legal=("}",))

    def _segments(self, line: int, start: int, end: int, separator: re.Pattern[str]) -> Iterator[_Segment]:
        """Cut part of a line at separators."""
        text = self.source.lines[line]
        for match in separator.finditer(text, start, end):
            yield _Segment(line, start, match.start())
            start = match.end()
        yield _Segment(line, start, end)

    def _placed(self, segments: list[_Segment]) -> dict[str, TpcInstruction]:
        """Read instructions without slots, and assign one to each."""
        choices: list[tuple[Word, dict[Slot, TpcInstruction]]] = []
        for segment in segments:
            words = self._words(segment)
            try:
                if words and not is_nop(self.source, words):
                    choices.append((words[0], read_instruction(self.source, words, self.dialect)))
            except CastsimError as error:
                self.errors.take(error)
        taken = _assign([slots for _, slots in choices], frozenset())
        if taken is None:
            raise self._crowded(choices)
        return {slot.name.lower(): slots[slot] for slot, (_, slots) in zip(taken, choices, strict=True)}

    def _crowded(self, choices: list[tuple[Word, dict[Slot, TpcInstruction]]]) -> ReadError:
        """Reject the first instruction without a free slot."""
        count = next(n for n in range(1, len(choices) + 1) if _assign([f for _, f in choices[:n]], frozenset()) is None)
        word, slots = choices[count - 1]
        message = f"no free slot in the bundle for {word.text}"
        return ReadError(message, span=self.source.word_span(word), legal=[slot.name for slot in slots])

    def _words(self, segment: _Segment) -> list[Word]:
        return self.source.words(segment.line, segment.start, segment.end)


def is_nop(source: AssemblySource, words: list[Word]) -> bool:
    """Return whether words are a NOP.

    Raises:
        ReadError: something follows the NOP.
    """
    if words[0].text.lower() != _NOP:
        return False
    if len(words) > 1:
        raise ReadError("nop takes neither operands nor a predicate", span=source.word_span(words[1]))
    return True


def _bundle(slots: Mapping[str, TpcInstruction], span: Span, written: int | None = None) -> Bundle:
    return Bundle(*(slots.get(slot.name.lower()) for slot in Slot), written=written, span=span)


def _assign(choices: list[dict[Slot, TpcInstruction]], taken: frozenset[Slot]) -> tuple[Slot, ...] | None:
    """Assign a separate slot to each instruction, first choices first if possible; None if impossible."""
    if not choices:
        return ()
    for slot in sorted(choices[0]):
        if slot not in taken:
            rest = _assign(choices[1:], taken | {slot})
            if rest is not None:
                return (slot, *rest)
    return None


def _check_labels(program: TpcProgram, errors: ErrorList) -> None:
    """Record labels defined twice and uses of undefined ones."""
    places: dict[str, LabelDefinition] = {}
    for item in program.items:
        if isinstance(item, LabelDefinition):
            if item.name in places:
                message = f"label '{item.name}' is defined twice; the first is in line {places[item.name].span.line}"
                errors.take(ReadError(message, span=item.span))
            places.setdefault(item.name, item)
    for bundle in program.bundles:
        for instruction in bundle.slots:
            for operand in instruction.operands if instruction else ():
                if isinstance(operand, LabelUse) and operand.name not in places:
                    assert instruction is not None
                    legal = tuple(places) or ("a label defined as NAME:",)
                    errors.take(ReadError(f"label '{operand.name}' is not defined", span=instruction.span, legal=legal))


# Programs to canonical text: what the vendor's disassembler prints.
#
# Lower-case mnemonics, switches before the operands, registers in upper case, immediates as unsigned hexadecimal
# numbers of 32 bits, no predicate SP0. Reading the printed text gives an equal program. Source: docs/reference/tpc.md
# section 7.


def print_instruction(instruction: TpcInstruction | None) -> str:
    """Write one instruction; None is `nop`."""
    if instruction is None:
        return "nop"
    words = [print_head(instruction)]
    operands = [_operand(spec, operand) for spec, operand in instruction.specified]
    if operands and instruction.form.operands[0].role in SELECTORS:
        words.append(operands.pop(0))
    if instruction.predicate is not None:
        operands.append(str(instruction.predicate))
    if operands:
        words.append(", ".join(operands))
    return " ".join(words)


def print_head(instruction: TpcInstruction) -> str:
    """Write mnemonic, type and switches of an instruction."""
    specs = {switch.name: switch for switch in instruction.form.switches}
    words = [instruction.mnemonic if instruction.type is None else f"{instruction.mnemonic}.{instruction.type}"]
    for name, value in instruction.switches:
        switch = specs[name]
        if switch.show is Show.ALWAYS or (switch.show is Show.CHANGED and value != switch.default):
            words.append(switch.print(value))
    return " ".join(words)


def print_bundle(bundle: Bundle) -> str:
    """Write one bundle: four slots in order, separated by `;`."""
    return "; ".join(print_instruction(instruction) for instruction in bundle.slots)


def print_program(program: TpcProgram) -> str:
    """Return a program's text: declarations first, then a line per bundle, label and directive."""
    lines = [print_declaration(declaration) for declaration in program.declarations]
    lines.extend(print_item(item) for item in program.items)
    return "".join(f"{line}\n" for line in lines)


def canonical_text(text: str, dialect: Dialect, file: str = "<text>") -> str:
    """Rewrite a text canonically, one line per input line.

    A bundle in braces is moved to the line of its opening brace; the lines that it or a comment leaves empty stay
    empty. Declarations are kept. The result ends in a line break if the text does.

    Raises:
        ReadError, IllegalError: see `castsim.isa.tpc.parser.parse`.
    """
    program = parse(text, dialect, file)
    lines: list[list[str]] = [[] for _ in text.replace("\r\n", "\n").replace("\r", "\n").split("\n")]
    for item in program.items:
        lines[item.span.line - 1].append(print_item(item))
    for declaration in program.declarations:
        lines[declaration.span.line - 1].append(print_declaration(declaration))
    return "\n".join(" ".join(parts) for parts in lines)


def print_declaration(declaration: Declaration) -> str:
    """Write a declaration as the comment it is."""
    return f"// castsim: {_declared(declaration)}"


def _declared(declaration: Declaration) -> str:
    if isinstance(declaration, TargetDeclaration):
        return f"target {declaration.name}"
    if isinstance(declaration, RegisterDeclaration):
        shown = ", ".join(map(str, declaration.values))
        return f"reg {declaration.register} = {shown if len(declaration.values) == 1 else f'[{shown}]'}"
    shape = ", ".join(map(str, declaration.shape))
    if isinstance(declaration, TableDeclaration):
        which = f"lut_ptr {declaration.function}" if declaration.by_pointer else str(declaration.function)
        content = "" if declaration.content is None else f" = {declaration.content}"
        return f"table {declaration.name} {which} {declaration.format} [{shape}]{content}"
    if isinstance(declaration, TensorDeclaration):
        head = f"tensor {declaration.number} {declaration.name} {declaration.direction}"
    else:
        direction = "" if declaration.direction == "in" else f" {declaration.direction}"
        head = f"vlm {declaration.address:#x} {declaration.name}{direction}"
    return f"{head} {declaration.format} [{shape}]"


def print_item(item: Item) -> str:
    """Write a bundle, a label or a directive."""
    if isinstance(item, Bundle):
        return print_bundle(item)
    return f"{item.name}:" if isinstance(item, LabelDefinition) else item.text


def _operand(spec: OperandSpec, operand: Operand) -> str:
    if isinstance(operand, Immediate):
        return str(operand.signed) if spec.decimal else f"{operand.value:#x}"
    return str(operand)
