"""The progress of a verification on standard error, only on a terminal."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING

from castsim.reports.progress import close_bars, is_watched

if TYPE_CHECKING:
    from rich.progress import Progress as Bars

    from castsim.tools.verify.running import PartProgress, VerificationRecord

_MANY = 1_000_000
"""Number of codes above which their number is announced, because they take long."""


@contextmanager
def verification_progress(
    record: VerificationRecord, *, quiet: bool, json: str | None
) -> Iterator[VerificationProgress | None]:
    """Show the progress of a record while the block lasts; None if progress is not shown.

    Work of more than some seconds is announced with its sets of codes and their sizes.
    """
    total = sum(part_progress.size - part_progress.checked for part_progress in record.progress)
    if not quiet and total >= _MANY:
        kinds = ", ".join(dict.fromkeys(part_progress.part.inputs for part_progress in record.progress))
        casts = f"{len(record.progress)} cast{'s' if len(record.progress) > 1 else ''}"
        print(f"trying {casts} on {total:,} codes: {kinds}", file=sys.stderr)
    if not is_watched(quiet, json):
        yield None
        return
    from rich.progress import MofNCompleteColumn, TimeElapsedColumn  # noqa: PLC0415 - only a watched run pays for rich

    from castsim.reports.bars import Words, bars  # noqa: PLC0415 - as above

    close_bars()
    with bars(MofNCompleteColumn(), TimeElapsedColumn(), Words("rate")) as shown:
        yield VerificationProgress(shown, record)


class VerificationProgress:
    """Progress of a record: the current part, its finished share, the rate, and the number of remaining parts."""

    def __init__(self, bars: Bars, record: VerificationRecord) -> None:
        self._bars = bars
        self._record = record
        self._task = bars.add_task("starting", total=None, rate="")

    def advance(self, part_progress: PartProgress, codes: int) -> None:
        """Move the bar to the current position in the part."""
        from castsim.tools.verify.report import rate_text  # noqa: PLC0415 - rich is there already

        number = next(index for index, other in enumerate(self._record.progress, 1) if other is part_progress)
        part = part_progress.part
        self._bars.update(
            self._task,
            description=f"[{number}/{len(self._record.progress)}] {part.src} -> {part.dst} {part.rounding}"
            f" {part.overflow}, {part.inputs}",
            total=part_progress.size,
            completed=part_progress.checked,
            rate=f"{rate_text(part_progress)} codes/s, {self._record.mismatches} mismatches",
        )
