"""Auditing scratch sizes over ranges of shapes, with a progress bar."""

from __future__ import annotations

import sys
from bisect import bisect_left
from collections import Counter
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field

from castsim.isa.errors import IllegalError
from castsim.machines.strided.audit import ScratchAudit, ScratchAuditor

SHOWN = 5
"""Example shapes kept per reason."""

MOST = 1_000_000
"""Shapes of the largest sweep: some minutes, if they have few rows."""

_MANY = 10_000
"""Shapes that take seconds, so that it is said how many there are."""


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


def sweep(auditor: ScratchAuditor, rows: range, cols: range, strides: range | None, *, quiet: bool = False) -> Sweep:
    """Audit every shape whose columns fit its row stride; a stride must be whole blocks of the source.

    Many shapes are announced on standard error, with a bar if that is a terminal, unless `quiet`.

    Raises:
        IllegalError: more than `MOST` shapes.
    """
    count = shape_count(auditor, rows, cols, strides)
    if count > MOST:
        raise IllegalError(
            f"the ranges have {count} shapes: {len(rows)} rows, {len(cols)} columns"
            + ("" if strides is None else f", {len(strides)} row strides"),
            legal=(f"up to {MOST} shapes; a larger step, such as FIRST:LAST:{-(-count // MOST)}, makes fewer",),
        )
    found = Sweep(auditor)
    for rows_, cols_, stride in _watched(shapes(auditor, rows, cols, strides), count, quiet=quiet):
        found.add(auditor.audit(rows_, cols_, stride))
    return found


def shapes(auditor: ScratchAuditor, rows: range, cols: range, strides: range | None) -> Iterator[tuple[int, int, int]]:
    """Yield (rows, cols, stride) of a sweep; without strides each number of columns has the packed one."""
    for col in cols:
        fitting = [auditor.packed_stride(col)] if strides is None else [s for s in strides if auditor.takes(col, s)]
        for stride in fitting:
            for row in rows:
                yield row, col, stride


def shape_count(auditor: ScratchAuditor, rows: range, cols: range, strides: range | None) -> int:
    """Return the number of shapes that `shapes` yields, without making them."""
    if strides is None:
        return len(rows) * len(cols)
    whole = [stride for stride in strides if auditor.takes(0, stride)]
    return len(rows) * sum(len(whole) - bisect_left(whole, col) for col in cols)


def _watched(items: Iterator[tuple[int, int, int]], count: int, *, quiet: bool) -> Iterable[tuple[int, int, int]]:
    """Announce many shapes; show a bar on a terminal."""
    if quiet or count < _MANY:
        return items
    if not sys.stderr.isatty():
        print(f"{count} shapes to audit", file=sys.stderr)
        return items
    return _with_bar(items, count)


def _with_bar(items: Iterator[tuple[int, int, int]], count: int) -> Iterator[tuple[int, int, int]]:
    from castsim.reports.bars import bars  # noqa: PLC0415 - only a watched sweep pays for rich

    with bars() as shown:
        yield from shown.track(items, total=count, description=f"{count} shapes")
