"""Index registers: SET_INDX, PRMT_INDX, MOV_IRF_DIM and arithmetic on coordinates.

Source: docs/reference/tpc.md section 7.1.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from castsim.isa.errors import IllegalError
from castsim.isa.tpc.program import DimensionMask, Immediate, Register, TpcInstruction
from castsim.machines.vliw.semantics.interface import Coordinates, Effects, OperandValues, State, Value
from castsim.machines.vliw.semantics.lanes import WORD_MASK, given, merged
from castsim.machines.vliw.semantics.registers import plain_registers
from castsim.machines.vliw.semantics.scalars import scalar, signed_scalar
from castsim.targets.vliw import VliwTarget

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
