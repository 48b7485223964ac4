"""Stale reads as JSON, and in a sentence."""

from __future__ import annotations

from typing import TYPE_CHECKING

from castsim.reports.documents import Document, document

if TYPE_CHECKING:
    from castsim.machines.vliw.findings import Site, StaleRead


def stale_entry(found: StaleRead) -> Document:
    """Return one stale read: both instructions, their bundles, the distances in bundles."""
    return {
        **document(found, "kind", "place", "role", place="register", role="operand"),
        "reader": _site(found.reader),
        "writer": None if found.writer is None else _site(found.writer),
        **document(found, *_DISTANCES, **_IN_BUNDLES),
    }


_DISTANCES = ("distance", "needed", "missing", "first", "times")
_IN_BUNDLES = {
    "distance": "distance_bundles",
    "needed": "needed_bundles",
    "missing": "missing_bundles",
    "first": "first_issued_bundle",
}


def stale_notice(found: tuple[StaleRead, ...] | None) -> str | None:
    """Return the number and first place of stale values that a run left; None if it left none, or was not checked."""
    stale = [each for each in found or () if each.stale]
    if not stale:
        return None
    times = sum(each.times for each in stale)
    often = f", {times} times in all" if times > len(stale) else ""
    what = "1 stale read" if len(stale) == 1 else f"{len(stale)} stale reads"
    return f"{what}{often}: the values are the old ones that the hardware would read; first {stale[0].sentence()}"


def _site(site: Site) -> Document:
    return {"text": site.text, "line": site.span.line, "bundle": site.bundle, "slot": site.slot.name}
