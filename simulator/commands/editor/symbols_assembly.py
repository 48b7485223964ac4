"""The symbol index of TPC assembly: labels, registers, declared tensors.

A register is one name through the whole program; what defines it at a place are the writes that reach there.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence

from castsim.commands.editor.symbols import (
    Coloured,
    Item,
    Occurrence,
    Symbol,
    SymbolIndex,
    SymbolKind,
    SymbolLine,
    TextBlock,
    TokenType,
)
from castsim.isa.errors import ReadError
from castsim.isa.tpc import forms_of
from castsim.isa.tpc.forms import SELECTORS
from castsim.isa.tpc.instructions import ALIASES, FORMS
from castsim.isa.tpc.operand_text import SPECIALS, AssemblySource, Word
from castsim.isa.tpc.parser import LABEL
from castsim.isa.tpc.program import GROUPED, File
from castsim.tpc_compiler.virtual_registers import NAME

_REGISTER = re.compile(r"%?(VP|SP|AD|[VDASZI])(\d{1,6})", re.IGNORECASE)
_IDENTIFIER = re.compile(r"[A-Za-z_.$][\w.$]*")
_NUMBER = re.compile(r"0[xX][0-9A-Fa-f]+|\d+")
_SEPARATOR = re.compile(r";|\|\||[{}]")
_DECLARED = re.compile(
    r"(?P<what>tensor\s+(?P<number>0[xX][0-9A-Fa-f]+|\d+)\s+(?P<tensor>\w+)|reg\s+(?P<register>%?\w+))"
)
_LOOP = "loop"
_JUMPS_AND_LOOPS = frozenset(form.mnemonic for form in FORMS for each in form.operands if "label" in each.accepts)
_BLOCK = "bundle"


class AssemblyIndex(SymbolIndex):
    """The names of a TPC assembly text."""

    language = "tpc"

    def __init__(self, lines: Sequence[str], earlier: AssemblyIndex | None = None) -> None:
        super().__init__(lines)
        known = {} if earlier is None else earlier.known
        self.known: dict[str, SymbolLine] = {}
        self.block_of = [None] * len(lines)
        plain = _without_blocks(lines)
        for text in plain:
            line = self.known.get(text)
            if line is None:
                self.known[text] = line = known.get(text) or _read(text)
            self.lines.append(line)
        self._find_blocks(plain)

    def _find_blocks(self, lines: Sequence[str]) -> None:
        """Find loops, from the instruction to the label of their end, and bundles that go over lines."""
        labels = {item.name: n for n, line in enumerate(self.lines) for item in line.items
                  if item.defines and item.kind is SymbolKind.LABEL}  # fmt: skip
        for number, text in enumerate(lines):
            if _LOOP in text.lower() and self.lines[number].items:
                ends = [
                    item.name for item in self.lines[number].items if item.kind is SymbolKind.LABEL and not item.defines
                ]
                if ends and labels.get(ends[-1], -1) > number:
                    self.blocks.append(TextBlock(_LOOP, number + 1, None, ends[-1], labels[ends[-1]] + 1))
            if text.lstrip().startswith("{") and "}" not in text:
                end = next((n for n in range(number, len(lines)) if "}" in lines[n]), len(lines) - 1)
                self.blocks.append(TextBlock(_BLOCK, number + 1, None, "", end + 2))

    def definitions_for(self, line: int, column: int) -> tuple[Occurrence, ...]:
        """Return what defines a label or tensor, or the writes of a register that may reach a place."""
        symbol = self.symbol_at(line, column)
        if symbol is None or symbol.kind is not SymbolKind.REGISTER:
            return () if symbol is None else symbol.definitions
        writes = [one for one in symbol.definitions if one.line != line or one.column == column]
        own = [one for one in writes if one.line == line]
        return tuple(own or self._reaching(line, writes))

    def _reaching(self, line: int, writes: Sequence[Occurrence]) -> list[Occurrence]:
        before = [one for one in writes if one.line < line]
        found = before[-1:]
        for loop in self.blocks:
            if loop.head == _LOOP and loop.line < line < loop.end:
                behind = [one for one in writes if line < one.line < loop.end]
                found += [one for one in behind[-1:] if one not in found]
        return found or list(writes)[:1]

    def key(self, written: str) -> str:
        """Return how a name is looked up."""
        return (_registers(written) or (written,))[0]

    def taken(self, symbol: Symbol, new: str) -> Occurrence | None:
        """Return an occurrence that a new name would collide with: a register is taken wherever it stands."""
        found = [one for one, _ in self.occurrences(new)]
        return next((one for one in found if one.defines or symbol.kind is SymbolKind.REGISTER), None)


def _without_blocks(lines: Sequence[str]) -> Sequence[str]:
    """Return lines with comments in `/* */`, which may go over several, blanked out; others stay."""
    text = "\n".join(lines)
    if "/*" not in text:
        return lines
    try:
        blanked = AssemblySource(text, "").lines
    except ReadError:  # one is not closed
        blanked = AssemblySource(text.replace("/*", "  "), "").lines
    return [old if "castsim" in old else new for old, new in zip(lines, blanked, strict=True)]


def _read(written: str) -> SymbolLine:
    source = AssemblySource(written.replace("/*", "  "), "")
    if source.comments:
        declared = tuple(_declared(written))
        return SymbolLine(declared, tuple((one.column, one.end, TokenType.VARIABLE) for one in declared))
    text = source.lines[0]
    items: list[Item] = []
    colours: list[Coloured] = []
    start = 0
    while match := LABEL.match(text, start):
        items.append(Item(match[1], match.start(1) + 1, match.end(1) + 1, defines=True, kind=SymbolKind.LABEL))
        colours.append((match.start(1) + 1, match.end(1) + 1, TokenType.LABEL))
        start = match.end()
    if text[start:].lstrip().startswith("."):
        return SymbolLine(tuple(items), tuple(colours))
    for match in [*_SEPARATOR.finditer(text, start), None]:
        end = len(text) if match is None else match.start()
        if words := source.words(0, start, end):
            items += _instruction(words)
            colours += _coloured(words)
        start = end if match is None else match.end()
    return SymbolLine(tuple(items), tuple(colours))


def _instruction(words: Sequence[Word]) -> Iterator[Item]:
    """Yield the registers, labels and tensors that an instruction names."""
    name, _, suffix = words[0].text.lower().partition(".")
    mnemonic = ALIASES.get(name, name)
    forms = forms_of(mnemonic) or forms_of(f"{mnemonic}.{suffix.partition('.')[0]}")
    roles = [[each.role for each in form.operands if each.role not in SELECTORS] for form in forms]
    position = 0
    for place, word in enumerate(words[1:], 1):
        if word.text == ",":
            position += 1
            continue
        if "=" in (words[place - 1].text, words[place + 1].text if place + 1 < len(words) else ""):
            continue
        here = {own[position] for own in roles if position < len(own)}
        column, end = word.column + 1, word.column + len(word.text) + 1
        if names := _registers(word.text):
            end = min(end, column + max(map(len, names))) if names[0][0] == "%" else end  # `%d.x.1` is a part of `%d.x`
            writes = here == {"dest"} or ("dest" in here and position == 0)
            for each in names:
                yield Item(each, column, end, defines=writes, kind=SymbolKind.REGISTER, grouped=len(names) > 1)
        elif "tensor" in here and _NUMBER.fullmatch(word.text):
            yield Item(_tensor(word.text), column, end, kind=SymbolKind.TENSOR)
        elif mnemonic in _JUMPS_AND_LOOPS and _IDENTIFIER.fullmatch(word.text) and word.text.upper() not in SPECIALS:
            yield Item(word.text, column, end, kind=SymbolKind.LABEL)


def _coloured(words: Sequence[Word]) -> Iterator[Coloured]:
    for place, word in enumerate(words):
        column, end = word.column + 1, word.column + len(word.text) + 1
        if place == 0:
            yield column, end, TokenType.FUNCTION
        elif _registers(word.text) and words[place - 1].text != "=":
            yield column, end, TokenType.VARIABLE
        elif word.text[0].isdigit():
            yield column, end, TokenType.NUMBER
        elif _IDENTIFIER.fullmatch(word.text):
            yield column, end, TokenType.MODE


def _declared(text: str) -> Iterator[Item]:
    """Yield what a `// castsim:` comment declares."""
    found = _DECLARED.search(text, text.index("castsim"))
    if found is None:
        return
    name = "register" if found["register"] else "tensor"
    column, end = found.start(name) + 1, found.end(name) + 1
    if found["tensor"]:
        yield Item(_tensor(found["number"]), column, end, defines=True, kind=SymbolKind.TENSOR)
    else:
        for each in _registers(found["register"]):
            yield Item(each, column, end, defines=True, kind=SymbolKind.REGISTER)


def _tensor(number: str) -> str:
    return f"tensor {int(number, 16 if number[:2].lower() == '0x' else 10)}"


def _registers(text: str) -> tuple[str, ...]:
    """Return the registers that a word names: one, those of a group, or none."""
    found = _REGISTER.fullmatch(text)
    if found is None:
        named = NAME.fullmatch(text)
        return () if named is None else (f"%{named[1].lower()}.{named[2]}",)
    file, index = File(found[1].upper()), int(found[2])
    whole, count = GROUPED.get(file, (file, 1))
    return tuple(f"{whole}{number}" for number in range(index, index + count))
