"""PROGRAM is TPC assembly; tile programs (.pto) have no lanes to move. In every block without control flow, each stored
element is traced, byte by byte, to the loaded elements it is made of. Where that is the element in the same place, with
the same work done for all, the lane moves in between (PACK, UNPACK, MOV_DG, MOV_G) are removed, and the work is done in
the order that all_lanes conversions leave. Both programs are then run and timed on the same inputs: --in
NAME=FILE.npy|random:SEED or NAME=zeros (default random:0).

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
