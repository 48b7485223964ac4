"""Writing files so that each is complete or absent; whether a stream is coloured."""

from __future__ import annotations

import errno
import os
import secrets
import unicodedata
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from itertools import count
from pathlib import Path
from typing import BinaryIO, TextIO

PARTIAL = ".partial"
"""Suffix of a file that is still being written: `.NAME.castsim-XXXXXXXX.partial` beside NAME. A writer that is killed
leaves it behind; no other process needs it."""

LEDGER = ".ledger"
"""What `castsim sweep` appends to the name of its results for the ledger beside them."""

_LONGEST_NAME = 200
"""Bytes of NAME in it: a name has 255 on most file systems."""

_ATTEMPTS = 100


_RESERVED = frozenset({"con", "prn", "aux", "nul", *(f"{port}{n}" for port in ("com", "lpt") for n in range(1, 10))})
"""Names that mean devices on Windows, with any suffix (learn.microsoft.com, Naming Files, Paths, and Namespaces)."""


def file_name(name: str) -> str:
    """Return a name without what a file system takes for something else: no folder, device, hidden or too long file."""
    plain = "".join(char if char.isalnum() or char in "_-." else "_" for char in name.lstrip("%."))
    plain = plain.encode()[:_LONGEST_NAME].decode(errors="ignore") or "value"
    return f"{plain}_" if plain.partition(".")[0].casefold() in _RESERVED else plain


def file_names(names: Iterable[str]) -> dict[str, str]:
    """Return `file_name` of each name, no two alike: not on a file system that ignores case or composes letters either.

    Where two would be, the later one gets a number behind.
    """
    found: dict[str, str] = {}
    taken: set[str] = set()
    for name in names:
        plain = file_name(name)
        numbered = (plain if number == 1 else f"{plain}_{number}" for number in count(1))
        found[name] = next(each for each in numbered if _key(each) not in taken)
        taken.add(_key(found[name]))
    return found


def _key(name: str) -> str:
    return unicodedata.normalize("NFC", unicodedata.normalize("NFKC", name).casefold())


@contextmanager
def whole_file(path: Path, *, synchronised: bool = False) -> Iterator[BinaryIO]:
    """Give a file to write to that takes the name `path` once it is complete, with the permissions of a new file.

    A failure, in the block or later, leaves what was at `path` as it was. A pipe or a device cannot be replaced, so it
    is written to as it is. A symbolic link stays one: what it points to is written. `synchronised` waits until the disk
    has it, so that also a machine that fails keeps the old or the new content.

    Raises:
        OSError: the folder is missing or cannot be written, links lead round in a circle, or the disk is full.
    """
    if path.exists() and not path.is_file():  # asked of the link: where that of an open pipe leads has no name
        with path.open("wb") as device:
            yield device
        return
    path = Path(os.path.realpath(path))
    if path.is_symlink():
        raise OSError(errno.ELOOP, os.strerror(errno.ELOOP), str(path))
    descriptor, temporary = _new_beside(path)
    try:
        with os.fdopen(descriptor, "wb") as file:
            yield file
            if synchronised:
                file.flush()
                os.fsync(file.fileno())
        temporary.replace(path)
    finally:
        temporary.unlink(missing_ok=True)


def _new_beside(path: Path) -> tuple[int, Path]:
    """Create a file beside `path`; the system applies the umask to its permissions, so that it need not be read."""
    name = os.fsdecode(os.fsencode(path.name)[:_LONGEST_NAME])
    flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL | getattr(os, "O_CLOEXEC", 0) | getattr(os, "O_BINARY", 0)
    for _ in range(_ATTEMPTS):
        temporary = path.with_name(f".{name}.castsim-{secrets.token_hex(4)}{PARTIAL}")
        try:
            return os.open(temporary, flags, 0o666), temporary
        except FileExistsError:
            continue
    raise OSError(errno.EEXIST, os.strerror(errno.EEXIST), str(path))


# Whether output is coloured: by the conventions of the environment, else by the stream.


def is_coloured(stream: TextIO) -> bool:
    """Whether text for a stream is coloured.

    NO_COLOR, if not empty, says no (no-color.org) and is stronger than the rest. FORCE_COLOR or CLICOLOR_FORCE, if
    neither empty nor 0, say yes also for a pipe; CLICOLOR=0 says no (bixense.com/clicolors). Else a terminal is.
    """
    set_ = {name: os.environ.get(name, "") for name in ("NO_COLOR", "FORCE_COLOR", "CLICOLOR_FORCE")}
    if set_["NO_COLOR"]:
        return False
    if any(set_[name] not in ("", "0") for name in ("FORCE_COLOR", "CLICOLOR_FORCE")):
        return True
    return stream.isatty() and os.environ.get("CLICOLOR") != "0" and os.environ.get("TERM") != "dumb"
