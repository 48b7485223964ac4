"""Progress on standard error, only on a terminal: for every command, a run, staged work, or a verification."""

from __future__ import annotations

import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from argparse import Namespace

    from rich.progress import Progress as Bars

    from castsim.evidence.verification.running import PartProgress, VerificationRecord
    from castsim.execution.timing import ProgressCallback
    from castsim.execution.tree import Node, Tree

BAR_DELAY_SECONDS = 2.0
"""Seconds before a bar appears; shorter commands show nothing."""

_on_screen: list[ProgressBar] = []
"""The open bars, innermost last: only that one is visible."""


def is_watched(options: Namespace) -> bool:
    """Return whether progress is shown: on a terminal, unless `--quiet` is given or JSON goes to standard output."""
    return not options.quiet and options.json != "-" and sys.stderr.isatty()


class ProgressBar:
    """A bar that a timer shows once the work has lasted long enough; a bar opened inside another replaces it.

    With `rate`, the unit of the work, it also shows the work per second and the time left.
    """

    def __init__(self, stage: str, rate: str = "") -> None:
        self._rate = rate
        self._state: tuple[str, int, int | None] = (stage, 0, None)
        self._lock = threading.Lock()
        self._bars: Bars | None = None
        self._closed = False
        for outer in tuple(_on_screen):
            outer.close()
        _on_screen.append(self)
        self._timer = threading.Timer(BAR_DELAY_SECONDS, self._show)
        self._timer.daemon = True
        self._timer.start()

    def move(self, stage: str, done: int, total: int) -> None:
        """Show the current stage and its progress; a total of 0 is unknown."""
        self._state = (stage, done, total or None)
        if self._bars is not None:
            self._bars.update(self._bars.task_ids[0], description=stage, completed=done, total=total or None)

    def close(self) -> None:
        """Remove the bar."""
        self._timer.cancel()
        with self._lock:
            self._closed = True
            if self._bars is not None:
                self._bars.stop()
        if self in _on_screen:
            _on_screen.remove(self)

    def _show(self) -> None:
        from castsim.reports.bars import bars, rate_and_time_left  # noqa: PLC0415 - only a long command pays for rich

        with self._lock:
            if not self._closed:
                shown = bars(*rate_and_time_left(self._rate)) if self._rate else bars()
                stage, done, total = self._state
                shown.add_task(stage, completed=done, total=total)
                shown.start()
                self._bars = shown


@contextmanager
def stage_progress(options: Namespace, stage: str = "starting", rate: str = "") -> Iterator[ProgressCallback]:
    """Yield a callback for progress while the block lasts."""
    if not is_watched(options):
        yield lambda *_: None
        return
    bar = ProgressBar(stage, rate)
    try:
        yield bar.move
    finally:
        bar.close()


@contextmanager
def run_progress(options: Namespace, tree: Tree | None) -> Iterator[RunProgress | None]:
    """Show the progress of a run while the block lasts; None, at no cost, if progress is not shown.

    `tree` is the program to issue, if it is available before the run.
    """
    if not is_watched(options):
        yield None
        return
    bar = ProgressBar("values")
    try:
        yield RunProgress(bar, 0 if tree is None else operation_count(tree.root))
    finally:
        bar.close()


def operation_count(node: Node) -> int:
    """Return the number of operations that a tree issues; loops are multiplied, not unrolled."""
    from castsim.execution.tree import Block, Loop, Lowered  # noqa: PLC0415 - a bar needs no tree

    if isinstance(node, Block):
        return sum(map(operation_count, node.items))
    if isinstance(node, Loop):
        return node.trips * operation_count(node.body)
    return operation_count(node.body) if isinstance(node, Lowered) else 1


class RunProgress:
    """Observer of an engine that moves a bar."""

    def __init__(self, bar: ProgressBar, operations: int) -> None:
        self._bar = bar
        self._operations = operations
        self._total = 0

    def stage(self, name: str) -> None:
        """Show the current stage; the length of the timing stage is known."""
        self._total = self._operations if name == "time" else 0
        self._bar.move(name, 0, self._total)

    def progress(self, cycle: int, operations: int) -> None:
        """Move the bar."""
        self._bar.move(f"cycle {cycle:,}", operations, self._total)


_MANY = 1_000_000
"""Number of codes above which their number is announced, because they take long."""


@contextmanager
def verification_progress(options: Namespace, record: VerificationRecord) -> Iterator[VerificationProgress | None]:
    """Show the progress of a record while the block lasts; None if progress is not shown.

    Work of more than some seconds is announced with its sets of codes and their sizes.
    """
    total = sum(one.size - one.checked for one in record.progress)
    if not options.quiet and total >= _MANY:
        kinds = ", ".join(dict.fromkeys(one.part.inputs for one in record.progress))
        casts = f"{len(record.progress)} cast{'s' if len(record.progress) > 1 else ''}"
        print(f"trying {casts} on {total:,} codes: {kinds}", file=sys.stderr)
    if not is_watched(options):
        yield None
        return
    from rich.progress import MofNCompleteColumn, TimeElapsedColumn  # noqa: PLC0415 - only a watched run pays for rich

    from castsim.reports.bars import Words, bars  # noqa: PLC0415 - as above

    for outer in tuple(_on_screen):
        outer.close()
    with bars(MofNCompleteColumn(), TimeElapsedColumn(), Words("rate")) as shown:
        yield VerificationProgress(shown, record)


class VerificationProgress:
    """Progress of a record: the current part, its finished share, the rate, and the number of remaining parts."""

    def __init__(self, bars: Bars, record: VerificationRecord) -> None:
        self._bars = bars
        self._record = record
        self._task = bars.add_task("starting", total=None, rate="")

    def advance(self, one: PartProgress, codes: int) -> None:
        """Move the bar to the current position in the part."""
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
