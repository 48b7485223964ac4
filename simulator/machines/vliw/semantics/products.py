"""Products, full-width and accumulated: integer MUL in the vector unit, MAC, MADD (docs/reference/tpc.md 5.1, 5.3)."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from castsim.isa.dataclass import dataclass, replace
from castsim.isa.errors import IllegalError
from castsim.isa.formats import FORMATS, Codes, FloatFormat, Format, IntFormat, Overflow, Rounding
from castsim.isa.tpc.program import File, Immediate, TpcInstruction
from castsim.machines.vliw.semantics.convert import ElementPlacement, PlacedUnit, place, scattered
from castsim.machines.vliw.semantics.elementwise import (
    FloatRules,
    add,
    check_switches,
    doubled_upper_half,
    exact_product,
    multiply,
    negated,
    product_bits,
    rounded_sum,
    rules_of,
    settle,
    subtract,
    unpacked,
)
from castsim.machines.vliw.semantics.operands import (
    Effects,
    OperandValues,
    State,
    Unit,
    Value,
    broadcast,
    check_element,
    destination_file,
    element_format,
    elements,
    given,
    integers,
    lanes_of,
    merged,
    vector_of,
    vectors,
    whole_bytes,
)
from castsim.numerics.cast import cast_codes
from castsim.numerics.pack import normalise
from castsim.numerics.policy import Policy
from castsim.targets.vliw import VliwTarget

BEYOND = "the doubled product is out of range and saturated; no source documents this"
"""Remark on a rounded product of undocumented value."""

_WIDENING = {File.D: 2, File.A: 4}
"""The ratio of a product's width to that of its sources, by the class of its destination."""


@dataclass(frozen=True, slots=True)
class Product(Unit):
    """Prepared full-width products, in the lane order of an all_lanes conversion to the wider type."""

    src: Format
    dst: Format
    placement: ElementPlacement

    def __call__(self, operands: OperandValues, state: State) -> Effects:
        """Return the products in their registers."""
        a, b = _sources(self.instruction, operands, self.src, self.target)
        negate = self.instruction.switch("neg") == 1
        bits = product_bits(a, b, self.src, negate=negate)
        products = (bits & np.uint64((1 << self.dst.bits) - 1)).astype(f"u{self.dst.storage_bits // 8}")
        vector_bytes = self.vector_bytes
        return Effects(scattered(products, self.dst, self.placement, operands, vector_bytes))


@dataclass(frozen=True, slots=True)
class RoundedProduct(Unit):
    """Prepared upper halves of twice the products."""

    src: IntFormat

    def __call__(self, operands: OperandValues, state: State) -> Effects:
        """Return the rounded halves."""
        a, b = _sources(self.instruction, operands, self.src, self.target)
        codes, beyond = doubled_upper_half(a, b, self.src)
        remarks = (BEYOND,) if beyond.any() else ()
        return Effects(merged(vector_of(codes, self.src), operands), remarks=remarks)


def _sources(
    instruction: TpcInstruction, operands: OperandValues, fmt: Format, target: VliwTarget
) -> tuple[Codes, Codes]:
    lanes = lanes_of(fmt, target.registers.vector_bytes)
    first = elements(given(instruction, operands, "src_a"), fmt)
    return first, broadcast(given(instruction, operands, "src_b"), fmt, lanes)


def prepare_product(instruction: TpcInstruction, target: VliwTarget) -> Product | RoundedProduct:
    """Prepare an integer MUL of the vector unit.

    Raises:
        IllegalError: the generation lacks the element type.
    """
    legal = tuple(name for name in whole_bytes(target) if isinstance(FORMATS[name], IntFormat))
    src = FORMATS[check_element(instruction, target, instruction.type, legal)]
    assert isinstance(src, IntFormat)
    file = destination_file(instruction)
    if file not in _WIDENING:
        return RoundedProduct(instruction, target, src)
    bits = src.bits * _WIDENING[file]
    dst = FORMATS[f"{'i' if src.signed else 'u'}{bits}"]
    placement = place(src, dst, target.registers.vector_bytes, lane=None, registers=1)
    return Product(instruction, target, src, dst, placement)


# MAC, MADD and sums and products of register pairs (docs/reference/tpc.md section 5.3).
#
# Products of floats are added to an accumulator with one rounding.


def multiply_add(a: Codes, b: Codes, c: Codes, fmt: FloatFormat, rules: FloatRules, *, negate: bool) -> Codes:
    """Return c + a * b, or c - a * b: exact, then rounded once."""
    product = normalise(exact_product(a, b, fmt, rules))
    if negate:
        product = replace(product, negative=product.negative ^ np.uint64(1))
    return rounded_sum(product, normalise(unpacked(c, fmt, rules)), fmt, rules)


def multiply_then_add(a: Codes, b: Codes, c: Codes, fmt: FloatFormat, rules: FloatRules, *, negate: bool) -> Codes:
    """Return the same with the product rounded separately."""
    product = multiply(a, b, fmt, rules)
    return add(c, product ^ product.dtype.type(fmt.sign_bit) if negate else product, fmt, rules)


ACCUMULATOR = "accumulator"
"""The role of the destination's old value in MAC."""

_WORD = 32
_EXACTLY = Policy(Rounding.RINT, Overflow.SPECIAL)
"""A rounding mode for wider formats, in which nothing is rounded."""
_Numbers = NDArray[np.int64]


@dataclass(frozen=True, slots=True)
class Accumulation(PlacedUnit):
    """Prepared products added to an accumulator.

    `addend` is the role of the accumulator: the destination's old value, or a separate operand; None: there is none,
    and the products are the results.
    """

    dst: Format
    addend: str | None

    def __call__(self, operands: OperandValues, state: State) -> Effects:
        """Return the new accumulators in their registers."""
        src = element_format(str(self.instruction.type), self.target, state)
        if isinstance(src, FloatFormat):
            results = self._floats(operands, src, state)
        else:
            assert isinstance(src, IntFormat)
            results = self._integers(operands, src)
        return Effects(self.placed(results, self.dst, operands))

    def _codes(self, operands: OperandValues, role: str, fmt: Format) -> Codes:
        """Return the elements of a source, one per product."""
        lanes = 1 if self.placement is None else self.lanes(fmt)
        codes = broadcast(self.value(operands, role), fmt, lanes)
        return codes if self.placement is None else codes[self.placement.gather]

    def _addends(self, operands: OperandValues) -> Codes:
        assert self.addend is not None
        value = operands.sources[self.addend]
        if self.placement is None:
            return broadcast(value, self.dst, 1)
        return elements(value, self.dst)[self.placement.scatter]

    def _floats(self, operands: OperandValues, src: FloatFormat, state: State) -> Codes:
        rules = rules_of(self.instruction, self.target, state)
        a, b = (self._codes(operands, role, src) for role in ("src_a", "src_b"))
        dst = src
        if self.dst.bits != src.bits:
            assert isinstance(self.dst, FloatFormat)
            a, b, dst = _widened(a, src, self.dst, rules), _widened(b, src, self.dst, rules), self.dst
            rules = _rules_of(dst, rules, self.target)
        if self.addend is None:
            product = multiply(a, b, dst, rules)
            return negated(product, dst) if self.instruction.switch("neg") == 1 else product
        return _accumulated(self.instruction, self.target, (a, b, self._addends(operands)), dst, rules)

    def _integers(self, operands: OperandValues, src: IntFormat) -> Codes:
        """Return the sum of all products, wrapped or saturated once."""
        instruction = self.instruction

        def numbers(role: str) -> _Numbers:
            return integers(self._codes(operands, role, src), src)

        total = numbers("src_a") * numbers("src_b")
        factors = numbers("src_a")
        if instruction.switch("x2") == 1:
            total = total + numbers("src_c") * numbers("src_d")
            factors = factors + numbers("src_c")
        if instruction.switch("zp") == 1:
            shifted = factors * numbers("zp")
            total = total - shifted if instruction.switch("neg_zp") == 1 else total + shifted
        addends = integers(self._addends(operands), self.dst)
        total = addends - total if instruction.switch("neg") == 1 else addends + total
        return settle(total, self.dst, saturate=instruction.switch("st") == 1)


@dataclass(frozen=True, slots=True)
class PairOperation(Unit):
    """A prepared f32 operation on a pair of registers, with a separate second operand each."""

    fmt: FloatFormat
    addend: str | None

    def __call__(self, operands: OperandValues, state: State) -> Effects:
        """Return both registers."""
        rules = rules_of(self.instruction, self.target, state)
        results = tuple(
            vector_of(self._one(operands, half, role, rules), self.fmt) for half, role in enumerate(("src_b", "src_d"))
        )
        return Effects(merged(results, operands))

    def _one(self, operands: OperandValues, half: int, role: str, rules: FloatRules) -> Codes:
        lanes = self.lanes(self.fmt)
        a = self._half(self.value(operands, "src_a"), half, lanes)
        b = broadcast(self.value(operands, role), self.fmt, lanes)
        if self.addend is not None:
            c = self._half(self._addend(operands), half, lanes)
            return _accumulated(self.instruction, self.target, (a, b, c), self.fmt, rules)
        function = {"mul": multiply, "add": add, "sub": subtract}
        result = function[self.instruction.mnemonic](a, b, self.fmt, rules)
        return negated(result, self.fmt) if self.instruction.switch("neg") == 1 else result

    def _addend(self, operands: OperandValues) -> Value:
        assert self.addend is not None
        return operands.sources[ACCUMULATOR] if self.addend == ACCUMULATOR else self.value(operands, self.addend)

    def _half(self, value: Value, half: int, lanes: int) -> Codes:
        return broadcast(vectors(value)[half] if isinstance(value, tuple) else value, self.fmt, lanes)


def _accumulated(
    instruction: TpcInstruction,
    target: VliwTarget,
    codes: tuple[Codes, Codes, Codes],
    fmt: FloatFormat,
    rules: FloatRules,
) -> Codes:
    """Return c + a * b or c - a * b, with one rounding or two (option product_sum)."""
    function = multiply_add if target.option("product_sum") == "fused" else multiply_then_add
    return function(*codes, fmt, rules, negate=instruction.switch("neg") == 1)


def _widened(codes: Codes, src: FloatFormat, dst: FloatFormat, rules: FloatRules) -> Codes:
    """Return codes in a wider format, exactly; subnormals that the source's rules flush are zeros of their sign."""
    if rules.flush_operands:
        subnormal = (codes >> src.fraction_bits & src.exponent_mask) == 0
        codes = np.where(subnormal, codes & codes.dtype.type(src.sign_bit), codes)
    return cast_codes(codes, src, dst, _EXACTLY)


def _rules_of(dst: FloatFormat, rules: FloatRules, target: VliwTarget) -> FloatRules:
    """Return the rules of an accumulator in a wider format."""
    flushed = dst.name in target.special_values.flushed and target.option("arithmetic_subnormals") == "flush"
    return replace(rules, flush_operands=flushed, flush_results=flushed)


# ---------------------------------------------------------------------------------------------------- preparation

_GROUP = {File.D: 2, File.A: 4}


def prepare_accumulation(instruction: TpcInstruction, target: VliwTarget) -> Accumulation | PairOperation:
    """Check a MAC, a MADD, a MUL with wide results, or an f32 operation on pairs.

    Raises:
        IllegalError: the generation lacks the element type, or no source states the value of an immediate.
    """
    name = check_element(instruction, target, instruction.type, whole_bytes(target))
    src = FORMATS[name]
    addend: str | None = ACCUMULATOR if instruction.form.accumulator is not None else "src_c"
    if instruction.mnemonic == "mul":
        addend = None
    if isinstance(src, FloatFormat) and instruction.switch("x2") == 1:
        has_addend = instruction.mnemonic in ("mac", "madd")
        return PairOperation(instruction, target, src, addend if has_addend else None)
    if isinstance(src, FloatFormat):
        _check_immediate(instruction, src)
        if instruction.switch("fp16_ftz_in") == 1:
            check_switches(instruction, target)
    dst = FORMATS[_accumulator_of(instruction, src)]
    placement = None
    if destination_file(instruction) is not File.S:
        placement = place(src, dst, target.registers.vector_bytes, lane=None, registers=1)
    return Accumulation(instruction, target, placement, dst, addend)


def _accumulator_of(instruction: TpcInstruction, src: Format) -> str:
    """Return the format of the accumulator."""
    if isinstance(src, FloatFormat):
        return "f32" if instruction.switch("acc_fp32") == 1 else src.name
    assert isinstance(src, IntFormat)
    if instruction.switch("acc_i16") == 1:
        return "i16"
    signed = src.signed or instruction.switch("acc_i32") == 1
    return f"{'i' if signed else 'u'}{_WORD}"


def _check_immediate(instruction: TpcInstruction, src: FloatFormat) -> None:
    """Reject an immediate of a narrow float with bits above it, because the printed form has no known value.

    Raises:
        IllegalError: there is such an immediate.
    """
    for operand in instruction.operands:
        if isinstance(operand, Immediate) and operand.value >> src.bits:
            message = (
                f"{instruction.mnemonic}.{src.name} by the immediate {operand.value:#x}: no source states whether it "
                f"counts as f32 or as its low {src.bits} bits"
            )
            legal = (f"a code of {src.name}, up to {(1 << src.bits) - 1:#x}", "a register")
            raise IllegalError(message, span=instruction.span, legal=legal)


# ------------------------------------------------------------------------------------------------- shifted products


@dataclass(frozen=True, slots=True)
class ShiftedAccumulation(Unit):
    """A prepared MSAC: a product added to an accumulator, both shifted and rounded, the result saturated."""

    fmt: IntFormat

    def __call__(self, operands: OperandValues, state: State) -> Effects:
        """Return the new accumulators.

        Raises:
            IllegalError: a shift is beyond those that the header names.
        """
        lanes = self.lanes(self.fmt)

        def codes(role: str) -> Codes:
            return broadcast(self.value(operands, role), self.fmt, lanes)

        product = integers(codes("src_a"), self.fmt) * integers(codes("src_b"), self.fmt)
        addend = integers(elements(operands.sources[ACCUMULATOR], self.fmt), self.fmt)
        first, second = (self._shift(codes(role), least) for role, least in (("src_c", -32), ("src_d", -25)))
        if self.instruction.switch("normalize") == "normalize_ab":
            product = self._rounded(product, first)
        else:
            addend = self._rounded(addend, first)
        total = self._rounded(product + addend, second)
        return Effects(merged(vector_of(settle(total, self.fmt, saturate=True), self.fmt), operands))

    def _shift(self, codes: Codes, least: int) -> _Numbers:
        """Return the right shift: the lowest byte of each lane, which is signed and at most 0."""
        amounts: _Numbers = -(codes & codes.dtype.type(0xFF)).astype(np.uint8).view(np.int8).astype(np.int64)
        if np.any((amounts < 0) | (amounts > -least)):
            message = f"msac: a shift of {int(-amounts[(amounts < 0) | (amounts > -least)][0])} is not documented"
            raise IllegalError(message, span=self.instruction.span, legal=(f"{least} .. 0",))
        return amounts

    def _rounded(self, numbers: _Numbers, amounts: _Numbers) -> _Numbers:
        """Shift right, half up or toward minus infinity."""
        if self.instruction.switch("rhu") == 1:
            numbers = numbers + np.where(amounts > 0, np.left_shift(1, np.maximum(amounts - 1, 0)), 0)
        shifted: _Numbers = numbers >> amounts
        return shifted


def prepare_shifted(instruction: TpcInstruction, target: VliwTarget) -> ShiftedAccumulation:
    """Check an MSAC.

    Raises:
        IllegalError: the generation lacks the element type.
    """
    legal = tuple(name for name in whole_bytes(target) if isinstance(FORMATS[name], IntFormat))
    fmt = FORMATS[check_element(instruction, target, instruction.type, legal)]
    assert isinstance(fmt, IntFormat)
    return ShiftedAccumulation(instruction, target, fmt)
