"""Columns as frames of polars."""

from __future__ import annotations

import numpy as np
import polars

from castsim.reports.notebooks.columns import Columns


def polars_frame(columns: Columns) -> polars.DataFrame:
    """Return columns as a frame; missing words and numbers are null."""
    return polars.DataFrame(
        [
            polars.Series(name, values, nan_to_null=True)
            if isinstance(values, np.ndarray)
            else polars.Series(name, list(values), polars.String)
            for name, values in columns.items()
        ]
    )
