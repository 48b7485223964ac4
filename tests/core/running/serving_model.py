"""What the kernels of programs/kernels/serving must put out, to the bit.

The formulas follow the kernels operation by operation: float32, exponentials and logarithms rounded from double
precision, sums of rows in the order of `work_model`.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import NamedTuple

import ml_dtypes
import numpy as np
from kit.work_model import Model

Arrays = Mapping[str, np.ndarray]
Numbers = Mapping[str, float]


class Steps:
    """Float32 arithmetic of a target, one rounding an operation."""

    def __init__(self, target: str) -> None:
        self.target = target

    def exp(self, values: np.ndarray) -> np.ndarray:
        return np.exp(values.astype(np.float64)).astype(np.float32)

    def log(self, values: np.ndarray) -> np.ndarray:
        return np.log(values.astype(np.float64)).astype(np.float32)

    def row_sum(self, values: np.ndarray) -> np.ndarray:
        return Model("f32", self.target).row_reduction("add", np.asarray(values, np.float32))[:, None]


Formula = Callable[[Arrays, Numbers, Steps], Arrays]


def nearest_bf16(values: np.ndarray) -> np.ndarray:
    return np.asarray(values, np.float32).astype(ml_dtypes.bfloat16)


def nearest_f16(values: np.ndarray) -> np.ndarray:
    return np.asarray(values, np.float32).astype(np.float16)


def nearest_i8(values: np.ndarray) -> np.ndarray:
    """By way of f16; both round to nearest, ties to even, and the second clamps."""
    halves = np.clip(np.asarray(values, np.float32), -65504, 65504).astype(np.float16)
    return np.clip(np.rint(halves.astype(np.float64)), -128, 127).astype(np.int8)


def masked_softmax(given: Arrays, numbers: Numbers, how: Steps) -> Arrays:
    count, keys, scale = int(numbers["count"]), int(numbers["keys"]), np.float32(numbers["scale"])
    p, stats = np.zeros((16 * count, keys), ml_dtypes.bfloat16), np.zeros((count, 32), np.float32)
    for s in range(count):
        cols = min(int(given["lens"][s]), keys)
        if cols <= 0:
            continue
        block = 16 * int(given["slots"][s])
        scores = given["scores"][block : block + 16, :cols].astype(np.float32)
        scaled = np.full((16, keys), -np.inf, np.float32)
        scaled[:, :cols] = scores * scale + given["mask"][s, :cols]
        largest = scaled.max(axis=1, keepdims=True)
        e = how.exp(scaled - largest)
        total = how.row_sum(e)
        p[16 * s : 16 * s + 16] = nearest_bf16(e / total)
        stats[s] = np.concatenate([largest[:, 0], total[:, 0]])
    return {"p": p, "stats": stats}


def online_softmax(given: Arrays, numbers: Numbers, how: Steps) -> Arrays:
    batch, columns, scale = int(numbers["batch"]), int(numbers["columns"]), np.float32(numbers["scale"])
    out, lse = np.zeros((16 * batch, 128), ml_dtypes.bfloat16), np.full((batch, 16), -np.inf, np.float32)
    table = given["table"].reshape(batch, columns)
    for b in range(batch):
        m, total, o = (
            np.full((16, 1), -np.inf, np.float32),
            np.zeros((16, 1), np.float32),
            np.zeros((16, 128), np.float32),
        )
        many = -(-int(given["lens"][b]) // 128)
        for j in range(many):
            rows = slice(16 * int(table[b, j]), 16 * int(table[b, j]) + 16)
            s = np.full((16, 128), -np.inf, np.float32)
            cols = min(int(given["lens"][b]) - 128 * j, 128)
            s[:, :cols] = given["scores"][rows, :cols].astype(np.float32) * scale
            top = s.max(axis=1, keepdims=True)
            new = np.maximum(m, top)
            kept, weight = how.exp(m - new), how.exp(top - new)
            total = total * kept + how.row_sum(how.exp(s - new))
            o = o * kept + given["values"][rows].astype(np.float32) * weight
            m = new
        if many > 0:
            out[16 * b : 16 * b + 16] = nearest_bf16(o / total)
            lse[b] = (m + how.log(total))[:, 0]
    return {"out": out, "lse": lse}


def rotary_gather(given: Arrays, numbers: Numbers, how: Steps) -> Arrays:
    tokens, heads = int(numbers["tokens"]), int(numbers["heads"])
    p = given["positions"]
    x = given["x"].reshape(tokens, heads, 64).astype(np.float32)
    cos, sin = (given[name].astype(np.float32)[p][:, None] for name in ("cos", "sin"))
    signed = sin * np.tile(np.array([-1, 1], np.float32), 32)
    neighbours = x.reshape(tokens, heads, 32, 2)[..., ::-1].reshape(x.shape)
    return {"out": nearest_bf16(x * cos + neighbours * signed).reshape(-1, 64)}


def cache_write_i8(given: Arrays, numbers: Numbers, how: Steps) -> Arrays:
    x, capacity = given["kv"].astype(np.float32), int(numbers["capacity"])
    cache, scales = given["cache"].copy(), given["scales"].copy()
    assert len(cache) == capacity
    top = np.maximum(np.abs(x).max(axis=1), np.float32(numbers["least"])) * np.float32(1 / 127)
    scaled = x / top[:, None]
    for t, slot in enumerate(given["slots"]):
        if slot >= 0:
            cache[slot] = nearest_i8(scaled[t])
            scales[slot] = top[t]
    return {"cache": cache, "scales": scales}


def expert_dispatch(given: Arrays, numbers: Numbers, how: Steps) -> Arrays:
    total, experts = int(numbers["total"]), int(numbers["experts"])
    rows = given["x"].astype(np.float32)[given["index"]] * given["weights"].astype(np.float32)[:, None]
    y = np.zeros((total, 256), ml_dtypes.bfloat16)
    sums = np.zeros((experts, 256), np.float32)
    for e in range(experts):
        first = int(given["starts"][e])
        for a in range(first, first + int(given["counts"][e])):
            y[a] = nearest_bf16(rows[a])
            sums[e] = sums[e] + rows[a]
    return {"y": y, "sums": sums.astype(np.float32)}


def transposed_cache(given: Arrays, numbers: Numbers, how: Steps) -> Arrays:
    keys, width = int(numbers["keys"]), int(numbers["width"])
    out = np.zeros((64, width), np.float16)
    pages = given["cache"].reshape(-1, 32, 64).astype(np.float32) * given["scales"].astype(np.float32)[:, None, None]
    for key in range(keys):
        out[:, key] = nearest_f16(pages[given["table"][key // 32], key % 32] + 0)  # copied by adding 0: no -0 is left
    return {"out": out}


def topk_routing(given: Arrays, numbers: Numbers, how: Steps) -> Arrays:
    chosen = int(numbers["chosen"])
    s = given["logits"].astype(np.float32) + given["bias"].astype(np.float32)
    order = np.argsort(-s, axis=1, kind="stable")[:, :chosen].astype(np.int32)
    weights = np.take_along_axis(s, order, axis=1) * np.float32(numbers["scale"])
    return {"ids": order, "weights": weights.astype(np.float32)}


def norm_quantise(given: Arrays, numbers: Numbers, how: Steps) -> Arrays:
    eps, top = (np.float32(numbers[name]) for name in ("eps", "top"))
    h = given["x"].astype(np.float32) + given["residual"].astype(np.float32)
    inverse = np.float32(1) / np.sqrt(how.row_sum(h * h) * np.float32(1 / 512) + eps)
    y = h * inverse * given["gamma"].astype(np.float32)
    scale = np.maximum(np.abs(y).max(axis=1, keepdims=True), np.float32(1e-12)) / top
    q = np.clip(y / scale, -top, top).astype(np.float32).astype(ml_dtypes.float8_e4m3fn)
    return {"sum": h.astype(np.float32), "q": q, "scales": scale.T.astype(np.float32)}


def gated_activation(given: Arrays, numbers: Numbers, how: Steps) -> Arrays:
    both = given["both"].astype(np.float32)
    gate, up = both[:, :256], both[:, 256:]
    scales = given["scales"].astype(np.float32)[given["experts"]].repeat(16)[: len(both), None]
    scaled = gate / (how.exp(-gate) + np.float32(1)) * up * scales
    return {"out": nearest_i8(np.clip(scaled, -127, 127))}


def combine_experts(given: Arrays, numbers: Numbers, how: Steps) -> Arrays:
    tokens, chosen = int(numbers["tokens"]), int(numbers["chosen"])
    total = given["shared"].astype(np.float32) * np.float32(numbers["alpha"])
    routes, weights = (given[name].reshape(tokens, chosen) for name in ("route", "weights"))
    for t in range(tokens):
        for r, weight in zip(routes[t], weights[t], strict=True):
            if r >= 0:
                factor = np.float32(given["scales"][r]) * np.float32(weight)
                total[t] = total[t] + given["y"][r].astype(np.float32) * factor
    return {"out": nearest_bf16(total)}


class Kernel(NamedTuple):
    target: str
    formula: Formula


KERNELS = {
    **{
        formula.__name__: Kernel("a2a3", formula)
        for formula in (masked_softmax, rotary_gather, cache_write_i8, expert_dispatch, transposed_cache)
    },
    **{
        formula.__name__: Kernel("a5", formula)
        for formula in (online_softmax, topk_routing, norm_quantise, gated_activation, combine_experts)
    },
}
"""The kernels of programs/kernels/serving."""
