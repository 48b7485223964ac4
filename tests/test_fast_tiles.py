"""The fast engine of tile programs against the event engine: cycle for cycle, cause for cause."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import fast_programs
import pytest
from engine_outcome import outcome
from sample_arguments import scalars

from castsim.running import load_program

PROGRAMS = Path(__file__).parent.parent / "programs"
SEEDS = 3000 if os.environ.get("CASTSIM_THOROUGH") else 80


@pytest.mark.parametrize("part", range(4))
def test_random_programs_take_the_same_cycles_for_the_same_reasons(part: int) -> None:
    for seed in range(part, SEEDS, 4):
        tree, target = fast_programs.strided(seed)
        expected = outcome(tree, target, engine="event", max_cycles=10**6)
        assert outcome(tree, target, engine="fast", max_cycles=10**6) == expected, seed
        assert outcome(tree, target, engine="fast", max_cycles=10**6, skip=False) == expected, seed


@pytest.mark.parametrize(
    "path", sorted({*PROGRAMS.rglob("*.pto")} - {*PROGRAMS.rglob("micro/**/*.pto")}), ids=lambda path: path.stem
)
def test_sample_programs_take_the_same_cycles(path: Path) -> None:
    loaded = load_program(path, None, None, scalars(path))
    expected = outcome(loaded.tree, loaded.target, engine="event")
    assert outcome(loaded.tree, loaded.target, engine="fast") == expected
    assert outcome(loaded.tree, loaded.target, engine="fast", skip=False) == expected


def test_simpy_is_not_needed() -> None:
    program = PROGRAMS / "f32_to_f16.pto"
    code = (
        "import sys; from castsim import run\n"
        f"run({str(program)!r}, timing_only=True, engine='fast')\n"
        "print('simpy' in sys.modules)"
    )
    found = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=True, cwd=PROGRAMS.parent
    )
    assert found.stdout.strip() == "False"
