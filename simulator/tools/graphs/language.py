"""Graphs as programs: what `castsim run` and `castsim check` do with them."""

from __future__ import annotations

from argparse import Namespace
from collections.abc import Iterator
from pathlib import Path

from castsim.commands.outcome import CommandOutcome
from castsim.isa.dataclass import replace
from castsim.isa.errors import CastsimError
from castsim.running.loaded import LoadRequest
from castsim.tools.check.checking import Finding, of_error, of_errors
from castsim.tools.graphs.graph_execution import read_graph


def execute(options: Namespace) -> CommandOutcome:
    """Run a graph with the options that `castsim graph` shares with `castsim run`; see `castsim graph`."""
    from castsim.tools.graphs import command  # noqa: PLC0415 - loads the planner, which a check does without

    return command.execute(options)


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
