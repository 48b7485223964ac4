"""Reports of a run: sections (a new one is one file), classes of keys, vector operations, the report of a kernel."""

from __future__ import annotations

import csv
import json
import sys
from dataclasses import dataclass
from decimal import Decimal
from enum import Enum, StrEnum
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest
from kit.cli_programs import LOOP, written
from kit.command_output import out_of
from kit.paths import PROGRAMS, ROOT
from kit.race_trees import Builder, access, steps_of
from kit.work_model import TARGETS

from castsim import run
from castsim.__main__ import main
from castsim.commands.feature import feature_of
from castsim.commands.shared_options import OptionParser
from castsim.execution.timing import Cause, Execution, OperationTiming, PipeTiming, Timing
from castsim.execution.tree import Block, Loop, Tree
from castsim.isa.formats import format_named
from castsim.isa.pto.vector_operations import VECTOR_OPERATIONS, Kind
from castsim.reports import sections
from castsim.reports.documents import ABSENT, Keys, json_of, says
from castsim.reports.run_findings import PRINTED, section
from castsim.reports.sections.kernel import _picture, buffer_maps, joined, kernel_report
from castsim.running.loaded import Loaded
from castsim.running.program_runs import Result
from castsim.targets.loader import load_target

NAMES = (*PRINTED, *sections.further_reports())


CASTS = """
from collections import Counter

from rich.text import Text

from castsim.reports.documents import Keys, says
from castsim.reports.run_report import ReportSection


def counted(report):
    tree, timing = report.result.loaded.tree, report.result.timing
    pairs = Counter()
    for execution in timing.executions:
        pairs.update(tree.instructions[execution.instruction].casts)
    return pairs


class CastsOfPair(Keys):
    src: str = says("Format of the source.", lambda own: own[0][0])
    dst: str = says("Format of the result.", lambda own: own[0][1])
    times: int = says("How often the pair is cast.", lambda own: own[1])


class CastKeys(Keys):
    casts: list[CastsOfPair] = says("Casts of each pair.", lambda report: counted(report).items())


def text(report, width):
    for (src, dst), times in counted(report).items():
        yield Text(f"{src} -> {dst}: {times} casts")


SECTION = ReportSection(text, CastKeys)
"""
"""A made-up report: how often each type pair is cast."""


@pytest.fixture
def with_casts(tmp_path, monkeypatch):
    """The made-up report lies beside the others, as one file."""
    (tmp_path / "made_up_casts.py").write_text(CASTS)
    monkeypatch.setattr(sections, "__path__", [*sections.__path__, str(tmp_path)])
    yield
    sys.modules.pop("castsim.reports.sections.made_up_casts", None)


def said(capsys, *words: str) -> str:
    return out_of(capsys, ["run", *words, "--timing-only"])


# By the programs' own texts: casts per trip times trips.
@pytest.mark.parametrize(
    ("program", "pairs"),
    [
        ("f32_to_f16.pto", {("f32", "f16"): 1}),
        ("a5_hif8_round_trip.pto", {("f32", "hif8"): 1, ("hif8", "f32"): 1}),
        ("a5_bf16_to_f16_barriers.pto", {("bf16", "f16"): 2 * 2}),
        ("tpc_f32_i16_quantise_greco.tpc", {("f32", "i16"): 8 * 2}),
    ],
)
def test_a_new_report_is_one_file(program, pairs, with_casts, capsys):
    path = str(PROGRAMS / program)
    plain = json.loads(said(capsys, path, "--json", "-"))
    document = json.loads(said(capsys, path, "--report", "made_up_casts", "--json", "-"))
    found = {(each["src"], each["dst"]): each["times"] for each in document.pop("casts")}
    assert document == plain
    assert found == pairs
    text = said(capsys, path, "--report", "made_up_casts")
    for (src, dst), times in found.items():
        assert f"{src} -> {dst}: {times} casts\n" in text


def test_run_lists_the_reports_that_there_are(with_casts, capsys):
    parser = OptionParser()
    feature_of("run").declare(parser)
    assert "kernel, made_up_casts" in " ".join(parser.format_help().split())
    assert main(["run", str(PROGRAMS / "f32_to_f16.pto"), "--report", "casts"]) == 2
    assert "legal: run, full, kernel, made_up_casts" in capsys.readouterr().err


def test_sections_have_distinct_names_and_only_further_ones_add_keys():
    assert len(set(NAMES)) == len(NAMES)
    assert {name for name in NAMES if section(name).keys is not Keys} <= {*sections.further_reports()}


def test_the_options_of_sections_are_options_of_run():
    parser = OptionParser()
    feature_of("run").declare(parser)
    known = {option for action in parser._actions for option in action.option_strings}
    named = [option for name in NAMES for option in section(name).options]
    assert set(named) <= known
    assert len(set(named)) == len(named)
    assert {"--lint", "--what-if", "--show-sync", "--races"} <= set(named)


# ---------------------------------------------------------------------------------------------- JSON of classes of keys


class Colour(Enum):
    RED = 3


class Word(StrEnum):
    LONG = "a long one"


@dataclass(frozen=True, slots=True)
class Inner:
    start: int
    causes: dict[Word, int]


@dataclass(frozen=True, slots=True)
class Outer:
    name: str
    parts: tuple[Inner, ...]
    missing: None = None

    @property
    def count(self) -> int:
        return len(self.parts)


class InnerKeys(Keys):
    first_byte: int = says("Where it starts.", "start")
    causes: dict[str, int] = says("Cycles by cause.")


class OuterKeys(Keys):
    title: str = says("Its name.", "name")
    parts: list[InnerKeys] = says("What it has.")
    note: int = says("What nothing says.", lambda _: ABSENT, optional=True)
    count: int = says("How many parts.")


OUTER = Outer("x", (Inner(4, {Word.LONG: 7}),))


@pytest.mark.parametrize(
    ("value", "text"),
    [
        (np.int64(3), "3"),
        (np.float32(0.5), "0.5"),
        (np.bool_(True), "true"),
        (Colour.RED, "3"),
        (Word.LONG, '"a long one"'),
        (Decimal("16.36"), "16.36"),
        (Decimal("128.0"), "128"),
        (b"\x01\xff", '"01ff"'),
        (Path("a") / "b", '"a/b"'),
        (format_named("f16"), '"f16"'),
        ((1, (2, None)), "[1, [2, null]]"),
        ({1: Word.LONG}, '{"1": "a long one"}'),
    ],
)
def test_values(value, text):
    assert json.dumps(json_of(value)) == text


def test_keys_keep_their_order_and_take_their_values_where_they_say():
    assert json.dumps(OuterKeys.of(OUTER)) == (
        '{"title": "x", "parts": [{"first_byte": 4, "causes": {"a long one": 7}}], "count": 1}'
    )
    assert OuterKeys.of(OUTER, note=3, count=2) == {**OuterKeys.of(OUTER), "count": 2, "note": 3}


@pytest.mark.parametrize("given", [{"nmae": "x"}, {"name": "x"}])
def test_a_key_that_a_document_does_not_have_is_refused(given):
    with pytest.raises(TypeError, match="OuterKeys has no key named"):
        OuterKeys.of(OUTER, **given)


def test_a_key_without_a_value_is_refused():
    with pytest.raises(TypeError, match="no value for 'parts' of OuterKeys in a SimpleNamespace"):
        OuterKeys.of(SimpleNamespace(name="x"))


def test_what_has_no_json_form_is_refused():
    with pytest.raises(TypeError, match="no JSON form of a set"):
        json_of({1, 2})


# ------------------------------------------------------------------------------------- vector operations in run reports


KERNEL = str(PROGRAMS / "kernels" / "rms_norm_a2a3.pto")
WORDS = ["run", KERNEL, "--in", "src=random:0", "--in", "gamma=random:1", "--arg", "eps=1e-6"]


def test_the_document_lists_every_operation(capsys: pytest.CaptureFixture[str]) -> None:
    assert main([*WORDS, "--json", "-", "--quiet"]) == 0
    found = {(note["op"], note["element"]): note for note in json.loads(capsys.readouterr().out)["operations"]}
    assert {op for op, _ in found} == {
        "texpands", "tmul", "trowsum", "tadd", "tmuls", "tadds", "tsqrt", "trecip", "trowexpandmul", "tcolexpandmul",
    }  # fmt: skip
    assert found["tmul", "f32"]["validated"] is True
    assert found["tmul", "f32"]["not_bit_exact"] is None
    assert found["tcolexpandmul", "f32"]["validated"] is False
    assert "order" in found["trowsum", "f32"]["not_bit_exact"]


def test_the_text_marks_them(capsys: pytest.CaptureFixture[str]) -> None:
    assert "values may not be bit-exact: trecip f32, trowsum f32 " in " ".join(out_of(capsys, WORDS).split())
    text = " ".join(out_of(capsys, [*WORDS, "--report", "full"]).split())
    marked = text.split("cycles not validated (none published): ")[1].split(" values")[0]
    assert "tcolexpandmul f32" in marked
    assert "tmul f32" not in marked.replace("trowexpandmul f32", "").replace("tcolexpandmul f32", "")
    assert "values not bit-exact: trowsum f32: order of the sum within a row is assumed" in text


def test_validated_are_the_operations_with_published_cycles() -> None:
    with (ROOT / "targets" / "a2a3_measured_operations.csv").open() as file:
        published = {(row["op"].lower(), row["src"]) for row in csv.DictReader(file)}
    published = {(op, element) for op, element in published if op in VECTOR_OPERATIONS}
    target = load_target("a2a3")
    assert {(rule.mnemonic, element) for rule in target.tile_operations for element in rule.validated} == published


def test_what_is_approximate() -> None:
    """Divisions, powers, exponentials, logarithms, reciprocal roots; sums and products along a row; nothing else."""
    for name in TARGETS:
        for rule in load_target(name).tile_operations:
            operation = VECTOR_OPERATIONS[rule.mnemonic]
            doubtful = operation.function in (
                "div", "recip", "exp", "expdif", "log", "rsqrt", "shl", "shr", "rem", "fmod", "axpy", "addc", "madd",
                "maddrelu", "pow",
            )  # fmt: skip
            arguments = (Kind.ROW_ARGUMENT, Kind.COLUMN_ARGUMENT, Kind.PART_ARGUMENT)
            doubtful |= operation.kind in (*arguments, Kind.SORT, Kind.MERGE)
            doubtful |= rule.mnemonic in ("trowsum", "trowprod")
            assert (rule.approximate is not None) == doubtful, rule.mnemonic


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
    assert (overlap.serial, overlap.covered, [entry.cycles for entry in overlap.together]) == (70, 50, [30, 20, 0])
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
    assert sum(entry.pipes * entry.cycles for entry in overlap.together) == overlap.serial
    for pipe in overlap.busy:
        assert sum(cost.share for cost in report.lines if cost.pipe == pipe) == pytest.approx(1)
    (ub,) = report.buffers
    assert ub.peak_bytes <= ub.capacity
    for stretch in ub.stretches:
        assert all(a < b for a, b in stretch.live)
        assert all(a[1] < b[0] for a, b in zip(stretch.live, stretch.live[1:], strict=False))


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
