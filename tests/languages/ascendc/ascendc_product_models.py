"""What the kernels of `kernels/products` compute, in NumPy, and cases to run them with.

They are written for this project in the style of product kernels, from the columns `apis`, `casts` and `tiling` of
the corpus index (asc-devkit users @ 2026-07): which calls, forms and idioms a family of operators uses.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from math import erf

import numpy as np
from languages.ascendc.ascendc_models import from_bf16, to_bf16, to_f16, to_i8
from numpy.typing import NDArray

Arrays = dict[str, NDArray]
F32 = np.float32


@dataclass(frozen=True)
class Product:
    """A kernel, its inputs, arguments and what it computes; floats of `near` outputs are compared by tolerance."""

    kernel: str
    inputs: Callable[[np.random.Generator], Arrays]
    model: Callable[..., Mapping[str, NDArray]]
    args: dict[str, int | float] = field(default_factory=dict)
    entry: str | None = None
    macros: tuple[str, ...] = ()
    blocks: int = 1
    near: tuple[str, ...] = ()
    fresh: tuple[str, ...] = ()
    """Outputs that hold zeros before the first core."""


def normal(*names: str, count: int, kind: type = np.float16, spread: float = 2.0) -> Callable[..., Arrays]:
    """Return a function that draws arrays of one size."""
    return lambda g: {name: g.normal(0, spread, count).astype(kind) for name in names}


def bf16(g: np.random.Generator, count: int, spread: float = 2.0) -> NDArray:
    """Return codes of drawn numbers."""
    return to_bf16(g.normal(0, spread, count).astype(F32), "rint")


def clip_value(x, low, high):
    return {"y": to_bf16(np.minimum(np.maximum(from_bf16(x), from_bf16(low)[0]), from_bf16(high)[0]), "rint")}


def apply_adam(var, m, v, power, rates, grad):
    var, m, v, grad = (each.astype(F32) for each in (var, m, v, grad))
    rate, beta1, beta2, epsilon = rates[:4]
    first, second = power[:2]
    step = F32(F32(rate * np.sqrt(F32(1) - second)) / (F32(1) - first))
    m = m * beta1 + grad * (F32(1) - beta1)
    v = v * beta2 + grad * grad * (F32(1) - beta2)
    var = var - m * step / (np.sqrt(v) + epsilon)
    return {"out": to_f16(var), "mOut": to_f16(m), "vOut": to_f16(v)}


def norm_quant(x, gamma, rows, cols):
    wide = x.reshape(rows, cols).astype(F32)
    square = (wide * wide * F32(1 / cols)).astype(np.float64).sum(axis=1)
    wide = wide * (1 / np.sqrt(square + 1e-5)).astype(F32)[:, None] * gamma.astype(F32)
    scale = np.abs(wide).max(axis=1) / F32(127)
    return {"y": to_i8(np.rint(wide / scale[:, None])).ravel(), "scale": scale}


def swi_glu(input_gm, rows, cols):
    a, b = np.split(from_bf16(input_gm).reshape(rows, 2 * cols), 2, axis=1)
    return {"output_gm": to_bf16((a / (np.exp(-a) + F32(1)) * b).ravel(), "rint")}


def gate_top_k(x, rows, experts, k):
    wide = x.reshape(rows, experts).astype(F32)
    e = np.exp(wide - wide.max(axis=1, keepdims=True))
    share = e / e.astype(np.float64).sum(axis=1, keepdims=True).astype(F32)
    order = np.argsort(-share, axis=1, kind="stable")[:, :k]
    best = np.take_along_axis(share, order, axis=1)
    return {"y": to_f16(best / best.sum(axis=1, keepdims=True)).ravel(), "expertIdx": order.astype(np.int32).ravel()}


def expert_tokens(ids, experts, per_core):
    counts = np.bincount(ids[ids < experts], minlength=experts)
    parts = [ids[start : start + per_core][:64] for start in range(0, ids.size, per_core)]
    return {"counts": counts.astype(np.int32), "highest": np.array([np.concatenate(parts).max()], F32)}


def rotary(q, cos, sin, tokens, heads, dim):
    wide = q.reshape(tokens, heads, dim).astype(F32)
    turned = np.concatenate([-wide[..., dim // 2 :], wide[..., : dim // 2]], axis=-1)
    c, s = (each.reshape(tokens, 1, dim).astype(F32) for each in (cos, sin))
    return {"out": to_f16(wide * c + turned * s).ravel()}


def quant_channels(x, scale, offset, rows, cols, packed):
    wide = np.rint(from_bf16(x).reshape(rows, cols) * scale + offset)
    if not packed:
        return {"y": to_i8(wide).ravel()}
    nibbles = np.clip(wide, -8, 7).astype(np.int8).ravel() & 15
    return {"y": (nibbles[::2] | nibbles[1::2] << 4).astype(np.int8)}


def location_assign(pool, table, begin, end, rows, width):
    result, start = table.copy(), 0
    for first, last, row in zip(begin, end, rows, strict=True):
        result[row * width + first : row * width + last] = pool[start : start + last - first]
        start += last - first
    return {"table": result}


def erf_poly(x):
    return {"y": np.array([erf(each) for each in x], F32)}


def cross_entropy(logits, target, rows, classes):
    wide = logits.reshape(rows, classes).astype(np.float64)
    top = wide.max(axis=1)
    loss = np.log(np.exp(wide - top[:, None]).sum(axis=1)) + top - wide[np.arange(rows), target]
    return {"loss": loss.astype(F32), "best": wide.argmax(axis=1).astype(np.int32)}


def lora_shrink(x, weight, indices, hidden, rank, scale):
    rows, tables = x.reshape(-1, hidden).astype(np.float64), weight.reshape(-1, rank, hidden).astype(np.float64)
    found = [
        np.zeros(rank) if index < 0 else tables[index] @ row * scale for row, index in zip(rows, indices, strict=True)
    ]
    return {"y": np.concatenate(found).astype(F32)}


def pad_rows(x, rows, cols, left, right, value):
    wide = np.pad(x.reshape(rows, cols), ((0, 0), (left, right)), constant_values=value)
    return {"y": wide.ravel(), "sums": x.reshape(rows, cols).astype(np.float64).sum(axis=1).astype(F32)}


def counter_sum(x, y):
    return {"z": x + y, "sum": np.array([np.maximum(x + y, 0).astype(np.float64).sum()], F32)}


def token_mask(logits, mask, kind):
    bits = np.unpackbits(mask, bitorder="little").astype(bool)
    return {"out": np.where(bits, logits, kind(np.finfo(kind).min))}


def conv_state(x, weight, steps, channels, width):
    wide, taps = (each.reshape(-1, channels).astype(F32) for each in (x, weight))
    padded = np.concatenate([np.zeros((width - 1, channels), F32), wide])
    total = sum(padded[tap : tap + steps].astype(np.float64) * taps[tap] for tap in range(width)).astype(F32)
    return {"y": to_f16(total / (np.exp(-total) + F32(1))).ravel()}


def hard_sigmoid_grad(grad, x):
    place = x.astype(F32) * F32(0.16666667) + F32(0.5)
    return {"y": to_f16(np.where((place > 0) & (place < 1), grad.astype(F32) * F32(0.16666667), F32(0)))}


def group_scale(x):
    groups = x.reshape(-1, 64).astype(np.float64)
    mean = groups.mean(axis=1)
    centred = groups - mean[:, None]
    return {
        "y": (centred / np.sqrt((centred**2).mean(axis=1) + 1e-5)[:, None]).astype(F32).ravel(),
        "mean": mean.astype(F32),
    }


def sort_rows(x, length, descend):
    rows = x.reshape(-1, length)
    order = np.argsort(-rows if descend else rows, axis=1, kind="stable")
    return {"y": np.take_along_axis(rows, order, axis=1).ravel(), "index": order.astype(np.int32).ravel()}


def interleaved_rope(x, cos, sin, dim):
    pairs = x.reshape(-1, dim // 2, 2).astype(F32)
    c, s = (each.reshape(-1, dim // 2).astype(F32) for each in (cos, sin))
    even, odd = pairs[..., 0], pairs[..., 1]
    turned = np.stack([even * c - odd * s, odd * c + even * s], axis=-1)
    return {"y": to_f16(turned).ravel()}


def _adam(g: np.random.Generator) -> Arrays:
    small = {name: np.abs(g.normal(size=1000)).astype(np.float16) for name in ("var", "m", "v", "grad")}
    return {**small, "power": np.array([0.9, 0.99], F32), "rates": np.array([0.1, 0.9, 0.99, 1e-3], F32)}


def _distinct(g: np.random.Generator, rows: int, cols: int, kind: type) -> NDArray:
    """Rows of numbers that are all different."""
    return np.concatenate([g.permutation(cols) - cols // 2 for _ in range(rows)]).astype(kind) * kind(0.125)


PRODUCTS = (
    Product(
        "halved.asc",
        normal("source", count=2048, kind=F32),
        lambda source: {"result": source * F32(0.5)},
        {"shape.length": 2048, "shape.pieces": 4},
        blocks=2,
    ),
    Product(
        "clip_value",
        lambda g: {"x": bf16(g, 1500), "low": bf16(g, 1, 0.1), "high": bf16(g, 1, 0.1) & 0x7FFF},
        clip_value,
        {"tiling.totalLength": 1500, "tiling.coreLength": 800, "tiling.tileLength": 512},
        "clip_value<0>",
        ("DTYPE_X=bfloat16_t",),
        blocks=2,
    ),
    Product(
        "apply_adam",
        _adam,
        apply_adam,
        {"tiling_key": 102, "tiling.usedCoreNum": 1, "tiling.total": 1000, "tiling.tile": 512},
    ),
    Product(
        "norm_quant",
        lambda g: {"x": g.normal(size=5 * 200).astype(np.float16), "gamma": g.normal(size=200).astype(np.float16)},
        lambda x, gamma: norm_quant(x, gamma, 5, 200),
        {"tiling_key": 0, "tiling.rows": 5, "tiling.numLastDim": 200, "tiling.avgFactor": 1 / 200},
        blocks=2,
        near=("y", "scale"),
    ),
    Product(
        "swi_glu",
        lambda g: {"input_gm": bf16(g, 5 * 128)},
        lambda input_gm: swi_glu(input_gm, 5, 64),
        {"tiling.is32BAligned": 1, "tiling.rowLen": 5, "tiling.colLen": 64, "tiling.baseRow": 2},
    ),
    Product(
        "gate_top_k",
        lambda g: {"x": _distinct(g, 3, 200, np.float16)},
        lambda x: gate_top_k(x, 3, 200, 6),
        {"tiling.rows": 3, "tiling.expertCount": 200, "tiling.k": 6, "tiling.renorm": 1},
        macros=("DTYPE_X=half",),
        near=("y",),
    ),
    Product(
        "expert_tokens",
        lambda g: {"ids": g.integers(0, 12, 90).astype(np.int32)},
        lambda ids: expert_tokens(ids, 9, 90),
        {"tiling.totalTokens": 90, "tiling.tokensPerCore": 90, "tiling.expertNum": 9},
    ),
    Product(
        "rotary",
        lambda g: {
            "q": g.normal(size=3 * 4 * 64).astype(np.float16),
            **{each: g.normal(size=3 * 64).astype(np.float16) for each in ("cos", "sin")},
        },
        lambda q, cos, sin: rotary(q, cos, sin, 3, 4, 64),
        {"tiling_key": 1, "tiling.tokens": 3, "tiling.heads": 4, "tiling.headDim": 64},
    ),
    *(
        Product(
            "quant_channels",
            lambda g: {
                "x": bf16(g, 3 * 128),
                "scale": g.uniform(1, 40, 128).astype(F32),
                "offset": g.normal(0, 9, 128).astype(F32),
            },
            lambda x, scale, offset, packed=packed: quant_channels(x, scale, offset, 3, 128, packed),
            {"tiling.rows": 3, "tiling.cols": 128, "tiling.toInt4": packed},
        )
        for packed in (0, 1)
    ),
    Product(
        "location_assign",
        lambda g: {
            "pool": g.integers(0, 99, 64).astype(np.int32),
            "table": np.arange(64, dtype=np.int32),
            "begin": np.array([0, 2, 3]),
            "end": np.array([5, 2, 9]),
            "rows": np.array([2, 0, 1]),
        },
        lambda **given: location_assign(**given, width=16),
        {"batch": 3, "width": 16},
    ),
    Product(
        "infinite",
        lambda g: {"x": g.choice(np.array([1, np.inf, -np.inf, np.nan, 0, 65504, 1e-7], np.float16), 300)},
        lambda x: {"y": np.isinf(x).astype(np.uint8)},
        {"tiling.totalDataCount": 300, "tiling.usableUbSize": 256},
    ),
    Product(
        "erf_poly",
        normal("x", count=1024, kind=F32),
        erf_poly,
        {"tiling.blockLength": 512, "tiling.tileNum": 2},
        blocks=2,
        near=("y",),
    ),
    Product(
        "cross_entropy",
        lambda g: {"logits": _distinct(g, 5, 101, F32), "target": g.integers(0, 101, 5).astype(np.int32)},
        lambda logits, target: cross_entropy(logits, target, 5, 101),
        {"rows": 5, "classes": 101},
        near=("loss",),
    ),
    Product(
        "lora_shrink",
        lambda g: {
            "x": g.normal(size=3 * 288).astype(np.float16),
            "weight": g.normal(size=2 * 288 * 8).astype(np.float16),
            "indices": np.array([1, -1, 0]),
        },
        lambda x, weight, indices: lora_shrink(x, weight, indices, 288, 8, 0.5),
        {
            "indicesSize": 3,
            "batchSize": 3,
            "numTokensPerCore": 3,
            "inputHiddenDim": 288,
            "maxLoRARank": 8,
            "scale": 0.5,
        },
        "lora_shrink_half",
        near=("y",),
        fresh=("y",),
    ),
    Product(
        "pad_rows",
        normal("x", count=4 * 50, kind=F32),
        lambda x: pad_rows(x, 4, 50, 3, 2, 7),
        {"param.rows": 4, "param.cols": 50, "param.left": 3, "param.right": 2, "param.value": 7},
        near=("sums",),
    ),
    Product("counter_sum", normal("x", "y", count=1001, kind=F32), counter_sum, {"count": 1001}, near=("sum",)),
    *(
        Product(
            "token_mask",
            lambda g, kind=kind: {
                "logits": g.normal(size=1024).astype(kind),
                "mask": g.integers(0, 256, 128).astype(np.uint8),
            },
            lambda logits, mask, kind=kind: token_mask(logits, mask, kind),
            {"rows": 2, "vocab": 512},
            f"token_mask_{name}",
        )
        for kind, name in ((np.float16, "fp16"), (F32, "fp32"))
    ),
    Product(
        "conv_state",
        lambda g: {"x": g.normal(size=6 * 128).astype(np.float16), "weight": g.normal(size=4 * 128).astype(np.float16)},
        lambda x, weight: conv_state(x, weight, 6, 128, 4),
        {"tiling.steps": 6, "tiling.channels": 128, "tiling.width": 4, "tiling.activation": 1},
        "conv_state<half>",
        near=("y",),
    ),
    *(
        Product(
            "transpose_tiles",
            normal("x", count=32 * 48, kind=kind),
            lambda x: {"y": x.reshape(32, 48).T.ravel()},
            {"rows": 32, "cols": 48},
            macros=(f"DTYPE_X={name}",),
        )
        for kind, name in ((np.float16, "half"), (F32, "float"))
    ),
    Product(
        "hard_sigmoid_grad",
        normal("grad", "x", count=1000),
        hard_sigmoid_grad,
        {"tiling.smallCoreDataNum": 1000, "tiling.ubPartDataNum": 512},
        "hard_sigmoid_grad<0>",
    ),
    Product(
        "group_scale",
        normal("x", count=32 * 64, kind=F32),
        group_scale,
        {"groups": 32, "epsilon": 1e-5},
        near=("y", "mean"),
    ),
    *(
        Product(
            "sort_rows",
            lambda g: {"x": _distinct(g, 2, 275, np.float16)},
            lambda x, descend=descend: sort_rows(x, 275, descend),
            {"rows": 2, "length": 275, "descend": descend},
        )
        for descend in (0, 1)
    ),
    Product(
        "interleaved_rope",
        lambda g: {
            "x": g.normal(size=3 * 64).astype(np.float16),
            **{each: g.normal(size=3 * 32).astype(np.float16) for each in ("cos", "sin")},
        },
        lambda x, cos, sin: interleaved_rope(x, cos, sin, 64),
        {"tiling.rows": 3, "tiling.dim": 64},
        macros=("ORIG_DTYPE_X=DT_FLOAT16",),
    ),
)
