"""Every register and predicate instruction except conversions, loads and stores: the function that computes it.

Their forms and the formats of their elements are rows of `castsim.isa.pto.micro_forms`.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

import numpy as np

from castsim.execution.vector_operations.arithmetic import apply, clamped, neutral_code, reduce_lanes
from castsim.execution.vector_operations.shapes import Numbers, encoded, numbers
from castsim.execution.vector_operations.target_rules import LANE_OPTIONS, Behaviour, lane_behaviour
from castsim.isa.errors import IllegalError
from castsim.isa.formats import Codes, FloatFormat, Format, IntFormat
from castsim.isa.pto.micro_forms import ROWS
from castsim.machines.vector_function.function_operations import Index, deinterleave_maps, interleave_maps
from castsim.machines.vector_function.vector_registers import (
    REGISTER_BYTES,
    Bits,
    Operands,
    PredicateRegister,
    Value,
    VectorRegister,
    every_of_row,
    half_of,
    leading_lanes,
    low_bits,
    mask_of,
    masked,
    register_of,
    signed,
)
from castsim.targets.dataflow import BLOCK_BYTES

LaneFunction = Callable[[Operands], tuple[Value, ...]]

# Element-wise arithmetic, comparison and selection of registers (docs/reference/micro.md sections 3.6 to 3.8).
#
# What a function makes of its elements is what tile operations make of theirs (`castsim.execution.vector_operations`);
# here are lanes, masks and what is defined.


def behaviour(function: str, fmt: Format, operands: Operands, *names: str) -> Behaviour:
    """Return the target's part in a function that reads these options.

    Results clamp like those of tile operations under the CTRL of this instruction (docs/reference/pto.md section 7.1).
    """
    target = operands.target
    return lane_behaviour(target, function, fmt.name, operands.ctrl, target.control.options, names)


def compute(function: str, codes: Sequence[Codes], fmt: Format, operands: Operands) -> Codes:
    """Return the codes of a function of lanes of one format (`add`, `max`, `exp`, ...), in the form of `operands`."""
    return apply(function, codes, fmt, behaviour(function, fmt, operands, *LANE_OPTIONS.get(function, ())))


def scalar_codes(operands: Operands) -> list[Codes]:
    """Return each scalar operand as an array of one code."""
    dtype = f"<u{operands.bits // 8}"
    return [np.array([low_bits(value, operands.bits)], dtype) for value in operands.scalars]


def elementwise(function: str) -> LaneFunction:
    """Apply a function to the register operands, then the scalar; lanes without mask bit become 0."""

    def run(operands: Operands) -> tuple[Value, ...]:
        scalars = [_amount(operands)] if function in ("shl", "shr") and operands.scalars else scalar_codes(operands)
        sources = (*operands.lanes, *scalars)
        codes = compute(function, sources, operands.element, operands)
        if function not in ("shl", "shr"):
            return _lanewise(operands, codes)
        # No source defines shifts by the width or more; a negative amount is a large code.
        doubtful = np.broadcast_to(sources[1], codes.shape) >= operands.element.bits
        return (masked(codes, _defined(operands) & ~doubtful, operands.masks[-1]),)

    return run


def _amount(operands: Operands) -> Codes:
    """Return the amount of a scalar shift, which is an i16, as an element; amounts beyond the width stay so."""
    bits, amount = operands.bits, signed(operands.scalars[0], 16)
    kept = amount if 0 <= amount < bits else bits + amount % bits
    return np.array([kept], f"<u{bits // 8}")


def _defined(operands: Operands) -> Bits:
    """Return the lanes that are defined in every register operand."""
    first, *others = (register.defined_lanes(operands.bits) for register in operands.registers)
    for marks in others:
        first = first & marks
    return first


def _lanewise(operands: Operands, codes: Codes) -> tuple[Value, ...]:
    """Return the register of results that depend on the same lane of every register, under the last mask."""
    return (masked(codes, _defined(operands), operands.masks[-1]),)


def bitwise(function: str) -> LaneFunction:
    """Apply a function to the bits of lanes, whatever their format."""
    pure: Mapping[str, Callable[..., Codes]] = {
        "and": np.bitwise_and,
        "or": np.bitwise_or,
        "xor": np.bitwise_xor,
        "not": np.invert,
    }

    def run(operands: Operands) -> tuple[Value, ...]:
        return _lanewise(operands, pure[function](*operands.lanes))

    return run


def negated(operands: Operands) -> tuple[Value, ...]:
    """`vneg`: the sign bit of floats flips, integers wrap; they clamp if results of arithmetic clamp."""
    codes, fmt = operands.registers[0].lanes(operands.bits), operands.element
    how = behaviour("neg", fmt, operands)
    if not isinstance(fmt, IntFormat):
        flipped = clamped(codes ^ codes.dtype.type(fmt.sign_bit), fmt, how)
    elif how.saturates:
        flipped = apply("sub", (np.zeros_like(codes), codes), fmt, how)
    else:
        flipped = np.negative(codes)
    return _lanewise(operands, flipped)


def reciprocal(operands: Operands) -> tuple[Value, ...]:
    """`vrec`: 1 / x, rounded once."""
    fmt = operands.element
    unit = encoded(np.array([1], np.float32 if fmt.bits == 32 else np.float64), fmt)
    return _lanewise(operands, compute("div", (unit, *operands.lanes), fmt, operands))


def then_positive(function: str) -> LaneFunction:
    """A function of two registers, and the positive part of its rounded result (`vaddrelu`, `vsubrelu`)."""

    def run(operands: Operands) -> tuple[Value, ...]:
        inner = compute(function, operands.lanes, operands.element, operands)
        return _lanewise(operands, compute("relu", (inner,), operands.element, operands))

    return run


def accumulated(operands: Operands) -> tuple[Value, ...]:
    """`vmula %acc, %a, %b`: acc + a * b; `vmadd %a, %b, %c`: a * b + c; `vaxpy %a, %b, %s`: s * a + b.

    Rounding follows option `axpy_rounding`.
    """
    if operands.name == "vmula":
        before, left, right = operands.lanes
    elif operands.name == "vmadd":
        left, right, before = operands.lanes
    else:
        (left, before), (right,) = operands.lanes, scalar_codes(operands)
    fmt = operands.element
    if isinstance(fmt, IntFormat):
        codes = before + left * right
    else:
        codes = compute("axpy", (left, right, before), fmt, operands)
    return _lanewise(operands, codes)


def exponential_difference(operands: Operands) -> tuple[Value, ...]:
    """`vexpdif %x, %m, "EVEN"`: exp(x - m) in f32; of 16-bit sources the even or odd lanes."""
    fmt, bits = operands.element, operands.bits
    step = 32 // bits
    first = 1 if step == 2 and "ODD" in operands.words[-1:] else 0
    with np.errstate(all="ignore"):  # to double precision too: of a signalling NaN that is an invalid operation
        minuend, subtrahend = (
            numbers(register.lanes(bits)[first::step], fmt).astype(np.float64) for register in operands.registers
        )
        codes = np.exp(minuend - subtrahend).astype(np.float32).view("<u4")
    mask = operands.masks[-1]
    governing = mask_of(mask.lanes(bits)[first::step], 32, mask.defined_lanes(bits)[first::step])
    return (masked(codes, _defined(operands)[first::step], governing),)


_COMPARISONS: Mapping[str, Callable[[Numbers, Numbers], Bits]] = {
    "eq": np.equal,
    "ne": np.not_equal,
    "lt": np.less,
    "le": np.less_equal,
    "gt": np.greater,
    "ge": np.greater_equal,
}
COMPARISONS = tuple(_COMPARISONS)
"""The comparison words of `vcmp` and `vcmps`."""


def compared(operands: Operands) -> tuple[Value, ...]:
    """`vcmp`, `vcmps`: a mask bit per lane, 0 where the governing mask is 0; for NaN, only `unequal` is true.

    Raises:
        IllegalError: the comparison does not exist.
    """
    (word,) = operands.words
    if word not in _COMPARISONS:
        raise IllegalError(f"unknown comparison {word}", legal=COMPARISONS)
    codes = (*operands.lanes, *scalar_codes(operands))
    compared_lanes = _COMPARISONS[word](*(numbers(operand, operands.element) for operand in codes))
    mask, bits = operands.masks[0], operands.bits
    active = mask.lanes(bits)
    return (mask_of(compared_lanes & active, bits, (_defined(operands) | ~active) & mask.defined_lanes(bits)),)


def selected(operands: Operands) -> tuple[Value, ...]:
    """`vsel`: the lane of the first register where the mask is 1, otherwise of the second."""
    first, second = operands.registers
    mask, bits = operands.masks[0], operands.bits
    active = mask.lanes(bits)
    defined = np.where(active, first.defined_lanes(bits), second.defined_lanes(bits)) & mask.defined_lanes(bits)
    return (register_of(np.where(active, first.lanes(bits), second.lanes(bits)), defined),)


def with_carry(operands: Operands) -> tuple[Value, ...]:
    """`vaddc`, `vsubc` and, with a carry of each lane, `vaddcs`, `vsubcs`: lanes of 32 bits and their carries.

    Option `micro_subtraction_carry` chooses the meaning of a subtraction's carry.
    """
    subtracts = operands.name in ("vsubc", "vsubcs")
    a, b = (register.lanes(32).astype(np.int64) for register in operands.registers)
    mask = operands.masks[-1]
    inverted = subtracts and operands.target.option("micro_subtraction_carry") == "no_borrow"
    carried = np.zeros(a.size, np.bool_)
    defined = _defined(operands)
    if len(operands.masks) > 1:
        carried = operands.masks[0].lanes(32) ^ inverted
        defined = defined & operands.masks[0].defined_lanes(32)
    total = a - b - carried if subtracts else a + b + carried
    carry = ((total < 0) | (total > 0xFFFF_FFFF)) ^ inverted
    active = mask.lanes(32)
    marks = (defined | ~active) & mask.defined_lanes(32)
    return masked(total.astype("<u4"), defined, mask), mask_of(carry & active, 32, marks)


def multiplied_long(operands: Operands) -> tuple[Value, ...]:
    """`vmull`: the low and the high 32 bits of products of 32-bit integers."""
    kind = np.int64 if isinstance(operands.element, IntFormat) and operands.element.signed else np.uint64
    a, b = (numbers(register.lanes(32), operands.element).astype(kind) for register in operands.registers)
    product = (a * b).view("<u8")
    halves = (product.astype("<u4"), (product >> np.uint64(32)).astype("<u4"))
    return tuple(masked(half, _defined(operands), operands.masks[-1]) for half in halves)


# Registers made of the lanes of others, of scalars and of counts (docs/reference/micro.md section 3.9).

POSITIONS = ("LOWEST", "HIGHEST")
ORDERS = ("ASC", "DESC")


def _picked(sources: tuple[VectorRegister, ...], places: Index) -> VectorRegister:
    """Return the register of bytes of several registers laid end to end."""
    data = np.concatenate([source.data for source in sources])
    defined = np.concatenate([source.defined for source in sources])
    return VectorRegister(data[places], defined[places])


def rearranged(maps: Callable[[int, int], tuple[Index, Index]]) -> LaneFunction:
    """`vintlv`: alternating lanes of both registers, the lower halves first; `vdintlv`: the even lanes, and the odd."""
    return lambda operands: tuple(_picked(operands.registers, places) for places in maps(operands.bits, REGISTER_BYTES))


def gathered_lanes(operands: Operands) -> tuple[Value, ...]:
    """`vselr`: lane i is the lane of the first register that lane i of the second names; undefined beyond its end."""
    source, index = operands.registers
    bits = operands.bits
    wanted = index.lanes(bits).astype(np.int64)
    lanes = wanted.size
    defined = index.defined_lanes(bits) & (wanted < lanes)
    places = np.where(wanted < lanes, wanted, 0)
    codes = np.where(wanted < lanes, source.lanes(bits)[places], 0).astype(f"<u{bits // 8}")
    return (register_of(codes, source.defined_lanes(bits)[places] & defined),)


def broadcast(operands: Operands) -> tuple[Value, ...]:
    """`vbr`: a scalar in every lane."""
    lanes = REGISTER_BYTES * 8 // operands.bits
    return (register_of(np.repeat(scalar_codes(operands)[0], lanes), np.ones(lanes, np.bool_)),)


def duplicated(operands: Operands) -> tuple[Value, ...]:
    """`vdup`: a scalar, or the first or last lane of a register, in every lane of the mask.

    Raises:
        IllegalError: the position does not exist.
    """
    mask, bits = operands.masks[0], operands.bits
    lanes = REGISTER_BYTES * 8 // bits
    if not operands.registers:
        return (masked(np.repeat(scalar_codes(operands)[0], lanes), np.ones(lanes, np.bool_), mask),)
    word = operands.words[0] if operands.words else "LOWEST"
    if word not in POSITIONS:
        raise IllegalError(f"vdup does not take position {word}", legal=POSITIONS)
    source, lane = operands.registers[0], 0 if word == "LOWEST" else lanes - 1
    defined = np.full(lanes, source.defined_lanes(bits)[lane])
    return (masked(np.full(lanes, source.lanes(bits)[lane]), defined, mask),)


def counted_up(operands: Operands) -> tuple[Value, ...]:
    """`vci`: base + lane, or base - lane in the order DESC; floats clamp if results of arithmetic do.

    Raises:
        IllegalError: the order does not exist.
    """
    word = operands.words[0] if operands.words else "ASC"
    if word not in ORDERS:
        raise IllegalError(f"vci does not take order {word}", legal=ORDERS)
    fmt, (base,) = operands.element, scalar_codes(operands)
    lanes = REGISTER_BYTES * 8 // operands.bits
    steps = np.arange(lanes) if word == "ASC" else -np.arange(lanes)
    if isinstance(fmt, IntFormat):
        codes = (base.astype(np.int64) + steps).astype(base.dtype)
    else:
        exact = numbers(base, fmt).astype(np.float64) + steps
        codes = encoded(exact.astype(np.float32) if fmt.bits == 32 else exact, fmt)
        codes = clamped(codes, fmt, behaviour("arange", fmt, operands))
    return (register_of(codes, np.ones(lanes, np.bool_)),)


def packed(operands: Operands) -> tuple[Value, ...]:
    """`vpack`: the low half of every lane in the named half of the result, the other half 0."""
    (source,), bits = operands.registers, operands.bits
    half = half_of(operands.words[0])
    narrow = source.lanes(bits).astype(f"<u{bits // 16}")
    marks = every_of_row(source.defined.reshape(-1, bits // 8)[:, : bits // 16])
    lanes = narrow.size
    codes, defined = np.zeros(2 * lanes, narrow.dtype), np.ones(2 * lanes, np.bool_)
    codes[half * lanes : (half + 1) * lanes] = narrow
    defined[half * lanes : (half + 1) * lanes] = marks
    return (register_of(codes, defined),)


def unpacked(operands: Operands) -> tuple[Value, ...]:
    """`vsunpack`, `vzunpack`: the lanes of the lower (0) or upper (1) half, extended by sign or by zero.

    Raises:
        IllegalError: the word names neither half.
    """
    (source,), bits = operands.registers, operands.bits
    half = operands.scalars[0] if operands.scalars else half_of(operands.words[0])
    if half not in (0, 1):
        raise IllegalError(f"{operands.name} has no half {half}", legal=("0", "1"))
    codes, marks = source.lanes(bits), source.defined_lanes(bits)
    lanes = codes.size // 2
    chosen = codes[half * lanes : (half + 1) * lanes]
    sign = "i" if operands.name == "vsunpack" else "u"
    wide: Codes = chosen.view(f"<{sign}{bits // 8}").astype(f"<{sign}{bits // 4}").view(f"<u{bits // 4}")
    return (register_of(wide, marks[half * lanes : (half + 1) * lanes]),)


def squeezed(operands: Operands) -> tuple[Value, ...]:
    """`vsqz`: the active lanes moved to the front in order, the rest 0."""
    (source,), (mask,), bits = operands.registers, operands.masks, operands.bits
    active = mask.lanes(bits)
    count = int(active.sum())
    codes = np.zeros_like(source.lanes(bits))
    codes[:count] = source.lanes(bits)[active]
    defined = np.ones(codes.size, np.bool_)
    defined[:count] = source.defined_lanes(bits)[active]
    return (register_of(codes, defined & _known_prefix(mask, bits)),)


def squeezed_bytes(mask: PredicateRegister, bits: int) -> int:
    """Return the number of bytes that `vsqz` moves to the front and stores in AR for `vstur`."""
    return int(mask.lanes(bits).sum()) * bits // 8


def active_below(operands: Operands) -> tuple[Value, ...]:
    """`vusqz`: lane i is the number of active lanes below i."""
    (mask,), bits = operands.masks, operands.bits
    active = mask.lanes(bits)
    below: Index = np.cumsum(active, dtype=np.int64) - active
    return (register_of(below.astype(f"<u{bits // 8}"), _known_below(mask, bits)),)


def _known_prefix(mask: PredicateRegister, bits: int) -> Bits:
    """Return whether all of a mask is known, for every lane: each result lane depends on all bits."""
    defined = mask.defined_lanes(bits)
    return np.full(defined.size, defined.all())


def _known_below(mask: PredicateRegister, bits: int) -> Bits:
    """Return for each lane whether all mask bits below it are known."""
    defined = mask.defined_lanes(bits)
    result = np.ones(defined.size, np.bool_)
    result[1:] = np.logical_and.accumulate(defined)[:-1]
    return result


def same_bytes(operands: Operands) -> tuple[Value, ...]:
    """`vbitcast`: the same bytes with another type."""
    return (operands.registers[0],)


# Predicate instructions (docs/reference/micro.md section 5).
#
# A predicate has 256 bits. Those of lanes of w bits are every (w / 8)-th; instructions that name no width work on all
# 256 alike.

_LENGTHS = (1, 2, 3, 4, 8, 16, 32, 64, 128)
PATTERNS = ("PAT_ALL", "PAT_ALLF", "PAT_H", "PAT_Q", "PAT_M3", "PAT_M4", *(f"PAT_VL{count}" for count in _LENGTHS))
"""The pattern words of `pset` and `pge`."""


def counted(operands: Operands) -> tuple[Value, ...]:
    """`plt`: the first n lanes, and the remaining count, max(n - lanes, 0)."""
    (count,), width = operands.scalars, operands.width
    number, lanes = signed(count, 32), REGISTER_BYTES * 8 // width
    return leading_lanes(min(max(number, 0), lanes), width), max(number - lanes, 0)


def counted_piece(operands: Operands) -> tuple[Value, ...]:
    """`pltm`: lane i where k * lanes + i < n."""
    (piece, count), width = operands.scalars, operands.width
    lanes = REGISTER_BYTES * 8 // width
    return (mask_of(signed(piece, 16) * lanes + np.arange(lanes) < signed(count, 32), width),)


def pattern(operands: Operands) -> tuple[Value, ...]:
    """`pset` and `pge`: the lanes that a word names.

    Raises:
        IllegalError: the pattern does not exist.
    """
    (word,) = operands.words
    if word not in PATTERNS:
        raise IllegalError(f"unknown predicate pattern {word}", legal=PATTERNS)
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
    first, second, mask = operands.masks
    bits = _LOGIC[operands.name](first.bits, second.bits) & mask.bits
    return (PredicateRegister(bits, (first.defined & second.defined | ~mask.bits) & mask.defined),)


def inverted(operands: Operands) -> tuple[Value, ...]:
    """`pnot`: every bit inverted, 0 where the governing mask is 0."""
    first, mask = operands.masks
    return (PredicateRegister(~first.bits & mask.bits, (first.defined | ~mask.bits) & mask.defined),)


def chosen(operands: Operands) -> tuple[Value, ...]:
    """`psel`: the bit of the first where the third is 1, otherwise of the second."""
    first, second, which = operands.masks
    bits = np.where(which.bits, first.bits, second.bits)
    return (PredicateRegister(bits, np.where(which.bits, first.defined, second.defined) & which.defined),)


def packed_bits(operands: Operands) -> tuple[Value, ...]:
    """`ppack`: bit 2i of the source is bit i of the named half; the other half is 0."""
    (source,) = operands.masks
    half = half_of(operands.words[0])
    bits, defined = np.zeros(REGISTER_BYTES, np.bool_), np.ones(REGISTER_BYTES, np.bool_)
    span = slice(half * REGISTER_BYTES // 2, (half + 1) * REGISTER_BYTES // 2)
    bits[span], defined[span] = source.bits[::2], source.defined[::2]
    return (PredicateRegister(bits, defined),)


def unpacked_bits(operands: Operands) -> tuple[Value, ...]:
    """`punpack`: bit i of the named half is bit 2i of the result; odd bits are 0."""
    (source,) = operands.masks
    half = half_of(operands.words[0])
    span = slice(half * REGISTER_BYTES // 2, (half + 1) * REGISTER_BYTES // 2)
    return (mask_of(source.bits[span], 16, source.defined[span]),)


def interleaved_bits(operands: Operands) -> tuple[Value, ...]:
    """`pintlv`: alternating lanes of both masks; the first result has the lower halves."""
    first, second = operands.masks
    return _joined(operands.width, lambda a, b: np.stack((a, b), axis=1).ravel(), first, second)


def deinterleaved_bits(operands: Operands) -> tuple[Value, ...]:
    """`pdintlv`: the even lanes of both masks laid end to end, and the odd ones."""
    first, second = operands.masks

    def parted(a: Bits, b: Bits) -> Bits:
        both = np.concatenate((a, b))
        return np.concatenate((both[::2], both[1::2]))

    return _joined(operands.width, parted, first, second)


def _joined(
    width: int, arrange: Callable[[Bits, Bits], Bits], first: PredicateRegister, second: PredicateRegister
) -> tuple[Value, ...]:
    bits = arrange(first.lanes(width), second.lanes(width))
    defined = arrange(first.defined_lanes(width), second.defined_lanes(width))
    lanes = bits.size // 2
    return mask_of(bits[:lanes], width, defined[:lanes]), mask_of(bits[lanes:], width, defined[lanes:])


def same_bits(operands: Operands) -> tuple[Value, ...]:
    """`pbitcast`: the same bits with another lane width."""
    return (operands.masks[0],)


# Reductions of a register to one lane, and of its 32-byte blocks or neighbouring pairs to one lane each.
#
# Source: docs/reference/micro.md section 3.10.


def reduced(function: str, parts: int | None) -> LaneFunction:
    """A reduction (`add`, `max`, `min`) of equal parts of a register to as many leading lanes; the rest is 0.

    With parts None, there is one for every two lanes.
    Inactive lanes are ignored. Sums are rounded step by step in the result's format, in the order of option
    `lane_order`.
    """

    def run(operands: Operands) -> tuple[Value, ...]:
        (source,), (mask,), bits = operands.registers, operands.masks, operands.bits
        fmt = operands.result
        codes = _widened(source.lanes(bits), operands)
        active = mask.lanes(bits)
        groups, runs = len(active) // 2 if parts is None else parts, codes.shape[:-1]
        rows = _without(function, fmt, codes.reshape(*runs, groups, -1), active.reshape(groups, -1))
        names = ("maximum_of_nan", "lane_order") if function != "add" else ("lane_order",)
        rows = rows.reshape(-1, rows.shape[-1])
        totals = reduce_lanes(function, rows, fmt, behaviour(function, fmt, operands, *names))
        lanes = REGISTER_BYTES // codes.dtype.itemsize
        result, defined = np.zeros((*runs, lanes), codes.dtype), np.ones(lanes, np.bool_)
        result[..., :groups] = totals.reshape(*runs, groups)
        defined_lanes = (source.defined_lanes(bits) | ~active) & mask.defined_lanes(bits)
        defined[:groups] = every_of_row(defined_lanes.reshape(groups, -1))
        return (register_of(result, defined),)

    return run


def _without(function: str, fmt: Format, codes: Codes, active: Bits) -> Codes:
    """Return rows of lanes with inactive ones neutral: among others, the zero of a sum is -0."""
    neutral = np.full((len(active), 1), neutral_code(function, fmt), codes.dtype)
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


def _functions(make: Callable[[str], LaneFunction], names: str) -> dict[str, LaneFunction]:
    """Return the functions of instructions that differ in what they compute only: `vadd:add vsub:sub`."""
    pairs = (entry.partition(":") for entry in names.split())
    return {name: make(function) for name, _, function in pairs}


OPERATIONS: Mapping[str, LaneFunction] = {
    **_functions(elementwise, "vadd:add vsub:sub vmul:mul vdiv:div vmax:max vmin:min vshl:shl vshr:shr vprelu:prelu"),
    **_functions(elementwise, "vadds:add vmuls:mul vmaxs:max vmins:min vshls:shl vshrs:shr vlrelu:prelu"),
    **_functions(elementwise, "vabs:abs vrelu:relu vexp:exp vln:log vsqrt:sqrt vrsqrt:rsqrt"),
    **_functions(then_positive, "vaddrelu:add vsubrelu:sub"),
    **_functions(bitwise, "vand:and vor:or vxor:xor vnot:not"),
    "vneg": negated,
    "vrec": reciprocal,
    **dict.fromkeys(("vmula", "vmadd", "vaxpy"), accumulated),
    "vexpdif": exponential_difference,
    **dict.fromkeys(("vaddc", "vsubc", "vaddcs", "vsubcs"), with_carry),
    "vmull": multiplied_long,
    **dict.fromkeys(("vcmp", "vcmps"), compared),
    "vsel": selected,
    "vselr": gathered_lanes,
    "vintlv": rearranged(interleave_maps),
    "vdintlv": rearranged(deinterleave_maps),
    "vbr": broadcast,
    "vdup": duplicated,
    "vci": counted_up,
    "vpack": packed,
    **dict.fromkeys(("vsunpack", "vzunpack"), unpacked),
    "vsqz": squeezed,
    "vusqz": active_below,
    "vbitcast": same_bytes,
    **_functions(lambda what: reduced(what, 1), "vcadd:add vcmax:max vcmin:min"),
    **_functions(lambda what: reduced(what, BLOCKS), "vcgadd:add vcgmax:max vcgmin:min"),
    "vcpadd": reduced("add", None),
    "plt": counted,
    "pltm": counted_piece,
    **dict.fromkeys(("pset", "pge"), pattern),
    **dict.fromkeys(("pand", "por", "pxor"), logic),
    "pnot": inverted,
    "psel": chosen,
    "ppack": packed_bits,
    "punpack": unpacked_bits,
    "pintlv": interleaved_bits,
    "pdintlv": deinterleaved_bits,
    "pbitcast": same_bits,
}
"""Functions by name; predicate instructions without the suffix `_b8`, `_b16`, `_b32` of their text."""

ELEMENTS: Mapping[str, tuple[str, ...]] = {
    family: row.elements for name, row in ROWS.items() if (family := row.family or name) in OPERATIONS
}
"""Formats of the first register by instruction; empty: any."""


def execute(operands: Operands) -> tuple[Value, ...]:
    """Run the instruction that the operands name; return its results in text order.

    Raises:
        IllegalError: the instruction does not exist or does not support a format; also the errors of its function.
    """
    function = OPERATIONS.get(operands.name)
    if function is None:
        raise IllegalError(f"unknown instruction {operands.name}", legal=OPERATIONS)
    elements = ELEMENTS[operands.name]
    if elements and operands.element.name not in elements:
        raise IllegalError(f"{operands.name} does not take {operands.element.name}", legal=elements)
    return function(operands)
