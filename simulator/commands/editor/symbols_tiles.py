"""The symbol index of `.pto` texts, of tiles and of vector instructions.

A name belongs to the block that defines it and to those inside of that (docs/reference/pto.md section 4): results to
the block of their statement, variables of loops and arguments to the block that follows them.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field

from castsim.commands.editor.symbols import Coloured, Item, SymbolIndex, SymbolKind, SymbolLine, TextBlock, TokenType
from castsim.isa.pto.lexer import PtoSource, TokenKind, Tokens, scan
from castsim.isa.pto.types import ELEMENTS, EXTENSIONS, SCALARS

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
    """A line with its tokens; one that is `plain` opens, closes and continues nothing."""

    tokens: Tokens = field(default_factory=lambda: Tokens([], [], [], []))
    plain: bool = True


@dataclass(slots=True)
class _State:
    """How far the lines are read: the block reached, what is open, definitions that wait for the next block."""

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
    """The names of a `.pto` text."""

    language = "pto"

    def __init__(self, lines: Sequence[str], earlier: TileIndex | None = None) -> None:
        super().__init__(lines)
        known = {} if earlier is None else earlier.known
        self.known: dict[str, TileLine] = {}
        self._parameters: dict[int, frozenset[str]] = {}
        state = _State()
        for number, text in enumerate(lines):
            line = self.known.get(text)
            if line is None:
                self.known[text] = line = known.get(text) or _read(text)
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
        """Read a line with blocks, heads or statements that go over lines."""
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
            state.braces = [one for one in state.braces if one is not None and one.head == "module"]
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
            for place, item in state.pending:
                self.placed[place].append((item, block))
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
        function = next((one for one in block.within() if one.head == "func.func"), None)
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


def _read(text: str) -> TileLine:
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
        colours += _coloured(tokens, index)
    return TileLine(tuple(items), tuple(colours), tokens=tokens, plain=plain and not depth and not braces)


def _coloured(tokens: Tokens, index: int) -> Iterator[Coloured]:
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
    found = set()
    for index, text in enumerate(tokens.texts):
        if text != "=" or index == 0 or tokens.kinds[index + 1] in (TokenKind.VALUE, TokenKind.PUNCTUATION):
            continue
        place = index - 1
        while place >= 0 and tokens.kinds[place] is TokenKind.VALUE:
            found.add(place)
            if place < 2 or tokens.texts[place - 1] != ",":
                break
            place -= 2
    return frozenset(found)


def _value(tokens: Tokens, index: int, results: frozenset[int], state: _State | None) -> tuple[Item, bool]:
    """Return a value, and whether what it defines belongs to the block that follows."""
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
    """Whether a brace begins a block, not attributes."""
    if index and tokens.texts[index - 1] == "attributes":
        return False
    kind, first, second = tokens.kinds[index + 1], tokens.texts[index + 1], ""
    if kind is not TokenKind.END:
        second = tokens.texts[index + 2]
    if kind is TokenKind.WORD and first not in _TERMINATORS:
        return second not in ("=", ",", "}")
    return not (kind is TokenKind.STRING and second in ("=", ",", "}")) and first != "}"
