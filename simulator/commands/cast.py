"""A VALUE is a decimal (1.5, -3e-8), a ratio (1/3), a hexadecimal float (0x1.8p+3), nan, inf, -inf, or 0x followed by
the bits of SRC. A number is first rounded to the nearest value of SRC. Without --target, the cast is abstract: one
exact rounding, then --overflow. With a target, it is the chip's own behaviour, including its defaults and fallbacks.
Options may be repeated or take lists: --rounding rint odd. --target all shows the abstract cast side by side with every
target that has the pair and highlights results that differ from the abstract one; ulps counts the steps from the
abstract result to theirs. Where a chip gives tiles whose rows go on behind their valid columns (2d) other bits than
contiguous ones (1d), both are shown. --spec adds what a specification accepts, as NAME@VERSION:ATTRIBUTE=VALUE:..., and
says which results conform to it.

The format string is text as ONNX Cast has it: numbers are read from VALUEs (3.14, 1e-5, INF, -INF, NaN), or written as
plain decimals.

examples:
  castsim cast f32 f16 65520 -1.5 nan
  castsim cast f32 e4m3fn 448.5 0x43e80000 --rounding rint trunc --overflow saturate
  castsim cast f32 i16 40000 -inf --target a2a3 --saturation off --scratch
  castsim cast f32 f16 65520 1e-8 nan --target all --rounding rint odd
  castsim cast f32 e4m3fn 480 nan --target a5 --spec tosa onnx@24:saturate=0
  castsim cast string f32 1e-5 +INF 100.5
  castsim cast f32 string 314.15926
"""

from __future__ import annotations

from argparse import ArgumentParser

from castsim.commands.shared_options import declare_target_options

SUMMARY = "show what values become in another format: bits and numbers per target and mode"


def declare(parser: ArgumentParser) -> None:
    """Add the arguments of `cast`."""
    add = parser.add_argument
    add("src", metavar="SRC", help="format of the values")
    add("dst", metavar="DST", help="format to cast to")
    add("values", metavar="VALUE", nargs="+", help="number, nan, inf, -inf, or 0x bits")
    add(
        "--target",
        metavar="T",
        action="append",
        default=[],
        help="name or path of a target, all, or abstract (default)",
    )
    add("--rounding", metavar="M", action="append", default=[], help="rounding mode; default: the cast's own")
    add("--overflow", metavar="O", action="append", default=[], help="saturate, wrap or special; without a target")
    add("--saturation", metavar="on|off", help="saturation switch of the target")
    add(
        "--spec",
        metavar="S",
        action="append",
        default=[],
        help="specification to judge by: tosa, onnx, exact, or a path",
    )
    add("--scratch", action="store_true", help="give the target's cast a tmp tile")
    declare_target_options(parser, "set an option of the targets that have it")
