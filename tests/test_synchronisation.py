"""Inserted flags and barriers: that nothing stays unordered, event ids, and what does not depend on the run."""

from __future__ import annotations

import pytest
from oracle_races import judge
from sync_programs import A3, A5, inserted, kernel, listing
from sync_random import LARGE, SMALL, Maker

from castsim import run
from castsim.engines import simulate
from castsim.execution.interpreter.interpreter import execute
from castsim.execution.synchronisation.flags import insert, noted, plan
from castsim.execution.synchronisation.race_detector import find_races
from castsim.execution.synchronisation.race_findings import RaceKind
from castsim.execution.synchronisation.removing import ElementListing, OperandBytes
from castsim.execution.tree import Tree, elements, instances
from castsim.isa.pto import program as pto
from castsim.isa.pto.pto_parser import parse
from castsim.machines.mechanisms import lowerer_of
from castsim.targets.options import with_options

RUNS = [(0, 0, 0, 0), (1, 2, 1, 0), (2, 1, 0, 1), (2, 3, 1, 1), (3, 2, 0, 0), (0, 3, 1, 1)]
"""Trips of the loops and truth of the conditions."""
UNSEEN = 59
"""A seed whose program has a race by the literal rule."""
HOLE = 353
"""A seed whose program has a race if what a branch or an empty loop has seen counts without it."""


def scarce(target, event_ids: int):
    return target.model_copy(update={"pipes": target.pipes.model_copy(update={"event_ids": event_ids})})


def trees(text: str, target, runs=RUNS) -> list[Tree]:
    """The trees of one synchronised program, run with various arguments."""
    parsed = parse(text, "k.pto")
    made = insert(parsed.functions[0], lowerer_of(target), target)
    return [
        execute(parsed, made.function, lowerer_of(target), dict(zip("nmcd", given, strict=True))).tree for given in runs
    ]


# ----------------------------------------------------------------------------------------------------- nothing is left
@pytest.mark.parametrize("seed", [*range(60), HOLE])
def test_nothing_is_unordered_whatever_path_is_taken(seed: int) -> None:
    """Neither for the judge, which unrolls everything, nor for the race detector; no flag is left over."""
    target = (A3, A5, A3, scarce(A3, 2), scarce(A3, 1))[seed % 5] if seed != HOLE else A3
    text = Maker(seed, LARGE if seed % 4 == 1 else SMALL).text()
    facts = target.synchronisation
    for tree in trees(text, target):
        verdict = judge(tree, tuple(map(str, facts.required_barriers)), facts.unordered_bytes or 10**9)
        assert verdict.clean, verdict
        assert [f for f in find_races(tree, target) if f.kind is not RaceKind.UNWRITTEN] == []


def test_the_literal_rule_is_an_option() -> None:
    """It keeps more as seen than holds on every path: one program has a race with it, and none without it."""
    literal = with_options(A3, {"flags_past_regions": "literal"})
    text, facts = Maker(UNSEEN, SMALL).text(), A3.synchronisation
    verdicts = [
        judge(tree, tuple(map(str, facts.required_barriers)), facts.unordered_bytes or 10**9)
        for tree in trees(text, literal)
    ]
    assert not all(verdict.clean for verdict in verdicts)
    same = [
        [[str(each.text) for each in insert(parse(text, "k.pto").functions[0], lowerer_of(chip), chip).inserts]
         for chip in (A3, literal)]
        for text in map(kernel, EXAMPLES)
    ]  # fmt: skip
    assert all(one == other for one, other in same)


EXAMPLES = (
    "tload p x\ntcvt x y\ntstore y h",
    "for 0 {\ntload p x\ntcvt x y\ntstore y h\n}",
    "tload p w\nfor 0 {\ntload q x\ntmul x w z\ntstore z s\n}",
)
"""Of the worked examples; the rule decides nothing about them."""


@pytest.mark.parametrize("seed", range(100, 112))
def test_the_engine_runs_it_to_the_end(seed: int) -> None:
    for tree in trees(Maker(seed, SMALL).text(), A3, RUNS[3:5]):
        timing = simulate(tree, A3, engine="event")
        assert timing.total == simulate(tree, A3, engine="fast").total > 0


# ------------------------------------------------------------------------------------------------- no value takes part
@pytest.mark.parametrize("seed", range(40, 50))
def test_flags_are_the_same_whatever_the_arguments(seed: int) -> None:
    """The program is synchronised before any argument is known: of all runs only the counts differ."""
    text = Maker(seed, SMALL).text()
    parsed = parse(text, "k.pto")
    found = []
    for given in RUNS:
        made = insert(parsed.functions[0], lowerer_of(A3), A3)
        ran = execute(parsed, made.function, lowerer_of(A3), dict(zip("nmcd", given, strict=True)))
        notes = noted(made.inserts, ran).notes
        found.append([(note.text, note.place, note.span) for note in notes])
        # What stands at the ends of the function is executed once, whatever the loops do.
        assert notes[-1].text == "pto.barrier <PIPE_ALL>" and notes[-1].times == 1
        counted = sum(note.times for note in notes)
        assert counted == sum(ran.tree.instructions[n].inserted for n in _executed(ran.tree))
    assert all(each == found[0] for each in found)


def _executed(tree: Tree) -> list[int]:
    return [lowered.instruction for lowered, _ in instances(tree)]


def test_an_empty_loop_still_sets_and_consumes_its_flags() -> None:
    text = kernel("for 0 {\ntload p x\ntcvt x y\ntstore y h\n}")
    parsed = parse(text, "k.pto")
    made = insert(parsed.functions[0], lowerer_of(A3), A3)
    ran = execute(parsed, made.function, lowerer_of(A3), {"n": 0, "c": 0})
    assert [note.times for note in noted(made.inserts, ran).notes] == [1, 1, *[0] * 8, 1, 1, 1]


# ------------------------------------------------------------------------------------------------------------ the rules
def test_a_program_of_one_operation_gets_only_the_end() -> None:
    assert listing("tload p x") == ["tload", "+ barrier ALL"]
    assert inserted("func.func @k() attributes {pto.entry} {\nreturn\n}\n").inserts == ()


def test_the_end_may_be_a_flag() -> None:
    text = kernel("tload p x\ntcvt x y\ntstore y h").replace(
        "{pto.entry}", '{pto.entry, pto.auto_sync_tail_hint = "mte3-to-s-event0"}'
    )
    assert [each.text for each in inserted(text).inserts][-2:] == [
        "pto.set_flag[<PIPE_MTE3>, <PIPE_S>, <EVENT_ID0>]",
        "pto.wait_flag[<PIPE_MTE3>, <PIPE_S>, <EVENT_ID0>]",
    ]


def test_what_several_trips_store_of_one_argument_stays_in_order() -> None:
    """Accesses through one argument always overlap: a store after itself, without anything in between."""
    assert listing("for 0 {\ntstore x q\n}") == ["for", "+ barrier MTE3", "tstore", "end", "+ barrier ALL"]


def test_in_place_chains_of_dense_tiles_need_no_barrier_others_do() -> None:
    assert "+ barrier V" not in listing("tadds x x\ntadds x x\ntmuls x z")
    # x is written again after it was read: not what the first wrote and the second reads.
    assert "+ barrier V" in listing("tadds x z\ntmuls z x")
    assert "+ barrier V" in listing("texpands x\ntexpands x")


# ------------------------------------------------------------------------------------------------------------ event ids
def _loads(count: int) -> ElementListing:
    """All loads first, then all vector operations: as many flags are needed at once."""
    found = ElementListing()
    tiles = [OperandBytes("vec", n, ((n * 64, n * 64 + 64),)) for n in range(2 * count)]
    for each in tiles[:count]:
        found.operation("MTE2", [OperandBytes("gm", "p")], [each])
    for each, other in zip(reversed(tiles[:count]), tiles[count:], strict=True):
        found.operation("V", [each], [other])
    return found


def _ids(found: ElementListing, target=A3) -> list[int]:
    return [each.event for orders in plan(found, target).after for each in orders if isinstance(each, pto.SetFlag)]


def test_an_id_that_was_never_used_is_preferred() -> None:
    found = ElementListing()
    for number in range(10):
        tile = OperandBytes("vec", number, ((number * 64, number * 64 + 64),))
        found.operation("MTE2", [OperandBytes("gm", "p")], [tile])
        found.operation("V", [tile], [OperandBytes("vec", 100, ((10_000, 10_064),))])
    assert _ids(found) == [0, 1, 2, 3, 4, 5, 6, 7, 0, 0]


def test_seven_ids_between_scalar_and_vector() -> None:
    found = ElementListing()
    for number in range(8):
        tile = OperandBytes("vec", number, ((number * 64, number * 64 + 64),))
        found.operation("S", [], [tile])
        found.operation("V", [tile], [OperandBytes("vec", 100, ((10_000, 10_064),))])
    assert _ids(found) == [0, 1, 2, 3, 4, 5, 6, 0]


def test_a_load_that_the_pipe_orders_needs_no_flag() -> None:
    """The last load is waited for first, so all others are there too: the pipe is in order."""
    assert _ids(_loads(12)) == [0]


def test_a_barrier_stands_for_a_flag_without_an_id() -> None:
    """Flags of three loops in each other, one id: those that find none are drained."""
    body = "tload p w\nfor 0 {\ntload q x\ntmul x w z\ntstore z s\n}"
    lines = listing(f"for 0 {{\n{body}\n}}", scarce(A3, 1))
    assert lines.count("+ barrier ALL") > 1
    assert not [line for line in lines if "#" in line and not line.endswith("#0")]


def test_instructions_of_the_tree_are_marked() -> None:
    tree = trees(Maker(3, SMALL).text(), A3, RUNS[3:4])[0]
    assert all(bool(each.spelling) == each.inserted for each in tree.instructions)
    assert len(list(elements(tree.root))) > 0


# ------------------------------------------------------------------------------------------------------ the matrix unit
MAT, LEFT, RIGHT, ACC = (f"!pto.tile_buf<{where}, 16x16xf32>" for where in ("mat", "left", "right", "acc"))
PART = "!pto.partition_tensor_view<16x16xf32>"
PRODUCT = f"""func.func @k(%p: !pto.ptr<f32>, %q: !pto.ptr<f32>) attributes {{pto.entry}} {{
%c0 = arith.constant 0 : index
%c1 = arith.constant 1 : index
%c16 = arith.constant 16 : index
%v = pto.make_tensor_view %p, shape = [%c16, %c16], strides = [%c16, %c1] : !pto.tensor_view<16x16xf32>
%w = pto.make_tensor_view %q, shape = [%c16, %c16], strides = [%c16, %c1] : !pto.tensor_view<16x16xf32>
%x = pto.partition_view %v, offsets = [%c0, %c0], sizes = [%c16, %c16] : !pto.tensor_view<16x16xf32> -> {PART}
%y = pto.partition_view %w, offsets = [%c0, %c0], sizes = [%c16, %c16] : !pto.tensor_view<16x16xf32> -> {PART}
%m = pto.alloc_tile : {MAT}
%l = pto.alloc_tile : {LEFT}
%r = pto.alloc_tile : {RIGHT}
%a = pto.alloc_tile : {ACC}
pto.tload ins(%x : {PART}) outs(%m : {MAT})
pto.tmov ins(%m : {MAT}) outs(%l : {LEFT})
pto.tmov ins(%m : {MAT}) outs(%r : {RIGHT})
pto.tmatmul ins(%l, %r : {LEFT}, {RIGHT}) outs(%a : {ACC})
pto.tstore ins(%a : {ACC}) outs(%y : {PART})
return
}}
"""


@pytest.mark.parametrize("target", [A3, A5], ids=["a2a3", "a5"])
def test_operations_of_the_matrix_unit_take_part_by_their_pipes(target, tmp_path) -> None:
    """MTE2 loads, MTE1 moves to the operands, M multiplies, FIX stores out of the accumulator."""
    assert [each.text for each in inserted(PRODUCT, target).inserts] == [
        *(
            f"pto.{name}[<PIPE_{one}>, <PIPE_{other}>, <EVENT_ID0>]"
            for one, other in (("MTE2", "MTE1"), ("MTE1", "M"), ("M", "FIX"))
            for name in ("set_flag", "wait_flag")
        ),
        "pto.barrier <PIPE_ALL>",
    ]
    path = tmp_path / "k.pto"
    path.write_text(PRODUCT)
    cycles = {engine: run(path, target.name, timing_only=True, engine=engine).cycles for engine in ("fast", "event")}
    assert cycles["fast"] == cycles["event"] > 0
