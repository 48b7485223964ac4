"""The report on a graph that ran, as JSON and as text."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from fractions import Fraction
from pathlib import Path
from typing import TYPE_CHECKING

from rich.console import RenderableType
from rich.text import Text

from castsim.reports.documents import CommandDocument, Document, Keys, says
from castsim.reports.numbers import clock, duration
from castsim.reports.run_report import output_of
from castsim.reports.schemas.keys import Column, Cycles, Elements, Line, Name, Output, Scalar, Seconds
from castsim.reports.targets import specification_words
from castsim.reports.terminal import composed, indented, table
from castsim.tools.graphs.kernel_runner import KernelRun, NodeVerdict, OutputComparison
from castsim.tools.lowering.lowering_answers import Answer, Setting
from castsim.tools.lowering.report import PlanEntry, chain_text, counterexample_text, evidence_text, option_text

if TYPE_CHECKING:
    from castsim.tools.graphs.graph_execution import GraphRun, NodeRun

# A graph that ran, as JSON, and what its text shares with it.

CONVENTIONS = (
    "each node is one program or several; cycles are for whole programs with their loads and stores, run one "
    "after the other, without launch overhead",
    "tensors are flattened and padded with zeros to whole tiles or registers; tiles are not double-buffered",
)
"""The note on reading cycles."""


class Node(Keys):
    """A node of the graph."""

    name: str = says("Its name.", "node.name")
    operator: str = says("Its operator.", "node.op")
    line: Line | None = says(of=lambda node: node.node.span and node.node.span.line)
    """Line of the source; null if the source is not text."""
    column: Column | None = says(of=lambda node: node.node.span and node.node.span.column)
    """Column of the source; null if the source is not text."""
    verdict: NodeVerdict = says("The verdict on the node.")
    refusal: str | None = says("The reason why it cannot be lowered; null if it can.")
    unjudged: str | None = says("The reason why it is not judged; null if it is.")
    cycles: Cycles | None = says("Cycles of its programs.")
    shapes: list[list[Elements]] = says("Shapes of its results.")
    options: dict[Name, Scalar] = says(of=lambda node: dict(settings_of(node)))
    """The target options that its programs need."""
    options_chosen: list[str] = says(
        of=lambda node: [] if node.answer is None else [name for name, _ in node.answer.chosen]
    )
    """The options among them that the search chose."""
    plan: PlanEntry | None = says("The lowering of a cast; null for other operators.", "answer")
    programs: list[KernelRun] = says("Its programs.", "stages")
    comparisons: list[OutputComparison] = says("The elements of this run.")
    trial: list[OutputComparison] = says("The comparison for every code that it may read.")
    remarks: list[str] = says("Remarks.")


def seconds_of(run: GraphRun) -> float:
    """Return the time of all programs at the target's frequency."""
    return float(Fraction(run.cycles, run.target.frequency.megahertz * 10**6))


class Graph(CommandDocument, name="graph", version=3):
    """A graph that was lowered and ran."""

    graph: str = says("The file.", "graph.file")
    name: str = says("Name of the graph.", "graph.name")
    specification: str = says("Name and version, `onnx@21`.", lambda found: f"{found.graph.spec}@{found.graph.version}")
    target: str = says("Name of the target.")
    conforms: bool = says("Whether every node is proven or exhaustively tried.")
    agrees: bool = says("Whether no element of this run is wrong.")
    total_cycles: Cycles = says("Cycles of all programs.", "cycles")
    seconds: Seconds = says("Time of all programs at the target's frequency.", seconds_of)
    conventions: list[str] = says("Conventions of the cycles.", lambda _: CONVENTIONS)
    nodes: list[Node] = says("The nodes, in the order of execution.")
    outputs: list[Output] = says("The outputs of the graph.")
    whole_graph: list[OutputComparison] = says(
        "The comparisons of the outputs with those of the whole graph.", "comparisons"
    )
    whole_graph_unjudged: str | None = says("The reason why the outputs are not judged; null if they are.", "unjudged")


def graph_document(run: GraphRun, files: Mapping[str, Path]) -> Document:
    """Return the run as JSON; `files` are the outputs' files."""
    outputs = [output_of(name, tensor.codes, tensor.format.name, files) for name, tensor in run.outputs.items()]
    return Graph.of(run, outputs=outputs)


def settings_of(node: NodeRun) -> Setting:
    """Return the target options of the programs of a node."""
    return tuple(dict.fromkeys(setting for stage in node.stages for setting in stage.settings))


_INSTRUCTIONS = 12
"""Maximum number of listed instructions of a kernel; longer ones are only counted."""

_DETAILED = 64
"""Maximum number of nodes described in detail, in addition to differing and refused ones, which always are."""


@composed
def graph_text(run: GraphRun, files: Mapping[str, Path]) -> Iterator[RenderableType]:
    """Yield the report; `files` are the outputs' files."""
    graph = run.graph
    spec = specification_words(f"{graph.spec}@{graph.version}")
    yield Text(f"{graph.file}: {graph.name}, {spec}, on {run.target.name}: {headline(run)}")
    yield Text("")
    rows = (
        (node.node.name, node.node.op, str(len(node.stages)), f"{node.cycles:,}", node.verdict.value)
        for node in run.nodes
    )
    yield indented(table("node", "operator", ">programs", ">cycles", "verdict", rows=rows))
    time = f"{duration(seconds_of(run))} at {clock(run.target)}"
    yield Text(f"\ntotal: {run.cycles:,} cycles, {time}")
    yield from (indented(Text(line)) for line in CONVENTIONS)
    shown = [node for number, node in enumerate(run.nodes) if number < _DETAILED or _is_wrong(node)]
    for node in shown:
        yield from _node(node)
    if len(shown) < len(run.nodes):
        more = len(run.nodes) - len(shown)
        yield Text(f"\nand {more} more nodes, none of which differs; --json has them all")
    if run.comparisons:
        yield Text("\noutputs of the whole graph")
        yield from (indented(Text(_compared(comparison))) for comparison in run.comparisons)
    if run.unjudged is not None:
        yield Text(f"\noutputs of the whole graph are not compared: {run.unjudged}")
    for name, path in files.items():
        yield Text(f"{name} written to {path}")
    folders = {stage.file.parent for node in run.nodes for stage in node.stages if stage.file is not None}
    yield from (Text(f"programs written to {folder}") for folder in folders)


def headline(run: GraphRun) -> str:
    """Return the summary of all nodes."""
    if run.conforms:
        return "every node is proven or exhaustively tried"
    if run.refuted:
        return "not every node conforms"
    count, tried = len(run.nodes), sum(not node.verdict.certain for node in run.nodes)
    proven = f"{count - tried} of {count} nodes proven for all inputs; {tried} checked on this input only"
    return "; ".join([*_agreement(run.judged), proven])


def _agreement(judged: Sequence[OutputComparison]) -> Iterator[str]:
    """Yield the summary of the comparisons without a wrong element."""
    if judged and not any(comparison.wrong for comparison in judged):
        specified, undefined = (
            sum(getattr(comparison, name) for comparison in judged) for name in ("specified", "undefined")
        )
        yield f"all {specified:,} {'specified ' if undefined else ''}elements agree"
        if undefined:
            yield f"{undefined:,} {'inputs have' if undefined > 1 else 'input has'} no specified result"


def _is_wrong(node: NodeRun) -> bool:
    return node.refusal is not None or node.verdict is NodeVerdict.DIFFERS


def _node(node: NodeRun) -> Iterator[RenderableType]:
    if not (node.stages or node.refusal or node.remarks):
        return
    location = f"{node.node.span}: " if node.node.span else ""
    yield Text(f"\n{location}{node.node.name} ({node.node.op})")
    if node.refusal is not None:
        yield indented(Text(f"not run: {node.refusal}"))
    if node.answer is not None:
        yield from _answer(node.answer)
    else:
        yield from (indented(Text(line)) for line in _stages(node))
    yield from (indented(Text(f"run it with: {stage.run}")) for stage in node.stages if stage.settings)
    yield from (indented(Text(_compared(comparison))) for comparison in node.comparisons)
    yield from (indented(Text(f"all codes: {_compared(comparison)}")) for comparison in node.trial)
    yield from (indented(Text(remark)) for remark in node.remarks)


def _answer(answer: Answer) -> Iterator[RenderableType]:
    plan = answer.plan
    yield indented(Text(f"{answer.kind.value}, {plan.claim}: {chain_text(plan.chain) or 'a copy'}"))
    yield from (indented(Text(option_text(plan.target, name, value))) for name, value in answer.settings)
    if plan.evidence is not None:
        yield indented(Text(evidence_text(plan, plan.evidence)))
    if plan.counterexample is not None:
        yield from counterexample_text(plan.counterexample)


def _stages(node: NodeRun) -> list[str]:
    lines = []
    for stage in node.stages[:3]:
        shown = list(stage.instructions[:_INSTRUCTIONS])
        if len(stage.instructions) > _INSTRUCTIONS:
            shown.append(f"and {len(stage.instructions) - _INSTRUCTIONS} more")
        lines.append(
            f"{stage.title}: {stage.cycles:,} cycles for {stage.elements:,} elements: {', '.join(shown) or 'a copy'}"
        )
    if len(node.stages) > 3:
        rest = node.stages[3:]
        programs = "program" if len(rest) == 1 else "programs"
        lines.append(f"and {len(rest)} more {programs}: {sum(stage.cycles for stage in rest):,} cycles")
    return lines


def _compared(comparison: OutputComparison) -> str:
    kind = "specified elements" if comparison.undefined else "elements"
    if comparison.wrong:
        verb = (
            f"are outside what {comparison.against} accepts"
            if comparison.sets
            else f"differ from the {comparison.against}"
        )
        text = f"{comparison.output}: {comparison.wrong:,} of {comparison.specified:,} {kind} {verb}"
    else:
        verb = f"are what {comparison.against} accepts" if comparison.sets else f"agree with the {comparison.against}"
        text = f"{comparison.output}: all {comparison.specified:,} {kind} {verb}"
    if comparison.undefined:
        inputs = "inputs have" if comparison.undefined > 1 else "input has"
        text += f"; {comparison.undefined:,} {inputs} no specified result"
    if comparison.because:
        text += f", as node {' and node '.join(comparison.because)} has elements that differ from it and are not wrong"
    return text if comparison.witness is None else f"{text}; the first at {comparison.witness.text}"
