"""A progress bar on standard error for long runs, only on a terminal."""

from __future__ import annotations

import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager

from castsim.execution.tree import Block, Loop, Lowered, Node, Tree

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
