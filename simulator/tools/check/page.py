"""The page of findings, by file and line."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence

from castsim.reports.pages.answer_pages import (
    Columns,
    Entry,
    Sections,
    counted,
    listed,
    page_of_document,
    same,
    sentence,
    summary_section,
    table_section,
)


def _checked(document: Entry) -> str:
    """Return the file with findings, or the number of such files."""
    files = list(dict.fromkeys(finding["file"] for finding in document["findings"]))
    return files[0] if len(files) == 1 else counted(len(files), "file")


@page_of_document(
    "check",
    lambda document: f"Check of {_checked(document)}" if document["findings"] else "Check",
    "castsim check",
)
def findings_page(document: Entry) -> Sections:
    """Yield the sections on the findings of `check`."""
    findings = document["findings"]
    counts = Counter(finding["severity"] for finding in findings)
    parts = [counted(counts[severity], severity) for severity in ("error", "warning", "note") if counts[severity]]
    answer = f"{listed(parts)} in {_checked(document)}." if parts else "No errors, warnings or notes."
    yield summary_section(f"{answer[:1].upper()}{answer[1:]}", alarm=bool(counts["error"]))
    columns: Columns = {
        **same("file", "line", "column", "severity"),
        "finding": lambda finding: sentence(finding["message"]),
        "write instead": lambda finding: finding["help"] or _suggested(finding["legal"]),
        **same("kind"),
    }
    yield table_section("Findings", findings, columns, most=100)


_MOST_LEGAL = 5
"""Maximum number of legal values that a finding shows."""


def _suggested(legal: Sequence[str]) -> str:
    """Return the first legal values, and the number of others."""
    more = f" and {len(legal) - _MOST_LEGAL} more" if len(legal) > _MOST_LEGAL else ""
    return ", ".join(legal[:_MOST_LEGAL]) + more
