"""What a run does about stale reads, by the words of the command line."""

from __future__ import annotations

from castsim.isa.errors import ReadError

REPORT, STOP, IGNORE = "report", "stop", "ignore"
STALE_MODES = (REPORT, STOP, IGNORE)
"""What to do about stale reads: tell of them behind the run, end it at the first, or say nothing."""


PIPELINES = {"checked": REPORT, "hardware": IGNORE}
"""Older names of two of them."""


def stale_mode(stale_reads: str | None, pipeline: str | None) -> str:
    """Return the mode for stale reads; `pipeline` is the older name: `checked` reports, `hardware` ignores.

    Raises:
        ReadError: an unknown word, or two that contradict each other.
    """
    if stale_reads is not None and stale_reads not in STALE_MODES:
        raise ReadError(f"unknown way to treat stale reads '{stale_reads}'", legal=STALE_MODES)
    if pipeline is not None and pipeline not in PIPELINES:
        raise ReadError(f"unknown pipeline mode '{pipeline}'", legal=tuple(PIPELINES))
    meant = None if pipeline is None else PIPELINES[pipeline]
    if stale_reads is not None and meant is not None and stale_reads != meant:
        raise ReadError(
            f"stale reads '{stale_reads}' and pipeline '{pipeline}', which means '{meant}'", legal=STALE_MODES
        )
    return stale_reads or meant or REPORT
