"""Answers from the symbol index of a text: positions of names, renaming, outline, folding, colours."""

from __future__ import annotations

import gc
import re
from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from itertools import pairwise
from typing import NamedTuple

from lsprotocol import types as lsp

from castsim.isa.dataclass import dataclass, field
from castsim.isa.errors import ReadError
from castsim.tools.editor.program_slice import EditedText, TextPlaces
from castsim.tools.editor.symbols import (
    AssemblyIndex,
    Coloured,
    Item,
    Occurrence,
    Symbol,
    SymbolIndex,
    SymbolKind,
    SymbolLine,
    TextBlock,
    TileIndex,
    TokenType,
)
from castsim.tools.tpc_compiler.c_language import call_named, constants, type_named

# The symbol index of TPC kernels in C: functions, parameters, variables, macros.
#
# It reads tokens, not the grammar, so that it also answers while a line is being typed, and knows a declaration by
# its form: words in a row at the start of a statement, the last one followed by `=`, `,`, `;`, `[` or `(`.

_TOKEN = re.compile(
    r'//.*|"(?:[^"\\]|\\.)*"?|\'(?:[^\'\\]|\\.)*\'?|(?P<number>\.?\d(?:[eEpP][+-]|[\w.])*)|(?P<word>[A-Za-z_]\w*)|->|\S'
)
_COMMENT = re.compile(r"//.*|/\*.*?(?:\*/|\Z)|\"(?:[^\"\\\n]|\\.)*\"?", re.DOTALL)
_FLOW = frozenset((
    "break", "case", "continue", "default", "do", "else", "for", "goto", "if", "return", "switch", "while", "sizeof",
    "asm",
))  # fmt: skip
_QUALIFIERS = frozenset((
    "auto", "const", "enum", "extern", "inline", "register", "restrict", "signed", "static", "struct", "typedef",
    "union", "unsigned", "void", "volatile", "char", "short", "int", "long", "float", "double", "_Bool", "__local__",
    "__local", "__global__", "__global", "__inline__", "__forceinline",
))  # fmt: skip
WORDS = _FLOW | _QUALIFIERS
"""Words that never name anything in a program."""
_ENDS = frozenset("=,;[():") | {""}
_FUNCTION = "func.func"
_DIRECTIVES = frozenset(("define", "undef", "include", "pragma", "if", "ifdef", "ifndef", "elif", "else", "endif"))


class _Token(NamedTuple):
    """A token with its column, from 1; `word` is an identifier or a word of the language."""

    text: str
    column: int
    word: bool
    number: bool

    @property
    def end(self) -> int:
        return self.column + len(self.text)


@dataclass(slots=True)
class _Open:
    """An open block that waits for the end of its head or for its body, in braces or as one statement.

    `depth` is the depth of parentheses around it; without a block it is an initialiser or the members of a type.
    """

    block: TextBlock | None
    stage: str
    depth: int


@dataclass(slots=True)
class _CState:
    """State after the lines read; `words` counts the words of a declaration's head, -1 where none can begin."""

    block: TextBlock | None = None
    open: list[_Open] = field(default_factory=list)
    depth: int = 0
    words: int = 0
    declaring: int = -1
    """Depth of a list of declared names, -1 outside a list."""
    kind: SymbolKind = SymbolKind.VALUE
    condition: int = -1
    """Depth of the statement whose condition is open, -1 if there is none."""
    labelled: bool = False
    """Whether the next colon ends a label of a switch."""
    enumerated: bool = False
    directive: bool = False

    @property
    def between(self) -> bool:
        """Whether a statement or a declaration may begin here, in a body in braces or at file level."""
        return (
            not (self.words or self.depth or self.directive)
            and self.declaring < 0
            and self.condition < 0
            and (not self.open or self.open[-1].stage == "braces")
        )


@dataclass(slots=True)
class _CLine(SymbolLine):
    """A line with its tokens; `own` are its items if all of them belong to the block around it, whatever that is."""

    tokens: tuple[_Token, ...] = ()
    own: bool = False


class CIndex(SymbolIndex):
    """Symbol index of a kernel in C."""

    language = "c"

    def __init__(self, lines: Sequence[str], earlier: CIndex | None = None) -> None:
        super().__init__(lines)
        known_lines = {} if earlier is None else earlier.known
        self.known: dict[str, _CLine] = {}
        state = _CState()
        for number, text in enumerate(_without_comments(lines)):
            line = self.known.get(text)
            if line is None:
                self.known[text] = line = known_lines.get(text) or _read(text)
            self.lines.append(line)
            self.block_of.append(state.block)
            if not (line.own and state.between and (state.open or not line.names)):
                self.placed[number] = _CReader(self, number, line.tokens, state).placed


def _without_comments(lines: Sequence[str]) -> Sequence[str]:
    """Return lines with `/* */` comments blanked out, which may span several lines."""
    text = "\n".join(lines)
    if "/*" not in text:
        return lines
    return _COMMENT.sub(
        lambda match: re.sub(r"[^\n]", " ", match[0]) if match[0].startswith("/*") else match[0], text
    ).split("\n")


def _read(text: str) -> _CLine:
    tokens = tuple(
        _Token(match[0], match.start() + 1, match["word"] is not None, match["number"] is not None)
        for match in _TOKEN.finditer(text)
        if not match[0].startswith("//")
    )
    alone, state = SymbolIndex([text]), _CState()
    # A body is open around the line, so that a call is none of a function that is declared.
    state.open.append(_Open(None, "braces", 0))
    placed = _CReader(alone, 0, tokens, state).placed
    own = state.between and len(state.open) == 1 and not alone.blocks and all(block is None for _, block in placed)
    own = own and not text.lstrip().startswith("#")
    return _CLine(tuple(item for item, _ in placed), tuple(_coloured(tokens)), tokens=tokens, own=own)


def _coloured(tokens: Sequence[_Token]) -> Iterator[Coloured]:
    directive = len(tokens) > 1 and tokens[0].text == "#"
    for index, token in enumerate(tokens):
        colour = None
        if token.number:
            colour = TokenType.NUMBER
        elif token.text[0] in "\"'":
            colour = TokenType.STRING
        elif token.word:
            after = tokens[index + 1].text if index + 1 < len(tokens) else ""
            if token.text in _FLOW or (directive and index == 1):
                colour = TokenType.KEYWORD
            elif token.text in _QUALIFIERS or type_named(token.text) is not None:
                colour = TokenType.TYPE
            elif token.text in constants():
                colour = TokenType.MODE
            else:
                colour = TokenType.FUNCTION if after == "(" else TokenType.VARIABLE
        if colour is not None:
            yield token.column, token.end, colour


class _CReader:
    """Reader of a line: the names in it, and the blocks that it opens and closes."""

    def __init__(self, index: SymbolIndex, number: int, tokens: Sequence[_Token], state: _CState) -> None:
        self.index, self.number, self.tokens, self.state = index, number, tokens, state
        self.placed: list[tuple[Item, TextBlock | None]] = []
        if state.directive or (tokens and tokens[0].text == "#"):
            self._directive()
            return
        for position, token in enumerate(tokens):
            self._await(token.text)
            if token.word:
                self._word(position, token)
            else:
                self._sign(position, token.text)

    def _after(self, index: int) -> str:
        return self.tokens[index + 1].text if index + 1 < len(self.tokens) else ""

    def _add(
        self, token: _Token, block: TextBlock | None, kind: SymbolKind = SymbolKind.VALUE, *, defines: bool = False
    ) -> None:
        self.placed.append((Item(token.text, token.column, token.end, defines, kind), block))

    def _directive(self) -> None:
        """Read `#define` and the names in other directives; macro parameters are local to their line."""
        words = [token for token in self.tokens if token.word]
        skipped = 1 if not self.state.directive and words and words[0].text in _DIRECTIVES else 0
        defined = words[1] if skipped and words[0].text == "define" and len(words) > 1 else None
        block: TextBlock | None = None
        parameters: set[int] = set()
        if defined is not None:
            index = self.tokens.index(defined)
            if self._after(index) == "(" and self.tokens[index + 1].column == defined.end:
                block = TextBlock("#define", self.number + 1, None, end=self.number + 1)
                closed = next((n for n in range(index, len(self.tokens)) if self.tokens[n].text == ")"), index)
                parameters = {token.column for token in self.tokens[index + 2 : closed] if token.word}
        if skipped == 0 or words[0].text not in ("include", "pragma"):
            for token in words[skipped:]:
                if token is defined:
                    self._add(token, None, defines=True)
                elif token.text not in WORDS:
                    kind = SymbolKind.LOOP_VARIABLE if token.column in parameters else SymbolKind.VALUE
                    self._add(token, block, kind, defines=token.column in parameters)
        self.state.directive = bool(self.tokens) and self.tokens[-1].text == "\\"

    def _await(self, text: str) -> None:
        """Give a head that has ended its body."""
        state = self.state
        top = state.open[-1] if state.open else None
        if top is None or top.stage != "waits" or text == "{":
            return
        if top.block is not None and top.block.head == _FUNCTION:
            if text in ";,":  # a function without a body
                state.open.pop()
                self.index.blocks.remove(top.block)
                state.block = top.block.outer
            return
        top.stage = "statement"
        state.words = 0

    def _word(self, index: int, token: _Token) -> None:
        state, after = self.state, self._after(index)
        before = self.tokens[index - 1].text if index else ""
        top = state.open[-1] if state.open else None
        if token.text in _FLOW:
            self._flow(token.text)
        elif token.text in _QUALIFIERS:
            state.enumerated = state.enumerated or token.text == "enum"
            if state.words >= 0:
                state.words += 1
        elif top is not None and top.stage in ("members", "enumerators"):
            if top.stage == "enumerators" and before in "{,":
                self._add(token, state.block, defines=True)
        elif before in (".", "->") or (before in ("struct", "union", "enum") and index):
            state.words += state.words >= 0 and before not in (".", "->")
        elif state.declaring == state.depth and before in (",", "*"):
            self._add(token, state.block, state.kind, defines=True)
        elif state.words > 0 and after in _ENDS:
            self._declared(token, after)
        else:
            if type_named(token.text) is None or not self._is_type(index, before, after):
                self._add(token, state.block)
            state.words += state.words >= 0

    def _is_type(self, index: int, before: str, after: str) -> bool:
        """Return whether a type's name denotes the type: in a declaration or cast; `half` may also name a variable."""
        if self.state.words >= 0 and after not in _ENDS:
            return after == "*" or self.tokens[index + 1].word
        return before == "(" and (after == ")" or (after == "*" and self._after(index + 1) in (")", "*")))

    def _flow(self, word: str) -> None:
        state = self.state
        if word == "for":
            state.block = TextBlock("for", self.number + 1, state.block)
            self.index.blocks.append(state.block)
            state.open.append(_Open(state.block, "head", state.depth))
        elif word in ("if", "while", "switch"):
            state.condition = state.depth
        state.labelled = word in ("case", "default")
        state.words = 0 if word in ("else", "do") else -1

    def _declared(self, token: _Token, after: str) -> None:
        """Record the name that a declaration declares."""
        state = self.state
        top = state.open[-1] if state.open else None
        if after == "(" and top is None:
            self._add(token, None, SymbolKind.FUNCTION, defines=True)
            state.block = TextBlock(_FUNCTION, self.number + 1, None, token.text)
            self.index.blocks.append(state.block)
            state.open.append(_Open(state.block, "head", state.depth))
            state.words = 0
            return
        kind = SymbolKind.VALUE
        if top is not None and top.stage == "head" and top.block is not None:
            kind = SymbolKind.ARGUMENT if top.block.head == _FUNCTION else SymbolKind.LOOP_VARIABLE
        self._add(token, state.block, kind, defines=True)
        state.words, state.kind = -1, kind
        if kind is not SymbolKind.ARGUMENT:
            state.declaring = state.depth

    def _sign(self, index: int, text: str) -> None:
        state = self.state
        top = state.open[-1] if state.open else None
        if text in ("(", "["):
            state.depth += 1
            starts = text == "(" and top is not None and top.stage == "head" and state.depth == top.depth + 1
            state.words = 0 if starts else -1
        elif text in (")", "]"):
            state.depth = max(0, state.depth - 1)
            if text == ")" and top is not None and top.stage == "head" and state.depth == top.depth:
                top.stage, state.words, state.declaring = "waits", -1, -1
            elif text == ")" and state.condition == state.depth:
                state.condition, state.words = -1, 0
        elif text == ",":
            parameters = top is not None and top.stage == "head" and top.block is not None
            if parameters and top.block.head == _FUNCTION and state.depth == top.depth + 1:  # type: ignore[union-attr]
                state.words = 0
        elif text == "{":
            self._brace(top)
        elif text == "}":
            self._closed(index)
        elif text == ";":
            self._ended(index, top)
        elif text == ":" and (state.labelled or state.words == 1):
            state.words, state.labelled = 0, False
        elif text != "*":
            state.words = -1

    def _brace(self, top: _Open | None) -> None:
        state = self.state
        if top is not None and top.stage == "waits":
            top.stage, state.words = "braces", 0
        elif state.words == 0 and not state.depth and (top is None or top.stage != "members"):
            state.block = TextBlock("{", self.number + 1, state.block)
            self.index.blocks.append(state.block)
            state.open.append(_Open(state.block, "braces", state.depth))
        else:  # of an initialiser, or, behind words, of a type's members
            stage = "members" if state.words > 0 else "initialiser"
            state.open.append(_Open(None, "enumerators" if state.enumerated else stage, state.depth))
            state.enumerated = False
            state.depth += 1

    def _closed(self, index: int) -> None:
        state = self.state
        while state.open and state.open[-1].stage in ("statement", "waits", "head"):
            self._leave()
        if not state.open:
            return
        top = state.open[-1]
        if top.stage != "braces":
            state.open.pop()
            state.depth = top.depth
            state.words = 1 if top.stage in ("members", "enumerators") else -1
            return
        state.depth, state.words, state.declaring, state.condition = top.depth, 0, -1, -1
        self._leave()
        self._leave_statements(index)

    def _ended(self, index: int, top: _Open | None) -> None:
        state = self.state
        if top is not None and top.stage in ("members", "enumerators"):
            return
        state.declaring = -1 if state.declaring == state.depth else state.declaring
        if top is not None and top.stage == "head" and state.depth == top.depth + 1:
            state.words = -1
            return
        state.words, state.depth, state.condition = 0, 0 if top is None else top.depth, -1
        state.enumerated = False
        self._leave_statements(index)

    def _leave_statements(self, index: int) -> None:
        """Leave loops whose body was the statement that just ended."""
        if self._after(index) != "else":
            while self.state.open and self.state.open[-1].stage == "statement":
                self._leave()

    def _leave(self) -> None:
        block = self.state.open.pop().block
        if block is not None:
            block.end, self.state.block = self.number + 1, block.outer


def means_something(name: str) -> bool:
    """Return whether a name is a word, type, constant or function of the language."""
    return name in WORDS or name in constants() or type_named(name) is not None or call_named(name) is not None


class Indexes:
    """The symbol indexes of open texts, each derived from that of the previous version."""

    def __init__(self) -> None:
        self._held: dict[str, tuple[EditedText, SymbolIndex]] = {}

    def of(self, uri: str, text: EditedText) -> SymbolIndex:
        """Return the index of a text."""
        cached = self._held.get(uri)
        if cached is not None and cached[0] is text:
            return cached[1]
        earlier = None if cached is None else cached[1]
        if earlier is None:
            with _kept_for_long():
                symbol_index = _index(text, None)
        else:
            symbol_index = _index(text, earlier)
        self._held[uri] = text, symbol_index
        return symbol_index

    def forget(self, uri: str) -> None:
        """Remove a text that is closed."""
        self._held.pop(uri, None)


def _index(text: EditedText, earlier: SymbolIndex | None) -> SymbolIndex:
    if text.language == "pto":
        return TileIndex(text.lines, earlier if isinstance(earlier, TileIndex) else None)
    if text.language == "tpc":
        return AssemblyIndex(text.lines, earlier if isinstance(earlier, AssemblyIndex) else None)
    return CIndex(text.lines, earlier if isinstance(earlier, CIndex) else None)


@contextmanager
def _kept_for_long() -> Iterator[None]:
    """Keep the garbage collector from scanning objects made within: the scan takes longer than an answer may.

    An index has no cycles, so its memory is freed with its last reference.
    """
    gc.collect()
    gc.disable()
    try:
        yield
        gc.freeze()
    finally:
        gc.enable()


def range_of(occurrence: Occurrence, places: TextPlaces) -> lsp.Range:
    """Return the range of a name."""
    return places.range(occurrence.line, occurrence.column, occurrence.end)


def highlights(symbol: Symbol, places: TextPlaces) -> list[lsp.DocumentHighlight]:
    """Return the occurrences of a symbol, marked as writes or reads."""
    kinds = lsp.DocumentHighlightKind
    return [
        lsp.DocumentHighlight(range_of(occurrence, places), kinds.Write if occurrence.defines else kinds.Read)
        for occurrence in symbol.occurrences
    ]


# Renaming. Only names of the program's own can be renamed, and only to names that mean nothing else there.

_NAMES = {
    SymbolKind.FUNCTION: (re.compile(r"@?(?:[\w.$]|-(?!>))+", re.ASCII), "a name of letters, digits and _ . $ -"),
    SymbolKind.LABEL: (re.compile(r"[A-Za-z_.$][\w.$]*", re.ASCII), "a name that begins with a letter, _ . or $"),
    SymbolKind.TENSOR: (re.compile(r"[A-Za-z_]\w*", re.ASCII), "a name of letters, digits and _"),
}
_VALUE_NAME = re.compile(r"%?(?:[\w.$]|-(?!>))+", re.ASCII), "a name of letters, digits and _ . $ -"


def renamable(index: SymbolIndex, line: int, column: int) -> tuple[Symbol, Item]:
    """Return the symbol at a position, and its name as written there.

    Raises:
        ReadError: the position has nothing that can be renamed.
    """
    located = index.item_at(line, column)
    if located is None:
        raise ReadError("cannot rename a keyword", legal=("the name of a value, function, label, register or tensor",))
    item, block = located
    symbol = index.symbol(item.name, block)
    if not symbol.definitions:
        raise ReadError(f"{item.name} is not defined in this file")
    grouped = next((occurrence for occurrence in symbol.occurrences if occurrence.grouped), None)
    if grouped is not None:
        raise ReadError(f"{item.name} is also part of a register group in line {grouped.line}")
    if item.kind is SymbolKind.TENSOR and not item.defines:
        raise ReadError("an instruction refers to a tensor by number, its position in the launch")
    return symbol, item


def renamed(index: SymbolIndex, symbol: Symbol, new: str) -> list[tuple[Occurrence, str]]:
    """Return the replacement of each occurrence of a symbol under a new name.

    Raises:
        ReadError: the name is malformed or taken.
    """
    if symbol.kind is SymbolKind.REGISTER:
        written = new if new.startswith("%") == symbol.name.startswith("%") else new.removeprefix("%")
        key = index.key(written)
        same_file = re.sub(r"\d+$|\.\w+$", "", key) == re.sub(r"\d+$|\.\w+$", "", symbol.name)
        if not same_file or key == written.lower() != written or not re.search(r"\d$|\.\w+$", key):
            raise ReadError(f"'{new[:40]}' is not in the same register file as {symbol.name}")
        new = key
    else:
        pattern, legal = _NAMES[SymbolKind.TENSOR] if index.language == "c" else _NAMES.get(symbol.kind, _VALUE_NAME)
        if not pattern.fullmatch(new) or (index.language == "c" and means_something(new)):
            raise ReadError(f"'{new[:40]}' cannot be a name here", legal=(legal,))
        if symbol.name[0] in "%@":
            new = symbol.name[0] + new.lstrip("%@")
    if new == symbol.name:
        return []
    other = index.taken(symbol, new)
    if other is not None:
        raise ReadError(f"{new} already exists in line {other.line}")
    return [
        (occurrence, new)
        for occurrence in symbol.occurrences
        if symbol.kind is not SymbolKind.TENSOR or occurrence.defines
    ]


# Outline: functions with their tiles, views, loops and sections; labels, loops and tensors of assembly.

_SYMBOL_KINDS = {
    SymbolKind.FUNCTION: lsp.SymbolKind.Function,
    SymbolKind.LABEL: lsp.SymbolKind.Key,
    SymbolKind.REGISTER: lsp.SymbolKind.Variable,
    SymbolKind.TENSOR: lsp.SymbolKind.Array,
    SymbolKind.VALUE: lsp.SymbolKind.Array,
    SymbolKind.ARGUMENT: lsp.SymbolKind.Variable,
}
_LISTED = re.compile(r"=\s*(pto\.(?:alloc_\w+|make_tensor_view|castptr|subview))")
"""Operations whose results an outline lists; scalars and lanes are too many."""


_TYPE_BEFORE = re.compile(r"[^,(;{#]*$")
_ARGUMENT_TYPE = re.compile(r"[^,)<{]*(?:<[^>]*>)?")


def outline(index: SymbolIndex, places: TextPlaces) -> list[lsp.DocumentSymbol]:
    """Return the outline of a text."""
    return _Outline(index, places).all()


class _Outline:
    def __init__(self, index: SymbolIndex, places: TextPlaces) -> None:
        self.index, self.places = index, places
        self.inner: dict[TextBlock | None, list[TextBlock]] = defaultdict(list)
        for block in index.blocks:
            self.inner[block.outer].append(block)

    def all(self) -> list[lsp.DocumentSymbol]:
        defined = self.index.all_definitions()
        return self._assembly(defined) if self.index.language == "tpc" else self._below(None, defined)

    def _below(
        self, outer: TextBlock | None, defined: Mapping[TextBlock | None, list[tuple[Item, int]]]
    ) -> list[lsp.DocumentSymbol]:
        """Return the symbols directly inside a block."""
        symbols = [
            self._value(item, line) for item, line in defined.get(outer, ()) if self._is_listed(item, line, outer)
        ]
        for block in self.inner[outer]:
            inner = self._below(block, defined)
            if block.head == "func.func" or "." in block.head:
                symbols.append(self._block(block, inner))
            else:
                symbols += inner
        if outer is None:  # functions without a body
            bodies = {block.name for block in self.index.blocks}
            symbols += [
                self._value(item, line)
                for item, line in defined.get(None, ())
                if item.kind is SymbolKind.FUNCTION and item.name not in bodies
            ]
        return sorted(symbols, key=lambda outlined: (outlined.range.start.line, outlined.range.start.character))

    def _is_listed(self, item: Item, line: int, outer: TextBlock | None) -> bool:
        if item.kind is SymbolKind.ARGUMENT:
            return True
        if self.index.language == "c":  # macros and tables
            return item.kind is SymbolKind.VALUE and outer is None
        return item.kind is SymbolKind.VALUE and _LISTED.search(self.index.texts[line - 1]) is not None

    def _assembly(self, defined: Mapping[TextBlock | None, list[tuple[Item, int]]]) -> list[lsp.DocumentSymbol]:
        symbols = [
            self._value(item, line)
            for item, line in defined.get(None, ())
            if item.kind is not SymbolKind.REGISTER or "castsim" in self.index.texts[line - 1]
        ]
        symbols += [self._block(block, []) for block in self.index.blocks if block.head == "loop"]
        return sorted(symbols, key=lambda outlined: outlined.range.start.line)

    def _value(self, item: Item, line: int) -> lsp.DocumentSymbol:
        span = self.places.range(line, item.column, item.end)
        text = self.index.texts[line - 1]
        written = text[item.column - 1 : item.end - 1]
        detail = text.partition("castsim:")[2] if "castsim:" in text else text[item.end - 1 :]
        if self.index.language == "c":
            detail = _TYPE_BEFORE.search(text[: item.column - 1])[0].strip()  # type: ignore[index]  # it matches any text
        elif item.kind is SymbolKind.ARGUMENT:
            detail = _ARGUMENT_TYPE.match(detail)[0]  # type: ignore[index]  # it matches any text
        kind = _SYMBOL_KINDS.get(item.kind, lsp.SymbolKind.Variable)
        return lsp.DocumentSymbol(written, kind, span, span, detail=detail.strip(" =:")[:80] or None)

    def _block(self, block: TextBlock, inner: Sequence[lsp.DocumentSymbol]) -> lsp.DocumentSymbol:
        text, last = self.index.texts[block.line - 1], block.end or len(self.index.texts)
        if block.head == "loop":
            text = text[text.lower().index("loop") :].partition(";")[0]
        whole = lsp.Range(
            lsp.Position(block.line - 1, 0), self.places.position(last, len(self.index.texts[last - 1]) + 1)
        )
        function = block.head == "func.func"
        name = block.name if function else text.strip().rstrip("{").strip()[:60] or block.head
        start = max(0, self.index.texts[block.line - 1].find(block.name if function else text.strip()))
        own = self.places.range(block.line, start + 1, start + 1 + len(block.name if function else text.strip()))
        kind = lsp.SymbolKind.Function if function else lsp.SymbolKind.Namespace
        return lsp.DocumentSymbol(name, kind, whole, own, children=[*inner])


def folding(index: SymbolIndex) -> list[lsp.FoldingRange]:
    """Return the ranges of a text that can be folded."""
    return [
        lsp.FoldingRange(first - 1, last - 1, kind=lsp.FoldingRangeKind.Comment if comment else None)
        for first, last, comment in index.folds()
    ]


# Colours of words, as the protocol packs them: five numbers each, the first two from the word before.

LEGEND = lsp.SemanticTokensLegend([*map(str, TokenType)], ["definition"])
_NUMBERS = {each: number for number, each in enumerate(TokenType)}


def colours(index: SymbolIndex, places: TextPlaces, lines: range) -> list[int]:
    """Return the colours of lines, counted from 0."""
    return _packed(_by_line(index, places, lines), lines.start, 0)


def _by_line(index: SymbolIndex, places: TextPlaces, lines: range) -> list[list[int]]:
    """Return the numbers of each line except the first number, which depends on the previous lines."""
    return [_encoded(index, index.lines[number], number, places) for number in lines]


def _packed(by_line: Sequence[list[int]], first: int, before: int) -> list[int]:
    """Return the colours of lines from `first` on; `before` is the last previous line that has colours."""
    data: list[int] = []
    for number, encoded in enumerate(by_line, first):
        if encoded:
            data.append(number - before)
            data += encoded
            before = number
    return data


class Colours:
    """The colours that the client has for each text, by line; the client receives only changes."""

    def __init__(self) -> None:
        self._sent: dict[str, tuple[str, list[list[int]]]] = {}
        self._count = 0

    def _held(self, uri: str, by_line: list[list[int]]) -> str:
        """Store the colours that a client receives; return their identifier."""
        self._count += 1
        self._sent[uri] = str(self._count), by_line
        return str(self._count)

    def all(self, uri: str, index: SymbolIndex, places: TextPlaces) -> lsp.SemanticTokens:
        """Return the colours of a text."""
        by_line = _by_line(index, places, range(len(index.lines)))
        return lsp.SemanticTokens(_packed(by_line, 0, 0), self._held(uri, by_line))

    def changed(
        self, uri: str, index: SymbolIndex, places: TextPlaces, known_tokens: str
    ) -> lsp.SemanticTokens | lsp.SemanticTokensDelta:
        """Return the changes of colours since `known_tokens`; all colours if those are no longer stored."""
        before, old = self._sent.get(uri, ("", []))
        if before != known_tokens:
            return self.all(uri, index, places)
        new = _by_line(index, places, range(len(index.lines)))
        edit = _edit(old, new)
        return lsp.SemanticTokensDelta([] if edit is None else [edit], self._held(uri, new))

    def forget(self, uri: str) -> None:
        """Remove a text that is closed."""
        self._sent.pop(uri, None)


def _edit(old: list[list[int]], new: list[list[int]]) -> lsp.SemanticTokensEdit | None:
    """Return the edit that turns the colours of the `old` lines into the colours of the `new` lines; None if equal.

    Unchanged lines share their list, so 10,000 of them are compared in a millisecond.
    """
    if old == new:
        return None
    first = next(
        (n for n, (old_token, other) in enumerate(zip(old, new, strict=False)) if old_token != other),
        min(len(old), len(new)),
    )
    most = min(len(old), len(new)) - first
    last = next((n for n in range(most) if old[-1 - n] != new[-1 - n]), most)
    # The first number of the coloured line behind counts the lines from the one before, which may be another now.
    last = next((n for n in range(last - 1, -1, -1) if new[len(new) - 1 - n]), 0)
    before = next((n for n in range(first - 1, -1, -1) if new[n]), 0)
    start = sum(len(row) + 1 for row in new[:first] if row)
    replaced = sum(len(row) + 1 for row in old[first : len(old) - last] if row)
    return lsp.SemanticTokensEdit(start, replaced, _packed(new[first : len(new) - last], first, before))


def _encoded(index: SymbolIndex, line: SymbolLine, number: int, places: TextPlaces) -> list[int]:
    """Return the numbers of a line except the first, which depends on the previous lines."""
    if number in index.placed:  # what its names are rests on the lines around it
        return [*_numbers(index, line, number, places)][1:]
    key = index.colour_key(number)
    if key not in line.encoded:
        line.encoded[key] = [*_numbers(index, line, number, places)][1:]
    return line.encoded[key]


def _numbers(index: SymbolIndex, line: SymbolLine, number: int, places: TextPlaces) -> Iterator[int]:
    text = index.texts[number]
    items = index.items(number)
    defined = {item.column for item, _ in items if item.defines}
    bounds = [(0, 0, 0)]
    colours = sorted(line.colours)
    if text.isascii():
        bounds += [(column - 1, end - 1, column) for column, end, _ in colours]
    else:
        bounds += [(places.units(text[: c - 1]), places.units(text[: e - 1]), c) for c, e, _ in colours]
    for (earlier, here), colour in zip(pairwise(bounds), colours, strict=True):
        yield from (0, here[0] - earlier[0], here[1] - here[0], _NUMBERS[index.colour(number, colour)],
                    int(here[2] in defined))  # fmt: skip
