"""The pages of command results: accuracy, differences, matrices, searches, lowerings, graphs."""

from __future__ import annotations

import shlex
from collections.abc import Iterator, Mapping, Sequence
from itertools import islice
from pathlib import Path, PurePath
from statistics import fmean, median
from typing import TYPE_CHECKING

from castsim.exploration.differences import Difference, ProgramSide, by_effect
from castsim.exploration.tuning_candidates import ChoiceRow
from castsim.exploration.tuning_studies import Tuning
from castsim.isa.dataclass import replace
from castsim.lowering.conformance import ConformanceEntry, Matrix
from castsim.lowering.graphs.kernel_runner import NodeVerdict
from castsim.lowering.graphs.model import TEXT
from castsim.lowering.lowering_answers import Answer, setting_text
from castsim.lowering.planner import PlanKind
from castsim.reports.comparing import difference_document, difference_lines, head_of, output_parts, speed_of
from castsim.reports.conform import cast_text, cell_text, conform_document, legend_lines
from castsim.reports.documents import Document, Json, shortened
from castsim.reports.graph_text import graph_text, headline, seconds_of
from castsim.reports.lower import answer_document, lower_text
from castsim.reports.numbers import clock, duration, grouped
from castsim.reports.pages.answer_pages import (
    PAGES,
    Columns,
    Entry,
    Sections,
    counted,
    entry_table,
    folded_table,
    page_of_document,
    same,
    sentence,
    summary_section,
    table_section,
    titled_section,
)
from castsim.reports.pages.blocks import (
    Bars,
    Block,
    Diagram,
    DiagramNode,
    Figure,
    Figures,
    Folded,
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
from castsim.reports.targets import specification_words
from castsim.reports.tuning import answer_lines, choices_text, command_of, row_entry, tuning_document

if TYPE_CHECKING:
    from castsim.lowering.graphs.graph_execution import GraphRun, NodeRun

# Accuracy: simulated against measured cycles, and facts fitted without the rows that they predict.

_ACCURACY_PAGE_MOST_ROWS = 1000
"""Maximum number of rows for which the page contains their JSON too; its lists have all rows."""


@page_of_document(
    "accuracy",
    "Simulated against measured cycles",
    lambda document: (
        f"castsim accuracy on {', '.join(dict.fromkeys(entry['target'] for entry in document['targets']))}"
    ),
)
def _accuracy_page(document: Entry) -> Sections:
    """Yield the sections on assessed tables, starting with errors of held-out rows."""
    held_out, fitted, public = document["unfitted"], document["fitted"], document["public_model"]
    if held_out is None:
        every = len(document["rows"])
        answer = f"castsim's facts were fitted to all {every:,} rows, with a mean error of {document['mean']:.1f} %."
    else:
        answer = (
            "On {rows:,} held-out rows the mean error is {mean:.1f} %, the median {median:.1f} % and the largest "
            "{max:.1f} %.".format_map(held_out)
        )
    yield summary_section(
        answer,
        f"The {fitted['rows']:,} rows that facts were fitted to have a mean error of {fitted['mean']:.1f} %; they "
        "confirm nothing."
        if fitted and held_out
        else "",
        f"The vendor's public cost model has a mean error of {public['mean']:.1f} % where it covers a row."
        if public
        else "",
        *(
            f"{entry['target']} was compared with measurements of {entry['measured_on']}: the errors show how far "
            "the two chips differ."
            for entry in document["targets"]
            if entry["measured_on"] != entry["target"]
        ),
    )
    rows: list[Entry] = list(_accuracy_rows(document))
    groups: dict[tuple[str, str, str], list[float]] = {}
    for row in sorted(rows, key=lambda row: str(row["evidence"]), reverse=True):
        groups.setdefault((row["target"], row["table"], row["evidence"]), []).append(abs(row["error"]))
    by_source = [
        {"target": target, "table": file, "rows are": evidence, "rows": len(errors), "mean": fmean(errors),
         "median": median(errors), "max": max(errors)}
        for (target, file, evidence), errors in groups.items()
    ]  # fmt: skip
    measured: Columns = {
        "measurements": lambda row: row["table"].removeprefix(f"{row['target']}_measured_").removesuffix(".csv")
    }
    sources = {**same("target"), **measured, **same("rows are", "rows"), **_ERRORS}
    caption = "Errors are absolute, in percent of the measured cycles."
    yield table_section("Errors by source", by_source, sources, caption)
    yield titled_section("Residuals", _residuals(rows))
    intervals = {
        **same("target"), "kind of operation": "kind", "interval": "{low:+.1f} to {high:+.1f} %", "holds, %": "share",
        "held-out rows": "rows", "of these refitted": "refitted",
    }  # fmt: skip
    caption = "Where measured cycles lie around simulated ones, in percent of the simulated cycles."
    yield table_section("Intervals", document["intervals"], intervals, caption)
    curves: Columns = {
        **same("target", "operation"), "types": _types_of, **same("path", "rows"), **_ERRORS,
        "vendor's model, mean %": lambda entry: _public(entry, "mean"),
        "vendor's model, max %": lambda entry: _public(entry, "max"),
    }  # fmt: skip
    caption = "Absolute errors by operation and types."
    yield table_section("Operations", document["curves"], curves, caption, most=25)
    tables: Columns = {
        **same("target"), "table": lambda entry: PurePath(entry["file"]).name, **same("rows"),
        "skipped": lambda entry: entry["rows_skipped"] or None, **_ERRORS,
        "source": lambda entry: entry["source"] or "given with --data",
    }  # fmt: skip
    yield table_section("Sources", document["targets"], tables, sources=1)


def accuracy_page(document: Entry) -> Page:
    """Return the page of assessed tables, without the JSON of the rows if there are many."""
    page = _accuracy_page(document)
    return replace(page, result=shortened(page.result, "rows", _ACCURACY_PAGE_MOST_ROWS))


PAGES["accuracy"] = accuracy_page

_ERRORS: Columns = {f"{name} %": f"{{{name}:.2f}}" for name in ("mean", "median", "max")}


def _public(entry: Entry, name: str) -> str | None:
    """Return an error of the vendor's public cost model."""
    return f"{entry['public_model'][name]:.2f}" if entry["public_model"] else None


def _types_of(entry: Entry) -> str:
    src, dst = entry["src"], entry["dst"]
    return str(src) if src == dst else f"{src} -> {dst}"


def _residuals(rows: Sequence[Json]) -> ResultsView:
    return ResultsView("measurements", "Errors are in percent of the measured cycles.", Packed({"rows": rows}))


def _accuracy_rows(document: Entry) -> Iterator[Document]:
    """Yield the rows of all tables in the form that `measurements.js` reads."""
    rows = iter(document["rows"])
    for entry in document["targets"]:
        for _, row in zip(range(entry["rows"]), rows, strict=False):
            yield _accuracy_row(entry["target"], PurePath(entry["file"]).name, row)


def _accuracy_row(target: str, file: str, row: Entry) -> Document:
    """Return a row of a table, or of a cross-validation fold, which has fewer keys."""
    cells, measured, simulated = row.get("columns", row), row["measured_cycles"], row["simulated_cycles"]
    src, dst = (cells.get(end) or cells.get("dtype") or "" for end in ("src", "dst"))
    kind, public_error = row.get("source_kind"), row.get("public_model_error_percent")
    public = None if public_error is None else round(measured * (1 + public_error / 100))
    shape = f"{row['simulated_rows']} x {row['simulated_cols']}"
    return {
        "table": file,
        "target": target,
        "operation": row.get("operation") or "",
        "types": _types_of({"src": src, "dst": dst}),
        "path": cells.get("path") or "",
        "shape": f"{shape}, {cells['convention']}" if cells.get("convention") else shape,
        "measured": measured,
        "simulated": simulated,
        "error": row["error_percent"],
        "evidence": f"{'fitted' if row.get('fitted') else 'held out'}{f', {kind}' if kind else ''}",
        "public": public,
        "public_error": None if public is None else 100 * (public - measured) / measured,
        "reason": row.get("reason") or "",
    }


@page_of_document(
    "accuracy-cross-validation",
    "Cross-validation of {target}",
    "castsim accuracy --target {target} --cross-validate {left_out}: {stem}",
)
def cross_validation_page(document: Entry) -> Sections:
    """Yield the sections on a cross-validation: the prediction of each row from facts fitted without it."""
    left_out, whole = document["left_out"], document["nothing_left_out"]
    yield summary_section(
        f"With each {left_out} left out in turn, facts fitted to the rest predict it with a mean error of "
        f"{document['mean']:.1f} % (largest {document['max']:.1f} %).",
        f"Fitted to all {document['rows']:,} rows, the mean error is {whole['mean']:.1f} % "
        f"(largest {whole['max']:.1f} %).",
    )
    rows = [
        _accuracy_row(document["target"], f"without {fold['left_out']}", row)
        for fold in document["folds"]
        for row in fold["predictions"]
    ]
    yield titled_section("Measurements", _residuals(rows))
    folds = {"left out": "left_out", **same("rows"), **_ERRORS}
    yield table_section("Left out in turn", document["folds"], folds, most=25)
    facts = [{"fact": name, "value": value} for name, value in whole["facts"].items()]
    yield table_section("Facts fitted to all rows", facts, same("fact", "value"))


# Advice: changes that save cycles.


@page_of_document("advise", "Advice on {stem}", "castsim advise {file}")
def advise_page(document: Entry) -> Sections:
    """Yield the sections on advice: the best change, all offered changes as diffs, rejected changes."""
    file, cycles, offers = PurePath(document["file"]).name, document["cycles"], document["offers"]
    takes = f"{file} takes {cycles:,} cycles on {document['target']}"
    if offers:
        best = offers[0]
        answer = (
            f"{best['title'][:1].upper()}{best['title'][1:]}: {cycles:,} -> {best['cycles']:,} cycles, "
            f"{best['gained_percent']:.1f} % fewer."
        )
        takes += f"; {counted(len(offers), 'change')} would save some. Apply one with `castsim advise --apply NUMBER`"
    else:
        tried = counted(document["looked_at"], "change")
        answer = f"No change saves cycles and keeps the outputs; castsim tried {tried}."
    late = "The time was over before all changes were tried; give more with `--seconds N`."
    written = "Change {applied} was written to {output}.".format_map(document) if document["output"] else ""
    yield summary_section(answer, f"{takes}.", written, late if document["unfinished"] else "")
    columns: Columns = {
        "change": "number", **same("line", "cycles"), "saved cycles": "gained",
        "saved %": lambda offer: round(offer["gained_percent"], 1), "outputs are equal": "how", "what": "title",
    }  # fmt: skip
    if offers:
        diffs = [
            Folded(f"Change {offer['number']}: {offer['title']}", (Text((Line(sentence(offer["reason"])),)),
                   Listing(f"change {offer['number']}", offer["diff"].rstrip("\n"))))
            for offer in offers
        ]  # fmt: skip
        yield titled_section("Changes", entry_table(offers, columns, sources=1), *diffs)
    if document["rejected"]:
        table = entry_table(document["rejected"], {"rejected change": "title", **same("line"), "reason": "why"})
        yield titled_section("Rejected", folded_table("Changes that were rejected", table))


# The timelines of two runs over one axis: operations of those that ran now, executions of those read from JSON.

_MOST = 100_000
"""Maximum number of executions in a timeline of a JSON result."""

_DIFF_TIMELINES_TONES = (Tone("instruction, from the end of the one before on its pipe", "busy"),)


def timelines(found: Difference) -> Iterator[Lanes]:
    """Yield the timelines of both sides on the scale of the longer one; empty if the cycles are unknown."""
    if found.cycles_a is None or found.cycles_b is None:
        return
    end = max(found.cycles_a, found.cycles_b)
    for letter, side in (("A", found.a), ("B", found.b)):
        lanes = _recorded(side) if side.result is None else timeline_lanes(side.result, run_timeline(side.result))
        yield replace(lanes, caption=f"{letter}, {side.file} on {side.target}: {side.cycles} cycles", end=end)


def _recorded(side: ProgramSide) -> Lanes:
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


def diff_page(found: Difference) -> Page:
    """Return the page of a difference."""
    lanes = tuple(timelines(found))
    sections = [titled_section("Summary", Figures(tuple(_diff_page_figures(found))), *text_blocks(head_of(found)))]
    if found.lines:
        columns = {"lines": difference_lines(by_effect(found.lines)), "timelines": _TIMELINES if lanes else ""}
        caption = "" if found.by_text else "By the instructions in them; the text of both programs is not known."
        sections.append(PageSection("lines", "Lines that differ", (ResultsView("changes", caption, Packed(columns)),)))
    sections.append(PageSection(_TIMELINES, "Timelines", lanes))
    sections.append(titled_section("Pipes", *_pipes(found)))
    sections.append(titled_section("Outputs", *text_blocks(output_parts(found))))
    a, b = found.a, found.b
    title = f"{a.file} and {b.file}" if a.file != b.file else a.file
    subtitle = f"castsim diff, A on {a.target}, B on {b.target}"
    return Page("diff", title, subtitle, tuple(each for each in sections if each.blocks), difference_document(found))


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
"""Maximum number of cells for which the page contains the matrix's JSON too; the matrix itself has all cells."""


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
    sections = (
        titled_section("Summary", _conform_page_figures(found), _ways(found)),
        titled_section("Matrix", ResultsView("conformance", "", Packed(columns))),
        titled_section("Legend", _legend(found)),
    )
    title = f"Casts of {specification_words(f'{found.spec.name}@{found.version}')}"
    subtitle = f"castsim conform on {', '.join(found.targets)}"
    return Page("conform", title, subtitle, sections, shortened(document, "cells", _MOST_CELLS))


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
    """Return the command that plans a single cell."""
    cell = entry.cell
    spec = ":".join([f"{found.spec.name}@{found.version}", *(f"{name}={value}" for name, value in cell.attributes)])
    options = [word for name, value in found.options for word in ("--option", f"{name}={value}")]
    words = ("castsim", "lower", cell.src, cell.dst, "--spec", spec, "--target", cell.target, *options)
    return shlex.join(words)


# The page of a search of tile shapes: the answer, cycles against bytes of the buffer, the ranking.

_MOST_ROWS = 3000
"""Maximum number of points on a page, the simulated ones first; `--json` has all."""


def tune_page(found: Tuning) -> Page:
    """Return the page of a search."""
    document = tuning_document(found)
    tried = [row for row in found.rows if not row.reason]
    figures = Figures(tuple(_tune_page_figures(found)))
    sections = [titled_section("Summary", figures, *_tune_page_told(found, len(tried)))]
    if tried:
        sections.append(titled_section("Points", _view(found, tried[:_MOST_ROWS])))
    if found.misfits:
        sections.append(PageSection("refused", "Does not run", (_misfits(found),)))
    file = found.study.source.file
    subtitle = f"castsim tune {Path(file).name}: {', '.join(axis.name for axis in found.study.space.axes)}"
    result = shortened(document, "rows", _MOST_ROWS)
    return Page("tune", f"{file}: tile shapes and choices", subtitle, tuple(sections), result)


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
    """Return the page of an answer; `out` is the file with its program."""
    target, demand = answer.plan.target, answer.plan.demand
    report = text_blocks([lower_text(answer, None if out == "-" else out)])
    sections = [titled_section("Summary", Figures(tuple(_figures(answer))), *report)]
    if answer.text is not None:
        sections.append(titled_section("Program", Listing("", answer.text.rstrip("\n"))))
    title = f"{demand.src.name} -> {demand.dst.name} on {target.name}"
    subtitle = f"castsim lower, as {specification_words(demand.label)} asks; target {target.name} ({target.title})"
    return Page("lower", title, subtitle, tuple(sections), answer_document(answer, out))


def _figures(answer: Answer) -> Iterator[Figure]:
    found = answer.plan
    yield Figure("way", answer.kind.value, note=f"{len(found.chain)} instructions" if len(found.chain) > 1 else "")
    yield Figure("verdict", found.verdict.value, note="" if found.claim == found.verdict.value else found.claim)
    if found.evidence is not None:
        yield Figure("codes tried", found.evidence.codes, note=f"by {found.evidence.method.value}")
    if found.cost is not None:
        per, cost = found.cost.cycles_per_element, found.cost
        yield Figure("cycles per element", per, note=f"{cost.cycles} cycles for {cost.elements} elements")


Result = Answer | Matrix | Tuning | Difference
"""Results with a page, besides runs, graphs and look-ups."""


def page_of(result: Result, out: str | None = None) -> Page:
    """Return the page of a result; `out` is the file with an answer's program."""
    match result:
        case Answer():
            return lower_page(result, out)
        case Matrix():
            return conform_page(result)
        case Tuning():
            return tune_page(result)
        case _:
            return diff_page(result)


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
"""Maximum number of nodes of a drawn graph; a larger graph is shown as a table."""


def graph_page(
    found: GraphRun, files: Mapping[str, Path], emitted: Mapping[tuple[str, int], Path], document: Document
) -> Page:
    """Return the page of a graph: `files` are the outputs' files, `emitted` the programs', `document` its JSON."""
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
        titled_section("Summary", Text(tuple(_answer(found)))),
        titled_section("Timeline", *_timeline(found)),
        titled_section("Graph", *drawn),
        titled_section("Nodes", Bars("Cycles of each node", "cycles", names, (cycles,))),
        titled_section("Details", *text_blocks([graph_text(found, files, emitted)])),
        titled_section("Outputs", *values),
    )
    title = f"{graph.file}: {graph.name}"
    spec = specification_words(f"{graph.spec}@{graph.version}")
    subtitle = f"castsim graph, {spec} on target {target.name} ({target.title})"
    return Page("graph", title, subtitle, tuple(each for each in sections if each.blocks), document)


def _answer(found: GraphRun) -> Iterator[Line]:
    """Yield the differences, the answer in a sentence, and the slowest node."""
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
    """Yield the timeline of each node's programs, which run one after the other."""
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
    """Yield the diagram of the graph: its inputs, its nodes with their verdicts, its outputs."""
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
