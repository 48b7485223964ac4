"""Findings as the diagnostics of an editor."""

from __future__ import annotations

from collections.abc import Sequence

from lsprotocol.types import Diagnostic, DiagnosticSeverity, Position, Range

from castsim.checking import Finding, Severity
from castsim.editor.positions import Places

SOURCE = "castsim"
"""What diagnostics name as their origin."""

MOST = 500
"""Diagnostics of a text that are shown, errors before all others."""

_SEVERITIES = {
    Severity.ERROR: DiagnosticSeverity.Error,
    Severity.WARNING: DiagnosticSeverity.Warning,
    Severity.NOTE: DiagnosticSeverity.Information,
}
_TOP = Range(Position(0, 0), Position(0, 0))


def diagnostics(findings: Sequence[Finding], places: Places) -> list[Diagnostic]:
    """Return findings as diagnostics; of more than `MOST` the last one says how many are left out."""
    shown = findings
    if len(findings) > MOST:
        shown = sorted(findings, key=lambda one: list(_SEVERITIES).index(one.severity))[:MOST]
    found = [diagnostic(one, places) for one in shown]
    if len(findings) > MOST:
        text = f"{len(findings) - MOST:,} more findings; `castsim check` lists them"
        found.append(Diagnostic(_TOP, text, severity=DiagnosticSeverity.Information, source=SOURCE))
    return found


def diagnostic(found: Finding, places: Places) -> Diagnostic:
    """Return a finding as a diagnostic; one about the whole text stands at its beginning."""
    message = found.message
    message += f"\nlegal: {', '.join(found.legal)}" if found.legal else ""
    message += f"\nhelp: {found.help}" if found.help else ""
    return Diagnostic(
        range_of(found, places), message, severity=_SEVERITIES[found.severity], code=found.kind, source=SOURCE
    )


def range_of(found: Finding, places: Places) -> Range:
    """Return the range of a finding."""
    if found.line is None or found.column is None:
        return _TOP
    return places.range(found.line, found.column, found.end_column or found.column + 1)
