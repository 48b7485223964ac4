"""A and B are programs (.pto, .tpc, binaries) or JSON files written by `castsim run --json`; `-` is standard input.
Without B, program A is run twice, the second time with --target-b, --option-b or --entry-b. --target, --option,
--entry, --in and --arg apply to both sides; an --in goes to whichever side has the argument.

Lines are matched by their text: a line is added, removed, changed, moved, renamed (only the names of values differ), or
differs only in cycles. Outputs are compared bit by bit, including NaN.

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

from castsim.commands.shared_options import (
    declare_arguments,
    declare_c_launch,
    declare_cores,
    declare_entry,
    declare_inputs,
    declare_kernel,
    declare_max_cycles,
    declare_opaque,
    declare_page,
    declare_run_limits,
    declare_target,
    declare_target_options,
)

SUMMARY = "compare two programs, results, targets or options: cycles, lines, outputs to the bit"


def declare(parser: ArgumentParser) -> None:
    """Add the arguments of `diff`."""
    add = parser.add_argument
    add(
        "a",
        metavar="A",
        help="a program (kernels in C too; one in C++ is executed), or the JSON of a run; - reads standard input",
    )
    add("b", metavar="B", nargs="?", help="likewise; default: A again, with other options")
    declare_target(parser)
    add("--target-b", metavar="T", help="the target of B")
    declare_target_options(parser)
    declare_cores(parser)
    add(
        "--option-b",
        metavar="NAME=VALUE",
        dest="options_b",
        action="append",
        default=[],
        help="set a target option of B",
    )
    declare_entry(parser)
    add("--entry-b", metavar="F", help="the function of B")
    declare_inputs(parser)
    declare_arguments(parser)
    add("--timing-only", action="store_true", help="compute no values, compare only cycles; needs no inputs")
    add("--max-slowdown", metavar="P", help="exit code 0 if outputs are the same and B is at most P percent slower")
    declare_max_cycles(parser)
    declare_page(parser)
    declare_kernel(parser)
    declare_c_launch(parser)
    declare_run_limits(parser)
    declare_opaque(parser)
