"""A graph that ran, as text."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

from rich.console import Group, RenderableType
from rich.text import Text

from simulator.graphs import Comparison, GraphRun, NodeRun
from simulator.reports.graph import CONVENTIONS, seconds_of, verdict_of, witness_text
from simulator.reports.lower_text import chain_text
from simulator.reports.terminal import indented, table

_INSTRUCTIONS = 12
"""Instructions of a kernel that are listed; longer ones are counted."""


def graph_text(found: GraphRun, files: Mapping[str, Path], emit: str | None) -> RenderableType:
    """Return the report; `files` are those of outputs, `emit` the folder of programs."""
    graph = found.graph
    head = f"{graph.file}: {graph.name}, {graph.spec}@{graph.version}, on {found.target.name}: "
    head += "every node conforms" if found.conforms else "not every node conforms"
    rows = table("node", "operator", "programs", "cycles", "verdict", numbers=("programs", "cycles"))
    for node in found.nodes:
        rows.add_row(node.node.name, node.node.op, str(len(node.stages)), str(node.cycles), verdict_of(node))
    parts: list[RenderableType] = [Text(head), Text(""), indented(rows)]
    parts.append(Text(f"\ntotal: {found.cycles} cycles, {seconds_of(found) * 1e6:.3f} us"))
    parts += [indented(Text(line)) for line in CONVENTIONS]
    for node in found.nodes:
        parts += _node(node)
    if found.comparisons:
        parts.append(Text("\noutputs of the whole graph"))
        parts += [indented(Text(_compared(each))) for each in found.comparisons]
    if found.unjudged is not None:
        parts.append(Text(f"\noutputs of the whole graph are not compared: {found.unjudged}"))
    for name, path in files.items():
        parts.append(Text(f"{name} written to {path}"))
    if emit is not None:
        parts.append(Text(f"programs written to {emit}"))
    return Group(*parts)


def _node(node: NodeRun) -> list[RenderableType]:
    if not (node.stages or node.refusal or node.remarks):
        return []
    place = f"{node.node.span}: " if node.node.span else ""
    parts: list[RenderableType] = [Text(f"\n{place}{node.node.name} ({node.node.op})")]
    if node.refusal is not None:
        parts.append(indented(Text(f"not run: {node.refusal}")))
    if node.plan is not None:
        plan = node.plan
        parts.append(indented(Text(f"{plan.way.value}, {plan.claim}: {chain_text(plan.chain) or 'a copy'}")))
        if plan.evidence is not None:
            parts.append(indented(Text(f"evidence: {plan.evidence.argument}")))
    else:
        parts += [indented(Text(line)) for line in _stages(node)]
    parts += [indented(Text(_compared(each))) for each in node.comparisons]
    parts += [indented(Text(remark)) for remark in node.remarks]
    return parts


def _stages(node: NodeRun) -> list[str]:
    lines = []
    for stage in node.stages[:3]:
        shown = list(stage.instructions[:_INSTRUCTIONS])
        if len(stage.instructions) > _INSTRUCTIONS:
            shown.append(f"and {len(stage.instructions) - _INSTRUCTIONS} more")
        lines.append(
            f"{stage.title}: {stage.cycles} cycles for {stage.elements} elements: {', '.join(shown) or 'a copy'}"
        )
    if len(node.stages) > 3:
        rest = node.stages[3:]
        programs = "program" if len(rest) == 1 else "programs"
        lines.append(f"and {len(rest)} more {programs}: {sum(stage.cycles for stage in rest)} cycles")
    return lines


def _compared(found: Comparison) -> str:
    text = f"{found.output}: {found.wrong} of {found.elements} elements differ from the {found.against}"
    if found.sets:
        text = f"{found.output}: {found.wrong} of {found.elements} elements are outside of what {found.against} accepts"
    if found.undefined:
        text += f"; nothing says what {found.undefined} of them should be"
    if found.because:
        text += f", as node {' and node '.join(found.because)} has elements that differ from it and conform"
    return text if found.witness is None else f"{text}; the first at {witness_text(found.witness)}"
