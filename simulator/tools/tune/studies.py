"""From a request to a study: the kernel is read, its parameters and the choices are matched; `tune`."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Self

import numpy as np

import castsim
from castsim.execution.run_limits import DEFAULT_LIMITS, MAX_CYCLES, Limits
from castsim.execution.timing import ProgressCallback
from castsim.isa.dataclass import dataclass, fields, replace
from castsim.isa.errors import CastsimError, EngineError, ReadError, arguments_checked
from castsim.isa.formats import Codes
from castsim.isa.pto.lexer import PtoSource, parameters, unknown_parameter
from castsim.isa.reading import Language, is_file, read_source
from castsim.isa.value_expressions import Value
from castsim.targets.loader import Target
from castsim.tools.distribution.distributing import Ledger as FileLedger
from castsim.tools.distribution.distributing import LedgerLabels
from castsim.tools.distribution.origins import digest_of
from castsim.tools.tune.candidates import (
    ChoiceAxis,
    ChoiceKind,
    Points,
    Space,
    Study,
    TuningRow,
    read_axes,
    read_condition,
    refused,
)

_FIELDS = frozenset(each.name for each in fields(TuningRow)) - {"number", "pareto"}


class TuningLedger:
    """Ledger of `rows` by choices, simulated or not, and the file that receives each step (None: no file).

    It lets an interrupted search continue. A piece of the file is one row, as JSON.
    """

    def __init__(self, file: FileLedger | None = None) -> None:
        self._file = file
        self.rows: dict[tuple[bool, str], TuningRow] = {}

    @classmethod
    def opened(cls, path: Path, about: Mapping[str, str]) -> TuningLedger:
        """Return the ledger of a file, created if it is missing; `search` closes it.

        `about` are the digests of the data that rows depend on, by subject.

        Raises:
            ReadError: the file cannot be read or written, is not a ledger, has another subject, or is in use.
        """
        ledger = cls(FileLedger(path, about, LedgerLabels("tune", "--resume"), synchronised=False))
        for line in map(ledger._file.results, ledger._file.pieces):  # type: ignore[union-attr]  # opened above
            try:
                record = json.loads(line)
            except (ValueError, RecursionError):
                continue
            row = _row(record) if isinstance(record, dict) else None
            if row is not None:
                ledger.rows[_key(row, simulated=bool(record.get("simulated")))] = row
        return ledger

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        if self._file is not None:
            self._file.close()

    def known(self, row: TuningRow, *, simulated: bool) -> TuningRow | None:
        """Return the row of a point, simulated or not, with its current number."""
        recorded = self.rows.get(_key(row, simulated=simulated))
        return None if recorded is None else replace(recorded, number=row.number)

    def add(self, row: TuningRow, *, simulated: bool) -> None:
        """Store a row of a point.

        Raises:
            ReadError: the file cannot be written.
        """
        self.rows[_key(row, simulated=simulated)] = row
        if self._file is not None:
            values = ((name, getattr(row, name)) for name in _FIELDS)
            kept = {name: dict(value) if isinstance(value, Mapping) else value for name, value in values}
            kept["simulated"] = simulated
            self._file.add(len(self._file.pieces), json.dumps(kept, allow_nan=False).encode())


def _row(line: Mapping[str, object]) -> TuningRow | None:
    """Return the row of a line, None if `TuningLedger.add` did not write it."""
    values = {name: value for name, value in line.items() if name != "simulated"}
    choices, outputs = values.get("choices"), values.get("outputs", {})
    if not isinstance(choices, dict) or not isinstance(outputs, dict) or not values.keys() <= _FIELDS:
        return None
    numbers = [values.get(name) for name in ("buffer_bytes", "elements", "cycles")]
    fits = (
        all(type(choice) in (int, float, str) for choice in choices.values())
        and all(isinstance(digest, str) for digest in outputs.values())
        and all(number is None or (type(number) is int and number >= 0) for number in numbers)
        and type(values.get("at_least", 0)) is int
        and isinstance(values.get("bound_by"), str | None)
        and isinstance(values.get("reason", ""), str)
    )
    return TuningRow(0, **values) if fits else None  # type: ignore[arg-type]  # checked above


def _key(row: TuningRow, *, simulated: bool) -> tuple[bool, str]:
    return simulated, json.dumps(dict(row.choices), sort_keys=True)


# The search: every point is bounded from below, and those are simulated that could still be worth having.
#
# A point is settled once a simulated one needs no more cycles than it takes at least, and no more bytes of the buffer.
# When all are settled the fastest point found is the fastest there is, and the front of cycles against bytes is whole.

MOST_SIMULATED = 200
"""Default maximum number of simulated points."""
ALL = "all"
"""In place of a number of points to simulate: all points."""


@dataclass(frozen=True, slots=True)
class Tuning:
    """Result of a `study`: `rows` are the simulated ones by cycles, then others by their bounds, then misfits."""

    study: Study
    rows: tuple[TuningRow, ...]
    left_out: int
    """Number of combinations that a condition excludes."""

    @property
    def simulated(self) -> tuple[TuningRow, ...]:
        """Rows with cycles, fastest first; if equal, the one with fewer bytes, then the earlier one."""
        return tuple(row for row in self.rows if row.cycles is not None)

    @property
    def misfits(self) -> tuple[TuningRow, ...]:
        """Rows of points that do not run."""
        return tuple(row for row in self.rows if row.reason)

    @property
    def waiting(self) -> tuple[TuningRow, ...]:
        """Rows that were bounded but not simulated."""
        return tuple(row for row in self.rows if row.cycles is None and not row.reason)

    @property
    def best(self) -> TuningRow | None:
        """The fastest point; None if none runs."""
        return next(iter(self.simulated), None)

    @property
    def faster_possible(self) -> tuple[TuningRow, ...]:
        """Rows that were not simulated, but whose bounds allow fewer cycles than the best has."""
        best = self.best
        return tuple(row for row in self.waiting if best is None or row.at_least < (best.cycles or 0))

    @property
    def pareto(self) -> tuple[TuningRow, ...]:
        """The simulated points that no other point beats in both cycles and bytes, fastest first."""
        return tuple(row for row in self.simulated if row.pareto)

    @property
    def unsettled(self) -> tuple[TuningRow, ...]:
        """Rows that were not simulated, and might be on that front."""
        done = self.simulated
        return tuple(row for row in self.waiting if not _is_settled(row, done))

    @property
    def differing(self) -> tuple[tuple[TuningRow, tuple[str, ...]], ...]:
        """Simulated rows whose outputs differ in any bit from those of the best, with the names of these outputs."""
        if (best := self.best) is None:
            return ()
        differences = []
        for row in self.simulated:
            names = sorted({*row.outputs, *best.outputs})
            differences.append((row, tuple(name for name in names if row.outputs.get(name) != best.outputs.get(name))))
        return tuple(difference for difference in differences if difference[1])


def front(rows: Sequence[TuningRow]) -> tuple[TuningRow, ...]:
    """Return the rows that no other beats: fewer cycles or bytes, and no more of the other; fastest first."""
    kept: list[TuningRow] = []
    for row in sorted(rows, key=_rank):
        if not kept or _bytes(row) < _bytes(kept[-1]):
            kept.append(row)
    return tuple(kept)


def search(
    study: Study,
    simulate: int | str = MOST_SIMULATED,
    ledger: TuningLedger | None = None,
    progress: ProgressCallback = lambda *_: None,
) -> Tuning:
    """Search a space.

    Args:
        study: the kernel and its space.
        simulate: maximum number of points to simulate, most promising first; `all` simulates every one.
        ledger: earlier results, and the store for new ones; it is closed at the end.
        progress: receives the progress.

    Raises:
        ReadError: the kernel or its inputs cannot be read at any point; the conditions exclude all points; the ledger
            cannot be written.
    """
    with ledger or TuningLedger() as kept:
        return _searched(study, simulate, kept, progress)


def _searched(study: Study, simulate: int | str, ledger: TuningLedger, progress: ProgressCallback) -> Tuning:
    points = Points(study)
    rows = _bounded(study, points, ledger, progress)
    waiting = sorted((row for row in rows if not row.reason), key=lambda row: (row.at_least, _bytes(row), row.number))
    most = len(waiting) if simulate == ALL else int(simulate)
    done: list[TuningRow] = []
    unreadable: list[ReadError] = []
    finished: dict[int, TuningRow] = {}
    for row in waiting:
        progress("simulations", len(finished), min(most, len(waiting)))
        if len(finished) >= most:
            break
        if simulate != ALL and _is_settled(row, done):
            continue
        simulated_row = _looked_up(ledger, row, points.simulated, unreadable, simulated=True)
        timed = finished[row.number] = replace(simulated_row, at_least=row.at_least)
        if timed.cycles is not None:
            done.append(timed)
    if unreadable and not done:
        raise unreadable[0]
    numbers = {row.number for row in front(done)}
    rows = [replace(finished.get(row.number, row), pareto=row.number in numbers) for row in rows]
    ordered = sorted(rows, key=_order)
    return Tuning(study, tuple(ordered), study.space.combinations - len(rows))


def _bounded(study: Study, points: Points, ledger: TuningLedger, progress: ProgressCallback) -> list[TuningRow]:
    rows: list[TuningRow] = []
    unreadable: list[ReadError] = []
    for number, choices in enumerate(study.space.points(), 1):
        progress("bounds", number, study.space.combinations)
        rows.append(_looked_up(ledger, TuningRow(number, choices), points.bounded, unreadable, simulated=False))
    if rows and len(unreadable) == len(rows):
        raise unreadable[0]
    if not rows:
        first = study.space.conditions[0]
        legal = ("a condition that holds for some point",)
        raise ReadError("the space is empty: no point meets --where", span=first.span, legal=legal)
    return rows


def _looked_up(
    ledger: TuningLedger,
    row: TuningRow,
    find_out: Callable[[TuningRow], TuningRow],
    unreadable: list[ReadError],
    *,
    simulated: bool,
) -> TuningRow:
    """Return the ledger's row of a point, or compute and store it; otherwise the reason why it does not run."""
    cached = ledger.known(row, simulated=simulated)
    if cached is not None:
        return cached
    try:
        cached = find_out(row)
        ledger.add(cached, simulated=simulated)
    except (CastsimError, EngineError) as error:
        if isinstance(error, ReadError):
            unreadable.append(error)
        cached = refused(row, error)
    return cached


def _is_settled(row: TuningRow, done: Sequence[TuningRow]) -> bool:
    return any(
        (finished_row.cycles or 0) <= row.at_least and _bytes(finished_row) <= _bytes(row) for finished_row in done
    )


def _bytes(row: TuningRow) -> int:
    return row.buffer_bytes or 0


def _rank(row: TuningRow) -> tuple[int, int, int]:
    return row.cycles or 0, _bytes(row), row.number


def _order(row: TuningRow) -> tuple[int, int, int, int]:
    if row.cycles is not None:
        return (0, *_rank(row))
    return (2, row.number, 0, 0) if row.reason else (1, row.at_least, _bytes(row), row.number)


Several = int | float | str | Sequence[Value | float]
"""One value, or a list of alternatives."""


def study_of(
    program: Path,
    axes: Sequence[ChoiceAxis],
    where: Sequence[str] = (),
    *,
    target: str | Path | Target | None = None,
    entry: str | None = None,
    args: Mapping[str, int | float] | None = None,
    options: Mapping[str, str] | None = None,
    inputs: Mapping[str, Codes | str] | None = None,
    sync: str = "insert",
    engine: str | None = None,
    max_cycles: int = MAX_CYCLES,
    limits: Limits = DEFAULT_LIMITS,
) -> Study:
    """Return the study of a kernel; unspecified parameters take the values that the program proposes.

    Raises:
        ReadError: the program cannot be read, or a tile choice is not one of its parameters; see also `Space.of`.
    """
    source = read_source(program, lambda: False)
    arguments = parameters(PtoSource(source.file, source.text)) if source.language is Language.TILES else {}
    for axis in axes:
        if axis.kind is ChoiceKind.TILE and axis.name not in arguments:
            raise unknown_parameter(axis.name, arguments, source.file, axis.span)
    named = {axis.name for axis in axes if axis.kind is ChoiceKind.TILE}
    proposed = [
        ChoiceAxis(ChoiceKind.TILE, parameter.name, parameter.values, parameter.span)
        for parameter in arguments.values()
        if parameter.values and parameter.name not in named
    ]
    fixed = {
        name: parameter.default for name, parameter in arguments.items() if name not in named and not parameter.values
    }
    space = Space.of([*axes, *proposed], [read_condition(text) for text in where], {**fixed, **(args or {})})
    return Study(
        source, space, target, entry, args or {}, options or {}, inputs or {}, sync, engine, max_cycles, limits
    )


def about(study: Study) -> dict[str, str]:
    """Return the digests of all data that rows depend on, by subject, without choices and conditions."""
    settings = {
        "entry": study.entry,
        "args": dict(study.args),
        "options": dict(study.options),
        "sync": study.sync,
        "max_cycles": study.max_cycles,
        "walk": study.limits.max_walk,
    }
    named = [str(value) for axis in study.space.axes if axis.kind is ChoiceKind.TARGET for value in axis.values]
    targets = [*map(_content, named), *([] if study.target is None else [_described(study.target)])]
    return {
        "program": digest_of(study.source.text.encode(), study.source.data),
        "settings": digest_of(json.dumps(settings, sort_keys=True).encode()),
        "target": digest_of(*filter(None, targets)),
        "inputs": digest_of(
            *(part for name, given in sorted(study.inputs.items()) for part in (name.encode(), _given(given)))
        ),
        "version of castsim": castsim.__version__,
    }


def _content(name: str) -> bytes:
    """Return the content of a target description; empty for a shipped one, which the version identifies."""
    path = Path(name)
    return path.read_bytes() if path.suffix == ".toml" and is_file(path) else b""


def _described(target: str | Path | Target) -> bytes:
    """Return the parts of a target that the version does not identify."""
    if isinstance(target, str | Path):
        return _content(str(target)) or str(target).encode()
    return repr(target).encode()


def _given(given: Codes | str) -> bytes | memoryview:
    """Return the bytes of an input; files are mapped, because they may be larger than memory."""
    if not isinstance(given, str):
        return np.ascontiguousarray(given).tobytes()
    path = Path(given)
    return np.memmap(path, np.uint8, "r").data if is_file(path) and path.stat().st_size else given.encode()


@arguments_checked
def tune(
    program: str | Path,
    tile: str | Sequence[str] | Mapping[str, Sequence[Value]] = (),
    *,
    where: str | Sequence[str] = (),
    args: Mapping[str, Several] | None = None,
    options: Mapping[str, Several] | None = None,
    target: str | Path | Target | Sequence[str] | None = None,
    entry: str | None = None,
    inputs: Mapping[str, Codes | str] | None = None,
    simulate: int | str = MOST_SIMULATED,
    sync: str = "insert",
    engine: str | None = None,
    max_cycles: int = MAX_CYCLES,
    max_walk: int | None = None,
    resume: str | Path | None = None,
    progress: ProgressCallback = lambda *_: None,
) -> Tuning:
    """Search the choices of a parametrised kernel for fewest cycles and fewest bytes of the tile buffer.

    Every point gets a lower bound of its cycles without being simulated; then the most promising ones are simulated,
    until no other can be faster or smaller, or the limit `simulate` is reached.

    Args:
        program: path of a `.pto` file with parameters (docs/reference/pto.md section 3.6), or of any program if
            only arguments, options or targets vary.
        tile: a `--tile` text, `R in 8..64, C in 128,256`, or values by parameter. Unnamed parameters take
            the values that the program proposes, or else their default.
        where: conditions such as `R*C*4 <= 65536`.
        args: scalar arguments: a number, or a list of alternatives.
        options: target options, in the same form.
        target: a target, or a list of names.
        entry: function to run.
        inputs: see `castsim.run`; with them values are computed and outputs compared between points.
        simulate: maximum number of points to simulate; `all`: every one.
        sync, engine, max_cycles, max_walk: see `castsim.run`.
        resume: file that stores finished points; if it exists, the search continues from it.
        progress: receives the stage, the finished part of it, and its total.

    Returns:
        The simulated points, with cycles and bytes, and the bounds of the others.

    Raises:
        ReadError: the program, the choices or a condition cannot be read; the space is empty; the ledger is about
            something else.
    """
    axes = _tile_axes(tile)
    fixed_args, fixed_options = {}, {}
    for name, given in (args or {}).items():
        if isinstance(given, int | float):
            fixed_args[name] = given
        else:
            axes.append(ChoiceAxis(ChoiceKind.ARGUMENT, name, tuple(given)))
    for name, given in (options or {}).items():
        if isinstance(given, int | float | str):
            fixed_options[name] = str(given)
        else:
            axes.append(ChoiceAxis(ChoiceKind.OPTION, name, tuple(given)))
    if isinstance(target, Sequence) and not isinstance(target, str):
        axes.append(ChoiceAxis(ChoiceKind.TARGET, "target", tuple(target)))
        target = None
    if simulate != ALL and (not isinstance(simulate, int) or simulate < 1):
        raise ReadError(f"simulate={simulate!r}: not a number of points", legal=("1 or more", ALL))
    study = study_of(
        Path(program), axes, [where] if isinstance(where, str) else where, target=target, entry=entry, args=fixed_args,
        options=fixed_options, inputs=inputs, sync=sync, engine=engine, max_cycles=max_cycles,
        limits=Limits(max_walk=max_walk),
    )  # fmt: skip
    ledger = None if resume is None else TuningLedger.opened(Path(resume), about(study))
    return search(study, simulate, ledger, progress)


def _tile_axes(tile: str | Sequence[str] | Mapping[str, Sequence[Value]]) -> list[ChoiceAxis]:
    if isinstance(tile, Mapping):
        return [ChoiceAxis(ChoiceKind.TILE, name, tuple(values)) for name, values in tile.items()]
    return [axis for text in ([tile] if isinstance(tile, str) else tile) for axis in read_axes(ChoiceKind.TILE, text)]
