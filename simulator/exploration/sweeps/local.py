"""Chunks computed on this machine: in this process, or in several."""

from __future__ import annotations

import os
import signal
import threading
from collections.abc import Iterator, Sequence
from concurrent.futures import FIRST_COMPLETED, Future, ProcessPoolExecutor, wait
from concurrent.futures.process import BrokenProcessPool
from multiprocessing import get_context, parent_process
from multiprocessing.connection import wait as wait_for_end

from castsim.execution.interrupts import interrupts_later
from castsim.exploration.sweeps.columns import chunk_rows
from castsim.exploration.sweeps.work import Work
from castsim.isa.errors import EngineError

_FEW = 4
"""Chunks that are done before processes would have come up."""
_ATTEMPTS = 3
"""How often processes that died are started again without a chunk having been done meanwhile."""

_work: list[Work] = []
"""In a process of the pool: what it works on."""


def computed_here(work: Work, numbers: Sequence[int], workers: int) -> Iterator[tuple[int, bytes]]:
    """Yield the rows of chunks as they are done, each with its number.

    Raises:
        EngineError: processes die again and again, as they do where memory is short.
        ReadError: as `chunk_rows`.
    """
    if workers == 1 or len(numbers) <= _FEW:
        for number in numbers:
            yield number, chunk_rows(work, number)
        return
    left, attempts = dict.fromkeys(numbers), 0
    while left:
        attempts += 1
        try:
            for number, rows in _in_processes(work, list(left), workers):
                del left[number]
                attempts = 0
                yield number, rows
        except BrokenProcessPool:
            if attempts >= _ATTEMPTS:
                raise EngineError(
                    "processes of the sweep die as soon as they work: memory may be short (--workers 1 takes least); a "
                    "script that calls castsim.sweep needs `if __name__ == '__main__':` around it"
                ) from None


def _in_processes(work: Work, numbers: list[int], workers: int) -> Iterator[tuple[int, bytes]]:
    waiting = iter(numbers)
    running: dict[Future[bytes], int] = {}
    with interrupts_later():
        pool = ProcessPoolExecutor(min(workers, len(numbers)), get_context("spawn"), _begin, (work,))
    try:
        while True:
            while len(running) <= 2 * workers and (number := next(waiting, None)) is not None:
                with interrupts_later():  # a process may be started here
                    running[pool.submit(_chunk, number)] = number
            if not running:
                return
            finished, _ = wait(running, return_when=FIRST_COMPLETED)
            for future in finished:
                yield running.pop(future), future.result()
    except BaseException:
        _end(pool)
        raise
    finally:
        pool.shutdown(wait=True, cancel_futures=True)


def _end(pool: ProcessPoolExecutor) -> None:
    """End the processes at once: what they are at will be computed again."""
    for process in list((getattr(pool, "_processes", None) or {}).values()):
        process.terminate()


def _begin(work: Work) -> None:
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # the parent decides
    signal.signal(signal.SIGTERM, signal.SIG_DFL)
    _work[:] = [work]
    parent = parent_process()
    if parent is not None:
        threading.Thread(target=_end_with, args=(parent.sentinel,), daemon=True).start()


def _end_with(parent: int) -> None:
    """Do not outlive a parent that was killed."""
    wait_for_end([parent])
    os._exit(1)


def _chunk(number: int) -> bytes:
    return chunk_rows(_work[0], number)
