"""A graph that ran, as JSON, and what its text shares with it."""

from __future__ import annotations

from collections.abc import Mapping
from fractions import Fraction
from pathlib import Path
from typing import Any

from simulator.graphs import Comparison, GraphRun, NodeRun, Witness
from simulator.graphs.bench import Stage
from simulator.graphs.comparison import number_of
from simulator.reports.lower import lower_document
from simulator.reports.numbers import bits_text
from simulator.reports.run import digest

CONVENTIONS = (
    "each node is a program of its own, or several; cycles are those of whole programs, loads and stores included, one "
    "after the other, without launch overhead",
    "tensors are flat and filled up with zeros to whole tiles or registers; tiles are not double-buffered",
)
"""How cycles are to be read."""


def graph_document(
    found: GraphRun, files: Mapping[str, Path], emitted: Mapping[tuple[str, int], Path]
) -> dict[str, Any]:
    """Return the run as JSON; `files` are those of outputs, `emitted` those of programs by node and place."""
    return {
        "graph": found.graph.file,
        "name": found.graph.name,
        "specification": f"{found.graph.spec}@{found.graph.version}",
        "target": found.target.name,
        "conforms": found.conforms,
        "total_cycles": found.cycles,
        "seconds": seconds_of(found),
        "conventions": list(CONVENTIONS),
        "nodes": [_node(node, emitted) for node in found.nodes],
        "outputs": [
            {
                "name": name,
                "file": str(files[name]) if name in files else None,
                "format": tensor.format.name,
                "shape": list(tensor.shape),
                "sha256": digest(tensor.codes),
            }
            for name, tensor in found.outputs.items()
        ],
        "whole_graph": [_comparison(each) for each in found.comparisons],
        "whole_graph_unjudged": found.unjudged,
    }


def seconds_of(found: GraphRun) -> float:
    """Return the time of all programs at the target's frequency."""
    return float(Fraction(found.cycles, found.target.frequency.megahertz * 10**6))


def verdict_of(node: NodeRun) -> str:
    """Return in a word or two what became of a node."""
    if node.refusal is not None:
        return "not run"
    if node.unjudged is not None:
        return "not judged"
    if not node.conforms:
        return "differs"
    return "conforms" if node.comparisons else "no data changes"


def witness_text(witness: Witness) -> str:
    """Return a wrong element in words: where it is, from what, what came out, what should have."""
    place = f"[{', '.join(map(str, witness.index))}]"
    sources = ", ".join(f"{number_of(code, fmt)} ({fmt.name} {bits_text(code, fmt)})" for fmt, code in witness.sources)
    came = f"{number_of(witness.result, witness.format)} ({bits_text(witness.result, witness.format)})"
    text = f"{place}: " + (f"from {sources}: " if sources else "") + came
    if witness.expected is None:
        return f"{text}, which the specification does not accept"
    expected = f"{number_of(witness.expected, witness.format)} ({bits_text(witness.expected, witness.format)})"
    return f"{text} instead of {expected}"


def _node(node: NodeRun, emitted: Mapping[tuple[str, int], Path]) -> dict[str, Any]:
    span = node.node.span
    return {
        "name": node.node.name,
        "operator": node.node.op,
        "line": span.line if span else None,
        "column": span.column if span else None,
        "verdict": verdict_of(node),
        "refusal": node.refusal,
        "unjudged": node.unjudged,
        "cycles": node.cycles,
        "shapes": [list(shape) for shape in node.shapes],
        "plan": None if node.plan is None else _without_program(lower_document(node.plan, None)),
        "programs": [_stage(stage, emitted.get((node.node.name, place))) for place, stage in enumerate(node.stages)],
        "comparisons": [_comparison(each) for each in node.comparisons],
        "remarks": list(node.remarks),
    }


def _without_program(document: Mapping[str, Any]) -> dict[str, Any]:
    return {key: value for key, value in document.items() if key not in ("program", "file", "target")}


def _stage(stage: Stage, file: Path | None) -> dict[str, Any]:
    return {
        "title": stage.title,
        "instructions": list(stage.instructions),
        "cycles": stage.cycles,
        "elements": stage.elements,
        "elements_with_filling": stage.program.elements,
        "tiles": stage.program.tiles,
        "file": None if file is None else str(file),
    }


def _comparison(found: Comparison) -> dict[str, Any]:
    witness = found.witness
    return {
        "output": found.output,
        "against": found.against,
        "elements": found.elements,
        "undefined": found.undefined,
        "wrong": found.wrong,
        "passed": found.passed,
        "because_of_nodes": list(found.because),
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
