"""What the cast builtins must compute, element by element, by the test oracle; and which element goes where.

Value steps: docs/reference/tpc.md section 3, one function per name, without a look at how castsim emits them.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import cache, lru_cache
from itertools import pairwise

import numpy as np
import oracle_tpc
from numpy.typing import NDArray
from oracle_tpc import arithmetic_shift, convert_int, float_operation

Codes = NDArray[np.unsignedinteger]
One = Callable[[int], int]

ZERO, LARGEST_U16 = 0x00000000, 0x477FFF00
"""0.0 and 65535.0 in f32."""
DIRECT = ("gaudi2",)
"""Generations that convert f32 and bf16 to unsigned integers in one step; the others go through signed ones."""


def _bits(code: int) -> np.float32:
    return np.array([code], "<u4").view(np.float32)[0]


def largest(a: int, b: int) -> int:
    """MAX.f32: the first if it is not smaller; with a NaN the second (docs/reference/tpc.md section 5.1)."""
    return a if _bits(a) >= _bits(b) else b


def smallest(a: int, b: int) -> int:
    """MIN.f32, likewise."""
    return a if _bits(a) <= _bits(b) else b


def product(a: int, b: int) -> int:
    return float_operation("mul", a, b, "f32", "RHNE", flush=True)


def widened_half(code: int) -> int:
    """f16 to f32: exact; the payload of a NaN moves up with its place."""
    magnitude = code & 0x7FFF
    if magnitude > 0x7C00:
        return (code & 0x8000) << 16 | 0x7F800000 | (magnitude & 0x3FF) << 13
    return int(np.array([code], "<u2").view(np.float16).astype(np.float32).view(np.uint32)[0])


def one(name: str, generation: str, scalar: int, mode: str = "RHNE") -> One:
    """Return what a builtin makes of one source code; `scalar` is the shift, or the bits of the scale."""
    direct = generation in DIRECT

    def convert(code: int, src: str, dst: str) -> int:
        return oracle_tpc.convert(code, src, dst, mode)

    def through(code: int, *types: str) -> int:
        for src, dst in pairwise(types):
            code = convert(code, src, dst)
        return code

    def f32_to_u16(code: int) -> int:
        if direct:
            return convert(code, "f32", "u16")
        return convert_int(through(code, "f32", "i32", "u32"), "u32", "u16", 0, "RHNE")

    def scaled_to_u16(code: int) -> int:
        return f32_to_u16(largest(product(code, scalar), ZERO))

    def clamped_to_u16(code: int) -> int:
        return f32_to_u16(smallest(largest(code, ZERO), LARGEST_U16))

    def shifted(code: int) -> int:
        return arithmetic_shift(convert(code, "i16", "i32"), scalar, "i32", half_up=True)

    def narrowed(src: str, dst: str) -> One:
        return lambda code: convert_int(code, src, dst, scalar, "RHNE")

    def to_u8(src: str) -> One:
        return lambda code: convert(code, src, "u8") if direct else through(code, src, "i16", "u8")

    functions: dict[str, One] = {
        "i16_to_i8_lin_order": lambda code: convert_int(code, "i16", "i8", 0, "RHNE"),
        "u16_to_u8_lin_order": lambda code: convert_int(code, "u16", "u8", 0, "RHNE"),
        "i32_to_i16_lin_order": narrowed("i32", "i16"),
        "lin_i32_to_i16_swizzle_order": narrowed("i32", "i16"),
        "f32_to_i16_lin_order": lambda code: convert(product(code, scalar), "f32", "i16"),
        "f32_to_u16_lin_order": scaled_to_u16,
        "f32_to_u16_lin_order_without_scale": clamped_to_u16,
        "lin_f32_to_u16_swizzle_order": f32_to_u16,
        "f32_to_u8_lin_order": to_u8("f32"),
        "bf16_to_u8_lin_order": to_u8("bf16"),
        "lin_f16_to_i8_swizzle_order": lambda code: convert(code, "f16", "i8"),
        "i8_to_i16_lin_order": lambda code: convert(code, "i8", "i16"),
        "u8_to_i16_lin_order": lambda code: code,
        "u8_to_u16_lin_order": lambda code: code,
        "u8_to_32bits_lin_order": lambda code: code,
        "i16_to_i32_lin_order": shifted,
        "lin_i16_to_i32_swizzle_order": shifted,
        "i16_to_i32_lin_order_no_shift": lambda code: convert(code, "i16", "i32"),
        "u16_to_f32_lin_order": lambda code: product(convert(code, "i32", "f32"), scalar),
        "u16_to_f32_lin_order_without_scale": lambda code: convert(code, "i32", "f32"),
        "f16_to_f32": widened_half,
    }
    return cache(functions[name.removeprefix("__builtin_cast_")])


@lru_cache(maxsize=128)
def _results(name: str, direct: bool, scalar: int, mode: str, codes: bytes) -> Codes:
    function = one(name, DIRECT[0] if direct else "", scalar, mode)
    return np.array([function(code) for code in np.frombuffer(codes, np.uint32).tolist()], np.uint32)


def results(name: str, generation: str, scalar: int, mode: str, codes: NDArray[np.uint32]) -> Codes:
    """Return what a builtin makes of many source codes; generations that agree are computed once."""
    direct = generation in DIRECT and "_to_u" in name
    return _results(name, direct, scalar, mode, codes.tobytes())


def ordered(found: Codes, order: str, sources: int, targets: int) -> Codes:
    """Put the results of consecutive source elements, a row per call, where a builtin leaves them.

    `sources` and `targets` are numbers of registers. Interleaved: dst[r * i + k] = src_k[i]; split: dst_k[i] =
    src[r * i + k] (docs/reference/tpc.md section 3, result orders of the table).
    """
    if order == "linear":
        return found
    calls, lanes = found.shape
    out = np.empty_like(found)
    for element in range(lanes):
        if order == "interleaved":
            k, i = divmod(element, lanes // sources)
            out[:, sources * i + k] = found[:, element]
        else:
            i, k = divmod(element, targets)
            out[:, k * (lanes // targets) + i] = found[:, element]
    assert out.shape == (calls, lanes)
    return out
