"""Elements in S registers: how a result narrower than the register is held there."""

from __future__ import annotations

from castsim.isa.formats import Format, IntFormat
from castsim.machines.vliw.semantics.interface import OperandValues
from castsim.machines.vliw.semantics.lanes import WORD_MASK, signed_word
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
