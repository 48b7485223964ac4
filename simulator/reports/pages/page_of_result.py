"""The pages of what commands found: accuracy, differences, matrices, searches, lowerings, graphs."""

from __future__ import annotations

import shlex
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from itertools import islice
from pathlib import Path
from typing import TYPE_CHECKING

from rich.console import RenderableType

from castsim.evidence.accuracy_assessment import Accuracy, AssessedRow
from castsim.evidence.left_out import CrossValidation
from castsim.exploration.differences import Difference, ProgramSide, by_effect
from castsim.exploration.tuning_candidates import ChoiceRow
from castsim.exploration.tuning_studies import Tuning
from castsim.lowering.conformance import ConformanceEntry, Matrix
from castsim.lowering.graphs.kernel_runner import NodeVerdict
from castsim.lowering.graphs.model import TEXT
from castsim.lowering.lowering_answers import Answer, setting_text
from castsim.lowering.planner import PlanKind
from castsim.reports.accuracy import (
    CURVE_COLUMNS,
    accuracy_document,
    accuracy_summary,
    cross_validation_document,
    cross_validation_text,
    curve_cells,
)
from castsim.reports.comparing import difference_document, difference_lines, head_of, output_parts, speed_of
from castsim.reports.conform import cast_text, cell_text, conform_document, legend_lines
from castsim.reports.documents import Document, Json, shortened
from castsim.reports.graph_text import graph_text, headline, seconds_of
from castsim.reports.lower import answer_document
from castsim.reports.lower_text import lower_text
from castsim.reports.numbers import grouped
from castsim.reports.pages.blocks import (
    Bars,
    Block,
    Diagram,
    DiagramNode,
    Figure,
    Figures,
    Lanes,
    Line,
    Listing,
    Packed,
    Page,
    PageSection,
    PageTable,
    ResultsView,
    Series,
    Text,
    Tone,
    cause_series,
    text_blocks,
)
from castsim.reports.pages.run_timeline import interval_columns, run_timeline, timeline_lanes, value_blocks
from castsim.reports.run_cycles import clock, duration
from castsim.reports.specification import specification_words
from castsim.reports.tuning import answer_lines, choices_text, command_of, row_entry, tuning_document

if TYPE_CHECKING:
    from castsim.lowering.graphs.graph_execution import GraphRun, NodeRun

# The page of measured and simulated cycles: points, errors and their reasons, to choose from.

_ACCURACY_PAGE_MOST_ROWS = 1000
"""Rows up to which the page holds the JSON of the rows too; its lists have all."""

_STATISTICS = ("mean", "median", "max")


def accuracy_page(found: Sequence[Accuracy]) -> Page:
    """Return the page of one table, or of several."""
    document = accuracy_document(found)
    rows = [row for each in found for row in _rows(each.target.name, _name(each.table.file), each.rows)]
    return Page(
        kind="accuracy",
        title="Simulated against measured cycles",
        subtitle=f"castsim accuracy on {', '.join(dict.fromkeys(each.target.name for each in found))}",
        sections=(
            PageSection("summary", "Summary", tuple(text_blocks([accuracy_summary(found)]))),
            PageSection("measurements", "Residuals", (_accuracy_page_view(rows),)),
            PageSection("curves", "Curves", (_curves(found),)),
            PageSection("sources", "Sources", (_sources(document),)),
        ),
        result=shortened(document, "rows", _ACCURACY_PAGE_MOST_ROWS),
    )


def cross_validation_page(found: CrossValidation) -> Page:
    """Return the page of a cross-validation: every row as the facts fitted without it predict it."""
    rows = [row for fold in found.folds for row in _rows(found.target.name, f"without {fold.name}", fold.rows)]
    return Page(
        kind="cross-validation",
        title=f"Cross-validation of {found.target.name}",
        subtitle=f"castsim accuracy --cross-validate {found.left_out}: {_name(found.table.file)}",
        sections=(
            PageSection("measurements", "Measurements", (_accuracy_page_view(rows),)),
            PageSection("folds", "Left out in turn", tuple(text_blocks([cross_validation_text(found)]))),
        ),
        result=cross_validation_document(found),
    )


def _accuracy_page_view(rows: list[Json]) -> ResultsView:
    return ResultsView("measurements", "Errors are in percent of the measured cycles.", Packed({"rows": rows}))


def _rows(target: str, table: str, found: Iterable[AssessedRow]) -> list[Json]:
    """Return rows as `measurements.js` takes them."""
    return [
        {
            "table": table,
            "target": target,
            "operation": assessed.row.label,
            "types": _types(assessed),
            "path": assessed.row.path,
            "shape": _shape(assessed),
            "measured": assessed.row.measured_cycles,
            "simulated": assessed.simulated_cycles,
            "error": assessed.error,
            "evidence": _evidence(assessed),
            "public": assessed.row.predicted,
            "public_error": assessed.predicted_error,
            "reason": assessed.reason,
        }
        for assessed in found
    ]


def _evidence(assessed: AssessedRow) -> str:
    kind = assessed.row.source_kind
    return f"{'fitted' if assessed.row.fitted else 'not fitted'}{f', {kind}' if kind else ''}"


def _types(assessed: AssessedRow) -> str:
    src, dst = assessed.row.src.name, assessed.row.dst.name
    return src if src == dst else f"{src} -> {dst}"


def _shape(assessed: AssessedRow) -> str:
    row = assessed.row
    words = [f"{assessed.simulated_rows} x {assessed.simulated_cols}", "in place" if row.in_place else "", row.name]
    counts = f"counts {row.convention}" if row.convention else ""
    return " ".join(word for word in (*words, counts) if word)


def _curves(found: Sequence[Accuracy]) -> PageTable:
    caption, numbers = "Absolute errors by operation, types and kind of shape", tuple(range(4, len(CURVE_COLUMNS)))
    return PageTable(caption, CURVE_COLUMNS, tuple(curve_cells(found)), numbers, most=25)


def _sources(document: Document) -> PageTable:
    targets = document["targets"]
    entries = [each for each in targets if isinstance(each, dict)] if isinstance(targets, list) else []
    rows = tuple(
        (
            str(each["target"]),
            _name(str(each["file"])),
            str(each["rows"]),
            *(str(each[name]) for name in _STATISTICS),
            "given by --data" if each["source"] is None else str(each["source"]),
        )
        for each in entries
    )
    columns = ("target", "table", "rows", "mean %", "median %", "max %", "source")
    return PageTable("", columns, rows, numbers=(2, 3, 4, 5))


def _name(file: str) -> str:
    return Path(file).name


# The timelines of two runs over one axis: operations of those that ran now, executions of those read from JSON.

_MOST = 100_000
"""Executions that a timeline made of a JSON result shows."""

_DIFF_TIMELINES_TONES = (Tone("instruction, from the end of the one before on its pipe", "busy"),)


def timelines(found: Difference) -> Iterator[Lanes]:
    """Yield the timelines of both sides, as long as the longer one; nothing where no cycles are known."""
    if found.cycles_a is None or found.cycles_b is None:
        return
    end = max(found.cycles_a, found.cycles_b)
    for letter, side in (("A", found.a), ("B", found.b)):
        lanes = _recorded(side) if side.result is None else timeline_lanes(side.result, run_timeline(side.result))
        yield replace(lanes, caption=f"{letter}, {side.file} on {side.target}: {side.cycles} cycles", end=end)


def _recorded(side: ProgramSide) -> Lanes:
    """Return the executions that a JSON result tells of, a row for each pipe.

    Many begin when their instruction is sent, and wait in the queue of the pipe; each is shown from the end of the one
    before.
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


def diff_page(found: Difference) -> Page:
    """Return the page of a difference."""
    document = difference_document(found)
    lanes = tuple(timelines(found))
    sections = [
        PageSection("summary", "Summary", (Figures(tuple(_diff_page_figures(found))), *text_blocks(head_of(found))))
    ]
    if found.lines:
        columns = {"lines": difference_lines(by_effect(found.lines)), "timelines": _TIMELINES if lanes else ""}
        caption = "" if found.by_text else "By the instructions in them; the text of both programs is not known."
        sections.append(PageSection("lines", "Lines that differ", (ResultsView("changes", caption, Packed(columns)),)))
    sections += [
        PageSection(_TIMELINES, "Timelines", lanes),
        PageSection("pipes", "Pipes", tuple(_pipes(found))),
        PageSection("outputs", "Outputs", tuple(text_blocks(output_parts(found)))),
    ]
    a, b = found.a, found.b
    return Page(
        kind="diff",
        title=f"{a.file} and {b.file}" if a.file != b.file else a.file,
        subtitle=f"castsim diff, A on {a.target}, B on {b.target}",
        sections=tuple(each for each in sections if each.blocks),
        result=document,
    )


def _diff_page_figures(found: Difference) -> Iterator[Figure]:
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
    sides: tuple[tuple[str, ProgramSide], ...] = (("A", found.a), ("B", found.b))
    pipes = dict.fromkeys((*found.a.pipes, *found.b.pipes))
    bars = [(f"{pipe}, {letter}", side.pipes.get(pipe, {})) for pipe in pipes for letter, side in sides]
    series = cause_series([causes for _, causes in bars])
    if series:
        yield Bars("Cycles of each pipe by cause", "cycles", tuple(name for name, _ in bars), series)


# The page of a conformance matrix: the ways of each target, and a matrix whose cells tell how, or where it fails.

_TONES = {
    PlanKind.NATIVE: "sound",
    PlanKind.OPTIONS: "optional",
    PlanKind.CHAIN: "chained",
    PlanKind.COPY: "mixed",
    PlanKind.NONE_FOUND: "bad",
    PlanKind.IMPOSSIBLE: "impossible",
}

_MOST_CELLS = 1000
"""Cells up to which the page holds the JSON of the matrix too; the matrix itself has all."""


def conform_page(found: Matrix) -> Page:
    """Return the page of a matrix."""
    document = conform_document(found)
    casts = [cast_text(cast, entry) for number, cast in enumerate(found.casts) for entry in found.row(number)]
    columns = {
        "cells": document["cells"],
        "casts": casts,
        "answers": [cell_text(entry) for entry in found.entries],
        "commands": [_command(found, entry) for entry in found.entries],
    }
    matrix = ResultsView("conformance", "", Packed(columns))
    return Page(
        kind="conform",
        title=f"Casts of {specification_words(f'{found.spec.name}@{found.version}')}",
        subtitle=f"castsim conform on {', '.join(found.targets)}",
        sections=(
            PageSection("summary", "Summary", (_conform_page_figures(found), _ways(found))),
            PageSection("matrix", "Matrix", (matrix,)),
            PageSection("legend", "Legend", (_legend(found),)),
        ),
        result=shortened(document, "cells", _MOST_CELLS),
    )


def _conform_page_figures(found: Matrix) -> Figures:
    impossible = _count(found, PlanKind.IMPOSSIBLE)
    failing = impossible + _count(found, PlanKind.NONE_FOUND)
    sampled = sum(not entry.proven for entry in found.entries if not entry.kind.fails)
    return Figures(
        (
            Figure("casts", len(found.casts)),
            Figure("targets", len(found.targets)),
            Figure("conform", len(found.entries) - failing, note=f"of {len(found.entries)} cells"),
            Figure("none found", failing - impossible),
            Figure("impossible", impossible),
            Figure("rest on samples", sampled, note="of those that conform"),
        )
    )


def _ways(found: Matrix) -> Bars:
    series = tuple(
        Series(kind.value, tuple(_count(found, kind, target) for target in found.targets), _TONES[kind])
        for kind in PlanKind
    )
    return Bars("How the targets do the casts", "cells", found.targets, series)


def _count(found: Matrix, kind: PlanKind, target: str | None = None) -> int:
    return sum(entry.kind is kind and target in (None, entry.cell.target) for entry in found.entries)


def _legend(found: Matrix) -> Text:
    options = (Line(f"Options given to all targets: {setting_text(found.options)}"),) if found.options else ()
    return Text((*(Line(each) for each in legend_lines(found)), *options))


def _command(found: Matrix, entry: ConformanceEntry) -> str:
    """Return the command that plans a cell by itself."""
    cell = entry.cell
    spec = ":".join([f"{found.spec.name}@{found.version}", *(f"{name}={value}" for name, value in cell.attributes)])
    options = [word for name, value in found.options for word in ("--option", f"{name}={value}")]
    words = ("castsim", "lower", cell.src, cell.dst, "--spec", spec, "--target", cell.target, *options)
    return shlex.join(words)


# The page of a search of tile shapes: the answer, cycles against bytes of the buffer, the ranking.

_MOST_ROWS = 3000
"""Points that a page shows, those that were simulated first; `--json` has all."""


def tune_page(found: Tuning) -> Page:
    """Return the page of a search."""
    document = tuning_document(found)
    tried = [row for row in found.rows if not row.reason]
    sections = [
        PageSection(
            "summary", "Summary", (Figures(tuple(_tune_page_figures(found))), *_tune_page_told(found, len(tried)))
        )
    ]
    if tried:
        sections.append(PageSection("points", "Points", (_view(found, tried[:_MOST_ROWS]),)))
    if found.misfits:
        sections.append(PageSection("refused", "Does not run", (_misfits(found),)))
    file = found.study.source.file
    return Page(
        kind="tune",
        title=f"{file}: tile shapes and choices",
        subtitle=f"castsim tune {Path(file).name}: {', '.join(axis.name for axis in found.study.space.axes)}",
        sections=tuple(sections),
        result=shortened(document, "rows", _MOST_ROWS),
    )


def _tune_page_figures(found: Tuning) -> Iterator[Figure]:
    best = found.best
    if best is not None:
        yield Figure("best", best.cycles, "cycles", choices_text(best))
        yield Figure("bytes of the buffer", best.buffer_bytes)
        if best.cycles_per_element is not None:
            yield Figure("cycles per element", best.cycles_per_element)
    yield Figure("points", len(found.rows), note=f"{found.left_out} left out by conditions" if found.left_out else "")
    yield Figure("simulated", len(found.simulated))
    whole = best is not None and not found.unsettled
    yield Figure("on the front", len(found.pareto), note="proven to be all of it" if whole else "")


def _tune_page_told(found: Tuning, tried: int) -> Iterator[Block]:
    lines = [Line(text, "strong" if number == 0 else "plain") for number, text in enumerate(answer_lines(found))]
    if tried > _MOST_ROWS:
        lines.append(Line(f"The page shows the first {_MOST_ROWS} of {tried} points; --json has all.", "dim"))
    yield Text(tuple(lines))


def _view(found: Tuning, rows: list[ChoiceRow]) -> ResultsView:
    front = {row.number for row in found.pareto}
    columns: dict[str, Json] = {
        "rows": [row_entry(row, front) for row in rows],
        "commands": [command_of(found, row) if row.cycles is not None else "" for row in rows],
    }
    caption = "No simulated point has fewer cycles or bytes than one on the front, and no more of the other."
    return ResultsView("tuning", caption, Packed(columns))


def _misfits(found: Tuning) -> PageTable:
    rows = tuple((choices_text(row), row.reason) for row in found.misfits[:_MOST_ROWS])
    return PageTable("", ("choices", "reason"), rows)


# The page of a planned cast: the answer, the chain, where others fail, the program.


def lower_page(answer: Answer, out: str | None) -> Page:
    """Return the page of an answer; `out` is the file that its program was written to."""
    found = answer.plan
    demand = found.demand
    sections = [PageSection("summary", "Summary", (Figures(tuple(_figures(answer))), *_told(answer, out)))]
    if answer.text is not None:
        sections.append(PageSection("program", "Program", (Listing("", answer.text.rstrip("\n")),)))
    return Page(
        kind="lower",
        title=f"{demand.src.name} -> {demand.dst.name} on {found.target.name}",
        subtitle=f"castsim lower, as {specification_words(demand.label)} asks; target {found.target.name} "
        f"({found.target.title})",
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


def plain_page(command: str, words: str, report: RenderableType, document: Document) -> Page:
    """Return the page of a text report; `words` are what was typed, `document` the JSON of the same."""
    return Page(
        kind=command,
        title=f"castsim {words}",
        subtitle="",
        sections=(PageSection("summary", "Summary", tuple(text_blocks([report]))),),
        result=document,
    )


Found = Answer | Matrix | Sequence[Accuracy] | CrossValidation | Tuning | Difference
"""What has a page, beside runs and graphs."""


def page_of(found: Found, out: str | None = None) -> Page:
    """Return the page; `out` is the file that the program of an answer was written to."""
    match found:
        case Answer():
            return lower_page(found, out)
        case Matrix():
            return conform_page(found)
        case CrossValidation():
            return cross_validation_page(found)
        case Tuning():
            return tune_page(found)
        case Difference():
            return diff_page(found)
        case _:
            return accuracy_page(found)


# The page of a graph that ran: the graph drawn, when its nodes ran, its text report, the values of its outputs.

_VERDICT_TONES = {
    NodeVerdict.PROVEN: "sound",
    NodeVerdict.TRIED: "sound",
    NodeVerdict.UNCHANGED: "sound",
    NodeVerdict.NO_MISMATCH: "initiation_interval",
    NodeVerdict.DIFFERS: "bad",
    NodeVerdict.NOT_JUDGED: "barrier",
    NodeVerdict.NOT_RUN: "bad",
}
_MOST_DRAWN = 400
"""Nodes of a graph that is drawn; a larger one has its table."""


def graph_page(
    found: GraphRun, files: Mapping[str, Path], emitted: Mapping[tuple[str, int], Path], document: Document
) -> Page:
    """Return the page of a graph: `files` are those of outputs, `emitted` those of programs, `document` its JSON."""
    graph, target = found.graph, found.target
    names = tuple(node.node.name for node in found.nodes)
    cycles = Series("cycles", tuple(node.cycles for node in found.nodes), "busy")
    values: tuple[Block, ...] = tuple(
        block
        for name, tensor in found.outputs.items()
        if tensor.format is not TEXT
        for block in value_blocks(name, tensor.array, tensor.format)
    )
    drawn = tuple(_drawn(found)) if len(found.nodes) <= _MOST_DRAWN else ()
    sections = (
        PageSection("summary", "Summary", (Text(tuple(_answer(found))),)),
        PageSection("timeline", "Timeline", tuple(_timeline(found))),
        PageSection("graph", "Graph", drawn),
        PageSection("nodes", "Nodes", (Bars("Cycles of each node", "cycles", names, (cycles,)),)),
        PageSection("details", "Details", tuple(text_blocks([graph_text(found, files, emitted)]))),
        PageSection("outputs", "Outputs", values),
    )
    title = f"{graph.file}: {graph.name}"
    spec = specification_words(f"{graph.spec}@{graph.version}")
    subtitle = f"castsim graph, {spec} on target {target.name} ({target.title})"
    return Page("graph", title, subtitle, tuple(each for each in sections if each.blocks), document)


def _answer(found: GraphRun) -> Iterator[Line]:
    """Yield what differs, the answer in a sentence, and the node that takes longest."""
    wrong = [node.node.name for node in found.nodes if _VERDICT_TONES[node.verdict] == "bad"]
    if wrong:
        yield Line(f"Not every node conforms: {', '.join(wrong[:8])}{', ...' * (len(wrong) > 8)}", "alarm")
    said = headline(found)
    time = f"{grouped(found.cycles)} cycles, {duration(seconds_of(found))} at {clock(found.target)}"
    yield Line(f"{time}. {said[:1].upper()}{said[1:]}.", "answer")
    longest = max(found.nodes, key=lambda node: node.cycles, default=None)
    if longest is not None and found.cycles:
        part = 100 * longest.cycles / found.cycles
        name = f"{longest.node.name} ({longest.node.op})"
        yield Line(f"{name} takes longest: {grouped(longest.cycles)} cycles, {part:.1f} % of all", "strong")


def _timeline(found: GraphRun) -> Iterator[Block]:
    """Yield when the programs of each node ran, one after the other."""
    if not found.cycles:
        return
    rows: list[list[tuple[int, int, int, int]]] = []
    texts: list[list[str]] = []
    ran = [node for node in found.nodes if node.cycles]
    at = 0
    for node in ran:
        rows.append([])
        for stage in node.stages:
            texts.append([node.node.name, stage.title, node.verdict.value])
            if stage.cycles:
                rows[-1].append((at, at + stage.cycles, 0, len(texts)))
            at += stage.cycles
    columns = interval_columns(rows, 0)
    columns["texts"] = texts
    caption = f"Programs one after the other, without launch overhead: cycles 0 .. {grouped(found.cycles)}"
    names = tuple(node.node.name for node in ran)
    yield Lanes(caption, "cycles", 0, found.cycles, names, (Tone("program", "busy"),), Packed(columns))


def _drawn(found: GraphRun) -> Iterator[Block]:
    """Yield the graph: what goes in, its nodes with their verdicts, what comes out."""
    graph = found.graph
    boxes = [DiagramNode(each.name, ("input",)) for each in graph.inputs]
    makers = {each.name: number for number, each in enumerate(graph.inputs)}
    edges: list[tuple[int, int, str]] = []
    for node in found.nodes:
        number = len(boxes)
        boxes.append(
            DiagramNode(node.node.name, tuple(_told_of_node(node)), node.verdict.value, _VERDICT_TONES[node.verdict])
        )
        edges += [(makers[name], number, name) for name in node.node.inputs if name in makers]
        makers |= dict.fromkeys(node.node.outputs, number)
    for name in graph.outputs:
        edges += [(makers[name], len(boxes), name)] if name in makers else []
        boxes.append(DiagramNode(name, ("output",)))
    yield Diagram("Each node with its cycles and its verdict; constants are left out", tuple(boxes), tuple(edges))


def _told_of_node(node: NodeRun) -> Iterator[str]:
    yield node.node.op
    yield f"{grouped(node.cycles)} cycles"
