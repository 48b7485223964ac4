"""Loading a program: of which language it is, and who reads that."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING

from castsim.execution.choices import OLDEST, TOOLCHAIN
from castsim.execution.interpreter import Lowerer
from castsim.execution.limits import DEFAULT_LIMITS, Limits
from castsim.isa.errors import IllegalError, ReadError
from castsim.isa.sources import TILE_SUFFIX, Language, Source, read_source, source_of
from castsim.machines.mechanisms import lowerer_of
from castsim.running.data_dependent import load_tiles
from castsim.running.loaded import LoadedProgram
from castsim.running.request import LoadRequest
from castsim.running.tiles import TileProgram, Walking, walking_of
from castsim.targets import Target
from castsim.targets.options import with_options

if TYPE_CHECKING:
    from castsim.tpc_c.launching import LaunchRequest


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

    `prepare` may alter the chosen target (options), `make_lowerer` how its mechanism lowers. Elements of memory that
    decide the path are taken for 0 where `args` does not give them.
    """
    request = LoadRequest(target, entry, args, prepare, make_lowerer, sync, limits=limits)
    source = read_source(path, lambda: False)
    if source.language is not Language.TILES:
        raise ReadError(f"'{path}' is not a tile program", legal=(f"a {TILE_SUFFIX} file",))
    walking = walking_of(source, request)
    if not isinstance(walking, Walking):
        raise IllegalError(f"@{walking.entry} of '{path}' is a program of vector instructions, not of tiles")
    return walking.program()


def load(
    path: Path | Source,
    target: str | Path | Target | None,
    entry: str | None,
    args: Mapping[str, int | float],
    prepare: Callable[[Target], Target] = lambda chosen: chosen,
    make_lowerer: Callable[[Target], Lowerer] = lowerer_of,
    sync: str = "insert",
    *,
    declare: Path | None = None,
    machine: int | None = None,
    opaque: Mapping[str, int] | None = None,
    limits: Limits = DEFAULT_LIMITS,
    level: int | None = None,
    launch: LaunchRequest | None = None,
) -> LoadedProgram:
    """Read a program of either language, or a binary; see `castsim.running.request.LoadRequest` for the parameters.

    A `Source` is one that has been read.
    """
    request = LoadRequest(
        target, entry, args, prepare, make_lowerer, sync, declare, machine, opaque or {}, limits, launch, level
    )
    source = path if isinstance(path, Source) else read_source(path, request.prefers_assembly)
    for option, value in (("--declare", declare), ("--machine", machine)):
        if value is not None and source.language is not Language.BINARY:
            raise ReadError(f"{option} is for binaries; '{source.file}' is text")
    return _reader(source.language)(source, request)


def load_text(text: str, name: str, target: Target, limits: Limits = DEFAULT_LIMITS) -> LoadedProgram:
    """Read a program from memory; `name` is what messages call it, its suffix tells the language.

    What is written here says all that it means to the oldest assembler.
    """
    if TOOLCHAIN in target.options:
        target = with_options(target, {TOOLCHAIN: OLDEST})
    request = LoadRequest(target, limits=limits)
    source = source_of(text, name, request.prefers_assembly)
    return _reader(source.language)(source, request)


def _reader(language: Language) -> Callable[[Source, LoadRequest], LoadedProgram]:
    """Return the loader of programs of a language."""
    if language is Language.TILES:
        return load_tiles
    if language is Language.KERNEL:
        from castsim.running.kernels import load_kernel  # noqa: PLC0415 - as below

        return load_kernel
    from castsim.running import assembly  # noqa: PLC0415 - only the language in use is loaded

    return assembly.load_text if language is Language.ASSEMBLY else assembly.load_bundles
