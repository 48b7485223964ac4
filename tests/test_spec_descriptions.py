"""Specifications as descriptions: what the schema refuses, what runs on them (nothing), how sets behave."""

from __future__ import annotations

import math
import re
from pathlib import Path

import numpy as np
import oracle
import pytest

from castsim.isa.errors import IllegalError, ReadError, TargetDataError
from castsim.isa.formats import FORMATS
from castsim.numerics import value_of
from castsim.specifications import acceptance, accepts, parse_specification, specified_cast
from castsim.specifications.rescale import order_keys
from castsim.targets import (
    is_specification,
    load_specification,
    load_target,
    specification_names,
    target_for_architecture,
    target_names,
)

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
    with pytest.raises(IllegalError, match="tosa is a specification: it says what casts must give") as refused:
        load_target("tosa")
    assert (refused.value.exit_code, refused.value.legal) == (1, target_names())
    with pytest.raises(IllegalError, match=r"mine\.toml is a specification"):
        load_target(written(tmp_path, MINE))


def test_a_chip_is_no_specification(tmp_path: Path) -> None:
    with pytest.raises(ReadError, match="unknown specification 'a5'") as refused:
        load_specification("a5")
    assert refused.value.legal[:3] == specification_names()
    path = written(tmp_path, 'base = "a2a3"\nname = "mine"\n')
    with pytest.raises(TargetDataError, match="is the description of a chip"):
        load_specification(path)
    with pytest.raises(ReadError, match=r"'gone\.toml' does not exist"):
        load_specification("gone.toml")


def test_a_specification_of_ones_own(tmp_path: Path) -> None:
    path = written(tmp_path, MINE)
    assert is_specification(path)
    one = np.array([1.5], np.float32).view(np.uint32)
    assert accepts(path, "f32", "f16", one, np.array([0x3E00], np.uint16)).all()
    assert specified_cast(path, "f32", "i8").label == "mine@2"


def test_every_rule_says_where_it_is_from() -> None:
    for name in specification_names():
        spec = load_specification(name)
        for rule in spec.rules.values():
            assert rule.source
            assert rule.status
            assert rule.meaning


INTERVAL = 'accept = "interval"\nbelow_ulps = 1\nabove_ulps = 0.5'
EXACT = 'accept = "exact"\nroundings = ["rint"]'


@pytest.mark.parametrize(
    ("before", "after", "message"),
    [
        ('dst = "f16 i8"', 'dst = "f16 f17"', "'f17' is neither a format nor a class of this file"),
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
        ("since = 1", 'since = 1\nwhen = {fast = "1"}', "when fast=1: no such attribute"),
        ("same_type = false", "same_type = false\nfast = 1", "fast: unknown key"),
        (
            'source = "here"\nstatus = "assumed"\n\n[[casts]]',
            'status = "assumed"\n\n[[casts]]',
            "versions.source: missing",
        ),
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


# ----------------------------------------------------------------------------------------- names with their settings


def test_settings_in_a_name() -> None:
    spec, version, attributes = parse_specification("ONNX@24:saturate=0:round_mode=down")
    assert (spec.name, version, attributes) == ("onnx", "24", {"saturate": "0", "round_mode": "down"})
    assert parse_specification(" tosa ")[1:] == (None, {})


@pytest.mark.parametrize("text", ["onnx:saturate", "onnx:=1", "onnx:saturate=", "onnx:a=1:a=2", "onnx@", "onyx"])
def test_malformed_names(text: str) -> None:
    with pytest.raises(ReadError):
        parse_specification(text)


# ------------------------------------------------------------------------------------------- the abstract cast, sets


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
    with pytest.raises(ReadError, match=r"results of shape \(1,\) for sources of shape \(2,\)"):
        sets.contains(np.array([0], np.uint16))
    with pytest.raises(ReadError, match="codes of f16 come as uint16, not uint32"):
        sets.contains(source)
    with pytest.raises(ReadError, match="codes of f32 come as uint32, not float32"):
        acceptance("tosa", "f32", "f16", source.view(np.float32))
    with pytest.raises(ReadError, match="unknown format 'f33'"):
        acceptance("tosa", "f33", "f16", source)
    empty = acceptance("tosa", "f32", "f16", np.zeros((0, 3), np.uint32))
    assert empty.contains(np.zeros((0, 3), np.uint16)).shape == (0, 3)
    single = acceptance("tosa", "f32", "f16", np.array(0x3F800000, np.uint32))
    assert bool(single.contains(np.array(0x3C00, np.uint16)))
