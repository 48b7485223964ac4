"""Checked descriptions, kept among the user's caches.

Whether a shipped description is right depends on the files of this folder, on those of `castsim.isa` and on the
versions of Python and of the library that checks. What is kept is named by a digest of them all, so a change of any
makes it unfit and the description is checked again. A folder that cannot be written, `-B` and PYTHONDONTWRITEBYTECODE
mean that nothing is kept. Nothing is kept beside the modules: pip would leave it behind, and a folder without modules
would stand in the way of the next installation. Files of users are checked each time.
"""

from __future__ import annotations

import os
import pickle
import sys
from collections.abc import Callable
from contextlib import suppress
from functools import cache
from hashlib import sha256
from pathlib import Path
from stat import S_IWGRP, S_IWOTH
from typing import TypeVar

import platformdirs
import pydantic

import castsim.isa
from castsim.targets.csv_tables import SHIPPED

_Kept = TypeVar("_Kept")

_DIGITS = 32
"""Hexadecimal digits of the digest in the name: 128 bits, no two sets of files meet."""

_MOST = 8
"""Files of one description: several installations of castsim may share the folder."""


def kept(name: str, check: Callable[[], _Kept]) -> _Kept:
    """Return what `check` returns for the shipped description of a name, from what was kept if that is still right.

    Args:
        name: of the description, `NAME.toml` beside this file.
        check: reads and checks the description.
    """
    place = _place(name)
    # Absent, cut off, of another form: whatever it is, the description itself is there.
    with suppress(Exception), place.open("rb") as file:
        if _is_ours(os.fstat(file.fileno())):
            found: _Kept = pickle.load(file)
            return found
    checked = check()
    if not sys.dont_write_bytecode:
        with suppress(OSError):
            _keep(place, pickle.dumps(checked, protocol=5))
    return checked


def _place(name: str) -> Path:
    return platformdirs.user_cache_path("castsim", appauthor=False) / f"{name}.{_digest()}.checked"


def _is_ours(file: os.stat_result) -> bool:
    """Whether nobody else can have written a file: a pickle can carry code."""
    return sys.platform == "win32" or (file.st_uid == os.geteuid() and not file.st_mode & (S_IWGRP | S_IWOTH))


@cache
def _digest() -> str:
    digest = sha256(f"{sys.version}\0{pydantic.VERSION}\0".encode())
    for path in (*_files(SHIPPED), *_files(Path(castsim.isa.__path__[0]))):
        content = path.read_bytes()
        digest.update(f"{path.name}\0{len(content)}\0".encode())
        digest.update(content)
    return digest.hexdigest()[:_DIGITS]


def _files(folder: Path) -> list[Path]:
    return sorted(path for kind in ("*.py", "*.toml", "*.csv") for path in folder.rglob(kind))


def _keep(place: Path, content: bytes) -> None:
    """Write a file so that it is complete or absent, and remove all but the newest of a description."""
    place.parent.mkdir(parents=True, exist_ok=True)
    partial = place.with_name(f"{place.name}.{os.getpid()}")
    try:
        partial.write_bytes(content)
        partial.replace(place)
    finally:
        partial.unlink(missing_ok=True)
    of_description = place.parent.glob(f"{place.name.partition('.')[0]}.*.checked")
    for former in sorted(of_description, key=lambda path: path.stat().st_mtime_ns)[:-_MOST]:
        former.unlink(missing_ok=True)
