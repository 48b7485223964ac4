"""ONNX Cast: its two implementations and its node tests, against the abstract cast.

Float to float is nearest even, float to integer truncates (docs/reference/semantics.md section 3), integers drop high
bits, `saturate` matters for the fp8 formats and e8m0. What is left out, and why, stands in `left_out`.
"""

from __future__ import annotations

import numpy as np
import oracle
import pytest
from kit.golden import SUBJECTS, as_codes, assert_same, format_name, load, nearest_bf16

# The smoke tests judge castsim, not its oracle.
WHO = [pytest.param(name, marks=pytest.mark.smoke if name == "product" else ()) for name in SUBJECTS]

DATA = load("golden_onnx_cast.npz")
NODES = load("golden_onnx_node.npz")
CASES = [key for key in DATA if key.endswith(("__ref", "__ort"))]
TO_E8M0 = [key for key in CASES if key.split("__")[1] == "e8m0"]
OTHERS = [key for key in CASES if key.split("__")[1] != "e8m0"]
NODE_NAMES = [key.removesuffix("__info") for key in NODES if key.endswith("__info")]


def settings(dst: str, saturate: bool) -> tuple[str, str]:
    """Return (rounding, overflow) of a cast to anything but e8m0."""
    if dst in oracle.INTS:
        return "trunc", "wrap"
    if dst == "e2m1":  # neither infinity nor NaN: both overflows give the largest number
        return "rint", "saturate"
    return "rint", "saturate" if saturate else "special"


def magnitudes(source: np.ndarray, src: str) -> np.ndarray:
    native = {"f64": np.float64, "f32": np.float32, "f16": np.float16}
    if src in native:
        return np.abs(source.view(native[src]).astype(np.float64))
    if src == "bf16":
        return np.abs((source.astype(np.uint32) << 16).view(np.float32).astype(np.float64))
    return np.zeros(source.shape)


def left_out(key: str, source: np.ndarray, src: str, dst: str) -> np.ndarray:
    """Return the elements that ONNX leaves undefined or the named software is known to get wrong."""
    base, software = key.rsplit("__", 1)
    bad = DATA.get(f"{base}__undef", np.zeros(source.shape)) != 0  # float beyond the integer's range
    size = magnitudes(source, src)
    if (
        dst == "e2m1"
    ):  # no NaN: ONNX leaves it undefined, the evaluator gives -0 (docs/reference/formats.md section 5 row 8)
        bad |= np.isnan(size)
    if software == "ort" and base.endswith("sat0"):
        if dst == "e4m3fn":  # gives 448 where overflow must give NaN
            bad |= (size >= 480) & (size < 496)
        if dst == "e5m2":  # gives NaN where overflow must give infinity
            bad |= (size >= 61440) & (size < 65536)
    if dst == "bf16" and src in ("i32", "u32", "i64", "u64"):
        # Both go through float32 and round twice (docs/reference/formats.md section 5 row 5).
        values = [int(code) - ((code >> bits - 1 & 1) << bits) for code, bits in signed_codes(source, src)]
        twice = [int(np.float32(value)) for value in values]
        bad |= nearest_bf16(np.array(values, dtype=object)) != nearest_bf16(np.array(twice, dtype=object))
    return bad


def signed_codes(source: np.ndarray, src: str) -> list[tuple[int, int]]:
    """Return (code, sign position + 1) of integers; an unsigned code has its sign position beyond its top."""
    bits = int(src[1:])
    return [(code, bits if src[0] == "i" else bits + 1) for code in source.tolist()]


@pytest.mark.parametrize("subject", WHO)
@pytest.mark.parametrize("key", OTHERS)
def test_cast(key: str, subject: str) -> None:
    base = key.rsplit("__", 1)[0]
    src, dst = map(format_name, base.split("__")[:2])
    source, expected = as_codes(DATA[f"{base}__in"], src), as_codes(DATA[key], dst)
    keep = ~left_out(key, source, src, dst)
    assert keep.any()
    got = SUBJECTS[subject](source[keep], src, dst, *settings(dst, base.endswith("sat1")))
    assert_same(expected[keep], got, source[keep], src, dst)


@pytest.mark.parametrize("subject", WHO)
@pytest.mark.parametrize("key", TO_E8M0)
def test_e8m0_rule(key: str, subject: str) -> None:
    """The rule `onnx`.

    Left out: negatives, unspecified by ONNX, and its two implementations differ; above 2**127 under `down` and
    `nearest` without saturation, where onnxruntime overflows before rounding and the evaluator after it
    (docs/reference/semantics.md section 3 calls it unclear); in the evaluator zero, infinity and all below 2**-126.
    """
    base, software = key.rsplit("__", 1)
    identifier, _, form = base.split("__")
    mode, saturation = form.split("_")
    src = format_name(identifier)
    source, expected = DATA[f"{base}__in"], DATA[key]
    size = magnitudes(source, src)
    keep = (source >> (oracle.fmt(src).bits - 1)) == 0
    if form in ("down_sat0", "nearest_sat0"):
        keep &= ~(size > 2.0**127)
    if software == "ref":
        keep &= (size >= 2.0**-126) & ~np.isinf(size)
    assert keep.sum() > 150
    overflow = "saturate" if saturation == "sat1" else "special"
    got = SUBJECTS[subject](source[keep], src, "e8m0", mode, overflow)
    assert_same(expected[keep], got, source[keep], src, "e8m0")


@pytest.mark.parametrize("subject", WHO)
@pytest.mark.parametrize("name", NODE_NAMES)
def test_backend_node_tests(name: str, subject: str) -> None:
    source_id, target_id, saturate, _ = NODES[f"{name}__info"].tolist()
    src, dst = format_name(source_id), format_name(target_id)
    if dst == "e8m0":
        subject_settings = ("up", "saturate")
    else:
        fp8 = dst.startswith(("e4m3", "e5m2"))
        subject_settings = settings(dst, fp8 and saturate == "1")
    source, expected = as_codes(NODES[f"{name}__in"], src), as_codes(NODES[f"{name}__out"], dst)
    keep = ~(np.isnan(magnitudes(source, src)) & (dst == "e2m1"))  # undefined: the format has no NaN
    got = SUBJECTS[subject](source[keep], src, dst, *subject_settings)
    assert_same(expected[keep], got, source[keep], src, dst)
