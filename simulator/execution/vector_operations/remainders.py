"""Remainders, by the steps of the kernels: quotient, rounding, product, difference, each rounded in f32.

Source: docs/reference/pto.md section 7.3.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from castsim.execution.vector_operations.behaviour import Behaviour
from castsim.execution.vector_operations.elements import encoded, numbers
from castsim.isa.codes import Codes
from castsim.isa.formats import Format, IntFormat


def remainder(function: str, operands: Sequence[Codes], fmt: Format, behaviour: Behaviour) -> Codes:
    """Return a - b * floor(a / b) for `rem`, a - b * trunc(a / b) for `fmod`; all formats go through f32.

    An integer remainder by zero, which no source states, is what option `remainder_by_zero` says.
    """
    a, b = np.broadcast_arrays(*(numbers(codes, fmt).astype(np.float32) for codes in operands))
    whole = (np.floor if function == "rem" else np.trunc)(a / b)
    rest = a - whole * b
    if function == "rem":
        rest = np.where(rest * b < 0, rest + b, rest)
    if not isinstance(fmt, IntFormat):
        exact = rest if fmt.storage_bits == 32 else rest.astype(np.float64)
        return encoded(exact, fmt, saturates=behaviour.saturates)
    by_zero = a if behaviour.choice("remainder_by_zero") == "dividend" else np.zeros_like(a)
    wide = np.where(b == 0, by_zero, rest).astype(np.float64)
    codes: Codes = np.clip(wide, fmt.minimum, fmt.maximum).astype(np.int64).astype(f"<u{fmt.bits // 8}")
    return codes
