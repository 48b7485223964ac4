"""How far quantised numbers are from the ones that they were made of."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

F64 = NDArray[np.float64]


@dataclass(frozen=True, slots=True)
class ErrorStatistics:
    """Errors of the finite numbers outside blocks with NaN, computed in f64.

    `root_mean_square_error` and `largest_error` are in the numbers' own unit; `signal_to_noise_db` is None without
    numbers or without an error. `clamped` numbers, infinities among them, lay beyond the largest element even after
    scaling; `to_zero` were not zero and became it.
    """

    elements: int
    compared: int
    largest_error: float
    largest_relative_error: float
    root_mean_square_error: float
    signal_to_noise_db: float | None
    clamped: int
    to_zero: int
    nan_blocks: int


def error_statistics(numbers: F64, values: F64, clamped: NDArray[np.bool_], nan_blocks: int) -> ErrorStatistics:
    """Return the statistics; `values` are what the elements stand for."""
    good = np.isfinite(numbers) & np.isfinite(values)
    given, found = numbers[good], values[good]
    with np.errstate(over="ignore"):
        error = np.abs(found - given)
        # Squares of numbers scaled by the largest one neither overflow nor vanish.
        unit = float(np.abs(given).max(initial=0.0)) or 1.0
        noise, signal = (float(np.mean(np.square(each / unit))) if each.size else 0.0 for each in (error, given))
    nonzero = given != 0
    relative = error[nonzero] / np.abs(given[nonzero])
    return ErrorStatistics(
        elements=numbers.size,
        compared=given.size,
        largest_error=float(error.max(initial=0.0)),
        largest_relative_error=float(relative.max(initial=0.0)),
        root_mean_square_error=math.sqrt(noise) * unit,
        signal_to_noise_db=10 * math.log10(signal / noise) if noise and signal else None,
        clamped=int(clamped.sum()),
        to_zero=int((nonzero & (found == 0)).sum()),
        nan_blocks=nan_blocks,
    )
