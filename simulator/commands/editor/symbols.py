"""The symbol index of a text: what defines a name, what uses it, and in which block that holds.

One index per version of a text answers definition, references, rename, outline, folding and colours. It stands on the
tokens of the readers and goes on where these refuse a statement, so that it also answers while a line is being typed.
What is made of a line is kept for the next version: after an edit, only lines that differ are read again.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from enum import StrEnum
from typing import ClassVar


class SymbolKind(StrEnum):
    """What a name is of."""

    FUNCTION = "function"
    ARGUMENT = "argument"
    VALUE = "value"
    LOOP_VARIABLE = "loop variable"
    CARRIED = "value of a loop or block"
    LABEL = "label"
    REGISTER = "register"
    TENSOR = "tensor"


@dataclass(frozen=True, slots=True)
class Occurrence:
    """A name in a text: line and columns from 1, the end exclusive; `grouped` is a register named within a group."""

    line: int
    column: int
    end: int
    defines: bool
    kind: SymbolKind
    grouped: bool = False


@dataclass(frozen=True, slots=True)
class Symbol:
    """What one name stands for, with all its occurrences in the order of the text."""

    name: str
    kind: SymbolKind
    occurrences: tuple[Occurrence, ...]

    @property
    def definitions(self) -> tuple[Occurrence, ...]:
        """The occurrences that define it."""
        return tuple(one for one in self.occurrences if one.defines)


@dataclass(slots=True, eq=False)
class TextBlock:
    """A region of a text: lines from 1, what opens it, the block around it; `end` is 0 while nothing closes it."""

    head: str
    line: int
    outer: TextBlock | None = None
    name: str = ""
    end: int = 0

    def within(self) -> Iterator[TextBlock]:
        """Yield the block and those around it."""
        block: TextBlock | None = self
        while block is not None:
            yield block
            block = block.outer


@dataclass(frozen=True, slots=True)
class Item:
    """A name in a line, as `Occurrence` has it; `name` is how it is looked up."""

    name: str
    column: int
    end: int
    defines: bool = False
    kind: SymbolKind = SymbolKind.VALUE
    grouped: bool = False

    def at(self, line: int) -> Occurrence:
        """Return the occurrence in a line, from 1."""
        return Occurrence(line, self.column, self.end, self.defines, self.kind, self.grouped)


class TokenType(StrEnum):
    """The colours of words, by the names that editors know."""

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
    """What a line holds that does not depend on its neighbours."""

    items: tuple[Item, ...]
    colours: tuple[Coloured, ...]
    names: frozenset[str] = frozenset()
    encoded: dict[object, list[int]] = field(default_factory=dict)
    """The colours as the client takes them, kept by `castsim.commands.editor.navigation`."""

    def __post_init__(self) -> None:
        self.names = frozenset(one.name for one in self.items)


class SymbolIndex:
    """The names of one version of a text.

    A subclass for each language fills `lines`, `blocks` and, where an item does not lie in the block of its line,
    `placed`; it takes the index of the version before, for lines that are as they were.
    """

    language: ClassVar[str]

    def __init__(self, lines: Sequence[str]) -> None:
        self.texts = lines
        self.lines: list[SymbolLine] = []
        self.blocks: list[TextBlock] = []
        self.block_of: list[TextBlock | None] = []
        self.placed: dict[int, list[tuple[Item, TextBlock | None]]] = {}
        """By number of line, from 0: items with the blocks that they hold in."""
        self._found: dict[str, list[tuple[Occurrence, TextBlock | None]]] = {}

    def items(self, number: int) -> Iterator[tuple[Item, TextBlock | None]]:
        """Yield the items of a line, counted from 0, with the blocks that they hold in."""
        if number in self.placed:
            yield from self.placed[number]
        else:
            block = self.block_of[number]
            yield from ((item, block) for item in self.lines[number].items)

    def item_at(self, line: int, column: int) -> tuple[Item, TextBlock | None] | None:
        """Return the name at a place, from 1; the end of a name still belongs to it."""
        if not 1 <= line <= len(self.lines):
            return None
        found = [one for one in self.items(line - 1) if one[0].column <= column <= one[0].end]
        return next((one for one in found if column < one[0].end), found[0] if found else None)

    def symbol_at(self, line: int, column: int) -> Symbol | None:
        """Return what the name at a place stands for; None if no name is there."""
        found = self.item_at(line, column)
        return None if found is None else self.symbol(found[0].name, found[1])

    def symbol(self, name: str, block: TextBlock | None) -> Symbol:
        """Return what a name stands for in a block."""
        found = self.occurrences(name)
        homes = {where for one, where in found if one.defines}
        own = _home(block, homes)
        mine = tuple(one for one, where in found if _home(where, homes) is own)
        kinds = [one.kind for one in mine if one.defines] or [one.kind for one in mine]
        return Symbol(name, kinds[0], tuple(sorted(mine, key=lambda one: (one.line, one.column))))

    def occurrences(self, name: str) -> list[tuple[Occurrence, TextBlock | None]]:
        """Return all occurrences of a name, with the blocks that they hold in."""
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
        """Return what defines the name at a place."""
        symbol = self.symbol_at(line, column)
        return () if symbol is None else symbol.definitions

    def key(self, written: str) -> str:
        """Return how a name is looked up."""
        return written

    def taken(self, symbol: Symbol, new: str) -> Occurrence | None:
        """Return a definition that a new name of a symbol would collide with."""
        homes = {where for one, where in self.occurrences(symbol.name) if one in symbol.definitions}
        around = {id(block) for home in homes if home is not None for block in home.within()}
        for one, where in self.occurrences(new):
            inside = where is None or id(where) in around or any(block in homes for block in where.within())
            if one.defines and inside:
                return one
        return None

    def all_definitions(self) -> Mapping[TextBlock | None, list[tuple[Item, int]]]:
        """Return all that is defined, with its line from 1, by block."""
        found: dict[TextBlock | None, list[tuple[Item, int]]] = defaultdict(list)
        for number in range(len(self.lines)):
            for item, block in self.items(number):
                if item.defines and not item.grouped:
                    found[block].append((item, number + 1))
        return found

    def folds(self) -> Iterator[tuple[int, int, bool]]:
        """Yield what can be folded: first and last line, from 1, and whether it is a comment."""
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
        """Return the colour of a word in a line, from 0, where that depends on its neighbours."""
        del number
        return colour[2]

    def colour_key(self, number: int) -> object:
        """Return what the colours of a line, from 0, rest on beyond its text."""
        del number
        return None


def _home(block: TextBlock | None, homes: set[TextBlock | None]) -> TextBlock | None:
    """Return the block around another, that one included, in which a name is defined; else the outermost one."""
    last = None
    for each in block.within() if block is not None else ():
        if each in homes:
            return each
        last = each
    return None if None in homes else last
