"""The sections of the report of a run, one module each; its name is that of the section.

Those of `PRINTED` make up every report. Each other module is a report of its own: `castsim run --report NAME` adds the
section NAME. A module has a constant `SECTION`, a `castsim.reports.section.ReportSection`.
"""

from __future__ import annotations

from pathlib import Path

RUN = "run"
"""The report of every run, to which the others add."""

PRINTED = (
    "notice",
    "head",
    "warnings",
    "races",
    "pipes",
    "lines",
    "casts",
    "launches",
    "path",
    "choices",
    "opaque",
    "synchronisation",
    "buffers",
    "outputs",
    "operations",
    "stale_reads",
    "lint",
    "what_if",
    "facts",
)
"""The sections of every report, in the order of the text: the answer, what is wrong, the tables, the outputs."""

SUMMARY = ("notice", "head", "what_if", "warnings", "races", "outputs", "facts")
"""Those of a report that is to fit a screen."""


def further_reports() -> tuple[str, ...]:
    """Return the reports that may be asked for: the sections that are not part of every report."""
    # Not by pkgutil, which takes longer to import than the help of a command to print.
    files = [file for folder in __path__ for file in Path(folder).iterdir()]
    return tuple(sorted({file.stem for file in files if file.suffix == ".py"} - {"__init__", *PRINTED}))
