"""Work in pieces: who carries them out, and what of it is kept for a second start."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import nullcontext
from dataclasses import asdict, dataclass
from itertools import islice
from pathlib import Path
from typing import Generic, NamedTuple, TypeVar

from castsim.execution.distribution.installation import Installation, digest_of, installation
from castsim.execution.distribution.ledger import Ledger, LedgerLabels
from castsim.execution.distribution.local import carried_out_here
from castsim.execution.distribution.origins import Origin, origin_of
from castsim.execution.distribution.task import Done, Piece, Result, Task
from castsim.isa.errors import ReadError

Item = TypeVar("Item")

OPTION = "--ledger"
"""The option that names the ledger of work whose results are no file of their own."""

MOST_WORKERS = 1024
"""Processes of one machine. Every one takes memory of its own, and twice as many pieces wait for them."""


@dataclass(frozen=True, slots=True)
class Workers:
    """Who computes: `count` processes of this machine, or the workers of the Dask scheduler at an address.

    Raises:
        ReadError: fewer than one process, or more than `MOST_WORKERS`.
    """

    count: int = 1
    scheduler: str | None = None

    def __post_init__(self) -> None:
        if not 1 <= self.count <= MOST_WORKERS:
            raise ReadError(f"--workers {self.count}: not a number of processes", legal=(f"1 to {MOST_WORKERS}",))

    @property
    def alone(self) -> bool:
        """Whether all is done in this process."""
        return self.scheduler is None and self.count == 1


ALONE = Workers()


class Group(NamedTuple, Generic[Item]):
    """A piece of work of several items, and the numbers under which their results are kept."""

    numbers: tuple[int, ...]
    items: tuple[Item, ...]


@dataclass(frozen=True, slots=True)
class Keeping(Generic[Result]):
    """Where results are kept until all are there, and what they are about.

    `write` gives JSON for one, from which `read` makes it again, told its number.
    """

    path: Path
    about: Mapping[str, str]
    write: Callable[[Result], object]
    read: Callable[[int, object], Result]


class Computed(NamedTuple, Generic[Result]):
    """The result for the item of a number, and where it comes from."""

    number: int
    result: Result
    origin: Origin


def distributed(task: Task[Piece, Result], pieces: Iterable[Piece], workers: Workers) -> Iterator[Done[Piece, Result]]:
    """Carry out pieces, which are taken as they are needed; yield each as it is done, in any order.

    Raises:
        ReadError: no scheduler answers; distributed is not installed.
        EngineError: workers that are another castsim, or die again and again.
        Exception: whatever the task raises.
    """
    if workers.scheduler is None:
        return carried_out_here(task, pieces, workers.count)
    from castsim.execution.distribution.cluster import carried_out_there  # noqa: PLC0415 - distributed is an extra

    return carried_out_there(task, pieces, workers.scheduler)


def grouped(items: Iterable[tuple[int, Item]], size: int) -> Iterator[Group[Item]]:
    """Divide numbered items into groups of up to `size`, in their order."""
    waiting = iter(items)
    while taken := tuple(islice(waiting, size)):
        yield Group(tuple(number for number, _ in taken), tuple(item for _, item in taken))


def resumed(
    task: Task[Group[Item], Sequence[Result]],
    items: Sequence[Item],
    workers: Workers,
    keeping: Keeping[Result] | None,
    size: int = 1,
) -> Iterator[Computed[Result]]:
    """Compute the results of items, numbered from 0; those that a ledger holds already are yielded first.

    `size` is how many items are handed out together where not all is done in this process. A result is on the disk
    before it is yielded.

    Raises:
        ReadError: the ledger is about something else, or cannot be written; and as `distributed`.
        EngineError, Exception: as `distributed`.
    """
    opened = nullcontext() if keeping is None else Ledger(keeping.path, keeping.about, LedgerLabels(task.name, OPTION))
    with opened as ledger:
        held = {} if ledger is None else {number for number in ledger.pieces if number < len(items)}
        for number in sorted(held):
            assert ledger is not None
            assert keeping is not None
            yield _read(keeping, ledger, number)
        left = ((number, item) for number, item in enumerate(items) if number not in held)
        for done in distributed(task, grouped(left, 1 if workers.alone else size), workers):
            for number, result in zip(done.piece.numbers, done.result, strict=True):
                if ledger is not None and keeping is not None:
                    ledger.add(number, _written(keeping, result, done.origin))
                yield Computed(number, result, done.origin)


def here(beside: Callable[[], str] | None, workers: Workers) -> Installation:
    """Return the installation that workers have to be; where nobody else computes, nobody asks."""
    return Installation("", "") if workers.scheduler is None else installation(beside)


def about_installation() -> dict[str, str]:
    """Return what every ledger is about: the castsim that computes."""
    own = installation()
    return {"version of castsim": own.version, "state of castsim's source files": own.sources}


def digest(*parts: object) -> str:
    """Return a digest of arguments, for what a ledger is about."""
    return digest_of(*(repr(part).encode() for part in parts))


def _written(keeping: Keeping[Result], result: Result, origin: Origin) -> bytes:
    return json.dumps({"origin": asdict(origin), "result": keeping.write(result)}).encode()


def _read(keeping: Keeping[Result], ledger: Ledger, number: int) -> Computed[Result]:
    try:
        held = json.loads(ledger.results(number))
        return Computed(number, keeping.read(number, held["result"]), origin_of(held["origin"]))
    except (ValueError, TypeError, KeyError, IndexError, AttributeError, RecursionError) as error:
        raise ReadError(f"{ledger.path}: piece {number} cannot be read: {error!r}") from None
