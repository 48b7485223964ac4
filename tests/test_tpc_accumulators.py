"""MAC, MADD and MSAC against exact fractions and integers (docs/reference/tpc.md section 5.3)."""

from __future__ import annotations

import os
from itertools import product
from typing import Any

import numpy as np
import pytest
from oracle_formats import INTS, fmt
from oracle_tpc import float_operation, fused, number, pattern
from tpc_kernel_values import INCOME, MASK, MODES, every_code, machine_in, run
from tpc_semantics_cases import codes, samples, state, vector
from tpc_text import target

from castsim.isa.errors import IllegalError
from castsim.targets.options import with_options

THOROUGH = "CASTSIM_THOROUGH" in os.environ

# -------------------------------------------------------------------------------------------- MAC and MADD of floats


def near_products(a: np.ndarray, b: np.ndarray, name: str, wide: str, rng: np.random.Generator) -> np.ndarray:
    """Addends: samples of the accumulator, and the rounded product with either sign, where sums cancel."""
    bits = fmt(wide).bits
    some = rng.choice(np.asarray(samples(wide)), a.size)
    for place in range(0, a.size, 3):
        code = fused(int(a[place]), int(b[place]), 0, name, wide, "RZ", negate=bool(place % 2))
        some[place] = (code + place % 7 - 3) % (1 << bits)
    return some


def factors(name: str, mode: str, rng: np.random.Generator) -> list[np.ndarray]:
    """Registers of all codes of 16 bits, or the samples of 32, mixed; a quarter of them where that is not asked for.

    Of other modes than the nearest even, an eighth.
    """
    vectors = list(every_code(name))
    mixed = rng.permutation(np.concatenate(vectors)).reshape(len(vectors), -1)
    return list(mixed[:: (1 if THOROUGH else 4) if mode == "RHNE" else 8])


WIDE_OF = {"f32": "f32", "bf16": "f32", "f16": "f32", "f8_143": "f32", "f8_152": "f32"}
PLAIN = ("f32", "bf16", "f16")


@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("name", PLAIN)
def test_sums_of_products_in_the_type_of_the_factors(name: str, mode: str) -> None:
    bits, rng, machine = fmt(name).bits, np.random.default_rng(7), machine_in(mode)
    vectors = factors(name, mode, rng)
    for place, a in enumerate(vectors):
        b = rng.permutation(np.resize(np.asarray(samples(name)), a.size))
        c = near_products(a, b, name, name, rng)
        negate = bool(place % 2)
        word = "neg " if negate else ""
        sources = {"src_a": vector(a, bits), "src_b": vector(b, bits)}
        expected = [
            fused(int(x), int(y), int(z), name, name, mode, negate=negate) for x, y, z in zip(a, b, c, strict=True)
        ]
        mac = run(f"mac.{name} {word}V1, V2, V3", machine=machine, accumulator=vector(c, bits), **sources)
        madd = run(f"madd.{name} {word}V1, V2, V3, V4", machine=machine, src_c=vector(c, bits), **sources)
        assert codes(mac.result, bits) == codes(madd.result, bits) == expected


@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("name", ["bf16", "f16", "f8_143", "f8_152"])
def test_sums_of_products_in_f32(name: str, mode: str) -> None:
    """Register k of the destination holds the sums of elements r i + k."""
    bits, rng, machine = fmt(name).bits, np.random.default_rng(11), machine_in(mode)
    ratio, lanes = 32 // bits, 2048 // bits
    dest = {2: "D4", 4: "A4"}[ratio]
    vectors = [rng.permutation(1 << bits) for _ in range(4)] if bits == 8 else factors(name, mode, rng)
    for place, a in enumerate(vectors):
        b = rng.permutation(np.resize(np.asarray(samples(name)), lanes))
        c = near_products(a, b, name, "f32", rng)
        negate = bool(place % 2)
        expected = [
            fused(int(x), int(y), int(z), name, "f32", mode, negate=negate) for x, y, z in zip(a, b, c, strict=True)
        ]
        group = tuple(vector(c[k::ratio], 32) for k in range(ratio))
        line = f"mac.{name} {'neg ' if negate else ''}acc_fp32 {dest}, V1, V2"
        got = run(
            line, machine=machine, income=group, accumulator=group, src_a=vector(a, bits), src_b=vector(b, bits)
        ).result
        for k, register in enumerate(got):
            assert codes(register, 32) == expected[k::ratio]


def test_one_rounding_or_two() -> None:
    """x * x - rounded(x * x) is the product's rounding error if fused, and zero if not."""
    x = np.random.default_rng(2).uniform(1, 2, 64).astype(np.float32)
    square = x * x
    sources = {"src_a": x.view(np.uint8), "src_b": x.view(np.uint8), "accumulator": (-square).view(np.uint8)}
    error = (x.astype(np.float64) ** 2 - square).astype(np.float32)
    assert np.array_equal(run("mac.f32 V1, V2, V3", **sources).result.view(np.float32), error)
    separate = with_options(target("gaudi2"), {"product_sum": "separate"})
    assert not run("mac.f32 V1, V2, V3", chip=separate, **sources).result.view(np.float32).any()
    c = np.random.default_rng(3).normal(size=64).astype(np.float32)
    got = run("mac.f32 neg V1, V2, V3", chip=separate, **{**sources, "accumulator": c.view(np.uint8)}).result
    assert np.array_equal(got.view(np.float32), c - square)


def test_subnormal_operands_and_results() -> None:
    f16 = np.asarray([0x0001, 0x83FF, 0x0400, 0x3C00])
    ones = vector([0x3C00], 16)
    for text, generation, machine, flushed in (
        ("mac.f16 V1, V2, V3", "gaudi2", None, False),
        ("mac.f16 fp16_ftz_in V1, V2, V3", "gaudib", None, True),
        ("mac.f16 V1, V2, V3", "gaudi2", state({"f16_flush_inputs": 1}), True),
    ):
        got = run(text, generation, machine=machine, src_a=vector(f16, 16), src_b=ones, accumulator=vector([0], 16))
        expected = [fused(int(code), 0x3C00, 0, "f16", "f16", "RHNE", flush_in=flushed) for code in f16]
        assert codes(got.result, 16)[:4] == expected
    keep = with_options(target("gaudi2"), {"arithmetic_subnormals": "keep"})
    tiny = vector([1, 0x00800000, 0x80000003], 32)
    got = run("mac.f32 V1, V2, V3", chip=keep, src_a=tiny, src_b=vector([0x3F000000], 32), accumulator=tiny)
    assert codes(got.result, 32)[:3] == [
        fused(code, 0x3F000000, code, "f32", "f32", "RHNE", flush=False) for code in (1, 0x00800000, 0x80000003)
    ]


def test_scalars_immediates_and_masks_of_accumulators() -> None:
    a = vector(samples("bf16"), 16)
    by_register = run("mac.bf16 V1, V2, V3", src_a=a, src_b=vector([0x3FC0], 16), accumulator=INCOME).result
    for text, more in (("mac.bf16 V1, V2, S3", {"src_b": 0x12343FC0}), ("mac.bf16 V1, V2, 0x3fc0", {})):
        assert np.array_equal(run(text, src_a=a, accumulator=INCOME, **more).result, by_register)
    with pytest.raises(IllegalError, match="no source states whether it counts as f32") as refusal:
        run("mac.bf16 V1, V2, 0x3f800000", src_a=a, accumulator=INCOME)
    assert any("0xffff" in legal for legal in refusal.value.legal)
    group = (INCOME, INCOME[::-1].copy())
    whole = run("mac.bf16 acc_fp32 D4, V2, V3", src_a=a, src_b=a, income=group, accumulator=group).result
    masked = run(
        "mac.bf16 acc_fp32 D4, V2, V3, VP1", src_a=a, src_b=a, income=group, accumulator=group, predicate=MASK
    ).result
    for k, (register, old) in enumerate(zip(masked, group, strict=True)):
        kept = np.repeat(MASK[2 * k :: 4], 4)  # one bit per byte of the narrow element, lane i from element 2 i + k
        assert np.array_equal(register, np.where(kept, whole[k], old))
    one, three = 0x3F800000, 0x40400000
    assert run("mac.f32 S1, S2, S3", slot="spu", income=one, src_a=three, src_b=three, accumulator=one).result == (
        int(np.float32(10).view(np.uint32))
    )
    got = run("mac.bf16 acc_fp32 S1, S2, S3", slot="spu", income=one, src_a=0x4040, src_b=0x4040, accumulator=one)
    assert got.result == int(np.float32(10).view(np.uint32))


def test_pairs_of_f32() -> None:
    rng = np.random.default_rng(9)
    a, c = (tuple(vector(rng.choice(np.asarray(samples("f32")), 64), 32) for _ in range(2)) for _ in range(2))
    b, d = (vector(rng.choice(np.asarray(samples("f32")), 64), 32) for _ in range(2))
    triples = [zip(codes(p, 32), codes(q, 32), codes(s, 32), strict=True) for p, q, s in zip(a, (b, d), c, strict=True)]
    expected = [[fused(*each, "f32", "f32", "RHNE", negate=True) for each in half] for half in triples]
    mac = run("mac.f32 neg x2 D4, D6, V1, V2", src_a=a, src_b=b, src_d=d, income=c, accumulator=c).result
    madd = run("madd.f32 neg x2 D4, D6, V1, D8, V2", src_a=a, src_b=b, src_c=c, src_d=d, income=c).result
    assert [codes(part, 32) for part in mac] == [codes(part, 32) for part in madd] == expected
    for operation in ("add", "sub", "mul"):
        got = run(f"{operation}.f32 x2 D4, D6, V1, V2", src_a=a, src_b=b, src_d=d, income=c).result
        pairs = [zip(codes(p, 32), codes(q, 32), strict=True) for p, q in zip(a, (b, d), strict=True)]
        assert [codes(part, 32) for part in got] == [
            [float_operation(operation, *each, "f32", "RHNE", flush=True) for each in half] for half in pairs
        ]


# ------------------------------------------------------------------------------------------ MAC and MADD of integers


def settled(total: int, name: str, *, saturate: bool) -> int:
    row = INTS[name]
    return pattern(min(max(total, row.low), row.high) if saturate else total, name)


INTEGER_FORMS = [
    # type, accumulator, words, destination
    *(("i16", "i32", "", "D4"), ("u16", "u32", "", "D4"), ("u16", "i32", "acc_i32", "D4")),
    *(("i8", "i32", "", "A4"), ("u8", "u32", "", "A4"), ("u8", "i32", "acc_i32", "A4")),
    *(("i8", "i16", "acc_i16", "D4"), ("u8", "i16", "acc_i16", "D4")),
]


@pytest.mark.parametrize(("name", "wide", "word", "dest"), INTEGER_FORMS)
def test_integer_products(name: str, wide: str, word: str, dest: str) -> None:
    """All pairs of bytes; of 16 bits every code beside samples. Wrapped and saturated, added and subtracted."""
    bits, wide_bits, rng = fmt(name).bits, fmt(wide).bits, np.random.default_rng(13)
    ratio, lanes = wide_bits // bits, 2048 // bits
    if bits == 8:
        grid = np.stack(np.meshgrid(np.arange(256), np.arange(256)), axis=-1).reshape(-1, 2)
        chunks = [(part[:, 0], part[:, 1]) for part in grid.reshape(-1, lanes, 2)]
    else:
        chunks = [(some, rng.choice(np.asarray(samples(name)), lanes)) for some in every_code(name)]
    for place, (a, b) in enumerate(chunks):
        saturate, negate = bool(place & 1), bool(place & 2)
        c = rng.choice(np.asarray(samples(wide)), lanes)
        group = tuple(vector(c[k::ratio], wide_bits) for k in range(ratio))
        words = " ".join(filter(None, ("st" * saturate, "neg" * negate, word)))
        sources = {"src_a": vector(a, bits), "src_b": vector(b, bits), "income": group}
        mac = run(f"mac.{name} {words} {dest}, V1, V2", accumulator=group, **sources).result
        madd = run(f"madd.{name} {words} {dest}, V1, V2, {dest[0]}8", src_c=group, **sources).result
        sign = -1 if negate else 1
        expected = [
            settled(number(int(z), wide) + sign * number(int(x), name) * number(int(y), name), wide, saturate=saturate)
            for x, y, z in zip(a, b, c, strict=True)
        ]
        for k in range(ratio):
            assert codes(mac[k], wide_bits) == codes(madd[k], wide_bits) == expected[k::ratio]


@pytest.mark.parametrize(("name", "dest", "wide"), [("i8", "A4", "i32"), ("u8", "A4", "u32"), ("i8", "D4", "i16")])
def test_two_products_and_zero_points(name: str, dest: str, wide: str) -> None:
    wide_bits, rng = fmt(wide).bits, np.random.default_rng(17)
    ratio = wide_bits // 8
    word = "acc_i16" if wide == "i16" else ""
    for pairs, zero, opposite, negate in product((False, True), repeat=4):
        if opposite and not zero:
            continue
        a, b, c, d, z = (rng.integers(0, 256, 256) for _ in range(5))
        old = rng.choice(np.asarray(samples(wide)), 256)
        group = tuple(vector(old[k::ratio], wide_bits) for k in range(ratio))
        words = ["neg" * negate, word, "x2" * pairs, "neg_zp" * opposite, "ZP_REG" * zero]
        line = f"mac.{name} {' '.join(filter(None, words))} {dest}, V1, V2{', V3, V4' * pairs}"
        sources: dict[str, Any] = {"src_a": vector(a, 8), "src_b": vector(b, 8)}
        sources |= {"src_c": vector(c, 8), "src_d": vector(d, 8)} if pairs else {}
        sources |= {"zp": vector(z, 8)} if zero else {}
        got = run(line, income=group, accumulator=group, **sources).result
        for lane in range(256):
            x, y, u, v, shift = (number(int(each[lane]), name) for each in (a, b, c, d, z))
            total = x * y + (u * v if pairs else 0)
            if zero:
                total += (-1 if opposite else 1) * (x + (u if pairs else 0)) * shift
            expected = settled(number(int(old[lane]), wide) + (-total if negate else total), wide, saturate=False)
            assert codes(got[lane % ratio], wide_bits)[lane // ratio] == expected, line


def test_integer_accumulators_of_the_scalar_unit() -> None:
    for text, a, b, c, expected in (
        ("mac.i16 S1, S2, S3", 0xFFFF8000, 0x8000, 5, 0x40000005),
        ("mac.i16 st S1, S2, S3", 0x8000, 0x8000, 0x7FFFFFFF, 0x7FFFFFFF),
        ("mac.u16 S1, S2, S3", 0xFFFF, 0xFFFF, 0, 0xFFFE0001),
        ("mac.u16 neg st S1, S2, S3", 2, 3, 5, 0),
        ("mac.i8 S1, S2, S3", 0x80, 0x7F, 0, (-128 * 127) % (1 << 32)),
    ):
        assert run(text, slot="spu", income=c, src_a=a, src_b=b, accumulator=c).result == expected, text


# --------------------------------------------------------------------------------------------------------- MSAC


@pytest.mark.parametrize("name", ["i16", "u16", "i8", "u8"])
@pytest.mark.parametrize("order", ["ab", "c"])
@pytest.mark.parametrize("half_up", [False, True])
def test_shifted_accumulators(name: str, order: str, half_up: bool) -> None:
    bits, rng = fmt(name).bits, np.random.default_rng(19)
    lanes, row = 2048 // bits, INTS[name]

    def shifted(value: int, amount: int) -> int:
        return (value + (1 << amount - 1 if half_up and amount else 0)) >> amount

    for some in every_code(name):
        b, old = (rng.choice(np.asarray(samples(name)), lanes) for _ in range(2))
        first, second = rng.integers(0, 33, lanes), rng.integers(0, 26, lanes)
        junk = rng.integers(0, 1 << bits, (2, lanes)) & ~0xFF
        shifts = [vector(junk[k] | (-each & 0xFF), bits) for k, each in enumerate((first, second))]
        line = f"msac.{name} {'rhu ' * half_up}normalize_{order} V1, V2, V3, V4, V5"
        got = run(
            line, src_a=vector(some, bits), src_b=vector(b, bits), src_c=shifts[0], src_d=shifts[1],
            accumulator=vector(old, bits),
        ).result  # fmt: skip
        expected = []
        for x, y, z, n, m in zip(some, b, old, first, second, strict=True):
            factor, addend = number(int(x), name) * number(int(y), name), number(int(z), name)
            if order == "ab":
                factor = shifted(factor, int(n))
            else:
                addend = shifted(addend, int(n))
            total = shifted(factor + addend, int(m))
            expected.append(pattern(min(max(total, row.low), row.high), name))
        assert codes(got, bits) == expected
    with pytest.raises(IllegalError, match="a shift of 1 is not documented"):
        run(line, src_a=INCOME, src_b=INCOME, src_c=vector([1], bits), src_d=vector([0], bits), accumulator=INCOME)
