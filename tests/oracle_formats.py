"""The oracle's own table of number formats and their exact decoding, shared with no product code.

A code is the unsigned integer of an element's bit pattern; its value is a sign, and a `Fraction` as magnitude.
Facts: docs/reference/formats.md sections 1 to 3 (IEEE 754, OCP OFP8 and MX, arXiv 2409.16626), docs/reference/tpc.md
section 5 for f8_143 and f8_152.
"""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction
from functools import cache


@dataclass(frozen=True)
class Value:
    """What a code means. `kind` is finite, inf or nan; `magnitude` matters for finite values only."""

    kind: str
    negative: bool = False
    magnitude: Fraction = Fraction(0)


@dataclass(frozen=True)
class Float:
    """A float. `inf` and `nan` are the positive codes (None: the format has none).

    `first_special` is the lowest magnitude pattern that is not a finite number. `signed_nan`: both signs of NaN
    exist. `negative_zero`: minus zero has a code.
    """

    name: str
    bits: int
    exponent_bits: int
    fraction_bits: int
    bias: int
    first_special: int
    inf: int | None
    nan: int | None
    signed: bool = True
    signed_nan: bool = True
    negative_zero: bool = True

    @property
    def storage(self) -> int:
        return max(8, self.bits)

    @property
    def sign_code(self) -> int:
        return 1 << (self.bits - 1) if self.signed else 0

    @property
    def max_code(self) -> int:
        return self.first_special - 1


@dataclass(frozen=True)
class Int:
    """An integer. `storage` is the width of a code: sub-byte codes have zero upper bits, i48 is sign-extended to 64."""

    name: str
    bits: int
    signed: bool
    storage: int

    @property
    def low(self) -> int:
        return -(1 << (self.bits - 1)) if self.signed else 0

    @property
    def high(self) -> int:
        return (1 << (self.bits - 1)) - 1 if self.signed else (1 << self.bits) - 1


FLOATS = {
    row.name: row
    for row in (
        Float("f64", 64, 11, 52, 1023, 0x7FF0000000000000, 0x7FF0000000000000, 0x7FF8000000000000),
        Float("f32", 32, 8, 23, 127, 0x7F800000, 0x7F800000, 0x7FC00000),
        Float("f16", 16, 5, 10, 15, 0x7C00, 0x7C00, 0x7E00),
        Float("bf16", 16, 8, 7, 127, 0x7F80, 0x7F80, 0x7FC0),
        Float("e4m3fn", 8, 4, 3, 7, 0x7F, None, 0x7F),
        Float("e4m3fnuz", 8, 4, 3, 8, 0x80, None, 0x80, signed_nan=False, negative_zero=False),
        Float("e5m2", 8, 5, 2, 15, 0x7C, 0x7C, 0x7E),
        Float("e5m2fnuz", 8, 5, 2, 16, 0x80, None, 0x80, signed_nan=False, negative_zero=False),
        Float("e8m0", 8, 8, 0, 127, 0xFF, None, 0xFF, signed=False, signed_nan=False, negative_zero=False),
        Float("e3m2", 6, 3, 2, 3, 0x20, None, None),
        Float("e2m3", 6, 2, 3, 1, 0x20, None, None),
        Float("e2m1", 4, 2, 1, 1, 0x08, None, None),
        Float("e1m2", 4, 1, 2, 1, 0x08, None, None),
        # The field widths of HiF8 are unused: `_hif8_magnitude` reads its prefix code.
        Float("hif8", 8, 0, 0, 0, 0x6F, 0x6F, 0x80, signed_nan=False, negative_zero=False),
        *(
            Float("f8_143" if bias == 7 else f"f8_143@{bias}", 8, 4, 3, bias, 0x78, 0x78, 0x7F)
            for bias in (7, *range(7), *range(8, 16))
        ),
        Float("f8_152", 8, 5, 2, 15, 0x7C, 0x7C, 0x7F),
    )
}
"""Every float format; f8_143 once per setting of its bias register."""

INTS = {
    row.name: row
    for row in (
        Int("i2", 2, True, 8), Int("u2", 2, False, 8),
        Int("i4", 4, True, 8), Int("u4", 4, False, 8),
        Int("i8", 8, True, 8), Int("u8", 8, False, 8),
        Int("i16", 16, True, 16), Int("u16", 16, False, 16),
        Int("i32", 32, True, 32), Int("u32", 32, False, 32),
        Int("i64", 64, True, 64), Int("u64", 64, False, 64),
        Int("i48", 48, True, 64),
        Int("bool", 1, False, 8),
    )
}  # fmt: skip
"""Every integer format, and bool."""

# docs/reference/formats.md section 2: exponent is read from the code between the dot prefix and the fraction.
# (lowest code, codes per class, smallest |E|, fraction bits); each class has its positive exponents first.
_HIF8_CLASSES = ((0x60, 0x20, 8, 1), (0x40, 0x20, 4, 2), (0x20, 0x20, 2, 3), (0x10, 0x10, 1, 3))


def fmt(name: str) -> Float | Int:
    """Return the row called `name`; KeyError for an unknown one."""
    return FLOATS[name] if name in FLOATS else INTS[name]


def _hif8_magnitude(pattern: int) -> Fraction:
    if pattern == 0:
        return Fraction(0)
    if pattern < 0x08:
        return Fraction(2) ** (pattern - 23)
    if pattern < 0x10:
        return 1 + Fraction(pattern - 8, 8)
    for lowest, count, smallest, fraction_bits in _HIF8_CLASSES:
        if lowest <= pattern < lowest + count:
            field, fraction = divmod(pattern - lowest, 1 << fraction_bits)
            binades = (count >> fraction_bits) // 2
            exponent = smallest + field if field < binades else -(smallest + field - binades)
            return Fraction(2) ** exponent * (1 + Fraction(fraction, 1 << fraction_bits))
    raise AssertionError(pattern)


def magnitude(pattern: int, row: Float) -> Fraction:
    """Return what a pattern without sign would be worth if no code were special.

    One pattern past the last finite one thus gives the value that the next step of the grid would have.
    """
    if row.name == "hif8":
        return _hif8_magnitude(pattern)
    exponent, fraction = pattern >> row.fraction_bits, pattern & ((1 << row.fraction_bits) - 1)
    part = Fraction(fraction, 1 << row.fraction_bits)
    if row.name == "e8m0":  # no subnormals: code 0 is 2**-127
        return Fraction(2) ** (exponent - row.bias)
    if exponent == 0:
        return Fraction(2) ** (1 - row.bias) * part
    return Fraction(2) ** (exponent - row.bias) * (1 + part)


def decode_float(code: int, row: Float) -> Value:
    negative, pattern = divmod(code, row.sign_code) if row.signed else (0, code)
    if code == row.nan and not row.signed_nan:
        return Value("nan")
    if pattern == row.inf:
        return Value("inf", bool(negative))
    if pattern >= row.first_special and row.name != "hif8":  # HiF8: infinity sits among the finite codes
        return Value("nan", bool(negative))
    return Value("finite", bool(negative), magnitude(pattern, row))


def decode_int(code: int, row: Int) -> int:
    if row.name == "bool":
        return int(code != 0)
    value = code - (1 << row.storage) if row.name == "i48" and code >> 63 else code
    if row.name != "i48" and row.signed and code >> (row.bits - 1):
        value = code - (1 << row.bits)
    if not row.low <= value <= row.high:
        raise ValueError(f"{code:#x} is no {row.name} code")
    return value


def decode(code: int, name: str) -> Value:
    """Return the exact value of `code` in the format called `name`."""
    row = fmt(name)
    if isinstance(row, Float):
        return decode_float(code, row)
    value = decode_int(code, row)
    return Value("finite", value < 0, Fraction(abs(value)))


def codes(name: str) -> range:
    """Return every code of a format of up to 16 bits; for bool every byte, since any nonzero one reads as true."""
    row = fmt(name)
    if name == "bool":
        return range(256)
    assert row.bits <= 16
    return range(1 << row.bits)


@cache
def codebook(name: str) -> tuple[tuple[Fraction, int], ...]:
    """Return (magnitude, code) of every finite non-negative number, by rising magnitude, and one step beyond it.

    The last entry lies one grid step past the largest finite number: rounding onto it is overflow.
    """
    row = FLOATS[name]
    finite = [(magnitude(code, row), code) for code in range(row.first_special)]
    if name == "hif8":  # 6F is infinity inside the range: 70..7F are finite
        finite += [(magnitude(code, row), code) for code in range(0x70, 0x80)]
    return (*sorted(finite), (magnitude(row.first_special, row), row.first_special))
