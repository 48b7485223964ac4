"""Graphs: ONNX models and TOSA text, lowered node by node to programs of a target, run and compared.

graph = read_graph(Path("quantise.onnx"))
inputs = make_tensors(graph, {"x": "random:1"}, {})
found = run_graph(graph, load_target("a5"), inputs)
found.cycles, found.conforms, found.nodes[0].verdict, found.nodes[0].plan, found.nodes[0].stages[0].program.text
"""
