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

__all__ = [
    "cause_bars", "compared", "curve_axes", "empty_figure", "operation_lanes", "verdict_grid",
]  # fmt: skip

_HOMES = {
    "cause_bars": "figures",
    "compared": "figures",
    "curve_axes": "figures",
    "empty_figure": "figures",
    "operation_lanes": "figures",
    "verdict_grid": "figures",
}

__getattr__ = lazy_exports(__name__, _HOMES)
