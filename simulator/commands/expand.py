"""Prints the vector instructions that the A5 executes for a function of tile operations: each operation becomes the
vecscope of the vector function chosen by its lowering, tloads and tstores become transfers, and flags missing from the
source are added. The entry and its arguments keep their names, so the same --in and --arg apply, and running the result
gives the same bytes. Loops stay loops. Scalar arguments stay arguments, and choices that depend on them are made when
the text is run; if --arg gives all of them, the choices are made here. An operation that has no instructions is
rejected with its location.

A function of logical registers (pto.vmi) is printed as the vector instructions that castsim makes of it, and so is a
kernel of TileLang, whose file is executed for it.

--option sets an option of the target, as in `castsim run`; the output itself names the options it needs.

examples:
  castsim expand programs/a5_bf16_to_e2m1.pto
  castsim expand kernel.py:per_token --arg num_tokens=32
  castsim expand programs/a5_bf16_to_e2m1.pto --option ctrl_60_at_start=1 -o micro.pto
"""

from __future__ import annotations

from argparse import ArgumentParser

from castsim.commands.shared_options import (
    declare_arguments,
    declare_page,
    declare_target,
    declare_target_options,
    declare_tilelang,
)

SUMMARY = "print a tile program as the vector instructions that the A5 executes for it"


def declare(parser: ArgumentParser) -> None:
    """Add the arguments of `expand`."""
    add = parser.add_argument
    add("file", metavar="FILE", help="a .pto program of tile operations, or KERNEL.py:FUNCTION; - reads stdin")
    declare_target(parser)
    add("--entry", metavar="F", help="function to expand; default: the entry")
    declare_arguments(parser)
    declare_target_options(parser)
    declare_tilelang(parser)
    add("-o", "--out", metavar="FILE", help="write the program to FILE; default: standard output")
    declare_page(parser)
