"""FUNCTION is reciprocal_scale VALUE..., apply_scale_32 or apply_scale_16 VALUE MULTIPLIER SHIFT, apply_lookup_s
VALUE... with --table of 513 i16, or TABLE VALUE... with --table of 256 i8 or 513 i16; --target runs TABLE as a program
of look-ups of a vector processor. What a function requires and its
arguments do not keep is an error: the result would be unpredictable.

examples:
  castsim tosa reciprocal_scale 3 10
  castsim tosa apply_scale_32 -3 1073741824 33 --double-round
  castsim tosa apply_scale_16 100000 16384 14
  castsim tosa TABLE -5 100 --table entries.npy --target gaudi2
"""

from __future__ import annotations

from argparse import ArgumentParser

SUMMARY = "compute the helper functions of the TOSA specification: scales, look-ups, TABLE"


def declare(parser: ArgumentParser) -> None:
    """Add the arguments of `tosa`."""
    add = parser.add_argument
    add("function", metavar="FUNCTION", help="reciprocal_scale, apply_scale_32, apply_scale_16, apply_lookup_s, TABLE")
    add("values", metavar="VALUE", nargs="+", help="integers")
    add("--double-round", action="store_true", help="apply_scale_32: round in two steps")
    add("--table", metavar="FILE", help="entries of a look-up (.npy)")
    add("--target", metavar="T", help="TABLE: the vector processor that looks the values up")
