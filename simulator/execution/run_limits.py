"""Limits for reading, walking and computing a program, each with its default and its option.

The words for the treatment of stale reads are here too.

The engines keep the limit of cycles; all others come before any cycle is counted.
"""

from __future__ import annotations

from castsim.isa.dataclass import dataclass
from castsim.isa.errors import MAX_STATEMENTS, LimitError, ReadError, Span

MAX_WALK = 200_000
"""The default maximum of trips and statements in loops of a tile program that are walked one by one."""

MAX_COMPUTED = 1_000_000
"""The default maximum of computed instruction executions of a tile program, and of walked bundles of assembly."""


MAX_CYCLES = 10**10
"""The default maximum of simulated cycles, far beyond any sensible kernel."""

MAX_ELEMENTS = 1 << 27
"""The maximum of elements of one argument whose values are computed: 512 MiB of f32."""


@dataclass(frozen=True, slots=True)
class Limits:
    """The limits of a run; `max_walk` of None takes the defaults for walking and for computing."""

    max_statements: int = MAX_STATEMENTS
    max_walk: int | None = None
    max_elements: int = MAX_ELEMENTS

    @property
    def walk(self) -> int:
        """Trips and statements of a tile program."""
        return MAX_WALK if self.max_walk is None else self.max_walk

    @property
    def computed(self) -> int:
        """Executions with values, bundles."""
        return MAX_COMPUTED if self.max_walk is None else self.max_walk


DEFAULT_LIMITS = Limits()
"""The default limits."""


def walk_limit(limit: int, what: str, span: Span | None) -> LimitError:
    """Return (not raise) the refusal of a program whose walk exceeds a limit; `what` names the counted items."""
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
        ReadError: an unknown word.
    """
    if word is not None and word not in STALE_MODES:
        raise ReadError(f"unknown treatment of stale reads '{word}'", legal=STALE_MODES)
    return word or REPORT
