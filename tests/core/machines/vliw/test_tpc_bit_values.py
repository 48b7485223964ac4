"""POPCNT to SHUFFLE on every code, and MAC, MADD and MSAC, against models and exact numbers."""

from __future__ import annotations

import os
from collections.abc import Callable
from functools import partial
from itertools import product
from typing import Any

import numpy as np
import pytest
from kit import tpc_semantics_cases
from kit.tpc_semantics_cases import (
    FLOAT_TYPES,
    INTEGER_TYPES,
    MODES,
    codes,
    every_code,
    machine_in,
    samples,
    state,
    vector,
)
from kit.tpc_text import target
from oracle_formats import FLOATS, INTS, decode, fmt
from oracle_tpc import float_operation, fused, number, pattern

from castsim.isa.errors import IllegalError
from castsim.targets.description import with_options

RNG = np.random.default_rng(18)
INCOME = RNG.integers(0, 256, 256).astype(np.uint8)
MASK = RNG.integers(0, 2, 256).astype(bool)
run = partial(tpc_semantics_cases.run, income=INCOME)
FORM_WORDS = ("exp_add_bias", "force_sign0", "force_sign1", "exp_is_num", "sign_lsb")


def population(code: int, bits: int, wanted: int) -> int:
    return sum((code >> place & 1) == wanted for place in range(bits))


def first_place(code: int, bits: int, wanted: int, *, top: bool) -> int:
    places = [place for place in range(bits) if (code >> place & 1) == wanted]
    return (max(places) if top else min(places)) if places else bits


@pytest.mark.parametrize("wanted", [0, 1])
@pytest.mark.parametrize("name", [*INTEGER_TYPES, *FLOAT_TYPES])
def test_bits_of_every_code(name: str, wanted: int) -> None:
    bits = fmt(name).bits
    texts: dict[str, Callable[[int], int]] = {
        "popcnt": lambda code: population(code, bits, wanted),
        "find_first start_lsb": lambda code: first_place(code, bits, wanted, top=False),
        "find_first start_msb": lambda code: first_place(code, bits, wanted, top=True),
    }
    for text, model in texts.items():
        mnemonic, _, start = text.partition(" ")
        for some in every_code(name):
            got = run(f"{mnemonic}.{name} set={wanted} {start} V1, V2", src_a=vector(some, bits)).result
            assert codes(got, bits) == [model(int(code)) for code in some], text


def exponent_field(code: int, name: str) -> int:
    row = FLOATS[name]
    return code >> row.fraction_bits & (1 << row.exponent_bits) - 1


def bias_of(name: str) -> int:
    return {"f32": 127, "bf16": 127, "f16": 15, "f8_143": 7, "f8_152": 15}[name]


@pytest.mark.parametrize("name", FLOAT_TYPES)
def test_exponents_of_every_code(name: str) -> None:
    bits = fmt(name).bits
    for some in every_code(name):
        field = [exponent_field(int(code), name) for code in some]
        biased = run(f"extract_exp.{name} biased V1, V2", src_a=vector(some, bits)).result
        plain = run(f"extract_exp.{name} V1, V2", src_a=vector(some, bits)).result
        assert codes(biased, bits) == field
        assert codes(plain, bits) == [(each - bias_of(name)) % (1 << bits) for each in field]


def test_the_word_of_goya_is_read_by_its_name_or_as_the_shared_functions_pass_it() -> None:
    some = np.asarray(samples("f32")[:64])
    field = [exponent_field(int(code), "f32") for code in some]
    opposite = with_options(target("goya"), {"exponent_word": "opposite"})
    for word, chip in product(("", "subtract_bias"), (None, opposite)):
        got = run(f"extract_exp.f32 {word} V1, V2", "goya", src_a=vector(some, 32), chip=chip).result
        subtracts = (word == "subtract_bias") == (chip is None)
        assert codes(got, 32) == [(each - 127 * subtracts) % (1 << 32) for each in field]


def class_of(code: int, name: str) -> int:
    """The class by the number's value, and the bits of NaN."""
    row, value = FLOATS[name], decode(code, name)
    narrow = row.bits == 8
    if value.kind == "nan":
        return 7 if narrow else 9 if code >> (row.fraction_bits - 1) & 1 else 8
    smallest = decode(1 << row.fraction_bits, name).magnitude
    size = 0 if value.kind == "inf" else 1 if value.magnitude >= smallest else 2 if value.magnitude else 3
    if narrow and size == 3:
        return 3
    return size if value.negative else (6 if narrow else 7) - size


@pytest.mark.parametrize("name", FLOAT_TYPES)
def test_classes_of_every_code(name: str) -> None:
    bits = fmt(name).bits
    for some in every_code(name):
        got = run(f"fclass.{name} V1, V2", src_a=vector(some, bits)).result
        expected = [1 << class_of(int(code), name) for code in some]
        assert codes(got, bits) == [code & ((1 << bits) - 1) for code in expected]
    with pytest.raises(IllegalError, match="what limit computes"):
        run(f"fclass.{name} limit V1, V2", src_a=INCOME)


def test_options_of_find_first() -> None:
    some = np.asarray([0, 1, 0x80000000, 0x00010000, 0xFFFFFFFF])
    distance = with_options(target("gaudi2"), {"find_first_position": "distance", "find_first_none": "ones"})
    for start, expected in (("msb", [255, 31, 0, 15, 0]), ("lsb", [255, 0, 31, 16, 0])):
        got = run(f"find_first.i32 set=1 start_{start} V1, V2", src_a=vector(some, 32), chip=distance).result
        assert codes(got, 32)[:5] == expected


def formed(a: int, b: int, c: int, name: str, words: str) -> int:
    row = FLOATS[name]
    field = a & 0xFF if "exp_is_num" in words else exponent_field(a, name)
    field = (field + bias_of(name) * ("exp_add_bias" in words)) % (1 << row.exponent_bits)
    sign = b >> (row.bits - 1) & 1
    sign = b & 1 if "sign_lsb" in words else 0 if "force_sign0" in words else 1 if "force_sign1" in words else sign
    return sign << (row.bits - 1) | field << row.fraction_bits | c & (1 << row.fraction_bits) - 1


@pytest.mark.parametrize("name", FLOAT_TYPES)
def test_numbers_are_formed_of_every_code(name: str) -> None:
    bits = fmt(name).bits
    rng = np.random.default_rng(3)
    signs = ("", "force_sign0", "force_sign1", "sign_lsb")
    choices = [" ".join(filter(None, words)) for words in product(("", "exp_add_bias"), signs, ("", "exp_is_num"))]
    for place, some in enumerate(every_code(name)):
        words = choices[place % len(choices)]
        other = [rng.permutation(some) for _ in range(2)]
        ordered = sorted(words.split(), key=FORM_WORDS.index)
        line = f"form_fp_num.{name} {' '.join(ordered)} V1, V2, V3, V4"
        sources = {f"src_{role}": vector(each, bits) for role, each in zip("abc", (some, *other), strict=True)}
        got = codes(run(line, **sources).result, bits)
        assert got == [formed(int(a), int(b), int(c), name, words) for a, b, c in zip(some, *other, strict=True)], line


def shuffled(value: bytes, directions: bytes, income: bytes, width: int) -> list[int]:
    out = list(income)
    for place in range(256):
        lane = place - place % width
        dual, chosen = place // 64 * 64, directions[lane]
        element = (chosen & 0x1F) % (32 // width)
        group = 32 if chosen & 0x20 else 0
        if directions[place] & 0x80:
            out[place] = value[dual + group + element * width + place % width]
    return out


@pytest.mark.parametrize("name", ["u8", "i8", "f8_143", "i16", "bf16", "f32", "u32"])
def test_shuffles(name: str) -> None:
    rng = np.random.default_rng(5)
    for _ in range(40):
        value, directions = (rng.integers(0, 256, 256).astype(np.uint8) for _ in range(2))
        got = run(f"shuffle.{name} V1, V2, V3", src_a=value, src_b=directions).result
        expected = shuffled(value.tobytes(), directions.tobytes(), INCOME.tobytes(), fmt(name).bits // 8)
        assert got.tolist() == expected
        masked = run(f"shuffle.{name} V1, V2, V3, VP1", src_a=value, src_b=directions, predicate=MASK).result
        assert masked.tolist() == np.where(MASK, expected, INCOME).tolist()


THOROUGH = "CASTSIM_THOROUGH" in os.environ


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
    given = {"src_a": a, "src_b": a, "income": group, "accumulator": group}
    whole = run("mac.bf16 acc_fp32 D4, V2, V3", **given).result
    masked = run("mac.bf16 acc_fp32 D4, V2, V3, VP1", **given, predicate=MASK).result
    for k, (register, old) in enumerate(zip(masked, group, strict=True)):
        kept = np.repeat(MASK[2 * k :: 4], 4)  # one bit per byte of the narrow element, lane i from element 2 i + k
        assert np.array_equal(register, np.where(kept, whole[k], old))
    one, three = 0x3F800000, 0x40400000
    for text, factor in (("mac.f32 S1, S2, S3", three), ("mac.bf16 acc_fp32 S1, S2, S3", 0x4040)):
        got = run(text, slot="spu", income=one, src_a=factor, src_b=factor, accumulator=one).result
        assert got == int(np.float32(10).view(np.uint32))


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


def test_what_form_fp_num_refuses() -> None:
    for words, message in (
        ("force_sign0 sign_lsb", "force_sign0 and sign_lsb cannot be combined"),
        ("special_func=1", "what special_func computes"),
    ):
        with pytest.raises(IllegalError, match=message):
            run(f"form_fp_num.f32 {words} V1, V2, V3, V4", src_a=INCOME, src_b=INCOME, src_c=INCOME)


def test_an_exponent_and_its_parts_come_back() -> None:
    """The use that the vendor's functions make of both: a mantissa scaled to [0.5, 1) and its exponent."""
    some = np.abs(np.random.default_rng(1).normal(size=64).astype(np.float32)) * 1000
    mantissa, exponent = np.frexp(some)
    source = some.view(np.uint8)
    unbiased = run("extract_exp.f32 V1, V2", src_a=source).result.view(np.int32)
    assert np.array_equal(unbiased + 1, exponent)
    line = "form_fp_num.f32 exp_add_bias force_sign0 exp_is_num V1, 0xff, V3, V4"
    assert np.array_equal(run(line, src_b=source, src_c=source).result.view(np.float32), mantissa)


def test_directions_of_public_kernels() -> None:
    """0x81808180 in every word copies the first 16-bit element of a dual group (u8); 0x80 and 0x82 floats 0 and 2."""
    value = np.arange(256, dtype=np.uint8)
    first = np.full(64, 0x81808180, np.uint32).view(np.uint8)
    got = run("shuffle.u8 V1, V2, V3", src_a=value, src_b=first).result.view(np.uint16)
    assert np.array_equal(got, np.repeat(value.view(np.uint16)[::32], 32))
    for direction, lane in ((0x80, 0), (0x82, 2)):
        whole = np.full(256, direction, np.uint8)
        floats = run("shuffle.f32 V1, V2, V3", src_a=value, src_b=whole).result.view(np.uint32)
        assert np.array_equal(floats, np.repeat(value.view(np.uint32)[lane::16], 16))


@pytest.mark.parametrize("text", ["st_tnsr_s 0x1, I2, S3", "st_tnsr_sqz 0x1, 0x0, I2, V3"])
def test_values_that_no_source_states_are_refused_by_name(text: str) -> None:
    with pytest.raises(IllegalError, match="are not modelled") as refusal:
        run(text, slot="store", src_a=(0, 0, 0, 0, 0), src_c=0, income=None)
    assert "castsim run --timing-only" in refusal.value.legal


def test_integer_accumulators_of_the_scalar_unit() -> None:
    for text, a, b, c, expected in (
        ("mac.i16 S1, S2, S3", 0xFFFF8000, 0x8000, 5, 0x40000005),
        ("mac.i16 st S1, S2, S3", 0x8000, 0x8000, 0x7FFFFFFF, 0x7FFFFFFF),
        ("mac.u16 S1, S2, S3", 0xFFFF, 0xFFFF, 0, 0xFFFE0001),
        ("mac.u16 neg st S1, S2, S3", 2, 3, 5, 0),
        ("mac.i8 S1, S2, S3", 0x80, 0x7F, 0, (-128 * 127) % (1 << 32)),
    ):
        assert run(text, slot="spu", income=c, src_a=a, src_b=b, accumulator=c).result == expected, text
