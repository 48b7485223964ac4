"""A progress bar on standard error for verifications, only on a terminal."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING

from castsim.evidence.verification import PartProgress, VerificationRecord

if TYPE_CHECKING:
    from rich.progress import Progress as Bars

_MANY = 1_000_000
"""Codes that take so long that it is said how many there are."""


@contextmanager
def verification_progress(record: VerificationRecord, *, quiet: bool) -> Iterator[VerificationProgress | None]:
    """Show the progress of a record while the block lasts; None if standard error is not a terminal or on `quiet`.

    Work that takes longer than some seconds is announced: which sets of codes, and how many.
    """
    total = sum(one.size - one.checked for one in record.progress)
    if not quiet and total >= _MANY:
        kinds = ", ".join(dict.fromkeys(one.part.inputs for one in record.progress))
        casts = f"{len(record.progress)} cast{'s' if len(record.progress) > 1 else ''}"
        print(f"trying {casts} on {total} codes: {kinds}", file=sys.stderr)
    if quiet or not sys.stderr.isatty():
        yield None
        return
    from rich.progress import MofNCompleteColumn, TimeElapsedColumn  # noqa: PLC0415 - only a watched run pays for rich

    from castsim.reports.bars import Words, bars  # noqa: PLC0415 - as above

    with bars(MofNCompleteColumn(), TimeElapsedColumn(), Words("rate")) as shown:
        yield VerificationProgress(shown, record)


class VerificationProgress:
    """Shows the part that is worked on, how much of it is done, how fast, and how many parts remain."""

    def __init__(self, bars: Bars, record: VerificationRecord) -> None:
        self._bars = bars
        self._record = record
        self._task = bars.add_task("starting", total=None, rate="")

    def advance(self, one: PartProgress, codes: int) -> None:
        """Move the bar to where the part is now."""
        from castsim.reports.verify_text import rate_text  # noqa: PLC0415 - rich is there already

        number = next(index for index, other in enumerate(self._record.progress, 1) if other is one)
        part = one.part
        self._bars.update(
            self._task,
            description=f"[{number}/{len(self._record.progress)}] {part.src} -> {part.dst} {part.rounding}"
            f" {part.overflow}, {part.inputs}",
            total=one.size,
            completed=one.checked,
            rate=f"{rate_text(one)} codes/s, {self._record.mismatches} mismatches",
        )
