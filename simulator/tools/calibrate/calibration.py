"""Calibration of a target from a user's measurements: a table of cycles in, a derived description out."""

from __future__ import annotations

import json
import os
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from decimal import ROUND_HALF_EVEN, Decimal
from fnmatch import fnmatchcase
from math import inf
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from castsim.execution.timing import ProgressCallback
from castsim.files import whole_file
from castsim.isa.dataclass import dataclass, field, replace
from castsim.isa.errors import CastsimError, ReadError, Span, TargetDataError, installed, missing_package
from castsim.reports.documents import CommandDocument, Keys, apart, derived, record, says
from castsim.reports.schemas.keys import Cycles, Percent
from castsim.targets.description import Fact, Table, with_facts
from castsim.targets.loader import Target, load_target, target_names
from castsim.tools.accuracy.accuracy_assessment import assess_row
from castsim.tools.accuracy.measured_rows import TRANSFERS, MeasuredRow, MeasuredTable

# The numbers of a target that rows of a table depend on, named by their path in the description.
#
# No list says which they are: each number of the timing tables is moved, and those count that move the cycles of a
# row. Rows are asked table by table first, so that most numbers of most rows are never looked at.

_ABOUT = frozenset(Fact.model_fields)
_FINEST = 3
"""Decimals of a fitted fraction, unless its fact has fewer."""
_LARGE = Decimal(64)
"""Cycles by which a number is changed to see whether it matters; it is also divided by this factor, if legal."""


@dataclass(frozen=True, slots=True)
class FitSelection:
    """The user's choice: patterns of parameters to fit (none: all that matter), patterns to keep, and bounds."""

    fit: tuple[str, ...] = ()
    fix: tuple[str, ...] = ()
    bounds: Mapping[str, tuple[float, float]] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class FittedParameter:
    """A fitted number of the description: its path, value, the step between legal values, minimum and maximum."""

    path: str
    value: Decimal
    step: Decimal
    low: float
    high: float = inf

    @property
    def whole(self) -> bool:
        """Whether it counts whole cycles."""
        return self.step == 1

    def legal(self, value: float) -> Decimal:
        """Return the nearest legal value."""
        bounded = min(max(value, self.low), self.high)
        return Decimal(repr(float(bounded))).quantize(self.step, ROUND_HALF_EVEN)


def numbers_of(target: Target) -> dict[str, Decimal]:
    """Return every number in the timing tables of the description, by path."""
    roots = ((name, getattr(target, name)) for name in target.time_tables)
    return {path: value for name, root in roots for path, value in _numbers(name, root)}


def _numbers(path: str, node: Any) -> Iterator[tuple[str, Decimal]]:
    if isinstance(node, int | Decimal) and not isinstance(node, bool):
        yield path, Decimal(node)
        return
    if isinstance(node, Table):
        node = {name: getattr(node, name) for name in type(node).model_fields if name in node.model_fields_set - _ABOUT}
    if isinstance(node, Mapping):
        for key, below in node.items():
            if isinstance(key, str) and "." not in key:
                yield from _numbers(f"{path}.{key}", below)


def changed(target: Target, values: Mapping[str, Decimal]) -> Target:
    """Return the target with changed numbers; integers stay integers. TargetDataError: a value is not legal."""
    return with_facts(
        target, {path: int(number) if number == int(number) else number for path, number in values.items()}
    )


def cycles_of(target: Target, row: MeasuredRow) -> int:
    """Return the simulated cycles of a row."""
    return assess_row(target, row).simulated_cycles


def parameters_of(target: Target, rows: Sequence[MeasuredRow], choice: FitSelection) -> tuple[FittedParameter, ...]:
    """Return the numbers to fit, in the order of the description.

    Raises:
        ReadError: a pattern matches no number, bounds exclude every value, a requested number affects no row,
            or there is nothing to fit.
        IllegalError, TileError: the target cannot run a row (with position).
    """
    numbers = numbers_of(target)
    for option, patterns in (("--fit", choice.fit), ("--fix", choice.fix), ("--bounds", tuple(choice.bounds))):
        for pattern in patterns:
            if not any(fnmatchcase(path, pattern) for path in numbers):
                near = [path for path in numbers if pattern.rpartition(".")[2] in path] or list(numbers)
                raise ReadError(f"{option} {pattern}: {target.name} has no such number", legal=near)
    asked = [path for path in numbers if not choice.fit or _matches(path, choice.fit)]
    asked = [path for path in asked if not _matches(path, choice.fix)]
    usual = [cycles_of(target, row) for row in rows]
    paths = set(_mattering(target, rows, usual, {path: numbers[path] for path in asked}, 1))
    silent = [path for path in asked if path not in paths and path in choice.fit]
    if silent:
        raise ReadError(f"no row of the table depends on {', '.join(silent)}", legal=sorted(paths))
    if not paths:
        raise ReadError("no row of the table depends on a number that can be fitted", legal=list(numbers)[:12])
    return tuple(_parameter(target, path, numbers[path], choice) for path in asked if path in paths)


def _matches(path: str, patterns: Sequence[str]) -> bool:
    return any(fnmatchcase(path, pattern) for pattern in patterns)


def _mattering(
    target: Target, rows: Sequence[MeasuredRow], usual: Sequence[int], numbers: Mapping[str, Decimal], depth: int
) -> Iterator[str]:
    """Yield the numbers that affect any row, table by table: if a table has no effect, its numbers have none."""
    tables: dict[str, dict[str, Decimal]] = {}
    for path, value in numbers.items():
        tables.setdefault(".".join(path.split(".")[: depth + 1]), {})[path] = value
    for inner in tables.values():
        ways = [
            {
                number
                for number, (row, before) in enumerate(zip(rows, usual, strict=True))
                if _cycles_or_none(variant, row) != before
            }
            for variant in _moved(target, inner)
        ]
        moved = sorted(set().union(*ways))
        if len(inner) == 1:
            # A limit that binds no row moves some when it is moved one way only: no row says where it lies.
            yield from inner if ways and all(ways) else ()
        elif moved:
            some = [rows[number] for number in moved]
            yield from _mattering(target, some, [usual[number] for number in moved], inner, depth + 1)


def _moved(target: Target, numbers: Mapping[str, Decimal]) -> Iterator[Target]:
    """Yield the target with numbers far larger, and far smaller, within legal bounds."""
    for larger in (True, False):
        changed_to = target
        for path, value in numbers.items():
            step = Decimal(1) if value == int(value) else Decimal("0.01")
            moved = value + _LARGE if larger else max(value / _LARGE, Decimal("0.01"))
            if (moved := moved.quantize(step)) == value:
                continue
            try:
                changed_to = changed(changed_to, {path: moved})
            except TargetDataError:  # at a bound of its own, or bound to another
                continue
        if changed_to is not target:
            yield changed_to


def _cycles_or_none(target: Target, row: MeasuredRow) -> int | None:
    """Return the cycles; None for a row that cannot run, or cannot run after so large a change."""
    try:
        return cycles_of(target, row)
    except (CastsimError, ArithmeticError):
        return None


def _parameter(target: Target, path: str, value: Decimal, choice: FitSelection) -> FittedParameter:
    places = next((n for n in range(_FINEST, 0, -1) if _legal(target, path, int(value) + Decimal(1).scaleb(-n))), 0)
    step = Decimal(1).scaleb(-places) if places else Decimal(1)
    low = next((lowest for lowest in (Decimal(0), step, value) if _legal(target, path, lowest)), value)
    bound = next((bounds for pattern, bounds in choice.bounds.items() if fnmatchcase(path, pattern)), None)
    if bound is None:
        return FittedParameter(path, value, step, float(low))
    if not float(low) <= bound[0] < bound[1]:
        raise ReadError(f"--bounds {path}: {bound[0]:g}..{bound[1]:g} is not a range of values of {low} or more")
    return FittedParameter(path, value, step, *bound)


def _legal(target: Target, path: str, value: Decimal) -> bool:
    try:
        changed(target, {path: value})
    except TargetDataError:
        return False
    return True


# The fit itself: relative errors of the rows made small by a library's bounded least squares.
#
# Simulated cycles are whole numbers, so differences over small steps are noise. A number is moved both ways, by twice
# as much each time until the row that it moves most is moved by 32 cycles: what rounding adds is then a few per cent
# of the slope. Between the values that a fact can have the cycles are continued along these slopes.

ENOUGH = 32
"""Minimum number of cycles by which a step changes the row that it affects most."""
INDISTINCT = 0.02
"""Smallest singular value of the Jacobian (columns of length one) that is not zero: slopes have 3 % of noise."""
BEYOND = 2
"""Multiple of the rows' noise above which errors indicate a wrong model."""
USUAL_NOISE = 3.0
"""Standard deviation in percent that is assumed if no rows repeat a measurement."""
_SHARE = 0.1
"""Minimum share of a direction for a parameter to be named."""
_ROUNDING = 1 / 12**0.5
"""Standard deviation, in cycles, that rounding to whole cycles adds."""
_IMPOSSIBLE = 2
_DOUBLINGS = 12
_SCALES = (4, 16, 0.25)

Array = NDArray[np.float64]


@record
class CalibratedParameter(Keys):
    """A fitted number of the description."""

    path: str = says("Its path in the description.")
    before: Decimal = says("Value in the target.")
    value: Decimal = says("Fitted value.")
    standard_error: float | None = says(
        "Its standard error; null at a bound, or if there are no more rows than parameters."
    )
    low: float = says("Lower end of the range of possible values.")
    high: float | None = says("Upper end of the range of possible values; null if there is none.")
    at_bound: bool = derived(
        "Whether the fitted value is at a bound.", lambda own: float(own.value) in (own.low, own.high)
    )
    rows: int = says("Number of rows that depend on the fact.")


def _off(row: CalibratedRow, cycles: int) -> float:
    return 100 * (cycles - row.measured_cycles) / row.measured_cycles


@record
class CalibratedRow(Keys):
    """A measured row, simulated before and after the fit."""

    row: MeasuredRow = apart()
    line: int = derived("Its line in the table.", "row.span.line")
    operation: str = derived("The operation and its parameters.", "row.label")
    src: str = derived("Name of the source format.", "row.src.name")
    dst: str = derived("Name of the destination format.", "row.dst.name")
    measured_cycles: Cycles = derived("Measured cycles.", "row.measured_cycles")
    before_cycles: Cycles = says("Simulated on the target.")
    after_cycles: Cycles = says("Simulated on the derived target.")
    before_percent: Percent = derived(
        "Error of the target relative to the measured cycles.", lambda own: _off(own, own.before_cycles)
    )
    after_percent: Percent = derived(
        "Error of the derived target relative to the measured cycles.", lambda own: _off(own, own.after_cycles)
    )


def _deviation(errors: Iterable[float]) -> float:
    """Return the root mean square error in percent."""
    return float(np.sqrt(np.mean(np.square(list(errors)))))


def misfits(calibration: Calibration) -> tuple[str, ...]:
    """Return doubts about the fit: errors far beyond the noise of the rows, and numbers that they hardly determine.

    The noise comes from repeated measurements; without any, it is `USUAL_NOISE`.
    """
    groups: dict[tuple[tuple[str, str], ...], list[float]] = {}
    for row in calibration.table.rows:
        what = tuple((name, text) for name, text in row.cells.items() if name != "measured_cycles")
        groups.setdefault(what, []).append(float(row.measured_cycles))
    again = [np.array(group) / np.mean(group) for group in groups.values() if len(group) > 1]
    degrees = sum(len(group) - 1 for group in again)
    noise = 100 * float(np.sqrt(sum(np.sum((group - 1) ** 2) for group in again) / degrees)) if degrees else USUAL_NOISE
    errors = [row.after_percent for row in calibration.rows]
    rounding = 100 * _ROUNDING * float(np.mean([1 / row.measured_cycles for row in calibration.table.rows]))
    warnings = []
    if calibration.residual_percent > BEYOND * max(noise, rounding):
        worst = max(range(len(errors)), key=lambda number: abs(errors[number]))
        warnings.append(
            f"the rows do not fit the model: {calibration.residual_percent:.2f} % rms, where "
            f"{'rows that measure the same again scatter by' if degrees else 'measurements usually scatter by'} "
            f"{noise:.2f} %; line {calibration.table.rows[worst].span.line} is {errors[worst]:+.2f} % off"
        )
    warnings += [
        f"the rows hardly determine {parameter.path}: {parameter.value:f} +- {parameter.standard_error:.2g}"
        for parameter in calibration.parameters
        if parameter.standard_error is not None and 2 * parameter.standard_error > abs(float(parameter.value))
    ]
    return tuple(warnings)


@record
class Calibration(CommandDocument, name="calibrate", title="Calibrated"):
    """Numbers of a target fitted to a table; all of its rows are fitted."""

    target: Target = says("Name of the target.")
    table: MeasuredTable = apart()
    file: str = derived("The table.", "table.file")
    out: str = says("The derived description.")
    residual_before_percent: Percent = derived(
        "Root of the mean squared error of the rows on the target.",
        lambda own: _deviation(row.before_percent for row in own.rows),
    )
    residual_percent: Percent = derived(
        "Root of the mean squared error of the rows on the derived target.",
        lambda own: _deviation(row.after_percent for row in own.rows),
    )
    warnings: tuple[str, ...] = derived(
        "Doubts about the fit: errors beyond the noise of the rows, numbers that the rows hardly determine.",
        misfits,
    )
    parameters: tuple[CalibratedParameter, ...] = says("The fitted parameters.")
    rows: tuple[CalibratedRow, ...] = says("The rows.")


def calibrate(
    target: Target, table: MeasuredTable, choice: FitSelection, progress: ProgressCallback = lambda *_: None
) -> Calibration:
    """Fit the parameters of a target that the rows of a table depend on.

    Raises:
        ReadError: the target has no tiles, scipy is missing, a choice matches nothing, the rows leave parameters
            undetermined, or no values explain a row's cycles (with position).
        IllegalError, TileError: the target cannot run a row (with position).
    """
    if not target.has_tiles:
        message = f"{target.name} runs bundles of instructions at the vendor's stage tables: nothing of it is fitted"
        raise ReadError(message, legal=[name for name in target_names() if load_target(name).has_tiles])
    if not installed("scipy"):
        raise missing_package("calibrate", "scipy", "calibrate")
    from scipy.optimize import least_squares  # noqa: PLC0415 - an extra

    progress("what the rows depend on", 0, 3)
    parameters = parameters_of(target, table.rows, choice)
    model = _Model(target, table.rows, parameters)
    start = np.array([float(parameter.value) for parameter in parameters])
    model.slopes(start)
    _check_possible(model, table)
    progress("what the rows can determine", 1, 3)
    _check_determined(model)
    progress("fit", 2, 3)
    values, free = start, list(range(len(parameters)))
    while free:  # whole numbers are rounded one after the other, the weightiest first; what is left makes up for it
        values = model.fit(least_squares, values, free)
        whole = [index for index in free if parameters[index].whole]
        chosen = max(whole, key=lambda index: float(np.linalg.norm(model.jacobian[:, index])), default=None)
        free = [] if chosen is None else [position for position in free if position != chosen]
        if chosen is not None:
            values[chosen] = float(parameters[chosen].legal(values[chosen]))
    final = model.legal(values)
    model.slopes(np.array([float(value) for value in final]))
    errors = model.standard_errors(final)
    fitted = tuple(
        CalibratedParameter(
            parameter.path,
            parameter.value,
            value,
            error,
            parameter.low,
            parameter.high if np.isfinite(parameter.high) else None,
            reached,
        )
        for parameter, value, error, reached in zip(parameters, final, errors, model.reached(), strict=True)
    )
    before, after = (map(int, model.cycles(simulated)) for simulated in (model.legal(start), final))
    rows = tuple(CalibratedRow(*cycles) for cycles in zip(table.rows, before, after, strict=True))
    return Calibration(target, table, "", fitted, rows)


class _Model:
    """The rows as functions of the parameters."""

    def __init__(self, target: Target, rows: Sequence[MeasuredRow], parameters: Sequence[FittedParameter]) -> None:
        self.target, self.rows, self.parameters = target, rows, parameters
        self.measured: Array = np.array([float(row.measured_cycles) for row in rows])
        self.jacobian: Array = np.zeros((len(rows), len(parameters)))
        """Slopes of the relative cycles at the last requested values."""
        self._known: dict[tuple[Decimal, ...], Array] = {}

    def legal(self, values: Sequence[float] | Array) -> tuple[Decimal, ...]:
        return tuple(parameter.legal(float(value)) for parameter, value in zip(self.parameters, values, strict=True))

    def cycles(self, values: tuple[Decimal, ...]) -> Array:
        if values not in self._known:
            self._known[values] = self.cycles_of(values, self.rows)
        return self._known[values]

    def cycles_of(self, values: tuple[Decimal, ...], rows: Sequence[MeasuredRow]) -> Array:
        edits = {parameter.path: value for parameter, value in zip(self.parameters, values, strict=True)}
        edited = changed(self.target, edits)
        return np.array([float(cycles_of(edited, row)) for row in rows])

    def slopes(self, values: Array) -> Array:
        """Return, and cache, the slopes at some values."""
        for index in range(len(self.parameters)):
            self.jacobian[:, index] = self.slope(values, index) / self.measured
        return self.jacobian

    def slope(self, values: Array, index: int, rows: Sequence[MeasuredRow] | None = None) -> Array:
        """Return the cycles that one more unit of a parameter adds to each row."""
        parameter = self.parameters[index]
        width = max(float(parameter.step), abs(values[index]) / 32)
        slope: Array = np.zeros(len(rows or self.rows))
        for _ in range(_DOUBLINGS):
            ends = [np.array(values, dtype=float) for _ in range(2)]
            ends[0][index], ends[1][index] = values[index] - width, values[index] + width
            low, high = (self.legal(end) for end in ends)
            if (span := float(high[index] - low[index])) > 0:
                difference = self._at(high, rows) - self._at(low, rows)
                slope = difference / span
                if np.max(np.abs(difference)) >= ENOUGH:
                    break
            width *= 2
        return slope

    def _at(self, values: tuple[Decimal, ...], rows: Sequence[MeasuredRow] | None) -> Array:
        return self.cycles(values) if rows is None else self.cycles_of(values, rows)

    def residuals(self, values: Array) -> Array:
        """Return relative errors, interpolated along the slopes between legal values."""
        legal = self.legal(values)
        rest = values - np.array([float(value) for value in legal])
        errors: Array = (self.cycles(legal) - self.measured) / self.measured + self.jacobian @ rest
        return errors

    def fit(self, least_squares: Any, values: Array, free: list[int]) -> Array:
        """Return the values of `free` parameters that minimise the relative errors."""

        def whole(some: Array) -> Array:
            full = np.array(values, dtype=float)
            full[free] = some
            return full

        bounds = ([self.parameters[index].low for index in free], [self.parameters[index].high for index in free])
        solution = least_squares(
            lambda some: self.residuals(whole(some)), values[free], lambda some: self.slopes(whole(some))[:, free],
            bounds=bounds, x_scale="jac", xtol=1e-6, ftol=1e-9, max_nfev=60,
        )  # fmt: skip
        return whole(solution.x)

    def reached(self) -> list[int]:
        return [int(np.count_nonzero(column)) for column in self.jacobian.T]

    def standard_errors(self, values: tuple[Decimal, ...]) -> list[float | None]:
        """Return standard errors from the residuals and the slopes; rounding is the minimum error of a row."""
        inner = [
            index for index, (parameter, value) in enumerate(zip(self.parameters, values, strict=True))
            if parameter.low < float(value) < parameter.high
        ]  # fmt: skip
        errors: list[float | None] = [None] * len(values)
        left_over = len(self.rows) - len(inner)
        if left_over <= 0 or not inner:
            return errors
        residuals = (self.cycles(values) - self.measured) / self.measured
        variance = max(float(residuals @ residuals) / left_over, float(np.mean((_ROUNDING / self.measured) ** 2)))
        slopes = self.jacobian[:, inner]
        for index, square in zip(inner, np.diag(np.linalg.pinv(slopes.T @ slopes)), strict=True):
            errors[index] = float((variance * square) ** 0.5)
        return errors


def _check_possible(model: _Model, table: MeasuredTable) -> None:
    """Reject a row that takes far fewer cycles than any legal parameters allow."""
    fastest = [
        parameter.low if column.sum() > 0 else min(float(parameter.value) * 1000, parameter.high)
        for parameter, column in zip(model.parameters, model.jacobian.T, strict=True)
    ]
    least = model.cycles(model.legal(fastest))
    for row, cycles in zip(model.rows, least, strict=True):
        if row.measured_cycles * _IMPOSSIBLE < cycles:
            raise ReadError(
                f"measured_cycles {row.measured_cycles} is impossible: with any parameters, {row.label} takes "
                f"{cycles:.0f} cycles or more; are these cycles of the core clock?",
                span=_cell(table, row),
            )  # fmt: skip


def _cell(table: MeasuredTable, row: MeasuredRow) -> Span:
    """Return the position of a row's cycles."""
    ahead = table.columns[: table.columns.index("measured_cycles")]
    text = row.span.text or ""
    start = 0 if '"' in text else sum(len(cell) + 1 for cell in text.split(",")[: len(ahead)])
    return Span(row.span.file, row.span.line, start + 1, text, len(str(row.measured_cycles)))


def _check_determined(model: _Model) -> None:
    """Reject parameters that the rows leave undetermined, and name a row that would determine them."""
    lengths = np.linalg.norm(model.jacobian, axis=0)
    divisors = np.where(lengths > 0, lengths, 1)  # a limit may move no row by a small step
    scaled = model.jacobian / divisors
    _, sizes, directions = np.linalg.svd(scaled, full_matrices=True)
    sizes = np.concatenate([sizes, np.zeros(len(lengths) - len(sizes))])
    vague = directions[sizes < INDISTINCT]
    if not len(vague):
        return
    # Two parameters hang together if the projection onto what is not determined mixes them.
    mixed = np.abs(vague.T @ vague)
    groups: list[list[int]] = []
    left = {index for index in range(len(lengths)) if mixed[index, index] > _SHARE**2}
    while left:
        joined: set[int] = set()
        new = {min(left)}
        while new:
            joined |= new
            new = {other for other in left - joined for member in new if mixed[member, other] > _SHARE**2}
        groups.append(sorted(joined))
        left -= joined
    weights = lengths * np.array([float(parameter.value) for parameter in model.parameters])
    parts, fix = [], []
    for group in groups:
        inside = vague[np.linalg.norm(vague[:, group], axis=1) > _SHARE][:, group]
        names = [model.parameters[index].path for index in group]
        count = int(np.linalg.matrix_rank(inside, _SHARE))
        fix += [f"--fix {name}" for name in _to_fix(scaled[:, group], weights[group], names, count)]
        reason = (
            f"{' and '.join(names)} cannot be distinguished" if len(names) > 1 else f"{names[0]} moves no row enough"
        )
        parts.append(f"{reason}; {_row_that_tells(model, group, inside / divisors[group])}")
    message = f"the {len(model.rows)} rows do not determine all {len(lengths)} parameters: {'. '.join(parts)}"
    raise ReadError(message, legal=(" ".join(fix), "--fit NAME"))


def _to_fix(columns: Array, weights: Array, names: Sequence[str], count: int) -> list[str]:
    """Return the parameters to fix so that the others are determined; the most important ones are kept free."""
    left, kept = list(range(len(names))), np.zeros((len(columns), 0))
    while len(left) > count:
        basis = np.linalg.qr(kept)[0] if kept.shape[1] else kept
        rest = columns[:, left] - basis @ (basis.T @ columns[:, left])
        new = np.linalg.norm(rest, axis=0) > INDISTINCT
        best = left.pop(int(np.argmax(np.where(new, 1 + weights[left], 0))))
        kept = np.column_stack([kept, columns[:, best]])
    return [names[index] for index in left]


def _row_that_tells(model: _Model, group: Sequence[int], directions: Array) -> str:
    """Return the row of the table that, made longer or shorter, would separate the parameters of a group."""
    values = np.array([float(parameter.value) for parameter in model.parameters])
    variants = list(_variants(model))
    best, text = 0.05, ""
    if variants:
        columns = np.array([model.slope(values, index, variants) for index in group]).T
        ahead = columns / np.maximum(model.cycles_of(model.legal(values), variants), 1)[:, None]
        seen = np.linalg.norm(ahead @ directions.T, axis=1)
        best_row = int(np.argmax(seen))
        scale = np.max(np.linalg.norm(ahead[:, :, None] * directions.T[None], axis=1))
        if scale > 0 and seen[best_row] / scale > best:
            row = variants[best_row]
            formats = row.src.name if row.src.name == row.dst.name else f"{row.src.name} -> {row.dst.name}"
            text = f"a row of {row.label} {formats} with {row.valid_rows} x {row.valid_cols} would distinguish them"
    instead = "fit one and fix the others" if len(group) > 1 else "fix it"
    return text or f"no longer or shorter row of the same operations would distinguish them: {instead}"


def _variants(model: _Model) -> list[MeasuredRow]:
    """Return rows of the same operations with more and fewer rows and columns, if the target runs them."""
    variants: dict[Mapping[str, object] | tuple[object, ...], MeasuredRow] = {}
    for row in model.rows:
        if row.body is not None or row.kernel is not None:
            continue
        for times in _SCALES:
            for name in ("rows", "cols"):
                extent, valid = int(getattr(row, name) * times), int(getattr(row, f"valid_{name}") * times)
                trips = {"outer_trips": None, "inner_trips": None}
                if (
                    extent < 1
                    or valid < 1
                    or (name == "cols" and row.operation not in TRANSFERS and extent * row.src.bits % 256)
                ):
                    continue
                variant = replace(row, **{name: extent, f"valid_{name}": valid, **trips})  # type: ignore[arg-type]
                variants.setdefault((variant.label, variant.src, variant.dst, variant.rows, variant.cols), variant)
    return [row for row in list(variants.values())[:48] if _cycles_or_none(model.target, row) is not None]


# A calibration as a target description: derived from the target, only what was fitted, each with its source.

_BARE = re.compile(r"[A-Za-z0-9_-]+")


def derived_description(calibration: Calibration, base: str | Path, out: Path) -> str:
    """Return the text of the derived description at `out`; `base` is the target's name as given.

    Numbers in one table of facts share its source, which then names the numbers that were not fitted.
    """
    text = str(base)
    if text.endswith(".toml"):
        text = Path(os.path.relpath(Path(text).resolve(), out.resolve().parent)).as_posix()
    lines = [f"base = {_quoted(text)}", f"name = {_quoted(out.stem)}"]
    owners: dict[tuple[str, ...], list[CalibratedParameter]] = {}
    for parameter in calibration.parameters:
        owners.setdefault(_owner(calibration.target, parameter.path), []).append(parameter)
    for owner, fitted in owners.items():
        lines += ["", f"[{_key(owner)}]"]
        lines += [f"{_key(fact.path.split('.')[len(owner) :])} = {fact.value:f}" for fact in fitted]
        lines += [f"source = {_quoted(_source(calibration, owner, fitted))}", 'status = "fitted"']
    return "\n".join(lines) + "\n"


def write_description(text: str, out: Path) -> None:
    """Write a description completely or not at all; an existing file is kept.

    Raises:
        ReadError: the file exists, or it cannot be written.
    """
    check_out(out)
    try:
        with whole_file(out) as file:
            file.write(text.encode())
    except OSError as error:
        raise ReadError(f"cannot write target '{out}': {error.strerror or error}") from None


def check_out(out: Path) -> None:
    """Reject a name that is not a description's, or is taken (ReadError)."""
    if out.suffix != ".toml":
        raise ReadError(f"--out {out}: a target description is a .toml file", legal=("--out my_chip.toml",))
    if os.path.lexists(out):
        raise ReadError(f"--out {out}: the file already exists; choose another name")


def _source(calibration: Calibration, owner: tuple[str, ...], fitted: list[CalibratedParameter]) -> str:
    parts = []
    for parameter in fitted:
        error = "" if parameter.standard_error is None else f" +- {parameter.standard_error:.2g}"
        bound = " (at its bound)" if parameter.at_bound else ""
        parts.append(f"{'.'.join(parameter.path.split('.')[len(owner) :])} {parameter.value:f}{error}{bound}")
    residual = calibration.residual_percent
    rows = len(calibration.table.rows)
    text = f"least squares to {rows} rows of {Path(calibration.table.file).name}, residual {residual:.2f} % rms: "
    base = _table(calibration.target, owner)
    return f"{text}{', '.join(parts)}; the rest of this table as in the base: {base.source}"


def _owner(target: Any, path: str) -> tuple[str, ...]:
    """Return the innermost table around a number that has a source."""
    keys = tuple(path.split("."))
    return next(keys[:end] for end in range(len(keys) - 1, 0, -1) if hasattr(_table(target, keys[:end]), "source"))


def _table(node: Any, keys: tuple[str, ...]) -> Any:
    for key in keys:
        node = node[key] if isinstance(node, dict) else getattr(node, key)
    return node


def _key(keys: tuple[str, ...] | list[str]) -> str:
    return ".".join(key if _BARE.fullmatch(key) else _quoted(key) for key in keys)


def _quoted(text: str) -> str:
    return json.dumps(text, ensure_ascii=False).replace("\x7f", "\\u007f")
