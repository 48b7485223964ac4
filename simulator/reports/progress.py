"""Progress on standard error, only on a terminal: for every command, a run, or staged work."""

from __future__ import annotations

import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from rich.progress import Progress as Bars

    from castsim.execution.timing import ProgressCallback
    from castsim.execution.tree import Node, Tree

BAR_DELAY_SECONDS = 2.0
"""Seconds before a bar appears; shorter commands show nothing."""

_on_screen: list[ProgressBar] = []
"""The open bars, innermost last: only that one is visible."""


def is_watched(quiet: bool, json: str | None) -> bool:
    """Return whether progress is shown: on a terminal, unless `--quiet` is given or JSON goes to standard output."""
    return not quiet and json != "-" and sys.stderr.isatty()


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
        close_bars()
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


def close_bars() -> None:
    """Close the open bars, before another one replaces them."""
    for outer in tuple(_on_screen):
        outer.close()


@contextmanager
def stage_progress(
    quiet: bool, json: str | None, stage: str = "starting", rate: str = ""
) -> Iterator[ProgressCallback]:
    """Yield a callback for progress while the block lasts."""
    if not is_watched(quiet, json):
        yield lambda *_: None
        return
    bar = ProgressBar(stage, rate)
    try:
        yield bar.move
    finally:
        bar.close()


@contextmanager
def run_progress(quiet: bool, json: str | None, tree: Tree | None) -> Iterator[RunProgress | None]:
    """Show the progress of a run while the block lasts; None, at no cost, if progress is not shown.

    `tree` is the program to issue, if it is available before the run.
    """
    if not is_watched(quiet, json):
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
