"""Loading a program: of which language it is, and who reads that."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path

from castsim.execution.limits import DEFAULT_LIMITS, Limits
from castsim.execution.walk import Lowerer
from castsim.isa.errors import ReadError
from castsim.isa.reading import read_bytes
from castsim.machines.mechanisms import lowerer_of
from castsim.machines.vliw.source import is_assembly, is_binary
from castsim.running.loaded import LoadedProgram
from castsim.running.request import Request
from castsim.running.tiles import TileProgram, load_tiles
from castsim.targets import Target


def load_program(
    path: Path,
    target: str | Path | Target | None,
    entry: str | None,
    args: Mapping[str, int | float],
    prepare: Callable[[Target], Target] = lambda chosen: chosen,
    make_lowerer: Callable[[Target], Lowerer] = lowerer_of,
    sync: str = "insert",
    limits: Limits = DEFAULT_LIMITS,
) -> TileProgram:
    """Read a `.pto` program, choose target and entry, walk, lower and synchronise it.

    `prepare` may alter the chosen target (options), `make_lowerer` how its mechanism lowers.
    """
    request = Request(target, entry, args, prepare, make_lowerer, sync, limits=limits)
    return load_tiles(program_text(path), str(path), request)


def load(
    path: Path,
    target: str | Path | Target | None,
    entry: str | None,
    args: Mapping[str, int | float],
    prepare: Callable[[Target], Target] = lambda chosen: chosen,
    make_lowerer: Callable[[Target], Lowerer] = lowerer_of,
    sync: str = "insert",
    *,
    declare: Path | None = None,
    machine: int | None = None,
    opaque: bool = False,
    limits: Limits = DEFAULT_LIMITS,
) -> LoadedProgram:
    """Read a program of either language, or a binary; see `castsim.running.request.Request` for the parameters."""
    request = Request(target, entry, args, prepare, make_lowerer, sync, declare, machine, opaque, limits)
    data = read_bytes(path, "program")
    if is_binary(path, data):
        from castsim.running.assembly import load_bundles  # noqa: PLC0415 - only the language in use is loaded

        return load_bundles(data, path, request)
    for option, value in (("--declare", declare), ("--machine", machine)):
        if value is not None:
            raise ReadError(f"{option} is for binaries; '{path}' is text")
    return _of_text(_decoded(path, data), str(path), request)


def load_text(text: str, name: str, target: Target, limits: Limits = DEFAULT_LIMITS) -> LoadedProgram:
    """Read a program from memory; `name` is what messages call it, its suffix tells the language."""
    return _of_text(text, name, Request(target, limits=limits))


def program_text(path: Path) -> str:
    """Return the text of a program file.

    Raises:
        ReadError: it is missing, unreadable, or no UTF-8 text.
    """
    return _decoded(path, read_bytes(path, "program"))


def _of_text(text: str, file: str, request: Request) -> LoadedProgram:
    if is_assembly(Path(file), text, request.target):
        from castsim.running.assembly import load_assembly_text  # noqa: PLC0415 - only the language in use is loaded

        return load_assembly_text(text, file, request)
    return load_tiles(text, file, request)


def _decoded(path: Path, data: bytes) -> str:
    try:
        return data.decode("utf-8").replace("\r\n", "\n").replace("\r", "\n")
    except UnicodeDecodeError:
        raise ReadError(f"program '{path}': is no UTF-8 text") from None
