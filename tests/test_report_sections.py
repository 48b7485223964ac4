"""The sections of the report of a run: what they promise, and that a new one is one file."""

from __future__ import annotations

import json
import sys
from pathlib import Path

import pytest

from castsim.__main__ import main
from castsim.commands.run import declare
from castsim.commands.shared_options import OptionParser
from castsim.reports import sections
from castsim.reports.documents import Keys
from castsim.reports.run_findings import DOCUMENTED, PRINTED, section
from castsim.reports.run_report import ReportSection

PROGRAMS = Path(__file__).resolve().parent.parent / "programs"
NAMES = (*PRINTED, *sections.further_reports())

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
    assert main(["run", *words, "--timing-only"]) == 0
    return capsys.readouterr().out


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
    declare(parser)
    assert "kernel, made_up_casts" in " ".join(parser.format_help().split())
    assert main(["run", str(PROGRAMS / "f32_to_f16.pto"), "--report", "casts"]) == 2
    assert "legal: run, kernel, made_up_casts" in capsys.readouterr().err


def test_a_report_says_why_it_has_nothing_to_show(capsys):
    assert main(["run", str(PROGRAMS / "tpc_f32_f8_143_gaudi2.tpc"), "--timing-only", "--report", "kernel"]) == 2
    assert "which assembly does not have" in capsys.readouterr().err


def test_every_name_is_of_a_section():
    """A name without a section would only fail in some run."""
    assert sections.further_reports() == ("kernel",)
    assert all(isinstance(section(name), ReportSection) for name in NAMES)


def test_sections_with_data_are_those_documented():
    assert {name for name in PRINTED if section(name).keys is not Keys} == set(DOCUMENTED)
    assert len(set(NAMES)) == len(NAMES)
    assert len(set(DOCUMENTED)) == len(DOCUMENTED)


def test_the_options_of_sections_are_options_of_run():
    parser = OptionParser()
    declare(parser)
    known = {option for action in parser._actions for option in action.option_strings}
    named = [option for name in NAMES for option in section(name).options]
    assert set(named) <= known
    assert len(set(named)) == len(named)
    assert {"--lint", "--what-if", "--show-sync", "--races"} <= set(named)
