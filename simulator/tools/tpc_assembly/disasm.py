"""The command `disasm`: disassemble a binary to a listing, or to text that assembles to the same bytes."""

from __future__ import annotations

from argparse import Namespace
from typing import Any

from castsim.commands.option_parsers import machine_number
from castsim.commands.outcome import CommandOutcome, plain, write_out
from castsim.isa.errors import ReadError
from castsim.isa.reading import ASSEMBLY_SUFFIXES, BINARY_SUFFIXES, TILE_SUFFIX
from castsim.running.languages import GRAPHS
from castsim.tools.tpc_assembly.asm import encoded_target, named_bytes
from castsim.tools.tpc_assembly.listing import Disassembled, disassembled_text, source_text
from castsim.tools.tpc_binary.assembler import disassemble, program_bytes


def execute(options: Namespace) -> CommandOutcome:
    """Disassemble the file.

    Raises:
        ReadError: an option is wrong, the file has the wrong size, or the ELF file is damaged or for another machine.
        TargetDataError: a bad target description.
    """
    more = () if options.machine is None else (machine_number(options.machine),)
    target, encoding = encoded_target(options.target)
    if options.file.endswith((*ASSEMBLY_SUFFIXES, TILE_SUFFIX, *GRAPHS)):
        raise ReadError(
            f"castsim disasm takes a TPC binary; '{options.file}' does not have the suffix of one; try `castsim run`",
            legal=("a raw binary", "an ELF file", *(f"*{suffix}" for suffix in BINARY_SUFFIXES)),
        )
    file, data = named_bytes(options.file)
    if not data:
        raise ReadError(f"'{file}' is empty", legal=("a raw binary", "an ELF file"))
    disassembly = disassemble(program_bytes(data, (*encoding.machines, *more), file), encoding, file)
    written = write_out(options.out, source_text(disassembly, target.name).encode(), options.file)

    def shown(_: int) -> Any:
        if options.text and written is None:
            return plain(source_text(disassembly, target.name))
        return disassembled_text(disassembly, file, target.name, written)

    return CommandOutcome(Disassembled.of(disassembly, file=file, target=target, output=written), shown)
