"""The symbol index of TPC kernels in C: functions, parameters, variables, macros.

It reads tokens, not the grammar, so that it also answers while a line is being typed, and knows a declaration by its
form: words in a row at the start of a statement, the last one followed by `=`, `,`, `;`, `[` or `(`.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import NamedTuple

from castsim.commands.editor.symbols import Coloured, Item, SymbolIndex, SymbolKind, SymbolLine, TextBlock, TokenType
from castsim.tpc_compiler.tpc_c.language import MACROS, call_named, type_named

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
"""Words that name nothing of a program's own."""
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
    """What is open: a block that waits for its head's end or for its body, has it in braces or as one statement.

    `depth` is that of parentheses around it; without a block it is an initialiser or the members of a type.
    """

    block: TextBlock | None
    stage: str
    depth: int


@dataclass(slots=True)
class _CState:
    """How far the lines are read; `words` counts those of a declaration's head, -1 when none can begin here."""

    block: TextBlock | None = None
    open: list[_Open] = field(default_factory=list)
    depth: int = 0
    words: int = 0
    declaring: int = -1
    """Depth of a list of declared names, -1 outside of one."""
    kind: SymbolKind = SymbolKind.VALUE
    condition: int = -1
    """Depth of the statement whose condition is open, -1 if there is none."""
    labelled: bool = False
    """Whether a colon that comes ends a label of a switch."""
    enumerated: bool = False
    directive: bool = False

    @property
    def between(self) -> bool:
        """Whether a statement or a declaration begins here, in a body in braces or outside of all."""
        return (
            not (self.words or self.depth or self.directive)
            and self.declaring < 0
            and self.condition < 0
            and (not self.open or self.open[-1].stage == "braces")
        )


@dataclass(slots=True)
class _CLine(SymbolLine):
    """A line with its tokens; `own` are its items if they all hold in the block around it, whatever that is."""

    tokens: tuple[_Token, ...] = ()
    own: bool = False


class CIndex(SymbolIndex):
    """The names of a kernel in C."""

    language = "c"

    def __init__(self, lines: Sequence[str], earlier: CIndex | None = None) -> None:
        super().__init__(lines)
        known = {} if earlier is None else earlier.known
        self.known: dict[str, _CLine] = {}
        state = _CState()
        for number, text in enumerate(_without_comments(lines)):
            line = self.known.get(text)
            if line is None:
                self.known[text] = line = known.get(text) or _read(text)
            self.lines.append(line)
            self.block_of.append(state.block)
            if not (line.own and state.between and (state.open or not line.names)):
                self.placed[number] = _CReader(self, number, line.tokens, state).placed


def _without_comments(lines: Sequence[str]) -> Sequence[str]:
    """Return lines with comments in `/* */`, which may go over several, blanked out."""
    text = "\n".join(lines)
    if "/*" not in text:
        return lines
    return _COMMENT.sub(
        lambda found: re.sub(r"[^\n]", " ", found[0]) if found[0].startswith("/*") else found[0], text
    ).split("\n")


def _read(text: str) -> _CLine:
    tokens = tuple(
        _Token(found[0], found.start() + 1, found["word"] is not None, found["number"] is not None)
        for found in _TOKEN.finditer(text)
        if not found[0].startswith("//")
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
    for place, one in enumerate(tokens):
        colour = None
        if one.number:
            colour = TokenType.NUMBER
        elif one.text[0] in "\"'":
            colour = TokenType.STRING
        elif one.word:
            after = tokens[place + 1].text if place + 1 < len(tokens) else ""
            if one.text in _FLOW or (directive and place == 1):
                colour = TokenType.KEYWORD
            elif one.text in _QUALIFIERS or type_named(one.text) is not None:
                colour = TokenType.TYPE
            elif one.text in MACROS:
                colour = TokenType.MODE
            else:
                colour = TokenType.FUNCTION if after == "(" else TokenType.VARIABLE
        if colour is not None:
            yield one.column, one.end, colour


class _CReader:
    """Reads a line: what its names are, and which blocks it opens and closes."""

    def __init__(self, index: SymbolIndex, number: int, tokens: Sequence[_Token], state: _CState) -> None:
        self.index, self.number, self.tokens, self.state = index, number, tokens, state
        self.placed: list[tuple[Item, TextBlock | None]] = []
        if state.directive or (tokens and tokens[0].text == "#"):
            self._directive()
            return
        for place, one in enumerate(tokens):
            self._await(one.text)
            if one.word:
                self._word(place, one)
            else:
                self._sign(place, one.text)

    def _after(self, place: int) -> str:
        return self.tokens[place + 1].text if place + 1 < len(self.tokens) else ""

    def _add(
        self, one: _Token, block: TextBlock | None, kind: SymbolKind = SymbolKind.VALUE, *, defines: bool = False
    ) -> None:
        self.placed.append((Item(one.text, one.column, one.end, defines, kind), block))

    def _directive(self) -> None:
        """Read `#define` and the names that other directives use; its parameters are those of its line."""
        words = [one for one in self.tokens if one.word]
        skipped = 1 if not self.state.directive and words and words[0].text in _DIRECTIVES else 0
        defined = words[1] if skipped and words[0].text == "define" and len(words) > 1 else None
        block: TextBlock | None = None
        parameters: set[int] = set()
        if defined is not None:
            place = self.tokens.index(defined)
            if self._after(place) == "(" and self.tokens[place + 1].column == defined.end:
                block = TextBlock("#define", self.number + 1, None, end=self.number + 1)
                closed = next((n for n in range(place, len(self.tokens)) if self.tokens[n].text == ")"), place)
                parameters = {one.column for one in self.tokens[place + 2 : closed] if one.word}
        if skipped == 0 or words[0].text not in ("include", "pragma"):
            for one in words[skipped:]:
                if one is defined:
                    self._add(one, None, defines=True)
                elif one.text not in WORDS:
                    kind = SymbolKind.LOOP_VARIABLE if one.column in parameters else SymbolKind.VALUE
                    self._add(one, block, kind, defines=one.column in parameters)
        self.state.directive = bool(self.tokens) and self.tokens[-1].text == "\\"

    def _await(self, text: str) -> None:
        """Let a head that has ended have its body."""
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

    def _word(self, place: int, one: _Token) -> None:
        state, after = self.state, self._after(place)
        before = self.tokens[place - 1].text if place else ""
        top = state.open[-1] if state.open else None
        if one.text in _FLOW:
            self._flow(one.text)
        elif one.text in _QUALIFIERS:
            state.enumerated = state.enumerated or one.text == "enum"
            if state.words >= 0:
                state.words += 1
        elif top is not None and top.stage in ("members", "enumerators"):
            if top.stage == "enumerators" and before in "{,":
                self._add(one, state.block, defines=True)
        elif before in (".", "->") or (before in ("struct", "union", "enum") and place):
            state.words += state.words >= 0 and before not in (".", "->")
        elif state.declaring == state.depth and before in (",", "*"):
            self._add(one, state.block, state.kind, defines=True)
        elif state.words > 0 and after in _ENDS:
            self._declared(one, after)
        else:
            if type_named(one.text) is None or not self._is_type(place, before, after):
                self._add(one, state.block)
            state.words += state.words >= 0

    def _is_type(self, place: int, before: str, after: str) -> bool:
        """Whether the name of a type stands for it: in a declaration or a cast; `half` may also name a variable."""
        if self.state.words >= 0 and after not in _ENDS:
            return after == "*" or self.tokens[place + 1].word
        return before == "(" and (after == ")" or (after == "*" and self._after(place + 1) in (")", "*")))

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

    def _declared(self, one: _Token, after: str) -> None:
        """Take note of the name that a declaration declares."""
        state = self.state
        top = state.open[-1] if state.open else None
        if after == "(" and top is None:
            self._add(one, None, SymbolKind.FUNCTION, defines=True)
            state.block = TextBlock(_FUNCTION, self.number + 1, None, one.text)
            self.index.blocks.append(state.block)
            state.open.append(_Open(state.block, "head", state.depth))
            state.words = 0
            return
        kind = SymbolKind.VALUE
        if top is not None and top.stage == "head" and top.block is not None:
            kind = SymbolKind.ARGUMENT if top.block.head == _FUNCTION else SymbolKind.LOOP_VARIABLE
        self._add(one, state.block, kind, defines=True)
        state.words, state.kind = -1, kind
        if kind is not SymbolKind.ARGUMENT:
            state.declaring = state.depth

    def _sign(self, place: int, text: str) -> None:
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
            self._closed(place)
        elif text == ";":
            self._ended(place, top)
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

    def _closed(self, place: int) -> None:
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
        self._leave_statements(place)

    def _ended(self, place: int, top: _Open | None) -> None:
        state = self.state
        if top is not None and top.stage in ("members", "enumerators"):
            return
        state.declaring = -1 if state.declaring == state.depth else state.declaring
        if top is not None and top.stage == "head" and state.depth == top.depth + 1:
            state.words = -1
            return
        state.words, state.depth, state.condition = 0, 0 if top is None else top.depth, -1
        state.enumerated = False
        self._leave_statements(place)

    def _leave_statements(self, place: int) -> None:
        """Leave loops whose body was the statement that has ended."""
        if self._after(place) != "else":
            while self.state.open and self.state.open[-1].stage == "statement":
                self._leave()

    def _leave(self) -> None:
        block = self.state.open.pop().block
        if block is not None:
            block.end, self.state.block = self.number + 1, block.outer


def means_something(name: str) -> bool:
    """Whether a name is a word, a type, a constant or a function of the language."""
    return name in WORDS or name in MACROS or type_named(name) is not None or call_named(name) is not None
