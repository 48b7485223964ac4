"""The random words of stochastic rounding: 32-bit Galois shift registers side by side.

Source: docs/reference/tpc.md section 5.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from castsim.isa.errors import ReadError

Words = NDArray[np.uint32]


def step(state: Words, polynomial: int) -> Words:
    """Return the registers after one step: shift right, and add the polynomial where a 1 was shifted out.

    The output of a register is its state.

    Raises:
        ReadError: `state` is not uint32, or the polynomial has more than 32 bits.
    """
    if state.dtype != np.uint32:
        raise ReadError(f"the state of a shift register comes as uint32, not {state.dtype}", legal=("uint32",))
    if not 0 <= polynomial < 1 << 32:
        raise ReadError(f"polynomial {polynomial:#x} has more than 32 bits", legal=("0 to 0xffffffff",))
    fell_out = np.uint32(0) - (state & np.uint32(1))
    return state >> np.uint32(1) ^ fell_out & np.uint32(polynomial)


def lane_words(state: Words, lanes: int) -> Words:
    """Return the word of every lane of one operation: lane i reads register i modulo their number."""
    return np.resize(state, lanes)


def draw(state: Words, polynomial: int, lanes: int, uses: int) -> tuple[Words, Words]:
    """Return the words of consecutive operations, of shape (uses, lanes), and the state after them.

    Each operation reads the current state and then steps all registers once. Errors as `step`.
    """
    words = np.empty((uses, lanes), np.uint32)
    for use in range(uses):
        words[use] = lane_words(state, lanes)
        state = step(state, polynomial)
    return words, state
