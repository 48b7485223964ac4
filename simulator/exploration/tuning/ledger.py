"""The ledger of a search: a line of JSON for every step that is done, so that a search that was cut off can go on.

Its first line says what it is about. A line that was cut off while it was written does not count.
"""

from __future__ import annotations

import errno
import json
import os
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, fields, replace
from pathlib import Path

from castsim.exploration.tuning.points import Row
from castsim.exploration.tuning.space import Choices
from castsim.isa.errors import ReadError

VERSION = 1
"""Version of the form of the lines."""
_LONGEST_LINE = 1 << 20
_FIELDS = frozenset(each.name for each in fields(Row)) - {"number"}


@dataclass(slots=True)
class Ledger:
    """Rows by their choices, and the file that they are added to (None: they are kept nowhere)."""

    path: Path | None = None
    bounded: dict[str, Row] = field(default_factory=dict)
    simulated: dict[str, Row] = field(default_factory=dict)

    @classmethod
    def opened(cls, path: Path, about: Mapping[str, str]) -> Ledger:
        """Return the ledger of a file, which is made if it is missing.

        `about` are the digests of what rows depend on, by what they are of.

        Raises:
            ReadError: it cannot be read or written, is no ledger, or is about something else.
        """
        ledger = cls(path)
        if not _size(path):
            ledger._append({"castsim_tune": VERSION, "about": dict(about)})
            return ledger
        lines = _lines(path)
        head = next(lines, None)
        if head is None or head.get("castsim_tune") != VERSION or not isinstance(head.get("about"), dict):
            raise ReadError(f"--resume {path}: not saved by this version of castsim tune", legal=("--resume FILE",))
        held = head["about"]
        assert isinstance(held, dict)
        changed = [what for what in {**held, **about} if held.get(what) != about.get(what)]
        if changed:
            raise ReadError(
                f"--resume {path}: is about another {' and another '.join(changed)}",
                legal=(f"--resume with another file, or without {path.name}, starts again",),
            )
        for line in lines:
            ledger._take(line)
        if not _ends_in_a_line(path):
            ledger._append_bytes(b"\n")
        return ledger

    def known(self, row: Row) -> Row | None:
        """Return what is known of a point without a simulation, under its number of today."""
        found = self.bounded.get(_key(row.choices))
        return None if found is None else replace(found, number=row.number)

    def timed(self, row: Row) -> Row | None:
        """Return the simulation of a point, under its number of today."""
        found = self.simulated.get(_key(row.choices))
        return None if found is None else replace(found, number=row.number)

    def add(self, row: Row, *, simulated: bool) -> None:
        """Keep what has been found out about a point.

        Raises:
            ReadError: the file cannot be written.
        """
        (self.simulated if simulated else self.bounded)[_key(row.choices)] = row
        self._append({
            "simulated": simulated, "choices": dict(row.choices), "at_least": row.at_least,
            "buffer_bytes": row.buffer_bytes, "elements": row.elements, "cycles": row.cycles, "bound_by": row.bound_by,
            "outputs": dict(row.outputs), "reason": row.reason,
        })  # fmt: skip

    def _take(self, line: Mapping[str, object]) -> None:
        row = _row(line)
        if row is not None:
            (self.simulated if line.get("simulated") else self.bounded)[_key(row.choices)] = row

    def _append(self, line: Mapping[str, object]) -> None:
        self._append_bytes(json.dumps(line, allow_nan=False).encode() + b"\n")

    def _append_bytes(self, data: bytes) -> None:
        """Add bytes in one write, so that a line is there as a whole or is the last one."""
        if self.path is None:
            return
        try:
            descriptor = os.open(self.path, os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o666)
            try:
                if os.write(descriptor, data) < len(data):
                    raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
            finally:
                os.close(descriptor)
        except OSError as error:
            raise _failed(self.path, error) from None


def _size(path: Path) -> int:
    """Return the bytes of a file, 0 if it is missing.

    Raises:
        ReadError: it cannot be read.
    """
    try:
        return path.stat().st_size
    except FileNotFoundError:
        return 0
    except (OSError, ValueError) as error:
        raise _failed(path, error) from None


def _ends_in_a_line(path: Path) -> bool:
    try:
        with path.open("rb") as file:
            file.seek(-1, os.SEEK_END)
            return file.read() == b"\n"
    except OSError as error:
        raise _failed(path, error) from None


def _lines(path: Path) -> Iterator[dict[str, object]]:
    """Yield the lines that are whole; one longer than any that is written is none.

    Raises:
        ReadError: the file cannot be read.
    """
    try:
        with path.open("rb") as file:
            while line := file.readline(_LONGEST_LINE):
                try:
                    found = json.loads(line)
                except (ValueError, RecursionError):
                    continue
                if isinstance(found, dict):
                    yield found
    except OSError as error:
        raise _failed(path, error) from None


def _row(line: Mapping[str, object]) -> Row | None:
    """Return the row of a line, None if it is none that `Ledger.add` writes."""
    values = {name: each for name, each in line.items() if name != "simulated"}
    choices, outputs = values.get("choices"), values.get("outputs", {})
    if not isinstance(choices, dict) or not isinstance(outputs, dict) or not values.keys() <= _FIELDS:
        return None
    numbers = [values.get(name) for name in ("buffer_bytes", "elements", "cycles")]
    fits = (
        all(type(each) in (int, float, str) for each in choices.values())
        and all(isinstance(each, str) for each in outputs.values())
        and all(each is None or (type(each) is int and each >= 0) for each in numbers)
        and type(values.get("at_least", 0)) is int
        and isinstance(values.get("bound_by"), str | None)
        and isinstance(values.get("reason", ""), str)
    )
    return Row(0, **values) if fits else None  # type: ignore[arg-type]  # checked above


def _key(choices: Choices) -> str:
    return json.dumps(dict(choices), sort_keys=True)


def _failed(path: Path, error: OSError | ValueError) -> ReadError:
    return ReadError(f"--resume {path}: {getattr(error, 'strerror', None) or error}", legal=("--resume FILE",))
