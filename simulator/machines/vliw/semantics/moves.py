"""MOV in all its forms (docs/reference/tpc.md section 7.1, table of moves)."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass

import numpy as np

from castsim.isa.formats import FORMATS
from castsim.isa.tpc.program import WORD_BITS, File, Immediate, Register, Special, TpcInstruction
from castsim.machines.vliw.semantics.configuration import check_element, stepped
from castsim.machines.vliw.semantics.indices import masked_dimensions, written_dimensions
from castsim.machines.vliw.semantics.interface import Effects, Mask, OperandValues, State, Value, Vector, Words
from castsim.machines.vliw.semantics.lanes import broadcast, given, lanes_of, merged, vector_of, vectors
from castsim.machines.vliw.semantics.registers import plain_registers
from castsim.machines.vliw.semantics.scalars import narrow_result, scalar, signed_scalar
from castsim.targets.vliw import VliwTarget

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
