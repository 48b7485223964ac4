"""FILE is a raw binary, or an ELF file, of which the section .text is read; - reads standard input. Bytes that are not
a bundle are shown as .byte with the reason.

examples:
  castsim disasm kernel.bin --target gaudi2
  castsim disasm kernel.o --target greco --machine 0x1234 --text --out kernel.tpc
"""

from __future__ import annotations

from argparse import Namespace
from typing import Any

from castsim.commands.asm import encoded_target, named_bytes, write_out
from castsim.commands.option_parsers import GRAPHS, machine_number
from castsim.commands.outcome import CommandOutcome, plain
from castsim.commands.shared_options import OptionParser
from castsim.isa.errors import ReadError
from castsim.isa.reading import ASSEMBLY_SUFFIXES, BINARY_SUFFIXES, TILE_SUFFIX
from castsim.isa.tpc.assembler import disassemble, program_bytes
from castsim.reports.listing import Disassembled, disassembled_text, source_text


def declare(parser: OptionParser) -> None:
    """Add the arguments of `disasm`."""
    add = parser.add_argument
    add("file", metavar="FILE", help="raw binary or ELF file; - reads standard input")
    parser.take("required_target")
    add("--machine", metavar="N", help="accept this ELF machine number too, 0 to 65535")
    add("--text", action="store_true", help="print text that `castsim asm` reads, without addresses and bytes")
    add("--out", metavar="FILE", help="write the text to FILE")


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
    found = disassemble(program_bytes(data, (*encoding.machines, *more), file), encoding, file)
    written = write_out(options.out, source_text(found, target.name).encode(), options.file)

    def shown(_: int) -> Any:
        if options.text and written is None:
            return plain(source_text(found, target.name))
        return disassembled_text(found, file, target.name, written)

    return CommandOutcome(Disassembled.of(found, file=file, target=target, output=written), shown)
