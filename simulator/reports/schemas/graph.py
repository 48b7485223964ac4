"""The document of `castsim graph`, and of `castsim run` on a graph."""

from __future__ import annotations

from typing import ClassVar

from castsim.graphs.verdict import NodeVerdict
from castsim.reports.schemas.keys import Bits, Column, Cycles, Elements, Form, Keys, Line, Name, Scalar, Seconds
from castsim.reports.schemas.lowering import PlanEntry
from castsim.reports.schemas.objects import Output


class WitnessSource(Keys):
    """An element from which a wrong one was made."""

    format: str
    """Name of its format."""
    bits: Bits
    """Its code."""


class Witness(Keys):
    """A wrong element."""

    index: list[int]
    """Where it is."""
    sources: list[WitnessSource]
    """The elements from which it was made."""
    result_bits: Bits
    """Its code."""
    expected_bits: Bits | None
    """The right code; null where a set of results is right."""
    text: str
    """The same in words."""


class Comparison(Keys):
    """What came out against what should have."""

    output: str
    """Name of the tensor."""
    against: str
    """By what it is judged."""
    elements: Elements
    """Elements compared."""
    undefined: Elements
    """Elements for which any result is right."""
    wrong: Elements
    """Elements that are wrong."""
    passed: Elements
    """Elements that are not judged, because what they are made of is wrong."""
    because_of_nodes: list[str]
    """The nodes that made that."""
    witness: Witness | None
    """The first wrong element; null if there is none."""


class NodeProgram(Keys):
    """A program of a node."""

    title: str
    """What it does."""
    instructions: list[str]
    """Its instructions."""
    cycles: Cycles
    """Its cycles, loads and stores included."""
    elements: Elements
    """Elements of the tensor."""
    elements_with_filling: Elements
    """The same filled up to whole tiles or registers."""
    tiles: int
    """Tiles or registers."""
    options: dict[Name, Scalar]
    """The options of the target with which it is to be run."""
    file: str | None
    """The file that it was written to; null if it was not written."""
    run: str
    """The command that runs it."""


class Node(Keys):
    """A node of the graph."""

    name: str
    """Its name."""
    operator: str
    """Its operator."""
    line: Line | None
    """Line of the source; null where it is not text."""
    column: Column | None
    """Column of the source; null where it is not text."""
    verdict: NodeVerdict
    """What is known of it."""
    refusal: str | None
    """Why it cannot be lowered; null if it can."""
    unjudged: str | None
    """Why nothing judges it; null if something does."""
    cycles: Cycles | None
    """Cycles of its programs."""
    shapes: list[list[Elements]]
    """Shapes of its results."""
    options: dict[Name, Scalar]
    """The options of the target with which its programs are to be run."""
    options_chosen: list[str]
    """Those of them that were found, not given."""
    plan: PlanEntry | None
    """The lowering of a cast; null for other operators."""
    programs: list[NodeProgram]
    """Its programs."""
    comparisons: list[Comparison]
    """The elements of this run."""
    trial: list[Comparison]
    """The same over every code that it may read."""
    remarks: list[str]
    """What else is to be said."""


class Graph(Form):
    """A graph that was lowered and ran."""

    NAME: ClassVar[str] = "graph"

    graph: str
    """The file."""
    name: str
    """Name of the graph."""
    specification: str
    """Name and version, `onnx@21`."""
    target: str
    """Name of the target."""
    conforms: bool
    """Whether every node is proven or exhaustively tried."""
    agrees: bool
    """Whether no element of this run is wrong."""
    total_cycles: Cycles
    """Cycles of all programs."""
    seconds: Seconds
    """The same at the target's frequency."""
    conventions: list[str]
    """How cycles are to be read."""
    nodes: list[Node]
    """The nodes, in the order of execution."""
    outputs: list[Output]
    """The outputs of the graph."""
    whole_graph: list[Comparison]
    """The outputs against those of the whole graph."""
    whole_graph_unjudged: str | None
    """Why nothing judges them; null if something does."""
