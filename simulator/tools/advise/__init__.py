"""Advice: changes to a program that save cycles and keep every bit of its outputs."""

from __future__ import annotations

from castsim.commands.feature import Feature
from castsim.commands.shared_options import OptionParser


def _advise(parser: OptionParser) -> None:
    """Prints the changes that save most cycles, the best one as a diff that `patch` applies. Every change is made
    on a copy of the text and checked: it has no race and gives the same bits. `proven` means that every output
    byte is computed from the same input bytes by the same operations; `tried`, that random and boundary inputs
    gave the same bits.

    examples:
      castsim advise kernel.pto
      castsim advise kernel.pto --arg rows=20 --range x=-8:8
      castsim advise kernel.pto --apply 1 -o faster.pto
      castsim advise kernel.tpc --apply 1 --tried -o faster.tpc
      castsim advise kernel.pto --json -
    """
    add = parser.add_argument
    what = "a .pto or .tpc file, or a kernel in C or C++; - reads standard input"
    add("program", metavar="PROGRAM", help=what)
    parser.take("target", entry="change", inputs="an input to try first")
    parser.take("arguments", "target_options", "toolchain", "cores")
    what = "range of input NAME; outputs must keep their bits within it only"
    add("--range", metavar="NAME=LO:HI", dest="ranges", action="append", default=[], help=what)
    add("--tries", metavar="N", help="run changes that cannot be proven on at least N inputs; default: 4")
    what = "search for N seconds of processor time, and check for as long; default: 3"
    add("--seconds", metavar="N", help=what)
    add("--why", action="store_true", help="list the rejected changes and the reasons")
    add("--tried", action="store_true", help="let --apply write a change that was tried but not proven")
    add("--apply", metavar="N", help="apply change N, and write the program to the --out file")
    add("-o", "--out", metavar="FILE", help="the file that --apply writes")
    parser.take("kernel", "c_launch", "run_limits", "page")


FEATURES = (
    Feature(
        "advise",
        "improve",
        "find changes that save cycles and keep every bit of the outputs, as diffs",
        _advise,
        "castsim.tools.advise.command",
        documents=("castsim.tools.advise.advice_search:Advice",),
        pages=("castsim.tools.advise.page",),
        start="castsim advise kernel.pto",
    ),
)
