"""Inside of launches: cycles by line and cause add up, and are where a reckoning by hand has them."""

from __future__ import annotations

import itertools
from collections import Counter
from pathlib import Path

import pytest
from core.machines.vector_function.test_micro_time import FRAME, LOOP
from kit.execution_programs import kernel_file
from kit.paths import PROGRAMS

from castsim import run
from castsim.execution.timing import WAITING, Cause
from castsim.reports.launches import (
    InstructionLaunches,
    LineLaunches,
    LineWait,
    all_launches,
    launch_slices,
    written_launches,
)
from castsim.running.program_runs import Result

TILES = sorted(PROGRAMS.glob("a5_*.pto"))
SAMPLES = sorted((PROGRAMS / "micro").glob("*.pto"))


def timed(path: Path) -> Result:
    scale = {"scale": 2.0} if path.stem == "dequantise" else {}
    return run(path, args=scale, timing_only=True)


def written(result: Result) -> list[InstructionLaunches]:
    return list(written_launches(result.loaded.tree, result.loaded.target))


def check(result: Result) -> None:
    """The lines of all launches add up to what the vector pipe is occupied with, cause by cause."""
    spent: Counter[Cause] = Counter()
    for launches in written(result):
        assert sum(line.cycles for line in launches.lines) == launches.cycles
        for line in launches.lines:
            assert sum(line.causes.values()) == line.cycles
            spent.update(line.causes)
    occupied = {cause: cycles for cause, cycles in result.pipes["V"].causes.items() if cause not in WAITING and cycles}
    assert {cause: cycles for cause, cycles in spent.items() if cause not in WAITING} == occupied


@pytest.mark.parametrize("path", SAMPLES, ids=lambda path: path.stem)
def test_lines_of_samples_add_up(path: Path) -> None:
    check(timed(path))


@pytest.fixture
def loop(tmp_path: Path) -> tuple[Result, dict[str, int]]:
    """Ten trips of a load, vabs and a store; and the numbers of their lines."""
    file = kernel_file(tmp_path, FRAME.replace("BODY", LOOP).replace("MORE", ""))
    names = ("vecscope", "pset_b32", "scf.for", "vlds", "vabs", "vsts")
    lines = file.read_text().splitlines()
    return timed(file), {name: next(n for n, line in enumerate(lines, 1) if name in line) for name in names}


def test_a_loop_by_hand(loop: tuple[Result, dict[str, int]]) -> None:
    """Loads set the pace, one cycle a trip; the last one begins in its trip's cycle, and then come 6, 2, 9 and 12."""
    result, line = loop
    (found,) = written(result)
    load_text, abs_text = "vlds f32", "vabs f32"
    behind_load = LineWait(Cause.DEPENDENCE, 10 * 6.0, line["vlds"], load_text)
    behind_abs = LineWait(Cause.DEPENDENCE, 10 * (6.0 + 2), line["vabs"], abs_text)
    assert (found.line, found.executions, found.cycles) == (line["vecscope"], 1, 62)
    assert found.lines == (
        LineLaunches(None, "launch", 1, 36, {Cause.FILL: 22, Cause.DRAIN: 12, Cause.LOOP_TURNAROUND: 2}, ()),
        LineLaunches(line["pset_b32"], "pset_b32 PAT_ALL", 1, 0, {}, ()),
        LineLaunches(line["vlds"], load_text, 10, 15, {Cause.BUSY: 10, Cause.DRAIN: 5}, ()),
        LineLaunches(line["vabs"], abs_text, 10, 2, {Cause.DRAIN: 2}, (behind_load,)),
        LineLaunches(line["vsts"], "vsts f32", 10, 9, {Cause.DRAIN: 9}, (behind_abs,)),
    )


def test_slices_of_a_trace_cover_the_launch(loop: tuple[Result, dict[str, int]]) -> None:
    result, _ = loop
    slices = launch_slices(result.loaded.tree, result.timing, result.loaded.target)
    (launch,) = (each for each in result.timing.operations if each.pipe == "V")
    assert (slices[0].start, slices[-1].end) == (launch.start, launch.end)
    assert all(one.end == other.start for one, other in itertools.pairwise(slices))


def met_transfers(result: Result, launches: InstructionLaunches) -> int:
    """Cycles in which accesses of a launch wait for the banks, without those that they take from each other."""
    tree, conflict = result.loaded.tree, Cause.BANK_CONFLICT
    held = [
        operation.causes.get(conflict, 0)
        for operation in result.timing.operations
        if operation.pipe == launches.pipe
        and tree.instructions[result.timing.executions[operation.execution].instruction].span.line == launches.line
    ]
    return sum(held) // launches.executions - sum(line.causes.get(conflict, 0) for line in launches.lines)


@pytest.mark.parametrize("path", TILES, ids=lambda path: path.stem)
def test_steps_of_tile_operations_add_up(path: Path) -> None:
    result = timed(path)
    found = all_launches(result.loaded.tree, result.timing, result.loaded.target)
    assert found
    for launches in found:
        assert sum(line.cycles for line in launches.lines) == launches.cycles
        assert all(line.number is None or line.text for line in launches.lines)
        # Transfers that meet a launch at the ports of the buffer are no part of it (docs/reference/micro.md 6.1); rows
        # of half bytes, profiled heads and long rows differ (7.2).
        assert launches.cycles == launches.pipe_cycles - met_transfers(result, launches) or any(
            fmt in launches.text for fmt in ("e2m1", "e1m2", "hif8", "e4m3fn", "f16 -> f32")
        )
