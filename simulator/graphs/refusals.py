"""What a target refuses of a graph, without running it: programs are written for every node, and none is simulated."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from castsim.graphs.chip import F32, Chip
from castsim.graphs.kernel import NodeKernel
from castsim.graphs.kernel_runner import KernelRunner
from castsim.graphs.model import TEXT, Graph, GraphInput, GraphLanguage, GraphNode, GraphTensor
from castsim.graphs.onnx_nodes import placed_operands, run_onnx_node
from castsim.graphs.program import WRITING
from castsim.graphs.tosa_nodes import run_tosa_node
from castsim.isa.codes import Codes
from castsim.isa.errors import CastsimError, IllegalError
from castsim.isa.formats import Format
from castsim.numerics import abstract_policy, code_dtype, convert_codes
from castsim.planning.lowering_answers import Answer
from castsim.targets import Target

_MOST_ELEMENTS = 1 << 20
"""Nodes with larger operands are left to `castsim graph`: what they are checked by would take seconds."""
_ONE = np.array([1.0], np.float32).view(np.uint32)


@dataclass
class _Writer(KernelRunner):
    """Writes the programs of a node and runs none: every result is 1, which divides, and which every format has."""

    def run(self, kernel: NodeKernel, inputs: Mapping[str, Codes], answered: Answer | None = None) -> dict[str, Codes]:
        size = next(iter(inputs.values())).size
        target = self.chip.target if answered is None else answered.plan.target
        WRITING.of(target).program(kernel, target, max(size, 1))
        return {port.name: _ones(port.format, (size,)) for port in kernel.outputs}


def refusals(graph: Graph, target: Target) -> Iterator[tuple[GraphNode, CastsimError]]:
    """Yield the nodes that a target cannot run, each with the reason; those behind them are not looked at.

    Inputs are tensors of ones, their dynamic extents 1. Nodes whose legality depends on the values of an input (the
    shape of a Reshape, say) and nodes of more than 2**20 elements are left out, with all that reads them.
    """
    chip = Chip(target)
    values: dict[str, GraphTensor] = {**graph.constants}
    values |= {port.name: _input(port) for port in graph.inputs if _extent(port) <= _MOST_ELEMENTS}
    for node in graph.nodes:
        if any(name is not None and name not in values for name in node.inputs):
            continue
        given = [None if name is None else values[name] for name in node.inputs]
        if any(each is not None and each.codes.size > _MOST_ELEMENTS for each in given):
            continue
        try:
            outputs = _written(_Writer(chip, node.name), graph, node, given)
        except CastsimError as error:
            if not _moves(node) or node.inputs[-1] in graph.constants:
                yield node, error
            continue
        values |= dict(zip(node.outputs, outputs, strict=False))


def _written(runner: KernelRunner, graph: Graph, node: GraphNode, given: list[Any]) -> list[GraphTensor]:
    if graph.language is GraphLanguage.TOSA:
        return run_tosa_node(runner, graph, node, given)[0]
    return run_onnx_node(runner, graph, node, placed_operands(graph, node, given))[0]


def _moves(node: GraphNode) -> bool:
    return node.op in ("Reshape", "tosa.reshape")


def _shape(port: GraphInput) -> tuple[int, ...]:
    return tuple(extent if isinstance(extent, int) else 1 for extent in port.shape)


def _extent(port: GraphInput) -> int:
    return math.prod(_shape(port))


def _input(port: GraphInput) -> GraphTensor:
    return GraphTensor(port.format, _ones(port.format, _shape(port)))


def _ones(fmt: Format, shape: tuple[int, ...]) -> Codes:
    if fmt is TEXT:
        return np.broadcast_to(np.array("1"), shape)
    try:
        one = convert_codes(_ONE, F32, fmt, abstract_policy(F32, fmt)).astype(code_dtype(fmt))
    except IllegalError:  # a format that no number is converted to
        one = np.ones(1, code_dtype(fmt))
    return np.broadcast_to(one, shape)
