"""Kernels in C++ of any library: compiled for the host, executed once in a child process, recorded as a program."""

from __future__ import annotations

from castsim.commands.feature import Feature
from castsim.commands.shared_options import OptionParser


def _record(parser: OptionParser) -> None:
    """Compiles a kernel in PTO C++ with the system's compiler and castsim's own header, runs it once on this
    machine, and writes what it did as a .pto program: tiles, transfers, operations, flags, each with its line. The
    kernel is executed with your rights: record only what you would run.

    Arrays that decide its path are given by --in, scalar parameters by --arg; --arg NAME=0 makes a pointer null.

    examples:
      castsim record kernel.cpp --arg n=4096 --out kernel.pto
      castsim record kernel.cpp --block 3/8 -D ROWS=16 -I include --arg n=4096 --out kernel.pto
    """
    parser.add_argument("program", metavar="KERNEL.cpp", help="a kernel in C++")
    parser.take(target="a2a3", entry="record")
    parser.take("inputs", "arguments", "kernel", "target_options")
    parser.add_argument("-o", "--out", metavar="FILE", help="write the program to FILE; default: standard output")
    parser.take("statements")


FEATURES = (
    Feature(
        "record",
        "run and look",
        "run a PTO C++ kernel, and save its actions as a .pto program",
        _record,
        "castsim.languages.cpp_recording.kernels",
        documents=("castsim.languages.cpp_recording.kernels:Recorded",),
    ),
)
