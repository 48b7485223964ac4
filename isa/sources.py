"""Programs as files hold them: text or bytes, and the language these are in."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from enum import Enum
from pathlib import Path
from typing import TYPE_CHECKING

from castsim.isa.errors import ReadError
from castsim.isa.reading import read_bytes

if TYPE_CHECKING:
    from castsim.isa.pto.program import Program

ASSEMBLY_SUFFIXES = (".tpc", ".s")
TILE_SUFFIX = ".pto"
CPP_SUFFIXES = (".cpp", ".cce", ".cc", ".hpp", ".cxx")
"""Kernels in C++, which are recorded by running them."""
KERNEL_SUFFIX = ".c"
BINARY_SUFFIXES = (".bin", ".o", ".obj", ".elf")
ELF_MAGIC = b"\x7fELF"


class Language(Enum):
    """What a program is written in; the values are the words of target descriptions for those that are text."""

    TILES = "pto"
    ASSEMBLY = "tpc"
    KERNEL = "c"
    BINARY = "binary"


@dataclass(frozen=True, slots=True)
class Source:
    """A program that has been read: `file` is what messages call it; of a binary `text` is empty.

    `program` is what a recording made of a kernel in C++, whose own text is then `text`.
    """

    file: str
    language: Language
    text: str = ""
    data: bytes = b""
    program: Program | None = None


def read_source(path: Path, prefers_assembly: Callable[[], bool]) -> Source:
    """Read the file of a program, and tell its language: by its suffix, else by what it holds.

    `prefers_assembly` decides on a text of which neither tells: whether the target asked for runs nothing else.

    Raises:
        ReadError: it is missing, unreadable, too large, not UTF-8 text where it should be text, or C++.
    """
    if path.suffix in CPP_SUFFIXES:
        raise ReadError(
            f"'{path}' is a kernel in C++, which is executed to be read",
            legal=(f"castsim record {path} --out {path.stem}.pto", "castsim run", "castsim advise", "castsim debug"),
        )
    return source_from(read_bytes(path, "program"), path, prefers_assembly)


def source_from(data: bytes, path: Path, prefers_assembly: Callable[[], bool]) -> Source:
    """Return the program of a file that has been read; as `read_source`.

    Raises:
        ReadError: not UTF-8 text where it should be text.
    """
    if _is_binary(path, data):
        return Source(str(path), Language.BINARY, data=data)
    try:
        text = data.decode("utf-8").replace("\r\n", "\n").replace("\r", "\n")
    except UnicodeDecodeError:
        raise ReadError(f"program '{path}': is not UTF-8 text") from None
    return source_of(text, str(path), prefers_assembly)


def source_of(text: str, file: str, prefers_assembly: Callable[[], bool]) -> Source:
    """Return a program from memory; `file` is what messages call it, its suffix tells the language."""
    return Source(file, _language_of(text, file, prefers_assembly), text)


def _is_binary(path: Path, data: bytes) -> bool:
    """Whether a program is a binary: by its suffix, else by content that no text has."""
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
        from castsim.isa.tpc import target_named_in  # noqa: PLC0415 - tile programs need no parser of assembly

        if target_named_in(text, file) is not None:
            return Language.ASSEMBLY
    return Language.ASSEMBLY if prefers_assembly() else Language.TILES
