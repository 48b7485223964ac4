"""Conformance: every legal cast of a specification lowered to every target, in one or several processes."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from fractions import Fraction
from functools import partial
from itertools import product
from pathlib import Path
from typing import Any, Literal, TypeVar

from castsim.execution.outcomes import PlotMixin
from castsim.execution.timing import ProgressCallback
from castsim.isa.dataclass import asdict, dataclass, field, replace
from castsim.isa.errors import IllegalError, arguments_checked
from castsim.isa.formats import FORMATS, Format, IntFormat, format_named
from castsim.reports.documents import Keys, apart, derived, numbered, record, says
from castsim.reports.schemas.keys import CyclesPerElement, Name, Scalar
from castsim.running.acceptance import SpecifiedCast, specified_cast
from castsim.targets.loader import Target, load_specification, load_target, target_names
from castsim.targets.specification import TEXT, Specification
from castsim.tools.distribution.distributing import (
    ALONE,
    Computed,
    HandedTargets,
    Keeping,
    Workers,
    WorkGroup,
    about_installation,
    canonical,
    digest,
    facts_digest,
    handed_targets,
    here,
    resumed,
)
from castsim.tools.distribution.origins import ResultOrigin, Task
from castsim.tools.lowering.demand import CastRequest, Counterexample, Number, Required, TracedValue, Verdict
from castsim.tools.lowering.lowering_answers import Answer, Setting, answer, setting_of
from castsim.tools.lowering.planner import CounterexampleEntry, PlanKind
from castsim.tools.lowering.proof import Method
from castsim.tools.lowering.sharing import Equals
from castsim.tools.lowering.steps import path_of


@dataclass(frozen=True, slots=True)
class Cell:
    """A cast and a target, by name. `attributes` are those of the cast operator that select its rule."""

    src: str
    dst: str
    attributes: tuple[tuple[str, str], ...]
    target: str

    @property
    def cast(self) -> tuple[str, str, tuple[tuple[str, str], ...]]:
        """The cast without the target."""
        return self.src, self.dst, self.attributes


class CellInstruction(Keys):
    """An instruction of a chain."""

    instruction: str = says("The instruction.", lambda pair: pair[0])
    options: str = says("The required options of the instruction; may be empty.", lambda pair: pair[1])


@record
class ConformanceEntry(Keys, title="MatrixCell"):
    """A cast of the specification on one target."""

    cell: Cell = apart()
    src: str = derived("Name of the source format.", "cell.src")
    dst: str = derived("Name of the destination format.", "cell.dst")
    attributes: Mapping[Name, Scalar] = derived(
        "Attributes of the operator.", lambda own: numbered(dict(own.cell.attributes))
    )
    target: str = derived("Name of the target.", "cell.target")
    kind: PlanKind = says("Method of the lowering.", key="way")
    verdict: Verdict = says("Whether the results are correct.")
    path: tuple[str, ...] = says("Names of the intermediate formats.")
    instructions: tuple[str, ...] = apart()
    options: tuple[str, ...] = apart()
    """The required modes, instruction by instruction."""
    steps: Sequence[CellInstruction] = derived(
        "The instructions of the chain.",
        lambda own: zip(own.instructions, own.options, strict=True),
        key="instructions",
    )
    method: Method | None = says("Method of the verdict; null if nothing was tried.")
    proven: bool = says("Whether the verdict is proven.")
    settings: Setting = apart()
    target_options: Mapping[Name, Scalar] = derived(
        "The target options that the program needs.", lambda own: dict(own.settings), key="options"
    )
    native: Setting | None = apart()
    native_with_options: Mapping[Name, Scalar] | None = derived(
        "The options that make a single instruction sufficient, in addition to a chain; null if there are none.",
        lambda own: None if own.native is None else dict(own.native),
    )
    cycles_per_element: CyclesPerElement | None = says("Cost of the cast; null if it was not timed.")
    counterexample: Counterexample | None = apart()
    counterexample_entry: CounterexampleEntry | None = derived(
        "An input with a wrong result; null if there is none.", "counterexample", key="counterexample"
    )


def legal_casts(spec: Specification, version: str | None = None) -> tuple[SpecifiedCast, ...]:
    """Return every legal cast between number formats, once per rule that attributes select.

    Raises:
        ReadError: the version is unknown.
    """
    casts = []
    pairs = dict.fromkeys(pair for row in spec.casts for pair in spec.pairs(row) if TEXT not in pair)
    chosen = specified_version(spec, version)
    for src, dst in pairs:
        for attributes in _settings(spec, src, dst, chosen):
            since = spec.legal_since(src, dst)
            if since is not None and spec.rank(since) <= spec.rank(chosen):
                casts.append(specified_cast(spec, src, dst, version=chosen, attributes=dict(attributes)))
    return tuple(casts)


def specified_version(spec: Specification, version: str | None) -> str:
    """Return the version in force.

    Raises:
        ReadError: the version is unknown.
    """
    if version is None:
        return spec.versions.default
    pairs = ((row, pair) for row in spec.casts for pair in spec.pairs(row))
    _, (src, dst) = min(
        pairs, key=lambda format_pair: spec.rank(spec.since(format_pair[0], *format_pair[1]))
    )  # the longest known cast
    return specified_cast(spec, src, dst, version=version).version


def changed(cast: SpecifiedCast) -> tuple[tuple[str, str], ...]:
    """Return the attributes of a cast that differ from their defaults."""
    spec = cast.spec
    return tuple((name, value) for name, value in cast.attributes.items() if value != spec.attributes[name].default)


def settle_cell(
    cell: Cell,
    spec: Specification,
    version: str,
    *,
    prove: bool = False,
    options: Mapping[str, int | str] | None = None,
    target: Target | None = None,
) -> ConformanceEntry:
    """Plan one cell for the target with the given options, and with others that software sets if needed.

    `prove` tries all 32-bit codes if nothing less proves a verdict. `target` is the cell's; None loads it.

    Raises:
        ReadError: a target, option or value is unknown.
    """
    request = request_of(cell, spec, version, target)
    return settled(cell, answer(request, options=options, explain=False, quick=not prove, refuted=False))


def request_of(cell: Cell, spec: Specification, version: str, target: Target | None = None) -> CastRequest:
    """Return the request of a cell, on the first of equal targets; `target` is the cell's; None loads it.

    Raises:
        ReadError: the target is unknown.
    """
    own, specification = _TARGETS.first(target or load_target(cell.target)), _SPECIFICATIONS.first(spec)
    return CastRequest(cell.src, cell.dst, own, spec=specification, version=version, attributes=dict(cell.attributes))


_TARGETS: Equals[Target] = Equals(16)
_SPECIFICATIONS: Equals[Specification] = Equals(16)
"""Cache of specifications: files are read for every cell, and processes get copies, so equal ones share one object."""


def settled(cell: Cell, answered: Answer) -> ConformanceEntry:
    """Return an answer as the entry of a cell."""
    plan = answered.plan
    evidence = plan.evidence
    return ConformanceEntry(
        cell=cell,
        kind=answered.kind,
        verdict=plan.verdict,
        path=path_of(plan.chain),
        instructions=tuple(step.name for step in plan.chain if step.is_instruction),
        options=tuple(", ".join(step.forms[0].options) for step in plan.chain if step.is_instruction),
        method=None if evidence is None else evidence.method,
        proven=plan.proven,
        cycles_per_element=None if plan.cost is None else plan.cost.cycles_per_element,
        counterexample=plan.counterexample,
        settings=answered.chosen,
        native=None if answered.native is None else answered.native.setting,
    )


def _settings(spec: Specification, src: str, dst: str, version: str) -> list[tuple[tuple[str, str], ...]]:
    """Return the attribute settings that select different rules of a pair, the defaults first."""
    conditions = [row.when for row in spec.casts if row.when and (src, dst) in spec.pairs(row)]
    names = list(dict.fromkeys(name for condition in conditions for name in condition))
    source = FORMATS[src]
    names += [
        name
        for name, attribute in spec.attributes.items()
        if attribute.effect == "reads the source as unsigned" and isinstance(source, IntFormat) and source.signed
    ]
    names = [name for name in names if spec.rank(spec.attributes[name].since) <= spec.rank(version)]
    values = [[(name, str(value)) for value in spec.attributes[name].values] for name in names]
    return [
        tuple((name, value) for name, value in setting if value != spec.attributes[name].default)
        for setting in product(*values)
    ]


# The entries of a matrix in JSON, as a ledger holds them until all are there.

_CODED = ("lowest", "highest", "further")


def entry_document(entry: ConformanceEntry) -> dict[str, object]:
    """Return an entry as JSON."""
    return {
        "cell": asdict(entry.cell),
        "kind": entry.kind.value,
        "verdict": entry.verdict.value,
        "path": entry.path,
        "instructions": entry.instructions,
        "options": entry.options,
        "method": entry.method,
        "proven": entry.proven,
        "cycles_per_element": entry.cycles_per_element,
        "counterexample": None if entry.counterexample is None else _counterexample_document(entry.counterexample),
        "settings": entry.settings,
        "native": entry.native,
    }


def read_entry(document: Any) -> ConformanceEntry:
    """Return the entry in a JSON document.

    Raises:
        TypeError, KeyError, ValueError: the document is not an entry.
    """
    cell, cycles, shown = document["cell"], document["cycles_per_element"], document["counterexample"]
    method = document["method"]
    return ConformanceEntry(
        cell=Cell(str(cell["src"]), str(cell["dst"]), _pairs(cell["attributes"]), str(cell["target"])),
        kind=PlanKind(document["kind"]),
        verdict=Verdict(document["verdict"]),
        path=tuple(map(str, document["path"])),
        instructions=tuple(map(str, document["instructions"])),
        options=tuple(map(str, document["options"])),
        method=None if method is None else Method(method),
        proven=bool(document["proven"]),
        cycles_per_element=None if cycles is None else float(cycles),
        counterexample=None if shown is None else _counterexample(shown),
        settings=_setting(document["settings"]),
        native=None if document["native"] is None else _setting(document["native"]),
    )


def _counterexample_document(example: Counterexample) -> dict[str, object]:
    required = example.required
    return {
        "values": [
            [traced.step, traced.format.name, traced.code, _number_text(traced.value)] for traced in example.values
        ],
        "required": {
            "nan": required.nan,
            **{
                name: [coded[0], _number_text(coded[1])] if (coded := getattr(required, name)) else None
                for name in _CODED
            },
        },
    }


def _counterexample(document: Any) -> Counterexample:
    values = tuple(
        TracedValue(step, format_named(fmt), int(code), _number(value)) for step, fmt, code, value in document["values"]
    )
    ends = (document["required"][name] for name in _CODED)
    lowest, highest, further = (None if end is None else (int(end[0]), _number(end[1])) for end in ends)
    return Counterexample(values, Required(lowest, highest, further, bool(document["required"]["nan"])))


def _number_text(value: Number) -> str:
    """Return a number in a readable form that can be parsed: a fraction as such, a float with `~` before it."""
    return f"~{value!r}" if isinstance(value, float) else str(value)


def _number(text: str) -> Number:
    return float(text[1:]) if text.startswith("~") else Fraction(text)


def _setting(pairs: Any) -> Setting:
    return tuple((str(name), value if isinstance(value, int) else str(value)) for name, value in pairs)


def _pairs(pairs: Any) -> tuple[tuple[str, str], ...]:
    return tuple((str(name), str(value)) for name, value in pairs)


Result = TypeVar("Result")

_TOGETHER = 4
"""Number of consecutive cells that are handed out together, because they share results."""


@dataclass(frozen=True, slots=True, repr=False)
class Matrix(PlotMixin[Literal["cells"]]):
    """Result of `conform`: every cast of a specification on every target.

    `casts` are in the order of the specification `spec`, `targets` are names; `entries` are those of all cells, cast by
    cast. `options` are those of all targets. `plot` draws a square per cast and target in the colour of
    its verdict. The frame `cells` has a row for each of them, cast by cast: the keys of `castsim conform --json`,
    and the `answer` in words.
    """

    spec: Specification
    version: str
    """The version of the specification."""
    casts: tuple[SpecifiedCast, ...]
    """Casts, one per row."""
    targets: tuple[str, ...]
    entries: tuple[ConformanceEntry, ...]
    options: Setting = ()
    origins: tuple[ResultOrigin, ...] = field(default=(), compare=False)
    """Names of the processes that computed the entries."""

    def __repr__(self) -> str:
        fine = sum(entry.verdict is not Verdict.DIFFERS for entry in self.entries)
        return (
            f"<Matrix {self.spec.name}@{self.version}: {len(self.casts)} casts on {len(self.targets)} targets, "
            f"{fine} of {len(self.entries)} cells conform>"
        )

    def row(self, number: int) -> tuple[ConformanceEntry, ...]:
        """Return the entries of one cast, target by target."""
        width = len(self.targets)
        return self.entries[number * width : (number + 1) * width]


@arguments_checked
def conform(
    spec: Specification | str | Path,
    targets: Sequence[str] = (),
    *,
    version: str | None = None,
    src: str | None = None,
    dst: str | None = None,
    prove: bool = False,
    workers: int = 1,
    progress: ProgressCallback = lambda *_: None,
    options: Mapping[str, int | str] | None = None,
    scheduler: str | None = None,
    ledger: str | Path | None = None,
) -> Matrix:
    """Plan every legal cast of a specification on every target.

    Args:
        spec: a specification, its name or path.
        targets: names or paths; empty means all shipped targets.
        version: version of the specification; None: its default.
        src, dst: keep the casts from and to these formats only.
        prove: try all 32-bit codes if nothing less proves a verdict, which takes seconds per cell.
        workers: number of processes.
        progress: receives the number of finished cells.
        options: target options, which all targets must have.
        scheduler: address of a Dask scheduler whose workers compute instead.
        ledger: a file that stores every finished cell, so the same call continues from there. It is not removed.

    Returns:
        A matrix with a row per cast and a column per target.

    Raises:
        ReadError: a specification, version, target, format, option or value is unknown; the ledger is about
            something else; the scheduler does not answer.
        IllegalError: the filters leave no cast.
        EngineError: a worker runs another version of castsim, or workers die repeatedly.
    """
    asked = prepared(spec, targets, version, src, dst, options or {})
    who = Workers(workers, scheduler)
    run = partial(_settled_group, asked=asked, targets=asked.handed(who), prove=prove)
    kept = keeping(
        ledger, asked, {"choice of --prove": str(prove)}, entry_document, lambda _, document: read_entry(document)
    )
    settled = settle(run, asked.cells, who, kept, progress)
    entries, origins = tuple(computed.result for computed in settled), tuple(computed.origin for computed in settled)
    return asked.matrix(entries, origins)


@dataclass(frozen=True, slots=True)
class Prepared:
    """The request: casts of a specification's version, targets, and their options."""

    spec: Specification
    version: str
    casts: tuple[SpecifiedCast, ...]
    targets: tuple[str, ...]
    options: Mapping[str, int | str]
    given: Setting
    cells: tuple[Cell, ...]

    def matrix(self, entries: tuple[ConformanceEntry, ...], origins: tuple[ResultOrigin, ...]) -> Matrix:
        """Return the matrix of the entries of all cells."""
        return Matrix(self.spec, self.version, self.casts, self.targets, entries, self.given, origins)

    def handed(self, workers: Workers) -> HandedTargets:
        """Return the targets that workers cannot load themselves."""
        return HandedTargets() if workers.scheduler is None else handed_targets(self.targets)


def prepared(
    spec: Specification | str | Path,
    targets: Sequence[str],
    version: str | None,
    src: str | None,
    dst: str | None,
    options: Mapping[str, int | str],
) -> Prepared:
    """Return the prepared request; for arguments and errors see `conform`."""
    specification = load_specification(spec) if isinstance(spec, str | Path) else spec
    chosen = specified_version(specification, version)
    names, casts = _chosen(specification, targets, chosen, src, dst)
    given = [setting_of(load_target(name), options) for name in names]
    cells = tuple(
        Cell(_named(cast.src, cast), _named(cast.dst, cast), changed(cast), target)
        for cast in casts
        for target in names
    )
    return Prepared(specification, chosen, casts, names, dict(options), given[0], cells)


def settle(
    run: Callable[[WorkGroup[Cell]], Sequence[Result]],
    cells: Sequence[Cell],
    workers: Workers,
    kept: Keeping[Result] | None,
    progress: ProgressCallback,
) -> list[Computed[Result]]:
    """Return the results of cells in order, whichever worker computes them."""
    results: dict[int, Computed[Result]] = {}
    progress(_label(cells[0]), 0, len(cells))
    for computed in resumed(Task("conform or lower", run, here(None, workers)), cells, workers, kept, _TOGETHER):
        results[computed.number] = computed
        progress(_label(cells[computed.number]), len(results), len(cells))
    return [results[number] for number in range(len(cells))]


def _settled_group(
    group: WorkGroup[Cell], asked: Prepared, targets: HandedTargets, *, prove: bool
) -> list[ConformanceEntry]:
    """Return the entries of cells; `targets` are those from files, which workers may lack."""
    spec, version, options = asked.spec, asked.version, asked.options
    return [
        settle_cell(cell, spec, version, prove=prove, options=options, target=targets.get(cell.target))
        for cell in group.items
    ]


def keeping(
    ledger: str | Path | None,
    asked: Prepared,
    further: Mapping[str, str],
    write: Callable[[Result], object],
    read: Callable[[int, object], Result],
) -> Keeping[Result] | None:
    """Return the store for the results of cells; `further` are additional inputs of theirs."""
    if ledger is None:
        return None
    about = {
        **about_installation(),
        "specification": digest(canonical(asked.spec), asked.version),
        "set of casts": digest(*(cell.cast for cell in asked.cells)),
        "set of targets": digest(*((name, facts_digest(load_target(name))) for name in asked.targets)),
        "set of target options": digest(*sorted((name, str(value)) for name, value in asked.options.items())),
        **further,
    }
    return Keeping(Path(ledger), about, write, read)


def _label(cell: Cell) -> str:
    return f"{cell.src} -> {cell.dst} on {cell.target}"


def _chosen(
    spec: Specification, targets: Sequence[str], version: str, src: str | None, dst: str | None
) -> tuple[tuple[str, ...], tuple[SpecifiedCast, ...]]:
    names = tuple(dict.fromkeys(targets)) or tuple(target_names())
    for name in names:
        load_target(name)
    wanted = [None if name is None else format_named(name).name for name in (src, dst)]
    casts = tuple(
        cast
        for cast in legal_casts(spec, version)
        if wanted[0] in (None, _named(cast.src, cast)) and wanted[1] in (None, _named(cast.dst, cast))
    )
    if not casts:
        pairs = [(_named(cast.src, cast), _named(cast.dst, cast)) for cast in legal_casts(spec, version)]
        legal = [there for here, there in pairs if here == wanted[0]] or [here for here, _ in pairs]
        raise IllegalError(
            f"{spec.name} {version} has no cast {src or 'any'} -> {dst or 'any'}", legal=dict.fromkeys(legal)
        )
    return names, casts


def _named(fmt: Format | None, cast: SpecifiedCast) -> str:
    """Return the type as the specification names it: a source read as unsigned keeps its signless name."""
    unsigned = any(
        cast.attributes[attribute] == "1"
        for attribute, row in cast.spec.attributes.items()
        if row.effect == "reads the source as unsigned"
    )
    if fmt is None:
        return ""
    is_unsigned = isinstance(fmt, IntFormat) and not fmt.signed and not fmt.boolean
    return f"i{fmt.bits}" if unsigned and fmt is cast.src and is_unsigned else fmt.name


@dataclass(frozen=True, slots=True)
class Extent:
    """Rows and columns of the tensor that programs convert, and the maximum length of a chain."""

    rows: int = 16
    cols: int = 256
    steps: int = 4


_USUAL = Extent()


@dataclass(frozen=True, slots=True)
class CellLowering:
    """The entry of a cell, its program text (None: there is none), and the suffix of the program's file."""

    entry: ConformanceEntry
    program: str | None
    suffix: str


@dataclass(frozen=True, slots=True)
class LoweredMatrix:
    """A matrix of one target, and the lowerings of its cells, cast by cast."""

    matrix: Matrix
    cells: tuple[CellLowering, ...]


def _lowered_group(
    group: WorkGroup[Cell], asked: Prepared, targets: HandedTargets, extent: Extent
) -> list[CellLowering]:
    """Return the lowerings of cells, with proven verdicts where possible; for errors see `answer`."""
    lowerings = []
    for cell in group.items:
        request = request_of(cell, asked.spec, asked.version, targets.get(cell.target))
        lowered = answer(replace(request, **asdict(extent)), options=asked.options, explain=False, refuted=False)
        assembly = lowered.plan.assembly
        lowerings.append(
            CellLowering(settled(cell, lowered), lowered.text, "" if assembly is None else assembly.suffix)
        )
    return lowerings


def lower_all(
    spec: Specification,
    target: str,
    *,
    version: str | None = None,
    options: Mapping[str, int | str] | None = None,
    extent: Extent = _USUAL,
    workers: Workers = ALONE,
    ledger: Path | None = None,
    progress: ProgressCallback = lambda *_: None,
) -> LoweredMatrix:
    """Lower every cast of a specification to a target; for other arguments and errors see `conform`."""
    asked = prepared(spec, (target,), version, None, None, options or {})
    run = partial(_lowered_group, asked=asked, targets=asked.handed(workers), extent=extent)
    kept = keeping(ledger, asked, {"shape of programs": repr(extent)}, _document, _read)
    settled_cells = settle(run, asked.cells, workers, kept, progress)
    cells = tuple(computed.result for computed in settled_cells)
    return LoweredMatrix(
        asked.matrix(tuple(lowered.entry for lowered in cells), tuple(computed.origin for computed in settled_cells)),
        cells,
    )


def _document(lowering: CellLowering) -> object:
    return [entry_document(lowering.entry), lowering.program, lowering.suffix]


def _read(_: int, document: Any) -> CellLowering:
    entry, program, suffix = document
    return CellLowering(read_entry(entry), program, suffix)
