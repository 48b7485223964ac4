"""The oracle against software it shares nothing with: numpy, ml_dtypes, en_dtypes, gfloat; and against itself.

Only uses that docs/reference/formats.md section 4 found sound: no ml_dtypes for wide sources (double rounding) or float
to integer, no gfloat encoding (one NaN code only)."""

from __future__ import annotations

from itertools import product

import numpy as np
import oracle
import pytest
from kit.boundaries import hard_codes
from kit.golden import assert_same
from kit.golden_pto import DATA, arrays
from oracle_a2a3 import TMP_BACKED, Doubt, lane

# -------------------------------------------- the A2/A3 oracle against the golden scripts of the PTO library and worked


REGULAR = [key for key in DATA if key.startswith("a2a3__") and "__out" in key]
TMP = [key for key in DATA if key.startswith("a2a3ns__") and key.endswith("__out_truncated")]


def numbers(source: np.ndarray, src: str) -> np.ndarray:
    native = {"f32": np.float32, "f16": np.float16, "i64": np.int64}
    return source.view(native[src]).astype(np.float64) if src in native else np.zeros(source.shape)


def artefacts(src: str, dst: str, mode: str, source: np.ndarray) -> np.ndarray:
    """Return the elements on which the script does what a correct model must not (formats and golden notes)."""
    values = numbers(source, src)
    bad = np.zeros(source.shape, dtype=bool)
    if dst in ("f32", "f16"):
        bad |= np.isinf(values) & (dst == "f32")  # clamped to the largest finite number
        bad |= np.isnan(values) & (dst == "f16")  # kept, although CTRL[48] is 0
    if mode == "ROUND":
        bad |= np.abs(values) % 1 == 0.5  # the script rounds ties to even
    if (src, dst) == ("i64", "f32"):
        bad |= np.abs(values) > 2.0**53  # passes through float64 and rounds twice
    if (src, dst) == ("f16", "i4"):
        bad |= ~(np.abs(values) <= 127)  # passes through int8
    return bad


@pytest.mark.parametrize("key", REGULAR)
def test_golden_scripts(key: str) -> None:
    src, dst, mode, source, expected, undefined = arrays(key)
    name, _, saturation = mode.partition("_")
    keep = ~undefined & ~artefacts(src, dst, name, source)
    assert keep.sum() >= 14
    asked = "on" if saturation == "SATON" else None
    doubt = Doubt(ctrl48=False)  # the scripts clamp: float_saturation_off_at_start = 0
    got = [lane(src, dst, code, name.lower(), asked, tmp=False, doubt=doubt) for code in source[keep].tolist()]
    assert_same(expected[keep], np.array(got, dtype=expected.dtype), source[keep], src, dst)


@pytest.mark.parametrize("key", TMP)
def test_golden_of_the_sequences_with_a_tmp_tile(key: str) -> None:
    """Infinity and NaN included. Left out: f32 to i16 of 2**31 <= |x| < infinity, where the sequence's int32 clamps
    and the script takes low bits of an int64 (docs/reference/a2a3.md section 4.3); infinity to u8, which has no
    sequence and is unspecified.
    """
    src, dst, mode, source, expected, _ = arrays(key)
    values = numbers(source, src)
    keep = np.isinf(values) | np.isnan(values) | (np.abs(values) < 2.0**31)
    if (src, dst) not in TMP_BACKED:
        keep &= ~np.isinf(values)
    got = [lane(src, dst, code, mode.lower(), "off", tmp=True) for code in source[keep].tolist()]
    assert_same(expected[keep], np.array(got, dtype=expected.dtype), source[keep], src, dst)


# ------------------------------------------ the oracle for arrays of wide sources against the scalar one, on codes near


SOURCES = ["f32", "f64", "i32", "u32", "i48"]
DESTINATIONS = ["f64", "f32", "f16", "bf16", "e4m3fn", "e2m1", "hif8", "e8m0", "i8", "u16", "i32", "i48", "u64", "bool"]


@pytest.mark.parametrize("src", SOURCES)
@pytest.mark.parametrize("dst", DESTINATIONS)
def test_arrays_equal_single_casts(src: str, dst: str) -> None:
    source = hard_codes(src, dst, points=12, reach=2, random=60, seed=3)
    tried = 0
    for mode, overflow in product((*oracle.MODES, "up", "down", "nearest"), oracle.OVERFLOWS):
        try:
            oracle.check(src, dst, mode, overflow)
        except oracle.Refused:
            continue
        tried += 1
        expected = [oracle.cast(code, src, dst, mode, overflow) for code in source.tolist()]
        got = oracle.cast_array(source, src, dst, mode, overflow)
        assert got.dtype == oracle.storage(dst)
        assert got.tolist() == expected, (mode, overflow)
    assert tried >= 3
