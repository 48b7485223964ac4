"""Searches chains of up to three of the target's instructions that give what a specification asks of a cast, proves the
best one on every code of SRC where that can be done, and writes it as a program that `castsim run` executes. If there
is none, the chain that fails least is shown with the smallest value on which it fails and every value on its way, and
the exit code is 1. --spec is NAME@VERSION:ATTRIBUTE=VALUE:..., exact (default), tosa, onnx or a path. --rounding and
--saturate ask for more than a specification does. --via judges the chain through other formats, each with the rounding
mode of the instruction that leads there if one is given; the destination may stand at the end.

--option sets an option of the target, as in `castsim run`. Options that a program or its launcher sets, such as mode
bits (`castsim targets T` says which), are also searched, one at a time, then in pairs, where nothing conforms without:
single instructions first, then chains. What conforms without further options goes before what needs them; if that is a
chain, a line tells of the single instruction with options, if there is one. --via and options that stand for doubtful
points of the hardware are taken as they are.

examples:
  castsim lower f16 i8 --spec tosa --target a5
  castsim lower f32 u16 --spec onnx --saturate --target gaudi --out f32_to_u16.tpc
  castsim lower i32 bf16 --spec tosa --target a5 --json -
  castsim lower f16 i8 --spec tosa --target greco --via bf16:rhne i8:rhne
  castsim lower f32 bf16 --spec tosa --target a5 --option ctrl_48_at_start=1
"""

from __future__ import annotations

from argparse import ArgumentParser

SUMMARY = "a specification's cast on a target: by which instructions, proven, at what cost, as a program"


def declare(parser: ArgumentParser) -> None:
    """Add the arguments of `lower`."""
    add = parser.add_argument
    add("src", metavar="SRC", help="format of the source")
    add("dst", metavar="DST", help="format of the results")
    add("--target", metavar="T", required=True, help="name or path of a target")
    add("--spec", metavar="S", default="exact", help="specification: exact (default), tosa, onnx, or a path")
    add("--rounding", metavar="M", help="how results in range are to be rounded")
    add("--saturate", action="store_true", help="results out of range are to be clamped")
    add("--via", metavar="F[:M]", nargs="+", help="judge the chain through these formats")
    add("--option", metavar="NAME=VALUE", dest="options", action="append", default=[], help="set a target option")
    add("--rows", metavar="R", default="16", help="rows of the tensor that the program converts; default: 16")
    add("--cols", metavar="C", default="256", help="its columns; default: 256")
    add("--steps", metavar="N", default="3", help="longest chain, 1 to 3 instructions; default: 3")
    add("--out", metavar="FILE", help="write the program; - prints it alone")
    add("--html", metavar="FILE", help="write the report as a page: one file, to be opened in a browser")
