"""The document of `castsim graph`, and of `castsim run` on a graph."""

from __future__ import annotations

from castsim.graphs.verdict import NodeVerdict
from castsim.reports.schemas.keys import (
    Bits,
    Column,
    Cycles,
    Elements,
    Form,
    Keys,
    Line,
    Name,
    Scalar,
    Seconds,
    says,
)
from castsim.reports.schemas.lowering import PlanEntry
from castsim.reports.schemas.objects import Output


class WitnessSource(Keys):
    """An element from which a wrong one was made."""

    format: str = says("Name of its format.")
    bits: Bits = says("Its code.")


class Witness(Keys):
    """A wrong element."""

    index: list[int] = says("Where it is.")
    sources: list[WitnessSource] = says("The elements from which it was made.")
    result_bits: Bits = says("Its code.")
    expected_bits: Bits | None = says("The right code; null where a set of results is right.")
    text: str = says("The same in words.")


class Comparison(Keys):
    """What came out against what should have."""

    output: str = says("Name of the tensor.")
    against: str = says("By what it is judged.")
    elements: Elements = says("Elements compared.")
    undefined: Elements = says("Elements for which any result is right.")
    wrong: Elements = says("Elements that are wrong.")
    passed: Elements = says("Elements that are not judged, because what they are made of is wrong.")
    because_of_nodes: list[str] = says("The nodes that made that.")
    witness: Witness | None = says("The first wrong element; null if there is none.")


class NodeProgram(Keys):
    """A program of a node."""

    title: str = says("What it does.")
    instructions: list[str] = says("Its instructions.")
    cycles: Cycles = says("Its cycles, loads and stores included.")
    elements: Elements = says("Elements of the tensor.")
    elements_with_filling: Elements = says("The same filled up to whole tiles or registers.")
    tiles: int = says("Tiles or registers.")
    options: dict[Name, Scalar] = says("The options of the target with which it is to be run.")
    file: str | None = says("The file that it was written to; null if it was not written.")
    run: str = says("The command that runs it.")


class Node(Keys):
    """A node of the graph."""

    name: str = says("Its name.")
    operator: str = says("Its operator.")
    line: Line | None = says("Line of the source; null where it is not text.")
    column: Column | None = says("Column of the source; null where it is not text.")
    verdict: NodeVerdict = says("What is known of it.")
    refusal: str | None = says("Why it cannot be lowered; null if it can.")
    unjudged: str | None = says("Why nothing judges it; null if something does.")
    cycles: Cycles | None = says("Cycles of its programs.")
    shapes: list[list[Elements]] = says("Shapes of its results.")
    options: dict[Name, Scalar] = says("The options of the target with which its programs are to be run.")
    options_chosen: list[str] = says("Those of them that were found, not given.")
    plan: PlanEntry | None = says("The lowering of a cast; null for other operators.")
    programs: list[NodeProgram] = says("Its programs.")
    comparisons: list[Comparison] = says("The elements of this run.")
    trial: list[Comparison] = says("The same over every code that it may read.")
    remarks: list[str] = says("What else is to be said.")


class Graph(Form, name="graph"):
    """A graph that was lowered and ran."""

    graph: str = says("The file.")
    name: str = says("Name of the graph.")
    specification: str = says("Name and version, `onnx@21`.")
    target: str = says("Name of the target.")
    conforms: bool = says("Whether every node is proven or exhaustively tried.")
    agrees: bool = says("Whether no element of this run is wrong.")
    total_cycles: Cycles = says("Cycles of all programs.")
    seconds: Seconds = says("The same at the target's frequency.")
    conventions: list[str] = says("How cycles are to be read.")
    nodes: list[Node] = says("The nodes, in the order of execution.")
    outputs: list[Output] = says("The outputs of the graph.")
    whole_graph: list[Comparison] = says("The outputs against those of the whole graph.")
    whole_graph_unjudged: str | None = says("Why nothing judges them; null if something does.")
