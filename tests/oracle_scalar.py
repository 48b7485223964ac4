"""The abstract cast of one element by exact rational arithmetic: slow, and meant to be obviously right.

A result is found by looking for the two neighbours of the exact value among the destination's numbers and choosing
one. Cells: docs/reference/formats.md section 6; E8M0: docs/reference/formats.md section 6 (rule onnx) and
docs/reference/pto.md section 6.2 (rule asl); HiF8 hybrid: docs/reference/formats.md section 2.
"""

from __future__ import annotations

from bisect import bisect_right
from dataclasses import dataclass, replace
from fractions import Fraction
from math import floor

from oracle_formats import INTS, Float, Int, Value, codebook, decode, fmt

NEAREST = ("rint", "round", "half_up")
DIRECTED = ("floor", "ceil", "trunc", "odd")
MODES = (*NEAREST, *DIRECTED)
HIF8_MODES = ("round", "floor", "ceil", "trunc", "hybrid")
OVERFLOWS = ("saturate", "wrap", "special")


class Refused(ValueError):  # noqa: N818 - it names the outcome, not a fault
    """The abstract cast does not offer this combination."""


@dataclass(frozen=True)
class Policy:
    """What a chip may change about the abstract cast; the defaults are the abstract cast.

    `nan`: code of every NaN result. `inf_wrap`: what infinity becomes under wrap. `clamp_bits`: the rounded value is
    clamped to a signed integer of that width before wrap takes its low bits. `random`: stochastic's word.
    `guard_exact`: exact values never move under stochastic. `e8m0`: rule for E8M0 destinations.
    """

    nan: int | None = None
    inf_wrap: int = 0
    clamp_bits: int | None = None
    random: int | None = None
    guard_exact: bool = True
    e8m0: str = "onnx"


ABSTRACT = Policy()


def defaults(src: str, dst: str, rounding: str | None, overflow: str | None, policy: Policy = ABSTRACT) -> tuple:
    """Fill in what docs/reference/formats.md section 6 gives when nothing is asked for."""
    to, source = fmt(dst), fmt(src)
    if rounding is None:
        up = "up" if policy.e8m0 == "onnx" else "rint"
        rounding = {"hif8": "round", "e8m0": up}.get(dst, "rint")
    if overflow is None:
        if isinstance(to, Int):
            overflow = "wrap" if isinstance(source, Int) else "saturate"
        else:
            overflow = "saturate" if dst == "e8m0" else "special"
    return rounding, overflow


def check(src: str, dst: str, rounding: str, overflow: str, policy: Policy = ABSTRACT) -> None:
    """Raise Refused for a combination that section 8 refuses, ValueError for a mode that does not exist."""
    if overflow not in OVERFLOWS:
        raise ValueError(overflow)
    if overflow == ("special" if dst in INTS else "wrap"):
        raise Refused(f"overflow {overflow} for destination {dst}")
    if dst == "hif8":
        legal = HIF8_MODES if src in ("f32", "f16") else HIF8_MODES[:-1]
    elif dst == "e8m0" and policy.e8m0 == "onnx":
        legal = ("up", "down", "nearest")
    elif dst == "e8m0":
        legal = MODES
    else:
        legal = (*MODES, "stochastic")
    if rounding not in legal:
        raise Refused(f"rounding {rounding} for {src} to {dst}")


def cast(code: int, src: str, dst: str, rounding: str | None = None, overflow: str | None = None, **policy) -> int:
    """Return the destination code of the source code; keywords are the fields of `Policy`."""
    rules = Policy(**policy)
    rounding, overflow = defaults(src, dst, rounding, overflow, rules)
    check(src, dst, rounding, overflow, rules)
    value = decode(code, src)
    row = fmt(dst)
    if value.kind == "finite" and not value.magnitude:
        rules = replace(rules, guard_exact=True)  # zero is passed on, not rounded (docs/reference/tpc.md section 5)
    if isinstance(row, Int):
        return cast_int(value, row, rounding, overflow, rules)
    if dst == "e8m0":
        return e8m0_onnx(value, rounding, overflow) if rules.e8m0 == "onnx" else e8m0_asl(value, rounding, overflow)
    if value.kind == "nan":
        return nan_code(value, row, rules)
    if value.kind == "inf":
        return overflow_code(value.negative, row, "rint", overflow)
    if rounding == "hybrid":
        return hybrid(code, value, src, overflow)
    return encode(value, row, rounding, overflow, rules)


# Float destinations


def signed(code: int, negative: bool, row: Float) -> int:
    """Attach a sign; a negative zero becomes zero where the format has none."""
    if code == 0 and not row.negative_zero:
        return 0
    return code | row.sign_code if negative else code


def nan_code(value: Value, row: Float, rules: Policy) -> int:
    if rules.nan is not None:
        return rules.nan
    if row.nan is None:
        return 0
    return row.nan | row.sign_code if value.negative and row.signed_nan else row.nan


def overflow_code(negative: bool, row: Float, rounding: str, overflow: str) -> int:
    """Return the result beyond the finite range: IEEE 754 section 7.4 by mode, or the largest finite number."""
    inward = rounding in ("trunc", "odd", "ceil" if negative else "floor")
    if overflow == "saturate" or inward:
        return signed(row.max_code, negative, row)
    if row.inf is not None:
        return signed(row.inf, negative, row)
    if row.nan is None:
        return signed(row.max_code, negative, row)
    return row.nan | row.sign_code if negative and row.signed_nan else row.nan


def floor_log2(magnitude: Fraction) -> int:
    """Return the exponent e with 2**e <= magnitude < 2**(e+1)."""
    exponent = magnitude.numerator.bit_length() - magnitude.denominator.bit_length()
    return exponent if Fraction(2) ** exponent <= magnitude else exponent - 1


def neighbours(magnitude: Fraction, row: Float) -> tuple[Fraction, int, Fraction, int]:
    """Return (value, code) of the largest number not above `magnitude` and of the next one.

    The grid continues with its last spacing beyond the largest finite number; codes past it are not usable as codes.
    """
    if row.bits <= 16:
        book = codebook(row.name)
        if magnitude >= book[-1][0]:
            return (*book[-1], *book[-1])
        index = bisect_right(book, magnitude, key=lambda entry: entry[0]) - 1
        return (*book[index], *book[index + 1])
    exponent = max(1 - row.bias, floor_log2(magnitude)) if magnitude else 1 - row.bias
    step = Fraction(2) ** (exponent - row.fraction_bits)
    count = floor(magnitude / step)
    # Subnormals and the first normal binade share one spacing; every later binade starts 2**fraction_bits codes on.
    code = count + ((exponent - (1 - row.bias)) << row.fraction_bits)
    return count * step, code, (count + 1) * step, code + 1


def goes_up(part: Fraction, low_is_odd: bool, negative: bool, rounding: str, rules: Policy = ABSTRACT) -> bool:
    """Decide for the larger magnitude. `part` in [0, 1) is the position between the two neighbours."""
    if rounding == "stochastic":
        if part == 0 and rules.guard_exact:
            return False
        assert rules.random is not None, "stochastic rounding is decided by a number"
        return floor(part * 2**32) >= rules.random
    if part == 0:
        return False
    half = Fraction(1, 2)
    return {
        "rint": part > half or (part == half and low_is_odd),
        "round": part >= half,
        "half_up": part > half or (part == half and not negative),
        "floor": negative,
        "ceil": not negative,
        "trunc": False,
        "odd": not low_is_odd,
    }[rounding]


def encode(value: Value, row: Float, rounding: str, overflow: str, rules: Policy = ABSTRACT) -> int:
    low, low_code, high, high_code = neighbours(value.magnitude, row)
    if low == high:  # at or beyond one step past the largest finite number
        return overflow_code(value.negative, row, rounding, overflow)
    part = (value.magnitude - low) / (high - low)
    code = high_code if goes_up(part, bool(low_code & 1), value.negative, rounding, rules) else low_code
    beyond = code == row.first_special if row.bits <= 16 else code >= row.first_special
    if beyond:
        return overflow_code(value.negative, row, rounding, overflow)
    return signed(code, value.negative, row)


def hybrid(code: int, value: Value, src: str, overflow: str) -> int:
    """HiF8's pseudo-stochastic rounding; f16 subnormals, on which the sources are silent, count as normalised."""
    row = fmt("hif8")
    source = fmt(src)
    assert isinstance(row, Float) and isinstance(source, Float)
    size = value.magnitude
    if size < Fraction(1, 2**23):
        return 0
    if Fraction(1, 8) <= size < 16:  # |E| <= 3
        return encode(value, row, "round", overflow)
    exponent = floor_log2(size)
    if exponent > 15:
        return overflow_code(value.negative, row, "rint", overflow)
    width = source.fraction_bits
    mantissa = int((size / Fraction(2) ** exponent - 1) * 2**width)
    if src == "f32":
        threshold, taken = mantissa & 0x3FFF, 14
    else:
        threshold, taken = (mantissa & 1) << 1 | 1, 2
    if exponent == -23:  # the implicit bit is the first dropped one
        dropped = (1 << (taken - 1)) | mantissa >> (width - taken + 1)
        return signed(1 if dropped >= threshold else 0, value.negative, row)
    kept = 2 if 4 <= abs(exponent) <= 7 else 1 if abs(exponent) <= 15 else 0
    dropped = (mantissa >> (width - kept - taken)) & ((1 << taken) - 1)
    _, low_code, _, high_code = neighbours(size, row)
    chosen = high_code if dropped >= threshold else low_code
    if chosen == row.first_special:
        return overflow_code(value.negative, row, "rint", overflow)
    return signed(chosen, value.negative, row)


def e8m0_onnx(value: Value, rounding: str, overflow: str) -> int:
    """ONNX Cast to float8e8m0: up, down, or nearest with ties up; docs/reference/semantics.md section 3.

    Not saturating: zero, infinity and everything that does not round into the range is NaN. Between 2**127 and 2**128
    the sources contradict each other under down and nearest: this judges overflow after rounding, as the evaluator
    of onnx does; onnxruntime judges before.
    """
    saturate = overflow == "saturate"
    if value.kind == "nan" or (value.negative and (value.kind == "inf" or value.magnitude)):
        return 0xFF
    if value.kind == "inf":
        return 0xFE if saturate else 0xFF
    size = value.magnitude
    if size < Fraction(1, 2**127):
        return 0x00 if saturate else 0xFF
    exponent = floor_log2(size)
    code, low = exponent + 127, Fraction(2) ** exponent
    up = {"up": size > low, "down": False, "nearest": size >= low * Fraction(3, 2)}[rounding]
    code += up
    if code <= 0xFE:
        return code
    return 0xFE if saturate else 0xFF


def e8m0_asl(value: Value, rounding: str, overflow: str) -> int:
    """E8M0 by the PTO specification: the exponent is rounded as a real number."""
    saturate = overflow == "saturate"
    if value.kind == "nan" or value.negative or (value.kind == "finite" and not value.magnitude):
        return 0xFF
    if value.kind == "inf":
        return 0xFE if saturate else 0xFF
    size = value.magnitude
    exponent = floor_log2(size)
    if exponent < -127:
        return 0x00 if saturate else 0xFF
    power = Fraction(2) ** exponent
    if exponent > 127 or (exponent == 127 and size != power):
        return 0xFE if saturate else 0xFF
    if size == power:
        return exponent + 127
    up = {
        "floor": False,
        "ceil": True,
        "trunc": exponent < 0,
        "odd": exponent % 2 == 0,
    }.get(rounding, (size / power) ** 2 > 2)
    return exponent + 127 + up


# Integer destinations


def round_integer(value: Value, rounding: str, rules: Policy = ABSTRACT) -> int:
    """Return the finite value rounded to an integer."""
    low = floor(value.magnitude)
    up = goes_up(value.magnitude - low, bool(low & 1), value.negative, rounding, rules)
    return -(low + up) if value.negative else low + up


def int_code(value: int, row: Int) -> int:
    return value & ((1 << (64 if row.name == "i48" else row.bits)) - 1)


def low_bits(value: int, row: Int) -> int:
    kept = value & ((1 << row.bits) - 1)
    if row.signed and kept >> (row.bits - 1):
        kept -= 1 << row.bits
    return int_code(kept, row)


def clamp(value: int, low: int, high: int) -> int:
    return max(low, min(high, value))


def cast_int(value: Value, row: Int, rounding: str, overflow: str, rules: Policy = ABSTRACT) -> int:
    if row.name == "bool":
        return int(value.kind != "finite" or value.magnitude != 0)
    if value.kind == "nan":
        return rules.nan or 0
    if value.kind == "inf":
        if overflow == "wrap":
            return rules.inf_wrap
        return int_code(row.low if value.negative else row.high, row)
    rounded = round_integer(value, rounding, rules)
    if overflow == "saturate":
        return int_code(clamp(rounded, row.low, row.high), row)
    if rules.clamp_bits is not None:
        limit = 1 << (rules.clamp_bits - 1)
        rounded = clamp(rounded, -limit, limit - 1)
    return low_bits(rounded, row)


def round_to_integral(code: int, name: str, rounding: str, overflow: str = "special") -> int:
    """Round a float code to an integral value of the same format; NaN becomes the canonical one."""
    row = fmt(name)
    assert isinstance(row, Float)
    value = decode(code, name)
    if value.kind == "nan":
        return nan_code(value, row, ABSTRACT)
    if value.kind == "inf":
        return overflow_code(value.negative, row, "rint", overflow)
    rounded = Value("finite", value.negative, Fraction(abs(round_integer(value, rounding))))
    # Only overflow can remain: a format that lacks an integer within its range has no fractions near it either.
    return encode(rounded, row, rounding, overflow)
