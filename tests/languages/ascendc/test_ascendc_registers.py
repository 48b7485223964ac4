"""Registers of AscendC on the A5: every name against NumPy; loops come back; what has no counterpart is refused."""

from __future__ import annotations

import re
from pathlib import Path

import ml_dtypes
import numpy as np
import pytest
from kit.ascendc_runs import ELEMENTS, SIZE, Calls, random_sources
from kit.paths import VECTORS
from kit.pto_cpp_runs import needs_compiler
from languages.ascendc.test_ascendc_calls import COMPARED, same_nan, wide

from castsim.isa.errors import CastsimError
from castsim.isa.reading import table_rows

pytestmark = needs_compiler

NAMES = {row["name"]: row for row in table_rows(VECTORS / "ascendc_registers.csv")}

LANES = {element: 256 // np.dtype(kind).itemsize for element, (_, kind) in ELEMENTS.items()}
EVERYWHERE = "f32 f16 i32 i16 u16"
ELEMENTWISE = {
    "Add(d, a, b, m)": (np.add, EVERYWHERE), "Sub(d, a, b, m)": (np.subtract, EVERYWHERE),
    "Mul(d, a, b, m)": (np.multiply, EVERYWHERE), "Max(d, a, b, m)": (np.maximum, EVERYWHERE),
    "Min(d, a, b, m)": (np.minimum, EVERYWHERE), "Div(d, a, b, m)": (np.divide, "f32 f16"),
    "And(d, a, b, m)": (np.bitwise_and, "i32 i16 u16"), "Or(d, a, b, m)": (np.bitwise_or, "i32 i16 u16"),
    "Xor(d, a, b, m)": (np.bitwise_xor, "i32 i16 u16"),
    "Abs(d, a, m)": (lambda a, b: np.abs(a), "f32 f16 i32 i16"), "Neg(d, a, m)": (lambda a, b: -a, "f32 f16 i32 i16"),
    "Relu(d, a, m)": (lambda a, b: np.maximum(a, 0), "f32 f16 i32"), "Not(d, a, m)": (lambda a, b: ~a, "i32 i16 u16"),
    "Sqrt(d, a, m)": (lambda a, b: np.sqrt(a), "f32"), "Move(d, a, m)": (lambda a, b: a, EVERYWHERE),
    "Copy(d, a, m)": (lambda a, b: a, "f32"),
    "Adds(d, a, 3, m)": (lambda a, b: a + a.dtype.type(3), EVERYWHERE),
    "Muls(d, a, 3, m)": (lambda a, b: a * a.dtype.type(3), EVERYWHERE),
    "Maxs(d, a, 3, m)": (lambda a, b: np.maximum(a, a.dtype.type(3)), EVERYWHERE),
    "Mins(d, a, 3, m)": (lambda a, b: np.minimum(a, a.dtype.type(3)), EVERYWHERE),
    "LeakyRelu(d, a, 3, m)": (lambda a, b: np.where(np.signbit(a), a * a.dtype.type(3), a), "f32 f16"),
    "Prelu(d, a, b, m)": (lambda a, b: np.where(np.signbit(a), a * b, a), "f32 f16"),
    "ShiftLefts(d, a, (int16_t)3, m)": (lambda a, b: a << a.dtype.type(3), "i32 i16 u16"),
    "ShiftRights(d, a, (int16_t)3, m)": (lambda a, b: a >> a.dtype.type(3), "i32 i16 u16"),
    "Duplicate(c, (T)3); ShiftLeft(d, a, c, m)": (lambda a, b: a << a.dtype.type(3), "i32 i16"),
    "Duplicate(c, (T)3); ShiftRight(d, a, c, m)": (lambda a, b: a >> a.dtype.type(3), "i32 i16"),
    "Duplicate(d, (T)7, m)": (lambda a, b: np.full_like(a, 7), EVERYWHERE),
    "Duplicate(d, a, m)": (lambda a, b: np.full_like(a, a[0]), EVERYWHERE),
    "Duplicate<T, HighLowPart::HIGHEST>(d, a, m)": (lambda a, b: np.full_like(a, a[-1]), EVERYWHERE),
    "d = b; MulAddDst(d, a, a, m)": (lambda a, b: b + a * a, "i32 i16"),
    "d = b; MulDstAdd(d, a, a, m)": (lambda a, b: b * a + a, "i32 i16"),
    "d = b; FusedMulDstAdd(d, a, a, m)": (lambda a, b: b * a + a, "i32 i16"),
    "CreateNothing": None,
}  # fmt: skip
del ELEMENTWISE["CreateNothing"]


def scope(element, statement, count, more=""):
    """Return a vector function that loads a and b, computes d, and stores all of it."""
    word = ELEMENTS[element][0]
    return (
        f"using namespace AscendC::Reg; using T = {word}; auto *x = (T *)0; auto *y = (T *){SIZE}; "
        f"auto *z = (T *){4 * SIZE}; __VEC_SCOPE__ {{ RegTensor<T> a, b, c, d; uint32_t n = {count}; MaskReg k; "
        f"MaskReg all = CreateMask<T>(), m = UpdateMask<T>(n); LoadAlign(a, x); LoadAlign(b, y); {more}{statement}; "
        f"StoreAlign(z, d, all); }}"
    )


def register(values):
    """Return the bytes of a result of which a register is stored."""
    found = np.zeros(SIZE, np.uint8)
    raw = np.ascontiguousarray(values).view(np.uint8).ravel()
    found[: raw.size] = raw
    return found


class Table:
    """Calls with the bytes that they leave."""

    def __init__(self, element, seed=7):
        self.element, self.kind = element, ELEMENTS[element][1]
        self.lanes = LANES[element]
        raw = random_sources(seed, element)
        self.calls = Calls(raw)
        self.raw = raw
        self.a, self.b = (raw[place * SIZE :][:256].view(self.kind) for place in (0, 1))
        self.expected = []
        self.generator = np.random.default_rng(seed)

    def count(self):
        return int(self.generator.integers(1, self.lanes))

    def add(self, text, wanted):
        self.calls.add(text)
        self.expected.append(register(np.asarray(wanted).astype(self.kind)))

    def masked(self, statement, values, count=None, more=""):
        count = self.count() if count is None else count
        self.add(
            scope(self.element, statement, count, more),
            np.where(np.arange(len(values)) < count, values, 0).astype(values.dtype),
        )

    def check(self, folder):
        found = self.calls.results(folder, target="a5")
        for number, wanted in enumerate(self.expected):
            np.testing.assert_array_equal(
                same_nan(found[number].view(self.kind)),
                same_nan(wanted.view(self.kind)),
                err_msg=self.calls.texts[number],
            )


@pytest.mark.parametrize("element", ["f32", "f16", "i32", "i16", "u16"])
def test_lanes(element, tmp_path):
    table = Table(element)
    for statement, (function, elements) in ELEMENTWISE.items():
        if element in elements.split():
            with np.errstate(all="ignore"):
                values = wide(function)(table.a, table.b)
            table.masked(statement, values)
            table.masked(statement, values, table.lanes)
    merged = np.where(np.arange(table.lanes) < 11, wide(np.add)(table.a, table.b), table.b)
    table.add(scope(element, "d = b; Add<T, MaskMergeMode::MERGING>(d, a, b, m)", 11), merged)
    table.add(scope(element, "Select(d, a, b, m)", 13), np.where(np.arange(table.lanes) < 13, table.a, table.b))
    for mode, function in COMPARED.items():
        with np.errstate(all="ignore"):
            chosen = function(table.a, table.b) & (np.arange(table.lanes) < 50)
            table.add(
                scope(element, f"Compare<T, CMPMODE::{mode}>(k, a, b, m); Select(d, a, b, k)", 50),
                np.where(chosen, table.a, table.b),
            )
            for name in ("Compares", "CompareScalar"):
                chosen = function(table.a, table.a.dtype.type(2)) & (np.arange(table.lanes) < 50)
                table.add(
                    scope(element, f"{name}<T, CMPMODE::{mode}>(k, a, 2, m); Select(d, a, b, k)", 50),
                    np.where(chosen, table.a, table.b),
                )
    both = np.stack([table.a, table.b], 1).ravel()
    table.add(scope(element, "Interleave(d, c, a, b)", 3), both[: table.lanes])
    table.add(scope(element, "Interleave(c, d, a, b)", 3), both[table.lanes :])
    joined = np.concatenate([table.a, table.b])
    table.add(scope(element, "DeInterleave(d, c, a, b)", 3), joined[::2])
    table.add(scope(element, "DeInterleave(c, d, a, b)", 3), joined[1::2])
    table.check(tmp_path)


# --------------------------------------------------------------------------------- memory, masks, rearranging

LOADED = {  # how element i of a register comes from memory, by its distribution; for registers of 16 and 32 bits
    "DIST_NORM": lambda m, n: m[:n], "DIST_BRC_B{w}": lambda m, n: np.full(n, m[0], m.dtype),
    "DIST_BLK": lambda m, n: np.tile(m[: 32 // m.itemsize], 8),
    "DIST_UNPACK_B{w}": lambda m, n: np.stack([m[: n // 2], np.zeros(n // 2, m.dtype)], 1).ravel(),
    "DIST_E2B_B{w}": lambda m, n: np.repeat(m[:8], 32 // m.itemsize),
}  # fmt: skip


@pytest.mark.parametrize("element", ["f32", "i16"])
def test_loads_and_stores(element, tmp_path):
    table = Table(element)
    lanes, width = table.lanes, 2048 // table.lanes
    memory = table.raw.view(table.kind)
    for dist, function in LOADED.items():
        name = dist.format(w=width)
        table.add(scope(element, f"LoadAlign<T, LoadDist::{name}>(d, x + 64)", 1), function(memory[64:], lanes))
    if element == "i16":
        for name, places in {"US_B16": np.arange(lanes) // 2, "DS_B16": np.arange(lanes) * 2}.items():
            table.add(scope(element, f"DataCopy<T, LoadDist::DIST_{name}>(d, x)", 1), memory[places])
    table.add(scope(element, f"LoadAlign<T, LoadDist::DIST_DINTLV_B{width}>(c, d, x)", 1), memory[1 : 2 * lanes : 2])
    table.add(
        scope(element, "LoadAlign<T, PostLiteral::POST_MODE_UPDATE>(d, x, 32); "
              "LoadAlign<T, PostLiteral::POST_MODE_UPDATE>(d, x, 32); LoadAlign(d, x)", 1), memory[64 : 64 + lanes]
    )  # fmt: skip
    table.add(
        scope(element, f"AddrReg at = CreateAddrReg<T>(1, {lanes}, 3, 32); LoadAlign(d, x, at)", 1),
        memory[lanes + 96 : 2 * lanes + 96],
    )
    block = 32 // memory.itemsize
    blocks = (np.arange(8)[:, None] * 3 * block + np.arange(block)).ravel()
    table.add(scope(element, "LoadAlign<T, DataCopyMode::DATA_BLOCK_COPY>(d, x, 3, all)", 1), memory[blocks])
    table.add(
        scope(element, "LoadAlign<T, DataCopyMode::DATA_BLOCK_COPY, PostLiteral::POST_MODE_UPDATE>(d, x, 3, 2, all); "
              "LoadAlign<T, DataCopyMode::DATA_BLOCK_COPY, PostLiteral::POST_MODE_UPDATE>(d, x, 3, 2, all)", 1),
        memory[2 * block + blocks],
    )  # fmt: skip
    table.add(
        scope(
            element,
            "UnalignReg u; auto *p = x + 5; LoadUnAlignPre(u, p); LoadUnAlign(c, u, p, 7); LoadUnAlign(d, u, p)",
            1,
        ),
        memory[12 : 12 + lanes],
    )

    # What is stored.
    def stored(text, places, values):
        found = np.zeros(SIZE // memory.itemsize, table.kind)
        found[np.asarray(places)] = values
        table.calls.add(scope(element, "d = a", 1).replace("StoreAlign(z, d, all);", text))
        table.expected.append(found.view(np.uint8))

    a, b = table.a, table.b
    stored("StoreAlign(z + 64, a, m);", [64], a[:1])
    stored(f"StoreAlign<T, StoreDist::DIST_FIRST_ELEMENT_B{width}>(z + 3, b, all);", [3], b[:1])
    stored(
        f"StoreAlign<T, StoreDist::DIST_INTLV_B{width}>(z, a, b, all);",
        np.arange(2 * lanes),
        np.stack([a, b], 1).ravel(),
    )
    stored(
        "StoreAlign<T, PostLiteral::POST_MODE_UPDATE>(z, a, 256, all); "
        "StoreAlign<T, PostLiteral::POST_MODE_UPDATE>(z, b, 32, all);",
        np.r_[np.arange(lanes), 256 + np.arange(lanes)], np.r_[a, b],
    )  # fmt: skip
    stored("StoreAlign<T, DataCopyMode::DATA_BLOCK_COPY>(z, a, 3, all);", blocks, a)
    stored(
        "UnalignReg u; StoreUnAlign(z, a, u, 5); StoreUnAlign(z, b, u, 9); StoreUnAlignPost(z, u, 0);",
        np.arange(14), np.r_[a[:5], b[:9]],
    )  # fmt: skip
    kept = np.flatnonzero(a > a.dtype.type(0))
    stored(
        "UnalignReg u; ClearSpr<SpecialPurposeReg::AR>(); Compares<T, CMPMODE::GT>(k, a, 0, all); "
        "Squeeze<T, GatherMaskMode::STORE_REG>(c, a, k); StoreUnAlign(z, c, u); StoreUnAlignPost(z, u);",
        np.arange(len(kept)), a[kept],
    )  # fmt: skip
    raw = np.zeros(SIZE, np.uint8)
    raw[:32] = np.packbits(
        np.repeat(np.arange(lanes) < 9, 256 // lanes) & (np.arange(256) % (256 // lanes) == 0), bitorder="little"
    )
    table.calls.add(
        scope(element, "auto *w = (uint8_t *)z; MaskReg nine = m; StoreAlign(w, nine)", 9).replace(
            "StoreAlign(z, d, all);", ""
        )
    )
    table.expected.append(raw)
    table.add(
        scope(element, "auto *w = (uint8_t *)(z + 1024); StoreAlign(w, m); "
              "LocalMemBar<MemType::VEC_STORE, MemType::VEC_LOAD>(); "
              "LoadAlign(k, w); Select(d, a, b, k)", 9).replace("StoreAlign(z, d, all);", "StoreAlign(z, d, all); "
              "Duplicate(c, (T)0); StoreAlign(z + 1024, c, all);"),
        np.where(np.arange(lanes) < 9, a, b),
    )  # fmt: skip
    table.check(tmp_path)


def test_masks(tmp_path):
    table = Table("f32")
    a, b, lane = table.a, table.b, np.arange(64)
    patterns = {
        "ALL": lane >= 0, "ALLF": lane < 0, "M3": lane % 3 == 0, "M4": lane % 4 == 0, "H": lane < 32, "Q": lane < 16,
        **{f"VL{n}": lane < n for n in (1, 2, 3, 4, 8, 16, 32)},
    }  # fmt: skip
    for name, mask in patterns.items():
        table.add(
            scope("f32", f"k = CreateMask<T, MaskPattern::{name}>(); Select(d, a, b, k)", 1), np.where(mask, a, b)
        )
    third, few = lane % 3 == 0, lane < 20
    logic = {
        "And(k, p, m, all)": third & few, "Or(k, p, m, all)": third | few,
        "Xor(k, p, m, all)": third ^ few,
        "MaskAnd(k, p, m, all)": third & few, "MaskOr(k, p, m, all)": third | few,
        "MaskXor(k, p, m, all)": third ^ few,
        "Not(k, p, m)": ~third & few, "MaskNot(k, p, m)": ~third & few, "Move(k, p, m)": third & few,
        "MaskMov(k, p)": third,
        "Select(k, p, all, m)": np.where(few, third, True), "MaskSel(k, p, all, m)": np.where(few, third, True),
        "MaskInterleave<T>(k, q, p, m)": np.stack([third, few], 1).ravel()[:64],
        "DeInterleave<T>(k, q, p, m)": np.concatenate([third, few])[::2],
        "Pack<HighLowPart::LOWEST>(q, p); UnPack<HighLowPart::LOWEST>(k, q)": third,
        "MaskPack(q, p); MaskUnPack(k, q)": third,
    }  # fmt: skip
    for text, mask in logic.items():
        more = "MaskReg p = CreateMask<T, MaskPattern::M3>(), q; "
        table.add(scope("f32", f"{text}; Select(d, a, b, k)", 20, more), np.where(mask, a, b))
    table.check(tmp_path)


def test_rearranging_and_reducing(tmp_path):
    table = Table("i32")
    a, b = table.a, table.b

    def first(value):
        return np.r_[np.array([value], np.int32), np.zeros(63, np.int32)]

    table.add(scope("i32", "Arange(d, 5)", 1), np.arange(5, 69))
    table.add(scope("i32", "Arange<T, IndexOrder::DECREASE_ORDER>(d, 5)", 1), 5 - np.arange(64))
    index = np.arange(64)[::-1] * 2 % 64
    reverse = "Arange<T, IndexOrder::DECREASE_ORDER>(c, 63); "
    table.add(scope("i32", f"{reverse}Gather(d, a, c)", 1), a[::-1])
    table.add(
        scope("i32", f"{reverse}Gather(d, x, (RegTensor<uint32_t> &)c, m)", 7), np.where(np.arange(64) < 7, a[::-1], 0)
    )
    table.add(
        scope(
            "i32",
            f"{reverse}Scatter(z, a, (RegTensor<uint32_t> &)c, all); "
            "LocalMemBar<MemType::VEC_STORE, MemType::VEC_LOAD>(); LoadAlign(d, z)",
            1,
        ),
        a[::-1],
    )
    table.add(scope("i32", "Muls(c, a, 0, all); Adds(c, c, 64, all); GatherB(d, x, (RegTensor<uint32_t> &)c, all)", 1),
              np.tile(table.raw.view(np.int32)[16:24], 8))  # fmt: skip
    few = a[:21].astype(np.int64)
    table.add(scope("i32", "Reduce<ReduceType::SUM>(d, a, m)", 21), first(few.sum().astype(np.int32)))
    for name, function in {"MAX": np.max, "MIN": np.min}.items():
        table.add(scope("i32", f"Reduce<ReduceType::{name}>(d, a, m)", 21), first(function(few)))
    table.add(scope("i32", "ReduceSum(d, a, m)", 21), first(few.sum().astype(np.int32)))
    rows = a.reshape(8, 8)
    for text, values in {
        "ReduceDataBlock<ReduceType::MAX>": rows.max(1), "ReduceMinWithDataBlock": rows.min(1),
        "ReduceSumWithDataBlock": rows.sum(1),
    }.items():  # fmt: skip
        table.add(scope("i32", f"{text}(d, a, all)", 1), np.r_[values.astype(np.int32), np.zeros(56, np.int32)])
    kept = a[a > 0]
    table.add(
        scope("i32", "Compares<T, CMPMODE::GT>(k, a, 0, all); Squeeze(d, a, k)", 1),
        np.r_[kept, np.zeros(64 - len(kept), np.int32)],
    )
    before = np.cumsum(a > 0) - (a > 0)
    table.add(scope("i32", "Compares<T, CMPMODE::GT>(k, a, 0, all); Unsqueeze(d, k)", 1), before)
    low, high = (a.astype(np.int64) * b).astype(np.uint64), a.astype(np.int64) * b >> 32
    table.add(scope("i32", "Mull(d, c, a, b, all)", 1), low.astype(np.uint32).view(np.int32))
    table.add(scope("i32", "Mull(c, d, a, b, all)", 1), high.astype(np.int32))
    carry = a.view(np.uint32).astype(np.uint64) + b.view(np.uint32) >> 32
    table.add(scope("i32", "Add(k, d, a, b, all)", 1), a + b)
    table.add(scope("i32", "Add(k, c, a, b, all); AddC(k, d, a, b, k, all)", 1), a + b + carry.astype(np.int32))
    table.add(scope("i32", "Sub(k, d, a, b, all)", 1), a - b)
    borrow = (a.view(np.uint32) < b.view(np.uint32)).astype(np.int32)
    table.add(scope("i32", "Sub(k, c, a, b, all); SubC(k, d, a, b, k, all)", 1), a - b - borrow)
    halves = a.astype(np.uint16)
    table.add(
        scope("i32", "RegTensor<uint16_t> h; Pack(h, a); d = (RegTensor<T> &)h", 1),
        np.r_[halves, np.zeros(64, np.uint16)].view(np.int32),
    )
    high_half = "Pack<uint16_t, T, HighLowPart::HIGHEST>(h, a)"
    table.add(scope("i32", f"RegTensor<uint16_t> h; {high_half}; d = (RegTensor<T> &)h", 1),
              np.r_[np.zeros(64, np.uint16), halves].view(np.int32))  # fmt: skip
    table.add(scope("i32", "UnPack(d, (RegTensor<int16_t> &)a)", 1), a.view(np.int16)[:64])
    table.add(
        scope("i32", "UnPack((RegTensor<uint32_t> &)d, (RegTensor<uint16_t> &)a)", 1),
        a.view(np.uint16)[:64].astype(np.int32),
    )
    assert index.size
    table.check(tmp_path)


def test_floats(tmp_path):
    table = Table("f32")
    a, b = table.a, table.b
    f32, f64 = np.float32, np.float64
    calls = {  # within a tolerance, since the precision of the chip is not stated
        "Exp(d, a, m)": np.exp(a.astype(f64)), "Ln(d, a, m)": np.log(np.abs(a).astype(f64)),
        "Log(d, a, m)": np.log(np.abs(a).astype(f64)),
        "ExpSub(d, a, b, m)": np.exp(a.astype(f64) - b), "FusedExpSub(d, a, b, m)": np.exp(a.astype(f64) - b),
        "d = b; Axpy(d, a, 3, m)": b + 3 * a.astype(f64), "d = b; FusedMulDstAdd(d, a, a, m)": b * a.astype(f64) + a,
        "d = b; MulAddDst(d, a, a, m)": b + a.astype(f64) * a, "PairReduceElem<ReduceType::SUM>(d, a, all)": None,
        "PairReduceSum(d, a, all)": None,
    }  # fmt: skip
    wanted = []
    for text, exact in calls.items():
        values = exact
        if values is None:
            values = np.r_[a.reshape(32, 2).sum(1), np.zeros(32, f32)]
            table.calls.add(scope("f32", text, 33))
        else:
            table.calls.add(scope("f32", text if "L" not in text[:1] else f"Abs(a, a, all); {text}", 33))
            values = np.where(np.arange(64) < 33, values, 0)
        wanted.append(values)
    rounded = {"RINT": np.rint, "FLOOR": np.floor, "CEIL": np.ceil, "TRUNC": np.trunc}
    for mode, function in rounded.items():
        table.calls.add(scope("f32", f"Truncate<T, RoundMode::CAST_{mode}>(d, a, m)", 33))
        wanted.append(np.where(np.arange(64) < 33, function(a), 0))
    table.calls.add(
        scope("f32", "RegTensor<half> h; MulsCast<half, T, RegLayout::ONE>(h, a, 3.0f, all); d = (RegTensor<T> &)h", 1)
    )
    scaled = (a * f32(3)).astype(np.float16)
    found = table.calls.results(tmp_path, target="a5")
    for number, values in enumerate(wanted):
        got = found[number].view(f32)[:64]
        np.testing.assert_allclose(got, values.astype(f32), rtol=3e-6, atol=1e-6, err_msg=table.calls.texts[number])
    np.testing.assert_array_equal(found[-1].view(np.float16)[1:128:2], scaled)


CONVERTED = {  # source and destination; how exact codes come of NumPy
    ("f32", "f16"): lambda a: a.astype(np.float16), ("f32", "i32"): lambda a: np.rint(a).astype(np.int32),
    ("f32", "i16"): lambda a: np.rint(a).astype(np.int16), ("f32", "bf16"): lambda a: a.astype(ml_dtypes.bfloat16),
    ("f16", "f32"): lambda a: a.astype(np.float32),
    ("f16", "i8"): lambda a: np.clip(np.rint(a), -128, 127).astype(np.int8),
    ("i32", "f32"): lambda a: a.astype(np.float32),
    ("i32", "i16"): lambda a: np.clip(a, -32768, 32767).astype(np.int16),
    ("i16", "f32"): lambda a: a.astype(np.float32), ("u8", "f16"): lambda a: a.astype(np.float16),
    ("i16", "f16"): lambda a: a.astype(np.float16), ("u8", "u32"): lambda a: a.astype(np.uint32),
}  # fmt: skip


@pytest.mark.parametrize("source", sorted({source for source, _ in CONVERTED}))
def test_casts_by_traits(source, tmp_path):
    """Narrow results are every second or fourth lane from the layout's; wide ones come from there."""
    table = Table(source)
    wanted = []
    for (own, to), function in CONVERTED.items():
        if own != source:
            continue
        values = function(table.a)
        before, after = 2048 // table.lanes, 8 * values.itemsize
        for layout in range(max(before, after) // min(before, after)):
            trait = f"RegLayout::{('ZERO', 'ONE', 'TWO', 'THREE')[layout]}, SatMode::SAT, MaskMergeMode::ZEROING"
            word = ELEMENTS[to][0]
            text = scope(source, f"Cast<{word}, T, how>(h, a, all); d = (RegTensor<T> &)h", 1, f"RegTensor<{word}> h; ")
            how = f"SetCtrlSpr<60, 60>(0); constexpr CastTrait how{{{trait}, RoundMode::CAST_RINT}}; __VEC_SCOPE__"
            table.calls.add(text.replace("__VEC_SCOPE__", how))
            if after > before:
                expected = values[layout :: after // before]
            else:
                expected = np.zeros(256 // values.itemsize, values.dtype)
                expected[layout :: before // after] = values
            wanted.append(expected)
    found = table.calls.results(tmp_path, target="a5")
    for number, expected in enumerate(wanted):
        raw = np.ascontiguousarray(expected).view(np.uint8)
        np.testing.assert_array_equal(found[number][:256], raw, err_msg=table.calls.texts[number])


# ------------------------------------------------------------------------------------------------- refusals


REFUSED = {
    "Histograms": "Histograms(d, a, m)", "AbsSub": "AbsSub(d, a, b, m)", "GetSpr": "GetSpr<SpecialPurposeReg::AR>()",
    "algorithm": "static constexpr int own = 1; Div<T, &own>(d, a, b, m)",
    "a register that nothing was written to": "Add(d, a, c, m)",
    "a mask that has no value": "Add(d, a, b, k)",
    "needs another RegLayout": "constexpr CastTrait how{RegLayout::UNKNOWN, SatMode::SAT, "
    "MaskMergeMode::ZEROING, RoundMode::CAST_RINT}; RegTensor<half> h; Cast<half, T, how>(h, a, m)",
    "aligned": "LoadAlign(d, x + 1)", "outside the buffer": "LoadAlign(d, x + 100000)",
    "does not take elements": "Sqrt((RegTensor<int32_t> &)d, (RegTensor<int32_t> &)a, m)",
    "a vector function has only": "SetFlag<HardEvent::V_MTE3>(EVENT_ID0)",
    "RegTraitNumTwo": "RegTensor<int64_t, RegTraitNumTwo> wide",
}  # fmt: skip


@pytest.mark.parametrize("words", REFUSED)
def test_refused_with_its_line(words, tmp_path):
    table = Table("f32")
    table.calls.add(scope("f32", "\n" + REFUSED[words] + "\n", 3, "d = a; "))
    with pytest.raises(CastsimError) as caught:
        table.calls.results(tmp_path, target="a5")
    assert re.search(words, caught.value.message)
    assert caught.value.span is not None
    assert re.split(r"[(<]", REFUSED[words].rsplit("; ", maxsplit=1)[-1])[0] in caught.value.span.text


def test_every_name_has_a_test():
    text = Path(__file__).read_text()
    assert [name for name in NAMES if not re.search(rf"\b{name}\b", text)] == []
