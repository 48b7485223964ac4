"""The symbol index of a text: the definitions and uses of each name, and the block that each is valid in.

One index per version of a text answers definition, references, rename, outline, folding and colours. It uses the
readers' tokens and continues where these refuse a statement, so it also answers while a line is being typed.
Data about a line is kept for the next version: after an edit, only changed lines are read again.
"""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from enum import StrEnum
from typing import ClassVar

from castsim.isa.dataclass import dataclass, field
from castsim.isa.errors import ReadError
from castsim.isa.pto.lexer import PtoSource, TokenKind, Tokens, scan
from castsim.isa.pto.types import ELEMENTS, EXTENSIONS, SCALARS
from castsim.isa.tpc.forms import SELECTORS
from castsim.isa.tpc.instructions import ALIASES, FORMS, forms_of
from castsim.isa.tpc.parser import LABEL, VIRTUAL_REGISTER
from castsim.isa.tpc.program import GROUPED, SPECIALS, AssemblySource, File, Word


class SymbolKind(StrEnum):
    """The kind of thing that a name denotes."""

    FUNCTION = "function"
    ARGUMENT = "argument"
    VALUE = "value"
    LOOP_VARIABLE = "loop variable"
    CARRIED = "value of a loop or block"
    LABEL = "label"
    REGISTER = "register"
    TENSOR = "tensor"


@dataclass(frozen=True, slots=True)
class Item:
    """A name in a line: columns from 1, the end exclusive; `name` is its key in the index.

    `grouped` marks a register named within a group.
    """

    name: str
    column: int
    end: int
    defines: bool = False
    kind: SymbolKind = SymbolKind.VALUE
    grouped: bool = False

    def at(self, line: int) -> Occurrence:
        """Return the occurrence in a line, from 1."""
        return Occurrence(self.name, self.column, self.end, self.defines, self.kind, self.grouped, line)


@dataclass(frozen=True, slots=True)
class Occurrence(Item):
    """A name in a text, in a line from 1."""

    line: int = 0


@dataclass(frozen=True, slots=True)
class Symbol:
    """A named thing with all its occurrences in the order of the text."""

    name: str
    kind: SymbolKind
    occurrences: tuple[Occurrence, ...]

    @property
    def definitions(self) -> tuple[Occurrence, ...]:
        """The occurrences that define it."""
        return tuple(occurrence for occurrence in self.occurrences if occurrence.defines)


@dataclass(slots=True, eq=False)
class TextBlock:
    """A region of a text: lines from 1, its opening, the block around it; `end` is 0 while it is open."""

    head: str
    line: int
    outer: TextBlock | None = None
    name: str = ""
    end: int = 0

    def within(self) -> Iterator[TextBlock]:
        """Yield the block and all blocks around it."""
        block: TextBlock | None = self
        while block is not None:
            yield block
            block = block.outer


class TokenType(StrEnum):
    """Colours of words, by the names that editors use."""

    FUNCTION = "function"
    VARIABLE = "variable"
    PARAMETER = "parameter"
    TYPE = "type"
    MODE = "enumMember"
    STRING = "string"
    NUMBER = "number"
    KEYWORD = "keyword"
    LABEL = "label"


Coloured = tuple[int, int, TokenType]
"""Column from 1, the end exclusive, and the colour."""


@dataclass(slots=True)
class SymbolLine:
    """The part of a line's symbols that does not depend on its neighbours."""

    items: tuple[Item, ...]
    colours: tuple[Coloured, ...]
    names: frozenset[str] = frozenset()
    encoded: dict[object, list[int]] = field(default_factory=dict)
    """The colours in the client's encoding, cached by `castsim.tools.editor.navigation`."""

    def __post_init__(self) -> None:
        self.names = frozenset(item.name for item in self.items)


class SymbolIndex:
    """The names of one version of a text.

    A subclass for each language fills `lines`, `blocks` and, for items outside the block of their line,
    `placed`; it takes the index of the previous version to reuse unchanged lines.
    """

    language: ClassVar[str]

    def __init__(self, lines: Sequence[str]) -> None:
        self.texts = lines
        self.lines: list[SymbolLine] = []
        self.blocks: list[TextBlock] = []
        self.block_of: list[TextBlock | None] = []
        self.placed: dict[int, list[tuple[Item, TextBlock | None]]] = {}
        """Items with the blocks that they belong to, by line number from 0."""
        self._found: dict[str, list[tuple[Occurrence, TextBlock | None]]] = {}

    def items(self, number: int) -> Iterator[tuple[Item, TextBlock | None]]:
        """Yield the items of a line, counted from 0, with the blocks that they belong to."""
        if number in self.placed:
            yield from self.placed[number]
        else:
            block = self.block_of[number]
            yield from ((item, block) for item in self.lines[number].items)

    def item_at(self, line: int, column: int) -> tuple[Item, TextBlock | None] | None:
        """Return the name at a position, from 1; the end of a name still belongs to it."""
        if not 1 <= line <= len(self.lines):
            return None
        candidates = [
            candidate for candidate in self.items(line - 1) if candidate[0].column <= column <= candidate[0].end
        ]
        return next(
            (candidate for candidate in candidates if column < candidate[0].end), candidates[0] if candidates else None
        )

    def symbol_at(self, line: int, column: int) -> Symbol | None:
        """Return the symbol of the name at a position; None if there is no name."""
        located = self.item_at(line, column)
        return None if located is None else self.symbol(located[0].name, located[1])

    def symbol(self, name: str, block: TextBlock | None) -> Symbol:
        """Return the symbol of a name in a block."""
        occurrences = self.occurrences(name)
        homes = {where for occurrence, where in occurrences if occurrence.defines}
        own = _home(block, homes)
        mine = tuple(occurrence for occurrence, where in occurrences if _home(where, homes) is own)
        kinds = [occurrence.kind for occurrence in mine if occurrence.defines] or [
            occurrence.kind for occurrence in mine
        ]
        return Symbol(name, kinds[0], tuple(sorted(mine, key=lambda occurrence: (occurrence.line, occurrence.column))))

    def occurrences(self, name: str) -> list[tuple[Occurrence, TextBlock | None]]:
        """Return all occurrences of a name, with the blocks that they belong to."""
        if name not in self._found:
            self._found[name] = [
                (item.at(number + 1), block)
                for number, line in enumerate(self.lines)
                if name in line.names
                for item, block in self.items(number)
                if item.name == name
            ]
        return self._found[name]

    def definitions_for(self, line: int, column: int) -> tuple[Occurrence, ...]:
        """Return the definitions of the name at a position."""
        symbol = self.symbol_at(line, column)
        return () if symbol is None else symbol.definitions

    def key(self, written: str) -> str:
        """Return the key of a name in the index."""
        return written

    def taken(self, symbol: Symbol, new: str) -> Occurrence | None:
        """Return a definition that a new name of a symbol would collide with."""
        homes = {where for occurrence, where in self.occurrences(symbol.name) if occurrence in symbol.definitions}
        around = {id(block) for home in homes if home is not None for block in home.within()}
        for occurrence, where in self.occurrences(new):
            inside = where is None or id(where) in around or any(block in homes for block in where.within())
            if occurrence.defines and inside:
                return occurrence
        return None

    def all_definitions(self) -> Mapping[TextBlock | None, list[tuple[Item, int]]]:
        """Return all definitions, with their lines from 1, by block."""
        definitions: dict[TextBlock | None, list[tuple[Item, int]]] = defaultdict(list)
        for number in range(len(self.lines)):
            for item, block in self.items(number):
                if item.defines and not item.grouped:
                    definitions[block].append((item, number + 1))
        return definitions

    def folds(self) -> Iterator[tuple[int, int, bool]]:
        """Yield the ranges that can be folded: first and last line, from 1, and whether the range is a comment."""
        for block in self.blocks:
            last = block.end - 1 if block.end else len(self.texts)
            if last > block.line:
                yield block.line, last, False
        first = None
        for number, line in enumerate((*self.texts, ""), 1):
            if line.lstrip().startswith("//"):
                first = first or number
                continue
            if first is not None and number - first > 1:
                yield first, number - 1, True
            first = None

    def colour(self, number: int, colour: Coloured) -> TokenType:
        """Return the colour of a word in a line, from 0, if its neighbours decide it."""
        del number
        return colour[2]

    def colour_key(self, number: int) -> object:
        """Return the key that decides the colours of a line, from 0, besides its text."""
        del number
        return None


def _home(block: TextBlock | None, homes: set[TextBlock | None]) -> TextBlock | None:
    """Return the nearest block, from this one outwards, that defines a name; else the outermost one."""
    last = None
    for home in block.within() if block is not None else ():
        if home in homes:
            return home
        last = home
    return None if None in homes else last


# The symbol index of TPC assembly: labels, registers, declared tensors. A register is one name through the whole
# program; what defines it at a place are the writes that reach there.

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
    """Symbol index of a TPC assembly text."""

    language = "tpc"

    def __init__(self, lines: Sequence[str], earlier: AssemblyIndex | None = None) -> None:
        super().__init__(lines)
        known_lines = {} if earlier is None else earlier.known
        self.known: dict[str, SymbolLine] = {}
        self.block_of = [None] * len(lines)
        plain = _without_blocks(lines)
        for text in plain:
            line = self.known.get(text)
            if line is None:
                self.known[text] = line = known_lines.get(text) or _assembly_line(text)
            self.lines.append(line)
        self._find_blocks(plain)

    def _find_blocks(self, lines: Sequence[str]) -> None:
        """Find loops, from the instruction to the label of their end, and bundles that span lines."""
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
        """Return the definitions of a label or tensor, or the writes of a register that may reach a position."""
        symbol = self.symbol_at(line, column)
        if symbol is None or symbol.kind is not SymbolKind.REGISTER:
            return () if symbol is None else symbol.definitions
        writes = [write for write in symbol.definitions if write.line != line or write.column == column]
        own = [write for write in writes if write.line == line]
        return tuple(own or self._reaching(line, writes))

    def _reaching(self, line: int, writes: Sequence[Occurrence]) -> list[Occurrence]:
        before = [write for write in writes if write.line < line]
        reaching = before[-1:]
        for loop in self.blocks:
            if loop.head == _LOOP and loop.line < line < loop.end:
                behind = [write for write in writes if line < write.line < loop.end]
                reaching += [write for write in behind[-1:] if write not in reaching]
        return reaching or list(writes)[:1]

    def key(self, written: str) -> str:
        """Return the key of a name in the index."""
        return (_registers(written) or (written,))[0]

    def taken(self, symbol: Symbol, new: str) -> Occurrence | None:
        """Return an occurrence that a new name would collide with; a register collides wherever it occurs."""
        occurrences = [occurrence for occurrence, _ in self.occurrences(new)]
        return next(
            (occurrence for occurrence in occurrences if occurrence.defines or symbol.kind is SymbolKind.REGISTER), None
        )


def _without_blocks(lines: Sequence[str]) -> Sequence[str]:
    """Return lines with `/* */` comments blanked out, which may span several lines."""
    text = "\n".join(lines)
    if "/*" not in text:
        return lines
    try:
        blanked = AssemblySource(text, "").lines
    except ReadError:  # one is not closed
        blanked = AssemblySource(text.replace("/*", "  "), "").lines
    return [old if "castsim" in old else new for old, new in zip(lines, blanked, strict=True)]


def _assembly_line(written: str) -> SymbolLine:
    source = AssemblySource(written.replace("/*", "  "), "")
    if source.comments:
        declared = tuple(_declared(written))
        return SymbolLine(declared, tuple((item.column, item.end, TokenType.VARIABLE) for item in declared))
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
            colours += _assembly_coloured(words)
        start = end if match is None else match.end()
    return SymbolLine(tuple(items), tuple(colours))


def _instruction(words: Sequence[Word]) -> Iterator[Item]:
    """Yield the registers, labels and tensors that an instruction names."""
    name, _, suffix = words[0].text.lower().partition(".")
    mnemonic = ALIASES.get(name, name)
    forms = forms_of(mnemonic) or forms_of(f"{mnemonic}.{suffix.partition('.')[0]}")
    roles = [[operand.role for operand in form.operands if operand.role not in SELECTORS] for form in forms]
    position = 0
    for index, word in enumerate(words[1:], 1):
        if word.text == ",":
            position += 1
            continue
        if "=" in (words[index - 1].text, words[index + 1].text if index + 1 < len(words) else ""):
            continue
        here = {own[position] for own in roles if position < len(own)}
        column, end = word.column + 1, word.column + len(word.text) + 1
        if names := _registers(word.text):
            end = min(end, column + max(map(len, names))) if names[0][0] == "%" else end  # `%d.x.1` is a part of `%d.x`
            writes = here == {"dest"} or ("dest" in here and position == 0)
            for register_name in names:
                yield Item(register_name, column, end, defines=writes, kind=SymbolKind.REGISTER, grouped=len(names) > 1)
        elif "tensor" in here and _NUMBER.fullmatch(word.text):
            yield Item(_tensor(word.text), column, end, kind=SymbolKind.TENSOR)
        elif mnemonic in _JUMPS_AND_LOOPS and _IDENTIFIER.fullmatch(word.text) and word.text.upper() not in SPECIALS:
            yield Item(word.text, column, end, kind=SymbolKind.LABEL)


def _assembly_coloured(words: Sequence[Word]) -> Iterator[Coloured]:
    for index, word in enumerate(words):
        column, end = word.column + 1, word.column + len(word.text) + 1
        if index == 0:
            yield column, end, TokenType.FUNCTION
        elif _registers(word.text) and words[index - 1].text != "=":
            yield column, end, TokenType.VARIABLE
        elif word.text[0].isdigit():
            yield column, end, TokenType.NUMBER
        elif _IDENTIFIER.fullmatch(word.text):
            yield column, end, TokenType.MODE


def _declared(text: str) -> Iterator[Item]:
    """Yield the declarations of a `// castsim:` comment."""
    match = _DECLARED.search(text, text.index("castsim"))
    if match is None:
        return
    name = "register" if match["register"] else "tensor"
    column, end = match.start(name) + 1, match.end(name) + 1
    if match["tensor"]:
        yield Item(_tensor(match["number"]), column, end, defines=True, kind=SymbolKind.TENSOR)
    else:
        for register_name in _registers(match["register"]):
            yield Item(register_name, column, end, defines=True, kind=SymbolKind.REGISTER)


def _tensor(number: str) -> str:
    return f"tensor {int(number, 16 if number[:2].lower() == '0x' else 10)}"


def _registers(text: str) -> tuple[str, ...]:
    """Return the registers that a word names: one, those of a group, or none."""
    match = _REGISTER.fullmatch(text)
    if match is None:
        named = VIRTUAL_REGISTER.fullmatch(text)
        return () if named is None else (f"%{named[1].lower()}.{named[2]}",)
    file, index = File(match[1].upper()), int(match[2])
    whole, count = GROUPED.get(file, (file, 1))
    return tuple(f"{whole}{number}" for number in range(index, index + count))


# The symbol index of `.pto` texts, of tiles and of vector instructions. A name belongs to the block that defines it and
# to those inside of that (docs/reference/pto.md section 4): results to the block of their statement, variables of loops
# and arguments to the block that follows them.

_FUNCTION_WORDS = ("func.func", "private", "public", "nested")
_TERMINATORS = ("return", "scf.yield", "scf.condition")
_TYPES = frozenset((*ELEMENTS, *EXTENSIONS, *SCALARS))
_HEADS = frozenset(("func.func", "module", "scf.for", "scf.while", "iter_args"))
_COLOURS = {
    TokenKind.VALUE: TokenType.VARIABLE,
    TokenKind.TYPE: TokenType.TYPE,
    TokenKind.ATTRIBUTE: TokenType.MODE,
    TokenKind.STRING: TokenType.STRING,
    TokenKind.SYMBOL: TokenType.FUNCTION,
    TokenKind.NUMBER: TokenType.NUMBER,
    TokenKind.BLOCK: TokenType.LABEL,
}


@dataclass(slots=True)
class TileLine(SymbolLine):
    """A line with its tokens; a `plain` line opens, closes and continues nothing."""

    tokens: Tokens = field(default_factory=lambda: Tokens([], [], [], []))
    plain: bool = True


@dataclass(slots=True)
class _State:
    """State of the reader: the current block, open constructs, definitions that wait for the next block."""

    block: TextBlock | None = None
    braces: list[TextBlock | None] = field(default_factory=list)
    """Open braces, innermost last; None for attributes."""
    opener: str = ""
    name: str = ""
    head: str = ""
    depth: int = 0
    pending: list[tuple[int, Item]] = field(default_factory=list)

    @property
    def between(self) -> bool:
        """Whether no statement is open."""
        return not self.head and not self.depth and not self.pending and (not self.braces or bool(self.braces[-1]))


class TileIndex(SymbolIndex):
    """Symbol index of a `.pto` text."""

    language = "pto"

    def __init__(self, lines: Sequence[str], earlier: TileIndex | None = None) -> None:
        super().__init__(lines)
        known_lines = {} if earlier is None else earlier.known
        self.known: dict[str, TileLine] = {}
        self._parameters: dict[int, frozenset[str]] = {}
        state = _State()
        for number, text in enumerate(lines):
            line = self.known.get(text)
            if line is None:
                self.known[text] = line = known_lines.get(text) or _tile_line(text)
            self.lines.append(line)
            self.block_of.append(state.block)
            if not line.plain or not state.between:
                self._follow(number, line.tokens, state)
                self.block_of[-1] = state.block
        for number, item in state.pending:  # heads without a body
            self.placed[number].append((item, state.block))

    def line(self, number: int) -> TileLine:
        """Return a line, from 0, with its tokens."""
        return self.known[self.texts[number]]

    def _follow(self, number: int, tokens: Tokens, state: _State) -> None:
        """Read a line with blocks, heads or statements that span lines."""
        placed = self.placed.setdefault(number, [])
        results = _results(tokens)
        for index, (kind, text) in enumerate(zip(tokens.kinds, tokens.texts, strict=True)):
            behind = tokens.texts[index - 1] if index else ""
            if not index and not state.head and (index in results or (kind is TokenKind.WORD and "." in text)):
                state.depth = 0  # a statement begins, whatever the one before has left open
            if kind is TokenKind.VALUE:
                item, waits = _value(tokens, index, results, state)
                if waits:
                    state.pending.append((number, item))
                else:
                    placed.append((item, state.block))
            elif kind is TokenKind.SYMBOL and behind != "module":
                if behind in _FUNCTION_WORDS:
                    state.name = text
                placed.append((_function(tokens, index), None))
            elif kind is TokenKind.BLOCK:
                state.head, state.depth = "block", 0
            elif kind is TokenKind.WORD:
                self._word(text, number, state)
            elif kind is TokenKind.PUNCTUATION:
                self._sign(number, tokens, index, state)

    def _word(self, text: str, number: int, state: _State) -> None:
        if state.braces and state.braces[-1] is None:
            return
        if text == "func.func":  # whatever is still open, functions do not nest
            while state.block is not None and state.block.head != "module":
                state.block.end, state.block = number, state.block.outer
            state.braces = [brace for brace in state.braces if brace is not None and brace.head == "module"]
            state.head, state.depth, state.pending = "func", 0, []
        if "." in text or text in ("module", "else", "do"):
            state.opener, state.name = text, ""

    def _sign(self, number: int, tokens: Tokens, index: int, state: _State) -> None:
        text = tokens.texts[index]
        if text == "(":
            state.depth += 1
        elif text == ")":
            state.depth = max(0, state.depth - 1)
            state.head = state.head if state.depth else ""
        elif text == "{":
            if not _opens_block(tokens, index):
                state.braces.append(None)
                return
            block = TextBlock(state.opener, number + 1, state.block, state.name)
            state.braces.append(block)
            self.blocks.append(block)
            for line_index, item in state.pending:
                self.placed[line_index].append((item, block))
            state.block, state.pending, state.head, state.depth = block, [], "", 0
        elif text == ":" and not state.depth and state.head == "block":
            state.head = ""
        elif text == "}" and state.braces:
            closed = state.braces.pop()
            if closed is not None:
                closed.end, state.block = number + 1, closed.outer

    def colour_key(self, number: int) -> object:
        """Return the arguments among the names of a line."""
        block = self.block_of[number]
        return self._arguments(block) & self.lines[number].names if block is not None else frozenset()

    def colour(self, number: int, colour: Coloured) -> TokenType:
        """Return the colour of a word: arguments differ from other values."""
        column, end, kind = colour
        if kind is TokenType.VARIABLE and self.texts[number][column - 1 : end - 1] in self._here(number):
            return TokenType.PARAMETER
        return kind

    def _here(self, number: int) -> frozenset[str]:
        block = self.block_of[number]
        return frozenset() if block is None else self._arguments(block)

    def _arguments(self, block: TextBlock) -> frozenset[str]:
        function = next((enclosing for enclosing in block.within() if enclosing.head == "func.func"), None)
        if function is None:
            return frozenset()
        if id(function) not in self._parameters:
            heads = range(max(0, function.line - 60), function.line)
            self._parameters[id(function)] = frozenset(
                item.name
                for number in heads
                for item, where in self.placed.get(number, ())
                if where is function and item.kind is SymbolKind.ARGUMENT
            )
        return self._parameters[id(function)]


def _tile_line(text: str) -> TileLine:
    tokens = scan(PtoSource("", text))
    results = _results(tokens)
    items: list[Item] = []
    colours: list[Coloured] = []
    plain, depth, braces = True, 0, 0
    for index, (kind, word) in enumerate(zip(tokens.kinds, tokens.texts, strict=True)):
        if kind is TokenKind.VALUE:
            item, waits = _value(tokens, index, results, None)
            items.append(item)
            plain = plain and not waits
        elif kind is TokenKind.SYMBOL:
            items.append(_function(tokens, index))
            plain = False
        elif word == "{":
            braces += 1
            plain = plain and not _opens_block(tokens, index)
        elif word in ("}", "(", ")"):
            braces -= word == "}"
            depth += (word == "(") - (word == ")")
            plain = plain and braces >= 0 and depth >= 0
        elif word in _HEADS or kind is TokenKind.BLOCK:
            plain = False
        colours += _tile_coloured(tokens, index)
    return TileLine(tuple(items), tuple(colours), tokens=tokens, plain=plain and not depth and not braces)


def _tile_coloured(tokens: Tokens, index: int) -> Iterator[Coloured]:
    kind, word, start = tokens.kinds[index], tokens.texts[index], tokens.starts[index]
    colour = _COLOURS.get(kind)
    if kind is TokenKind.WORD:
        if "." in word:
            colour = TokenType.FUNCTION
        else:
            colour = TokenType.TYPE if word in _TYPES else TokenType.KEYWORD
    if colour is not None:
        yield start + 1, start + 1 + len(word), colour


def _results(tokens: Tokens) -> frozenset[int]:
    """Return the tokens that name results: `%a, %b:2 = operation`."""
    positions = set()
    for index, text in enumerate(tokens.texts):
        if text != "=" or index == 0 or tokens.kinds[index + 1] in (TokenKind.VALUE, TokenKind.PUNCTUATION):
            continue
        position = index - 1
        while position >= 0 and tokens.kinds[position] is TokenKind.VALUE:
            positions.add(position)
            if position < 2 or tokens.texts[position - 1] != ",":
                break
            position -= 2
    return frozenset(positions)


def _value(tokens: Tokens, index: int, results: frozenset[int], state: _State | None) -> tuple[Item, bool]:
    """Return a value, and whether its definition belongs to the following block."""
    text, start = tokens.texts[index], tokens.starts[index]
    name = text.partition("#")[0].partition(":")[0]
    column, end = start + 1, start + 1 + len(name)
    if index in results:
        return Item(name, column, end, defines=True), False
    after = tokens.texts[index + 1]
    before = tokens.texts[index - 1] if index else ""
    if after == "=":
        kind = SymbolKind.LOOP_VARIABLE if before == "scf.for" else SymbolKind.CARRIED
        return Item(name, column, end, defines=True, kind=kind), True
    head = "" if state is None else state.head
    if after == ":" and head:
        if head == "func":
            return Item(name, column, end, defines=True, kind=SymbolKind.ARGUMENT), True
        return Item(name, column, end, defines=True, kind=SymbolKind.CARRIED), False
    return Item(name, column, end), False


def _function(tokens: Tokens, index: int) -> Item:
    text, start = tokens.texts[index], tokens.starts[index]
    defines = index > 0 and tokens.texts[index - 1] in _FUNCTION_WORDS
    return Item(text, start + 1, start + 1 + len(text), defines=defines, kind=SymbolKind.FUNCTION)


def _opens_block(tokens: Tokens, index: int) -> bool:
    """Return whether a brace begins a block rather than attributes."""
    if index and tokens.texts[index - 1] == "attributes":
        return False
    kind, first, second = tokens.kinds[index + 1], tokens.texts[index + 1], ""
    if kind is not TokenKind.END:
        second = tokens.texts[index + 2]
    if kind is TokenKind.WORD and first not in _TERMINATORS:
        return second not in ("=", ",", "}")
    return not (kind is TokenKind.STRING and second in ("=", ",", "}")) and first != "}"
