"""Each call of AscendC against NumPy: counts with tails, masks, strides; casts against `castsim.cast`."""

from __future__ import annotations

import re
import shutil
from pathlib import Path

import numpy as np
import pytest
from kit.ascendc_runs import ELEMENTS, HEAD, SIZE, Calls, Lanes, random_sources
from kit.paths import ROOT, TESTS, VECTORS
from kit.pto_cpp_runs import needs_compiler
from languages.ascendc.ascendc_models import from_bf16, to_bf16

import castsim
from castsim.isa.errors import CastsimError, IllegalError
from castsim.isa.reading import table_rows
from castsim.languages import ascendc
from castsim.languages.ascendc.calls import MODES
from castsim.languages.cpp_recording import recording

pytestmark = needs_compiler

API = {row["name"]: row for row in table_rows(VECTORS / "ascendc_api.csv")}
CASTS = list(table_rows(Path(ascendc.__file__).parent / "casts.csv"))


def wide(function):
    """Return a function of floats computed in f32 and rounded once, of integers that wrap."""

    def apply(*given):
        kind = given[0].dtype
        with np.errstate(all="ignore"):
            if kind == np.float16:
                return function(*(each.astype(np.float32) for each in given)).astype(kind)
            return function(*given).astype(kind)

    return apply


BINARY = {
    "Add": (np.add, "f32 f16 i32 i16"),
    "Sub": (np.subtract, "f32 f16 i32 i16"),
    "Mul": (np.multiply, "f32 f16 i32 i16"),
    "Max": (np.maximum, "f32 f16 i32 i16"),
    "Min": (np.minimum, "f32 f16 i32 i16"),
    "Div": (np.divide, "f32 f16"),
    "And": (np.bitwise_and, "i16 u16"),
    "Or": (np.bitwise_or, "i16 u16"),
    "AddRelu": (lambda a, b: np.maximum(a + b, 0), "f32 f16 i16"),
    "SubRelu": (lambda a, b: np.maximum(a - b, 0), "f32 f16 i16"),
}
UNARY = {
    "Abs": (np.abs, "f32 f16"), "Sqrt": (np.sqrt, "f32"), "Relu": (lambda a: np.maximum(a, 0), "f32 f16 i32"),
    "Not": (np.bitwise_not, "i16 u16"), "Exp": (np.exp, "f32 f16"), "Ln": (np.log, "f32 f16"),
    "Rsqrt": (lambda a: 1 / np.sqrt(a), "f32 f16"), "Reciprocal": (lambda a: 1 / a, "f32 f16"),
}  # fmt: skip
NEAR = {"Exp": 2e-6, "Ln": 2e-6, "Rsqrt": 4e-3, "Reciprocal": 4e-3}
"""Relative tolerances of f32: exponentials are not rounded once, the others are estimates."""
SCALAR = {
    "Adds": (np.add, 3, "f32 f16 i32 i16"), "Muls": (np.multiply, 3, "f32 f16 i32 i16"),
    "Maxs": (np.maximum, 1, "f32 f16 i32 i16"), "Mins": (np.minimum, 1, "f32 f16 i32 i16"),
    "LeakyRelu": (lambda a, s: np.where(np.signbit(a), a * s, a), 3, "f32 f16"),
    "ShiftLeft": (np.left_shift, 3, "i32 u32 i16 u16"), "ShiftRight": (np.right_shift, 3, "i32 u32 i16 u16"),
}  # fmt: skip
ROWS = [
    (name, element)
    for table in (BINARY, UNARY, SCALAR)
    for name, row in table.items()
    for element in row[-1].split()
]  # fmt: skip


def of_call(name):
    """Return the function of a call, how many tensors it reads, and its scalar."""
    if name in BINARY:
        return BINARY[name][0], 2, None
    if name in UNARY:
        return UNARY[name][0], 1, None
    return SCALAR[name][0], 1, SCALAR[name][1]


@pytest.mark.parametrize("element", ["f32", "f16", "i32", "i16", "u16", "u32"])
def test_element_by_element_in_four_families(element, tmp_path):
    word, kind = ELEMENTS[element]
    size = np.dtype(kind).itemsize
    lanes = 256 // size
    sources = random_sources(7, element)
    data = sources.view(kind).reshape(4, -1)
    generator = np.random.default_rng(size)
    calls, expected = Calls(sources), []
    for name, own in ROWS:
        if own != element:
            continue
        function, reads, number = of_call(name)
        tensors = ", ".join(f"at<{word}>({place * SIZE})" for place in range(reads))
        more = "" if number is None else f", ({word}){number}"
        head = f"{name}(at<{word}>({4 * SIZE}), {tensors}{more}"
        for count in (int(generator.integers(1, lanes)), int(generator.integers(lanes, 8 * lanes)), 4 * lanes):
            calls.add(f"{head}, {count});")
            given = [data[place, :count] for place in range(reads)]
            expected.append(placed(kind, np.arange(count), result(function, given, number)))
        strides = [int(each) for each in generator.integers(1, 3, 3)] + [8, 8, 16]
        unary = reads == 1
        params = f"{{{strides[0]}, {strides[1]}, 16, {strides[4]}}}" if unary else (
            f"{{{strides[0]}, {strides[1]}, {strides[2]}, 16, {strides[4]}, 0}}"
        )  # fmt: skip
        low = int(generator.integers(1, lanes))
        words = [int(each) for each in generator.integers(1, 1 << 63, 2)]
        bits = np.array([bool(words[lane // 64] >> lane % 64 & 1) for lane in range(lanes)])
        mask = Lanes(3, np.flatnonzero(bits))
        forms = [
            (Lanes.low(3, low), "", f"(uint64_t){low}"),
            (mask, f"uint64_t m[2] = {{{words[0]}ull, {words[1]}ull}}; ", "m"),
        ]
        for active, before, text in forms:
            calls.add(f"{before}{head}, {text}, (uint8_t)3, {params});")
            expected.append(strided(function, active, size, data, kind, reads, number, strides))
        outside = f"SetVectorMask<{word}>({words[1] if lanes > 64 else 0}ull, {words[0]}ull); "
        calls.add(f"{outside}{head.replace(name, f'{name}<{word}, false>', 1)}, MASK_PLACEHOLDER, 3, {params});")
        expected.append(strided(function, mask, size, data, kind, reads, number, strides))
        calls.add(
            f"SetMaskCount(); SetVectorMask<{word}, MaskMode::COUNTER>({lanes + low}); "
            f"{head.replace(name, f'{name}<{word}, false>', 1)}, MASK_PLACEHOLDER, 1, "
            f"{'{1, 1, 8, 8}' if unary else '{1, 1, 1, 8, 8, 8}'});"
        )
        given = [data[place, : lanes + low] for place in range(reads)]
        expected.append(placed(kind, np.arange(lanes + low), result(function, given, number)))
    found = calls.results(tmp_path).view(kind)
    for number, wanted in enumerate(expected):
        near = next(
            (
                each
                for name, each in NEAR.items()
                if f"{name}(" in calls.texts[number] or f"{name}<" in calls.texts[number]
            ),
            0,
        )
        if near:
            near = max(near, 2 * float(np.finfo(kind).eps))
            np.testing.assert_allclose(found[number], wanted, near, 1e-7, err_msg=calls.texts[number])
        else:
            np.testing.assert_array_equal(same_nan(found[number]), same_nan(wanted), err_msg=calls.texts[number])


def result(function, given, number):
    scalar = [] if number is None else [given[0].dtype.type(number)]
    return wide(function)(*given, *scalar)


def placed(kind, places, values):
    """Return the result of a call: zeros but for what it writes, later repeats last."""
    found = np.zeros(SIZE // np.dtype(kind).itemsize, kind)
    for row, own in zip(np.atleast_2d(places), np.atleast_2d(values), strict=True):
        found[row] = own
    return found


def strided(function, active, size, data, kind, reads, number, strides):
    given = [data[place, active.places(size, strides[1 + place], 8 if place == 0 else 0)] for place in range(reads)]
    return placed(kind, active.places(size, strides[0], 16), result(function, given, number))


def same_nan(values):
    """Return values whose NaN all have one code, as bits."""
    if not np.issubdtype(values.dtype, np.floating):
        return values
    return np.where(np.isnan(values), values.dtype.type(np.nan), values).view(f"u{values.itemsize}")


def pairs_of(chip):
    return [row for row in CASTS if row[f"{chip}_modes"] and row["from"] in ELEMENTS and row["to"] in ELEMENTS]


def codes_in(raw, element, count):
    """Return the first elements in bytes: integers as such, floats as codes."""
    if element == "i4":
        both = raw[: -(-count // 2)]
        halves = np.stack([both & 15, both >> 4], 1).ravel()[:count].astype(np.int8)
        return np.where(halves > 7, halves - 16, halves).astype(np.int8)
    size = np.dtype(ELEMENTS[element][1]).itemsize
    return raw.view(f"{'i' if element[0] == 'i' else 'u'}{size}")[:count]


@pytest.mark.parametrize("source", sorted({row["from"] for row in pairs_of("a2a3")}))
def test_casts_with_counts_and_masks(source, tmp_path):
    raw = (
        random_sources(11, source)
        if source != "bf16"
        else (random_sources(11, "f32").view(np.uint32) >> 16).astype(np.uint16).view(np.uint8)
    )
    raw = np.resize(raw, 4 * SIZE)
    calls, expected = Calls(raw), []
    bits = {element: 4 if element == "i4" else 8 * np.dtype(kind).itemsize for element, (_, kind) in ELEMENTS.items()}
    for row in (row for row in pairs_of("a2a3") if row["from"] == source):
        to, width = row["to"], max(bits[source], bits[row["to"]])
        lanes = 2048 // width
        modes = ["RINT"] if row["a2a3_modes"].startswith("any") else row["a2a3_modes"].split()
        for mode in modes:
            count = 3 * lanes + 10
            head = f"Cast(at<{ELEMENTS[to][0]}>({4 * SIZE}), at<{ELEMENTS[source][0]}>(0), RoundMode::CAST_{mode}"
            calls.add(f"SetDeqScale((half)1.0f); {head}, {count});")
            steps = f"{8 * bits[to] // width}, {8 * bits[source] // width}"
            calls.add(f"SetDeqScale((half)1.0f); {head}, (uint64_t){lanes - 2}, 2, {{1, 1, {steps}}});")
            words = (1 << lanes - 2) - 1
            calls.add(
                f"SetDeqScale((half)1.0f); uint64_t m[2] = {{{words & (1 << 64) - 1}ull, {words >> 64}ull}}; "
                f"{head}, m, 2, {{1, 1, {steps}}});"
            )
            plain = mode == "NONE" or row["a2a3_modes"].startswith("any")
            rounding = ("rint" if row["a2a3_none"] == "nearest even" else None) if plain else mode.lower()
            saturation = "on" if to[0] in "iu" else None
            codes = castsim.cast(
                codes_in(raw, source, count), source, to, target="a2a3",
                rounding=None if row["a2a3_modes"].startswith("any") else rounding, saturation=saturation,
            )  # fmt: skip
            expected.append((to, np.arange(count), codes))
            places = np.arange(2)[:, None] * lanes + np.arange(lanes - 2)
            expected += [(to, places.ravel(), codes[places.ravel()])] * 2
    found = calls.results(tmp_path)
    for number, (to, places, codes) in enumerate(expected):
        got = codes_in(found[number], to, int(places.max()) + 1)[places]
        own = codes.astype(got.dtype) << 4 >> 4 if to == "i4" else np.ascontiguousarray(codes).view(got.dtype)
        np.testing.assert_array_equal(got, own, err_msg=calls.texts[number])


# ------------------------------------------------------------------------------------- sequences and rearranging


def data_of(element, seed=23):
    raw = random_sources(seed, element)
    return raw, raw.view(ELEMENTS[element][1]).reshape(4, -1)


D, S0, S1, S2, SCRATCH = (f"at<T>({place * SIZE})" for place in (4, 0, 1, 2, 6))


@pytest.mark.parametrize("element", ["f32", "f16"])
def test_reductions(element, tmp_path):
    word, kind = ELEMENTS[element]
    size = np.dtype(kind).itemsize
    lanes, block = 256 // size, 32 // size
    raw, data = data_of(element)
    calls, expected = Calls(raw), []

    def add(text, places, values, exact=True):
        calls.add(f"using T = {word}; {text}")
        expected.append((placed(kind, np.atleast_2d(places), np.atleast_2d(values)), exact))

    index = np.dtype(f"u{size}")
    for count in (1, lanes - 3, lanes, lanes + 1, 5 * lanes + 7, 17 * lanes):
        values = data[0, :count]
        for name, function, place in (("ReduceMax", np.max, np.argmax), ("ReduceMin", np.min, np.argmin)):
            add(f"{name}({D}, {S0}, {SCRATCH}, {count});", [0], [function(values)])
            pair = np.array([function(values), np.array(place(values), index).view(kind)], kind)
            add(f"{name}({D}, {S0}, {SCRATCH}, {count}, true);", [0, 1], pair)
        add(f"ReduceSum({D}, {S0}, {SCRATCH}, {count});", [0], [values.astype(np.float64).sum()], exact=False)
    rows = data[0, : 4 * lanes].reshape(4, lanes)
    some = rows[:, : lanes - 5]
    add(
        f"WholeReduceSum({D}, {S0}, {lanes - 5}, 4, 2, 1, 8);",
        np.arange(4) * 2,
        some.astype(np.float64).sum(1),
        exact=False,
    )
    order = "ReduceOrder::ORDER_ONLY_"
    add(f"WholeReduceMax({D}, {S0}, {lanes - 5}, 4, 1, 1, 8, {order}VALUE);", np.arange(4), some.max(1))
    add(
        f"WholeReduceMin({D}, {S0}, {lanes - 5}, 4, 1, 1, 8, {order}INDEX);",
        np.arange(4),
        some.argmin(1).astype(index).view(kind),
    )
    both = np.stack([some.max(1), some.argmax(1).astype(index).view(kind)], 1)
    add(f"WholeReduceMax({D}, {S0}, {lanes - 5}, 4, 1, 1, 8);", np.arange(8), both.ravel())
    parts = rows.reshape(4 * lanes // block, block)
    add(f"BlockReduceMax({D}, {S0}, 4, {lanes}, 1, 1, 8);", np.arange(len(parts)), parts.max(1))
    add(
        f"BlockReduceSum({D}, {S0}, 4, {lanes}, 1, 1, 8);",
        np.arange(len(parts)),
        parts.astype(np.float64).sum(1),
        exact=False,
    )
    pairs = rows.reshape(-1, 2)
    add(
        f"PairReduceSum({D}, {S0}, 4, {lanes}, 1, 1, 8);", np.arange(len(pairs)), wide(np.add)(pairs[:, 0], pairs[:, 1])
    )
    add(
        f"RepeatReduceSum({D}, {S0}, 4, {lanes}, 1, 1, 1, 8);",
        np.arange(4),
        rows.astype(np.float64).sum(1),
        exact=False,
    )
    found = calls.results(tmp_path).view(kind)
    for number, (wanted, exact) in enumerate(expected):
        if exact:
            np.testing.assert_array_equal(same_nan(found[number]), same_nan(wanted), err_msg=calls.texts[number])
        else:
            tolerance = 64 * float(np.finfo(kind).eps)
            np.testing.assert_allclose(found[number], wanted, tolerance, tolerance * 64, err_msg=calls.texts[number])


COMPARED = {
    "LT": np.less,
    "GT": np.greater,
    "EQ": np.equal,
    "LE": np.less_equal,
    "GE": np.greater_equal,
    "NE": np.not_equal,
}


def test_compare_and_select(tmp_path):
    raw, data = data_of("f32")
    raw = raw.copy()
    data = raw.view(np.float32).reshape(4, -1)
    data[1, ::7] = data[0, ::7]
    calls, expected = Calls(raw), []
    for mode, function in COMPARED.items():
        for count in (64, 200, 1000):
            whole = count // 64 * 64  # what is below a repeat is not compared
            bits = np.zeros(SIZE, np.uint8)
            bits[: whole // 8] = np.packbits(function(data[0, :whole], data[1, :whole]), bitorder="little")
            calls.add(f"Compare(at<uint8_t>({4 * SIZE}), at<float>(0), at<float>({SIZE}), CMPMODE::{mode}, {count});")
            expected.append(bits)
            bits = np.zeros(SIZE, np.uint8)
            bits[: whole // 8] = np.packbits(function(data[0, :whole], np.float32(0.5)), bitorder="little")
            calls.add(f"CompareScalar(at<uint8_t>({4 * SIZE}), at<float>(0), 0.5f, CMPMODE::{mode}, {count});")
            expected.append(bits)
    chosen = np.unpackbits(raw[3 * SIZE :], bitorder="little").astype(bool)
    head = f"Select(at<float>({4 * SIZE}), at<uint8_t>({3 * SIZE}), at<float>(0), "
    for count in (64, 100, 777):
        kept = np.zeros(SIZE // 4, np.float32)
        kept[:count] = np.where(chosen[:count], data[0, :count], np.float32(-2))
        calls.add(f"{head}-2.0f, SELMODE::VSEL_TENSOR_SCALAR_MODE, {count});")
        expected.append(kept.view(np.uint8))
        kept = np.zeros(SIZE // 4, np.float32)
        kept[:count] = np.where(chosen[:count], data[0, :count], data[1, :count])
        calls.add(f"{head}at<float>({SIZE}), SELMODE::VSEL_TENSOR_TENSOR_MODE, {count});")
        expected.append(kept.view(np.uint8))
    kept = np.zeros(SIZE // 4, np.float32)  # the same bits for each repeat
    kept[:192] = np.where(np.tile(chosen[:64], 3), data[0, :192], data[1, :192])
    calls.add(f"{head}at<float>({SIZE}), SELMODE::VSEL_CMPMASK_SPR, (uint64_t)64, 3, {{1, 1, 1, 8, 8, 8}});")
    expected.append(kept.view(np.uint8))
    found = calls.results(tmp_path)
    for number, wanted in enumerate(expected):
        np.testing.assert_array_equal(found[number], wanted, err_msg=calls.texts[number])


@pytest.mark.parametrize("element", ["f32", "f16", "i32", "i16"])
def test_rearranging(element, tmp_path):
    word, kind = ELEMENTS[element]
    size = np.dtype(kind).itemsize
    lanes, block = 256 // size, 32 // size
    raw, data = data_of(element)
    raw = raw.copy()
    data = raw.view(kind).reshape(4, -1)
    offsets = np.random.default_rng(5).integers(0, 512, 512).astype(np.uint32)
    raw[SIZE : SIZE + 2048] = (offsets * size).view(np.uint8)
    calls, expected = Calls(raw), []

    def add(text, values, places=None):
        values = np.asarray(values, kind)
        calls.add(f"using T = {word}; {text}")
        expected.append(placed(kind, np.arange(values.size) if places is None else places, values))

    add(f"Duplicate({D}, (T)7, {3 * lanes + 5});", np.full(3 * lanes + 5, 7))
    add(
        f"Duplicate({D}, (T)7, (uint64_t){lanes - 1}, 2, 1, 16);",
        np.full((2, lanes - 1), 7),
        Lanes.low(2, lanes - 1).places(size, 1, 16),
    )
    add(
        f"Copy({D}, {S0}, (uint64_t){lanes}, 2, {{2, 1, 16, 8}});",
        data[0, : 2 * lanes].reshape(2, lanes),
        Lanes.low(2, lanes).places(size, 2, 16),
    )
    add(f"Brcb({D}, {S0}, 2, BrcbRepeatParams(1, 8));", np.repeat(data[0, :16], block))
    add(f"CreateVecIndex({D}, (T)3, {2 * lanes + 9});", np.arange(2 * lanes + 9) + 3)
    for count in (lanes + 9, 300):
        add(f"Gather({D}, {S0}, at<uint32_t>({SIZE}), {4 * size}u, {count}u);", data[0][offsets[:count] + 4])
    for number, chosen in enumerate((slice(0, None, 2), slice(1, None, 2), slice(0, None, 4), slice(3, None, 4)), 1):
        pattern = (1, 2, 3, 6)[number - 1]
        values = data[0, : 2 * lanes].reshape(2, lanes)[:, chosen].ravel()
        head = f"uint64_t n = 0; GatherMask({D}, {S0}, (uint8_t){pattern}, false, 0, {{1, 2, 8, 0}}, n);"
        add(f"{head} {D}.SetValue(900, (T)n);", [*values, len(values)], [*range(len(values)), 900])
    marks = np.unpackbits(raw[2 * SIZE : 2 * SIZE + lanes // 8], bitorder="little").astype(bool)
    bits = f"at<uint{8 * size}_t>({2 * SIZE})"
    values = data[0, :lanes][marks]
    add(f"uint64_t n = 0; GatherMask({D}, {S0}, {bits}, false, 0, {{1, 1, 8, 0}}, n); {D}.SetValue(900, (T)n);",
        [*values, len(values)], [*range(len(values)), 900])  # fmt: skip
    add(
        f"DataCopy({D}, {S0}, DataCopyParams(3, 2, 1, 2));",
        data[0, : 9 * block].reshape(3, 3 * block)[:, : 2 * block],
        np.arange(3)[:, None] * 4 * block + np.arange(2 * block),
    )
    found = calls.results(tmp_path).view(kind)
    for number, wanted in enumerate(expected):
        np.testing.assert_array_equal(same_nan(found[number]), same_nan(wanted), err_msg=calls.texts[number])


@pytest.mark.parametrize("element", ["f32", "f16"])
def test_sorts_and_merges(element, tmp_path):
    word, kind = ELEMENTS[element]
    size = np.dtype(kind).itemsize
    generator = np.random.default_rng(31)
    values = (generator.permutation(1024) - 500).astype(kind)
    raw = np.zeros(4 * SIZE, np.uint8)
    raw[: values.nbytes] = values.view(np.uint8)
    raw[SIZE : SIZE + 4096] = np.arange(1024, dtype=np.uint32).view(np.uint8)
    calls, expected = Calls(raw), []
    numbers = f"at<uint32_t>({SIZE})"

    def pairs(groups):
        found = np.zeros((sum(map(len, groups)), 8 // size), kind)
        order = np.concatenate([group[np.argsort(-values[group].astype(float))] for group in groups])
        found[:, 0] = values[order]
        found.view(np.uint32)[:, 1] = order
        return found.ravel()

    def groups_of(length, count):
        return list(np.arange(count).reshape(-1, length))

    for repeats in (1, 5, 16):
        calls.add(f"using T = {word}; Sort32({D}, {S0}, {numbers}, {repeats});")
        expected.append(pairs(groups_of(32, 32 * repeats)))
        calls.add(
            f"using T = {word}; LocalTensor<T> c; Concat(c, {S0}, {SCRATCH}, {2 * repeats}); "
            f"Sort<T, true>({D}, c, {numbers}, {SCRATCH}, {repeats});"
        )
        expected.append(pairs([np.arange(32 * repeats)]))
        calls.add(
            f"using T = {word}; Sort<T, false>({SCRATCH}, {S0}, {numbers}, {D}, {repeats}); PipeBarrier<PIPE_V>(); "
            f"Extract({D}, at<uint32_t>({4 * SIZE + 4096}), {SCRATCH}, {repeats});"
        )
        order = np.concatenate([own[np.argsort(-values[own].astype(float))] for own in groups_of(32, 32 * repeats)])
        both = np.zeros(SIZE // size, kind)
        both[: order.size] = values[order]
        both.view(np.uint32)[1024 : 1024 + order.size] = order
        expected.append(both)
    lists = f"MrgSortSrcList<T> l({', '.join(f'{SCRATCH}[{place * 64 * 4 // size}]' for place in range(4))});"
    head = f"using T = {word}; Sort32({SCRATCH}, {S0}, {numbers}, 8); PipeBarrier<PIPE_V>(); {lists} "
    calls.add(f"{head} uint16_t e[4] = {{32, 32, 32, 32}}; MrgSort<T>({D}, l, MrgSort4Info(e, false, 15, 2));")
    expected.append(pairs(groups_of(128, 256)))
    calls.add(f"{head} const uint16_t e[4] = {{32, 32, 32, 0}}; uint32_t n[4]; MrgSort<T>({D}, l, e, n, 7, 1);")
    expected.append(pairs([np.arange(96)]))
    calls.add(
        f"{head} uint16_t e[4] = {{32, 30, 0, 0}}; MrgSort4Info p(e, true, 3, 1); MrgSort<T>({D}, l, p); "
        f"uint16_t a, b, c, d; GetMrgSortResult(a, b, c, d); at<uint32_t>({4 * SIZE}).SetValue(1000, a * 100 + b);"
    )
    first, second = (own[np.argsort(-values[own].astype(float))] for own in (np.arange(32), np.arange(32, 64)))
    second = second[:30]
    last = max(values[first[-1]], values[second[-1]])
    done = np.concatenate([own[values[own] >= last] for own in (first, second)])
    stopped = np.zeros(SIZE // size, kind)
    stopped[: pairs([done]).size] = pairs([done])
    stopped.view(np.uint32)[1000] = (values[first] >= last).sum() * 100 + (values[second] >= last).sum()
    expected.append(stopped)
    found = calls.results(tmp_path).view(kind)
    for number, wanted in enumerate(expected):
        whole = np.zeros(SIZE // size, kind)
        whole[: wanted.size] = wanted
        np.testing.assert_array_equal(found[number].view(np.uint8), whole.view(np.uint8), err_msg=calls.texts[number])


@pytest.mark.parametrize("element", ["f32", "i16", "u8"])
def test_rows_become_columns(element, tmp_path):
    word, kind = ELEMENTS[element]
    size = np.dtype(kind).itemsize
    raw = random_sources(17, "i16")
    data = raw.view(kind)
    wide = 32 // size
    calls, expected = Calls(raw), []

    def add(parameters, repeats, to_high=0, from_high=0):
        rows = f"for (int i = 0; i < 16; ++i) s[i] = {S0}[i * {4 * wide}], d[i] = {D}[i * {wide}];"
        calls.add(
            f"using T = {word}; LocalTensor<T> d[16], s[16]; {rows} TransDataTo5HDParams p{parameters}; "
            f"TransDataTo5HD<T>(d, s, p);"
        )
        result = np.zeros((SIZE // (16 * 32), 16, wide), kind)
        given = data[: 16 * 4 * wide].reshape(16, 4, wide)
        for repeat in range(repeats):
            turned = given[:, repeat, 16 * from_high : 16 * from_high + 16].T
            if size == 1:
                result[repeat, :, 16 * to_high : 16 * to_high + 16] = turned
            else:
                result[repeat] = turned.reshape(16, wide)
        expected.append(result.ravel())

    add("{false, false, 3, 16, 1}", 3)
    add("(false, false, 1, 0, 0)", 1)
    if size == 1:
        add("{true, false, 2, 16, 1}", 2, to_high=1)
        add("{true, true, 1, 0, 0}", 1, to_high=1, from_high=1)
    if size == 2:
        calls.add(f"using T = {word}; Transpose({D}, {S0});")
        expected.append(np.concatenate([data[:256].reshape(16, 16).T.ravel(), np.zeros(SIZE // 2 - 256, kind)]))
    found = calls.results(tmp_path).view(kind)
    for number, wanted in enumerate(expected):
        np.testing.assert_array_equal(found[number].view(np.uint8), wanted.view(np.uint8), err_msg=calls.texts[number])


def test_the_compare_mask_and_blocks_at_offsets(tmp_path):
    raw, data = data_of("f32")
    raw = raw.copy()
    data = raw.view(np.float32).reshape(4, -1)
    offsets = np.random.default_rng(8).integers(0, 40, 16).astype(np.uint32) * 32
    raw[3 * SIZE : 3 * SIZE + 64] = offsets.view(np.uint8)
    calls, expected = Calls(raw), []
    whole = "{1, 1, 1, 8, 8, 8}"
    holds = data[0, :64] < data[1, :64]
    compare = f"using T = float; Compare({S0}, {S1}, CMPMODE::LT, 64, {whole});"
    calls.add(f"{compare} Select<T, SELMODE::VSEL_CMPMASK_SPR>({D}, {S0}, {S1}, 2, {whole});")
    expected.append(np.where(np.tile(holds, 2), data[0, :128], data[1, :128]).view(np.uint8))
    calls.add(f"{compare} GetCmpMask(at<uint8_t>({4 * SIZE}));")
    expected.append(np.packbits(holds, bitorder="little"))
    calls.add(
        f"using T = float; SetCmpMask(at<uint8_t>({2 * SIZE})); PipeBarrier<PIPE_V>(); "
        f"Select<T, SELMODE::VSEL_CMPMASK_SPR>({D}, {S0}, {S1}, 1, {whole});"
    )
    bits = np.unpackbits(raw[2 * SIZE : 2 * SIZE + 8], bitorder="little").astype(bool)
    expected.append(np.where(bits, data[0, :64], data[1, :64]).view(np.uint8))
    calls.add(f"using T = float; Gatherb({D}, {S0}, at<uint32_t>({3 * SIZE}), 2, GatherRepeatParams(1, 8));")
    expected.append(data[0].reshape(-1, 8)[offsets // 32].ravel().view(np.uint8))
    found = calls.results(tmp_path)
    for number, wanted in enumerate(expected):
        np.testing.assert_array_equal(found[number][: wanted.size], wanted, err_msg=calls.texts[number])


def test_stores_that_add_and_fills_of_memory(tmp_path):
    generator = np.random.default_rng(2)
    calls = []
    held, given = {}, {}
    for element in ("f32", "f16", "bf16", "i32", "i16", "i8"):
        word, kind = ELEMENTS[element]
        many = generator.integers(-100, 100, 96)
        values = to_bf16(many.astype(np.float32), "rint") if element == "bf16" else many.astype(kind)
        given[element] = values
        for name in ("Add", "Max", "Min"):
            calls.append(
                f"{{ using T = {word}; GlobalTensor<T> g; g.SetGlobalBuffer((__gm__ T *)({element}_{name})); "
                f"GlobalTensor<T> s; s.SetGlobalBuffer((__gm__ T *)({element}_x)); DataCopy(at<T>(0), s, 96); "
                f"PipeBarrier<PIPE_ALL>(); SetAtomic{name}<T>(); "
                f"DataCopyPad(g[3], at<T>(0), {{1, {93 * values.itemsize}u, 0, 0, 0}}); "
                f"PipeBarrier<PIPE_ALL>(); SetAtomicNone(); }}"
            )
            held[f"{element}_{name}"] = values[::-1].copy()
    names = [*(f"{element}_x" for element in given), *held, "filled"]
    text = HEAD.partition('extern "C"')[0].replace("%d", "8192")
    parameters = ", ".join(f"GM_ADDR {name}" for name in names)
    text += f'extern "C" __global__ __aicore__ void calls({parameters}) {{ TPipe pipe;\n'
    text += "\n".join(calls)
    text += (
        "\nGlobalTensor<int32_t> f; f.SetGlobalBuffer((__gm__ int32_t *)filled); InitOutput<int32_t>(f, 1003, 7); }\n"
    )
    path = tmp_path / "calls.cpp"
    path.write_text(text)
    found = ascendc.run(path, "a2a3", inputs={**held, **{f"{name}_x": values for name, values in given.items()}})
    assert not found.races
    for element, values in given.items():
        as_numbers = from_bf16 if element == "bf16" else np.asarray
        for name, function in (("Add", np.add), ("Max", np.maximum), ("Min", np.minimum)):
            before, more = as_numbers(held[f"{element}_{name}"]), as_numbers(values)
            wanted = before.copy()
            with np.errstate(over="ignore"):
                wanted[3:] = function(before[3:], more[:-3])
            own = as_numbers(np.ascontiguousarray(found.outputs[f"{element}_{name}"]).view(values.dtype))
            np.testing.assert_array_equal(own, wanted, err_msg=f"{element} {name}")
    np.testing.assert_array_equal(found.outputs["filled"][:1003], np.full(1003, 7, np.int32))


def test_sums_of_products_and_scales(tmp_path):
    raw, data = data_of("f32")
    halves = raw.view(np.float16).reshape(4, -1)
    ints = (raw.view(np.int32) >> 12).astype(np.int32)
    raw = raw.copy()
    raw[2 * SIZE :] = ints.view(np.uint8)[2 * SIZE :]
    calls = Calls(raw)
    calls.add(f"using T = float; Adds({D}, {S1}, 0.0f, 100); PipeBarrier<PIPE_V>(); MulAddDst({D}, {S0}, {S1}, 100);")
    calls.add(f"using T = float; Adds({D}, {S1}, 0.0f, 100); PipeBarrier<PIPE_V>(); Axpy({D}, {S0}, 0.5f, 100);")
    calls.add(f"using T = float; Adds({D}, {S1}, 0.0f, 100); PipeBarrier<PIPE_V>(); FusedMulAdd({D}, {S0}, {S0}, 100);")
    calls.add(
        f"SetDeqScale((half)0.25f); Cast(at<half>({4 * SIZE}), at<int32_t>({2 * SIZE}), RoundMode::CAST_NONE, 100);"
    )
    calls.add(
        f"SetDeqScale((half)0.25f); "
        f"AddDeqRelu(at<half>({4 * SIZE}), at<int32_t>({2 * SIZE}), at<int32_t>({3 * SIZE}), 100);"
    )
    found = calls.results(tmp_path)
    a, b = (each[:100].astype(np.float64) for each in data[:2])
    for number, wanted in enumerate((b + a * b, b + a * 0.5, b * a + a)):
        np.testing.assert_allclose(found[number].view(np.float32)[:100], wanted, 1e-6, 1e-6)
    numbers = ints.reshape(4, -1)[:, :100]
    with np.errstate(over="ignore"):
        np.testing.assert_array_equal(found[3].view(np.float16)[:100], (numbers[2] * 0.25).astype(np.float16))
        total = numbers[2].astype(np.int64) + numbers[3]
        wanted = np.maximum((total.astype(np.float32) * np.float32(0.25)).astype(np.float16), 0)
    np.testing.assert_array_equal(found[4].view(np.float16)[:100], wanted)
    assert halves.size


# ------------------------------------------------------------------------------------------------------ refusals


def refused(tmp_path, text, **how):
    calls = Calls(random_sources(3, "f32"))
    calls.add(text)
    with pytest.raises(CastsimError) as caught:
        calls.results(tmp_path, **how)
    return caught.value


REFUSED = {
    "Mmad": "Mmad(at<float>(0), at<half>(0), at<half>(0), MmadParams());",
    "LoadDataWithTranspose": "LoadDataWithTranspose(at<half>(0), at<half>(0), 1);",
    "CrossCoreSetFlag": "CrossCoreSetFlag<2, PIPE_MTE3>(1);",
    "CrossCoreWaitFlag": "CrossCoreWaitFlag(1);",
    "IBSet": "IBSet(result, at<int32_t>(0), 0, 0);",
    "IBWait": "IBWait(result, at<int32_t>(0), 0, 0);",
    "MrgSort4": "MrgSort4(at<half>(0), at<half>(0), 1);",
    "RpSort16": "RpSort16(at<half>(0), at<half>(0), 1);",
    "Mull": "Mull(at<int32_t>(0), at<int32_t>(0), at<int32_t>(0), 64);",
    "Subs": "Subs(at<float>(0), at<float>(0), 1.0f, 64);",
    "Scatter": "Scatter(at<float>(0), at<float>(0), at<uint32_t>(0), 0u, 64u);",
    "CastDeq": "CastDeq(at<int8_t>(0), at<int16_t>(0), 64);",
    "GetReduceMaxMinCount": "GetReduceMaxMinCount<float>(at<float>(0), at<float>(0));",
    "Prelu": "Prelu(at<float>(0), at<float>(0), at<float>(0), 64);",
    "Add": "Add(at<bfloat16_t>(0), at<bfloat16_t>(0), at<bfloat16_t>(0), 64);",
    "RegTensor": "RegTensor<float> r;",
    "__VEC_SCOPE__": "__VEC_SCOPE__ { }",
    "SetDeqScale": "SetDeqScale(1.0f, int16_t(3), true);",
    "ShiftRight": "ShiftRight(at<int32_t>(0), at<int32_t>(0), 2, 64, 1, {1, 1, 8, 8}, true);",
    "SetAtomicAdd": "SetAtomicAdd<uint8_t>(); DataCopy(result, at<uint8_t>(0), 64);",
    **{
        name: f"{name}(at<float>(0), at<float>(0), 64);"
        for name in (
            "Power", "SoftMax", "TopK", "Quant", "Normalize", "WelfordFinalize", "WelfordUpdate", "RmsNorm",
            "AscendDequant", "AscendAntiQuant", "AscendQuant", "SwiGLU", "Xor", "CumSum", "Gelu", "LayerNorm",
        )
    },
}  # fmt: skip
"""Calls that castsim refuses, by name."""


@pytest.fixture(scope="module")
def refusals(tmp_path_factory):
    """Return a kernel that makes the call of a number, which is compiled once."""
    calls = Calls(random_sources(3, "f32"))
    folder = tmp_path_factory.mktemp("refusals")
    for number, text in enumerate(REFUSED.values()):
        calls.add(f"\nif (GetBlockIdx() == {number}) {{\n{text}\n}}\n")
    return calls, folder


@pytest.mark.parametrize("name", REFUSED)
def test_refused_by_name_with_its_line(name, refusals, monkeypatch):
    calls, folder = refusals
    compile_once = recording.compile_kernel

    def compiled(kernel, own):
        program = folder / "kernel"
        if not program.exists():
            shutil.copy2(compile_once(kernel, own), program)
        return program

    monkeypatch.setattr(recording, "compile_kernel", compiled)
    with pytest.raises(CastsimError) as caught:
        calls.results(folder, block=list(REFUSED).index(name), blocks=len(REFUSED))
    error = caught.value
    assert name in error.message or name == "SetAtomicAdd"
    assert error.span is not None
    assert re.split(r"[(<]", REFUSED[name])[0] in error.span.text or name == "SetAtomicAdd"
    assert error.exit_code in (1, 2)


def test_several_cores_that_wait_for_each_other_are_refused(tmp_path):
    error = refused(tmp_path, "SyncAll();", blocks=2)
    assert "SyncAll waits for 1 other cores" in error.message
    assert error.span is not None


NOTHING = [row for row in pairs_of("a2a3") if row["a2a3_none"] == "nothing is issued"]


@pytest.mark.parametrize("row", NOTHING, ids=lambda row: f"{row['from']}-{row['to']}")
def test_a_mode_for_which_nothing_is_issued(row, tmp_path):
    text = (
        f"Cast(at<{ELEMENTS[row['to']][0]}>({4 * SIZE}), at<{ELEMENTS[row['from']][0]}>(0), RoundMode::CAST_NONE, 64);"
    )
    error = refused(tmp_path, text)
    assert isinstance(error, IllegalError)
    assert "issues nothing" in error.message
    assert f"RoundMode::CAST_{row['a2a3_modes'].split()[0]}" in error.legal


@pytest.mark.parametrize("element", ["f32", "f16"])
def test_functions_by_sequences_of_their_own(element, tmp_path):
    word, kind = ELEMENTS[element]
    size = np.dtype(kind).itemsize
    raw, data = data_of(element)
    calls, expected = Calls(raw), []
    values = data[0, :300].astype(np.float64)
    share = 1 / (1 + np.exp(-values))
    room = f"at<uint8_t>({6 * SIZE})"
    for name, wanted in (
        ("Floor", np.floor(values)), ("Ceil", np.ceil(values)), ("Trunc", np.trunc(values)), ("Round", np.rint(values)),
        ("Sigmoid", share), ("Silu", values * share), ("Tanh", np.tanh(values)), ("Sign", np.sign(values)),
        ("Sin", np.sin(values)), ("Cos", np.cos(values)), ("Log", np.log(np.where(values > 0, values, np.nan))),
    ):  # fmt: skip
        for more in ("", f", {room}"):
            calls.add(f"using T = {word}; {name}({D}, {S0}{more}, 300);")
            expected.append(wanted)
    rows = data[0, : 4 * 160].astype(np.float64).reshape(4, 160)
    calls.add(f"using T = {word}; Sum({D}, {S0}, SumParams{{4, 160, 150}});")
    expected.append(rows[:, :150].sum(1))
    cols = 96
    shapes = f"uint32_t to[] = {{20, {cols}}}, one[] = {{20, 1}}, row[] = {{1, {cols}}};"
    calls.add(f"using T = {word}; {shapes} BroadCast<T, 2, 1>({D}, {S0}, to, one);")
    expected.append(np.repeat(data[0, :20], cols).astype(np.float64))
    calls.add(f"using T = {word}; {shapes} BroadCast<T, 2, 0>({D}, {S0}, to, row, {room});")
    expected.append(np.tile(data[0, :cols], 20).astype(np.float64))
    calls.add(f"using T = {word}; {shapes} Broadcast<T, 1, 0>({D}, {S0}, row + 1, one + 1);")
    expected.append(np.full(cols, data[0, 0], np.float64))
    found = calls.results(tmp_path).view(kind)
    near = 2e-6 if size == 4 else 2e-3
    for number, wanted in enumerate(expected):
        np.testing.assert_allclose(
            found[number][: wanted.size].astype(np.float64), wanted, near, 16 * near, err_msg=calls.texts[number]
        )


def test_words_that_issue_little_or_nothing(tmp_path):
    raw, data = data_of("f32")
    calls, expected = Calls(raw), []
    calls.add(
        f"using T = float; auto t = {D}; t.SetSize(5); t.SetValue(0, float(t.GetSize())); "
        f"t.SetValue(1, GetTaskRation()); t.SetValue(2, GetSubBlockIdx()); "
        f"t.SetValue(3, float(t[8].GetPhyAddr() - t.GetPhyAddr())); "
        f"result.SetL2CacheHint(CacheMode::CACHE_MODE_DISABLE); DumpTensor(t, 1, 8); "
        f"t.SetValue(4, GetSysWorkSpacePtr(x) == x); auto p = result.GetPhyAddr(4); "
        f"t.SetValue(5, p - result.GetPhyAddr());"
    )
    expected.append(np.array([5, 1, 0, 32, 1, 4], np.float32))
    calls.add(f"using T = float; BlockReduceMin({D}, {S0}, 2, 64, 1, 1, 8);")
    expected.append(data[0, :128].reshape(-1, 8).min(1))
    for name, function in (("AddReluCast", np.add), ("SubReluCast", np.subtract)):
        calls.add(f"using T = float; {name}(at<half>({4 * SIZE}), {S0}, {S1}, 100);")
        expected.append(np.maximum(function(data[0, :100], data[1, :100]), 0).astype(np.float16))
    calls.add(f"using T = float; Compares(at<uint8_t>({4 * SIZE}), {S0}, 0.5f, CMPMODE::GE, 64);")
    expected.append(np.packbits(data[0, :64] >= np.float32(0.5), bitorder="little"))
    found = calls.results(tmp_path)
    for number, wanted in enumerate(expected):
        np.testing.assert_array_equal(
            found[number].view(wanted.dtype)[: wanted.size], wanted, err_msg=calls.texts[number]
        )


def test_every_name_of_the_library_has_a_test_or_is_refused():
    """A name is used by a kernel or a call whose values a test compares, or it is in the table of refusals."""
    files = [*Path(__file__).with_name("kernels").rglob("*.[ch]*"), *(ROOT / "programs" / "ascendc").iterdir()]
    texts = [path.read_text() for path in (*files, TESTS / "kit" / "ascendc_runs.py")]
    texts.append(
        Path(__file__).read_text().partition("def test_every_name")[0].replace("SetAtomic{name}", "SetAtomicMin")
    )
    words = set(re.findall(r"\w+", "".join(texts)))
    assert len(API) == 152
    assert [name for name in API if name not in words and name not in REFUSED] == []
    assert set(MODES) >= {mode for row in CASTS for mode in row["a2a3_modes"].split()} - {"any", "(ignored;", "scale)"}
