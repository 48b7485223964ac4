"""Formats and numbers as other languages write them: types of C, ONNX and libraries, hexadecimal floats."""

from __future__ import annotations

import re
from contextlib import suppress
from fractions import Fraction
from functools import lru_cache
from typing import TypeVar

from castsim.isa.errors import ReadError
from castsim.isa.formats import Format, format_named
from castsim.isa.modes import Overflow, Rounding, Saturation

_WORDS = {"char": "i8", "uchar": "u8", "short": "i16", "ushort": "u16", "int": "i32", "uint": "u32"}
_SMALL_FLOAT = re.compile(r"(?:(?:float|fp)\d_?|f8(?=\w+fnuz))(u?e\d+m\d\w*)")
_HEXADECIMAL = re.compile(r"([+-]?)0x([0-9a-f]*)(?:\.([0-9a-f]*))?p([+-]?\d+)", re.ASCII | re.IGNORECASE)
_LONGEST_TEXT, _LARGEST_EXPONENT = 1000, 20_000


@lru_cache(maxsize=256)
def format_spelled(text: str) -> Format:
    """Return the format that a name means in castsim or elsewhere.

    Beside the names of `format_named`: `torch.bfloat16`, `fp16_t`, `int4b_t`, `fp8e4m3_t`, `float8e4m3fn`,
    `float4_e2m1x2_t`, and C's `char`, `short`, `int` with `u` for unsigned ones, of 8, 16 and 32 bits.

    Raises:
        ReadError: no such format.
    """
    name = text.strip().lower().removeprefix("torch.").removesuffix("_t")
    small = _SMALL_FLOAT.fullmatch(name)
    bits = re.fullmatch(r"(u?int\d+)b", name)
    others = (name, _WORDS.get(name), small and small[1].removeprefix("u"), bits and bits[1])
    try:
        return format_named(text)
    except ReadError:
        for other in others:
            with suppress(ReadError):
                if other:
                    return format_named(other)
        raise


def hexadecimal_float(text: str) -> Fraction | float | None:
    """Return the number that `0x1.8p+3` is, exactly; None for a text that is no hexadecimal float of C99.

    Raises:
        ReadError: it has no digits, or more than castsim reads.
    """
    found = _HEXADECIMAL.fullmatch(text.strip())
    if found is None:
        return None
    digits, fraction = found[2] + (found[3] or ""), found[3] or ""
    if not digits or len(text) > _LONGEST_TEXT or abs(int(found[4])) > _LARGEST_EXPONENT:
        raise ReadError(f"'{text[:40]}' is not a hexadecimal float", legal=("0x1.8p+3",))
    number = int(digits, 16) * Fraction(2) ** (int(found[4]) - 4 * len(fraction))
    if found[1] != "-":
        return number
    return -number if number else -0.0


# Modes by the words that people type.

_Mode = TypeVar("_Mode", Rounding, Overflow, Saturation)


def mode_named(kind: type[_Mode], text: str, what: str) -> _Mode:
    """Return the mode of a kind that a word names, in capitals or not.

    Raises:
        ReadError: none of this name; `what` is what the message calls it.
    """
    try:
        return kind(text.lower())
    except ValueError:
        raise ReadError(f"unknown {what} '{text}'", legal=[str(member) for member in kind]) from None
