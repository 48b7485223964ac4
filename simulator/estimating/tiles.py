"""Estimates of casts from tile to tile: by a closed form where one holds, by simulating them elsewhere."""

from __future__ import annotations

from collections.abc import Callable
from functools import lru_cache
from typing import TYPE_CHECKING, Protocol

import numpy as np

from castsim.estimating.estimates import (
    PLACE,
    SCALAR,
    ArrayEstimator,
    CastCycles,
    Estimate,
    Number,
    NumberFunctions,
    OperandPlacement,
    Shape,
    TileCastRequest,
    shape_of,
    timed_alone,
)
from castsim.isa.errors import CastsimError, Span
from castsim.machines.mechanisms import lowerer_of
from castsim.targets import TileTarget
from castsim.timing import Cause

if TYPE_CHECKING:
    from castsim.estimating.estimates import Integers

_SIMULATED = 1 << 16
"""Simulated shapes that one estimator remembers."""


class ClosedForm(Protocol):
    """The closed form of one request on one target."""

    @property
    def uses_scratch(self) -> bool:
        """Whether the cast needs its tmp tile."""
        ...

    @property
    def needs_apart(self) -> bool:
        """Whether the closed form holds only for operands that lie apart."""
        ...

    @property
    def even_columns(self) -> bool:
        """Whether odd numbers of columns are refused."""
        ...

    def reach(self, shape: Shape) -> Number:
        """Return how many bytes from the start of the destination on are written outside its rows' own, or 0."""
        ...

    def account(self, shape: Shape, arithmetic: NumberFunctions) -> CastCycles:
        """Return the cycles of a shape."""
        ...


class TileEstimator(ArrayEstimator):
    """Casts from tile to tile: a closed form where one holds, simulations that are remembered elsewhere."""

    def __init__(self, target: TileTarget, request: TileCastRequest, form: ClosedForm | None) -> None:
        self._target = target
        self._request = request
        self._lowerer = lowerer_of(target)
        self._placement = OperandPlacement.of(target, self._lowerer, request)
        self._form = form
        self.simulated: Callable[[Shape], Estimate] = lru_cache(_SIMULATED)(self._simulate)
        """Simulates one shape."""

    def one(self, *extents: int | None) -> Estimate:
        """Return the estimate of one shape."""
        shape = shape_of(*extents)
        if not self.is_closed(shape, SCALAR):
            return self.simulated(shape)
        assert self._form is not None
        return _estimate(self._form.account(shape, SCALAR))

    def simulate(self, *extents: int | None) -> Estimate:
        """Return the same by simulating the lowered cast."""
        return self.simulated(shape_of(*extents))

    def is_closed(self, shape: Shape, arithmetic: NumberFunctions) -> Number:
        """Whether the closed form gives the cycles of a shape."""
        form, placement = self._form, self._placement
        if form is None:
            return shape.rows != shape.rows  # nowhere
        closed = placement.fits(shape, form.reach(shape), arithmetic)
        if form.even_columns:
            closed = closed & (shape.valid_cols % 2 == 0)
        if form.needs_apart:
            closed = closed & placement.apart(shape, arithmetic, scratch=form.uses_scratch)
        if form.uses_scratch:
            closed = closed & placement.holds_scratch(shape, arithmetic)
        elif self._request.scratch:
            closed = closed & placement.leaves_scratch(shape, arithmetic)
        return closed & (shape.rows > 0) & (shape.cols > 0)  # a tile without elements is refused where it is simulated

    def _simulate(self, shape: Shape) -> Estimate:
        cast = self._placement.cast(self._lowerer, shape)
        text = f"tcvt {self._request.src.name} -> {self._request.dst.name}"
        return timed_alone(self._target, lowerer_of(self._target).cast(cast), text)

    def fill(self, start: int, shape: Shape, cycles: Integers, causes: Integers, arithmetic: NumberFunctions) -> None:
        """Estimate a chunk of shapes, the first being number `start`, into the columns of `cycles` and `causes`."""
        closed = self.is_closed(shape, arithmetic)
        if self._form is not None and closed.any():
            # Shapes that are not closed yield numbers that are not read.
            account = self._form.account(shape, arithmetic)
            np.copyto(cycles, account.cycles)
            for cause, row in _split(account, arithmetic).items():
                causes[PLACE[cause]] = row
        for index in np.flatnonzero(~closed).tolist():
            try:
                found = self.simulated(Shape(*(int(column[index]) for column in shape)))
            except CastsimError as error:
                error.span = Span(f"<estimate of shape {start + index}>", 1, 1)
                raise
            cycles[index] = found.cycles
            causes[:, index] = [found.causes.get(cause, 0) for cause in Cause]


def _estimate(account: CastCycles) -> Estimate:
    """Return the estimate of one shape, in whichever pipe is occupied longer: the scalar one or that which converts."""
    found = [item for item in account.converting if item[1]]
    occupied = sum(cycles for _, cycles in found)
    if account.scalar >= occupied:
        occupied = account.scalar
        found = [(Cause.BUSY, occupied)] if occupied else []
    if occupied < account.cycles:
        found.append((Cause.EMPTY, account.cycles - occupied))
    # They are in the order of `Cause`, and of equals max takes the first: as `bound_by`, without looking them up.
    most = max(found, key=_cycles)[0] if found else Cause.EMPTY
    return Estimate(account.cycles, most, dict(found))


def _cycles(item: tuple[Cause, int]) -> int:
    return item[1]


def _split(account: CastCycles, arithmetic: NumberFunctions) -> dict[Cause, Number]:
    """Return the same of many shapes: their cycles by cause."""
    choose, scalar = arithmetic.choose, account.scalar
    converting = dict(account.converting)
    occupied = sum(converting.values())
    by_scalar = scalar >= occupied
    causes = {cause: choose(by_scalar, 0, cycles) for cause, cycles in converting.items()}
    causes[Cause.BUSY] = choose(by_scalar, scalar, converting.get(Cause.BUSY, 0))
    causes[Cause.EMPTY] = account.cycles - choose(by_scalar, scalar, occupied)
    return causes
