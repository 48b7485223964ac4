"""Stale reads and lint findings as JSON."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from simulator.vliw.findings import Site, StaleRead
    from simulator.vliw.lint import Finding


def stale_entry(found: StaleRead) -> dict[str, Any]:
    """Return one stale read: both instructions, their bundles, the distances in bundles."""
    return {
        "kind": str(found.kind),
        "register": found.place,
        "operand": found.role,
        "reader": _site(found.reader),
        "writer": None if found.writer is None else _site(found.writer),
        "distance_bundles": found.distance,
        "needed_bundles": found.needed,
        "missing_bundles": found.missing,
        "first_issued_bundle": found.first,
        "times": found.times,
    }


def finding_entry(found: Finding) -> dict[str, Any]:
    """Return one lint finding."""
    return {"rule": found.rule, "bundle": found.bundle, "line": found.span.line, "message": found.message}


def _site(site: Site) -> dict[str, Any]:
    return {"text": site.text, "line": site.span.line, "bundle": site.bundle, "slot": site.slot.name}
