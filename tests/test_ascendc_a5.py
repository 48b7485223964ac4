"""AscendC on the A5: a call is one vector function; against NumPy and `castsim.cast`."""

from __future__ import annotations

import numpy as np
import pytest
from ascendc_runs import ELEMENTS, KERNELS, SIZE, Calls, random_sources
from pto_cpp_runs import needs_compiler
from test_ascendc_calls import BINARY, CASTS, ROWS, codes_in, of_call, placed, result, same_nan

import castsim
from castsim.isa.errors import IllegalError
from castsim.isa.pto import program as pto
from castsim.languages.ascendc import Request, record, run

pytestmark = needs_compiler


@pytest.mark.parametrize("element", ["f32", "f16", "i32", "i16"])
def test_counts_and_low_lanes(element, tmp_path):
    word, kind = ELEMENTS[element]
    lanes = 256 // np.dtype(kind).itemsize
    sources = random_sources(7, element)
    data = sources.view(kind).reshape(4, -1)
    calls, expected = Calls(sources), []
    for name, own in ROWS:
        if own != element or name in ("Div", "Sqrt"):
            continue
        function, reads, number = of_call(name)
        tensors = ", ".join(f"at<{word}>({place * SIZE})" for place in range(reads))
        more = "" if number is None else f", ({word}){number}"
        head = f"{name}(at<{word}>({4 * SIZE}), {tensors}{more}"
        count = 3 * lanes + 11
        calls.add(f"{head}, {count});")
        expected.append(
            placed(kind, np.arange(count), result(function, [data[i, :count] for i in range(reads)], number))
        )
        strides = "{1, 1, 1, 8, 8, 0}" if name in BINARY else "{1, 1, 8, 8}"
        calls.add(f"{head}, (uint64_t){lanes - 3}, 2, {strides});")
        rows = np.arange(2)[:, None] * lanes + np.arange(lanes - 3)
        given = [data[i, rows if i == 0 else rows % lanes] for i in range(reads)]
        expected.append(placed(kind, rows, result(function, given, number)))
    found = calls.results(tmp_path, target="a5").view(kind)
    for number, wanted in enumerate(expected):
        np.testing.assert_array_equal(same_nan(found[number]), same_nan(wanted), err_msg=calls.texts[number])


PAIRS = [
    row for row in CASTS
    if row["a5_modes"] and {row["from"], row["to"]} <= set(ELEMENTS) - {"i4", "i64"} and row["a5_modes"] != "scale"
    and "tcvt" in row["castsim_a5"]
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
            codes = castsim.cast(given, source, to, target="a5", rounding=rounding, saturation=saturation)
            expected.append((to, codes))
    found = calls.results(tmp_path, target="a5")
    for number, (to, codes) in enumerate(expected):
        got = codes_in(found[number], to, 300)
        np.testing.assert_array_equal(got, np.ascontiguousarray(codes).view(got.dtype), err_msg=calls.texts[number])


def test_a_call_is_one_launch():
    x = np.zeros(512, np.float16)
    given = {"tiling.total": 512, "tiling.scale": 20}
    (recording,) = record(Request(KERNELS / "quantise.cpp", None, given, {"x": x}, "a5"))
    body = recording.program.functions[0].body
    assert [node.span.line for node in body if isinstance(node, pto.Section)] == [29, 32]
    assert not any(isinstance(node, pto.StridedStatement) for node in body)


def test_what_is_not_written_is_refused_by_name():
    given = {"x": np.zeros(1024, np.float32), "limit": np.zeros(16, np.float32)}
    with pytest.raises(IllegalError, match="Brcb is not modelled on the A5") as caught:
        run(KERNELS / "clip_rows.cpp", "a5", inputs=given, args={"rows": 16})
    assert "Brcb(block" in caught.value.span.text


def test_a_cast_by_a_scale_is_refused(tmp_path):
    calls = Calls(np.zeros(4 * SIZE, np.uint8))
    calls.add(
        f"SetDeqScale(static_cast<half>(2.0f)); Cast(at<half>({4 * SIZE}), at<int32_t>(0), RoundMode::CAST_NONE, 64);"
    )
    with pytest.raises(IllegalError, match="Cast from i32 to f16 by SetDeqScale is not modelled on the A5"):
        calls.results(tmp_path, target="a5")
