"""Two targets side by side: which conversions each has, source type by source type, and the facts that differ."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from rich.console import Group, RenderableType
from rich.text import Text

from castsim.isa.formats import FORMATS
from castsim.reports.documents import VERSIONS, Document, document
from castsim.reports.facts import NamedFact, described, facts_of
from castsim.reports.pairs import pair_rows
from castsim.reports.terminal import indented, table
from castsim.targets import Target


@dataclass(frozen=True, slots=True)
class DiffRow:
    """The destinations of one source type on two targets, and what each has alone."""

    src: str
    first: tuple[str, ...]
    second: tuple[str, ...]
    only_first: tuple[str, ...]
    only_second: tuple[str, ...]


_SHOWN = 40
"""Facts that the text shows; JSON has all."""


@dataclass(frozen=True, slots=True)
class ChangedFact:
    """A fact by its path, on two targets; None on one that lacks it. Sources and notes do not count."""

    name: str
    first: NamedFact | None
    second: NamedFact | None


@dataclass(frozen=True, slots=True)
class TargetsDiff:
    """All source types that either target casts from, in the order of the format table, and the facts that differ."""

    first: Target
    second: Target
    rows: tuple[DiffRow, ...]
    facts: tuple[ChangedFact, ...]

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
    return TargetsDiff(first, second, tuple(rows), tuple(_changed_facts(first, second)))


def _changed_facts(first: Target, second: Target) -> Iterator[ChangedFact]:
    here, there = ({fact.name: fact for fact in facts_of(target)} for target in (first, second))
    for name in dict.fromkeys((*here, *there)):
        one, other = here.get(name), there.get(name)
        if one is None or other is None or one.value != other.value:
            yield ChangedFact(name, one, other)


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
        "facts": [
            {
                "name": fact.name,
                "first": None if fact.first is None else fact.first.value,
                "second": None if fact.second is None else fact.second.value,
            }
            for fact in diff.facts
        ],
    }


def diff_text(diff: TargetsDiff) -> RenderableType:
    """Return a comparison as a table."""
    made = table("source", diff.first.name, diff.second.name, "difference")
    for row in diff.rows:
        made.add_row(row.src, ", ".join(row.first) or "-", ", ".join(row.second) or "-", diff.difference(row))
    if not diff.facts:
        return Group(made, Text("facts: the same"))
    # Those that both have say most; what one lacks is counted behind them.
    facts = sorted(diff.facts, key=lambda fact: fact.first is None or fact.second is None)
    parts: list[RenderableType] = [made, Text(), Text(f"facts that differ: {len(facts)}")]
    for fact in facts[:_SHOWN]:
        parts.append(Text(fact.name))
        for target, side in ((diff.first, fact.first), (diff.second, fact.second)):
            parts.append(indented(Text(f"{target.name}: {'-' if side is None else described(side.value)}")))
    if len(facts) > _SHOWN:
        parts.append(Text(f"  and {len(facts) - _SHOWN} more (--json has all)"))
    return Group(*parts)


def _destinations(target: Target) -> dict[str, tuple[str, ...]]:
    found: dict[str, list[str]] = {}
    for row in pair_rows(target):
        held = found.setdefault(row.src, [])
        if row.dst not in held:
            held.append(row.dst)
    return {src: tuple(sorted(held, key=list(FORMATS).index)) for src, held in found.items()}
