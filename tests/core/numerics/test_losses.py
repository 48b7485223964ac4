"""Where cycles go: the line that costs most, the limits behind it, and the inside of launches, by line and cause."""

from __future__ import annotations

import itertools
from collections import Counter
from pathlib import Path
from random import Random

import pytest
from core.machines.vector_function.test_micro_time import FRAME, LOOP
from kit.bundle_trees import NOWHERE, Mix, random_tree
from kit.command_output import document_of, out_of
from kit.counted_work import at_most
from kit.execution_programs import kernel_file
from kit.micro_cases import texts
from kit.paths import PROGRAMS, ROOT, VECTORS
from kit.sample_arguments import scalars

from castsim import run
from castsim.__main__ import main
from castsim.execution.timing import WAITING, Cause, Limiter, repeated
from castsim.execution.tree import Block, Instruction, Loop, Lowered, Tree
from castsim.machines.vliw.fast_engine import simulate_bundles
from castsim.machines.vliw.stage_latency import BundleOperation
from castsim.reports.launches import (
    Launches,
    LaunchLine,
    LineWait,
    all_launches,
    launch_slices,
    written_launches,
)
from castsim.reports.lifted_limits import LineCost, costliest_line, limit_behind, longest_line, what_if
from castsim.reports.numbers import lines_named
from castsim.reports.run_report import RunReport
from castsim.running.program_runs import Result, source_lines
from castsim.targets.loader import load_target, target_names
from castsim.targets.vliw import VliwTarget

HEADLINES = VECTORS / "headlines"
SAMPLES = [*sorted(PROGRAMS.rglob("*.pto")), *sorted(HEADLINES.glob("*.pto"))]

GAUDI = load_target("gaudi")


def ran(path: Path) -> Result:
    return run(path, timing_only=True, args=scalars(path) if path.is_relative_to(PROGRAMS) else {})


def reported(path: Path) -> RunReport:
    return RunReport.of(ran(path), {})


@pytest.mark.parametrize("path", SAMPLES, ids=lambda path: path.stem)
def test_the_program_without_the_named_line_is_as_much_shorter(path: Path, tmp_path: Path) -> None:
    """The text is run anew without the line: flags and barriers are inserted anew as well."""
    report = reported(path)
    line = report.costliest
    assert line is not None
    assert line.cycles > 0
    text = path.read_text().split("\n")
    number = line.instruction.span.line - 1
    if "=" in text[number].split("(")[0].split("{")[0] or text[number].rstrip().endswith("{"):
        pytest.skip("the line defines a value or opens a region: the text cannot do without it")
    text[number] = f"// {text[number]}"
    without = tmp_path / "without.pto"
    without.write_text("\n".join(text))
    saved = report.result.cycles - run(
        without, report.result.loaded.target, timing_only=True, races="report",
        args=scalars(path) if path.is_relative_to(PROGRAMS) else {},
    ).cycles  # fmt: skip
    assert 2 * saved >= line.cycles, (line.sentence(), saved)


@pytest.mark.parametrize("path", SAMPLES, ids=lambda path: path.stem)
def test_a_cause_that_the_headline_names_has_a_limit_that_saves_a_like_share(path: Path) -> None:
    report = reported(path)
    args = scalars(path) if path.is_relative_to(PROGRAMS) else {}
    found, line = report.limiter, report.costliest
    assert found is not None
    assert line is not None
    named = {report.limit: found.cycles} if report.limit else {}
    if line.limit:
        named[line.limit] = max(named.get(line.limit, 0), line.causes[line.cause])
        assert f"mostly {line.cause}" in line.sentence()
    assert (f"; {found.cause} takes" in found.sentence(named=bool(report.limit))) == bool(report.limit)
    for limit, cycles in named.items():
        (gain,) = what_if(path, (limit,), args=args)
        assert 2 * gain.gained >= cycles, (limit, cycles, gain.gained)


def test_the_line_of_the_critical_path_is_named_and_not_one_beside_it() -> None:
    """Line 56 stalls its pipe longest, and the run is one cycle shorter without it."""
    report = reported(HEADLINES / "absmax_two_halves.pto")
    assert report.costliest is not None
    assert report.costliest.instruction.span.line != 56
    assert report.costliest.cycles > 0.1 * report.result.cycles


@pytest.mark.parametrize("path", SAMPLES[::5], ids=lambda path: path.stem)
def test_where_no_line_costs_cycles_the_one_that_occupies_a_pipe_longest_is_named(path: Path) -> None:
    """The occupied cycles are added up from the executions, apart from the search for the costliest line."""
    loaded, timing = (result := ran(path)).loaded, result.timing
    occupied: Counter[tuple[str, int]] = Counter()
    names = {}
    for operation, _, times in repeated(timing.operations):
        instruction = loaded.tree.instructions[timing.executions[operation.execution].instruction]
        if not instruction.inserted:
            occupied[operation.pipe, instruction.span.line] += times * sum(
                cycles for cause, cycles in operation.causes.items() if cause not in WAITING
            )
            names.setdefault(instruction.span.line, instruction.name)
    elsewhere = {line for pipe, line in occupied if pipe != loaded.target.scalar_pipe and occupied[pipe, line]}
    for line in elsewhere:  # the pipe that issues for all others
        del occupied[loaded.target.scalar_pipe, line]
    longest = max(occupied.values())
    assert longest_line(loaded.tree, timing, loaded.target) in {
        f"No single line sets the pace; line {line}, {names[line]}, occupies {pipe} longest "
        f"({longest:,} of {result.cycles:,} cycles)"
        for (pipe, line), cycles in occupied.items()
        if cycles == longest
    }


def test_an_initiation_interval_is_named_with_its_limit() -> None:
    report = reported(HEADLINES / "absmax_tquant.pto")
    assert report.costliest is not None
    assert (report.costliest.instruction.mnemonic, report.costliest.cause) == ("tquant", Cause.INITIATION_INTERVAL)
    assert report.costliest.limit == report.limit == "single-cycle-trips"


CAUSES = {
    "strided-repeat": {
        "MTE2": "memory latency", "MTE3": "memory latency", "S": "loop turnaround",
        "V": "fill;drain;bank conflict;initiation interval",
    },
    "vector-function": {
        "MTE2": "memory latency;bank conflict", "MTE3": "memory latency;bank conflict", "S": "loop turnaround",
        "V": "fill;drain;dependence;store barrier;bank conflict;port;initiation interval;loop turnaround;"
        "serialising branch;memory bandwidth",
    },
    "vliw": {"VPU": "initiation interval;serialising branch;memory latency;memory bandwidth"},
}  # fmt: skip
"""The causes beside work that the engines of a mechanism give, by pipe (their entries in docs/glossary.md)."""


@pytest.mark.parametrize("name", target_names())
def test_every_cause_of_a_mechanism_has_a_limit(name: str) -> None:
    target = load_target(name)
    for pipe, causes in CAUSES[target.mechanism].items():
        for cause in causes.split(";"):
            assert any(cause in own for limit in target.what_if.values() for at, own in limit.lifts.items()
                       if at in (pipe, "*")), (pipe, cause)  # fmt: skip
    assert {cause for limit in target.what_if.values() for own in limit.lifts.values() for cause in own} <= set(Cause)


def test_a_cause_without_a_limit_is_not_named() -> None:
    found = Limiter("V", Cause.PORT, 30, 60, 20, 100)
    assert found.sentence() == "V limits (60.0 % occupied, 20.0 % busy); port takes 30.0 %"
    assert found.sentence(named=False) == "V limits (60.0 % occupied, 20.0 % busy)"
    result = ran(ROOT / "programs/f32_to_f16.pto")
    target = result.loaded.target.model_copy(update={"what_if": {}})
    assert limit_behind(result.loaded.tree, result.timing, target, "MTE2", {Cause.MEMORY_LATENCY: 207}) == ""


def test_a_line_that_was_inlined_often_is_one_line() -> None:
    """Instructions of one place of the source count together, in the table too."""
    path = ROOT / "programs/f32_to_f16_pipelined.pto"
    result = ran(path)
    tree = result.loaded.tree
    first, second = (number for number, each in enumerate(tree.instructions) if each.mnemonic == "tload")
    merged = list(tree.instructions)
    merged[second] = Instruction(
        "tload f32 inlined", merged[second].pipe, merged[first].span, mnemonic="tload", element=merged[second].element
    )
    one = Tree(tree.root, tuple(merged), tree.interlocked)
    apart = [line for line in source_lines(tree, result.timing) if line.text.startswith("tload")]
    (together,) = [line for line in source_lines(one, result.timing) if line.text.startswith("tload")]
    assert together.text == "tload"
    assert (together.executions, together.work) == (
        sum(line.executions for line in apart), sum(line.work for line in apart)
    )  # fmt: skip
    alone, line = (costliest_line(each, result.timing, result.loaded.target) for each in (tree, one))
    assert alone is not None
    assert line is not None
    assert line.cycles > 1.2 * alone.cycles
    assert sum(line.causes.values()) == together.work


def test_a_launch_that_takes_longer_than_the_pipes_is_the_headline(capsys: pytest.CaptureFixture[str]) -> None:
    path = ROOT / "programs/micro/f32_to_f16_parts.pto"
    target, result = load_target("a5"), ran(path)
    assert target.kernel_launch.cycles > result.cycles
    text = out_of(capsys, ["run", str(path), "--timing-only"])
    assert f"launch takes longest: about {target.kernel_launch.cycles:,} cycles, against {result.cycles:,} in" in text
    assert "The launch adds" not in text
    document = document_of(capsys, "run", str(path), "--timing-only")
    assert document["launch_cycles"] == target.kernel_launch.cycles


@pytest.mark.parametrize(
    ("cores", "options", "sentences"),
    [
        (1, (), ()),
        (8, (), ("Global memory does not bound the launch: 8 cores move", "at most 3,100 GB/s (measured on silicon;")),
        (8, (), ("The launch interval bounds this launch: 4.7 us, against",)),
        (64, ("working_set=resident",), ("of at most 5,400 GB/s,", "of it in the L2 cache (measured on")),
    ],
)
def test_a_launch_on_many_cores_says_what_bounds_it(
    cores: int, options: tuple[str, ...], sentences: tuple[str, ...], capsys: pytest.CaptureFixture[str]
) -> None:
    path = ROOT / "programs/micro/f32_to_f16_parts.pto"
    chosen = [word for option in options for word in ("--option", option)]
    text = out_of(capsys, ["run", str(path), "--timing-only", "--cores", str(cores), *chosen])
    assert ("Global memory" in text) == ("The launch interval" in text) == (cores > 1)
    for sentence in sentences:
        assert sentence in " ".join(text.split())


@pytest.mark.parametrize("seed", range(40))
def test_what_was_skipped_counts_as_what_was_not(seed: int) -> None:
    assert isinstance(GAUDI, VliwTarget)
    tree = random_tree(Random(seed), Mix(trips=60))
    skipped, stepped = (simulate_bundles(tree, GAUDI, 10**9, skip=skip) for skip in (True, False))
    assert costliest_line(tree, skipped, GAUDI) == costliest_line(tree, stepped, GAUDI)
    assert source_lines(tree, skipped) == source_lines(tree, stepped)
    for records in (skipped.operations, skipped.executions):
        assert sum(times for _, _, times in repeated(records)) == len(records)


def test_a_thousand_million_trips_are_summed_up_at_once() -> None:
    load = BundleOperation((1, 0, 0, 0), ("ld_tnsr", "", "", ""), 1, 0, 4, 5, 0)
    body = Block((Lowered(0, Block((load,))),))
    tree = Tree(Block((Loop(10**9, body, ((), ())),)), (Instruction("ld_tnsr", "LOAD", NOWHERE),), False)
    timing = simulate_bundles(tree, GAUDI, 10**13)
    with at_most(10_000):
        lines = source_lines(tree, timing)
    assert lines[0].executions == 10**9
    found = costliest_line(tree, timing, GAUDI)
    assert found is not None
    assert found.cycles == timing.total


def test_a_run_that_is_too_long_to_be_timed_again_says_what_a_line_occupies(monkeypatch: pytest.MonkeyPatch) -> None:
    result = ran(ROOT / "programs/f32_to_f16.pto")
    monkeypatch.setattr("castsim.reports.lifted_limits._MOST_OPERATIONS", 0)
    found = costliest_line(result.loaded.tree, result.timing, result.loaded.target)
    assert isinstance(found, LineCost)
    assert found.sentence() == "Line 14, tload, occupies MTE2 for 225 of the 450 cycles, mostly memory latency"


@pytest.mark.parametrize("engine", ["fast", "event"])
def test_a_function_whose_stores_wait_at_its_own_barriers_is_occupied(engine: str) -> None:
    """docs/reference/a5.md section 6: every store of the fp8 casts stands behind a barrier of the function itself, so
    that no other pipe is what V waits for.
    """
    result = run("programs/a5_f32_to_e4m3fn_padded.pto", timing_only=True, engine=engine)
    for pipe in result.timing.pipes.values():
        assert sum(pipe.causes.values()) == result.cycles
    vector = result.timing.pipes["V"].causes
    assert vector[Cause.STORE_BARRIER] > 0
    assert Cause.BARRIER not in vector
    assert Cause.STORE_BARRIER not in WAITING


def test_stale_reads_name_their_lines_above_all(capsys: pytest.CaptureFixture[str]) -> None:
    program = "programs/tpc_f32_i32_pipelined_stale_goya.tpc"
    head, *_ = out_of(capsys, ["run", str(ROOT / program), "--in", "x=random:1", "--summary"]).split("\n\n")
    assert "24 stale reads, lines 31, 34, 35, " in " ".join(head.split())
    assert lines_named([15, 11, 12]) == "lines 11, 12, 15"


TILES = sorted(PROGRAMS.glob("a5_*.pto"))
MICRO_SAMPLES = sorted((PROGRAMS / "micro").glob("*.pto"))


def timed(path: Path) -> Result:
    scale = {"scale": 2.0} if path.stem == "dequantise" else {}
    return run(path, args=scale, timing_only=True)


def written(result: Result) -> list[Launches]:
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


@pytest.mark.parametrize("path", MICRO_SAMPLES, ids=lambda path: path.stem)
def test_lines_of_samples_add_up(path: Path) -> None:
    check(timed(path))


@pytest.mark.parametrize("name", sorted(texts())[::7])
def test_lines_of_own_programs_add_up(name: str, tmp_path: Path) -> None:
    check(timed(kernel_file(tmp_path, texts()[name])))


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
        LaunchLine(None, "launch", 1, 36, {Cause.FILL: 22, Cause.DRAIN: 12, Cause.LOOP_TURNAROUND: 2}, ()),
        LaunchLine(line["pset_b32"], "pset_b32 PAT_ALL", 1, 0, {}, ()),
        LaunchLine(line["vlds"], load_text, 10, 15, {Cause.BUSY: 10, Cause.DRAIN: 5}, ()),
        LaunchLine(line["vabs"], abs_text, 10, 2, {Cause.DRAIN: 2}, (behind_load,)),
        LaunchLine(line["vsts"], "vsts f32", 10, 9, {Cause.DRAIN: 9}, (behind_abs,)),
    )


def test_slices_of_a_trace_cover_the_launch(loop: tuple[Result, dict[str, int]]) -> None:
    result, _ = loop
    slices = launch_slices(result.loaded.tree, result.timing, result.loaded.target)
    (launch,) = (each for each in result.timing.operations if each.pipe == "V")
    assert (slices[0].start, slices[-1].end) == (launch.start, launch.end)
    assert all(one.end == other.start for one, other in itertools.pairwise(slices))


def met_transfers(result: Result, launches: Launches) -> int:
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
        assert all(line.line is None or line.op for line in launches.lines)
        # Transfers that meet a launch at the ports of the buffer are no part of it (docs/reference/micro.md 6.1); rows
        # of half bytes, profiled heads and long rows differ (7.2).
        assert launches.cycles == launches.pipe_cycles - met_transfers(result, launches) or any(
            fmt in launches.op for fmt in ("e2m1", "e1m2", "hif8", "e4m3fn", "f16 -> f32")
        )


def test_the_kernel_report_of_a_tile_program_names_its_instructions(capsys: pytest.CaptureFixture[str]) -> None:
    tile = str(PROGRAMS / "a5_f32_to_i8_by_steps.pto")
    assert main(["run", tile, "--timing-only", "--report", "kernel"]) == 0
    text = capsys.readouterr().out
    for named in ("vcvt f32 -> f16 R EVEN", "vsts PK_B32", "vtrc f32 Z", "vand b16"):
        assert named in text
