"""A graph that ran, as text."""

from __future__ import annotations

from collections.abc import Mapping
from fractions import Fraction
from pathlib import Path
from shlex import quote

from rich.console import Group, RenderableType
from rich.text import Text

from castsim.graphs.graph_comparison import OutputComparison, WrongElement, number_of
from castsim.graphs.graph_execution import GraphRun, NodeRun
from castsim.graphs.kernel_runner import KernelRun
from castsim.graphs.verdict import NodeVerdict
from castsim.planning.lowering_answers import Answer, Setting, options_text
from castsim.reports.documents import VERSIONS, Document, document
from castsim.reports.lower import answer_document
from castsim.reports.lower_text import chain_text, counterexample_text, evidence_text, option_text
from castsim.reports.numbers import bits_text
from castsim.reports.run_cycles import clock, duration
from castsim.reports.run_report import output_of
from castsim.reports.specification import specification_words
from castsim.reports.terminal import indented, table

# A graph that ran, as JSON, and what its text shares with it.

CONVENTIONS = (
    "each node is a program of its own, or several; cycles are those of whole programs, loads and stores included, one "
    "after the other, without launch overhead",
    "tensors are flattened and padded with zeros to whole tiles or registers; tiles are not double-buffered",
)
"""The note on reading cycles."""


def graph_document(found: GraphRun, files: Mapping[str, Path], emitted: Mapping[tuple[str, int], Path]) -> Document:
    """Return the run as JSON; `files` are those of outputs, `emitted` those of programs by node and place.

    `conforms`: every node is proven or exhaustively tried. `agrees`: no element of this run is wrong. Of a node,
    `verdict` is one of `NodeVerdict`; `options` are those of the target with which its programs are to be run,
    `options_chosen` the names of those that were found, not given; `plan` is the lowering of a cast, as `castsim lower`
    has it, with its evidence and counterexample; `trial` are the comparisons over every code that it may read. Of a
    program, `run` is the command that runs it.
    """
    return {
        "schema_version": VERSIONS["graph"],
        **document(found.graph, "file", "name", file="graph"),
        "specification": f"{found.graph.spec}@{found.graph.version}",
        **document(found, "target", "conforms", "agrees", "cycles", cycles="total_cycles"),
        "seconds": seconds_of(found),
        "conventions": list(CONVENTIONS),
        "nodes": [_graph_node(node, emitted) for node in found.nodes],
        "outputs": [
            document(output_of(name, tensor.codes, tensor.format.name, files)) for name, tensor in found.outputs.items()
        ],
        "whole_graph": [_comparison(each) for each in found.comparisons],
        **document(found, "unjudged", unjudged="whole_graph_unjudged"),
    }


def seconds_of(found: GraphRun) -> float:
    """Return the time of all programs at the target's frequency."""
    return float(Fraction(found.cycles, found.target.frequency.megahertz * 10**6))


def witness_text(witness: WrongElement) -> str:
    """Return a wrong element in words: where it is, from what, what came out, what should have."""
    place = f"[{', '.join(map(str, witness.index))}]"
    sources = ", ".join(f"{number_of(code, fmt)} ({fmt.name} {bits_text(code, fmt)})" for fmt, code in witness.sources)
    came = f"{number_of(witness.result, witness.format)} ({bits_text(witness.result, witness.format)})"
    text = f"{place}: " + (f"from {sources}: " if sources else "") + came
    if witness.expected is None:
        return f"{text}, which the specification does not accept"
    expected = f"{number_of(witness.expected, witness.format)} ({bits_text(witness.expected, witness.format)})"
    return f"{text} instead of {expected}"


def _graph_node(node: NodeRun, emitted: Mapping[tuple[str, int], Path]) -> Document:
    span = node.node.span
    return {
        **document(node.node, "name", "op", op="operator"),
        "line": span.line if span else None,
        "column": span.column if span else None,
        **document(node, "verdict", "refusal", "unjudged", "cycles", "shapes"),
        "options": dict(settings_of(node)),
        "options_chosen": [] if node.answer is None else [name for name, _ in node.answer.chosen],
        "plan": None if node.answer is None else _without_program(answer_document(node.answer, None)),
        "programs": [_stage(stage, emitted.get((node.node.name, place))) for place, stage in enumerate(node.stages)],
        "comparisons": [_comparison(each) for each in node.comparisons],
        "trial": [_comparison(each) for each in node.trial],
        **document(node, "remarks"),
    }


def _without_program(document: Document) -> Document:
    return {key: value for key, value in document.items() if key not in ("program", "file", "target")}


def _stage(stage: KernelRun, file: Path | None) -> Document:
    return {
        **document(stage, "title", "instructions", "cycles", "elements"),
        **document(stage.program, "elements", "tiles", elements="elements_with_filling"),
        "options": dict(stage.settings),
        "file": None if file is None else str(file),
        "run": run_command(stage, file),
    }


def settings_of(node: NodeRun) -> Setting:
    """Return the options of the target with which the programs of a node are run."""
    return tuple(dict.fromkeys(setting for stage in node.stages for setting in stage.settings))


def run_command(stage: KernelRun, file: Path | None) -> str:
    """Return the command that runs a program; FILE where it was not written."""
    options = f" {options_text(stage.settings)}" if stage.settings else ""
    inputs = "".join(f" --in {name}=random:{seed}" for seed, name in enumerate(stage.program.inputs))
    return f"castsim run {'FILE' if file is None else quote(str(file))}{options}{inputs}"


_COMPARISON = ("output", "against", "elements", "undefined", "wrong", "passed", "because")


def _comparison(found: OutputComparison) -> Document:
    witness = found.witness
    return {
        **document(found, *_COMPARISON, because="because_of_nodes"),
        "witness": None
        if witness is None
        else {
            "index": list(witness.index),
            "sources": [{"format": fmt.name, "bits": bits_text(code, fmt)} for fmt, code in witness.sources],
            "result_bits": bits_text(witness.result, witness.format),
            "expected_bits": None if witness.expected is None else bits_text(witness.expected, witness.format),
            "text": witness_text(witness),
        },
    }


_INSTRUCTIONS = 12
"""Instructions of a kernel that are listed; longer ones are counted."""

_DETAILED = 64
"""Nodes of a graph that are told about in detail, the ones that differ or were refused aside: those always are."""


def graph_text(found: GraphRun, files: Mapping[str, Path], emitted: Mapping[tuple[str, int], Path]) -> RenderableType:
    """Return the report; `files` are those of outputs, `emitted` those of programs by node and place."""
    graph = found.graph
    spec = specification_words(f"{graph.spec}@{graph.version}")
    head = f"{graph.file}: {graph.name}, {spec}, on {found.target.name}: "
    head += headline(found)
    rows = table("node", "operator", "programs", "cycles", "verdict", numbers=("programs", "cycles"))
    for node in found.nodes:
        rows.add_row(node.node.name, node.node.op, str(len(node.stages)), str(node.cycles), node.verdict.value)
    parts: list[RenderableType] = [Text(head), Text(""), indented(rows)]
    time = f"{duration(seconds_of(found))} at {clock(found.target)}"
    parts.append(Text(f"\ntotal: {found.cycles:,} cycles, {time}"))
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
