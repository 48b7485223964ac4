"""The ledger of a sweep: every chunk of points that is done, appended to one file, so that a second start goes on.

The first line says, in JSON, what the sweep is about. Behind it stand chunks: a mark, the chunk's number and the length
of its rows, each in 8 bytes, a digest of all that, and the rows. What a killed process left half written does not count
and is cut off.
"""

from __future__ import annotations

import hashlib
import json
import os
import struct
import sys
from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path
from types import TracebackType
from typing import Self

from castsim.isa.errors import ReadError

if sys.platform != "win32":
    import fcntl

VERSION = 1
"""Version of the form of the file."""
SUFFIX = ".ledger"
"""What its name has behind that of the results."""

_HEAD = struct.Struct("<4sQQ16s")
_MARK = b"\nCHK"
_LONGEST_LINE = 1 << 24
_BEGINNING = b'{"castsim_sweep"'


class Ledger:
    """An open ledger: `chunks` has the place and length of the rows of each chunk that is done."""

    def __init__(self, path: Path, about: Mapping[str, str]) -> None:
        """Open a file, which is made if it is missing, for this process alone.

        Raises:
            ReadError: it cannot be read or written, is no ledger, is about something else, or another process has it.
        """
        self.path = path
        self.chunks: dict[int, tuple[int, int]] = {}
        try:
            self._file = os.open(path, os.O_RDWR | os.O_CREAT | getattr(os, "O_CLOEXEC", 0), 0o666)
        except OSError as error:
            raise _failed(path, error) from None
        try:
            self._lock()
            self._read(dict(about))
        except BaseException:
            os.close(self._file)
            raise

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: type[BaseException] | BaseException | TracebackType | None) -> None:
        os.close(self._file)

    def add(self, number: int, rows: bytes) -> None:
        """Append the rows of a chunk; they are on the disk when this returns.

        Raises:
            ReadError: the file cannot be written.
        """
        data = _HEAD.pack(_MARK, number, len(rows), _digest(number, rows)) + rows
        end = os.lseek(self._file, 0, os.SEEK_END)
        try:
            self._write(data)
            os.fsync(self._file)
        except OSError as error:
            with suppress(OSError):
                os.ftruncate(self._file, end)
            raise _failed(self.path, error) from None
        self.chunks[number] = (end + _HEAD.size, len(rows))

    def rows(self, number: int) -> bytes:
        """Return the rows of a chunk.

        Raises:
            ReadError: the file is not what it was.
        """
        place, length = self.chunks[number]
        os.lseek(self._file, place - _HEAD.size, os.SEEK_SET)
        data = self._exactly(_HEAD.size + length)
        if len(data) < _HEAD.size + length or _HEAD.unpack_from(data)[3] != _digest(number, data[_HEAD.size :]):
            raise ReadError(f"{self.path}: chunk {number} was changed while the sweep ran")
        return data[_HEAD.size :]

    def _lock(self) -> None:
        if sys.platform == "win32":
            return
        try:
            fcntl.flock(self._file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            raise ReadError(
                f"{self.path}: another sweep is writing to it", legal=("--out with another file", "wait for its end")
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
            held = dict(head["about"]) if head["castsim_sweep"] == VERSION else None
        except (ValueError, TypeError, KeyError, RecursionError):
            held = None
        if held is None:
            raise ReadError(f"{self.path}: is no ledger of this version of castsim sweep", legal=(AGAIN,))
        changed = [what for what in {**held, **about} if held.get(what) != about.get(what)]
        if changed:
            raise ReadError(f"{self.path}: is about another {', another '.join(changed)}", legal=(AGAIN,))
        self._find_chunks(len(line) + 1)

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
        try:
            os.ftruncate(self._file, 0)
            os.lseek(self._file, 0, os.SEEK_SET)
            self._write(json.dumps({"castsim_sweep": VERSION, "about": about}).encode() + b"\n")
            os.fsync(self._file)
        except OSError as error:
            raise _failed(self.path, error) from None

    def _find_chunks(self, place: int) -> None:
        """Note the chunks that are whole; cut off what stands behind the last of them."""
        size = os.fstat(self._file).st_size
        while place < size:
            os.lseek(self._file, place, os.SEEK_SET)
            head = self._exactly(_HEAD.size)
            if len(head) < _HEAD.size:
                break
            mark, number, length, digest = _HEAD.unpack(head)
            if mark != _MARK or place + _HEAD.size + length > size:
                break
            if _digest(number, self._exactly(length)) != digest:
                break
            self.chunks[number] = (place + _HEAD.size, length)
            place += _HEAD.size + length
        os.ftruncate(self._file, place)

    def _exactly(self, length: int) -> bytes:
        data = b""
        while len(data) < length and (more := os.read(self._file, length - len(data))):
            data += more
        return data

    def _write(self, data: bytes) -> None:
        left = memoryview(data)
        while left:
            left = left[os.write(self._file, left) :]


AGAIN = "--out with another file, or the same without its ledger, starts again"
"""What helps against a ledger that does not fit."""


def _digest(number: int, rows: bytes) -> bytes:
    return hashlib.blake2b(number.to_bytes(8, "little") + rows, digest_size=16).digest()


def _failed(path: Path, error: OSError) -> ReadError:
    return ReadError(f"{path}: {error.strerror or error}", legal=("--out FILE in a folder that can be written",))
