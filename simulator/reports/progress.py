"""Progress on standard error, only on a terminal: of a long run, of work in stages, of a verification."""

from __future__ import annotations

import sys
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING

from castsim.execution.timing import ProgressCallback
from castsim.execution.tree import Block, Loop, Lowered, Node, Tree

if TYPE_CHECKING:
    from rich.progress import Progress as Bars

    from castsim.evidence.verification.running import PartProgress, VerificationRecord

BAR_DELAY_SECONDS = 1.0
"""A run shorter than this shows nothing."""


@contextmanager
def run_progress(tree: Tree | None) -> Iterator[RunProgress | None]:
    """Show the progress of a run while the block lasts; None, at no cost, if standard error is not a terminal.

    `tree` is what will be issued, if that is known before the run.
    """
    if not sys.stderr.isatty():
        yield None
        return
    progress = RunProgress(None if tree is None else operation_count(tree.root))
    try:
        yield progress
    finally:
        progress.close()


def operation_count(node: Node) -> int:
    """Return the number of operations that a tree issues, loops multiplied and not unrolled."""
    if isinstance(node, Block):
        return sum(map(operation_count, node.items))
    if isinstance(node, Loop):
        return node.trips * operation_count(node.body)
    return operation_count(node.body) if isinstance(node, Lowered) else 1


class RunProgress:
    """Follows an engine as its observer; a timer brings the bar up once the run has lasted long enough."""

    def __init__(self, operations: int | None) -> None:
        from castsim.reports.bars import bars  # noqa: PLC0415 - only a watched run pays for rich

        self._progress = bars()
        self._task = self._progress.add_task("values", total=None)
        self._operations = operations
        self._lock = threading.Lock()
        self._shown = False
        self._closed = False
        self._timer = threading.Timer(BAR_DELAY_SECONDS, self._show)
        self._timer.daemon = True
        self._timer.start()

    def stage(self, name: str) -> None:
        """Show what is being done; the time stage has a known length."""
        total = self._operations if name == "time" else None
        self._progress.update(self._task, description=name, total=total, completed=0)

    def progress(self, cycle: int, operations: int) -> None:
        """Move the bar."""
        self._progress.update(self._task, description=f"cycle {cycle}", completed=operations)

    def close(self) -> None:
        """Take the bar away."""
        self._timer.cancel()
        with self._lock:
            self._closed = True
            if self._shown:
                self._progress.stop()

    def _show(self) -> None:
        with self._lock:
            if not self._closed:
                self._shown = True
                self._progress.start()


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
        from castsim.reports.verify import rate_text  # noqa: PLC0415 - rich is there already

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
