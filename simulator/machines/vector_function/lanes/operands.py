"""What an instruction is given and yields: operands by kind, in the order of its text."""

from __future__ import annotations

from dataclasses import dataclass

from castsim.isa.errors import IllegalError
from castsim.isa.formats import Format
from castsim.isa.pto.micro.words import HALVES
from castsim.machines.vector_function.lanes.registers import Mask, Register
from castsim.targets.vector_function import VectorFunctionTarget

Value = Register | Mask | int
"""A result: a register, a mask, or a scalar number."""


@dataclass(frozen=True, slots=True, eq=False)
class Operands:
    """The operands of one instruction, the kinds apart.

    `scalars` are codes of the element format (of integers any number with these low bits), counts and strides plain
    numbers. `words` are the quoted words. `element` is the format of the first register operand, of the result where
    there is none; `result` that of the first register result. `width` is the lane width of the instruction's masks,
    `ctrl` the CTRL register.
    """

    name: str
    element: Format
    result: Format
    width: int
    target: VectorFunctionTarget
    registers: tuple[Register, ...] = ()
    masks: tuple[Mask, ...] = ()
    scalars: tuple[int, ...] = ()
    words: tuple[str, ...] = ()
    ctrl: int = 0

    @property
    def bits(self) -> int:
        """Bits of a lane of the operands."""
        return self.element.storage_bits


_HALF_WORDS = {"LOWER": 0, "HIGHER": 1, "UPPER": 1}


def half_of(word: str) -> int:
    """Return 0 for the lower half, 1 for the higher.

    Raises:
        IllegalError: another word.
    """
    if word not in _HALF_WORDS:
        raise IllegalError(f"no half {word}", legal=HALVES)
    return _HALF_WORDS[word]


def signed(value: int, bits: int) -> int:
    """Return what the low bits of a number are as a two's complement."""
    low = low_bits(value, bits)
    return low - (1 << bits) if low >> (bits - 1) else low


def low_bits(value: int, bits: int) -> int:
    """Return the low bits of a number."""
    return value & ((1 << bits) - 1)
