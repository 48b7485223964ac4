"""Number formats as rows, and the modes of casts between them.

A format is data: widths, bias and special codes. No other code may test a format's name to decide
what to do; it reads the properties below. Definitions follow docs/reference/formats.md sections 1 to 3 (OCP 8-bit
and MX formats, arXiv 2409.16626 for HiFloat8, docs/reference/tpc.md section 5 for f8_143 and f8_152).
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from enum import Enum, StrEnum
from functools import cached_property
from typing import TYPE_CHECKING, Protocol, TypeAlias

from castsim.isa.errors import ReadError

if TYPE_CHECKING:
    from typing import Any

    from numpy.typing import NDArray

Codes: TypeAlias = "NDArray[Any]"
"""An array of codes of some format; the width of a code determines its unsigned element type."""


class Specials(Enum):
    """The non-finite codes of a float format."""

    IEEE = "ieee"
    """Exponent field all ones: infinity with fraction 0, NaN otherwise."""
    NAN_ALL_ONES = "nan all ones"
    """No infinity; only exponent and fraction all ones is NaN (the suffix fn)."""
    NAN_NEGATIVE_ZERO = "nan at negative zero"
    """No infinity, no negative zero; its code is the single NaN (the suffix fnuz)."""
    NONE = "none"
    """Every code is a finite number."""


class _HasBits(Protocol):
    @property
    def bits(self) -> int:
        """Width of a code."""
        ...


class _Stored:
    """A format whose codes are stored one per array element."""

    @property
    def storage_bits(self: _HasBits) -> int:
        """Width of the array element for one code: 8, 16, 32 or 64 (int48 is stored in 64)."""
        return max(8, 1 << (self.bits - 1).bit_length())


@dataclass(frozen=True)
class FloatFormat(_Stored):
    """A binary float of sign, exponent and fraction fields.

    `has_zero` is False for pure exponent formats (e8m0): code 0 is then the smallest power of two, not zero.
    `nan_override` replaces the canonical NaN code derived from `specials`. `dtype` names its numbers in NumPy or
    ml_dtypes; a register of `bias_bits` bits may set the bias.
    """

    name: str
    exponent_bits: int
    fraction_bits: int
    bias: int
    specials: Specials = Specials.IEEE
    signed: bool = True
    has_zero: bool = True
    nan_override: int | None = None
    dtype: str | None = None
    bias_bits: int = 0

    @property
    def bits(self) -> int:
        """Width of a code."""
        return self.signed + self.exponent_bits + self.fraction_bits

    @property
    def exponent_mask(self) -> int:
        """The exponent field all ones, right-aligned."""
        return (1 << self.exponent_bits) - 1

    @property
    def fraction_mask(self) -> int:
        """The fraction field all ones."""
        return (1 << self.fraction_bits) - 1

    @property
    def sign_bit(self) -> int:
        """Code of the sign bit alone; 0 for unsigned formats."""
        return 1 << (self.bits - 1) if self.signed else 0

    @property
    def min_exponent(self) -> int:
        """Exponent of the smallest normal number."""
        return 1 - self.bias if self.has_zero else -self.bias

    @property
    def has_infinity(self) -> bool:
        """Whether the format encodes infinities."""
        return self.specials is Specials.IEEE

    @property
    def has_nan(self) -> bool:
        """Whether the format encodes NaN."""
        return self.specials is not Specials.NONE

    @property
    def nan_has_sign(self) -> bool:
        """Whether both signs of NaN exist."""
        return self.signed and self.specials in (Specials.IEEE, Specials.NAN_ALL_ONES)

    @property
    def has_negative_zero(self) -> bool:
        """Whether minus zero has a separate code."""
        return self.signed and self.has_zero and self.specials is not Specials.NAN_NEGATIVE_ZERO

    @property
    def infinity_code(self) -> int | None:
        """Code of plus infinity, None if there is none."""
        return self.exponent_mask << self.fraction_bits if self.has_infinity else None

    @property
    def nan_code(self) -> int | None:
        """The canonical (positive, quiet) NaN, None if there is none."""
        if self.nan_override is not None:
            return self.nan_override
        if self.specials is Specials.IEEE:
            return (self.exponent_mask << self.fraction_bits) | (1 << (self.fraction_bits - 1))
        if self.specials is Specials.NAN_ALL_ONES:
            return (1 << (self.exponent_bits + self.fraction_bits)) - 1
        if self.specials is Specials.NAN_NEGATIVE_ZERO:
            return self.sign_bit
        return None

    @cached_property
    def max_finite_code(self) -> int:
        """Code of the largest finite number."""
        top = (1 << (self.exponent_bits + self.fraction_bits)) - 1
        if self.specials is Specials.IEEE:
            return (self.exponent_mask << self.fraction_bits) - 1
        return top - 1 if self.specials is Specials.NAN_ALL_ONES else top


@dataclass(frozen=True, slots=True)
class Binade:
    """The codes of one power of two in a tapered format: `first_code` has fraction 0, the rest follow it."""

    exponent: int
    first_code: int
    fraction_bits: int


@dataclass(frozen=True)
class TaperedFormat(_Stored):
    """A float format whose fraction width depends on the binade (HiFloat8).

    `binades` lists the positive numbers by rising exponent; a negative number has the top bit set as well. Code 0 is
    the only zero. `infinity_code` lies in the last binade; `nan_code` is the code that minus zero would have.
    """

    name: str
    bits: int
    binades: tuple[Binade, ...]
    infinity_code: int
    nan_code: int
    signed: bool = True
    has_zero: bool = True
    has_infinity: bool = True
    has_nan: bool = True
    nan_has_sign: bool = False
    has_negative_zero: bool = False
    dtype: None = None

    @property
    def sign_bit(self) -> int:
        """Code of the sign bit alone."""
        return 1 << (self.bits - 1)

    @property
    def max_finite_code(self) -> int:
        """The code of the largest finite number, directly before infinity."""
        return self.infinity_code - 1


@dataclass(frozen=True)
class IntFormat(_Stored):
    """A two's complement or unsigned integer; `boolean` integers read any nonzero value as 1.

    `dtype` is the name of its numbers in NumPy or ml_dtypes, or that of the next wider integer.
    """

    name: str
    bits: int
    signed: bool
    dtype: str
    boolean: bool = False

    @property
    def minimum(self) -> int:
        """Smallest value."""
        return -(1 << (self.bits - 1)) if self.signed else 0

    @property
    def maximum(self) -> int:
        """Largest value."""
        return (1 << (self.bits - self.signed)) - 1


Format = FloatFormat | TaperedFormat | IntFormat


def _hif8_binades() -> tuple[Binade, ...]:
    """Unfold the six prefix classes of HiFloat8 into binades by rising exponent.

    Source: docs/reference/formats.md section 2.
    """
    denormal = [Binade(code - 23, code, 0) for code in range(1, 8)]
    normal = [Binade(0, 0x08, 3), Binade(1, 0x10, 3), Binade(-1, 0x18, 3)]
    # dot class: first code, smallest |E|, magnitude bits of the exponent field, fraction bits
    for first, smallest, magnitude_bits, fraction_bits in ((0x20, 2, 1, 3), (0x40, 4, 2, 2), (0x60, 8, 3, 1)):
        for step in range(1 << magnitude_bits):
            code = first | step << fraction_bits
            negative = code | 1 << (magnitude_bits + fraction_bits)
            normal.append(Binade(smallest + step, code, fraction_bits))
            normal.append(Binade(-(smallest + step), negative, fraction_bits))
    return tuple(sorted(denormal + normal, key=lambda binade: binade.exponent))


_ROWS: tuple[Format, ...] = (
    FloatFormat("f64", 11, 52, 1023, dtype="float64"),
    FloatFormat("f32", 8, 23, 127, dtype="float32"),
    FloatFormat("f16", 5, 10, 15, dtype="float16"),
    FloatFormat("bf16", 8, 7, 127, dtype="bfloat16"),
    FloatFormat("e4m3fn", 4, 3, 7, Specials.NAN_ALL_ONES, dtype="float8_e4m3fn"),
    FloatFormat("e4m3fnuz", 4, 3, 8, Specials.NAN_NEGATIVE_ZERO, dtype="float8_e4m3fnuz"),
    FloatFormat("e5m2", 5, 2, 15, dtype="float8_e5m2"),
    FloatFormat("e5m2fnuz", 5, 2, 16, Specials.NAN_NEGATIVE_ZERO, dtype="float8_e5m2fnuz"),
    FloatFormat("e8m0", 8, 0, 127, Specials.NAN_ALL_ONES, signed=False, has_zero=False, dtype="float8_e8m0fnu"),
    FloatFormat("e3m2", 3, 2, 3, Specials.NONE, dtype="float6_e3m2fn"),
    FloatFormat("e2m3", 2, 3, 1, Specials.NONE, dtype="float6_e2m3fn"),
    FloatFormat("e2m1", 2, 1, 1, Specials.NONE, dtype="float4_e2m1fn"),
    FloatFormat("e1m2", 1, 2, 1, Specials.NONE),
    TaperedFormat("hif8", 8, _hif8_binades(), infinity_code=0x6F, nan_code=0x80),
    FloatFormat("f8_143", 4, 3, 7, nan_override=0x7F, bias_bits=4),
    FloatFormat("f8_152", 5, 2, 15, nan_override=0x7F),
    *(
        IntFormat(f"{'i' if signed else 'u'}{bits}", bits, signed, f"{'' if signed else 'u'}int{bits}")
        for bits in (2, 4, 8, 16, 32, 64)
        for signed in (True, False)
    ),
    IntFormat("i48", 48, True, "int64"),
    IntFormat("bool", 1, False, "bool", boolean=True),
)

FORMATS: dict[str, Format] = {row.name: row for row in _ROWS}
"""Every format by its own name."""

_ALIASES: dict[str, str] = {
    "fp64": "f64", "double": "f64",
    "fp32": "f32", "float": "f32", "single": "f32",
    "fp16": "f16", "half": "f16",
    "e4m3": "e4m3fn", "fp8_e4m3": "e4m3fn", "fp8_e4m3fn": "e4m3fn", "f8e4m3fn": "e4m3fn",
    "fp8_e4m3fnuz": "e4m3fnuz",
    "fp8_e5m2": "e5m2", "f8e5m2": "e5m2",
    "fp8_e5m2fnuz": "e5m2fnuz",
    "e8m0fnu": "e8m0", "fp8_e8m0": "e8m0",
    "fp6_e3m2": "e3m2", "fp6_e2m3": "e2m3", "e3m2fn": "e3m2", "e2m3fn": "e2m3",
    "fp4_e2m1": "e2m1", "e2m1fn": "e2m1", "e2m1x2": "e2m1", "fp4_e2m1x2": "e2m1", "f4e2m1x2": "e2m1",
    "fp4_e1m2": "e1m2", "e1m2x2": "e1m2", "fp4_e1m2x2": "e1m2", "f4e1m2x2": "e1m2",
    "h8": "hif8", "hifloat8": "hif8",
    "fp8_143": "f8_143", "fp8_152": "f8_152",
    "boolean": "bool", "i1": "bool",
}  # fmt: skip
_ALIASES |= {row.dtype: row.name for row in reversed(_ROWS) if row.dtype is not None}
for _bits in (2, 4, 8, 16, 32, 64, 48):
    for _prefix in ("s", "si", "int"):
        _ALIASES[f"{_prefix}{_bits}"] = f"i{_bits}"
    for _prefix in ("ui", "uint"):
        if _bits != 48:
            _ALIASES[f"{_prefix}{_bits}"] = f"u{_bits}"


def format_named(text: str) -> Format:
    """Return the format with the name `text`.

    Accepts every name and alias in any case, and `NAME@BIAS` for an IEEE-like 8-bit format with a settable exponent
    bias (`f8_143@11`).

    Raises:
        ReadError: the format does not exist (the message lists the legal names), or its bias cannot be set.
    """
    name, at, bias_text = text.strip().lower().partition("@")
    name = _ALIASES.get(name, name)
    if name not in FORMATS:
        raise ReadError(f"unknown format '{text}'", legal=FORMATS)
    fmt = FORMATS[name]
    if not at:
        return fmt
    if not isinstance(fmt, FloatFormat) or not fmt.bias_bits:
        able = [row.name for row in _ROWS if isinstance(row, FloatFormat) and row.bias_bits]
        legal = [f"{settable}@BIAS" for settable in able]
        raise ReadError(f"format '{text}': only {', '.join(able)} has a settable bias", legal=legal)
    most = 2**fmt.bias_bits - 1
    if not bias_text.isdecimal() or int(bias_text) > most:
        legal = [f"{name}@0 to {name}@{most}"]
        raise ReadError(f"format '{text}': the bias register holds 0 to {most}", legal=legal)
    bias = int(bias_text)
    return fmt if bias == fmt.bias else replace(fmt, name=f"{name}@{bias}", bias=bias)


# Rounding, overflow and saturation: the union of what all targets and specifications have, one meaning each.
#
# Which of them a target offers, and under which name, is up to the target; the meaning is defined in
# docs/reference/formats.md section 6 and executed by `castsim.numerics.rounding`.


class Rounding(StrEnum):
    """The choice between the two representable neighbours of a value."""

    RINT = "rint"
    """Nearest, ties to even."""
    ROUND = "round"
    """Nearest, ties away from zero."""
    FLOOR = "floor"
    """Toward minus infinity."""
    CEIL = "ceil"
    """Toward plus infinity."""
    TRUNC = "trunc"
    """Toward zero."""
    ODD = "odd"
    """Von Neumann rounding: an inexact result gets 1 as its last kept bit."""
    HALF_UP = "half_up"
    """Nearest, ties toward plus infinity."""
    STOCHASTIC = "stochastic"
    """Magnitude up iff the dropped bits, left-aligned to 32, are at least a random word."""
    HYBRID = "hybrid"
    """HiFloat8 only: ties away near one, pseudo-stochastic by the source's own low bits elsewhere."""


DETERMINISTIC = (
    Rounding.RINT,
    Rounding.ROUND,
    Rounding.FLOOR,
    Rounding.CEIL,
    Rounding.TRUNC,
    Rounding.ODD,
    Rounding.HALF_UP,
)
"""The modes whose result depends only on kept bits, half bit, sticky bit and sign."""


class Overflow(StrEnum):
    """The treatment of a result beyond the destination's finite range."""

    SATURATE = "saturate"
    """The extreme with the sign of the value; also for infinities."""
    WRAP = "wrap"
    """The low bits of the rounded integer; integer destinations only."""
    SPECIAL = "special"
    """As in IEEE 754: infinity, NaN or the largest finite value by mode and format; float destinations only."""


class Saturation(StrEnum):
    """The two-valued switch that instruction sets offer; the meaning of OFF depends on target and type pair."""

    ON = "on"
    OFF = "off"


def code_bits(fmt: Format) -> int:
    """Return the number of storage bits that a code uses.

    Codes below a byte leave the upper bits 0; a wider integer that does not fill its storage (i48) is sign-extended.
    """
    return fmt.storage_bits if isinstance(fmt, IntFormat) and fmt.bits > 8 else fmt.bits
