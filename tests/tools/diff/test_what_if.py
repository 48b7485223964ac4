"""Lifting a limit is editing facts: each answer equals a run on a description file with those facts changed."""

from __future__ import annotations

import json
import os
import re
from math import exp
from pathlib import Path
from typing import Any

import pytest
from kit import fast_programs
from kit.command_output import document_of, err_of, out_of
from kit.engine_outcome import outcome
from kit.engine_trees import a2a3, cast, lowered, program
from kit.paths import PROGRAMS
from kit.sample_arguments import scalars

from castsim import run
from castsim.engines import simulate
from castsim.execution.pipe_operations import ScalarWork
from castsim.execution.timing import Timing
from castsim.execution.tree import Lowered
from castsim.isa.errors import TargetDataError
from castsim.running.lifted_limits import LiftedLimit, limits_known, what_if
from castsim.running.program_loading import load
from castsim.running.program_runs import run_loaded
from castsim.targets.description import lifted, with_facts
from castsim.targets.loader import load_target

CASES = (
    ("f32_to_f16_pipelined.pto", {}), ("bank_conflict.pto", {}), ("a5_f32_to_e4m3fn_padded.pto", {}),
    ("a5_f16_to_f32_one_trip.pto", {}), ("tpc_f32_i16_quantise_greco.tpc", {}),
    ("tpc_u8_f32_dequantise_greco.tpc", {}),
)  # fmt: skip


def written(value: object) -> str:
    if isinstance(value, bool):
        return str(value).lower()
    return json.dumps(value) if isinstance(value, str) else str(value)


def keys(held: Any, path: list[str], done: tuple[str, ...] = ()) -> list[tuple[str, ...]]:
    """Return the paths that a path with stars means, by looking at the loaded description."""
    if not path:
        return [done]
    name, *rest = path
    names = list(held) if name == "*" else [name]
    return [
        found
        for each in names
        for found in keys(held[each] if isinstance(held, dict) else getattr(held, each), rest, (*done, each))
    ]


def held(target: Any, path: tuple[str, ...]) -> Any:
    """Return what a description has at a path."""
    for name in path:
        target = target[name] if isinstance(target, dict) else getattr(target, name)
    return target


def edited_file(folder: Path, base: str, facts: dict[str, object]) -> Path:
    """Write a description that says the same as `base` but for some facts."""
    target = load_target(base)
    lines = [f'base = "{base}"']
    tables = set()
    for path, value in facts.items():
        for found in keys(target, path.split(".")):
            lines.append(f"{'.'.join(found)} = {written(value)}")
            tables.add(found[: 1 + max(n for n in range(len(found)) if hasattr(held(target, found[:n]), "source"))])
    for table in {each[: len(each) - 1] for each in tables}:
        lines += [f'{".".join(table)}.source = "a what-if"', f'{".".join(table)}.status = "assumed"']
    file = folder / "edited.toml"
    file.write_text("\n".join(lines) + "\n")
    return file


OF_ROWS = {"instant-results"}
"""Limits whose facts are rows of a CSV table, which a description can replace only as a whole."""


@pytest.mark.parametrize(("name", "options"), CASES)
def test_each_what_if_is_a_run_on_an_edited_description(name: str, options: dict[str, int], tmp_path: Path) -> None:
    program = PROGRAMS / name
    before = run(program, timing_only=True)
    target = before.loaded.target
    found = what_if(program)
    assert {gain.name for gain in found} == set(limits_known(target))
    found = tuple(gain for gain in found if gain.name in target.what_if)  # latencies are in the text of the program
    for gain in found:
        if gain.name in OF_ROWS:
            continue
        file = edited_file(tmp_path, target.name, dict(target.what_if[gain.name].set))
        after = run(program, target=file, timing_only=True).cycles
        assert run(program, target=file, timing_only=True, engine="event").cycles == after, gain.name
        assert gain.cycles == after, gain.name
        assert gain.gained == before.cycles - after
    assert [gain.gained for gain in found] == sorted((gain.gained for gain in found), reverse=True)


def test_the_padded_tile_cliff_explains_itself() -> None:
    """docs/reference/a5.md section 6.2 rule 7: padded 2D kernels of fp8 spend 39.5 cycles in each of 2n + 1
    serialising branches per row.
    """
    found = what_if(PROGRAMS / "a5_f32_to_e4m3fn_padded.pto")
    assert found[0].name == "free-branches"
    cycles = run(PROGRAMS / "a5_f32_to_e4m3fn_padded.pto", timing_only=True).cycles
    assert found[0].gained > cycles / 2


def test_latency_of_global_memory_is_found(capsys: pytest.CaptureFixture[str]) -> None:
    options = ["--timing-only", "--option", "global_latency_cycles=100", "--what-if", "all"]
    document = document_of(capsys, "run", str(PROGRAMS / "tpc_f32_i16_quantise_greco.tpc"), *options)
    first = document["what_if"][0]
    assert first["name"] == "instant-global-loads"
    assert first["gained_cycles"] == document["total_cycles"] - first["total_cycles"] > 0
    assert first["facts"] == {"options.global_latency_cycles.value": 0, "element_loads.latency_cycles": 0}


def test_text_ranks_gains(capsys: pytest.CaptureFixture[str]) -> None:
    program = str(PROGRAMS / "a5_f32_to_e4m3fn_padded.pto")
    text = out_of(capsys, ["run", program, "--timing-only", "--what-if", "free-branches,infinite-ports"])
    assert "what if a limit were lifted" in text
    assert "no gain: infinite-ports" in text


def test_unknown_limits_are_refused_with_the_known_ones(capsys: pytest.CaptureFixture[str]) -> None:
    program = str(PROGRAMS / "f32_to_f16.pto")
    error = err_of(capsys, ["run", program, "--timing-only", "--what-if", "no-drain,no-gravity"])
    assert "no what-if 'no-gravity'" in error
    assert "no-drain" in error.split("legal:")[1]


def test_what_can_be_read_once_is_refused(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    os.mkfifo(tmp_path / "k.pto")
    for file in ("-", str(tmp_path / "k.pto")):
        assert "can be read only once" in err_of(capsys, ["run", file, "--timing-only", "--what-if", "all"])


@pytest.mark.parametrize(
    ("facts", "said"),
    [
        ({"timing.load.startup_cycle": 1}, "has no fact 'timing.load.startup_cycle'"),
        ({"timing.nothing.at.all": 1}, "has no fact"),
        ({"timing.vector.vbogus.head_cycles": 1}, "has no fact"),
        ({"timing.load.startup_cycles": -1}, "cannot be -1"),
        ({"timing.load.startup_cycles": "many"}, "cannot be many"),
    ],
)
def test_facts_that_cannot_be_edited(facts: dict[str, object], said: str) -> None:
    with pytest.raises(TargetDataError, match=said):
        with_facts(load_target("a2a3"), facts)


# ---------------------------------------------------- lifting a limit never costs cycles unless the report says on what


THOROUGH = "CASTSIM_THOROUGH" in os.environ
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
    # pipe's tail of 12 cycles. Source and result lie in different banks, so that nothing takes their place.
    curve = round(-9.83 + 1 + 14.31 * exp(-1 / 20.78))
    path = PROGRAMS / "f32_to_f16.pto"
    before = run(path, timing_only=True)
    assert timing(path, "no-drain").total == before.cycles - (curve - 1 + 12)


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


@pytest.mark.parametrize(
    ("seeds", "small"), [(range(7 * 10**6, 7 * 10**6 + (400 if THOROUGH else 100)), True), (range(30), False)]
)
def test_engines_agree_without_a_drain(seeds: range, small: bool) -> None:
    for seed in seeds:
        tree, target = fast_programs.strided(seed, small=small)
        free = lifted(target, "no-drain")
        expected = outcome(tree, free, engine="event", max_cycles=10**6)
        assert outcome(tree, free, engine="fast", max_cycles=10**6) == expected, seed


def test_the_report_prints_the_reason(capsys: pytest.CaptureFixture[str]) -> None:
    program = str(PROGRAMS / "kernels" / "quantise_rows_i8_a2a3.pto")
    text = out_of(capsys, ["run", program, "--timing-only", "--what-if", "instant-loads"])
    reason = r"instant-loads costs \d+ cycles: bank conflict of V \d+ -> \d+[:,] "
    assert re.search(reason, " ".join(text.split()))
