"""Clip, Add and Mul: native where the target has the format, else in f32, which is exact for what it takes here.

f32 has more than twice the significand of f16 and bf16 and two bits beyond, so that rounding its sum or product once
more gives the result rounded once. Integers wrap, as NumPy's do.
"""

from __future__ import annotations

import numpy as np

from castsim.graphs.chip import F32
from castsim.graphs.kernel import KernelValue, NodeKernel
from castsim.graphs.kernel_runner import KernelRunner, extremes, f32
from castsim.graphs.model import GraphTensor
from castsim.isa.codes import Codes
from castsim.isa.errors import IllegalError
from castsim.isa.formats import FORMATS, FloatFormat, Format, IntFormat
from castsim.isa.modes import Rounding
from castsim.numerics import abstract_policy, code_dtype, convert_codes, value_of

_WIDEST = 32


def clipped(runner: KernelRunner, x: GraphTensor, low: GraphTensor | None, high: GraphTensor | None) -> GraphTensor:
    """Bound elements; a lower bound above the upper one gives the upper one.

    Raises:
        IllegalError: a format that the target does not compute with.
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
    found = runner.nan_kept(kernel, _back(runner, kernel, extremes(kernel, number, *wide), fmt), value, number)
    return GraphTensor(x.format, runner.packed(runner.finish(kernel, found, codes, fmt), fmt, x.format))


def combined(
    runner: KernelRunner, function: str, a: GraphTensor, b: GraphTensor, constant: GraphTensor | None
) -> GraphTensor:
    """Add or multiply two tensors of one format, broadcast against each other.

    `constant` is one of them if it holds a single number known beforehand: an immediate, not loaded.

    Raises:
        IllegalError: the target has no such operation, nor one that gives the same results.
    """
    fmt = a.format
    _check_width(fmt)
    try:
        shape = np.broadcast_shapes(a.shape, b.shape)
    except ValueError:
        raise IllegalError(f"shapes {list(a.shape)} and {list(b.shape)} do not broadcast") from None
    signed = FORMATS[f"i{fmt.bits}"] if isinstance(fmt, IntFormat) and not fmt.signed else fmt
    if runner.chip.has(function, fmt):
        worked = fmt
    elif runner.chip.has(function, signed):
        worked = signed  # sums and products modulo a power of two are the same bits
    else:
        worked = F32
    if a is constant:
        a, b = b, a
    if fmt.bits < 8:
        raise IllegalError(f"{runner.chip.target.name} has no {function} of {fmt.name}")
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
    found = runner.run(kernel, inputs)["dst"]
    return GraphTensor(fmt, found.astype(code_dtype(fmt)).reshape(shape))


def _check_width(fmt: Format) -> None:
    if fmt.bits > _WIDEST:
        raise IllegalError(f"no target computes with {fmt.name}")


def _operand(runner: KernelRunner, kernel: NodeKernel, name: str, fmt: Format, worked: Format) -> KernelValue:
    value = kernel.input(name, fmt)
    if worked == fmt:
        return value
    return _wide(runner, kernel, value) if worked == F32 else kernel.convert(value, runner.chip.reread(fmt, worked))


def _constant(code: int, fmt: Format, worked: Format) -> int:
    if worked != F32 or fmt == F32:
        return code
    codes = np.array([code], code_dtype(fmt))
    return int(convert_codes(codes, fmt, F32, abstract_policy(fmt, F32))[0])


def _broadcast(runner: KernelRunner, tensor: GraphTensor, shape: tuple[int, ...]) -> Codes:
    if tensor.shape != shape:
        runner.remark("an operand is expanded to the shape of the result before the program, and loaded whole")
    return np.broadcast_to(tensor.codes, shape).reshape(-1)


def _wide(runner: KernelRunner, kernel: NodeKernel, value: KernelValue) -> KernelValue:
    fmt = value.format
    if isinstance(fmt, IntFormat) and fmt.bits > 16:
        raise IllegalError(
            f"{runner.chip.target.name} has no such operation on elements of {fmt.name}, and f32 does not hold them"
        )
    return runner.widened(kernel, value)


def _back(runner: KernelRunner, kernel: NodeKernel, value: KernelValue, fmt: Format) -> KernelValue:
    if isinstance(fmt, IntFormat):
        return runner.narrowed(kernel, value, fmt, fmt.minimum, fmt.maximum)
    return runner.rounded(kernel, value, fmt)


def _wrapped(runner: KernelRunner, kernel: NodeKernel, function: str, value: KernelValue, fmt: Format) -> KernelValue:
    """Return an f32 result as the format: floats rounded, integers modulo 2**bits.

    Raises:
        IllegalError: products that f32 does not hold.
    """
    if isinstance(fmt, FloatFormat):
        return runner.rounded(kernel, value, fmt)
    assert isinstance(fmt, IntFormat)
    if function == "mul" and 2 * fmt.bits > 24:
        raise IllegalError(f"{runner.chip.target.name} has no products of {fmt.name}, and f32 does not hold them")
    size = float(1 << fmt.bits)
    shifted = kernel.combine("add", value, f32(float(-fmt.minimum))) if fmt.minimum else value
    scaled = kernel.combine("mul", shifted, f32(1 / size))
    turns = kernel.convert(scaled, runner.chip.integral(Rounding.FLOOR))
    inside = kernel.combine("add", value, kernel.combine("mul", turns, f32(-size)))
    return runner.narrowed(kernel, inside, fmt, fmt.minimum, fmt.maximum)
