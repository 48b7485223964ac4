"""Atomic writing of files, so that each is complete or absent; the choice of colour for a stream."""

from __future__ import annotations

import errno
import os
import pickle
import secrets
import stat
import sys
import unicodedata
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from hashlib import sha1
from importlib import import_module
from itertools import count
from pathlib import Path
from threading import Lock
from typing import Any, BinaryIO, TextIO

PARTIAL = ".partial"
"""Suffix of an incomplete file: `.NAME.castsim-XXXXXXXX.partial` beside NAME. A killed writer
leaves it behind; no other process needs it."""

LEDGER = ".ledger"
"""Suffix that `castsim sweep` appends to the name of its results for the ledger beside them."""

_LONGEST_NAME = 200
"""Bytes of NAME in it: a name has 255 on most file systems."""

_ATTEMPTS = 100


_RESERVED = frozenset({"con", "prn", "aux", "nul", *(f"{port}{n}" for port in ("com", "lpt") for n in range(1, 10))})
"""Names that mean devices on Windows, with any suffix (learn.microsoft.com, Naming Files, Paths, and Namespaces)."""


def file_name(name: str) -> str:
    """Return a name that a file system cannot misread: no folder, device, hidden file or too long name."""
    plain = "".join(char if char.isalnum() or char in "_-." else "_" for char in name.lstrip("%."))
    plain = plain.encode()[:_LONGEST_NAME].decode(errors="ignore") or "value"
    return f"{plain}_" if plain.partition(".")[0].casefold() in _RESERVED else plain


def file_names(names: Iterable[str]) -> dict[str, str]:
    """Return `file_name` of each name, all different, even on a file system that ignores case or composes letters.

    A later name that would be equal gets a number appended.
    """
    chosen: dict[str, str] = {}
    taken: set[str] = set()
    for name in names:
        plain = file_name(name)
        numbered = (plain if number == 1 else f"{plain}_{number}" for number in count(1))
        chosen[name] = next(candidate for candidate in numbered if _key(candidate) not in taken)
        taken.add(_key(chosen[name]))
    return chosen


def _key(name: str) -> str:
    return unicodedata.normalize("NFC", unicodedata.normalize("NFKC", name).casefold())


@contextmanager
def whole_file(path: Path, *, synchronised: bool = False) -> Iterator[BinaryIO]:
    """Open a file for writing that takes the name `path` when complete, with the permissions of a new file.

    After a failure, in the block or later, `path` is unchanged. A pipe or a device cannot be replaced, so it
    is written directly. A symbolic link stays: its target is written. `synchronised` waits until the data is on the
    disk, so that the old or the new content survives a failure of the machine.

    Raises:
        OSError: the folder is missing or not writable, links form a cycle, or the disk is full.
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
    """Create a file beside `path`; the system applies the umask to its permissions, so it need not be read."""
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
    """Return whether text for a stream is coloured.

    A non-empty NO_COLOR disables colour (no-color.org) and has priority. FORCE_COLOR or CLICOLOR_FORCE, if neither
    empty nor 0, enables it even for a pipe; CLICOLOR=0 disables it (bixense.com/clicolors). Default: for a terminal.
    """
    set_ = {name: os.environ.get(name, "") for name in ("NO_COLOR", "FORCE_COLOR", "CLICOLOR_FORCE")}
    if set_["NO_COLOR"]:
        return False
    if any(set_[name] not in ("", "0") for name in ("FORCE_COLOR", "CLICOLOR_FORCE")):
        return True
    return stream.isatty() and os.environ.get("CLICOLOR") != "0" and os.environ.get("TERM") != "dumb"


# Machine code that numba keeps on disk: in a folder that is this user's alone, or not at all.
#
# What numba keeps it unpickles, which can run code. So a folder counts only if nobody but its owner and the superuser
# can have put anything into it, or have exchanged it or a folder above it.

_WRITABLE_BY_OTHERS = stat.S_IWGRP | stat.S_IWOTH
_SUPERUSER = 0

_setting = Lock()
"""Held while numba's cache folder is set: the setting is one per process."""


def folder_of(package: Path) -> Path | None:
    """Return the folder for the code of a package; None if no folder is private to this user.

    It is in NUMBA_CACHE_DIR or, without that, in the user's cache folder; it may not exist yet.

    Args:
        package: folder of the modules whose functions are compiled.
    """
    asked = os.environ.get("NUMBA_CACHE_DIR")
    try:
        if asked:
            base = Path(asked).absolute()
        else:
            import platformdirs  # noqa: PLC0415 - few runs keep code

            base = platformdirs.user_cache_path("castsim", appauthor=False) / "compiled"
        # The name is numba's (`get_suitable_cache_subpath` in numba.core.caching).
        own = base / f"{package.name}_{sha1(str(package).encode(), usedforsecurity=False).hexdigest()}"
        # Without a home `~` may stand for itself.
        return own if own.is_absolute() and _is_ours_alone(own) else None
    except (OSError, RuntimeError):  # RuntimeError: there is no home; links in a circle
        return None


def compiled(function: Callable[..., Any], signature: Any, **options: Any) -> tuple[Any, bool]:
    """Return the machine code of a function, and whether it is cached on disk.

    Args:
        function: as written in a module.
        signature: numba's types of its arguments and result.
        options: of `numba.njit`.
    """
    numba: Any = import_module("numba")  # callers have imported it; most commands never do
    settings = numba.config
    folder = _made(folder_of(Path(function.__code__.co_filename).absolute().parent))
    if folder is not None:
        try:
            dispatcher: Any = numba.njit(**options)(function)
            with _setting:
                before, settings.CACHE_DIR = settings.CACHE_DIR, str(folder.parent)
                try:
                    dispatcher.enable_caching()
                finally:
                    settings.CACHE_DIR = before
            if dispatcher.stats.cache_path == str(folder):  # on a full disk numba goes on to other places
                return _compiled(dispatcher, signature), True
        except (OSError, RuntimeError, EOFError, pickle.UnpicklingError) as error:
            if isinstance(error, RuntimeError) and "cannot cache" not in str(error):
                raise  # not about the disk
    return _compiled(numba.njit(**options)(function), signature), False


def _compiled(dispatcher: Any, signature: Any) -> Any:
    dispatcher.compile(signature)
    dispatcher.disable_compile()
    return dispatcher


def _made(folder: Path | None) -> Path | None:
    """Return a folder that is there and can be written to, made if need be; None if that is not possible."""
    if folder is None:
        return None
    try:
        for path in reversed((folder, *folder.parents)):
            if not path.exists():
                path.mkdir(mode=0o700, exist_ok=True)
        return folder if os.access(folder, os.W_OK | os.X_OK) and _is_ours_alone(folder) else None
    except OSError:
        return None


def _is_ours_alone(folder: Path) -> bool:
    """Return whether only this user and the superuser can write a folder, its contents and its parents.

    Links that the superuser made may be on the way to it (`/home` is one on some machines), but neither it nor its
    parent nor a file in it may be a link.

    Raises:
        OSError, RuntimeError: the owners cannot be determined.
    """
    if sys.platform == "win32":  # caches lie in the profile, which Windows gives to its user alone
        return True
    if not hasattr(os, "geteuid"):  # WebAssembly has no users to tell apart
        return False
    ours = os.geteuid()
    for path in (folder, *folder.parents):
        if path.is_symlink() and (path in (folder, folder.parent) or path.lstat().st_uid != _SUPERUSER):
            return False
    resolved = folder.resolve()
    for path in (resolved, *resolved.parents):
        if not os.path.lexists(path):
            continue
        status = path.lstat()
        owners = (ours,) if path == resolved else (ours, _SUPERUSER)
        # In a sticky folder, as /tmp is, only the owner of a file can exchange it.
        shared = status.st_mode & _WRITABLE_BY_OTHERS and (path == resolved or not status.st_mode & stat.S_ISVTX)
        if not stat.S_ISDIR(status.st_mode) or status.st_uid not in owners or shared:
            return False
    return not resolved.exists() or all(_is_our_file(path, resolved, ours) for path in os.scandir(resolved))


def _is_our_file(entry: os.DirEntry[str], folder: Path, ours: int) -> bool:
    """Return whether only this user can have written a file; its mode is irrelevant if nobody else can reach it.

    A deleted file is nobody's: numba renames the files it has written, in other processes too.
    """
    try:
        status = entry.stat(follow_symlinks=False)
    except FileNotFoundError:
        return True
    closed = not folder.stat().st_mode & (stat.S_IRWXG | stat.S_IRWXO)
    ours_alone = closed or not status.st_mode & _WRITABLE_BY_OTHERS
    return stat.S_ISREG(status.st_mode) and status.st_uid == ours and ours_alone
