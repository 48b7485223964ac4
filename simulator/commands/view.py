"""FILE is a program, the JSON of a run, an HTML report (`castsim run --html`) or a trace (`castsim run --trace`).

A program is run, without computing values unless inputs are given, and its report is opened; --option and the others
work as in `castsim run`. For a JSON result, the program named in it is run again and must still take the same number of
cycles. A trace is served on this machine, to this machine only, for the Perfetto UI that comes with the extra `view`;
press Ctrl-C to stop. Without the extra, the address of the public viewer is printed. If both a program and TRACE are
given, the trace must come from that program.

examples:
  castsim view kernel.pto --in x=random:1
  castsim view report.html
  castsim view kernel-trace.json
  castsim view kernel.pto kernel-trace.json --no-open --port 9001
"""

from __future__ import annotations

from argparse import ArgumentParser

from castsim.commands.shared_options import (
    declare_arguments,
    declare_cores,
    declare_entry,
    declare_inputs,
    declare_target,
    declare_target_options,
)

SUMMARY = "open the report of a program in the browser, or a trace in the Perfetto UI"


def declare(parser: ArgumentParser) -> None:
    """Add the arguments of `view`."""
    add = parser.add_argument
    add("file", metavar="FILE", help="a program, the JSON of a run, an HTML report or a trace")
    add("trace", metavar="TRACE", nargs="?", help="a trace of the program FILE")
    add("--no-open", action="store_true", help="open no browser; only print the path or the address")
    add("--port", metavar="N", help="local port that serves a trace; default: any free one")
    add("-o", "--out", metavar="FILE", help="write the report of a program to FILE; default: a temporary file")
    declare_target(parser)
    declare_entry(parser)
    declare_inputs(parser)
    declare_arguments(parser)
    declare_target_options(parser)
    declare_cores(parser)
