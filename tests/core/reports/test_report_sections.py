"""Reports of a run: sections (a new one is one file), classes of keys, what is said of vector operations."""

from __future__ import annotations

import csv
import json
import sys
from dataclasses import dataclass
from decimal import Decimal
from enum import Enum, StrEnum
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest
from kit.command_output import out_of
from kit.paths import PROGRAMS, ROOT

from castsim.__main__ import main
from castsim.commands.feature import feature_of
from castsim.commands.shared_options import OptionParser
from castsim.isa.formats import format_named
from castsim.isa.pto.vector_operations import VECTOR_OPERATIONS
from castsim.reports import sections
from castsim.reports.documents import ABSENT, Keys, json_of, says
from castsim.targets.loader import load_target

CASTS = """
from collections import Counter

from rich.text import Text

from castsim.reports.documents import Keys, says
from castsim.reports.run_report import ReportSection


def counted(report):
    tree, timing = report.result.loaded.tree, report.result.timing
    pairs = Counter()
    for execution in timing.executions:
        pairs.update(tree.instructions[execution.instruction].casts)
    return pairs


class CastsOfPair(Keys):
    src: str = says("Format of the source.", lambda own: own[0][0])
    dst: str = says("Format of the result.", lambda own: own[0][1])
    times: int = says("How often the pair is cast.", lambda own: own[1])


class CastKeys(Keys):
    casts: list[CastsOfPair] = says("Casts of each pair.", lambda report: counted(report).items())


def text(report, width):
    for (src, dst), times in counted(report).items():
        yield Text(f"{src} -> {dst}: {times} casts")


SECTION = ReportSection(text, CastKeys)
"""
"""A made-up report: how often each type pair is cast."""


@pytest.fixture
def with_casts(tmp_path, monkeypatch):
    """The made-up report lies beside the others, as one file."""
    (tmp_path / "made_up_casts.py").write_text(CASTS)
    monkeypatch.setattr(sections, "__path__", [*sections.__path__, str(tmp_path)])
    yield
    sys.modules.pop("castsim.reports.sections.made_up_casts", None)


def said(capsys, *words: str) -> str:
    return out_of(capsys, ["run", *words, "--timing-only"])


# By the programs' own texts: casts per trip times trips.
@pytest.mark.parametrize(
    ("program", "pairs"),
    [
        ("f32_to_f16.pto", {("f32", "f16"): 1}),
        ("a5_hif8_round_trip.pto", {("f32", "hif8"): 1, ("hif8", "f32"): 1}),
        ("a5_bf16_to_f16_barriers.pto", {("bf16", "f16"): 2 * 2}),
        ("tpc_f32_i16_quantise_greco.tpc", {("f32", "i16"): 8 * 2}),
    ],
)
def test_a_new_report_is_one_file(program, pairs, with_casts, capsys):
    path = str(PROGRAMS / program)
    plain = json.loads(said(capsys, path, "--json", "-"))
    document = json.loads(said(capsys, path, "--report", "made_up_casts", "--json", "-"))
    found = {(each["src"], each["dst"]): each["times"] for each in document.pop("casts")}
    assert document == plain
    assert found == pairs
    text = said(capsys, path, "--report", "made_up_casts")
    for (src, dst), times in found.items():
        assert f"{src} -> {dst}: {times} casts\n" in text


def test_run_lists_the_reports_that_there_are(with_casts, capsys):
    parser = OptionParser()
    feature_of("run").declare(parser)
    assert "kernel, made_up_casts" in " ".join(parser.format_help().split())
    assert main(["run", str(PROGRAMS / "f32_to_f16.pto"), "--report", "casts"]) == 2
    assert "legal: run, full, kernel, made_up_casts" in capsys.readouterr().err


# ---------------------------------------------------------------------------------------------- JSON of classes of keys


class Colour(Enum):
    RED = 3


class Word(StrEnum):
    LONG = "a long one"


@dataclass(frozen=True, slots=True)
class Inner:
    start: int
    causes: dict[Word, int]


@dataclass(frozen=True, slots=True)
class Outer:
    name: str
    parts: tuple[Inner, ...]
    missing: None = None

    @property
    def count(self) -> int:
        return len(self.parts)


class InnerKeys(Keys):
    first_byte: int = says("Where it starts.", "start")
    causes: dict[str, int] = says("Cycles by cause.")


class OuterKeys(Keys):
    title: str = says("Its name.", "name")
    parts: list[InnerKeys] = says("What it has.")
    note: int = says("What nothing says.", lambda _: ABSENT, optional=True)
    count: int = says("How many parts.")


OUTER = Outer("x", (Inner(4, {Word.LONG: 7}),))


@pytest.mark.parametrize(
    ("value", "text"),
    [
        (np.int64(3), "3"),
        (np.float32(0.5), "0.5"),
        (np.bool_(True), "true"),
        (Colour.RED, "3"),
        (Word.LONG, '"a long one"'),
        (Decimal("16.36"), "16.36"),
        (Decimal("128.0"), "128"),
        (b"\x01\xff", '"01ff"'),
        (Path("a") / "b", '"a/b"'),
        (format_named("f16"), '"f16"'),
        ((1, (2, None)), "[1, [2, null]]"),
        ({1: Word.LONG}, '{"1": "a long one"}'),
    ],
)
def test_values(value, text):
    assert json.dumps(json_of(value)) == text


def test_keys_keep_their_order_and_take_their_values_where_they_say():
    assert json.dumps(OuterKeys.of(OUTER)) == (
        '{"title": "x", "parts": [{"first_byte": 4, "causes": {"a long one": 7}}], "count": 1}'
    )
    assert OuterKeys.of(OUTER, note=3, count=2) == {**OuterKeys.of(OUTER), "count": 2, "note": 3}


@pytest.mark.parametrize("given", [{"nmae": "x"}, {"name": "x"}])
def test_a_key_that_a_document_does_not_have_is_refused(given):
    with pytest.raises(TypeError, match="OuterKeys has no key named"):
        OuterKeys.of(OUTER, **given)


def test_a_key_without_a_value_is_refused():
    with pytest.raises(TypeError, match="no value for 'parts' of OuterKeys in a SimpleNamespace"):
        OuterKeys.of(SimpleNamespace(name="x"))


def test_what_has_no_json_form_is_refused():
    with pytest.raises(TypeError, match="no JSON form of a set"):
        json_of({1, 2})


# ------------------------------------------------------------------------------------- vector operations in run reports


KERNEL = str(PROGRAMS / "kernels" / "rms_norm_a2a3.pto")
WORDS = ["run", KERNEL, "--in", "src=random:0", "--in", "gamma=random:1", "--arg", "eps=1e-6"]


def test_the_document_lists_every_operation(capsys: pytest.CaptureFixture[str]) -> None:
    assert main([*WORDS, "--json", "-", "--quiet"]) == 0
    found = {(note["op"], note["element"]): note for note in json.loads(capsys.readouterr().out)["operations"]}
    assert {op for op, _ in found} == {
        "texpands", "tmul", "trowsum", "tadd", "tmuls", "tadds", "tsqrt", "trecip", "trowexpandmul", "tcolexpandmul",
    }  # fmt: skip
    assert found["tmul", "f32"]["validated"] is True
    assert found["tmul", "f32"]["not_bit_exact"] is None
    assert found["tcolexpandmul", "f32"]["validated"] is False
    assert "order" in found["trowsum", "f32"]["not_bit_exact"]


def test_the_text_marks_them(capsys: pytest.CaptureFixture[str]) -> None:
    assert "values may not be bit-exact: trecip f32, trowsum f32 " in " ".join(out_of(capsys, WORDS).split())
    text = " ".join(out_of(capsys, [*WORDS, "--report", "full"]).split())
    marked = text.split("cycles not validated (none published): ")[1].split(" values")[0]
    assert "tcolexpandmul f32" in marked
    assert "tmul f32" not in marked.replace("trowexpandmul f32", "").replace("tcolexpandmul f32", "")
    assert "values not bit-exact: trowsum f32: order of the sum within a row is assumed" in text


def test_validated_are_the_operations_with_published_cycles() -> None:
    with (ROOT / "targets" / "a2a3_measured_operations.csv").open() as file:
        published = {(row["op"].lower(), row["src"]) for row in csv.DictReader(file)}
    published = {(op, element) for op, element in published if op in VECTOR_OPERATIONS}
    target = load_target("a2a3")
    assert {(rule.mnemonic, element) for rule in target.tile_operations for element in rule.validated} == published
