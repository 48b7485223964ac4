"""Outputs compared to the bit."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from math import prod

import numpy as np
from numpy.typing import NDArray

from castsim.exploration.differences.sides import SideOutput
from castsim.isa.codes import Codes
from castsim.isa.formats import Format

SHOWN = 10
"""Elements that differ of which a comparison tells the bits."""


@dataclass(frozen=True, slots=True)
class ElementDifference:
    """An element that differs: its index, and its code on each side."""

    index: tuple[int, ...]
    bits_a: int
    bits_b: int


@dataclass(frozen=True, slots=True)
class OutputDifference:
    """An output of both sides, `name` on the first, `name_b` on the second; None on a side that has no such output.

    `differing` counts the elements whose bits differ, of which `first` are the first ones in C order. It is None where
    elements cannot be set side by side: their numbers differ, a side lacks the output, or only its digest is known.
    Shapes of as many elements are set side by side in C order, and do not make outputs unequal; indices are those of
    the first side.
    """

    name: str
    a: SideOutput | None
    b: SideOutput | None
    equal: bool
    differing: int | None
    first: tuple[ElementDifference, ...] = ()

    @property
    def format_a(self) -> Format | None:
        """The format of its elements on the first side."""
        return None if self.a is None else self.a.format

    @property
    def format_b(self) -> Format | None:
        """The format of its elements on the second side."""
        return None if self.b is None else self.b.format


def compared(first: Sequence[SideOutput], second: Sequence[SideOutput]) -> tuple[OutputDifference, ...]:
    """Return every output of both sides, compared.

    Outputs match by name; those that are left match in their order, as names of arguments may change.
    """
    names = [each.name for each in first]
    of_second = {each.name: each for each in second}
    left = [each for each in second if each.name not in names]
    found = []
    for each in first:
        other = of_second.get(each.name)
        if other is None and left:
            other = left.pop(0)
        found.append(_compared(each, other))
    return (*found, *(_compared(None, each) for each in left))


def _compared(a: SideOutput | None, b: SideOutput | None) -> OutputDifference:
    name = a.name if a is not None else b.name if b is not None else ""
    if a is None or b is None or prod(a.shape) != prod(b.shape):
        return OutputDifference(name, a, b, equal=False, differing=None)
    alike = a.format == b.format
    if a.codes is None or b.codes is None:
        equal = alike and a.sha256 == b.sha256
        return OutputDifference(name, a, b, equal, 0 if equal else None)
    where = np.flatnonzero(_differs(a.codes.ravel(), b.codes.ravel()))
    first = tuple(_element(int(place), a.codes, b.codes.reshape(a.shape)) for place in where[:SHOWN])
    return OutputDifference(name, a, b, alike and not where.size, int(where.size), first)


def _differs(a: Codes, b: Codes) -> NDArray[np.bool_]:
    """Return which elements differ; codes of other widths are compared as numbers are, from the last bit on."""
    different: NDArray[np.bool_] = (a != b) if a.dtype == b.dtype else a.astype(np.uint64) != b.astype(np.uint64)
    return different


def _element(place: int, a: Codes, b: Codes) -> ElementDifference:
    index = tuple(int(each) for each in np.unravel_index(place, a.shape))
    return ElementDifference(index, int(a[index]), int(b[index]))
