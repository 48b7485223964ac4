"""The oracle of compiled TPC casts: what a cast must give, from what its documents say, not from chains of hops.

A cast rounds once and saturates in integers, whichever exact steps it takes. The exceptions are the lossy chains of
docs/reference/tpc.md section 4, transcribed below: integers that become f32 on their way to f16 or bf16, u32 halved on
its way to f32, f16 that becomes bf16 on its way to 8 bits. Which pairs are one instruction is read from the vendor's
tables.
"""

from __future__ import annotations

import csv
from functools import cache
from itertools import pairwise
from pathlib import Path

import numpy as np
from oracle_array import cast_array, is_nan, storage
from oracle_formats import INTS
from oracle_tpc import NAN, ROUNDINGS

VECTORS = Path(__file__).parent / "vectors"
GENERATIONS = ("goya", "gaudi", "gaudib", "greco", "gaudi2")

LOSSY = {
    ("i32", "f16"): ("i32", "f32", "f16"), ("u32", "f32"): ("u32", "f32"), ("u32", "f16"): ("u32", "f32", "f16"),
    ("u32", "bf16"): ("u32", "f32", "bf16"), ("f16", "i8"): ("f16", "bf16", "i8"),
    ("f16", "u8"): ("f16", "bf16", "u8"),
}  # fmt: skip
"""Casts before the instruction exists that round more than once, by the types that their numbers pass through."""


@cache
def direct(generation: str) -> frozenset[tuple[str, str]]:
    """Return the pairs that one instruction of the vector unit converts."""
    found = set()
    for name in ("tpc_convert_pairs.csv", "tpc_convert_int_pairs.csv"):
        rows = csv.DictReader((VECTORS / name).read_text(encoding="utf-8").splitlines())
        found |= {(row["src"], row["dst"]) for row in rows if (row["gen"], row["unit"]) == (generation, "vpu")}
    return frozenset(found)


def step(codes: np.ndarray, src: str, dst: str, mode: str) -> np.ndarray:
    """Return one conversion: rounded once, saturated in integers, with the chip's NaN."""
    rounding = ROUNDINGS[mode]
    if dst in INTS:
        return cast_array(codes, src, dst, rounding, "saturate")
    found = cast_array(codes, src, dst, rounding, "special")
    if src not in INTS:
        payload = codes.astype(np.uint32) << 16 if (src, dst) == ("bf16", "f32") else NAN[dst]
        found = np.where(is_nan(codes, src), payload, found).astype(storage(dst))
    return found


def halved(codes: np.ndarray, mode: str) -> np.ndarray:
    """Return u32 as f32: large numbers lose their last bit, are converted, and count twice."""
    large = codes > 0x7FFFFFFF
    found = step(np.where(large, codes >> 1, codes).astype(np.uint32), "u32", "f32", mode)
    return np.where(large, (found.view(np.float32) * np.float32(2)).view(np.uint32), found)


def expected(codes: np.ndarray, src: str, dst: str, generation: str, mode: str = "RHNE") -> np.ndarray:
    """Return the codes that the compiler's cast gives."""
    if (src, dst) in direct(generation) or (src, dst) not in LOSSY:
        return step(codes, src, dst, mode)
    types = LOSSY[src, dst]
    for before, after in pairwise(types):
        codes = halved(codes, mode) if (before, after) == ("u32", "f32") else step(codes, before, after, mode)
    return codes


def documented_u16(codes: np.ndarray, mode: str = "RHNE") -> np.ndarray:
    """Return f32 -> u16 as the vendor's document writes it: FP32, INT32, UINT32, then CONVERT_INT32 to 16 bits."""
    unsigned = step(step(codes, "f32", "i32", mode), "i32", "u32", mode)
    return np.clip(unsigned.view(np.int32), -(1 << 15), (1 << 15) - 1).astype(np.int16).view(np.uint16)
