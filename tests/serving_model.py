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
from work_model import Model

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


@dataclass(frozen=True)
class Kernel:
    """A kernel, and how far `Exact` may be from it: relative to the largest number of the row, per output."""

    target: str
    formula: Formula
    tolerance: Mapping[str, float]


_BF16 = 2.0**-8 + 1e-5
"""Half a unit of the last of 8 places, and what float32 steps before it differ by."""
KERNELS = {
    "masked_softmax": Kernel("a2a3", masked_softmax, {"p": _BF16, "stats": 1e-5}),
    "online_softmax": Kernel("a5", online_softmax, {"out": _BF16, "lse": 1e-5}),
}
