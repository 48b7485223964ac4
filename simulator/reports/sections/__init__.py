"""The reports of a run that are made only if asked for, one module each: `castsim run --report NAME` adds NAME.

A module has a constant `SECTION`, a `castsim.reports.run_report.ReportSection`. The sections of every report are
listed in `castsim.reports.run_findings`.
"""

from __future__ import annotations

from pathlib import Path

RUN = "run"
"""The report of every run, one screen, to which the others add."""

FULL = "full"
"""The report with all sections of `castsim.reports.run_findings`, each at full length."""


def further_reports() -> tuple[str, ...]:
    """Return the reports that may be asked for."""
    # Not by pkgutil, which takes longer to import than the help of a command to print.
    files = [file for folder in __path__ for file in Path(folder).iterdir()]
    return tuple(sorted({file.stem for file in files if file.suffix == ".py"} - {"__init__"}))
