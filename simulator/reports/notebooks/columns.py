"""Columns of the tables that become frames."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, TypeAlias

import numpy as np

if TYPE_CHECKING:
    from numpy.typing import NDArray

Column: TypeAlias = "NDArray[np.int64] | NDArray[np.float64] | NDArray[np.bool_] | Sequence[str | None]"
"""The values of a column, row by row: numbers as arrays, NaN where one is missing, or words, None where one is."""

Columns: TypeAlias = Mapping[str, Column]
"""Columns by name, of one length."""


def integers(values: Iterable[int]) -> NDArray[np.int64]:
    """Return a column of whole numbers."""
    return np.fromiter(values, np.int64)


def numbers(values: Iterable[float | None]) -> NDArray[np.float64]:
    """Return a column of numbers, NaN for None."""
    return np.fromiter((np.nan if value is None else value for value in values), np.float64)
