"""Races in small programs: who, which bytes, what is missing; the first cases are worked out by hand."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from kit.counted_work import at_most
from kit.race_trees import Builder, access, programs, steps_of
from oracle_races import judge

from castsim.execution.pipe_operations import ControlWrite
from castsim.execution.tree import Block, GlobalSpace, InstructionRole, Loop, Tree
from castsim.isa.errors import EngineError, RaceError
from castsim.running.synchronisation.race_detector import find_races
from castsim.running.synchronisation.race_findings import RaceFinding, RaceKind, RaceRegion, refusal
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
