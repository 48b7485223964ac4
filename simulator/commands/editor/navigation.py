"""What is answered from the symbol index of a text: places of names, renaming, outline, folding, colours."""

from __future__ import annotations

import gc
import re
from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from itertools import pairwise

from lsprotocol import types as lsp

from castsim.commands.editor.program_slice import EditedText, TextPlaces
from castsim.commands.editor.symbols import (
    AssemblyIndex,
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
from castsim.commands.editor.symbols_c import CIndex, means_something
from castsim.isa.errors import ReadError


class Indexes:
    """The symbol indexes of open texts, each made of the one of the version before."""

    def __init__(self) -> None:
        self._held: dict[str, tuple[EditedText, SymbolIndex]] = {}

    def of(self, uri: str, text: EditedText) -> SymbolIndex:
        """Return the index of a text."""
        known = self._held.get(uri)
        if known is not None and known[0] is text:
            return known[1]
        earlier = None if known is None else known[1]
        if earlier is None:
            with _kept_for_long():
                found = _index(text, None)
        else:
            found = _index(text, earlier)
        self._held[uri] = text, found
        return found

    def forget(self, uri: str) -> None:
        """Forget a text that is closed."""
        self._held.pop(uri, None)


def _index(text: EditedText, earlier: SymbolIndex | None) -> SymbolIndex:
    if text.language == "pto":
        return TileIndex(text.lines, earlier if isinstance(earlier, TileIndex) else None)
    if text.language == "tpc":
        return AssemblyIndex(text.lines, earlier if isinstance(earlier, AssemblyIndex) else None)
    return CIndex(text.lines, earlier if isinstance(earlier, CIndex) else None)


@contextmanager
def _kept_for_long() -> Iterator[None]:
    """Keep the garbage collector from what is made within: to look it through takes longer than an answer may.

    An index has no cycles, so that it goes with its last reference.
    """
    gc.collect()
    gc.disable()
    try:
        yield
        gc.freeze()
    finally:
        gc.enable()


def range_of(found: Occurrence, places: TextPlaces) -> lsp.Range:
    """Return the range of a name."""
    return places.range(found.line, found.column, found.end)


def highlights(symbol: Symbol, places: TextPlaces) -> list[lsp.DocumentHighlight]:
    """Return the occurrences of a symbol, told apart as writes and reads."""
    kinds = lsp.DocumentHighlightKind
    return [
        lsp.DocumentHighlight(range_of(one, places), kinds.Write if one.defines else kinds.Read)
        for one in symbol.occurrences
    ]


# Renaming. Only names of the program's own can be renamed, and only to names that mean nothing else there.

_NAMES = {
    SymbolKind.FUNCTION: (re.compile(r"@?(?:[\w.$]|-(?!>))+", re.ASCII), "a name of letters, digits and _ . $ -"),
    SymbolKind.LABEL: (re.compile(r"[A-Za-z_.$][\w.$]*", re.ASCII), "a name that begins with a letter, _ . or $"),
    SymbolKind.TENSOR: (re.compile(r"[A-Za-z_]\w*", re.ASCII), "a name of letters, digits and _"),
}
_VALUE_NAME = re.compile(r"%?(?:[\w.$]|-(?!>))+", re.ASCII), "a name of letters, digits and _ . $ -"


def renamable(index: SymbolIndex, line: int, column: int) -> tuple[Symbol, Item]:
    """Return the symbol at a place, and the name as it stands there.

    Raises:
        ReadError: nothing that can be renamed is there.
    """
    found = index.item_at(line, column)
    if found is None:
        raise ReadError(
            "this is a word of the language", legal=("the name of a value, function, label, register or tensor",)
        )
    item, block = found
    symbol = index.symbol(item.name, block)
    if not symbol.definitions:
        raise ReadError(f"{item.name} is not defined in this file")
    grouped = next((one for one in symbol.occurrences if one.grouped), None)
    if grouped is not None:
        raise ReadError(f"{item.name} is also named as part of a group of registers, in line {grouped.line}")
    if item.kind is SymbolKind.TENSOR and not item.defines:
        raise ReadError("an instruction names a tensor by its number, which is its place in the launch")
    return symbol, item


def renamed(index: SymbolIndex, symbol: Symbol, new: str) -> list[tuple[Occurrence, str]]:
    """Return what is to stand for each occurrence of a symbol under a new name.

    Raises:
        ReadError: the name is not one, or it is taken.
    """
    if symbol.kind is SymbolKind.REGISTER:
        written = new if new.startswith("%") == symbol.name.startswith("%") else new.removeprefix("%")
        key = index.key(written)
        same_file = re.sub(r"\d+$|\.\w+$", "", key) == re.sub(r"\d+$|\.\w+$", "", symbol.name)
        if not same_file or key == written.lower() != written or not re.search(r"\d$|\.\w+$", key):
            raise ReadError(f"'{new[:40]}' is not a register of the same file as {symbol.name}")
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
        raise ReadError(f"{new} is already named in line {other.line}")
    return [(one, new) for one in symbol.occurrences if symbol.kind is not SymbolKind.TENSOR or one.defines]


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
"""Operations whose results an outline lists; of scalars and lanes there are too many."""


_TYPE_BEFORE = re.compile(r"[^,(;{#]*$")
_ARGUMENT_TYPE = re.compile(r"[^,)<{]*(?:<[^>]*>)?")


def outline(index: SymbolIndex, places: TextPlaces) -> list[lsp.DocumentSymbol]:
    """Return what a text consists of."""
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
        """Return the symbols straight inside of a block."""
        found = [self._value(item, line) for item, line in defined.get(outer, ()) if self._is_listed(item, line, outer)]
        for block in self.inner[outer]:
            inner = self._below(block, defined)
            if block.head == "func.func" or "." in block.head:
                found.append(self._block(block, inner))
            else:
                found += inner
        if outer is None:  # functions without a body
            bodies = {block.name for block in self.index.blocks}
            found += [
                self._value(item, line)
                for item, line in defined.get(None, ())
                if item.kind is SymbolKind.FUNCTION and item.name not in bodies
            ]
        return sorted(found, key=lambda one: (one.range.start.line, one.range.start.character))

    def _is_listed(self, item: Item, line: int, outer: TextBlock | None) -> bool:
        if item.kind is SymbolKind.ARGUMENT:
            return True
        if self.index.language == "c":  # macros and tables
            return item.kind is SymbolKind.VALUE and outer is None
        return item.kind is SymbolKind.VALUE and _LISTED.search(self.index.texts[line - 1]) is not None

    def _assembly(self, defined: Mapping[TextBlock | None, list[tuple[Item, int]]]) -> list[lsp.DocumentSymbol]:
        found = [
            self._value(item, line)
            for item, line in defined.get(None, ())
            if item.kind is not SymbolKind.REGISTER or "castsim" in self.index.texts[line - 1]
        ]
        found += [self._block(block, []) for block in self.index.blocks if block.head == "loop"]
        return sorted(found, key=lambda one: one.range.start.line)

    def _value(self, item: Item, line: int) -> lsp.DocumentSymbol:
        place = self.places.range(line, item.column, item.end)
        text = self.index.texts[line - 1]
        written = text[item.column - 1 : item.end - 1]
        detail = text.partition("castsim:")[2] if "castsim:" in text else text[item.end - 1 :]
        if self.index.language == "c":
            detail = _TYPE_BEFORE.search(text[: item.column - 1])[0].strip()  # type: ignore[index]  # it matches any text
        elif item.kind is SymbolKind.ARGUMENT:
            detail = _ARGUMENT_TYPE.match(detail)[0]  # type: ignore[index]  # it matches any text
        kind = _SYMBOL_KINDS.get(item.kind, lsp.SymbolKind.Variable)
        return lsp.DocumentSymbol(written, kind, place, place, detail=detail.strip(" =:")[:80] or None)

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
    """Return what of a text can be folded."""
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
    """Return the numbers of each line without the first, which depends on the lines before."""
    return [_encoded(index, index.lines[number], number, places) for number in lines]


def _packed(by_line: Sequence[list[int]], first: int, before: int) -> list[int]:
    """Return the colours of lines from `first` on; `before` is the last line before them that has colours."""
    data: list[int] = []
    for number, encoded in enumerate(by_line, first):
        if encoded:
            data.append(number - before)
            data += encoded
            before = number
    return data


class Colours:
    """The colours that the client has of each text, by line, of which it is told what has changed."""

    def __init__(self) -> None:
        self._sent: dict[str, tuple[str, list[list[int]]]] = {}
        self._count = 0

    def _held(self, uri: str, by_line: list[list[int]]) -> str:
        """Take note of the colours that a client is given; return what these are called."""
        self._count += 1
        self._sent[uri] = str(self._count), by_line
        return str(self._count)

    def all(self, uri: str, index: SymbolIndex, places: TextPlaces) -> lsp.SemanticTokens:
        """Return the colours of a text."""
        by_line = _by_line(index, places, range(len(index.lines)))
        return lsp.SemanticTokens(_packed(by_line, 0, 0), self._held(uri, by_line))

    def changed(
        self, uri: str, index: SymbolIndex, places: TextPlaces, known: str
    ) -> lsp.SemanticTokens | lsp.SemanticTokensDelta:
        """Return how colours differ from the `known` ones; all if these are no longer held."""
        before, old = self._sent.get(uri, ("", []))
        if before != known:
            return self.all(uri, index, places)
        new = _by_line(index, places, range(len(index.lines)))
        edit = _edit(old, new)
        return lsp.SemanticTokensDelta([] if edit is None else [edit], self._held(uri, new))

    def forget(self, uri: str) -> None:
        """Forget a text that is closed."""
        self._sent.pop(uri, None)


def _edit(old: list[list[int]], new: list[list[int]]) -> lsp.SemanticTokensEdit | None:
    """Return what turns the colours of the `old` lines into those of the `new` ones; None if nothing does.

    Lines that are as they were share their list, so that 10,000 of them are compared in a millisecond.
    """
    if old == new:
        return None
    first = next(
        (n for n, (one, other) in enumerate(zip(old, new, strict=False)) if one != other), min(len(old), len(new))
    )
    most = min(len(old), len(new)) - first
    last = next((n for n in range(most) if old[-1 - n] != new[-1 - n]), most)
    # The first number of the coloured line behind counts the lines from the one before, which may be another now.
    last = next((n for n in range(last - 1, -1, -1) if new[len(new) - 1 - n]), 0)
    before = next((n for n in range(first - 1, -1, -1) if new[n]), 0)
    start = sum(len(one) + 1 for one in new[:first] if one)
    replaced = sum(len(one) + 1 for one in old[first : len(old) - last] if one)
    return lsp.SemanticTokensEdit(start, replaced, _packed(new[first : len(new) - last], first, before))


def _encoded(index: SymbolIndex, line: SymbolLine, number: int, places: TextPlaces) -> list[int]:
    """Return the numbers of a line without the first, which depends on the lines before."""
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
