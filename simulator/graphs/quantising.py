"""QuantizeLinear, DequantizeLinear and DynamicQuantizeLinear (operator pages of onnx 1.23.2).

Scale and zero point are constants of a program. Where they differ between channels or blocks there is one program for
all elements of equal scale and zero point, which are gathered before it.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from castsim.graphs.chip import F32
from castsim.graphs.kernel import KernelValue, NodeKernel
from castsim.graphs.kernel_runner import KernelRunner, clamped, f32
from castsim.graphs.model import GraphTensor
from castsim.isa.codes import Codes
from castsim.isa.errors import IllegalError
from castsim.isa.formats import FORMATS, FloatFormat, Format, IntFormat, TaperedFormat
from castsim.isa.modes import Rounding
from castsim.numerics import code_dtype, decode_to_float64
from castsim.planning import Verdict
from castsim.planning.lowering_answers.answer import setting_text

Part = Callable[[Codes, float, float], Codes]

_U8 = FORMATS["u8"]
_RECIPROCAL = (
    "the target does not divide: multiplied by the reciprocal of the scale, which may give the neighbouring integer"
)


def quantised(
    runner: KernelRunner,
    x: GraphTensor,
    scale: GraphTensor,
    zero_point: GraphTensor | None,
    dst: Format,
    axis: int,
    block: int,
    saturate: str,
) -> GraphTensor:
    """Execute QuantizeLinear.

    Raises:
        IllegalError: shapes that do not belong together, formats that the target cannot do.
    """
    if isinstance(x.format, IntFormat):
        raise IllegalError(f"QuantizeLinear of {x.format.name}: the reference divides in f64, which no target does")
    if scale.format != x.format:
        raise IllegalError(
            f"QuantizeLinear of {x.format.name} by a scale of {scale.format.name}", legal=(x.format.name,)
        )

    def part(codes: Codes, factor: float, zero: float) -> Codes:
        kernel, value = runner.unary(f"QuantizeLinear {x.format.name} -> {dst.name}, scale {factor!r}", x.format)
        value = _quotient(runner, kernel, value, factor, scale.format)
        if not isinstance(dst, IntFormat):
            return _as_float(runner, kernel, value, codes, dst, saturate)
        inner = runner.computed_as(dst)
        value = clamped(kernel, value, dst.minimum - zero, dst.maximum - zero)
        value = kernel.convert(value, runner.chip.integral(Rounding.RINT))
        if zero:
            value = kernel.combine("add", value, f32(zero))
        value = runner.narrowed(kernel, value, inner, dst.minimum, dst.maximum)
        return runner.packed(runner.finish(kernel, value, codes, inner), inner, dst)

    return GraphTensor(dst, _by_parts(runner, x, scale, zero_point, dst, axis, block, part))


def dequantised(
    runner: KernelRunner,
    x: GraphTensor,
    scale: GraphTensor,
    zero_point: GraphTensor | None,
    dst: Format,
    axis: int,
    block: int,
) -> GraphTensor:
    """Execute DequantizeLinear.

    Raises:
        IllegalError: as `quantised`.
    """

    def part(codes: Codes, factor: float, zero: float) -> Codes:
        codes, fmt = runner.unpacked(codes, x.format)
        kernel, value = runner.unary(f"DequantizeLinear {x.format.name} -> {dst.name}, scale {factor!r}", fmt)
        value = runner.widened(kernel, value)
        if zero:
            value = kernel.combine("add", value, f32(-zero))
        value = kernel.combine("mul", value, f32(factor))
        return runner.finish(kernel, runner.rounded(kernel, value, dst), codes, dst)

    return GraphTensor(dst, _by_parts(runner, x, scale, zero_point, dst, axis, block, part))


def dynamically_quantised(runner: KernelRunner, x: GraphTensor) -> tuple[GraphTensor, GraphTensor, GraphTensor]:
    """Execute DynamicQuantizeLinear: return the quantised tensor, its scale and its zero point.

    Raises:
        IllegalError: another format than f32, NaN or no elements.
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
    return quantised(runner, x, scale, zero_point, _U8, 1, 0, "1"), scale, zero_point


def _quotient(runner: KernelRunner, kernel: NodeKernel, value: KernelValue, factor: float, fmt: Format) -> KernelValue:
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
    runner: KernelRunner,
    kernel: NodeKernel,
    value: KernelValue,
    codes: Codes,
    dst: FloatFormat | TaperedFormat,
    saturate: str,
) -> Codes:
    answered = runner.chip.planned(F32, dst, "onnx", "28", {"saturate": saturate})
    found = answered.plan
    if found.verdict is Verdict.DIFFERS and saturate == "1" and runner.chip.numbers(F32, dst) is not None:
        largest = _number(dst.max_finite_code, dst)
        runner.remark(f"no chain saturates f32 -> {dst.name} as ONNX asks: bounded by {largest:g} before the cast")
        value = runner.rounded(kernel, runner.bounded(kernel, value, f32(-largest), f32(largest)), dst)
        return runner.finish(kernel, value, codes, dst)
    if answered.chosen:
        runner.remark(f"the cast to {dst.name} needs {setting_text(answered.chosen)}: it is a program of its own")
        quotient = runner.finish(kernel, value, codes, F32)
        return runner.through(
            f"cast f32 -> {dst.name}, {found.demand.label}", quotient, F32, found.chain, dst, answered
        )
    if not found.chain:
        raise IllegalError(f"{runner.chip.target.name} has nothing that leads from f32 to {dst.name}")
    if found.verdict is Verdict.DIFFERS:
        runner.remark(f"no chain gives ONNX's f32 -> {dst.name}; the nearest one runs")
    return runner.finish(kernel, kernel.convert(value, found.chain), codes, dst)


def _extremes(runner: KernelRunner, codes: Codes) -> tuple[np.float32, np.float32]:
    """Return the smallest and the largest number, found by taking the extremes of two halves again and again."""
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
        found = runner.run(kernel, inputs)
        low, high = found["low"].astype(np.uint32), found["high"].astype(np.uint32)
    return low.view(np.float32)[0], high.view(np.float32)[0]


def _by_parts(
    runner: KernelRunner,
    x: GraphTensor,
    scale: GraphTensor,
    zero_point: GraphTensor | None,
    dst: Format,
    axis: int,
    block: int,
    part: Part,
) -> Codes:
    """Run `part` on all elements of equal scale and zero point together, and put the results in their places."""
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
        if not (np.isfinite(factor) and factor != 0):
            raise IllegalError(f"scale {factor} is not a number to multiply and divide by")
        result[where] = part(flat[where], factor, zero)
    return result.reshape(x.shape)


def _number(code: int, fmt: Format) -> float:
    return float(decode_to_float64(np.array([code], code_dtype(fmt)), fmt)[0])


def expanded(codes: Codes, shape: tuple[int, ...], axis: int, block: int, what: str) -> Codes:
    """Return a scale or zero point for every element: one for all, one per index of an axis, or one per block of it."""
    if codes.size == 1 and not block:
        return np.broadcast_to(codes.reshape(()), shape)
    place = axis + len(shape) if axis < 0 else axis
    if not 0 <= place < len(shape):
        raise IllegalError(f"{what}: the tensor has no axis {axis}", legal=[f"{-len(shape)} to {len(shape) - 1}"])
    if not block:
        if codes.shape != (shape[place],):
            raise IllegalError(f"{what} of shape {list(codes.shape)} for axis {axis} of {list(shape)}")
        return np.broadcast_to(codes.reshape([-1 if k == place else 1 for k in range(len(shape))]), shape)
    wanted = tuple(-(-extent // block) if k == place else extent for k, extent in enumerate(shape))
    if codes.shape != wanted:
        raise IllegalError(
            f"{what} of shape {list(codes.shape)} for blocks of {block} of {list(shape)}", legal=[str(list(wanted))]
        )
    return np.repeat(codes, block, place)[tuple(slice(extent) for extent in shape)]
