"""Auditing scratch sizes over ranges of shapes, with a progress bar."""

from __future__ import annotations

import sys
from collections import Counter
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field

from simulator.strided.audit import ScratchAudit, ScratchAuditor

SHOWN = 5
"""Example shapes kept per reason."""

_INTERVAL = 512
"""Shapes between two movements of the bar."""


@dataclass(slots=True)
class Sweep:
    """All shapes of a sweep: how many agree to the byte, and the others by reason with some examples."""

    auditor: ScratchAuditor
    shapes: int = 0
    equal: int = 0
    reasons: Counter[str] = field(default_factory=Counter)
    examples: dict[str, list[ScratchAudit]] = field(default_factory=dict)
    smaller: int = 0
    explained: bool = True

    def add(self, audit: ScratchAudit) -> None:
        """Count one shape."""
        self.shapes += 1
        self.smaller += audit.need.total < audit.exact
        self.explained &= audit.explained
        if not audit.reasons:
            self.equal += 1
        for reason in audit.reasons:
            self.reasons[reason] += 1
            shown = self.examples.setdefault(reason, [])
            if len(shown) < SHOWN:
                shown.append(audit)


def sweep(auditor: ScratchAuditor, rows: range, cols: range, strides: range | None) -> Sweep:
    """Audit every shape whose columns fit its row stride; a stride must be whole blocks of the source."""
    found = Sweep(auditor)
    for rows_, cols_, stride in _watched(list(shapes(auditor, rows, cols, strides))):
        found.add(auditor.audit(rows_, cols_, stride))
    return found


def shapes(auditor: ScratchAuditor, rows: range, cols: range, strides: range | None) -> Iterator[tuple[int, int, int]]:
    """Yield (rows, cols, stride) of a sweep; without strides each number of columns has the packed one."""
    for col in cols:
        fitting = [auditor.packed_stride(col)] if strides is None else [s for s in strides if auditor.takes(col, s)]
        for stride in fitting:
            for row in rows:
                yield row, col, stride


def _watched(items: list[tuple[int, int, int]]) -> Iterable[tuple[int, int, int]]:
    """Show a bar on a terminal."""
    if not sys.stderr.isatty() or len(items) < _INTERVAL:
        return items
    from rich.console import Console  # noqa: PLC0415 - only a watched sweep pays for it
    from rich.progress import track  # noqa: PLC0415

    return track(items, "shapes", console=Console(stderr=True), transient=True)
