"""Generations, pairs and inputs that the tests of compiled casts go through."""

from __future__ import annotations

import boundaries
import numpy as np
from oracle_array import storage
from oracle_compiled import GENERATIONS, direct
from oracle_formats import fmt

UNUSED = ("i4", "u4")
"""They have no linear order."""


def elements(generation: str) -> tuple[str, ...]:
    """Return the types of a generation that its vector conversions mention, and have at least 8 bits."""
    return tuple(sorted({name for pair in direct(generation) for name in pair if name not in UNUSED}))


def pairs(generation: str) -> list[tuple[str, str]]:
    """Return every pair of different types."""
    return [(src, dst) for src in elements(generation) for dst in elements(generation) if src != dst]


ALL_PAIRS = [(generation, *pair) for generation in GENERATIONS for pair in pairs(generation)]


def sample(src: str, dst: str, points: int = 16, random: int = 40) -> np.ndarray:
    """Return inputs: all of 8 bits; of wider types those around what rounds and saturates, and random ones."""
    if fmt(src).bits <= 8:
        return np.arange(1 << fmt(src).bits, dtype=storage(src))
    return boundaries.hard_codes(src, dst, points=points, reach=1, random=random, seed=7)


def every_code(src: str) -> np.ndarray:
    """Return all codes of a type of up to 16 bits."""
    return np.arange(1 << fmt(src).bits, dtype=storage(src))
