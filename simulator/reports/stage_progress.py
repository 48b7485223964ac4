"""A progress bar on standard error for work in stages, only on a terminal and only once it lasts."""

from __future__ import annotations

import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager

from castsim.reports.progress import BAR_DELAY_SECONDS
from castsim.timing import ProgressCallback


@contextmanager
def stage_progress(*, quiet: bool, rate: str = "") -> Iterator[ProgressCallback]:
    """Yield a callback for progress while the block lasts.

    With `rate`, which is what the work counts, the bar also tells how much is done in a second, and the time left.
    """
    if quiet or not sys.stderr.isatty():
        yield lambda *_: None
        return
    from castsim.reports.bars import bars, rate_and_time_left  # noqa: PLC0415 - only a watched run pays for rich

    shown = bars(*rate_and_time_left(rate)) if rate else bars()
    task = shown.add_task("starting", total=None)
    began = time.monotonic()

    def progress(stage: str, done: int, total: int) -> None:
        if not shown.live.is_started and time.monotonic() - began > BAR_DELAY_SECONDS:
            shown.start()
        shown.update(task, description=stage, completed=done, total=total or None)

    try:
        yield progress
    finally:
        shown.stop()
