"""Reports of a run on request, one module each: `castsim run --report NAME` adds NAME.

A module has a constant `SECTION`, a `castsim.reports.run_report.ReportSection`. The sections of every report are
listed in `castsim.reports.run_findings`.
"""

from __future__ import annotations

from pathlib import Path

RUN = "run"
"""Name of the one-screen report of every run, to which the others add."""

FULL = "full"
"""Name of the report with all sections of `castsim.reports.run_findings`, each at full length."""


def further_reports() -> tuple[str, ...]:
    """Return the reports that can be requested."""
    # Not by pkgutil, which takes longer to import than the help of a command to print.
    files = [file for folder in __path__ for file in Path(folder).iterdir()]
    return tuple(sorted({file.stem for file in files if file.suffix == ".py"} - {"__init__"}))
