"""The report of a run, made of its sections."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from importlib import import_module

from rich.console import Group, RenderableType

from castsim.reports import run_cycles, run_findings, run_outcomes, sections
from castsim.reports.documents import VERSIONS, CommandDocument, Document, Keys, says
from castsim.reports.run_report import ReportSection, RunReport
from castsim.reports.schemas.keys import Cycles

PRINTED: Mapping[str, ReportSection] = {
    "notice": run_findings.NOTICE,
    "head": run_cycles.HEAD,
    "warnings": run_findings.WARNINGS,
    "races": run_findings.RACES,
    "pipes": run_cycles.PIPES,
    "lines": run_cycles.LINES,
    "casts": run_outcomes.CASTS,
    "launches": run_cycles.LAUNCHES,
    "path": run_outcomes.PATH,
    "choices": run_outcomes.CHOICES,
    "opaque": run_outcomes.OPAQUE,
    "synchronisation": run_findings.SYNCHRONISATION,
    "buffers": run_cycles.BUFFERS,
    "outputs": run_outcomes.OUTPUTS,
    "operations": run_outcomes.OPERATIONS,
    "stale_reads": run_findings.STALE_READS,
    "lint": run_findings.LINT,
    "what_if": run_cycles.WHAT_IF,
    "facts": run_cycles.FACTS,
}
"""The sections of every report, in the order of the text: the answer, what is wrong, the tables, the outputs."""

SUMMARY = ("notice", "head", "what_if", "warnings", "races", "outputs", "facts")
"""Those of a report that is to fit a screen."""

DOCUMENTED = (
    "head", "pipes", "lines", "launches", "path", "choices", "opaque", "outputs", "casts", "facts", "warnings",
    "synchronisation", "races", "operations", "stale_reads", "what_if", "lint",
)  # fmt: skip
"""The sections of every report that have data, in the order of their keys."""


def section(name: str) -> ReportSection:
    """Return the section of a name, of every report or a further one."""
    if name in PRINTED:
        return PRINTED[name]
    found: ReportSection = import_module(f"{sections.__name__}.{name}").SECTION  # only those in use are loaded
    return found


class CoreEntry(Keys):
    """A core of a kernel in C++ that ran on all of its cores."""

    block: int = says("Its number, from 0.")
    cycles: Cycles = says("Its cycles.")


class CoresKeys(Keys):
    """The cores, which the command adds."""

    cores: list[CoreEntry] = says(optional=True)
    """With `--all-blocks`: every core; the document is of the longest."""


class Run(CommandDocument, name="run"):
    """A program that ran. Where no cycles are modelled, what tells of time is null and `untimed` says why."""

    @classmethod
    def further_keys(cls) -> Sequence[type[Keys]]:
        """Return the keys of its sections."""
        return [*(section(name).keys for name in (*DOCUMENTED, *sections.further_reports())), CoresKeys]


def run_document(report: RunReport) -> Document:
    """Return the report as JSON; units are in the names, a file is null if it was not written."""
    found: Document = {"schema_version": VERSIONS[Run.NAME]}
    for name in (*DOCUMENTED, *report.further):
        part = section(name)
        keys = part.keys.of(report)
        found |= dict.fromkeys(keys) if part.of_time and report.result.untimed else keys
    return found


def run_text(report: RunReport, width: int) -> RenderableType:
    """Return the text of the report for a terminal of `width` columns."""
    named = [section(name) for name in (SUMMARY if report.summary else (*PRINTED, *report.further))]
    shown = (each for each in named if not (each.of_time and report.result.untimed))
    return Group(*(part for each in shown for part in each.text(report, width)))
