"""The execution of `castsim check`."""

from __future__ import annotations

import json
from argparse import Namespace
from typing import TYPE_CHECKING

from castsim.checking import LANGUAGES, Finding, check
from castsim.commands.check import FORMATS
from castsim.commands.option_parsers import assignments, scalar, statements_of
from castsim.commands.outcome import SCHEMA_VERSION, Outcome
from castsim.execution.run_limits import Limits
from castsim.isa.errors import ReadError
from castsim.reports.checks import finding_entry, findings_text, github_lines, sarif
from castsim.targets import load_target

if TYPE_CHECKING:
    from rich.console import RenderableType


def execute(options: Namespace) -> Outcome:
    """Check the files.

    Raises:
        ReadError: what was typed; an unknown target. What is wrong with a file is a finding.
    """
    if options.format not in FORMATS:
        raise ReadError(f"--format {options.format}: unknown format", legal=FORMATS)
    if options.language is not None and options.language not in LANGUAGES:
        raise ReadError(f"--language {options.language}: unknown language", legal=LANGUAGES)
    target = None if options.target is None else load_target(options.target)
    args = {name: scalar(name, text) for name, text in assignments("--arg", options.args).items()}
    limits = Limits(statements_of(options))
    found: list[Finding] = []
    for file in dict.fromkeys(options.files):
        found += check(file, target=target, args=args, language=options.language, limits=limits)
    document = {"findings": [finding_entry(one) for one in found]}

    def text(_: int) -> RenderableType:
        from rich.text import Text  # noqa: PLC0415 - rich, only if printed

        if options.format == "text":
            return findings_text(found, len(options.files))
        if options.format == "github":
            return Text("\n".join(github_lines(found)), no_wrap=True)
        shown = sarif(found) if options.format == "sarif" else {"schema_version": SCHEMA_VERSION, **document}
        return Text(json.dumps(shown, indent=2), no_wrap=True)

    return Outcome(document, text, code=max((one.exit_code for one in found), default=0))
