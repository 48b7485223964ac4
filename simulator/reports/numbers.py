"""Codes and the numbers they stand for, as reports spell them."""

from __future__ import annotations

import math
from collections.abc import Callable
from fractions import Fraction

from castsim.isa.formats import Format, IntFormat
from castsim.reports.documents import Document

Number = Fraction | float

End = tuple[int, Number] | None
"""A code and its number, if there is one."""


def grouped(number: int) -> str:
    """Return an integer with commas between thousands."""
    return f"{number:,}"


def bits_text(code: int, fmt: Format) -> str:
    """Return a code in hexadecimal, with as many digits as the format has; of i48 without the copies of its sign."""
    return f"0x{code & ((1 << fmt.bits) - 1):0{-(-fmt.bits // 4)}x}"


def json_value(value: Number, fmt: Format) -> int | float | str:
    """Return a finite value as a number, others as `nan`, `inf`, `-inf`."""
    if isinstance(value, float) and not math.isfinite(value):
        return "nan" if math.isnan(value) else "inf" if value > 0 else "-inf"
    return int(value) if isinstance(fmt, IntFormat) else float(value)


def number_document(code: int, value: Number, fmt: Format, text: Callable[[int, Format], str] = bits_text) -> Document:
    """Return a code and the number that it stands for; `text` spells the code."""
    return {"bits": text(code, fmt), "value": json_value(value, fmt)}


def ends_document(ends: tuple[End, End, End], fmt: Format, text: Callable[[int, Format], str] = bits_text) -> Document:
    """Return the lowest and the highest number of a set of results, and one apart: null where there is none."""
    return {
        name: None if end is None else number_document(*end, fmt, text)
        for name, end in zip(("lowest", "highest", "further"), ends, strict=True)
    }
