"""The points of a sweep by their number: nothing is expanded before it is needed."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from math import prod
from typing import TYPE_CHECKING

import numpy as np

from castsim.isa.errors import ReadError
from castsim.isa.expressions import Expression, Value

if TYPE_CHECKING:
    from numpy.typing import NDArray

Setting = int | float | str
"""A value of an axis."""

DEFAULT = "default"
"""The value of an axis that leaves the choice to the target, or to the program; a row has null there."""


@dataclass(frozen=True, slots=True)
class Axis:
    """A choice with its values, each once."""

    name: str
    values: Sequence[Setting]


@dataclass(frozen=True, slots=True)
class Exclusion:
    """What leaves out points: those where every axis named has one of the values and the condition, if any, holds."""

    values: Mapping[str, frozenset[Setting]]
    condition: Expression | None

    @property
    def names(self) -> tuple[str, ...]:
        """Return the axes that it is about."""
        return tuple(dict.fromkeys((*self.values, *(self.condition.names if self.condition else ()))))

    def holds(self, point: Mapping[str, Setting]) -> bool:
        """Whether it leaves out a point.

        Raises:
            ReadError: the condition has no value there, such as after a division by zero.
        """
        if any(point[name] not in legal for name, legal in self.values.items()):
            return False
        if self.condition is None:
            return True
        known: dict[str, Value] = {name: each for name, each in point.items() if not isinstance(each, float)}
        try:
            return bool(self.condition.value(known))
        except ReadError as error:
            raise ReadError(f"exclude.where: {error.message}", span=error.span, legal=error.legal) from None


@dataclass(frozen=True, slots=True)
class Grid:
    """Every combination of values; combinations are counted from 0, the last axis moving fastest."""

    axes: tuple[Axis, ...]
    exclusions: tuple[Exclusion, ...] = ()

    @property
    def combinations(self) -> int:
        """Combinations of all values, those that are left out too."""
        return prod(len(axis.values) for axis in self.axes)

    def places(self, numbers: NDArray[np.int64]) -> dict[str, NDArray[np.int64]]:
        """Return for each axis which of its values combinations have."""
        found, left = {}, numbers
        for axis in reversed(self.axes):
            left, found[axis.name] = np.divmod(left, len(axis.values))
        return {axis.name: found[axis.name] for axis in self.axes}

    def kept(self, start: int, stop: int) -> NDArray[np.int64]:
        """Return the numbers of the combinations in a range that are not left out.

        Raises:
            ReadError: as `Exclusion.holds`.
        """
        numbers = np.arange(start, stop, dtype=np.int64)
        for exclusion in self.exclusions:
            numbers = numbers[~self._excluded(exclusion, numbers)]
        return numbers

    def _excluded(self, exclusion: Exclusion, numbers: NDArray[np.int64]) -> NDArray[np.bool_]:
        axes = [axis for axis in self.axes if axis.name in exclusion.names]
        places = self.places(numbers)
        columns = zip(*(places[axis.name].tolist() for axis in axes), strict=True)
        known: dict[tuple[int, ...], bool] = {}
        found = np.zeros(len(numbers), np.bool_)
        for row, at in enumerate(columns):
            if at not in known:
                known[at] = exclusion.holds({axis.name: axis.values[n] for axis, n in zip(axes, at, strict=True)})
            found[row] = known[at]
        return found
