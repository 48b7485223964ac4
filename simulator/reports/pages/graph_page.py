"""The page of a graph that ran: its text report, the cycles of its nodes, the values of its outputs."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

from castsim.graphs import TEXT, GraphRun
from castsim.reports.documents import Document
from castsim.reports.graph_text import graph_text, seconds_of
from castsim.reports.pages.blocks import Bars, Block, Figure, Figures, Page, Section, Series
from castsim.reports.pages.from_text import text_blocks
from castsim.reports.pages.run_values import value_blocks
from castsim.reports.sections.head import clock, duration


def graph_page(
    found: GraphRun, files: Mapping[str, Path], emitted: Mapping[tuple[str, int], Path], document: Document
) -> Page:
    """Return the page of a graph: `files` are those of outputs, `emitted` those of programs, `document` its JSON."""
    graph, target = found.graph, found.target
    figures = (
        Figure("total", found.cycles, "cycles", f"{duration(seconds_of(found))} at {clock(target)}"),
        Figure("nodes", len(found.nodes)),
        Figure("every node proven or tried", "yes" if found.conforms else "no"),
    )
    names = tuple(node.node.name for node in found.nodes)
    cycles = Series("cycles", tuple(node.cycles for node in found.nodes), "busy")
    values: tuple[Block, ...] = tuple(
        block
        for name, tensor in found.outputs.items()
        if tensor.format is not TEXT
        for block in value_blocks(name, tensor.array, tensor.format)
    )
    sections = (
        Section("summary", "Summary", (Figures(figures), *text_blocks([graph_text(found, files, emitted)]))),
        Section("nodes", "Nodes", (Bars("Cycles of each node", "cycles", names, (cycles,)),)),
        Section("outputs", "Outputs", values),
    )
    title = f"{graph.file}: {graph.name}"
    subtitle = f"castsim run, {graph.spec}@{graph.version} on target {target.name} ({target.title})"
    return Page("graph", title, subtitle, tuple(each for each in sections if each.blocks), document)
