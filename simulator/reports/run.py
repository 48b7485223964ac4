"""The report of a run, made of its sections."""

from __future__ import annotations

from importlib import import_module

from rich.console import Group, RenderableType

from castsim.reports import sections
from castsim.reports.documents import VERSIONS, Document
from castsim.reports.run_report import RunReport
from castsim.reports.section import ReportSection
from castsim.reports.sections import PRINTED, SUMMARY

DOCUMENTED = (
    "head",
    "pipes",
    "lines",
    "launches",
    "path",
    "choices",
    "opaque",
    "outputs",
    "casts",
    "facts",
    "warnings",
    "synchronisation",
    "races",
    "operations",
    "stale_reads",
    "what_if",
    "lint",
)
"""The sections of every report that have data, in the order of their keys."""


def section(name: str) -> ReportSection:
    """Return the section of a name."""
    found: ReportSection = import_module(f"{sections.__name__}.{name}").SECTION  # only those in use are loaded
    return found


def run_document(report: RunReport) -> Document:
    """Return the report as JSON; units are in the names, a file is null if it was not written.

    Tile programs add `synchronisation` and `races`, those with vector operations `operations`, those of vector
    instructions `launches` and `races`, those whose path rests on elements that they read `path_decided_by`, those
    whose results depend on a choice that the text leaves open `choices`, those whose casts were computed `casts`, those
    with opaque operations `placeholders`, and `outputs_not_computed` where outputs rest on them, `outputs_undefined`
    where they rest on what nothing wrote; exposed pipelines add `stale_reads` and name the first among the warnings, a
    lint run adds `lint` and `lint_possible`.
    """
    found: Document = {"schema_version": VERSIONS["run"]}
    for name in (*DOCUMENTED, *report.further):
        part = section(name)
        keys = part.data(report)
        found |= dict.fromkeys(keys) if part.of_time and report.result.untimed else keys
    return found


def run_text(report: RunReport, width: int) -> RenderableType:
    """Return the text of the report for a terminal of `width` columns."""
    sections = [section(name) for name in (SUMMARY if report.summary else (*PRINTED, *report.further))]
    shown = (each for each in sections if not (each.of_time and report.result.untimed))
    return Group(*(part for each in shown for part in each.text(report, width)))
