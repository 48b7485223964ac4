"""Arrays of codes, the form in which values of every number format travel."""

from __future__ import annotations

from typing import Any

from numpy.typing import NDArray

Codes = NDArray[Any]
"""Codes of some format, one an element; the unsigned element type follows from the format's width."""
