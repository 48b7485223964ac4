"""A graph that ran, as text."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

from rich.console import Group, RenderableType
from rich.text import Text

from castsim.graphs import GraphRun, NodeRun, NodeVerdict, OutputComparison
from castsim.planning.lowering_answers import Answer
from castsim.reports.graph import CONVENTIONS, run_command, seconds_of, witness_text
from castsim.reports.lower_text import chain_text, counterexample_text, evidence_text, option_text
from castsim.reports.terminal import indented, table

_INSTRUCTIONS = 12
"""Instructions of a kernel that are listed; longer ones are counted."""

_DETAILED = 64
"""Nodes of a graph that are told about in detail, the ones that differ or were refused aside: those always are."""


def graph_text(found: GraphRun, files: Mapping[str, Path], emitted: Mapping[tuple[str, int], Path]) -> RenderableType:
    """Return the report; `files` are those of outputs, `emitted` those of programs by node and place."""
    graph = found.graph
    head = f"{graph.file}: {graph.name}, {graph.spec}@{graph.version}, on {found.target.name}: "
    head += headline(found)
    rows = table("node", "operator", "programs", "cycles", "verdict", numbers=("programs", "cycles"))
    for node in found.nodes:
        rows.add_row(node.node.name, node.node.op, str(len(node.stages)), str(node.cycles), node.verdict.value)
    parts: list[RenderableType] = [Text(head), Text(""), indented(rows)]
    parts.append(Text(f"\ntotal: {found.cycles} cycles, {seconds_of(found) * 1e6:.3f} us"))
    parts += [indented(Text(line)) for line in CONVENTIONS]
    shown = [node for place, node in enumerate(found.nodes) if place < _DETAILED or _is_wrong(node)]
    for node in shown:
        parts += _node(node, emitted)
    if len(shown) < len(found.nodes):
        more = len(found.nodes) - len(shown)
        parts.append(Text(f"\nand {more} more nodes, none of which differs; --json has them all"))
    if found.comparisons:
        parts.append(Text("\noutputs of the whole graph"))
        parts += [indented(Text(_compared(each))) for each in found.comparisons]
    if found.unjudged is not None:
        parts.append(Text(f"\noutputs of the whole graph are not compared: {found.unjudged}"))
    for name, path in files.items():
        parts.append(Text(f"{name} written to {path}"))
    folders = {path.parent for path in emitted.values()}
    parts += [Text(f"programs written to {folder}") for folder in folders]
    return Group(*parts)


def headline(found: GraphRun) -> str:
    """Return the summary of all nodes."""
    if found.conforms:
        return "every node is proven or exhaustively tried"
    if not found.agrees or any(node.verdict is NodeVerdict.DIFFERS for node in found.nodes):
        return "not every node conforms"
    count, tried = len(found.nodes), sum(not node.verdict.certain for node in found.nodes)
    return f"{count - tried} of {count} nodes proven for all inputs; {tried} checked on this input only"


def _is_wrong(node: NodeRun) -> bool:
    return node.refusal is not None or node.verdict is NodeVerdict.DIFFERS


def _node(node: NodeRun, emitted: Mapping[tuple[str, int], Path]) -> list[RenderableType]:
    if not (node.stages or node.refusal or node.remarks):
        return []
    place = f"{node.node.span}: " if node.node.span else ""
    parts: list[RenderableType] = [Text(f"\n{place}{node.node.name} ({node.node.op})")]
    if node.refusal is not None:
        parts.append(indented(Text(f"not run: {node.refusal}")))
    if node.answer is not None:
        parts += _answer(node.answer)
    else:
        parts += [indented(Text(line)) for line in _stages(node)]
    for number, stage in enumerate(node.stages):
        if stage.settings:
            parts.append(indented(Text(f"run it with: {run_command(stage, emitted.get((node.node.name, number)))}")))
    parts += [indented(Text(_compared(each))) for each in node.comparisons]
    parts += [indented(Text(f"all codes: {_compared(each)}")) for each in node.trial]
    parts += [indented(Text(remark)) for remark in node.remarks]
    return parts


def _answer(answer: Answer) -> list[RenderableType]:
    plan = answer.plan
    headline = f"{answer.kind.value}, {plan.claim}: {chain_text(plan.chain) or 'a copy'}"
    parts: list[RenderableType] = [indented(Text(headline))]
    parts += [indented(Text(option_text(plan.target, name, value))) for name, value in answer.settings]
    if plan.evidence is not None:
        parts.append(indented(Text(evidence_text(plan, plan.evidence))))
    if plan.counterexample is not None:
        parts += counterexample_text(plan.counterexample, plan)
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


def _compared(found: OutputComparison) -> str:
    text = f"{found.output}: {found.wrong} of {found.elements} elements differ from the {found.against}"
    if found.sets:
        text = f"{found.output}: {found.wrong} of {found.elements} elements are outside what {found.against} accepts"
    if found.undefined:
        text += f"; {found.undefined} {'have' if found.undefined > 1 else 'has'} no specified result"
    if found.because:
        text += f", as node {' and node '.join(found.because)} has elements that differ from it and are not wrong"
    return text if found.witness is None else f"{text}; the first at {witness_text(found.witness)}"
