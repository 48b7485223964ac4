"""Values of UDIV_STEP, UDIV_4STEP and UDIV (docs/reference/tpc.md section 5.6): all of it inferred."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from castsim.isa.formats import FORMATS
from castsim.isa.tpc.program import File, Immediate, Register, TpcInstruction
from castsim.machines.vliw.semantics.configuration import check_element
from castsim.machines.vliw.semantics.interface import Effects, OperandValues, State
from castsim.machines.vliw.semantics.lanes import WORD_MASK
from castsim.machines.vliw.semantics.registers import destination_file, plain_registers
from castsim.machines.vliw.semantics.scalars import scalar
from castsim.machines.vliw.semantics.unstated import UnstatedError
from castsim.targets.vliw import VliwTarget

_STEPS = {"udiv_step": 1, "udiv_4step": 4}
DIVISIONS = (*_STEPS, "udiv")
"""The mnemonics of this module."""

_WORD_BITS = 32
_UNSIGNED = ("u32", "u16", "u8")


@dataclass(frozen=True, slots=True)
class Division:
    """A whole division or some steps of one, ready to run.

    A step shifts remainder and dividend left by one, subtracts the divisor from the remainder if that does not get
    negative, and then sets the lowest bit. The pair holds dividend, at last quotient, in its lower register and the
    remainder in its upper one, or (option division_pair) the other way round.
    """

    instruction: TpcInstruction
    target: VliwTarget
    bits: int

    def __call__(self, operands: OperandValues, state: State) -> Effects:
        """Return quotient, or quotient and remainder."""
        mask = (1 << self.bits) - 1
        if self.instruction.mnemonic in _STEPS:
            divisor = scalar(operands.sources["src_a"]) & mask
            assert isinstance(operands.income, int)
            return Effects(self._pair(*self._stepped(*self._parts(operands.income), divisor)))
        dividend = scalar(operands.sources["src_a"]) & mask
        divisor = self._second(operands) & mask
        quotient, remainder = divmod(dividend, divisor) if divisor else (mask, dividend)
        return Effects(self._pair(quotient, remainder) if self._paired() else quotient)

    def _stepped(self, quotient: int, remainder: int, divisor: int) -> tuple[int, int]:
        mask = (1 << self.bits) - 1
        for _ in range(_STEPS[self.instruction.mnemonic]):
            remainder = remainder << 1 | quotient >> (self.bits - 1)
            quotient = quotient << 1 & mask
            if remainder >= divisor:
                remainder, quotient = remainder - divisor & mask, quotient | 1
        return quotient, remainder

    def _parts(self, pair: int) -> tuple[int, int]:
        mask = (1 << self.bits) - 1
        lower, upper = pair & mask, pair >> _WORD_BITS & mask
        return (upper, lower) if self._swapped() else (lower, upper)

    def _pair(self, quotient: int, remainder: int) -> int:
        lower, upper = (remainder, quotient) if self._swapped() else (quotient, remainder)
        return lower & WORD_MASK | (upper & WORD_MASK) << _WORD_BITS

    def _swapped(self) -> bool:
        return self.target.option("division_pair") == "remainder_first"

    def _paired(self) -> bool:
        return destination_file(self.instruction) is File.Z

    def _second(self, operands: OperandValues) -> int:
        operand = self.instruction.operand("src_b")
        return operand.value if isinstance(operand, Immediate) else scalar(operands.sources["src_b"])

    def registers(self) -> Mapping[str, tuple[Register, ...]]:
        """Return the registers that the operands stand for."""
        return plain_registers(self.instruction, self.target)


def prepare_division(instruction: TpcInstruction, target: VliwTarget) -> Division:
    """Check a division.

    Raises:
        IllegalError: a type that it lacks.
        UnstatedError: an option that refuses, steps that have nowhere to put the remainder.
    """
    name = check_element(instruction, target, instruction.type, _UNSIGNED)
    if target.option("division_values") == "refuse":
        message = f"no source states what {instruction.mnemonic} computes (option division_values)"
        raise UnstatedError(message, legal=("castsim lint", "castsim run --timing-only"))
    found = Division(instruction, target, FORMATS[name].bits)
    if instruction.mnemonic in _STEPS and destination_file(instruction) is not File.Z:
        operand = instruction.operand("dest")
        assert isinstance(operand, Register)
        first = operand.index - operand.index % 2
        message = f"{instruction.mnemonic}: a step needs a pair, for dividend and remainder, not {operand}"
        raise UnstatedError(message, legal=(f"Z{first}",))
    return found
