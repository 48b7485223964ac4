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

from castsim.commands.shared_options import declare_inputs, declare_target, declare_walk

SUMMARY = "remove lane moves around element-wise work from an assembly program"


def declare(parser: ArgumentParser) -> None:
    """Add the arguments of `unswizzle`."""
    add = parser.add_argument
    add("program", metavar="PROGRAM", help="a .tpc or .s file; - reads standard input")
    declare_target(parser)
    declare_inputs(parser, "an input; default random:0")
    declare_walk(parser)
    add("--out", metavar="FILE", help="write the new program to FILE")
