"""PROGRAM is TPC assembly; tile programs (.pto) have no lanes to move. In every block without control flow it is
followed, byte by byte, which loaded element each stored element is made of. Where that is the element of the same
place, by the same work for all, the lane moves between (PACK, UNPACK, MOV_DG, MOV_G) are removed: the work is done in
the order that all_lanes conversions leave. Both programs are run on the same inputs, --in NAME=FILE.npy|random:SEED or
NAME=zeros (default random:0), and timed.

examples:
  castsim unswizzle programs/tpc_bf16_scale_linear_gaudi.tpc
  castsim unswizzle kernel.tpc --out shorter.tpc
"""

from __future__ import annotations

from argparse import ArgumentParser

from castsim.commands.limits import declare_limits

SUMMARY = "remove lane moves around element-wise work from an assembly program"


def declare(parser: ArgumentParser) -> None:
    """Add the arguments of `unswizzle`."""
    add = parser.add_argument
    add("program", metavar="PROGRAM", help="a .tpc or .s file; - reads standard input")
    add("--target", metavar="T", help="name or path of a target description; default: the one the program names")
    add("--in", metavar="NAME=..", dest="inputs", action="append", default=[], help="an input; default random:0")
    declare_limits(parser)
    add("--out", metavar="FILE", help="write the new program to FILE")
