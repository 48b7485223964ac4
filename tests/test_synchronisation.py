"""Inserted flags and barriers: the cases of docs/reference/pto.md section 5, and that nothing stays unordered."""

from __future__ import annotations

import os

import pytest
from counted_work import at_most
from hypothesis import given, settings
from hypothesis import strategies as st
from oracle_races import judge
from race_trees import Builder, access, programs, steps_of

from castsim.engines import simulate
from castsim.execution.dataflow.operations import Barrier, SetFlag, WaitFlag
from castsim.execution.tree import Block, GlobalSpace, Loop, Lowered, Tree, elements, instances
from castsim.synchronisation.flags import Place, insert
from castsim.synchronisation.races import RaceKind, find_races
from castsim.targets import load_target

A3, A5 = load_target("a2a3"), load_target("a5")
IDS = A3.pipes.event_ids


def listing(tree: Tree, target=A3) -> list[str]:
    """Return the texts of a synchronised program, loops indented."""
    made = insert(tree, target).tree
    found: list[str] = []

    def walk(node, depth: int) -> None:
        if isinstance(node, Lowered):
            found.append("  " * depth + made.instructions[node.instruction].text)
        else:
            block = node.body if isinstance(node, Loop) else node
            found.extend(["  " * depth + f"loop {node.trips}"] if isinstance(node, Loop) else [])
            for item in block.items:
                walk(item, depth + isinstance(node, Loop))

    walk(made.root, 0)
    return found


def load(builder: Builder, start: int, size: int = 64) -> Lowered:
    return builder.work("MTE2", access(start, size, True))


def cast(builder: Builder, src: int, dst: int, size: int = 64) -> Lowered:
    return builder.work("V", access(dst, size, True), access(src, size))


def store(builder: Builder, start: int, size: int = 64) -> Lowered:
    return builder.work("MTE3", access(start, size))


def scarce(target, event_ids: int):
    return target.model_copy(update={"pipes": target.pipes.model_copy(update={"event_ids": event_ids})})


def test_a_straight_line():
    builder = Builder()
    tree = builder.tree(load(builder, 0), cast(builder, 0, 100), store(builder, 100), interlocked=True)
    assert listing(tree) == [
        "work on MTE2",
        "set_flag MTE2 -> V id 0",
        "wait_flag MTE2 -> V id 0",
        "work on V",
        "set_flag V -> MTE3 id 0",
        "wait_flag V -> MTE3 id 0",
        "work on MTE3",
        "barrier ALL",
    ]


def test_a_loop_in_place_gets_what_was_observed():
    """One buffer for load, vector instruction and store: V -> MTE2 and MTE3 -> MTE2 around the loop."""
    builder = Builder()
    block = Block((builder.scalar(), load(builder, 0), cast(builder, 0, 0), store(builder, 0)))
    tree = builder.tree(Loop(8, block, steps_of(block)), interlocked=True)
    assert listing(tree) == [
        "set_flag V -> MTE2 id 0",
        "set_flag MTE3 -> MTE2 id 0",
        "loop 8",
        "  wait_flag V -> MTE2 id 0",
        "  wait_flag MTE3 -> MTE2 id 0",
        "  loop",
        "  work on MTE2",
        "  set_flag MTE2 -> V id 0",
        "  wait_flag MTE2 -> V id 0",
        "  work on V",
        "  set_flag V -> MTE3 id 0",
        "  set_flag V -> MTE2 id 0",
        "  wait_flag V -> MTE3 id 0",
        "  work on MTE3",
        "  set_flag MTE3 -> MTE2 id 0",
        "wait_flag V -> MTE2 id 0",
        "wait_flag MTE3 -> MTE2 id 0",
        "barrier ALL",
    ]


def test_two_buffers_free_each_other_as_in_the_hand_written_specimen():
    """Specimen 11.2: source and destination apart, so V -> MTE2 and MTE3 -> V around the loop."""
    builder = Builder()
    block = Block((builder.scalar(), load(builder, 0), cast(builder, 0, 100), store(builder, 100)))
    found = listing(builder.tree(Loop(8, block, steps_of(block)), interlocked=True))
    assert found[:2] == ["set_flag V -> MTE2 id 0", "set_flag MTE3 -> V id 0"]
    assert found[-3:] == ["wait_flag V -> MTE2 id 0", "wait_flag MTE3 -> V id 0", "barrier ALL"]
    assert found[3:5] == ["  wait_flag V -> MTE2 id 0", "  wait_flag MTE3 -> V id 0"]


def test_a_loop_of_one_trip_needs_nothing_around_it():
    builder = Builder()
    block = Block((load(builder, 0), store(builder, 0)))
    assert listing(builder.tree(Loop(1, block, steps_of(block)), interlocked=True))[0] == "loop 1"


def test_addresses_that_move_apart_need_nothing_around_the_loop():
    builder = Builder()
    block = Block((load(builder, 0), store(builder, 0)))
    apart, touching = (
        listing(builder.tree(Loop(5, block, steps_of(block, (step,), (step,))), interlocked=True)) for step in (64, 63)
    )
    assert apart[0] == "loop 5"
    assert touching[0] == "set_flag MTE3 -> MTE2 id 0"


@pytest.mark.parametrize(("target", "barriers"), [(A3, 3), (A5, 0)])
def test_a_barrier_between_each_dependent_pair_of_vector_instructions(target, barriers):
    """As observed: each of a chain of four depends on the one before; on a5 the tool inserts none."""
    builder = Builder()
    chain = [cast(builder, 64 * k, 64 * k + 64) for k in range(4)]
    free = cast(builder, 1000, 2000)
    assert listing(builder.tree(*chain, free, interlocked=True), target).count("barrier V") == barriers


def test_a_transfer_between_two_buffers_of_the_same_argument():
    builder = Builder()
    out = builder.work("MTE3", access(0, 64), access(0, 64, True, space=GlobalSpace.of("x")))
    back = builder.work("MTE2", access(100, 64, True), access(32, 64, space=GlobalSpace.of("x")))
    other = builder.work("MTE2", access(200, 64, True), access(0, 64, space=GlobalSpace.of("y")))
    found = listing(builder.tree(out, other, back, interlocked=True))
    assert found == [
        "work on MTE3",
        "set_flag MTE3 -> MTE2 id 0",
        "work on MTE2",
        "wait_flag MTE3 -> MTE2 id 0",
        "work on MTE2",
        "barrier ALL",
    ]


# ------------------------------------------------------------------------------------------------------- event ids


def batch(count: int) -> Tree:
    """All loads first, then all casts: as many flags are needed at once."""
    builder = Builder()
    loads = [load(builder, 64 * k) for k in range(count)]
    casts = [cast(builder, 64 * k, 4096 + 64 * k) for k in range(count)]
    return builder.tree(*loads, *casts, interlocked=True)


def flags(tree: Tree) -> list[object]:
    return [o for o in elements(tree.root) if isinstance(o, SetFlag | WaitFlag)]


def test_ids_are_taken_from_the_lowest_and_used_again():
    assert {o.event for o in flags(insert(batch(IDS), A3).tree)} == set(range(IDS))
    builder = Builder()
    tree = builder.tree(*(w for k in range(20) for w in (load(builder, 64 * k), cast(builder, 64 * k, 4096 + 64 * k))),
                        interlocked=True)  # fmt: skip
    assert {o.event for o in flags(insert(tree, A3).tree)} == {0}


def test_flags_join_when_ids_run_out():
    tree = insert(batch(IDS + 3), A3).tree
    assert len([o for o in flags(tree) if isinstance(o, SetFlag)]) == IDS
    assert judge(tree, ()).clean
    # The last three loads and the one before them share a flag, set behind the last of all.
    texts = [tree.instructions[item.instruction].text for item in tree.root.items if isinstance(item, Lowered)]
    assert texts[: texts.index(f"set_flag MTE2 -> V id {IDS - 1}")].count("work on MTE2") == IDS + 3


def test_a_barrier_stands_for_a_flag_without_an_id():
    """With one id, the flag around the loop holds it for the whole loop."""
    builder = Builder()
    inner = Block((load(builder, 0), store(builder, 0), load(builder, 64), store(builder, 64)))
    outer = Block((builder.work("MTE3", access(200, 8)), Loop(3, inner, steps_of(inner)),
                   builder.work("MTE2", access(200, 8, True))))  # fmt: skip
    tree = insert(builder.tree(outer, interlocked=True), scarce(A3, 1)).tree
    assert judge(tree, ("read after write", "write after write")).clean
    assert sum(isinstance(o, Barrier) and o.pipe == "ALL" for o in elements(tree.root)) > 1


# ----------------------------------------------------------------------------------------------------------- the tree


def test_loops_stay_loops_and_addresses_keep_moving():
    builder = Builder()
    inner = Block((load(builder, 0), cast(builder, 0, 100)))
    middle = Loop(3, inner, steps_of(inner, (7,), (9, 7)))
    outer = Block((middle, store(builder, 100)))
    tree = builder.tree(Loop(10**6, outer, steps_of(outer, (1,), (2, 3), (4,))), interlocked=True)
    with at_most(100_000):
        made = insert(tree, A3)
    assert len(made.tree.instructions) < 40

    def moved(program: Tree) -> list[object]:
        """Return the work of the first four trips with the addresses to which loops move it."""
        loop = next(item for item in program.root.items if isinstance(item, Loop))
        first = Tree(Block((Loop(4, loop.body, loop.steps),)), program.instructions, program.interlocked)
        return [
            (lowered.instruction, [access.shifted(d) for access, d in zip(lowered.accesses, deltas[0], strict=True)])
            for lowered, deltas in instances(first)
            if lowered.accesses and deltas is not None
        ]

    assert len(moved(tree)) == 3 * (3 * 2 + 1) + 2 * 2
    assert moved(made.tree) == moved(tree)


def test_notes_say_where_and_how_often():
    builder = Builder()
    block = Block((builder.scalar(), load(builder, 0), store(builder, 0)))
    made = insert(builder.tree(Loop(6, block, steps_of(block)), interlocked=True), A3)
    notes = [(made.tree.instructions[n.instruction].text, n.place, n.span.line, n.times) for n in made.notes]
    assert notes == [
        ("set_flag MTE3 -> MTE2 id 0", Place.BEFORE, 1, 1),
        ("wait_flag MTE3 -> MTE2 id 0", Place.TOP, 1, 6),
        ("set_flag MTE2 -> MTE3 id 0", Place.AFTER, 2, 6),
        ("wait_flag MTE2 -> MTE3 id 0", Place.BEFORE, 3, 6),
        ("set_flag MTE3 -> MTE2 id 0", Place.AFTER, 3, 6),
        ("wait_flag MTE3 -> MTE2 id 0", Place.AFTER_LOOP, 1, 1),
        ("barrier ALL", Place.AT_END, 3, 1),
    ]


# ----------------------------------------------------------------------------------------------------- nothing is left


@settings(max_examples=120 if "CASTSIM_THOROUGH" in os.environ else 40, deadline=None)
@given(programs(flags=False), st.sampled_from([A3, A5, scarce(A3, 1), scarce(A5, 2)]))
def test_inserted_synchronisation_leaves_no_race_and_no_deadlock(tree, target):
    made = insert(tree, target).tree
    required = tuple(str(hazard) for hazard in target.synchronisation.required_barriers)
    assert judge(made, required).clean
    assert [f for f in find_races(made, target) if f.kind is not RaceKind.UNWRITTEN] == []


@settings(max_examples=25, deadline=None)
@given(programs(flags=False, depth=1, most_trips=3))
def test_the_engine_runs_it_to_the_end_and_never_before_the_bytes_are_there(tree):
    made = insert(tree, A3).tree
    assert simulate(made, A3).total >= simulate(made, A3, record_operations=False).total > 0
