"""Limits for reading, walking and computing a program, each with its default and its option.

The modes for the treatment of stale reads are here too.

The engines enforce the limit of cycles; all others apply before any cycle is counted.
"""

from __future__ import annotations

from castsim.isa.dataclass import dataclass
from castsim.isa.errors import MAX_STATEMENTS, LimitError, ReadError, Span

MAX_WALK = 200_000
"""Default maximum number of trips and statements in loops of a tile program that are walked one by one."""

MAX_COMPUTED = 1_000_000
"""Default maximum number of executed instructions with values in a tile program, and of walked assembly bundles."""


MAX_CYCLES = 10**10
"""Default maximum number of simulated cycles, far beyond any sensible kernel."""

MAX_ELEMENTS = 1 << 27
"""Maximum number of elements of one argument whose values are computed: 512 MiB of f32."""


@dataclass(frozen=True, slots=True)
class Limits:
    """The limits of a run; `max_walk` of None takes the defaults for walking and for computing."""

    max_statements: int = MAX_STATEMENTS
    max_walk: int | None = None
    max_elements: int = MAX_ELEMENTS

    @property
    def walk(self) -> int:
        """Limit of walked trips and statements of a tile program."""
        return MAX_WALK if self.max_walk is None else self.max_walk

    @property
    def computed(self) -> int:
        """Limit of executions with values, and of bundles."""
        return MAX_COMPUTED if self.max_walk is None else self.max_walk


DEFAULT_LIMITS = Limits()
"""The default limits."""


def walk_limit(limit: int, what: str, span: Span | None) -> LimitError:
    """Return (do not raise) the error about a program whose walk exceeds a limit; `what` names the counted items."""
    return LimitError(
        f"{what}: more than {limit}, the limit of --max-walk", span=span, legal=("--max-walk N with a larger N",)
    )


REPORT = "report"
STOP = "stop"
IGNORE = "ignore"
STALE_MODES = (REPORT, STOP, IGNORE)
"""The treatment of stale reads: report them after the run, stop at the first, or ignore them."""


def stale_mode(word: str | None) -> str:
    """Return the mode for stale reads, `report` by default.

    Raises:
        ReadError: the word is unknown.
    """
    if word is not None and word not in STALE_MODES:
        raise ReadError(f"unknown treatment of stale reads '{word}'", legal=STALE_MODES)
    return word or REPORT
