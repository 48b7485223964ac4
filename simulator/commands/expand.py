"""Prints the program of vector instructions that a function of tile operations executes on the A5: every operation
is the vecscope of the vector function that its lowering chooses, tloads and tstores are transfers, flags that
the source lacks are there. Entry and arguments have the names of the source, so that the same --in and --arg
apply, and the result, run, gives the same bytes. Loops stay loops. Scalar arguments stay arguments, and what
they decide is decided when the text runs; with --arg for all of them it is decided here. What has no
instructions is refused where it stands.

A function of logical registers (pto.vmi) is printed as the vector instructions that castsim makes of it.

--option sets an option of the target, as in `castsim run`; the text names the options that it needs itself.

examples:
  castsim expand programs/a5_bf16_to_e2m1.pto
  castsim expand programs/a5_bf16_to_e2m1.pto --option ctrl_60_at_start=1 -o micro.pto
"""

from __future__ import annotations

from argparse import ArgumentParser

SUMMARY = "a tile program as the vector instructions that the A5 executes for it"


def declare(parser: ArgumentParser) -> None:
    """Add the arguments of `expand`."""
    add = parser.add_argument
    add("file", metavar="FILE", help="a .pto program of tile operations; - reads standard input")
    add("--target", metavar="T", help="name or path of a target; default: the one that the program names")
    add("--entry", metavar="F", help="function to expand; default: the entry")
    add("--arg", metavar="NAME=VALUE", dest="args", action="append", default=[], help="value of a scalar argument")
    add("--option", metavar="NAME=VALUE", dest="options", action="append", default=[], help="set a target option")
    add("-o", "--out", metavar="FILE", help="write the program to FILE; default: standard output")
