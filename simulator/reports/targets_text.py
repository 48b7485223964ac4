"""The reports on targets as text."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

from rich.console import Group, RenderableType
from rich.table import Table
from rich.text import Text

from castsim.reports.builtins_text import target_section
from castsim.reports.facts import OPTIONS, NamedFact, described, facts_by_part
from castsim.reports.pairs import PairDetail, PairRow, pair_rows
from castsim.reports.terminal import indented, table
from castsim.targets import Target


def list_text(targets: Sequence[Target]) -> RenderableType:
    """Return the list of targets."""
    made = table("target", "title", "mechanism", "architectures", "casts", numbers=("casts",))
    for target in targets:
        casts = str(len(target.casts))
        made.add_row(target.name, target.title, target.mechanism, ", ".join(target.architectures), casts)
    return Group(
        made, Text(), Text("`castsim targets NAME` shows more, `castsim targets NAME SRC DST` everything about a pair.")
    )


def target_text(target: Target) -> RenderableType:
    """Return one target: pairs, memories, timing, other facts, options."""
    return Group(*_target(target))


def pair_text(target: Target, detail: PairDetail) -> RenderableType:
    """Return one pair in full."""
    return Group(*_pair(target, detail))


def _target(target: Target) -> Iterator[RenderableType]:
    yield Text.assemble((target.name, "bold"), f": {target.title}")
    yield Text(f"mechanism {target.mechanism}; programs: {', '.join(target.languages)}")
    yield Text(f"programs ask for it as {', '.join(target.architectures)}")
    yield Text()
    yield _pairs(pair_rows(target))
    yield from _fact_sections(facts_by_part(target))
    yield Text()
    yield Text("options (`castsim run --option NAME=VALUE`)", style="bold")
    for name, option in target.options.items():
        legal = ", ".join(map(str, option.legal))
        yield indented(Text(f"{name} = {option.value} (of {legal}; {option.status.value})"))
        yield indented(indented(Text(option.meaning, style="dim")))
        if option.set_by:
            yield indented(indented(Text(f"set by {option.set_by}", style="dim")))
    yield from target_section(target)


def _pairs(rows: Sequence[PairRow]) -> Table:
    made = table("from", "to", "rounding modes", "default", "fallback", "saturation", "switchable", "tmp")
    before = None
    for row in rows:
        made.add_row(
            row.src if row.src != before else "",
            row.dst,
            " ".join(row.modes) or "-",
            row.default or "exact",
            row.fallback or "-",
            row.saturation,
            row.switchable,
            row.scratch or "-",
        )
        before = row.src
    return made


def _fact_sections(by_part: Mapping[str, Sequence[NamedFact]]) -> Iterator[RenderableType]:
    sections = {"memories": ("memories",), "timing": ("frequency", "timing")}
    for title, parts in sections.items():
        yield Text()
        yield Text(title, style="bold")
        for fact in (fact for part, found in by_part.items() if part in parts for fact in found):
            yield from _fact(fact)
    yield Text()
    yield Text("other facts", style="bold")
    shown = {OPTIONS, *(part for parts in sections.values() for part in parts)}
    for fact in (fact for part, found in by_part.items() if part not in shown for fact in found):
        yield from _fact(fact)


def _fact(fact: NamedFact) -> Iterator[RenderableType]:
    about = f": {described(fact.value)}" if fact.value else ""
    yield indented(Text(f"{fact.name} ({fact.status}){about}"))


def _pair(target: Target, detail: PairDetail) -> Iterator[RenderableType]:
    row = detail.row
    yield Text.assemble((f"{row.src} -> {row.dst}", "bold"), f" on {target.name} ({target.title})")
    if detail.note:
        yield Text(detail.note)
    yield Text()
    modes = table("rounding asked", "in force", "instruction", "warning")
    for mode in detail.modes:
        modes.add_row(mode.requested, mode.in_force or "exact", mode.mnemonic, mode.warning or "")
    yield modes
    yield Text()
    saturation = table("saturation asked", "tmp given", "in force", "warning")
    for switch in detail.saturation:
        given = "yes" if switch.scratch else "no"
        saturation.add_row(switch.requested, given, switch.in_force, switch.warning or "")
    yield saturation
    yield Text()
    yield Text(f"instruction: {described(detail.configuration)}")
    if detail.scratch is not None:
        yield Text(f"with saturation off and a tmp tile ({detail.scratch.steps}), for one element:")
        yield indented(Text("; ".join(detail.scratch.operations)))
        yield indented(Text(f"{detail.scratch.status}: {detail.scratch.source}", style="dim"))
    yield Text(f"{detail.status}: {detail.source}", style="dim")
