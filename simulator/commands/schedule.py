"""FILE holds one instruction per line, without slots; registers may be virtual: %v.NAME, %s.NAME, %i.NAME, %ad.NAME,
%vp.NAME, %sp.NAME, pairs %d.NAME and %z.NAME, quads %a.NAME. Labels, loops and declarations are as in any program. The
result is a program in bundles, on standard output or in the file given by -o; messages about it go to standard error.
It computes the same as the lines executed one after the other, and is never longer than with a NOP for every bundle of
waiting.

examples:
  castsim schedule lines.tpc --target gaudi2
  castsim schedule lines.tpc -o packed.tpc --json -
"""

from __future__ import annotations

from argparse import ArgumentParser

from castsim.commands.shared_options import declare_statements, declare_target

SUMMARY = "pack assembly of one instruction per line into bundles, and allocate registers"


def declare(parser: ArgumentParser) -> None:
    """Add the arguments of `schedule`."""
    add = parser.add_argument
    add("file", metavar="FILE", help="assembly text, one instruction per line; - reads standard input")
    declare_target(parser, "the one the text declares")
    add("-o", "--out", metavar="FILE", help="write the program to FILE")
    add("--longer-text", action="store_true", help="pipeline loops even if the text becomes longer than with padding")
    declare_statements(parser)
