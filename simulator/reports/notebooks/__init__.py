"""Results in notebooks: short HTML, frames of pandas or polars, figures of matplotlib; a module per kind of result.

What needs a library is imported when one of its names is used here.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from castsim.isa.lazy_exports import lazy_exports

if TYPE_CHECKING:
    from castsim.reports.notebooks.figures import (
        cause_bars,
        compared,
        curve_axes,
        empty_figure,
        operation_lanes,
        verdict_grid,
    )
    from castsim.reports.notebooks.pandas_frames import pandas_frame
    from castsim.reports.notebooks.polars_frames import polars_frame

__all__ = [
    "cause_bars", "compared", "curve_axes", "empty_figure", "operation_lanes", "pandas_frame", "polars_frame",
    "verdict_grid",
]  # fmt: skip

_HOMES = {
    "cause_bars": "figures",
    "compared": "figures",
    "curve_axes": "figures",
    "empty_figure": "figures",
    "operation_lanes": "figures",
    "pandas_frame": "pandas_frames",
    "polars_frame": "polars_frames",
    "verdict_grid": "figures",
}

__getattr__ = lazy_exports(__name__, _HOMES)
