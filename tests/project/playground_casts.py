"""Casts of shipped targets on a fixed array each, as digests: run natively and under Pyodide, which must agree."""

from __future__ import annotations

import hashlib
import json

import numpy as np

import castsim
from castsim.isa.formats import IntFormat, code_bits, format_named

CODES = 20_010


def codes(src: str) -> np.ndarray:
    """Return the codes that are cast: the smallest ten, and others spread by a multiplicative hash."""
    fmt = format_named(src)
    bits = code_bits(fmt)
    numbers = np.arange(1, CODES + 1, dtype=np.uint64)
    spread = (numbers * np.uint64(0x9E3779B97F4A7C15)) >> np.uint64(64 - bits)
    spread[:10] = np.arange(10, dtype=np.uint64) % np.uint64(1 << min(bits, 4))
    bytes_ = max(1, (1 << (bits - 1).bit_length()) // 8)
    if isinstance(fmt, IntFormat) and fmt.signed:
        beside = np.int64(64 - bits)
        return (spread.view(np.int64) << beside >> beside).astype(f"i{bytes_}")
    return spread.astype(f"u{bytes_}")


def digests(casts: list[list[str]]) -> dict[str, str]:
    """Return the SHA-256 of the results of casts, each given as target, source, destination and rounding."""
    found = {}
    for target, src, dst, rounding in casts:
        result = castsim.cast(codes(src), src, dst, target=target, rounding=rounding or None)
        found[f"{target} {src} {dst}"] = hashlib.sha256(np.ascontiguousarray(result).tobytes()).hexdigest()
    return found


def printed(casts: str) -> None:
    print(json.dumps(digests(json.loads(casts))))
