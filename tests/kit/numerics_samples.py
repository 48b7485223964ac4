"""Codes to try casts on, and the abstract cast by format names, for the tests of `castsim.numerics`."""

from __future__ import annotations

import numpy as np

from castsim.isa.formats import FORMATS, FloatFormat, Format, IntFormat, Overflow, Rounding
from castsim.numerics.blocks import code_dtype
from castsim.numerics.cast import cast_codes
from castsim.numerics.codec import decode_to_float64
from castsim.numerics.policy import abstract_policy


def samples(fmt: Format, seed: int = 0, count: int = 20_000) -> np.ndarray:
    """Return every code of a format up to 16 bits; else specials, exponent edges and seeded random codes."""
    if fmt.bits <= 16:
        return np.arange(1 << fmt.bits, dtype=code_dtype(fmt))
    rng = np.random.default_rng(seed)
    codes = rng.integers(0, 1 << fmt.bits, count, dtype=np.uint64)
    if isinstance(fmt, IntFormat):
        codes >>= rng.integers(0, fmt.bits, count, dtype=np.uint64)
        edges = [1 << bit for bit in range(fmt.bits)]
    else:
        assert isinstance(fmt, FloatFormat)
        edges = [field << fmt.fraction_bits for field in range(0, fmt.exponent_mask + 1)]
        edges += [edge | fmt.sign_bit for edge in edges]
    near = {edge + step & (1 << fmt.bits) - 1 for edge in edges for step in (-2, -1, 0, 1, 2)}
    codes = np.concatenate([codes, np.array(sorted(near), np.uint64)])
    if fmt.name == "i48":  # stored in int64
        codes = ((codes << np.uint64(16)).view(np.int64) >> 16).view(np.uint64)
    return codes.astype(code_dtype(fmt))


def stored_mask(fmt: IntFormat) -> int:
    """Return the ones of a stored code: i48 is sign-extended to 64 bits, codes below a byte have zeros above."""
    return (1 << (64 if fmt.name == "i48" else fmt.bits)) - 1


def cast(
    codes: np.ndarray, src: str, dst: str, rounding: Rounding | None = None, overflow: Overflow | None = None
) -> np.ndarray:
    return cast_codes(
        codes, FORMATS[src], FORMATS[dst], abstract_policy(FORMATS[src], FORMATS[dst], rounding, overflow)
    )


def is_nan(codes: np.ndarray, fmt: Format) -> np.ndarray:
    return np.isnan(decode_to_float64(codes, fmt))
