"""TOSA CAST: legal casts by version, profile and extension; acceptance at the edges; which rounding modes conform.

Expected pairs and verdicts: docs/reference/semantics.md sections 1.1, 1.2 and 6, copied by hand."""

from __future__ import annotations

import re
from itertools import product
from typing import Any

import numpy as np
import onnx
import oracle
import oracle_acceptance
import pytest

from castsim.isa.errors import CastsimError, IllegalError, ReadError
from castsim.isa.formats import format_named
from castsim.numerics.codec import value_of
from castsim.running.acceptance import acceptance, accepts, specified_cast
from castsim.targets.loader import load_specification

SPEC = load_specification("tosa")
INTEGERS = ("i8", "i16", "i32")
FP8 = {"e4m3fn": "EXT-FP8E4M3", "e5m2": "EXT-FP8E5M2"}
LEGAL: dict[tuple[str, str], tuple[str, frozenset[str]]] = {}
"""Version and requirements of every legal cast."""


def both_ways(one: tuple[str, ...], other: tuple[str, ...], version: str, *requires: str) -> None:
    for src, dst in [(a, b) for a in one for b in other] + [(b, a) for a in one for b in other]:
        if src != dst:
            LEGAL[src, dst] = version, frozenset(requires)


both_ways(("bool",), INTEGERS, "1.0", "PRO-INT")
both_ways(INTEGERS, INTEGERS, "1.0", "PRO-INT")
both_ways(INTEGERS, ("f16", "f32"), "1.0", "PRO-FP")
both_ways(("f16",), ("f32",), "1.0", "PRO-FP")
both_ways((*INTEGERS, "f32"), ("bf16",), "1.0", "EXT-BF16")
for fp8, extension in FP8.items():
    both_ways(("f16", "f32"), (fp8,), "1.0", extension)
    both_ways(("bf16",), (fp8,), "1.0", "EXT-BF16", extension)
both_ways(("bool", "i32"), ("i64",), "1.1", "EXT-INT64")
both_ways(("bool",), ("f32",), "1.1", "PRO-FP")


@pytest.mark.parametrize("version", ["1.0", "1.1"])
def test_legal_casts(version: str) -> None:
    for src, dst in product([name for name in (*oracle.FLOATS, *oracle.INTS) if "f8_143@" not in name], repeat=2):
        since, requires = LEGAL.get((src, dst), ("none", frozenset()))
        if since <= version:
            cast = specified_cast(SPEC, src, dst, version=version)
            assert (cast.since, frozenset(cast.requires), cast.version) == (since, requires, version)
        else:
            with pytest.raises(IllegalError, match=rf"tosa {version} has no cast {src} -> {dst}"):
                specified_cast(SPEC, src, dst, version=version)


# ------------------------------------------------------------------------------------------------- unsigned sources


def test_signless_integers_may_be_read_as_unsigned() -> None:
    source = np.array([0x00, 0x7F, 0x80, 0xFF], np.uint8)
    wide = acceptance("tosa", "i8", "i16", source, version="1.1", attributes={"input_unsigned": 1})
    assert wide.lowest.tolist() == wide.highest.tolist() == [0, 127, 128, 255]
    half = acceptance("tosa", "i8", "f32", source, attributes={"input_unsigned": "1"})
    assert half.highest.view(np.float32).tolist() == [0.0, 127.0, 128.0, 255.0]
    low = acceptance("tosa", "i16", "i8", np.array([0xFF80], np.uint16), attributes={"input_unsigned": 1})
    assert low.highest.tolist() == [0x80]  # truncated from 65408
    assert accepts("tosa", "i8", "i16", source, np.array([0, 127, 0xFF80, 0xFFFF], np.uint16)).all()  # signed


# -------------------------------------------------------------------------------------------------------- the edges


def edges(src: str, dst: str) -> np.ndarray:
    """Return source codes around every kind of edge of the destination: all of narrow sources, else chosen ones."""
    row = oracle.fmt(src)
    if row.bits <= 8:
        return np.arange(1 << row.bits, dtype=oracle.storage(src))
    generator = np.random.default_rng([row.bits, oracle.fmt(dst).bits])
    random = generator.integers(0, 1 << row.bits, 30, dtype=np.uint64)
    near = np.array(sorted({anchor & (1 << row.bits) - 1 for anchor in anchors(src, dst)}), np.uint64)
    steps = np.arange(-2, 3).astype(np.uint64)
    chosen = np.concatenate([random, (near[:, None] + steps).ravel()]) & np.uint64((1 << row.bits) - 1)
    return np.unique(chosen).astype(oracle.storage(src))


def anchors(src: str, dst: str) -> list[int]:
    """Return codes at zero, extremes, powers of two, and at numbers and midpoints next to the destination's limits."""
    row = oracle.fmt(src)
    if src in oracle.INTS:
        powers = [1 << bit for bit in range(row.bits)]
        limits = [65504, 65488, 65520, 65535, 65536, 62783487, 127, 255]
        return [code for code in (*powers, *(-power for power in powers), *limits, 0) if abs(code) < 1 << row.bits - 1]
    found = [0, row.sign_code, row.inf or row.max_code, row.nan or 0, row.max_code, 1 << row.fraction_bits, 1]
    if dst in oracle.FLOATS:
        limits = [oracle.FLOATS[dst].max_code, 1 << oracle.FLOATS[dst].fraction_bits, 1, 2]
        numbers = [oracle.decode(code, dst).magnitude for code in limits]
        step = numbers[0] / 64
        numbers += [numbers[0] + step, numbers[2] / 2, numbers[1] - numbers[2] / 2, 3 * numbers[2] / 2]
        found += [nearest(number, src) for number in numbers]
    else:
        found += [nearest(number, src) for number in (oracle.fmt(dst).high, 0.5, 1.5, 2.5)]
    return [*found, *(code | row.sign_code for code in found)]


def nearest(number: object, src: str) -> int:
    """Return the code of the float at or below a number."""
    native = {"f16": (np.float16, np.uint16), "f32": (np.float32, np.uint32), "bf16": (np.float32, np.uint32)}
    floating, integer = native[src]
    with np.errstate(over="ignore"):
        code = int(np.array([float(number)], floating).view(integer)[0])  # type: ignore[arg-type]
    return code >> 16 if src == "bf16" else code


@pytest.mark.parametrize(("src", "dst"), LEGAL)
def test_edges_against_rational_arithmetic(src: str, dst: str) -> None:
    source = edges(src, dst)
    sets = acceptance("tosa", src, dst, source)
    row = oracle.fmt(dst)
    fixed = [0, *((row.sign_code, row.max_code, row.nan, row.inf or 0) if dst in oracle.FLOATS else ())]
    mask = (1 << row.bits) - 1
    cells = [
        (code, out)
        for index, code in enumerate(source.tolist())
        for out in {
            *fixed,
            *(int(part[index]) + step & mask for part in (sets.lowest, sets.highest) for step in (-2, -1, 0, 1, 2)),
        }
    ]
    codes, results = (np.array(part, dtype=np.uint64) for part in zip(*cells, strict=True))
    verdicts = accepts("tosa", src, dst, codes.astype(source.dtype), results.astype(oracle.storage(dst)))
    for (code, out), verdict in zip(cells, verdicts.tolist(), strict=True):
        assert verdict == oracle_acceptance.accepts(code, out, src, dst), f"{code:#x} -> {out:#x}"


# ------------------------------------------------------------------------------------------------------------ oNNX Cast


OPSET_1 = {"bool", "f64", "f32", "f16", "i8", "i16", "i32", "i64", "u8", "u16", "u32", "u64"}
ADDED = {
    1: OPSET_1, 6: set(), 9: {"string"}, 13: {"bf16"}, 19: {"e4m3fn", "e4m3fnuz", "e5m2", "e5m2fnuz"},
    21: {"i4", "u4"}, 23: {"e2m1"}, 24: {"e8m0"}, 25: {"i2", "u2"}, 28: {"e2m3", "e3m2"},
}  # fmt: skip
"""Types that each version added; 25 and 28 from the schemas of onnx 1.23.2."""

EVERY_TYPE = sorted(set().union(*ADDED.values()))


@pytest.mark.parametrize("opset", range(1, 29))
def test_types_by_opset(opset: int) -> None:
    version = max(known for known in ADDED if known <= opset)
    types = set().union(*(added for known, added in ADDED.items() if known <= opset))
    for name in EVERY_TYPE:
        for src, dst in ((name, "f32"), ("f32", name)):
            if name in types:
                assert specified_cast("onnx", src, dst, version=opset).version == str(version)
            else:
                with pytest.raises(IllegalError, match=f"onnx {version} has no cast {src} -> {dst}; it came with"):
                    specified_cast("onnx", src, dst, version=opset)


UNSIGNED = {"input_unsigned": 1}


@pytest.mark.parametrize(
    ("asked", "more", "kind", "message"),
    [
        (("tosa", "fp32", "bool"), {"version": "1.0"}, IllegalError, "1.0 has no cast f32 -> bool; it came with 1.1"),
        (("tosa", "f32", "f16"), {"version": "0.9"}, ReadError, "tosa has no version '0.9'"),
        (
            ("tosa", "i8", "i16"), {"version": "1.0", "attributes": UNSIGNED},
            IllegalError, "tosa 1.0 has no attribute input_unsigned",
        ),
        (("tosa", "f32", "f16"), {"attributes": UNSIGNED}, IllegalError, "f32 cannot be read as unsigned"),
        (
            ("tosa", "i8", "i16"), {"attributes": {"input_unsigned": 2}},
            ReadError, "attribute input_unsigned cannot be '2'",
        ),
        (("tosa", "i8", "i16"), {"attributes": {"saturate": 1}}, ReadError, "tosa has no attribute 'saturate'"),
        (("tosa", "string", "f32"), {}, IllegalError, "tosa 1.1 has no cast string -> f32"),
        (("onnx", "f32", "hif8"), {}, IllegalError, "onnx 28 has no cast f32 -> hif8"),
        (("onnx", "string", "f32"), {"version": 6}, IllegalError, "onnx 6 has no cast string -> f32; it came with 9"),
        *(
            (("onnx", "f32", "f16"), {"version": opset}, ReadError, "onnx has no version")
            for opset in ("0", "29", "-1", "1.5", "nineteen")
        ),
    ],
)  # fmt: skip
def test_refused_casts(
    asked: tuple[str, str, str], more: dict[str, Any], kind: type[CastsimError], message: str
) -> None:
    with pytest.raises(kind, match=re.escape(message)):
        specified_cast(*asked, **more)
    with pytest.raises(IllegalError, match="no codes on one side"):
        acceptance("onnx", "f32", "string", floats(1.0))


@pytest.mark.parametrize(("name", "opset"), [("saturate", 18), ("round_mode", 23)])
def test_attributes_have_a_first_version(name: str, opset: int) -> None:
    value = {"saturate": 0, "round_mode": "down"}[name]
    with pytest.raises(IllegalError, match=f"has no attribute {name}; it was added in {opset + 1}"):
        specified_cast("onnx", "f32", "f16", version=opset, attributes={name: value})
    cast = specified_cast("onnx", "f32", "f16", version=opset + 1, attributes={name: value})
    assert cast.label == f"onnx@{opset + 1}:{name}={value}"


def floats(*numbers: float) -> np.ndarray:
    return np.array(numbers, np.float32).view(np.uint32)


FP8_TABLES = [
    # the operator page's two tables: 0, -0, NaN, Inf, -Inf, beyond the largest, below the lowest
    ("e4m3fn", 1, [0x00, 0x80, None, 0x7E, 0xFE, 0x7E, 0xFE]),
    ("e4m3fnuz", 1, [0x00, 0x00, None, 0x7F, 0xFF, 0x7F, 0xFF]),
    ("e5m2", 1, [0x00, 0x80, None, 0x7B, 0xFB, 0x7B, 0xFB]),
    ("e5m2fnuz", 1, [0x00, 0x00, None, 0x7F, 0xFF, 0x7F, 0xFF]),
    ("e4m3fn", 0, [0x00, 0x80, None, None, None, None, None]),
    ("e4m3fnuz", 0, [0x00, 0x00, None, None, None, None, None]),
    ("e5m2", 0, [0x00, 0x80, None, 0x7C, 0xFC, 0x7C, 0xFC]),
    ("e5m2fnuz", 0, [0x00, 0x00, None, None, None, None, None]),
]


@pytest.mark.parametrize(("dst", "saturate", "expected"), FP8_TABLES)
def test_fp8_tables(dst: str, saturate: int, expected: list[int | None]) -> None:
    source = floats(0.0, -0.0, np.nan, np.inf, -np.inf, 1e9, -1e9)
    sets = acceptance("onnx", "f32", dst, source, attributes={"saturate": saturate})
    got = [int(code) if alone else None for code, alone in zip(sets.lowest, sets.single, strict=True)]
    assert got == expected
    assert sets.nan.tolist() == [code is None for code in expected]
    assert not (sets.numbers & sets.nan).any()


@pytest.mark.parametrize(
    ("saturate", "mode", "expected"),
    [
        # the operator page's table: 0, NaN, Inf, x > E8M0_MAX, x < E8M0_MIN
        (1, "up", [0x00, 0xFF, 0xFE, 0xFE, 0x00]),
        (0, "nearest", [0xFF, 0xFF, 0xFF, 0xFF, 0xFF]),
    ],
)
def test_e8m0_table(saturate: int, mode: str, expected: list[int]) -> None:
    attributes = {"saturate": saturate, "round_mode": mode}
    every = np.arange(256, dtype=np.uint8)
    for number, code in zip((0.0, np.nan, np.inf, 2.0**128, 2.0**-128), expected, strict=True):
        source = np.full(256, number).view(np.uint64)
        assert np.flatnonzero(accepts("onnx", "f64", "e8m0", source, every, attributes=attributes)).tolist() == [code]
    unspecified = np.array([-0.0, -1.0, -np.inf, -1e-300]).view(np.uint64)
    assert acceptance("onnx", "f64", "e8m0", unspecified, attributes=attributes).anything.all()


@pytest.mark.parametrize(
    ("dst", "values", "nearest"),
    [
        ("i4", [0.5, 1.5, 2.5, 2.75, -0.5, -1.5, -8.5], [0, 2, 2, 3, 0, -2, -8]),
        ("u4", [0.5, 1.5, 2.5, 14.5, 15.25], [0, 2, 2, 14, 15]),
        ("i2", [0.5, -0.5, -1.5, 0.75, -2.5], [0, 0, -2, 1, -2]),
        ("u2", [0.5, 1.5, 2.5, 2.75, -0.5], [0, 2, 2, 3, 0]),
        ("e2m1", [0.25, 0.75, 1.25, 1.75, 2.5, 3.5, 5.0, 7.0], [0, 1, 1, 2, 2, 4, 4, 6]),
    ],
)
def test_formats_of_up_to_four_bits_round_to_nearest_even(dst: str, values: list[float], nearest: list[float]) -> None:
    """Section Cast of ONNX's technical pages int4.md, int2.md and float4.md, at ties that the format does not hold."""
    for src, dtype in (("f32", np.float32), ("f16", np.float16)):
        codes = np.array(values, dtype).view(oracle.storage(src))
        sets = acceptance("onnx", src, dst, codes)
        assert sets.single.all()
        assert [float(value_of(int(code), format_named(dst))) for code in sets.lowest] == nearest
    beyond = floats(7.5 if dst == "i4" else 15.5, np.nan) if dst in ("i4", "u4") else floats(np.nan)
    assert acceptance("onnx", "f32", dst, beyond).anything.all()


@pytest.mark.parametrize("version", [19, 20, 21, 23, 24, 25, 28])
@pytest.mark.parametrize("dst", ["e4m3fn", "e4m3fnuz", "e5m2", "e5m2fnuz"])
@pytest.mark.parametrize("src", ["f64", "f32", "f16", "bf16"])
def test_infinity_to_fp8_is_that_of_the_table_of_the_version(src: str, dst: str, version: int) -> None:
    """The first table of Cast in the schema itself, saturating; the second has NaN or infinity in all versions."""
    table = [line.split("|") for line in onnx.defs.get_schema("Cast", version).doc.splitlines() if line.startswith("|")]
    header = next(cells for cells in table if cells[1].strip() == "x")
    column = [cell.strip().lower() for cell in header].index(dst)
    saturating, other = [cells[column].strip() for cells in table if cells[1].strip() == "Inf" and len(cells) > 5]
    row = oracle.FLOATS[dst]
    infinity = np.array([oracle.FLOATS[src].inf], oracle.storage(src))
    for saturate, wanted in ((1, saturating), (0, other)):
        sets = acceptance("onnx", src, dst, infinity, version=version, attributes={"saturate": saturate})
        code = {"FLT_MAX": row.max_code, "Inf": row.inf, "NaN": None}[wanted]
        assert (sets.nan[0], sets.numbers[0]) == (code is None, code is not None)
        assert code is None or (sets.single[0] and sets.lowest[0] == code)
    beyond = acceptance("onnx", "f32", dst, floats(1e9), version=version)
    assert beyond.single[0]
    assert beyond.lowest[0] == row.max_code
