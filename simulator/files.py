"""Writing files so that each is complete or absent."""

from __future__ import annotations

import errno
import os
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import BinaryIO


@contextmanager
def whole_file(path: Path) -> Iterator[BinaryIO]:
    """Give a file to write to that takes the name `path` once it is complete, with the permissions of a new file.

    A failure, in the block or later, leaves what was at `path` as it was. A pipe or a device cannot be replaced, so it
    is written to as it is. A symbolic link stays one: what it points to is written.

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
    descriptor, name = tempfile.mkstemp(dir=path.parent, suffix=path.suffix or ".tmp")
    temporary = Path(name)
    try:
        with os.fdopen(descriptor, "wb") as file:
            yield file
        mask = os.umask(0)
        os.umask(mask)
        temporary.chmod(0o666 & ~mask)  # temporary files are created private
        temporary.replace(path)
    finally:
        temporary.unlink(missing_ok=True)
