"""Graphs: ONNX models and TOSA text, lowered node by node to programs of a target, run and compared.

graph = read_graph(Path("quantise.onnx"))
inputs = make_tensors(graph, {"x": "random:1"}, {})
run = run_graph(graph, load_target("a5"), inputs)
run.cycles, run.conforms, run.nodes[0].verdict, run.nodes[0].plan, run.nodes[0].stages[0].program.text
"""

from __future__ import annotations

from castsim.commands.feature import Feature
from castsim.commands.shared_options import OptionParser


def _graph(parser: OptionParser) -> None:
    """Every node becomes one or more programs of the target, which are simulated one after the other. Every element
    is compared: for a cast, with what its specification accepts; for any other ONNX node, with the result of onnx's
    reference evaluator on the same inputs; the outputs, with the evaluator's result for the whole graph. `castsim
    run` takes these files too. `--emit` writes the programs, so that they can be run on their own.

    ONNX (extra `onnx`): Cast, CastLike, QuantizeLinear, DequantizeLinear, DynamicQuantizeLinear, Clip, Add, Sub,
    Mul, Div, Min, Max, Round, ReduceMin, ReduceMax, Identity, Reshape. TOSA: a function of tosa.cast, tosa.rescale,
    tosa.identity, tosa.reshape and constants.

    Inputs have the names used in the file, without the % of TOSA. A cast is proven, exhaustively tried, or differs,
    with a counterexample, as found by `castsim lower`; it runs with the options that lower finds and software can
    set, and the report names them and shows how to run its program. Other nodes are exhaustively tried if they read
    few codes (16 bits, or two operands of 8); for the rest, a run without a difference only means no mismatch on
    this input. A node that differs in the run shows its first wrong element. A node that the evaluator rejects is
    not judged, but its result is still written; a node that the target lacks is not run. The exit code is 0 if
    every node is proven or exhaustively tried, with --accept-samples also if nodes are only checked on this input
    and nothing is refuted; otherwise 1, also for an unsupported operator; 2 if the file or an option cannot be
    read. --option, which may be repeated, sets an option of the target and keeps it fixed.

    examples:
      castsim graph model.onnx --target a5 --in x=random:1
      castsim graph model.onnx --target gaudi2 --in x=x.npy --arg rows=4 --out results --emit programs
      castsim graph casts.mlir --target a2a3 --in arg0=random:1 --json -
    """
    add = parser.add_argument
    add("program", metavar="GRAPH", help="an .onnx file, or TOSA text in MLIR form (.mlir, .tosa)")
    parser.take("required_target", inputs="an input: FILE.npy, random:SEED or zeros")
    what = "value of a dynamic extent: its name in the model, or INPUT.AXIS"
    add("--arg", metavar="NAME=N", dest="args", action="append", default=[], help=what)
    parser.take("output_folder")
    add("--emit", metavar="DIR", help="write every program to DIR")
    parser.take("engine", "walk")
    what = "exit with 0 if no node is refuted, even if some are checked on this input only"
    add("--accept-samples", action="store_true", help=what)
    add("--tosa-version", metavar="V", help="version of TOSA; default: the latest")
    parser.take(elements="33554432")
    parser.take("target_options", "cores", "page")


def _tosa(parser: OptionParser) -> None:
    """FUNCTION is reciprocal_scale VALUE..., apply_scale_32 or apply_scale_16 VALUE MULTIPLIER SHIFT,
    apply_lookup_s VALUE... with --table of 513 i16, or TABLE VALUE... with --table of 256 i8 or 513 i16; --target
    runs TABLE as a program of look-ups of a vector processor. Arguments that break a function's requirements are an
    error: the result would be unpredictable.

    examples:
      castsim tosa reciprocal_scale 3 10
      castsim tosa apply_scale_32 -3 1073741824 33 --double-round
      castsim tosa apply_scale_16 100000 16384 14
      castsim tosa TABLE -5 100 --table entries.npy --target gaudi2
    """
    add = parser.add_argument
    add("function", metavar="FUNCTION", help="reciprocal_scale, apply_scale_32, apply_scale_16, apply_lookup_s, TABLE")
    add("values", metavar="VALUE", nargs="+", help="integers")
    add("--double-round", action="store_true", help="apply_scale_32: round in two steps")
    add("--table", metavar="FILE", help="entries of the look-up table (.npy)")
    add("--target", metavar="T", help="the target that looks up the values of TABLE")


FEATURES = (
    Feature(
        "graph",
        "run and look",
        "run an ONNX model or TOSA text node by node, and compare every element",
        _graph,
        "castsim.tools.graphs.command",
        documents=("castsim.tools.graphs.graph_text:Graph",),
    ),
    Feature(
        "tosa",
        "casts and specifications",
        "compute the helper functions of the TOSA specification: scales, look-ups, TABLE",
        _tosa,
        "castsim.tools.graphs.tosa_helpers",
        documents=("castsim.tools.graphs.tosa_helpers:Tosa",),
    ),
)
