"""The outcome of a sweep in words."""

from __future__ import annotations

from rich.text import Text

from castsim.exploration.sweep_studies import Sweep
from castsim.isa.errors import escaped
from castsim.reports.numbers import grouped


def sweep_text(found: Sweep) -> Text:
    """Return what was written, and what failed."""
    rows = f"{grouped(found.rows)} rows in {escaped(str(found.path))}"
    failed = f"; {grouped(found.failed)} of them failed: column error says why" if found.failed else ""
    resumed = f"; {grouped(found.resumed)} of {grouped(found.chunks)} chunks were done before" if found.resumed else ""
    return Text(rows + failed + resumed)
