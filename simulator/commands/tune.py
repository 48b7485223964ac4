"""A tile program declares parameters in comments such as `// castsim: parameter R = 16 in 8..64:8`; `${R}`, or an
expression such as `${R*2}`, is replaced by the value. VALUES are 8..64, 8..64:8 (step), 8..64*2 (doubling) or 128,256,
separated by commas. Without --tile, the values proposed by the program are used. A lower bound of the cycles is
computed for every point; the most promising points are simulated until no other can be faster or smaller. A point that
cannot run says why.

examples:
  castsim tune kernel.pto
  castsim tune kernel.pto --tile 'R in 8..64, C in 128,256,512' --where 'R*C*4 <= 65536'
  castsim tune kernel.pto --arg rows=4096 --tile 'R in 8..64*2' --resume kernel.ledger
  castsim tune kernel.pto --tile 'R in 16' --arg 'rows in 64,128' --option 'vector_head in idle,always' --target a2a3
  castsim tune kernel.pto --html kernel.html
  castsim tune kernel.pto --in src=random:1 --simulate all --json -
"""

from __future__ import annotations

from argparse import ArgumentParser

from castsim.commands.shared_options import (
    declare_arguments,
    declare_cores,
    declare_engine,
    declare_entry,
    declare_inputs,
    declare_page,
    declare_run_limits,
    declare_target_options,
)

SUMMARY = "find the tile shapes and choices of a kernel that take the fewest cycles and bytes"


def declare(parser: ArgumentParser) -> None:
    """Add the arguments of `tune`."""
    add = parser.add_argument
    add("program", metavar="PROGRAM", help="a .pto file with parameters, or any program that `castsim run` takes")
    add("--tile", metavar="SPACE", action="append", default=[], help="'R in 8..64, C in 128,256,512'")
    add(
        "--where",
        metavar="CONDITION",
        action="append",
        default=[],
        help="keep only the points that fulfil it, such as 'R*C*4 <= 65536'",
    )
    declare_arguments(parser, "value of a scalar argument, or 'NAME in VALUES'")
    declare_target_options(parser, "set a target option, or 'NAME in VALUES'")
    declare_cores(parser)
    add("--target", metavar="T", help="target, or several separated by commas; default: that of the program")
    declare_entry(parser)
    declare_inputs(parser, "input of argument NAME; values are then computed and the outputs of the points compared")
    add("--simulate", metavar="K", help="simulate K points at most (default 200), or all")
    add("--resume", metavar="FILE", help="save progress in FILE; continue from it if it exists")
    add("--sync", metavar="S", default="insert", help="programs without flags: insert (default), interlock, barriers")
    declare_engine(parser)
    add("--max-cycles", metavar="N", help="give up a point after N cycles")
    declare_page(parser)
    declare_run_limits(parser)
