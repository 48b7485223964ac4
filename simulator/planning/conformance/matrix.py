"""The matrix of a specification's casts and targets, computed in one or several processes."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Literal, TypeVar

from castsim.execution.distribution import (
    Computed,
    Group,
    HandedTargets,
    Keeping,
    Origin,
    Task,
    Workers,
    about_installation,
    digest,
    facts_digest,
    handed_targets,
    here,
    resumed,
)
from castsim.execution.notebook_display import PlotMixin
from castsim.isa.errors import IllegalError
from castsim.isa.formats import Format, IntFormat, format_named
from castsim.planning import Verdict
from castsim.planning.conformance.cells import (
    Cell,
    ConformanceEntry,
    changed,
    legal_casts,
    settle_cell,
    specified_version,
)
from castsim.planning.conformance.kept import entry_document, read_entry
from castsim.planning.lowering_answers import Setting, setting_of
from castsim.specifications import SpecifiedCast
from castsim.targets import Specification, load_specification, load_target, target_names
from castsim.timing import ProgressCallback

Result = TypeVar("Result")

_TOGETHER = 4
"""Cells that are handed out together: they follow each other, so that they share what was found out."""


@dataclass(frozen=True, slots=True, repr=False)
class Matrix(PlotMixin[Literal["cells"]]):
    """What `conform` answers: every cast of a specification on every target.

    `casts` are in the order of the specification `spec`, `targets` by name; `entries` are those of all cells, cast by
    cast. `options` are those that all targets were given. `plot` draws a square per cast and target in the colour of
    its verdict. The frame `cells` has a row for each of them, cast by cast: what `castsim conform --json` has under
    the same names, and the `answer` in words.
    """

    spec: Specification
    version: str
    """The version of the specification."""
    casts: tuple[SpecifiedCast, ...]
    """One per row."""
    targets: tuple[str, ...]
    entries: tuple[ConformanceEntry, ...]
    options: Setting = ()
    origins: tuple[Origin, ...] = field(default=(), compare=False)
    """Who computed each of the entries."""

    def __repr__(self) -> str:
        fine = sum(each.verdict is not Verdict.DIFFERS for each in self.entries)
        return (
            f"<Matrix {self.spec.name}@{self.version}: {len(self.casts)} casts on {len(self.targets)} targets, "
            f"{fine} of {len(self.entries)} cells conform>"
        )

    def row(self, number: int) -> tuple[ConformanceEntry, ...]:
        """Return the entries of one cast, target by target."""
        width = len(self.targets)
        return self.entries[number * width : (number + 1) * width]


def cells_of(casts: Iterable[SpecifiedCast], targets: Sequence[str]) -> list[Cell]:
    """Return the cells of a matrix, cast by cast."""
    return [
        Cell(_named(cast.src, cast), _named(cast.dst, cast), changed(cast), target)
        for cast in casts
        for target in targets
    ]


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
        targets: names or paths; none means all that are shipped.
        version: of the specification; None: its default.
        src, dst: keep the casts from and to these formats only.
        prove: try all codes of 32 bits where nothing less proves a verdict, which takes seconds per cell.
        workers: processes.
        progress: is told how many cells are done.
        options: of the targets, which all must have them.
        scheduler: address of a Dask scheduler whose workers are to compute instead.
        ledger: a file in which every cell is kept as soon as it is done: the same call goes on from there. It stays.

    Returns:
        A matrix of a row per cast and a column per target.

    Raises:
        ReadError: unknown specification, version, target, format, option or value of one; the ledger is about
            something else; the scheduler does not answer.
        IllegalError: no cast is left.
        EngineError: a worker has another castsim; workers die again and again.
    """
    asked = prepared(spec, targets, version, src, dst, options or {})
    who = Workers(workers, scheduler)
    run = Settling(asked.spec, asked.version, prove, asked.options, asked.handed(who))
    kept = keeping(ledger, asked, {"choice of --prove": str(prove)}, entry_document, lambda _, held: read_entry(held))
    settled = settle(run, asked.cells, who, kept, progress)
    entries, origins = tuple(one.result for one in settled), tuple(one.origin for one in settled)
    return asked.matrix(entries, origins)


@dataclass(frozen=True, slots=True)
class Prepared:
    """What is asked for: casts of a specification's version, targets, and their options."""

    spec: Specification
    version: str
    casts: tuple[SpecifiedCast, ...]
    targets: tuple[str, ...]
    options: Mapping[str, int | str]
    given: Setting
    cells: tuple[Cell, ...]

    def matrix(self, entries: tuple[ConformanceEntry, ...], origins: tuple[Origin, ...]) -> Matrix:
        """Return the matrix of the entries of all cells."""
        return Matrix(self.spec, self.version, self.casts, self.targets, entries, self.given, origins)

    def handed(self, workers: Workers) -> HandedTargets:
        """Return the targets that workers may not have."""
        return HandedTargets() if workers.scheduler is None else handed_targets(self.targets)


def prepared(
    spec: Specification | str | Path,
    targets: Sequence[str],
    version: str | None,
    src: str | None,
    dst: str | None,
    options: Mapping[str, int | str],
) -> Prepared:
    """Return what is asked for; arguments and errors as `conform`."""
    found = load_specification(spec) if isinstance(spec, str | Path) else spec
    chosen = specified_version(found, version)
    names, casts = _chosen(found, targets, chosen, src, dst)
    given = [setting_of(load_target(name), options) for name in names]
    return Prepared(found, chosen, casts, names, dict(options), given[0], tuple(cells_of(casts, names)))


def settle(
    run: Callable[[Group[Cell]], Sequence[Result]],
    cells: Sequence[Cell],
    workers: Workers,
    kept: Keeping[Result] | None,
    progress: ProgressCallback,
) -> list[Computed[Result]]:
    """Return the results of cells in their order, whoever computes them."""
    found: dict[int, Computed[Result]] = {}
    progress(_label(cells[0]), 0, len(cells))
    for one in resumed(Task("conform or lower", run, here(None, workers)), cells, workers, kept, _TOGETHER):
        found[one.number] = one
        progress(_label(cells[one.number]), len(found), len(cells))
    return [found[number] for number in range(len(cells))]


@dataclass(frozen=True)
class Settling:
    """Settles cells of a specification's version; see `conform`. `targets` are those of files, which others lack."""

    spec: Specification
    version: str
    prove: bool
    options: Mapping[str, int | str]
    targets: HandedTargets

    def __call__(self, group: Group[Cell]) -> list[ConformanceEntry]:
        """Return the entries of cells."""
        return [
            settle_cell(
                cell, self.spec, self.version, prove=self.prove, options=self.options,
                target=self.targets.get(cell.target),
            )
            for cell in group.items
        ]  # fmt: skip


def keeping(
    ledger: str | Path | None,
    asked: Prepared,
    further: Mapping[str, str],
    write: Callable[[Result], object],
    read: Callable[[int, object], Result],
) -> Keeping[Result] | None:
    """Return where and how the results of cells are kept; `further` is what else they depend on."""
    if ledger is None:
        return None
    about = {
        **about_installation(),
        "specification": digest(asked.spec.model_dump_json(), asked.version),
        "set of casts": digest(*(cell.cast for cell in asked.cells)),
        "set of targets": digest(*((name, facts_digest(load_target(name))) for name in asked.targets)),
        "set of target options": digest(*sorted((name, str(value)) for name, value in asked.options.items())),
        **further,
    }
    return Keeping(Path(ledger), about, write, read)


def _label(cell: Cell) -> str:
    return f"{cell.src} -> {cell.dst} on {cell.target}"


def chosen_cells(
    spec: Specification,
    targets: Sequence[str] = (),
    *,
    version: str | None = None,
    src: str | None = None,
    dst: str | None = None,
) -> tuple[str, list[Cell]]:
    """Return the version in force and the cells of a matrix; arguments and errors as `conform`."""
    chosen = specified_version(spec, version)
    names, casts = _chosen(spec, targets, chosen, src, dst)
    return chosen, cells_of(casts, names)


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
