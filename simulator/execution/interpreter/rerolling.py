"""Loops of which only some trips are walked, and their reconstruction from trips that differ by a constant step."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from math import lcm

from castsim.execution.tree import Block, Deltas, Loop, Lowered, Node, elements, loop_of, width
from castsim.isa.dataclass import dataclass

# Values of a program, and how they depend on the loops of which only some trips are walked.
#
# Such a loop is walked in units of one trip or of several; a value is affine in it if it grows by the same from unit
# to unit. Comparisons of affine values come out alike up to some unit: up to there the units are alike, and what they
# decide counts as constant.

Bounds = tuple[int | None, int | None]
"""The smallest and the largest of some integers, None where there is none."""


class DependentError(Exception):
    """A value that may differ in another way than by its slope, on loop number `loop`, affects something.

    `period` is the known number of units that must be walked together for it to be affine; 0: no number helps. Without
    a loop, the innermost must be walked trip by trip.
    """

    def __init__(self, loop: int | None = None, period: int = 0) -> None:
        super().__init__("a loop has to be walked trip by trip")
        self.loop = loop
        self.period = period


@dataclass(frozen=True, slots=True)
class DependentScalar:
    """An integer, float or truth value, with its dependence on loops, by their numbers.

    An affine value has nonzero `slopes`: its growth from unit to unit. Any other has `periods`: the number of units
    that must be walked together for it to be affine, 0 if unknown. A constant has neither. `reads` are the numbers of
    the memory reads that it is computed from.
    """

    value: int | float
    slopes: Mapping[int, int] | None = None
    periods: Mapping[int, int] | None = None
    reads: frozenset[int] = frozenset()

    @property
    def constant(self) -> bool:
        """Whether it depends on no loop."""
        return self.slopes is None and self.periods is None


def affine(value: int, slopes: Mapping[int, int]) -> DependentScalar:
    """Return a value that is affine, or constant if all its slopes are 0."""
    remaining = {loop: slope for loop, slope in slopes.items() if slope}
    return DependentScalar(value, remaining or None)


def unknown(value: int | float, operands: Iterable[DependentScalar]) -> DependentScalar:
    """Return an unknown value with its inputs.

    If operands are not affine themselves, only their periods can make the result affine.
    """
    periods: dict[int, int] = {}
    for operand in operands:
        for loop, period in (operand.periods or {}).items():
            periods[loop] = lcm(periods.get(loop, 1), period)
    return DependentScalar(value, None, periods or {loop: 0 for operand in operands for loop in operand.slopes or ()})


@dataclass(slots=True)
class _Walked:
    """A loop in progress: it has `units` units, is at `position`, and those before `horizon` are alike.

    `repeats` tells that they not only take the same path, but have the same effect.
    """

    units: int
    horizon: int
    position: int = 0
    repeats: bool = False


class LoopDependence:
    """The loops in progress that are not walked trip by trip, outermost first."""

    def __init__(self) -> None:
        self._walked: dict[int, _Walked] = {}
        self._next = 0

    def __bool__(self) -> bool:
        return bool(self._walked)

    def enter(self, units: int) -> int:
        """Begin a loop of `units` units at the first one; return its number, larger than those of enclosing loops."""
        self._next += 1
        self._walked[self._next] = _Walked(units, units)
        return self._next

    def leave(self, loop: int) -> None:
        """End a loop."""
        del self._walked[loop]

    def move(self, loop: int, position: int) -> None:
        """Continue with another unit of a loop."""
        self._walked[loop].position = position

    def repeat(self, loop: int) -> None:
        """Record that all units of a loop have the same effect, whatever its variable is."""
        self._walked[loop].repeats = True

    def repeats(self, loop: int) -> bool:
        """Return whether all units of a loop are known to have the same effect."""
        return self._walked[loop].repeats

    def alike(self, loop: int) -> int:
        """Return the number of units, from the first one on, that take the path of the units walked so far."""
        return self._walked[loop].horizon

    def refusal(self, scalar: DependentScalar) -> DependentError:
        """Return the error for a decision that depends on a value that is not constant.

        Among the loops on which it depends, the one with the fewest units is the cheapest to walk trip by trip.
        """
        periods = scalar.periods if scalar.periods is not None else dict.fromkeys(scalar.slopes or (), 0)
        loop = min(periods, key=lambda number: self._walked[number].units)
        return DependentError(loop, periods[loop])

    def stays(self, value: int, slopes: Mapping[int, int], bounds: Bounds) -> bool:
        """Return whether an affine value within bounds stays so in all units that are assumed alike.

        If so, the outermost loop on which it depends is cut at its last such unit; for the others all units count.
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


def address_steps(first: Block, second: Block) -> tuple[Deltas, ...] | None:
    """Return how each element's addresses move from `first` to `second`, None if they differ in anything else."""
    if len(first.items) != len(second.items):
        return None
    steps: list[Deltas] = []
    for left, right in zip(first.items, second.items, strict=True):
        node_steps = _node_steps(left, right)
        if node_steps is None:
            return None
        steps += node_steps
    return tuple(steps)


def fold(trips: Iterable[Block]) -> Iterator[Node]:
    """Yield the trips of a loop as nodes: runs of equal trips as `Loop`, the others unchanged."""
    run: list[Block] = []
    steps: tuple[Deltas, ...] | None = None
    count = 0
    for trip in trips:
        stride = address_steps(run[-1], trip) if run else None
        if run and stride is not None and steps in (None, stride):
            steps, count = stride, count + 1
            run = [run[0], trip]
            continue
        yield from _run(run[:1], steps, count)
        run, steps, count = [trip], None, 1
    yield from _run(run[:1], steps, count)


def _run(first: list[Block], steps: tuple[Deltas, ...] | None, count: int) -> Iterator[Node]:
    if first and steps is not None:
        yield Loop(count, first[0], steps)
    elif first:
        yield from first[0].items


def _node_steps(left: Node, right: Node) -> tuple[Deltas, ...] | None:
    if left is right:
        return tuple([(0,) * len(element.addresses) for element in elements(left)])
    if type(left) is not type(right) or width(left) != width(right):
        return None
    if isinstance(left, Block) and isinstance(right, Block):
        return address_steps(left, right)
    if isinstance(left, Loop) and isinstance(right, Loop):
        return address_steps(left.body, right.body) if (left.trips, left.steps) == (right.trips, right.steps) else None
    if isinstance(left, Lowered) and isinstance(right, Lowered):
        if left.instruction != right.instruction or len(left.accesses) != len(right.accesses):
            return None
        own = tuple(b.start - a.start for a, b in zip(left.accesses, right.accesses, strict=True))
        same = all(a.shifted(d) == b for a, b, d in zip(left.accesses, right.accesses, own, strict=True))
        same &= _same_effect(left, right, own)
        body_steps = address_steps(left.body, right.body) if same else None
        return None if body_steps is None else (own, *body_steps)
    assert not isinstance(left, Block | Loop | Lowered) and not isinstance(right, Block | Loop | Lowered)
    deltas = tuple(after - before for before, after in zip(left.addresses, right.addresses, strict=True))
    return (deltas,) if left.shifted(deltas) == right else None


def _same_effect(left: Lowered, right: Lowered, deltas: Deltas) -> bool:
    """Return whether two executions compute the same on moved tiles; the operations decide it, except for an effect."""
    moved = getattr(left.shortcut, "moved", None)
    return moved is None or moved(deltas) == right.shortcut


# Loops of which only some trips are walked: cut into pieces whose trips, or runs of as many trips, are alike.
#
# A piece is walked at its first, second and last unit, a unit being one trip, or as many as the remainders and
# quotients in it need to come round. The first unit tells up to where every comparison comes out as it did, and so
# where the piece ends; the others give the address steps, and whatever holds at both ends holds between. Where the
# text tells that no trip can differ from another, the first one stands for all, so that loops around nothing cost next
# to nothing. Trips that are alike in no such way are walked one by one, and runs of equal ones folded.

LONGEST_PERIOD = 4096
"""Maximum number of trips of one unit; loops that need more are walked trip by trip."""

_SAMPLES = 3
"""Number of units walked of a piece: with fewer, units of several trips save nothing."""

_PATIENCE = 4
"""Number of trips walked one by one before a new attempt, and the factor by which it grows."""

Walk = Callable[[int, int | None, int], Block]
"""Function that walks a trip, given its number, the loop's number if the trip represents others, and the trips of a
unit."""


class _UnlikeError(Exception):
    """Units differ in more than addresses; with `period` of them together they may not, with any number if 0."""

    def __init__(self, period: int) -> None:
        super().__init__("units of a loop are not alike")
        self.period = period


@dataclass(frozen=True, slots=True)
class Pieces:
    """A loop with a known number of trips."""

    trips: int
    walk: Walk
    loops: LoopDependence

    def nodes(self) -> list[Node]:
        """Return the nodes of its trips.

        Raises:
            DependentError: an outer loop must be walked otherwise.
        """
        folded: list[Node] = []
        start, period, patience = 0, 1, _PATIENCE
        while start < self.trips:
            remaining = self.trips - start
            alone = 1
            if remaining > 1:
                try:
                    piece, walked = self._piece(start, period)
                except _UnlikeError as error:
                    longer = period * error.period
                    if longer <= LONGEST_PERIOD and period < longer <= remaining // _SAMPLES:
                        period = longer
                        continue
                    # The remainder only gets shorter, so a period that is too long stays so.
                    alone = remaining if error.period else min(remaining, patience)
                    patience *= _PATIENCE
                else:
                    folded += piece
                    start, period = start + walked, 1
                    continue
            folded += fold(self.walk(number, None, 1) for number in range(start, start + alone))
            start, period = start + alone, 1
        return folded

    def _piece(self, start: int, period: int) -> tuple[list[Node], int]:
        """Return the piece that begins with trip `start`, in units of `period` trips, and the number of its trips."""
        units = (self.trips - start) // period
        loop = self.loops.enter(units)
        try:
            first = self._unit(start, period, loop, 0)
            count = self.loops.alike(loop)
            if count == 1:
                return list(fold(first)), period
            if period == 1 and self.loops.repeats(loop):
                return list(loop_of(count, lambda _: first[0])), count
            second = self._unit(start, period, loop, 1)
            last = self._unit(start, period, loop, count - 1) if count > 2 else second
            if self.loops.alike(loop) < count:
                raise _UnlikeError(0)
        except DependentError as error:
            if error.loop not in (None, loop):
                raise
            raise _UnlikeError(error.period) from None
        finally:
            self.loops.leave(loop)
        return [_loop(count, first, second, last)], count * period

    def _unit(self, start: int, period: int, loop: int, number: int) -> list[Block]:
        self.loops.move(loop, number)
        begin = start + number * period
        return [self.walk(trip, loop, period) for trip in range(begin, begin + period)]


def _loop(count: int, first: list[Block], second: list[Block], last: list[Block]) -> Loop:
    """Return units as one loop.

    Raises:
        _UnlikeError: they differ in more than addresses, or these do not move evenly.
    """
    # Trips of a unit that look alike by chance do so in some units only; then none are folded.
    for joined in (lambda unit: Block(tuple(fold(unit))), _in_a_row) if len(first) > 1 else (_in_a_row,):
        body, end = joined(first), joined(last)
        steps = address_steps(body, joined(second))
        if steps is not None and address_steps(body, end) == _times(count - 1, steps):
            return Loop(count, body, steps)
    raise _UnlikeError(0)


def _times(count: int, steps: tuple[Deltas, ...]) -> tuple[Deltas, ...]:
    return tuple(tuple(count * delta for delta in row) for row in steps)


def _in_a_row(unit: list[Block]) -> Block:
    return Block(tuple(item for trip in unit for item in trip.items))
