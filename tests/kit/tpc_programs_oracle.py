"""What the TPC sample programs must put out, by the test oracle: lanes, casts and arithmetic written by hand.

The inputs are random numbers without specials, so float arithmetic is NumPy's: one operation of f32 is IEEE's.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping

import numpy as np
import oracle
from kit import tpc_quantise_oracle
from numpy.typing import NDArray
from oracle_tpc import fused

Codes = NDArray[np.unsignedinteger]

INPUTS: Mapping[str, tuple[tuple[str, str, tuple[int, ...]], ...]] = {
    **{
        f"tpc_f32_i16_quantise_{generation}": (("x", "f32", (16, 64)),)
        for generation in ("goya", "gaudi", "gaudib", "greco", "gaudi2")
    },
    "tpc_u8_f32_dequantise_greco": (("x", "u8", (6, 256)),),
    "tpc_f32_bf16_stochastic_gaudi": (("x", "f32", (8, 64)), ("seed", "u32", (64,))),
    "tpc_f32_f8_143_gaudi2": (("x", "f32", (20, 64)),),
    "tpc_i8_f32_mediator_gaudi": (("x", "i8", (5, 256)),),
    "tpc_f32_i32_pipelined_goya": (("x", "f32", (48, 64)),),
    "tpc_f32_i32_pipelined_stale_goya": (("x", "f32", (48, 64)),),
    **{
        f"tpc_f32_curve_lookup_{generation}": (("x", "f32", (8, 64)), ("curve", "f32", (64, 3)))
        for generation in ("goya", "gaudi2")
    },
    "tpc_bf16_scale_linear_gaudi": (("x", "bf16", (6, 128)),),
    "tpc_bf16_scale_swizzled_gaudi": (("x", "bf16", (6, 128)),),
    **{
        f"tpc_{kind}_{generation}": (("x", *tpc_quantise_oracle.KERNELS[kind][:2]),)
        for kind, generations in (
            ("f32_i8_quantise", ("goya", "gaudi2")),
            ("i8_f32_dequantise", ("greco", "gaudi2")),
            ("f32_bf16_packed", ("gaudi", "gaudi2")),
            ("f32_exp", ("goya", "gaudi2")),
            ("bf16_f8_143_parts", ("gaudi2",)),
        )
        for generation in generations
    },
}
"""Program -> inputs in order: name, format, shape of the array."""

SCALE = np.array([0x43AA2000], "<u4").view(np.float32)[0]
POLYNOMIAL = 0x800002CC
LOOP_BETWEEN = range(1, 7)
"""Vectors of the stale twin between whose conversion and store the bundle of LOOP stands: distance 7 after all."""


def sources(program: str, seed: int) -> dict[str, NDArray[np.generic]]:
    """Return the inputs for `random:SEED` on every argument, by the rule of the README."""
    generator = np.random.default_rng(seed)
    return {name: _random(generator, fmt, shape) for name, fmt, shape in INPUTS[program]}


def outputs(program: str, seed: int) -> dict[str, Codes]:
    """Return the codes of the program's only output."""
    given = sources(program, seed)
    kind, _, generation = program.removeprefix("tpc_").rpartition("_")
    if kind in tpc_quantise_oracle.KERNELS:
        (x,) = given.values()
        codes = x.view(f"u{x.dtype.itemsize}")
        return {"y": tpc_quantise_oracle.outputs(kind, generation, codes)}
    if kind.startswith("f32_i16_quantise"):
        return {"y": quantised(given["x"])}
    return {"y": _BY_KIND[kind](**given)}


def interleaved(rows: NDArray[np.generic], lanes: int) -> NDArray[np.generic]:
    """Return rows of which each joins `lanes` others: element lanes * i + k comes from element i of row k."""
    return rows.reshape(-1, lanes, rows.shape[1]).transpose(0, 2, 1).reshape(-1, lanes * rows.shape[1])


def spread(rows: NDArray[np.generic], lanes: int) -> NDArray[np.generic]:
    """Return the reverse: row k of `lanes` has element i from element lanes * i + k."""
    return rows.reshape(rows.shape[0], -1, lanes).transpose(0, 2, 1).reshape(-1, rows.shape[1] // lanes)


def quantised(x: NDArray[np.generic]) -> Codes:
    scaled = x.astype(np.float32) * SCALE
    return oracle.cast_array(interleaved(scaled, 2).view(np.uint32), "f32", "i16", "rint", "saturate")


def dequantised(x: NDArray[np.generic]) -> Codes:
    exact = spread(x, 4).astype(np.float32)  # 8 bits are exact
    scale = np.array([0x3D4CCCCD], "<u4").view(np.float32)[0]
    return ((exact - np.float32(128)) * scale).view(np.uint32)


def stochastic(x: NDArray[np.generic], seed: NDArray[np.generic]) -> Codes:
    """Round up where the discarded half, as a fraction, is not below the random word of the lane.

    Source: docs/reference/tpc.md section 5.
    """
    state = [int(word) for word in seed]
    rows = []
    for row in interleaved(x, 2).view(np.uint32):
        codes = []
        for lane, code in enumerate(row.tolist()):
            discarded, kept = code & 0xFFFF, code >> 16
            codes.append(kept + (discarded << 16 >= state[lane % 64] and discarded > 0))
        state = [word >> 1 ^ (POLYNOMIAL if word & 1 else 0) for word in state]
        rows.append(codes)
    return np.array(rows, np.uint16)


def minifloat(x: NDArray[np.generic]) -> Codes:
    return oracle.cast_array(interleaved(x, 4).view(np.uint32), "f32", "f8_143", "rint", "special")


def widened(x: NDArray[np.generic]) -> Codes:
    return spread(x, 4).astype(np.float32).view(np.uint32)


def pipelined(x: NDArray[np.generic]) -> Codes:
    return oracle.cast_array(np.ascontiguousarray(x).view(np.uint32), "f32", "i32", "rint", "saturate")


def stale(x: NDArray[np.generic]) -> Codes:
    """Each store gets what its register held 12 vectors before; the registers start at zero."""
    fresh = pipelined(x)
    found = np.concatenate([np.zeros((12, 64), fresh.dtype), fresh[:-12]])
    found[list(LOOP_BETWEEN)] = fresh[list(LOOP_BETWEEN)]
    return found


def looked_up(x: NDArray[np.generic], curve: NDArray[np.generic]) -> Codes:
    """Two fused steps from the start of the interval, whose number is the six highest fraction bits."""
    numbers = np.ascontiguousarray(x).view(np.uint32)
    rows = np.ascontiguousarray(curve).view(np.uint32).tolist()
    away = (x - (numbers & 0xFFFE0000).view(np.float32)).view(np.uint32)
    found = []
    for code, v in zip(numbers.ravel().tolist(), away.ravel().tolist(), strict=True):
        c0, c1, c2 = rows[code >> 17 & 63]
        found.append(fused(fused(c2, v, c1, "f32", "f32", "RHNE"), v, c0, "f32", "f32", "RHNE"))
    return np.array(found, np.uint32).reshape(x.shape)


def scaled(x: NDArray[np.generic]) -> Codes:
    """Multiply and add in f32, element by element, whatever the order in between."""
    exact = (x.astype(np.uint32) << 16).view(np.float32)
    result = exact * np.float32(0.75) + np.float32(1.5)
    return oracle.cast_array(result.view(np.uint32), "f32", "bf16", "rint", "special")


_BY_KIND: Mapping[str, Callable[..., Codes]] = {
    "u8_f32_dequantise": dequantised, "f32_bf16_stochastic": stochastic, "f32_f8_143": minifloat,
    "i8_f32_mediator": widened, "f32_i32_pipelined": pipelined, "f32_i32_pipelined_stale": stale,
    "f32_curve_lookup": looked_up, "bf16_scale_linear": scaled, "bf16_scale_swizzled": scaled,
}  # fmt: skip


def _random(generator: np.random.Generator, fmt: str, shape: tuple[int, ...]) -> NDArray[np.generic]:
    if fmt == "f32":
        return generator.uniform(-100, 100, shape).astype(np.float32)
    if fmt == "bf16":
        exact = generator.uniform(-100, 100, shape)
        return oracle.cast_array(exact.view(np.uint64), "f64", "bf16", "rint", "special")
    dtype = np.dtype(f"{fmt[0]}{int(fmt[1:]) // 8}")
    limits = np.iinfo(dtype)
    wide = np.int64 if fmt[0] == "i" else np.uint64
    return generator.integers(limits.min, limits.max, shape, dtype=wide, endpoint=True).astype(dtype)
