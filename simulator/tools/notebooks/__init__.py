"""Results in notebooks: short HTML, pandas or polars frames, matplotlib figures; one module per kind of result.

`figures` needs matplotlib, and is imported on first use of one of its names.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from castsim.tools.notebooks.figures import (
        cause_bars,
        compared,
        curve_axes,
        empty_figure,
        verdict_grid,
    )

__all__ = ["cause_bars", "compared", "curve_axes", "empty_figure", "verdict_grid"]


def __getattr__(name: str) -> Any:
    if name not in __all__:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(import_module(f"{__name__}.figures"), name)
