"""The one rounding function, on unsigned integers.

Every conversion reduces to a significand of which some low bits are dropped. Only this module decides whether the
kept part then grows by one. A rounding mode is a *rule*: the truth table of that decision over five bits, stored
as a 32-bit integer, so `increment` needs no branch and the same source serves Python integers, NumPy arrays (also
with another rule in every lane) and compiled kernels. Meanings of the modes: docs/reference/formats.md section 6.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from castsim.isa.formats import Rounding

U64 = NDArray[np.uint64]
I64 = NDArray[np.int64]

_Decision = Callable[[int, int, int, int, int], int]


def _truth_table(decide: _Decision) -> int:
    """Evaluate a decision on all 32 combinations of its five bits, ordered as `increment` indexes them."""
    return sum(
        decide(index & 1, index >> 1 & 1, index >> 2 & 1, index >> 3 & 1, index >> 4 & 1) << index
        for index in range(32)
    )


_RULES: dict[Rounding, int] = {
    Rounding.RINT: _truth_table(lambda sticky, half, last, drawn, negative: half & (sticky | last)),
    Rounding.ROUND: _truth_table(lambda sticky, half, last, drawn, negative: half),
    Rounding.FLOOR: _truth_table(lambda sticky, half, last, drawn, negative: (half | sticky) & negative),
    Rounding.CEIL: _truth_table(lambda sticky, half, last, drawn, negative: (half | sticky) & (negative ^ 1)),
    Rounding.TRUNC: _truth_table(lambda sticky, half, last, drawn, negative: 0),
    Rounding.ODD: _truth_table(lambda sticky, half, last, drawn, negative: (half | sticky) & (last ^ 1)),
    Rounding.HALF_UP: _truth_table(lambda sticky, half, last, drawn, negative: half & (sticky | (negative ^ 1))),
    Rounding.STOCHASTIC: _truth_table(lambda sticky, half, last, drawn, negative: drawn & (half | sticky)),
    # Away from one, HiFloat8's hybrid mode compares without asking whether anything was dropped
    # (docs/reference/formats.md section 2).
    Rounding.HYBRID: _truth_table(lambda sticky, half, last, drawn, negative: drawn),
}

UNGUARDED = _RULES[Rounding.HYBRID]
"""The rule that follows the comparison alone: even an exact value moves if its comparison says so."""


def rule_of(rounding: Rounding) -> int:
    """Return the truth table of a rounding mode, a 32-bit integer for `increment`."""
    return _RULES[rounding]


def increment(last: Any, half: Any, sticky: Any, negative: Any, drawn: Any, rule: Any) -> Any:
    """Return 1 if the kept magnitude grows by one, otherwise 0.

    All arguments are 0 or 1, of one unsigned type: `last` is the last kept bit, `half` the first dropped one,
    `sticky` whether any later dropped bit is set, `negative` the sign, `drawn` the outcome of comparing the dropped
    bits with a word (0 in deterministic modes). `rule` comes from `rule_of`.
    """
    return (rule >> (negative << 4 | drawn << 3 | last << 2 | half << 1 | sticky)) & 1


@dataclass(frozen=True, slots=True)
class Draw:
    """The comparison of the dropped bits with one 32-bit word per element.

    `drawn` is 1 if and only if the dropped bits, left-aligned to 32 and cut there, are at least the word. With
    `far_is_zero` they count as 0 if even the first dropped bit is above the significand (docs/reference/tpc.md 5).
    """

    words: U64
    far_is_zero: bool = False


def shift_round(significand: U64, shift: Any, negative: U64, rule: Any, draw: Draw | None = None) -> U64:
    """Return `significand / 2**shift` rounded to an integer by `rule`.

    `significand` and `negative` (0 or 1) are uint64 arrays, `shift` an int64 array or scalar of at least 0. Bits
    shifted out beyond the 64th below the result still count as sticky. It relies on NumPy's result 0 for shifts by 64.
    """
    far = np.maximum(shift, 64) - 64
    near = significand
    if np.any(far):
        far = np.minimum(far, 63).view(np.uint64)
        near = significand >> far | ((significand << (np.uint64(64) - far)) != 0)
    right = np.minimum(shift, 64).view(np.uint64)
    kept = near >> right
    dropped = near << (np.uint64(64) - right)
    drawn: Any = np.uint64(0)
    if draw is not None:
        fraction = dropped >> np.uint64(32)
        if draw.far_is_zero:
            fraction = np.where(far > 0, np.uint64(0), fraction)
        # Zero never moves, whatever the word.
        drawn = ((fraction >= draw.words) & (significand != 0)).astype(np.uint64)
    sticky = ((dropped << np.uint64(1)) != 0).astype(np.uint64)
    half = dropped >> np.uint64(63)
    return kept + increment(kept & np.uint64(1), half, sticky, negative, drawn, np.uint64(rule))  # type: ignore[no-any-return]
