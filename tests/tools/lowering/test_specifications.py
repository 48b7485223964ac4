"""Specifications: legal casts, acceptance at the edges, descriptions and what they refuse, and the command line."""

from __future__ import annotations

import math
import re
from itertools import product
from pathlib import Path
from typing import Any

import numpy as np
import onnx
import oracle
import oracle_acceptance
import pytest
from kit.command_output import Capture, document_of, err_of, out_of, refusal
from kit.paths import PROGRAMS

from castsim.isa.errors import CastsimError, IllegalError, ReadError, TargetDataError
from castsim.isa.formats import FORMATS, format_named
from castsim.numerics.codec import value_of
from castsim.running.acceptance import acceptance, accepts, order_keys, parse_specification, specified_cast
from castsim.targets.loader import (
    is_specification,
    load_specification,
    load_target,
    specification_names,
    target_for_architecture,
    target_names,
)

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


def test_signless_integers_may_be_read_as_unsigned() -> None:
    source = np.array([0x00, 0x7F, 0x80, 0xFF], np.uint8)
    wide = acceptance("tosa", "i8", "i16", source, version="1.1", attributes={"input_unsigned": 1})
    assert wide.lowest.tolist() == wide.highest.tolist() == [0, 127, 128, 255]
    half = acceptance("tosa", "i8", "f32", source, attributes={"input_unsigned": "1"})
    assert half.highest.view(np.float32).tolist() == [0.0, 127.0, 128.0, 255.0]
    low = acceptance("tosa", "i16", "i8", np.array([0xFF80], np.uint16), attributes={"input_unsigned": 1})
    assert low.highest.tolist() == [0x80]  # truncated from 65408
    assert accepts("tosa", "i8", "i16", source, np.array([0, 127, 0xFF80, 0xFFFF], np.uint16)).all()  # signed


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


MINE = """
name = "mine"
title = "my rules"
kind = "specification"
same_type = false

[versions]
known = [1, 2]
default = 2
source = "here"
status = "assumed"

[[casts]]
src = "f32"
dst = "f16 i8"
since = 1
rule = "near"

[casts_fact]
source = "here"
status = "assumed"

[rules.near]
meaning = "nearest"
accept = "exact"
roundings = ["rint"]
source = "here"
status = "assumed"
"""


def written(tmp_path: Path, text: str) -> Path:
    path = tmp_path / "mine.toml"
    path.write_text(text)
    return path


def test_specifications_are_listed_apart_from_targets() -> None:
    assert specification_names() == ("exact", "onnx", "tosa")
    assert not set(specification_names()) & set(target_names())
    assert target_for_architecture("tosa") is None
    assert is_specification("TOSA")
    assert not is_specification("a2a3")
    assert not is_specification("nowhere.toml")
    for name in specification_names():
        assert load_specification(name.upper()).name == name


def test_nothing_runs_on_a_specification(tmp_path: Path) -> None:
    with pytest.raises(IllegalError, match="tosa is a specification, not a chip") as refused:
        load_target("tosa")
    assert (refused.value.exit_code, refused.value.legal) == (1, target_names())
    with pytest.raises(IllegalError, match=r"mine\.toml is a specification"):
        load_target(written(tmp_path, MINE))


def test_a_chip_is_no_specification(tmp_path: Path) -> None:
    with pytest.raises(ReadError, match="unknown specification 'a5'") as refused:
        load_specification("a5")
    assert refused.value.legal[:3] == specification_names()
    path = written(tmp_path, 'base = "a2a3"\nname = "mine"\n')
    with pytest.raises(TargetDataError, match="describes a chip"):
        load_specification(path)
    with pytest.raises(ReadError, match=r"'gone\.toml' does not exist"):
        load_specification("gone.toml")


def test_a_specification_of_ones_own(tmp_path: Path) -> None:
    path = written(tmp_path, MINE)
    assert is_specification(path)
    one = np.array([1.5], np.float32).view(np.uint32)
    assert accepts(path, "f32", "f16", one, np.array([0x3E00], np.uint16)).all()
    assert specified_cast(path, "f32", "i8").label == "mine@2"


INTERVAL = 'accept = "interval"\nbelow_ulps = 1\nabove_ulps = 0.5'
EXACT = 'accept = "exact"\nroundings = ["rint"]'


@pytest.mark.parametrize(
    ("before", "after", "message"),
    [
        ('dst = "f16 i8"', 'dst = "f16 f17"', "'f17' is not a format or a class of this file"),
        ('rule = "near"', 'rule = "far"', "rules and casts do not match: far, near"),
        ("since = 1", "since = 3", "since 3 is not a known version"),
        ("default = 2", "default = 3", "default '3' is not among"),
        (EXACT, INTERVAL, "f32 -> i8: rule near needs a float destination with zero"),
        (EXACT, 'accept = "text"', "rule near is of the form text"),
        (EXACT, EXACT + "\nbelow_ulps = 1", "belong to intervals"),
        (EXACT, 'accept = "interval"\nbelow_ulps = 0.25', "below_ulps must be 0, 0.5 or 1"),
        (EXACT, INTERVAL + '\noverflow = "wrap"', "an interval has no roundings"),
        (EXACT, 'accept = "exact"\nroundings = ["stochastic"]', "roundings must be among"),
        (EXACT, EXACT + '\nundefined = ["out_of_range"]', "f32 -> f16: rule near needs an integer destination"),
        ("[[casts]]", '[[casts]]\nsrc = "f32"\ndst = "f16"\nsince = 1\nrule = "near"\n[[casts]]', "2 rows of casts"),
        ("since = 1", 'since = 1\nwhen = {fast = "1"}', "when fast=1: unknown attribute"),
        ("same_type = false", "same_type = false\nfast = 1", "fast: unknown key"),
        ('default = 2\nsource = "here"', "default = 2", "versions.source: missing"),
    ],
)
def test_contradictions_are_refused(before: str, after: str, message: str, tmp_path: Path) -> None:
    assert before in MINE
    path = written(tmp_path, MINE.replace(before, after, 1))
    with pytest.raises(TargetDataError, match=re.escape(message)):
        load_specification(path)


def test_a_gap_between_attribute_values_is_refused(tmp_path: Path) -> None:
    attribute = (
        '\n[attributes.fast]\nvalues = [0, 1]\nsince = 1\neffect = "selects the rule"\nmeaning = "fast"\n'
        'source = "here"\nstatus = "assumed"\n'
    )
    path = written(tmp_path, MINE.replace("since = 1", 'since = 1\nwhen = {fast = "1"}') + attribute)
    with pytest.raises(TargetDataError, match=r"f32 -> f16 with \{'fast': '0'\}: 0 rows of casts"):
        load_specification(path)


def test_settings_in_a_name() -> None:
    spec, version, attributes = parse_specification("ONNX@24:saturate=0:round_mode=down")
    assert (spec.name, version, attributes) == ("onnx", "24", {"saturate": "0", "round_mode": "down"})
    assert parse_specification(" tosa ")[1:] == (None, {})


@pytest.mark.parametrize("text", ["onnx:saturate", "onnx:=1", "onnx:saturate=", "onnx:a=1:a=2", "onnx@", "onyx"])
def test_malformed_names(text: str) -> None:
    with pytest.raises(ReadError):
        parse_specification(text)


@pytest.mark.parametrize(
    ("src", "dst"), [("f16", "hif8"), ("f16", "i8"), ("bf16", "e8m0"), ("i16", "i8"), ("e5m2", "bool")]
)
def test_exact_is_the_abstract_cast(src: str, dst: str) -> None:
    source = np.arange(1 << oracle.fmt(src).bits, dtype=np.uint64).astype(oracle.storage(src))
    result = oracle.cast_array(source, src, dst)
    sets = acceptance("exact", src, dst, source)
    assert sets.contains(result).all()
    assert (sets.single | sets.nan).all()


def test_exact_takes_rounding_and_overflow() -> None:
    source = np.arange(1 << 16, dtype=np.uint16)
    modes = {"rounding": "floor", "overflow": "wrap"}
    floor = oracle.cast_array(source, "f16", "i8", "floor", "wrap")
    assert accepts("exact", "f16", "i8", source, floor, attributes=modes).all()
    assert not accepts("exact", "f16", "i8", source, floor).all()
    with pytest.raises(IllegalError, match="rounding 'odd' is not defined for f32 -> hif8"):
        acceptance("exact", "f32", "hif8", source.astype(np.uint32), attributes={"rounding": "odd"})


@pytest.mark.parametrize("name", ["hif8", "e4m3fn", "e5m2", "e5m2fnuz", "e8m0", "i4", "u8", "e2m1", "f8_143"])
def test_keys_are_ordered_as_the_numbers(name: str) -> None:
    fmt = FORMATS[name]
    codes = np.arange(1 << fmt.bits, dtype=np.uint64).astype(oracle.storage(name))
    numbers = [(float(value_of(int(code), fmt)), int(code)) for code in codes]
    known = [(number, code) for number, code in numbers if not math.isnan(number)]
    keys = order_keys(np.array([code for _, code in known], codes.dtype), fmt)
    ranked = np.array([number for number, _ in known])[np.argsort(keys)]
    assert (np.diff(ranked[np.isfinite(ranked)]) >= 0).all()
    assert len(set(keys.tolist())) == len(known)
    steps = set(np.diff(np.sort(keys)).tolist())
    assert steps <= {1, 2}  # 2 where minus zero's place is empty
    assert (2 in steps) <= (not getattr(fmt, "has_negative_zero", True))


def test_judged_arrays_must_fit() -> None:
    source = np.array([0x3F800000, 0], np.uint32)
    sets = acceptance("tosa", "f32", "f16", source)
    for judge, message in (
        (lambda: sets.contains(np.array([0], np.uint16)), r"results of shape \(1,\) for sources of shape \(2,\)"),
        (lambda: sets.contains(source), "codes of f16 come as uint16, not uint32"),
        (lambda: acceptance("tosa", "f32", "f16", source.view(np.float32)), "codes of f32 come as uint32, not float32"),
        (lambda: acceptance("tosa", "f33", "f16", source), "unknown format 'f33'"),
    ):
        with pytest.raises(ReadError, match=message):
            judge()
    empty = acceptance("tosa", "f32", "f16", np.zeros((0, 3), np.uint32))
    assert empty.contains(np.zeros((0, 3), np.uint16)).shape == (0, 3)
    single = acceptance("tosa", "f32", "f16", np.array(0x3F800000, np.uint32))
    assert bool(single.contains(np.array(0x3C00, np.uint16)))


PROGRAM = str(PROGRAMS / "bank_conflict.pto")


@pytest.mark.parametrize(("name", "casts"), [("exact", None), ("tosa", 52), ("onnx", 26 * 26)])
def test_one_specification(name: str, casts: int | None, capsys: Capture) -> None:
    """Numbers of casts: docs/reference/semantics.md section 1.1, counted by hand; in ONNX every type to every type."""
    spec = load_specification(name)
    found, shown = document_of(capsys, "targets", name), out_of(capsys, ["targets", name])
    (row,) = [each for each in document_of(capsys, "targets")["specifications"] if each["name"] == name]
    assert casts in (None, row["casts"])
    assert row["title"] in out_of(capsys, ["targets"])
    pairs = {(src, dst) for row in found["pairs"] for src in row["src"] for dst in row["dst"]}
    assert {pair for row in spec.casts for pair in spec.pairs(row)} <= pairs
    assert [rule["name"] for rule in found["rules"]] == list(spec.rules)
    assert all(rule["source"] and rule["status"] for rule in found["rules"])
    assert all(rule in shown for rule in spec.rules)
    assert "cannot run programs" in shown
    assert max(map(len, shown.splitlines())) <= 100


def test_one_pair(capsys: Capture) -> None:
    rules = document_of(capsys, "targets", "onnx", "float", "fp8_e4m3fn")["rules"]
    assert [(rule["name"], rule["since"], rule["when"]) for rule in rules] == [
        ("fp8_saturating", "19", {"saturate": 1}), ("fp8_not_saturating", "19", {"saturate": 0})
    ]  # fmt: skip
    (rule,) = document_of(capsys, "targets", "tosa", "bf16", "e5m2")["rules"]
    assert (rule["requires"], rule["below_ulps"], rule["above_ulps"]) == (["EXT-BF16", "EXT-FP8E5M2"], 1, 0.5)
    assert "EXT-BF16 EXT-FP8E5M2" in out_of(capsys, ["targets", "tosa", "bf16", "e5m2"])
    assert "tosa has no cast f32 -> f64" in err_of(capsys, ["targets", "tosa", "f32", "f64"], 1)


def test_values_beside_targets(capsys: Capture) -> None:
    """Row 1 of the table of differing answers, a tie (row 20), a flush (row 24) and NaN."""
    found = document_of(
        capsys, "cast", "f32", "f16", "70000", "1.00048828125", "1e-7", "nan", "--target", "abstract,a2a3",
        "--spec", "tosa", "onnx@13", "--option", "float_saturation_off_at_start=0",
    )  # fmt: skip
    verdicts = [(row["target"], row["accepted_by"]) for row in found["results"]]
    good, bad = {"tosa@1.1": True, "onnx@13": True}, {"tosa@1.1": False, "onnx@13": False}
    assert verdicts == [
        (None, good), ("a2a3", bad), (None, good), ("a2a3", good), (None, good), ("a2a3", good), (None, good),
        ("a2a3", bad),
    ]  # fmt: skip
    tosa = [row for row in found["specifications"] if row["specification"] == "tosa@1.1"]
    assert [row["accepts"] for row in tosa] == ["exact", "interval", "interval", "class"]
    assert [row["lowest"] and row["lowest"]["bits"] for row in tosa] == ["0x7c00", "0x3bff", "0x0001", None]
    assert [row["highest"] and row["highest"]["value"] for row in tosa] == ["inf", 1 + 2**-10, 2**-23, None]
    assert [row["further"] and row["further"]["bits"] for row in tosa] == [None, None, "0x0000", None]
    assert tosa[3]["nan"]
    assert {"rule", "meaning", "requires", "status", "source"} <= set(tosa[0])
    assert len(found["specifications"]) == 8


def test_the_text(capsys: Capture) -> None:
    shown = out_of(capsys, ["cast", "f32", "i16", "inf", "nan", "1e9", "--target", "a2a3", "--spec", "tosa,onnx"])
    rows = [line.split() for line in shown.splitlines()]
    assert ["inf", "a2a3", "rint", "wrap", "off", "0x0000", "0", "-32767", "tosa@1.1"] in rows
    assert ["0x7f800000", "tosa@1.1", "exact", "-", "-", "0x7fff", "32767"] in rows
    assert ["onnx@28", "any", "-", "-", "any", "any"] in rows
    assert "tosa@1.1 accepts (documented): nearest, ties to even, then saturated" in shown
    assert max(map(len, shown.splitlines())) <= 100


def test_without_a_target(capsys: Capture) -> None:
    shown = out_of(capsys, ["cast", "f32", "e4m3fn", "480", "--spec", "onnx@24:saturate=0", "--overflow", "saturate"])
    assert ["480", "abstract", "rint", "saturate", "-", "0x7e", "448", "onnx@24"] in [
        line.split() for line in shown.splitlines()
    ]
    found = document_of(capsys, "cast", "f32", "i8", "2.5", "--spec", "exact:rounding=floor")
    assert found["results"][0]["accepted_by"] == {"exact@1:rounding=floor": True}


@pytest.mark.parametrize(
    ("argv", "code", "message"),
    [
        ("cast f32 f64 1 --spec tosa", 1, "tosa 1.1 has no cast f32 -> f64"),
        ("cast f32 bf16 1 --spec onnx@9", 1, "onnx 9 has no cast f32 -> bf16; it came with 13"),
        ("cast f32 bf16 1 --spec onnx@99", 2, "onnx has no version '99'"),
        ("cast f32 bf16 1 --spec onnx:saturation=1", 2, "onnx has no attribute 'saturation'"),
        ("cast f32 bf16 1 --spec onnx:saturate=2", 2, "attribute saturate cannot be '2'"),
        ("cast f32 bf16 1 --spec onnx:saturate", 2, "sets no attribute"),
        ("cast f32 bf16 1 --spec opset", 2, "unknown specification 'opset'"),
        ("cast f32 bf16 1 --target tosa", 1, "tosa is a specification"),
        ("targets --diff a5 onnx", 1, "onnx is a specification"),
        (f"run {PROGRAM} --target tosa", 1, "tosa is a specification"),
    ],
)
def test_refusals(argv: str, code: int, message: str, capsys: Capture) -> None:
    found, err = refusal(capsys, *argv.split())
    assert found == code
    assert message in err
