"""Inputs of the kernels of programs/kernels/serving: random ones, and those at the edges of tables and extents."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

Given = tuple[dict[str, np.ndarray], dict[str, float]]
"""Arrays and scalar arguments."""


def _f32(rng: np.random.Generator, *shape: int, scale: float = 1.0) -> np.ndarray:
    return (rng.standard_normal(shape) * scale).astype(np.float32)


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


MADE: dict[str, Callable[[int], Given]] = {"masked_softmax": masked_softmax, "online_softmax": online_softmax}
