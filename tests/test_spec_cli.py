"""Specifications on the command line: `castsim targets`, `castsim cast --spec`, and that nothing runs on them."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from castsim.__main__ import main
from castsim.targets import load_specification, specification_names

Capture = pytest.CaptureFixture[str]
PROGRAM = str(Path(__file__).parent.parent / "programs" / "bank_conflict.pto")


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
    assert all(f"{rule} (" in shown for rule in spec.rules)
    assert "nothing runs on it" in shown
    assert max(map(len, shown.splitlines())) <= 100


def test_one_pair(capsys: Capture) -> None:
    rules = document(capsys, "targets", "onnx", "float", "fp8_e4m3fn")["rules"]
    assert [(rule["name"], rule["since"], rule["when"]) for rule in rules] == [
        ("fp8_saturating", "19", {"saturate": 1}), ("fp8_not_saturating", "19", {"saturate": 0})
    ]  # fmt: skip
    (rule,) = document(capsys, "targets", "tosa", "bf16", "e5m2")["rules"]
    assert (rule["requires"], rule["below_ulps"], rule["above_ulps"]) == (["EXT-BF16", "EXT-FP8E5M2"], 1, 0.5)
    assert "requires EXT-BF16 and EXT-FP8E5M2" in text(capsys, "targets", "tosa", "bf16", "e5m2")
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
