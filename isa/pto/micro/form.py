"""The notation of `castsim.isa.pto.micro.forms` taken apart: operands, words and results of an operation's forms."""

from __future__ import annotations

import re
from dataclasses import dataclass
from functools import lru_cache

from castsim.isa.pto.micro.forms import ROWS
from castsim.isa.pto.micro.words import WRITTEN

_PIECE = re.compile(r'"(\w+)"(\??)|\{([\w ]+)\}(\??)|\(([\w ]+)\)|P\[([Ii])\]|([A-Za-z])(\??)')
_SHOWN = {
    "V": "!pto.vreg<64xf32>", "U": "!pto.vreg<..>", "X": "!pto.vreg<..>", "M": "!pto.mask<..>", "m": "!pto.mask<..>",
    "k": "!pto.mask<..>", "P": "!pto.ptr<T, ub>", "G": "!pto.ptr<T, gm>", "Q": "!pto.ptr<T, ub|gm>", "T": "T",
    "I": "index", "N": "i32", "L": "i64", "B": "i1", "S": "i64", "A": "!pto.align",
}  # fmt: skip


@dataclass(frozen=True, slots=True)
class Form:
    """One way to write an operation.

    `items` are operand letters and the kinds of words in quotes, in the order of the text; `offset` is the number of
    the operand in brackets, `offset_typed` whether its type is written. `optional` results may be left out.
    """

    items: tuple[str, ...]
    offset: int | None
    offset_typed: bool
    keys: tuple[str, ...]
    groups: tuple[str, ...]
    results: tuple[str, ...]
    optional: int
    free: frozenset[str]
    """Kinds of words that may be left out."""

    @property
    def operands(self) -> tuple[str, ...]:
        """The letters of the operands."""
        return tuple(item for item in self.items if len(item) == 1)

    @property
    def words(self) -> tuple[str, ...]:
        """The kinds of the words between the operands."""
        return tuple(item for item in self.items if len(item) > 1)

    def spelling(self, name: str) -> str:
        """Return an example of the text."""
        shown, number = [], 0
        for item in self.items:
            if len(item) > 1:
                shown.append(f'"{item.upper()}"')
                continue
            value = f"%{chr(97 + number)}"
            if number == self.offset:
                shown[-1] += f"[{value}]"
            else:
                shown.append(value)
            number += 1
        text = f"pto.{name}" + (f" {', '.join(shown)}" if shown else "")
        text += "".join(f" {group}(..)" for group in self.groups)
        if self.keys:
            text += f" {{{', '.join(f'{WRITTEN.get(key, key)} = ..' for key in self.keys)}}}"
        kinds = [_SHOWN[letter] for number, letter in enumerate(self.operands) if self._typed(number)]
        results = [_SHOWN[letter] for letter in self.results[: len(self.results) - self.optional]]
        arrow = " -> " if kinds and results else ""
        types = f" : {', '.join(kinds)}{arrow}{', '.join(results)}" if kinds or results else ""
        names = ", ".join(f"%r{number or ''}" for number in range(len(results)))
        return f"{names} = {text}{types}" if results else f"{text}{types}"

    def _typed(self, number: int) -> bool:
        return number != self.offset or self.offset_typed


@lru_cache(maxsize=256)
def forms_of(name: str) -> tuple[Form, ...]:
    """Return the forms of an operation."""
    return tuple(_read(text) for text in ROWS[name].forms)


def _read(text: str) -> Form:
    left, _, right = text.partition(">")
    items: list[str] = []
    keys: tuple[str, ...] = ()
    groups: tuple[str, ...] = ()
    free: set[str] = set()
    offset, typed = None, False
    for word, word_free, dictionary, dictionary_free, group, index, letter, _ in _PIECE.findall(left):
        if word:
            items.append(word)
            free |= {word} if word_free else set()
        elif dictionary:
            keys = tuple(dictionary.split())
            free |= set(keys) if dictionary_free else set()
        elif group:
            groups = tuple(group.split())
        elif index:
            items += ("P", "I")
            offset, typed = sum(len(item) == 1 for item in items) - 1, index == "I"
        else:
            items.append(letter)
    found = [(letter, mark) for *_, letter, mark in _PIECE.findall(right)]
    optional = sum(mark == "?" for _, mark in found)
    results = tuple(letter for letter, _ in found)
    return Form(tuple(items), offset, typed, keys, groups, results, optional, frozenset(free))
