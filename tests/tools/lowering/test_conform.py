"""`castsim conform`, and the records that ship: cells, programs, casts of tiles, cycles."""

from __future__ import annotations

import hashlib
import json
import os
import random
import typing
from typing import Any

import numpy as np
import pytest
from kit.command_output import document_of, out_of
from kit.paths import ROOT
from tools.lowering import cast_catalogue, conformance_record

from castsim.__main__ import main
from castsim.targets.loader import TileTarget, load_specification, load_target, target_names
from castsim.tools.lowering.conform import cast_text, cell_text
from castsim.tools.lowering.conformance import Cell, conform, legal_casts, settle_cell
from castsim.tools.lowering.demand import CastRequest, Verdict
from castsim.tools.lowering.lowering_answers import answer, changed
from castsim.tools.lowering.planner import PlanKind
from castsim.tools.lowering.sharing import RECORDS, program_key, recorded_casts, recorded_cycles

THOROUGH = os.environ.get("CASTSIM_THOROUGH") == "1"
SAMPLE = 6
QUICK = ("bool", "i4", "u4", "i8", "u8", "i16", "u16", "f16", "bf16", "e4m3fn", "e5m2")
"""Sources whose cells take well below a second."""


def page_cells(spec: str) -> dict[tuple[str, str], str]:
    """The cells of the committed record by cast and target."""
    found = conformance_record.held(spec)
    return {
        (cast, target): cell
        for cast, cells in found["answers"].items()
        for target, cell in zip(found["targets"], cells, strict=True)
    }


@pytest.mark.parametrize("spec", conformance_record.RECORDS)
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


@pytest.mark.parametrize("spec", conformance_record.RECORDS)
def test_records_are_current(spec: str) -> None:
    """A seeded sample of cells in CI, the whole record with CASTSIM_THOROUGH=1."""
    if THOROUGH:
        text = conformance_record.record(conform(spec, workers=os.cpu_count() or 1))
        assert text == conformance_record.RECORDS[spec].read_text(encoding="utf-8")
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
        assert page[cast_text(cast, entry), target] == conformance_record.answer(entry)
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


DOCS = ROOT / "docs" / "tools"
SPECIFICATIONS = ["tosa", "onnx"]
CELLS = None if os.environ.get("CASTSIM_THOROUGH") else 12
"""Cells that are planned again, of each specification; all of them only where there is time."""


def read(specification: str) -> dict[str, Any]:
    record: dict[str, Any] = json.loads((DOCS / f"lowering-{specification}.json").read_text())
    return record


@pytest.mark.parametrize("specification", SPECIFICATIONS)
def test_record(specification: str) -> None:
    record = read(specification)
    assert record["specification"] == specification
    assert record["complete"]
    assert not record["missing"]
    assert record["wrong"] == 0
    results = [row["result"] for row in record["results"]]
    found = [result for result in results if result is not None]
    assert len(results) == record["cells"]
    assert len(results) - len(found) == record["cells_without_a_way"]
    assert len(found) == record["programs_run"] + record["counterexamples_run"]
    assert sum(result["codes"] for result in found) == record["codes"]
    assert not any(result["wrong"] for result in found)


@pytest.mark.parametrize("specification", SPECIFICATIONS)
def test_the_programs_of_the_record_are_those_that_are_planned_today(specification: str) -> None:
    """A record is about programs: cells are planned again, and give them to the letter."""
    record = read(specification)
    rows = record["results"]
    for row in random.Random(specification).sample(rows, CELLS or len(rows)):
        request = CastRequest(
            row["src"], row["dst"], row["target"], spec=load_specification(specification), version=record["version"],
            attributes=dict(map(tuple, row["attributes"])), rows=32, cols=256,
        )  # fmt: skip
        found, held = answer(request, explain=False, quick=True), row["result"]
        if held is None:
            assert found.plan.kind.fails, row
            assert found.plan.counterexample is None, row
            continue
        assert (found.kind.value, found.plan.verdict.value) == (held["way"], held["verdict"]), row
        assert [step.label for step in found.plan.chain] == held["chain"], row
        assert [list(each) for each in found.settings] == held["options"], row
        if found.plan.assembly is not None:
            text = found.plan.assembly.text
            assert hashlib.sha256(text.encode()).hexdigest() == held["program_sha256"], (row, text)


@pytest.mark.parametrize("name", cast_catalogue.PLANNING)
def test_the_shipped_casts_are_those_of_the_sources(name: str) -> None:
    shipped = (RECORDS / f"casts_{name}.json").read_text(encoding="utf-8")
    assert shipped == cast_catalogue.record(name)
    assert recorded_casts(typing.cast(TileTarget, load_target(name)), cast_catalogue.PLANNING[name].sources) is not None


@pytest.mark.parametrize("name", cast_catalogue.PLANNING)
def test_a_record_of_other_facts_is_not_used(name: str) -> None:
    target = typing.cast(TileTarget, load_target(name))
    other = target.model_copy(update={"title": f"{target.title}, changed"})
    assert recorded_casts(other, cast_catalogue.PLANNING[name].sources) is None


@pytest.mark.parametrize("name", target_names())
def test_the_shipped_cycles_are_those_of_a_simulation(name: str) -> None:
    recorded = recorded_cycles(load_target(name))
    assert recorded, f"records/cycles_{name}.json is of other sources: run python tests cast_catalogue"
    simulated = cast_catalogue.simulated(name, "tosa", src="f32")
    assert simulated
    assert {key: recorded[key] for key in simulated} == simulated


def test_cycles_of_other_facts_or_options_are_not_used() -> None:
    target = load_target("a5")
    assert not recorded_cycles(target.model_copy(update={"title": f"{target.title}, changed"}))
    assert program_key(changed(target, {"ctrl_48_at_start": 1}), "text") != program_key(target, "text")
