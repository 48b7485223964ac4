"""Graphs as programs: what `castsim run` and `castsim check` do with them."""

from __future__ import annotations

from argparse import Namespace
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

from castsim.commands.command_line import parser_of
from castsim.commands.outcome import CommandOutcome
from castsim.isa.dataclass import replace
from castsim.isa.errors import CastsimError, ReadError
from castsim.running.loaded import LoadRequest
from castsim.tools.check.checking import Finding, of_error, of_errors
from castsim.tools.graphs.graph_execution import read_graph

if TYPE_CHECKING:
    pass


_OF_GRAPHS = frozenset((
    "program", "target", "inputs", "args", "out", "summary", "html", "engine", "options", "json", "quiet", "max_walk",
    "max_statements", "max_elements", "max_file_bytes", "max_memory",
))  # fmt: skip
"""Options of `castsim run` that apply to a graph."""


def execute_run(options: Namespace, run: object) -> CommandOutcome:
    """Run the graph that `castsim run` was given; `run` would run a program.

    Raises:
        ReadError: an option does not apply to a graph, or no target is named; otherwise see `execute`.
    """
    del run
    if options.target is None:
        raise ReadError("a graph does not declare a target", legal=("--target T",))
    parser = parser_of("run")
    for name, value in vars(options).items():
        if name not in _OF_GRAPHS and value != parser.get_default(name):
            raise ReadError(
                f"--{name.replace('_', '-')} applies to programs; write those of this graph with "
                "`castsim graph --emit DIR` and run them"
            )
    from castsim.tools.graphs.command import execute  # noqa: PLC0415 - loads the planner, which a check does without

    return execute(Namespace(**{**vars(options), "emit": None, "tosa_version": None, "accept_samples": False}))


def findings_of(path: Path, text: str | None, request: LoadRequest) -> Iterator[Finding]:
    """Yield the findings in a graph, TOSA text or (without text) an ONNX model, and the target's refusals.

    Without a target, these are the nodes that are illegal on every target.
    """
    from castsim.tools.graphs.graph_execution import illegal_nodes, refusals  # noqa: PLC0415 - as above
    from castsim.tools.graphs.tosa_reader import read_tosa  # noqa: PLC0415 - as above

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
