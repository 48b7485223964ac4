"""Which commands compile or execute a file that they are given: those that docs/security.md lists, and no other.

A compiler that leaves a marker stands in for the real one, and the Python file leaves one when it is imported.
"""

from __future__ import annotations

import io
import json
import re
from collections.abc import Callable
from pathlib import Path

import pytest
from kit.paths import PROGRAMS, ROOT

from castsim.__main__ import main
from castsim.commands.feature import COMMANDS

SMALL = PROGRAMS / "f32_to_f16.pto"
Capture = pytest.CaptureFixture[str]

LISTED = {
    kind: {
        command
        for row in re.findall(r"^\| (`.*?) \| (.*) \|$", (ROOT / "docs" / "security.md").read_text(), re.MULTILINE)
        if kind in row[1]
        for command in re.findall(r"`(\w+)`", row[0])
    }
    for kind in ("C++ kernel", "Python file")
}
"""Commands by what they execute, as the page says."""

SERVERS = {"lsp"}
"""Commands that take no file."""

ARGUMENTS: dict[str, Callable[[str], list[str]]] = {
    "diff": lambda file: [file, str(SMALL)],
    "view": lambda file: [file, "--no-open"],
    "record": lambda file: [file, "--out", "recorded.pto"],
    "compare": lambda file: ["f32", "f16", file],
    "graph": lambda file: [file, "--target", "a5"],
    "accuracy": lambda file: ["--target", "a5", "--data", file],
    "calibrate": lambda file: ["--target", "a5", "--data", file, "--out", "chip.toml"],
    "targets": lambda file: ["--target", file],
    "lower": lambda file: ["f32", "i8", "--target", file],
    "scratch": lambda file: ["f32", "f16", "--rows", "4", "--cols", "64", "--target", file],
    "cast": lambda file: ["f32", "f16", "--in", file],
    "quantise": lambda file: ["f32", "mxfp8", "--in", file],
    "verify": lambda file: ["f16", "i8", "--record", file, "--resume", "--samples", "4"],
    "conform": lambda file: ["--target", file, "--src", "f16", "--dst", "i8"],
    "sweep": lambda file: [file, "--out", "rows.parquet"],
    "tune": lambda file: [str(SMALL), "--resume", file, "--out", "ledger.jsonl"],
    "disasm": lambda file: [file, "--target", "gaudi2"],
    "compiled": lambda file: [file, "--target", "gaudi2"],
    "latency": lambda file: [file, "--target", "gaudi2"],
}
"""What follows a command that is given a file; for the others, the file alone."""


@pytest.fixture
def marker(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Return the file that appears when something is compiled or imported; commands run in its folder."""
    mark = tmp_path / "executed"
    compiler = tmp_path / "compiler"
    compiler.write_text(f"#!/bin/sh\ntouch '{mark}'\nexit 1\n")
    compiler.chmod(0o755)
    (tmp_path / "marker.cpp").write_text("#include <pto/pto-inst.hpp>\nAICORE void k() {}\n")
    (tmp_path / "marker.py").write_text(f"open({str(mark)!r}, 'a').close()\n\n\ndef convert(x):\n    return x\n")
    monkeypatch.setenv("CASTSIM_CXX", str(compiler))
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr("sys.stdin", io.TextIOWrapper(io.BytesIO()))
    return mark


@pytest.mark.parametrize("command", sorted({*COMMANDS} - SERVERS))
@pytest.mark.parametrize(("file", "kind"), [("marker.cpp", "C++ kernel"), ("marker.py:convert", "Python file")])
def test_the_page_lists_what_executes_a_named_file(
    command: str, file: str, kind: str, marker: Path, capsys: Capture
) -> None:
    if kind == "Python file" and command in LISTED[kind] - {"compare"}:
        pytest.importorskip("tilelang")
    main([command, *ARGUMENTS.get(command, lambda name: [name])(file)])
    assert marker.exists() == (command in LISTED[kind]), capsys.readouterr().err


def _result(program: str) -> str:
    """Return the JSON of a run whose program is another one."""
    assert main(["run", str(SMALL), "--timing-only", "--json", "written.json", "--quiet"]) == 0
    return json.dumps({**json.loads(Path("written.json").read_text()), "program": program})


DATA: dict[str, Callable[[str], str]] = {
    "result.json": _result,
    "short.json": lambda program: json.dumps({"program": program, "total_cycles": 5, "instructions": []}),
    "trace.json": lambda program: json.dumps(
        {"traceEvents": [], "otherData": {"time_unit": "1 us represents 1 cycle", "program": program}}
    ),
    "ledger.jsonl": lambda program: json.dumps({"program": program, "kind": "castsim tuning", "points": []}) + "\n",
    "sweep.toml": lambda program: (
        f'[sweep]\nkind = "program"\nmode = "simulate"\n[grid]\nprogram = ["{program}"]\ntarget = "a5"\n'
    ),
    "chip.toml": lambda program: f'name = "chip"\nbase = "{program}"\n',
    "rows.csv": lambda program: f"program,target,cycles,source\n{program},a5,5,measured\n",
    "graph.mlir": lambda program: f'module {{ "{program}"() : () -> () }}\n',
    "page.html": lambda program: f"<!doctype html><a href='{program}'>run</a>\n",
    "kernel.pto": lambda program: (
        f"// castsim: program {program}\n// castsim: input x = {program}\nfunc.func @k() {{}}\n"
    ),
    "bundles.tpc": lambda program: f"// castsim: target gaudi2\n// castsim: input x = {program}\nNOP\n",
    "kernel.c": lambda program: f'#include "{program}"\nvoid main(tensor x) {{}}\n',
}
"""Data files, each naming a program."""


@pytest.mark.parametrize("program", ["marker.cpp", "marker.py:convert"])
@pytest.mark.parametrize("file", DATA)
def test_what_a_data_file_names_is_not_executed(file: str, program: str, marker: Path, capsys: Capture) -> None:
    Path(file).write_text(DATA[file](program))
    for command in sorted({*COMMANDS} - SERVERS):
        main([command, *ARGUMENTS.get(command, lambda name: [name])(file)])
        assert not marker.exists(), command
    for server in ("a.json", "a.csv"):  # a data file as an input of a program
        main(["run", str(SMALL), "--in", f"src={file}", "--json", server])
    assert not marker.exists()
    assert "internal" not in capsys.readouterr().err


@pytest.mark.parametrize("program", ["marker.cpp", "marker.py:convert", "missing.pto"])
def test_a_result_is_shown_as_the_file_has_it(program: str, marker: Path, capsys: Capture) -> None:
    Path("result.json").write_text(_result(program))
    assert main(["view", "result.json", "--no-open", "--out", "page.html"]) == 0
    page = Path("page.html").read_text()
    for shown in ("450 cycles", program, "tload", "MTE3", f"castsim view {program} --target a2a3"):
        assert shown in page
    assert main(["view", "result.json", "--no-open", "--target", "a5"]) == 2
    assert "'result.json' is a result, which is shown and not run" in capsys.readouterr().err


@pytest.mark.parametrize("file", ["result.json", "sweep.toml", "chip.toml"])
def test_data_cannot_name_standard_input(file: str, marker: Path, capsys: Capture) -> None:
    Path(file).write_text(DATA[file]("-"))
    command = {"result.json": "view", "sweep.toml": "sweep", "chip.toml": "check"}[file]
    assert main([command, *ARGUMENTS.get(command, lambda name: [name])(file)]) == 2
    shown = capsys.readouterr()
    assert "'-'" in shown.out + shown.err
