"""Telling once what would make casts faster."""

from __future__ import annotations

import warnings
from functools import cache


@cache
def hint(message: str) -> None:
    """Warn, the first time that a message is given."""
    warnings.warn(f"castsim: {message}", RuntimeWarning, stacklevel=2)
