"""The JSON document of the helper functions of TOSA."""

from __future__ import annotations

from castsim.reports.documents import CommandDocument, Keys, says


class TosaResult(Keys):
    """One call of a function."""

    arguments: list[int] = says("Its arguments.")
    result: list[int] = says("Its result; a scale is multiplier and shift.")


class Tosa(CommandDocument, name="tosa"):
    """The results of a helper function of the TOSA specification."""

    function: str = says("Name of the function.")
    results: list[TosaResult] = says("One entry for each call.")
