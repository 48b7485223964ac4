"""A and B are programs (.pto, .tpc, binaries), or JSON files that `castsim run --json` wrote; `-` is standard input.
Without B the program A is run twice, the second time with --target-b, --option-b or --entry-b. --target, --option,
--entry, --in and --arg are for both; an --in goes to the side that has the argument.

Lines are matched by what they say: one is added, removed, changed, moved, renamed (other names of values, no more), or
differs in cycles alone. Outputs are compared bit by bit, NaN too.

The exit code is 0 if cycles and outputs are the same, 1 if they differ, 2 if a side cannot be compared. With
--max-slowdown P it is 0 if the outputs are the same and B takes at most P percent more cycles.

examples:
  castsim diff before.pto after.pto --in x=random:1
  castsim diff kernel.pto --timing-only --option-b vector_head=always
  castsim diff kernel.pto --timing-only --target a5 --target-b my_a5.toml
  castsim diff before.pto after.pto --timing-only --html change.html
  castsim diff yesterday.json today.json
  castsim diff baseline.json kernel.pto --in x=random:1 --max-slowdown 2
"""

from __future__ import annotations

from argparse import ArgumentParser

from castsim.commands.limits import declare_elements, declare_limits

SUMMARY = "compare two programs, results, targets or options: cycles, lines, outputs to the bit"


def declare(parser: ArgumentParser) -> None:
    """Add the arguments of `diff`."""
    add = parser.add_argument
    add("a", metavar="A", help="a program, or the JSON of a run; - reads standard input")
    add("b", metavar="B", nargs="?", help="the same; default: A again, with what differs given by options")
    add("--target", metavar="T", help="name or path of a target description; default: the one the program names")
    add("--target-b", metavar="T", help="the target of B")
    add("--option", metavar="NAME=VALUE", dest="options", action="append", default=[], help="set a target option")
    add("--option-b", metavar="NAME=VALUE", dest="options_b", action="append", default=[], help="set one for B")
    add("--entry", metavar="F", help="function to run; default: the entry, or the only one")
    add("--entry-b", metavar="F", help="the function of B")
    add("--in", metavar="NAME=...", dest="inputs", action="append", default=[], help="input of argument NAME")
    add("--arg", metavar="NAME=VALUE", dest="args", action="append", default=[], help="value of a scalar argument")
    add("--timing-only", action="store_true", help="compute no values, compare cycles alone; needs no inputs")
    add("--max-slowdown", metavar="P", help="exit code 0 if outputs are the same and B is at most P percent slower")
    add("--max-cycles", metavar="N", help="give up after N cycles")
    add("--html", metavar="FILE", help="write the report as a page: one file, to be opened in a browser")
    declare_limits(parser)
    declare_elements(parser, 134217728)
    add(
        "--opaque",
        metavar="OP=N",
        action="append",
        default=[],
        help="cycles of an operation that is not modelled (tmatmul=400); what it writes is not computed",
    )
