"""Specifications as descriptions: what the schema refuses, what runs on them (nothing), how sets behave."""

from __future__ import annotations

import json
import math
import re
from pathlib import Path
from typing import Any

import numpy as np
import oracle
import pytest
from kit.paths import PROGRAMS

from castsim.__main__ import main
from castsim.isa.errors import IllegalError, ReadError, TargetDataError
from castsim.isa.formats import FORMATS
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


# ----------------------------------------------------------------------------------- specifications on the command line


Capture = pytest.CaptureFixture[str]
PROGRAM = str(PROGRAMS / "bank_conflict.pto")


def document(capsys: Capture, *argv: str) -> dict[str, Any]:
    assert main([*argv, "--json", "-"]) == 0
    found: dict[str, Any] = json.loads(capsys.readouterr().out)
    return found


def text(capsys: Capture, *argv: str) -> str:
    assert main([*argv]) == 0
    return capsys.readouterr().out


def test_the_list(capsys: Capture) -> None:
    rows = document(capsys, "targets")["specifications"]
    assert [row["name"] for row in rows] == list(specification_names())
    counts = {row["name"]: row["casts"] for row in rows}
    assert counts["tosa"] == 52  # docs/reference/semantics.md section 1.1, counted by hand
    assert counts["onnx"] == 26 * 26  # every type to every type
    shown = text(capsys, "targets")
    assert all(row["title"] in shown for row in rows)


@pytest.mark.parametrize("name", specification_names())
def test_one_specification(name: str, capsys: Capture) -> None:
    spec = load_specification(name)
    found, shown = document(capsys, "targets", name), text(capsys, "targets", name)
    pairs = {(src, dst) for row in found["pairs"] for src in row["src"] for dst in row["dst"]}
    assert {pair for row in spec.casts for pair in spec.pairs(row)} <= pairs
    assert [rule["name"] for rule in found["rules"]] == list(spec.rules)
    assert all(rule["source"] and rule["status"] for rule in found["rules"])
    assert all(rule in shown for rule in spec.rules)
    assert "cannot run programs" in shown
    assert max(map(len, shown.splitlines())) <= 100


def test_one_pair(capsys: Capture) -> None:
    rules = document(capsys, "targets", "onnx", "float", "fp8_e4m3fn")["rules"]
    assert [(rule["name"], rule["since"], rule["when"]) for rule in rules] == [
        ("fp8_saturating", "19", {"saturate": 1}), ("fp8_not_saturating", "19", {"saturate": 0})
    ]  # fmt: skip
    (rule,) = document(capsys, "targets", "tosa", "bf16", "e5m2")["rules"]
    assert (rule["requires"], rule["below_ulps"], rule["above_ulps"]) == (["EXT-BF16", "EXT-FP8E5M2"], 1, 0.5)
    assert "EXT-BF16 EXT-FP8E5M2" in text(capsys, "targets", "tosa", "bf16", "e5m2")
    assert main(["targets", "tosa", "f32", "f64"]) == 1
    assert "tosa has no cast f32 -> f64" in capsys.readouterr().err


def test_values_beside_targets(capsys: Capture) -> None:
    """Row 1 of the table of differing answers, a tie (row 20), a flush (row 24) and NaN."""
    found = document(
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
    shown = text(capsys, "cast", "f32", "i16", "inf", "nan", "1e9", "--target", "a2a3", "--spec", "tosa,onnx")
    rows = [line.split() for line in shown.splitlines()]
    assert ["inf", "a2a3", "rint", "wrap", "off", "0x0000", "0", "-32767", "tosa@1.1"] in rows
    assert ["0x7f800000", "tosa@1.1", "exact", "-", "-", "0x7fff", "32767"] in rows
    assert ["onnx@28", "any", "-", "-", "any", "any"] in rows
    assert "tosa@1.1 accepts (documented): nearest, ties to even, then saturated" in shown
    assert max(map(len, shown.splitlines())) <= 100


def test_without_a_target(capsys: Capture) -> None:
    shown = text(capsys, "cast", "f32", "e4m3fn", "480", "--spec", "onnx@24:saturate=0", "--overflow", "saturate")
    assert ["480", "abstract", "rint", "saturate", "-", "0x7e", "448", "onnx@24"] in [
        line.split() for line in shown.splitlines()
    ]
    found = document(capsys, "cast", "f32", "i8", "2.5", "--spec", "exact:rounding=floor")
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
    assert main(argv.split()) == code
    out, err = capsys.readouterr()
    assert (out, message in err) == ("", True), err
    assert "Traceback" not in err
