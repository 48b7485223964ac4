"""The reports on targets as JSON and as text: the list, one target, one pair, two side by side, their builtins."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import TypeVar

from rich.console import RenderableType
from rich.text import Text

from castsim.isa.formats import FORMATS
from castsim.reports.documents import ABSENT, CommandDocument, Document, Keys, keys_of, says
from castsim.reports.numbers import OPTIONS, facts_by_part, facts_of
from castsim.reports.pairs import ModeEntry, PairDetail, PairEntry, SaturationEntry, ScratchSequence, pair_rows
from castsim.reports.schemas.keys import FactEntry
from castsim.reports.specification import SpecificationHeader
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


# Two targets side by side: which conversions each has, source type by source type, and the facts that differ.


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
