"""The grammars and the extension under `docs/editors/`: what castsim's tables give, and what programs have."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest
from measured_record import MEASURED, read, rows

from castsim import __version__
from castsim.commands.editor.grammars import FILES, written

ROOT = Path(__file__).parent.parent
VSCODE = ROOT / "docs" / "editors" / "vscode"


@pytest.mark.parametrize("language", FILES)
def test_files_are_what_the_tables_give(language: str) -> None:
    assert (VSCODE / "syntaxes" / FILES[language]).read_text(encoding="utf-8") == written(language)


def scope(language: str, text: str, word: str) -> str:
    """Return the scope of a word of a line: that of the first rule which matches from its start."""
    at = text.index(word)
    found = [
        (match.start(), number, rule["name"])
        for number, rule in enumerate(json.loads(written(language))["patterns"])
        if "match" in rule
        for match in re.finditer(rule["match"].replace("(?<=-)", ""), text)
        if match.start() <= at < match.end()
    ]
    return min(found)[2] if found else ""


@pytest.mark.parametrize(
    ("language", "text", "word", "name"),
    [
        ("pto", "    pto.tcvt ins(%a : f32) // x", "pto.tcvt", "support.function"),
        ("pto", "    pto.tfillpad_expand ins(%a)", "_expand", "support.function"),
        ("pto", "    %v = pto.vcvt %a", "pto.vcvt", "support.function"),
        ("pto", "    pto.tcvt ins(%a : f32) // x", "%a", "variable.other"),
        ("pto", "    pto.tcvt ins(%a : f32) // x", "// x", "comment.line.double-slash"),
        ("pto", "    scf.for %i = %c0 to %n", "scf.for", "keyword.control"),
        ("pto", "{rmode = #pto<round_mode ROUND>}", "ROUND", "constant.language"),
        ("pto", "!pto.tile_buf<vec, 16x512xf8E4M3FN>", "f8E4M3FN", "storage.type"),
        ("tpc", "nop; nop; convert.f32 target_type=int16 rhne V4, V2; nop", "convert.f32", "support.function"),
        ("tpc", "nop; nop; convert.f32 target_type=int16 rhne V4, V2; nop", "int16", "storage.type"),
        ("tpc", "nop; nop; convert.f32 target_type=int16 rhne V4, V2; nop", "rhne", "constant.language"),
        ("tpc", "nop; nop; convert.f32 target_type=int16 rhne V4, V2; nop", "V4", "variable.language"),
        ("tpc", "// castsim: target gaudi2", "castsim", "comment.line.documentation"),
        ("tpc", "End:", "End", "entity.name.label"),
    ],
)
def test_words_have_their_scopes(language: str, text: str, word: str, name: str) -> None:
    assert scope(language, text, word) == name


def test_the_extension_names_its_files() -> None:
    package = json.loads((VSCODE / "package.json").read_text(encoding="utf-8"))
    contributes = package["contributes"]
    bundled = package["scripts"]["vscode:prepublish"].split()  # esbuild makes `main` of it
    assert bundled[0] == "esbuild" and f"--outfile={package['main'].removeprefix('./')}" in bundled
    places = [bundled[1], *(one["path"] for one in contributes["grammars"])]
    places += [one["configuration"] for one in contributes["languages"]]
    assert all((VSCODE / place).is_file() for place in places)
    assert package["version"] == __version__
    assert [one["scopeName"] for one in contributes["grammars"]] == [
        json.loads(written(language))["scopeName"] for language in FILES
    ]


def test_launches_have_the_attributes_that_the_adapter_reads() -> None:
    package = json.loads((VSCODE / "package.json").read_text(encoding="utf-8"))
    (debugger,) = package["contributes"]["debuggers"]
    read = (ROOT / "simulator" / "commands" / "editor" / "debug_adapter.py").read_text(encoding="utf-8")
    attributes = debugger["configurationAttributes"]["launch"]["properties"]
    assert [name for name in attributes if f'"{name}"' not in read] == []


def test_edits_in_long_texts_are_answered_within_the_limit() -> None:
    """As measured by `tests/benchmarks/editing.py`: 10,000 lines, 200 ms at the median."""
    found = rows(read(MEASURED / "editing.json")["tables"][0])
    assert len(found) == 3
    assert all(row["lines"] >= 9_990 and row["median ms"] < 200 for row in found)


def test_names_and_colours_in_long_texts_are_found_within_the_limits() -> None:
    """As measured by `tests/benchmarks/navigation.py`: the server's own time, 99th percentile of each question."""
    found = rows(read(MEASURED / "navigation.json")["tables"][0])
    assert {row["question"] for row in found} == {"definition", "references", "colours", "colours that changed"}
    assert len(found) == 12
    assert all(row["lines"] >= 9_990 and row["own 99 % ms"] <= row["limit ms"] for row in found)
