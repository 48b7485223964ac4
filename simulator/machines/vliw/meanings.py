"""From an instruction to what computes it, those of real kernels included, and what is known and not computed.

`castsim.machines.vliw.semantics` holds the values of casts and of the arithmetic around them. Others are added here, so
that the proofs about those stay what they are.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from castsim.isa.errors import CastsimError, IllegalError
from castsim.isa.tpc.program import Register, TpcInstruction
from castsim.machines.vliw import semantics
from castsim.machines.vliw.semantics import Effects, OperandValues, Prepared, State
from castsim.machines.vliw.semantics.registers import plain_registers
from castsim.targets.vliw import VliwTarget

_CONTROL = ("halt", "loop", "jmpr", "jmpa")

_NO_EFFECT = ("event", "prefetch", "aso")
"""Instructions that change neither registers nor memory."""


@dataclass(frozen=True, slots=True)
class NoEffect:
    """An instruction that changes nothing that a program can read."""

    instruction: TpcInstruction
    target: VliwTarget

    def __call__(self, operands: OperandValues, state: State) -> Effects:
        """Return no effects."""
        return Effects(operands.income)

    def registers(self) -> Mapping[str, tuple[Register, ...]]:
        """Return the registers that the operands stand for."""
        return plain_registers(self.instruction, self.target)


@dataclass(frozen=True, slots=True)
class NotComputed:
    """An instruction that is read, encoded, linted and timed, and whose values are not modelled."""

    instruction: TpcInstruction
    target: VliwTarget

    def __call__(self, operands: OperandValues, state: State) -> Effects:
        """Refuse.

        Raises:
            IllegalError: always.
        """
        message = f"{self.instruction.mnemonic} is known, and its values are not modelled"
        raise IllegalError(message, span=self.instruction.span, legal=("castsim lint", "castsim run --timing-only"))

    def registers(self) -> Mapping[str, tuple[Register, ...]]:
        """Return the registers that the operands stand for."""
        return plain_registers(self.instruction, self.target)


def computes(instruction: TpcInstruction) -> bool:
    """Whether `prepare` knows the instruction: all but memory accesses and control."""
    return instruction.form.memory is None and instruction.mnemonic not in _CONTROL


def prepare(instruction: TpcInstruction, target: VliwTarget) -> Prepared:
    """Check an instruction against the tables of a generation and get it ready to run.

    Raises:
        IllegalError: as `castsim.machines.vliw.semantics.prepare`.
    """
    if semantics.computes(instruction) and (instruction.switch("x2") != 1 or _is_cast(instruction)):
        return semantics.prepare(instruction, target)
    try:
        unit = (NoEffect if instruction.mnemonic in _NO_EFFECT else NotComputed)(instruction, target)
        return Prepared(instruction, unit.registers(), unit)
    except CastsimError as error:
        raise error.at(instruction.span) from None


def _is_cast(instruction: TpcInstruction) -> bool:
    """Whether `x2` means several registers of a conversion or a move, which are not new."""
    return instruction.mnemonic in ("convert", "mov")
