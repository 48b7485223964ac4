"""Clip, Add and Mul: native where the target has the format, else in f32, which is exact for what it takes here.

f32 has more than twice the significand of f16 and bf16 and two bits beyond, so that rounding its sum or product once
more gives the result rounded once. Integers wrap, as NumPy's do.
"""

from __future__ import annotations

import numpy as np

from castsim.graphs.bench import Bench, extremes, f32
from castsim.graphs.chip import F32
from castsim.graphs.kernel import Kernel, Value
from castsim.graphs.model import Tensor
from castsim.isa.codes import Codes
from castsim.isa.errors import IllegalError
from castsim.isa.formats import FORMATS, FloatFormat, Format, IntFormat
from castsim.isa.modes import Rounding
from castsim.numerics import abstract_policy, code_dtype, convert_codes, value_of

_WIDEST = 32


def clipped(bench: Bench, x: Tensor, low: Tensor | None, high: Tensor | None) -> Tensor:
    """Bound elements; a lower bound above the upper one gives the upper one.

    Raises:
        IllegalError: a format that the target does not compute with.
    """
    given = [(function, bound) for function, bound in (("max", low), ("min", high)) if bound is not None]
    if not given:
        return x
    _check_width(x.format)
    kernel, value = bench.unary("Clip", x.format)
    ends = [None if bound is None else int(bound.codes.reshape(-1)[0]) for bound in (low, high)]
    if all(bench.chip.has(function, x.format, constant=True) for function, _ in given):
        value = bench.bounded(kernel, value, *ends)
        return Tensor(x.format, bench.finish(kernel, value, x.codes, x.format))
    codes, fmt = bench.unpacked(x.codes, x.format)
    kernel, value = bench.unary("Clip", fmt)
    wide = [None if end is None else f32(float(value_of(end, x.format))) for end in ends]
    number = _wide(bench, kernel, value)
    # The cast back may lose NaN too, so NaN is put back behind it.
    found = bench.nan_kept(kernel, _back(bench, kernel, extremes(kernel, number, *wide), fmt), value, number)
    return Tensor(x.format, bench.packed(bench.finish(kernel, found, codes, fmt), fmt, x.format))


def combined(bench: Bench, function: str, a: Tensor, b: Tensor, constant: Tensor | None) -> Tensor:
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
    if bench.chip.has(function, fmt):
        worked = fmt
    elif bench.chip.has(function, signed):
        worked = signed  # sums and products modulo a power of two are the same bits
    else:
        worked = F32
    if a is constant:
        a, b = b, a
    if fmt.bits < 8:
        raise IllegalError(f"{bench.chip.target.name} has no {function} of {fmt.name}")
    kernel = Kernel(f"{function} {fmt.name}" + ("" if worked == fmt else f" as {worked.name}"))
    first = _operand(bench, kernel, "src", fmt, worked)
    inputs = {"src": _broadcast(bench, a, shape)}
    if constant is None:
        second: Value | int = _operand(bench, kernel, "other", fmt, worked)
        inputs["other"] = _broadcast(bench, b, shape)
    else:
        second = _constant(int(constant.codes.reshape(-1)[0]), fmt, worked)
    value = kernel.combine(function, first, second)
    if worked == F32 and fmt != F32:
        value = _wrapped(bench, kernel, function, value, fmt)
    elif worked != fmt:
        value = kernel.convert(value, bench.chip.reread(worked, fmt))
    kernel.output("dst", value)
    found = bench.run(kernel, inputs)["dst"]
    return Tensor(fmt, found.astype(code_dtype(fmt)).reshape(shape))


def _check_width(fmt: Format) -> None:
    if fmt.bits > _WIDEST:
        raise IllegalError(f"no target computes with {fmt.name}")


def _operand(bench: Bench, kernel: Kernel, name: str, fmt: Format, worked: Format) -> Value:
    value = kernel.input(name, fmt)
    if worked == fmt:
        return value
    return _wide(bench, kernel, value) if worked == F32 else kernel.convert(value, bench.chip.reread(fmt, worked))


def _constant(code: int, fmt: Format, worked: Format) -> int:
    if worked != F32 or fmt == F32:
        return code
    codes = np.array([code], code_dtype(fmt))
    return int(convert_codes(codes, fmt, F32, abstract_policy(fmt, F32))[0])


def _broadcast(bench: Bench, tensor: Tensor, shape: tuple[int, ...]) -> Codes:
    if tensor.shape != shape:
        bench.remark("an operand is expanded to the shape of the result before the program, and loaded whole")
    return np.broadcast_to(tensor.codes, shape).reshape(-1)


def _wide(bench: Bench, kernel: Kernel, value: Value) -> Value:
    fmt = value.format
    if isinstance(fmt, IntFormat) and fmt.bits > 16:
        raise IllegalError(
            f"{bench.chip.target.name} has no such operation on elements of {fmt.name}, and f32 does not hold them"
        )
    return bench.widened(kernel, value)


def _back(bench: Bench, kernel: Kernel, value: Value, fmt: Format) -> Value:
    if isinstance(fmt, IntFormat):
        return bench.narrowed(kernel, value, fmt, fmt.minimum, fmt.maximum)
    return bench.rounded(kernel, value, fmt)


def _wrapped(bench: Bench, kernel: Kernel, function: str, value: Value, fmt: Format) -> Value:
    """Return an f32 result as the format: floats rounded, integers modulo 2**bits.

    Raises:
        IllegalError: products that f32 does not hold.
    """
    if isinstance(fmt, FloatFormat):
        return bench.rounded(kernel, value, fmt)
    assert isinstance(fmt, IntFormat)
    if function == "mul" and 2 * fmt.bits > 24:
        raise IllegalError(f"{bench.chip.target.name} has no products of {fmt.name}, and f32 does not hold them")
    size = float(1 << fmt.bits)
    shifted = kernel.combine("add", value, f32(float(-fmt.minimum))) if fmt.minimum else value
    scaled = kernel.combine("mul", shifted, f32(1 / size))
    turns = kernel.convert(scaled, bench.chip.integral(Rounding.FLOOR))
    inside = kernel.combine("add", value, kernel.combine("mul", turns, f32(-size)))
    return bench.narrowed(kernel, inside, fmt, fmt.minimum, fmt.maximum)
