"""The page of a planned cast: the answer, the chain, where others fail, the program."""

from __future__ import annotations

from collections.abc import Iterator

from castsim.planning.lowering_answers import Answer
from castsim.reports.lower import answer_document
from castsim.reports.lower_text import lower_text
from castsim.reports.pages.blocks import Block, Figure, Figures, Listing, Page, Section
from castsim.reports.pages.from_text import text_blocks


def lower_page(answer: Answer, out: str | None) -> Page:
    """Return the page of an answer; `out` is the file that its program was written to."""
    found = answer.plan
    demand = found.demand
    sections = [Section("summary", "Summary", (Figures(tuple(_figures(answer))), *_told(answer, out)))]
    if answer.text is not None:
        sections.append(Section("program", "Program", (Listing("", answer.text.rstrip("\n")),)))
    return Page(
        kind="lower",
        title=f"{demand.src.name} -> {demand.dst.name} on {found.target.name}",
        subtitle=f"castsim lower, as {demand.label} asks; target {found.target.name} ({found.target.title})",
        sections=tuple(sections),
        result=answer_document(answer, out),
    )


def _figures(answer: Answer) -> Iterator[Figure]:
    found = answer.plan
    yield Figure("way", answer.kind.value, note=f"{len(found.chain)} instructions" if len(found.chain) > 1 else "")
    yield Figure("verdict", found.verdict.value, note="" if found.claim == found.verdict.value else found.claim)
    if found.evidence is not None:
        yield Figure("codes tried", found.evidence.codes, note=f"by {found.evidence.method.value}")
    if found.cost is not None:
        per, cost = found.cost.cycles_per_element, found.cost
        yield Figure("cycles per element", per, note=f"{cost.cycles} cycles for {cost.elements} elements")


def _told(answer: Answer, out: str | None) -> Iterator[Block]:
    """Yield what the text report says: the chain, the proof, the values on which others fail."""
    yield from text_blocks([lower_text(answer, None if out == "-" else out)])
