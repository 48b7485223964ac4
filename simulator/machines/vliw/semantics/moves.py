"""Elements in S registers: how a result narrower than the register is held there."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass

import numpy as np

from castsim.isa.errors import IllegalError
from castsim.isa.formats import FORMATS, Format, IntFormat
from castsim.isa.tpc.program import WORD_BITS, DimensionMask, File, Immediate, Register, Special, TpcInstruction
from castsim.machines.vliw.semantics.configuration import check_element, stepped
from castsim.machines.vliw.semantics.interface import (
    Coordinates,
    Effects,
    Mask,
    OperandValues,
    State,
    Value,
    Vector,
    Words,
)
from castsim.machines.vliw.semantics.lanes import (
    WORD_MASK,
    broadcast,
    given,
    lanes_of,
    merged,
    signed_word,
    vector_of,
    vectors,
)
from castsim.machines.vliw.semantics.registers import plain_registers
from castsim.targets.vliw import VliwTarget


def narrow_result(code: int, fmt: Format, operands: OperandValues, target: VliwTarget) -> int:
    """Return S after an instruction put an element into its low bits (option narrow_scalar_result).

    Scalar predicates only: an instruction whose predicate is false does not come here.
    """
    if fmt.bits >= WORD_MASK.bit_length():
        return code & WORD_MASK
    low = (1 << fmt.bits) - 1
    rule = target.option("narrow_scalar_result")
    if rule == "keep" and isinstance(operands.income, int):
        return operands.income & ~low & WORD_MASK | code & low
    if rule == "sign_extend" and isinstance(fmt, IntFormat) and fmt.signed and code >> (fmt.bits - 1) & 1:
        return code & low | WORD_MASK & ~low
    return code & low


def scalar(value: object) -> int:
    """Return the content of an S register or immediate as an unsigned number."""
    assert isinstance(value, int)
    return value & WORD_MASK


def signed_scalar(value: object) -> int:
    """Return the content of an S register or immediate as a signed number."""
    return signed_word(scalar(value))


# Index registers: SET_INDX, PRMT_INDX, MOV_IRF_DIM and arithmetic on coordinates.
#
# Source: docs/reference/tpc.md section 7.1.

_FIELD_BITS = 3
"""Width of one dimension number in the pattern of PRMT_INDX."""


def masked_dimensions(instruction: TpcInstruction, operands: OperandValues, target: VliwTarget) -> tuple[bool, ...]:
    """Return which dimensions the mask of an instruction admits, dimension 0 first.

    Raises:
        IllegalError: a mask register holds bits beyond the dimensions.
    """
    mask = instruction.operand("mask")
    bits = mask.bits if isinstance(mask, DimensionMask) else scalar(operands.sources["mask"])
    count = target.registers.index_dimensions
    if bits >> count:
        message = f"dimension mask {bits:#x} has bits beyond the {count} dimensions"
        raise IllegalError(message, span=instruction.span, legal=(f"0 to {(1 << count) - 1:#x}",))
    return tuple(bool(bits >> dimension & 1) for dimension in range(count))


def written_dimensions(new: Value, dimensions: tuple[bool, ...], operands: OperandValues) -> Value:
    """Return an index register with the admitted dimensions replaced."""
    parts = zip(dimensions, coordinates_of(new), coordinates_of(operands.income), strict=True)
    return merged(tuple(one if admitted else old for admitted, one, old in parts), operands)


def coordinates_of(value: Value | None) -> Coordinates:
    """Return an index register's value as such."""
    assert isinstance(value, tuple)
    return tuple(one for one in value if isinstance(one, int))


@dataclass(frozen=True, slots=True)
class SetIndex:
    """SET_INDX: a scalar to the masked dimensions."""

    instruction: TpcInstruction
    target: VliwTarget

    def __call__(self, operands: OperandValues, state: State) -> Effects:
        """Return the changed coordinates."""
        value = signed_scalar(given(self.instruction, operands, "src_a"))
        dimensions = masked_dimensions(self.instruction, operands, self.target)
        return Effects(written_dimensions((value,) * len(dimensions), dimensions, operands))

    def registers(self) -> Mapping[str, tuple[Register, ...]]:
        """Return the registers that the operands stand for."""
        return plain_registers(self.instruction, self.target)


@dataclass(frozen=True, slots=True)
class PermuteIndex:
    """PRMT_INDX: dimension k takes the dimension that the k-th field of a scalar names."""

    instruction: TpcInstruction
    target: VliwTarget

    def __call__(self, operands: OperandValues, state: State) -> Effects:
        """Return the permuted coordinates.

        Raises:
            IllegalError: a field names no dimension.
        """
        source = coordinates_of(given(self.instruction, operands, "src_a"))
        pattern = scalar(given(self.instruction, operands, "src_b"))
        fields = [pattern >> _FIELD_BITS * k & (1 << _FIELD_BITS) - 1 for k in range(len(source))]
        wrong = [field for field in fields if field >= len(source)]
        if wrong:
            message = f"prmt_indx: pattern {pattern:#x} names dimension {wrong[0]}"
            raise IllegalError(message, span=self.instruction.span, legal=(f"0 to {len(source) - 1}",))
        return Effects(merged(tuple(source[field] for field in fields), operands))

    def registers(self) -> Mapping[str, tuple[Register, ...]]:
        """Return the registers that the operands stand for."""
        return plain_registers(self.instruction, self.target)


@dataclass(frozen=True, slots=True)
class MoveDimension:
    """MOV_IRF_DIM: one coordinate to a scalar."""

    instruction: TpcInstruction
    target: VliwTarget

    def __call__(self, operands: OperandValues, state: State) -> Effects:
        """Return the coordinate as 32 bits."""
        dimension = self.instruction.operand("dimension")
        assert isinstance(dimension, Immediate)
        coordinates = coordinates_of(given(self.instruction, operands, "src_a"))
        return Effects(merged(coordinates[dimension.value] & WORD_MASK, operands))

    def registers(self) -> Mapping[str, tuple[Register, ...]]:
        """Return the registers that the operands stand for."""
        return plain_registers(self.instruction, self.target)


# MOV in all its forms (docs/reference/tpc.md section 7.1, table of moves).

_MASK_BITS = 4
"""Bits of a VP per 32-bit lane in moves between VP and V."""

_LANE_NUMBERS = {"V_LANE_ID_32": "u32", "V_LANE_ID_16": "u16", "V_LANE_ID_8": "u8"}
"""Registers that hold the number of every lane, and its type."""

_VECTOR_RANDOM = {"LFSR": True, "LFSR_NO_CHANGE": False}
_SCALAR_RANDOM = {"S_LFSR": True, "S_LFSR_NO_CHANGE": False}
"""Names of the random generators, and whether reading advances them."""

_Value = Callable[["Move", OperandValues, State], Effects]


@dataclass(frozen=True, slots=True)
class Move:
    """A MOV, ready to run."""

    instruction: TpcInstruction
    target: VliwTarget
    run: _Value

    def __call__(self, operands: OperandValues, state: State) -> Effects:
        """Return the value moved."""
        return self.run(self, operands, state)

    def registers(self) -> Mapping[str, tuple[Register, ...]]:
        """Return the registers that the operands stand for."""
        return plain_registers(self.instruction, self.target)

    @property
    def vector_bytes(self) -> int:
        """Size of a vector."""
        return self.target.registers.vector_bytes

    def source(self, operands: OperandValues) -> Value:
        """Return the value of the source."""
        return given(self.instruction, operands, "src_a")


def prepare_move(instruction: TpcInstruction, target: VliwTarget) -> Move:
    """Choose what a MOV does by the classes of its operands.

    Raises:
        IllegalError: an element type that the generation lacks.
    """
    dest, source = (_class_of(instruction, role) for role in ("dest", "src_a"))
    if instruction.type is not None and dest in (File.V, File.S):
        legal = tuple(name for name in target.elements.formats if FORMATS[name].bits <= WORD_BITS)
        check_element(instruction, target, instruction.type, legal)
    run = _BY_CLASS.get((dest, source)) or _BY_CLASS.get((dest, "")) or _copy
    found = Move(instruction, target, run)
    found.registers()
    return found


def _class_of(instruction: TpcInstruction, role: str) -> str:
    operand = instruction.operand(role)
    if isinstance(operand, Register):
        return operand.file
    return operand.name if isinstance(operand, Special) else "imm"


# ------------------------------------------------------------------------------------------------------- to vectors


def _copy(move: Move, operands: OperandValues, state: State) -> Effects:
    return Effects(merged(move.source(operands), operands))


def _broadcast(move: Move, operands: OperandValues, state: State) -> Effects:
    fmt = FORMATS[str(move.instruction.type)]
    codes = broadcast(move.source(operands), fmt, lanes_of(fmt, move.vector_bytes))
    return Effects(merged(vector_of(codes, fmt), operands))


def _lane_numbers(move: Move, operands: OperandValues, state: State) -> Effects:
    fmt = FORMATS[_LANE_NUMBERS[_class_of(move.instruction, "src_a")]]
    return Effects(merged(vector_of(np.arange(lanes_of(fmt, move.vector_bytes)), fmt), operands))


def _bytes_of(words: Words) -> Vector:
    return words.astype("<u4").view(np.uint8)


def _read_random(move: Move, operands: OperandValues, state: State) -> Effects:
    after = None
    if _VECTOR_RANDOM[_class_of(move.instruction, "src_a")]:
        after = stepped(state.vector_lfsr, "vector_lfsr_polynomial", move.target, state)
    return Effects(merged(_bytes_of(state.vector_lfsr), operands), vector_lfsr=after)


def _reseed(move: Move, operands: OperandValues, state: State) -> Effects:
    seed = vectors(move.source(operands))[0]
    if isinstance(operands.predicate, np.ndarray):
        seed = np.where(operands.predicate, seed, _bytes_of(state.vector_lfsr))
    return Effects(None, vector_lfsr=seed.view("<u4").astype(np.uint32))


def _bits_to_lanes(move: Move, operands: OperandValues, state: State) -> Effects:
    mask = vectors(move.source(operands))[0].reshape(-1, _MASK_BITS)
    lanes: Words = (mask.astype("<u4") << np.arange(_MASK_BITS, dtype="<u4")).sum(axis=1, dtype="<u4")
    return Effects(merged(lanes.view(np.uint8), operands))


# ---------------------------------------------------------------------------------------------------- to predicates


def _lanes_to_bits(move: Move, operands: OperandValues, state: State) -> Effects:
    lanes = vectors(move.source(operands))[0].view("<u4")
    mask: Mask = (lanes[:, None] >> np.arange(_MASK_BITS, dtype="<u4") & 1 != 0).reshape(-1)
    return Effects(merged(mask, operands))


def _word_to_mask(move: Move, operands: OperandValues, state: State) -> Effects:
    """The 32 bits to every section of the VP, or to one."""
    bits: Mask = (scalar(move.source(operands)) >> np.arange(WORD_BITS) & 1) != 0
    section = move.instruction.operand("section")
    mask = np.tile(bits, move.vector_bytes // WORD_BITS)
    if isinstance(section, Immediate):
        assert operands.income is not None
        kept = np.arange(mask.size) // WORD_BITS != section.value
        mask = np.where(kept, vectors(operands.income)[0] != 0, mask)
    return Effects(merged(mask, operands))


def _truth_to_mask(move: Move, operands: OperandValues, state: State) -> Effects:
    mask: Mask = np.full(move.vector_bytes, bool(move.source(operands)))
    return Effects(merged(mask, operands))


def _word_to_truth(move: Move, operands: OperandValues, state: State) -> Effects:
    return Effects(merged(bool(scalar(move.source(operands)) & 1), operands))


# ------------------------------------------------------------------------------------------------------- to scalars


def _to_scalar(move: Move, operands: OperandValues, state: State) -> Effects:
    """An immediate of a narrow type gives its low bits, a register all of its own."""
    value = scalar(move.source(operands))
    if isinstance(move.instruction.operand("src_a"), Immediate):
        fmt = FORMATS[str(move.instruction.type)]
        value = narrow_result(value & (1 << fmt.bits) - 1, fmt, operands, move.target)
    return Effects(merged(value, operands))


def _read_scalar_random(move: Move, operands: OperandValues, state: State) -> Effects:
    after = None
    if _SCALAR_RANDOM[_class_of(move.instruction, "src_a")]:
        word = np.array([state.scalar_lfsr], np.uint32)
        after = int(stepped(word, "scalar_lfsr_polynomial", move.target, state)[0])
    return Effects(merged(state.scalar_lfsr, operands), scalar_lfsr=after)


def _reseed_scalar(move: Move, operands: OperandValues, state: State) -> Effects:
    return Effects(None, scalar_lfsr=scalar(move.source(operands)))


def _to_index(move: Move, operands: OperandValues, state: State) -> Effects:
    value = move.source(operands)
    dimensions = masked_dimensions(move.instruction, operands, move.target)
    if isinstance(value, int):
        value = (signed_scalar(value),) * move.target.registers.index_dimensions
    return Effects(written_dimensions(value, dimensions, operands))


_BY_CLASS: dict[tuple[str, str], _Value] = {
    (File.V, File.S): _broadcast,
    (File.V, "imm"): _broadcast,
    (File.V, File.VP): _bits_to_lanes,
    **{(File.V, name): _lane_numbers for name in _LANE_NUMBERS},
    **{(File.V, name): _read_random for name in _VECTOR_RANDOM},
    ("LFSR", File.V): _reseed,
    (File.VP, File.V): _lanes_to_bits,
    (File.VP, File.S): _word_to_mask,
    (File.VP, "imm"): _word_to_mask,
    (File.VP, File.SP): _truth_to_mask,
    (File.SP, File.S): _word_to_truth,
    (File.SP, "imm"): _word_to_truth,
    (File.S, File.S): _to_scalar,
    (File.S, "imm"): _to_scalar,
    **{(File.S, name): _read_scalar_random for name in _SCALAR_RANDOM},
    ("S_LFSR", File.S): _reseed_scalar,
    (File.I, ""): _to_index,
}
"""What moves between unlike classes do; all others copy."""
