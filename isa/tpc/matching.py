"""Matching of one instruction's words with a row of the instruction table.

All rows of the mnemonic in the slot are tried. A row that does not fit reports how far the text fitted and why it
stopped; the refusal that got furthest is reported, with the alternatives of all that got as far.
"""

from __future__ import annotations

from difflib import get_close_matches
from itertools import zip_longest

from castsim.isa.dataclass import dataclass, field, replace
from castsim.isa.errors import CastsimError, IllegalError, ReadError
from castsim.isa.tpc.forms import SELECTORS, TYPE_ALIASES, TYPES, Dialect, Form, OperandSpec, Predication, Switch, Value
from castsim.isa.tpc.instructions import ALIASES, UNMODELLED, available, forms_of, mnemonics
from castsim.isa.tpc.program import (
    COMPARISONS,
    GROUPED,
    HARDWARE_CODES,
    AssemblySource,
    DimensionMask,
    File,
    Immediate,
    LabelUse,
    LoopComparison,
    Operand,
    Predicate,
    Register,
    Slot,
    Special,
    TpcInstruction,
    Word,
    read_immediate,
    read_mask,
    read_register,
)

# An instruction taken apart: mnemonic, suffixes, switches and operands, before any row of the table is consulted.

ALL_SECTIONS = 8
"""The section number that means all sections. Source: docs/reference/tpc.md section 8."""
_ROUND_32 = "rnd32"
"""A key of the old spelling before words that are switches without it too."""
_ROUNDED_PRODUCTS = ("double_and_round32", "keep_rs", "keep_rs_for_add")
_HARDWARE_MOVES = ("to_hw_reg", "from_hw_reg")
_DATA_DIRECTIVES = ("db", "dh", "dw", "dd", "dq")


@dataclass(frozen=True, slots=True)
class WrittenOperand:
    """One written operand; `inverted` marks a `!` before it, `comma_before` a comma (or the head) before it."""

    word: Word
    operand: Operand
    inverted: bool
    comma_before: bool


@dataclass(frozen=True, slots=True)
class Setting:
    """One written switch: `key=value`, or a bare word (key is then empty)."""

    word: Word
    key: str
    value: str


@dataclass(slots=True)
class InstructionParts:
    """The parts of an instruction."""

    head: Word
    mnemonic: str
    suffixes: list[str]
    settings: list[Setting] = field(default_factory=list)
    operands: list[WrittenOperand] = field(default_factory=list)


def take_apart(source: AssemblySource, words: list[Word], dialect: Dialect) -> InstructionParts:
    """Sort the words of one instruction.

    Raises:
        ReadError: the mnemonic is unknown, a word is neither switch nor operand, a number or register is out of range.
    """
    head = words[0]
    name, *suffixes = head.text.lower().split(".")
    mnemonic = ALIASES.get(name, name)
    if not forms_of(mnemonic):
        raise _unknown_mnemonic(source, head, name)
    parts = InstructionParts(head, mnemonic, suffixes)
    _take_variant(parts, words)
    hardware = _take_hardware(parts, words)
    switch_words = {word for form in forms_of(parts.mnemonic) for switch in form.switches for word in switch.bare()}
    for suffix in parts.suffixes:
        if suffix not in TYPES and suffix not in TYPE_ALIASES and suffix not in switch_words:
            message = f"unknown type suffix '.{suffix[:40]}'"
            raise ReadError(message, span=source.word_span(head), legal=TYPES)
    _Items(source, words, dialect, parts, frozenset(switch_words)).take_all()
    if hardware:
        _name_hardware(source, parts)
    return parts


def _take_hardware(parts: InstructionParts, words: list[Word]) -> bool:
    """Remove the words that mark an operand of MOV as a hardware register; return whether there was one."""
    if parts.mnemonic != "mov":
        return False
    moves = [suffix for suffix in parts.suffixes if suffix in _HARDWARE_MOVES]
    parts.suffixes[:] = [suffix for suffix in parts.suffixes if suffix not in _HARDWARE_MOVES]
    bare = [index for index, word in enumerate(words) if index and word.text.lower() in _HARDWARE_MOVES]
    for index in reversed(bare):
        comma = index + 1 < len(words) and words[index + 1].text == ","
        del words[index : index + 1 + comma]
    return bool(moves or bare)


def _name_hardware(source: AssemblySource, parts: InstructionParts) -> None:
    """Put names in place of the numbers of hardware registers.

    Raises:
        ReadError: a number that no register has.
    """
    for index, item in enumerate(parts.operands):
        if isinstance(item.operand, Immediate):
            name = HARDWARE_CODES.get(item.operand.value)
            if name is None:
                legal = [f"{code} ({name})" for code, name in HARDWARE_CODES.items()]
                message = f"unknown hardware register {item.word.text[:40]}"
                raise ReadError(message, span=source.word_span(item.word), legal=legal)
            parts.operands[index] = replace(item, operand=Special(name))


def _take_variant(parts: InstructionParts, words: list[Word]) -> None:
    """Replace `mov_dg` by `mov_dg.all` if its variant is a suffix or the first word."""
    for suffix in parts.suffixes:
        if forms_of(f"{parts.mnemonic}.{suffix}"):
            parts.mnemonic = f"{parts.mnemonic}.{suffix}"
            parts.suffixes.remove(suffix)
            return
    for position in range(1, len(words)):
        variant = f"{parts.mnemonic}.{words[position].text.lower()}"
        if forms_of(variant):
            parts.mnemonic = variant
            del words[position]
            if position < len(words) and words[position].text == ",":
                del words[position]
            return


class _Items:
    """The switches and operands among the words after the mnemonic."""

    def __init__(
        self,
        source: AssemblySource,
        words: list[Word],
        dialect: Dialect,
        parts: InstructionParts,
        switch_words: frozenset[str],
    ) -> None:
        self.source = source
        self.words = words
        self.dialect = dialect
        self.parts = parts
        self.switch_words = switch_words
        self.position = 1
        self.has_labels = any("label" in spec.accepts for form in forms_of(parts.mnemonic) for spec in form.operands)

    def take_all(self) -> None:
        """Consume every word; items are separated by commas, except after a switch or a leading selector."""
        comma, last = True, self.parts.head
        while self.position < len(self.words):
            word = self.words[self.position]
            if word.text == ",":
                if comma:
                    raise self.error("missing operand before this comma", word)
                comma, last = True, word
                self.position += 1
                continue
            self._take_one(word, comma)
            comma = False
        if comma and last is not self.parts.head:
            raise self.error("missing operand after this comma", last)

    def error(self, message: str, word: Word, legal: tuple[str, ...] = ()) -> ReadError:
        """Return (not raise) the refusal of a word."""
        return ReadError(message, span=self.source.word_span(word), legal=legal)

    def _take_one(self, word: Word, comma: bool) -> None:
        following = self.words[self.position + 1].text if self.position + 1 < len(self.words) else ""
        if following == "=":
            if self.position + 2 >= len(self.words):
                raise self.error(f"missing value after '{word.text}='", word)
            value = self.words[self.position + 2]
            if word.text.lower() == _ROUND_32:
                if value.text.lower() not in self.switch_words:
                    message = f"RND32={value.text[:40]}: no source documents this word"
                    raise self.error(message, value, _ROUNDED_PRODUCTS)
                word = replace(word, text="")
            self.parts.settings.append(Setting(word, word.text.lower(), value.text.lower()))
            self.position += 3
        elif word.text == "!":
            if not following:
                raise self.error("missing predicate register after '!'", word)
            self.position += 1
            self._take_operand(self.words[self.position], comma, inverted=True)
        elif word.text.lower() in self.switch_words:
            self.parts.settings.append(Setting(word, "", word.text.lower()))
            self.position += 1
        else:
            self._take_operand(word, comma, inverted=False)

    def _take_operand(self, word: Word, comma: bool, *, inverted: bool) -> None:
        self.parts.operands.append(WrittenOperand(word, self._operand(word), inverted, comma))
        self.position += 1

    def _operand(self, word: Word) -> Operand:
        text = word.text
        try:
            operand = read_register(text, self.dialect) or read_mask(text) or read_immediate(text)
        except ValueError as error:
            raise self.error(str(error), word) from None
        if operand:
            return operand
        if text in COMPARISONS:
            return LoopComparison(text)
        if self.has_labels and (text[0].isalpha() or text[0] in "_.$"):
            return LabelUse(text)
        forms = [form for form in forms_of(self.parts.mnemonic) if available(form, self.dialect)]
        switches = [
            candidate
            for form in forms
            for candidate in form.switches
            if candidate.needs in (None, *self.dialect.features)
        ]
        near = get_close_matches(text.lower()[:64], sorted(self.switch_words), n=3)
        legal = near or dict.fromkeys(candidate.choices(self.dialect) for candidate in switches)
        raise self.error(f"'{text[:40]}' is not a switch or operand of {self.parts.mnemonic}", word, tuple(legal))


def _unknown_mnemonic(source: AssemblySource, head: Word, name: str) -> ReadError:
    span = source.word_span(head)
    if name in UNMODELLED:
        return ReadError(f"instruction {name} is not modelled: no source documents its operands", span=span)
    if name in _DATA_DIRECTIVES:
        return ReadError(f"no values after {head.text}", span=span, legal=(f"{head.text} NUMBER, ..",))
    near = get_close_matches(name[:64], mnemonics(), n=3)
    return ReadError(f"unknown instruction '{head.text[:40]}'", span=span, legal=near)


class _Misfit(Exception):  # noqa: N818  never leaves this module
    """The mismatch of a row: how far it matches (larger is further), where it stops, and the legal items there."""

    def __init__(self, rank: tuple[int, int], word: Word, message: str, legal: tuple[str, ...] = ()) -> None:
        super().__init__(message)
        self.rank = rank
        self.word = word
        self.message = message
        self.legal = legal


def read_instruction(source: AssemblySource, words: list[Word], dialect: Dialect) -> dict[Slot, TpcInstruction]:
    """Read one instruction other than NOP; return it for every slot that it may occupy.

    Raises:
        ReadError: a mnemonic, switch or register is unknown, a register class is wrong, an operand or type is missing.
        IllegalError: it is well-formed, but the generation lacks the form, the switch or the rounding mode.
    """
    parts = take_apart(source, words, dialect)
    rows = [form for form in forms_of(parts.mnemonic) if available(form, dialect)]
    instructions, misfits = _try(source, rows, parts, dialect)
    if not instructions:
        raise _refusal(source, parts, misfits, dialect)
    return instructions


def read_in_slot(source: AssemblySource, words: list[Word], slot: Slot, dialect: Dialect) -> TpcInstruction:
    """Read one instruction other than NOP in a given slot.

    Raises:
        ReadError: see `read_instruction`; also an instruction that this slot does not execute.
        IllegalError: see `read_instruction`.
    """
    parts = take_apart(source, words, dialect)
    rows = [form for form in forms_of(parts.mnemonic) if available(form, dialect)]
    here = [form for form in rows if slot in form.slots]
    instructions, misfits = _try(source, here, parts, dialect)
    if slot in instructions:
        return instructions[slot]
    elsewhere, other_misfits = _try(source, [form for form in rows if slot not in form.slots], parts, dialect)
    if elsewhere:
        message = f"{parts.mnemonic} with these operands cannot be in the {slot.name} slot"
        raise ReadError(message, span=source.word_span(parts.head), legal=[other.name for other in sorted(elsewhere)])
    raise _refusal(source, parts, misfits or other_misfits, dialect)


def _try(
    source: AssemblySource, rows: list[Form], parts: InstructionParts, dialect: Dialect
) -> tuple[dict[Slot, TpcInstruction], list[_Misfit]]:
    """Fit rows; the first that fits serves each of its slots."""
    instructions: dict[Slot, TpcInstruction] = {}
    misfits: list[_Misfit] = []
    for form in rows:
        try:
            instruction = _match(source, form, parts, dialect)
        except _Misfit as misfit:
            misfits.append(misfit)
        else:
            for slot in form.slots:
                instructions.setdefault(Slot(slot), instruction)
    return instructions, misfits


# ------------------------------------------------------------------------------------------------------ fitting rows

# How far a row fitted, in the order of checking.
_OPERANDS, _PREDICATE, _TYPE, _SWITCHES = range(4)


def _match(source: AssemblySource, form: Form, parts: InstructionParts, dialect: Dialect) -> TpcInstruction:
    """Fit one row.

    Raises:
        _Misfit: it does not fit.
        IllegalError: it fits, except for a switch value that the generation lacks.
    """
    items, settings = _with_leading(form, parts)
    operands, predicate = _match_operands(form, parts, items, dialect)
    kind, settings = _match_suffixes(form, parts, settings)
    switches = _match_switches(source, form, parts, settings, dialect)
    span = source.word_span(parts.head)
    return TpcInstruction(form, kind, switches, operands, predicate, span=span)


def _with_leading(form: Form, parts: InstructionParts) -> tuple[list[WrittenOperand], list[Setting]]:
    """Return operands and settings; a leading bare number may be a switch, `popcnt.i32 1 V1, V2`.

    `mov 8 VP1, S2` is the move to all sections, which has no number in canonical text.
    """
    switch = next((candidate for candidate in form.switches if candidate.leading), None)
    first = parts.operands[0] if parts.operands else None
    if form.mnemonic == "mov" and first is not None and first.operand == Immediate(ALL_SECTIONS):
        word = parts.operands[2].operand if len(parts.operands) > 2 else None
        scalar = isinstance(word, Immediate) or (isinstance(word, Register) and word.file is File.S)
        if scalar and form.operands[0].accepts == ("VP",) and "imm" in form.operands[1].accepts:
            return parts.operands[1:], parts.settings
    if switch is None or first is None or not isinstance(first.operand, Immediate):
        return parts.operands, parts.settings
    return parts.operands[1:], [*parts.settings, Setting(first.word, switch.name, first.word.text)]


def _match_operands(
    form: Form, parts: InstructionParts, items: list[WrittenOperand], dialect: Dialect
) -> tuple[tuple[Operand, ...], Predicate | None]:
    specs = form.operands
    given = items
    if _spelled_out(form, parts):
        given = [
            _named_by_first(item, spec) if spec is not None and spec.by_first else item
            for spec, item in zip_longest(specs[: len(items)], items)
        ]
        given = _with_provided(form, parts, given, dialect)
    for position, (spec, item) in enumerate(zip(specs, given, strict=False)):
        if item.inverted or not _accepts(spec, item.operand, dialect):
            shown = f"{'!' if item.inverted else ''}{item.word.text}"
            message = f"operand {position + 1} of {form.mnemonic} cannot be {shown}"
            raise _Misfit((_OPERANDS, position), item.word, message, _legal(spec, dialect))
        selector = position == 1 and specs[0].role in SELECTORS
        if position and not item.comma_before and not selector:
            raise _Misfit((_OPERANDS, position), item.word, "missing ',' before this operand", (",",))
    if len(given) < len(specs):
        missing = specs[len(given)]
        message = f"{form.mnemonic} needs {len(specs)} operands, found {len(given)}"
        raise _Misfit((_OPERANDS, len(given)), parts.head, message, _legal(missing, dialect))
    operands = tuple(item.operand for item in given[: len(specs)])
    if len(given) == len(specs):
        return operands, None
    return operands, _match_predicate(form, given[len(specs) :], dialect)


def _spelled_out(form: Form, parts: InstructionParts) -> bool:
    """Return whether words state properties that operands of another kind would imply."""
    spelled = {*parts.suffixes, *(setting.key or setting.value for setting in parts.settings)}
    roles = {spec.role for spec in form.operands}
    return all(name in spelled or name in roles for name, value in form.implied if value)


def _named_by_first(item: WrittenOperand, spec: OperandSpec) -> WrittenOperand:
    """Return a pair or quad in place of the V register that names it by its first, else the operand as it is."""
    register = item.operand
    file = next((file for file in (File.D, File.A) if file in spec.accepts), None)
    if file is None or not isinstance(register, Register) or register.file is not File.V:
        return item
    return item if register.index % GROUPED[file][1] else replace(item, operand=Register(file, register.index))


def _with_provided(
    form: Form, parts: InstructionParts, given: list[WrittenOperand], dialect: Dialect
) -> list[WrittenOperand]:
    """Return the operands; the last ones are optional if the generation has one register for them."""
    specs = form.operands
    first = len(specs)
    while first and specs[first - 1].dialect_role is not None:
        first -= 1
    if first == len(specs) or len(given) < first:
        return given
    if given[first:] and _accepts(specs[first], given[first].operand, dialect):
        return given
    filled = []
    for spec in specs[first:]:
        register = read_register(dialect.tensor_registers[spec.dialect_role or ""], dialect)
        assert register is not None
        filled.append(WrittenOperand(parts.head, register, inverted=False, comma_before=True))
    return [*given[:first], *filled, *given[first:]]


def _match_predicate(form: Form, rest: list[WrittenOperand], dialect: Dialect) -> Predicate | None:
    item = rest[0]
    vectors = form.predication is Predication.VECTOR or form.vector_predicate in dialect.features
    files = () if form.predication is Predication.NONE else (File.SP, File.VP) if vectors else (File.SP,)
    legal = tuple(f"{sign}{file}0 .. {dialect.registers[file] - 1}" for file in files for sign in ("", "!"))
    register = item.operand
    rank = (_PREDICATE, len(form.operands))
    if not isinstance(register, Register) or register.file not in (File.SP, File.VP):
        raise _Misfit((_OPERANDS, len(form.operands)), item.word, f"{form.mnemonic} does not take this operand", legal)
    if register.file not in files:
        raise _Misfit(rank, item.word, f"{form.mnemonic} cannot be predicated by {register} here", legal)
    if len(rest) > 1:
        raise _Misfit(rank, rest[1].word, "unexpected word after the predicate")
    if not item.comma_before and form.operands:
        raise _Misfit(rank, item.word, "missing ',' before the predicate", (",",))
    always_true = register == Register(File.SP, 0) and not item.inverted
    return None if always_true else Predicate(register, item.inverted)


def _accepts(spec: OperandSpec, operand: Operand, dialect: Dialect) -> bool:
    if spec.dialect_role is not None and str(operand) == dialect.tensor_registers.get(spec.dialect_role):
        return True
    for word in spec.accepts:
        if isinstance(operand, Register):
            if operand.file == word:
                return True
        elif isinstance(operand, Special):
            if operand.name == word:
                return True
        elif _WORDS[type(operand)] == word:
            return not isinstance(operand, Immediate) or spec.limit is None or operand.value <= spec.limit
    return False


_WORDS: dict[type[Operand], str] = {
    Immediate: "imm",
    DimensionMask: "mask",
    LabelUse: "label",
    LoopComparison: "compare",
}


def _legal(spec: OperandSpec, dialect: Dialect) -> tuple[str, ...]:
    """Return the legal items of an operand position in words."""
    shown = {
        "imm": "an immediate" if spec.limit is None else f"0 .. {spec.limit}",
        "mask": "a dimension mask such as b00010",
        "label": "a label",
        "compare": "> >= < <= == !=",
    }
    if spec.dialect_role is not None:
        return (dialect.tensor_registers[spec.dialect_role],)
    kinds = []
    for word in spec.accepts:
        if word in File.__members__:
            kinds.append(f"a register {word}")
        else:
            kinds.append(shown.get(word, word))
    return tuple(kinds)


def _match_suffixes(form: Form, parts: InstructionParts, given: list[Setting]) -> tuple[str | None, list[Setting]]:
    """Split the suffixes into the type and switches, which are added to the given ones."""
    kind: str | None = None
    settings = list(given)
    for suffix in parts.suffixes:
        name = TYPE_ALIASES.get(suffix, suffix)
        if name in TYPES and kind is None:
            kind = name
        else:
            settings.insert(0, Setting(parts.head, "", suffix))
    if kind is not None and form.drops_type:
        return None, settings
    if kind is not None and kind not in form.types:
        message = f"{form.mnemonic} with these operands takes no type .{kind}"
        raise _Misfit((_TYPE, 0), parts.head, message, form.types)
    if kind is None and form.types:
        raise _Misfit((_TYPE, 0), parts.head, f"{form.mnemonic} with these operands needs a type suffix", form.types)
    return kind, settings


# --------------------------------------------------------------------------------------------------------- switches


def _match_switches(
    source: AssemblySource, form: Form, parts: InstructionParts, settings: list[Setting], dialect: Dialect
) -> tuple[tuple[str, Value], ...]:
    chosen: dict[str, Value] = {}
    places: dict[str, Word] = {}
    for setting in settings:
        switch = _find(form, setting, dialect)
        if switch.needs is not None and switch.needs not in dialect.features:
            message = f"{dialect.name} has no switch {switch.name} on {form.mnemonic}"
            raise IllegalError(message, span=source.word_span(setting.word), legal=_names(form, dialect))
        value = _value(switch, setting)
        _check_rounding(source, switch, value, setting, dialect)
        if chosen.setdefault(switch.name, value) != value:
            message = f"{switch.name} is set twice, to {chosen[switch.name]} and {value}"
            raise _Misfit((_SWITCHES, 1), setting.word, message)
        places[switch.name] = setting.word
    for name, implied in form.implied:
        if chosen.setdefault(name, implied) != implied:
            raise _Misfit((_SWITCHES, 0), places[name], f"{name} does not work with these operands", (form.pattern(),))
    return _completed(form, parts, chosen, places, dialect)


def _completed(
    form: Form, parts: InstructionParts, chosen: dict[str, Value], places: dict[str, Word], dialect: Dialect
) -> tuple[tuple[str, Value], ...]:
    """Fill in the defaults and remove inapplicable switches, in canonical order."""
    values: list[tuple[str, Value]] = []
    for switch in form.switches:
        if switch.needs is not None and switch.needs not in dialect.features:
            continue
        default = switch.default
        value = chosen.get(switch.name, default)
        if switch.only_if is not None:
            name, needed = switch.only_if
            governing = next(other.default for other in form.switches if other.name == name)
            if chosen.get(name, governing) != needed:
                if value != default:
                    message = f"{switch.name} works only with {name} {needed}"
                    raise _Misfit((_SWITCHES, 2), places[switch.name], message)
                continue
        if value is None:
            legal = tuple(spelling for _, spelling in switch.words)
            raise _Misfit((_SWITCHES, 2), parts.head, f"{form.mnemonic} needs {switch.name}", legal)
        values.append((switch.name, value))
    return tuple(values)


def _find(form: Form, setting: Setting, dialect: Dialect) -> Switch:
    for switch in form.switches:
        if setting.key:
            if setting.key in (switch.name, *switch.keys):
                return switch
        elif setting.value in switch.bare():
            return switch
    shown = f"{setting.key}=" if setting.key else setting.value
    message = f"{form.mnemonic} has no switch '{shown[:40]}' here"
    raise _Misfit((_SWITCHES, 0), setting.word, message, _names(form, dialect))


def _value(switch: Switch, setting: Setting) -> Value:
    """Return the value that a setting gives a switch."""
    words = switch.named() if setting.key else switch.bare()
    if setting.value in words:
        return words[setting.value]
    if switch.words:
        legal = tuple(spelling for _, spelling in switch.words)
    else:
        try:
            number = read_immediate(setting.value)
        except ValueError:
            number = None
        if number is not None and number.value in switch.numbers:
            return number.value
        legal = tuple(map(str, switch.numbers))
    message = f"{switch.name} cannot be {setting.value[:40]}"
    raise _Misfit((_SWITCHES, 1), setting.word, message, legal)


def _check_rounding(source: AssemblySource, switch: Switch, value: Value, setting: Setting, dialect: Dialect) -> None:
    if switch.rounding is not None and value not in dialect.roundings[switch.rounding]:
        message = f"{dialect.name} has no rounding mode {value} on this instruction"
        span = source.word_span(setting.word)
        raise IllegalError(message, span=span, legal=dialect.roundings[switch.rounding])


def _names(form: Form, dialect: Dialect) -> tuple[str, ...]:
    return tuple(switch.name for switch in form.switches if switch.needs is None or switch.needs in dialect.features)


# --------------------------------------------------------------------------------------------------------- refusals


def _refusal(source: AssemblySource, parts: InstructionParts, misfits: list[_Misfit], dialect: Dialect) -> CastsimError:
    """Return the refusal of an instruction that fits no row of this generation."""
    for form in forms_of(parts.mnemonic):
        if not available(form, dialect) and _fits_elsewhere(source, form, parts, dialect):
            legal = dict.fromkeys(row.pattern() for row in forms_of(parts.mnemonic) if available(row, dialect))
            message = f"{dialect.name} has no {form.pattern()}"
            return IllegalError(message, span=source.word_span(parts.head), legal=legal)
    if not misfits:
        message = f"{dialect.name} has no {parts.mnemonic}"
        return IllegalError(message, span=source.word_span(parts.head))
    furthest = max(misfit.rank for misfit in misfits)
    reported = [misfit for misfit in misfits if misfit.rank == furthest]
    choices = [*dict.fromkeys(choice for misfit in reported for choice in misfit.legal)]
    first = reported[0]
    ranges = [choice for choice in choices if " .. " in choice]
    if ranges and first.word.text[0].isdigit():  # the number is too large, a register is not what was meant
        to_all = [f"{ALL_SECTIONS} for all sections"] if parts.mnemonic == "mov" and furthest == (_OPERANDS, 0) else []
        choices = [*ranges, *to_all]
    return ReadError(first.message, span=source.word_span(first.word), legal=choices)


def _fits_elsewhere(source: AssemblySource, form: Form, parts: InstructionParts, dialect: Dialect) -> bool:
    """Return whether a form that this generation lacks would fit the text."""
    try:
        _match(source, form, parts, dialect)
    except (_Misfit, KeyError, CastsimError):
        return False
    return True
