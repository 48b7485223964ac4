"""FILE is a raw binary, or an ELF file, of which the section .text is read; - reads standard input. Bytes that are not
a bundle are shown as .byte with the reason.

examples:
  castsim disasm kernel.bin --target gaudi2
  castsim disasm kernel.o --target greco --machine 0x1234 --text --out kernel.tpc
"""

from __future__ import annotations

from argparse import ArgumentParser

from castsim.commands.shared_options import declare_required_target

SUMMARY = "disassemble a TPC binary: a listing, or text that assembles to the same bytes"


def declare(parser: ArgumentParser) -> None:
    """Add the arguments of `disasm`."""
    add = parser.add_argument
    add("file", metavar="FILE", help="raw binary or ELF file; - reads standard input")
    declare_required_target(parser)
    add("--machine", metavar="N", help="also accept this ELF machine number, 0 to 65535")
    add("--text", action="store_true", help="print text that `castsim asm` reads, without addresses and bytes")
    add("--out", metavar="FILE", help="write that text to FILE")
