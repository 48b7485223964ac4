"""Columns as frames of pandas or polars."""

from __future__ import annotations

from collections.abc import Callable
from importlib.util import find_spec
from typing import TYPE_CHECKING

from castsim.isa.errors import ReadError
from castsim.reports import notebooks
from castsim.reports.notebooks.columns import Columns

if TYPE_CHECKING:
    from castsim.execution.notebook_display import Frame

LIBRARIES = ("pandas", "polars")
"""Libraries of frames, the one that is taken first in front."""


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
    return notebooks.pandas_frame(made()) if found == "pandas" else notebooks.polars_frame(made())
