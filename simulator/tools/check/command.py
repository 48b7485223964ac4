"""The command `check`: find all errors in programs, targets and graphs without running them."""

from __future__ import annotations

import json
import re
from argparse import Namespace
from collections.abc import Iterator, Sequence
from pathlib import Path
from textwrap import shorten
from typing import TYPE_CHECKING
from urllib.parse import quote

from castsim import __version__
from castsim.commands.kernels import KernelOptions
from castsim.commands.option_parsers import assignments, limits_of, options_as, refuse, scalars
from castsim.commands.outcome import SCHEMA_VERSION, CommandOutcome, plain
from castsim.isa.errors import SHOWN, ReadError, Severity, escaped, legal_text, pointed_at
from castsim.isa.reading import KERNEL_SUFFIX
from castsim.reports.documents import CommandDocument, Document, says
from castsim.reports.progress import stage_progress
from castsim.targets.loader import load_target
from castsim.tools.check.checking import LANGUAGES, Finding, FolderWalk, check, files_of

if TYPE_CHECKING:
    from rich.console import RenderableType
    from rich.text import Text


FINDING_FORMATS = ("text", "json", "github", "sarif")
"""Output formats of `castsim check --format`."""


class Check(CommandDocument, name="check"):
    """All findings of files."""

    findings: list[Finding] = says("The findings, file by file.")


# What `castsim check` has found, as text, as annotations of GitHub, and as SARIF 2.1.0.

_SARIF = "https://docs.oasis-open.org/sarif/sarif/v2.1.0/errata01/os/schemas/sarif-schema-2.1.0.json"
_STYLES = {Severity.ERROR: "bold red", Severity.WARNING: "bold yellow", Severity.NOTE: "bold cyan"}
_TITLE = 90
"""Number of a message's characters in an annotation's title, the one line that lists of annotations show."""
_COMMANDS = {Severity.ERROR: "error", Severity.WARNING: "warning", Severity.NOTE: "notice"}


_LISTED = 10
"""Number of skipped files that a report lists."""

_AROUND = 8
"""Columns kept before a source line, and for the dots where it is cut."""


def findings_text(findings: Sequence[Finding], walk: FolderWalk, width: int) -> Text:
    """Return findings as text: their number, each with its line and a caret, and the skipped files.

    A line is cut to `width` columns around the caret.
    """
    from rich.text import Text  # noqa: PLC0415 - rich, only if printed

    shown = Text(f"{_counted(findings, len(walk.files))}\n", no_wrap=True)
    for finding in findings:
        shown.append(f"{escaped(_place(finding))}: ").append(finding.severity.value, style=_STYLES[finding.severity])
        shown.append(f": {escaped(finding.message)}\n")
        if finding.span is not None and finding.span.text:
            line, caret = pointed_at(finding.span, min(SHOWN, max(1, width - _AROUND)))
            shown.append(f"  {line}\n").append(f"  {caret}\n", style=_STYLES[finding.severity])
        for line in _cures(finding):
            shown.append(f"  {escaped(line)}\n")
    shown.rstrip()
    if walk.skipped:
        names = [escaped(name) for name in walk.skipped[:_LISTED]]
        names += [f"and {len(walk.skipped) - _LISTED:,} more"] * (len(walk.skipped) > _LISTED)
        files = f"{len(walk.skipped):,} file{'s' * (len(walk.skipped) > 1)}"
        shown.append(
            "\n".join((f"\nskipped {files} of no kind that castsim checks:", *(f"  {name}" for name in names)))
        )
    return shown


def github_lines(findings: Sequence[Finding]) -> Iterator[str]:
    """Yield findings as GitHub workflow commands, which GitHub shows beside the lines."""
    for finding in findings:
        title = f"castsim: {shorten(finding.message, _TITLE, placeholder=' ...')}"
        location = {
            "file": finding.file,
            "line": finding.line,
            "col": finding.column,
            "endColumn": finding.end_column,
            "title": title,
        }
        listed = ",".join(f"{key}={_property(str(value))}" for key, value in location.items() if value is not None)
        yield f"::{_COMMANDS[finding.severity]} {listed}::{_data(chr(10).join((finding.message, *_cures(finding))))}"


def _cures(finding: Finding) -> list[str]:
    """Return the legal alternatives and remedies, one line each."""
    texts = {"legal": legal_text(finding.legal, finding.message, finding.span), "help": finding.help}
    return [f"{word}: {text}" for word, text in texts.items() if text]


def sarif(findings: Sequence[Finding]) -> Document:
    """Return findings as one run of SARIF 2.1.0; columns are code points, and the end column is exclusive."""
    kinds = list(dict.fromkeys(finding.kind for finding in findings))
    rules: list[Document] = [{"id": _rule(kind), "shortDescription": {"text": kind}} for kind in kinds]
    driver: Document = {"name": "castsim", "version": __version__, "rules": rules}
    run: Document = {
        "tool": {"driver": driver},
        "columnKind": "unicodeCodePoints",
        "results": [_result(finding, kinds.index(finding.kind)) for finding in findings],
    }
    return {"$schema": _SARIF, "version": "2.1.0", "runs": [run]}


def _result(finding: Finding, rule: int) -> Document:
    path = Path(finding.file)
    location: Document = {"artifactLocation": {"uri": path.as_uri() if path.is_absolute() else quote(path.as_posix())}}
    if finding.line is not None:
        location["region"] = {
            "startLine": finding.line,
            "startColumn": finding.column,
            "endLine": finding.line,
            "endColumn": finding.end_column,
        }
    return {
        "ruleId": _rule(finding.kind),
        "ruleIndex": rule,
        "level": finding.severity.value,
        "message": {"text": "\n".join((finding.message, *_cures(finding)))},
        "locations": [{"physicalLocation": location}],
    }


def _rule(kind: str) -> str:
    return re.sub(r"[^a-z0-9]+", "-", kind.lower()).strip("-")


def _place(finding: Finding) -> str:
    return finding.file if finding.line is None else f"{finding.file}:{finding.line}:{finding.column}"


def _counted(findings: Sequence[Finding], files: int) -> str:
    where = f"{files:,} file{'s' * (files > 1)}"
    counts = {severity: sum(finding.severity is severity for finding in findings) for severity in Severity}
    listed = [f"{count} {severity.value}{'s' * (count > 1)}" for severity, count in counts.items() if count]
    return f"{' and '.join(filter(None, (', '.join(listed[:-1]), *listed[-1:]))) or 'No issues found'} in {where}."


def _data(text: str) -> str:
    return text.replace("%", "%25").replace("\r", "%0D").replace("\n", "%0A")


def _property(text: str) -> str:
    return _data(text).replace(":", "%3A").replace(",", "%2C")


def execute(options: Namespace) -> CommandOutcome:
    """Check the files.

    Raises:
        ReadError: an option is wrong or the target unknown. Errors in a file are findings.
    """
    if options.format not in FINDING_FORMATS:
        raise ReadError(f"--format {options.format}: unknown format", legal=FINDING_FORMATS)
    if options.language is not None and options.language not in LANGUAGES:
        raise ReadError(f"--language {options.language}: unknown language", legal=LANGUAGES)
    target = None if options.target is None else load_target(options.target)
    args, chosen = scalars(options.args), assignments("--option", options.options)
    limits = limits_of(statements=options.max_statements)
    kernel, walk = options_as(KernelOptions, options), files_of(options.files)
    if not walk.files:
        message = f"no file in {', '.join(map(repr, options.files))} is of a kind that castsim checks"
        raise ReadError(message, legal=(".pto", ".tpc", ".s", ".c", ".toml", ".mlir", ".onnx"))
    if options.language != "c" and not any(file.endswith(KERNEL_SUFFIX) for file in walk.files):
        refuse(kernel.headers, walk.files[0], (KERNEL_SUFFIX,))
    folders, defines = kernel.header_folders(), kernel.macro_texts()
    findings: list[Finding] = []
    with stage_progress(options.quiet, options.json) as progress:
        for number, file in enumerate(walk.files):
            progress(f"check {file}", number, len(walk.files))
            findings += check(
                file,
                target=target,
                args=args,
                language=options.language,
                limits=limits,
                options=chosen,
                defines=defines,
                folders=folders,
            )
    document = {"findings": [finding.as_json() for finding in findings]}

    def text(width: int) -> RenderableType:
        if options.format == "text":
            return findings_text(findings, walk, width)
        if options.format == "github":
            return plain("\n".join(github_lines(findings)))
        shown = sarif(findings) if options.format == "sarif" else {"schema_version": SCHEMA_VERSION, **document}
        return plain(json.dumps(shown, indent=2))

    return CommandOutcome(document, text, code=max((finding.exit_code for finding in findings), default=0))
