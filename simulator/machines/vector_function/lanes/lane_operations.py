"""Every register and predicate instruction but conversions, loads and stores: one row each.

A row says what the instruction takes and yields, on which element formats, and the function that computes it. The
verifier and the running of programs read the rows.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass

import numpy as np

from castsim.execution.vector_operations.elements import numbers
from castsim.execution.vector_operations.reductions import neutral_code, reduce_lanes
from castsim.isa.codes import Codes
from castsim.isa.errors import IllegalError
from castsim.isa.formats import FloatFormat, Format, IntFormat
from castsim.machines.vector_function.lanes import lane_arithmetic
from castsim.machines.vector_function.lanes.lane_arithmetic import behaviour
from castsim.machines.vector_function.lanes.vector_registers import (
    REGISTER_BYTES,
    Bits,
    Mask,
    Operands,
    Value,
    every_of_row,
    half_of,
    mask_of,
    register_of,
    signed,
)
from castsim.targets.dataflow import BLOCK_BYTES

# Predicate instructions (docs/reference/micro.md section 5).
#
# A predicate has 256 bits. Those of lanes of w bits are every (w / 8)-th; instructions that name no width work on all
# 256 alike.

_LENGTHS = (1, 2, 3, 4, 8, 16, 32, 64, 128)
PATTERNS = ("PAT_ALL", "PAT_ALLF", "PAT_H", "PAT_Q", "PAT_M3", "PAT_M4", *(f"PAT_VL{count}" for count in _LENGTHS))
"""The words of `pset` and `pge`."""


def counted(operands: Operands) -> tuple[Value, ...]:
    """`plt`: the first n lanes, and the count that is left, max(n - lanes, 0)."""
    (count,), width = operands.scalars, operands.width
    number = signed(count, 32)
    lanes = REGISTER_BYTES * 8 // width
    return mask_of(np.arange(lanes) < number, width), max(number - lanes, 0)


def counted_piece(operands: Operands) -> tuple[Value, ...]:
    """`pltm`: lane i where k * lanes + i < n."""
    (piece, count), width = operands.scalars, operands.width
    lanes = REGISTER_BYTES * 8 // width
    return (mask_of(signed(piece, 16) * lanes + np.arange(lanes) < signed(count, 32), width),)


def pattern(operands: Operands) -> tuple[Value, ...]:
    """`pset` and `pge`: the lanes that a word names.

    Raises:
        IllegalError: no such pattern.
    """
    (word,) = operands.words
    if word not in PATTERNS:
        raise IllegalError(f"no predicate pattern {word}", legal=PATTERNS)
    lanes = REGISTER_BYTES * 8 // operands.width
    lane = np.arange(lanes)
    if word in ("PAT_H", "PAT_Q"):
        count = lanes // (2 if word == "PAT_H" else 4)
        last = operands.target.option("micro_predicate_side") == "last"
        chosen = lane >= lanes - count if last else lane < count
    elif word in ("PAT_M3", "PAT_M4"):
        chosen = lane % int(word[-1]) == 0
    else:
        chosen = lane < {"PAT_ALL": lanes, "PAT_ALLF": 0}.get(word, int(word[6:]) if word[:6] == "PAT_VL" else 0)
    return (mask_of(chosen, operands.width),)


_LOGIC: Mapping[str, Callable[[Bits, Bits], Bits]] = {
    "pand": np.logical_and,
    "por": np.logical_or,
    "pxor": np.logical_xor,
}


def logic(operands: Operands) -> tuple[Value, ...]:
    """`pand`, `por`, `pxor`: bit by bit, 0 where the governing mask is 0."""
    one, two, mask = operands.masks
    bits = _LOGIC[operands.name](one.bits, two.bits) & mask.bits
    return (Mask(bits, (one.defined & two.defined | ~mask.bits) & mask.defined),)


def inverted(operands: Operands) -> tuple[Value, ...]:
    """`pnot`: every bit inverted, 0 where the governing mask is 0."""
    one, mask = operands.masks
    return (Mask(~one.bits & mask.bits, (one.defined | ~mask.bits) & mask.defined),)


def chosen(operands: Operands) -> tuple[Value, ...]:
    """`psel`: the bit of the first where the third is 1, of the second elsewhere."""
    one, two, which = operands.masks
    bits = np.where(which.bits, one.bits, two.bits)
    return (Mask(bits, np.where(which.bits, one.defined, two.defined) & which.defined),)


def packed(operands: Operands) -> tuple[Value, ...]:
    """`ppack`: bit 2i of the source is bit i of the named half; the other half is 0."""
    (source,) = operands.masks
    half = half_of(operands.words[0])
    bits, defined = np.zeros(REGISTER_BYTES, np.bool_), np.ones(REGISTER_BYTES, np.bool_)
    place = slice(half * REGISTER_BYTES // 2, (half + 1) * REGISTER_BYTES // 2)
    bits[place], defined[place] = source.bits[::2], source.defined[::2]
    return (Mask(bits, defined),)


def unpacked(operands: Operands) -> tuple[Value, ...]:
    """`punpack`: bit i of the named half is bit 2i of the result; odd bits are 0."""
    (source,) = operands.masks
    half = half_of(operands.words[0])
    place = slice(half * REGISTER_BYTES // 2, (half + 1) * REGISTER_BYTES // 2)
    return (mask_of(source.bits[place], 16, source.defined[place]),)


def interleaved(operands: Operands) -> tuple[Value, ...]:
    """`pintlv`: the lanes of both masks in turn; the first result has those of the lower halves."""
    one, two = operands.masks
    return _joined(operands.width, lambda a, b: np.stack((a, b), axis=1).ravel(), one, two)


def deinterleaved(operands: Operands) -> tuple[Value, ...]:
    """`pdintlv`: the even lanes of both masks laid end to end, and the odd ones."""
    one, two = operands.masks

    def parted(a: Bits, b: Bits) -> Bits:
        both = np.concatenate((a, b))
        return np.concatenate((both[::2], both[1::2]))

    return _joined(operands.width, parted, one, two)


def _joined(width: int, arrange: Callable[[Bits, Bits], Bits], one: Mask, two: Mask) -> tuple[Value, ...]:
    bits = arrange(one.lanes(width), two.lanes(width))
    defined = arrange(one.defined_lanes(width), two.defined_lanes(width))
    lanes = bits.size // 2
    return mask_of(bits[:lanes], width, defined[:lanes]), mask_of(bits[lanes:], width, defined[lanes:])


def same_bits(operands: Operands) -> tuple[Value, ...]:
    """`pbitcast`: another lane width for the same bits."""
    return (operands.masks[0],)


# Reductions of a register to one lane, and of its 32-byte blocks or neighbouring pairs to one lane each.
#
# Source: docs/reference/micro.md section 3.10.


def reduced(function: str, parts: int | None) -> Callable[[Operands], tuple[Value, ...]]:
    """A reduction (`add`, `max`, `min`) of equal parts of a register to as many leading lanes; the rest is 0.

    None parts: one for every two lanes.
    Inactive lanes take no part. Sums are rounded step by step in the result's format, in the order of option
    `lane_order`.
    """

    def run(operands: Operands) -> tuple[Value, ...]:
        (source,), (mask,), bits = operands.registers, operands.masks, operands.bits
        fmt = operands.result
        codes = _widened(source.lanes(bits), operands)
        active = mask.lanes(bits)
        groups = len(codes) // 2 if parts is None else parts
        rows = _without(function, fmt, codes.reshape(groups, -1), active.reshape(groups, -1))
        names = ("maximum_of_nan", "lane_order") if function != "add" else ("lane_order",)
        totals = reduce_lanes(function, rows, fmt, behaviour(function, fmt, operands, *names))
        lanes = REGISTER_BYTES // codes.dtype.itemsize
        result, defined = np.zeros(lanes, codes.dtype), np.ones(lanes, np.bool_)
        result[:groups] = totals
        known = (source.defined_lanes(bits) | ~active) & mask.defined_lanes(bits)
        defined[:groups] = every_of_row(known.reshape(groups, -1))
        return (register_of(result, defined),)

    return run


def _without(function: str, fmt: Format, codes: Codes, active: Bits) -> Codes:
    """Return rows of lanes with those that take no part made neutral: beside others a zero of a sum is -0."""
    neutral = np.full((len(codes), 1), neutral_code(function, fmt), codes.dtype)
    if isinstance(fmt, FloatFormat) and function == "add":
        neutral[active.any(axis=1)] = fmt.sign_bit
    return np.where(active, codes, neutral)


def _widened(codes: Codes, operands: Operands) -> Codes:
    """Return lanes as codes of the result's format, which may be a wider integer."""
    fmt = operands.result
    if not isinstance(operands.element, IntFormat) or fmt.bits == operands.element.bits:
        return codes
    wide: Codes = numbers(codes, operands.element).astype(np.int64).astype(f"<u{fmt.bits // 8}")
    return wide


BLOCKS = REGISTER_BYTES // BLOCK_BYTES


_INTEGERS = ("i8", "u8", "i16", "u16", "i32", "u32")
_FLOATS = ("f16", "bf16", "f32")
_NUMBERS = (*_INTEGERS, *_FLOATS)
_SPECIAL = ("f16", "f32")
_EIGHT_BITS = ("e4m3fn", "e5m2", "hif8", "e1m2", "e2m1")
_PAYLOADS = (*_NUMBERS, *_EIGHT_BITS)
_EVERY = (*_PAYLOADS, "i64", "u64")
_WORDS_32 = ("i32", "u32")
_PREDICATES: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Operation:
    """One instruction.

    `operands` are its forms, a letter per operand in the order of the text: `v` register, `m` mask, `s` scalar of the
    element format, `n` plain number (a count, a shift amount, a half), `w` word. A word may be left out where a form
    without it stands behind. `results`: `v`, `m`, and `n` for the count that `plt` leaves. `types` are the formats of
    the elements (none: masks only). `section` is that of
    docs/reference/micro.md.
    """

    name: str
    operands: tuple[str, ...]
    results: str
    types: tuple[str, ...]
    function: Callable[[Operands], tuple[Value, ...]]
    section: str
    result_types: Mapping[str, tuple[str, ...]] | None = None
    """Formats of the result by that of the element; None: the same."""


def _rows(names: str, operands: str, results: str, types: tuple[str, ...], section: str,
          function: Callable[[str], Callable[[Operands], tuple[Value, ...]]]) -> list[Operation]:  # fmt: skip
    """Return rows of instructions that differ in their function only: `vadd:add vsub:sub`."""
    pairs = (each.partition(":") for each in names.split())
    forms = tuple(operands.split())
    return [Operation(name, forms, results, types, function(what), section) for name, _, what in pairs]


_EXTENDED = {
    "i8": ("i16", "u16", "i8"), "u8": ("u16", "i16", "u8"),
    "i16": ("i32", "u32", "i16"), "u16": ("u32", "i32", "u16"),
}  # fmt: skip
_PACKED = {"i32": ("u16",), "u32": ("u16",), "i16": ("u8",), "u16": ("u8",)}
_SUMS = {
    **{name: (name,) for name in _NUMBERS},
    "i8": ("i16", "i8"), "u8": ("u16", "u8"), "i16": ("i32", "i16"), "u16": ("u32", "u16"),
}  # fmt: skip
_BITCAST = dict.fromkeys(_EVERY, _EVERY)
_EXPONENTIALS = {"f16": ("f32",), "f32": ("f32",)}

_elementwise = lane_arithmetic.elementwise
_bitwise = lane_arithmetic.bitwise

_TABLE: tuple[Operation, ...] = (
    *_rows("vadd:add vsub:sub vmul:mul vmax:max vmin:min", "vvm", "v", _NUMBERS, "3.6", _elementwise),
    *_rows("vadds:add vmuls:mul vmaxs:max vmins:min", "vsm", "v", _NUMBERS, "3.6", _elementwise),
    *_rows("vshl:shl vshr:shr", "vvm", "v", _INTEGERS, "3.6", _elementwise),
    *_rows("vshls:shl vshrs:shr", "vnm", "v", _INTEGERS, "3.6", _elementwise),
    *_rows("vdiv:div vprelu:prelu", "vvm", "v", _SPECIAL, "3.6", _elementwise),
    *_rows("vlrelu:prelu", "vsm", "v", _SPECIAL, "3.6", _elementwise),
    *_rows("vabs:abs vrelu:relu", "vm", "v", _NUMBERS, "3.6", _elementwise),
    *_rows("vexp:exp vln:log vsqrt:sqrt vrsqrt:rsqrt", "vm", "v", _SPECIAL, "3.6", _elementwise),
    *_rows("vaddrelu:add vsubrelu:sub", "vvm", "v", _NUMBERS, "3.6", lane_arithmetic.then_positive),
    *_rows("vand:and vor:or vxor:xor", "vvm", "v", _PAYLOADS, "3.6", _bitwise),
    *_rows("vnot:not", "vm", "v", _PAYLOADS, "3.6", _bitwise),
    Operation("vneg", ("vm",), "v", _NUMBERS, lane_arithmetic.negated, "3.6"),
    Operation("vrec", ("vm",), "v", _SPECIAL, lane_arithmetic.reciprocal, "3.6"),
    Operation("vmula", ("vvvm",), "v", _NUMBERS, lane_arithmetic.accumulated, "3.7"),
    Operation("vaxpy", ("vvsm",), "v", _SPECIAL, lane_arithmetic.accumulated, "3.7"),
    Operation("vexpdif", ("vvmw",), "v", _SPECIAL, lane_arithmetic.exponential_difference, "3.7", _EXPONENTIALS),
    *(Operation(name, ("vvm",), "vm", _WORDS_32, lane_arithmetic.with_carry, "3.7") for name in ("vaddc", "vsubc")),
    *(Operation(name, ("vvmm",), "vm", _WORDS_32, lane_arithmetic.with_carry, "3.7") for name in ("vaddcs", "vsubcs")),
    Operation("vmull", ("vvm",), "vv", _WORDS_32, lane_arithmetic.multiplied_long, "3.7"),
    Operation("vcmp", ("vvmw",), "m", _NUMBERS, lane_arithmetic.compared, "3.8"),
    Operation("vcmps", ("vsmw",), "m", _NUMBERS, lane_arithmetic.compared, "3.8"),
    Operation("vsel", ("vvm",), "v", _PAYLOADS, lane_arithmetic.selected, "3.8"),
    Operation("vselr", ("vv",), "v", _PAYLOADS, lane_arithmetic.gathered_lanes, "3.9"),
    Operation("vintlv", ("vv",), "vv", _PAYLOADS, lane_arithmetic.interleaved, "3.9"),
    Operation("vdintlv", ("vv",), "vv", _PAYLOADS, lane_arithmetic.deinterleaved, "3.9"),
    Operation("vbr", ("s",), "v", _PAYLOADS, lane_arithmetic.broadcast, "3.9"),
    Operation("vdup", ("smw", "sm", "vmw", "vm"), "v", _PAYLOADS, lane_arithmetic.duplicated, "3.9"),
    Operation("vci", ("sw", "s"), "v", ("i8", "i16", "i32", "f16", "f32"), lane_arithmetic.counted_up, "3.9"),
    Operation("vpack", ("vw",), "v", tuple(_PACKED), lane_arithmetic.packed, "3.9", _PACKED),
    *(
        Operation(name, ("vn", "vw"), "v", tuple(_EXTENDED), lane_arithmetic.unpacked, "3.9", _EXTENDED)
        for name in ("vsunpack", "vzunpack")
    ),
    Operation("vsqz", ("vm",), "v", _PAYLOADS, lane_arithmetic.squeezed, "3.9"),
    Operation("vusqz", ("vm",), "v", ("i8", "i16", "i32"), lane_arithmetic.active_below, "3.9"),
    Operation("vbitcast", ("v",), "v", _EVERY, lane_arithmetic.same_bytes, "3.9", _BITCAST),
    Operation("vcadd", ("vm",), "v", _NUMBERS, reduced("add", 1), "3.10", _SUMS),
    *_rows("vcmax:max vcmin:min", "vm", "v", _NUMBERS, "3.10", lambda what: reduced(what, 1)),
    *_rows("vcgadd:add vcgmax:max vcgmin:min", "vm", "v", _NUMBERS, "3.10",
           lambda what: reduced(what, BLOCKS)),
    Operation("vcpadd", ("vm",), "v", _SPECIAL, reduced("add", None), "3.10"),
    Operation("plt", ("n",), "mn", _PREDICATES, counted, "5.1"),
    Operation("pltm", ("nn",), "m", _PREDICATES, counted_piece, "5.1"),
    Operation("pset", ("w",), "m", _PREDICATES, pattern, "5.1"),
    Operation("pge", ("w",), "m", _PREDICATES, pattern, "5.1"),
    *(Operation(name, ("mmm",), "m", _PREDICATES, logic, "5.2") for name in ("pand", "por", "pxor")),
    Operation("pnot", ("mm",), "m", _PREDICATES, inverted, "5.2"),
    Operation("psel", ("mmm",), "m", _PREDICATES, chosen, "5.2"),
    Operation("ppack", ("mw",), "m", _PREDICATES, packed, "5.3"),
    Operation("punpack", ("mw",), "m", _PREDICATES, unpacked, "5.3"),
    Operation("pintlv", ("mm",), "mm", _PREDICATES, interleaved, "5.3"),
    Operation("pdintlv", ("mm",), "mm", _PREDICATES, deinterleaved, "5.3"),
    Operation("pbitcast", ("m",), "m", _PREDICATES, same_bits, "5.3"),
)  # fmt: skip

OPERATIONS: Mapping[str, Operation] = {row.name: row for row in _TABLE}
"""Rows by name; predicate instructions without the `_b8`, `_b16`, `_b32` that their text has."""


def execute(operands: Operands) -> tuple[Value, ...]:
    """Run the instruction that the operands name; return its results in the order of the text.

    Raises:
        IllegalError: no such instruction, a format that it does not take, or as the instruction's function says.
    """
    row = OPERATIONS.get(operands.name)
    if row is None:
        raise IllegalError(f"no instruction {operands.name}", legal=OPERATIONS)
    if row.types and operands.element.name not in row.types:
        raise IllegalError(f"{operands.name} does not take {operands.element.name}", legal=row.types)
    return row.function(operands)
