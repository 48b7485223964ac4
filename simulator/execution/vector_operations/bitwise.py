"""Functions of integers as strings of bits."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np

from castsim.execution.vector_operations.behaviour import Behaviour
from castsim.execution.vector_operations.elements import numbers
from castsim.isa.codes import Codes
from castsim.isa.formats import Format, IntFormat

_BITWISE: dict[str, Callable[..., Codes]] = {
    "and": np.bitwise_and,
    "or": np.bitwise_or,
    "xor": np.bitwise_xor,
    "not": np.invert,
}


def bitwise(function: str, operands: Sequence[Codes], _fmt: Format, _behaviour: Behaviour) -> Codes:
    """Return the bits of both operands joined, or those of one inverted."""
    codes: Codes = _BITWISE[function](*operands)
    return codes


def shifted(function: str, operands: Sequence[Codes], fmt: Format, behaviour: Behaviour) -> Codes:
    """Shift by the second operand: `shr` keeps the sign of signed integers.

    What an amount outside 0 .. width - 1 does no source states: option `shift_beyond_width`.
    """
    assert isinstance(fmt, IntFormat)
    one, two = np.broadcast_arrays(*operands)
    amounts = numbers(two, fmt).astype(np.int64)
    if behaviour.choice("shift_beyond_width") == "modulo":
        amounts = amounts % fmt.bits
    beyond = (amounts < 0) | (amounts >= fmt.bits)
    values = numbers(one, fmt).astype(np.int64)
    steps = np.where(beyond, fmt.bits, amounts)
    result = np.left_shift(values, steps) if function == "shl" else np.right_shift(values, steps)
    codes: Codes = result.astype(f"<u{fmt.bits // 8}")
    return codes
