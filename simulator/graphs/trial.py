"""Trying a node on every code of its inputs, where these are few: what it reads in a run is one input of many.

Operators are element-wise here, and their programs are those of the run, over more elements. Constants keep their
values; what is computed at run time ranges over all codes of its format.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from castsim.graphs.model import Graph, GraphLanguage, GraphNode, GraphTensor
from castsim.graphs.tosa_nodes import rescale_of
from castsim.isa.codes import Codes
from castsim.planning.samples import all_codes

LARGEST = 1 << 20
"""Elements that are tried at most: those of two operands of 8 bits, or of 16 bits with some constants."""

_PAIRS = ("Add", "Mul")
_ALONE = ("Clip", "QuantizeLinear", "DequantizeLinear")
_WITH_SCALES = ("QuantizeLinear", "DequantizeLinear")


def all_operands(graph: Graph, node: GraphNode, given: Sequence[GraphTensor | None]) -> list[GraphTensor | None] | None:
    """Return operands of a node that hold every combination of codes it may read; None where they are too many.

    None as well for operators that are not element-wise, and where a scale or bound is computed at run time.
    """
    x = given[0]
    if x is None:
        return None
    if graph.language is GraphLanguage.TOSA:
        return _channels(given, _multipliers(graph, node)) if node.op == "tosa.rescale" else None
    if node.op in _PAIRS and len(given) == 2:
        return _pairs(graph, node, given)
    constant = all(name is None or name in graph.constants for name in node.inputs[1:])
    if node.op not in _ALONE or not constant:
        return None
    return _scaled(node, given) if node.op in _WITH_SCALES else _alone(given)


def _alone(given: Sequence[GraphTensor | None]) -> list[GraphTensor | None] | None:
    """Return all codes of the first operand in one dimension, and the others."""
    codes = _codes(given[0])
    return None if codes is None or given[0] is None else [GraphTensor(given[0].format, codes), *given[1:]]


def _pairs(graph: Graph, node: GraphNode, given: Sequence[GraphTensor | None]) -> list[GraphTensor | None] | None:
    """Return all pairs of codes of two operands; a constant of one element stays as it is."""
    first, second = given
    if first is None or second is None:
        return None
    constants = [name in graph.constants for name in node.inputs]
    if node.inputs[0] == node.inputs[1]:
        codes = _codes(first)
        return None if codes is None else [GraphTensor(first.format, codes)] * 2
    if any(constant and tensor.codes.size == 1 for constant, tensor in zip(constants, (first, second), strict=True)):
        ranging = [_codes(tensor) if not constant else tensor.codes.reshape(()) for constant, tensor in
                   zip(constants, (first, second), strict=True)]  # fmt: skip
    else:
        sides = [np.unique(tensor.codes) if constant else _codes(tensor) for constant, tensor in
                 zip(constants, (first, second), strict=True)]  # fmt: skip
        if sides[0] is None or sides[1] is None or sides[0].size * sides[1].size > LARGEST:
            return None
        ranging = [np.repeat(sides[0], sides[1].size), np.tile(sides[1], sides[0].size)]
    if ranging[0] is None or ranging[1] is None:
        return None
    return [GraphTensor(first.format, ranging[0]), GraphTensor(second.format, ranging[1])]


def _scaled(node: GraphNode, given: Sequence[GraphTensor | None]) -> list[GraphTensor | None] | None:
    """Return all codes once, or once for every scale along an axis."""
    x, scale = given[:2]
    if x is None or scale is None or node.attributes.get("block_size"):
        return None
    if scale.codes.size == 1:
        return _alone(given)
    rank, codes = len(x.shape), _codes(x)
    axis = node.attributes.get("axis", 1)
    place = axis + rank if axis < 0 else axis
    if codes is None or rank < 2 or not 0 <= place < rank or codes.size * scale.codes.size > LARGEST:
        return None
    free = 0 if place else 1
    shape = [codes.size if k == free else scale.codes.size if k == place else 1 for k in range(rank)]
    aligned = codes.reshape([-1 if k == free else 1 for k in range(rank)])
    return [GraphTensor(x.format, np.ascontiguousarray(np.broadcast_to(aligned, shape))), *given[1:]]


def _channels(given: Sequence[GraphTensor | None], count: int) -> list[GraphTensor | None] | None:
    """Return all codes in every channel, the last dimension."""
    x, codes = given[0], _codes(given[0])
    if x is None or codes is None or codes.size * count > LARGEST:
        return None
    every = np.ascontiguousarray(np.broadcast_to(codes[:, np.newaxis], (codes.size, count)))
    return [GraphTensor(x.format, every), *given[1:]]


def _multipliers(graph: Graph, node: GraphNode) -> int:
    """Return the number of channels for which a RESCALE has multipliers."""
    operator = rescale_of(graph, node)
    return len(operator.multiplier) if operator.per_channel else 1


def _codes(tensor: GraphTensor | None) -> Codes | None:
    return None if tensor is None else all_codes(tensor.format)
