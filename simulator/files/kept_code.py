"""Machine code that numba keeps on disk: in a folder that is this user's alone, or not at all.

What numba keeps it unpickles, which can run code. So a folder counts only if nobody but its owner and the superuser can
have put anything into it, or have exchanged it or a folder above it.
"""

from __future__ import annotations

import os
import pickle
import stat
import sys
from collections.abc import Callable
from hashlib import sha1
from importlib import import_module
from pathlib import Path
from threading import Lock
from typing import Any

import platformdirs

_WRITABLE_BY_OTHERS = stat.S_IWGRP | stat.S_IWOTH
_SUPERUSER = 0

_setting = Lock()
"""Held while numba is told of the folder: its setting is one for the process."""


def folder_of(package: Path) -> Path | None:
    """Return the folder for the code of a package; None where none is this user's alone.

    It lies in NUMBA_CACHE_DIR or, without that, among the user's caches; it may not be there yet.

    Args:
        package: folder of the modules whose functions are compiled.
    """
    asked = os.environ.get("NUMBA_CACHE_DIR")
    try:
        if asked:
            base = Path(asked).absolute()
        else:
            base = platformdirs.user_cache_path("castsim", appauthor=False) / "compiled"
        # The name is numba's (`get_suitable_cache_subpath` in numba.core.caching).
        own = base / f"{package.name}_{sha1(str(package).encode(), usedforsecurity=False).hexdigest()}"
        # Without a home `~` may stand for itself.
        return own if own.is_absolute() and _is_ours_alone(own) else None
    except (OSError, RuntimeError):  # RuntimeError: there is no home; links in a circle
        return None


def compiled(function: Callable[..., Any], signature: Any, **options: Any) -> tuple[Any, bool]:
    """Return the machine code of a function, and whether it is kept on disk.

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
        for each in reversed((folder, *folder.parents)):
            if not each.exists():
                each.mkdir(mode=0o700, exist_ok=True)
        return folder if os.access(folder, os.W_OK | os.X_OK) and _is_ours_alone(folder) else None
    except OSError:
        return None


def _is_ours_alone(folder: Path) -> bool:
    """Whether only this user and the superuser can write a folder, what lies in it and what leads to it.

    Links that the superuser made may lead to it (`/home` is one on some machines), but neither it nor the folder above
    it nor a file in it may be a link.

    Raises:
        OSError, RuntimeError: that cannot be found out.
    """
    if sys.platform == "win32":  # caches lie in the profile, which Windows gives to its user alone
        return True
    ours = os.geteuid()
    for each in (folder, *folder.parents):
        if each.is_symlink() and (each in (folder, folder.parent) or each.lstat().st_uid != _SUPERUSER):
            return False
    resolved = folder.resolve()
    for each in (resolved, *resolved.parents):
        if not os.path.lexists(each):
            continue
        found = each.lstat()
        owners = (ours,) if each == resolved else (ours, _SUPERUSER)
        # In a sticky folder, as /tmp is, only the owner of a file can exchange it.
        shared = found.st_mode & _WRITABLE_BY_OTHERS and (each == resolved or not found.st_mode & stat.S_ISVTX)
        if not stat.S_ISDIR(found.st_mode) or found.st_uid not in owners or shared:
            return False
    return not resolved.exists() or all(_is_our_file(each, resolved, ours) for each in os.scandir(resolved))


def _is_our_file(entry: os.DirEntry[str], folder: Path, ours: int) -> bool:
    """Whether only this user can have written a file; its mode does not count where nobody else gets at it."""
    found = entry.stat(follow_symlinks=False)
    closed = not folder.stat().st_mode & (stat.S_IRWXG | stat.S_IRWXO)
    return stat.S_ISREG(found.st_mode) and found.st_uid == ours and (closed or not found.st_mode & _WRITABLE_BY_OTHERS)
