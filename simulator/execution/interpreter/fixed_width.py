"""Integers of a fixed number of bits."""

from __future__ import annotations


def signed(value: int, width: int) -> int:
    """Return the low `width` bits of `value` read as two's complement; one bit is read as 0 or 1."""
    value &= (1 << width) - 1
    return value - (1 << width) if width > 1 and value >> (width - 1) else value


def unsigned(value: int, width: int) -> int:
    """Return the low `width` bits of `value` read as unsigned."""
    return value & ((1 << width) - 1)
