"""The execution of `castsim disasm`."""

from __future__ import annotations

from argparse import Namespace
from typing import Any

from castsim.commands.assembly_files import encoded_target, named_bytes, write_out
from castsim.commands.option_parsers import GRAPHS, machine_number
from castsim.commands.outcome import Outcome
from castsim.isa.errors import ReadError
from castsim.isa.sources import ASSEMBLY_SUFFIXES, BINARY_SUFFIXES, TILE_SUFFIX
from castsim.isa.tpc.encoding import disassemble, program_bytes
from castsim.reports.listing import disassembled_document, disassembled_text, plain_text, source_text


def execute(options: Namespace) -> Outcome:
    """Disassemble.

    Raises:
        ReadError: what was typed; a file of the wrong size, a damaged ELF file or one of another machine.
        TargetDataError: a bad target description.
    """
    more = () if options.machine is None else (machine_number(options.machine),)
    target, encoding = encoded_target(options.target)
    if options.file.endswith((*ASSEMBLY_SUFFIXES, TILE_SUFFIX, *GRAPHS)):
        raise ReadError(
            f"castsim disasm takes a TPC binary; '{options.file}' is not one by its suffix; try `castsim run`",
            legal=("a raw binary", "an ELF file", *(f"*{suffix}" for suffix in BINARY_SUFFIXES)),
        )
    file, data = named_bytes(options.file)
    if not data:
        raise ReadError(f"'{file}' is empty", legal=("a raw binary", "an ELF file"))
    found = disassemble(program_bytes(data, (*encoding.machines, *more), file), encoding, file)
    written = write_out(options.out, source_text(found, target.name).encode(), options.file)

    def shown(_: int) -> Any:
        if options.text and written is None:
            return plain_text(source_text(found, target.name))
        return disassembled_text(found, file, target.name, written)

    return Outcome(disassembled_document(found, file, target.name, written), shown)
