"""PROGRAM is TPC assembly. Findings that are certain give exit code 1. Possible ones, which depend on the path, on a
predicate or on what registers start with, do not; nor do notices, of forms that only the compiler's output shows. A
loop whose bounds the text does not tell is taken to make many trips. Tile programs (.pto) are checked by `castsim run
--timing-only`: whatever their target cannot do, tmp tiles that are too small, races.

examples:
  castsim lint kernel.tpc
  castsim lint kernel.s --target gaudi2 --json -
"""

from __future__ import annotations

from argparse import ArgumentParser

from castsim.commands.limits import declare_statements

SUMMARY = "check the issue rules of an assembly program without running it"


def declare(parser: ArgumentParser) -> None:
    """Add the arguments of `lint`."""
    add = parser.add_argument
    add("program", metavar="PROGRAM", help="a .tpc or .s file; - reads standard input")
    add("--target", metavar="T", help="name or path of a target description; default: the one the program names")
    declare_statements(parser)
