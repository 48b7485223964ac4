"""Operands from their spelling: registers, immediates in every form, dimension masks."""

from __future__ import annotations

import math
import re
import struct
from fractions import Fraction

from castsim.isa.tpc.dialect import Dialect
from castsim.isa.tpc.program import GROUPED, DimensionMask, File, Immediate, Register, Special

_REGISTER = re.compile(r"(VP|SP|AD|[VDASZI])(\d{1,6})", re.IGNORECASE)
_MASK = re.compile(r"b([01]{5})", re.IGNORECASE)
_TYPED = re.compile(r"i(8|16|32)_(-?)(0x[0-9a-f]+|\d+)", re.IGNORECASE)
_INTEGER = re.compile(r"([-+]?)(0x[0-9a-f]+|0b[01]+|\d+)", re.IGNORECASE)
_FLOAT = re.compile(r"[-+]?(?:\d+\.\d*|\.\d+|\d+(?=e))(?:e[-+]?\d+)?f?", re.IGNORECASE)
_LONGEST = 64  # characters of a number; more is not an immediate, and conversions of endless digits are slow

SPECIALS = frozenset(
    [
        "LFSR",
        "LFSR_NO_CHANGE",
        "V_LANE_ID_32",
        "V_LANE_ID_16",
        "V_LANE_ID_8",
        "S_LFSR",
        "S_LFSR_NO_CHANGE",
        "PC",
        "M0",
        "M1",
        "M2",
        "M3",
        "LD_TNSR_ID_REG",
        "ST_TNSR_ID_REG",
        "ST_RMW_REG",
        "LD_PARTIAL_REG",
        "ST_PARTIAL_REG",
        "S_CARRY",
        "V_CARRY",
        "ZP_REG",
    ]
)
"""Registers that have a name instead of a number. Source: docs/reference/tpc.md section 7.1."""


def read_register(text: str, dialect: Dialect) -> Register | Special | None:
    """Read `V4`, `%V4` or `LFSR`; None if the text names no register.

    Raises:
        ValueError: a register number that the file does not have; the message says which it has.
    """
    name = text.removeprefix("%")
    if name.upper() in SPECIALS:
        return Special(name.upper())
    match = _REGISTER.fullmatch(name)
    if not match:
        return None
    file, index = File(match[1].upper()), int(match[2])
    whole, step = GROUPED.get(file, (file, 1))
    last = dialect.registers[whole] - step
    if index > last or index % step:
        names = f"{file}0, {file}{step} .. {file}{last}" if step > 1 else f"{file}0 .. {file}{last}"
        raise ValueError(f"there is no register {file}{index}; {dialect.name} has {names}")
    return Register(file, index)


def read_mask(text: str) -> DimensionMask | None:
    """Read `b00010`; None if the text is not a dimension mask."""
    match = _MASK.fullmatch(text)
    return DimensionMask(int(match[1], 2)) if match else None


def read_immediate(text: str) -> Immediate | None:
    """Read a 32-bit immediate: decimal, hexadecimal, binary, negative, `i32_n`, `i16_n`, `i8_n`, or an f32 literal.

    A typed immediate keeps the low bits of its type, above them zeros. None if the text is not a number.

    Raises:
        ValueError: a number that does not fit; the message says what would.
    """
    if len(text) > _LONGEST:
        if text[:1].isdigit() or text[:1] in "+-.":
            raise ValueError(f"an immediate has at most {_LONGEST} characters")
        return None
    if match := _TYPED.fullmatch(text.removeprefix("%")):
        bits, value = int(match[1]), int(match[3], 0 if match[3][:2].lower() == "0x" else 10)
        return _fitted(-value if match[2] else value, bits)
    if match := _INTEGER.fullmatch(text):
        value = int(match[2], 0 if match[2][:2].lower() in ("0x", "0b") else 10)
        return _fitted(-value if match[1] == "-" else value, 32)
    if _FLOAT.fullmatch(text):
        return Immediate(_f32_bits(text.rstrip("fF")))
    return None


def _fitted(value: int, bits: int) -> Immediate:
    if not -(1 << (bits - 1)) <= value < 1 << bits:
        raise ValueError(f"{value} does not fit in {bits} bits: {-(1 << (bits - 1))} .. {(1 << bits) - 1}")
    return Immediate(value & ((1 << bits) - 1))


def _f32_bits(text: str) -> int:
    """Return the f32 code nearest to a decimal, ties to even.

    The way through a double would round twice; so the double is first moved to its odd neighbour wherever it is
    inexact, which makes the second rounding see that (round to odd).
    """
    double = float(text)
    exponent = re.search(r"[eE]([-+]?\d+)", text)
    too_far = exponent is not None and abs(int(exponent[1])) > 400  # far outside f32; as a fraction it would be huge
    if not too_far and math.isfinite(double):
        exact = Fraction(text)
        if Fraction(double) != exact and not struct.pack("<d", double)[0] & 1:
            double = math.nextafter(double, math.inf if exact > Fraction(double) else -math.inf)
    try:
        if not math.isfinite(double):
            raise OverflowError
        return int.from_bytes(struct.pack("<f", double), "little")
    except OverflowError:
        raise ValueError(f"{text} is beyond the largest f32") from None
