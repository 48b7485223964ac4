"""The page of two runs side by side: cycles, lines, two timelines over one axis, outputs."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from itertools import islice

from castsim.isa.dataclass import replace
from castsim.reports.documents import Json
from castsim.reports.pages.answer_pages import (
    titled_section,
)
from castsim.reports.pages.blocks import (
    Bars,
    Block,
    Figure,
    Figures,
    Lanes,
    Packed,
    Page,
    PageSection,
    ResultsView,
    Tone,
    cause_series,
    text_blocks,
)
from castsim.reports.pages.run_timeline import interval_columns, run_timeline, timeline_lanes
from castsim.tools.diff.command import head_of, output_parts, speed_of
from castsim.tools.diff.differences import ComparedSide, Difference, LineThatDiffers, by_effect

# The timelines of two runs over one axis: operations of those that ran now, executions of those read from JSON.

_MOST = 100_000
"""Maximum number of executions in a timeline of a JSON result."""

_DIFF_TIMELINES_TONES = (Tone("instruction, from the end of the one before on its pipe", "busy"),)


def timelines(comparison: Difference) -> Iterator[Lanes]:
    """Yield the timelines of both sides on the scale of the longer one; empty if the cycles are unknown."""
    if comparison.cycles_a is None or comparison.cycles_b is None:
        return
    end = max(comparison.cycles_a, comparison.cycles_b)
    for letter, side in (("A", comparison.a), ("B", comparison.b)):
        lanes = _recorded(side) if side.result is None else timeline_lanes(side.result, run_timeline(side.result))
        yield replace(lanes, caption=f"{letter}, {side.file} on {side.target}: {side.cycles} cycles", end=end)


def _recorded(side: ComparedSide) -> Lanes:
    """Return the executions in a JSON result, a row for each pipe.

    Many begin when their instruction is sent, and wait in the pipe's queue; each is shown from the end of the previous
    one.
    """
    rows: dict[str, list[tuple[int, int, int, int]]] = {}
    numbers: dict[tuple[int, str, str], int] = {}
    # Flags are sent before what they wait for ends, and end with it: among equal ends the order of the program decides.
    spans = sorted(islice(side.spans(), _MOST + 1), key=lambda span: span.end)
    for span in spans[:_MOST]:
        row = rows.setdefault(span.pipe, [])
        start = max(span.start, row[-1][1]) if row else span.start
        item = numbers.setdefault((span.line, span.text, span.pipe), len(numbers) + 1)
        if start < span.end:
            row.append((start, span.end, 0, item))
    columns = interval_columns(rows.values(), 0)
    columns["texts"] = [[text, f"line {line}", f"pipe {pipe}"] for line, text, pipe in numbers]
    notes = (f"The first {_MOST} executions.",) if len(spans) > _MOST else ()
    return Lanes("", "cycles", 0, side.cycles or 0, tuple(rows), _DIFF_TIMELINES_TONES, Packed(columns), notes=notes)


# The page of two runs side by side: cycles, lines, two timelines over one axis, outputs.

_TIMELINES = "timelines"


def page_of(comparison: Difference) -> Page:
    """Return the page of a difference."""
    lanes = tuple(timelines(comparison))
    sections = [
        titled_section("Summary", Figures(tuple(_diff_page_figures(comparison))), *text_blocks(head_of(comparison)))
    ]
    if comparison.lines:
        columns = {"lines": _difference_lines(by_effect(comparison.lines)), "timelines": _TIMELINES if lanes else ""}
        caption = "" if comparison.by_text else "By the instructions in them; the text of both programs is not known."
        sections.append(PageSection("lines", "Lines that differ", (ResultsView("changes", caption, Packed(columns)),)))
    sections.append(PageSection(_TIMELINES, "Timelines", lanes))
    sections.append(titled_section("Pipes", *_pipes(comparison)))
    sections.append(titled_section("Outputs", *text_blocks(output_parts(comparison))))
    a, b = comparison.a, comparison.b
    title = f"{a.file} and {b.file}" if a.file != b.file else a.file
    subtitle = f"castsim diff, A on {a.target}, B on {b.target}"
    return Page(
        "diff",
        title,
        subtitle,
        tuple(section for section in sections if section.blocks),
        comparison.as_json(),
    )


def _difference_lines(lines: Iterable[LineThatDiffers]) -> list[Json]:
    """Return lines as JSON with the pipe cycles that each spends."""
    return [{**line.as_json(), "spent_a": line.spent[0], "spent_b": line.spent[1]} for line in lines]


def _diff_page_figures(comparison: Difference) -> Iterator[Figure]:
    a, b = comparison.cycles_a, comparison.cycles_b
    differing = [what for what, same in (("cycles", a == b), ("outputs", comparison.outputs_equal)) if not same]
    note = f"{' and '.join(differing)} differ" if differing else "in cycles and outputs"
    yield Figure("equal", "yes" if comparison.equal else "no", note=note)
    if a is not None and b is not None:
        yield Figure("A", a, "cycles")
        yield Figure("B", b, "cycles", speed_of(comparison))
    yield Figure("lines that differ", len(comparison.lines))
    if comparison.outputs:
        unequal = sum(not output.equal for output in comparison.outputs)
        yield Figure("outputs that differ", unequal, note=f"of {len(comparison.outputs)}")


def _pipes(comparison: Difference) -> Iterator[Block]:
    sides: tuple[tuple[str, ComparedSide], ...] = (("A", comparison.a), ("B", comparison.b))
    pipes = dict.fromkeys((*comparison.a.pipes, *comparison.b.pipes))
    bars = [(f"{pipe}, {letter}", side.pipes.get(pipe, {})) for pipe in pipes for letter, side in sides]
    series = cause_series([causes for _, causes in bars])
    if series:
        yield Bars("Cycles of each pipe by cause", "cycles", tuple(name for name, _ in bars), series)
