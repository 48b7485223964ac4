"""The command `graph`: run an ONNX model or TOSA text node by node, and compare every element."""

from __future__ import annotations

from argparse import Namespace
from collections.abc import Iterator, Mapping
from itertools import count
from pathlib import Path
from typing import TYPE_CHECKING

from castsim.commands.option_parsers import assignments, limits_of, output_folder, positive, scalars
from castsim.commands.outcome import CommandOutcome, write_program
from castsim.commands.run_views import check_file, write_page
from castsim.engines import ENGINES
from castsim.execution.input_data import write_array
from castsim.files import file_name, file_names
from castsim.isa.dataclass import replace
from castsim.isa.errors import CastsimError, ReadError
from castsim.reports.progress import stage_progress
from castsim.running.loaded import LoadRequest
from castsim.targets.loader import load_target
from castsim.tools.graphs.graph_execution import (
    MOST_ELEMENTS,
    illegal_nodes,
    make_tensors,
    read_graph,
    refusals,
    run_graph,
)
from castsim.tools.graphs.graph_text import graph_document, graph_text
from castsim.tools.graphs.tosa_reader import read_tosa
from castsim.tools.lowering.lowering_answers import setting_of

if TYPE_CHECKING:
    from castsim.tools.check.checking import Finding
    from castsim.tools.graphs.graph_execution import GraphRun


def execute(options: Namespace) -> CommandOutcome:
    """Run the graph.

    Raises:
        ReadError: an option is wrong, or a file cannot be read or written.
        IllegalError: a node is not supported.
    """
    if options.engine is not None and options.engine not in ENGINES:
        raise ReadError(f"engine '{options.engine}' is not available", legal=ENGINES)
    given = vars(options).get  # `castsim run` has a page, but lacks others
    html: str | None = given("html")
    if html is not None:
        check_file("--html", html)
    target, setting = load_target(options.target), assignments("--option", options.options)
    setting_of(target, setting)  # refused before the graph is read
    most = MOST_ELEMENTS if options.max_elements is None else positive("--max-elements", options.max_elements)
    graph = read_graph(Path(options.program), given("tosa_version"))
    names = [port.name for port in graph.inputs]
    sizes = scalars(options.args, [str(extent) for port in graph.inputs for extent in port.shape])
    inputs = make_tensors(graph, assignments("--in", options.inputs, names), sizes, most)
    folder, programs = output_folder(options.out), output_folder(given("emit"), "--emit")
    limits = limits_of(options.max_walk, options.max_statements)
    with stage_progress(options.quiet, options.json) as progress:
        documented = options.json is not None or html is not None
        run = run_graph(graph, target, inputs, progress, options.engine, setting, limits, most, refuted=documented)
    files = _write_outputs(run, folder)
    run = _with_files(run, programs)

    document = graph_document(run, files)
    if html is not None:
        from castsim.tools.graphs.page import graph_page  # noqa: PLC0415 - few graphs become pages

        write_page(html, graph_page(run, files, document))

    accepted = run.conforms or (given("accept_samples") and not run.refuted)
    return CommandOutcome(document, lambda _: graph_text(run, files), code=0 if accepted else 1)


def _write_outputs(run: GraphRun, folder: Path | None) -> Mapping[str, Path]:
    if folder is None:
        return {}
    files = {name: folder / f"{plain}.npy" for name, plain in file_names(run.outputs).items()}
    for name, path in files.items():
        write_array(path, run.outputs[name].array)
    return files


def _with_files(run: GraphRun, folder: Path | None) -> GraphRun:
    """Write the programs, numbered in the order in which they ran; return the run with their files.

    Raises:
        ReadError: a file cannot be written.
    """
    if folder is None:
        return run
    numbers, nodes = count(), []
    for node in run.nodes:
        stages = []
        for stage_number, stage in enumerate(node.stages):
            name = f"{next(numbers):03d}_{file_name(node.node.name)}_{stage_number}{stage.program.suffix}"
            write_program(folder / name, stage.program.text)
            stages.append(replace(stage, file=folder / name))
        nodes.append(replace(node, stages=tuple(stages)))
    return replace(run, nodes=tuple(nodes))


# What `castsim check` finds in a graph.


def findings_of(path: Path, text: str | None, request: LoadRequest) -> Iterator[Finding]:
    """Yield the findings in a graph, TOSA text or (without text) an ONNX model, and the target's refusals.

    Without a target, these are the nodes that are illegal on every target.
    """
    from castsim.tools.check.checking import of_error, of_errors  # noqa: PLC0415 - a run needs no check

    file = str(path)
    try:
        graph = read_graph(path) if text is None else read_tosa(text, path)
        target = request.target
        chip = None if isinstance(target, str | Path) else target  # `_request` has loaded a name
        for node, error in illegal_nodes(graph) if chip is None else refusals(graph, chip):
            placed = error if error.span is not None or node.span is None else error.at(node.span)
            finding = of_error(placed, file)
            yield (
                finding
                if finding.span is not None
                else replace(finding, message=f"node '{node.name}': {finding.message}")
            )
    except CastsimError as error:
        yield from of_errors(error, file)
