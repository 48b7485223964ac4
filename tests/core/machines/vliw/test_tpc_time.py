"""Cycles of TPC programs by the event engine and the fast one: bundles, memory, jumps, options, skipped trips."""

from __future__ import annotations

import os
from pathlib import Path
from random import Random

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from kit.bundle_trees import NOWHERE, Mix, by_events, fast, random_bundle, random_row, random_target, random_tree
from kit.engine_outcome import outcome, plain
from kit.engine_trees import Recorder, causes
from kit.paths import PROGRAMS
from kit.tpc_machine import END, chip, nops, ran, timed
from makers import tpc_expected_reports as expected_reports

from castsim import run
from castsim.engines import simulate
from castsim.execution.timing import Cause
from castsim.execution.tree import Block, Instruction, Loop, Lowered, Tree, elements, instances
from castsim.isa.errors import EngineError, IllegalError, ReadError
from castsim.machines.vliw.fast_engine import simulate_bundles
from castsim.machines.vliw.stage_latency import SLOTS
from castsim.running.loaded import RunOptions
from castsim.running.program_loading import load
from castsim.targets.description import with_options
from castsim.targets.loader import load_target, target_names
from castsim.targets.vliw import VliwTarget

NOP = "nop; nop; nop; nop\n"
TENSORS = "// castsim: tensor 0 x in f32 [64, 64]\n// castsim: tensor 1 y out f32 [64, 64]\n"
LOAD = "ld_tnsr V{0}, 0x0, I0; nop; nop; nop\n"
STORE = "nop; nop; nop; st_tnsr 0x1, I1, V{0}\n"
RULE = 4
"""Bundles from a load to a reader of its result, and cycles per tensor access: docs/reference/tpc.md sections 6.1
and 6.3.
"""


@pytest.mark.parametrize(
    ("line", "effect"),
    [  # commit stage of the result and one (docs/reference/tpc.md section 6.1): visible to whoever reads earliest
        ("nop; nop; convert.f32 target_type=int32 V0, V1; nop", 4),
        ("nop; nop; mul.f32 V0, V1, V2; nop", 6),
        ("nop; nop; pack.i16 source_group=0 element_stride=2 V0, V1; nop", 5),
        ("nop; nop; cmp_grt.f32 VP1, V1, V2; nop", 3),
        ("gen_addr AD1, 0x0, I0; nop; nop; nop", 7),
        ("nop; add.i32 S1, S2, 0x1; nop; nop", 4),
        ("set_indx I0, b00001, 0x1; nop; nop; nop", 2),
    ],
)
def test_the_last_effect_ends_the_program(line: str, effect: int) -> None:
    target = chip("gaudi")
    assert timed(TENSORS + line + "\n", target).total == effect
    timing = timed(TENSORS + line + "\nnop; halt; halt; nop\n", target)
    assert timing.total == effect
    assert causes(timing, "SPU").get("drain", 0) == effect - 2


def test_operations_are_instructions_in_their_slots() -> None:
    text = "ld_l_v V0, 0x0; add.i32 S1, S2, 0x1; convert.f32 target_type=int32 V1, V2; st_l_v 0x0, V3\n" + NOP + END
    timing = timed(text, chip("gaudi"))
    shown = [(op.index, op.execution, op.pipe, op.name, op.start) for op in timing.operations]
    assert shown == [
        (0, 0, "LOAD", "ld_l_v", 0), (1, 0, "SPU", "add.i32", 0), (2, 0, "VPU", "convert.f32", 0),
        (3, 0, "STORE", "st_l_v", 0), (4, 5, "SPU", "halt", 5), (5, 5, "VPU", "halt", 5),
    ]  # fmt: skip


@pytest.mark.parametrize("count", [2, 3, 5, 9, 20])
def test_loads_in_a_row_run_at_the_sustained_rate(count: int) -> None:
    """The first crosses in cycles 0 to 4, each further one in the next four; the last is needed 4 bundles later."""
    loads = "".join(LOAD.format(k) for k in range(count))
    timing = timed(TENSORS + loads + nops(RULE - 1) + "nop; halt; halt; nop\n", chip("gaudi2"))
    assert timing.total == count * RULE + 1  # HALT goes when the last datum is there
    assert causes(timing, "GLOBAL")["busy"] == count * RULE
    assert causes(timing, "VPU")["memory bandwidth"] == timing.total - (count + RULE)


def test_a_full_queue_holds_the_core() -> None:
    stores = "".join(STORE.format(0) for _ in range(6))
    for entries, issued in ((1, [0, 4, 8, 12, 16, 20]), (4, [0, 1, 2, 3, 4, 8]), (8, [0, 1, 2, 3, 4, 5])):
        timing = timed(TENSORS + stores, chip("gaudi2", global_queue_entries=entries))
        assert [e.start for e in timing.executions] == issued, entries
        assert timing.total == max(6 * RULE, issued[-1] + 7)  # a store has its data in stage e6


def test_two_accesses_of_one_bundle_need_two_places() -> None:
    both = "ld_tnsr V1, 0x0, I0; nop; nop; st_tnsr 0x1, I1, V0\n"
    shared = timed(TENSORS + both * 2, chip("gaudi2", global_queue_entries=1))
    assert [e.start for e in shared.executions] == [0, 2 * RULE]  # more than there are places: alone, but not refused
    separate = timed(TENSORS + both * 2, chip("gaudi2", global_ports="separate"))
    assert list(separate.pipes) == [*SLOTS, "GLOBAL LOAD", "GLOBAL STORE"]
    assert separate.total < timed(TENSORS + both * 2, chip("gaudi2")).total
    assert causes(separate, "GLOBAL LOAD")["busy"] == causes(separate, "GLOBAL STORE")["busy"] == 2 * RULE


@pytest.mark.parametrize("latency", [0, 50, 400])
def test_latency_holds_the_core_when_the_data_is_due(latency: int) -> None:
    text = TENSORS + LOAD.format(0) + nops(RULE) + "nop; halt; halt; nop\n"
    timing = timed(text, chip("greco", global_latency_cycles=latency))
    stall = max(latency - RULE, 0)
    assert timing.executions[RULE].start == RULE + stall
    assert causes(timing, "SPU").get("memory latency", 0) == stall


def test_one_scalar_load_of_global_memory_waits_for_another() -> None:
    """Gaudi2: 120 such loads and their use take 3,791 cycles on silicon, about 30 each, whatever stands between."""
    target = chip("gaudi2")
    latency = target.element_loads.latency_cycles
    assert 26 <= latency <= 3791 / 120
    text = TENSORS + "// castsim: reg AD1 = 0x100000000\n" + "ld_g S1, AD1; nop; nop; nop\n" * 3 + nops(RULE)
    timing = timed(text, target)
    assert timing.executions[2 + RULE].start == 3 * latency
    assert causes(timing, "LOAD")["memory latency"] == 3 * latency - (2 + RULE)
    assert "element_loads" in timing.facts


@pytest.mark.parametrize("count", [1, 7, 20])
def test_cores_share_the_rate_of_global_memory(count: int) -> None:
    loads = "".join(LOAD.format(k) for k in range(count))
    timing = timed(TENSORS + loads + nops(RULE), with_options(load_target("gaudi2"), {"cores": 24}))
    assert abs(causes(timing, "GLOBAL")["busy"] - count * 24 * 256 / (2.45e12 / 1.79e9)) <= 1
    assert {"shared_memory", "cores"} <= timing.facts


slots = st.tuples(
    st.sampled_from(["nop", "ld_tnsr V1, 0x0, I0", "ld_l_v V2, 0x0", "mov V3, V4"]),
    st.sampled_from(["nop", "add.i32 S1, S2, 0x1", "mov SP1, S2"]),
    st.sampled_from(["nop", "convert.u8 all_lanes target_type=fp32 A8, V0", "mul.f32 V5, V6, V7", "mov V12, V13"]),
    st.sampled_from(["nop", "st_tnsr 0x1, I1, V1", "st_l_v 0x0, V2", "ld_tnsr V20, 0x0, I2"]),
)
programs = st.lists(slots, min_size=1, max_size=14).map(lambda rows: "".join("; ".join(row) + "\n" for row in rows))
targets = st.builds(
    chip,
    st.just("gaudi2"),
    global_latency_cycles=st.sampled_from([0, 50]),
    global_queue_entries=st.sampled_from([1, 2, 4]),
    global_ports=st.sampled_from(["shared", "separate"]),
    all_lanes_cycles=st.sampled_from(["one", "per_register"]),
)


@settings(max_examples=120, deadline=None)
@given(programs, st.integers(0, 3), targets)
def test_every_cycle_has_one_cause(body: str, trips: int, target: VliwTarget) -> None:
    text = f"{TENSORS}nop; loop 0, {trips}, 1, <, End; nop; nop\n{NOP}{body}End:\n{body}"
    tree = ran(text, target, values=False).tree
    recorder = Recorder()
    timing = simulate(tree, target, recorder, engine="event")
    for pipe, account in timing.pipes.items():
        assert sum(account.causes.values()) == timing.total
        position = 0
        for start, end, _, _ in recorder.segments.get(pipe, []):
            assert start == position < end
            position = end
        assert position == timing.total
    stalls = [
        {c: n for c, n in timing.pipes[slot].causes.items() if c not in (Cause.BUSY, Cause.EMPTY)} for slot in SLOTS
    ]
    assert all(stall == stalls[0] for stall in stalls)  # the slots go in step
    assert timing.total == max(execution.end for execution in timing.executions)
    starts = [execution.start for execution in timing.executions]
    assert starts == sorted(set(starts))
    assert [op.index for op in timing.operations] == list(range(len(timing.operations)))
    assert simulate(tree, target) == timing
    brief = simulate(tree, target, record_operations=False)
    assert (brief.total, brief.pipes, brief.executions, brief.operations) == (
        timing.total, timing.pipes, timing.executions, (),
    )  # fmt: skip


@settings(max_examples=40, deadline=None)
@given(programs, st.integers(1, 6), targets)
def test_rolled_and_unrolled_loops_take_the_same_time(body: str, trips: int, target: VliwTarget) -> None:
    tree = ran(f"{TENSORS}nop; loop 0, {trips}, 1, <, End; nop; nop\n{NOP}{body}End:\n", target, values=False).tree
    flat = Tree(Block(tuple(lowered for lowered, _ in instances(tree))), tree.instructions, interlocked=False)
    assert simulate(flat, target) == simulate(tree, target)
    assert trips == 1 or any(isinstance(item, Loop) for item in tree.root.items)


def test_progress_is_told() -> None:
    recorder = Recorder()
    text = f"nop; loop 0, 1000, 1, <, End; nop; nop\n{nops(8)}End:\n"
    target = chip("goya")
    timing = simulate(ran(text, target).tree, target, recorder)
    assert recorder.progressed[-1][0] == timing.total
    assert len(recorder.progressed) > 1


THOROUGH = bool(os.environ.get("CASTSIM_THOROUGH"))
SEEDS = 4000 if THOROUGH else 250
LIMIT = 20_000
"""Cycles after which both engines must give up, with the same words: the event engine is slow."""


def chips() -> list[VliwTarget]:
    found = [load_target(name) for name in target_names()]
    return [target for target in found if isinstance(target, VliwTarget)]


@pytest.mark.parametrize("chip", chips(), ids=lambda chip: chip.name)
@pytest.mark.parametrize("depth", [0, 1, 2, 3])
def test_random_programs_take_the_same_cycles_for_the_same_reasons(chip: VliwTarget, depth: int) -> None:
    random = Random(f"{chip.name} {depth}")
    for number in range(SEEDS // 4):
        mix = Mix(
            kinds=random.randint(1, 6),
            items=random.choice((2, 5, 9)),
            depth=depth,
            trips=random.choice((2, 7, 30)),
            memory=random.choice((0, 0.3, 0.8)),
        )
        tree, target = random_tree(random, mix), random_target(random, chip)
        expected = outcome(tree, target, LIMIT, run=by_events)
        assert outcome(tree, target, LIMIT, run=fast) == expected, number
        assert outcome(tree, target, LIMIT, skip=False, run=fast) == expected, number


@pytest.mark.parametrize("chip", chips(), ids=lambda chip: chip.name)
def test_bundles_that_repeat_in_a_row_take_the_same_cycles(chip: VliwTarget) -> None:
    random = Random(chip.name)
    for number in range(SEEDS // 25):
        mix = Mix(kinds=random.randint(1, 4), items=3, trips=3, memory=random.choice((0, 0.3, 0.8)))
        tree, target = random_row(random, mix), random_target(random, chip)
        expected = outcome(tree, target, LIMIT, run=by_events)
        assert outcome(tree, target, LIMIT, run=fast) == expected, number
        assert outcome(tree, target, LIMIT, skip=False, run=fast) == expected, number


@pytest.mark.parametrize("trips", [3, 10, 1000, 10**9])
def test_items_can_be_asked_for_in_any_order(trips: int) -> None:
    """Single items of a long run are those of iterating, and of a run that is shifted by whole periods."""
    random = Random(trips)
    target = chips()[0]
    kinds = [Lowered(number, Block((random_bundle(random, Mix()),))) for number in range(4)]
    inner = Block((kinds[0], kinds[1]))
    body = Block((kinds[2], Loop(5, inner, ((),) * 4), kinds[3]))
    instructions = tuple(Instruction(str(number), "VPU", NOWHERE) for number in range(4))
    tree = Tree(Block((Loop(trips, body, tuple(() for _ in elements(body))),)), instructions, interlocked=False)
    timing = simulate_bundles(tree, target, 10**15)
    assert len(timing.executions) == trips * 12
    if trips <= 1000:
        assert [timing.executions[k] for k in range(trips * 12)] == list(timing.executions)
        assert [timing.operations[k] for k in range(len(timing.operations))] == list(timing.operations)
        assert timing.executions[-1] == list(timing.executions)[-1]
        assert timing.executions[2:9] == tuple(timing.executions)[2:9]
        with pytest.raises(IndexError):
            timing.executions[trips * 12]
    causes = timing.pipes["VPU"].causes
    assert sum(causes.values()) == timing.total
    assert timing.executions[len(timing.executions) - 1].end <= timing.total


@pytest.mark.parametrize(("generation", "effect"), [("goya", 7), ("gaudi", 7), ("greco", 4), ("gaudi2", 4)])
def test_a_vector_store_has_its_data_late(generation: str, effect: int) -> None:
    address = "S0, 0x0" if generation == "goya" else "0x0"
    assert timed(f"nop; nop; nop; st_l_v {address}, V0\n", chip(generation)).total == effect


@pytest.mark.parametrize("bubbles", [0, 1, 5])
def test_bubbles_follow_a_taken_jump(bubbles: int) -> None:
    text = f"// castsim: reg SP1 = {{taken}}\nnop; jmpr Skip, SP1; nop; nop\n{nops(3)}Skip:\nnop; halt; halt; nop\n"
    target = chip("gaudi", taken_jump_cycles=bubbles)
    assert timed(text.format(taken=1), target).total == 3 + bubbles
    assert causes(timed(text.format(taken=1), target), "LOAD").get("serialising branch", 0) == bubbles
    assert timed(text.format(taken=0), target).total == 5


def test_long_conversions_occupy_the_vpu_if_so_chosen() -> None:
    text = "nop; nop; convert.u8 all_lanes target_type=fp32 A0, V8; nop\n" * 3 + NOP + "nop; nop; mov V9, V8; nop\n"
    at_once, per_register = chip("greco"), chip("greco", all_lanes_cycles="per_register")
    assert [e.start for e in timed(text, at_once).executions] == [0, 1, 2, 3, 4]
    timing = timed(text, per_register)
    assert [e.start for e in timing.executions] == [0, 4, 8, 9, 12]  # the empty bundle needs no VPU
    assert causes(timing, "VPU")["initiation interval"] == 3 + 3 + 2


def test_what_the_engine_refuses() -> None:
    target = chip("goya")
    tree = ran(nops(20), target).tree
    with pytest.raises(EngineError, match="cycle limit of 10 reached at 'nop'"):
        simulate(tree, target, max_cycles=10)
    with pytest.raises(ReadError, match="unknown engine 'quick'"):
        simulate(tree, target, engine="quick")
    strange = run(expected_reports.PROGRAMS / "f32_to_f16.pto", timing_only=True).loaded.tree
    for engine in ("fast", "event"):
        with pytest.raises(IllegalError, match="goya issues bundles"):
            simulate(strange, target, engine=engine)


@pytest.mark.parametrize("path", sorted(PROGRAMS.glob("*.tpc")), ids=lambda path: path.stem)
def test_sample_programs_take_the_same_cycles(path: Path) -> None:
    loaded = load(path, None, None, {})
    target = loaded.target
    assert isinstance(target, VliwTarget)
    tree = loaded.issue({}, RunOptions(values=False, max_cycles=10**6)).loaded.tree
    assert plain(fast(tree, target)) == plain(by_events(tree, target))
