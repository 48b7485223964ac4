"""Races: small programs by hand and by brute force, samples without one of their flags, bytes that accesses share."""

from __future__ import annotations

import itertools
import json
import re
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from kit import sample_arguments
from kit.counted_work import at_most
from kit.execution_programs import kernel
from kit.lanes_model import READS
from kit.micro_cases import texts
from kit.paths import PROGRAMS
from kit.pto_text import moved
from kit.race_trees import Builder, access, programs, steps_of
from oracle_races import judge

from castsim import run
from castsim.__main__ import main
from castsim.engines import simulate
from castsim.execution.pipe_operations import ControlWrite
from castsim.execution.tree import (
    Access,
    Block,
    GlobalSpace,
    InstructionRole,
    Loop,
    Tree,
    common_bytes,
    run_length,
    strided,
    widened,
)
from castsim.isa.errors import EngineError, RaceError, WarningKind, of_kind
from castsim.isa.pto.micro_forms import micro_operations
from castsim.isa.pto.pto_parser import parse
from castsim.isa.reading import Language, Source
from castsim.machines.vector_function.scope_recorder import _moved, instruction_of
from castsim.running.loaded import LoadRequest, RunOptions
from castsim.running.program_loading import load_program, load_tiles
from castsim.running.synchronisation.race_detector import find_races
from castsim.running.synchronisation.race_findings import REPORT, STOP, RaceFinding, RaceKind, RaceRegion, refusal
from castsim.targets.loader import load_target

A3, A5 = load_target("a2a3"), load_target("a5")


def kinds(tree: Tree, target=A3) -> list[RaceKind]:
    return [finding.kind for finding in found(tree, target)]


def found(tree: Tree, target=A3) -> list[RaceFinding]:
    """Return the findings; what nothing wrote has tests of its own."""
    return [finding for finding in find_races(tree, target) if finding.kind is not RaceKind.UNWRITTEN]


def pair(first, second, *between) -> tuple[Builder, Tree]:
    """A program of two instructions (pipe, access...) with `between` made by a function of the builder."""
    builder = Builder()
    one = builder.work(*first)
    middle = [make(builder) for make in between]
    return builder, builder.tree(one, *middle, builder.work(*second), builder.barrier())


LOAD = ("MTE2", access(0, 64, True))
CAST = ("V", access(0, 64), access(128, 32, True))


# ------------------------------------------------------------------------------------------------- between pipes
def test_a_race_says_who_where_and_what_is_missing():
    _, tree = pair(LOAD, CAST)
    (race,) = found(tree)
    assert race.kind is RaceKind.RACE
    assert race.message == (
        "work on V (k.pto:2:3) on V reads ub bytes 0 .. 63 while work on MTE2 (k.pto:1:3) on MTE2 may still write them "
        "(read after write)"
    )
    assert race.missing == (
        "set_flag MTE2 -> V after line 1 and wait_flag MTE2 -> V before line 2, or a barrier on all pipes"
    )
    assert (race.pipes, race.region) == (("MTE2", "V"), RaceRegion("ub", 0, 64))


MTE2_V = (lambda b: b.set("MTE2", "V"), lambda b: b.wait("MTE2", "V"))


@pytest.mark.parametrize(
    "between",
    [
        MTE2_V,
        (lambda b: b.barrier(),),
        # By way of the store pipe: its signal carries what it has waited for.
        (
            lambda b: b.set("MTE2", "MTE3"), lambda b: b.wait("MTE2", "MTE3"), lambda b: b.set("MTE3", "V"),
            lambda b: b.wait("MTE3", "V"),
        ),
        # The scalar unit waits, and issues the rest only then.
        (lambda b: b.set("MTE2", "S"), lambda b: b.wait("MTE2", "S")),
    ],
)  # fmt: skip
def test_what_orders_two_pipes(between):
    assert kinds(pair(LOAD, CAST, *between)[1]) == []


@pytest.mark.parametrize(
    "between",
    [
        (lambda b: b.barrier("V"),),
        (lambda b: b.barrier("MTE2"),),
        (lambda b: b.set("V", "MTE2"), lambda b: b.wait("V", "MTE2")),
        (lambda b: b.set("MTE2", "MTE3"), lambda b: b.wait("MTE2", "MTE3")),
    ],
)
def test_what_does_not(between):
    assert kinds(pair(LOAD, CAST, *between)[1]) == [RaceKind.RACE]


@pytest.mark.parametrize(
    ("first", "second", "words"),
    [
        (access(0, 64), access(32, 64, True), "bytes 32 .. 63 while work on V (k.pto:1:3) on V may still read them"),
        (access(0, 64, True), access(63, 64, True), "write after write"),
        (access(0, 64), access(32, 64), None),
        (access(0, 64, True), access(64, 64), None),
        (access(0, 64, True), access(0, 64, space=GlobalSpace.of("x")), None),
    ],
)
def test_bytes_and_directions_decide(first, second, words):
    races = found(pair(("V", first), ("MTE3", second))[1])
    assert [words in race.message for race in races] == ([True] if words else [])


def test_halves_of_columns_do_not_meet():
    # 16 rows of 128 bytes: one tile has the left 64 bytes of each, the other the right ones.
    left, right = access(0, 64, True, (16, 128)), access(64, 64, False, (16, 128))
    assert kinds(pair(("MTE2", left), ("MTE3", right))[1]) == []
    (race,) = found(pair(("MTE2", left), ("MTE3", access(60, 64, False, (16, 128))))[1])
    assert race.region is not None and race.region.end - race.region.start == 4
    assert race.region.start % 128 == 60


# -------------------------------------------------------------------------------------------------- the vector pipe
WRITES_READS = [
    (access(0, 32, True), access(0, 32), "read after write"),
    (access(0, 32, True), access(0, 32, True), "write after write"),
]


@pytest.mark.parametrize(("first", "second", "words"), WRITES_READS)
def test_dependent_vector_instructions_need_a_barrier_where_the_target_says_so(first, second, words):
    _, tree = pair(("V", first), ("V", second))
    (missing,) = found(tree)
    assert (missing.kind, missing.missing) == (RaceKind.MISSING_BARRIER, "barrier V before line 2")
    assert words in missing.message
    assert kinds(tree, A5) == []
    assert kinds(pair(("V", first), ("V", second), lambda b: b.barrier("V"))[1]) == []
    assert kinds(pair(("V", first), ("V", second), lambda b: b.set("V", "V"), lambda b: b.wait("V", "V"))[1]) == []


def test_a_vector_write_after_a_read_needs_none():
    assert kinds(pair(("V", access(0, 32)), ("V", access(0, 32, True)))[1]) == []


def test_scratch_of_one_cast_written_by_the_next():
    scratch = (access(512, 64), access(512, 64, True))
    casts = ("V", access(0, 32, True), access(64, 32), *scratch), ("V", access(128, 32, True), access(64, 32), *scratch)
    (missing,) = found(pair(*casts)[1])
    assert missing.kind is RaceKind.MISSING_BARRIER
    load = ("MTE2", access(540, 4, True))
    (race,) = found(pair(casts[0], load)[1])
    assert "writes ub bytes 540 .. 543" in race.message


def test_transfers_of_one_pipe_are_in_order():
    assert kinds(pair(("MTE2", access(0, 64, True)), ("MTE2", access(0, 64, True)))[1]) == []


# --------------------------------------------------------------------------------------------------------- flags
def test_a_flag_that_nothing_sets():
    builder = Builder()
    tree = builder.tree(builder.work(*LOAD), builder.wait("MTE3", "V", 3), builder.work(*CAST), builder.barrier())
    first = found(tree)[0]
    assert first.sentence == (
        "deadlock: V waits for flag MTE3 -> V id 3 (k.pto:2:3), which nothing sets; "
        "S waits for all pipes to drain (k.pto:4:3)"
    )
    error = refusal(found(tree))
    assert isinstance(error, EngineError)
    assert error.span is not None and error.span.line == 2


def test_two_pipes_that_wait_for_each_other():
    builder = Builder()
    waits = (builder.wait("MTE3", "V"), builder.set("V", "MTE3"), builder.wait("V", "MTE3"), builder.set("MTE3", "V"))
    (stuck,) = found(builder.tree(*waits))
    assert stuck.sentence == (
        "deadlock: V waits for flag MTE3 -> V id 0 (k.pto:1:3), set after what MTE3 waits for; "
        "MTE3 waits for flag V -> MTE3 id 0 (k.pto:3:3), set after what V waits for"
    )


def test_a_wait_may_come_before_its_signal():
    builder = Builder()
    tree = builder.tree(
        builder.wait("MTE2", "V"), builder.work("V", access(0, 32)),
        builder.work("MTE2", access(64, 32, True)), builder.set("MTE2", "V"), builder.barrier(),
    )  # fmt: skip
    assert found(tree) == []


def test_a_flag_never_waited_for_and_one_set_twice():
    builder = Builder()
    tree = builder.tree(builder.set("V", "MTE2", 4), builder.barrier())
    (left,) = found(tree)
    assert left.sentence == (
        "unmatched flag: set_flag V -> MTE2 id 4 (k.pto:1:3) is never waited for; missing: wait_flag V -> MTE2 id 4"
    )
    builder = Builder()
    twice = builder.tree(builder.set("V", "MTE2"), builder.set("V", "MTE2"), builder.wait("V", "MTE2"))
    assert kinds(twice) == [RaceKind.UNMATCHED, RaceKind.PENDING_TWICE]
    assert (
        "(k.pto:2:3) sets the flag again before anything waits for the previous one (k.pto:1:3)"
        in found(twice)[1].message
    )
    builder = Builder()
    others = [each("V", "MTE2", number) for each in (builder.set, builder.wait) for number in (0, 1)]
    assert kinds(builder.tree(*others)) == []


def test_the_end_needs_a_barrier():
    builder = Builder()
    tree = builder.tree(builder.work(*LOAD))
    (end,) = found(tree)
    assert end.sentence == (
        "unfinished at the end: the function ends while this may still be running: work on MTE2 (k.pto:1:3) on MTE2; "
        "missing: barrier ALL at the end of the function"
    )


# --------------------------------------------------------------------------------------------------------- loops
def looped(trips: int, *, step: int, edge: bool) -> Tree:
    """Load and store through a buffer that moves by `step`; `edge` keeps the next load behind the store."""
    builder = Builder()
    inner = [
        *([builder.wait("MTE3", "MTE2")] if edge else []), builder.work("MTE2", access(0, 64, True)),
        builder.set("MTE2", "MTE3"), builder.wait("MTE2", "MTE3"), builder.work("MTE3", access(0, 64)),
        *([builder.set("MTE3", "MTE2")] if edge else []),
    ]  # fmt: skip
    block = Block(tuple(inner))
    loop = Loop(trips, block, steps_of(block, (step,), (step,)))
    around = [builder.set("MTE3", "MTE2"), loop, builder.wait("MTE3", "MTE2")] if edge else [loop]
    return builder.tree(*around, builder.barrier())


@pytest.mark.parametrize(("trips", "step", "races"), [(1, 0, 0), (2, 0, 1), (10**6, 0, 1), (10**6, 32, 1), (9, 64, 0)])
def test_the_next_trip_must_not_overtake_this_one(trips, step, races):
    racing = found(looped(trips, step=step, edge=False))
    assert len(racing) == races
    assert all(" of an earlier trip may still read them (write after read)" in race.message for race in racing)
    assert found(looped(trips, step=step, edge=True)) == []


def test_a_conflict_many_trips_away_is_found():
    """Trip k loads bytes from 1000 * k on, all store from 64000 on: what trip 64 loads earlier trips read, later do."""
    builder = Builder()
    block = Block((builder.work("MTE3", access(64_000, 8)), builder.work("MTE2", access(0, 8, True))))
    for trips, races in ((64, 0), (65, 1), (66, 2), (10**6, 2)):
        loop = Loop(trips, block, steps_of(block, (0,), (1000,)))
        assert len(found(builder.tree(loop, builder.barrier()))) == races


@pytest.mark.parametrize(("place", "races"), [(76 + 4 * 5, 1), (76 + 4 * 6, 0)])
def test_a_loop_does_not_reach_beyond_its_last_trip(place, races):
    """Six trips read bytes 76, 80, ... 96; another pipe writes one byte in each."""
    builder = Builder()
    block = Block((builder.work("V", access(place, 1, True)), builder.work("MTE2", access(76, 1))))
    loop = Loop(6, block, steps_of(block, (0,), (4,)))
    assert bool(found(builder.tree(loop, builder.barrier()), A5)) == bool(races)


def test_time_does_not_grow_with_trips():
    with at_most(100_000):
        find_races(looped(10**9, step=0, edge=True), A3)


# ---------------------------------------------------------------------------------------------- bytes, control state
def unwritten(*items, builder: Builder) -> list[RaceFinding]:
    return [f for f in find_races(builder.tree(*items), A3) if f.kind is RaceKind.UNWRITTEN]


def test_bytes_that_nothing_wrote():
    builder = Builder()
    (gap,) = unwritten(
        builder.work("MTE2", access(0, 32, True)), builder.work("V", access(100, 4, True), access(16, 32)),
        builder=builder,
    )  # fmt: skip
    assert gap.message == "work on V (k.pto:2:3) on V reads ub bytes 32 .. 47 before anything writes them"
    builder = Builder()
    rows = access(0, 16, True, (4, 32))
    for read, gaps in ((access(0, 16, False, (4, 32)), 0), (access(96, 16), 0), (access(16, 4), 1), (access(0, 48), 1)):
        items = (builder.work("MTE2", rows), builder.work("MTE3", read))
        assert len(unwritten(*items, builder=builder)) == gaps


def test_scratch_and_global_memory_hold_what_they_hold():
    builder = Builder()
    scratch = (access(512, 64), access(512, 64, True))
    items = (builder.work("V", access(0, 4, True), access(0, 4, space=GlobalSpace.of("x")), *scratch),)
    assert unwritten(*items, builder=builder) == []


def test_what_earlier_trips_wrote_is_written():
    builder = Builder()
    block = Block((builder.work("MTE2", access(0, 64, True)),))
    loop = Loop(100, block, steps_of(block, (64,)))
    assert unwritten(loop, builder.work("MTE3", access(0, 6400)), builder=builder) == []
    assert len(unwritten(loop, builder.work("MTE3", access(0, 6401)), builder=builder)) == 1


def test_what_an_opaque_instruction_may_have_written_is_not_missed():
    builder = Builder()
    read, opaque = (
        builder.work("MTE3", access(0, 64)),
        builder.add("tmatmul", "S", ControlWrite("ctrl", 0), role=InstructionRole.OPAQUE),
    )
    assert len(unwritten(read, opaque, builder=builder)) == 1
    assert unwritten(opaque, read, builder=builder) == []


def test_control_state_that_is_not_captured_must_not_change_under_an_instruction():
    builder = Builder()
    work = builder.work("V", access(0, 4, True))
    tree = builder.tree(work, builder.add("tcvt", "V", ControlWrite("ctrl", 1)), builder.barrier())
    assert kinds(tree) == []
    loose = A3.synchronisation.model_copy(update={"captured_control": ("mask",)})
    (control,) = found(tree, A3.model_copy(update={"synchronisation": loose}))
    assert control.message == "tcvt (k.pto:2:3) changes ctrl while work on V (k.pto:1:3) on V may still read it"


# ------------------------------------------------------------------------------------------------------- refusals
def test_a_refusal_spells_out_the_first_findings():
    _, tree = pair(LOAD, CAST)
    error = refusal(found(tree) * 7)
    assert isinstance(error, RaceError)
    assert error.message.count("race: ") == 5
    assert error.message.endswith("and 2 more")
    assert error.span is not None and error.span.line == 2


# ------------------------------------------------------------------------------------------------ against brute force
def lines(findings: list[RaceFinding], kind: RaceKind) -> set[tuple[int, ...]]:
    return {tuple(sorted(span.line - 1 for span in f.spans)) for f in findings if f.kind is kind}


@settings(max_examples=150, deadline=None)
@given(programs(flags=True), st.sampled_from([A3, A5]))
def test_random_programs_are_judged_as_by_unrolling_them(tree, target):
    verdict = judge(tree, tuple(str(hazard) for hazard in target.synchronisation.required_barriers))
    findings = found(tree, target)
    seen = {finding.kind for finding in findings}
    assert (RaceKind.DEADLOCK in seen) == verdict.deadlock
    assert (RaceKind.PENDING_TWICE in seen) == verdict.pending_twice
    # Pairs of signal and wait are those of program order only while no signal is pending twice.
    if verdict.deadlock or verdict.pending_twice:
        return
    assert (RaceKind.UNMATCHED in seen) == verdict.left_over
    assert (RaceKind.UNFINISHED in seen) == verdict.unfinished
    for kind, expected in ((RaceKind.RACE, verdict.races), (RaceKind.MISSING_BARRIER, verdict.barriers)):
        pairs = lines(findings, kind)
        assert bool(pairs) == bool(expected)
        assert pairs <= {tuple(sorted(each)) for each in expected}


FLAG = re.compile(r"pto\.(set|wait)_flag\s*\[\W*PIPE_(\w+?)\W+PIPE_(\w+?)\W+EVENT_ID(\d)")
BARRIER = re.compile(r"pto\.barrier\s*\W*PIPE_(\w+)")
NAMES = sorted(
    str(path.relative_to(PROGRAMS).with_suffix(""))
    for path in PROGRAMS.rglob("*.pto")
    if "micro" not in path.parts  # races of these are not looked for
)


def scalars(name: str) -> dict[str, int | float]:
    return sample_arguments.scalars(PROGRAMS / f"{name}.pto")


def synchronising_lines(name: str) -> list[int]:
    """Return the lines with a flag or barrier, counted from 0."""
    lines = (PROGRAMS / f"{name}.pto").read_text().splitlines()
    return [number for number, line in enumerate(lines) if FLAG.search(line) or BARRIER.search(line)]


NEEDLESS = ("f32_to_i8_own_barriers", 19)
"""A barrier between casts of which the second reads the 8 KiB that the first writes: the tool would put none there."""
CASES = [(name, line) for name in NAMES for line in synchronising_lines(name) if (name, line) != NEEDLESS]


def findings(path: Path, args: dict[str, int | float], sync: str = "program") -> tuple[RaceFinding, ...]:
    """What is found in a program as it is written, or with what is inserted."""
    loaded = load_program(path, None, None, args, sync=sync)
    return find_races(loaded.tree, loaded.target)


def without(name: str, line: int, folder: Path) -> tuple[Path, str]:
    """Write a program without one line; return the file and the line."""
    lines = (PROGRAMS / f"{name}.pto").read_text().splitlines(keepends=True)
    path = folder / f"{Path(name).name}.pto"
    path.write_text("".join(lines[:line] + lines[line + 1 :]))
    return path, lines[line]


def names(finding: RaceFinding, line: str) -> bool:
    """Return whether a finding names the flag or barrier of a source line, or what else would put it right."""
    flag = FLAG.search(line)
    if flag is None:
        return "barrier" in finding.missing or "barriers" in finding.missing
    _, signaller, waiter, event = flag.groups()
    return f"{signaller} -> {waiter}" in finding.sentence and (
        f"id {event}" in finding.sentence or finding.kind is RaceKind.RACE
    )


@pytest.mark.parametrize("name", NAMES)
def test_intact_programs_have_no_races(name):
    assert findings(PROGRAMS / f"{name}.pto", scalars(name), "insert") == ()


def test_a_barrier_that_is_not_needed(tmp_path):
    assert findings(without(*NEEDLESS, tmp_path)[0], {}) == ()


@pytest.mark.parametrize(("name", "line"), CASES)
def test_without_any_one_flag_or_barrier_there_is_a_report_that_names_it(name, line, tmp_path):
    path, text = without(name, line, tmp_path)
    found = findings(path, scalars(name))
    assert any(names(finding, text) for finding in found), [finding.sentence for finding in found]


@pytest.mark.parametrize(("name", "line"), CASES[:: max(1, len(CASES) // 6)])
def test_the_command_line_refuses_it_or_reports_it(name, line, tmp_path, capsys):
    path, _ = without(name, line, tmp_path)
    args = [word for key, value in scalars(name).items() for word in ("--arg", f"{key}={value}")]
    args += ["--sync", "program"]
    assert main(["run", str(path), "--timing-only", *args]) == 1
    refused = capsys.readouterr().err
    assert refused.startswith("error: ")
    first = findings(path, scalars(name))[0]
    assert first.sentence.replace(f" ({first.spans[-1]})", "") in refused  # the place stands before the message
    stuck = first.kind is RaceKind.DEADLOCK
    assert main(["run", str(path), "--timing-only", "--races", "report", *args]) == 1
    told = capsys.readouterr()
    assert ("deadlock" in told.err) if stuck else (f"{first.kind}: " in told.out)
    assert main(["run", str(path), "--timing-only", "--races", "ignore", *args]) == (1 if stuck else 0)


WIDE, COLUMN = "!pto.tile_buf<vec, 16x64xf32>", "!pto.tile_buf<vec, 16x1xf32, blayout=col_major>"
PARTLY_WRITTEN = [
    *(f"%{name} = pto.alloc_tile : {WIDE}" for name in ("a", "h", "tmp")),
    f"%row = pto.alloc_tile : {COLUMN}",
    f"%s = pto.subview %a[%c4, %c0] sizes [8, 64] : {WIDE}",
    *moved("x", ("%s", "!pto.tile_buf<vec, 8x64xf32>"), "f32", 8, 64),
    f"pto.trowmax ins(%a, %tmp : {WIDE}, {WIDE}) outs(%row : {COLUMN})",
    f"pto.trowexpandadd ins(%a, %row : {WIDE}, {COLUMN}) outs(%h : {WIDE})",
    *moved("y", ("%h", WIDE), "f32", 16, 64, load=False),
]


@pytest.mark.parametrize("target", ["a2a3", "a5"])
def test_what_nothing_wrote_is_marked_in_the_outputs(target, tmp_path, capsys) -> None:
    """Rows 4 to 11 are loaded: they are right, and the others are marked; scratch tiles mark nothing."""
    path, out = tmp_path / "k.pto", tmp_path / "out"
    path.write_text(kernel("\n".join(PARTLY_WRITTEN), "%x: !pto.ptr<f32>, %y: !pto.ptr<f32>"))
    x = np.arange(8 * 64, dtype=np.float32).reshape(8, 64)
    found = run(path, target, inputs={"x": x})
    marks = np.ones((16, 64), bool)
    marks[4:12] = False
    np.testing.assert_array_equal(found.undefined["y"], marks)
    np.testing.assert_array_equal(found.outputs["y"][4:12], x + x.max(axis=1, keepdims=True))
    (warning,) = of_kind(found.warnings, WarningKind.UNDEFINED)[:1]
    assert "before anything writes them" in warning
    assert not found.races
    assert run(path, target, timing_only=True).cycles == found.cycles
    command = ["run", str(path), "--target", target, "--in", "x=zeros", "--out", str(out), "--json", "-"]
    assert main(command) == 0
    (first,) = json.loads(capsys.readouterr().out)["outputs_undefined"]
    assert (first["name"], first["elements"], first["first"]) == ("y", 8 * 64, [0, 0])
    np.testing.assert_array_equal(np.load(first["mask_file"]), marks)
    assert main(["check", str(path), "--target", target]) == 0
    assert "warning" in capsys.readouterr().out


SAMPLES = PROGRAMS / "micro"
SYNCHRONISES = re.compile(r"pto\.(set_flag|wait_flag|barrier|get_buf|rls_buf)\b")

HEAD = """module attributes {pto.target_arch = "a5"} {
  func.func @k(%x: !pto.ptr<f32, gm>, %y: !pto.ptr<f32, gm>) attributes {pto.kernel} {
    %o = arith.constant 0 : i64
    %p = arith.constant 65536 : i64
    %one = arith.constant 1 : i64
    %two = arith.constant 2 : i64
    %next = arith.constant 128 : i64
    %length = arith.constant 1024 : i64
    %c0 = arith.constant 0 : index
    %c1 = arith.constant 1 : index
    %n = arith.constant 4 : index
    %step = arith.constant 64 : index
    %tail = arith.constant 8 : i32
    %in = pto.castptr %o : i64 -> !pto.ptr<f32, ub>
    %beside = pto.castptr %next : i64 -> !pto.ptr<f32, ub>
    %out = pto.castptr %p : i64 -> !pto.ptr<f32, ub>
"""
END = """    pto.barrier #pto.pipe<PIPE_ALL>
    return
  }
}
"""
IN = "!pto.ptr<f32, gm>, !pto.ptr<f32, ub>, i64, i64, i64, i64, i64"
OUT = "!pto.ptr<f32, ub>, !pto.ptr<f32, gm>, i64, i64, i64, i64"
V = "!pto.vreg<64xf32>"


def load(to: str = "%in", length: str = "%length") -> str:
    return f"pto.mte_gm_ub %x, {to}, %o, {length} nburst(%one, {length}, {length}) : {IN}\n"


def store(of: str = "%out", length: str = "%length") -> str:
    return f"pto.mte_ub_gm {of}, %y, {length} nburst(%one, {length}, {length}) : {OUT}\n"


def flag(one: str, other: str, event: int = 0, word: str = "set") -> str:
    return f'pto.{word}_flag["PIPE_{one}", "PIPE_{other}", "EVENT_ID{event}"]\n'


def both(one: str, other: str, event: int = 0) -> str:
    return flag(one, other, event) + flag(one, other, event, "wait")


def hold(pipe: str, buffer: str, word: str = "get") -> str:
    return f'pto.{word}_buf "PIPE_{pipe}", {buffer}, %o : i64, i64\n'


SCOPE = f"""pto.vecscope {{
  %m = pto.pset_b32 "PAT_ALL" : !pto.mask<b32>
  scf.for %i = %c0 to %n step %c1 {{
    %at = arith.muli %i, %step : index
    %v = pto.vlds %in[%at] : !pto.ptr<f32, ub> -> {V}
    %w = pto.vabs %v, %m : {V}, !pto.mask<b32> -> {V}
    pto.vsts %w, %out[%at], %m : {V}, !pto.ptr<f32, ub>, !pto.mask<b32>
  }}
}}
"""
TAIL = f"""pto.vecscope {{
  %m, %rest = pto.plt_b32 %tail : i32 -> !pto.mask<b32>, i32
  %v = pto.vlds %in[%c0] : !pto.ptr<f32, ub> -> {V}
  %w = pto.vabs %v, %m : {V}, !pto.mask<b32> -> {V}
  pto.vsts %w, %in[%c0], %m : {V}, !pto.ptr<f32, ub>, !pto.mask<b32>
}}
"""
TRIPS = "scf.for %j = %c0 to %n step %c1 {\n{}}\n"

BUFFERS = TRIPS.replace("{}", "".join((
    hold("MTE2", "%one"), load(), hold("MTE2", "%one", "rls"),
    hold("V", "%one"), hold("V", "%two"), SCOPE, hold("V", "%one", "rls"), hold("V", "%two", "rls"),
    hold("MTE3", "%two"), store(), hold("MTE3", "%two", "rls"),
)))  # fmt: skip
"""Pipes that hand their buffers on, trip after trip."""

FLAGS = "".join((
    flag("V", "MTE2"), flag("MTE3", "V"),
    TRIPS.replace("{}", "".join((
        flag("V", "MTE2", 0, "wait"), load(), both("MTE2", "V"),
        flag("MTE3", "V", 0, "wait"), SCOPE, flag("V", "MTE2"), both("V", "MTE3"),
        store(), flag("MTE3", "V"),
    ))),
    flag("V", "MTE2", 0, "wait"), flag("MTE3", "V", 0, "wait"),
))  # fmt: skip
"""The same with flags."""


def written(body: str) -> str:
    return HEAD + body + END


def micro_findings(text: str, *, sync: str = "insert", races: str = REPORT) -> list[RaceKind]:
    """The faults in the order of a program, or the error of a wait that never ends."""
    args = {"scale": 2.0} if "%scale: f32" in text else {}
    loaded = load_tiles(Source("k.pto", Language.TILES, text), LoadRequest("a5", args=args, sync=sync))
    try:
        found = loaded.issue({}, RunOptions(values=False, races=races)).races
    except EngineError as error:
        assert "deadlock" in error.message
        return [RaceKind.DEADLOCK]
    assert found is not None
    return [each.kind for each in found]


SYNCHRONISED = {
    **{path.stem: path.read_text() for path in sorted(SAMPLES.glob("*.pto"))},
    **{name: texts()[name] for name in sorted(texts())[::24]},
    "buffers": written(BUFFERS),
    "flags": written(FLAGS),
}


@pytest.mark.parametrize("name", SYNCHRONISED)
def test_every_synchronising_line_that_is_left_out_is_missed(name: str) -> None:
    text = SYNCHRONISED[name]
    assert not micro_findings(text)
    lines = text.splitlines()
    found = {
        number: micro_findings("\n".join(lines[:number] + lines[number + 1 :]))
        for number, line in enumerate(lines)
        if SYNCHRONISES.search(line)
    }
    assert found
    assert all(found.values()), [lines[number] for number, kinds in found.items() if not kinds]


@pytest.mark.parametrize("name", sorted(texts()))
def test_own_programs_have_no_races(name: str) -> None:
    assert not micro_findings(texts()[name])


@pytest.mark.parametrize(
    ("body", "kinds"),
    [
        (load() + SCOPE + both("V", "MTE3") + store(), "read after write"),
        (load() + both("MTE2", "V") + SCOPE + load() + both("V", "MTE3") + store(), "write after read"),
        (load() + both("MTE2", "V") + SCOPE + load("%out") + both("V", "MTE3") + store(), "write after write"),
        (load() + both("MTE2", "V") + SCOPE + both("V", "MTE3", 1) + store() + SCOPE, "write after read"),
    ],
    ids=["scope reads too early", "load overwrites what is read", "load and scope write", "scope overwrites"],
)
def test_a_missing_pair_of_flags_is_a_race(body: str, kinds: str) -> None:
    loaded = load_tiles(Source("k.pto", Language.TILES, written(body)), LoadRequest("a5"))
    with pytest.raises(RaceError) as error:
        loaded.issue({}, RunOptions(values=False, races=STOP))
    assert "--races report" in error.value.legal
    assert kinds in error.value.message
    assert "vecscope" in error.value.message
    assert "set_flag" in error.value.message


def test_needless_flags_are_no_race() -> None:
    body = (
        load() + both("MTE2", "V") + both("MTE2", "V", 1) + SCOPE + both("V", "MTE3") + both("V", "MTE3", 2) + store()
    )
    assert not micro_findings(written(body))


def test_masked_lanes_meet_nothing() -> None:
    """Eight lanes of a register: what lies behind their 32 bytes is neither needed nor written."""
    length = "%next"
    body = (
        load("%in", length)
        + both("MTE2", "V")
        + load("%beside", length)
        + TAIL
        + both("V", "MTE3")
        + store("%in", length)
    )
    assert not micro_findings(written(body))
    whole = body.replace(
        "%m, %rest = pto.plt_b32 %tail : i32 -> !pto.mask<b32>, i32", '%m = pto.pset_b32 "PAT_ALL" : !pto.mask<b32>'
    )
    assert RaceKind.RACE in micro_findings(written(whole))


def test_a_program_without_flags_waits_unless_it_is_taken_at_its_word() -> None:
    text = written(load() + SCOPE + store())
    assert not micro_findings(text)
    assert micro_findings(text, sync="program") == [RaceKind.RACE, RaceKind.RACE]


def test_pipes_wait_for_buffers_as_for_flags() -> None:
    held, flagged = (
        load_tiles(Source("k.pto", Language.TILES, text), LoadRequest("a5"))
        for text in (written(BUFFERS), written(FLAGS))
    )
    trees = [each.issue({}, RunOptions(values=False)).loaded for each in (held, flagged)]
    for each in trees:
        fast, event = (simulate(each.tree, each.target, engine=engine) for engine in ("fast", "event"))
        assert (fast.total, fast.pipes, list(fast.operations)) == (event.total, event.pipes, list(event.operations))
        assert all(sum(pipe.causes.values()) == fast.total for pipe in fast.pipes.values())
    pipes = [simulate(each.tree, each.target).pipes for each in trees]
    for pipe in ("MTE2", "V", "MTE3"):
        assert pipes[0][pipe].busy == pipes[1][pipe].busy


@pytest.mark.parametrize("higher", [False, True])
@pytest.mark.parametrize("name", ["ppack", "punpack", "pbitcast"])
def test_how_far_a_mask_reaches_that_is_made_of_another(name: str, higher: bool) -> None:
    """Against bit by bit: docs/reference/micro.md 5.3."""
    for bits in range(257):
        given = [int(bit < bits) for bit in range(256)]
        half = given[128:] if higher else given[:128]
        match name:
            case "ppack":
                packed = given[::2]
                made = [0] * 128 + packed if higher else packed + [0] * 128
            case "punpack":
                made = [half[bit // 2] if bit % 2 == 0 else 0 for bit in range(256)]
            case _:
                made = given
        last = max((bit + 1 for bit, value in enumerate(made) if value), default=0)
        found = _moved(name, bits, higher=higher)
        assert last <= found <= last + 1  # the odd bit behind the last one is 0


@pytest.mark.parametrize("mode", [mode for mode in READS if "DINTLV" not in mode])
def test_a_load_touches_the_bytes_of_its_distribution(mode: str) -> None:
    bits = int(mode.rpartition("_B")[2]) if mode[-1].isdigit() and "_B" in mode else 8
    kind = {8: "ui8", 16: "ui16", 32: "ui32"}[bits]
    register = f"!pto.vreg<{2048 // bits}x{kind}>"
    function = parse(
        f"""func.func @f() attributes {{pto.kernel}} {{
%z = arith.constant 0 : i64
%o = arith.constant 0 : index
%p = pto.castptr %z : i64 -> !pto.ptr<{kind}, ub>
pto.vecscope {{
%r = pto.vlds %p[%o] {{dist = "{mode}"}} : !pto.ptr<{kind}, ub> -> {register}
}}
return
}}"""
    ).functions[0]
    (load,) = (each for each in micro_operations(function.body or ()) if each.mnemonic == "vlds")
    assert instruction_of(load, load_target("a5")).size == READS[mode]


def content(access: Access) -> set[int]:
    """Return the bytes of an access, counted one by one."""
    starts = [access.start]
    for count, distance in access.runs:
        starts = [start + k * distance for start in starts for k in range(count)]
    return {start + k for start in starts for k in range(run_length(access))}


rows = st.lists(st.tuples(st.integers(1, 4), st.integers(1, 20)), max_size=2)
touched = st.builds(lambda start, runs, size: strided("ub", start, runs, size, write=True),
                    st.integers(0, 60), rows, st.integers(1, 9))  # fmt: skip
moves = st.lists(st.tuples(st.integers(1, 5), st.integers(-30, 30)), max_size=2)


@settings(max_examples=400)
@given(touched, touched, st.integers(-40, 40), moves)
def test_common_bytes_are_those_of_the_sets(one, other, shift, moved):
    places = [shift + sum(offsets) for offsets in itertools.product(*([k * s for k in range(n)] for n, s in moved))]
    common = content(one) & {byte + place for byte in content(other) for place in places}
    found = common_bytes(one, other, shift, moved)
    assert (found is not None) == bool(common)
    assert found is None or set(range(*found)) <= common


@settings(max_examples=200)
@given(touched, st.integers(0, 6), st.integers(-25, 25))
def test_widening_is_the_union_of_all_trips(access, trips, step):
    everything = {byte + trip * step for trip in range(max(1, trips)) for byte in content(access)}
    assert content(widened(access, trips, step)) == everything


def test_rows_without_gaps_are_one_stretch():
    assert strided("ub", 32, ((4, 64),), 64, write=False) == Access("ub", 32, 32 + 4 * 64, False)
    assert strided("ub", 0, ((4, 64),), 32, write=False).runs == ((4, 64),)


def test_spaces_and_empty_accesses_have_nothing_in_common():
    full, other = Access("ub", 0, 64, True), Access(GlobalSpace.of("x"), 0, 64, True)
    assert common_bytes(full, other) is None
    assert common_bytes(full, Access("ub", 8, 8, True)) is None


def test_a_search_that_grows_too_long_gives_what_outermost_bytes_share():
    """Nested rows with distances that share no divisor: nothing in common, but that would take too long to find out."""
    odd = tuple((60, 2 * distance) for distance in (211, 223, 227, 229, 233, 239, 241, 251))
    one, other = strided("ub", 0, odd, 1, write=True), strided("ub", 1, odd, 1, write=True)
    assert common_bytes(one, other) == (1, one.end)
