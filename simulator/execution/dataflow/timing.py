"""What time costs on every chip whose pipes pass tiles through one buffer: ticks, transfers.

Rules are functions on integers alone: the event engine and the closed forms call them as they are, the fast engine
compiles them. Who waits for whom is the business of the engines.
"""

from __future__ import annotations

from decimal import Decimal

TICKS = 100
"""Ticks per cycle: facts have at most two decimals."""

NO_TICK = -(1 << 60)
"""A tick that is not there: before all others, and still so with any duration added."""


def ticks(cycles: Decimal | int) -> int:
    """Return a fact in ticks."""
    return int(cycles * TICKS)


def cycle_from(tick: int) -> int:
    """Return the first whole cycle that is not earlier than a tick."""
    return -(-tick // TICKS)


def rounded(tick: int) -> int:
    """Return a tick as a whole cycle, rounded half up."""
    return (tick + TICKS // 2) // TICKS


def let_through(before: int, rate: int, per: int) -> int:
    """Return the cycles after which a rate, in bytes `per` so many cycles, has let all `before` bytes through."""
    return before * per // rate


def streaming(total: int, rate: int, per: int) -> int:
    """Return the cycles that `total` bytes take at a rate, rounded half up."""
    return (2 * total * per + rate) // (2 * rate)


def stream_start(start: int, ahead: int, waited: int) -> int:
    """Return when a transfer streams that its pipe takes in cycle `start`.

    Memory takes `ahead` to answer it; where it was asked as soon as it could be, it answers in cycle `waited`.
    """
    return max(start + ahead, waited)


def transfer_due(stream: int, cycles: int, asked: int) -> int:
    """Return when a transfer should end that streams from cycle `stream` on and asked for its last block at `asked`.

    The last block needs its cycle in any case.
    """
    return max(stream + cycles, asked + 1)


def transfer_end(due: int, passed: int) -> int:
    """Return when a transfer ends whose last block passed the buffer's port in cycle `passed`."""
    return max(due, passed + 1)
