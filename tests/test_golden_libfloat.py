"""Published conversions from f32 and f16: gfloat's, en_dtypes', and the vendor's software model of HiFloat8."""

from __future__ import annotations

import numpy as np
import pytest
from golden import SUBJECTS, as_codes, assert_same, format_name, load

DATA = load("golden_libfloat.npz")
MODE = {"TZ": "trunc", "DN": "floor", "UP": "ceil", "RNE": "rint", "RNA": "round"}
OVERFLOW = {"sat0": "special", "sat1": "saturate"}
DETERMINISTIC = [key for key in DATA if key.count("__") == 3 and key.split("__")[1] in MODE]
STOCHASTIC = [key for key in DATA if key.count("__") == 3 and key.split("__")[1] in ("SR8", "SR16")]


def test_the_file_is_complete() -> None:
    assert len(DETERMINISTIC) == 61
    assert len(STOCHASTIC) == 8


@pytest.mark.parametrize("subject", SUBJECTS)
@pytest.mark.parametrize("key", DETERMINISTIC)
def test_deterministic_modes(key: str, subject: str) -> None:
    identifier, mode, saturation, _ = key.split("__")
    dst = format_name(identifier)
    source = DATA[f"{identifier}__in"]
    got = SUBJECTS[subject](source, "f32", dst, MODE[mode], OVERFLOW[saturation])
    assert_same(as_codes(DATA[key], dst), got, source, "f32", dst)


@pytest.mark.parametrize("subject", SUBJECTS)
def test_hif8_ties_away(subject: str) -> None:
    source = DATA["hif8__in"]
    got = SUBJECTS[subject](source, "f32", "hif8", "round", "special")
    assert_same(DATA["hif8__TA__sat0__out"], got, source, "f32", "hif8")
    every = np.arange(65536, dtype=np.uint16)
    got = SUBJECTS[subject](every, "f16", "hif8", "round", "special")
    assert_same(DATA["hif8_from_fp16__TA__sat0__out"], got, every, "f16", "hif8")


@pytest.mark.parametrize("subject", SUBJECTS)
def test_hif8_decodes_to_f32(subject: str) -> None:
    every = np.arange(256, dtype=np.uint8)
    got = SUBJECTS[subject](every, "hif8", "f32", "rint", "special")
    assert_same(DATA["hif8__decode_fp32"], got, every, "hif8", "f32")


@pytest.mark.parametrize("subject", SUBJECTS)
@pytest.mark.parametrize("key", STOCHASTIC)
def test_stochastic(key: str, subject: str) -> None:
    """docs/reference/formats.md section 6: gfloat's n bits correspond to r = 2**32 - bits * 2**(32-n).

    Left out: bits = 0, which means never up and has no 32-bit word; non-finite inputs, invalid in the file.
    """
    identifier, form, _, _ = key.split("__")
    dst = format_name(identifier)
    width = int(form[2:])
    bits = DATA[f"{identifier}__{form}__bits"].astype(np.int64)
    keep = (DATA[f"{identifier}__SR__finite"] == 1) & (bits > 0)
    assert keep.sum() > 600
    source, expected = DATA[f"{identifier}__in"][keep], as_codes(DATA[key], dst)[keep]
    words = (2**32 - (bits[keep] << (32 - width))).astype(np.uint32)
    got = SUBJECTS[subject](source, "f32", dst, "stochastic", "saturate", random=words)
    assert_same(expected, got, source, "f32", dst)


HIF8 = load("golden_hif8_vendor.npz")


def usable(codes: np.ndarray, mode: str, overflow: str) -> np.ndarray:
    """Return which f32 elements the vendor's arrays are right about."""
    size = np.abs(codes.view(np.float32))
    keep = ~((size >= 2.0**-23) & (size < 2.0**-22))
    if mode == "hybrid":
        keep &= ~((size >= 40960) & (size < 65536))
    if overflow == "sat":
        keep &= ~np.isnan(size)
    return keep


@pytest.mark.parametrize("subject", SUBJECTS)
@pytest.mark.parametrize(
    ("bits", "mode", "overflow"),
    [(32, "round", "inf"), (32, "round", "sat"), (32, "hybrid", "inf"), (16, "round", "inf"), (16, "hybrid", "inf")],
)
def test_vendor_model(bits: int, mode: str, overflow: str, subject: str) -> None:
    source, src = HIF8[f"fp{bits}__in"], f"f{bits}"
    keep = usable(source, mode, overflow) if bits == 32 else HIF8[f"fp16__{mode}__valid"] == 1
    assert keep.sum() > (1800 if bits == 32 else 2000)
    got = SUBJECTS[subject](source[keep], src, "hif8", mode, {"inf": "special", "sat": "saturate"}[overflow])
    assert_same(HIF8[f"fp{bits}__{mode}__{overflow}"][keep], got, source[keep], src, "hif8")


@pytest.mark.parametrize("subject", SUBJECTS)
@pytest.mark.parametrize(("identifier", "src"), [("fp32", "f32"), ("fp16", "f16")])
def test_en_dtypes(identifier: str, src: str, subject: str) -> None:
    source = HIF8[f"{identifier}__in"]
    got = SUBJECTS[subject](source, src, "hif8", "round", "special")
    assert_same(HIF8[f"en__{identifier}"], got, source, src, "hif8")
