"""Registers as elements: lane views of V, S and I, broadcasts, predicates and income.

Bytes are little endian; two 4-bit elements share a byte, the lower nibble first.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from castsim.isa.codes import Codes
from castsim.isa.errors import IllegalError
from castsim.isa.formats import FloatFormat, Format, IntFormat
from castsim.isa.tpc.program import GROUPED, File, Immediate, Register, TpcInstruction
from castsim.machines.vliw.semantics.configuration import Effects, Mask, OperandValues, State, Value, Vector
from castsim.numerics import code_dtype
from castsim.targets.vliw import VliwTarget

WORD_MASK = (1 << 32) - 1
"""The bits of an S register."""


def given(instruction: TpcInstruction, operands: OperandValues, role: str) -> Value:
    """Return the value of a source: the immediate in the instruction, or what was read from the register."""
    operand = instruction.operand(role)
    return operand.value if isinstance(operand, Immediate) else operands.sources[role]


def lanes_of(fmt: Format, vector_bytes: int) -> int:
    """Return how many elements a vector holds."""
    return vector_bytes * 8 // fmt.bits


def vectors(value: Value) -> tuple[Vector, ...]:
    """Return the vectors of an operand that is one or a group of them."""
    group = value if isinstance(value, tuple) else (value,)
    return tuple(part.view(np.uint8) for part in group if isinstance(part, np.ndarray))


def elements(value: Value, fmt: Format) -> Codes:
    """Return the elements of a vector, or of a group of vectors one after the other."""
    group = vectors(value)
    whole: Codes = group[0] if len(group) == 1 else np.concatenate(group)
    if fmt.bits < 8:
        nibbles: Codes = np.stack((whole & 0xF, whole >> 4), axis=-1).reshape(-1)
        return nibbles
    return whole.view(code_dtype(fmt).newbyteorder("<"))


def vector_of(codes: Codes, fmt: Format) -> Vector:
    """Return the vector that holds the elements."""
    if fmt.bits < 8:
        pairs = codes.astype(np.uint8).reshape(-1, 2)
        return (pairs[:, 0] | pairs[:, 1] << 4).astype(np.uint8)
    return np.ascontiguousarray(codes, code_dtype(fmt).newbyteorder("<")).view(np.uint8)


def broadcast(value: Value, fmt: Format, lanes: int) -> Codes:
    """Return the elements of an operand of a vector instruction: of a vector, or the low bits of S in every lane."""
    if isinstance(value, np.ndarray):
        return elements(value, fmt)
    assert isinstance(value, int)
    return np.full(lanes, value & (1 << fmt.bits) - 1, code_dtype(fmt))


def integers(codes: Codes, fmt: Format) -> NDArray[np.int64]:
    """Return integer elements as numbers."""
    assert isinstance(fmt, IntFormat)
    if not fmt.signed:
        return codes.astype(np.int64)
    top = 64 - fmt.bits
    return codes.astype(np.int64) << top >> top


def codes_of(numbers: NDArray[np.int64], fmt: Format) -> Codes:
    """Return the low bits of numbers as elements."""
    return (numbers & ((1 << fmt.bits) - 1)).astype(code_dtype(fmt))


def signed_word(pattern: int) -> int:
    """Return the number that 32 bits stand for in two's complement."""
    return (pattern & WORD_MASK ^ 1 << 31) - (1 << 31)


def is_nan(codes: Codes, fmt: Format) -> Mask:
    """Return which elements are NaN; integers never are."""
    if not isinstance(fmt, FloatFormat) or fmt.infinity_code is None:
        return np.zeros(codes.shape, np.bool_)
    found: Mask = (codes & (fmt.sign_bit - 1)) > fmt.infinity_code
    return found


def order_keys(codes: Codes, fmt: Format) -> NDArray[np.int64]:
    """Return integers in the order of the elements' values (NaN aside); both zeros give 0."""
    if isinstance(fmt, IntFormat):
        return integers(codes, fmt)
    magnitude = (codes & (fmt.sign_bit - 1)).astype(np.int64)
    return np.where((codes & fmt.sign_bit) != 0, -magnitude, magnitude)


def merged(new: Value, operands: OperandValues) -> Value:
    """Return the destination's new value under the predicate: a false one keeps income, byte by byte for VP."""
    predicate, income = operands.predicate, operands.income
    if isinstance(predicate, bool | np.bool_):
        assert predicate or income is not None
        return new if predicate or income is None else income
    if isinstance(new, tuple) and income is not None:
        return tuple(np.where(predicate, *pair) for pair in zip(vectors(new), vectors(income), strict=True))
    if isinstance(new, np.ndarray) and isinstance(income, np.ndarray):
        return np.where(predicate, new, income)
    raise IllegalError("a vector predicate needs a vector destination", legal=("SP predicates",))


# Which registers an operand stands for: one, or a group that begins with the one named.


def group_of(instruction: TpcInstruction, role: str, count: int, target: VliwTarget) -> tuple[Register, ...]:
    """Return the registers of an operand that must name `count` of them.

    A pair or quad is named by D, A or Z, or by the first of its single registers; a single one that does not begin a
    group is refused or rounded down (option unaligned_group).

    Raises:
        IllegalError: the operand names another number of registers, or one within a group.
    """
    operand = instruction.operand(role)
    assert isinstance(operand, Register)
    file, size = GROUPED.get(operand.file, (operand.file, 1))
    if size not in (1, count):
        legal = _names(file, count)
        message = f"{instruction.mnemonic}: {role} {operand} names {size} registers, needed: {count}"
        raise IllegalError(message, span=instruction.span, legal=legal)
    first = operand.index - operand.index % count
    last = first + count - 1
    if first != operand.index and target.option("unaligned_group") == "refuse":
        message = f"{instruction.mnemonic}: {role} {operand} does not begin a group of {count} registers"
        raise IllegalError(message, span=instruction.span, legal=(f"{file}{first}", f"{file}{last + 1}"))
    return tuple(Register(file, index) for index in range(first, last + 1))


@dataclass(frozen=True, slots=True)
class Unit(ABC):
    """An instruction whose legality is checked, ready to run; its subclasses say on what and what it gives."""

    instruction: TpcInstruction
    target: VliwTarget

    @abstractmethod
    def __call__(self, operands: OperandValues, state: State) -> Effects:
        """Return the effects on operands, under a predicate that has lanes or is true."""

    def registers(self) -> Mapping[str, tuple[Register, ...]]:
        """Return the registers that the operands stand for, by role, as their classes say."""
        found = {}
        for spec, operand in self.instruction.specified:
            if isinstance(operand, Register):
                count = GROUPED.get(operand.file, (operand.file, 1))[1]
                found[spec.role] = group_of(self.instruction, spec.role, count, self.target)
        return found

    @property
    def vector_bytes(self) -> int:
        """Size of a vector."""
        return self.target.registers.vector_bytes

    def lanes(self, fmt: Format) -> int:
        """Return how many elements a vector holds."""
        return lanes_of(fmt, self.vector_bytes)

    def value(self, operands: OperandValues, role: str) -> Value:
        """Return the value of a source: the immediate in the instruction, or what was read from the register."""
        return given(self.instruction, operands, role)


def destination_file(instruction: TpcInstruction) -> File | None:
    """Return the class of the destination, None where it has a name instead."""
    operand = instruction.operand("dest")
    return operand.file if isinstance(operand, Register) else None


def _names(file: File, count: int) -> tuple[str, ...]:
    groups = [group for group, (single, size) in GROUPED.items() if (single, size) == (file, count)]
    return (*groups, file) if count > 1 else (file,)
