"""Chunks computed by the workers of a Dask cluster, in any order; what a lost worker had is computed again."""

from __future__ import annotations

import logging
import re
import time
from collections.abc import Iterator, Sequence
from concurrent.futures import CancelledError
from contextlib import contextmanager
from importlib.util import find_spec

from castsim.exploration.sweeps.columns import chunk_rows
from castsim.exploration.sweeps.identity import identity
from castsim.exploration.sweeps.work import Work
from castsim.isa.errors import EngineError, ReadError

if find_spec("distributed") is None:
    raise ReadError("--scheduler needs distributed, which is not installed", legal=("pip install 'castsim[cluster]'",))

from distributed import Client, Future, KilledWorker, wait

TIMEOUT_SECONDS = 5
"""How long a scheduler may take to answer."""
PATIENCE_SECONDS = 60
"""How long a cluster may be without workers."""
_ATTEMPTS = 5
"""How often a chunk is handed out whose workers die."""
_ADDRESS = re.compile(r"(?:(?:tcp|tls|ws|wss|ucx)://)?[^\s/]+:[0-9]{1,5}")
_ADDRESSES = ("--scheduler tcp://HOST:8786", "--workers N")


def computed_there(work: Work, numbers: Sequence[int], address: str) -> Iterator[tuple[int, bytes]]:
    """Yield the rows of chunks as they are done, each with its number.

    Raises:
        ReadError: distributed is not installed; no scheduler answers.
        EngineError: a worker has no castsim, or another; there are no workers for a minute; a chunk kills workers.
    """
    with _client(address) as client:
        _refuse_others(client, work)
        waiting = iter(numbers)
        running: dict[Future[bytes], int] = {}
        attempts: dict[int, int] = {}
        seen = time.monotonic()
        while True:
            most = 4 * max(1, sum(client.nthreads().values()))
            while len(running) < most and (number := next(waiting, None)) is not None:
                running[_submitted(client, work, number, 0)] = number
            if not running:
                return
            finished = _finished(running)
            if finished or client.nthreads():
                seen = time.monotonic()
            elif time.monotonic() - seen > PATIENCE_SECONDS:
                raise EngineError(f"--scheduler {address}: there have been no workers for {PATIENCE_SECONDS} s")
            for future in finished:
                number = running.pop(future)
                rows = _rows(future)
                if rows is not None:
                    yield number, rows
                    continue
                attempts[number] = attempts.get(number, 0) + 1
                if attempts[number] == _ATTEMPTS:
                    raise EngineError(f"--scheduler {address}: every worker dies of chunk {number}")
                running[_submitted(client, work, number, attempts[number])] = number


def _submitted(client: Client, work: Work, number: int, attempt: int) -> Future[bytes]:
    key = f"castsim-{work.digest[:16]}-{number}-{attempt}"
    return client.submit(chunk_rows, work, number, key=key, pure=False, retries=0)


def _finished(running: dict[Future[bytes], int]) -> list[Future[bytes]]:
    try:
        wait(list(running), timeout=1, return_when="FIRST_COMPLETED")
    except TimeoutError:
        return []
    return [future for future in running if future.done()]


def _rows(future: Future[bytes]) -> bytes | None:
    """Return the rows of a chunk, None if its workers died.

    Raises:
        EngineError, ReadError: as `chunk_rows`.
    """
    try:
        return bytes(future.result())
    except (KilledWorker, CancelledError):
        return None
    finally:
        future.release()


def _refuse_others(client: Client, work: Work) -> None:
    """Refuse workers whose castsim is not this one, before they are given anything.

    Raises:
        EngineError: a worker has no castsim, or another one; names the worker.
    """
    found = client.run(_described, on_error="return")
    for worker, there in found.items():
        if isinstance(there, BaseException):
            raise EngineError(f"worker {worker} cannot load castsim: {there!r}")
        for what, own, other in zip(
            ("version", "source files"), (work.identity.version, work.identity.sources), there, strict=True
        ):
            if own != other:
                raise EngineError(
                    f"worker {worker} has another castsim: its {what} ({other[:12]}) are not those of the sweep "
                    f"({own[:12]})"
                )


def _described() -> tuple[str, str]:
    """Return what the castsim of a worker is."""
    own = identity({})
    return own.version, own.sources


@contextmanager
def _client(address: str) -> Iterator[Client]:
    if _ADDRESS.fullmatch(address) is None:
        raise ReadError(f"--scheduler {address}: is no address with a port", legal=_ADDRESSES)
    logging.getLogger("distributed").setLevel(logging.CRITICAL)
    try:
        client = Client(address, timeout=TIMEOUT_SECONDS, set_as_default=False)
    except (OSError, TimeoutError, ValueError):
        raise ReadError(
            f"--scheduler {address}: no scheduler answers within {TIMEOUT_SECONDS} s", legal=_ADDRESSES
        ) from None
    try:
        with client.as_current():
            yield client
    finally:
        client.close(timeout=TIMEOUT_SECONDS)
