"""Execution of ONNX operators, and the results of the library's reference evaluator."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from functools import reduce
from typing import Any

import numpy as np
from numpy.typing import NDArray

from castsim.isa.dataclass import dataclass
from castsim.isa.errors import IllegalError, ReadError
from castsim.isa.formats import FORMATS, Codes, FloatFormat, Format, IntFormat, Rounding, TaperedFormat
from castsim.numerics.blocks import code_dtype
from castsim.numerics.codec import codes_from_strings, decode_to_float64, strings_from_codes, value_of
from castsim.numerics.policy import abstract_policy
from castsim.numerics.tiers import convert_codes
from castsim.tools.graphs.graph_kernels import F32, KernelValue, NodeKernel
from castsim.tools.graphs.kernel_runner import GraphKernelRunner, clamped, extremes, f32
from castsim.tools.graphs.model import (
    TEXT,
    Graph,
    GraphNode,
    GraphTensor,
    bounds_of_version,
    judged,
    operand_shapes,
    shape_of_version,
    texts,
)
from castsim.tools.graphs.onnx_reader import format_of, library
from castsim.tools.graphs.tosa_nodes import closest_chain, converted
from castsim.tools.lowering.demand import Verdict
from castsim.tools.lowering.lowering_answers import Answer, setting_text

# QuantizeLinear, DequantizeLinear and DynamicQuantizeLinear (operator pages of onnx 1.23.2).
#
# Scale and zero point are constants of a program. Where they differ between channels or blocks there is one program
# for all elements of equal scale and zero point, which are gathered before it.

Part = Callable[[Codes, float, float], Codes]

_U8 = FORMATS["u8"]
_RECIPROCAL = (
    "the target does not divide: multiplied by the reciprocal of the scale, which may give the neighbouring integer"
)


@dataclass(frozen=True, slots=True)
class Scaling:
    """Scales and zero points of a tensor: a single one, one for each index of an axis, or one for each block of it."""

    scale: GraphTensor
    zero_point: GraphTensor | None
    axis: int = 1
    block: int = 0

    @classmethod
    def of(cls, node: GraphNode, values: Sequence[GraphTensor | None]) -> Scaling:
        """Return the scaling of a node's operands and attributes.

        Raises:
            IllegalError: a zero point of floats, which only names their type, is not 0.
        """
        scale, zero_point = values[1], values[2]
        assert scale is not None
        if zero_point is not None and not isinstance(zero_point.format, IntFormat):
            if (zero_point.array.astype(np.float64) != 0).any():
                raise IllegalError(
                    f"node '{node.name}': a zero point of {zero_point.format.name} other than 0 is not supported"
                )
            zero_point = None
        return cls(scale, zero_point, node.attributes.get("axis", 1), node.attributes.get("block_size", 0))


def quantised(
    runner: GraphKernelRunner, x: GraphTensor, scaling: Scaling, dst: Format, saturate: str = "1"
) -> GraphTensor:
    """Execute QuantizeLinear.

    Raises:
        IllegalError: shapes do not fit together, or the target does not support a format.
    """
    if isinstance(x.format, IntFormat):
        raise IllegalError(f"QuantizeLinear of {x.format.name}: the reference divides in f64, which no target supports")
    scale = scaling.scale
    if scale.format != x.format:
        raise IllegalError(
            f"QuantizeLinear of {x.format.name} by a scale of {scale.format.name}", legal=(x.format.name,)
        )

    def part(codes: Codes, factor: float, zero: float) -> Codes:
        kernel, value = runner.unary(f"QuantizeLinear {x.format.name} -> {dst.name}, scale {factor!r}", x.format)
        value = _quotient(runner, kernel, value, factor, scale.format)
        if not isinstance(dst, IntFormat):
            return _as_float(runner, kernel, value, codes, dst, saturate, factor)
        inner = runner.computed_as(dst)
        value = clamped(kernel, value, dst.minimum - zero, dst.maximum - zero)
        value = kernel.convert(value, runner.chip.integral(Rounding.RINT))
        if zero:
            value = kernel.combine("add", value, f32(zero))
        value = runner.narrowed(kernel, value, inner, dst.minimum, dst.maximum)
        return runner.packed(runner.finish(kernel, value, codes, inner), inner, dst)

    return GraphTensor(dst, _by_parts(runner, x, scaling, dst, part))


def dequantised(runner: GraphKernelRunner, x: GraphTensor, scaling: Scaling, dst: Format) -> GraphTensor:
    """Execute DequantizeLinear.

    Raises:
        IllegalError: see `quantised`.
    """

    def part(codes: Codes, factor: float, zero: float) -> Codes:
        codes, fmt = runner.unpacked(codes, x.format)
        kernel, value = runner.unary(f"DequantizeLinear {x.format.name} -> {dst.name}, scale {factor!r}", fmt)
        value = runner.widened(kernel, value)
        if zero:
            value = kernel.combine("add", value, f32(-zero))
        value = kernel.combine("mul", value, f32(factor))
        return runner.finish(kernel, runner.rounded(kernel, value, dst), codes, dst)

    return GraphTensor(dst, _by_parts(runner, x, scaling, dst, part))


def dynamically_quantised(runner: GraphKernelRunner, x: GraphTensor) -> tuple[GraphTensor, GraphTensor, GraphTensor]:
    """Execute DynamicQuantizeLinear: return the quantised tensor, its scale and its zero point.

    Raises:
        IllegalError: the format is not f32, or the tensor has NaN or no elements.
    """
    if x.format != F32 or not x.codes.size or np.isnan(decode_to_float64(x.codes, F32)).any():
        raise IllegalError("DynamicQuantizeLinear needs f32 numbers: at least one, and no NaN")
    least, most = _extremes(runner, x.codes.reshape(-1))
    runner.remark(
        "smallest and largest element by halving, a program per halving; scale and zero point are computed from these "
        "two numbers in f32 between the programs, outside the cycles"
    )
    low, high = np.minimum(np.float32(0), least), np.maximum(np.float32(0), most)
    top = np.float32(_U8.maximum)  # type: ignore[union-attr]
    with np.errstate(over="ignore", invalid="ignore"):
        factor = np.float32(1 if high == low else high - low) / top
        zero = np.rint(np.clip(np.float32(0) - low / factor, np.float32(0), top))
    scale = GraphTensor(F32, np.array(factor.view(np.uint32)))
    zero_point = GraphTensor(_U8, np.array(zero, np.uint8))
    return quantised(runner, x, Scaling(scale, zero_point), _U8), scale, zero_point


def _quotient(
    runner: GraphKernelRunner, kernel: NodeKernel, value: KernelValue, factor: float, fmt: Format
) -> KernelValue:
    """Return a value divided by the scale and rounded in its own format, as f32."""
    if runner.chip.has("div", fmt, constant=True):
        code = int(np.float32(factor).view(np.uint32)) if fmt == F32 else int(np.float16(factor).view(np.uint16))
        return runner.widened(kernel, kernel.combine("div", value, code))
    wide = runner.widened(kernel, value)
    if runner.chip.has("div", F32, constant=True):
        quotient = kernel.combine("div", wide, f32(factor))
    else:
        mantissa, _ = np.frexp(factor)
        with np.errstate(over="ignore", divide="ignore"):
            reciprocal = np.float32(1) / np.float32(factor)
        if abs(mantissa) != 0.5 or not np.isfinite(reciprocal):
            runner.remark(_RECIPROCAL)
        quotient = kernel.combine("mul", wide, int(reciprocal.view(np.uint32)))
    return quotient if fmt == F32 else runner.widened(kernel, runner.rounded(kernel, quotient, fmt))


def _as_float(
    runner: GraphKernelRunner,
    kernel: NodeKernel,
    value: KernelValue,
    codes: Codes,
    dst: FloatFormat | TaperedFormat,
    saturate: str,
    factor: float,
) -> Codes:
    answered = runner.chip.planned(F32, dst, "onnx", "28", {"saturate": saturate})
    plan = answered.plan
    if plan.verdict is Verdict.DIFFERS and saturate == "1" and runner.chip.numbers(F32, dst) is not None:
        largest = _number(dst.max_finite_code, dst)
        runner.remark(f"no chain saturates f32 -> {dst.name} as ONNX asks: bounded by {largest:g} before the cast")
        value = runner.rounded(kernel, runner.bounded(kernel, value, f32(-largest), f32(largest)), dst)
        return runner.finish(kernel, value, codes, dst)
    if answered.chosen:
        runner.remark(f"the cast to {dst.name} needs {setting_text(answered.chosen)}: it is a separate program")
        quotient = runner.finish(kernel, value, codes, F32)
        return runner.through(f"cast f32 -> {dst.name}, {plan.demand.label}", quotient, F32, plan.chain, dst, answered)
    if not plan.chain:
        raise IllegalError(f"{runner.chip.target.name}: {plan.kind.value}: {plan.reason}")
    with np.errstate(all="ignore"):
        quotients = (decode_to_float64(codes, kernel.inputs[0].format) / factor).astype(np.float32)
    chain = closest_chain(runner, plan, quotients.view(np.uint32))
    return runner.finish(kernel, kernel.convert(value, chain), codes, dst)


def _extremes(runner: GraphKernelRunner, codes: Codes) -> tuple[np.float32, np.float32]:
    """Return the smallest and the largest number, by repeatedly taking the extremes of two halves."""
    low = high = codes
    while low.size > 1:
        half = -(-low.size // 2)
        kernel = NodeKernel(f"smallest and largest of {low.size}")
        first, inputs = low is codes, {}
        halves = [("a", low[:half]), ("b", np.resize(low[half:], half))]
        if not first:
            halves += [("c", high[:half]), ("d", np.resize(high[half:], half))]
        values = {}
        for name, part in halves:
            values[name] = kernel.input(name, F32)
            inputs[name] = part
        kernel.output("low", kernel.combine("min", values["a"], values["b"]))
        pair = ("a", "b") if first else ("c", "d")
        kernel.output("high", kernel.combine("max", values[pair[0]], values[pair[1]]))
        results = runner.run(kernel, inputs)
        low, high = results["low"].astype(np.uint32), results["high"].astype(np.uint32)
    return low.view(np.float32)[0], high.view(np.float32)[0]


def _by_parts(runner: GraphKernelRunner, x: GraphTensor, scaling: Scaling, dst: Format, part: Part) -> Codes:
    """Run `part` on all elements of equal scale and zero point together, and put the results in their places."""
    scale, zero_point, axis, block = scaling.scale, scaling.zero_point, scaling.axis, scaling.block
    scales = expanded(scale.codes, x.shape, axis, block, "scale")
    zeros = (
        np.zeros_like(scales) if zero_point is None else expanded(zero_point.codes, x.shape, axis, block, "zero point")
    )
    keys = np.stack((scales.astype(np.uint64), zeros.astype(np.uint64)), -1).reshape(-1, 2)
    pairs, places = np.unique(keys, axis=0, return_inverse=True)
    flat, result = x.codes.reshape(-1), np.zeros(x.codes.size, code_dtype(dst))
    if len(pairs) > 1:
        runner.remark("one program for all elements of equal scale and zero point, gathered before it")
    for number, (scale_code, zero_code) in enumerate(pairs):
        where = places.reshape(-1) == number
        factor = _number(int(scale_code), scale.format)
        zero = 0.0 if zero_point is None else _number(int(zero_code), zero_point.format)
        result[where] = part(flat[where], factor, zero)
    return result.reshape(x.shape)


def _number(code: int, fmt: Format) -> float:
    return float(decode_to_float64(np.array([code], code_dtype(fmt)), fmt)[0])


def expanded(codes: Codes, shape: tuple[int, ...], axis: int, block: int, what: str) -> Codes:
    """Return the scale or zero point of every element: a single one, one per index of an axis, or one per block."""
    if codes.size == 1 and not block:
        return np.broadcast_to(codes.reshape(()), shape)
    position = axis + len(shape) if axis < 0 else axis
    if not 0 <= position < len(shape):
        raise IllegalError(f"{what}: the tensor has no axis {axis}", legal=[f"{-len(shape)} to {len(shape) - 1}"])
    if not block:
        if codes.shape != (shape[position],):
            raise IllegalError(f"{what} of shape {list(codes.shape)} for axis {axis} of {list(shape)}")
        return np.broadcast_to(codes.reshape([-1 if k == position else 1 for k in range(len(shape))]), shape)
    wanted = tuple(-(-extent // block) if k == position else extent for k, extent in enumerate(shape))
    if codes.shape != wanted:
        raise IllegalError(
            f"{what} of shape {list(codes.shape)} for blocks of {block} of {list(shape)}", legal=[str(list(wanted))]
        )
    return np.repeat(codes, block, position)[tuple(slice(extent) for extent in shape)]


# Clip, arithmetic, extremes and Round: native where the target has the format, else in f32, exact for what it takes.
#
# f32 has more than twice the significand of f16 and bf16 and two bits beyond, so that rounding its sum, product or
# quotient once more gives the result rounded once. Integers wrap, as NumPy's do.

_WIDEST = 32


def clipped(
    runner: GraphKernelRunner, x: GraphTensor, low: GraphTensor | None, high: GraphTensor | None
) -> GraphTensor:
    """Bound elements; if the lower bound exceeds the upper one, the result is the upper one.

    Raises:
        IllegalError: the target does not compute in the format.
    """
    given = [(function, bound) for function, bound in (("max", low), ("min", high)) if bound is not None]
    if not given:
        return x
    _check_width(x.format)
    kernel, value = runner.unary("Clip", x.format)
    ends = [None if bound is None else int(bound.codes.reshape(-1)[0]) for bound in (low, high)]
    if all(runner.chip.has(function, x.format, constant=True) for function, _ in given):
        value = runner.bounded(kernel, value, *ends)
        return GraphTensor(x.format, runner.finish(kernel, value, x.codes, x.format))
    codes, fmt = runner.unpacked(x.codes, x.format)
    kernel, value = runner.unary("Clip", fmt)
    wide = [None if end is None else f32(float(value_of(end, x.format))) for end in ends]
    number = _wide(runner, kernel, value)
    # The cast back may lose NaN too, so NaN is put back behind it.
    clipped_value = runner.nan_kept(kernel, _back(runner, kernel, extremes(kernel, number, *wide), fmt), value, number)
    return GraphTensor(x.format, runner.packed(runner.finish(kernel, clipped_value, codes, fmt), fmt, x.format))


def combined(
    runner: GraphKernelRunner, function: str, a: GraphTensor, b: GraphTensor, constant: GraphTensor | None
) -> GraphTensor:
    """Apply `add`, `sub`, `mul`, `div`, `min` or `max` to two tensors of one format, broadcast against each other.

    `constant` is one of them if it is a single number known beforehand: an immediate, not loaded. A single divisor
    is always constant.

    Raises:
        IllegalError: the target has neither such an operation nor an equivalent one.
    """
    fmt = a.format
    _check_width(fmt)
    try:
        shape = np.broadcast_shapes(a.shape, b.shape)
    except ValueError:
        raise IllegalError(f"shapes {list(a.shape)} and {list(b.shape)} do not broadcast") from None
    if function == "div":
        if isinstance(fmt, IntFormat):
            raise IllegalError(f"Div of {fmt.name}: no target divides integers")
        if b.codes.size == 1 and b.format in (F32, FORMATS["f16"]):
            return _divided(runner, a, b, shape)
    worked = _worked_in(runner, function, fmt)
    if a is constant and function not in ("sub", "div"):
        a, b = b, a
    elif a is constant:
        constant = None
    kernel = NodeKernel(f"{function} {fmt.name}" + ("" if worked == fmt else f" as {worked.name}"))
    first = _operand(runner, kernel, "src", fmt, worked)
    inputs = {"src": _broadcast(runner, a, shape)}
    if constant is None:
        second: KernelValue | int = _operand(runner, kernel, "other", fmt, worked)
        inputs["other"] = _broadcast(runner, b, shape)
    else:
        second = _constant(int(constant.codes.reshape(-1)[0]), fmt, worked)
    value = kernel.combine(function, first, second)
    if worked == F32 and fmt != F32:
        value = _wrapped(runner, kernel, function, value, fmt)
    elif worked != fmt:
        value = kernel.convert(value, runner.chip.reread(worked, fmt))
    kernel.output("dst", value)
    results = runner.run(kernel, inputs)["dst"]
    return GraphTensor(fmt, results.astype(code_dtype(fmt)).reshape(shape))


_MODULAR = ("add", "sub", "mul")


def _worked_in(runner: GraphKernelRunner, function: str, fmt: Format) -> Format:
    """Return the format in which a target computes a function of two operands."""
    signed = FORMATS[f"i{fmt.bits}"] if isinstance(fmt, IntFormat) and not fmt.signed else fmt
    if fmt.bits >= 8 and runner.chip.has(function, fmt):
        return fmt
    if fmt.bits >= 8 and function in _MODULAR and runner.chip.has(function, signed):
        return signed  # sums and products modulo a power of two are the same bits
    if fmt.bits < 8 or not runner.chip.has(function, F32):
        raise IllegalError(f"{runner.chip.target.name} has no {function} of {fmt.name}")
    return F32


def _divided(runner: GraphKernelRunner, a: GraphTensor, b: GraphTensor, shape: tuple[int, ...]) -> GraphTensor:
    """Divide a tensor by one number, which becomes a constant of the program."""
    kernel, value = runner.unary(f"div {a.format.name}", a.format)
    quotient = _quotient(runner, kernel, value, _number(int(b.codes.reshape(-1)[0]), b.format), b.format)
    codes = runner.finish(kernel, runner.rounded(kernel, quotient, a.format), a.codes, a.format)
    return GraphTensor(a.format, np.broadcast_to(codes, shape))


def _rounded(runner: GraphKernelRunner, x: GraphTensor) -> GraphTensor:
    """Round to integral numbers, ties to even."""
    kernel, value = runner.unary(f"Round {x.format.name}", x.format)
    value = kernel.convert(_wide(runner, kernel, value), runner.chip.integral(Rounding.RINT))
    return GraphTensor(x.format, runner.finish(kernel, runner.rounded(kernel, value, x.format), x.codes, x.format))


def _reduced(runner: GraphKernelRunner, node: GraphNode, x: GraphTensor, axes: GraphTensor | None) -> GraphTensor:
    """Return extremes along axes, by repeatedly taking those of two halves.

    Raises:
        IllegalError: an axis has no elements, or the format has no such operation.
    """
    rank = len(x.shape)
    given = node.attributes.get("axes", []) if axes is None else axes.array.reshape(-1).tolist()
    if not given and node.attributes.get("noop_with_empty_axes"):
        return x
    along = sorted({axis % rank for axis in given} if given else range(rank))
    others = [axis for axis in range(rank) if axis not in along]
    kept = [x.shape[axis] for axis in others]
    rows = x.codes.transpose([*others, *along]).reshape(math.prod(kept), -1)
    if not rows.size:
        raise IllegalError(f"node '{node.name}': {node.op} of an empty tensor")
    function = node.op.removeprefix("Reduce").lower()
    while rows.shape[1] > 1:
        half = -(-rows.shape[1] // 2)
        # Of an odd number the middle one is compared twice.
        first, second = (GraphTensor(x.format, part) for part in (rows[:, :half], rows[:, -half:]))
        rows = combined(runner, function, first, second, None).codes
    runner.remark("extremes along axes by halving, a program per halving; axes are gathered before the programs")
    shape = [1 if axis in along else extent for axis, extent in enumerate(x.shape)]
    return GraphTensor(x.format, rows.reshape(shape if node.attributes.get("keepdims", 1) else kept))


def _check_width(fmt: Format) -> None:
    if fmt.bits > _WIDEST:
        raise IllegalError(f"no target computes with {fmt.name}")


def _operand(runner: GraphKernelRunner, kernel: NodeKernel, name: str, fmt: Format, worked: Format) -> KernelValue:
    value = kernel.input(name, fmt)
    if worked == fmt:
        return value
    return _wide(runner, kernel, value) if worked == F32 else kernel.convert(value, runner.chip.reread(fmt, worked))


def _constant(code: int, fmt: Format, worked: Format) -> int:
    if worked != F32 or fmt == F32:
        return code
    codes = np.array([code], code_dtype(fmt))
    return int(convert_codes(codes, fmt, F32, abstract_policy(fmt, F32))[0])


def _broadcast(runner: GraphKernelRunner, tensor: GraphTensor, shape: tuple[int, ...]) -> Codes:
    if tensor.shape != shape:
        runner.remark("an operand is expanded to the shape of the result before the program, and loaded whole")
    return np.broadcast_to(tensor.codes, shape).reshape(-1)


def _wide(runner: GraphKernelRunner, kernel: NodeKernel, value: KernelValue) -> KernelValue:
    fmt = value.format
    if isinstance(fmt, IntFormat) and fmt.bits > 16:
        raise IllegalError(f"{runner.chip.target.name} cannot do this on {fmt.name}, and f32 cannot hold its values")
    return runner.widened(kernel, value)


def _back(runner: GraphKernelRunner, kernel: NodeKernel, value: KernelValue, fmt: Format) -> KernelValue:
    if isinstance(fmt, IntFormat):
        return runner.narrowed(kernel, value, fmt, fmt.minimum, fmt.maximum)
    return runner.rounded(kernel, value, fmt)


def _wrapped(
    runner: GraphKernelRunner, kernel: NodeKernel, function: str, value: KernelValue, fmt: Format
) -> KernelValue:
    """Return an f32 result as the format: floats rounded, integers modulo 2**bits.

    Raises:
        IllegalError: products that f32 does not hold.
    """
    if isinstance(fmt, FloatFormat):
        return runner.rounded(kernel, value, fmt)
    assert isinstance(fmt, IntFormat)
    if function == "mul" and 2 * fmt.bits > 24:
        raise IllegalError(f"{runner.chip.target.name} cannot multiply {fmt.name}, and f32 cannot hold its values")
    size = float(1 << fmt.bits)
    shifted = kernel.combine("add", value, f32(float(-fmt.minimum))) if fmt.minimum else value
    scaled = kernel.combine("mul", shifted, f32(1 / size))
    turns = kernel.convert(scaled, runner.chip.integral(Rounding.FLOOR))
    inside = kernel.combine("add", value, kernel.combine("mul", turns, f32(-size)))
    return runner.narrowed(kernel, inside, fmt, fmt.minimum, fmt.maximum)


def run_onnx_node(
    runner: GraphKernelRunner, graph: Graph, node: GraphNode, inputs: Sequence[GraphTensor | None]
) -> tuple[list[GraphTensor], Answer | None]:
    """Run one node by programs; return its outputs, and the answer of the lowering if it is a cast.

    Raises:
        ReadError, IllegalError, TileError: the node cannot be run; the message says why.
    """
    attributes, values = node.attributes, [*inputs, None, None, None]
    x = values[0]
    assert x is not None  # the checker of onnx asks for it
    match node.op:
        case "Identity":
            return [x], None
        case "Reshape":
            return [_reshaped(x, values[1], node)], None
        case "Cast" | "CastLike":
            like = values[1]
            dst = like.format if like else format_of(attributes["to"], f"node '{node.name}'", library())
            if TEXT in (x.format, dst):
                return [_text_cast(runner, x, dst)], None
            chosen = {name: attributes[name] for name in ("saturate", "round_mode") if name in attributes}
            tensor, cast_answer = converted(runner, x, dst, graph.spec, graph.version, chosen)
            return [tensor], cast_answer
        case "Add" | "Sub" | "Mul" | "Div" | "Min" | "Max":
            constant = _immediate(graph, node, inputs)
            operands = [tensor for tensor in inputs if tensor is not None]
            return [reduce(lambda a, b: combined(runner, node.op.lower(), a, b, constant), operands)], None
        case "ReduceMin" | "ReduceMax":
            return [_reduced(runner, node, x, values[1])], None
        case "Round":
            return [_rounded(runner, x)], None
        case "Clip":
            low, high = _bounds(x, values, bounds_of_version(graph, node))
            return [clipped(runner, x, low, high)], None
        case "QuantizeLinear":
            return [_quantised(runner, x, values, node)], None
        case "DequantizeLinear":
            return [_dequantised(runner, x, values, node)], None
        case "DynamicQuantizeLinear":
            return list(dynamically_quantised(runner, x)), None
    raise IllegalError(f"node '{node.name}': operator {node.op} is not supported")


def _text_cast(runner: GraphKernelRunner, x: GraphTensor, dst: Format) -> GraphTensor:
    """Cast between numbers and text, for which no chip has an instruction.

    Raises:
        ReadError: the operator does not define a text for `dst`.
    """
    runner.remark("cast on the host: no chip has texts")
    if x.format is not TEXT:
        return GraphTensor(TEXT, texts(strings_from_codes(x.codes, x.format)))
    return x if dst is TEXT else GraphTensor(dst, codes_from_strings(x.codes, dst))


def placed_operands(graph: Graph, node: GraphNode, inputs: Sequence[GraphTensor | None]) -> list[GraphTensor | None]:
    """Return the operands in the shapes of current operators; see `operand_shapes`.

    Raises:
        IllegalError: the node's version does not accept the shapes.
    """
    shapes = operand_shapes(graph, node, [None if tensor is None else tensor.shape for tensor in inputs])
    return [
        tensor if tensor is None or shape is None else GraphTensor(tensor.format, tensor.codes.reshape(shape))
        for tensor, shape in zip(inputs, shapes, strict=True)
    ]


def reference_outputs(graph: Graph, node: GraphNode, inputs: Sequence[Codes | None]) -> list[Codes]:
    """Return the result of onnx's reference evaluator for one node and its placed operands.

    The node may be judged as one of a newer version.

    Raises:
        IllegalError: the evaluator refuses the node.
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

    It runs the model itself, or node by node if one is judged as one of a newer version.

    Raises:
        IllegalError: the evaluator refuses the graph.
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
            return [np.asarray(output) for output in ReferenceEvaluator(model).run(None, given)]
    except Exception as error:  # the evaluator raises whatever its NumPy code raises
        raise IllegalError(f"'{what}': ONNX's reference evaluator rejects it: {error}") from None


def undefined_elements(node: GraphNode, inputs: Sequence[GraphTensor | None], result: GraphTensor) -> NDArray[np.bool_]:
    """Return a mask of the elements where the evaluator's own result is meaningless.

    For integers these are quotients beyond the input's format or int32, to which it converts them.
    For floats it uses the conversion table of Cast, which defines infinity, overflow and NaN of every format with
    NaN; for others NaN is open.
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
    operands = zip(node.inputs, inputs, strict=True)
    single = [tensor for name, tensor in operands if name in graph.constants and tensor and tensor.codes.size == 1]
    return single[-1] if single and len(node.inputs) == 2 else None


def _bounds(
    x: GraphTensor, values: Sequence[GraphTensor | None], numbers: Mapping[str, float]
) -> tuple[GraphTensor | None, GraphTensor | None]:
    """Return the bounds: inputs, or attributes up to opset 10."""
    bounds: list[GraphTensor | None] = []
    for name, given in zip(("min", "max"), values[1:3], strict=True):
        if given is None and name in numbers:
            with np.errstate(over="ignore"):
                array = np.array(numbers[name], np.float32).astype(x.array.dtype)
            bounds.append(GraphTensor.of(array, x.format))
            continue
        bounds.append(given)
    return bounds[0], bounds[1]


def _reshaped(x: GraphTensor, shape: GraphTensor | None, node: GraphNode) -> GraphTensor:
    wanted = shape_of_version(node) if shape is None else shape.array.reshape(-1).tolist()
    extents = [
        x.shape[index] if extent == 0 and not node.attributes.get("allowzero") and index < len(x.shape) else extent
        for index, extent in enumerate(wanted)
    ]
    try:
        return GraphTensor(x.format, x.codes.reshape(extents))
    except ValueError:
        raise IllegalError(f"a tensor of shape {list(x.shape)} cannot be reshaped to {wanted}") from None


def _quantised(
    runner: GraphKernelRunner, x: GraphTensor, values: Sequence[GraphTensor | None], node: GraphNode
) -> GraphTensor:
    attributes, zero_point, what = node.attributes, values[2], f"node '{node.name}'"
    dst: Format = FORMATS["u8"]
    if attributes.get("output_dtype"):
        dst = format_of(attributes["output_dtype"], what, library())
    if zero_point is not None:
        dst = zero_point.format
    if attributes.get("precision") and format_of(attributes["precision"], node.name, library()) != x.format:
        raise IllegalError(f"{what}: only the format of x is supported as precision")
    return quantised(runner, x, Scaling.of(node, values), dst, str(attributes.get("saturate", 1)))


def _dequantised(
    runner: GraphKernelRunner, x: GraphTensor, values: Sequence[GraphTensor | None], node: GraphNode
) -> GraphTensor:
    assert values[1] is not None
    dst = values[1].format
    if node.attributes.get("output_dtype"):
        dst = format_of(node.attributes["output_dtype"], f"node '{node.name}'", library())
    if isinstance(dst, IntFormat):
        raise ReadError(f"node '{node.name}': {dst.name} is not a floating-point format for a scale")
    return dequantised(runner, x, Scaling.of(node, values), dst)
