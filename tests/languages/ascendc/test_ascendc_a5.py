"""AscendC on the A5: a call is one vector function; against NumPy and `castsim.cast`."""

from __future__ import annotations

import numpy as np
import pytest
from kit.ascendc_runs import ELEMENTS, KERNELS, SIZE, Calls, random_sources
from kit.pto_cpp_runs import needs_compiler
from languages.ascendc.test_ascendc_calls import CASTS, codes_in

import castsim
from castsim.isa.errors import IllegalError
from castsim.isa.pto import program as pto
from castsim.languages.ascendc import Request, record

pytestmark = needs_compiler


PAIRS = [
    row for row in CASTS
    if row["a5_modes"] and {row["from"], row["to"]} <= set(ELEMENTS) - {"i4"} and row["a5_modes"] != "scale"
    and ("tcvt" in row["castsim_a5"] or "vcvt" in row["castsim_a5"])
]  # fmt: skip


@pytest.mark.parametrize("source", sorted({row["from"] for row in PAIRS}))
def test_casts(source, tmp_path):
    raw = np.resize(random_sources(11, "f32" if source == "bf16" else source), 4 * SIZE)
    if source == "bf16":
        raw = np.resize((raw.view(np.uint32) >> 16).astype(np.uint16), 2 * SIZE).view(np.uint8)
    calls, expected = Calls(raw), []
    for row in (row for row in PAIRS if row["from"] == source):
        for mode in (
            each for each in row["a5_modes"].split() if each not in ("NONE", "ODD") or row["a5_modes"] == "NONE"
        ):
            to = row["to"]
            calls.add(
                f"Cast(at<{ELEMENTS[to][0]}>({4 * SIZE}), at<{ELEMENTS[source][0]}>(0), RoundMode::CAST_{mode}, 300);"
            )
            given = codes_in(raw, source, 300)
            rounding = None if mode == "NONE" else mode.lower()
            if source[0] in "iu" and to[0] not in "iu":
                rounding = "rint" if rounding else None  # as `vcvt` rounds integers (micro_integer_to_float)
            saturation = "on" if to[0] in "iu" else None
            if "tcvt" in row["castsim_a5"]:
                codes = castsim.cast(given, source, to, target="a5", rounding=rounding, saturation=saturation)
            else:  # between integers without a sign
                most = np.iinfo(ELEMENTS[to][1]).max
                codes = np.minimum(given.view(ELEMENTS[source][1]).astype(np.int64), most).astype(ELEMENTS[to][1])
            expected.append((to, codes))
    found = calls.results(tmp_path, target="a5")
    for number, (to, codes) in enumerate(expected):
        got = codes_in(found[number], to, 300)
        np.testing.assert_array_equal(got, np.ascontiguousarray(codes).view(got.dtype), err_msg=calls.texts[number])


NARROW = {
    "e2m1": "fp4x2_e2m1_t", "e1m2": "fp4x2_e1m2_t", "e4m3fn": "fp8_e4m3fn_t", "e5m2": "fp8_e5m2_t", "hif8": "hifloat8_t"
}  # fmt: skip


@pytest.mark.parametrize("narrow", NARROW)
def test_casts_of_narrow_floats(narrow, tmp_path):
    """There and back; codes against `castsim.cast`."""
    wide, word, size = ("bf16", "bfloat16_t", 2) if narrow[-1] in "12" and narrow != "e5m2" else ("f32", "float", 4)
    raw = np.resize(random_sources(5, "f32"), 4 * SIZE)
    if size == 2:
        raw = np.resize((raw.view(np.uint32) >> 16).astype(np.uint16), 2 * SIZE).view(np.uint8)
    mode = "ROUND" if narrow == "hif8" else "RINT"
    calls = Calls(raw)
    calls.add(f"Cast(at<{NARROW[narrow]}>({4 * SIZE}), at<{word}>(0), RoundMode::CAST_{mode}, 300);")
    calls.add(f"Cast(at<{word}>({4 * SIZE}), at<{NARROW[narrow]}>(0), RoundMode::CAST_NONE, 300);")
    found = calls.results(tmp_path, target="a5")
    codes = castsim.cast(codes_in(raw, wide, 300), wide, narrow, target="a5", rounding=mode.lower())
    codes = np.ascontiguousarray(codes).view(np.uint8)
    if wide == "bf16":
        got = np.stack([found[0][:150] & 15, found[0][:150] >> 4], 1).ravel()
        given = np.stack([raw[:150] & 15, raw[:150] >> 4], 1).ravel()
    else:
        got, given = found[0][:300], raw[:300]
    np.testing.assert_array_equal(got, codes)
    back = np.ascontiguousarray(castsim.cast(given, narrow, wide, target="a5"))
    np.testing.assert_array_equal(found[1].view(f"u{size}")[:300], back.view(f"u{size}"))


def test_a_call_is_one_launch():
    x = np.zeros(512, np.float16)
    given = {"tiling.total": 512, "tiling.scale": 20}
    (recording,) = record(Request(KERNELS / "quantise.cpp", None, given, {"x": x}, "a5"))
    body = recording.program.functions[0].body
    assert [node.span.line for node in body if isinstance(node, pto.Section)] == [29, 32]
    assert not any(isinstance(node, pto.StridedStatement) for node in body)


REFUSED = {
    "Sort32": "Sort32(at<float>(0), at<float>(0), at<uint32_t>(0), 1);",
    "Cast of elements of 4 bits": "Cast(at<half>(0), at<int4b_t>(0), RoundMode::CAST_NONE, 64);",
    "Exp": "Exp(at<bfloat16_t>(0), at<bfloat16_t>(0), 64);",
    "Brcb": "Brcb(at<int8_t>(0), at<int8_t>(0), 1, BrcbRepeatParams(1, 8));",
}  # fmt: skip


@pytest.mark.parametrize("words", REFUSED)
def test_what_is_not_written_is_refused_by_name(words, tmp_path):
    calls = Calls(np.zeros(4 * SIZE, np.uint8))
    calls.add("\n" + REFUSED[words] + "\n")
    with pytest.raises(IllegalError, match=words) as caught:
        calls.results(tmp_path, target="a5")
    assert "not modelled" in caught.value.message
    assert words.split()[0] in caught.value.span.text
