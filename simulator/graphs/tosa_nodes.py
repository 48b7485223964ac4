"""Running the operators of TOSA, and the sets of results that the specification accepts."""

from __future__ import annotations

from collections.abc import Sequence

from castsim.graphs.casting import converted
from castsim.graphs.kernel_runner import KernelRunner
from castsim.graphs.model import Graph, GraphNode, GraphTensor
from castsim.graphs.rescaling import rescaled
from castsim.isa.errors import IllegalError, ReadError
from castsim.isa.formats import FORMATS
from castsim.planning.lowering_answers import Answer
from castsim.specifications import AcceptanceSets, GraphValidity, Rescale, acceptance, rescale
from castsim.specifications.rescale import DOUBLE_ROUND, SINGLE_ROUND, operand_violations
from castsim.targets import load_specification

_CAST_ATTRIBUTES = ("input_unsigned",)


def run_tosa_node(
    runner: KernelRunner, graph: Graph, node: GraphNode, inputs: Sequence[GraphTensor | None]
) -> tuple[list[GraphTensor], Answer | None, AcceptanceSets | None]:
    """Run one node by programs; return its output, the lowering's answer to a cast, and what the specification accepts.

    Raises:
        ReadError, IllegalError, TileError: the node cannot be run, and why.
    """
    x = inputs[0]
    assert x is not None
    if node.op == "tosa.identity":
        return [x], None, None
    if node.op == "tosa.reshape":
        return [_reshaped(node, x, inputs)], None, None
    if node.op == "tosa.rescale":
        return _rescaled(runner, graph, node, x, inputs)
    attributes: dict[str, str | int] = {
        name: int(node.attributes[name]) for name in _CAST_ATTRIBUTES if node.attributes.get(name)
    }
    dst = node.results[0][0]
    result, found = converted(runner, x, dst, graph.spec, graph.version, attributes)
    demand = found.plan.demand
    return [result], found, acceptance(demand.cast, demand.src, dst, x.codes)


def rescale_of(graph: Graph, node: GraphNode) -> Rescale:
    """Return the operator that a `tosa.rescale` is.

    Raises:
        ReadError: a zero point that is several numbers.
        IllegalError: a multiplier, shift or zero point that is not a constant.
    """
    given = node.attributes
    src, dst = _source_name(graph, node), node.results[0][0].name
    mode = given.get("rounding_mode", DOUBLE_ROUND if given.get("double_round") else SINGLE_ROUND)
    unsigned = {name: bool(given.get(f"{name}_unsigned", False)) for name in ("input", "output")}
    return Rescale(
        src=src,
        dst=dst,
        multiplier=tuple(_operand(graph, node, 1, "multiplier")),
        shift=tuple(_operand(graph, node, 2, "shift")),
        scale32=given["scale32"],
        rounding_mode=mode,
        per_channel=given["per_channel"],
        input_zp=_zero_point(graph, node, 3, "input_zp", src, unsigned["input"]),
        output_zp=_zero_point(graph, node, 4, "output_zp", dst, unsigned["output"]),
        input_unsigned=unsigned["input"],
        output_unsigned=unsigned["output"],
    )


def _rescaled(
    runner: KernelRunner, graph: Graph, node: GraphNode, x: GraphTensor, inputs: Sequence[GraphTensor | None]
) -> tuple[list[GraphTensor], None, AcceptanceSets | None]:
    operator = rescale_of(graph, node)
    demanded = rescale(operator, x.codes, graph.spec)
    rules = load_specification(graph.spec).rescale
    assert rules is not None  # without, the operator has been refused
    if demanded.outcome is GraphValidity.ERROR:
        raise IllegalError(f"RESCALE is illegal: {'; '.join(demanded.reasons)}")
    if demanded.outcome is GraphValidity.UNPREDICTABLE:
        runner.remark(f"unpredictable: {'; '.join(demanded.reasons)}; every result is accepted")
        if operand_violations(operator, rules):
            raise IllegalError(f"RESCALE is unpredictable: {'; '.join(demanded.reasons)}")
    result = rescaled(runner, operator, x, rules)
    declared = node.results[0][0]
    return [GraphTensor(declared, result.codes)], None, demanded.sets


def _reshaped(node: GraphNode, x: GraphTensor, inputs: Sequence[GraphTensor | None]) -> GraphTensor:
    shape = inputs[1] if len(inputs) > 1 else None
    wanted: list[int] = node.attributes["new_shape"] if shape is None else shape.array.reshape(-1).tolist()
    try:
        return GraphTensor(x.format, x.codes.reshape(wanted))
    except ValueError:
        raise IllegalError(f"a tensor of shape {list(x.shape)} cannot be reshaped to {wanted}") from None


def _source_name(graph: Graph, node: GraphNode) -> str:
    name = node.inputs[0]
    for port in graph.inputs:
        if port.name == name:
            return port.format.name
    for other in graph.nodes:
        if name in other.outputs:
            return other.results[0][0].name
    return graph.constants[str(name)].format.name


def _operand(graph: Graph, node: GraphNode, place: int, name: str) -> list[int]:
    """Return the integers of an operand or, in older text, of an attribute."""
    if len(node.inputs) > place:
        tensor = graph.constants.get(str(node.inputs[place]))
        if tensor is None:
            raise IllegalError(f"{name} %{node.inputs[place]} is not a constant; only constants are supported")
        return [int(value) for value in tensor.array.reshape(-1).tolist()]
    value = node.attributes[name]
    return value if isinstance(value, list) else [value]


def _zero_point(graph: Graph, node: GraphNode, place: int, name: str, kind: str, unsigned: bool) -> int:
    values = _operand(graph, node, place, name)
    if len(values) != 1:
        raise ReadError(f"{name} is one number, not {len(values)}", span=node.span)
    return values[0] & ((1 << FORMATS[kind].bits) - 1) if unsigned else values[0]
