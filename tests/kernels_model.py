"""What the sample kernels must put out: their formulas in NumPy, step by step in float32, and their casts.

The order of sums is that of `work_model`; everything else is plain NumPy. Casts: f32 to bf16 rounds ties away by
adding half of the dropped field to the magnitude, f32 to f16 is NumPy's, f16 to int8 rounds ties to even and clamps,
f32 to e4m3fn is that of ml_dtypes.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping

import ml_dtypes
import numpy as np
from work_model import Model

Arrays = Mapping[str, np.ndarray]
F32 = np.float32


def widened(codes: np.ndarray) -> np.ndarray:
    return (codes.astype(np.uint32) << 16).view(F32)


def bf16_ties_away(values: np.ndarray) -> np.ndarray:
    """bf16 codes of finite numbers far from overflow."""
    assert np.all(np.abs(values) < 1e30)
    return ((values.view(np.uint32).astype(np.uint64) + 0x8000) >> 16).astype(np.uint16)


def bf16_ties_to_even(values: np.ndarray) -> np.ndarray:
    """bf16 codes of float64 numbers, by ml_dtypes from float32; such numbers are not ties of a second rounding."""
    return values.astype(F32).astype(ml_dtypes.bfloat16).view(np.uint16)


def exponential(values: np.ndarray) -> np.ndarray:
    return np.exp(values.astype(np.float64)).astype(F32)


def softmax_prepare(inputs: Arrays, target: str, scale: float) -> Arrays:
    scores = np.full((64, 512), -np.inf, F32)
    scores[:, :500] = inputs["scores"] * F32(scale)
    largest = scores.max(axis=1)
    p = bf16_ties_away(exponential(scores - largest[:, None]))
    model = Model("f32", target)
    return {"p": p, "row_max": largest[None], "row_sum": model.row_reduction("add", widened(p))[None]}


def rms_norm(inputs: Arrays, target: str, eps: float) -> Arrays:
    x, model = widened(inputs["src"]), Model("f32", target)
    total = np.zeros(32, F32)
    for start in range(0, 2048, 256):
        chunk = x[:, start : start + 256]
        total = total + model.row_reduction("add", chunk * chunk)
    inverse = F32(1) / np.sqrt(total * F32(1 / 2048) + F32(eps))
    return {"y": bf16_ties_away(x * inverse[:, None] * inputs["gamma"])}


def rotary_cache(inputs: Arrays, target: str, position: int) -> Arrays:
    k = inputs["k"].reshape(32, 8, 2, 64)
    cos, sin = inputs["cos"][:, None], inputs["sin"][:, None]
    low, high = k[:, :, 0], k[:, :, 1]
    turned = np.stack((low * cos - high * sin, high * cos + low * sin), axis=2).reshape(32, 1024)
    cache = inputs["cache"].copy() if "cache" in inputs else np.zeros((256, 1024), np.uint16)
    cache[position : position + 32] = bf16_ties_away(np.ascontiguousarray(turned))
    return {"cache": cache}


def _scaled_rows(inputs: Arrays, top: float) -> tuple[np.ndarray, np.ndarray]:
    x = widened(inputs["src"])
    scales = np.maximum(np.abs(x).max(axis=1), F32(1e-12)) / F32(top)
    return np.clip(x * (F32(1) / scales)[:, None], F32(-top), F32(top)), scales[None]


def quantise_rows_i8(inputs: Arrays, target: str) -> Arrays:
    scaled, scales = _scaled_rows(inputs, 127)
    rounded = np.rint(scaled.astype(np.float16).astype(np.float64))
    return {"q_out": np.clip(rounded, -128, 127).astype(np.int8), "scales": scales}


def quantise_rows_fp8(inputs: Arrays, target: str) -> Arrays:
    scaled, scales = _scaled_rows(inputs, 448)
    return {"q_out": scaled.astype(ml_dtypes.float8_e4m3fn).view(np.uint8), "scales": scales}


KERNELS: dict[str, Callable[..., Arrays]] = {
    "softmax_prepare": softmax_prepare, "rms_norm": rms_norm, "rotary_cache": rotary_cache,
    "quantise_rows_i8": quantise_rows_i8, "quantise_rows_fp8": quantise_rows_fp8,
}  # fmt: skip
ARGUMENTS: dict[str, dict[str, float]] = {
    "softmax_prepare": {"scale": 0.125},
    "rms_norm": {"eps": 1e-6},
    "rotary_cache": {"position": 40},
}
FILES = {
    "a2a3": {name: f"kernels/{name}_a2a3" for name in KERNELS if name != "quantise_rows_fp8"},
    "a5": {name: f"kernels/{name}_a5" for name in KERNELS},
}
"""Target -> kernel -> program file, without its ending."""
