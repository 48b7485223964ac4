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
from castsim.languages.ascendc.call_words import MODES
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


TARGETS = pytest.mark.parametrize("target", ["a2a3", "a5"])


@TARGETS
@pytest.mark.parametrize("element", ["f32", "f16", "i32", "i16", "u16", "u32"])
def test_element_by_element_in_four_families(element, target, tmp_path):
    word, kind = ELEMENTS[element]
    size = np.dtype(kind).itemsize
    lanes = 256 // size
    sources = random_sources(7, element)
    data = sources.view(kind).reshape(4, -1)
    generator = np.random.default_rng(size)
    calls = Calls(sources, kind)
    for name, own in ROWS:
        if own != element:
            continue
        function, reads, number = of_call(name)
        near = (max(NEAR[name], 2 * float(np.finfo(kind).eps)), 1e-7) if name in NEAR else None
        tensors = ", ".join(f"at<{word}>({place * SIZE})" for place in range(reads))
        more = "" if number is None else f", ({word}){number}"
        head = f"{name}(at<{word}>({4 * SIZE}), {tensors}{more}"
        by_mask_outside = head.replace(name, f"{name}<{word}, false>", 1)

        def counted(count, function=function, reads=reads, number=number):
            values = result(function, [data[place, :count] for place in range(reads)], number)
            return placed(kind, np.arange(count), values)

        for count in (int(generator.integers(1, lanes)), int(generator.integers(lanes, 8 * lanes)), 4 * lanes):
            calls.expect(f"{head}, {count});", counted(count), near)
        strides = [int(each) for each in generator.integers(1, 3, 3)] + [8, 8, 16]
        unary = reads == 1
        params = f"{{{strides[0]}, {strides[1]}, 16, {strides[4]}}}" if unary else (
            f"{{{strides[0]}, {strides[1]}, {strides[2]}, 16, {strides[4]}, 0}}"
        )  # fmt: skip
        low = int(generator.integers(1, lanes))
        words = [int(each) for each in generator.integers(1, 1 << 63, 2)]
        bits = np.array([bool(words[lane // 64] >> lane % 64 & 1) for lane in range(lanes)])
        some = strided(function, Lanes(3, np.flatnonzero(bits)), size, data, kind, reads, number, strides)
        first = strided(function, Lanes.low(3, low), size, data, kind, reads, number, strides)
        calls.expect(f"{head}, (uint64_t){low}, (uint8_t)3, {params});", first, near)
        mask = f"uint64_t m[2] = {{{words[0]}ull, {words[1]}ull}}; "
        calls.expect(f"{mask}{head}, m, (uint8_t)3, {params});", some, near)
        outside = f"SetVectorMask<{word}>({words[1] if lanes > 64 else 0}ull, {words[0]}ull); "
        calls.expect(f"{outside}{by_mask_outside}, MASK_PLACEHOLDER, 3, {params});", some, near)
        calls.expect(
            f"SetMaskCount(); SetVectorMask<{word}, MaskMode::COUNTER>({lanes + low}); "
            f"{by_mask_outside}, MASK_PLACEHOLDER, 1, {'{1, 1, 8, 8}' if unary else '{1, 1, 1, 8, 8, 8}'});",
            counted(lanes + low),
            near,
        )
    calls.check(tmp_path, target=target)


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


def bits_of(truths):
    """Return the bytes of a result that holds a bit for each truth, the first in the lowest bit."""
    packed = np.packbits(truths, bitorder="little")
    return np.pad(packed, (0, SIZE - packed.size))


D, S0, S1, S2, SCRATCH = (f"at<T>({place * SIZE})" for place in (4, 0, 1, 2, 6))


@TARGETS
@pytest.mark.parametrize("element", ["f32", "f16"])
def test_reductions(element, target, tmp_path):
    word, kind = ELEMENTS[element]
    size = np.dtype(kind).itemsize
    lanes, block = 256 // size, 32 // size
    raw, data = data_of(element)
    calls, tolerance = Calls(raw, kind), 64 * float(np.finfo(kind).eps)

    def add(text, places, values, exact=True):
        near = None if exact else (tolerance, tolerance * 64)
        calls.expect(f"using T = {word}; {text}", placed(kind, np.atleast_2d(places), np.atleast_2d(values)), near)

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
    calls.check(tmp_path, target=target)


COMPARED = {
    "LT": np.less,
    "GT": np.greater,
    "EQ": np.equal,
    "LE": np.less_equal,
    "GE": np.greater_equal,
    "NE": np.not_equal,
}


@pytest.mark.parametrize(("target", "element"), [("a2a3", "f32"), ("a5", "f32"), ("a5", "f16")])
def test_compare_and_select(target, element, tmp_path):
    word, kind = ELEMENTS[element]
    raw, data = data_of(element)
    data[1, ::7] = data[0, ::7]
    lanes, any_count = 256 // data.itemsize, target == "a5"
    calls = Calls(raw)
    for mode, function in COMPARED.items():
        for count in (1, lanes, 200, 1000) if any_count else (64, 200, 1000):
            whole = count if any_count else count // 64 * 64  # what is below a repeat is not compared
            for name in ("Compare", "CompareScalar", *["Compares"] * any_count):
                last, other = f"({word})0.5f", kind(0.5)
                if name == "Compare":
                    last, other = f"at<{word}>({SIZE})", data[1, :whole]
                text = f"{name}(at<uint8_t>({4 * SIZE}), at<{word}>(0), {last}, CMPMODE::{mode}, {count});"
                calls.expect(text, bits_of(function(data[0, :whole], other)))
    chosen = np.unpackbits(raw[3 * SIZE :], bitorder="little").astype(bool)
    head = f"Select(at<{word}>({4 * SIZE}), at<uint8_t>({3 * SIZE}), at<{word}>(0), "

    def select(text, bits, other):
        values = placed(kind, np.arange(bits.size), np.where(bits, data[0, : bits.size], other))
        calls.expect(text, values.view(np.uint8))

    for count in (1, 64, lanes, 100, 777):
        bits = chosen[:count]
        select(f"{head}({word})-2.0f, SELMODE::VSEL_TENSOR_SCALAR_MODE, {count});", bits, kind(-2))
        select(f"{head}at<{word}>({SIZE}), SELMODE::VSEL_TENSOR_TENSOR_MODE, {count});", bits, data[1, :count])
    size = 3 * lanes
    one, some = np.tile(chosen[:lanes], 3), f"(uint64_t){lanes}, 3, {{1, 1, 1, 8, 8, 8}});"  # for every repeat the same
    select(f"{head}at<{word}>({SIZE}), SELMODE::VSEL_CMPMASK_SPR, {some}", one, data[1, :size])
    if target == "a5":
        rows = Lanes.low(5, lanes - 3)
        bits = np.zeros((5, lanes), bool)
        bits[:, : lanes - 3] = data[0, rows.places(data.itemsize, 1, 8)] < data[1, rows.places(data.itemsize, 1, 0)]
        calls.expect(
            f"Compare(at<uint8_t>({4 * SIZE}), at<{word}>(0), at<{word}>({SIZE}), CMPMODE::LT, "
            f"(uint64_t){lanes - 3}, 5, {{1, 1, 1, 8, 8, 0}});",
            bits_of(bits),
        )
        select(
            f"SetCmpMask(at<uint8_t>({3 * SIZE})); Select<{word}, SELMODE::VSEL_CMPMASK_SPR>(at<{word}>({4 * SIZE}), "
            f"at<{word}>(0), at<{word}>({SIZE}), 3, {{1, 1, 1, 8, 8, 8}});",
            one,
            data[1, :size],
        )
        select(f"{head}at<{word}>({SIZE}), SELMODE::VSEL_TENSOR_TENSOR_MODE, {some}", chosen[:size], data[1, :size])
    calls.check(tmp_path, target=target)


@TARGETS
@pytest.mark.parametrize("element", ["f32", "f16", "i32", "i16"])
def test_rearranging(element, target, tmp_path):
    word, kind = ELEMENTS[element]
    size = np.dtype(kind).itemsize
    lanes, block = 256 // size, 32 // size
    raw, data = data_of(element)
    offsets = np.random.default_rng(5).integers(0, 512, 512).astype(np.uint32)
    raw[SIZE : SIZE + 2048] = (offsets * size).view(np.uint8)
    calls = Calls(raw)

    def add(text, values, places=None):
        values = np.asarray(values, kind)
        wanted = placed(kind, np.arange(values.size) if places is None else places, values)
        calls.expect(f"using T = {word}; {text}", wanted)

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
    calls.check(tmp_path, target=target)


@pytest.mark.parametrize("element", ["f32", "f16"])
def test_sorts_and_merges(element, tmp_path):
    word, kind = ELEMENTS[element]
    size = np.dtype(kind).itemsize
    generator = np.random.default_rng(31)
    values = (generator.permutation(1024) - 500).astype(kind)
    raw = np.zeros(4 * SIZE, np.uint8)
    raw[: values.nbytes] = values.view(np.uint8)
    raw[SIZE : SIZE + 4096] = np.arange(1024, dtype=np.uint32).view(np.uint8)
    calls = Calls(raw)
    numbers = f"at<uint32_t>({SIZE})"

    def pairs(groups):
        found = np.zeros((sum(map(len, groups)), 8 // size), kind)
        order = np.concatenate([group[np.argsort(-values[group].astype(float))] for group in groups])
        found[:, 0] = values[order]
        found.view(np.uint32)[:, 1] = order
        return found.ravel()

    def groups_of(length, count):
        return list(np.arange(count).reshape(-1, length))

    def expect(text, wanted):
        whole = placed(kind, np.arange(wanted.size), wanted)
        calls.expect(f"using T = {word}; {text}", whole.view(np.uint8))

    for repeats in (1, 5, 16):
        expect(f"Sort32({D}, {S0}, {numbers}, {repeats});", pairs(groups_of(32, 32 * repeats)))
        expect(
            f"LocalTensor<T> c; Concat(c, {S0}, {SCRATCH}, {2 * repeats}); "
            f"Sort<T, true>({D}, c, {numbers}, {SCRATCH}, {repeats});",
            pairs([np.arange(32 * repeats)]),
        )
        order = np.concatenate([own[np.argsort(-values[own].astype(float))] for own in groups_of(32, 32 * repeats)])
        both = np.zeros(SIZE // size, kind)
        both[: order.size] = values[order]
        both.view(np.uint32)[1024 : 1024 + order.size] = order
        expect(
            f"Sort<T, false>({SCRATCH}, {S0}, {numbers}, {D}, {repeats}); PipeBarrier<PIPE_V>(); "
            f"Extract({D}, at<uint32_t>({4 * SIZE + 4096}), {SCRATCH}, {repeats});",
            both,
        )
    lists = f"MrgSortSrcList<T> l({', '.join(f'{SCRATCH}[{place * 64 * 4 // size}]' for place in range(4))});"
    head = f"Sort32({SCRATCH}, {S0}, {numbers}, 8); PipeBarrier<PIPE_V>(); {lists} "
    merge = f"{head} uint16_t e[4] = {{32, 32, 32, 32}}; MrgSort<T>({D}, l, MrgSort4Info(e, false, 15, 2));"
    expect(merge, pairs(groups_of(128, 256)))
    merge = f"{head} const uint16_t e[4] = {{32, 32, 32, 0}}; uint32_t n[4]; MrgSort<T>({D}, l, e, n, 7, 1);"
    expect(merge, pairs([np.arange(96)]))
    first, second = (own[np.argsort(-values[own].astype(float))] for own in (np.arange(32), np.arange(32, 64)))
    second = second[:30]
    last = max(values[first[-1]], values[second[-1]])
    done = np.concatenate([own[values[own] >= last] for own in (first, second)])
    stopped = np.zeros(SIZE // size, kind)
    stopped[: pairs([done]).size] = pairs([done])
    stopped.view(np.uint32)[1000] = (values[first] >= last).sum() * 100 + (values[second] >= last).sum()
    expect(
        f"{head} uint16_t e[4] = {{32, 30, 0, 0}}; MrgSort4Info p(e, true, 3, 1); MrgSort<T>({D}, l, p); "
        f"uint16_t a, b, c, d; GetMrgSortResult(a, b, c, d); at<uint32_t>({4 * SIZE}).SetValue(1000, a * 100 + b);",
        stopped,
    )
    calls.check(tmp_path)


@pytest.mark.parametrize("element", ["f32", "i16", "u8"])
def test_rows_become_columns(element, tmp_path):
    word, kind = ELEMENTS[element]
    size = np.dtype(kind).itemsize
    raw = random_sources(17, "i16")
    data = raw.view(kind)
    wide = 32 // size
    calls = Calls(raw)

    def add(parameters, repeats, to_high=0, from_high=0):
        rows = f"for (int i = 0; i < 16; ++i) s[i] = {S0}[i * {4 * wide}], d[i] = {D}[i * {wide}];"
        result = np.zeros((SIZE // (16 * 32), 16, wide), kind)
        given = data[: 16 * 4 * wide].reshape(16, 4, wide)
        for repeat in range(repeats):
            turned = given[:, repeat, 16 * from_high : 16 * from_high + 16].T
            if size == 1:
                result[repeat, :, 16 * to_high : 16 * to_high + 16] = turned
            else:
                result[repeat] = turned.reshape(16, wide)
        calls.expect(
            f"using T = {word}; LocalTensor<T> d[16], s[16]; {rows} TransDataTo5HDParams p{parameters}; "
            f"TransDataTo5HD<T>(d, s, p);",
            result.ravel().view(np.uint8),
        )

    add("{false, false, 3, 16, 1}", 3)
    add("(false, false, 1, 0, 0)", 1)
    if size == 1:
        add("{true, false, 2, 16, 1}", 2, to_high=1)
        add("{true, true, 1, 0, 0}", 1, to_high=1, from_high=1)
    if size == 2:
        turned = placed(kind, np.arange(256), data[:256].reshape(16, 16).T.ravel())
        calls.expect(f"using T = {word}; Transpose({D}, {S0});", turned)
    calls.check(tmp_path)


def test_the_compare_mask_and_blocks_at_offsets(tmp_path):
    raw, data = data_of("f32")
    offsets = np.random.default_rng(8).integers(0, 40, 16).astype(np.uint32) * 32
    raw[3 * SIZE : 3 * SIZE + 64] = offsets.view(np.uint8)
    calls, whole = Calls(raw), "{1, 1, 1, 8, 8, 8}"
    holds = data[0, :64] < data[1, :64]
    compare = f"using T = float; Compare({S0}, {S1}, CMPMODE::LT, 64, {whole});"
    chosen = np.where(np.tile(holds, 2), data[0, :128], data[1, :128])
    calls.expect(f"{compare} Select<T, SELMODE::VSEL_CMPMASK_SPR>({D}, {S0}, {S1}, 2, {whole});", chosen.view(np.uint8))
    calls.expect(f"{compare} GetCmpMask(at<uint8_t>({4 * SIZE}));", np.packbits(holds, bitorder="little"))
    bits = np.unpackbits(raw[2 * SIZE : 2 * SIZE + 8], bitorder="little").astype(bool)
    calls.expect(
        f"using T = float; SetCmpMask(at<uint8_t>({2 * SIZE})); PipeBarrier<PIPE_V>(); "
        f"Select<T, SELMODE::VSEL_CMPMASK_SPR>({D}, {S0}, {S1}, 1, {whole});",
        np.where(bits, data[0, :64], data[1, :64]).view(np.uint8),
    )
    calls.expect(
        f"using T = float; Gatherb({D}, {S0}, at<uint32_t>({3 * SIZE}), 2, GatherRepeatParams(1, 8));",
        data[0].reshape(-1, 8)[offsets // 32].ravel().view(np.uint8),
    )
    calls.check(tmp_path)


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


@TARGETS
def test_sums_of_products_and_scales(target, tmp_path):
    raw, data = data_of("f32")
    numbers = raw.view(np.int32)[3 * SIZE // 4 :]
    numbers >>= 12
    a, b, c = (data[place, :150].astype(np.float64) for place in range(3))
    calls = Calls(raw, np.float32)
    start = f"using T = float; Adds({D}, {S2}, 0.0f, 150); PipeBarrier<PIPE_V>(); "
    calls.expect(f"{start}Axpy({D}, {S0}, 3.0f, 150);", c + 3 * a, (1e-6, 1e-6))
    calls.expect(f"{start}MulAddDst({D}, {S0}, {S1}, 150);", c + a * b, (1e-6, 1e-6))
    calls.expect(f"{start}FusedMulAdd({D}, {S0}, {S1}, 150);", c * a + b, (1e-6, 1e-6))
    ints, more = (f"at<int32_t>({byte})" for byte in (3 * SIZE, 3 * SIZE + 4096))
    scale = "SetDeqScale((half)0.25f); "
    half = f"at<half>({4 * SIZE})"
    with np.errstate(over="ignore"):
        scaled = (numbers[:100] * 0.25).astype(np.float16)
        sums = (numbers[:100] * 0.25 + numbers[1024:1124] * 0.25).astype(np.float16)
    calls.expect(f"{scale}Cast({half}, {ints}, RoundMode::CAST_NONE, 100);", scaled)
    calls.expect(f"{scale}AddDeqRelu({half}, {ints}, {more}, 100);", np.maximum(sums, 0))
    for name, function in (("AddReluCast", np.add), ("SubReluCast", np.subtract)):
        values = np.maximum(function(data[0, :150], data[1, :150]), 0).astype(np.float16)
        calls.expect(f"using T = float; {name}({half}, {S0}, {S1}, 150);", values)
    calls.check(tmp_path, target=target)


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
    calls, near = Calls(raw, kind), 2e-6 if size == 4 else 2e-3

    def expect(text, wanted):
        calls.expect(f"using T = {word}; {text}", wanted, (near, 16 * near))

    values = data[0, :300].astype(np.float64)
    share = 1 / (1 + np.exp(-values))
    room = f"at<uint8_t>({6 * SIZE})"
    for name, wanted in (
        ("Floor", np.floor(values)), ("Ceil", np.ceil(values)), ("Trunc", np.trunc(values)), ("Round", np.rint(values)),
        ("Sigmoid", share), ("Silu", values * share), ("Tanh", np.tanh(values)), ("Sign", np.sign(values)),
        ("Sin", np.sin(values)), ("Cos", np.cos(values)), ("Log", np.log(np.where(values > 0, values, np.nan))),
    ):  # fmt: skip
        for more in ("", f", {room}"):
            expect(f"{name}({D}, {S0}{more}, 300);", wanted)
    rows = data[0, : 4 * 160].astype(np.float64).reshape(4, 160)
    expect(f"Sum({D}, {S0}, SumParams{{4, 160, 150}});", rows[:, :150].sum(1))
    cols = 96
    shapes = f"uint32_t to[] = {{20, {cols}}}, one[] = {{20, 1}}, row[] = {{1, {cols}}};"
    expect(f"{shapes} BroadCast<T, 2, 1>({D}, {S0}, to, one);", np.repeat(data[0, :20], cols))
    expect(f"{shapes} BroadCast<T, 2, 0>({D}, {S0}, to, row, {room});", np.tile(data[0, :cols], 20))
    expect(f"{shapes} Broadcast<T, 1, 0>({D}, {S0}, row + 1, one + 1);", np.full(cols, data[0, 0]))
    calls.check(tmp_path)


def test_words_that_issue_little_or_nothing(tmp_path):
    raw, data = data_of("f32")
    calls = Calls(raw)
    calls.expect(
        f"using T = float; auto t = {D}; t.SetSize(5); t.SetValue(0, float(t.GetSize())); "
        f"t.SetValue(1, GetTaskRation()); t.SetValue(2, GetSubBlockIdx()); "
        f"t.SetValue(3, float(t[8].GetPhyAddr() - t.GetPhyAddr())); "
        f"result.SetL2CacheHint(CacheMode::CACHE_MODE_DISABLE); DumpTensor(t, 1, 8); "
        f"t.SetValue(4, GetSysWorkSpacePtr(x) == x); auto p = result.GetPhyAddr(4); "
        f"t.SetValue(5, p - result.GetPhyAddr());",
        np.array([5, 1, 0, 32, 1, 4], np.float32),
    )
    least = data[0, :128].reshape(-1, 8).min(1)
    calls.expect(f"using T = float; BlockReduceMin({D}, {S0}, 2, 64, 1, 1, 8);", least)
    compared = np.packbits(data[0, :64] >= np.float32(0.5), bitorder="little")
    calls.expect(f"using T = float; Compares(at<uint8_t>({4 * SIZE}), {S0}, 0.5f, CMPMODE::GE, 64);", compared)
    calls.check(tmp_path)


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
