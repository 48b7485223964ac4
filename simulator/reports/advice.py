"""Advice as a document, and as text: what was found, and the first change as a diff."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, TypeAlias

from rich.console import Group, RenderableType
from rich.text import Text

from castsim.exploration.advice_search import Advice
from castsim.exploration.program_edits import Suggestion, SuggestionEvidence
from castsim.reports.documents import CommandDocument, Document, Keys, says
from castsim.reports.schemas.keys import Cycles, Line, Percent
from castsim.reports.terminal import table

HowKept: TypeAlias = Annotated[str, ("enum", tuple(how.value for how in SuggestionEvidence))]
"""How it is known that the outputs stay the same."""


class Change(Keys):
    """A change that keeps the outputs and saves cycles."""

    number: int = says("Its place, from 1; `--apply` takes it.")
    kind: str = says("What is done, in the words of docs/advice.md.", "change.kind")
    title: str = says("What is done where.", "change.title")
    reason: str = says("Why that saves cycles.", "change.reason")
    line: Line = says("The line where it begins.", "change.line")
    how: HowKept = says("How it is known that the outputs stay the same.")
    runs: int = says("Inputs on which both programs gave the same bits.")
    cycles: Cycles = says("What the changed program takes.")
    gained: Cycles = says("Cycles saved.")
    gained_percent: Percent = says("Cycles saved, of those of the program as it is.")
    diff: str = says("A unified diff of the file.")


class RejectedChange(Keys):
    """A change that was tried and is not offered."""

    kind: str = says("What was done, in the words of docs/advice.md.", "change.kind")
    title: str = says("What was done where.", "change.title")
    line: Line = says("The line where it begins.", "change.line")
    why: str = says("Why it is not offered.")


class Advise(CommandDocument, name="advise"):
    """What would make a program faster."""

    file: str = says("The program.")
    target: str = says("Name of the target.")
    cycles: Cycles = says("What the program takes as it is.")
    looked_at: int = says("Changes that were made and checked.")
    offers: list[Change] = says(
        of=lambda advice: [Change.of(offer, number=number) for number, offer in enumerate(advice.offers, 1)]
    )
    """Those that hold, most cycles saved first."""
    rejected: list[RejectedChange] = says("Those that are not offered, in the order in which they were made.")
    unfinished: bool = says("Whether the time was over before all changes were tried.")
    applied: int | None = says("The number of the change that was written; null if none was.")
    output: str | None = says("The file that it was written to.")


def advice_document(advice: Advice, applied: int | None = None, output: Path | None = None) -> Document:
    """Return what `castsim advise --json` writes."""
    return Advise.of(advice, applied=applied, output=output)


def advice_text(
    advice: Advice, applied: int | None = None, output: Path | None = None, *, why: bool = False
) -> RenderableType:
    """Return the answer first, then a table of the changes, and the first one, or the one applied, as a diff.

    With `why` the changes that were rejected come before the diff.
    """
    parts: list[RenderableType] = [_answer(advice, applied)]
    if advice.offers:
        parts += [Text(), _offers(advice)]
    if why:
        parts += [Text(), _rejected(advice)]
    elif not advice.offers and advice.rejected:
        parts.append(Text("next: --why says what was tried and why it was rejected"))
    if advice.unfinished:
        parts.append(Text("the time was over before all changes were tried: --seconds N gives more"))
    if not advice.offers:
        return Group(*parts)
    parts.append(Text())
    if output is not None:
        parts.append(Text(f"{output}: written with change {applied}"))
        return Group(*parts)
    shown = advice.offers[(applied or 1) - 1]
    diff = Text(shown.diff.rstrip("\n"), no_wrap=True, overflow="ignore")
    return Group(*parts, Text(f"change 1: {shown.change.reason}"), Text(), diff)


def _answer(advice: Advice, applied: int | None) -> Text:
    if not advice.offers:
        tried = f"none of {advice.looked_at} changes tried" if advice.looked_at else "no change that castsim knows"
        return Text(
            f"{advice.file}: {advice.cycles:,} cycles on {advice.target}; {tried} keeps the outputs and saves cycles"
        )
    shown: Suggestion = advice.offers[(applied or 1) - 1]
    return Text(
        f"{advice.file}: {advice.cycles:,} cycles on {advice.target}, {shown.cycles:,} with change {applied or 1}"
    )


def _rejected(advice: Advice) -> RenderableType:
    found = table("rejected change", "line", "why", numbers=("line",))
    for one in advice.rejected:
        found.add_row(Text(one.change.title), str(one.change.line), Text(one.why))
    return found if advice.rejected else Text("no change was rejected")


def _offers(advice: Advice) -> RenderableType:
    found = table("change", "cycles", "gain", "how", "what", numbers=("change", "cycles", "gain"))
    for number, offer in enumerate(advice.offers, 1):
        how = offer.how.value if offer.how is SuggestionEvidence.PROVEN else f"{offer.how} on {offer.runs} inputs"
        gain = f"{offer.gained_percent:.1f} %"
        found.add_row(str(number), f"{offer.cycles:,}", gain, how, Text(offer.change.title))
    return found
