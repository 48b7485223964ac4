"""Columns as frames of pandas or polars."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from importlib.util import find_spec
from typing import TYPE_CHECKING, TypeAlias

import numpy as np

from castsim.isa.errors import ReadError

if TYPE_CHECKING:
    import pandas
    import polars
    from numpy.typing import NDArray

    from castsim.execution.presented import Frame

Column: TypeAlias = "NDArray[np.int64] | NDArray[np.float64] | NDArray[np.bool_] | Sequence[str | None]"
"""The values of a column, row by row: numbers as arrays, NaN where one is missing, or words, None where one is."""

Columns: TypeAlias = Mapping[str, Column]
"""Columns by name, of one length."""

LIBRARIES = ("pandas", "polars")
"""Libraries of frames, the one that is taken first in front."""


def integers(values: Iterable[int]) -> NDArray[np.int64]:
    """Return a column of whole numbers."""
    return np.fromiter(values, np.int64)


def numbers(values: Iterable[float | None]) -> NDArray[np.float64]:
    """Return a column of numbers, NaN for None."""
    return np.fromiter((np.nan if value is None else value for value in values), np.float64)


def frame_of(made: Callable[[], Columns], library: str | None) -> Frame:
    """Return columns as a frame of a library, None: of the one that is installed, pandas of both.

    Raises:
        ReadError: another library, or it is not installed; before anything is made.
    """
    if library not in (None, *LIBRARIES):
        raise ReadError(f"unknown library of frames '{library}'", legal=LIBRARIES)
    wanted = LIBRARIES if library is None else (library,)
    found = next((name for name in wanted if find_spec(name) is not None), None)
    if found is None:
        named = " or ".join(wanted)
        install = "pip install polars" if library == "polars" else "pip install 'castsim[notebook]'"
        raise ReadError(f"frames need the package {named}", legal=(install,))
    return _pandas(made()) if found == "pandas" else _polars(made())


def _pandas(columns: Columns) -> pandas.DataFrame:
    import pandas  # noqa: PLC0415 - optional

    return pandas.DataFrame(
        {
            name: values if isinstance(values, np.ndarray) else pandas.array(list(values), dtype="string")
            for name, values in columns.items()
        }
    )


def _polars(columns: Columns) -> polars.DataFrame:
    import polars  # noqa: PLC0415 - optional

    return polars.DataFrame(
        [
            polars.Series(name, values, nan_to_null=True)
            if isinstance(values, np.ndarray)
            else polars.Series(name, list(values), polars.String)
            for name, values in columns.items()
        ]
    )
