"""Files of TPC assembly and binaries, as the commands read and write them, and the targets that run them."""

from __future__ import annotations

from pathlib import Path

from castsim.commands.option_parsers import GRAPHS
from castsim.files import whole_file
from castsim.isa.errors import IllegalError, ReadError, Span
from castsim.isa.reading import ASSEMBLY_SUFFIXES, STDIN, TILE_SUFFIX, read_bytes
from castsim.isa.tpc.encoding_tables import Encoding
from castsim.machines.vliw import tpc_target
from castsim.targets import load_target
from castsim.targets.tpc_encoding import encoding_of
from castsim.targets.vliw import VliwTarget


def read_assembly(name: str, command: str, tiles: str) -> tuple[str, str]:
    """Return the name of an assembly file for messages, and its text.

    `tiles` says what a tile program is to the command, which does not take one.

    Raises:
        ReadError: it is missing or unreadable, no text, or by its suffix in another language.
    """
    legal = [f"a {suffix} file" for suffix in ASSEMBLY_SUFFIXES]
    if name.endswith(TILE_SUFFIX):
        raise ReadError(f"castsim {command} takes TPC assembly; the tile program '{name}' {tiles}", legal=legal)
    if name.endswith(GRAPHS):
        raise ReadError(f"castsim {command} takes TPC assembly; '{name}' is a graph for `castsim graph`", legal=legal)
    file, data = named_bytes(name)
    try:
        return file, data.decode("utf-8")
    except UnicodeDecodeError as error:
        raise ReadError(
            f"program '{file}': byte {error.start} is not UTF-8 text; is it a binary? `castsim disasm` reads those",
            legal=legal,
        ) from None


def named_bytes(name: str) -> tuple[str, bytes]:
    """Return the name of a file for messages, and its content; `-` is standard input.

    Raises:
        ReadError: it is missing, unreadable or too large.
    """
    return "<stdin>" if name == STDIN else name, read_bytes(name, "program")


def encoded_target(name: str, place: Span | None = None) -> tuple[VliwTarget, Encoding]:
    """Return a target that runs TPC programs, and its encoding; `place` is where a text names it.

    Raises:
        ReadError, TargetDataError: as `castsim.targets.load_target`.
        IllegalError: a target of another kind.
    """
    try:
        loaded = load_target(name)
    except (ReadError, IllegalError) as error:
        raise (error if place is None else error.at(place)) from None
    target = tpc_target(loaded, f"{loaded.name} has no TPC assembly", place)
    return target, encoding_of(target)


def refuse_source(name: str | None, source: str | None) -> None:
    """Reject the file that `--out` names if it is the one that `source` names.

    Raises:
        ReadError: it is.
    """
    if name is None or source is None:
        return
    path = Path(name)
    if path.is_file() and path.resolve() == Path(source).resolve():
        raise ReadError(f"--out {name} would replace what was read")


def write_out(name: str | None, data: bytes, source: str | None = None) -> Path | None:
    """Write a file, completely or not at all, and return its path; None if there is none to write.

    Raises:
        ReadError: it cannot be written, or is the one that `source` names.
    """
    if name is None:
        return None
    path = Path(name)
    refuse_source(name, source)
    try:
        with whole_file(path) as file:
            file.write(data)
    except OSError as error:
        raise ReadError(f"--out {name}: {error.strerror or error}") from None
    return path
