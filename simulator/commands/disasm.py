"""FILE is a raw binary or an ELF file, whose section .text is taken; - reads standard input. Bytes that are no bundle
are shown as .byte with the reason.

examples:
  castsim disasm kernel.bin --target gaudi2
  castsim disasm kernel.o --target greco --machine 0x1234 --text --out kernel.tpc
"""

from __future__ import annotations

import re
from argparse import ArgumentParser, Namespace
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from simulator.commands.outcome import Outcome

SUMMARY = "TPC binary to assembly: a listing, or text that assembles to the same bytes"

_NUMBER = re.compile(r"[+-]?(?:0[xX][0-9a-fA-F]+|\d+)", re.ASCII)
_LAST_MACHINE = 0xFFFF
"""`e_machine` of an ELF header is an Elf32_Half or Elf64_Half, 16 bits (System V ABI)."""


def declare(parser: ArgumentParser) -> None:
    """Add the arguments of `disasm`."""
    add = parser.add_argument
    add("file", metavar="FILE", help="raw binary or ELF file; - reads standard input")
    add("--target", metavar="T", required=True, help="name or path of a target description")
    add("--machine", metavar="N", help="accept this ELF machine number too, 0 to 65535")
    add("--text", action="store_true", help="print text that `castsim asm` reads, without addresses and bytes")
    add("--out", metavar="FILE", help="write that text to FILE")


def execute(options: Namespace) -> Outcome:
    """Disassemble.

    Raises:
        ReadError: what was typed; a file of the wrong size, a damaged ELF file or one of another machine.
        TargetDataError: a bad target description.
    """
    from isa.errors import ReadError  # noqa: PLC0415
    from isa.tpc.encoding import disassemble, program_bytes  # noqa: PLC0415
    from simulator.commands.asm import encoded_target, read_bytes, write_out  # noqa: PLC0415
    from simulator.commands.outcome import Outcome  # noqa: PLC0415
    from simulator.commands.run import GRAPHS  # noqa: PLC0415
    from simulator.reports.listing import (  # noqa: PLC0415
        disassembled_document,
        disassembled_text,
        plain_text,
        source_text,
    )
    from simulator.vliw.source import ASSEMBLY_SUFFIXES, BINARY_SUFFIXES, TILE_SUFFIX  # noqa: PLC0415

    more = () if options.machine is None else (machine_number(options.machine),)
    target, encoding = encoded_target(options.target)
    if options.file.endswith((*ASSEMBLY_SUFFIXES, TILE_SUFFIX, *GRAPHS)):
        raise ReadError(
            f"castsim disasm takes a TPC binary; '{options.file}' is by its suffix none, `castsim run` takes it",
            legal=("a raw binary", "an ELF file", *(f"*{suffix}" for suffix in BINARY_SUFFIXES)),
        )
    file, data = read_bytes(options.file)
    found = disassemble(program_bytes(data, (*encoding.machines, *more), file), encoding, file)
    written = write_out(options.out, source_text(found, target.name).encode(), options.file)

    def shown(_: int) -> Any:
        if options.text and written is None:
            return plain_text(source_text(found, target.name))
        return disassembled_text(found, file, target.name, written)

    return Outcome(disassembled_document(found, file, target.name, written), shown)


def machine_number(text: str) -> int:
    """Return the number that `--machine` gives.

    Raises:
        ReadError: it is none, or none that the ELF header can hold.
    """
    from isa.errors import ReadError  # noqa: PLC0415

    text, legal = text.strip(), (f"0 to {_LAST_MACHINE}", f"0x0 to {_LAST_MACHINE:#x}")
    if _NUMBER.fullmatch(text) is None:
        raise ReadError(f"--machine {text}: not a number", legal=legal)
    number = int(text, 16 if "x" in text.lower() else 10)
    if not 0 <= number <= _LAST_MACHINE:
        raise ReadError(f"--machine {text}: no ELF machine number, which has 16 bits", legal=legal)
    return number
