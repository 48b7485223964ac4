"""Codes and the numbers they stand for, as reports spell them."""

from __future__ import annotations

import math
from fractions import Fraction

from castsim.isa.formats import Format, IntFormat

Number = Fraction | float


def bits_text(code: int, fmt: Format) -> str:
    """Return a code in hexadecimal, with as many digits as the format has; of i48 without the copies of its sign."""
    return f"0x{code & ((1 << fmt.bits) - 1):0{-(-fmt.bits // 4)}x}"


def json_value(value: Number, fmt: Format) -> int | float | str:
    """Return a finite value as a number, others as `nan`, `inf`, `-inf`."""
    if isinstance(value, float) and not math.isfinite(value):
        return "nan" if math.isnan(value) else "inf" if value > 0 else "-inf"
    return int(value) if isinstance(fmt, IntFormat) else float(value)
