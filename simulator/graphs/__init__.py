"""Graphs that people have: ONNX models and TOSA text, lowered node by node to programs of a target, run and compared.

graph = read_graph(Path("quantise.onnx"))
inputs = make_tensors(graph, {"x": "random:1"}, {})
found = run_graph(graph, load_target("a5"), inputs)
found.cycles, found.conforms, found.nodes[0].verdict, found.nodes[0].plan, found.nodes[0].stages[0].program.text
"""

from castsim.graphs.comparison import OutputComparison, WrongElement
from castsim.graphs.execution import MOST_ELEMENTS, GraphRun, NodeRun, make_tensors, read_graph, run_graph
from castsim.graphs.model import TEXT, Graph, GraphInput, GraphNode, GraphTensor
from castsim.graphs.refusals import refusals
from castsim.graphs.tosa_reader import read_tosa
from castsim.graphs.verdict import NodeVerdict

__all__ = [
    "MOST_ELEMENTS",
    "TEXT",
    "Graph",
    "GraphInput",
    "GraphNode",
    "GraphRun",
    "GraphTensor",
    "NodeRun",
    "NodeVerdict",
    "OutputComparison",
    "WrongElement",
    "make_tensors",
    "read_graph",
    "read_tosa",
    "refusals",
    "run_graph",
]
