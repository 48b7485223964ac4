"""Symbols for what vector registers hold, byte by byte: which loaded element, after which operations.

A term stands for one element. Terms are numbered, so that equal ones have equal numbers, and a register is an array
of byte numbers (term and place within it). Lane moves permute the array; conversions and element-wise operations make
new terms. Two elements went through the same work exactly if their terms differ in the loaded elements alone: then they
have one `shape`.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

Bytes = NDArray[np.int64]
"""One register: a byte number per byte."""

_PLACES = 8
"""Byte numbers are eight times the term's number plus the place within the element."""


@dataclass(frozen=True, slots=True)
class Term:
    """An element: what made it, and its width in bytes.

    kind is `load` (key: number of the load, element), `constant` (key: the bits), `immediate` and `scalar` (an operand
    of an instruction that is alike for all lanes; key: number, register), `operation` (key: the instruction without its
    operands; parts: terms), `comparison` (an operation whose results are masks), `select` (parts: mask, new, old) or
    `joined` (parts: byte numbers).
    """

    kind: str
    width: int
    key: tuple[Any, ...] = ()
    parts: tuple[int, ...] = ()


@dataclass(slots=True)
class Terms:
    """All terms of a piece of program."""

    known: dict[Term, int] = field(default_factory=dict)
    listed: list[Term] = field(default_factory=list)

    def number(self, term: Term) -> int:
        """Return the number of a term."""
        if term not in self.known:
            self.known[term] = len(self.listed)
            self.listed.append(term)
        return self.known[term]

    def constant(self, bits: int, width: int) -> int:
        """Return the number of a constant."""
        return self.number(Term("constant", width, (bits & ((1 << 8 * width) - 1),)))

    def bytes_of(self, term: int) -> tuple[int, ...]:
        """Return the byte numbers of an element; those of constants are constants of one byte."""
        found = self.listed[term]
        if found.kind == "constant" and found.width > 1:
            return tuple(self.constant(found.key[0] >> 8 * k, 1) * _PLACES for k in range(found.width))
        return tuple(term * _PLACES + k for k in range(found.width))

    def element(self, numbers: tuple[int, ...]) -> int:
        """Return the term that some bytes make up."""
        first, width = self.listed[numbers[0] // _PLACES], len(numbers)
        if first.width == width and numbers == self.bytes_of(numbers[0] // _PLACES):
            return numbers[0] // _PLACES
        parts = [self.listed[number // _PLACES] for number in numbers]
        if all(part.kind == "constant" for part in parts):
            return self.constant(sum(part.key[0] << 8 * k for k, part in enumerate(parts)), width)
        return self.number(Term("joined", width, (), numbers))

    def elements(self, register: Bytes, width: int) -> list[int]:
        """Return the terms of a register's elements."""
        return [self.element(tuple(group)) for group in register.reshape(-1, width).tolist()]

    def register(self, elements: list[int]) -> Bytes:
        """Return the register that holds elements."""
        return np.array([number for term in elements for number in self.bytes_of(term)], np.int64)

    def term_of(self, number: int) -> Term:
        """Return the term that a byte number belongs to."""
        return self.listed[number // _PLACES]

    def children(self, term: Term) -> tuple[int, ...]:
        """Return the terms that a term is made of."""
        return tuple(part // _PLACES for part in term.parts) if term.kind == "joined" else term.parts

    def joined_parts(self, term: Term) -> tuple[tuple[int, int], ...]:
        """Return the bytes of a `joined` term as term and place."""
        return tuple(divmod(part, _PLACES) for part in term.parts)


class Shapes:
    """Terms without the loaded element: its number is taken out where all leaves of a term agree on it."""

    def __init__(self, terms: Terms) -> None:
        self.terms = terms
        self.made = Terms()
        self._found: dict[int, tuple[int, int | None] | None] = {}

    def of(self, term: int) -> tuple[int, int | None] | None:
        """Return the shape of a term and the one element of its loads, if it has any; None if there are several."""
        if term not in self._found:
            self._found[term] = self._of(term)
        return self._found[term]

    def _of(self, number: int) -> tuple[int, int | None] | None:
        term = self.terms.listed[number]
        if term.kind == "load":
            load, element = term.key
            return self.made.number(Term("load", term.width, (load,))), element
        if not term.parts:
            return self.made.number(term), None
        found = [self.of(child) for child in self.terms.children(term)]
        if any(each is None for each in found):
            return None
        pairs = [each for each in found if each is not None]
        elements = {element for _, element in pairs if element is not None}
        if len(elements) > 1:
            return None
        parts = tuple(shape for shape, _ in pairs)
        if term.kind == "joined":
            places = (place for _, place in self.terms.joined_parts(term))
            parts = tuple(shape * _PLACES + place for shape, place in zip(parts, places, strict=True))
        return self.made.number(Term(term.kind, term.width, term.key, parts)), next(iter(elements), None)
