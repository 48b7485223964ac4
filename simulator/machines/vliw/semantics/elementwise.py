"""Elementwise operations with two sources or one: in vectors, scalars, indices and predicates.

An operation is the same in every unit; only the origin of its operands and the destination differ.
Values: docs/reference/tpc.md section 5.1; operands: section 7.1.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import lru_cache, partial
from typing import Any

import numpy as np
from numpy.typing import NDArray

from castsim.execution.outcomes import Judge, tell_change
from castsim.isa.dataclass import dataclass
from castsim.isa.errors import IllegalError
from castsim.isa.formats import FORMATS, Codes, FloatFormat, Format, IntFormat, Overflow, Rounding
from castsim.isa.tpc.program import File, TpcInstruction
from castsim.machines.vliw.semantics.convert import same_format_policy
from castsim.machines.vliw.semantics.moves import (
    coordinates_of,
    masked_dimensions,
    narrow_result,
    signed_scalar,
    written_dimensions,
)
from castsim.machines.vliw.semantics.operands import (
    WORD_MASK,
    Effects,
    Mask,
    OperandValues,
    State,
    Unit,
    Value,
    arithmetic_rounding,
    broadcast,
    check_element,
    codes_of,
    configured,
    destination_file,
    element_format,
    elements,
    integers,
    is_nan,
    merged,
    order_keys,
    signed_word,
    vector_of,
    whole_bytes,
)
from castsim.numerics.blocks import code_dtype
from castsim.numerics.cast import Scale, scaled_cast_codes
from castsim.numerics.pack import Unpacked, normalise, pack, unpack
from castsim.numerics.policy import Policy
from castsim.numerics.rounding import U64
from castsim.targets.vliw import VliwTarget

# ADD, SUB and MUL of floats: the exact result, rounded once (docs/reference/tpc.md section 5.1).

_FLUSH_REGISTER = "f16_flush_inputs"
_FLUSH_SWITCH = "fp16_ftz_in"


@dataclass(frozen=True, slots=True)
class FloatRules:
    """The rules of an operation on floats: rounding, and whether subnormal inputs and outputs become zero."""

    rounding: Rounding
    flush_operands: bool
    flush_results: bool


def rules_of(instruction: TpcInstruction, target: VliwTarget, state: State) -> FloatRules:
    """Return the rules of an instruction on floats, from configuration registers, options and switches."""
    values, name = target.special_values, instruction.type
    flushed = name in values.flushed and target.option("arithmetic_subnormals") == "flush"
    asked = instruction.switch(_FLUSH_SWITCH) == 1
    if _FLUSH_REGISTER in target.configuration:
        asked = asked or configured(state, target, _FLUSH_REGISTER) != 0
    requested = name in values.flushed_on_request and asked
    return FloatRules(arithmetic_rounding(target, state), flushed or requested, flushed)


def check_switches(instruction: TpcInstruction, target: VliwTarget) -> None:
    """Reject switches that do not apply to floats.

    Raises:
        IllegalError: a switch requests saturation, or flushing for a format without such a switch.
    """
    legal = target.special_values.flushed_on_request
    if instruction.switch(_FLUSH_SWITCH) == 1 and instruction.type not in legal:
        message = f"{instruction.mnemonic}.{instruction.type} has no switch {_FLUSH_SWITCH}"
        raise IllegalError(message, span=instruction.span, legal=[f"{instruction.mnemonic}.{name}" for name in legal])
    if instruction.switch("st") == 1:
        message = f"{instruction.mnemonic}.{instruction.type} has no switch st"
        raise IllegalError(message, span=instruction.span, legal=("integer types",))


def add(a: Codes, b: Codes, fmt: FloatFormat, rules: FloatRules) -> Codes:
    """Return a + b."""
    first, second = (normalise(unpacked(codes, fmt, rules)) for codes in (a, b))
    return rounded_sum(first, second, fmt, rules)


def rounded_sum(first: Unpacked, second: Unpacked, fmt: FloatFormat, rules: FloatRules) -> Codes:
    """Return the sum of two normalised numbers, exact before the single rounding.

    An exact zero is negative if both addends are, or if rounding goes down and they are not both positive.
    """
    swap = second.exponent > first.exponent
    low, high = np.where(swap, first.exponent, second.exponent), np.where(swap, second.exponent, first.exponent)
    large, small = (
        np.where(swap, *pair) >> np.uint64(1)  # room for the carry
        for pair in ((second.significand, first.significand), (first.significand, second.significand))
    )
    distance = np.minimum(high - low, 63).view(np.uint64)
    shifted = small >> distance
    # What falls off is kept as one bit far below the last one that any format keeps: a product has 48 bits, and cancels
    # only near by.
    shifted |= (shifted << distance) != small
    opposite = first.negative != second.negative
    below = opposite & (shifted > large)
    magnitude = np.where(opposite, np.where(below, shifted - large, large - shifted), large + shifted)
    negative = np.where(swap, second.negative, first.negative) ^ below
    zero_sign = np.where(opposite, np.uint64(rules.rounding is Rounding.FLOOR), first.negative)
    negative = np.where(magnitude == 0, zero_sign, negative)

    infinities = tuple(_mask(operand.infinite, large) for operand in (first, second))
    negative = np.where(infinities[0], first.negative, np.where(infinities[1], second.negative, negative))
    nan = _mask(first.nan, large) | _mask(second.nan, large) | (infinities[0] & infinities[1] & opposite)
    result = Unpacked(negative, high + 1, magnitude, nan, (infinities[0] | infinities[1]) & ~nan)
    return packed_floats(result, fmt, rules)


def subtract(a: Codes, b: Codes, fmt: FloatFormat, rules: FloatRules) -> Codes:
    """Return a - b."""
    return add(a, b ^ b.dtype.type(fmt.sign_bit), fmt, rules)


def multiply(a: Codes, b: Codes, fmt: FloatFormat, rules: FloatRules) -> Codes:
    """Return a * b."""
    return packed_floats(exact_product(a, b, fmt, rules), fmt, rules)


def exact_product(a: Codes, b: Codes, fmt: FloatFormat, rules: FloatRules) -> Unpacked:
    """Return full-width products.

    No format here has more than 32 bits of significand: the upper halves contain them, and their product is exact.
    """
    first, second = (unpacked(codes, fmt, rules) for codes in (a, b))
    half = np.uint64(32)
    product = (first.significand >> half) * (second.significand >> half)
    infinite = _mask(first.infinite, a) | _mask(second.infinite, a)
    nothing = (first.significand == 0) & ~_special(first, a) | (second.significand == 0) & ~_special(second, a)
    nan = _mask(first.nan, a) | _mask(second.nan, a) | (infinite & nothing)
    exponent = first.exponent + second.exponent + 1
    return Unpacked(first.negative ^ second.negative, exponent, product, nan, infinite & ~nan)


def negated(codes: Codes, fmt: FloatFormat) -> Codes:
    """Return the numbers with inverted signs; NaN is unchanged."""
    return np.where(is_nan(codes, fmt), codes, codes ^ codes.dtype.type(fmt.sign_bit))


def unpacked(codes: Codes, fmt: FloatFormat, rules: FloatRules) -> Unpacked:
    """Return the numbers of codes; the rules decide the treatment of subnormals."""
    return unpack(codes.astype(np.uint64), fmt, rules.flush_operands)


def _mask(optional_mask: Mask | None, like: Codes | U64) -> Mask:
    return np.zeros(like.shape, np.bool_) if optional_mask is None else optional_mask


def _special(value: Unpacked, like: Codes) -> Mask:
    return _mask(value.nan, like) | _mask(value.infinite, like)


def packed_floats(result: Unpacked, fmt: FloatFormat, rules: FloatRules) -> Codes:
    """Return the elements of an exact result, rounded once and flushed by the rules."""
    codes = pack(result, fmt, same_format_policy(fmt, rules.rounding))
    if rules.flush_results:
        codes = _flushed(codes, fmt, rules.rounding)
    return codes.astype(f"u{fmt.storage_bits // 8}")


def _flushed(codes: U64, fmt: FloatFormat, rounding: Rounding) -> U64:
    """Replace subnormal results: by zero of their sign, or by the smallest normal number where rounding leads there."""
    sign = codes & np.uint64(fmt.sign_bit)
    magnitude = codes ^ sign
    smallest = np.uint64(1 << fmt.fraction_bits)
    subnormal = (magnitude != 0) & (magnitude < smallest)
    away = {Rounding.CEIL: sign == 0, Rounding.FLOOR: sign != 0}.get(rounding, np.zeros(codes.shape, np.bool_))
    return np.where(subnormal, sign | np.where(away, smallest, np.uint64(0)), codes)


# Arithmetic of integer elements: sums, products, shifts (docs/reference/tpc.md section 5.1).

Numbers = NDArray[np.int64]


def settle(numbers: Numbers, fmt: Format, saturate: bool) -> Codes:
    """Return numbers as elements: the nearest bound, or the low bits."""
    assert isinstance(fmt, IntFormat)
    if not saturate:
        return codes_of(numbers, fmt)
    codes = codes_of(np.clip(numbers, fmt.minimum, fmt.maximum), fmt)
    judge = Judge(FORMATS["i64"], fmt, Rounding.RINT, wraps=False)
    tell_change(judge, np.ascontiguousarray(numbers).view(np.uint64), codes, converts=False)
    return codes


def total(a: Codes, b: Codes, fmt: Format, *, sign: int, negate: bool, saturate: bool) -> Codes:
    """Return a + sign * b, or its negative."""
    numbers = integers(a, fmt) + sign * integers(b, fmt)
    return settle(-numbers if negate else numbers, fmt, saturate)


def product_bits(a: Codes, b: Codes, fmt: Format, *, negate: bool) -> NDArray[np.uint64]:
    """Return the full-width products, or their negatives, as 64-bit patterns: 32-bit integers need no more."""
    numbers = integers(a, fmt).view(np.uint64) * integers(b, fmt).view(np.uint64)
    return np.uint64(0) - numbers if negate else numbers


def scalar_product(a: Codes, b: Codes, fmt: Format, *, negate: bool, upper: bool) -> Codes:
    """Return the lower or upper 32 bits of the products."""
    bits = product_bits(a, b, fmt, negate=negate)
    return (bits >> np.uint64(32 if upper else 0) & np.uint64(WORD_MASK)).astype(np.uint32)


def doubled_upper_half(a: Codes, b: Codes, fmt: IntFormat) -> tuple[Codes, NDArray[np.bool_]]:
    """Return the upper half of twice the products, rounded half up and saturated, and a mask of overflows.

    The dropped part is one bit shorter than the half, so the doubled product is never formed.
    """
    bits = product_bits(a, b, fmt, negate=False) + np.uint64(1 << (fmt.bits - 2))
    dropped = fmt.bits - 1
    if fmt.signed:
        numbers = bits.view(np.int64) >> dropped
    else:
        numbers = (bits >> np.uint64(dropped)).view(np.int64)
    beyond = (numbers > fmt.maximum) | (numbers < fmt.minimum)
    return settle(numbers, fmt, saturate=True), beyond


def shift_logical(codes: Codes, amounts: NDArray[np.uint64], fmt: Format, *, left: bool) -> Codes:
    """Return bit patterns shifted with zeros; amounts of at least the width give 0."""
    bits = codes.astype(np.uint64)
    near = np.minimum(amounts, np.uint64(fmt.bits))
    shifted = bits << near if left else bits >> near
    return (shifted & np.uint64((1 << fmt.bits) - 1)).astype(code_dtype(fmt))


@lru_cache(maxsize=8)
def _shift_policy(rounding: Rounding, saturate: bool) -> Policy:
    return Policy(rounding, Overflow.SATURATE if saturate else Overflow.WRAP)


@dataclass(frozen=True, slots=True)
class Context:
    """The facts and state that an operation may use besides its operands."""

    instruction: TpcInstruction
    target: VliwTarget
    state: State

    def has(self, switch: str) -> bool:
        """Return whether a switch is set."""
        return self.instruction.switch(switch) == 1


Operation = Callable[[Codes, Any, Format, Context], Codes]
"""A function from two sources' elements (the second None or shift amounts), their format and the context to the
result's elements."""

Second = Callable[[Value, Format, int, Context], Any]
"""The form of the second source: value, format, number of lanes."""


# ------------------------------------------------------------------------------------------------------- operations


def _add(a: Codes, b: Codes, fmt: Format, context: Context, sign: int = 1) -> Codes:
    if isinstance(fmt, FloatFormat):
        rules = rules_of(context.instruction, context.target, context.state)
        result = (add if sign > 0 else subtract)(a, b, fmt, rules)
        return negated(result, fmt) if context.has("neg") else result
    return total(a, b, fmt, sign=sign, negate=context.has("neg"), saturate=context.has("st"))


def _multiply(a: Codes, b: Codes, fmt: Format, context: Context) -> Codes:
    """Return products of floats, or 32 bits of products of integers."""
    if isinstance(fmt, FloatFormat):
        rules = rules_of(context.instruction, context.target, context.state)
        result = multiply(a, b, fmt, rules)
        return negated(result, fmt) if context.has("neg") else result
    return scalar_product(a, b, fmt, negate=context.has("neg"), upper=context.has("upper32"))


def _extreme(a: Codes, b: Codes, fmt: Format, context: Context, sign: int) -> Codes:
    """Return the first where it is at least as extreme; NaN makes that false (option min_max_nan)."""
    first = sign * order_keys(a, fmt) >= sign * order_keys(b, fmt)
    nan_a, nan_b = is_nan(a, fmt), is_nan(b, fmt)
    first &= ~(nan_a | nan_b)
    if context.target.option("min_max_nan") == "number":
        first |= nan_b & ~nan_a
    return np.where(first, a, b)


def _and(a: Codes, b: Codes, fmt: Format, context: Context) -> Codes:
    if context.has("andn"):
        inverts_first = context.target.option("immediate_and_mask") == "first"
        a, b = (~a, b) if inverts_first else (a, ~b)
    both: Codes = a & b
    return both


def _shift_arithmetic(a: Codes, b: NDArray[np.int64], fmt: Format, context: Context) -> Codes:
    """Return a * 2**b, exact before the single rounding."""
    assert isinstance(fmt, IntFormat)
    policy = _shift_policy(Rounding.HALF_UP if context.has("rhu") else Rounding.FLOOR, context.has("st"))
    codes = scaled_cast_codes(a, fmt, fmt, Scale(1), policy, shifts=b)
    if context.has("st"):
        exact = np.ldexp(integers(a, fmt).astype(np.float64), b.astype(np.int32))
        tell_change(
            Judge(FORMATS["f64"], fmt, policy.rounding, wraps=False), exact.view(np.uint64), codes, converts=False
        )
    return codes


def _absolute(a: Codes, b: None, fmt: Format, context: Context) -> Codes:
    if isinstance(fmt, FloatFormat):
        magnitude: Codes = a & a.dtype.type(fmt.sign_bit - 1)
        return magnitude
    return codes_of(np.abs(integers(a, fmt)), fmt)  # the smallest number wraps to itself, as sums do


# --------------------------------------------------------------------------------------------------- second sources


def _element(value: Value, fmt: Format, lanes: int, context: Context) -> Codes:
    if isinstance(value, tuple):
        return _coordinate_codes(value)
    return broadcast(value, fmt, lanes)


def _nothing(value: Value, fmt: Format, lanes: int, context: Context) -> None:
    return None


def _amounts(value: Value, fmt: Format, lanes: int, context: Context) -> NDArray[np.uint64]:
    """Read amounts of logical shifts, unsigned: elements of a vector or index, or a whole scalar."""
    if isinstance(value, int):
        return np.full(lanes, value & WORD_MASK, np.uint64)
    codes: NDArray[np.uint64] = _element(value, fmt, lanes, context).astype(np.uint64)
    return codes


def _signed_amounts(value: Value, fmt: Format, lanes: int, context: Context) -> NDArray[np.int64]:
    """Read amounts of arithmetic shifts, signed: the lowest byte of every lane, coordinates, or a scalar's element.

    The vendor's compiler negates the amount of `ash.i16` by `sub.i16` into S (vect-01.c of its tests): the low element
    of the scalar counts.
    """
    if isinstance(value, int):
        top = 1 << (fmt.bits - 1)
        return np.full(lanes, (value & (2 * top - 1) ^ top) - top, np.int64)
    if isinstance(value, tuple):
        return integers(_coordinate_codes(value), COORDINATE)
    lowest = elements(value, fmt).astype(np.uint8)
    return lowest.view(np.int8).astype(np.int64)


@dataclass(frozen=True, slots=True)
class ElementwiseKind:
    """One mnemonic: its operation, how its second source is read, and whether it supports floats."""

    operation: Operation
    second: Second = _element
    floats: bool = True


KINDS: Mapping[str, ElementwiseKind] = {
    "add": ElementwiseKind(_add),
    "sub": ElementwiseKind(partial(_add, sign=-1)),
    "mul": ElementwiseKind(_multiply),
    "max": ElementwiseKind(partial(_extreme, sign=1)),
    "min": ElementwiseKind(partial(_extreme, sign=-1)),
    "and": ElementwiseKind(_and),
    "or": ElementwiseKind(lambda a, b, fmt, context: a | b),
    "xor": ElementwiseKind(lambda a, b, fmt, context: a ^ b),
    "shl": ElementwiseKind(lambda a, b, fmt, context: shift_logical(a, b, fmt, left=True), _amounts),
    "shr": ElementwiseKind(lambda a, b, fmt, context: shift_logical(a, b, fmt, left=False), _amounts),
    "ash": ElementwiseKind(_shift_arithmetic, _signed_amounts, floats=False),
    "abs": ElementwiseKind(_absolute, _nothing),
    "not": ElementwiseKind(lambda a, b, fmt, context: ~a, _nothing),
}
"""Every operation of this module by its mnemonic."""

# ------------------------------------------------------------------------------------------------------------ units

COORDINATE = FORMATS["i32"]
"""Element type of index registers."""


def _coordinate_codes(value: Value) -> Codes:
    return np.array([coordinate & WORD_MASK for coordinate in coordinates_of(value)], np.uint32)


@dataclass(frozen=True, slots=True)
class Elementwise(Unit):
    """A prepared operation in one unit."""

    kind: ElementwiseKind
    finish: Callable[[Elementwise, OperandValues, State], Value]

    def __call__(self, operands: OperandValues, state: State) -> Effects:
        """Return the result in the form of the destination."""
        return Effects(self.finish(self, operands, state))

    def compute(self, operands: OperandValues, state: State, fmt: Format, lanes: int) -> Codes:
        """Return the elements of the result before predicate and income."""
        context = Context(self.instruction, self.target, state)
        first = _element(self.value(operands, "src_a"), fmt, lanes, context)
        second = None
        if self.kind.second is not _nothing:
            second = self.kind.second(self.value(operands, "src_b"), fmt, lanes, context)
        return self.kind.operation(first, second, fmt, context)


def _in_vector(unit: Elementwise, operands: OperandValues, state: State) -> Value:
    fmt = element_format(str(unit.instruction.type), unit.target, state)
    codes = unit.compute(operands, state, fmt, unit.lanes(fmt))
    return merged(vector_of(codes, fmt), operands)


def _in_scalar(unit: Elementwise, operands: OperandValues, state: State) -> Value:
    fmt = element_format(str(unit.instruction.type), unit.target, state)
    code = unit.compute(operands, state, fmt, 1)
    whole = code.dtype.itemsize * 8 > fmt.storage_bits  # a product of narrow integers fills the register
    return merged(int(code[0]) if whole else narrow_result(int(code[0]), fmt, operands, unit.target), operands)


def _in_index(unit: Elementwise, operands: OperandValues, state: State) -> Value:
    dimensions = masked_dimensions(unit.instruction, operands, unit.target)
    codes = unit.compute(operands, state, COORDINATE, len(dimensions))
    return written_dimensions(tuple(signed_word(int(code)) for code in codes), dimensions, operands)


_TRUTH = FORMATS["u8"]
"""Predicates as elements: all bits alike, one per bit of the register."""


def _in_predicates(unit: Elementwise, operands: OperandValues, state: State) -> Value:
    context = Context(unit.instruction, unit.target, state)
    roles = ("src_a",) if unit.kind.second is _nothing else ("src_a", "src_b")
    sources = [_truth(unit.value(operands, role)) for role in roles]
    codes = unit.kind.operation(sources[0], sources[-1], _TRUTH, context)
    predicates = codes != 0
    return merged(bool(predicates[0]) if destination_file(unit.instruction) is File.SP else predicates, operands)


def _truth(value: Value) -> Codes:
    return np.where(np.atleast_1d(np.asarray(value)), np.uint8(0xFF), np.uint8(0))


_UNITS = {
    File.V: _in_vector,
    File.S: _in_scalar,
    File.I: _in_index,
    File.SP: _in_predicates,
    File.VP: _in_predicates,
}


def prepare_elementwise(instruction: TpcInstruction, target: VliwTarget) -> Elementwise:
    """Choose the unit of an operation by the class of its destination.

    Raises:
        IllegalError: the generation or the operation lacks the element type, or a switch does not apply to it.
    """
    kind = KINDS[instruction.mnemonic]
    file = destination_file(instruction)
    assert file is not None
    if file in (File.V, File.S):
        legal = tuple(name for name in whole_bytes(target) if kind.floats or not isinstance(FORMATS[name], FloatFormat))
        name = check_element(instruction, target, instruction.type, legal)
        if isinstance(FORMATS[name], FloatFormat) or instruction.switch("fp16_ftz_in") == 1:
            check_switches(instruction, target)
    if instruction.switch("rhaz_rs") == 1:
        message = "ash rhaz_rs: the bits that a preceding MUL discards are not modelled"
        raise IllegalError(message, span=instruction.span, legal=("ash", "ash rhu"))
    return Elementwise(instruction, target, kind, _UNITS[file])


# CMP, SEL and SEL2: conditions on elements (docs/reference/tpc.md sections 5.1 and 7.1).

SEVERAL_DIMENSIONS = "a compare of several dimensions is true if it is true for all of them (undocumented)"
"""Remark on a compare of undocumented meaning."""

_Keys = NDArray[np.int64]
_CONDITIONS: Mapping[str, Callable[[_Keys, _Keys], Mask]] = {
    "eq": np.equal,
    "neq": np.not_equal,
    "less": np.less,
    "leq": np.less_equal,
    "grt": np.greater,
    "geq": np.greater_equal,
}


def _holds(instruction: TpcInstruction, a: Codes, b: Codes, fmt: Format) -> Mask:
    """Return where the condition holds; with NaN only `neq` does."""
    condition = instruction.mnemonic.split("_")[1]
    if instruction.switch("mask_eq_zero") == 1:
        none: Mask = (a & b) == 0
        return none
    satisfied = _CONDITIONS[condition](order_keys(a, fmt), order_keys(b, fmt))
    unordered = is_nan(a, fmt) | is_nan(b, fmt)
    return np.where(unordered, condition == "neq", satisfied)


@dataclass(frozen=True, slots=True)
class PreparedComparison(Unit):
    """A prepared compare of elements into a predicate."""

    def __call__(self, operands: OperandValues, state: State) -> Effects:
        """Return the predicate: for vectors, every bit of a lane alike."""
        fmt = element_format(str(self.instruction.type), self.target, state)
        in_vector = destination_file(self.instruction) is File.VP
        lanes = self.lanes(fmt) if in_vector else 1
        a, b = (broadcast(self.value(operands, role), fmt, lanes) for role in ("src_a", "src_b"))
        satisfied = _holds(self.instruction, a, b, fmt)
        if not in_vector:
            return Effects(merged(bool(satisfied[0]), operands))
        return Effects(merged(np.repeat(satisfied, fmt.storage_bits // 8), operands))


@dataclass(frozen=True, slots=True)
class CompareIndex(Unit):
    """A prepared compare of coordinates into a scalar predicate."""

    def __call__(self, operands: OperandValues, state: State) -> Effects:
        """Return whether the condition is true in every masked dimension.

        Raises:
            IllegalError: the mask selects no dimension.
        """
        dimensions = masked_dimensions(self.instruction, operands, self.target)
        if not any(dimensions):
            message = f"{self.instruction.mnemonic} of index registers: the mask selects no dimension"
            raise IllegalError(message, span=self.instruction.span, legal=("a mask with a dimension",))
        first = coordinates_of(self.value(operands, "src_a"))
        second = self.value(operands, "src_b")
        others = (signed_scalar(second),) * len(first) if isinstance(second, int) else coordinates_of(second)
        fmt = FORMATS["i32"]
        a, b = (np.array(coordinates, np.int32).view(np.uint32) for coordinates in (first, others))
        satisfied = _holds(self.instruction, a, b, fmt)[np.array(dimensions)]
        remarks = (SEVERAL_DIMENSIONS,) if satisfied.size > 1 else ()
        return Effects(merged(bool(satisfied.all()), operands), remarks=remarks)


@dataclass(frozen=True, slots=True)
class Select(Unit):
    """A prepared choice between elements by a condition on others."""

    def __call__(self, operands: OperandValues, state: State) -> Effects:
        """Return c where a OP b is true, otherwise d; for a pair also a where it is true, otherwise b."""
        fmt = element_format(str(self.instruction.type), self.target, state)
        lanes = self.lanes(fmt)
        a, b, c, d = (
            broadcast(self.value(operands, role), fmt, lanes) for role in ("src_a", "src_b", "src_c", "src_d")
        )
        satisfied = _holds(self.instruction, a, b, fmt)
        chosen = vector_of(np.where(satisfied, c, d), fmt)
        if destination_file(self.instruction) is not File.D:
            return Effects(merged(chosen, operands))
        return Effects(merged((chosen, vector_of(np.where(satisfied, a, b), fmt)), operands))


def prepare_compare(instruction: TpcInstruction, target: VliwTarget) -> PreparedComparison | CompareIndex:
    """Prepare a compare of elements or of coordinates.

    Raises:
        IllegalError: the generation lacks the element type.
    """
    if "mask" in (spec.role for spec in instruction.form.operands):
        return CompareIndex(instruction, target)
    check_element(instruction, target, instruction.type, whole_bytes(target))
    return PreparedComparison(instruction, target)


def prepare_select(instruction: TpcInstruction, target: VliwTarget) -> Select:
    """Prepare a selection.

    Raises:
        IllegalError: the generation lacks the element type.
    """
    check_element(instruction, target, instruction.type, whole_bytes(target))
    return Select(instruction, target)
