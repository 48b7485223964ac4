"""A graph that ran, as JSON, and what its text shares with it."""

from __future__ import annotations

from collections.abc import Mapping
from fractions import Fraction
from pathlib import Path
from shlex import quote

from castsim.graphs import GraphRun, NodeRun, OutputComparison, WrongElement
from castsim.graphs.comparison import number_of
from castsim.graphs.kernel_runner import KernelRun
from castsim.planning.lowering_answers import Setting
from castsim.planning.lowering_answers.answer import options_text
from castsim.reports.documents import VERSIONS, Document, document
from castsim.reports.lower import answer_document
from castsim.reports.numbers import bits_text
from castsim.reports.run_report import output_of

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
        "nodes": [_node(node, emitted) for node in found.nodes],
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


def _node(node: NodeRun, emitted: Mapping[tuple[str, int], Path]) -> Document:
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
