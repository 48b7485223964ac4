"""Assembly programs, and the targets that they are for: the one asked for, or the one that the text declares."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

from castsim.isa.errors import IllegalError, ReadError
from castsim.isa.reading import MAX_STATEMENTS, read_text
from castsim.isa.sources import ASSEMBLY_SUFFIXES, Language, Source
from castsim.isa.tpc import Declaration, TargetDeclaration, parse
from castsim.isa.tpc.encoding import Disassembly, disassemble, program_bytes
from castsim.isa.warning_text import WarningKind, WarningText
from castsim.targets import Target, load_target, target_names
from castsim.targets.tpc_encoding import encoding_of
from castsim.targets.vliw import VliwTarget

if TYPE_CHECKING:
    from castsim.isa.spans import Span
    from castsim.isa.tpc import TargetDeclaration
    from castsim.machines.vliw.assembled import Assembled
    from castsim.targets.vliw import VliwTarget


def load_assembly(
    source: Source,
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

    file, text = source.file, source.text
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
        ReadError: neither names one, or there is no such target. IllegalError: it runs no assembly.
        Errors about a target that the text declares carry the place of the declaration.
    """
    from castsim.isa.tpc import target_declared_in  # noqa: PLC0415 - as above

    place = None
    if target is None:
        declared = target_declared_in(text, file)
        if declared is None:
            raise ReadError(
                f"{file} names no target, and none is given",
                legal=("--target NAME", "// castsim: target NAME"),
            )
        target, place = _declared_target(declared), declared.span
    chosen = prepare(load_target(target) if isinstance(target, str | Path) else target)
    return tpc_target(chosen, f"{chosen.name} does not run .{Language.ASSEMBLY.value} programs", place)


def _declared_target(declared: TargetDeclaration) -> Target:
    try:
        return load_target(declared.name)
    except (ReadError, IllegalError) as error:
        raise error.at(declared.span) from None


def tpc_target(target: Target, refusal: str, place: Span | None = None) -> VliwTarget:
    """Return the target if it runs assembly; `place` is where a text names it.

    Raises:
        IllegalError: it does not, in the words of `refusal`; the targets that do are listed.
    """
    found = assembly_target(target)
    if found is not None:
        return found
    raise IllegalError(refusal, span=place, legal=targets_running(Language.ASSEMBLY.value))


def assembly_target(target: Target | None) -> VliwTarget | None:
    """Return the target if it runs assembly, None if it does not or there is none."""
    from castsim.targets.vliw import VliwTarget  # noqa: PLC0415 - who runs tiles asks only for `targets_running`

    return target if isinstance(target, VliwTarget) else None


def targets_running(language: str) -> tuple[str, ...]:
    """Return the names of the shipped targets that run a language: `pto` or `tpc`."""
    return tuple(name for name in target_names() if language in load_target(name).languages)


# Binary programs made ready to run: what they are, their declarations, the bytes that must not be reached.
#
# A binary carries no declarations. They stand in a companion: the file given by `--declare`, or the one beside the
# binary with the suffix `.decl`; `// castsim:` comments as in assembly, alone or in the source itself.

COMPANION = ".decl"
"""Suffix of the file of declarations beside a binary."""


def load_binary(
    source: Source,
    target: str | Path | Target | None,
    entry: str | None,
    args: Mapping[str, int | float],
    prepare: Callable[[Target], Target],
    *,
    declare: Path | None = None,
    machine: int | None = None,
) -> Assembled:
    """Read a binary program, raw or the section `.text` of an ELF file.

    Places in messages and reports are lines of what `castsim disasm --text` prints. `machine` is an ELF machine number
    to accept besides those of the target.

    Raises:
        ReadError: no target, a named entry, a file of the wrong size, a damaged ELF file or one of another machine; a
            companion that is missing or cannot be read; a value for something else than an S register.
        IllegalError: a target that runs no assembly; bytes that are not a bundle, with their offset; what it declares.
    """
    from castsim.machines.vliw.assembled import ready  # noqa: PLC0415 - tells what is binary without the machine

    file, data = source.file, source.data
    if entry is not None:
        raise ReadError(f"{file}: a binary has one entry, its first bundle; --entry is for .pto programs")
    companion = declare if declare is not None else _beside(Path(file))
    text = "" if companion is None else read_text(companion, "declarations")
    chosen = chosen_target(text, file if companion is None else str(companion), target, prepare)
    encoding = encoding_of(chosen)
    numbers = encoding.machines if machine is None else (*encoding.machines, machine)
    code = program_bytes(data, numbers, file)
    if not code:
        raise ReadError(f"{file}: it contains no bundles")
    found = disassemble(code, encoding, file)
    _refuse_unknown(found, file, chosen)
    program = parse(f"// castsim: target {chosen.name}\n{found.text()}", chosen.dialect, file)
    declared = () if companion is None else _declarations(text, companion, chosen)
    remarks = tuple(
        WarningText(WarningKind.ENCODING, f"'{line.text}' is {line.remark}", f"{file}: offset {line.address:#x}")
        for line in found.lines
        if line.remark
    )
    return ready(replace(program, declarations=declared), file, chosen, args, remarks)


def _beside(path: Path) -> Path | None:
    companion = path.with_suffix(COMPANION)
    return companion if companion.is_file() else None


def _declarations(text: str, companion: Path, target: VliwTarget) -> tuple[Declaration, ...]:
    """Read the declarations of a companion; it may be the source of the program, whose instructions do not count.

    Raises:
        ReadError: a declaration or instruction that cannot be read; instructions in a file of declarations.
    """
    program = parse(text, target.dialect, str(companion))
    if program.items and companion.suffix not in ASSEMBLY_SUFFIXES:
        message = "a file of declarations holds comments only"
        raise ReadError(message, span=program.items[0].span, legal=("// castsim: tensor 0 x in f32 [64, 16]",))
    return tuple(each for each in program.declarations if not isinstance(each, TargetDeclaration))


def _refuse_unknown(found: Disassembly, file: str, target: VliwTarget) -> None:
    unknown = [line for line in found.lines if not line.known]
    if unknown:
        first = unknown[0]
        shown = " ".join(f"{byte:02x}" for byte in first.code[:8])
        more = f"; so are those at {len(unknown) - 1} other offsets" if len(unknown) > 1 else ""
        raise IllegalError(
            f"{file}: the bytes at offset {first.address:#x} ({shown} ..) are not a bundle of {target.name}: "
            f"{first.unread}{more}"
        )
