"""Independent pieces of work, executed by processes of this machine or by the workers of a Dask cluster.

A `Task` is a function and the required installation; `distributed` executes its pieces, `resumed` also stores results
in a `Ledger`, so a second start continues. The results do not depend on the workers; only their order and the
`Origin` of each result differ.
"""

from __future__ import annotations

import hashlib
import json
import os
import stat
import struct
import sys
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import nullcontext, suppress
from itertools import islice
from pathlib import Path
from types import TracebackType
from typing import Generic, NamedTuple, Self, TypeVar

from castsim.commands.option_parsers import integer_from
from castsim.isa.dataclass import asdict, dataclass, field, fields, is_dataclass
from castsim.isa.errors import ReadError
from castsim.targets.loader import Target, load_target, target_names
from castsim.targets.validated import BaseModel
from castsim.tools.distribution.origins import (
    FinishedPiece,
    Installation,
    Piece,
    Result,
    ResultOrigin,
    Task,
    carried_out_here,
    digest_of,
    installation,
    origin_of,
)

# A ledger: the results of every piece of work that is done, appended to one file, so that a second start goes on.
#
# The first line says, in JSON, whose ledger it is and what the work is about. Behind it stand pieces: a mark, the
# piece's number and the length of its results, each in 8 bytes, a digest of all that, and the results. What a killed
# process left half written does not count and is cut off.

if sys.platform not in ("win32", "emscripten"):  # a browser locks no files
    import fcntl

VERSION = 2
"""Version of the file's format."""

_HEAD = struct.Struct("<4sQQ16s")
_MARK = b"\nCHK"
_LONGEST_LINE = 1 << 24
_FLAGS = os.O_RDWR | os.O_CREAT | getattr(os, "O_CLOEXEC", 0) | getattr(os, "O_BINARY", 0)  # Windows has the latter
_BEGINNING = b'{"castsim_ledger"'


@dataclass(frozen=True, slots=True)
class LedgerLabels:
    """The words of messages about a ledger: its work (`sweep`), and the option that names it or the file beside it."""

    work: str
    option: str

    @property
    def again(self) -> str:
        """The instruction for starting the work from the beginning."""
        same = "the same without its ledger" if self.option == "--out" else "the same after removing the file"
        return f"{self.option} with another file, or {same}, starts over"


class Ledger:
    """An open ledger: `pieces` has the position and length of the results of each finished piece."""

    def __init__(self, path: Path, about: Mapping[str, str], book: LedgerLabels, *, synchronised: bool = True) -> None:
        """Open a file, creating it if it is missing, for this process alone.

        `synchronised`: results are on the disk once they are added; otherwise the system writes them later.

        Raises:
            ReadError: it cannot be read or written, is not a ledger, belongs to other work, or another process locks
                it.
        """
        self.path = path
        self._book = book
        self._synchronised = synchronised
        self.pieces: dict[int, tuple[int, int]] = {}
        try:
            self._file = os.open(path, _FLAGS, 0o666)
        except OSError as error:
            raise self._failed(error) from None
        try:
            if not stat.S_ISREG(os.fstat(self._file).st_mode):
                raise ReadError(f"{path}: a ledger must be a regular file", legal=(f"{book.option} FILE",))
            self._lock()
            self._read(dict(about))
        except BaseException as error:
            os.close(self._file)
            if isinstance(error, OSError):
                raise self._failed(error) from None
            raise

    @property
    def again(self) -> str:
        """The remedy for a file that does not fit."""
        return self._book.again

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: type[BaseException] | BaseException | TracebackType | None) -> None:
        self.close()

    def close(self) -> None:
        """Close the file, so others can open it."""
        os.close(self._file)

    def add(self, number: int, results: bytes) -> None:
        """Append the results of a piece; with `synchronised` they are on the disk on return.

        Raises:
            ReadError: the file cannot be written.
        """
        data = _HEAD.pack(_MARK, number, len(results), _digest(number, results)) + results
        end = os.lseek(self._file, 0, os.SEEK_END)
        try:
            self._write(data)
            if self._synchronised:
                os.fsync(self._file)
        except OSError as error:
            with suppress(OSError):
                os.ftruncate(self._file, end)
            raise self._failed(error) from None
        self.pieces[number] = (end + _HEAD.size, len(results))

    def results(self, number: int) -> bytes:
        """Return the results of a piece.

        Raises:
            ReadError: the file has changed.
        """
        position, length = self.pieces[number]
        os.lseek(self._file, position - _HEAD.size, os.SEEK_SET)
        data = self._exactly(_HEAD.size + length)
        if len(data) < _HEAD.size + length or _HEAD.unpack_from(data)[3] != _digest(number, data[_HEAD.size :]):
            raise ReadError(f"{self.path}: piece {number} was changed while the {self._book.work} ran")
        return data[_HEAD.size :]

    def _lock(self) -> None:
        if sys.platform in ("win32", "emscripten"):
            return
        try:
            fcntl.flock(self._file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            raise ReadError(
                f"{self.path}: another {self._book.work} is writing to it",
                legal=(f"{self._book.option} with another file", "wait for its end"),
            ) from None
        except OSError:  # file systems without locks
            return

    def _read(self, about: dict[str, str]) -> None:
        line = self._first_line()
        if line is None:
            self._start(about)
            return
        try:
            head = json.loads(line)
            head_about = (
                dict(head["about"]) if (head["castsim_ledger"], head["of"]) == (VERSION, self._book.work) else None
            )
        except (ValueError, TypeError, KeyError, RecursionError):
            head_about = None
        if head_about is None:
            raise ReadError(f"{self.path}: not a ledger of castsim {self._book.work}", legal=(self._book.again,))
        changed = [what for what in {**head_about, **about} if head_about.get(what) != about.get(what)]
        if changed:
            if os.fstat(self._file).st_size <= len(line) + 1:  # its work ended before the first piece
                self._start(about)
                return
            raise ReadError(
                f"{self.path}: belongs to a different run (not the same {', '.join(changed)})",
                legal=(self._book.again,),
            )
        self._find_pieces(len(line) + 1)

    def _first_line(self) -> bytes | None:
        """Return the first line, None if the file is empty or ends in the middle of it."""
        os.lseek(self._file, 0, os.SEEK_SET)
        data = b""
        while b"\n" not in data and len(data) < _LONGEST_LINE:
            more = os.read(self._file, 1 << 16)
            if not more:
                if data.startswith(_BEGINNING) or _BEGINNING.startswith(data):
                    return None
                break
            data += more
        return data.partition(b"\n")[0]

    def _start(self, about: dict[str, str]) -> None:
        os.ftruncate(self._file, 0)
        os.lseek(self._file, 0, os.SEEK_SET)
        self._write(json.dumps({"castsim_ledger": VERSION, "of": self._book.work, "about": about}).encode() + b"\n")
        os.fsync(self._file)

    def _find_pieces(self, position: int) -> None:
        """Record the complete pieces; cut off everything after the last of them."""
        size = os.fstat(self._file).st_size
        while position < size:
            os.lseek(self._file, position, os.SEEK_SET)
            head = self._exactly(_HEAD.size)
            if len(head) < _HEAD.size:
                break
            mark, number, length, digest = _HEAD.unpack(head)
            if mark != _MARK or position + _HEAD.size + length > size:
                break
            if _digest(number, self._exactly(length)) != digest:
                break
            self.pieces[number] = (position + _HEAD.size, length)
            position += _HEAD.size + length
        os.ftruncate(self._file, position)

    def _failed(self, error: OSError) -> ReadError:
        legal = f"{self._book.option} FILE in a folder that can be written"
        return ReadError(f"{self.path}: {error.strerror or error}", legal=(legal,))

    def _exactly(self, length: int) -> bytes:
        data = b""
        while len(data) < length and (more := os.read(self._file, length - len(data))):
            data += more
        return data

    def _write(self, data: bytes) -> None:
        left = memoryview(data)
        while left:
            left = left[os.write(self._file, left) :]


def _digest(number: int, results: bytes) -> bytes:
    return hashlib.blake2b(number.to_bytes(8, "little") + results, digest_size=16).digest()


Item = TypeVar("Item")

OPTION = "--ledger"
"""Name of the ledger option, for work whose results are not a file."""

MOST_WORKERS = 1024
"""Maximum number of processes on one machine. Each one needs its own memory, and twice as many pieces are queued."""


@dataclass(frozen=True, slots=True)
class Workers:
    """The workers: `count` processes of this machine, or those of the Dask scheduler at an address.

    Raises:
        ReadError: fewer than one process, or more than `MOST_WORKERS`.
    """

    count: int = 1
    scheduler: str | None = None

    def __post_init__(self) -> None:
        if not 1 <= self.count <= MOST_WORKERS:
            raise ReadError(f"--workers {self.count}: must be a number of processes", legal=(f"1 to {MOST_WORKERS}",))

    @property
    def alone(self) -> bool:
        """Whether this process does all the work."""
        return self.scheduler is None and self.count == 1


ALONE = Workers()


def workers_of(workers: str | None, scheduler: str | None) -> Workers:
    """Return the workers that compute.

    Raises:
        ReadError: the number of processes is invalid, or processes and a scheduler were both given.
    """
    refuse_both(workers, scheduler)
    return Workers(1 if workers is None else integer_from("--workers", workers), scheduler)


def refuse_both(workers: str | None, scheduler: str | None) -> None:
    """Reject processes of this machine together with a scheduler.

    Raises:
        ReadError: both were given.
    """
    if workers is not None and scheduler is not None:
        raise ReadError("--workers and --scheduler cannot be combined", legal=("--workers N", "--scheduler ADDRESS"))


def refuse_workers(given: Mapping[str, object], why: str) -> None:
    """Reject options about workers, `given` by name, where they have no effect.

    Raises:
        ReadError: such an option was given; `why` is the reason for the rejection.
    """
    for name, value in given.items():
        if value is not None:
            raise ReadError(f"--{name} {value}: {why}")


class WorkGroup(NamedTuple, Generic[Item]):
    """A piece of work of several items, and the numbers of their results."""

    numbers: tuple[int, ...]
    items: tuple[Item, ...]


@dataclass(frozen=True, slots=True)
class Keeping(Generic[Result]):
    """The storage of results until all are complete, and the key of their work.

    `write` returns a result's JSON; `read` restores the result from that and its number.
    """

    path: Path
    about: Mapping[str, str]
    write: Callable[[Result], object]
    read: Callable[[int, object], Result]


class Computed(NamedTuple, Generic[Result]):
    """The result of a numbered item, and its origin."""

    number: int
    result: Result
    origin: ResultOrigin


def distributed(
    task: Task[Piece, Result], pieces: Iterable[Piece], workers: Workers
) -> Iterator[FinishedPiece[Piece, Result]]:
    """Execute pieces, which are requested as needed; yield each when it is done, in any order.

    Raises:
        ReadError: no scheduler answers, or distributed is not installed.
        EngineError: a worker has another version of castsim, or workers die repeatedly.
        Exception: raised by the task.
    """
    if workers.scheduler is None:
        return carried_out_here(task, pieces, workers.count)
    from castsim.tools.distribution.cluster import carried_out_there  # noqa: PLC0415 - distributed is an extra

    return carried_out_there(task, pieces, workers.scheduler)


def grouped(items: Iterable[tuple[int, Item]], size: int) -> Iterator[WorkGroup[Item]]:
    """Divide numbered items into groups of up to `size`, in order."""
    waiting = iter(items)
    while taken := tuple(islice(waiting, size)):
        yield WorkGroup(tuple(number for number, _ in taken), tuple(item for _, item in taken))


def resumed(
    task: Task[WorkGroup[Item], Sequence[Result]],
    items: Sequence[Item],
    workers: Workers,
    keeping: Keeping[Result] | None,
    size: int = 1,
) -> Iterator[Computed[Result]]:
    """Compute the results of items, numbered from 0; those already in a ledger are yielded first.

    `size` is the number of items handed out together to other processes. A result is on the disk
    before it is yielded.

    Raises:
        ReadError: the ledger is about something else, or cannot be written; see also `distributed`.
        EngineError, Exception: see `distributed`.
    """
    opened = nullcontext() if keeping is None else Ledger(keeping.path, keeping.about, LedgerLabels(task.name, OPTION))
    with opened as ledger:
        finished = {} if ledger is None else {number for number in ledger.pieces if number < len(items)}
        for number in sorted(finished):
            assert ledger is not None
            assert keeping is not None
            yield _read(keeping, ledger, number)
        left = ((number, item) for number, item in enumerate(items) if number not in finished)
        for done in distributed(task, grouped(left, 1 if workers.alone else size), workers):
            for number, result in zip(done.piece.numbers, done.result, strict=True):
                if ledger is not None and keeping is not None:
                    ledger.add(number, _written(keeping, result, done.origin))
                yield Computed(number, result, done.origin)


def here(beside: Callable[[], str] | None, workers: Workers) -> Installation:
    """Return the installation that workers must have; None if there are no other workers."""
    return Installation("", "") if workers.scheduler is None else installation(beside)


def about_installation() -> dict[str, str]:
    """Return the key that every ledger contains: the castsim that computes."""
    own = installation()
    return {"version of castsim": own.version, "state of castsim's source files": own.sources}


def digest(*parts: object) -> str:
    """Return a digest of arguments for the key of a ledger."""
    return digest_of(*(repr(part).encode() for part in parts))


def _written(keeping: Keeping[Result], result: Result, origin: ResultOrigin) -> bytes:
    return json.dumps({"origin": asdict(origin), "result": keeping.write(result)}).encode()


def _read(keeping: Keeping[Result], ledger: Ledger, number: int) -> Computed[Result]:
    try:
        record = json.loads(ledger.results(number))
        return Computed(number, keeping.read(number, record["result"]), origin_of(record["origin"]))
    except (ValueError, TypeError, KeyError, IndexError, AttributeError, RecursionError) as error:
        raise ReadError(f"{ledger.path}: piece {number} cannot be read: {error!r}") from None


# What a target's description says, as one digest, and targets that are handed to others.


def facts_digest(target: Target) -> str:
    """Return the SHA-256 of a target's whole description."""
    return digest_of(canonical(target).encode())


def canonical(value: object) -> str:
    """Return a value in canonical form: sets and tables have no order."""
    if isinstance(value, BaseModel):
        value = {name: getattr(value, name) for name in type(value).model_fields}
    elif is_dataclass(value) and not isinstance(value, type):
        value = {attribute.name: getattr(value, attribute.name) for attribute in fields(value)}
    if isinstance(value, Mapping):
        return "{" + ",".join(sorted(f"{canonical(key)}:{canonical(item)}" for key, item in value.items())) + "}"
    if isinstance(value, set | frozenset):
        return "{" + ",".join(sorted(map(canonical, value))) + "}"
    if isinstance(value, list | tuple):
        return "[" + ",".join(map(canonical, value)) + "]"
    return repr(str(value) if isinstance(value, str) else value)


_KNOWN: dict[str, Target] = {}


@dataclass(frozen=True, slots=True)
class HandedTargets:
    """Targets for remote workers: they load shipped ones by name, and receive those from files."""

    files: Mapping[str, Target] = field(default_factory=dict)
    _known: dict[str, Target] = field(default_factory=dict, init=False, repr=False, compare=False)

    def get(self, name: str) -> Target | None:
        """Return the target from a file, None for one to be loaded.

        Equal facts give the same object, which serves as key for derived facts of a target.
        """
        own = self.files.get(name)
        if own is None:
            return None
        if name not in self._known:  # a digest takes as long as many of the pieces that ask for the target
            self._known[name] = _KNOWN.setdefault(facts_digest(own), own)
        return self._known[name]


def handed_targets(names: Iterable[str]) -> HandedTargets:
    """Return targets by their names or paths.

    Raises:
        ReadError, TargetDataError: a target cannot be read.
    """
    shipped = target_names()
    return HandedTargets({name: load_target(name) for name in names if name not in shipped})
