"""Advice as a document, and as text: what was found, and the first change as a diff."""

from __future__ import annotations

from pathlib import Path

from rich.console import Group, RenderableType
from rich.text import Text

from castsim.exploration.advice_search import Advice
from castsim.exploration.suggestion import Suggestion, SuggestionEvidence
from castsim.reports.documents import VERSIONS, Document, document, json_of
from castsim.reports.terminal import table


def advice_document(advice: Advice, applied: int | None = None, output: Path | None = None) -> Document:
    """Return what `castsim advise --json` writes."""
    return {
        "schema_version": VERSIONS["advise"],
        **document(advice, "file", "target", "cycles", "looked_at"),
        "offers": [
            {
                "number": number,
                **document(offer.change, "kind", "title", "reason", "line"),
                **document(offer, "how", "runs", "cycles", "gained", "gained_percent", "diff"),
            }
            for number, offer in enumerate(advice.offers, 1)
        ],
        "rejected": [
            {**document(one.change, "kind", "title", "line"), **document(one, "why")} for one in advice.rejected
        ],
        **document(advice, "unfinished"),
        "applied": applied,
        "output": json_of(output),
    }


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
