"""Prints the changes that save most cycles, the best one as a diff that `patch` applies. Every change is made on a copy
of the text and checked: it has no race, gives the same bits, and takes the same cycles on both engines. `proven` means
that every output byte is computed from the same input bytes by the same operations; `tried`, that random and boundary
inputs gave the same bits.

examples:
  castsim advise kernel.pto
  castsim advise kernel.pto --arg rows=20 --range x=-8:8
  castsim advise kernel.pto --apply 1 -o faster.pto
  castsim advise kernel.tpc --apply 1 --tried -o faster.tpc
  castsim advise kernel.pto --json -
"""

from __future__ import annotations

from argparse import ArgumentParser

from castsim.commands.shared_options import (
    declare_arguments,
    declare_c_launch,
    declare_cores,
    declare_entry,
    declare_inputs,
    declare_kernel,
    declare_page,
    declare_run_limits,
    declare_target,
    declare_target_options,
)

SUMMARY = "find changes to a program that save cycles and keep its outputs to the bit, as diffs"


def declare(parser: ArgumentParser) -> None:
    """Add the arguments of `advise`."""
    add = parser.add_argument
    add(
        "program",
        metavar="PROGRAM",
        help="a .pto or .tpc file, or a kernel in C (its bundles) or C++ (executed); - reads standard input",
    )
    declare_target(parser)
    declare_entry(parser, "change")
    declare_inputs(parser, "an input to try first")
    declare_arguments(parser)
    declare_target_options(parser)
    declare_cores(parser)
    add(
        "--range",
        metavar="NAME=LO:HI",
        dest="ranges",
        action="append",
        default=[],
        help="range of input NAME: changes need to keep the bits only within it",
    )
    add("--tries", metavar="N", help="try a change that cannot be proven on at least N inputs (default 4)")
    add(
        "--seconds",
        metavar="N",
        help="make changes for N seconds of processor time, and check them for as long (default 10)",
    )
    add("--why", action="store_true", help="list the changes that were tried and rejected, and why")
    add("--tried", action="store_true", help="let --apply apply a change that is tried but not proven")
    add("--apply", metavar="N", help="apply change N and write the program to the file given by --out")
    add("-o", "--out", metavar="FILE", help="the file that --apply writes")
    declare_kernel(parser)
    declare_c_launch(parser)
    declare_run_limits(parser)
    declare_page(parser)
