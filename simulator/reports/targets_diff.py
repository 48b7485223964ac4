"""Two targets side by side: which conversions each has, source type by source type."""

from __future__ import annotations

from dataclasses import dataclass

from rich.console import RenderableType

from castsim.isa.formats import FORMATS
from castsim.reports.documents import VERSIONS, Document, document
from castsim.reports.pairs import pair_rows
from castsim.reports.terminal import table
from castsim.targets import Target


@dataclass(frozen=True, slots=True)
class DiffRow:
    """The destinations of one source type on two targets, and what each has alone."""

    src: str
    first: tuple[str, ...]
    second: tuple[str, ...]
    only_first: tuple[str, ...]
    only_second: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class TargetsDiff:
    """All source types that either target casts from, in the order of the format table."""

    first: Target
    second: Target
    rows: tuple[DiffRow, ...]

    def difference(self, row: DiffRow) -> str:
        """Describe what differs."""
        first, second = self.first.name, self.second.name
        if not row.second:
            return f"{first} only"
        if not row.first:
            return f"{second} only"
        parts = [
            f"{name} adds {', '.join(added)}"
            for name, added in ((first, row.only_first), (second, row.only_second))
            if added
        ]
        return "; ".join(parts) or "same"


def targets_diff(first: Target, second: Target) -> TargetsDiff:
    """Compare the legal type pairs of two targets."""
    destinations = [_destinations(target) for target in (first, second)]
    rows = []
    for src in FORMATS:
        here, there = (found.get(src, ()) for found in destinations)
        if here or there:
            alone = tuple(dst for dst in here if dst not in there), tuple(dst for dst in there if dst not in here)
            rows.append(DiffRow(src, here, there, *alone))
    return TargetsDiff(first, second, tuple(rows))


def diff_document(diff: TargetsDiff) -> Document:
    """Return the JSON of a comparison."""
    return {
        "schema_version": VERSIONS["targets-diff"],
        "targets": [diff.first.name, diff.second.name],
        "rows": [
            {
                **document(row, "src", "first", "second", "only_first", "only_second"),
                "difference": diff.difference(row),
            }
            for row in diff.rows
        ],
    }


def diff_text(diff: TargetsDiff) -> RenderableType:
    """Return a comparison as a table."""
    made = table("source", diff.first.name, diff.second.name, "difference")
    for row in diff.rows:
        made.add_row(row.src, ", ".join(row.first) or "-", ", ".join(row.second) or "-", diff.difference(row))
    return made


def _destinations(target: Target) -> dict[str, tuple[str, ...]]:
    found: dict[str, list[str]] = {}
    for row in pair_rows(target):
        held = found.setdefault(row.src, [])
        if row.dst not in held:
            held.append(row.dst)
    return {src: tuple(sorted(held, key=list(FORMATS).index)) for src, held in found.items()}
