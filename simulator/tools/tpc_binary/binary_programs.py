"""Binary programs ready to run: the file, its declarations, the bytes that are no bundle.

A binary carries no declarations. They are in a companion: the file given by `--declare`, or the one beside the
binary with the suffix `.decl`; `// castsim:` comments as in assembly, alone or in the source itself.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path

from castsim.isa.dataclass import replace
from castsim.isa.errors import IllegalError, ReadError, WarningKind, WarningText
from castsim.isa.reading import ASSEMBLY_SUFFIXES, Source, read_text
from castsim.isa.tpc.parser import parse
from castsim.isa.tpc.program import Declaration, TargetDeclaration
from castsim.machines.vliw import chosen_target
from castsim.machines.vliw.assembled import AssembledProgram, ready
from castsim.targets.loader import Target
from castsim.targets.vliw import VliwTarget
from castsim.tools.tpc_binary.assembler import Disassembly, disassemble, program_bytes
from castsim.tools.tpc_binary.encoding_tables import encoding_of

COMPANION = ".decl"
"""The suffix of the declarations file beside a binary."""


def load_binary(
    source: Source,
    target: str | Path | Target | None,
    entry: str | None,
    args: Mapping[str, int | float],
    prepare: Callable[[Target], Target],
    *,
    declare: Path | None = None,
    machine: int | None = None,
) -> AssembledProgram:
    """Read a binary program, raw or the section `.text` of an ELF file.

    Positions in messages and reports are lines of the text that `castsim disasm --text` prints. `machine` is an ELF
    machine number to accept in addition to those of the target.

    Raises:
        ReadError: there is no target, an entry is named, the file has a wrong size, is damaged or for another machine,
            the companion is missing or unreadable, or a value is not for an S register.
        IllegalError: the target does not run assembly; bytes are no bundle (the message has the offset); a declaration
            is illegal.
    """
    file, data = source.file, source.data
    if entry is not None:
        raise ReadError(f"{file}: --entry applies only to .pto programs; a binary starts at its first bundle")
    companion = declare
    if companion is None and (beside := Path(file).with_suffix(COMPANION)).is_file():
        companion = beside
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


def _declarations(text: str, companion: Path, target: VliwTarget) -> tuple[Declaration, ...]:
    """Read the declarations of a companion file, which may be the program's source; its instructions are ignored.

    Raises:
        ReadError: a declaration or instruction cannot be read, or a file of declarations contains instructions.
    """
    program = parse(text, target.dialect, str(companion))
    if program.items and companion.suffix not in ASSEMBLY_SUFFIXES:
        message = "a file of declarations can contain only comments"
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
