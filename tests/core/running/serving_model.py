"""What the kernels of programs/kernels/serving must put out, written once for two arithmetics.

`Steps` follows the kernels operation by operation: float32, exponentials and logarithms rounded from double precision,
sums of rows in the order of `work_model`. Its results are the kernels' to the bit. `Exact` is float64 and knows no
order: what it gives is the mathematics of the formulas, which results may leave by the rounding of their steps.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass

import ml_dtypes
import numpy as np
from kit.work_model import Model

Arrays = Mapping[str, np.ndarray]
Numbers = Mapping[str, float]


class Steps:
    """Float32 arithmetic of a target, one rounding an operation."""

    def __init__(self, target: str) -> None:
        self.target = target
        self.real = np.float32

    def exp(self, values: np.ndarray) -> np.ndarray:
        return np.exp(values.astype(np.float64)).astype(self.real)

    def log(self, values: np.ndarray) -> np.ndarray:
        return np.log(values.astype(np.float64)).astype(self.real)

    def row_sum(self, values: np.ndarray) -> np.ndarray:
        """Sum of each row, as a column."""
        return Model("f32", self.target).row_reduction("add", np.asarray(values, np.float32))[:, None]


class Exact(Steps):
    """Float64 arithmetic."""

    def __init__(self) -> None:
        super().__init__("")
        self.real = np.float64

    def row_sum(self, values: np.ndarray) -> np.ndarray:
        return values.sum(axis=1, keepdims=True)


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
    count, keys, scale = int(numbers["count"]), int(numbers["keys"]), how.real(np.float32(numbers["scale"]))
    p, stats = np.zeros((16 * count, keys), ml_dtypes.bfloat16), np.zeros((count, 32), np.float32)
    for s in range(count):
        cols = min(int(given["lens"][s]), keys)
        if cols <= 0:
            continue
        block = 16 * int(given["slots"][s])
        scores = given["scores"][block : block + 16, :cols].astype(how.real)
        scaled = np.full((16, keys), -np.inf, how.real)
        scaled[:, :cols] = scores * scale + given["mask"][s, :cols]
        largest = scaled.max(axis=1, keepdims=True)
        e = how.exp(scaled - largest)
        total = how.row_sum(e)
        p[16 * s : 16 * s + 16] = nearest_bf16(e / total)
        stats[s] = np.concatenate([largest[:, 0], total[:, 0]])
    return {"p": p, "stats": stats}


def online_softmax(given: Arrays, numbers: Numbers, how: Steps) -> Arrays:
    batch, columns, scale = int(numbers["batch"]), int(numbers["columns"]), how.real(np.float32(numbers["scale"]))
    out, lse = np.zeros((16 * batch, 128), ml_dtypes.bfloat16), np.full((batch, 16), -np.inf, np.float32)
    table = given["table"].reshape(batch, columns)
    for b in range(batch):
        m, total, o = np.full((16, 1), -np.inf, how.real), np.zeros((16, 1), how.real), np.zeros((16, 128), how.real)
        many = -(-int(given["lens"][b]) // 128)
        for j in range(many):
            rows = slice(16 * int(table[b, j]), 16 * int(table[b, j]) + 16)
            s = np.full((16, 128), -np.inf, how.real)
            cols = min(int(given["lens"][b]) - 128 * j, 128)
            s[:, :cols] = given["scores"][rows, :cols].astype(how.real) * scale
            top = s.max(axis=1, keepdims=True)
            new = np.maximum(m, top)
            kept, weight = how.exp(m - new), how.exp(top - new)
            total = total * kept + how.row_sum(how.exp(s - new))
            o = o * kept + given["values"][rows].astype(how.real) * weight
            m = new
        if many > 0:
            out[16 * b : 16 * b + 16] = nearest_bf16(o / total)
            lse[b] = (m + how.log(total))[:, 0]
    return {"out": out, "lse": lse}


def rotary_gather(given: Arrays, numbers: Numbers, how: Steps) -> Arrays:
    tokens, heads = int(numbers["tokens"]), int(numbers["heads"])
    p = given["positions"]
    x = given["x"].reshape(tokens, heads, 64).astype(how.real)
    cos, sin = (given[name].astype(how.real)[p][:, None] for name in ("cos", "sin"))
    signed = sin * np.tile(np.array([-1, 1], how.real), 32)
    neighbours = x.reshape(tokens, heads, 32, 2)[..., ::-1].reshape(x.shape)
    return {"out": nearest_bf16(x * cos + neighbours * signed).reshape(-1, 64)}


def cache_write_i8(given: Arrays, numbers: Numbers, how: Steps) -> Arrays:
    x, capacity = given["kv"].astype(how.real), int(numbers["capacity"])
    cache, scales = given["cache"].copy(), given["scales"].copy()
    assert len(cache) == capacity
    top = np.maximum(np.abs(x).max(axis=1), how.real(np.float32(numbers["least"]))) * how.real(np.float32(1 / 127))
    scaled = x / top[:, None]
    for t, slot in enumerate(given["slots"]):
        if slot >= 0:
            cache[slot] = nearest_i8(scaled[t])
            scales[slot] = top[t]
    return {"cache": cache, "scales": scales}


def expert_dispatch(given: Arrays, numbers: Numbers, how: Steps) -> Arrays:
    total, experts = int(numbers["total"]), int(numbers["experts"])
    rows = given["x"].astype(how.real)[given["index"]] * given["weights"].astype(how.real)[:, None]
    y = np.zeros((total, 256), ml_dtypes.bfloat16)
    sums = np.zeros((experts, 256), how.real)
    for e in range(experts):
        first = int(given["starts"][e])
        for a in range(first, first + int(given["counts"][e])):
            y[a] = nearest_bf16(rows[a])
            sums[e] = sums[e] + rows[a]
    return {"y": y, "sums": sums.astype(np.float32)}


def transposed_cache(given: Arrays, numbers: Numbers, how: Steps) -> Arrays:
    keys, width = int(numbers["keys"]), int(numbers["width"])
    out = np.zeros((64, width), np.float16)
    pages = given["cache"].reshape(-1, 32, 64).astype(how.real) * given["scales"].astype(how.real)[:, None, None]
    for key in range(keys):
        out[:, key] = nearest_f16(pages[given["table"][key // 32], key % 32] + 0)  # copied by adding 0: no -0 is left
    return {"out": out}


def topk_routing(given: Arrays, numbers: Numbers, how: Steps) -> Arrays:
    chosen = int(numbers["chosen"])
    s = given["logits"].astype(how.real) + given["bias"].astype(how.real)
    order = np.argsort(-s, axis=1, kind="stable")[:, :chosen].astype(np.int32)
    weights = np.take_along_axis(s, order, axis=1) * how.real(np.float32(numbers["scale"]))
    return {"ids": order, "weights": weights.astype(np.float32)}


def norm_quantise(given: Arrays, numbers: Numbers, how: Steps) -> Arrays:
    eps, top = (how.real(np.float32(numbers[name])) for name in ("eps", "top"))
    h = given["x"].astype(how.real) + given["residual"].astype(how.real)
    inverse = how.real(1) / np.sqrt(how.row_sum(h * h) * how.real(1 / 512) + eps)
    y = h * inverse * given["gamma"].astype(how.real)
    scale = np.maximum(np.abs(y).max(axis=1, keepdims=True), how.real(np.float32(1e-12))) / top
    q = np.clip(y / scale, -top, top).astype(np.float32).astype(ml_dtypes.float8_e4m3fn)
    return {"sum": h.astype(np.float32), "q": q, "scales": scale.T.astype(np.float32)}


def gated_activation(given: Arrays, numbers: Numbers, how: Steps) -> Arrays:
    both = given["both"].astype(how.real)
    gate, up = both[:, :256], both[:, 256:]
    scales = given["scales"].astype(how.real)[given["experts"]].repeat(16)[: len(both), None]
    scaled = gate / (how.exp(-gate) + how.real(1)) * up * scales
    return {"out": nearest_i8(np.clip(scaled, -127, 127))}


def combine_experts(given: Arrays, numbers: Numbers, how: Steps) -> Arrays:
    tokens, chosen = int(numbers["tokens"]), int(numbers["chosen"])
    total = given["shared"].astype(how.real) * how.real(np.float32(numbers["alpha"]))
    routes, weights = (given[name].reshape(tokens, chosen) for name in ("route", "weights"))
    for t in range(tokens):
        for r, weight in zip(routes[t], weights[t], strict=True):
            if r >= 0:
                factor = how.real(given["scales"][r]) * how.real(weight)
                total[t] = total[t] + given["y"][r].astype(how.real) * factor
    return {"out": nearest_bf16(total)}


@dataclass(frozen=True)
class Kernel:
    """A kernel, and how far `Exact` may be from it: relative to the largest number of the row, per output.

    An output without a tolerance is the same in both.
    """

    target: str
    formula: Formula
    tolerance: Mapping[str, float]


_STEPS = 1e-5
"""What some tens of roundings to float32, a sum of a row among them, may differ by."""
_BF16, _E4M3 = 2.0**-8 + _STEPS, 2.0**-4 + _STEPS
"""Just beside a tie a result may round to the other side: a unit of the last of 8 or 4 places of the row's largest."""
_I8 = 1 / 64
"""The same for integers: one step of at least 64 in the row."""
KERNELS = {
    "masked_softmax": Kernel("a2a3", masked_softmax, {"p": _BF16, "stats": _STEPS}),
    "rotary_gather": Kernel("a2a3", rotary_gather, {"out": _BF16}),
    "cache_write_i8": Kernel("a2a3", cache_write_i8, {"cache": _I8, "scales": _STEPS}),
    "expert_dispatch": Kernel("a2a3", expert_dispatch, {"y": _BF16, "sums": _STEPS}),
    "transposed_cache": Kernel("a2a3", transposed_cache, {"out": 2.0**-10}),
    "online_softmax": Kernel("a5", online_softmax, {"out": _BF16, "lse": _STEPS}),
    "topk_routing": Kernel("a5", topk_routing, {"weights": _STEPS}),
    "norm_quantise": Kernel("a5", norm_quantise, {"sum": _STEPS, "q": _E4M3, "scales": _STEPS}),
    "gated_activation": Kernel("a5", gated_activation, {"out": _I8}),
    "combine_experts": Kernel("a5", combine_experts, {"out": _BF16}),
}
