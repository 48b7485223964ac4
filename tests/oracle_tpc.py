"""The oracle of TPC instructions: values by exact rational arithmetic, lanes one at a time.

Rules transcribed from docs/reference/tpc.md section 2 (lanes, shifts), 5 (conversions) and 5.1 (arithmetic); imports
nothing from the product. Codes are unsigned integers.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from fractions import Fraction
from functools import cache
from math import floor

from oracle_formats import FLOATS, INTS, Float, Int, Value, decode, fmt, magnitude
from oracle_scalar import Policy, cast_int, clamp, encode, goes_up, int_code, overflow_code, round_integer, signed

ROUNDINGS = {
    "RHNE": "rint", "RZ": "trunc", "RU": "ceil", "RD": "floor", "RHAZ": "round", "SR": "stochastic",
    "SR_RNE": "stochastic",
}  # fmt: skip
"""docs/reference/tpc.md section 2.3."""

NAN = {"f32": 0x7FFFFFFF, "bf16": 0x7FFF, "f16": 0x7FFF, "f8_143": 0x7F, "f8_152": 0x7F}
"""NaN results of conversions and arithmetic: docs/reference/tpc.md sections 5 and 5.1."""

VECTOR_BYTES = 256
WORDS = 64


def named(name: str, bias: int) -> str:
    """Return the oracle's name of a format under a setting of the f8_143 bias register."""
    return f"f8_143@{bias}" if name == "f8_143" and bias != 7 else name


# --------------------------------------------------------------------------------------------------- CONVERT: values

_decoded = cache(decode)


@cache
def convert(
    code: int, src: str, dst: str, mode: str, random: int | None = None, *, clip: bool = False, bias: int = 7
) -> int:
    """Return what CONVERT makes of one code; `random` is the word of SR and SR_RNE."""
    src, row = named(src, bias), fmt(named(dst, bias))
    value, rounding, rules = _decoded(code, src), ROUNDINGS[mode], Policy(random=random)
    if isinstance(row, Int):
        return cast_int(value, row, rounding, "saturate", rules)  # NaN gives 0, the default of option nan_to_integer
    if value.kind == "nan":
        return code << 16 if (src, dst) == ("bf16", "f32") else NAN[dst]
    overflow = "saturate" if clip else "special"
    if value.kind == "inf":
        return overflow_code(value.negative, row, "rint", overflow)
    if rounding == "stochastic":
        smallest = _smallest(row)
        if mode == "SR_RNE" and value.magnitude < smallest * 2**row.fraction_bits:
            return encode(value, row, "rint", overflow)
        # Below half the smallest subnormal the discarded bits count as 0; f32 -> bf16 discards 16 bits of the pattern,
        # of subnormals as well. Integers are never that small.
        if src in FLOATS and dst != "bf16" and 0 < 2 * value.magnitude < smallest:
            return signed(1 if random == 0 else 0, value.negative, row)
    return encode(value, row, rounding, overflow, rules)


@cache
def _smallest(row: Float) -> Fraction:
    """Return the smallest subnormal number."""
    return magnitude(1, row)


@cache
def convert_int(code: int, src: str, dst: str, shift: int, mode: str, random: int | None = None) -> int:
    """Return what CONVERT_INT* makes of one code: value * 2**shift, rounded once, saturated."""
    value, row = _decoded(code, src), fmt(dst)
    assert isinstance(row, Int)
    shifted = Value("finite", value.negative, value.magnitude * Fraction(2) ** shift)
    return int_code(clamp(round_integer(shifted, ROUNDINGS[mode], Policy(random=random)), row.low, row.high), row)


@cache
def nearby(code: int, name: str, mode: str, random: int | None = None, bias: int = 7) -> int:
    """Return a float code rounded to an integral value of its format."""
    row = fmt(named(name, bias))
    assert isinstance(row, Float)
    value = _decoded(code, row.name)
    if value.kind == "nan":
        return NAN[name]
    if value.kind == "inf":
        return code
    rounding = ROUNDINGS[mode]
    whole = Value("finite", value.negative, Fraction(abs(round_integer(value, rounding, Policy(random=random)))))
    return encode(whole, row, "rint" if rounding == "stochastic" else rounding, "special")


# ------------------------------------------------------------------------------------------------------------ lanes


def element(registers: list[bytes], index: int, bits: int) -> int:
    """Return element `index` of registers laid end to end."""
    whole = b"".join(registers)
    if bits == 4:
        return whole[index // 2] >> 4 * (index % 2) & 0xF
    size = bits // 8
    return int.from_bytes(whole[index * size : (index + 1) * size], "little")


def put(registers: list[bytearray], register: int, index: int, bits: int, code: int) -> None:
    """Write element `index` of one register."""
    if bits == 4:
        keep = 0xF0 if index % 2 == 0 else 0x0F
        old = registers[register][index // 2]
        registers[register][index // 2] = old & keep | code << 4 * (index % 2)
        return
    size = bits // 8
    registers[register][index * size : (index + 1) * size] = code.to_bytes(size, "little")


def conversions(src_bits: int, dst_bits: int, lane: int | None, registers: int) -> Iterator[tuple[int, ...]]:
    """Yield (source register, source element, destination register, destination element, narrow element, number).

    docs/reference/tpc.md section 2.2, one conversion at a time; `lane` None is all_lanes. The number chooses the random
    word.
    """
    wide = VECTOR_BYTES * 8 // max(src_bits, dst_bits)
    ratio = max(src_bits, dst_bits) // min(src_bits, dst_bits)
    if ratio == 1:
        for register in range(registers):
            for i in range(wide):
                yield register, i, register, i, i, i
        return
    for i in range(wide):
        for k in range(ratio) if lane is None else (lane,):
            narrow = ratio * i + k
            number = i if lane is not None else narrow
            group = k if lane is None else 0
            if dst_bits < src_bits:
                yield group, i, 0, narrow, narrow, number
            else:
                yield 0, narrow, group, i, narrow, number


def convert_lanes(
    sources: list[bytes],
    income: list[bytes],
    bits: tuple[int, int],
    lane: int | None,
    mask: list[bool] | None,
    one: Callable[[int, int, int, int, int], int],
) -> list[bytes]:
    """Return destination registers; `one(code, number, source element, destination element, source register)`."""
    out = [bytearray(register) for register in income]
    registers = len(sources) if bits[0] == bits[1] else 1
    lanes = range(VECTOR_BYTES * 8 // bits[0])
    read = [[element([register], index, bits[0]) for index in lanes] for register in sources]
    for source, place, target, where, narrow, number in conversions(*bits, lane, registers):
        if mask is None or mask[narrow * min(bits) // 8]:
            put(out, target, where, bits[1], one(read[source][place], number, place, where, source))
    return [bytes(register) for register in out]


def stepped(words: list[int], polynomial: int) -> list[int]:
    """Return 32-bit Galois registers after one step (docs/reference/tpc.md section 5)."""
    return [word >> 1 ^ (polynomial if word & 1 else 0) for word in words]


# ------------------------------------------------------------------------------------------------------- arithmetic


def _settled(negative: bool, exact: Fraction, row: Float, name: str, mode: str, flush: bool) -> int:
    rounding = ROUNDINGS[mode]
    code = encode(Value("finite", negative, abs(exact)), row, rounding, "special")
    size = code & (row.sign_code - 1)
    smallest = 1 << row.fraction_bits
    if flush and 0 < size < smallest:
        grows = (mode == "RU" and not negative) or (mode == "RD" and negative)
        return signed(smallest if grows else 0, negative, row)
    return code


def _operand(code: int, row: Float, flush: bool) -> Value:
    value = _decoded(code, row.name)
    if flush and value.kind == "finite" and value.magnitude < magnitude(1 << row.fraction_bits, row):
        return Value("finite", value.negative)
    return value


def float_operation(
    operation: str, a: int, b: int, name: str, mode: str, *, flush: bool, flush_in: bool = False, bias: int = 7
) -> int:
    """Return ADD, SUB or MUL of float codes: exact, one rounding, subnormals flushed in and out where asked."""
    row = fmt(named(name, bias))
    assert isinstance(row, Float)
    x, y = (_operand(code, row, flush or flush_in) for code in (a, b))
    if operation == "sub":
        y = Value(y.kind, not y.negative, y.magnitude)
    if "nan" in (x.kind, y.kind):
        return NAN[name]
    if operation == "mul":
        negative = x.negative != y.negative
        if "inf" in (x.kind, y.kind):
            zero = any(one.kind == "finite" and not one.magnitude for one in (x, y))
            return NAN[name] if zero else overflow_code(negative, row, "rint", "special")
        return _settled(negative, x.magnitude * y.magnitude, row, name, mode, flush)
    if "inf" in (x.kind, y.kind):
        if x.kind == y.kind and x.negative != y.negative:
            return NAN[name]
        return overflow_code(x.negative if x.kind == "inf" else y.negative, row, "rint", "special")
    total = sum((-one.magnitude if one.negative else one.magnitude for one in (x, y)), Fraction(0))
    if total == 0:
        alike = x.negative == y.negative
        return signed(0, x.negative if alike else mode == "RD", row)
    return _settled(total < 0, total, row, name, mode, flush)


def fused(
    a: int,
    b: int,
    c: int,
    name: str,
    wide: str,
    mode: str,
    *,
    flush: bool = True,
    flush_in: bool = False,
    negate: bool = False,
) -> int:
    """Return c + a * b, or c - a * b, of factors of one float format and an addend of another, rounded once.

    `flush` is for f32 and bf16 (docs/reference/tpc.md section 5.3); `flush_in` is the switch of f16.
    """  # fmt: skip
    row, dst = fmt(name), fmt(wide)
    assert isinstance(row, Float) and isinstance(dst, Float)
    flushed, wide_flushed = (flush and one in ("f32", "bf16") for one in (name, wide))
    x, y = (_operand(code, row, flushed or flush_in) for code in (a, b))
    z = _operand(c, dst, wide_flushed or (flush_in and wide == name))
    kinds = {x.kind, y.kind, z.kind}
    if "nan" in kinds:
        return NAN[wide]
    negative = (x.negative != y.negative) != negate
    if "inf" in (x.kind, y.kind):
        if any(one.kind == "finite" and not one.magnitude for one in (x, y)):
            return NAN[wide]
        if z.kind == "inf" and z.negative != negative:
            return NAN[wide]
        return overflow_code(negative, dst, "rint", "special")
    if z.kind == "inf":
        return overflow_code(z.negative, dst, "rint", "special")
    product = x.magnitude * y.magnitude
    total = (-product if negative else product) + (-z.magnitude if z.negative else z.magnitude)
    if total == 0:
        return signed(0, z.negative if negative == z.negative else mode == "RD", dst)
    return _settled(total < 0, total, dst, wide, mode, wide_flushed)


def number(code: int, name: str) -> int:
    """Return the number of an integer code."""
    row = INTS[name]
    return code - (1 << row.bits) if row.signed and code >> (row.bits - 1) else code


def pattern(value: int, name: str) -> int:
    """Return the low bits of a number."""
    return value & ((1 << INTS[name].bits) - 1)


def integer_operation(
    operation: str, a: int, b: int, name: str, *, saturate: bool = False, negate: bool = False
) -> int:
    """Return ADD or SUB of integer codes."""
    row = INTS[name]
    total = number(a, name) + (number(b, name) if operation == "add" else -number(b, name))
    total = -total if negate else total
    return pattern(clamp(total, row.low, row.high) if saturate else total, name)


def arithmetic_shift(code: int, amount: int, name: str, *, half_up: bool, saturate: bool = True) -> int:
    """Return a * 2**b: to the right rounded down, or to nearest with halves up."""
    row = INTS[name]
    exact = Fraction(number(code, name)) * Fraction(2) ** amount
    whole = floor(exact + Fraction(1, 2)) if half_up else floor(exact)
    return pattern(clamp(whole, row.low, row.high) if saturate else whole, name)


__all__ = [
    "NAN", "ROUNDINGS", "arithmetic_shift", "conversions", "convert", "convert_int", "convert_lanes", "element",
    "float_operation", "fused", "goes_up", "integer_operation", "nearby", "number", "pattern", "put", "stepped",
]  # fmt: skip
