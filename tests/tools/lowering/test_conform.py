"""`castsim conform`: which cells there are, what they say, and whether the committed records are current."""

import os

import numpy as np
import pytest
from kit.command_output import document_of, out_of
from tools.lowering.conformance_record import RECORDS, answer, held, record

from castsim.__main__ import main
from castsim.targets.loader import load_specification, target_names
from castsim.tools.lowering.conform_report import cast_text, cell_text, conform_markdown
from castsim.tools.lowering.conformance import Cell, conform, legal_casts, settle_cell
from castsim.tools.lowering.demand import Verdict
from castsim.tools.lowering.planner import PlanKind

THOROUGH = os.environ.get("CASTSIM_THOROUGH") == "1"
SAMPLE = 6
QUICK = ("bool", "i4", "u4", "i8", "u8", "i16", "u16", "f16", "bf16", "e4m3fn", "e5m2")
"""Sources whose cells take well below a second."""


def page_cells(spec: str) -> dict[tuple[str, str], str]:
    """The cells of the committed record by cast and target."""
    found = held(spec)
    return {
        (cast, target): cell
        for cast, cells in found["answers"].items()
        for target, cell in zip(found["targets"], cells, strict=True)
    }


@pytest.mark.parametrize("spec", RECORDS)
def test_records_hold_every_legal_cast_and_target(spec: str) -> None:
    found = load_specification(spec)
    named = set()
    for cast in legal_casts(found):
        attributes = "".join(
            f", {name}={value}" for name, value in cast.attributes.items() if value != found.attributes[name].default
        )
        unsigned = any(row.effect == "reads the source as unsigned" for row in found.attributes.values())
        src = cast.src.name
        if unsigned and cast.attributes.get("input_unsigned") == "1":
            src = src.replace("u", "i", 1)
        named |= {(f"{src} -> {cast.dst.name}{attributes}", target) for target in target_names()}
    assert set(page_cells(spec)) == named


@pytest.mark.parametrize("spec", RECORDS)
def test_records_are_current(spec: str) -> None:
    """A seeded sample of cells in CI, the whole record with CASTSIM_THOROUGH=1."""
    if THOROUGH:
        assert record(conform(spec, workers=os.cpu_count() or 1)) == RECORDS[spec].read_text(encoding="utf-8")
        return
    found = load_specification(spec)
    page = page_cells(spec)
    casts = [cast for cast in legal_casts(found) if cast.src.name in QUICK]
    rng = np.random.default_rng(5)
    checked = 0
    while checked < SAMPLE:
        cast = casts[int(rng.integers(len(casts)))]
        target = str(rng.choice(target_names()))
        setting = tuple(
            (name, value) for name, value in cast.attributes.items() if value != found.attributes[name].default
        )
        src = cast.src.name.replace("u", "i", 1) if ("input_unsigned", "1") in setting else cast.src.name
        entry = settle_cell(Cell(src, cast.dst.name, setting, target), found, found.versions.default)
        assert page[cast_text(cast, entry), target] == answer(entry)
        checked += page[cast_text(cast, entry), target] != "no chain found"


def test_a_matrix_has_a_cell_per_cast_and_target() -> None:
    found = conform("tosa", ("a5", "gaudi2"), src="f16", dst="i8")
    assert [(entry.cell.src, entry.cell.target) for entry in found.entries] == [("f16", "a5"), ("f16", "gaudi2")]
    assert [entry.kind for entry in found.row(0)] == [PlanKind.OPTIONS, PlanKind.NATIVE]
    assert found.entries[0].options == ("saturation ON",)
    assert found.entries[0].verdict is Verdict.EXACT


def test_attributes_that_select_a_rule_make_rows() -> None:
    casts = [
        cast for cast in legal_casts(load_specification("onnx")) if (cast.src.name, cast.dst.name) == ("f16", "e5m2")
    ]
    assert [cast.attributes["saturate"] for cast in casts] == ["1", "0"]
    # Round modes matter for powers of two only: three for each of two.
    powers = [
        cast for cast in legal_casts(load_specification("onnx")) if (cast.src.name, cast.dst.name) == ("f32", "e8m0")
    ]
    assert len(powers) == 6


def test_older_versions_have_fewer_casts() -> None:
    new, old = (legal_casts(load_specification("tosa"), version) for version in (None, "1.0"))
    assert {cast.version for cast in old} == {"1.0"}
    assert len(old) < len(new)
    # i64 and boolean floats came with 1.1 (docs/reference/semantics.md section 1.1).
    assert not any("i64" in (cast.src.name, cast.dst.name) for cast in old)


def test_json_and_text(capsys: pytest.CaptureFixture[str]) -> None:
    arguments = ["conform", "--spec", "tosa", "--target", "a5", "a2a3", "--src", "f16", "--dst", "i8"]
    found = document_of(capsys, *arguments)
    assert [cell["way"] for cell in found["cells"]] == ["native with options"] * 2
    assert found["cells"][0]["instructions"] == [{"instruction": "tcvt f16 -> i8", "options": "saturation ON"}]
    assert {"target": "a5", "way": "native with options", "cells": 1} in found["totals"]
    out = out_of(capsys, arguments)
    assert "saturation ON" in out
    assert "native: one instruction." not in out  # a word that no cell uses
    assert "unlike options of the target such as bits of CTRL" in " ".join(out.split())
    table = out.splitlines()[-2:]
    assert [row.split()[:3] for row in table] == [["a5", "1", "0"], ["a2a3", "1", "0"]]  # one instruction, no option
    assert "| f16 -> i8 | saturation ON" in out_of(capsys, [*arguments, "--markdown"])


def test_failures_tell_the_value(capsys: pytest.CaptureFixture[str]) -> None:
    held = ["--option", "ctrl_48_at_start=0"]
    assert main(["conform", "--spec", "onnx", "--target", "a5", "--src", "i32", "--dst", "f16", *held]) == 0
    out = " ".join(capsys.readouterr().out.split())
    assert "not inf" in out or "not -inf" in out
    assert "65504" in out


def cells(capsys: pytest.CaptureFixture[str], *arguments: str) -> list[dict]:
    return document_of(capsys, "conform", *arguments)["cells"]


def test_options_that_software_sets_are_named(capsys: pytest.CaptureFixture[str]) -> None:
    """f32 -> f16 follows CTRL[48] on both chips, which is 1 on A2/A3; Gaudi 2 needs nothing.

    Source: docs/reference/a5.md section 4.1, docs/reference/a2a3.md section 3.1.
    """
    cast = ["--spec", "tosa", "--target", "a5", "a2a3", "gaudi2", "--src", "f32", "--dst", "f16"]
    found = {cell["target"]: cell for cell in cells(capsys, *cast)}
    assert found["a5"]["options"] == {"ctrl_48_at_start": 1}
    assert found["a2a3"]["options"] == {}
    assert found["gaudi2"]["options"] == {}
    ways = [found[target]["way"] for target in ("a5", "a2a3", "gaudi2")]
    assert ways == ["native with options", "native", "native"]
    shown = [cell_text(entry) for entry in conform("tosa", ("a5", "gaudi2"), src="f32", dst="f16").entries]
    assert shown[0].startswith("native with options ctrl_48_at_start=1, 0.")
    assert shown[1].startswith("native, 0.")


def test_options_given_hold_for_all_cells(capsys: pytest.CaptureFixture[str]) -> None:
    cast = ["--spec", "tosa", "--target", "a5", "--src", "f32", "--dst", "f16"]
    (cell,) = cells(capsys, *cast, "--option", "ctrl_48_at_start=1")
    assert (cell["way"], cell["options"]) == ("native", {})
    (cell,) = cells(capsys, *cast, "--option", "ctrl_48_at_start=0")
    assert (cell["way"], cell["options"]) == ("none found", {})
    page = out_of(capsys, ["conform", *cast, "--option", "ctrl_48_at_start=1", "--markdown"])
    assert page.startswith("# Casts of TOSA 1.1 on the targets with ctrl_48_at_start=1: conformance\n")
    assert "`castsim conform --spec tosa@1.1 --option ctrl_48_at_start=1 --markdown`" in page
    # A target without the option refuses it.
    assert main(["conform", *cast, "--target", "goya", "--option", "ctrl_48_at_start=1"]) == 2
    assert "goya has no option 'ctrl_48_at_start'" in capsys.readouterr().err


def test_a_single_instruction_with_options_stands_beside_a_chain() -> None:
    found = conform("onnx", ("a5",), src="f32", dst="e4m3fn", options={"ctrl": "hivm", "ctrl_48_at_start": 0}).entries[
        0
    ]
    assert found.kind is PlanKind.CHAIN
    assert found.native == (("ctrl_50_at_start", 1), ("ctrl_60_at_start", 1))
    assert cell_text(found).endswith("; or native with options ctrl_50_at_start=1, ctrl_60_at_start=1")


def test_what_is_not_in_the_table_is_said(capsys: pytest.CaptureFixture[str]) -> None:
    for spec, rescale in (("tosa", True), ("onnx", False)):
        assert main(["conform", "--spec", spec, "--target", "gaudi2", "--src", "i8", "--dst", "i16", "--markdown"]) == 0
        page = capsys.readouterr().out
        assert page.startswith({"tosa": "# Casts of TOSA ", "onnx": "# Casts of ONNX "}[spec])
        assert ("RESCALE of tosa is not in the table" in page) == rescale


def test_workers_give_the_same(capsys: pytest.CaptureFixture[str]) -> None:
    alone, together = (conform("tosa", ("a5",), src="i8", workers=workers) for workers in (1, 2))
    assert conform_markdown(alone) == conform_markdown(together)
