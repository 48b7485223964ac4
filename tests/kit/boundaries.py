"""Which formats the cast tests go through, and the source codes at which a cast from a wide format changes.

Around every boundary value of the destination (its numbers, midpoints of neighbours, range edges) come the source's
two nearest codes on either side; then the source's own edges, and seeded random patterns.
"""

from __future__ import annotations

from fractions import Fraction

import numpy as np
import oracle
from oracle_formats import magnitude
from oracle_scalar import encode

BIASED = ("f8_143@0", "f8_143@11", "f8_143@15")
"""Settings of the bias register beside the default 7: its ends and one that the matrix engine uses."""
FORMATS = [name for name in (*oracle.FLOATS, *oracle.INTS) if "@" not in name or name in BIASED]
MASK = (1 << 64) - 1


def destination_points(dst: str, rng: np.random.Generator, count: int) -> list[Fraction]:
    """Return about `count` non-negative values around which rounding to `dst` changes."""
    row = oracle.fmt(dst)
    if isinstance(row, oracle.Int):
        limits = {0, row.high, -row.low, (row.high + 1) // 2, *(1 << k for k in range(1, 65, 7))}
        limits |= {int(n) for n in rng.integers(0, min(row.high, 1 << 62) + 1, 6)}
        return [abs(limit + Fraction(k, 2)) for limit in sorted(limits) for k in range(-3, 4)]
    top = row.first_special
    if row.bits <= 8:
        numbers = [entry[0] for entry in oracle.codebook(dst)]
        patterns = list(range(len(numbers) - 1))
        steps = [(numbers[index], numbers[index + 1]) for index in patterns]
    else:
        edges = {exponent << row.fraction_bits for exponent in range(top >> row.fraction_bits)}
        edges = set(rng.choice(sorted(edges), min(len(edges), count // 4), replace=False).tolist())
        edges |= {0, 1, 1 << row.fraction_bits, top - 1}
        chosen = {code + k for code in edges for k in (-1, 0)} | {int(n) for n in rng.integers(0, top, count // 4)}
        steps = [(magnitude(code, row), magnitude(code + 1, row)) for code in sorted(chosen) if 0 <= code < top]
    keep = rng.permutation(len(steps) - 4)[: max(0, count // 2 - 4)] + 2
    steps = steps[:2] + [steps[index] for index in sorted(keep.tolist())] + steps[-2:]
    return [point for low, high in steps for point in (low, (low + high) / 2)] + [steps[-1][1]]


def source_codes_near(points: list[Fraction], src: str, reach: int) -> list[int]:
    """Return the codes of `src` up to `reach` steps around each point, of both signs where it has them."""
    row = oracle.fmt(src)
    found: set[int] = set()
    for point in points:
        if isinstance(row, oracle.Int):
            values = (sign * (int(point) + k) for sign in (1, -1) for k in range(-reach, reach + 1))
            found |= {value & ((1 << row.storage) - 1) for value in values if row.low <= value <= row.high}
            continue
        low = encode(oracle.Value("finite", False, point), row, "floor", "special")
        near = {code for code in range(low - reach, low + reach + 2) if 0 <= code <= row.inf}
        found |= near | {code | row.sign_code for code in near}
    return sorted(found)


def own_edges(src: str) -> list[int]:
    """Return specials, subnormal and range edges of the source."""
    row = oracle.fmt(src)
    if isinstance(row, oracle.Int):
        values = {0, 1, row.low, row.low + 1, row.high, row.high - 1, *([-1] if row.signed else [])}
        return sorted(value & ((1 << row.storage) - 1) for value in values)
    normal = 1 << row.fraction_bits
    positive = {0, 1, 2, normal - 1, normal, normal + 1, row.inf - 1, row.inf, row.inf + 1, row.nan, row.nan | 1}
    positive |= {row.sign_code - 1, row.nan - 1}
    return sorted(positive | {code | row.sign_code for code in positive})


def random_codes(src: str, dst: str, rng: np.random.Generator, count: int) -> list[int]:
    """Return uniform patterns, and for floats as many again whose magnitude lies in the destination's range."""
    row, to = oracle.fmt(src), oracle.fmt(dst)
    words = [int(word) for word in rng.integers(0, MASK, count, dtype=np.uint64, endpoint=True)]
    if isinstance(row, oracle.Int):
        shifts = rng.integers(0, row.bits, count).tolist()
        values = [(word & ((1 << row.bits) - 1)) - (row.high + 1 if row.signed else 0) for word in words]
        small = [value >> shift for value, shift in zip(values, shifts, strict=True)]
        return [value & ((1 << row.storage) - 1) for value in values + small]
    if isinstance(to, oracle.Int):
        low, high = -2, to.bits + 2
    else:
        book = (magnitude(1, to), magnitude(to.max_code, to))
        low, high = (size.numerator.bit_length() - size.denominator.bit_length() for size in book)
    words = [word & (2 * row.sign_code - 1) for word in words]
    exponents = rng.integers(max(low - 3 + row.bias, 0), min(high + 3 + row.bias, 2 * row.bias) + 1, count).tolist()
    field = (row.sign_code - 1) ^ ((1 << row.fraction_bits) - 1)
    inside = [word & ~field | exponent << row.fraction_bits for word, exponent in zip(words, exponents, strict=True)]
    return words + inside


def hard_codes(src: str, dst: str, *, points: int, reach: int, random: int, seed: int) -> np.ndarray:
    """Return distinct source codes for one pair, as an array of the storage dtype."""
    rng = np.random.default_rng(seed)
    codes = source_codes_near(destination_points(dst, rng, points), src, reach)
    codes += own_edges(src) + random_codes(src, dst, rng, random)
    return np.array(sorted(set(codes)), dtype=oracle.storage(src))
