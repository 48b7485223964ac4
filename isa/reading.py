"""Reader of user files, which are read completely or rejected above a stated limit, and of programs in them.

`castsim COMMAND --max-file-bytes N` sets the limit on the command line, `with file_limit(N):` in Python. `.npy` files
are mapped into memory, not read, and have no limit.
"""

from __future__ import annotations

import csv
import os
import stat
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from enum import Enum
from pathlib import Path
from typing import TYPE_CHECKING, BinaryIO

from castsim.isa.dataclass import dataclass
from castsim.isa.errors import ReadError

if TYPE_CHECKING:
    from castsim.isa.pto.program import Program


MAX_TEXT_BYTES = 16 << 20
"""Default maximum size of a program, table, record or binary: some 400,000 lines, a minute of reading."""

MAX_MODEL_BYTES = 256 << 20
"""Default maximum size of an ONNX model, which contains its constants in binary form."""

OPTION = "--max-file-bytes"
"""The command-line option that sets both limits."""

STDIN = "-"
"""Name of standard input in place of a file."""

_limit: ContextVar[int | None] = ContextVar("file limit", default=None)


@contextmanager
def file_limit(limit: int | None) -> Iterator[None]:
    """Reject files of more than `limit` bytes while the block lasts; None uses the defaults.

    Args:
        limit: maximum number of bytes of a file.

    Raises:
        ReadError: the limit is below 1.
    """
    if limit is not None and limit < 1:
        raise ReadError(f"a file limit of {limit} bytes", legal=("1 or more",))
    token = _limit.set(limit)
    try:
        yield
    finally:
        _limit.reset(token)


def limit_of(text: str) -> int:
    """Return the number of bytes from `--max-file-bytes`.

    Raises:
        ReadError: the value is not a positive integer of at most 18 digits.
    """
    digits = text.strip()
    if not (digits.isascii() and digits.isdecimal()) or len(digits) > 18 or int(digits) == 0:
        raise ReadError(f"{OPTION} {digits[:40]}: must be a positive integer", legal=(str(MAX_TEXT_BYTES), "67108864"))
    return int(digits)


def read_text(path: str | Path, what: str) -> str:
    """Return the text of a file; `what` is its name in messages: a program, a table.

    Raises:
        ReadError: see `read_bytes`; also for text that is not UTF-8.
    """
    data = read_bytes(path, what)
    try:
        return data.decode("utf-8-sig")
    except UnicodeDecodeError:
        raise ReadError(f"{what} '{path}'is not UTF-8 text") from None


def read_bytes(path: str | Path, what: str, *, default: int = MAX_TEXT_BYTES) -> bytes:
    """Return the content of a file, or of standard input for `-`; pipes and devices are read until they end.

    Raises:
        ReadError: it is missing, unreadable or larger than the limit (`default`, unless `file_limit` overrides it).
    """
    limit = _limit_or(default)
    try:
        if str(path) == STDIN:
            return _bounded(sys.stdin.buffer, f"{what} '{path}'", limit)
        with Path(path).open("rb") as file:
            return _bounded(file, f"{what} '{path}'", limit)
    except OSError as error:
        raise ReadError(f"{what} '{path}': {error.strerror or error}") from None
    except ValueError as error:
        if isinstance(error, ReadError):
            raise
        raise ReadError(f"{what} {str(path)!r}: {error}") from None  # a name that no file can have


def table_rows(path: Path) -> tuple[dict[str, str], ...]:
    """Return the rows of a table beside the code, by column name."""
    with path.open(encoding="utf-8", newline="") as file:
        return tuple(csv.DictReader(file))


def is_file(path: Path) -> bool:
    """Return whether there is a regular file at a path; False if no file can have the name."""
    try:
        return path.is_file()
    except (OSError, ValueError):  # longer than any name of a file, or holds a null character
        return False


def check_size(size: int, what: str, *, default: int = MAX_TEXT_BYTES) -> None:
    """Reject files larger than the limit (`default`, unless `file_limit` overrides it).

    Raises:
        ReadError: the file is larger.
    """
    limit = _limit_or(default)
    if size > limit:
        raise ReadError(f"{what} has {size} bytes, over the limit of {limit}", legal=(f"{OPTION} {size}",))


def _limit_or(default: int) -> int:
    limit = _limit.get()
    return default if limit is None else limit


def _bounded(file: BinaryIO, what: str, limit: int) -> bytes:
    check_size(_size(file) or 0, what, default=limit)
    data = file.read(limit + 1)
    if len(data) > limit:  # a pipe, a device, a file that grows or that has no size, such as those of /proc
        raise ReadError(f"{what} has more than {limit} bytes, the limit", legal=(f"{OPTION} N",))
    return data


def _size(file: BinaryIO) -> int | None:
    """Return the size of a regular file in bytes; None for streams."""
    try:
        state = os.fstat(file.fileno())
    except (OSError, AttributeError):  # standard input replaced by something without a descriptor
        return None
    return state.st_size if stat.S_ISREG(state.st_mode) else None


# Programs as files hold them: text or bytes, and the language these are in.

ASSEMBLY_SUFFIXES = (".tpc", ".s")
TILE_SUFFIX = ".pto"
CPP_SUFFIXES = (".cpp", ".cce", ".cc", ".hpp", ".cxx", ".asc")
"""Kernels in C++, which are recorded by running them."""
KERNEL_SUFFIX = ".c"
BINARY_SUFFIXES = (".bin", ".o", ".obj", ".elf")
ELF_MAGIC = b"\x7fELF"


class Language(Enum):
    """The language of a program; the values for texts are the words of target descriptions."""

    TILES = "pto"
    ASSEMBLY = "tpc"
    KERNEL = "c"
    BINARY = "binary"


@dataclass(frozen=True, slots=True)
class Source:
    """A program that was read: `file` is its name in messages; `text` is empty for a binary.

    `program` is the recording of a kernel in C++, whose own text is then `text`.
    """

    file: str
    language: Language
    text: str = ""
    data: bytes = b""
    program: Program | None = None


def read_source(path: Path, prefers_assembly: Callable[[], bool]) -> Source:
    """Read the file of a program and determine its language, by its suffix or else by its contents.

    `prefers_assembly` decides on an ambiguous text: it tells whether the requested target runs only assembly.

    Raises:
        ReadError: it is missing, unreadable, too large, not UTF-8 although it should be text, or C++.
    """
    if path.suffix in CPP_SUFFIXES:
        from shlex import quote  # noqa: PLC0415 - only a refusal needs it

        raise ReadError(
            f"'{path}' is a C++ kernel, which castsim runs instead of parsing",
            legal=(
                f"castsim record {quote(str(path))} --out {quote(f'{path.stem}.pto')}",
                "castsim run",
                "castsim advise",
                "castsim debug",
            ),
        )
    return source_from(read_bytes(path, "program"), path, prefers_assembly)


def source_from(data: bytes, path: Path, prefers_assembly: Callable[[], bool]) -> Source:
    """Return the program of a file that was read; see `read_source`.

    Raises:
        ReadError: it is not UTF-8 although it should be text.
    """
    if _is_binary(path, data):
        return Source(str(path), Language.BINARY, data=data)
    try:
        text = data.decode("utf-8-sig").replace("\r\n", "\n").replace("\r", "\n")
    except UnicodeDecodeError:
        raise ReadError(f"program '{path}'is not UTF-8 text") from None
    return source_of(text, str(path), prefers_assembly)


def source_of(text: str, file: str, prefers_assembly: Callable[[], bool]) -> Source:
    """Return a program from memory; `file` is its name in messages, and its suffix determines the language."""
    return Source(file, _language_of(text, file, prefers_assembly), text)


def _is_binary(path: Path, data: bytes) -> bool:
    """Return whether a program is a binary: by its suffix, else by content that no text has."""
    if path.suffix in (*ASSEMBLY_SUFFIXES, TILE_SUFFIX, KERNEL_SUFFIX):
        return False
    return path.suffix in BINARY_SUFFIXES or data.startswith(ELF_MAGIC) or b"\0" in data


def _language_of(text: str, file: str, prefers_assembly: Callable[[], bool]) -> Language:
    """Return the language of a text: suffix first, then a declared target, then the languages of the target."""
    suffix = Path(file).suffix
    if suffix == KERNEL_SUFFIX:
        return Language.KERNEL
    if suffix in (*ASSEMBLY_SUFFIXES, TILE_SUFFIX):
        return Language.TILES if suffix == TILE_SUFFIX else Language.ASSEMBLY
    if "castsim:" in text:
        from castsim.isa.tpc.parser import target_named_in  # noqa: PLC0415 - tile programs need no parser of assembly

        if target_named_in(text, file) is not None:
            return Language.ASSEMBLY
    return Language.ASSEMBLY if prefers_assembly() else Language.TILES
