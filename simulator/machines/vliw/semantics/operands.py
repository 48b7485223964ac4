"""Operands with their lanes, effects and state of instructions; formats, rounding modes, random words from state."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping
from functools import lru_cache

import numpy as np
from numpy.typing import NDArray

from castsim.isa.dataclass import dataclass, field
from castsim.isa.errors import IllegalError, Span
from castsim.isa.formats import FORMATS, Codes, FloatFormat, Format, IntFormat, Rounding, format_named
from castsim.isa.tpc.program import GROUPED, File, Immediate, Register, TpcInstruction
from castsim.numerics.blocks import code_dtype
from castsim.targets.vliw import RoundingMode, RoundingModes, VliwTarget

# What the values of an instruction depend on and what they change: the contract between machine and semantics.
#
# The machine reads registers (old or new, as its pipeline says), hands them over, and commits what comes back. Nothing
# here knows of cycles, slots or register numbers.

Vector = NDArray[np.uint8]
"""A V register: its bytes, shape (vector_bytes,)."""

Mask = NDArray[np.bool_]
"""A VP register: an entry per byte of a vector, shape (vector_bytes,)."""

Words = NDArray[np.uint32]
"""State of the vector unit's random generator: one 32-bit word per register, shape (vector_bytes / 4,)."""

Coordinates = tuple[int, ...]
"""An I register: signed 32-bit integers, dimension 0 first."""

Value = Vector | Mask | tuple[Vector, ...] | int | Coordinates
"""The contents of a register.

V: `Vector`; D, A and V operands of a group: a tuple of two or four `Vector`; VP: `Mask`; SP: bool; S: the
unsigned 32-bit pattern; Z and AD: an unsigned 64-bit pattern; I: `Coordinates`.
"""


@dataclass(frozen=True, slots=True)
class OperandValues:
    """The values that an instruction reads from registers.

    `sources` maps roles (`src_a`, `src_b`, ..) to the values of register operands; `Prepared.registers` gives the
    registers of a role. Immediates, dimension masks and section numbers are in the instruction and not passed; a mask
    in a register (M0 to M3) is passed under `mask` as an integer. Named registers are passed in the form of the file
    that they belong to (PC and hardware registers: int, S_CARRY: bool, V_CARRY: `Mask`, ZP_REG: `Vector`), but random
    generators and lane numbers, which come from `State` or are constant. `income` is the destination's old value in the
    form of the destination (None only for a random generator). `predicate` has its polarity applied: bool from SP,
    `Mask` from VP.

    Arrays are never written to.
    """

    sources: Mapping[str, Value]
    income: Value | None
    predicate: bool | Mask = True


@dataclass(frozen=True, slots=True)
class State:
    """The machine state besides registers that affects values.

    `configuration` has the visible values of the memory-mapped registers, by the names of `VliwTarget.configuration`
    (`round`, `convert_round`, `vector_lfsr_polynomial`, `scalar_lfsr_polynomial`, `f8_143_bias`, `f16_flush_inputs`); a
    missing one has its reset value. `vector_lfsr` and `scalar_lfsr` are the random generators.
    """

    configuration: Mapping[str, int]
    vector_lfsr: Words
    scalar_lfsr: int


@dataclass(frozen=True, slots=True)
class Effects:
    """The effects of an instruction.

    `result` is the destination's complete new value: income where nothing is written or the predicate is false; the
    form is that of the destination (two or four vectors for a group). None: the destination is a random generator.
    `vector_lfsr` and `scalar_lfsr` are new states of the generators, None if unchanged. `remarks` are sentences about
    uses that no source documents, for the checked mode.
    """

    result: Value | None
    vector_lfsr: Words | None = None
    scalar_lfsr: int | None = None
    remarks: tuple[str, ...] = field(default=())


ROUND = "round"
"""The configuration register of the arithmetic's rounding mode, and of CONVERT's unless that has a separate one."""

CONVERT_ROUND = "convert_round"
"""The configuration register of CONVERT's rounding mode."""

_ARITHMETIC = (Rounding.RINT, Rounding.TRUNC, Rounding.CEIL, Rounding.FLOOR)
"""The modes that ADD, SUB and MUL have; any other acts as the first (docs/reference/tpc.md section 5.1)."""


def configured(state: State, target: VliwTarget, name: str) -> int:
    """Return the content of a memory-mapped register: from the state, or else its reset value."""
    value = state.configuration.get(name)
    return target.configuration[name].reset if value is None else value


# --------------------------------------------------------------------------------------------------------- formats

_format_named = lru_cache(maxsize=64)(format_named)


def check_element(instruction: TpcInstruction, target: VliwTarget, name: str | None, legal: tuple[str, ...]) -> str:
    """Return the element type of an instruction, which must exist.

    Raises:
        IllegalError: the generation or the instruction lacks it; the message lists those of `legal` in the generation.
    """
    available = tuple(element for element in legal if element in target.elements.formats)
    if name is None or name not in available:
        raise IllegalError(
            f"{target.name} has no {instruction.mnemonic} of {name}", span=instruction.span, legal=available
        )
    return name


def whole_bytes(target: VliwTarget) -> tuple[str, ...]:
    """Return the element types of the arithmetic units' lanes: of 8, 16 and 32 bits."""
    return tuple(name for name in target.elements.formats if 8 <= FORMATS[name].bits <= 32)


def element_format(name: str, target: VliwTarget, state: State) -> Format:
    """Return a format, with the exponent bias of the configuration register if it has one.

    Raises:
        ReadError: the register has a bias that is illegal for the format.
    """
    register = f"{name}_bias"
    if register not in target.configuration:
        return FORMATS[name]
    return _format_named(f"{name}@{configured(state, target, register)}")


# -------------------------------------------------------------------------------------------------------- rounding


def check_mode(instruction: TpcInstruction, modes: RoundingModes, word: object) -> RoundingMode:
    """Return the rounding mode of that name.

    Raises:
        IllegalError: the instruction lacks the mode; the message lists the legal ones.
    """
    if word not in modes.modes:
        message = f"{instruction.mnemonic} has no rounding mode {word} here"
        raise IllegalError(message, span=instruction.span, legal=modes.modes)
    return modes.modes[str(word)]


def convert_mode(mode: RoundingMode, target: VliwTarget, state: State, span: Span) -> RoundingMode:
    """Return the rounding mode of CONVERT or NEARBYINT: its own, or the one in the configuration register.

    Raises:
        IllegalError: the register's number is not a mode.
    """
    if mode.rounding is not None:
        return mode
    register = CONVERT_ROUND if CONVERT_ROUND in target.configuration else ROUND
    code = configured(state, target, register)
    coded_mode = _coded(code, target)
    if coded_mode is None:
        legal = [f"{mode.code} ({word})" for word, mode in target.convert_rounding.modes.items() if mode.rounding]
        message = f"configuration register {register} holds {code}: not a rounding mode"
        raise IllegalError(message, span=span, legal=legal)
    return coded_mode


def arithmetic_rounding(target: VliwTarget, state: State) -> Rounding:
    """Return the mode of float ADD, SUB and MUL."""
    coded_mode = _coded(configured(state, target, ROUND), target)
    return coded_mode.rounding if coded_mode is not None and coded_mode.rounding in _ARITHMETIC else _ARITHMETIC[0]


def _coded(code: int, target: VliwTarget) -> RoundingMode | None:
    modes = target.convert_rounding.modes.values()
    return next((mode for mode in modes if mode.code == code and mode.rounding is not None), None)


# ---------------------------------------------------------------------------------------------------------- random


@dataclass(frozen=True, slots=True)
class Drawn:
    """Random words, one per lane, and the generator after this use (the vector or the scalar one)."""

    words: Words | None = None
    vector_lfsr: Words | None = None
    scalar_lfsr: int | None = None

    def effects(self, result: Value | None, remarks: tuple[str, ...] = ()) -> Effects:
        """Return the effects of an instruction that drew these words."""
        return Effects(result, self.vector_lfsr, self.scalar_lfsr, remarks)


def draw(
    rounding: Rounding | None,
    lanes: NDArray[np.intp] | None,
    active: NDArray[np.bool_] | None,
    target: VliwTarget,
    state: State,
) -> Drawn:
    """Return the random words of one instruction if its rounding needs any.

    `lanes` are the indices of the lanes of the vector unit: lane i reads word i modulo the number of words; None: the
    scalar unit. `active` marks those that the predicate admits (None: all). Options decide how a register of words
    serves more lanes than it has, and which words step.

    Raises:
        IllegalError: there are more lanes than words, and option random_lane_word refuses that.
    """
    if rounding is not Rounding.STOCHASTIC:
        return Drawn()
    if lanes is None:
        words = np.array([state.scalar_lfsr], np.uint32)
        return Drawn(words, scalar_lfsr=int(stepped(words, "scalar_lfsr_polynomial", target, state)[0]))
    count = state.vector_lfsr.size
    if lanes.size and int(lanes.max()) >= count and target.option("random_lane_word") == "refuse":
        message = f"no source documents which random words lanes from {count} on use (option random_lane_word)"
        raise IllegalError(message, legal=(f"up to {count} lanes",))
    used = np.full(count, target.option("random_step") == "all")
    used[(lanes if active is None else lanes[active]) % count] = True
    after = stepped(state.vector_lfsr, "vector_lfsr_polynomial", target, state)
    return Drawn(state.vector_lfsr[lanes % count], vector_lfsr=np.where(used, after, state.vector_lfsr))


def stepped(words: Words, polynomial: str, target: VliwTarget, state: State) -> Words:
    """Return a generator after one step; `polynomial` names its configuration register."""
    return lfsr_step(words, configured(state, target, polynomial))


def lfsr_step(words: Words, polynomial: int) -> Words:
    """Return 32-bit Galois shift registers, whose output is their state, after one step (docs/reference/tpc.md 5).

    Each shifts right, and adds the polynomial where a 1 was shifted out.
    """
    fell_out = np.uint32(0) - (words & np.uint32(1))
    return words >> np.uint32(1) ^ fell_out & np.uint32(polynomial)


# Registers as elements: lane views of V, S and I, broadcasts, predicates and income.
#
# Bytes are little endian; two 4-bit elements share a byte, the lower nibble first.

WORD_MASK = (1 << 32) - 1
"""The bits of an S register."""


def given(instruction: TpcInstruction, operands: OperandValues, role: str) -> Value:
    """Return the value of a source: the immediate in the instruction, or the value read from the register."""
    operand = instruction.operand(role)
    return operand.value if isinstance(operand, Immediate) else operands.sources[role]


def lanes_of(fmt: Format, vector_bytes: int) -> int:
    """Return the number of elements of a vector."""
    return vector_bytes * 8 // fmt.bits


def vectors(value: Value) -> tuple[Vector, ...]:
    """Return the vectors of an operand, a single one or a group."""
    group = value if isinstance(value, tuple) else (value,)
    return tuple(part.view(np.uint8) for part in group if isinstance(part, np.ndarray))


def elements(value: Value, fmt: Format) -> Codes:
    """Return the elements of a vector, or of a group of vectors in sequence."""
    group = vectors(value)
    whole: Codes = group[0] if len(group) == 1 else np.concatenate(group)
    if fmt.bits < 8:
        nibbles: Codes = np.stack((whole & 0xF, whole >> 4), axis=-1).reshape(-1)
        return nibbles
    return whole.view(code_dtype(fmt).newbyteorder("<"))


def vector_of(codes: Codes, fmt: Format) -> Vector:
    """Return the vector with the elements."""
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
    """Return the two's complement value of 32 bits."""
    return (pattern & WORD_MASK ^ 1 << 31) - (1 << 31)


def is_nan(codes: Codes, fmt: Format) -> Mask:
    """Return a mask of NaN elements; integers never are."""
    if not isinstance(fmt, FloatFormat) or fmt.infinity_code is None:
        return np.zeros(codes.shape, np.bool_)
    mask: Mask = (codes & (fmt.sign_bit - 1)) > fmt.infinity_code
    return mask


def nan_code(fmt: FloatFormat) -> int:
    """Return the NaN that conversions and arithmetic produce: all bits except the sign."""
    return (1 << (fmt.bits - 1)) - 1


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
    """Return the registers of an operand, which must name `count` of them.

    D, A or Z, or the first of its single registers, name a pair or quad; a single one that does not begin a
    group is refused or rounded down (option unaligned_group).

    Raises:
        IllegalError: the operand names another number of registers, or one within a group.
    """
    operand = instruction.operand(role)
    assert isinstance(operand, Register)
    file, size = GROUPED.get(operand.file, (operand.file, 1))
    if size not in (1, count):
        legal = _names(file, count)
        message = f"{instruction.mnemonic}: {role} {operand} has {size} registers; it needs {count}"
        raise IllegalError(message, span=instruction.span, legal=legal)
    first = operand.index - operand.index % count
    last = first + count - 1
    if first != operand.index and target.option("unaligned_group") == "refuse":
        message = f"{instruction.mnemonic}: {role} {operand} must be the first of a group of {count} registers"
        raise IllegalError(message, span=instruction.span, legal=(f"{file}{first}", f"{file}{last + 1}"))
    return tuple(Register(file, index) for index in range(first, last + 1))


@dataclass(frozen=True, slots=True)
class Unit(ABC):
    """A prepared instruction; subclasses define its operands and result."""

    instruction: TpcInstruction
    target: VliwTarget

    @abstractmethod
    def __call__(self, operands: OperandValues, state: State) -> Effects:
        """Return the effects on operands, under a predicate that has lanes or is true."""

    def registers(self) -> Mapping[str, tuple[Register, ...]]:
        """Return the registers of the operands by role, from their classes."""
        groups = {}
        for spec, operand in self.instruction.specified:
            if isinstance(operand, Register):
                count = GROUPED.get(operand.file, (operand.file, 1))[1]
                groups[spec.role] = group_of(self.instruction, spec.role, count, self.target)
        return groups

    @property
    def vector_bytes(self) -> int:
        """Number of bytes of a vector."""
        return self.target.registers.vector_bytes

    def lanes(self, fmt: Format) -> int:
        """Return the number of elements of a vector."""
        return lanes_of(fmt, self.vector_bytes)

    def value(self, operands: OperandValues, role: str) -> Value:
        """Return the value of a source: the immediate in the instruction, or the value read from the register."""
        return given(self.instruction, operands, role)


def destination_file(instruction: TpcInstruction) -> File | None:
    """Return the class of the destination, None for a named register."""
    operand = instruction.operand("dest")
    return operand.file if isinstance(operand, Register) else None


def _names(file: File, count: int) -> tuple[str, ...]:
    groups = [group for group, (single, size) in GROUPED.items() if (single, size) == (file, count)]
    return (*groups, file) if count > 1 else (file,)
