"""Who computes, as it was typed, and the ledger that a second start goes on from."""

from __future__ import annotations

import signal
import threading
from argparse import Namespace
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from types import FrameType

from castsim.commands.option_parsers import integer_from
from castsim.commands.outcome import tell
from castsim.commands.page_files import check_file, refuse_same
from castsim.execution.distribution.distributing import Workers
from castsim.isa.errors import ReadError


def workers_of(options: Namespace) -> Workers:
    """Return who computes.

    Raises:
        ReadError: no number of processes; both processes and a scheduler.
    """
    refuse_both(options)
    count = 1 if options.workers is None else integer_from("--workers", options.workers)
    return Workers(count, options.scheduler)


def refuse_both(options: Namespace) -> None:
    """Reject processes of this machine together with a scheduler.

    Raises:
        ReadError: both were given.
    """
    if options.workers is not None and options.scheduler is not None:
        raise ReadError("--workers and --scheduler both say who computes", legal=("--workers N", "--scheduler ADDRESS"))


def refuse_workers(options: Namespace, why: str, *names: str) -> None:
    """Reject options that say who computes, where they mean nothing.

    Raises:
        ReadError: one was given; `why` it means nothing.
    """
    for name in names or ("workers", "scheduler", "ledger"):
        value = getattr(options, name)
        if value is not None:
            raise ReadError(f"--{name} {value}: {why}")


def ledger_of(options: Namespace, **others: str | None) -> Path | None:
    """Return the ledger that was named.

    `others` are the files that the command reads and writes, by option; `--json` and `--html` are known.

    Raises:
        ReadError: it cannot be made, or is another of the files.
    """
    if options.ledger is None:
        return None
    check_file("--ledger", options.ledger)
    named = {"json": options.json, "html": options.html, **others}
    refuse_same("--ledger", options.ledger, {f"--{name}": file for name, file in named.items()})
    return Path(options.ledger)


def removal(ledger: Path | None) -> Callable[[], None] | None:
    """Return what removes a ledger once the results are written."""
    if ledger is None:
        return None

    def remove() -> None:
        with suppress(OSError):
            ledger.unlink()

    return remove


@contextmanager
def resume_hint(ledger: Path | str | None, what: str) -> Iterator[None]:
    """Let SIGTERM end the block as Ctrl-C does, and say then how `what` goes on."""
    try:
        with _terminated_is_interrupted():
            yield
    except KeyboardInterrupt:
        if ledger is not None:
            tell(f"the {what} was interrupted; the same command continues from {ledger}")
        raise


@contextmanager
def _terminated_is_interrupted() -> Iterator[None]:
    """For the main thread only."""
    if threading.current_thread() is not threading.main_thread():
        yield
        return

    def interrupt(_: int, __: FrameType | None) -> None:
        raise KeyboardInterrupt

    before = signal.signal(signal.SIGTERM, interrupt)
    try:
        yield
    finally:
        signal.signal(signal.SIGTERM, before)
