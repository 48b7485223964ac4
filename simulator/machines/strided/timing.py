"""What a strided-repeat instruction costs (docs/reference/a2a3.md sections 6 and 8): functions on whole cycles.

The event engine calls them as they are, the fast engine compiles them.
"""

from __future__ import annotations


def passes(now: int, port_free: int, bank_free: int) -> int:
    """Return when a block passes that asks at `now`: when its port and its bank are free."""
    return max(now, port_free, bank_free)


def next_repeat(interval_end: int, passed: int) -> int:
    """Return when the next repeat starts: behind the interval, and when the last operand has passed its port."""
    return max(interval_end, passed + 1)


def result_delay(tail: int, at_once: int) -> int:
    """Return how long behind the next repeat's start results should be in the buffer; `at_once` lifts the delay."""
    return 0 if at_once else tail


def results_due(next_start: int, delay: int) -> int:
    """Return when the results of a repeat should be in the buffer, the next one starting at `next_start`."""
    return next_start + delay


def drained(due: int, tail: int, delay: int) -> int:
    """Return when the pipe is empty whose last results are due: its stages take the tail even if results do not."""
    return due + tail - delay


def fills(always: int, in_flight: int, now: int, drain_end: int) -> int:
    """Whether an instruction has to fill the pipe: nothing is in it, or the chip always does."""
    return always or (not in_flight and now >= drain_end)


def write_asked(due: int) -> int:
    """Return when results ask for their blocks that should be in the buffer at `due`: see `written`."""
    return due - 1


def written(passed: int) -> int:
    """Return when a block is in the buffer: one cycle after it has passed the port."""
    return passed + 1
