"""Every node becomes a program of the target, or several, which are simulated one after the other. Every element is
compared: that of a cast with what its specification accepts, that of another ONNX node with what onnx's reference
evaluator gives for the same inputs, and the outputs with the evaluator's for the whole graph. `castsim run` takes these
files too, `--emit` writes the programs, which it runs by themselves.

ONNX (extra `onnx`): Cast, QuantizeLinear, DequantizeLinear, DynamicQuantizeLinear, Clip, Add, Mul, Identity, Reshape.
TOSA: a function of tosa.cast, tosa.rescale, tosa.identity, tosa.reshape and constants.

Inputs have the names that the file gives them, TOSA's without %. A node conforms, differs (the first wrong element is
shown), is not judged (the evaluator refuses it; the target's result is written all the same) or is not run (and why).
The exit code is 0 if every node conforms, 1 if one does not or an operator is not supported, 2 if the file or an option
cannot be read.

examples:
  castsim graph model.onnx --target a5 --in x=random:1
  castsim graph model.onnx --target gaudi2 --in x=x.npy --arg rows=4 --out results --emit programs
  castsim graph casts.mlir --target a2a3 --in arg0=random:1 --json -
"""

from __future__ import annotations

from argparse import ArgumentParser, Namespace
from typing import TYPE_CHECKING, Any

from simulator.commands.run import assignments, output_folder, scalar

if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import Path

    from simulator.commands.outcome import Outcome
    from simulator.graphs import GraphRun

SUMMARY = "run an ONNX model or TOSA text on a target, node by node, and compare every element"

_OF_GRAPHS = frozenset({"program", "target", "inputs", "args", "out", "engine", "options", "json", "quiet"})
"""Options of `castsim run` that mean something for a graph."""


def declare(parser: ArgumentParser) -> None:
    """Add the arguments of `graph`."""
    add = parser.add_argument
    add("program", metavar="GRAPH", help="an .onnx file, or TOSA text in MLIR form (.mlir, .tosa)")
    add("--target", metavar="T", required=True, help="name or path of a target")
    add(
        "--in",
        metavar="NAME=...",
        dest="inputs",
        action="append",
        default=[],
        help="an input: FILE.npy, random:SEED or zeros",
    )
    add(
        "--arg",
        metavar="NAME=N",
        dest="args",
        action="append",
        default=[],
        help="a dynamic extent: its name in the model, or INPUT.AXIS",
    )
    add("--out", metavar="DIR", help="write every output to DIR/NAME.npy")
    add("--emit", metavar="DIR", help="write every program to DIR")
    add("--engine", metavar="E", help="fast (default), or event, the reference; the cycles are the same")
    add("--tosa-version", metavar="V", help="version of TOSA; default: the latest")
    add("--option", metavar="NAME=VALUE", dest="options", action="append", default=[], help="set a target option")


def execute(options: Namespace) -> Outcome:
    """Run the graph.

    Raises:
        ReadError: what was typed; a file that cannot be read or written.
        IllegalError: a node that is not supported.
    """
    from pathlib import Path  # noqa: PLC0415

    from isa.errors import ReadError  # noqa: PLC0415
    from simulator.commands.outcome import Outcome  # noqa: PLC0415
    from simulator.engines import ENGINES  # noqa: PLC0415
    from simulator.graphs import make_tensors, read_graph, run_graph  # noqa: PLC0415
    from simulator.reports.graph import graph_document  # noqa: PLC0415
    from simulator.reports.stages import watching  # noqa: PLC0415
    from targets import load_target  # noqa: PLC0415
    from targets.options import with_options  # noqa: PLC0415

    if options.engine is not None and options.engine not in ENGINES:
        raise ReadError(f"engine '{options.engine}' is not available", legal=ENGINES)
    target = with_options(load_target(options.target), assignments("--option", options.options))
    graph = read_graph(Path(options.program), options.tosa_version)
    sizes = {name: scalar(name, text) for name, text in assignments("--arg", options.args).items()}
    inputs = make_tensors(graph, assignments("--in", options.inputs), sizes)
    folder, programs = output_folder(options.out), output_folder(options.emit)
    with watching(quiet=options.quiet) as heard:
        found = run_graph(graph, target, inputs, heard, options.engine)
    files = _write_outputs(found, folder)
    emitted = _write_programs(found, programs)

    def text(_: int) -> Any:
        from simulator.reports.graph_text import graph_text  # noqa: PLC0415 - rich, only if printed

        return graph_text(found, files, options.emit)

    return Outcome(graph_document(found, files, emitted), text, code=0 if found.conforms else 1)


def execute_run(options: Namespace) -> Outcome:
    """Run the graph that `castsim run` was given.

    Raises:
        ReadError: an option that means nothing for a graph, no target; otherwise as `execute`.
    """
    from isa.errors import ReadError  # noqa: PLC0415
    from simulator.commands import run  # noqa: PLC0415

    if options.target is None:
        raise ReadError("a graph names no target", legal=("--target T",))
    parser = ArgumentParser()
    run.declare(parser)
    for name, value in vars(options).items():
        if name not in _OF_GRAPHS and value != parser.get_default(name):
            raise ReadError(
                f"--{name.replace('_', '-')} is for programs; write those of a graph by `castsim graph --emit DIR` and "
                "run them"
            )
    return execute(Namespace(**{**vars(options), "emit": None, "tosa_version": None}))


def _write_outputs(found: GraphRun, folder: Path | None) -> Mapping[str, Path]:
    from simulator.inputs import write_array  # noqa: PLC0415

    if folder is None:
        return {}
    files = {name: folder / f"{_file_name(name)}.npy" for name in found.outputs}
    for name, path in files.items():
        write_array(path, found.outputs[name].array)
    return files


def _write_programs(found: GraphRun, folder: Path | None) -> Mapping[tuple[str, int], Path]:
    """Write the programs, numbered in the order in which they ran.

    Raises:
        ReadError: one cannot be written.
    """
    from isa.errors import ReadError  # noqa: PLC0415
    from simulator.files import whole_file  # noqa: PLC0415

    if folder is None:
        return {}
    files: dict[tuple[str, int], Path] = {}
    for node in found.nodes:
        for place, stage in enumerate(node.stages):
            number = f"{len(files):03d}"
            path = folder / f"{number}_{_file_name(node.node.name)}_{place}{stage.program.suffix}"
            try:
                with whole_file(path) as file:
                    file.write(stage.program.text.encode())
            except OSError as error:
                raise ReadError(f"cannot write program '{path}': {error.strerror or error}") from None
            files[node.node.name, place] = path
    return files


def _file_name(name: str) -> str:
    """Return a name without what a file system takes for something else."""
    return "".join(char if char.isalnum() or char in "_-." else "_" for char in name.lstrip("%.")) or "value"
