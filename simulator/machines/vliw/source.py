"""Which text is assembly, and for which target: by its declaration, the file's suffix, or the target asked for."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING

from castsim.isa.errors import IllegalError, ReadError
from castsim.isa.limits import MAX_STATEMENTS
from castsim.targets import Target, load_target, target_names
from castsim.targets.vliw import VliwTarget

if TYPE_CHECKING:
    from castsim.machines.vliw.assembled import Assembled

ASSEMBLY_LANGUAGE, TILE_LANGUAGE = "tpc", "pto"
"""The languages of programs by the words of descriptions."""
ASSEMBLY_SUFFIXES = (".tpc", ".s")
TILE_SUFFIX = ".pto"
BINARY_SUFFIXES = (".bin", ".o", ".obj", ".elf")
_ELF_MAGIC = b"\x7fELF"


def is_binary(path: Path, data: bytes) -> bool:
    """Whether a program is a binary: by its suffix, else by content that no text has."""
    if path.suffix in (*ASSEMBLY_SUFFIXES, TILE_SUFFIX):
        return False
    return path.suffix in BINARY_SUFFIXES or data.startswith(_ELF_MAGIC) or b"\0" in data


def is_assembly(path: Path, text: str, target: str | Path | Target | None) -> bool:
    """Whether a program is TPC assembly: suffix first, then a declared target, then the languages of the target."""
    if path.suffix in (*ASSEMBLY_SUFFIXES, TILE_SUFFIX):
        return path.suffix != TILE_SUFFIX
    if "castsim:" in text:
        from castsim.isa.tpc import target_named_in  # noqa: PLC0415 - tile programs need no parser of assembly

        if target_named_in(text, str(path)) is not None:
            return True
    if target is None:
        return False
    chosen = load_target(target) if isinstance(target, str | Path) else target
    return chosen.languages == (ASSEMBLY_LANGUAGE,)


def load_assembly(
    text: str,
    file: str,
    target: str | Path | Target | None,
    entry: str | None,
    args: Mapping[str, int | float],
    prepare: Callable[[Target], Target],
    max_statements: int = MAX_STATEMENTS,
) -> Assembled:
    """Read an assembly program for the target asked for, else the one that it declares.

    Raises:
        ReadError: no target, a named entry, the text cannot be read, a value for something else than an S register.
        IllegalError: a target that runs no assembly, or lacks an instruction.
        LimitError: more bundles than `max_statements`.
    """
    from castsim.machines.vliw.assembled import assemble  # noqa: PLC0415 - tells what is assembly without the machine

    if entry is not None:
        raise ReadError(f"{file}: assembly has one entry, its first bundle; --entry is for .pto programs")
    return assemble(text, file, chosen_target(text, file, target, prepare), args, max_statements)


def chosen_target(
    text: str,
    file: str,
    target: str | Path | Target | None,
    prepare: Callable[[Target], Target] = lambda chosen: chosen,
) -> VliwTarget:
    """Return the target asked for, else the one that the text declares.

    Raises:
        ReadError: neither names one.
        IllegalError: it runs no assembly.
    """
    from castsim.isa.tpc import target_named_in  # noqa: PLC0415 - as above

    named = target_named_in(text, file) if target is None else target
    if named is None:
        raise ReadError(
            f"{file} names no target, and none is given",
            legal=("--target NAME", "// castsim: target NAME"),
        )
    chosen = prepare(load_target(named) if isinstance(named, str | Path) else named)
    return tpc_target(chosen, f"{chosen.name} does not run .{ASSEMBLY_LANGUAGE} programs")


def tpc_target(target: Target, refusal: str) -> VliwTarget:
    """Return the target if it runs assembly.

    Raises:
        IllegalError: it does not, in the words of `refusal`; the targets that do are listed.
    """
    if isinstance(target, VliwTarget):
        return target
    raise IllegalError(refusal, legal=targets_running(ASSEMBLY_LANGUAGE))


def targets_running(language: str) -> tuple[str, ...]:
    """Return the names of the shipped targets that run a language: `pto` or `tpc`."""
    return tuple(name for name in target_names() if language in load_target(name).languages)
