"""Specifications and the conformance of targets with them, as JSON, for the terminal, and as a page in Markdown."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise

from rich.console import Group, RenderableType
from rich.text import Text

from castsim.execution.origins import Origins
from castsim.isa.errors import IllegalError
from castsim.isa.formats import format_named
from castsim.lowering.acceptance import SpecifiedCast
from castsim.lowering.conformance import ConformanceEntry, Matrix, changed
from castsim.lowering.conformance import LoweredMatrix as LoweredCells
from castsim.lowering.demand import Counterexample, TracedValue, Verdict
from castsim.lowering.lowering_answers import options_text, setting_text
from castsim.lowering.planner import PlanKind
from castsim.lowering.proof import Method
from castsim.reports.documents import CommandDocument, Document, Keys, numbered, says
from castsim.reports.lower import CounterexampleEntry, code_text, number_text
from castsim.reports.schemas.keys import CyclesPerElement, Name, Scalar, WorkerEntry
from castsim.reports.terminal import indented, table
from castsim.targets import Specification
from castsim.targets.description import Status
from castsim.targets.specification import TEXT, AcceptanceRule

# The reports on specifications as JSON and as text: the list, one with its casts and rules, one type pair in full.

_ACRONYMS = {"tosa", "onnx", "ocp"}


@dataclass(frozen=True, slots=True)
class LegalPair:
    """One way in which a pair is legal: since when, what it needs, under which attribute values, by which rule."""

    since: str
    requires: tuple[str, ...]
    when: Mapping[str, str]
    name: str
    rule: AcceptanceRule


def specification_words(label: str) -> str:
    """Return a specification in words: `tosa@1.1:input_unsigned=1` is TOSA 1.1 with input_unsigned=1."""
    named, _, further = label.partition(" ")
    head, *attributes = named.split(":")
    name, _, version = head.partition("@")
    name = name.upper() if name in _ACRONYMS else name
    given = f" with {', '.join(attributes)}" if attributes else ""
    return f"{name} {version}".rstrip() + given + (f", {further}" if further else "")


def _casts(spec: Specification) -> int:
    return len({pair for row in spec.casts for pair in spec.pairs(row)})


class SpecificationHeader(Keys):
    """A specification in the list."""

    name: str = says("Its name.")
    title: str = says("What it specifies.")
    kind: str = says("Always `specification`.")
    versions: list[str] = says("Its versions; these are names, `1.1`.", "versions.known")
    default_version: str = says("The one that is taken if none is named.", "versions.default")
    casts: int = says(of=_casts)
    """How many type pairs it has."""


class Rule(Keys):
    """A rule that says which results are accepted."""

    name: str = says("Its name.")
    source: str = says("Where it is from.")
    status: Status = says("How well it is known.")
    note: str = says("What else is to be said; may be empty.")
    meaning: str = says("The rule in words.")
    accept: str = says("Form of the set: `exact`, `interval` and the like.")
    roundings: list[str] = says("The roundings of an exact rule.")
    overflow: str | None = says("The overflow policy of an exact rule; null if an attribute or the cast decides.")
    below_ulps: float = says("How far below the exact magnitude results may be.", lambda rule: float(rule.below_ulps))
    above_ulps: float = says("How far above it.", lambda rule: float(rule.above_ulps))
    beyond: str = says("What holds beyond the range.")
    undefined: list[str] = says("Sources for which every result is right.")
    flush_source: bool = says("Whether subnormal sources may be taken for 0.")
    flush_result: bool = says("Whether subnormal results may be 0.")
    zero_of_either_sign: bool = says("Whether the sign of 0 is free.")
    unclear_overflow: bool = says("Whether both orders of rounding and overflow are right.")


class SpecifiedPairs(Keys):
    """Type pairs that share a rule: every source with every destination."""

    src: list[str] = says("Names of the source formats.")
    dst: list[str] = says("Names of the destination formats.")
    since: str = says("The version that introduced them.")
    requires: list[str] = says("Profiles and extensions that they need.")
    when: dict[Name, Scalar] = says(of=lambda row: numbered(row.when or {}))
    """The attribute values for which the rule holds."""
    rule: str = says("Name of the rule.")


class SpecifiedType(Keys):
    """A type."""

    name: str = says("Name of the format.")
    since: str = says("The version that introduced it.")


class AttributeEntry(Keys):
    """An attribute of the operator."""

    name: str = says("Its name.")
    source: str = says("Where it is from.")
    status: Status = says("How well it is known.")
    note: str = says("What else is to be said; may be empty.")
    values: list[Scalar] = says("Its values, the default first.")
    since: str = says("The version that introduced it.")
    effect: str = says("What it does.")
    meaning: str = says("The same in words.")


class RescaleRounding(Keys):
    """A rounding mode of RESCALE."""

    number: int = says("Its number.")
    requires: list[str] = says("Profiles and extensions that it needs.")
    wide_only: bool = says("Whether it needs the 32-bit multiplier.")


class Rescale(Keys):
    """The rules of RESCALE."""

    source: str = says("Where they are from.")
    status: Status = says("How well they are known.")
    note: str = says("What else is to be said; may be empty.")
    inputs: dict[Name, list[str]] = says("What each input type needs.")
    outputs: list[str] = says("The output types.")
    unsigned_types: list[str] = says("Types that may be unsigned.")
    wide_inputs: list[str] = says("Input types of the 32-bit multiplier.")
    any_zero_point: list[str] = says("Types with any zero point.")
    unsigned_zero_points: dict[Name, list[int]] = says("Zero points of types that have them only when unsigned.")
    wide_multiplier: str = says("Type of the wide multiplier.")
    narrow_multiplier: str = says("Type of the narrow multiplier.")
    shift_type: str = says("Type of the shift.")
    min_shift: int = says("The smallest shift.")
    max_shift: int = says("The largest shift.")
    double_round_above_shift: int = says("DOUBLE_ROUND rounds twice above this shift.")
    double_round_bit: int = says("At which bit it rounds first.")
    relative_errors: int = says("INEXACT_ROUND: how many units of error.")
    relative_error_exponent: int = says("The exponent of 2 of such a unit.")
    rounding_modes: dict[Name, RescaleRounding] = says("The rounding modes.")


class SpecificationDescription(SpecificationHeader, CommandDocument, name="specification"):
    """One specification."""

    pairs: list[SpecifiedPairs] = says(
        of=lambda spec: [
            SpecifiedPairs.of(row, src=spec.members(row.src), dst=spec.members(row.dst)) for row in spec.casts
        ]
    )
    """Its type pairs."""
    types: list[SpecifiedType] = says("Its types.")
    rules: list[Rule] = says("Its rules.", lambda spec: [Rule.of(rule, name=name) for name, rule in spec.rules.items()])
    attributes: list[AttributeEntry] = says(
        of=lambda spec: [AttributeEntry.of(each, name=name) for name, each in spec.attributes.items()]
    )
    """Its attributes."""
    rescale: Rescale | None = says("Its RESCALE; null if it has none.")
    status: Status = says("How well the type pairs are known.", "casts_fact.status")
    source: str = says("Where they are from.", "casts_fact.source")


class PairRule(Rule):
    """A rule of a type pair."""

    since: str = says("The version that introduced it.")
    requires: list[str] = says("Profiles and extensions that it needs.")
    when: dict[Name, Scalar] = says("The attribute values for which it holds.")


class SpecificationPair(CommandDocument, name="specification-pair"):
    """One type pair of a specification."""

    specification: str = says("Name of the specification.")
    src: str = says("The source as it was given.")
    dst: str = says("The destination as it was given.")
    rules: list[PairRule] = says("Its rules.")


def specification_document(spec: Specification) -> Document:
    """Return everything but the sources of tables: header, legal casts, rules, attributes, RESCALE."""
    return SpecificationDescription.of(spec)


def pair_rules(spec: Specification, src: str, dst: str) -> list[LegalPair]:
    """Return all rules of a pair; formats by any of their names, or `string`.

    Raises:
        ReadError: an unknown format.
        IllegalError: no version has the pair; names the destinations of the source.
    """
    names = _type_name(src), _type_name(dst)
    found = [
        LegalPair(spec.since(row, *names), row.requires, row.when or {}, row.rule, spec.rules[row.rule])
        for row in spec.casts
        if names in spec.pairs(row)
    ]
    if not found:
        known = dict.fromkeys(other for row in spec.casts for one, other in spec.pairs(row) if one == names[0])
        raise IllegalError(f"{spec.name} has no cast {names[0]} -> {names[1]}", legal=known)
    return found


def pair_document(spec: Specification, src: str, dst: str) -> Document:
    """Return all rules of a pair."""
    rules = [
        PairRule.of(each.rule, name=each.name, since=each.since, requires=each.requires, when=numbered(each.when))
        for each in pair_rules(spec, src, dst)
    ]
    return SpecificationPair.of(specification=spec.name, src=src, dst=dst, rules=rules)


def _type_name(name: str) -> str:
    return TEXT if name.lower() == TEXT else format_named(name).name


# The reports on specifications as text.


def list_text(specifications: Sequence[Specification]) -> RenderableType:
    """Return the list of specifications."""
    made = table("specification", "title", "versions", "casts", numbers=("casts",))
    for spec in specifications:
        made.add_row(spec.name, spec.title, " ".join(spec.versions.known), str(_casts(spec)))
    return made


def specification_text(spec: Specification) -> RenderableType:
    """Return one specification: versions, legal casts, rules, attributes, RESCALE."""
    return Group(*_specification(spec))


def pair_text(spec: Specification, src: str, dst: str) -> RenderableType:
    """Return all rules of one pair."""
    return Group(*_pair(spec, src, dst))


def _specification(spec: Specification) -> Iterator[RenderableType]:
    yield Text.assemble((spec.name, "bold"), f": {spec.title}")
    yield Text("a specification: it says what casts must give, nothing runs on it")
    yield Text(f"versions {', '.join(spec.versions.known)}; {spec.versions.default} unless another is named")
    yield Text()
    made = table("from", "to", "since", "requires", "when", "rule")
    for row in spec.casts:
        when = " ".join(f"{name}={value}" for name, value in (row.when or {}).items())
        made.add_row(" ".join(row.src), " ".join(row.dst), row.since, " ".join(row.requires), when or "-", row.rule)
    yield made
    for name, members in spec.classes.items():
        yield Text(f"{name}: {' '.join(members)}", style="dim")
    later = [entry for entry in spec.types if entry.since != spec.versions.known[0]]
    if later:
        yield Text(f"types by version: {', '.join(f'{entry.name} {entry.since}' for entry in later)}", style="dim")
    yield Text()
    yield Text("rules", style="bold")
    for name, rule in spec.rules.items():
        yield from _rule(name, rule)
    if spec.attributes:
        yield Text()
        yield Text("attributes", style="bold")
    for name, attribute in spec.attributes.items():
        values = ", ".join(map(str, attribute.values))
        yield indented(Text(f"{name} = {attribute.default} (of {values}; since {attribute.since})"))
        yield indented(indented(Text(attribute.meaning, style="dim")))
    if spec.rescale is not None:
        inputs, outputs = " ".join(spec.rescale.inputs), " ".join(spec.rescale.outputs)
        yield Text()
        yield Text(f"RESCALE from {inputs} to {outputs}; rounding {', '.join(spec.rescale.rounding_modes)}")
        yield indented(Text(f"{spec.rescale.status.value}: {spec.rescale.source}", style="dim"))


def _rule(name: str, rule: AcceptanceRule) -> Iterator[RenderableType]:
    yield indented(Text(f"{name} ({rule.accept.value}; {rule.status.value}): {rule.meaning}"))
    if rule.note:
        yield indented(indented(Text(rule.note, style="dim")))


def _pair(spec: Specification, src: str, dst: str) -> Iterator[RenderableType]:
    yield Text.assemble((f"{src} -> {dst}", "bold"), f" in {spec.name} ({spec.title})")
    for found in pair_rules(spec, src, dst):
        needs = f"; requires {' and '.join(found.requires)}" if found.requires else ""
        when = " ".join(f"{name}={value}" for name, value in found.when.items())
        yield Text()
        yield Text(f"since {found.since}{needs}{f'; with {when}' if when else ''}")
        yield from _rule(found.name, found.rule)
        yield indented(indented(Text(f"source: {found.rule.source}", style="dim")))


SAMPLED = "~"
"""Marks a verdict that rests on samples."""


class CellInstruction(Keys):
    """An instruction of a chain."""

    instruction: str = says("The instruction.", lambda pair: pair[0])
    options: str = says("What has to be asked of it; may be empty.", lambda pair: pair[1])


class MatrixCell(Keys):
    """A cast of the specification on one target."""

    src: str = says("Name of the source format.", "cell.src")
    dst: str = says("Name of the destination format.", "cell.dst")
    attributes: dict[Name, Scalar] = says(of=lambda entry: numbered(dict(entry.cell.attributes)))
    """Attributes of the operator."""
    target: str = says("Name of the target.", "cell.target")
    way: PlanKind = says("How it is lowered.", "kind")
    verdict: Verdict = says("Whether it is right.")
    path: list[str] = says("Names of the formats on the way.")
    instructions: list[CellInstruction] = says(of=lambda entry: zip(entry.instructions, entry.options, strict=True))
    """The instructions."""
    method: Method | None = says("How the verdict was reached; null if nothing was tried.")
    proven: bool = says("Whether the verdict is certain.")
    options: dict[Name, Scalar] = says(of=lambda entry: dict(entry.settings))
    """The options of the target with which the program is to be run."""
    native_with_options: dict[Name, Scalar] | None = says(
        of=lambda entry: None if entry.native is None else dict(entry.native)
    )
    """The options with which a single instruction does it beside a chain; null if there is none."""
    cycles_per_element: CyclesPerElement | None = says("What it costs; null if it was not timed.")
    counterexample: CounterexampleEntry | None = says("Where it fails; null if it does not.")
    computed_by: int = says("Who computed it: the place in `workers`, from 0.")


class MatrixTotal(Keys):
    """How many casts go one way on one target."""

    target: str = says("Name of the target.")
    way: PlanKind = says("The way.")
    cells: int = says("How many casts.")


class LoweredMatrixCell(MatrixCell):
    """A cast of the specification on the target, and its program."""

    program: str | None = says("Text of the program; null if there is none.")
    file: str | None = says("The file that it was written to; null if it was not written.")


def _totals_of(found: Matrix) -> list[Document]:
    return [
        MatrixTotal.of(target=target, way=kind, cells=_count(found, target, kind))
        for target in found.targets
        for kind in PlanKind
    ]


class MatrixForm(CommandDocument):
    """A matrix: casts of a specification on targets."""

    specification: str = says("Name of the specification.", "spec.name")
    version: str = says("Its version.")
    targets: list[str] = says("Names of the targets.")
    options: dict[Name, Scalar] = says("The options of the targets that were given.", lambda found: dict(found.options))
    cells: list[MatrixCell] = says("One entry for each cast and target.")
    totals: list[MatrixTotal] = says("How many casts go which way.", _totals_of)
    workers: list[WorkerEntry] = says("Who computed.")


class Conform(MatrixForm, name="conform"):
    """Every cast of a specification on targets."""


class LoweredMatrix(MatrixForm, name="lower-matrix"):
    """Without SRC and DST: every cast of a specification lowered to one target."""

    cells: list[LoweredMatrixCell] = says("One entry for each cast and target.")  # type: ignore[assignment]


def conform_document(found: Matrix) -> Document:
    """Return a matrix as JSON, one entry per cell."""
    origins = Origins()
    cells = [
        MatrixCell.of(entry, computed_by=origins.place(by))
        for entry, by in zip(found.entries, found.origins, strict=True)
    ]
    return Conform.of(found, cells=cells, workers=origins.documents())


def lowered_matrix_document(found: LoweredCells, files: Sequence[str | None]) -> Document:
    """Return a matrix of one target as JSON, each cell with its program and the file that it was written to."""
    origins, matrix = Origins(), found.matrix
    cells = [
        LoweredMatrixCell.of(entry, computed_by=origins.place(by), program=each.program, file=file)
        for entry, by, each, file in zip(matrix.entries, matrix.origins, found.cells, files, strict=True)
    ]
    return LoweredMatrix.of(matrix, cells=cells, workers=origins.documents())


def cast_text(cast: SpecifiedCast, entry: ConformanceEntry) -> str:
    """Return the name of a row."""
    attributes = "".join(f", {name}={value}" for name, value in changed(cast))
    return f"{entry.cell.src} -> {entry.cell.dst}{attributes}"


def cell_text(entry: ConformanceEntry) -> str:
    """Return a cell in words: how, what has to be asked for, with which options, at what cost; or where it fails."""
    if entry.kind is PlanKind.IMPOSSIBLE:
        return "impossible: no elements of the width"
    if entry.kind is PlanKind.NONE_FOUND:
        return "no chain found" if entry.counterexample is None else f"no: {_failure(entry.counterexample)}"
    marks = f" with options {setting_text(entry.settings)}" if entry.settings else ""
    marks += "" if entry.verdict is Verdict.EXACT else " (within tolerance)"
    marks += "" if entry.proven else SAMPLED
    if entry.kind is PlanKind.COPY:
        return f"copy{marks}"
    cost = "" if entry.cycles_per_element is None else f", {entry.cycles_per_element:.3f}"
    cost += "" if entry.native is None else f"; or native with options {setting_text(entry.native)}"
    return f"{_done(entry)}{marks}{cost}"


def _done(entry: ConformanceEntry) -> str:
    asked = [option for option in entry.options if option]
    if entry.kind in (PlanKind.NATIVE, PlanKind.OPTIONS):
        return asked[0] if asked else "native"
    return "; ".join(
        f"{name} ({option})" if option else name for name, option in zip(entry.instructions, entry.options, strict=True)
    )


def _failure(found: Counterexample) -> str:
    required, result = found.required, found.result
    right = []
    if required.lowest is not None and required.highest is not None:
        low, high = number_text(required.lowest[1]), number_text(required.highest[1])
        right.append(low if low == high else f"{low} to {high}")
    right += ["NaN"] if required.nan else []
    values = [number_text(traced.value) for traced in _changing(found)]
    if values[-1] in right:  # a boolean that is true, but not 1
        values[-1] = code_text(result.code, result.format)
    return f"{' -> '.join(values)}, not {' or '.join(right)}"


def _changing(found: Counterexample) -> list[TracedValue]:
    """Return the input and every value that differs from the one before it, the result in any case."""
    values = found.values
    kept = [traced for before, traced in pairwise(values) if number_text(before.value) != number_text(traced.value)]
    return [values[0], *(kept or [values[-1]])]


# A conformance matrix as a table for the terminal, and as a page in Markdown.

LEGEND_LINES = (
    "native: one instruction.",
    "`saturation ON`, `rounding TRUNC` and the like: one instruction with these modes.",
    "Several instructions: a chain, with its modes.",
    "copy: no bit changes.",
    "with options NAME=VALUE: conforms if `castsim run` is given these options of the target, which a program or its "
    "launcher can set; or native with options: with these, one instruction does it instead of the chain.",
    "The number is the cost of the whole program, loads and stores included, in simulated cycles per element.",
    "(within tolerance): conforms, but does not always give the nearest result.",
    "~: the verdict rests on samples; `castsim lower` and --prove try all 32-bit codes.",
    "no: none found in chains of up to four steps, with or without options, which proves nothing of longer ones; shown "
    "are a value on which the closest chain fails, what it becomes, and the correct result.",
    "impossible: the target has no elements of that width.",
)
LEGEND = " ".join(LEGEND_LINES)


def conform_text(found: Matrix) -> RenderableType:
    """Return the matrix for the terminal: a line per cell, cast by cast."""
    rows = table("cast", "target", "answer")
    for number, cast in enumerate(found.casts):
        for place, entry in enumerate(found.row(number)):
            rows.add_row(cast_text(cast, entry) if place == 0 else "", entry.cell.target, cell_text(entry))
    return Group(Text(_head(found)), indented(rows), Text(""), *map(Text, _notes(found)), Text(""), _totals(found))


def conform_summary(found: Matrix) -> RenderableType:
    """Return how many casts each target does in which way."""
    return Group(Text(_head(found)), _totals(found), Text("without --summary: every cast on every target", style="dim"))


def _head(found: Matrix) -> str:
    options = f" with {setting_text(found.options)}" if found.options else ""
    return f"Casts of {specification_words(f'{found.spec.name}@{found.version}')} on the targets{options}"


def _notes(found: Matrix) -> tuple[str, ...]:
    """Return the notes on the table: the legend, and the parts of the specification that are not in it."""
    if found.spec.rescale is None:
        return (LEGEND,)
    return LEGEND, f"RESCALE of {found.spec.name} is not in the table: it is not a cast; `castsim graph` runs it."


def _totals(found: Matrix) -> RenderableType:
    rows = table("target", *(kind.value for kind in PlanKind), numbers=tuple(kind.value for kind in PlanKind))
    for target in found.targets:
        rows.add_row(target, *(str(_count(found, target, kind)) for kind in PlanKind))
    return indented(rows)


def _command(found: Matrix) -> str:
    options = f" {options_text(found.options)}" if found.options else ""
    return f"castsim conform --spec {found.spec.name}@{found.version}{options} --markdown"


def _count(found: Matrix, target: str, kind: PlanKind) -> int:
    return sum(entry.kind is kind for entry in found.entries if entry.cell.target == target)


def markdown_text(found: Matrix) -> RenderableType:
    """Return the page for the terminal, as it stands."""
    return Text(conform_markdown(found).rstrip("\n"), no_wrap=True)


def conform_markdown(found: Matrix) -> str:
    """Return the matrix as a page."""
    lines = [
        f"# {_head(found)}: conformance",
        "",
        f"Written by `{_command(found)}`; a test keeps it current.",
        "",
        *(line for note in _notes(found) for line in (note, "")),
        f"| target | {' | '.join(kind.value for kind in PlanKind)} |",
        f"|---|{'---:|' * len(PlanKind)}",
        *(
            f"| {target} | {' | '.join(str(_count(found, target, kind)) for kind in PlanKind)} |"
            for target in found.targets
        ),
        "",
        f"| cast | {' | '.join(found.targets)} |",
        f"|---|{'---|' * len(found.targets)}",
    ]
    for number, cast in enumerate(found.casts):
        entries = found.row(number)
        cells = " | ".join(cell_text(entry) for entry in entries)
        lines.append(f"| {cast_text(cast, entries[0])} | {cells} |")
    return "\n".join(lines) + "\n"
