"""Every command and example of the README is executed; `.ci/run` executes the three set-up lines."""

from __future__ import annotations

import contextlib
import io
import os
import re
import shlex
import sys

import pytest
from kit.command_output import out_of
from kit.paths import ROOT
from makers import pictures

from castsim.tools.debugger.command import PROMPT
from castsim.tools.graphs import graph_execution
from castsim.tools.lowering.samples import all_codes

THOROUGH = "CASTSIM_THOROUGH" in os.environ
README = (ROOT / "README.md").read_text()
KERNELS = (ROOT / "docs" / "how-to" / "kernel-author.md").read_text()
SETUP = re.findall(r"<!-- setup: (\w+) -->\n```console\n(.*?)\n```", README, re.DOTALL)


def commands(text):
    """Return the lines of a page's console blocks that call castsim."""
    blocks = re.findall(r"```console\n(.*?)```", text, re.DOTALL)
    return [line for block in blocks for line in block.splitlines() if line.startswith("castsim ")]


COMMANDS = commands(README)
EXAMPLES = re.findall(r"```python\n(.*?)```", README, re.DOTALL)


def test_the_set_up_lines_are_the_ones_that_ci_runs():
    assert [name for name, _ in SETUP] == ["run", "docs", "test"]
    script = (ROOT / ".ci" / "run").read_text()
    for name, line in SETUP:
        assert line.startswith("python3 -m venv") and "\n" not in line
        assert f"readme_line {name}" in script


def test_the_first_command_runs_on_the_shipped_tensor(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(ROOT)
    words = shlex.split(SETUP[0][1].split("castsim ", 1)[1])
    words[words.index("--out") + 1] = str(tmp_path)
    printed = iter(out_of(capsys, words).splitlines())
    shown = re.search(r"```text\n(.*?)```", README, re.DOTALL)[1].splitlines()
    assert len(shown) >= 12
    assert all(line in printed for line in shown)  # each of them behind the one before
    assert (tmp_path / "dst.npy").is_file()


def test_the_printed_session_of_the_debugger_is_what_it_says(monkeypatch, capsys):
    monkeypatch.chdir(ROOT)
    shown = re.search(r"<!-- session -->\n```text\n(.*?)```", KERNELS, re.DOTALL)[1].splitlines()
    typed = [line.removeprefix(PROMPT) for line in shown if line.startswith(PROMPT)]
    monkeypatch.setattr(sys, "stdin", io.StringIO("\n".join([*typed, "quit", ""])))
    words = re.search(r"`castsim (debug [^`]*)`", KERNELS)[1].split()
    assert out_of(capsys, words).splitlines() == [line for line in shown if not line.startswith(PROMPT)]


def test_the_picture_is_small_and_of_the_run_as_it_is_now(tmp_path):
    png = (pictures.ASSETS / "run-page.png").read_bytes()
    assert len(png) < 150_000
    assert (int.from_bytes(png[16:20]), int.from_bytes(png[20:24])) == pictures.SIZE
    assert pictures.RUN[1] in README
    assert pictures.description(png) == pictures.said_first(tmp_path / "page.html"), "python tests pictures"


def some_codes(fmt):
    found = all_codes(fmt)
    return found if found is None or found.size <= 256 else found[::37]


@pytest.mark.parametrize("command", COMMANDS)
def test_command_runs(command, monkeypatch, capsys, tmp_path):
    if not THOROUGH:  # nodes of graphs that read 16 bits are tried on some codes
        monkeypatch.setattr(graph_execution, "all_codes", some_codes)
    monkeypatch.chdir(ROOT)
    words = [str(tmp_path / word) if word == "report.html" else word for word in shlex.split(command)[1:]]
    assert out_of(capsys, words).strip()


@pytest.mark.parametrize("example", EXAMPLES)
def test_example_prints_what_it_says(example, monkeypatch):
    monkeypatch.chdir(ROOT)
    out = io.StringIO()
    with contextlib.redirect_stdout(out):
        exec(compile(example, "README.md", "exec"), {})
    said = [line.rsplit("#", 1)[1].rsplit(":", 1)[-1].strip() for line in example.splitlines() if "#" in line]
    printed = out.getvalue().splitlines()
    assert said
    assert printed[: len(said)] == said
