"""Each FILE is a program (.pto, .tpc, .s, .c), a target description (.toml), TOSA text (.mlir) or an ONNX model
(.onnx); - reads standard input. Programs are checked for the target they name, or the one given by --target: syntax,
legality, issue rules, races and flags; nothing is computed. A kernel in C is checked for gaudi2 unless --target says
otherwise. A graph is read and, with --target, planned: nodes that `castsim graph` would not run on the target are
errors. A kernel whose scalar arguments have no values is checked as far as possible without them; --arg gives one a
value.

Exit code 0: no errors; 1: well-formed, but rejected; 2: malformed. With several files, the highest code counts.

examples:
  castsim check kernel.pto
  castsim check kernel.pto --target a5 --arg rows=128
  castsim check kernel.pto kernel.tpc --format github
  castsim check kernel.pto --format sarif > castsim.sarif
"""

from __future__ import annotations

from argparse import ArgumentParser

from castsim.commands.shared_options import declare_arguments, declare_page, declare_statements, declare_target

SUMMARY = "find all errors of programs, targets and graphs without running them"

FORMATS = ("text", "json", "github", "sarif")
"""Shapes of the output."""


def declare(parser: ArgumentParser) -> None:
    """Add the arguments of `check`."""
    add = parser.add_argument
    add(
        "files",
        metavar="FILE",
        nargs="+",
        help="a .pto, .tpc, .s, .c, .toml, .mlir or .onnx file; - reads standard input",
    )
    declare_target(parser, "the one each program names")
    declare_arguments(parser)
    add("--format", metavar="F", default="text", help="text, json, github or sarif; default: text")
    add("--language", metavar="L", help="pto, tpc, c, toml, mlir or onnx, if the suffix does not say")
    declare_statements(parser)
    declare_page(parser)
