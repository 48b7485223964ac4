"""PROGRAM is TPC assembly, or a kernel in C, of which the scheduled bundles are checked. Findings that are certain
give exit code 1. Possible findings, which depend on the path, on a predicate or on the initial contents of registers,
do not; nor do notices about forms seen only in compiler output. A loop whose bounds are not in the text is assumed to
make many trips. For tile programs (.pto), use `castsim run --timing-only`: it reports whatever the target cannot do,
tmp tiles that are too small, and races.

examples:
  castsim lint kernel.tpc
  castsim lint kernel.s --target gaudi2 --json -
"""

from __future__ import annotations

from argparse import ArgumentParser

from castsim.commands.shared_options import declare_headers, declare_statements, declare_target

SUMMARY = "check the issue rules of an assembly program without running it"


def declare(parser: ArgumentParser) -> None:
    """Add the arguments of `lint`."""
    add = parser.add_argument
    add("program", metavar="PROGRAM", help="a .tpc, .s or .c file; - reads standard input")
    declare_headers(parser)
    declare_target(parser)
    declare_statements(parser)
