"""FILE is TPC assembly; - reads standard input. The target defaults to the one declared in the text (`// castsim:
target NAME`). Without --out, the listing is printed: address, bytes, canonical text.

examples:
  castsim asm kernel.tpc --target gaudi2 --out kernel.bin
  castsim asm kernel.tpc --target goya --text
"""

from __future__ import annotations

from argparse import ArgumentParser

from castsim.commands.shared_options import declare_target

SUMMARY = "assemble TPC assembly to binary, or to canonical text"


def declare(parser: ArgumentParser) -> None:
    """Add the arguments of `asm`."""
    add = parser.add_argument
    add("file", metavar="FILE", help="assembly text; - reads standard input")
    declare_target(parser, "the one the text declares")
    add("--text", action="store_true", help="print canonical text instead, one line per input line")
    add("--out", metavar="FILE", help="write the binary, or the text, to FILE")
