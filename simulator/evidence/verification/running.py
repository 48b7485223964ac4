"""Working through a record: in pieces, in one or several processes, saving on the way."""

from __future__ import annotations

import signal
import threading
import time
from collections.abc import Callable, Iterator
from concurrent.futures import FIRST_COMPLETED, Future, ProcessPoolExecutor, wait
from concurrent.futures.process import BrokenProcessPool
from contextlib import contextmanager
from multiprocessing import get_context
from types import FrameType
from typing import Protocol

from castsim.evidence.verification.comparison import ComparisonResult, compare
from castsim.evidence.verification.inputs import GRAIN
from castsim.evidence.verification.record import PartProgress, VerificationRecord
from castsim.execution.interrupts import interrupts_later

PIECE_SECONDS = 0.5
"""The intended duration of one piece of work: an interrupt waits for it, and progress moves by it."""

FIRST_PIECE = 1 << 14
LARGEST_PIECE = 1 << 28

SAVE_SECONDS = 5.0
"""At least this long passes between two saves: what a crash can cost. An interrupt costs nothing."""


class VerificationObserver(Protocol):
    """Receives the progress of the work."""

    def advance(self, one: PartProgress, codes: int) -> None:
        """Some more codes of a part have been tried."""
        ...


def verify(
    record: VerificationRecord,
    *,
    workers: int = 1,
    save: Callable[[], None] | None = None,
    observer: VerificationObserver | None = None,
) -> None:
    """Try everything that the record still lacks, in the order of its parts.

    `save` is called every few seconds and at the end, whatever ends the work. On the first SIGINT the pieces that
    run are finished and taken in; a second one breaks off at once.

    Raises:
        KeyboardInterrupt: interrupted; the record holds all that was found.
    """
    ledger = _Ledger(record, save, observer)
    try:
        with _patient() as interrupted:
            if workers == 1:
                _in_this_process(ledger, interrupted)
            else:
                _in_processes(ledger, workers, interrupted)
        if interrupted.is_set():
            raise KeyboardInterrupt
    finally:
        if save is not None:
            save()


class _Ledger:
    """Hands out pieces and takes in findings."""

    def __init__(
        self, record: VerificationRecord, save: Callable[[], None] | None, observer: VerificationObserver | None
    ) -> None:
        self._record = record
        self._save = save
        self._observer = observer
        self._saved = time.monotonic()

    def pieces(self) -> Iterator[tuple[PartProgress, int, int]]:
        """Yield what is missing, in pieces that grow until they take long enough."""
        for one in self._record.progress:
            for first, last in list(one.missing()):
                start = first
                while start < last:
                    stop = min(start + _piece(one), last)
                    yield one, start, stop
                    start = stop

    def add(self, one: PartProgress, finding: ComparisonResult) -> None:
        """Take in a finding, and save if that is due."""
        one.add(finding)
        if self._observer is not None:
            self._observer.advance(one, finding.stop - finding.start)
        if self._save is not None and time.monotonic() - self._saved > SAVE_SECONDS:
            self._save()
            self._saved = time.monotonic()


def _piece(one: PartProgress) -> int:
    """Return the number of codes for the next piece of a part."""
    rate = one.codes_per_second
    codes = FIRST_PIECE if rate is None else min(int(rate * PIECE_SECONDS), LARGEST_PIECE, 8 * one.checked)
    return max(codes // GRAIN, 1) * GRAIN


def _in_this_process(ledger: _Ledger, interrupted: threading.Event) -> None:
    for one, start, stop in ledger.pieces():
        if interrupted.is_set():
            return
        ledger.add(one, compare(one.part, start, stop))


def _in_processes(ledger: _Ledger, workers: int, interrupted: threading.Event) -> None:
    """Compare in several processes, each with a piece at hand and one more waiting for the first that is free."""
    running: dict[Future[ComparisonResult], PartProgress] = {}
    pieces = ledger.pieces()
    with ProcessPoolExecutor(workers, get_context("spawn"), initializer=_leave_interrupts_to_the_parent) as pool:
        try:
            while True:
                while not interrupted.is_set() and len(running) <= workers and (piece := next(pieces, None)):
                    one, start, stop = piece
                    with interrupts_later():  # a process may be started here
                        running[pool.submit(compare, one.part, start, stop)] = one
                if not running:
                    return
                finished, _ = wait(running, return_when=FIRST_COMPLETED)
                for future in finished:
                    ledger.add(running.pop(future), future.result())
        except BrokenProcessPool:
            if not interrupted.is_set():  # a process that had not come up yet dies of the interrupt
                raise
        finally:
            pool.shutdown(wait=True, cancel_futures=True)


def _leave_interrupts_to_the_parent() -> None:
    signal.signal(signal.SIGINT, signal.SIG_IGN)


@contextmanager
def _patient() -> Iterator[threading.Event]:
    """Yield an event that the first SIGINT sets; the second one has its usual effect. For the main thread only."""
    event = threading.Event()
    if threading.current_thread() is not threading.main_thread():
        yield event
        return
    before = signal.getsignal(signal.SIGINT)

    def note(_: int, __: FrameType | None) -> None:
        event.set()
        signal.signal(signal.SIGINT, before)

    signal.signal(signal.SIGINT, note)
    try:
        yield event
    finally:
        signal.signal(signal.SIGINT, before)
