"""What the kernels that quantise, dequantise and take exponentials put out, code by code in exact arithmetic.

Rules: docs/reference/tpc.md sections 2.6 (order of packed stores), 5 (conversions), 5.1 and 5.3 (sums and products),
5.2 (rounding to integral values). Arrays hold the codes of the inputs; every function gives those of the outputs.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial

import numpy as np
from numpy.typing import NDArray
from oracle_tpc import convert, float_operation, fused, nearby

Codes = NDArray[np.unsignedinteger]

INVERSE, ZERO = 0x3FA28F5C, 0xC0400000
"""Of the quantisation: 1 / scale, and the zero point, -3."""
SCALE, OFFSET = 0x3D4CCCCD, 0xBFA66666
"""Of the dequantisation: scale, and -zero * scale."""
GAIN, LARGEST = 0x40400000, 240.0
"""Of the quantisation to f8_143: the factor, and the largest value of the format."""

LOG2E, HALF, ONE, INFINITE = 0x3FB8AA3B, 0x3F000000, 0x3F800000, 0x7F800000
UPPER_LN2, LOWER_LN2 = 0x3F318000, 0xB95E8083
POLYNOMIAL = (0x39506967, 0x3AB743CE, 0x3C088908, 0x3D2AA9C1, 0x3E2AAAAA, 0x3F000000)
SMALLEST, BIGGEST = -87.33599853515625, 88.72200012207031
"""The arguments from which on the exponential is 0 or infinite: 0xc2aeac08, 0x42b171aa."""

_fused: Callable[[int, int, int], int] = partial(fused, name="f32", wide="f32", mode="RHNE")
_less: Callable[[int, int, int], int] = partial(fused, name="f32", wide="f32", mode="RHNE", negate=True)
_float = partial(float_operation, name="f32", mode="RHNE", flush=True)


def each(function: Callable[[int], int], codes: Codes, dtype: str) -> Codes:
    """Apply a function of one code to all of them."""
    return np.array([function(int(code)) for code in codes.ravel()], dtype).reshape(codes.shape)


def quantised(x: Codes) -> Codes:
    """i8 from f32: zero + x * inverse rounded once to f32, then to an integer."""
    return each(lambda code: convert(_fused(code, INVERSE, ZERO), "f32", "i8", "RHNE"), x, "u1")


def dequantised(x: Codes) -> Codes:
    """f32 from i8."""
    return each(lambda code: _fused(convert(code, "i8", "f32", "RHNE"), SCALE, OFFSET), x, "u4")


def halved(x: Codes) -> Codes:
    """bf16 from f32."""
    return each(lambda code: convert(code, "f32", "bf16", "RHNE"), x, "u2")


def scaled_f8(x: Codes) -> Codes:
    """f8_143 from bf16: times the factor in f32, clamped, NaN taken for the largest value."""

    def one(code: int) -> int:
        product = _float("mul", code << 16, GAIN)
        value = np.array(product, "u4").view("f4")
        kept = value if value < LARGEST else np.float32(LARGEST)  # MIN: the second operand with NaN
        kept = kept if kept >= -LARGEST else np.float32(-LARGEST)
        return convert(int(np.asarray(kept, "f4").view("u4")), "f32", "f8_143", "RHNE")

    return each(one, x, "u1")


def exponential(x: Codes) -> Codes:
    """exp of f32 as Cephes has it."""
    return each(_exponential, x, "u4")


def _exponential(x: int) -> int:
    value = np.array(x, "u4").view("f4")
    if np.isnan(value):
        return x
    if value >= BIGGEST:
        return INFINITE
    if value <= SMALLEST:
        return 0
    z = nearby(_fused(x, LOG2E, HALF), "f32", "RD")
    r = _less(z, LOWER_LN2, _less(z, UPPER_LN2, x))
    p = POLYNOMIAL[0]
    for coefficient in POLYNOMIAL[1:]:
        p = _fused(p, r, coefficient)
    y = _fused(p, _float("mul", r, r), _float("add", r, ONE))
    exponent = convert(z, "f32", "i32", "RHNE")
    return (y + (exponent << 23)) & 0xFFFFFFFF


KERNELS: dict[str, tuple[str, tuple[int, int], str, tuple[int, int], Callable[[Codes], Codes]]] = {
    "f32_i8_quantise": ("f32", (16, 64), "u1", (4, 256), quantised),
    "i8_f32_dequantise": ("i8", (4, 256), "u4", (16, 64), dequantised),
    "f32_bf16_packed": ("f32", (16, 64), "u2", (8, 128), halved),
    "f32_exp": ("f32", (8, 64), "u4", (8, 64), exponential),
    "bf16_f8_143_parts": ("bf16", (6, 128), "u1", (6, 128), scaled_f8),
}
"""Kind -> format and shape of the input, width and shape of the output, element by element in order."""


def outputs(kind: str, generation: str, x: Codes) -> Codes:
    """Return the codes of a kernel's output; on Goya the four lanes of a quantised row come from four rows."""
    _, _, _, shape, function = KERNELS[kind]
    found = function(x)
    if kind == "f32_i8_quantise" and generation == "goya":
        found = found.reshape(-1, 4, 64).transpose(0, 2, 1)
    return found.reshape(shape)
