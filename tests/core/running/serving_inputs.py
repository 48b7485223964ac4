"""Inputs of the kernels of programs/kernels/serving: random ones, and those at the edges of tables and extents."""

from __future__ import annotations

from collections.abc import Callable

import ml_dtypes
import numpy as np

Given = tuple[dict[str, np.ndarray], dict[str, float]]
"""Arrays and scalar arguments."""


def _f32(rng: np.random.Generator, *shape: int, scale: float = 1.0) -> np.ndarray:
    return (rng.standard_normal(shape) * scale).astype(np.float32)


def _bf16(rng: np.random.Generator, *shape: int, scale: float = 1.0) -> np.ndarray:
    return _f32(rng, *shape, scale=scale).astype(ml_dtypes.bfloat16)


def _i32(values: object) -> np.ndarray:
    return np.array(values, np.int32)


def masked_softmax(seed: int) -> Given:
    """Lengths 0, 1, the whole row, beyond it and below 0; masks that hide keys."""
    rng = np.random.default_rng(seed)
    count, keys = int(rng.integers(2, 6)), (61, 96, 512, 16, 500, 1, 257, 129)[seed % 8]
    edges = [0, 1, keys, keys + 9, -3, max(keys - 1, 0)]
    lens = _i32([edges[k % 6] if seed % 2 else rng.integers(0, keys + 2) for k in range(count)])
    mask = np.where(rng.random((count, keys)) < 0.2, np.float32(-np.inf), np.float32(0))
    mask[:, 0] = 0
    scores = _f32(rng, 16 * (count + 1), keys, scale=20)
    scores[0] = 0
    slots = _i32(rng.permutation(count + 1)[:count])
    arrays = {"scores": scores, "mask": mask, "lens": lens, "slots": slots}
    return arrays, {"count": count, "blocks": count + 1, "keys": keys, "scale": [0.125, 1.0, -0.5][seed % 3]}


def online_softmax(seed: int) -> Given:
    """Lengths 0, 1, of whole pages and one key more; pages shared and out of order."""
    rng = np.random.default_rng(seed)
    batch, columns = int(rng.integers(1, 5)), int(rng.integers(1, 4))
    pages = batch * columns + 1
    edges = [0, 1, 128 * columns, 128, min(129, 128 * columns)]
    lens = _i32([edges[(seed + k) % 5] if seed % 2 else rng.integers(0, 128 * columns + 1) for k in range(batch)])
    scores = _f32(rng, 16 * pages, 128, scale=30)
    scores[:16] -= 200
    arrays = {"scores": scores, "values": _f32(rng, 16 * pages, 128)}
    arrays |= {"table": _i32(rng.integers(0, pages, batch * columns)), "lens": lens}
    return arrays, {"batch": batch, "pages": pages, "columns": columns, "scale": [0.125, 1.0][seed % 2]}


def rotary_gather(seed: int) -> Given:
    """One head to sixteen; first and last position."""
    rng = np.random.default_rng(seed)
    tokens, length = int(rng.integers(1, 7)), int(rng.integers(1, 20))
    heads = (1, 16, 8, 3, 15, 2, 7, 12)[seed % 8]
    angles = rng.uniform(0, 6.3, (length, 64))
    positions = [(0, length - 1)[k % 2] if seed % 2 else rng.integers(0, length) for k in range(tokens)]
    arrays = {"x": _f32(rng, tokens * heads, 64), "cos": np.cos(angles).astype(np.float32)}
    arrays |= {"sin": np.sin(angles).astype(np.float32), "positions": _i32(positions)}
    return arrays, {"tokens": tokens, "heads": heads, "length": length}


def cache_write_i8(seed: int) -> Given:
    """Rows of zeros and of one large number; slots left out; blocks of eight rows, full and not."""
    rng = np.random.default_rng(seed)
    tokens = (1, 8, 9, 16, 23, 7, 2, 12)[seed % 8]
    capacity = tokens + 3
    slots = _i32(np.where(rng.random(tokens) < 0.25, -1, rng.permutation(capacity)[:tokens]))
    slots[0] = capacity - 1 if capacity - 1 not in slots else slots[0]
    kv = _f32(rng, tokens, 128) * (10.0 ** rng.integers(-6, 5, (tokens, 1))).astype(np.float32)
    kv[-1], kv[0, 5] = 0, 3e4
    cache = rng.integers(-128, 128, (capacity, 128)).astype(np.int8)
    arrays = {"kv": kv, "slots": slots, "cache": cache, "scales": _f32(rng, capacity)}
    return arrays, {"tokens": tokens, "capacity": capacity, "least": [1e-3, 1e-6][seed % 2]}


def expert_dispatch(seed: int) -> Given:
    """Experts without tokens, one with all of them; tokens that several take."""
    rng = np.random.default_rng(seed)
    tokens, experts, total = int(rng.integers(1, 9)), int(rng.integers(1, 6)), int(rng.integers(1, 12))
    of = np.sort(rng.integers(0, experts, total)) if seed % 3 else np.full(total, experts - 1)
    counts = np.bincount(of, minlength=experts)
    arrays = {"x": _bf16(rng, tokens, 256), "counts": _i32(counts), "starts": _i32(np.cumsum(counts) - counts)}
    arrays |= {"index": _i32(rng.integers(0, tokens, total)), "weights": _f32(rng, total)}
    return arrays, {"tokens": tokens, "experts": experts, "total": total}


def transposed_cache(seed: int) -> Given:
    """One key, whole pages, whole groups of pages, and one key more."""
    rng = np.random.default_rng(seed)
    keys = (1, 128, 129, 32, 170, 256, 33, 100)[seed % 8]
    pages, many = int(rng.integers(1, 9)), -(-keys // 32)
    cache = rng.integers(-128, 128, (32 * pages, 64)).astype(np.int8)
    arrays = {"cache": cache, "scales": _f32(rng, pages), "table": _i32(rng.integers(0, pages, many))}
    return arrays, {"keys": keys, "pages": pages, "width": -(-keys // 128) * 128}


def topk_routing(seed: int) -> Given:
    """Equal numbers, also all of them; one chosen and all."""
    rng = np.random.default_rng(seed)
    tokens, chosen = (1, 8, 9, 5, 16, 3, 2, 11)[seed % 8], (8, 2, 1, 6, 3, 64, 4, 5)[seed % 8]
    logits = rng.integers(-9, 9, (tokens, 64)).astype(np.float32) if seed % 2 else _f32(rng, tokens, 64)
    logits[0] = 0.5
    bias = _f32(rng, 1, 64) * (seed % 3 > 0)
    return {"logits": logits, "bias": bias}, {"tokens": tokens, "chosen": chosen, "scale": [0.25, 2.5][seed % 2]}


def norm_quantise(seed: int) -> Given:
    """Rows of zeros and of one large number; blocks of sixteen rows, full and not."""
    rng = np.random.default_rng(seed)
    rows = (1, 16, 17, 5, 32, 31, 2, 20)[seed % 8]
    x, residual = _f32(rng, rows, 512, scale=3), _bf16(rng, rows, 512)
    x[0], residual[0] = 0, 0
    x[-1, 7] = 1e6
    arrays = {"x": x, "residual": residual, "gamma": rng.uniform(0.5, 2, (1, 512)).astype(np.float32)}
    return arrays, {"rows": rows, "eps": [1e-6, 1e-2][seed % 2], "top": [448.0, 240.0][seed % 2]}


def gated_activation(seed: int) -> Given:
    """Gates far below and above 0, where the exponential leaves the range; results beyond int8."""
    rng = np.random.default_rng(seed)
    rows = (1, 16, 17, 5, 32, 31, 2, 20)[seed % 8]
    both = _bf16(rng, rows, 512, scale=4)
    both[0, :4] = [-100, 100, 0, -88]
    scales = rng.uniform(1, 30, 4).astype(np.float32)
    return {"both": both, "experts": _i32(rng.integers(0, 4, -(-rows // 16))), "scales": scales}, {"rows": rows}


def combine_experts(seed: int) -> Given:
    """Tokens without routes, routes taken twice."""
    rng = np.random.default_rng(seed)
    tokens, assignments, chosen = int(rng.integers(1, 6)), int(rng.integers(1, 9)), int(rng.integers(1, 5))
    route = _i32(np.where(rng.random(tokens * chosen) < 0.3, -1, rng.integers(0, assignments, tokens * chosen)))
    if seed % 2:
        route[:chosen] = -1
    y = rng.integers(-128, 128, (assignments, 256)).astype(np.int8)
    arrays = {"y": y, "scales": _f32(rng, assignments), "route": route, "weights": _f32(rng, tokens * chosen)}
    arrays["shared"] = _bf16(rng, tokens, 256)
    return arrays, {"tokens": tokens, "assignments": assignments, "chosen": chosen, "alpha": [0.5, 1.0][seed % 2]}


MADE: dict[str, Callable[[int], Given]] = {
    made.__name__: made
    for made in (
        masked_softmax, rotary_gather, cache_write_i8, expert_dispatch, transposed_cache,
        online_softmax, topk_routing, norm_quantise, gated_activation, combine_experts,
    )
}  # fmt: skip
TABLES = {
    "lens", "slots", "table", "positions", "counts", "starts", "index", "experts", "route",
    "scales", "weights",
}  # fmt: skip
"""Arrays that kernels read element by element: they decide paths, addresses and scalar operands."""
