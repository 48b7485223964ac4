"""What the page for contributors says of a tile operation is all that it takes: one is added to a copy of the tree.

`trelu6` clamps to [0, 6]; no chip has it. Expected values are NumPy's, cycles those of the instructions of its kernels.
"""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from kit.paths import ROOT
from project.new_tile_operation import NUMBERS, VALID, WHOLE

MNEMONIC = "trelu6"
ADDED = {
    "isa/pto/vector_operations.py": {
        "COMPOSITIONS: Mapping[str, tuple[Application, ...]] = {\n": (
            '    "relu6": (Application("max", 0), Application("min", 6)),\n'
        ),
    },
    "isa/pto/vector_operations.csv": {
        "mnemonic,kind,function,forms,section,attribute,flags\n": f"{MNEMONIC},elementwise,relu6,a,7.3,-,-\n"
    },
    "targets/a2a3_operations.csv": {
        "approximate,structure,instructions,lines,status,source,note\n": (
            f"{MNEMONIC},i32;f16;f32,-,none,-,-,elementwise,vmaxs vmins,never,assumed,made up,-\n"
        )
    },
    "targets/a5_operations.csv": {
        "scalar_integers,broadcasts,control,controlled,status,source,note\n": (
            f"{MNEMONIC},i32;f16;f32,-,none,-,-,elementwise,vmaxs vmins,tile,-,-,-,-,assumed,made up,-\n"
        )
    },
}
"""The files that are touched: what is put behind which of their lines."""


def copied(folder: Path) -> None:
    """Lay out the three folders of the tree as the package that they install as."""
    ignore = shutil.ignore_patterns("__pycache__")
    shutil.copytree(ROOT / "simulator", folder / "castsim", ignore=ignore)
    for name in ("isa", "targets"):
        shutil.copytree(ROOT / name, folder / "castsim" / name, ignore=ignore)


def run_in(folder: Path) -> subprocess.CompletedProcess[str]:
    """Run the trial on the package in a folder, uncompiled: compiling takes longer than what is computed."""
    paths = os.pathsep.join((str(folder), str(ROOT / "tests")))
    environment = {**os.environ, "PYTHONPATH": paths, "PYTHONDONTWRITEBYTECODE": "1", "NUMBA_DISABLE_JIT": "1"}
    script = ROOT / "tests" / "project" / "new_tile_operation.py"
    command = [sys.executable, script, MNEMONIC]
    return subprocess.run(command, env=environment, check=False, capture_output=True, text=True)


@pytest.fixture(scope="module")
def found(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Any]:
    folder = tmp_path_factory.mktemp("tree")
    copied(folder)
    unknown = run_in(folder)
    assert unknown.returncode
    assert MNEMONIC in unknown.stderr
    for name, additions in ADDED.items():
        path = folder / "castsim" / name
        text = path.read_text(encoding="utf-8")
        for line, addition in additions.items():
            assert text.count(line) == 1, line
            text = text.replace(line, line + addition)
        path.write_text(text, encoding="utf-8")
    done = run_in(folder)
    assert not done.returncode, done.stderr
    result: dict[str, Any] = json.loads(done.stdout)
    assert result["castsim"].startswith(str(folder))
    return result


@pytest.mark.parametrize("chip", ["a2a3", "a5"])
@pytest.mark.parametrize(("element", "kind"), [("f32", "<f4"), ("f16", "<f2"), ("i32", "<i4")])
def test_values_are_those_of_numpy(found: dict[str, Any], chip: str, element: str, kind: str) -> None:
    """NaN wins, as in all maxima of these chips, and becomes 0 where results clamp; zero is +0."""
    given = np.resize(np.array(WHOLE if kind[1] == "i" else NUMBERS, kind), VALID)
    expected = np.minimum(np.maximum(given, given.dtype.type(0)), given.dtype.type(6))
    if (chip, element) == ("a5", "f16"):  # clamps
        expected = np.where(np.isnan(expected), given.dtype.type(0), expected)
    expected = np.where(expected == 0, given.dtype.type(0), expected)
    assert found["values"][f"{chip} {element}"] == [row.tobytes().hex() for row in expected]


def test_instructions_are_those_of_the_row(found: dict[str, Any]) -> None:
    """4 x 64 of f32 are four repeats of 256 bytes; the second instruction works in place, behind a barrier."""
    assert found["listing"] == [
        "vmaxs x4 [128] @8192+256 <- @0+256",
        "barrier",
        "vmins x4 [128] @8192+256 <- @8192+256",
    ]


def test_cycles_are_those_of_the_instructions(found: dict[str, Any]) -> None:
    """A2/A3, by a chip's profile: startup 4 of vmaxs and vmins, four repeats, and 12 until the next step may begin; one
    cycle to issue. A5, one trip a row: VfSim lets vmins take the result of vmaxs 2 cycles after it, where a store takes
    it 6 - 3 cycles after it; vmins, as long, is then stored 6 - 3 cycles later.
    """
    assert found["cycles"]["trelu6"][0] == 1 + (4 + 4 + 12) + (4 + 4 + 12)
    assert found["cycles"]["trelu6"][1] == found["cycles"]["tmaxs"][1] - (6 - 3) + 2 + (6 - 3)
