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

import json
from argparse import Namespace
from typing import TYPE_CHECKING

from castsim.commands.option_parsers import scalars_of, statements_of
from castsim.commands.outcome import SCHEMA_VERSION, CommandOutcome, plain
from castsim.commands.shared_options import OptionParser
from castsim.execution.run_limits import Limits
from castsim.exploration.checking import LANGUAGES, Finding, check
from castsim.isa.errors import ReadError
from castsim.reports.checks import finding_entry, findings_text, github_lines, sarif
from castsim.targets import load_target

if TYPE_CHECKING:
    from rich.console import RenderableType


FORMATS = ("text", "json", "github", "sarif")
"""Shapes of the output."""


def declare(parser: OptionParser) -> None:
    """Add the arguments of `check`."""
    add = parser.add_argument
    what = "a .pto, .tpc, .s, .c, .toml, .mlir or .onnx file; - reads standard input"
    add("files", metavar="FILE", nargs="+", help=what)
    parser.take(target="the one each program names")
    parser.take("arguments")
    add("--format", metavar="F", default="text", help="text, json, github or sarif; default: text")
    add("--language", metavar="L", help="pto, tpc, c, toml, mlir or onnx, if the suffix does not say")
    parser.take("statements", "page")


def execute(options: Namespace) -> CommandOutcome:
    """Check the files.

    Raises:
        ReadError: what was typed; an unknown target. What is wrong with a file is a finding.
    """
    if options.format not in FORMATS:
        raise ReadError(f"--format {options.format}: unknown format", legal=FORMATS)
    if options.language is not None and options.language not in LANGUAGES:
        raise ReadError(f"--language {options.language}: unknown language", legal=LANGUAGES)
    target = None if options.target is None else load_target(options.target)
    args = scalars_of(options)
    limits = Limits(statements_of(options))
    found: list[Finding] = []
    for file in dict.fromkeys(options.files):
        found += check(file, target=target, args=args, language=options.language, limits=limits)
    document = {"findings": [finding_entry(one) for one in found]}

    def text(_: int) -> RenderableType:
        if options.format == "text":
            return findings_text(found, len(options.files))
        if options.format == "github":
            return plain("\n".join(github_lines(found)))
        shown = sarif(found) if options.format == "sarif" else {"schema_version": SCHEMA_VERSION, **document}
        return plain(json.dumps(shown, indent=2))

    return CommandOutcome(document, text, code=max((one.exit_code for one in found), default=0))
