"""Checks of programs, target descriptions and graphs without running them: all errors in one pass."""

from __future__ import annotations

from castsim.commands.feature import Feature
from castsim.commands.shared_options import OptionParser


def _check(parser: OptionParser) -> None:
    """Each FILE is a program (.pto, .tpc, .s, .c), a target description (.toml), TOSA text (.mlir) or an ONNX model
    (.onnx); - reads standard input. A folder means all such files in it and its subfolders; its other files are
    skipped and listed, hidden files and links to folders ignored.

    Programs are checked for the target they name, or the one given by --target: syntax, legality, issue rules,
    races and flags; nothing is computed. A kernel in C is checked for gaudi2 unless --target says otherwise. A
    graph is read and, with --target, planned: nodes that `castsim graph` would not run on the target are errors. A
    kernel whose scalar arguments have no values is checked as far as possible without them; --arg gives one a
    value.

    Exit code 0: no errors; 1: well-formed, but rejected; 2: malformed. With several files, the highest code is
    returned.

    examples:
      castsim check kernel.pto
      castsim check kernel.pto --target a5 --arg rows=128
      castsim check kernels
      castsim check kernel.pto kernel.tpc --format github
      castsim check kernel.c -I include -D WIDTH=64
      castsim check kernel.pto --format sarif > castsim.sarif
    """
    add = parser.add_argument
    what = "a .pto, .tpc, .s, .c, .toml, .mlir or .onnx file, or a folder of them; - reads standard input"
    add("files", metavar="FILE", nargs="+", help=what)
    parser.take(target="the one each program names")
    parser.take("arguments", "headers", "target_options", "toolchain")
    add("--format", metavar="F", default="text", help="text, json, github or sarif; default: text")
    add("--language", metavar="L", help="pto, tpc, c, toml, mlir or onnx, if the suffix does not say")
    parser.take("statements", "page")


FEATURES = (
    Feature(
        "check",
        "run and look",
        "find all errors in programs, targets and graphs without running them",
        _check,
        "castsim.tools.check.command",
        documents=("castsim.tools.check.command:Check",),
        pages=("castsim.tools.check.page",),
        start="castsim check kernel.pto",
    ),
)
