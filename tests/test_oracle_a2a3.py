"""The A2/A3 oracle against the golden scripts of the PTO library and worked numbers of docs/reference/a2a3.md."""

from __future__ import annotations

import numpy as np
import oracle
import pytest
from golden import assert_same
from golden_pto import DATA, arrays
from oracle_a2a3 import NARROWING, TMP_BACKED, Doubt, effective_mode, effective_saturation, lane, legal_pairs

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


def test_the_sets_of_pairs() -> None:
    """Counts stated in docs/reference/a2a3.md sections 1, 3.2 and 3.4."""
    assert len(legal_pairs()) == len(set(legal_pairs())) == 25
    assert len(NARROWING) == 6
    assert len(TMP_BACKED) == 3
    assert set(legal_pairs()) > NARROWING > TMP_BACKED


def half(number: float) -> int:
    return int(np.float16(number).view(np.uint16))


def single(number: float) -> int:
    return int(np.float32(number).view(np.uint32))


def test_worked_numbers_of_section_4_3() -> None:
    assert lane("f32", "i16", single(3e9), "trunc", "off", tmp=True) == 0xFFFF
    assert lane("f32", "i16", single(3e9), "trunc", "off", tmp=False) == 24064
    assert lane("f16", "i8", half(200), "trunc", "off", tmp=True) == -56 & 0xFF
    assert lane("f16", "i8", half(-200), "trunc", "off", tmp=True) == 56
    assert lane("f16", "i8", half(300), "trunc", "off", tmp=True) == 44
    assert lane("f16", "i8", half(300), "trunc", None, tmp=False) == 44
    assert lane("f16", "i16", half(40000), "trunc", "off", tmp=True) == -25536 & 0xFFFF
    for dst, ones in (("i16", 0xFFFF), ("i8", 0xFF)):
        assert lane("f16", dst, half(np.inf), "rint", "off", tmp=True) == ones
        assert lane("f16", dst, half(-np.inf), "rint", "off", tmp=True) == 0
        assert lane("f16", dst, half(np.nan), "rint", "off", tmp=True) == 0
    assert lane("f32", "f32", single(-0.3), "rint", None, tmp=False) == 0x80000000


def test_modes_fall_back_per_pair() -> None:
    """Section 1: ODD only for f32 to f16; NONE is TRUNC to integers, RINT otherwise."""
    assert effective_mode("f32", "f16", "odd") == "odd"
    assert effective_mode("f32", "bf16", "odd") == "rint"
    assert effective_mode("f16", "u8", "none") == "trunc"
    assert effective_mode("f16", "i4", None) == "rint"
    assert effective_mode("i64", "f32", "odd") == "rint"
    assert effective_mode("i32", "f16", "floor") == "rint"
    with pytest.raises(ValueError, match="half_up"):
        effective_mode("f32", "f16", "half_up")


def test_saturation_is_ignored_without_tmp_outside_the_narrowing_six() -> None:
    assert effective_saturation("f32", "i32", "off", tmp=False) == "on"
    assert effective_saturation("f32", "i32", "off", tmp=True) == "off"
    assert effective_saturation("f32", "i32", None, tmp=True) == "on"
    assert effective_saturation("i64", "i32", None, tmp=False) == "off"
    assert lane("f32", "i32", single(3e9), "trunc", "off", tmp=False) == 0x7FFFFFFF
    assert lane("f32", "i32", single(3e9), "trunc", "off", tmp=True) == 3_000_000_000


def test_float_results_follow_ctrl_48() -> None:
    clamps = Doubt(ctrl48=False)
    assert lane("f32", "f16", single(70000), "rint", None, tmp=False, doubt=clamps) == 0x7BFF
    assert lane("f32", "f16", single(-np.inf), "rint", None, tmp=False, doubt=clamps) == 0xFBFF
    assert lane("f32", "bf16", single(np.nan), "rint", None, tmp=False, doubt=clamps) == 0
    assert lane("f32", "f16", single(70000), "rint", None, tmp=False) == 0x7C00
    assert lane("f32", "bf16", single(np.nan), "rint", None, tmp=False) == 0x7FC0


def test_other_pairs_are_refused() -> None:
    with pytest.raises(oracle.Refused):
        lane("bf16", "f16", 0, None, None, tmp=False)
