"""Distribution of pieces to the workers of a Dask cluster, in any order; pieces of a lost worker are computed again."""

from __future__ import annotations

import logging
import re
import secrets
import time
from collections.abc import Iterable, Iterator
from concurrent.futures import CancelledError
from contextlib import contextmanager, suppress
from itertools import islice
from typing import Generic

from castsim.isa.dataclass import dataclass, field
from castsim.isa.errors import EngineError, ReadError, missing_package
from castsim.tools.distribution.origins import (
    FinishedPiece,
    Installation,
    Piece,
    Result,
    ResultOrigin,
    Task,
    installation,
    origin,
    refuse_another,
)

try:
    from distributed import Client, Future, KilledWorker, get_worker, wait
    from distributed import client as distributed_client
except ImportError:
    raise missing_package("--scheduler", "distributed", "cluster") from None

TIMEOUT_SECONDS = 5
"""Time limit for an answer of the scheduler, in seconds."""
PATIENCE_SECONDS = 60
"""Time limit for a cluster without workers, in seconds."""
_ATTEMPTS = 5
"""The number of attempts for a piece whose workers die."""
_ADDRESS = re.compile(r"(?:(?:tcp|tls|ws|wss|ucx)://)?[^\s/]+:[0-9]{1,5}")
_CLOSED: type[Exception] = getattr(distributed_client, "ClosedClientError", RuntimeError)
"""Errors of a client that has lost its scheduler; before distributed 2025, a plain one."""
_ADDRESSES = ("--scheduler tcp://HOST:8786", "--workers N")


def carried_out_there(
    task: Task[Piece, Result], pieces: Iterable[Piece], address: str
) -> Iterator[FinishedPiece[Piece, Result]]:
    """Execute pieces, which are requested one by one as needed; yield each when it is done.

    Raises:
        ReadError: distributed is not installed, or no scheduler answers.
        EngineError: a worker lacks castsim or has another version; there are no workers for a minute; a piece kills
            workers; or the scheduler ends.
        Exception: raised by the task.
    """
    with _client(address) as client:
        _refuse_others(client, task, address)
        hands = _Hands(client, task, address)
        waiting = iter(pieces)
        seen = time.monotonic()
        while True:
            for piece in islice(waiting, max(0, 4 * max(1, hands.threads()) - len(hands.running))):
                hands.out(_Handed(piece))
            if not hands.running:
                return
            finished = hands.finished()
            if finished or hands.threads():
                seen = time.monotonic()
            elif time.monotonic() - seen > PATIENCE_SECONDS:
                raise EngineError(f"--scheduler {address}: no worker appeared within {PATIENCE_SECONDS} s")
            for future in finished:
                handed = hands.running.pop(future)
                result = _result(future)
                if result is not None:
                    yield FinishedPiece(handed.piece, *result)
                    continue
                handed.attempts += 1
                if handed.attempts == _ATTEMPTS:
                    raise EngineError(f"--scheduler {address}: every worker dies while computing piece {handed.piece}")
                hands.out(handed)


@dataclass(slots=True)
class _Handed(Generic[Piece]):
    """A piece that was handed out, and how often its workers have died."""

    piece: Piece
    attempts: int = 0


@dataclass(slots=True)
class _Hands(Generic[Piece, Result]):
    """The pieces at the workers. Each start has separate keys, so no two share a result."""

    client: Client
    task: Task[Piece, Result]
    address: str
    running: dict[Future[tuple[Result, ResultOrigin]], _Handed[Piece]] = field(default_factory=dict)
    _start: str = field(default_factory=lambda: secrets.token_hex(8))
    _number: int = 0

    def out(self, handed: _Handed[Piece]) -> None:
        """Hand out a piece."""
        self._number += 1
        key = f"castsim-{self._start}-{self._number}"
        with _while_it_lives(self.address):
            future = self.client.submit(_carried_out, self.task, handed.piece, key=key, pure=False, retries=0)
        self.running[future] = handed

    def threads(self) -> int:
        """Return how many pieces the workers can do at once."""
        with _while_it_lives(self.address):
            return sum(self.client.nthreads().values())

    def finished(self) -> list[Future[tuple[Result, ResultOrigin]]]:
        """Return the finished pieces, after a wait of at most a second."""
        with suppress(TimeoutError, CancelledError):  # a cancelled one is done: its piece will be handed out again
            wait(list(self.running), timeout=1, return_when="FIRST_COMPLETED")
        return [future for future in self.running if future.done()]


@contextmanager
def _while_it_lives(address: str) -> Iterator[None]:
    """Report a scheduler that has ended during a request of the block.

    Raises:
        EngineError: it has.
    """
    try:
        yield
    except (OSError, CancelledError, _CLOSED):
        raise EngineError(f"--scheduler {address}: the scheduler has ended or cannot be reached") from None


def _carried_out(task: Task[Piece, Result], piece: Piece) -> tuple[Result, ResultOrigin]:
    """Execute a piece on a worker, which may have joined the cluster after the task was sent."""
    name = str(get_worker().name)
    refuse_another(task.installation, installation(task.beside), name, task.name)
    return task.compute(piece), origin(name)


def _result(future: Future[tuple[Result, ResultOrigin]]) -> tuple[Result, ResultOrigin] | None:
    """Return the result of a piece and its origin; None if its workers died.

    Raises:
        Exception: raised by the task.
    """
    try:
        return future.result()
    except (KilledWorker, CancelledError):
        return None
    finally:
        future.release()


def _refuse_others(client: Client, task: Task[Piece, Result], address: str) -> None:
    """Reject workers with a different castsim before they receive any work.

    Raises:
        EngineError: a worker lacks castsim, or has another version; the message names the worker.
    """
    with _while_it_lives(address):
        replies = client.run(installation, task.beside, on_error="return")
    for worker, there in replies.items():
        if not isinstance(there, Installation):
            raise EngineError(f"worker {worker} cannot load castsim: {there!r}")
        refuse_another(task.installation, there, str(worker), task.name)


@contextmanager
def _client(address: str) -> Iterator[Client]:
    if _ADDRESS.fullmatch(address) is None:
        raise ReadError(f"--scheduler {address}: expected an address with a port", legal=_ADDRESSES)
    for name in ("distributed", "distributed.client"):  # the latter has a level of its own
        logging.getLogger(name).setLevel(logging.CRITICAL)
    try:
        client = Client(address, timeout=TIMEOUT_SECONDS, set_as_default=False)
    except (OSError, TimeoutError, ValueError):
        raise ReadError(f"--scheduler {address}: no answer within {TIMEOUT_SECONDS} s", legal=_ADDRESSES) from None
    try:
        with client.as_current():
            yield client
    finally:
        client.close(timeout=TIMEOUT_SECONDS)
