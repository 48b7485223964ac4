"""Columns as frames of pandas."""

from __future__ import annotations

import numpy as np
import pandas

from castsim.reports.notebooks.columns import Columns


def pandas_frame(columns: Columns) -> pandas.DataFrame:
    """Return columns as a frame: words as strings, of which missing ones are `NA`; missing numbers are NaN."""
    return pandas.DataFrame(
        {
            name: values if isinstance(values, np.ndarray) else pandas.array(list(values), dtype="string")
            for name, values in columns.items()
        }
    )
