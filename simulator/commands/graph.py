"""Every node becomes one or more programs of the target, which are simulated one after the other. Every element is
compared: for a cast, with what its specification accepts; for any other ONNX node, with the result of onnx's reference
evaluator on the same inputs; the outputs, with the evaluator's result for the whole graph. `castsim run` takes these
files too. `--emit` writes the programs, so that they can be run on their own.

ONNX (extra `onnx`): Cast, CastLike, QuantizeLinear, DequantizeLinear, DynamicQuantizeLinear, Clip, Add, Sub, Mul, Div,
Min, Max, Round, ReduceMin, ReduceMax, Identity, Reshape.
TOSA: a function of tosa.cast, tosa.rescale, tosa.identity, tosa.reshape and constants.

Inputs have the names used in the file, without the % of TOSA. A cast is proven, exhaustively tried, or differs, with a
counterexample, as found by `castsim lower`; it runs with the options that lower finds and software can set, and the
report names them and shows how to run its program. Other nodes are exhaustively tried if they read few codes (16 bits,
or two operands of 8); for the rest, a run without a difference only means no mismatch on this input. A node that
differs in the run shows its first wrong element. A node that the evaluator rejects is not judged, but its result is
still written; a node that the target lacks is not run. The exit code is 0 if every node is proven or exhaustively
tried, with --accept-samples also if nodes are only checked on this input and nothing is refuted; otherwise 1, also for
an unsupported operator; 2 if the file or an option cannot be read. --option, which may be
repeated, sets an option of the target and keeps it fixed.

examples:
  castsim graph model.onnx --target a5 --in x=random:1
  castsim graph model.onnx --target gaudi2 --in x=x.npy --arg rows=4 --out results --emit programs
  castsim graph casts.mlir --target a2a3 --in arg0=random:1 --json -
"""

from __future__ import annotations

from argparse import Namespace
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING

from castsim.commands.command_line import parser_of
from castsim.commands.option_parsers import assignments, limits_of, output_folder, positive, scalars_of
from castsim.commands.outcome import CommandOutcome, write_program
from castsim.commands.run_views import check_file, write_page
from castsim.commands.shared_options import OptionParser
from castsim.engines import ENGINES
from castsim.execution.input_data import write_array
from castsim.files import file_name, file_names
from castsim.isa.errors import ReadError
from castsim.lowering.graphs.graph_execution import MOST_ELEMENTS, make_tensors, read_graph, run_graph
from castsim.lowering.lowering_answers import setting_of
from castsim.reports.graph_text import graph_document, graph_text
from castsim.reports.progress import stage_progress
from castsim.targets.loader import load_target

if TYPE_CHECKING:
    from castsim.lowering.graphs.graph_execution import GraphRun


def declare(parser: OptionParser) -> None:
    """Add the arguments of `graph`."""
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


_OF_GRAPHS = frozenset((
    "program", "target", "inputs", "args", "out", "summary", "html", "engine", "options", "json", "quiet", "max_walk",
    "max_statements", "max_elements", "max_file_bytes", "max_memory",
))  # fmt: skip
"""Options of `castsim run` that apply to a graph."""


def execute(options: Namespace) -> CommandOutcome:
    """Run the graph.

    Raises:
        ReadError: an option is wrong, or a file cannot be read or written.
        IllegalError: a node is not supported.
    """
    if options.engine is not None and options.engine not in ENGINES:
        raise ReadError(f"engine '{options.engine}' is not available", legal=ENGINES)
    html: str | None = getattr(options, "html", None)  # that of `castsim run`
    if html is not None:
        check_file("--html", html)
    target, held = load_target(options.target), assignments("--option", options.options)
    setting_of(target, held)  # refused before the graph is read
    most = MOST_ELEMENTS if options.max_elements is None else positive("--max-elements", options.max_elements)
    graph = read_graph(Path(options.program), options.tosa_version)
    names = [port.name for port in graph.inputs]
    sizes = scalars_of(options, [str(extent) for port in graph.inputs for extent in port.shape])
    inputs = make_tensors(graph, assignments("--in", options.inputs, names), sizes, most)
    folder, programs = output_folder(options.out), output_folder(options.emit, "--emit")
    with stage_progress(options) as progress:
        found = run_graph(graph, target, inputs, progress, options.engine, held, limits_of(options), most)
    files = _write_outputs(found, folder)
    emitted = _write_programs(found, programs)

    document = graph_document(found, files, emitted)
    if html is not None:
        from castsim.reports.pages.page_of_result import graph_page  # noqa: PLC0415 - few graphs become pages

        write_page(html, graph_page(found, files, emitted, document))

    accepted = found.conforms or (options.accept_samples and not found.refuted)
    return CommandOutcome(document, lambda _: graph_text(found, files, emitted), code=0 if accepted else 1)


def execute_run(options: Namespace) -> CommandOutcome:
    """Run the graph that `castsim run` was given.

    Raises:
        ReadError: an option does not apply to a graph, or no target is named; otherwise see `execute`.
    """
    if options.target is None:
        raise ReadError("a graph does not declare a target", legal=("--target T",))
    parser = parser_of("run")
    for name, value in vars(options).items():
        if name not in _OF_GRAPHS and value != parser.get_default(name):
            raise ReadError(
                f"--{name.replace('_', '-')} applies to programs; write those of this graph with "
                "`castsim graph --emit DIR` and run them"
            )
    return execute(Namespace(**{**vars(options), "emit": None, "tosa_version": None, "accept_samples": False}))


def _write_outputs(found: GraphRun, folder: Path | None) -> Mapping[str, Path]:
    if folder is None:
        return {}
    files = {name: folder / f"{plain}.npy" for name, plain in file_names(found.outputs).items()}
    for name, path in files.items():
        write_array(path, found.outputs[name].array)
    return files


def _write_programs(found: GraphRun, folder: Path | None) -> Mapping[tuple[str, int], Path]:
    """Write the programs, numbered in the order in which they ran.

    Raises:
        ReadError: a file cannot be written.
    """
    if folder is None:
        return {}
    files: dict[tuple[str, int], Path] = {}
    for node in found.nodes:
        for place, stage in enumerate(node.stages):
            number = f"{len(files):03d}"
            path = folder / f"{number}_{file_name(node.node.name)}_{place}{stage.program.suffix}"
            write_program(path, stage.program.text)
            files[node.node.name, place] = path
    return files
