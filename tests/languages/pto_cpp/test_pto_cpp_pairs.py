"""The table of kernels in C++: each runs as it says; those with a twin in .pto give its bits and, but for flags, its
cycles.
"""

from __future__ import annotations

import csv
from pathlib import Path

import pytest
from kit.pto_cpp_runs import KERNELS, needs_compiler, same_bits

import castsim
from castsim.commands.kernels import is_cpp
from castsim.languages.pto_cpp import run

pytestmark = needs_compiler

with (KERNELS / "index.csv").open(newline="") as _file:
    ROWS = list(csv.DictReader(_file))

OWN_FLAGS = {"quantise_rows_i8.cpp": 0.03}
"""Kernels whose own flags order more than those that castsim inserts into the twin: the end of a store holds up the
next rows. What that may cost, as a part of the cycles.
"""


def number(text):
    return float(text) if "." in text else int(text)


def ran(row, **how):
    pairs = {key: dict(word.split("=") for word in row[key].split()) for key in ("arguments", "inputs")}
    args = {name: number(text) for name, text in pairs["arguments"].items()}
    entry, target = row["entry"] or None, row["target"]
    return run(KERNELS / row["kernel"], target, entry, pairs["inputs"], args, **how)


def test_the_table_names_every_kernel():
    assert {row["kernel"] for row in ROWS} == {path.name for path in KERNELS.iterdir() if is_cpp(path.name)}


@pytest.mark.parametrize("row", [row for row in ROWS if row["twin"]], ids=lambda row: row["kernel"])
def test_a_kernel_and_its_twin_agree(row):
    mine, twin = ran(row), castsim.run(KERNELS.parent / row["twin"], inputs={"src": "random:1"})
    assert not mine.races
    assert mine.outputs.keys() == twin.outputs.keys()
    assert all(same_bits(mine.outputs[name], array) for name, array in twin.outputs.items())
    assert mine.cycles == pytest.approx(twin.cycles, rel=OWN_FLAGS.get(row["kernel"], 0.005), abs=2)


@pytest.mark.parametrize(
    "row", [row for row in ROWS if not row["twin"]], ids=lambda row: f"{row['kernel']}:{row['entry']}"
)
def test_a_kernel_runs_and_its_record_does_the_same(row, tmp_path):
    del tmp_path
    mine = ran(row)
    assert not mine.races
    assert mine.cycles > 0
    assert mine.outputs
    assert Path(mine.loaded.file).name == row["kernel"]


def test_nothing_is_left_behind(tmp_path, monkeypatch):
    monkeypatch.setenv("TMPDIR", str(tmp_path))
    monkeypatch.setattr("tempfile.tempdir", None)
    ran(ROWS[2])
    assert list(tmp_path.iterdir()) == []
