"""The numbers of a target that rows of a table depend on, named by their path in the description.

No list says which they are: each number of the timing tables is moved, and those count that move the cycles of a row.
Rows are asked table by table first, so that most numbers of most rows are never looked at.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from decimal import ROUND_HALF_EVEN, Decimal
from fnmatch import fnmatchcase
from math import inf
from typing import Any

from castsim.evidence.accuracy.assessment import assess_row
from castsim.evidence.accuracy.table import MeasuredRow
from castsim.isa.errors import CastsimError, ReadError, TargetDataError
from castsim.targets import Target
from castsim.targets.schema import Fact, Table
from castsim.targets.what_if import with_facts

_ABOUT = frozenset(Fact.model_fields)
_FINEST = 3
"""Decimals of a number with a fraction, unless its fact has fewer."""
_LARGE = Decimal(64)
"""Cycles by which a number is moved to see whether it matters; it is also divided by as much, if it may be."""


@dataclass(frozen=True, slots=True)
class Choice:
    """What the user says: patterns of parameters to fit (none: all that matter), of those to leave, and bounds."""

    fit: tuple[str, ...] = ()
    fix: tuple[str, ...] = ()
    bounds: Mapping[str, tuple[float, float]] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Parameter:
    """A number of the description: its path, value, the step between values it can have, and the least and largest."""

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
        """Return the nearest value that it can have."""
        bounded = min(max(value, self.low), self.high)
        return Decimal(repr(float(bounded))).quantize(self.step, ROUND_HALF_EVEN)


def numbers_of(target: Target) -> dict[str, Decimal]:
    """Return every number that the timing tables of the description state, by its path."""
    roots = ((name, getattr(target, name)) for name in target.time_tables)
    return {path: value for name, root in roots for path, value in _numbers(name, root)}


def _numbers(path: str, held: Any) -> Iterator[tuple[str, Decimal]]:
    if isinstance(held, int | Decimal) and not isinstance(held, bool):
        yield path, Decimal(held)
        return
    if isinstance(held, Table):
        held = {name: getattr(held, name) for name in type(held).model_fields if name in held.model_fields_set - _ABOUT}
    if isinstance(held, Mapping):
        for key, below in held.items():
            if isinstance(key, str) and "." not in key:
                yield from _numbers(f"{path}.{key}", below)


def changed(target: Target, values: Mapping[str, Decimal]) -> Target:
    """Return the target with numbers edited; a whole one stays an integer. TargetDataError: one it cannot have."""
    return with_facts(target, {path: int(each) if each == int(each) else each for path, each in values.items()})


def cycles_of(target: Target, row: MeasuredRow) -> int:
    """Return the simulated cycles of a row."""
    return assess_row(target, row).simulated_cycles


def parameters_of(target: Target, rows: Sequence[MeasuredRow], choice: Choice) -> tuple[Parameter, ...]:
    """Return the numbers to fit, in the order of the description.

    Raises:
        ReadError: a pattern that names no number, bounds that no value meets, a number asked for on which no row
            depends, or nothing to fit.
        IllegalError, TileError: a row that the target cannot run; with its place.
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
    found = set(_mattering(target, rows, usual, {path: numbers[path] for path in asked}, 1))
    silent = [path for path in asked if path not in found and path in choice.fit]
    if silent:
        raise ReadError(f"no row of the table depends on {', '.join(silent)}", legal=sorted(found))
    if not found:
        raise ReadError("no row of the table depends on a number that may be fitted", legal=list(numbers)[:12])
    return tuple(_parameter(target, path, numbers[path], choice) for path in asked if path in found)


def _matches(path: str, patterns: Sequence[str]) -> bool:
    return any(fnmatchcase(path, pattern) for pattern in patterns)


def _mattering(
    target: Target, rows: Sequence[MeasuredRow], usual: Sequence[int], numbers: Mapping[str, Decimal], depth: int
) -> Iterator[str]:
    """Yield the numbers that move some row, table by table: what a table does not move, nothing in it does."""
    tables: dict[str, dict[str, Decimal]] = {}
    for path, value in numbers.items():
        tables.setdefault(".".join(path.split(".")[: depth + 1]), {})[path] = value
    for inner in tables.values():
        ways = [
            {
                number
                for number, (row, before) in enumerate(zip(rows, usual, strict=True))
                if _cycles_or_none(each, row) != before
            }
            for each in _moved(target, inner)
        ]
        moved = sorted(set().union(*ways))
        if len(inner) == 1:
            # A limit that binds no row moves some when it is moved one way only: no row says where it lies.
            yield from inner if ways and all(ways) else ()
        elif moved:
            some = [rows[number] for number in moved]
            yield from _mattering(target, some, [usual[number] for number in moved], inner, depth + 1)


def _moved(target: Target, numbers: Mapping[str, Decimal]) -> Iterator[Target]:
    """Yield the target with numbers far larger, and with numbers far smaller, as far as they may be."""
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
    """Return the cycles; None where so large a change leaves a row that cannot run."""
    try:
        return cycles_of(target, row)
    except (CastsimError, ArithmeticError):
        return None


def _parameter(target: Target, path: str, value: Decimal, choice: Choice) -> Parameter:
    places = next((n for n in range(_FINEST, 0, -1) if _legal(target, path, int(value) + Decimal(1).scaleb(-n))), 0)
    step = Decimal(1).scaleb(-places) if places else Decimal(1)
    low = next((each for each in (Decimal(0), step, value) if _legal(target, path, each)), value)
    bound = next((bounds for pattern, bounds in choice.bounds.items() if fnmatchcase(path, pattern)), None)
    if bound is None:
        return Parameter(path, value, step, float(low))
    if not float(low) <= bound[0] < bound[1]:
        raise ReadError(f"--bounds {path}: {bound[0]:g}..{bound[1]:g} is no range of values from {low} on")
    return Parameter(path, value, step, *bound)


def _legal(target: Target, path: str, value: Decimal) -> bool:
    try:
        changed(target, {path: value})
    except TargetDataError:
        return False
    return True
