"""The JSON document of advice."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, TypeAlias

from castsim.reports.documents import CommandDocument, Keys, says
from castsim.reports.schemas.keys import Cycles, Line, Percent
from castsim.tools.advise.suggestions import SuggestionEvidence

if TYPE_CHECKING:
    pass


HowKept: TypeAlias = Annotated[str, ("enum", tuple(how.value for how in SuggestionEvidence))]
"""Evidence that the outputs stay the same."""


class Change(Keys):
    """A change that keeps the outputs and saves cycles."""

    number: int = says("Number of the change, from 1, for `--apply`.")
    kind: str = says("Kind of the change, as in docs/tools/advise.md.", "change.kind")
    title: str = says("The change and its place.", "change.title")
    reason: str = says("The reason why it saves cycles.", "change.reason")
    line: Line = says("The line where it begins.", "change.line")
    how: HowKept = says("Evidence that the outputs stay the same.")
    runs: int = says("Number of inputs for which both programs gave the same bits.")
    cycles: Cycles = says("Cycles of the changed program.")
    gained: Cycles = says("Cycles saved.")
    gained_percent: Percent = says("Cycles saved, as a percentage of those of the original program.")
    diff: str = says("A unified diff of the file.")


class RejectedChange(Keys):
    """A change that was tried and rejected."""

    kind: str = says("Kind of the change, as in docs/tools/advise.md.", "change.kind")
    title: str = says("The change and its place.", "change.title")
    line: Line = says("The line where it begins.", "change.line")
    why: str = says("The reason why it is not offered.")


class Advise(CommandDocument, name="advise", version=2):
    """Changes that make a program faster."""

    file: str = says("The program.")
    target: str = says("Name of the target.")
    cycles: Cycles = says("Cycles of the original program.")
    looked_at: int = says("Changes that were applied and checked.")
    offers: list[Change] = says(
        of=lambda advice: [Change.of(offer, number=number) for number, offer in enumerate(advice.offers, 1)]
    )
    """Valid changes, most cycles saved first."""
    rejected: list[RejectedChange] = says("Changes that are not offered, in the order of their trial.")
    unfinished: bool = says("Whether the time limit ended the search.")
    applied: int | None = says("Number of the written change; null if none was written.")
    output: str | None = says("The output file.")
