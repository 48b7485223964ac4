"""Estimates of many shapes: arguments made columns, columns worked on in chunks, results put together."""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import TYPE_CHECKING, Any

import numpy as np

from castsim.estimating.arithmetic import Number, NumberFunctions, Shape, of_arrays
from castsim.estimating.estimates import Estimate, Estimates
from castsim.isa.errors import ReadError, ScratchError, TileError
from castsim.timing import Cause

if TYPE_CHECKING:
    from numpy.typing import NDArray

    Integers = NDArray[np.int64]

_CHUNK = 1 << 14
"""Shapes of an array that are worked on together: their columns stay in the processor's cache."""

PLACE = {cause: place for place, cause in enumerate(Cause)}
"""The row of every cause."""

_NAMES = ("rows", "cols", "row_stride", "dst_row_stride", "valid_rows", "valid_cols")


class ArrayEstimator(ABC):
    """Estimates of one request on one target."""

    @abstractmethod
    def one(self, *extents: int | None) -> Estimate:
        """Return the estimate of one shape; the order of its extents is that of `estimate`."""

    @abstractmethod
    def simulate(self, *extents: int | None) -> Estimate:
        """Return what `one` returns, simulated by the engine even where there is a closed form."""

    @abstractmethod
    def fill(self, start: int, shape: Shape, cycles: Integers, causes: Integers, arithmetic: NumberFunctions) -> None:
        """Estimate a chunk of shapes, the first being number `start`, into the columns of `cycles` and `causes`.

        `causes` has a row for every `Cause`, in that order, and holds zeroes.
        """

    def many(self, *extents: Any) -> Estimates:
        """Return the estimates of the shapes to which the arguments broadcast."""
        given = [_integers(name, value) for name, value in zip(_NAMES, extents, strict=True)]
        known = np.broadcast_arrays(*(value for value in given if value is not None))
        columns, extent = iter(value.reshape(-1) for value in known), known[0].shape
        flat = [None if value is None else next(columns) for value in given]
        size, arithmetic = known[0].size, of_arrays()
        cycles = np.zeros(size, np.int64)
        causes = np.zeros((len(Cause), size), np.int64)
        reasons = np.full(size, None, object)

        def estimated(start: int, stop: int) -> None:
            """Estimate shapes together; if one is refused, each half by itself, down to the shape that is."""
            part = slice(start, stop)
            shape = shape_of(*(None if value is None else value[part] for value in flat))
            try:
                self.fill(start, shape, cycles[part], causes[:, part], arithmetic)
            except (TileError, ScratchError) as error:
                cycles[part], causes[:, part] = 0, 0
                if stop - start == 1:
                    reasons[start] = error.message
                    return
                middle = (start + stop) // 2
                estimated(start, middle)
                estimated(middle, stop)

        for start in range(0, size, _CHUNK):
            estimated(start, min(size, start + _CHUNK))
        refused = reasons != None  # noqa: E711 - element by element
        bounds = np.array(list(Cause), object)[np.where(causes.any(0), causes.argmax(0), PLACE[Cause.EMPTY])]
        bounds[refused] = None
        return Estimates(
            (np.where(refused, np.nan, cycles) if refused.any() else cycles).reshape(extent),
            bounds.reshape(extent),
            {cause: row.reshape(extent) for cause, row in zip(Cause, causes, strict=True) if row.any()},
            reasons.reshape(extent),
        )


def shape_of(
    rows: Number,
    cols: Number,
    row_stride: Number | None,
    dst_row_stride: Number | None,
    valid_rows: Number | None,
    valid_cols: Number | None,
) -> Shape:
    """Return a shape, what is None taken from the tile's extents."""
    return Shape(
        rows=rows,
        src_stride=cols if row_stride is None else row_stride,
        dst_stride=cols if dst_row_stride is None else dst_row_stride,
        valid_rows=rows if valid_rows is None else valid_rows,
        valid_cols=cols if valid_cols is None else valid_cols,
        cols=cols,
    )


def _integers(name: str, value: Any) -> Integers | None:
    """Return an argument as int64.

    Raises:
        ReadError: it holds something else.
    """
    if value is None:
        return None
    found = np.asarray(value)
    if found.dtype.kind not in "iu":
        raise ReadError(f"{name}: integers are wanted, not {found.dtype}")
    return found.astype(np.int64, copy=False)
