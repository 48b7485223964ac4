"""The reports on targets as JSON and as text: the list, one target, one pair, two side by side, their builtins."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import TypeVar

from rich.console import Group, RenderableType
from rich.table import Table
from rich.text import Text

from castsim.isa.formats import FORMATS
from castsim.reports.documents import ABSENT, CommandDocument, Document, Keys, keys_of, says
from castsim.reports.numbers import OPTIONS, described, facts_by_part, facts_of
from castsim.reports.pairs import ModeEntry, PairDetail, PairEntry, SaturationEntry, ScratchSequence, pair_rows
from castsim.reports.schemas.keys import FactEntry
from castsim.reports.specification import SpecificationHeader
from castsim.reports.terminal import composed, indented, table
from castsim.targets.description import Status
from castsim.targets.loader import Target
from castsim.targets.tpc_compiler import FunctionKind, builtins_of, special_functions
from castsim.targets.vliw import VliwTarget

# The builtin functions of TPC-C that a target has, as JSON.


class BuiltinEntry(Keys):
    """A cast builtin of TPC-C."""

    name: str = says("Its name.", "builtin")
    signature: str = says("Result and operands.")
    vpu_operations: int = says("Vector operations that a call issues, as documented.", "vector_operations")
    result_order: str = says("Order of the result's elements.")
    status: Status = says("How well it is known.")
    note: str = says("What else is to be said; may be empty.")


class FunctionEntry(Keys):
    """A special function of TPC-C."""

    name: str = says("Its name.", "builtin")
    signature: str = says("Result and operands.")
    modelled: bool = says("Whether castsim has it.", lambda row: row.kind is not FunctionKind.UNPUBLISHED)
    kind: str = says("`sequence`, `table`, `descriptor` or `unpublished`.")


class TargetBuiltins(Keys):
    """The builtins of a target."""

    name: str = says("Name of the target.")
    builtins: list[BuiltinEntry] = says("The cast builtins.", builtins_of)
    special_functions: list[FunctionEntry] = says("The special functions.", lambda _: special_functions())


class BuiltinList(CommandDocument, name="builtin-list"):
    """The builtins of targets."""

    targets: list[TargetBuiltins] = says("The targets.")


class TargetHeader(Keys):
    """A target in the list."""

    name: str = says("Its name.")
    title: str = says("The chip.")
    mechanism: str = says("How it executes: `strided-repeat`, `vector-function` or `vliw`.")
    languages: list[str] = says("The languages of its programs.")
    architectures: list[str] = says("The names by which programs ask for it.")
    casts: int = says("How many type pairs it has.", lambda target: len(target.casts))


class TargetsList(CommandDocument, name="targets-list"):
    """All targets and specifications."""

    targets: list[TargetHeader] = says("The targets.")
    specifications: list[SpecificationHeader] = says("The specifications.")


class OptionEntry(Keys):
    """An option of a target."""

    name: str = says("Its name.")
    value: int | str = says("Its default.")
    legal: list[int | str] = says("The values that it may have.")
    meaning: str = says("What it decides.")
    set_by: str = says("Who sets it on the chip; may be empty.")
    status: Status = says("How well the default is known.")
    source: str = says("Where it is from.")


class TargetDescription(CommandDocument, TargetHeader, name="targets"):
    """One target."""

    pairs: list[PairEntry] = says("Its type pairs.", pair_rows)
    facts: list[FactEntry] = says(
        of=lambda target: [fact for part, found in facts_by_part(target).items() if part != OPTIONS for fact in found]
    )
    """What its description says."""
    options: list[OptionEntry] = says(
        of=lambda target: [OptionEntry.of(option, name=name) for name, option in target.options.items()]
    )
    """Its options."""
    builtins: list[BuiltinEntry] = says(
        of=lambda target: builtins_of(target) if target.has_builtins else ABSENT, optional=True
    )
    """The cast builtins of chips with TPC-C."""
    special_functions: list[FunctionEntry] = says(
        of=lambda target: special_functions() if target.has_builtins else ABSENT, optional=True
    )
    """The special functions of chips with TPC-C."""


class ConfigurationEntry(Keys):
    """A number of the instruction, or a word about it."""

    name: str = says("What it is.", lambda item: item[0])
    value: object = says("Its value.", lambda item: item[1])


class TargetPair(CommandDocument, PairEntry, name="targets-pair"):
    """One type pair of a target."""

    target: str = says("Name of the target.")
    mnemonics: list[ModeEntry] = says("The rounding modes.", "modes")
    saturation_modes: list[SaturationEntry] = says("The saturation modes.", "saturation")
    configuration: list[ConfigurationEntry] = says(of=lambda detail: detail.configuration.items())
    """The mechanism's own numbers."""
    scratch_sequence: ScratchSequence | None = says(of="scratch")
    """The sequence through a tmp tile; null if there is none."""
    note: str = says("What else is to be said; may be empty.")
    status: Status = says("How well the pair is known.")
    source: str = says("Where it is from.")


def pair_document(target: Target, detail: PairDetail) -> Document:
    """Return one pair in full."""
    row = {name: getattr(detail.row, name) for name in keys_of(PairEntry)}
    return TargetPair.of(detail, target=target, **row)


# The reports on targets as text.


def list_text(targets: Sequence[Target]) -> RenderableType:
    """Return the list of targets."""
    made = table("target", "title", "mechanism", "architectures", "casts", numbers=("casts",))
    for target in targets:
        casts = str(len(target.casts))
        made.add_row(target.name, target.title, target.mechanism, ", ".join(target.architectures), casts)
    return Group(
        made, Text(), Text("`castsim targets NAME` shows more, `castsim targets NAME SRC DST` everything about a pair.")
    )


@composed
def target_text(target: Target) -> Iterator[RenderableType]:
    """Yield one target: pairs, memories, timing, other facts, options."""
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


def _pairs(rows: Sequence[PairEntry]) -> Table:
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


def _fact_sections(by_part: Mapping[str, Sequence[FactEntry]]) -> Iterator[RenderableType]:
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


def _fact(fact: FactEntry) -> Iterator[RenderableType]:
    about = f": {described(fact.value)}" if fact.value else ""
    yield indented(Text(f"{fact.name} ({fact.status}){about}"))


@composed
def pair_text(target: Target, detail: PairDetail) -> Iterator[RenderableType]:
    """Yield one pair in full."""
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


# Two targets side by side: which conversions each has, source type by source type, and the facts that differ.


_SHOWN = 40
"""Facts that the text shows; JSON has all."""


@dataclass(frozen=True, slots=True)
class DiffFact(Keys):
    """A fact whose value differs between two targets."""

    name: str = says("Its path in the description.")
    first: object = says()
    """Its value on the first target; null if that lacks it."""
    second: object = says()
    """Its value on the second target; null if that lacks it."""


@dataclass(frozen=True, slots=True)
class DiffEntry(Keys):
    """The casts from one format on both targets."""

    src: str = says("Name of the source format.")
    first: Sequence[str] = says("Its destinations on the first target.")
    second: Sequence[str] = says("Its destinations on the second target.")
    only_first: Sequence[str] = says("Those that the second lacks.")
    only_second: Sequence[str] = says("Those that the first lacks.")
    difference: str = says("The same in words.")


@dataclass(frozen=True, slots=True)
class TargetComparison:
    """All source types that either target casts from, in the order of the format table, and the facts that differ."""

    first: Target
    second: Target
    rows: tuple[DiffEntry, ...]
    facts: tuple[DiffFact, ...]


def targets_diff(first: Target, second: Target) -> TargetComparison:
    """Compare the legal type pairs of two targets."""
    destinations = [_destinations(target) for target in (first, second)]
    rows = []
    for src in FORMATS:
        here, there = (found.get(src, ()) for found in destinations)
        if here or there:
            alone = tuple(dst for dst in here if dst not in there), tuple(dst for dst in there if dst not in here)
            if here and there:
                added = zip((first, second), alone, strict=True)
                words = "; ".join(f"{target.name} adds {', '.join(dsts)}" for target, dsts in added if dsts) or "same"
            else:
                words = f"{(first if here else second).name} only"
            rows.append(DiffEntry(src, here, there, *alone, words))
    return TargetComparison(first, second, tuple(rows), tuple(_changed_facts(first, second)))


def _changed_facts(first: Target, second: Target) -> Iterator[DiffFact]:
    here, there = ({fact.name: fact.value for fact in facts_of(target)} for target in (first, second))
    for name in dict.fromkeys((*here, *there)):
        one, other = here.get(name), there.get(name)
        if one != other:
            yield DiffFact(name, one, other)


class TargetsDiff(CommandDocument, name="targets-diff"):
    """With `--diff`: two targets side by side."""

    targets: list[str] = says("Names of the first and of the second target.", lambda diff: [diff.first, diff.second])
    rows: list[DiffEntry] = says("One entry for each source format.")
    facts: list[DiffFact] = says("The facts whose values differ; none for two chips of the same facts.")


@composed
def diff_text(diff: TargetComparison) -> Iterator[RenderableType]:
    """Yield a comparison as a table, and the facts that differ."""
    made = table("source", diff.first.name, diff.second.name, "difference")
    for row in diff.rows:
        made.add_row(row.src, ", ".join(row.first) or "-", ", ".join(row.second) or "-", row.difference)
    yield made
    if not diff.facts:
        yield Text("facts: the same")
        return
    # Those that both have say most; what one lacks is counted behind them.
    facts = sorted(diff.facts, key=lambda fact: fact.first is None or fact.second is None)
    yield from (Text(), Text(f"facts that differ: {len(facts)}"))
    for fact in facts[:_SHOWN]:
        yield Text(fact.name)
        for target, side in ((diff.first, fact.first), (diff.second, fact.second)):
            yield indented(Text(f"{target.name}: {'-' if side is None else described(side)}"))
    if len(facts) > _SHOWN:
        yield Text(f"  and {len(facts) - _SHOWN} more (--json has all)")


def _destinations(target: Target) -> dict[str, tuple[str, ...]]:
    found: dict[str, list[str]] = {}
    for row in pair_rows(target):
        held = found.setdefault(row.src, [])
        if row.dst not in held:
            held.append(row.dst)
    return {src: tuple(sorted(held, key=list(FORMATS).index)) for src, held in found.items()}


# The builtin functions of TPC-C that targets have, as text.

_Row = TypeVar("_Row")


def builtin_list(targets: Sequence[VliwTarget]) -> RenderableType:
    """Return the cast builtins of several targets, and the special functions; lines are never folded."""
    lines: list[str] = []
    for target in targets:
        lines += [f"{target.name}: cast builtin, result (arguments), VPU operations, result order", *_casts(target), ""]
    lines += [
        "special functions (`castsim builtin NAME` shows whose values are claimed): result (arguments)",
        *_special(),
    ]
    return Text("\n".join(lines), no_wrap=True)


def target_section(target: Target) -> Iterator[RenderableType]:
    """Yield the builtins and special functions of a target; nothing for chips without TPC-C."""
    if not target.has_builtins:
        return
    yield Text()
    yield Text(f"cast builtins (more by `castsim builtin --target {target.name}`): result (arguments)", style="bold")
    for name, row in _aligned([(row.builtin, row) for row in builtins_of(target)]):
        yield indented(Text(f"{name}  {row.signature}"))
    yield Text()
    yield Text(
        "special functions (`castsim builtin NAME` shows whose values are claimed): result (arguments)", style="bold"
    )
    yield from (indented(Text(line)) for line in _special())


def _casts(target: VliwTarget) -> Iterator[str]:
    rows = builtins_of(target)
    width = max((len(row.signature) for row in rows), default=0)
    for name, row in _aligned([(row.builtin, row) for row in rows]):
        yield f"{name}  {row.signature:{width}}  {row.vector_operations:2}  {row.result_order}"


def _special() -> Iterator[str]:
    for name, special in _aligned([(special.builtin, special) for special in special_functions()]):
        yield f"{name}  {special.signature}"


def _aligned(named: list[tuple[str, _Row]]) -> Iterator[tuple[str, _Row]]:
    """Fill names up to the width of the longest."""
    width = max((len(name) for name, _ in named), default=0)
    yield from ((f"{name:{width}}", row) for name, row in named)
