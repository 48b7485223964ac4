"""Tuning: the tile shapes and choices of a kernel that take the fewest cycles and bytes."""

from __future__ import annotations

from castsim.commands.feature import Feature
from castsim.commands.shared_options import OptionParser


def _tune(parser: OptionParser) -> None:
    """A tile program declares parameters in comments such as `// castsim: parameter R = 16 in 8..64:8`; `${R}`, or
    an expression such as `${R*2}`, is replaced by the value. VALUES are 8..64, 8..64:8 (step), 8..64*2 (doubling)
    or 128,256, separated by commas. Without --tile, the values proposed by the program are used. A lower bound of
    the cycles is computed for every point; the most promising points are simulated until no other can be faster or
    smaller. A point that cannot run says why.

    examples:
      castsim tune kernel.pto
      castsim tune kernel.pto --tile 'R in 8..64, C in 128,256,512' --where 'R*C*4 <= 65536'
      castsim tune kernel.pto --arg rows=4096 --tile 'R in 8..64*2' --resume kernel.ledger
      castsim tune kernel.pto --tile 'R in 16' --arg 'rows in 64,128' --option 'vector_head in idle,always' --target a2a3
      castsim tune kernel.pto --html kernel.html
      castsim tune kernel.pto --in src=random:1 --simulate all --json -
    """  # noqa: E501 - an example is one line
    add = parser.add_argument
    add("program", metavar="PROGRAM", help="a .pto file with parameters, or any program that `castsim run` takes")
    add(
        "--tile",
        metavar="SPACE",
        action="append",
        default=[],
        help="values of parameters: 'R in 8..64, C in 128,256,512'",
    )
    what = "keep only points that meet a condition, such as 'R*C*4 <= 65536'"
    add("--where", metavar="CONDITION", action="append", default=[], help=what)
    parser.take(
        arguments="value of a scalar argument, or 'NAME in VALUES'",
        target_options="set a target option, or 'NAME in VALUES'",
    )
    parser.take("toolchain", "cores")
    add("--target", metavar="T", help="targets, separated by commas; default: the one the program names")
    parser.take(
        "entry", inputs="input of argument NAME; values are then computed and the outputs of the points compared"
    )
    add("--simulate", metavar="K", help="simulate at most K points, or all; default: 200")
    add("--resume", metavar="FILE", help="save the progress in FILE, or continue from it")
    add(
        "--sync",
        metavar="S",
        default="insert",
        help="synchronise programs without flags: insert (default), interlock or barriers",
    )
    parser.take("engine")
    add("--max-cycles", metavar="N", help="give up a point after N cycles")
    parser.take("page", "run_limits")


FEATURES = (
    Feature(
        "tune",
        "improve",
        "find the tile shapes and choices of a kernel that take the fewest cycles and bytes",
        _tune,
        "castsim.tools.tune.command",
        documents=("castsim.tools.tune.report:Tune",),
    ),
)
