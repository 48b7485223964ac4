"""CMP, SEL and SEL2: conditions on elements (docs/reference/tpc.md sections 5.1 and 7.1)."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from castsim.isa.codes import Codes
from castsim.isa.errors import IllegalError
from castsim.isa.formats import FORMATS, Format
from castsim.isa.tpc.program import File, Register, TpcInstruction
from castsim.machines.vliw.semantics.configuration import check_element, element_format, whole_bytes
from castsim.machines.vliw.semantics.interface import Effects, Mask, OperandValues, State
from castsim.machines.vliw.semantics.lanes import (
    broadcast,
    given,
    is_nan,
    lanes_of,
    merged,
    order_keys,
    vector_of,
)
from castsim.machines.vliw.semantics.moves import coordinates_of, masked_dimensions, signed_scalar
from castsim.machines.vliw.semantics.registers import destination_file, plain_registers
from castsim.targets.vliw import VliwTarget

SEVERAL_DIMENSIONS = "a compare of several dimensions is true where it is for all of them, which no source states"
"""Remark on a compare without documented meaning."""

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
    found = _CONDITIONS[condition](order_keys(a, fmt), order_keys(b, fmt))
    unordered = is_nan(a, fmt) | is_nan(b, fmt)
    return np.where(unordered, condition == "neq", found)


@dataclass(frozen=True, slots=True)
class PreparedComparison:
    """A compare of elements into a predicate, ready to run."""

    instruction: TpcInstruction
    target: VliwTarget

    def __call__(self, operands: OperandValues, state: State) -> Effects:
        """Return the predicate: for vectors every bit of a lane alike."""
        fmt = element_format(str(self.instruction.type), self.target, state)
        in_vector = destination_file(self.instruction) is File.VP
        lanes = lanes_of(fmt, self.target.registers.vector_bytes) if in_vector else 1
        a, b = (broadcast(given(self.instruction, operands, role), fmt, lanes) for role in ("src_a", "src_b"))
        found = _holds(self.instruction, a, b, fmt)
        if not in_vector:
            return Effects(merged(bool(found[0]), operands))
        return Effects(merged(np.repeat(found, fmt.storage_bits // 8), operands))

    def registers(self) -> Mapping[str, tuple[Register, ...]]:
        """Return the registers that the operands stand for."""
        return plain_registers(self.instruction, self.target)


@dataclass(frozen=True, slots=True)
class CompareIndex:
    """A compare of coordinates into a scalar predicate, ready to run."""

    instruction: TpcInstruction
    target: VliwTarget

    def __call__(self, operands: OperandValues, state: State) -> Effects:
        """Return whether the condition holds in every masked dimension.

        Raises:
            IllegalError: the mask admits no dimension.
        """
        dimensions = masked_dimensions(self.instruction, operands, self.target)
        if not any(dimensions):
            message = f"{self.instruction.mnemonic} of index registers: the mask admits no dimension"
            raise IllegalError(message, span=self.instruction.span, legal=("a mask with a dimension",))
        first = coordinates_of(given(self.instruction, operands, "src_a"))
        second = given(self.instruction, operands, "src_b")
        others = (signed_scalar(second),) * len(first) if isinstance(second, int) else coordinates_of(second)
        fmt = FORMATS["i32"]
        a, b = (np.array(one, np.int32).view(np.uint32) for one in (first, others))
        found = _holds(self.instruction, a, b, fmt)[np.array(dimensions)]
        remarks = (SEVERAL_DIMENSIONS,) if found.size > 1 else ()
        return Effects(merged(bool(found.all()), operands), remarks=remarks)

    def registers(self) -> Mapping[str, tuple[Register, ...]]:
        """Return the registers that the operands stand for."""
        return plain_registers(self.instruction, self.target)


@dataclass(frozen=True, slots=True)
class Select:
    """A choice between elements by a condition on others, ready to run."""

    instruction: TpcInstruction
    target: VliwTarget

    def __call__(self, operands: OperandValues, state: State) -> Effects:
        """Return c where a OP b holds, else d; of a pair also a where it holds, else b."""
        fmt = element_format(str(self.instruction.type), self.target, state)
        lanes = lanes_of(fmt, self.target.registers.vector_bytes)
        a, b, c, d = (
            broadcast(given(self.instruction, operands, role), fmt, lanes)
            for role in ("src_a", "src_b", "src_c", "src_d")
        )
        found = _holds(self.instruction, a, b, fmt)
        chosen = vector_of(np.where(found, c, d), fmt)
        if destination_file(self.instruction) is not File.D:
            return Effects(merged(chosen, operands))
        return Effects(merged((chosen, vector_of(np.where(found, a, b), fmt)), operands))

    def registers(self) -> Mapping[str, tuple[Register, ...]]:
        """Return the registers that the operands stand for."""
        return plain_registers(self.instruction, self.target)


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
