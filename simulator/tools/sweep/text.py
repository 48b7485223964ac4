"""What a sweep has written, for people."""

from __future__ import annotations

from typing import TYPE_CHECKING

from rich.text import Text

from castsim.isa.errors import escaped
from castsim.reports.numbers import grouped

if TYPE_CHECKING:
    from castsim.tools.sweep.studies import Sweep


def sweep_text(found: Sweep) -> Text:
    """Return the written files and the failed points."""
    rows = f"{grouped(found.rows)} rows in {escaped(str(found.path))}"
    failed = f"; {grouped(found.failed)} of them failed: the column `error` has the reason" if found.failed else ""
    resumed = f"; {grouped(found.resumed)} of {grouped(found.chunks)} chunks were done before" if found.resumed else ""
    return Text(rows + failed + resumed)
