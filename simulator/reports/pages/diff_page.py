"""The page of two runs side by side: cycles, lines, two timelines over one axis, outputs."""

from __future__ import annotations

from collections.abc import Iterator

from castsim.exploration.differences.comparison import Difference, by_effect
from castsim.exploration.differences.sides import Side
from castsim.reports.difference import difference_document, difference_lines
from castsim.reports.difference_text import head_of, output_parts, speed_of
from castsim.reports.documents import identifier
from castsim.reports.pages.blocks import Bars, Block, Figure, Figures, Packed, Page, Section, Series, View
from castsim.reports.pages.diff_timelines import timelines
from castsim.reports.pages.from_text import text_blocks
from castsim.timing import Cause

_TIMELINES = "timelines"


def diff_page(found: Difference) -> Page:
    """Return the page of a difference."""
    document = difference_document(found)
    lanes = tuple(timelines(found))
    sections = [Section("summary", "Summary", (Figures(tuple(_figures(found))), *text_blocks(head_of(found))))]
    if found.lines:
        columns = {"lines": difference_lines(by_effect(found.lines)), "timelines": _TIMELINES if lanes else ""}
        caption = "" if found.by_text else "By the instructions in them; the text of both programs is not known."
        sections.append(Section("lines", "Lines that differ", (View("changes", caption, Packed(columns)),)))
    sections += [
        Section(_TIMELINES, "Timelines", lanes),
        Section("pipes", "Pipes", tuple(_pipes(found))),
        Section("outputs", "Outputs", tuple(text_blocks(output_parts(found)))),
    ]
    a, b = found.a, found.b
    return Page(
        kind="diff",
        title=f"{a.file} and {b.file}" if a.file != b.file else a.file,
        subtitle=f"castsim diff, A on {a.target}, B on {b.target}",
        sections=tuple(each for each in sections if each.blocks),
        result=document,
    )


def _figures(found: Difference) -> Iterator[Figure]:
    a, b = found.cycles_a, found.cycles_b
    differing = [what for what, same in (("cycles", a == b), ("outputs", found.outputs_equal)) if not same]
    note = f"{' and '.join(differing)} differ" if differing else "in cycles and outputs"
    yield Figure("equal", "yes" if found.equal else "no", note=note)
    if a is not None and b is not None:
        yield Figure("A", a, "cycles")
        yield Figure("B", b, "cycles", speed_of(found))
    yield Figure("lines that differ", len(found.lines))
    if found.outputs:
        unequal = sum(not each.equal for each in found.outputs)
        yield Figure("outputs that differ", unequal, note=f"of {len(found.outputs)}")


def _pipes(found: Difference) -> Iterator[Block]:
    sides: tuple[tuple[str, Side], ...] = (("A", found.a), ("B", found.b))
    pipes = dict.fromkeys((*found.a.pipes, *found.b.pipes))
    bars = [(f"{pipe}, {letter}", side.pipes.get(pipe, {})) for pipe in pipes for letter, side in sides]
    series = tuple(
        Series(str(cause), tuple(causes.get(cause, 0) for _, causes in bars), identifier(cause))
        for cause in Cause
        if any(causes.get(cause) for _, causes in bars)
    )
    if series:
        yield Bars("Cycles of each pipe by cause", "cycles", tuple(name for name, _ in bars), series)
