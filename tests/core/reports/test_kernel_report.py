"""The report of a kernel: overlap and buffers from times set by hand, and what a whole run adds up to."""

from __future__ import annotations

import json

import pytest
from kit.cli_programs import LOOP, written
from kit.race_trees import Builder, access, steps_of
from makers.expected_files import PROGRAMS

from castsim import run
from castsim.__main__ import main
from castsim.execution.timing import Cause, Execution, OperationTiming, PipeTiming, Timing
from castsim.execution.tree import Block, Loop, Tree
from castsim.reports.sections.kernel import _picture, buffer_maps, joined, kernel_report
from castsim.running.loaded import Loaded
from castsim.running.program_runs import Result
from castsim.targets.loader import load_target

A3 = load_target("a2a3")


class Walked:
    """Stands for a walked program: the report asks it for the tree only."""

    def __init__(self, tree: Tree) -> None:
        self.tree = tree


def timed(tree: Tree, total: int, *times: tuple[int, int]) -> Timing:
    """A timing in which execution k runs in the cycles `times[k]`, as one operation that is busy all the time."""
    numbers = [item.instruction for item in tree.root.items]
    executions = tuple(Execution(number, *span) for number, span in zip(numbers, times, strict=True))
    operations = tuple(
        OperationTiming(
            k, k, tree.instructions[e.instruction].pipe, "work", e.start, e.end, {Cause.BUSY: e.end - e.start}
        )
        for k, e in enumerate(executions)
    )
    pipes = {pipe: PipeTiming({Cause.BUSY: 1, Cause.EMPTY: total - 1}) for pipe in ("V", "MTE2", "MTE3")}
    return Timing(total, pipes, executions, operations, frozenset())


def reported(tree: Tree, timing: Timing):
    return kernel_report(Result(Loaded("k.pto", "k", A3, Walked(tree)), "event", {}, timing))  # type: ignore[arg-type]


def chain() -> Tree:
    builder = Builder()
    return builder.tree(
        builder.work("MTE2", access(0, 64, True)),
        builder.work("MTE2", access(64, 64, True)),
        builder.work("V", access(256, 32, True), access(0, 64)),
        builder.work("MTE3", access(256, 32)),
    )


TIMES = ((0, 10), (10, 30), (10, 20), (20, 50))


def test_overlap_counts_pipes_at_work():
    overlap = reported(chain(), timed(chain(), 50, *TIMES)).overlap
    # MTE2 0 .. 30, V 10 .. 20, MTE3 20 .. 50: one pipe in 0 .. 10 and 30 .. 50, two in 10 .. 30.
    assert overlap.busy == {"MTE2": 30, "MTE3": 30, "V": 10}
    assert (overlap.serial, overlap.covered, overlap.together) == (70, 50, (30, 20, 0))
    assert overlap.achieved == pytest.approx((70 - 50) / (70 - 30))


def test_nothing_can_be_hidden_behind_a_lone_pipe():
    builder = Builder()
    tree = builder.tree(builder.work("V", access(0, 4, True)))
    assert reported(tree, timed(tree, 9, (0, 9))).overlap.achieved is None


def test_lines_share_their_pipe():
    lines = reported(chain(), timed(chain(), 50, *TIMES)).lines
    assert [cost.share for cost in lines] == pytest.approx([10 / 30, 20 / 30, 1, 1])
    assert all(cost.mostly is Cause.BUSY for cost in lines)


def test_data_live_from_their_write_to_their_last_read():
    (ub,) = buffer_maps(chain(), timed(chain(), 50, *TIMES), A3)
    assert [(s.start, s.end, s.live) for s in ub.stretches] == [
        (0, 64, ((0, 20),)),  # loaded 0 .. 10, read 10 .. 20
        (64, 128, ((10, 30),)),  # loaded 10 .. 30, never read
        (256, 288, ((10, 50),)),  # written 10 .. 20, read 20 .. 50
    ]
    assert [(s.written_by, s.read_by) for s in ub.stretches] == [((1,), (3,)), ((2,), ()), ((3,), (4,))]
    assert (ub.peak_bytes, ub.peak_cycle, ub.capacity) == (64 + 64 + 32, 10, 196608)


def test_data_are_needed_until_the_last_read_before_they_are_written_again():
    builder = Builder()
    tree = builder.tree(
        builder.work("MTE2", access(0, 8, True)), builder.work("V", access(32, 8, True), access(0, 8)),
        builder.work("V", access(40, 8, True), access(0, 8)), builder.work("MTE2", access(0, 8, True)),
        builder.work("V", access(0, 8, True), access(0, 8)),
    )  # fmt: skip
    (ub,) = buffer_maps(tree, timed(tree, 100, (0, 5), (10, 20), (15, 30), (40, 50), (60, 70)), A3)
    # Read until 30; loaded again, then read and overwritten in place, which nobody reads any more.
    assert ub.stretches[0].live == ((0, 30), (40, 70))
    assert ub.stretches[0].live_cycles == 60


def test_overlapping_tiles_are_taken_apart_and_equal_neighbours_joined():
    builder = Builder()
    tree = builder.tree(builder.work("MTE2", access(0, 96, True)), builder.work("MTE3", access(32, 32)))
    (ub,) = buffer_maps(tree, timed(tree, 20, (0, 10), (10, 20)), A3)
    assert [(s.start, s.end, s.live_cycles) for s in ub.stretches] == [(0, 32, 10), (32, 64, 20), (64, 96, 10)]


def test_scratch_is_marked():
    builder = Builder()
    scratch = (access(512, 64), access(512, 64, True))
    tree = builder.tree(builder.work("V", access(0, 32, True), access(64, 32), *scratch))
    (ub,) = buffer_maps(tree, timed(tree, 9, (0, 9)), A3)
    assert {(s.start, s.scratch) for s in ub.stretches} == {(0, False), (64, False), (512, True)}


def test_many_places_count_as_one_stretch():
    builder = Builder()
    block = Block((builder.work("MTE2", access(0, 8, True)),))
    tree = builder.tree(Loop(5000, block, steps_of(block, (32,))))
    timing = Timing(5000, {}, tuple(Execution(0, k, k + 1) for k in range(5000)), (), frozenset())
    (ub,) = buffer_maps(tree, timing, A3)
    assert [(s.start, s.end) for s in ub.stretches] == [(0, 4999 * 32 + 8)]


def test_intervals_are_joined():
    assert list(joined([(5, 7), (0, 2), (2, 3), (6, 9), (4, 4)])) == [(0, 3), (5, 9)]


def test_the_picture_has_a_letter_per_share_of_the_time():
    (ub,) = buffer_maps(chain(), timed(chain(), 50, *TIMES), A3)
    assert [_picture(stretch, 50, 5) for stretch in ub.stretches] == ["wr...", ".ww..", ".wrrr"]
    assert _picture(ub.stretches[0], 50, 50) == "w" * 10 + "r" * 10 + "." * 30


# ------------------------------------------------------------------------------------------------------ whole runs
@pytest.mark.parametrize("name", ["f32_to_f16_pipelined", "f32_to_bf16_rows", "f32_to_i16_partial"])
def test_a_run_adds_up(name):
    result = run(PROGRAMS / f"{name}.pto", timing_only=True)
    report = kernel_report(result)
    overlap = report.overlap
    assert overlap.covered <= result.cycles
    assert sum(k * cycles for k, cycles in enumerate(overlap.together, 1)) == overlap.serial
    for pipe in overlap.busy:
        assert sum(cost.share for cost in report.lines if cost.line.pipe == pipe) == pytest.approx(1)
    (ub,) = report.buffers
    assert ub.peak_bytes <= ub.capacity
    for stretch in ub.stretches:
        assert all(a < b for a, b in stretch.live)
        assert all(a[1] < b[0] for a, b in zip(stretch.live, stretch.live[1:], strict=False))


def test_double_buffering_hides_more_than_one_buffer():
    """The hand-pipelined sample hides nearly everything behind its stores, the one with one buffer only its loads."""
    two, one = (
        kernel_report(run(PROGRAMS / f"{name}.pto", timing_only=True)).overlap.achieved
        for name in ("f32_to_f16_pipelined", "f32_to_bf16_rows")
    )
    assert two is not None
    assert one is not None
    assert one < 0.75
    assert two > 0.9


def test_text_and_json(tmp_path, capsys):
    path = written(tmp_path, LOOP)
    assert main(["run", path, "--timing-only", "--report", "kernel"]) == 0
    text = capsys.readouterr().out
    for words in ("overlap: ", "share of pipe", "buffer ub over time: at most ", "w written, r read"):
        assert words in text
    assert main(["run", path, "--timing-only", "--report", "kernel", "--json", "-", "--quiet"]) == 0
    document = json.loads(capsys.readouterr().out)
    kernel = document["kernel"]
    assert [line["op"].split()[0] for line in kernel["lines"]] == ["tload", "tcvt", "tstore"]
    assert kernel["overlap"]["covered_cycles"] <= document["total_cycles"]
    assert kernel["buffers"][0]["stretches"][0]["first_byte"] == 0
    assert main(["run", path, "--timing-only", "--json", "-", "--quiet"]) == 0
    assert "kernel" not in json.loads(capsys.readouterr().out)


@pytest.mark.parametrize(
    ("program", "report", "words"),
    [("f32_to_f16.pto", "brief", "unknown report 'brief'"), ("tpc_f32_i32_pipelined_goya.tpc", "kernel", "assembly")],
)
def test_refusals(program, report, words, capsys):
    assert main(["run", str(PROGRAMS / program), "--timing-only", "--report", report]) == 2
    assert words in capsys.readouterr().err
