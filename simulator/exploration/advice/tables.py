"""Casts of small elements as tables of all their codes, so that different steps with one result have one term.

An element of 16 bits or fewer, and all that casts make of it, is a function of that element alone. Its term is made of
the whole table of that function and of the term of the element that it began with, whatever steps led there.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from hashlib import blake2b

import numpy as np

from castsim.exploration.advice.value_numbering import Fingerprints, applied, key_of
from castsim.isa.codes import Codes
from castsim.isa.formats import Format
from castsim.numerics import code_dtype

MOST_BITS = 16

Step = Callable[[list[Codes]], Codes]
"""Takes the codes of every operand, and returns those of the result."""


@dataclass(frozen=True, slots=True)
class Known:
    """Elements that are functions of others: `table` holds the results, by code, `roots` the terms of the others."""

    terms: Fingerprints
    roots: Fingerprints
    table: Codes


@dataclass(slots=True)
class Tables:
    """What is known of the elements that casts have made, by one seed."""

    seed: int
    _known: dict[int, Known] = field(default_factory=dict)
    _constants: dict[int, int] = field(default_factory=dict)
    _made: dict[tuple[object, ...], Codes] = field(default_factory=dict)

    def constant(self, term: np.uint64, code: int) -> None:
        """Remember the term of an element that is the same in every run."""
        self._constants[int(term)] = code

    def result(
        self, key: tuple[object, ...], operands: Sequence[Fingerprints], src: Format, dst: Format, step: Step
    ) -> Known | None:
        """Return what an operation makes of elements; None if it is no function of one small element each.

        `key` names the operation; `operands` are the terms of flat elements, each in the format `src`.
        """
        found = [self._operand(terms.reshape(-1), src) for terms in operands]
        varying = [one for one in found if isinstance(one, Known)]
        if not varying or None in found:
            return None
        roots, size = varying[0].roots, varying[0].table.size
        if any(one.table.size != size or not np.array_equal(one.roots, roots) for one in varying):
            return None
        inner = tuple(one if isinstance(one, int) else id(one.table) for one in found if one is not None)
        name = (*key, src.name, dst.name, inner)
        if name not in self._made:
            dtype = code_dtype(src)
            codes = [
                np.full(size, one, dtype) if isinstance(one, int) else one.table.astype(dtype)
                for one in found
                if one is not None
            ]
            self._made[name] = self._interned(np.asarray(step(codes)))
        table = self._made[name]
        terms = applied(key_of(self.seed, "table", _digest(table)), [roots], roots.shape)
        return Known(terms, roots, table)

    def remember(self, known: Known, terms: Fingerprints) -> None:
        """Keep what elements are by the terms under which they will be read."""
        if terms.size:
            self._known[int(terms.reshape(-1)[0])] = Known(terms.reshape(-1), known.roots, known.table)

    def _operand(self, terms: Fingerprints, src: Format) -> Known | int | None:
        if not terms.size:
            return None
        first = int(terms[0])
        if first in self._constants and bool((terms == terms[0]).all()):
            return self._constants[first]
        known = self._known.get(first)
        if known is not None and np.array_equal(known.terms, terms):
            return known
        if src.bits > MOST_BITS:
            return None
        name = ("identity", src.bits)
        if name not in self._made:
            self._made[name] = self._interned(np.arange(1 << src.bits).astype(code_dtype(src)))
        return Known(terms, terms, self._made[name])

    def _interned(self, table: Codes) -> Codes:
        return next(
            (one for one in self._made.values() if one.dtype == table.dtype and np.array_equal(one, table)), table
        )


def _digest(table: Codes) -> str:
    return blake2b(table.astype(np.uint64).tobytes(), digest_size=16).hexdigest()
