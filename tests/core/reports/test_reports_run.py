"""What the run report derives: sums by source line, buffer use, limiter, facts, options that were read."""

from __future__ import annotations

import re
import shlex
from pathlib import Path

import pytest
from core.reports import html_pages
from core.reports.html_pages import run_command
from kit.cli_programs import LOOP, NARROW, TCVT, changed, written
from kit.command_output import document_of, out_of
from kit.paths import PROGRAMS, ROOT
from kit.pto_cpp_runs import needs_compiler

import castsim
from castsim.__main__ import main
from castsim.execution import tree as trees
from castsim.execution.timing import Cause, PipeTiming, Timing, limiter
from castsim.execution.tree import Access, Block, BufferUse, GlobalSpace, Instruction, Loop, Lowered, Tree, buffer_use
from castsim.isa.errors import ReadError, Span
from castsim.reports.cycle_evidence import Standing, fact_at, sensitivities, trust_of
from castsim.reports.numbers import doubtful_facts, duration, facts_of
from castsim.reports.progress import ProgressBar, RunProgress, operation_count
from castsim.reports.run_report import RunReport
from castsim.running.program_loading import load
from castsim.running.program_runs import Result, bookkeeping, inserted, run, run_loaded, source_lines
from castsim.targets.description import SourceKind, Status, watched, with_facts, with_options
from castsim.targets.loader import Target, load_target, residuals_of

A2A3 = load_target("a2a3")
HERE = Span("k.pto", 1, 1)


def ran(tmp_path: Path, text: str = NARROW) -> Result:
    return run(written(tmp_path, text), inputs={"x": "zeros"})


# -------------------------------------------------------------------------------------------------- source lines


def test_lines_sum_their_executions(tmp_path: Path) -> None:
    result = ran(tmp_path, LOOP)
    lines = source_lines(result.loaded.tree, result.timing)
    assert [(line.text.split()[0], line.executions) for line in lines] == [("tload", 4), ("tcvt", 4), ("tstore", 1)]
    for line in lines:
        ours = [
            execution
            for execution in result.timing.executions
            if result.loaded.tree.instructions[execution.instruction].span == line.span
            and not result.loaded.tree.instructions[execution.instruction].inserted
        ]
        assert line.first_start == min(execution.start for execution in ours)
        assert line.last_end == max(execution.end for execution in ours)
        assert line.cycles == sum(execution.end - execution.start for execution in ours)


def test_pipe_cycles_are_what_the_pipes_do_not_spend_idle(tmp_path: Path) -> None:
    result = run(written(tmp_path, LOOP), inputs={"x": "zeros"}, sync="interlock")
    lines = source_lines(result.loaded.tree, result.timing)
    for pipe in ("MTE2", "MTE3"):  # the vector pipe's drain belongs to no single operation
        spent = sum(line.pipe_cycles for line in lines if line.pipe == pipe)
        assert spent == result.cycles - result.pipes[pipe].causes[Cause.EMPTY]


def test_cycles_at_inserted_flags_are_counted_apart(tmp_path: Path) -> None:
    result = ran(tmp_path, LOOP)
    lines = source_lines(result.loaded.tree, result.timing)
    executions, waited = inserted(result.loaded.tree, result.timing)
    theirs = {number for number, each in enumerate(result.loaded.tree.instructions) if each.inserted}
    # Per trip MTE2 -> V and V -> MTE2, set and waited for; the latter once more around the loop; the store's flag; the
    # barrier at the end.
    assert executions == 4 * 2 * 2 + 2 + 2 + 1
    for pipe in ("MTE2", "MTE3"):
        spent = sum(line.pipe_cycles for line in lines if line.pipe == pipe)
        at_flags = sum(
            sum(operation.causes.values())
            for operation in result.timing.operations
            if operation.pipe == pipe and result.timing.executions[operation.execution].instruction in theirs
        )
        assert spent + at_flags == result.cycles - result.pipes[pipe].causes[Cause.EMPTY]
        assert 0 < at_flags < waited


def test_bookkeeping_is_counted_apart(tmp_path: Path) -> None:
    result = ran(tmp_path, LOOP)
    executions, cycles = bookkeeping(result.loaded.tree, result.timing)
    assert executions == 8  # four trips, each a turnaround and an addition
    scalar = A2A3.timing.scalar
    assert cycles == 4 * (scalar.loop_turnaround_cycles + scalar.arithmetic_cycles)
    kept = {each.text for each in result.loaded.tree.instructions if each.role is trees.InstructionRole.BOOKKEEPING}
    assert kept == {"loop", "index arithmetic"}


# ------------------------------------------------------------------------------------------------------- limiter


def timing(total: int, **pipes: dict[Cause, int]) -> Timing:
    return Timing(total, {name: PipeTiming(causes) for name, causes in pipes.items()}, (), (), frozenset())


def test_the_limiter_is_the_most_occupied_pipe_not_the_longest_wait() -> None:
    loads = {Cause.BUSY: 10, Cause.MEMORY_LATENCY: 41, Cause.EMPTY: 49}
    found = limiter(timing(100, V={Cause.BUSY: 30, Cause.OPERAND_WAIT: 70}, MTE2=loads))
    assert found.sentence() == "MTE2 limits (51.0 % occupied, 10.0 % busy); memory latency takes 41.0 %"


def test_nothing_limits_a_run_that_does_nothing() -> None:
    assert limiter(timing(0, V={})) is None
    assert limiter(timing(5, V={Cause.EMPTY: 5})) is None


# ------------------------------------------------------------------------------------------------------- buffers


def lowered(start: int, end: int, space: str = "ub") -> Lowered:
    return Lowered(0, Block(()), (Access(space, start, end, write=True),))


def tree(*items: Loop | Lowered) -> Tree:
    return Tree(Block(items), (Instruction("x", "V", HERE),), interlocked=True)


def test_buffer_use_covers_what_loops_reach_without_unrolling_them() -> None:
    inner = Loop(3, Block((lowered(100, 132),)), ((32,),))
    outer = Loop(10**9, Block((inner,)), ((-0,),))
    assert buffer_use(tree(outer, lowered(64, 80)), A2A3) == (BufferUse("ub", 64, 132 + 2 * 32, 196608, 16 + 3 * 32),)


def test_buffer_use_follows_loops_down_and_ignores_other_spaces() -> None:
    loop = Loop(4, Block((lowered(1000, 1032), lowered(0, 10**6, GlobalSpace.of("x")))), ((-64,), (0,)))
    assert buffer_use(tree(loop), A2A3) == (BufferUse("ub", 1000 - 3 * 64, 1032, 196608, 3 * 64 + 32),)
    assert buffer_use(tree(), A2A3) == ()


def test_buffer_use_of_a_program(tmp_path: Path) -> None:
    (use,) = RunReport.of(ran(tmp_path), {}).buffers
    assert (use.start, use.end) == (0, 4 * 64 * 4 + 4 * 64 * 2)  # the f32 tile, the f16 tile behind it


# --------------------------------------------------------------------------------------------- facts and options


def test_every_fact_of_a_timing_has_a_path(tmp_path: Path) -> None:
    named = {fact.name for fact in facts_of(A2A3)}
    assert ran(tmp_path).timing.facts <= named
    assert all(fact.source and fact.status for fact in facts_of(A2A3))


def test_documented_facts_are_not_doubtful() -> None:
    found = doubtful_facts(A2A3, ["timing.store", "banks", "options.nan_to_integer", "options.store_gap"])
    assert [(fact.name, fact.status) for fact in found] == [
        ("options.nan_to_integer", "assumed"),
        ("timing.store", "fitted"),
    ]
    stated = {"startup_cycles": 198, "bytes_per_cycle": 85}  # a2a3.toml, [timing.store]: 295 cycles 8 KiB, 971 64 KiB
    assert stated.items() <= found[1].value.items()


def test_with_options_leaves_the_target_alone() -> None:
    changed_target = with_options(A2A3, {"vector_head": "always", "integer_saturation_off_at_start": "1"})
    assert (changed_target.option("vector_head"), A2A3.option("vector_head")) == ("always", "idle")
    assert changed_target.option("integer_saturation_off_at_start") == 1
    assert changed_target.options["vector_head"].source == A2A3.options["vector_head"].source
    assert with_options(A2A3, {}) == A2A3


@pytest.mark.parametrize("values", [{"nothing": 1}, {"vector_head": "sometimes"}, {"store_gap": ""}])
def test_with_options_refuses(values: dict[str, int | str]) -> None:
    with pytest.raises(ReadError) as caught:
        with_options(A2A3, values)
    assert caught.value.legal


def test_watched_targets_note_what_is_read() -> None:
    read: set[str] = set()
    target = watched(A2A3, read)
    assert (target == A2A3, read) == (True, set())
    target.option("store_gap")
    assert read == {"store_gap"}


# ------------------------------------------------------------------------------------------------------- the text


def test_the_text_fits_100_columns_and_says_what_limits(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("COLUMNS", raising=False)
    # A short path: the first line and warnings name the file and are not cut.
    monkeypatch.chdir(tmp_path)
    written(tmp_path, changed("RINT", "ODD", changed("f16", "i32")))
    text = out_of(capsys, ["run", "kernel.pto", "--in", "x=zeros", "--report", "full"])
    assert max(map(len, text.splitlines())) <= 100
    assert text.startswith("kernel.pto @narrow on a2a3: ")
    for word in ("MTE2 limits (", "target a2a3 (Ascend A2/A3 vector core), engine fast, clock 1,850 MHz", "\noccupied ",
                 "tcvt f32 -> i32 ODD", "buffer ub: bytes 0 to", "sha256", " undocumented facts"):  # fmt: skip
        assert word in text
    assert f"warning: kernel.pto:{TCVT}:5: rounding ODD becomes TRUNC" in " ".join(text.split())


def test_wide_terminals_quote_the_source(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("COLUMNS", "160")
    assert "pto.tcvt ins(%wide" in out_of(capsys, ["run", written(tmp_path), "--timing-only"])


@pytest.mark.parametrize(
    ("seconds", "text"),
    [
        (2.5, "2.5 s"),
        (1.5e-3, "1.5 ms"),
        (6.2e-7, "620 ns"),
        (1e-6, "1 us"),
        (0.0, "0 ns"),
        (243.243e-9, "243.2 ns"),
        (13.8198e-6, "13.82 us"),
        (12345.6, "12,346 s"),
    ],
)
def test_durations(seconds: float, text: str) -> None:
    assert duration(seconds) == text


# ------------------------------------------------------------------------------------------------------ progress


def test_operations_are_counted_with_their_loops(tmp_path: Path) -> None:
    result = ran(tmp_path, LOOP)
    assert operation_count(result.loaded.tree.root) == len(result.timing.operations)


def test_following_a_run_changes_nothing(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    path = written(tmp_path, LOOP)
    alone = out_of(capsys, ["run", path, "--timing-only"])
    monkeypatch.setattr("sys.stderr.isatty", lambda: True, raising=False)
    monkeypatch.setattr("castsim.reports.progress.BAR_DELAY_SECONDS", 0.0)
    assert out_of(capsys, ["run", path, "--timing-only"]) == alone


def test_a_short_run_shows_no_bar(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("castsim.reports.progress.BAR_DELAY_SECONDS", 3600.0)
    bar = ProgressBar("values")
    progress = RunProgress(bar, 10)
    progress.stage("time")
    progress.progress(100, 5)
    bar.close()
    assert capsys.readouterr().err == ""


# -------------------------------------------------------------------------------------------------- what stands first


def lines_of(capsys: pytest.CaptureFixture[str], *words: str) -> list[str]:
    return out_of(capsys, ["run", *words]).splitlines()


def test_the_answer_and_the_warnings_stand_above_the_tables(capsys: pytest.CaptureFixture[str]) -> None:
    found = lines_of(capsys, str(PROGRAMS / "a5_bf16_to_e2m1.pto"), "--timing-only")
    table = next(number for number, line in enumerate(found) if line.startswith("line  instruction"))
    assert " cycles = " in found[0] and " ".join(found[:2]).count("(undocumented clock)") == 1
    assert any(" limits (" in line for line in found[1:table])
    assert any(line.startswith("Next: castsim advise ") for line in found[:table])
    assert any(line.startswith("warning: ") for line in found[:table])
    assert not any(line.startswith("warning: ") for line in found[table:])


def test_facts_are_one_line_unless_they_are_asked_for(capsys: pytest.CaptureFixture[str]) -> None:
    program = str(PROGRAMS / "f32_to_f16.pto")
    short = lines_of(capsys, program, "--timing-only")
    full = lines_of(capsys, program, "--timing-only", "--facts")
    names = [fact["name"] for fact in document_of(capsys, "run", program, "--timing-only")["facts_assumed"]]
    assert short[-1].endswith(f"--facts ({len(names)} undocumented)")
    assert all(any(line.startswith(f"  {name} (") for line in full) for name in names)
    assert full[: len(short) - 1] == short[:-1]


def test_what_is_no_bottleneck_has_no_share(capsys: pytest.CaptureFixture[str]) -> None:
    found = lines_of(capsys, str(PROGRAMS / "f32_to_f16.pto"), "--timing-only", "--report", "full")
    assert "%" not in next(line for line in found if line.startswith("empty "))
    assert "%" not in next(line for line in found if line.startswith("barrier "))
    assert next(line for line in found if line.startswith("flag wait ")).count("%") == 2


def test_thousands_are_separated(capsys: pytest.CaptureFixture[str]) -> None:
    found = lines_of(capsys, str(PROGRAMS / "kernels" / "rms_norm_a5.pto"), "--timing-only", "--arg", "eps=1e-6")
    cycles = document_of(capsys, "run", str(PROGRAMS / "kernels" / "rms_norm_a5.pto"), "--arg", "eps=1e-6",
                         "--timing-only")["total_cycles"]  # fmt: skip
    assert cycles >= 1000 and f": {cycles:,} cycles = " in " ".join(found)


KERNELS = (
    "programs/tpc_c/cast_f32_bf16.c --target gaudi2 --tensor x=f32[300,5] --tensor y=bf16[300,5] --index-space 3,5 "
    "--in x=random:0",
    "programs/pto_cpp/elementwise.cpp --entry floats --in a=random:1 --in b=random:2 --arg s=0.75",
    "programs/pto_cpp/cores.cpp --entry scaled_rows --target a2a3 --arg rows=6 --arg cols=40 --arg scale=2 "
    "--in x=random:1 --block 0/4 --all-blocks",
)
"""Kernels in C and C++, on one core and on several."""
SAMPLES = [shlex.join(run_command(path)[1:]) for path in html_pages.SAMPLES]


@pytest.mark.parametrize("words", [*SAMPLES, *KERNELS])
def test_the_first_lines_have_pipe_line_and_reason(
    words: str, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """12 lines of 80 columns have cycles, time, the pipe that limits, the line that costs most and why, and trust."""
    monkeypatch.setenv("COLUMNS", "80")
    monkeypatch.chdir(ROOT)
    if ".c " in words:
        pytest.importorskip("pcpp")
    if ".cpp " in words and needs_compiler.args[0]:
        pytest.skip("needs a C++ compiler")
    assert main(["run", *shlex.split(words)]) == 0
    shown = capsys.readouterr().out.splitlines()
    assert max(map(len, shown)) <= 80
    first = " ".join(" ".join(shown[:12]).split())
    assert re.search(r" on [a-z0-9]+: [\d,]+ cycles = [\d.,]+ [mun]?s( \(undocumented clock\))? ", first)
    assert re.search(r"\w+ (limits|is the busiest pipe) \([\d.]+ % occupied, [\d.]+ % busy\)", first)
    line = re.search(r"([Ll]ine \d+, \S.*?) Next: castsim ", first) or re.search(r"([Ll]ine \d+, \S.*)", first)
    assert line is not None
    assert re.search(r", mostly \w|\(\w[\w ]* [\d,]+[,)]|\(\d[\d,]* of ", line[1]), line[1]
    text = " ".join(" ".join(shown).split())
    assert re.search(r" Trust: (<?\d+ % [a-z ]+(, )?)+; range ", text)
    table = next(number for number, line in enumerate(shown) if line.startswith("line  instruction"))
    assert table <= 24
    assert any(line.startswith("More: --report full") for line in shown)


def test_one_screen_is_filled_and_the_full_report_has_every_line(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("COLUMNS", "80")
    words = [str(PROGRAMS / "kernels" / "rms_norm_a2a3.pto"), "--timing-only", "--arg", "eps=1e-6"]
    brief, full = (lines_of(capsys, *words, *more) for more in ((), ("--report", "full")))
    assert len(brief) < 24 < len(full)
    rest = next(line for line in brief if re.fullmatch(r"  and \d+ more lines, [\d,]+ cycles occupied", line))
    rows = [line.split()[0] for line in brief if re.match(r" *\d+  t", line)]
    whole = [line.split()[0] for line in full if re.match(r" *\d+  t", line)]
    assert whole[: len(rows)] == rows and len(whole) == len(rows) + int(rest.split()[1])
    occupied = sum(line.work for line in source_lines(*_ran(words[0])))
    shown = sum(int(line.split()[-4].replace(",", "")) for line in brief if re.match(r" *\d+  t", line))
    assert shown + int(rest.split()[4].replace(",", "")) == occupied


def _ran(path: str) -> tuple[Tree, Timing]:
    result = run(path, args={"eps": 1e-6}, timing_only=True)
    return result.loaded.tree, result.timing


def test_occupied_and_busy_have_one_meaning_in_sentence_table_and_data(capsys: pytest.CaptureFixture[str]) -> None:
    words = [str(PROGRAMS / "f32_to_f16_pipelined.pto"), "--timing-only"]
    shown, data = lines_of(capsys, *words, "--report", "full"), document_of(capsys, "run", *words)
    causes, total = data["pipes"]["MTE2"]["causes"], data["total_cycles"]
    own = sum(
        cycles for cause, cycles in causes.items() if cause not in ("empty", "flag_wait", "barrier", "operand_wait")
    )
    percents = [f"{100 * cycles / total:.1f} %" for cycles in (own, data["pipes"]["MTE2"]["busy_cycles"])]
    assert f"MTE2 limits ({percents[0]} occupied, {percents[1]} busy)" in " ".join(shown[:3])
    assert not any("utilisation" in line or "in use" in line for line in shown)
    (row,) = [line for line in shown if line.startswith("occupied  ")]
    assert f"{own:,}  {percents[0]}" in row, row


@pytest.mark.parametrize("width", [60, 80, 120])
@pytest.mark.parametrize(
    "words", ["kernels/rms_norm_a2a3.pto --arg eps=1e-6", "f32_to_f16_pipelined.pto", "tpc_f32_exp_gaudi2.tpc"]
)
def test_the_timeline_shows_the_whole_run_in_the_width(
    words: str, width: int, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Each row executes in the columns of its first start and its last end, and in none outside."""
    monkeypatch.setenv("COLUMNS", str(width))
    name, *more = words.split()
    command = [str(PROGRAMS / name), *more, "--timing-only"]
    data = document_of(capsys, "run", *command)
    shown = lines_of(capsys, *command, "--timeline")
    shown = shown[next(number for number, line in enumerate(shown) if line.startswith("timeline: ")) :]
    cycles, step = (
        int(text.replace(",", "")) for text in re.findall(r"[\d,]+", shown[0].replace(" cycles,", " cycles"))
    )
    assert cycles == data["total_cycles"]
    rows = [match for line in shown if (match := re.fullmatch(r" *(\d+)  (\w+) +(\S.*?)  ([e=.]+)", line))]
    assert max(len(line) for line in shown) <= width
    columns = -(-cycles // step)
    assert rows and all(len(row[4]) == columns for row in rows) and 2 * columns > width - 45
    for row in rows:
        own = [
            each
            for each in data["instructions"]
            if (each["line"], each["pipe"]) == (int(row[1]), row[2]) and each["op"].startswith(row[3].strip()[:8])
        ]
        if not own:  # another pipe sends it, or works for it as well
            continue
        first, last = min(each["start_cycle"] for each in own), max(each["end_cycle"] for each in own)
        executing = [column for column, letter in enumerate(row[4]) if letter == "e"]
        assert all(first // step <= column <= (last - 1) // step for column in executing), row[0]
        assert executing or "wait" in row[3] or "barrier" in row[3]


def test_a_window_has_a_column_for_each_cycle(capsys: pytest.CaptureFixture[str]) -> None:
    shown = lines_of(capsys, str(PROGRAMS / "f32_to_f16.pto"), "--timing-only", "--timeline", "--window", "200:260")
    assert "timeline: cycles 200 to 259 of 450" in shown
    assert any("eeeeeeE" in line for line in shown)


# -------------------------------------------------------------------------------------------------- what cycles rest on


WEIGHED = {
    "f32_to_f16.pto": {},
    "f32_to_f16_pipelined.pto": {},
    "a5_f32_to_e4m3fn_padded.pto": {},
    "kernels/rms_norm_a2a3.pto": {"eps": 1e-6},
}


def document(capsys: pytest.CaptureFixture[str], *words: str) -> dict:
    return document_of(capsys, "run", *words, "--timing-only")


@pytest.mark.parametrize("name", WEIGHED)
def test_shares_add_up_to_the_cycles_of_the_run(name: str) -> None:
    loaded = load(PROGRAMS / name, None, None, WEIGHED[name])
    result = run_loaded(loaded, {}, timing_only=True)
    trust = trust_of(loaded.target, result.timing, result.loaded.tree)
    assert sum(share.cycles for share in trust.shares) == result.timing.total == trust.cycles
    assert len({name for share in trust.shares for name in share.operations}) == sum(
        len(share.operations) for share in trust.shares
    )


def test_a_program_without_overlap_is_shared_out_exactly(capsys: pytest.CaptureFixture[str]) -> None:
    found = document(capsys, str(ROOT / "programs/a5_f32_to_e4m3fn_padded.pto"))
    occupied = {name: sum(pipe["causes"].values()) for name, pipe in found["pipes"].items()}
    waiting = ("empty", "flag_wait", "barrier", "operand_wait")
    occupied = {
        name: cycles - sum(found["pipes"][name]["causes"].get(cause, 0) for cause in waiting)
        for name, cycles in occupied.items()
    }
    cast = next(share for share in found["trust"]["shares"] if "tcvt f32 -> e4m3fn" in share["operations"])
    assert cast["cycles"] == occupied["V"]
    others = [share for share in found["trust"]["shares"] if share is not cast]
    assert {share["basis"] for share in others} == {"assumption"}
    assert sum(share["cycles"] for share in others) == found["total_cycles"] - occupied["V"]


def test_bytes_between_tiles_do_not_count_as_touched(capsys: pytest.CaptureFixture[str]) -> None:
    """A tile of 256 f32 lies at 0, one of 256 f16 at 65,536."""
    program = str(ROOT / "programs/f32_to_f16.pto")
    text = out_of(capsys, ["run", program, "--timing-only", "--report", "full"])
    assert "buffer ub: touched between bytes 0 and 66,047, 1,536 of 196,608 bytes (0.8 %)" in text


def test_waits_for_the_total_of_global_memory_rest_on_what_its_row_rests_on(capsys: pytest.CaptureFixture[str]) -> None:
    program = str(ROOT / "programs/kernels/quantise_rows_i8_a5.pto")
    alone, busy = (document(capsys, program, *words)["trust"]["shares"] for words in ((), ("--cores", "64")))
    total = load_target("a5").global_memory["faster"]
    assert all("total of global memory" not in share["operations"] for share in alone)
    (share,) = [each for each in busy if "total of global memory" in each["operations"]]
    assert (share["basis"], total.status) == (str(total.rests_on), Status.MEASURED)
    assert share["cycles"] > 0


def test_the_weight_of_a_fact_is_what_ten_percent_of_it_cost(capsys: pytest.CaptureFixture[str]) -> None:
    """One load waits for its start-up once: 207 cycles more or less a tenth, and the rest moves with it."""
    found = document(capsys, str(ROOT / "programs/f32_to_f16.pto"))
    weights = {each["fact"]: (each["less"], each["more"]) for each in found["trust"]["sensitivities"]}
    assert weights["timing.load.startup_cycles"] == (-21, 21)
    assert weights["timing.store.startup_cycles"] == (-20, 20)
    assert weights["timing.load.bytes_per_cycle"] == (2, -2)  # 1024 bytes at 51.3, 57 and 62.7: 20, 18 and 16 cycles
    sizes = [max(abs(each["less"]), abs(each["more"])) for each in found["trust"]["sensitivities"]]
    assert sizes == sorted(sizes, reverse=True)
    names = [fact["name"] for fact in found["facts_assumed"]]
    assert names.index("timing.load") < names.index("timing.store") < names.index("timing.scalar")


def test_weights_are_linear_in_whole_numbers_and_tell_no_facts_that_are_documented() -> None:
    chip = load_target("a5")

    def cycles(change: object) -> int:
        changed = change(chip)
        return 1000 * changed.timing.loops.setup_cycles + 7 * changed.timing.load.startup_cycles

    base = 1000 * chip.timing.loops.setup_cycles + 7 * chip.timing.load.startup_cycles
    found = sensitivities(chip, ["timing.loops", "timing.load", "timing.access", "options.backend"], base, cycles)
    told = {each.fact: (each.less, each.more) for each in found}
    tenth = round(100 * chip.timing.loops.setup_cycles)
    assert told["timing.loops.setup_cycles"] == (-tenth, tenth)
    assert "timing.load.bytes_per_cycle" not in told
    assert fact_at(chip, "timing.access").status is Status.DOCUMENTED
    assert not any(name.startswith("timing.access") for name in told)


def test_text_says_what_cycles_rest_on_and_whose_the_clock_is(capsys: pytest.CaptureFixture[str]) -> None:
    program = str(ROOT / "programs/a5_f32_to_e4m3fn_padded.pto")
    text = out_of(capsys, ["run", program, "--timing-only", "--facts", "--report", "full"])
    status = load_target("a5").frequency.status
    assert ("(undocumented clock)" in " ".join(text.split())) == ("(assumed)" in text) == (status is Status.ASSUMED)
    shares = document_of(capsys, "run", program, "--timing-only")["trust"]["shares"]
    fitted = sum(100 * each["cycles"] / sum(own["cycles"] for own in shares) for each in shares
                 if each["standing"] == "fitted")  # fmt: skip
    trust = next(line for line in text.splitlines() if line.startswith("Trust: "))
    assert abs(int(trust.partition(" % fitted")[0].rpartition(" ")[2]) - fitted) < 1
    assert sum(int(percent) for percent in re.findall(r"(\d+) % [a-z]", trust.partition(";")[0])) == 100
    assert text.index("timing.store (") < text.index("timing.load (")
    assert "startup_cycles: -10 % -18 cycles, +10 % +18 cycles" in text
    known = residuals_of("a5", "cast")
    if known is not None:
        assert f"({known.share} % interval, {known.rows} held-out rows)" in " ".join(text.split())


def test_other_targets_with_another_fact_are_not_validated(tmp_path: Path) -> None:
    fact = '[timing.launch]\nstartup_cycles = 30\nsource = "own"\nstatus = "assumed"\n'
    (tmp_path / "mine.toml").write_text(f'base = "a5"\n{fact}')
    found = castsim.estimate("f32", "f16", 4, 128, target=tmp_path / "mine.toml").trust
    assert {share.standing for share in found.shares} == {Standing.FACTS}
    assert found.interval is None


def test_estimates_say_what_they_rest_on() -> None:
    found = castsim.estimate("f32", "f16", 4, 128, target="a5")
    (share,) = found.trust.shares
    assert (share.cycles, share.basis) == (found.cycles, SourceKind.DOCUMENT)
    known = residuals_of("a5", "cast")
    assert known is not None
    assert found.trust.interval.low <= found.cycles * (1 + known.low / 100)
    assert found.trust.interval.high >= found.cycles * (1 + known.high / 100)
    for each in found.sensitivities[:3]:
        if each.value == each.value.to_integral_value():
            continue  # whole numbers change by more than a tenth

        def again(factor: int, fact: str = each.fact, value: object = each.value) -> int:
            chip: Target = with_facts(load_target("a5"), {fact: value * (10 + factor) / 10})
            return castsim.estimate("f32", "f16", 4, 128, target=chip).cycles

        assert (each.less, each.more) == (again(-1) - found.cycles, again(1) - found.cycles)
