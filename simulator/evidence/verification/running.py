"""Working through a record: in pieces, in one or several processes, saving on the way."""

from __future__ import annotations

import signal
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from types import FrameType
from typing import NamedTuple, Protocol

from castsim.evidence.verification.comparison import ComparisonResult, compare
from castsim.evidence.verification.inputs import GRAIN
from castsim.evidence.verification.kept import oracle_digest
from castsim.evidence.verification.part import ORACLE, VerificationPart
from castsim.evidence.verification.record import PartProgress, VerificationRecord
from castsim.execution.distribution import Done, Task, Workers, distributed, here

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
    scheduler: str | None = None,
    save: Callable[[], None] | None = None,
    observer: VerificationObserver | None = None,
) -> None:
    """Try everything that the record still lacks, in the order of its parts.

    It is done by so many processes, or by the workers of the Dask scheduler at an address.
    `save` is called every few seconds and at the end, whatever ends the work. On the first SIGINT the pieces that
    run are finished and taken in; a second one breaks off at once.

    Raises:
        KeyboardInterrupt: interrupted; the record holds all that was found.
        ReadError, EngineError: as `castsim.execution.distribution.distributed`.
    """
    ledger = _Ledger(record, save, observer)
    try:
        with _patient() as interrupted:
            who = Workers(workers, scheduler)
            for done in distributed(_task(record, who), ledger.pieces(interrupted), who):
                ledger.add(done)
        if interrupted.is_set():
            raise KeyboardInterrupt
    finally:
        if save is not None:
            save()


class _Piece(NamedTuple):
    """Positions `start` to `stop - 1` of the part of a number."""

    number: int
    part: VerificationPart
    start: int
    stop: int


class _Ledger:
    """Hands out pieces and takes in findings."""

    def __init__(
        self, record: VerificationRecord, save: Callable[[], None] | None, observer: VerificationObserver | None
    ) -> None:
        self._record = record
        self._save = save
        self._observer = observer
        self._saved = time.monotonic()

    def pieces(self, interrupted: threading.Event) -> Iterator[_Piece]:
        """Yield what is missing until interrupted, in pieces that grow until they take long enough."""
        for number, one in enumerate(self._record.progress):
            for first, last in list(one.missing()):
                start = first
                while start < last:
                    if interrupted.is_set():
                        return
                    stop = min(start + _piece(one), last)
                    yield _Piece(number, one.part, start, stop)
                    start = stop

    def add(self, done: Done[_Piece, ComparisonResult]) -> None:
        """Take in a finding, and save if that is due."""
        one, finding = self._record.progress[done.piece.number], done.result
        one.add(finding, done.origin)
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


def _compared(piece: _Piece) -> ComparisonResult:
    return compare(piece.part, piece.start, piece.stop)


def _task(record: VerificationRecord, workers: Workers) -> Task[_Piece, ComparisonResult]:
    judged = any(one.part.against == ORACLE for one in record.progress)
    beside = oracle_digest if judged else None
    return Task("verification", _compared, here(beside, workers), beside)


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
