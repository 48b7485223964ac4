"""Ctrl-C that is not lost while machine code is made.

LLVM calls back into Python through ctypes, which drops whatever exception is raised there, KeyboardInterrupt too. So an
interrupt that comes while numba compiles waits until numba is left; a second one does not wait.
"""

from __future__ import annotations

import signal
from collections.abc import Iterator
from contextlib import contextmanager
from types import FrameType

RETRY_SECONDS = 0.05
"""The interval, in seconds, between checks whether the compiler has been left."""

_COMPILERS = ("numba", "llvmlite")


@contextmanager
def kept_interrupts() -> Iterator[None]:
    """Deliver interrupts for sure while the block lasts; does nothing in other threads and without timers."""
    usual = signal.getsignal(signal.SIGINT)
    if not hasattr(signal, "setitimer") or usual is not signal.default_int_handler:
        yield
        return
    waiting = False

    def interrupt(_: int, frame: FrameType | None) -> None:
        nonlocal waiting
        if waiting or not _compiling(frame):
            raise KeyboardInterrupt
        waiting = True
        signal.setitimer(signal.ITIMER_REAL, RETRY_SECONDS, RETRY_SECONDS)

    def look_again(_: int, frame: FrameType | None) -> None:
        if not _compiling(frame):
            signal.setitimer(signal.ITIMER_REAL, 0)
            raise KeyboardInterrupt

    try:
        alarm = signal.signal(signal.SIGALRM, look_again)
    except ValueError:  # a thread other than the main one, which gets no signals
        yield
        return
    signal.signal(signal.SIGINT, interrupt)
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGINT, usual)
        signal.signal(signal.SIGALRM, alarm)


def _compiling(frame: FrameType | None) -> bool:
    while frame is not None:
        if str(frame.f_globals.get("__name__", "")).partition(".")[0] in _COMPILERS:
            return True
        frame = frame.f_back
    return False
