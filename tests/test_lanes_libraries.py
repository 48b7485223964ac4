"""`vcvt` against numpy, ml_dtypes and en_dtypes, on more than ten thousand random values a pair."""

from __future__ import annotations

import en_dtypes
import ml_dtypes
import numpy as np
import pytest

from castsim.isa.pto.micro_words import conversion
from castsim.machines.vector_function.vector_registers import VectorRegister, convert, every_lane

TYPES = {
    "f32": np.float32, "f16": np.float16, "bf16": ml_dtypes.bfloat16, "e4m3fn": ml_dtypes.float8_e4m3fn,
    "e5m2": ml_dtypes.float8_e5m2, "hif8": en_dtypes.hifloat8, "i8": np.int8, "u8": np.uint8, "i16": np.int16,
    "u16": np.uint16, "i32": np.int32, "u32": np.uint32, "i64": np.int64,
}  # fmt: skip
REGISTERS = 200


def through(codes: np.ndarray, src: str, dst: str, rnd: str | None, sat: str | None) -> np.ndarray:
    """Convert lanes by the first part only, register by register."""
    row = conversion(src, dst)
    part = row.parts[0] if row.parts else None
    wide = max(codes.itemsize, np.dtype(TYPES[dst]).itemsize)
    stored = codes.repeat(wide // codes.itemsize)  # the lanes that a widening part reads, and others
    found = []
    for chunk in stored.view(np.uint8).reshape(-1, 256):
        got = convert(VectorRegister(chunk.copy()), row, part, every_lane(row.mask_width), rnd, sat)
        lanes = got.lanes(8 * np.dtype(TYPES[dst]).itemsize)
        found.append(lanes[:: wide // np.dtype(TYPES[dst]).itemsize])
    return np.concatenate(found)


def values(src: str, spread: float) -> np.ndarray:
    rng = np.random.default_rng(29)
    size = np.dtype(TYPES[src]).itemsize
    count = REGISTERS * 256 // max(size, 4)
    if np.dtype(TYPES[src]).kind in "iu":
        return rng.integers(0, 256, count * size, np.uint8).view(TYPES[src])
    return (rng.normal(size=count) * np.exp2(rng.uniform(-spread, spread, count))).astype(TYPES[src])


FLOATS = [
    ("f32", "f16", "R", "NOSAT", 26), ("f32", "bf16", "R", "NOSAT", 120), ("f32", "e4m3fn", "R", "NOSAT", 12),
    ("f32", "e5m2", "R", "NOSAT", 18), ("f32", "hif8", "A", "NOSAT", 20), ("f16", "f32", None, None, 14),
    ("bf16", "f32", None, None, 100), ("bf16", "f16", "R", "NOSAT", 26), ("e4m3fn", "f32", None, None, 8),
    ("e5m2", "f32", None, None, 15), ("hif8", "f32", None, None, 15), ("i32", "f32", "R", None, 0),
    ("i64", "f32", "R", None, 0), ("i16", "f16", "R", None, 0), ("u8", "f16", None, None, 0),
    ("i8", "f16", None, None, 0), ("i16", "f32", None, None, 0),
]  # fmt: skip


@pytest.mark.parametrize(("src", "dst", "rnd", "sat", "spread"), FLOATS)
def test_float_results(src: str, dst: str, rnd: str | None, sat: str | None, spread: float) -> None:
    """Ties to even, HiFloat8 away; beyond the range what the library makes of it, which is NOSAT."""
    source = values(src, spread)
    lanes = source.view(f"<u{source.itemsize}")
    with np.errstate(all="ignore"):
        want = source.astype(TYPES[dst])
    got = through(lanes, src, dst, rnd, sat)
    bits = want.view(f"<u{want.itemsize}")
    nan = np.isnan(want.astype(np.float32))
    differs = (got != bits) & ~nan
    assert not differs.any(), (source[differs][:3], got[differs][:3], bits[differs][:3])


INTEGERS = [
    (src, dst)
    for src, dst in (
        ("u8", "u16"), ("u8", "u32"), ("i8", "i16"), ("i8", "i32"), ("u16", "u8"), ("u16", "u32"), ("i16", "i32"),
        ("i16", "u8"), ("u32", "u16"), ("u32", "i16"), ("u32", "u8"), ("i32", "i16"), ("i32", "u16"), ("i32", "u8"),
        ("i32", "i64"), ("i64", "i32"),
    )
]  # fmt: skip


@pytest.mark.parametrize(("src", "dst"), INTEGERS)
def test_integers(src: str, dst: str) -> None:
    source = values(src, 0)
    limits = np.iinfo(TYPES[dst])
    codes = source.view(f"<u{source.itemsize}")
    sized = f"<u{limits.bits // 8}"
    low = source.astype(TYPES[dst]).view(sized)
    wide = source.astype(object)
    clamped = np.array([min(max(value, int(limits.min)), int(limits.max)) for value in wide]).astype(TYPES[dst])
    saturates = bool(conversion(src, dst).saturations)
    for sat, want in (("SAT", clamped.view(sized)), ("NOSAT", low)) if saturates else ((None, low),):
        assert (through(codes, src, dst, None, sat) == want).all(), sat
