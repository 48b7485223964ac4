"""Conversions of logical registers against the rational oracle: every pair, rounding and saturation, ragged lanes."""

from __future__ import annotations

import numpy as np
import oracle
import pytest
from lanes_model import element
from numpy.typing import NDArray
from vmi_text import OUTPUT, Body, as_bytes, bits, blank, mask, reg, run_body

from castsim.isa.errors import IllegalError
from castsim.isa.pto.micro_words import CONVERSIONS
from castsim.isa.pto.vmi_operations import route

ELEMENTS = ("f32", "f16", "bf16", "e4m3fn", "e5m2", "hif8", *(f"{s}{n}" for s in "iu" for n in (8, 16, 32)), "i64")
TWICE = {("i32", dst) for dst in ("f16", "bf16", "e4m3fn", "e5m2", "hif8")} | {
    ("i64", dst) for dst in ("f16", "bf16", "e4m3fn", "e5m2", "hif8")
}
"""Pairs that are rounded twice, to f32 first (docs/reference/micro.md section 9.4)."""
NEAREST = {("i16", "f16"), ("i32", "f32"), ("i64", "f32")}
"""Integers that are rounded to nearest even whatever is asked for (docs/reference/micro.md section 3.3)."""


def exists(src: str, dst: str) -> bool:
    try:
        route(src, dst)
    except IllegalError:
        return False
    return True


PAIRS = [(src, dst) for src in ELEMENTS for dst in ELEMENTS if exists(src, dst)]


def sources(name: str, count: int, seed: int, *, finite: bool) -> NDArray[np.generic]:
    """Codes of a format: boundaries and random ones."""
    rng, width = np.random.default_rng(seed), bits(name)
    kind = np.dtype(f"<u{width // 8}")
    codes = rng.integers(0, 1 << width, count, dtype=np.uint64).astype(kind)
    if name == "f32":
        spread = (rng.normal(size=count) * 2.0 ** rng.integers(-24, 40, count)).astype(np.float32)
        codes[::2] = spread.view(np.uint32)[::2]
        edges = [0, -0.0, 1e-45, 0.5, 1.5, 2.5, -2.5, 127.5, 128, 255.5, -129, 448, 464, 480, 65504, 65520, 1e10, -1e10]
        some = np.array([*edges, 2**31 - 64, 2**31, -(2**31), np.inf, -np.inf, np.nan], np.float32).view(np.uint32)
        codes[: some.size] = some
    if name in ("i32", "u32", "i64"):
        codes[::3] = rng.integers(-300, 300, codes[::3].size).astype(f"i{width // 8}").view(kind)
        codes[1::3] >>= kind.type(rng.integers(0, 24))
    return np.array([code for code in codes if not finite or is_finite(int(code), name)], kind)


def is_finite(code: int, name: str) -> bool:
    return getattr(oracle.decode(code, name), "kind", "finite") == "finite"


def expected(code: int, src: str, dst: str, rnd: str | None, sat: str | None) -> int:
    if (src, dst) in NEAREST:
        rnd = "R"
    if (src, dst) in TWICE:
        code, src = element(code, src, "f32", "R", None), "f32"
    return element(code, src, dst, rnd, sat)


def convert(
    src: str, dst: str, codes: NDArray[np.generic], words: str, count: int | None, lanes: int
) -> NDArray[np.generic]:  # fmt: skip
    """Run one conversion of `lanes` lanes, with a mask of the first `count`."""
    body = Body()
    value = body.load(lanes, src)
    operand, kinds = value, reg(lanes, src)
    if count is not None:
        m = body.make(f"pto.vmi.create_mask {body.constant(count)} : index -> {mask(lanes)}")
        operand, kinds = f"{value}, {m}", f"{kinds}, {mask(lanes)}"
    result = body.make(f"pto.vmi.vcvt {operand}{words} : {kinds} -> {reg(lanes, dst)}")
    body.store(result, lanes, dst)
    size = lanes * bits(dst) // 8
    found = run_body(body, as_bytes(codes), -(-size // 32) * 32 + 64)
    assert np.array_equal(found[size:], blank(found.size - size))
    return found[:size].view(f"<u{bits(dst) // 8}")


def dictionary(rnd: str | None, sat: str | None) -> str:
    entries = [f'{key} = "{word}"' for key, word in (("rounding", rnd), ("saturate", sat)) if word]
    return f" {{{', '.join(entries)}}}" if entries else ""


@pytest.mark.parametrize(("src", "dst"), PAIRS)
def test_elements_are_those_of_the_oracle(src: str, dst: str) -> None:
    found = route(src, dst)
    letters = [letter for letter in found.roundings if letter not in "OH"] or [None]
    for number, rnd in enumerate([None, *letters]):
        for sat in found.saturations or (None,):
            # Infinities and NaN to integers without saturation, and what overflows to 8 bits: see test_micro_programs.
            finite = sat == "NOSAT"
            lanes = (300, 96, 513)[number % 3]
            codes = sources(src, 2 * lanes, number, finite=finite)[:lanes]
            count = (None, 77, 0)[number % 3] if (src, dst) in CONVERSIONS else (None, lanes - 5)[number % 2]
            got = convert(src, dst, codes, dictionary(rnd, sat), count, lanes)
            letter = rnd or ("A" if dst == "hif8" else "R")
            want = [expected(int(code), src, dst, letter, sat) for code in codes]
            want = [code if count is None or lane < count else 0 for lane, code in enumerate(want)]
            wrong = [
                lane
                for lane in range(lanes)
                if int(got[lane]) != want[lane] and not same_nan(got[lane], want[lane], dst)
            ]
            assert not wrong, (rnd, sat, [(hex(int(codes[i])), hex(int(got[i])), hex(want[i])) for i in wrong[:4]])


def same_nan(one: np.generic, other: int, name: str) -> bool:
    """Whether both are NaN."""
    return all(getattr(oracle.decode(int(code), name), "kind", "") == "nan" for code in (one, other))


def test_there_are_all_pairs_of_one_register_and_more() -> None:
    single = {pair for pair in CONVERSIONS if not {*pair} & {"e1m2", "e2m1"}}
    assert single <= set(PAIRS)
    assert {("i32", "i8"), ("f32", "i8"), ("f16", "bf16"), ("bf16", "hif8"), ("e4m3fn", "f16")} <= set(PAIRS)
    assert len(PAIRS) == len(set(PAIRS)) > 120


@pytest.mark.parametrize("four", ["e1m2", "e2m1"])
@pytest.mark.parametrize("rnd", [None, "R", "A", "F", "C", "Z"])
def test_pairs_of_four_bits(four: str, rnd: str | None) -> None:
    lanes = 150
    rng = np.random.default_rng(7)
    values = np.concatenate([rng.uniform(-8, 8, 200), np.linspace(-7, 7, 100)]).astype(np.float32)
    brains = (values.view(np.uint32) >> 16).astype(np.uint16)
    got = convert("bf16_pair", four, brains, dictionary(rnd, None), None, lanes)
    want = [element(int(code), "bf16", four, rnd or "R", None) for code in brains]
    assert [int(code) for code in got] == [want[2 * i] + 16 * want[2 * i + 1] for i in range(lanes)]


@pytest.mark.parametrize("four", ["e1m2", "e2m1"])
@pytest.mark.parametrize("count", [None, 131])
def test_four_bits_to_pairs(four: str, count: int | None) -> None:
    codes = np.arange(256, dtype=np.uint8)
    got = convert(four, "bf16_pair", codes, "", count, 256).view(np.uint16)
    want = [element(nibble, four, "bf16", None, None) for code in range(256) for nibble in (code & 15, code >> 4)]
    last = 512 if count is None else 2 * count
    assert [int(code) for code in got[:last]] == want[:last]
    assert not got[last:].any()


@pytest.mark.parametrize(
    ("name", "src", "dst", "plain"),
    [
        ("extf", "f16", "f32", None), ("extf", "e4m3fn", "f32", None), ("truncf", "f32", "f16", "SAT"),
        ("truncf", "f32", "e4m3fn", "SAT"), ("truncf", "f32", "hif8", "SAT"), ("extsi", "i8", "i32", None),
        ("extui", "u8", "u16", None), ("trunci", "i32", "i16", "SAT"), ("trunci", "i32", "i8", "SAT"),
        ("fptosi", "f32", "i32", "SAT"), ("fptosi", "f16", "i8", "SAT"), ("fptoui", "f16", "u8", "SAT"),
        ("sitofp", "i32", "f32", None), ("sitofp", "i8", "f16", None), ("uitofp", "u8", "f16", None),
    ],
)  # fmt: skip
def test_older_names(name: str, src: str, dst: str, plain: str | None) -> None:
    codes = sources(src, 200, 3, finite=True)[:128]
    body = Body()
    value = body.load(codes.size, src)
    result = body.make(f"pto.vmi.{name} {value} : {reg(codes.size, src)} -> {reg(codes.size, dst)}")
    body.store(result, codes.size, dst)
    size = codes.size * bits(dst) // 8
    got = run_body(body, as_bytes(codes), size).view(f"<u{bits(dst) // 8}")
    letter = "A" if dst == "hif8" else "R"
    assert [int(code) for code in got] == [expected(int(code), src, dst, letter, plain) for code in codes]


def test_older_names_read_signless_integers_by_their_own_sign() -> None:
    codes = np.array([0, 1, 127, 128, 200, 255] * 8, np.uint8)
    for name, kind in (("extsi", np.int8), ("extui", np.uint8)):
        body = Body()
        value = body.load(48, "u8" if name == "extsi" else "i8")
        source = reg(48, "u8" if name == "extsi" else "i8")
        result = body.make(f"pto.vmi.{name} {value} : {source} -> {reg(48, 'i32')}")
        body.store(result, 48, "i32")
        assert np.array_equal(run_body(body, codes, 192).view(np.int32), codes.view(kind).astype(np.int32))


def test_bytes_behind_are_left_alone() -> None:
    body = Body()
    value = body.load(40, "f32")
    result = body.make(f'pto.vmi.vcvt {value} {{saturate = "SAT"}} : {reg(40, "f32")} -> {reg(40, "f16")}')
    body.store(result, 40, "f16", byte=OUTPUT + 32)
    got = run_body(body, as_bytes(np.arange(40, dtype=np.float32)), 256)
    assert np.array_equal(got[:32], blank(32))
    assert np.array_equal(got[32:112].view(np.float16), np.arange(40, dtype=np.float16))
    assert np.array_equal(got[112:], blank(144))
