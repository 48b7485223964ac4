"""The origin of results: the worker's name, and the versions and digest of its installation."""

from __future__ import annotations

import hashlib
import os
import platform
import signal
import threading
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Mapping
from concurrent.futures import FIRST_COMPLETED, BrokenExecutor, Future, wait
from contextlib import contextmanager
from functools import cache
from importlib.resources import files
from itertools import islice
from pathlib import Path
from typing import TYPE_CHECKING, Generic, NamedTuple, TypeVar, cast

import numpy as np

import castsim
from castsim.isa.dataclass import asdict, dataclass
from castsim.isa.errors import EngineError

if TYPE_CHECKING:
    from concurrent.futures import ProcessPoolExecutor

# What makes two installations give the same results: their version and their source files.

_PACKAGES = ("castsim", "castsim.isa", "castsim.targets")
_SUFFIXES = (".py", ".toml", ".csv", ".json")
"""File suffixes of sources, tables, and records of exhaustive tests, on which verdicts depend."""


@dataclass(frozen=True, slots=True)
class Installation:
    """An installation: its version, and the SHA-256 of its sources, tables and records and of its environment.

    `beside` is the result of a task's function of that name: the digest of the oracle in the tests; '' without such a
    function.
    """

    version: str
    sources: str
    beside: str = ""


def installation(beside: Callable[[], str] | None = None) -> Installation:
    """Return the description of this installation."""
    return Installation(castsim.__version__, sources_digest(), "" if beside is None else beside())


def refuse_another(wanted: Installation, here: Installation, worker: str, what: str) -> None:
    """Reject a worker whose installation differs from the one that began the work (`what` names it).

    Raises:
        EngineError: they differ; the message names the difference.
    """
    for name, own, other in (
        ("version", wanted.version, here.version),
        ("source files", wanted.sources, here.sources),
        ("oracle", wanted.beside, here.beside),
    ):
        if own != other:
            raise EngineError(
                f"worker {worker} runs a different castsim: its {name} ({_short(other)}) differ from those of "
                f"the {what} ({_short(own)})"
            )


@cache
def sources_digest(packages: tuple[str, ...] = _PACKAGES) -> str:
    """Return the SHA-256 of packages' source files, tables and records, with paths relative to the packages."""
    paths: dict[str, Path] = {}
    for package in packages:
        root = Path(str(files(package)))
        for path in root.rglob("*"):
            if path.suffix in _SUFFIXES:
                paths[f"{package}/{path.relative_to(root).as_posix()}"] = path
    return digest_of(*(part for name in sorted(paths) for part in (name.encode(), paths[name].read_bytes())))


def digest_of(*parts: bytes | memoryview) -> str:
    """Return one SHA-256 over parts with unambiguous boundaries."""
    digest = hashlib.sha256()
    for part in parts:
        digest.update(len(part).to_bytes(8, "little"))
        digest.update(part)
    return digest.hexdigest()


def _short(text: str) -> str:
    return text[:12] or "none"


# Interrupts of work that several processes share: the parent decides.


@contextmanager
def interrupts_later() -> Iterator[None]:
    """Hold SIGINT back until the end; a process started meanwhile never receives it.

    The mask is for that process. It does not protect this one: another thread may take the signal, and Python then runs
    the handler in the main thread all the same.
    """
    if not hasattr(signal, "pthread_sigmask"):  # Windows
        yield
        return
    arrived: list[int] = []
    handler = signal.getsignal(signal.SIGINT) if threading.current_thread() is threading.main_thread() else None
    if callable(handler):
        signal.signal(signal.SIGINT, lambda number, frame: arrived.append(number))
    mask = signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGINT})
    try:
        yield
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, mask)  # a signal that waited arrives here
        if callable(handler):
            signal.signal(signal.SIGINT, handler)
        if arrived:
            signal.raise_signal(signal.SIGINT)


LOCAL_NAME = "local"
"""The name of this machine's processes."""


@dataclass(frozen=True, slots=True, order=True)
class ResultOrigin:
    """The origin of a result: a cluster worker's name or `local`, versions, and the digest of its sources."""

    worker: str
    castsim: str
    python: str
    numpy: str
    sources_sha256: str


@cache
def origin(worker: str = LOCAL_NAME) -> ResultOrigin:
    """Return the origin of results of this process."""
    return ResultOrigin(worker, castsim.__version__, platform.python_version(), np.__version__, sources_digest())


def origin_of(record: Mapping[str, object]) -> ResultOrigin:
    """Return the origin that a document describes.

    Raises:
        KeyError: a part is missing.
    """
    return ResultOrigin(*(str(record[name]) for name in ResultOrigin.__dataclass_fields__))


class Origins:
    """Distinct origins in the order of their first mention, each identified by its index."""

    def __init__(self, origins: Iterable[ResultOrigin] = ()) -> None:
        self._places: dict[ResultOrigin, int] = {}
        for result_origin in origins:
            self.place(result_origin)

    def place(self, result_origin: ResultOrigin) -> int:
        """Return the index of an origin, which is added if it is new."""
        return self._places.setdefault(result_origin, len(self._places))

    def documents(self) -> list[dict[str, str]]:
        """Return all as JSON."""
        return [asdict(result_origin) for result_origin in self._places]


# A task as it is handed to whoever carries out a piece of it.

Piece = TypeVar("Piece")
Result = TypeVar("Result")


@dataclass(frozen=True, slots=True)
class Task(Generic[Piece, Result]):
    """The work on every piece: `compute`, on installations equal to this one.

    `name` is the name in messages: `sweep`, `verification`. `compute` and pieces are pickled: a module function,
    or a partial of one. `beside` returns a digest of additional inputs of the results besides castsim itself.
    """

    name: str
    compute: Callable[[Piece], Result]
    installation: Installation
    beside: Callable[[], str] | None = None


class FinishedPiece(NamedTuple, Generic[Piece, Result]):
    """A piece, its result, and the result's origin."""

    piece: Piece
    result: Result
    origin: ResultOrigin


# Pieces carried out on this machine: in this process, or in several.

_ATTEMPTS = 3
"""The number of restarts of dead processes without a finished piece in between."""

_compute: list[Callable[..., object]] = []
"""The function that a process of the pool applies to pieces."""


def carried_out_here(
    task: Task[Piece, Result], pieces: Iterable[Piece], workers: int
) -> Iterator[FinishedPiece[Piece, Result]]:
    """Execute pieces, which are requested one by one as needed; yield each when it is done.

    Pieces of processes that died are executed again by others.

    Raises:
        EngineError: processes die repeatedly, for example because memory is short.
        Exception: raised by the task.
    """
    if workers == 1:
        for piece in pieces:
            yield FinishedPiece(piece, task.compute(piece), origin())
        return
    queue: _Queue[Piece, Result] = _Queue(pieces)
    attempts = 0
    while True:
        attempts += 1
        try:
            for done in _in_processes(task, queue, workers):
                attempts = 0
                yield done
            return
        except BrokenExecutor:
            queue.again()
            if attempts >= _ATTEMPTS:
                raise EngineError(
                    f"processes of the {task.name} die at once: memory may be short (--workers 1 needs the least), and "
                    "a script that uses workers needs an `if __name__ == '__main__':` guard"
                ) from None


class _Queue(Generic[Piece, Result]):
    """The pieces in their order, and those in progress; lost ones come first."""

    def __init__(self, pieces: Iterable[Piece]) -> None:
        self._fresh = iter(pieces)
        self._lost: deque[Piece] = deque()
        self.running: dict[Future[Result], Piece] = {}

    def next(self) -> tuple[Piece, ...]:
        """Return a list of the next piece; empty if there is none."""
        if self._lost:
            return (self._lost.popleft(),)
        return tuple(islice(self._fresh, 1))

    def lose(self, piece: Piece) -> None:
        """Queue a piece again."""
        self._lost.append(piece)

    def again(self) -> None:
        """Queue the pieces in progress again."""
        self._lost.extend(self.running.values())
        self.running.clear()


def _in_processes(
    task: Task[Piece, Result], queue: _Queue[Piece, Result], workers: int
) -> Iterator[FinishedPiece[Piece, Result]]:
    from concurrent.futures import ProcessPoolExecutor  # noqa: PLC0415 - a browser has no processes
    from multiprocessing import get_context  # noqa: PLC0415

    with interrupts_later():
        pool = ProcessPoolExecutor(workers, get_context("spawn"), _begin, (task,))
    try:
        while True:
            while len(queue.running) <= 2 * workers and (taken := queue.next()):
                _submit(pool, queue, taken[0])
            if not queue.running:
                return
            finished, _ = wait(queue.running, return_when=FIRST_COMPLETED)
            for future in finished:
                result = future.result()
                yield FinishedPiece(queue.running.pop(future), result, origin())
    except BaseException:
        _end(pool)
        raise
    finally:
        pool.shutdown(wait=True, cancel_futures=True)


def _submit(pool: ProcessPoolExecutor, queue: _Queue[Piece, Result], piece: Piece) -> None:
    try:
        with interrupts_later():  # a process may be started here
            queue.running[cast("Future[Result]", pool.submit(_carried_out, piece))] = piece
    except BrokenExecutor:
        queue.lose(piece)
        raise


def _end(pool: ProcessPoolExecutor) -> None:
    """End the processes at once; their pieces will be computed again."""
    for process in list((getattr(pool, "_processes", None) or {}).values()):
        process.terminate()


def _begin(task: Task[Piece, Result]) -> None:
    from multiprocessing import parent_process  # noqa: PLC0415 - as in `_in_processes`

    signal.signal(signal.SIGINT, signal.SIG_IGN)  # the parent decides
    signal.signal(signal.SIGTERM, signal.SIG_DFL)
    _compute[:] = [task.compute]
    parent = parent_process()
    if parent is not None:
        threading.Thread(target=_end_with, args=(parent.sentinel,), daemon=True).start()


def _end_with(parent: int) -> None:
    """End this process when its parent is killed."""
    from multiprocessing.connection import wait as wait_for_end  # noqa: PLC0415 - as in `_in_processes`

    wait_for_end([parent])
    os._exit(1)


def _carried_out(piece: object) -> object:
    return _compute[0](piece)
