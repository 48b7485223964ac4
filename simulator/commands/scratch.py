"""R, C and S take a number or, with --sweep, a range FIRST:LAST[:STEP]. Without --row-stride, each row starts at the
next whole block. Given a program instead of two formats, it shows the smallest tmp tile for each cast and the one that
serves them all; given all, the size that serves every cast of a shape (tmpSizeAllBytes). A sweep covers up to 1000000
shapes and shows its progress from 10000 shapes on.

examples:
  castsim scratch f32 i16 --rows 4 --cols 200 --row-stride 256
  castsim scratch f16 i8 --rows 8 --cols 160 --audit
  castsim scratch all --rows 4 --cols 200 --row-stride 256
  castsim scratch f32 i16 --rows 0:300:50 --cols 0:256 --row-stride 8:512:8 --sweep
  castsim scratch kernel.pto --arg rows=128
"""

from __future__ import annotations

from argparse import ArgumentParser

from castsim.commands.shared_options import declare_arguments, declare_page, declare_walk

SUMMARY = "show how large a tmp tile a cast needs: the formula, and the bytes actually touched"


def declare(parser: ArgumentParser) -> None:
    """Add the arguments of `scratch`."""
    add = parser.add_argument
    add("what", metavar="SRC DST | all | PROGRAM", nargs="+", help="two formats, all casts, or a .pto file")
    add("--rows", metavar="R", help="valid rows")
    add("--cols", metavar="C", help="valid columns")
    add("--row-stride", metavar="S", help="row stride of the source tile in elements")
    add("--rounding", metavar="M", help="rounding mode of the cast")
    add("--target", metavar="T", help="name or path of a target (default a2a3, or the one the program names)")
    add("--entry", metavar="F", help="function of the program")
    declare_arguments(parser, "scalar argument of the program")
    declare_walk(parser)
    add("--audit", action="store_true", help="compare with the bytes that the operations of a run touch")
    add("--sweep", action="store_true", help="audit every shape of the ranges; list where formula and extent differ")
    declare_page(parser)
