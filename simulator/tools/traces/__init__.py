"""Viewers of reports and traces in the browser."""

from __future__ import annotations

from castsim.commands.feature import Feature
from castsim.commands.shared_options import OptionParser


def _view(parser: OptionParser) -> None:
    """FILE is a program, the JSON of a run, an HTML report (`castsim run --html`) or a trace (`castsim run
    --trace`).

    A program is run, without computing values unless inputs are given, and its report is opened; --option and the
    others work as in `castsim run`. The page of a JSON result shows what the file holds: nothing that it names is
    opened or run. A trace is served on this machine, to this machine only, for the Perfetto UI that comes with the
    extra `view`; press Ctrl-C to stop. Without the extra, the address of the public viewer is printed. If both a
    program and TRACE are given, the trace must come from that program.

    examples:
      castsim view kernel.pto --in x=random:1
      castsim view report.html
      castsim view kernel-trace.json
      castsim view kernel.pto kernel-trace.json --no-open --port 9001
    """
    add = parser.add_argument
    add("file", metavar="FILE", help="a program, the JSON of a run, an HTML report or a trace")
    add("trace", metavar="TRACE", nargs="?", help="a trace of program FILE")
    add("--no-open", action="store_true", help="print the path or address instead of opening a browser")
    add("--port", metavar="N", help="local port that serves a trace; default: any free port")
    add("-o", "--out", metavar="FILE", help="write the report to FILE; default: a temporary file")
    parser.take("target", "entry", "inputs", "arguments", "target_options", "toolchain", "cores")


FEATURES = (
    Feature(
        "view",
        "run and look",
        "open a program's report in the browser, or a trace in the Perfetto UI",
        _view,
        "castsim.tools.traces.command",
        documents=("castsim.tools.traces.command:Viewed",),
        interactive=True,
    ),
)
