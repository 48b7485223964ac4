"""NAME may leave out __builtin_cast_; without NAME the builtins are listed. Of a cast the array x holds the elements
of all source registers one after the other, of one call or several; f16_to_f32 takes codes of f16 as uint32, the upper
halves 0, and warns of others, such as random ones. --rounding is the build option of the helpers on goya and
gaudi; elsewhere it is what the rounding register is set to. Special functions take arrays of any size, x, y or rc;
short names do where they are unique (cos, div_fast). A table that the vendor does not publish is an input too
(rcp=FILE.npy: c0, c1, c2 of each interval); without it the values are correctly rounded and named as not claimed.
Functions of tensor descriptors take numbers by --arg. The assembly runs as it is: castsim run FILE.tpc.

examples:
  castsim builtin i16_to_i8_lin_order --target goya
  castsim builtin i32_to_i16_lin_order --target gaudi2 --in x=random:1 --arg shift=-4 --out results
  castsim builtin f32_to_u8_lin_order --target greco --emit > f32_to_u8.tpc
  castsim builtin __builtin_v_tan_cephes_f32 --target gaudi --in x=random:1 --in rcp=random:2
  castsim builtin get_dim_stride --target gaudi --arg tensor=0 --arg dimension=1
  castsim builtin i16_to_32bits --target gaudib --in x=zeros --option unpacked_lane_order=every_second
"""

from __future__ import annotations

from argparse import ArgumentParser

SUMMARY = "builtins of TPC-C, casts and special functions: assembly, operation count, lane order and values"


def declare(parser: ArgumentParser) -> None:
    """Add the arguments of `builtin`."""
    add = parser.add_argument
    add("name", metavar="NAME", nargs="?", help="a builtin; none lists them")
    add("--target", metavar="T", help="name or path of a target description; without NAME all by default")
    add("--emit", action="store_true", help="print the assembly only")
    add(
        "--in",
        metavar="NAME=...",
        dest="inputs",
        action="append",
        default=[],
        help="x=FILE.npy|random:SEED|zeros; y, rc, tables",
    )
    add(
        "--arg",
        metavar="NAME=VALUE",
        dest="args",
        action="append",
        default=[],
        help="shift=INTEGER or scale=NUMBER; numbers of a function",
    )
    add("--out", metavar="DIR", help="write the result to DIR/y.npy (z.npy of several operands)")
    add("--rounding", metavar="M", help="rounding mode in the words of the assembly")
    add("--option", metavar="NAME=VALUE", dest="options", action="append", default=[], help="set a target option")
