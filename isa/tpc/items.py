"""An instruction taken apart: mnemonic, suffixes, switches and operands, before any row of the table is consulted."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from difflib import get_close_matches

from castsim.isa.errors import ReadError
from castsim.isa.tpc import values
from castsim.isa.tpc.dialect import Dialect
from castsim.isa.tpc.forms import TYPE_ALIASES, TYPES
from castsim.isa.tpc.instructions import ALIASES, UNMODELLED, available, forms_of, mnemonics
from castsim.isa.tpc.program import Comparison, Immediate, LabelUse, Operand, Special
from castsim.isa.tpc.text import AssemblySource, Word

_HARDWARE_MOVES = ("to_hw_reg", "from_hw_reg")
_SIGNS = frozenset((">", ">=", "<", "<=", "==", "!="))


@dataclass(frozen=True, slots=True)
class WrittenOperand:
    """One operand as written; `inverted` if a `!` stands before it, `comma_before` if a comma (or the head) does."""

    word: Word
    operand: Operand
    inverted: bool
    comma_before: bool


@dataclass(frozen=True, slots=True)
class Setting:
    """One switch as written: `key=value`, or a bare word (key is then empty)."""

    word: Word
    key: str
    value: str


@dataclass(slots=True)
class InstructionParts:
    """An instruction taken apart."""

    head: Word
    mnemonic: str
    suffixes: list[str]
    settings: list[Setting] = field(default_factory=list)
    operands: list[WrittenOperand] = field(default_factory=list)


def take_apart(source: AssemblySource, words: list[Word], dialect: Dialect) -> InstructionParts:
    """Sort the words of one instruction.

    Raises:
        ReadError: unknown mnemonic, a word that is neither switch nor operand, a number or register out of range.
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
    """Drop the words that say of a MOV that one operand is a hardware register; return whether there was one."""
    if parts.mnemonic != "mov":
        return False
    found = [suffix for suffix in parts.suffixes if suffix in _HARDWARE_MOVES]
    parts.suffixes[:] = [suffix for suffix in parts.suffixes if suffix not in _HARDWARE_MOVES]
    bare = [place for place, word in enumerate(words) if place and word.text.lower() in _HARDWARE_MOVES]
    for place in reversed(bare):
        comma = place + 1 < len(words) and words[place + 1].text == ","
        del words[place : place + 1 + comma]
    return bool(found or bare)


def _name_hardware(source: AssemblySource, parts: InstructionParts) -> None:
    """Put names in place of the numbers of hardware registers.

    Raises:
        ReadError: a number that no register has.
    """
    for place, item in enumerate(parts.operands):
        if isinstance(item.operand, Immediate):
            name = values.HARDWARE_CODES.get(item.operand.value)
            if name is None:
                legal = [f"{code} ({name})" for code, name in values.HARDWARE_CODES.items()]
                message = f"there is no hardware register {item.word.text[:40]}"
                raise ReadError(message, span=source.word_span(item.word), legal=legal)
            parts.operands[place] = replace(item, operand=Special(name))


def _take_variant(parts: InstructionParts, words: list[Word]) -> None:
    """Make `mov_dg.all` of `mov_dg` where its variant stands as a suffix or as the first word."""
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
    """Sorts the words behind the mnemonic into switches and operands."""

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
        """Take every word; commas must stand between items, except after a switch or a leading selector."""
        comma, last = True, self.parts.head
        while self.position < len(self.words):
            word = self.words[self.position]
            if word.text == ",":
                if comma:
                    raise self.error("expected an operand before this comma", word)
                comma, last = True, word
                self.position += 1
                continue
            self._take_one(word, comma)
            comma = False
        if comma and last is not self.parts.head:
            raise self.error("an operand must follow this comma", last)

    def error(self, message: str, word: Word, legal: tuple[str, ...] = ()) -> ReadError:
        """Return (not raise) the refusal of a word."""
        return ReadError(message, span=self.source.word_span(word), legal=legal)

    def _take_one(self, word: Word, comma: bool) -> None:
        following = self.words[self.position + 1].text if self.position + 1 < len(self.words) else ""
        if following == "=":
            if self.position + 2 >= len(self.words):
                raise self.error(f"a value must follow '{word.text}='", word)
            value = self.words[self.position + 2]
            self.parts.settings.append(Setting(word, word.text.lower(), value.text.lower()))
            self.position += 3
        elif word.text == "!":
            if not following:
                raise self.error("a predicate register must follow '!'", word)
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
            found = values.read_register(text, self.dialect) or values.read_mask(text) or values.read_immediate(text)
        except ValueError as error:
            raise self.error(str(error), word) from None
        if found:
            return found
        if text in _SIGNS:
            return Comparison(text)
        if self.has_labels and (text[0].isalpha() or text[0] in "_.$"):
            return LabelUse(text)
        forms = [form for form in forms_of(self.parts.mnemonic) if available(form, self.dialect)]
        switches = [each for form in forms for each in form.switches if each.needs in (None, *self.dialect.features)]
        near = get_close_matches(text.lower()[:64], sorted(self.switch_words), n=3)
        legal = near or dict.fromkeys(each.choices(self.dialect) for each in switches)
        raise self.error(f"'{text[:40]}' is not a switch or operand of {self.parts.mnemonic}", word, tuple(legal))


def _unknown_mnemonic(source: AssemblySource, head: Word, name: str) -> ReadError:
    span = source.word_span(head)
    if name in UNMODELLED:
        return ReadError(f"instruction {name} is known but not modelled: no source gives its operands", span=span)
    near = get_close_matches(name[:64], mnemonics(), n=3)
    return ReadError(f"unknown instruction '{head.text[:40]}'", span=span, legal=near)
