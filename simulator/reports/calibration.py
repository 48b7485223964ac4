"""A calibration as JSON: every parameter and every row, before and after."""

from __future__ import annotations

from castsim.evidence.calibration import Calibration, misfits
from castsim.reports.documents import Document, document

_PLACES = 4


def calibration_document(found: Calibration, out: str) -> Document:
    """Return the JSON of a calibration."""
    before, after = (found.errors(cycles) for cycles in (found.before, found.after))
    return {
        "target": found.target.name,
        "file": found.table.file,
        "out": out,
        "residual_before_percent": round(found.deviation(found.before), _PLACES),
        "residual_percent": round(found.deviation(found.after), _PLACES),
        "warnings": list(misfits(found)),
        "parameters": [
            document(each, "path", "before", "value", "standard_error", "low", "high", "at_bound", "rows")
            for each in found.parameters
        ],
        "rows": [
            {
                "line": row.span.line,
                "operation": row.label,
                "src": row.src.name,
                "dst": row.dst.name,
                "measured_cycles": row.measured_cycles,
                "before_cycles": found.before[number],
                "after_cycles": found.after[number],
                "before_percent": round(before[number], _PLACES),
                "after_percent": round(after[number], _PLACES),
            }
            for number, row in enumerate(found.table.rows)
        ],
    }
