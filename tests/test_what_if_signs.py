"""Lifting a limit never costs cycles unless the report says on what: all limits on all sample programs."""

from __future__ import annotations

import os
import re
from math import exp
from pathlib import Path

import fast_programs
import pytest
from engine_outcome import outcome
from engine_trees import a2a3, cast, lowered, program
from sample_arguments import scalars

from castsim import run
from castsim.__main__ import main
from castsim.engines import simulate
from castsim.execution.tree import Lowered
from castsim.exploration.lifted_limits import LiftedLimit, what_if
from castsim.machines.strided.operations import ScalarWork
from castsim.running import load, run_loaded
from castsim.targets.options import lifted
from castsim.timing import Timing

THOROUGH = "CASTSIM_THOROUGH" in os.environ
PROGRAMS = Path(__file__).parent.parent / "programs"
SLOW = ("rms_norm_a5", "softmax_prepare_a5")
"""Kernels whose limits take long to lift one by one."""
SAMPLES = sorted(
    path
    for path in (*PROGRAMS.rglob("*.pto"), *PROGRAMS.rglob("*.tpc"))
    if path.parent.name != "sequential"  # texts for `castsim schedule`
    and (THOROUGH or path.stem not in SLOW)
)
NAMED = re.compile(r"([a-z ]+) of (\w+) (\d+) -> (\d+)")
WAITS = {"empty", "operand wait", "flag wait", "barrier"}


def timing(path: Path, limit: str) -> Timing:
    loaded = load(path, None, None, scalars(path), prepare=lambda target: lifted(target, limit))
    return run_loaded(loaded, {}, timing_only=True).timing


def check_reason(path: Path, gain: LiftedLimit, before: Timing) -> None:
    """Each cause that the reason names has grown by what it says, in a run of its own."""
    after = timing(path, gain.name)
    named = NAMED.findall(gain.reason)
    assert named, (path.name, gain)
    for cause, pipe, old, new in named:
        assert int(old) == before.pipes[pipe].causes.get(cause.strip(), 0)
        assert int(new) == after.pipes[pipe].causes[cause.strip()] > int(old)
        assert cause.strip() not in WAITS, "waiting for others is no reason"


def test_there_are_samples_of_every_mechanism() -> None:
    assert {run(path, args=scalars(path), timing_only=True).loaded.target.mechanism for path in SAMPLES} == {
        "strided-repeat",
        "vector-function",
        "vliw",
    }


@pytest.mark.parametrize("path", SAMPLES, ids=lambda path: path.stem)
def test_a_lifted_limit_that_costs_cycles_says_on_what_and_no_drain_costs_none(path: Path) -> None:
    before = run(path, args=scalars(path), timing_only=True).timing
    for gain in what_if(path, args=scalars(path)):
        assert gain.cycles == before.total - gain.gained
        assert bool(gain.reason) == (gain.gained < 0), gain
        assert gain.name != "no-drain" or gain.gained >= 0, "without a drain nothing is slower"
        if gain.reason:
            check_reason(path, gain, before)


def test_the_drain_alone_is_lifted() -> None:
    # Four calls of one repeat, which by the profile's curve takes -9.83 + 1 + 14.31 exp(-1 / 20.78), rounded, and the
    # pipe's tail of 12 cycles. Without both the last repeat ends a cycle before the write of CTRL behind it.
    curve = round(-9.83 + 1 + 14.31 * exp(-1 / 20.78))
    assert timing(PROGRAMS / "f32_to_f16.pto", "no-drain").total == 450 - (curve - 1 + 12) + 1


@pytest.mark.parametrize("engine", ["event", "fast"])
@pytest.mark.parametrize(("tail", "gap"), [(5, 0), (5, 3)])
def test_a_pipe_that_drains_nothing_is_idle_no_sooner(engine: str, tail: int, gap: int) -> None:
    # Two instructions of two repeats, the second one `gap` cycles behind the end of the first one's last repeat.
    # By hand: issue 1, head 3, 2 x 2; then no head again, as gap < tail: 2 x 2 more, behind the gap.
    target = a2a3(vconv=(3, 2, tail), issue_cycles=1)
    first = 1 + 3 + 2 * 2
    tree = program(lowered(0, cast(2)), *spaces(first + gap - 2), lowered(1, cast(2, 0, 70_016)))
    end = first + gap + 2 * 2
    assert simulate(tree, target, engine=engine).total == end + tail
    assert simulate(tree, lifted(target, "no-drain"), engine=engine).total == end


def spaces(cycles: int) -> list[Lowered]:
    """Instructions that keep the scalar unit at work."""
    return [lowered(2, ScalarWork("loop")) for _ in range(cycles)]


def test_engines_agree_without_a_drain() -> None:
    for seed in range(7 * 10**6, 7 * 10**6 + (400 if THOROUGH else 100)):
        tree, target = fast_programs.strided(seed, small=True)
        free = lifted(target, "no-drain")
        expected = outcome(tree, free, engine="event", max_cycles=10**6)
        assert outcome(tree, free, engine="fast", max_cycles=10**6) == expected, seed


def test_engines_agree_without_a_drain_in_loops() -> None:
    for seed in range(30):
        tree, target = fast_programs.strided(seed)
        free = lifted(target, "no-drain")
        expected = outcome(tree, free, engine="event", max_cycles=10**6)
        assert outcome(tree, free, engine="fast", max_cycles=10**6) == expected, seed


def test_the_report_prints_the_reason(capsys: pytest.CaptureFixture[str]) -> None:
    program = str(PROGRAMS / "kernels" / "quantise_rows_i8_a2a3.pto")
    assert main(["run", program, "--timing-only", "--what-if", "instant-loads"]) == 0
    text = " ".join(capsys.readouterr().out.split())
    assert re.search(r"instant-loads costs \d+ cycles: bank conflict of V \d+ -> \d+: ", text)
