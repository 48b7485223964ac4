"""FILE is TPC assembly; - reads standard input. The target defaults to the one declared in the text (`// castsim:
target NAME`). Without --out, the listing is printed: address, bytes, canonical text.
A kernel in C (.c) is compiled: the bundles of castsim's scheduler are printed, or with --text one instruction a line.

examples:
  castsim asm kernel.tpc --target gaudi2 --out kernel.bin
  castsim asm kernel.tpc --target goya --text
  castsim asm kernel.c --target gaudi2
"""

from __future__ import annotations

from argparse import ArgumentParser

from castsim.commands.shared_options import declare_headers, declare_target

SUMMARY = "assemble TPC assembly to binary, or to canonical text"


def declare(parser: ArgumentParser) -> None:
    """Add the arguments of `asm`."""
    add = parser.add_argument
    add("file", metavar="FILE", help="assembly text, or a kernel in C; - reads standard input")
    declare_target(parser, "the one the text declares")
    declare_headers(parser)
    add("--text", action="store_true", help="print canonical text instead, one line per input line")
    add("--out", metavar="FILE", help="write the binary, or the text, to FILE")
