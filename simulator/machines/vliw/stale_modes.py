"""What a run does about stale reads, by the words of the command line."""

from __future__ import annotations

from castsim.isa.errors import ReadError

REPORT, STOP, IGNORE = "report", "stop", "ignore"
STALE_MODES = (REPORT, STOP, IGNORE)
"""What to do about stale reads: tell of them behind the run, end it at the first, or say nothing."""


def stale_mode(word: str | None) -> str:
    """Return the mode for stale reads, `report` by default.

    Raises:
        ReadError: an unknown word.
    """
    if word is not None and word not in STALE_MODES:
        raise ReadError(f"unknown way to treat stale reads '{word}'", legal=STALE_MODES)
    return word or REPORT
