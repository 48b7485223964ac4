"""Two-source and one-source operations, element by element: in vectors, scalars, indices and predicates.

An operation is the same in every unit; what differs is where its operands come from and where its result goes.
Values: docs/reference/tpc.md section 5.1; operands: section 7.1.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from castsim.isa.codes import Codes
from castsim.isa.errors import IllegalError
from castsim.isa.formats import FORMATS, FloatFormat, Format, IntFormat
from castsim.isa.modes import Rounding
from castsim.isa.tpc.program import File, Register, TpcInstruction
from castsim.machines.vliw.semantics import float_arithmetic, integer_arithmetic
from castsim.machines.vliw.semantics.configuration import check_element, element_format, whole_bytes
from castsim.machines.vliw.semantics.interface import Effects, OperandValues, State, Value
from castsim.machines.vliw.semantics.lanes import (
    WORD_MASK,
    broadcast,
    elements,
    given,
    integers,
    is_nan,
    lanes_of,
    merged,
    order_keys,
    signed_word,
    vector_of,
)
from castsim.machines.vliw.semantics.moves import coordinates_of, masked_dimensions, narrow_result, written_dimensions
from castsim.machines.vliw.semantics.registers import destination_file, plain_registers
from castsim.targets.vliw import VliwTarget


@dataclass(frozen=True, slots=True)
class Context:
    """The facts and state that an operation may ask for beside its operands."""

    instruction: TpcInstruction
    target: VliwTarget
    state: State

    def has(self, switch: str) -> bool:
        """Whether a switch is set."""
        return self.instruction.switch(switch) == 1


Operation = Callable[[Codes, Any, Format, Context], Codes]
"""From elements of two sources (the second None or amounts of shifts), their format and the context to the result's."""

Second = Callable[[Value, Format, int, Context], Any]
"""How the second source is read: value, format, number of lanes."""


# ------------------------------------------------------------------------------------------------------- operations


def _add(a: Codes, b: Codes, fmt: Format, context: Context, sign: int = 1) -> Codes:
    if isinstance(fmt, FloatFormat):
        rules = float_arithmetic.rules_of(context.instruction, context.target, context.state)
        result = (float_arithmetic.add if sign > 0 else float_arithmetic.subtract)(a, b, fmt, rules)
        return float_arithmetic.negated(result, fmt) if context.has("neg") else result
    return integer_arithmetic.total(a, b, fmt, sign=sign, negate=context.has("neg"), saturate=context.has("st"))


def _subtract(a: Codes, b: Codes, fmt: Format, context: Context) -> Codes:
    return _add(a, b, fmt, context, sign=-1)


def _multiply(a: Codes, b: Codes, fmt: Format, context: Context) -> Codes:
    """Return products of floats, or 32 bits of products of integers."""
    if isinstance(fmt, FloatFormat):
        rules = float_arithmetic.rules_of(context.instruction, context.target, context.state)
        result = float_arithmetic.multiply(a, b, fmt, rules)
        return float_arithmetic.negated(result, fmt) if context.has("neg") else result
    return integer_arithmetic.scalar_product(a, b, fmt, negate=context.has("neg"), upper=context.has("upper32"))


def _extreme(a: Codes, b: Codes, fmt: Format, context: Context, sign: int) -> Codes:
    """Return the first where it is at least as extreme; NaN makes that false (option min_max_nan)."""
    first = sign * order_keys(a, fmt) >= sign * order_keys(b, fmt)
    nan_a, nan_b = is_nan(a, fmt), is_nan(b, fmt)
    first &= ~(nan_a | nan_b)
    if context.target.option("min_max_nan") == "number":
        first |= nan_b & ~nan_a
    return np.where(first, a, b)


def _maximum(a: Codes, b: Codes, fmt: Format, context: Context) -> Codes:
    return _extreme(a, b, fmt, context, 1)


def _minimum(a: Codes, b: Codes, fmt: Format, context: Context) -> Codes:
    return _extreme(a, b, fmt, context, -1)


def _and(a: Codes, b: Codes, fmt: Format, context: Context) -> Codes:
    if context.has("andn"):
        inverts_first = context.target.option("immediate_and_mask") == "first"
        a, b = (~a, b) if inverts_first else (a, ~b)
    both: Codes = a & b
    return both


def _or(a: Codes, b: Codes, fmt: Format, context: Context) -> Codes:
    either: Codes = a | b
    return either


def _xor(a: Codes, b: Codes, fmt: Format, context: Context) -> Codes:
    one: Codes = a ^ b
    return one


def _shift_left(a: Codes, b: NDArray[np.uint64], fmt: Format, context: Context) -> Codes:
    return integer_arithmetic.shift_logical(a, b, fmt, left=True)


def _shift_right(a: Codes, b: NDArray[np.uint64], fmt: Format, context: Context) -> Codes:
    return integer_arithmetic.shift_logical(a, b, fmt, left=False)


def _shift_arithmetic(a: Codes, b: NDArray[np.int64], fmt: Format, context: Context) -> Codes:
    assert isinstance(fmt, IntFormat)
    rounding = Rounding.HALF_UP if context.has("rhu") else Rounding.FLOOR
    return integer_arithmetic.shift_arithmetic(a, b, fmt, rounding, saturate=context.has("st"))


def _absolute(a: Codes, b: None, fmt: Format, context: Context) -> Codes:
    if isinstance(fmt, FloatFormat):
        magnitude: Codes = a & a.dtype.type(fmt.sign_bit - 1)
        return magnitude
    return integer_arithmetic.absolute(a, fmt)


def _not(a: Codes, b: None, fmt: Format, context: Context) -> Codes:
    inverted: Codes = ~a
    return inverted


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

    The vendor's compiler negates the amount of `ash.i16` by `sub.i16` into S (vect-01.c of its tests): what counts of
    the scalar is its low element.
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
    """One mnemonic: its operation, how its second source is read, and whether floats have it."""

    operation: Operation
    second: Second = _element
    floats: bool = True


KINDS: Mapping[str, ElementwiseKind] = {
    "add": ElementwiseKind(_add),
    "sub": ElementwiseKind(_subtract),
    "mul": ElementwiseKind(_multiply),
    "max": ElementwiseKind(_maximum),
    "min": ElementwiseKind(_minimum),
    "and": ElementwiseKind(_and),
    "or": ElementwiseKind(_or),
    "xor": ElementwiseKind(_xor),
    "shl": ElementwiseKind(_shift_left, _amounts),
    "shr": ElementwiseKind(_shift_right, _amounts),
    "ash": ElementwiseKind(_shift_arithmetic, _signed_amounts, floats=False),
    "abs": ElementwiseKind(_absolute, _nothing),
    "not": ElementwiseKind(_not, _nothing),
}
"""Every operation of this module by its mnemonic."""

# ------------------------------------------------------------------------------------------------------------ units

COORDINATE = FORMATS["i32"]
"""Element type of index registers."""


def _coordinate_codes(value: Value) -> Codes:
    return np.array([one & WORD_MASK for one in coordinates_of(value)], np.uint32)


@dataclass(frozen=True, slots=True)
class Elementwise:
    """An operation in one unit, ready to run."""

    instruction: TpcInstruction
    target: VliwTarget
    kind: ElementwiseKind
    finish: Callable[[Elementwise, OperandValues, State], Value]

    def __call__(self, operands: OperandValues, state: State) -> Effects:
        """Return the result in the form of the destination."""
        return Effects(self.finish(self, operands, state))

    def registers(self) -> Mapping[str, tuple[Register, ...]]:
        """Return the registers that the operands stand for."""
        return plain_registers(self.instruction, self.target)

    def compute(self, operands: OperandValues, state: State, fmt: Format, lanes: int) -> Codes:
        """Return the elements of the result before predicate and income."""
        context = Context(self.instruction, self.target, state)
        first = _element(given(self.instruction, operands, "src_a"), fmt, lanes, context)
        second = None
        if self.kind.second is not _nothing:
            second = self.kind.second(given(self.instruction, operands, "src_b"), fmt, lanes, context)
        return self.kind.operation(first, second, fmt, context)


def _in_vector(unit: Elementwise, operands: OperandValues, state: State) -> Value:
    fmt = element_format(str(unit.instruction.type), unit.target, state)
    codes = unit.compute(operands, state, fmt, lanes_of(fmt, unit.target.registers.vector_bytes))
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
    sources = [_truth(given(unit.instruction, operands, role)) for role in roles]
    codes = unit.kind.operation(sources[0], sources[-1], _TRUTH, context)
    found = codes != 0
    return merged(bool(found[0]) if destination_file(unit.instruction) is File.SP else found, operands)


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
        IllegalError: the generation or the operation lacks the element type, or a switch means nothing for it.
    """
    kind = KINDS[instruction.mnemonic]
    file = destination_file(instruction)
    assert file is not None
    if file in (File.V, File.S):
        legal = tuple(name for name in whole_bytes(target) if kind.floats or not isinstance(FORMATS[name], FloatFormat))
        name = check_element(instruction, target, instruction.type, legal)
        if isinstance(FORMATS[name], FloatFormat) or instruction.switch("fp16_ftz_in") == 1:
            float_arithmetic.check_switches(instruction, target)
    if instruction.switch("rhaz_rs") == 1:
        message = "ash rhaz_rs: the bits that a preceding MUL discards are not modelled"
        raise IllegalError(message, span=instruction.span, legal=("ash", "ash rhu"))
    return Elementwise(instruction, target, kind, _UNITS[file])
