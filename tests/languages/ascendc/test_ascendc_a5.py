"""AscendC on the A5: a call is one vector function; against NumPy and `castsim.cast`."""

from __future__ import annotations

import numpy as np
import pytest
from kit.ascendc_runs import ELEMENTS, KERNELS, SIZE, Calls, Lanes, random_sources
from kit.pto_cpp_runs import needs_compiler
from languages.ascendc import test_ascendc_calls as shared
from languages.ascendc import test_ascendc_kernels as kernels
from languages.ascendc.test_ascendc_calls import CASTS, COMPARED, codes_in, data_of, placed

import castsim
from castsim.isa.errors import IllegalError
from castsim.isa.pto import program as pto
from castsim.languages.ascendc import Request, record, run

pytestmark = needs_compiler


@pytest.fixture
def on_a5(monkeypatch):
    """Let the tables of A2/A3 whose values hold on both chips run on the A5."""
    plain = Calls.results
    monkeypatch.setattr(Calls, "results", lambda self, folder, **how: plain(self, folder, **{"target": "a5", **how}))


@pytest.mark.usefixtures("on_a5")
@pytest.mark.parametrize("element", ["f32", "f16", "i32", "i16", "u16", "u32"])
def test_counts_masks_bits_and_strides(element, tmp_path):
    shared.test_element_by_element_in_four_families(element, tmp_path)


@pytest.mark.usefixtures("on_a5")
@pytest.mark.parametrize("element", ["f32", "f16"])
def test_reductions(element, tmp_path):
    shared.test_reductions(element, tmp_path)


@pytest.mark.usefixtures("on_a5")
@pytest.mark.parametrize("element", ["f32", "f16", "i32", "i16"])
def test_rearranging(element, tmp_path):
    shared.test_rearranging(element, tmp_path)


@pytest.mark.parametrize("element", ["f32", "f16"])
def test_compare_and_select(element, tmp_path):
    word, kind = ELEMENTS[element]
    raw, data = data_of(element)
    raw = raw.copy()
    data = raw.view(kind).reshape(4, -1)
    data[1, ::7] = data[0, ::7]
    lanes = 256 // data.itemsize
    calls, expected = Calls(raw), []
    for mode, function in COMPARED.items():
        for count in (1, lanes, 200, 1000):  # any count, other than on A2/A3
            for text, other in (("Compare", data[1, :count]), ("CompareScalar", kind(0.5)), ("Compares", kind(0.5))):
                bits = np.zeros(SIZE, np.uint8)
                packed = np.packbits(function(data[0, :count], other), bitorder="little")
                bits[: packed.size] = packed
                last = f"at<{word}>({SIZE})" if text == "Compare" else f"({word})0.5f"
                calls.add(f"{text}(at<uint8_t>({4 * SIZE}), at<{word}>(0), {last}, CMPMODE::{mode}, {count});")
                expected.append(bits)
    rows = Lanes.low(5, lanes - 3)
    bits = np.zeros((5, lanes), bool)
    bits[:, : lanes - 3] = data[0, rows.places(data.itemsize, 1, 8)] < data[1, rows.places(data.itemsize, 1, 0)]
    packed = np.packbits(bits, bitorder="little")
    calls.add(
        f"Compare(at<uint8_t>({4 * SIZE}), at<{word}>(0), at<{word}>({SIZE}), CMPMODE::LT, (uint64_t){lanes - 3}, 5, "
        "{1, 1, 1, 8, 8, 0});"
    )
    expected.append(np.pad(packed, (0, SIZE - packed.size)))
    chosen = np.unpackbits(raw[3 * SIZE :], bitorder="little").astype(bool)
    head = f"Select(at<{word}>({4 * SIZE}), at<uint8_t>({3 * SIZE}), at<{word}>(0), "
    for count in (1, lanes, 100, 777):
        places = np.arange(count)
        for last, other in ((f"({word})-2.0f, SELMODE::VSEL_TENSOR_SCALAR_MODE", kind(-2)),
                            (f"at<{word}>({SIZE}), SELMODE::VSEL_TENSOR_TENSOR_MODE", data[1, :count])):  # fmt: skip
            calls.add(f"{head}{last}, {count});")
            expected.append(placed(kind, places, np.where(chosen[:count], data[0, :count], other)).view(np.uint8))
    one = np.tile(chosen[:lanes], 3)[: 3 * lanes]  # one register's bits for every repeat
    wanted = np.where(one, data[0, : 3 * lanes], data[1, : 3 * lanes])
    some = f"(uint64_t){lanes}, 3, {{1, 1, 1, 8, 8, 8}});"
    calls.add(f"{head}at<{word}>({SIZE}), SELMODE::VSEL_CMPMASK_SPR, {some}")
    calls.add(
        f"SetCmpMask(at<uint8_t>({3 * SIZE})); Select<{word}, SELMODE::VSEL_CMPMASK_SPR>(at<{word}>({4 * SIZE}), "
        f"at<{word}>(0), at<{word}>({SIZE}), 3, {{1, 1, 1, 8, 8, 8}});"
    )
    expected += [placed(kind, np.arange(3 * lanes), wanted).view(np.uint8)] * 2
    wanted = np.where(chosen[: 3 * lanes], data[0, : 3 * lanes], data[1, : 3 * lanes])
    calls.add(f"{head}at<{word}>({SIZE}), SELMODE::VSEL_TENSOR_TENSOR_MODE, {some}")
    expected.append(placed(kind, np.arange(3 * lanes), wanted).view(np.uint8))
    found = calls.results(tmp_path, target="a5")
    for number, wanted in enumerate(expected):
        np.testing.assert_array_equal(found[number], wanted, err_msg=calls.texts[number])


def test_products_that_accumulate_and_fused_casts(tmp_path):
    raw, data = data_of("f32")
    halves = raw.view(np.float16).reshape(4, -1)
    calls, expected = Calls(raw), []
    f32, f64 = np.float32, np.float64

    def add(text, values):
        calls.add(text)
        expected.append(values)

    start = f"Adds(at<float>({4 * SIZE}), at<float>({2 * SIZE}), 0.0f, 150); "
    add(f"{start}Axpy(at<float>({4 * SIZE}), at<float>(0), 3.0f, 150);", data[2, :150] + 3 * data[0, :150].astype(f64))
    add(f"{start}MulAddDst(at<float>({4 * SIZE}), at<float>(0), at<float>({SIZE}), 150);",
        data[2, :150] + data[0, :150].astype(f64) * data[1, :150])  # fmt: skip
    add(f"{start}FusedMulAdd(at<float>({4 * SIZE}), at<float>(0), at<float>({SIZE}), 150);",
        data[2, :150].astype(f64) * data[0, :150] + data[1, :150])  # fmt: skip
    found = calls.results(tmp_path, target="a5")
    for number, values in enumerate(expected):
        np.testing.assert_allclose(found[number].view(f32)[:150], values, 1e-5, 1e-5, err_msg=calls.texts[number])
    assert halves.size
    calls = Calls(raw)
    calls.add(f"AddReluCast(at<half>({4 * SIZE}), at<float>(0), at<float>({SIZE}), 150);")
    calls.add(f"SubReluCast(at<half>({4 * SIZE}), at<float>(0), at<float>({SIZE}), 150);")
    found = calls.results(tmp_path, target="a5")
    for number, sums in enumerate((data[0, :150] + data[1, :150], data[0, :150] - data[1, :150])):
        np.testing.assert_array_equal(found[number].view(np.float16)[:150], np.maximum(sums, 0).astype(np.float16))


def test_casts_by_a_scale(tmp_path):
    raw = np.random.default_rng(3).integers(-(1 << 20), 1 << 20, SIZE).astype(np.int32).view(np.uint8)
    numbers = raw.view(np.int32)
    calls = Calls(raw)
    scale = np.float16(0.0625)
    calls.add(f"SetDeqScale((half)0.0625f); Cast(at<half>({4 * SIZE}), at<int32_t>(0), RoundMode::CAST_NONE, 100);")
    calls.add(
        f"SetDeqScale((half)0.0625f); AddDeqRelu(at<half>({4 * SIZE}), at<int32_t>(0), at<int32_t>({SIZE}), 100);"
    )
    found = calls.results(tmp_path, target="a5").view(np.float16)
    with np.errstate(over="ignore"):
        np.testing.assert_array_equal(found[0, :100], (numbers[:100] * np.float64(scale)).astype(np.float16))
        sums = (numbers[:100] + numbers[SIZE // 4 :][:100]) * np.float64(scale)
        np.testing.assert_array_equal(found[1, :100], np.maximum(sums, 0).astype(np.float16))


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


def test_a_sample_of_masks_and_strides(monkeypatch):
    monkeypatch.setattr(
        kernels, "sample", lambda name, inputs, args: run(KERNELS / f"{name}.cpp", "a5", inputs=inputs, args=args)
    )
    kernels.test_masks_repeats_and_strides()
    kernels.test_gather_compare_select()


@pytest.mark.parametrize("number", range(len(kernels.ascendc_models.CASES)))
def test_kernels_written_for_tests(number, monkeypatch):
    monkeypatch.setattr(kernels, "run", lambda file, target, **how: run(file, "a5", **how))
    kernels.test_kernels_written_for_tests(number)


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
