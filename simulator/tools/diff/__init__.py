"""Differences between two programs, results, targets or options."""

from __future__ import annotations

from castsim.commands.feature import Feature
from castsim.commands.shared_options import OptionParser


def _diff(parser: OptionParser) -> None:
    """A and B are programs (.pto, .tpc, binaries) or JSON files written by `castsim run --json`; `-` is standard
    input. Without B, program A is run twice, the second time with --target-b, --option-b or --entry-b. --target,
    --option, --entry, --in and --arg apply to both sides; an --in goes to whichever side has the argument.

    Lines are matched by their text: a line is added, removed, changed, moved, renamed (only the names of values
    differ), or differs only in cycles. Outputs are compared bit by bit, including NaN.

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
    add = parser.add_argument
    what = "a program, a kernel in C or C++, or the JSON of a run; - reads standard input"
    add("a", metavar="A", help=what)
    add("b", metavar="B", nargs="?", help="the same; default: A with the options for B")
    parser.take("target")
    add("--target-b", metavar="T", help="the target of B")
    parser.take("target_options", "toolchain", "cores")
    what = "set a target option of B"
    add("--option-b", metavar="NAME=VALUE", dest="options_b", action="append", default=[], help=what)
    parser.take("entry")
    add("--entry-b", metavar="F", help="the function of B")
    parser.take("inputs", "arguments")
    add("--timing-only", action="store_true", help="compare only cycles; needs no inputs")
    add("--max-slowdown", metavar="P", help="exit with 0 if the outputs are equal and B is at most P percent slower")
    parser.take("max_cycles", "page", "kernel", "c_launch", "run_limits", "opaque")


FEATURES = (
    Feature(
        "diff",
        "run and look",
        "compare two programs, results, targets or options: cycles, lines, outputs",
        _diff,
        "castsim.tools.diff.command",
        documents=("castsim.tools.diff.differences:Difference",),
    ),
)
