"""Every change is made on a copy of the text and checked: it is free of races, gives the same bits, and takes the same
cycles on both engines. `proven`: every output byte is the same term of the same input bytes. `tried`: bit for bit over
random and boundary inputs. The answer is a diff that `patch` applies.

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
    declare_entry,
    declare_inputs,
    declare_run_limits,
    declare_target,
    declare_target_options,
)

SUMMARY = "changes of a program that keep its outputs to the bit and save cycles, as diffs"


def declare(parser: ArgumentParser) -> None:
    """Add the arguments of `advise`."""
    add = parser.add_argument
    add("program", metavar="PROGRAM", help="a .pto or .tpc file; - reads standard input")
    declare_target(parser)
    declare_entry(parser, "change")
    declare_inputs(parser, "input to try first, besides")
    declare_arguments(parser)
    declare_target_options(parser)
    add(
        "--range",
        metavar="NAME=LO:HI",
        dest="ranges",
        action="append",
        default=[],
        help="numbers that input NAME may hold: changes need to keep the bits for these alone",
    )
    add("--tries", metavar="N", help="inputs on which what is not proven is tried at least (default 4)")
    add("--tried", action="store_true", help="let --apply apply a change that has been tried and not proven")
    add("--apply", metavar="N", help="write the program with change N to the file of --out")
    add("-o", "--out", metavar="FILE", help="where --apply writes")
    declare_run_limits(parser)
