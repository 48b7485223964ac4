"""Checked descriptions, kept where Python keeps the compiled form of the modules beside them.

Whether a shipped description is right depends on the files of this folder, on those of `castsim.isa` and on the
versions of Python and of the library that checks. What is kept is named by a digest of them all, so a change of any
makes it unfit and the description is checked again. A folder that cannot be written, `-B` and PYTHONDONTWRITEBYTECODE
mean that nothing is kept, PYTHONPYCACHEPREFIX says where, as for compiled modules; whoever can write there can
replace those as well. Files of users are checked each time.
"""

from __future__ import annotations

import os
import pickle
import sys
from collections.abc import Callable
from contextlib import suppress
from functools import cache
from hashlib import sha256
from importlib.util import cache_from_source
from pathlib import Path
from typing import TypeVar

import pydantic

import castsim.isa
from castsim.targets.csv_tables import SHIPPED

_Kept = TypeVar("_Kept")

_DIGITS = 32
"""Hexadecimal digits of the digest in the name: 128 bits, no two sets of files meet."""


def kept(name: str, check: Callable[[], _Kept]) -> _Kept:
    """Return what `check` returns for the shipped description of a name, from what was kept if that is still right.

    Args:
        name: of the description, `NAME.toml` beside this file.
        check: reads and checks the description.
    """
    place = _place(name)
    if place is None:
        return check()
    with suppress(Exception):  # absent, cut off, of another form: whatever it is, the description itself is there
        found: _Kept = pickle.loads(place.read_bytes())
        return found
    checked = check()
    if not sys.dont_write_bytecode:
        with suppress(OSError):
            _keep(place, pickle.dumps(checked, protocol=5))
    return checked


def _place(name: str) -> Path | None:
    """Return the file for a description, None where Python is told to keep nothing of the kind."""
    try:
        module = Path(cache_from_source(str(SHIPPED / f"{name}.py")))
    except NotImplementedError:
        return None
    return module.with_name(f"{name}.{_digest()}.checked")


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
    """Write a file so that it is complete or absent, and remove those of former versions."""
    place.parent.mkdir(parents=True, exist_ok=True)
    partial = place.with_name(f"{place.name}.{os.getpid()}")
    try:
        partial.write_bytes(content)
        partial.replace(place)
    finally:
        partial.unlink(missing_ok=True)
    for former in place.parent.glob(f"{place.name.partition('.')[0]}.*.checked"):
        if former != place:
            former.unlink(missing_ok=True)
