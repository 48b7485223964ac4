"""The limit of `--max-memory`: what a command takes beyond it is refused, and no other process of the machine suffers.

What counts is memory that a process writes to and that no file backs (RLIMIT_DATA, which Linux keeps for it): mapped
`.npy` files do not. Processes that a command starts have the same limit each.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager

from castsim.isa.errors import LimitError, ReadError
from castsim.isa.reading import file_limit, limit_of

try:
    import resource
except ImportError:  # Windows
    resource = None  # type: ignore[assignment]

OPTION = "--max-memory"
"""The option of the command line."""

LEAST = 128 << 20
"""Smallest limit: what Python and the libraries need before anything is read."""

_UNITS = {"": 0, "K": 10, "M": 20, "G": 30}
_SIZE = re.compile(r"(\d{1,18})([KMG]?)", re.ASCII)
_MOST = 1 << 62


def memory_of(text: str) -> int:
    """Return the bytes that `--max-memory` gives.

    Raises:
        ReadError: no number of bytes, or fewer than `LEAST`.
    """
    found = _SIZE.fullmatch(text.strip())
    size = int(found[1]) << _UNITS[found[2]] if found else 0
    if not LEAST <= size <= _MOST:
        raise ReadError(
            f"{OPTION} {text[:40]}: not a number of bytes from {LEAST} on", legal=(f"{LEAST}", "512M", "4G")
        )
    return size


@contextmanager
def bounded(file_bytes: str | None, memory: str | None) -> Iterator[None]:
    """Keep the limits of `--max-file-bytes` and `--max-memory` while the block lasts, as typed; None: not given.

    Raises:
        ReadError: what was typed.
        LimitError: as `memory_limit`.
    """
    with ExitStack() as limits:
        if memory is not None:
            limits.enter_context(memory_limit(memory_of(memory)))
        if file_bytes is not None:
            limits.enter_context(file_limit(limit_of(file_bytes)))
        yield


@contextmanager
def memory_limit(size: int) -> Iterator[None]:
    """Let the process take no more than `size` bytes while the block lasts.

    Raises:
        LimitError: it would have taken more.
        ReadError: the system keeps no such limit.
    """
    if resource is None:
        raise ReadError(f"{OPTION}: this system keeps no limits of processes")
    soft, hard = resource.getrlimit(resource.RLIMIT_DATA)
    bound = size if hard == resource.RLIM_INFINITY else min(size, hard)
    resource.setrlimit(resource.RLIMIT_DATA, (bound, hard))
    try:
        yield
    except Exception as error:
        resource.setrlimit(resource.RLIMIT_DATA, (soft, hard))  # first of all: the message needs memory too
        if not _of_memory(error):
            raise
        raise LimitError(
            f"more memory is needed than {size} bytes, the limit of {OPTION}", legal=(f"{OPTION} N with a larger N",)
        ) from None
    finally:
        resource.setrlimit(resource.RLIMIT_DATA, (soft, hard))


def _of_memory(error: BaseException | None) -> bool:
    """Whether an error is that no memory was left, or came of one that was."""
    while error is not None:
        if isinstance(error, MemoryError):
            return True
        error = error.__cause__ or error.__context__
    return False
