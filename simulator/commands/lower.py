"""Searches chains of up to four of the target's instructions for one that gives what a specification asks of a cast,
proves the best one on every code of SRC where possible, and writes it as a program for `castsim run`. If there is none,
the chain that fails least is shown with the smallest value on which it fails and every intermediate value, and the exit
code is 1. --spec is NAME@VERSION:ATTRIBUTE=VALUE:..., exact (default), tosa, onnx or a path. --rounding and --saturate
ask for more than the specification does. --via judges the chain through the given formats, each optionally followed by
the rounding mode of the instruction that produces it; the destination may be listed last.

--option sets an option of the target, as in `castsim run`. Where nothing conforms without further options, those that a
program or its launcher can set, such as mode bits (`castsim targets T` lists them), are searched too, one at a time and
then in pairs: single instructions first, then chains. A result that needs no further options takes precedence; if it is
a chain and a single instruction would do with options, a line says so. With --via, and for options about uncertain
points of the hardware, nothing is searched: they are used as given.

DST may be a block format (mxfp8_e4m3, ...; see castsim quantise): the answer is the operation of the target that makes
it, or a chain of operations, with the rule of its scales, cycles and program, or why there is none (exit code 1).

Without SRC and DST every cast of the specification is lowered: a matrix of one target in which every verdict is proven
where that is possible. --out names a folder, which gets a program for each cast that has one, and the exit code is 1 if
a cast has none that conforms. Use --workers or --scheduler to compute in parallel and --ledger FILE to continue after
an interruption; FILE is removed once the results are written.

examples:
  castsim lower f16 i8 --spec tosa --target a5
  castsim lower f32 u16 --spec onnx --saturate --target gaudi --out f32_to_u16.tpc
  castsim lower i32 bf16 --spec tosa --target a5 --json -
  castsim lower f16 i8 --spec tosa --target greco --via bf16:rhne i8:rhne
  castsim lower f32 bf16 --spec tosa --target a5 --option ctrl_48_at_start=1
  castsim lower f32 mxfp8_e4m3 --target a5
  castsim lower --spec tosa --target gaudi2 --out programs --workers 2 --ledger tosa.ledger
"""

from __future__ import annotations

from argparse import ArgumentParser

from castsim.commands.shared_options import (
    declare_page,
    declare_required_target,
    declare_target_options,
    declare_workers,
)

SUMMARY = "find the instructions for a specification's cast on a target: proof, cost, program"


def declare(parser: ArgumentParser) -> None:
    """Add the arguments of `lower`."""
    add = parser.add_argument
    add(
        "src",
        metavar="SRC",
        nargs="?",
        help="format of the source; without SRC and DST, all casts of --spec are lowered",
    )
    add("dst", metavar="DST", nargs="?", help="format of the results, or block format")
    declare_required_target(parser)
    add("--spec", metavar="S", help="specification: exact (default), tosa, onnx, or a path")
    add("--rounding", metavar="M", help="how to round results in range")
    add("--saturate", action="store_true", help="clamp results out of range")
    add("--via", metavar="F[:M]", nargs="+", help="judge the chain through these formats")
    declare_target_options(parser)
    add("--rows", metavar="R", default="16", help="rows of the tensor that the program converts; default: 16")
    add("--cols", metavar="C", default="256", help="its columns; default: 256")
    add("--steps", metavar="N", default="4", help="longest chain, 1 to 4 instructions; default: 4")
    add("--out", metavar="FILE", help="write the program to FILE; - prints only the program. Of all casts: a folder")
    declare_page(parser)
    declare_workers(parser, "finished casts")
