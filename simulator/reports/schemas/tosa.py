"""The document of `castsim tosa`."""

from __future__ import annotations

from typing import ClassVar

from castsim.reports.schemas.keys import Form, Keys


class TosaResult(Keys):
    """One call of a function."""

    arguments: list[int]
    """Its arguments."""
    result: list[int]
    """Its result; a scale is multiplier and shift."""


class Tosa(Form):
    """The results of a helper function of the TOSA specification."""

    NAME: ClassVar[str] = "tosa"

    function: str
    """Name of the function."""
    results: list[TosaResult]
    """One entry for each call."""
