"""Graphs that people have: ONNX models and TOSA text, lowered node by node to programs of a target, run and compared.

graph = read_graph(Path("quantise.onnx"))
inputs = make_tensors(graph, {"x": "random:1"}, {})
found = run_graph(graph, load_target("a5"), inputs)
found.cycles, found.conforms, found.nodes[0].plan, found.nodes[0].comparisons, found.nodes[0].stages[0].program.text
"""

from simulator.graphs.comparison import Comparison, Witness
from simulator.graphs.execution import GraphRun, NodeRun, make_tensors, read_graph, run_graph
from simulator.graphs.model import Graph, Input, Node, Tensor

__all__ = [
    "Comparison",
    "Graph",
    "GraphRun",
    "Input",
    "Node",
    "NodeRun",
    "Tensor",
    "Witness",
    "make_tensors",
    "read_graph",
    "run_graph",
]
