"""The points of a chunk: each estimated or simulated, a failure being a row like any other."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace
from itertools import pairwise
from typing import TYPE_CHECKING, Protocol

import numpy as np

from castsim.estimating.casts import estimator_of
from castsim.exploration.sweeps.axes import bare, is_argument, is_option
from castsim.exploration.sweeps.grid import DEFAULT, Setting
from castsim.exploration.sweeps.identity import refuse_another
from castsim.exploration.sweeps.specification import Kind, Mode
from castsim.isa.errors import CastsimError, EngineError, ReadError
from castsim.isa.pto.parameters import with_values
from castsim.running import load, run_loaded
from castsim.targets import Target
from castsim.targets.options import with_options
from castsim.timing import Cause, limiter

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from castsim.estimating.arrays import ArrayEstimator
    from castsim.estimating.estimates import Estimate
    from castsim.exploration.sweeps.work import Program, Work

    Integers = NDArray[np.int64]

CAUSES = tuple(Cause)
_PLACE = {cause: place for place, cause in enumerate(CAUSES)}
_GROUPING = ("src", "dst", "target", "rounding", "saturation")
"""Choices of casts that arrays of shapes have in common."""


@dataclass(frozen=True, slots=True)
class Results:
    """The rows of a chunk: cycles, those of each cause, the largest cause, and what went wrong (None: nothing).

    `numbers` are those of the combinations, `causes` has a row for every `Cause`.
    """

    numbers: Integers
    cycles: Integers = field(init=False)
    causes: Integers = field(init=False)
    bound_by: NDArray[np.object_] = field(init=False)
    errors: NDArray[np.object_] = field(init=False)

    def __post_init__(self) -> None:
        size = len(self.numbers)
        object.__setattr__(self, "cycles", np.zeros(size, np.int64))
        object.__setattr__(self, "causes", np.zeros((len(CAUSES), size), np.int64))
        object.__setattr__(self, "bound_by", np.full(size, None, object))
        object.__setattr__(self, "errors", np.full(size, None, object))

    def set(self, row: int, cycles: int, bound_by: Cause, causes: Mapping[Cause, int]) -> None:
        """Set a row that has cycles."""
        self.cycles[row] = cycles
        self.bound_by[row] = str(bound_by)
        for cause, spent in causes.items():
            self.causes[_PLACE[cause], row] = spent

    def fail(self, rows: int | Integers, error: Exception, *, placed: bool = False) -> None:
        """Set rows that have none; `placed`: the place of the error is one in a file."""
        if isinstance(error, CastsimError | EngineError):
            message = f"{error.span}: {error.message}" if placed and error.span is not None else error.message
        else:
            message = "not enough memory" if isinstance(error, MemoryError) else f"internal error: {error!r}"
        self.errors[rows] = message


class _OneEstimate(Protocol):
    def __call__(self, *extents: int | None) -> Estimate: ...


def computed(work: Work, number: int) -> Results:
    """Return the rows of a chunk.

    Raises:
        EngineError: this installation is not the one that began the sweep.
        ReadError: a condition that has no value.
    """
    refuse_another(work.identity, {name: each for name, each in work.targets.items() if isinstance(each, str)})
    results = Results(work.grid.kept(*work.span(number)))
    if work.kind is Kind.PROGRAM:
        _programs(work, results)
    else:
        for rows, point in _groups(work, results.numbers):
            _casts(work, results, rows, point)
    return results


def _groups(work: Work, numbers: Integers) -> Iterator[tuple[Integers, dict[str, Setting | None]]]:
    """Yield rows that differ in their shape only, with what they have in common."""
    axes = [axis for axis in work.grid.axes if axis.name in _GROUPING]
    places = work.grid.places(numbers)
    key = np.zeros(len(numbers), np.int64)
    for axis in axes:
        key = key * len(axis.values) + places[axis.name]
    order = np.argsort(key, kind="stable")
    starts = np.flatnonzero(np.diff(key[order], prepend=-1)).tolist()
    for start, stop in pairwise([*starts, len(order)]):
        rows = order[start:stop]
        given = {axis.name: axis.values[int(places[axis.name][rows[0]])] for axis in axes}
        yield rows, {name: None if value == DEFAULT else value for name, value in given.items()}


def _casts(work: Work, results: Results, rows: Integers, point: Mapping[str, Setting | None]) -> None:
    words = {name: None if value is None else str(value) for name, value in point.items()}
    saturation = words.get("saturation")
    target = str(words["target"])
    held = work.targets[target]
    try:
        estimator = estimator_of(
            held, str(words["src"]), str(words["dst"]), words.get("rounding"),
            None if saturation is None else saturation.lower(), False,
        )  # fmt: skip
    except Exception as error:  # whatever it is, it is a row
        results.fail(rows, error)
        return
    extents = _extents(work, results.numbers[rows])
    if work.mode is Mode.SIMULATE:
        _one_by_one(results, rows, extents, estimator.simulate)
        return
    _estimated(results, rows, extents, estimator)


def _extents(work: Work, numbers: Integers) -> tuple[Integers, Integers, Integers]:
    """Return rows, columns and row stride of points."""
    places = work.grid.places(numbers)

    def column(name: str) -> Integers | None:
        axis = next((axis for axis in work.grid.axes if axis.name == name), None)
        if axis is None:
            return None
        found = axis.values
        if isinstance(found, range):
            return found.start + found.step * places[name]
        present, which = np.unique(places[name], return_inverse=True)
        used = [found[place] for place in present.tolist()]  # an axis has more values than a chunk has points
        values = np.array([-1 if each == DEFAULT else each for each in used], np.int64)[which]
        defaults = np.array([each == DEFAULT for each in used], np.bool_)[which]
        return np.where(defaults, needed("cols"), values) if defaults.any() else values

    def needed(name: str) -> Integers:
        found = column(name)
        assert found is not None
        return found

    rows, cols, stride = needed("rows"), needed("cols"), column("row_stride")
    return rows, cols, cols if stride is None else stride


def _estimated(
    results: Results, rows: Integers, extents: tuple[Integers, Integers, Integers], estimator: ArrayEstimator
) -> None:
    try:
        found = estimator.many(*extents, None, None, None)
    except Exception:  # one of them; which one, each by itself tells
        _one_by_one(results, rows, extents, estimator.one)
        return
    refused = np.array([reason is not None for reason in found.reasons], np.bool_)
    results.cycles[rows] = np.where(refused, 0, found.cycles).astype(np.int64)
    for cause, spent in found.causes.items():
        results.causes[_PLACE[cause], rows] = spent
    words = {cause: str(cause) for cause in CAUSES}
    results.bound_by[rows] = [None if each is None else words[each] for each in found.bound_by]
    results.errors[rows] = found.reasons


def _one_by_one(
    results: Results, rows: Integers, extents: tuple[Integers, Integers, Integers], one: _OneEstimate
) -> None:
    for row, *shape in zip(rows.tolist(), *(each.tolist() for each in extents), strict=True):
        try:
            found = one(*shape, None, None, None)
            results.set(row, found.cycles, found.bound_by, found.causes)
        except Exception as error:  # whatever it is, it is a row
            results.fail(row, error)


def _programs(work: Work, results: Results) -> None:
    """Run the points."""
    places = work.grid.places(results.numbers)
    for row in range(len(results.numbers)):
        point = {axis.name: axis.values[int(places[axis.name][row])] for axis in work.grid.axes}
        try:
            _run(work, results, row, {name: value for name, value in point.items() if value != DEFAULT})
        except Exception as error:  # whatever it is, it is a row
            results.fail(row, error, placed=True)


def _run(work: Work, results: Results, row: int, point: Mapping[str, Setting]) -> None:
    program = work.programs[str(point["program"])]
    source = program.source
    values, scalars = _parameters_and_scalars(program, point)
    if values:
        source = replace(source, text=with_values(source.text, source.file, values))
    options = {bare(name): str(value) for name, value in point.items() if is_option(name)}

    def prepared(target: Target) -> Target:
        return with_options(target, options)

    target = work.target(point["target"]) if "target" in point else None
    result = run_loaded(load(source, target, None, scalars, prepared), {}, timing_only=True, max_cycles=work.max_cycles)
    found, cycles = limiter(result.timing), result.cycles
    pipes = result.timing.pipes
    if found is None:
        results.set(row, cycles, Cause.EMPTY, {Cause.EMPTY: cycles})
    else:
        results.set(row, cycles, found.cause, pipes[found.pipe].causes)


def _parameters_and_scalars(
    program: Program, point: Mapping[str, Setting]
) -> tuple[dict[str, int | str], dict[str, int | float]]:
    """Return what a point gives to the parameters of a program, and what to its scalar arguments.

    Raises:
        ReadError: a fraction for a parameter, a word for a scalar argument.
    """
    values: dict[str, int | str] = {}
    scalars: dict[str, int | float] = {}
    for key, value in point.items():
        name = bare(key)
        if not is_argument(key):
            continue
        if name in program.parameters:
            if isinstance(value, float):
                raise ReadError(f"{key}: parameter {name} takes integers and words, not {value}")
            values[name] = value
        elif isinstance(value, str):
            raise ReadError(f"{key}: '{value:.80}' is not a number, and the program has no parameter {name}")
        else:
            scalars[name] = value
    return values, scalars
