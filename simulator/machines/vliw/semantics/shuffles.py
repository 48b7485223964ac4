"""SHUFFLE: elements inside each dual group, by a register of directions (docs/reference/tpc.md section 5.4)."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from castsim.isa.formats import FORMATS
from castsim.isa.tpc.program import Register, TpcInstruction
from castsim.machines.vliw.semantics.configuration import check_element, whole_bytes
from castsim.machines.vliw.semantics.interface import Effects, OperandValues, State, Vector
from castsim.machines.vliw.semantics.lanes import given, merged, vectors
from castsim.machines.vliw.semantics.registers import plain_registers
from castsim.targets.vliw import VliwTarget

_ELEMENT, _GROUP, _ENABLE = 0x1F, 0x20, 0x80
"""Bits of a direction: the source element, its group, and whether the byte is written."""


@dataclass(frozen=True, slots=True)
class Shuffle:
    """A shuffle of elements of one width in bytes, ready to run."""

    instruction: TpcInstruction
    target: VliwTarget
    width: int

    def __call__(self, operands: OperandValues, state: State) -> Effects:
        """Return the destination with the enabled bytes replaced."""
        assert operands.income is not None
        value, directions, income = (
            vectors(each)[0]
            for each in (
                given(self.instruction, operands, "src_a"),
                given(self.instruction, operands, "src_b"),
                operands.income,
            )
        )
        moved = np.where((directions & _ENABLE) != 0, value[self._sources(directions)], income)
        return Effects(merged(moved, operands))

    def _sources(self, directions: Vector) -> NDArray[np.intp]:
        """Return the byte that every byte comes from; the lowest direction of a lane chooses its element."""
        registers = self.target.registers
        whole, group = registers.dual_group_bytes, registers.dual_group_bytes // 2
        places = np.arange(registers.vector_bytes)
        chosen = directions[places - places % self.width].astype(np.intp)
        element = (chosen & _ELEMENT) % (group // self.width)
        inside = element * self.width + np.where(chosen & _GROUP, group, 0) + places % self.width
        found: NDArray[np.intp] = places - places % whole + inside
        return found

    def registers(self) -> Mapping[str, tuple[Register, ...]]:
        """Return the registers that the operands stand for."""
        return plain_registers(self.instruction, self.target)


def prepare_shuffle(instruction: TpcInstruction, target: VliwTarget) -> Shuffle:
    """Check a SHUFFLE.

    Raises:
        IllegalError: the generation lacks the element type.
    """
    name = check_element(instruction, target, instruction.type, whole_bytes(target))
    return Shuffle(instruction, target, FORMATS[name].bits // 8)
