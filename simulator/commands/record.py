"""Compiles a kernel in PTO C++ with the system's compiler and castsim's own header, runs it once on this machine, and
writes what it did as a .pto program: tiles, transfers, operations, flags, each with its line. The kernel is executed
with your rights: record only what you would run.

Arrays that decide its path are given by --in, scalar parameters by --arg; --arg NAME=0 makes a pointer null.

examples:
  castsim record kernel.cpp --arg n=4096 --out kernel.pto
  castsim record kernel.cpp --block 3/8 -D ROWS=16 -I include --arg n=4096 --out kernel.pto
"""

from __future__ import annotations

from argparse import Namespace

from rich.text import Text

from castsim.commands.asm import write_out
from castsim.commands.kernels import is_cpp, recording_of
from castsim.commands.option_parsers import statements_of
from castsim.commands.outcome import CommandOutcome
from castsim.commands.shared_options import OptionParser
from castsim.execution.run_limits import Limits
from castsim.isa.errors import ReadError
from castsim.reports.documents import json_of


def declare(parser: OptionParser) -> None:
    """Add the arguments of `record`."""
    parser.add_argument("program", metavar="KERNEL.cpp", help="a kernel in C++")
    parser.take(target="a2a3", entry="record")
    parser.take("inputs", "arguments", "kernel", "target_options")
    parser.add_argument("-o", "--out", metavar="FILE", help="write the program to FILE; default: standard output")
    parser.take("statements")


def execute(options: Namespace) -> CommandOutcome:
    """Compile and execute the kernel, and write the recorded program.

    Raises:
        CastsimError, EngineError: see `castsim.pto_cpp.record`; also for a wrong option.
    """
    if not is_cpp(options.program):
        raise ReadError(f"'{options.program}' is not a C++ kernel", legal=("KERNEL.cpp",))
    recording = recording_of(options, Limits(statements_of(options)))
    written = recording.pto_text()
    path = write_out(options.out, written.encode(), options.program)
    statements = len(recording.program.functions[0].body or ())
    document = {
        "program": options.program,
        "blocks": recording.blocks,
        "statements": statements,
        "text": written,
        "output": json_of(path),
    }

    return CommandOutcome(
        document,
        lambda _width: Text(
            written.rstrip() if path is None else f"{statements} statements written to {path}",
            no_wrap=path is None,
            overflow="ignore",
        ),
    )
