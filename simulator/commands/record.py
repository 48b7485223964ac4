"""Compiles a kernel in PTO C++ with the system's compiler and castsim's own header, runs it once on this machine, and
writes what it did as a .pto program: tiles, transfers, operations, flags, each with its line. The kernel is executed
with your rights: record only what you would run.

Arrays that decide its path are given by --in, scalar parameters by --arg; --arg NAME=0 makes a pointer null.

examples:
  castsim record kernel.cpp --arg n=4096 --out kernel.pto
  castsim record kernel.cpp --block 3/8 -D ROWS=16 -I include --arg n=4096 --out kernel.pto
"""

from __future__ import annotations

from argparse import ArgumentParser

from castsim.commands.shared_options import (
    declare_arguments,
    declare_entry,
    declare_inputs,
    declare_kernel,
    declare_statements,
    declare_target,
    declare_target_options,
)

SUMMARY = "compile and execute a kernel in PTO C++, and write what it does as a .pto program"


def declare(parser: ArgumentParser) -> None:
    """Add the arguments of `record`."""
    parser.add_argument("program", metavar="KERNEL.cpp", help="a kernel in C++")
    declare_target(parser, "a2a3")
    declare_entry(parser, "record")
    declare_inputs(parser)
    declare_arguments(parser)
    declare_kernel(parser)
    declare_target_options(parser)
    parser.add_argument("-o", "--out", metavar="FILE", help="write the program to FILE; default: standard output")
    declare_statements(parser)
