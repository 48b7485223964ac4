"""Running the operators of ONNX, and what the library's reference evaluator says they give."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from castsim.graphs.arithmetic import clipped, combined
from castsim.graphs.casting import converted
from castsim.graphs.kernel_runner import KernelRunner
from castsim.graphs.model import Graph, GraphNode, GraphTensor
from castsim.graphs.onnx_reader import format_of, library
from castsim.graphs.onnx_versions import bounds_of_version, judged, operand_shapes, shape_of_version
from castsim.graphs.quantising import dequantised, dynamically_quantised, expanded, quantised
from castsim.isa.codes import Codes
from castsim.isa.errors import IllegalError, ReadError
from castsim.isa.formats import FORMATS, Format, IntFormat
from castsim.planning.lowering_answers import Answer


def run_onnx_node(
    runner: KernelRunner, graph: Graph, node: GraphNode, inputs: Sequence[GraphTensor | None]
) -> tuple[list[GraphTensor], Answer | None]:
    """Run one node by programs; return its outputs, and the answer of the lowering if it is a cast.

    Raises:
        ReadError, IllegalError, TileError: the node cannot be run, and why.
    """
    attributes, values = node.attributes, [*inputs, None, None, None]
    x = values[0]
    assert x is not None  # the checker of onnx asks for it
    match node.op:
        case "Identity":
            return [x], None
        case "Reshape":
            return [_reshaped(x, values[1], node)], None
        case "Cast":
            dst = format_of(attributes["to"], f"node '{node.name}'", library())
            chosen = {name: attributes[name] for name in ("saturate", "round_mode") if name in attributes}
            tensor, found = converted(runner, x, dst, graph.spec, graph.version, chosen)
            return [tensor], found
        case "Add" | "Mul":
            assert values[1] is not None
            return [combined(runner, node.op.lower(), x, values[1], _immediate(graph, node, inputs))], None
        case "Clip":
            low, high = _bounds(x, values, bounds_of_version(graph, node))
            return [clipped(runner, x, low, high)], None
        case "QuantizeLinear":
            return [_quantised(runner, x, values, attributes, node)], None
        case "DequantizeLinear":
            return [_dequantised(runner, x, values, attributes, node)], None
        case "DynamicQuantizeLinear":
            return list(dynamically_quantised(runner, x)), None
    raise IllegalError(f"node '{node.name}': operator {node.op} is not supported")


def placed_operands(graph: Graph, node: GraphNode, inputs: Sequence[GraphTensor | None]) -> list[GraphTensor | None]:
    """Return the operands in the shapes in which today's operators take them; see `operand_shapes`.

    Raises:
        IllegalError: shapes that the node's version does not take.
    """
    shapes = operand_shapes(graph, node, [None if tensor is None else tensor.shape for tensor in inputs])
    return [
        tensor if tensor is None or shape is None else GraphTensor(tensor.format, tensor.codes.reshape(shape))
        for tensor, shape in zip(inputs, shapes, strict=True)
    ]


def reference_outputs(graph: Graph, node: GraphNode, inputs: Sequence[Codes | None]) -> list[Codes]:
    """Return the result of onnx's reference evaluator for one node and its placed operands.

    It may be judged as a node of a newer version.

    Raises:
        IllegalError: the evaluator refuses it.
    """
    onnx = library()
    right = judged(graph, node)
    given = {name: array for name, array in zip(node.inputs, inputs, strict=True) if name and array is not None}
    given |= right.arrays
    # The evaluator looks at values only; the types of the ports may stay open.
    ports = [onnx.helper.make_empty_tensor_value_info(name) for name in given]
    results = [onnx.helper.make_empty_tensor_value_info(name) for name in node.outputs]
    model = onnx.helper.make_model(
        onnx.helper.make_graph([right.native], "node", ports, results),
        opset_imports=[onnx.helper.make_opsetid("", right.opset)],
    )
    return _evaluated(model, given, node.name)


def reference_run(graph: Graph, inputs: dict[str, GraphTensor]) -> dict[str, Codes]:
    """Return the outputs of the whole graph by onnx's reference evaluator, by name.

    It runs the model itself, or node by node where one is judged as one of a newer version.

    Raises:
        IllegalError: the evaluator refuses it.
    """
    values = {name: tensor.array for name, tensor in inputs.items()}
    if all(judged(graph, node).native is node.native for node in graph.nodes):
        names = [port.name for port in graph.native.graph.output]  # which may list one twice
        return dict(zip(names, _evaluated(graph.native, values, graph.name), strict=True))
    values |= {name: tensor.array for name, tensor in graph.constants.items() if name not in values}
    for node in graph.nodes:
        operands = [None if name is None else values[name] for name in node.inputs]
        shapes = operand_shapes(graph, node, [None if array is None else array.shape for array in operands])
        placed = [
            array if array is None else array.reshape(shape) for array, shape in zip(operands, shapes, strict=True)
        ]
        values |= dict(zip(node.outputs, reference_outputs(graph, node, placed), strict=False))
    return {name: values[name] for name in graph.outputs}


def _evaluated(model: Any, given: dict[str, Codes], what: str) -> list[Codes]:
    from onnx.reference import ReferenceEvaluator  # noqa: PLC0415 - the extra

    try:
        with np.errstate(all="ignore"):
            return [np.asarray(found) for found in ReferenceEvaluator(model).run(None, given)]
    except Exception as error:  # the evaluator raises whatever its NumPy code raises
        raise IllegalError(f"'{what}': onnx's reference evaluator refuses it: {error}") from None


def undefined_elements(node: GraphNode, inputs: Sequence[GraphTensor | None], result: GraphTensor) -> NDArray[np.bool_]:
    """Return a mask of the elements where the evaluator's own result is meaningless.

    For integers these are quotients that the format of the input or int32, to which it converts them, does not hold.
    For floats it converts by the table of Cast, which defines infinity, overflow and NaN of every format that has a
    NaN; NaN is open of others.
    """
    shape = result.shape
    if node.op != "QuantizeLinear" or inputs[0] is None or inputs[1] is None:
        return np.zeros(shape, np.bool_)
    axis, block = node.attributes.get("axis", 1), node.attributes.get("block_size", 0)
    scales = GraphTensor(inputs[1].format, expanded(inputs[1].codes, shape, axis, block, "scale")).array
    with np.errstate(all="ignore"):
        quotient = np.abs(inputs[0].array.astype(np.float64) / scales.astype(np.float64))
        narrow = inputs[0].array / scales
    if not isinstance(result.format, IntFormat):
        has_nan = result.format.nan_code is not None
        return np.zeros(shape, np.bool_) if has_nan else np.isnan(quotient)
    # What lies half a unit below 2**31 rounds to it; narrow formats overflow before.
    undefined: NDArray[np.bool_] = ~(quotient < 2.0**31 - 1) | ~np.isfinite(narrow.astype(np.float64))
    return undefined


def _immediate(graph: Graph, node: GraphNode, inputs: Sequence[GraphTensor | None]) -> GraphTensor | None:
    for name, tensor in zip(node.inputs, inputs, strict=True):
        if name in graph.constants and tensor is not None and tensor.codes.size == 1:
            return tensor
    return None


def _bounds(
    x: GraphTensor, values: Sequence[GraphTensor | None], numbers: Mapping[str, float]
) -> tuple[GraphTensor | None, GraphTensor | None]:
    """Return the bounds: inputs, or attributes up to opset 10."""
    found: list[GraphTensor | None] = []
    for name, given in zip(("min", "max"), values[1:3], strict=True):
        if given is None and name in numbers:
            with np.errstate(over="ignore"):
                array = np.array(numbers[name], np.float32).astype(x.array.dtype)
            found.append(GraphTensor.of(array, x.format))
            continue
        found.append(given)
    return found[0], found[1]


def _reshaped(x: GraphTensor, shape: GraphTensor | None, node: GraphNode) -> GraphTensor:
    wanted = shape_of_version(node) if shape is None else shape.array.reshape(-1).tolist()
    extents = [
        x.shape[place] if extent == 0 and not node.attributes.get("allowzero") and place < len(x.shape) else extent
        for place, extent in enumerate(wanted)
    ]
    try:
        return GraphTensor(x.format, x.codes.reshape(extents))
    except ValueError:
        raise IllegalError(f"a tensor of shape {list(x.shape)} cannot be reshaped to {wanted}") from None


def _quantised(
    runner: KernelRunner, x: GraphTensor, values: Sequence[GraphTensor | None], attributes: Any, node: GraphNode
) -> GraphTensor:
    scale, zero_point = values[1], values[2]
    assert scale is not None
    onnx = library()
    dst: Format = FORMATS["u8"]
    if attributes.get("output_dtype"):
        dst = format_of(attributes["output_dtype"], f"node '{node.name}'", onnx)
    if zero_point is not None:
        dst = zero_point.format
    if attributes.get("precision") and format_of(attributes["precision"], node.name, onnx) != x.format:
        raise IllegalError(f"node '{node.name}': a precision other than the format of x is not supported")
    saturate = str(attributes.get("saturate", 1))
    zeros = _integer_zero(zero_point, node)
    axis, block = attributes.get("axis", 1), attributes.get("block_size", 0)
    return quantised(runner, x, scale, zeros, dst, axis, block, saturate)


def _integer_zero(zero_point: GraphTensor | None, node: GraphNode) -> GraphTensor | None:
    """Return a zero point if it is one of integers; that of floats names their type and is 0."""
    if zero_point is None or isinstance(zero_point.format, IntFormat):
        return zero_point
    if (zero_point.array.astype(np.float64) != 0).any():
        raise IllegalError(
            f"node '{node.name}': a zero point of {zero_point.format.name} other than 0 is not supported"
        )
    return None


def _dequantised(
    runner: KernelRunner, x: GraphTensor, values: Sequence[GraphTensor | None], attributes: Any, node: GraphNode
) -> GraphTensor:
    scale, zero_point = values[1], values[2]
    assert scale is not None
    dst = scale.format
    if attributes.get("output_dtype"):
        dst = format_of(attributes["output_dtype"], f"node '{node.name}'", library())
    if isinstance(dst, IntFormat):
        raise ReadError(f"node '{node.name}': a scale of {dst.name} is not a float")
    zeros = _integer_zero(zero_point, node)
    return dequantised(runner, x, scale, zeros, dst, attributes.get("axis", 1), attributes.get("block_size", 0))
