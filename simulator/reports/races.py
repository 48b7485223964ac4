"""Races as data."""

from __future__ import annotations

from typing import Any

from simulator.races import Finding


def race_entry(found: Finding) -> dict[str, Any]:
    """Return a finding as JSON; bytes are null where none are concerned, `last_byte` belongs to them."""
    region = found.region
    return {
        "kind": str(found.kind),
        "message": found.message,
        "missing": found.missing or None,
        "lines": [span.line for span in found.spans],
        "pipes": list(found.pipes),
        "space": region.space if region else None,
        "first_byte": region.start if region else None,
        "last_byte": region.end - 1 if region else None,
    }
