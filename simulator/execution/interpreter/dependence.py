"""Values of a program, and how they depend on the loops of which only some trips are walked.

Such a loop is walked in units of one trip or of several; a value is affine in it if it grows by the same from unit to
unit. Comparisons of affine values come out alike up to some unit: up to there the units are alike, and what they
decide counts as constant.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from math import lcm

Bounds = tuple[int | None, int | None]
"""The smallest and the largest of some integers, None where there is none."""


class DependentError(Exception):
    """Something rests on a value that may differ in another way than by its slope: on loop number `loop`.

    `period` is how many units have to be walked together for it to be affine, as far as is known; 0: no number helps.
    Without a loop, the innermost is to be walked trip by trip.
    """

    def __init__(self, loop: int | None = None, period: int = 0) -> None:
        super().__init__("a loop has to be walked trip by trip")
        self.loop = loop
        self.period = period


@dataclass(frozen=True, slots=True)
class Scalar:
    """An integer, float or truth value, and how it depends on loops, by their numbers.

    An affine value has `slopes`, none of them zero: how it grows from unit to unit. Any other has `periods`: how many
    units have to be walked together for it to be affine, 0 where no number is known. A constant has neither. `reads`
    are the numbers of the memory reads that it is computed from.
    """

    value: int | float
    slopes: Mapping[int, int] | None = None
    periods: Mapping[int, int] | None = None
    reads: frozenset[int] = frozenset()

    @property
    def constant(self) -> bool:
        """Whether it depends on no loop."""
        return self.slopes is None and self.periods is None


def affine(value: int, slopes: Mapping[int, int]) -> Scalar:
    """Return a value that is affine, or constant if all its slopes are 0."""
    left = {loop: slope for loop, slope in slopes.items() if slope}
    return Scalar(value, left or None)


def unknown(value: int | float, operands: Iterable[Scalar]) -> Scalar:
    """Return a value of which nothing is known but what it is computed from.

    Where operands are not affine themselves, only what makes them so can make the result so.
    """
    periods: dict[int, int] = {}
    for operand in operands:
        for loop, period in (operand.periods or {}).items():
            periods[loop] = lcm(periods.get(loop, 1), period)
    return Scalar(value, None, periods or {loop: 0 for operand in operands for loop in operand.slopes or ()})


@dataclass(slots=True)
class _Walked:
    """A loop being walked: it has so many `units`, is at `position`, and those before `horizon` are alike.

    `repeats` tells that they do not only take the same path, but do the same.
    """

    units: int
    horizon: int
    position: int = 0
    repeats: bool = False


class Loops:
    """The loops that are not walked trip by trip and are being walked now, outermost first."""

    def __init__(self) -> None:
        self._walked: dict[int, _Walked] = {}
        self._next = 0

    def __bool__(self) -> bool:
        return bool(self._walked)

    def enter(self, units: int) -> int:
        """Begin a loop of so many units, at the first one; return its number, larger than that of loops around it."""
        self._next += 1
        self._walked[self._next] = _Walked(units, units)
        return self._next

    def leave(self, loop: int) -> None:
        """End a loop."""
        del self._walked[loop]

    def move(self, loop: int, position: int) -> None:
        """Go on to another unit of a loop."""
        self._walked[loop].position = position

    def repeat(self, loop: int) -> None:
        """Note that all units of a loop do the same, whatever its variable is."""
        self._walked[loop].repeats = True

    def repeats(self, loop: int) -> bool:
        """Whether all units of a loop are known to do the same."""
        return self._walked[loop].repeats

    def alike(self, loop: int) -> int:
        """Return how many units, from the first one on, take the path of the units walked so far."""
        return self._walked[loop].horizon

    def refusal(self, scalar: Scalar) -> DependentError:
        """Return the error for a decision that rests on a value that is not constant.

        Of the loops on which it depends, that with the fewest units is the cheapest to walk trip by trip.
        """
        periods = scalar.periods if scalar.periods is not None else dict.fromkeys(scalar.slopes or (), 0)
        loop = min(periods, key=lambda number: self._walked[number].units)
        return DependentError(loop, periods[loop])

    def stays(self, value: int, slopes: Mapping[int, int], bounds: Bounds) -> bool:
        """Whether an affine value that lies within bounds does so in all units that are taken to be alike.

        If so, the outermost loop on which it depends is cut where that would end; of the others all units count.
        """
        outermost = min(slopes)
        low = high = value
        for loop, slope in slopes.items():
            if loop != outermost:
                walked = self._walked[loop]
                reach = slope * (walked.units - 1 - walked.position)
                low, high = low + min(0, reach), high + max(0, reach)
        lower, upper = bounds
        if (lower is not None and low < lower) or (upper is not None and high > upper):
            return False
        slope, walked = slopes[outermost], self._walked[outermost]
        bound, extreme = (upper, high) if slope > 0 else (lower, low)
        if bound is not None:
            walked.horizon = min(walked.horizon, walked.position + (bound - extreme) // slope + 1)
        return True
