"""The page of a graph that ran: the graph drawn, when its nodes ran, its text report, the values of its outputs."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import TYPE_CHECKING

from castsim.reports.documents import Document
from castsim.reports.numbers import clock, duration, grouped
from castsim.reports.pages.answer_pages import (
    titled_section,
)
from castsim.reports.pages.blocks import (
    Bars,
    Block,
    Diagram,
    DiagramNode,
    Lanes,
    Line,
    Packed,
    Page,
    Series,
    Text,
    Tone,
    text_blocks,
)
from castsim.reports.pages.run_timeline import interval_columns, value_blocks
from castsim.reports.targets import specification_words
from castsim.tools.graphs.graph_text import graph_text, headline, seconds_of
from castsim.tools.graphs.kernel_runner import NodeVerdict
from castsim.tools.graphs.model import TEXT

if TYPE_CHECKING:
    from castsim.tools.graphs.graph_execution import GraphRun, NodeRun


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


def graph_page(run: GraphRun, files: Mapping[str, Path], document: Document) -> Page:
    """Return the page of a graph: `files` are the outputs' files, `document` is its JSON."""
    graph, target = run.graph, run.target
    names = tuple(node.node.name for node in run.nodes)
    cycles = Series("cycles", tuple(node.cycles for node in run.nodes), "busy")
    values: tuple[Block, ...] = tuple(
        block
        for name, tensor in run.outputs.items()
        if tensor.format is not TEXT
        for block in value_blocks(name, tensor.array, tensor.format)
    )
    drawn = tuple(_drawn(run)) if len(run.nodes) <= _MOST_DRAWN else ()
    sections = (
        titled_section("Summary", Text(tuple(_answer(run)))),
        titled_section("Timeline", *_timeline(run)),
        titled_section("Graph", *drawn),
        titled_section("Nodes", Bars("Cycles of each node", "cycles", names, (cycles,))),
        titled_section("Details", *text_blocks([graph_text(run, files)])),
        titled_section("Outputs", *values),
    )
    title = f"{graph.file}: {graph.name}"
    spec = specification_words(f"{graph.spec}@{graph.version}")
    subtitle = f"castsim graph, {spec} on target {target.name} ({target.title})"
    return Page("graph", title, subtitle, tuple(section for section in sections if section.blocks), document)


def _answer(run: GraphRun) -> Iterator[Line]:
    """Yield the differences, the answer in a sentence, and the slowest node."""
    wrong = [node.node.name for node in run.nodes if _VERDICT_TONES[node.verdict] == "bad"]
    if wrong:
        yield Line(f"Not every node conforms: {', '.join(wrong[:8])}{', ...' * (len(wrong) > 8)}", "alarm")
    answer_text = headline(run)
    time = f"{grouped(run.cycles)} cycles, {duration(seconds_of(run))} at {clock(run.target)}"
    yield Line(f"{time}. {answer_text[:1].upper()}{answer_text[1:]}.", "answer")
    longest = max(run.nodes, key=lambda node: node.cycles, default=None)
    if longest is not None and run.cycles:
        part = 100 * longest.cycles / run.cycles
        name = f"{longest.node.name} ({longest.node.op})"
        yield Line(f"{name} takes longest: {grouped(longest.cycles)} cycles, {part:.1f} % of all", "strong")


def _timeline(run: GraphRun) -> Iterator[Block]:
    """Yield the timeline of each node's programs, which run one after the other."""
    if not run.cycles:
        return
    rows: list[list[tuple[int, int, int, int]]] = []
    texts: list[list[str]] = []
    ran = [node for node in run.nodes if node.cycles]
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
    caption = f"Programs one after the other, without launch overhead: cycles 0 .. {grouped(run.cycles)}"
    names = tuple(node.node.name for node in ran)
    yield Lanes(caption, "cycles", 0, run.cycles, names, (Tone("program", "busy"),), Packed(columns))


def _drawn(run: GraphRun) -> Iterator[Block]:
    """Yield the diagram of the graph: its inputs, its nodes with their verdicts, its outputs."""
    graph = run.graph
    boxes = [DiagramNode(graph_input.name, ("input",)) for graph_input in graph.inputs]
    makers = {graph_input.name: number for number, graph_input in enumerate(graph.inputs)}
    edges: list[tuple[int, int, str]] = []
    for node in run.nodes:
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
