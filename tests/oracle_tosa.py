"""TOSA's integer scaling, from docs/reference/semantics.md section 2.2, in Python integers."""

from __future__ import annotations


def apply_scale(value: int, multiplier: int, shift: int, *, double: bool) -> int:
    """Return value * multiplier / 2**shift rounded half up, or by DOUBLE_ROUND."""
    bias = 1 << (shift - 1)
    if double and shift > 31:
        bias += 1 << 30 if value >= 0 else -(1 << 30)
    return (value * multiplier + bias) >> shift
