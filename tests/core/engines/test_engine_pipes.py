"""Pipes one by one: heads and tails of vector operations, ports and banks, transfers, and who waits for whose bytes."""

from __future__ import annotations

from fractions import Fraction
from math import floor

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from kit.engine_trees import (
    FULL,
    KIBI,
    Recorder,
    Timed,
    a2a3,
    cast,
    causes,
    control,
    load,
    lowered,
    program,
    singly,
    store,
)

from castsim.engines import simulate
from castsim.engines.event_dataflow import Scoreboard
from castsim.engines.event_pipes import ExecutionRecord
from castsim.execution.pipe_operations import ScalarWork
from castsim.execution.tree import Access, GlobalSpace, Loop
from castsim.machines.strided.strided_instructions import Stream, StridedInstruction

ARITHMETIC = ScalarWork("arithmetic")
DUPLICATE = StridedInstruction("vector_dup", "vector_dup", 4, 64, FULL, cast().destination, (), cast().action)


@pytest.mark.parametrize("formats", [("f32", "f16"), ("f16", "f32")])
def test_published_cast_of_4x64_takes_33_cycles(formats):
    # docs/reference/a2a3.md section 6.3: f32 -> f16 and f16 -> f32, 4 x 64, measured 33. Control write, four one-
    # repeat calls,
    # control write: 1 + 1 + 9 + 4 * 2 + 14.
    calls = [cast(1, 256 * row, 64 * KIBI + 256 * row, formats=formats, repeat_strides=(8, 8)) for row in range(4)]
    timing = simulate(program(lowered(0, control(), *calls, control())), a2a3())
    (execution,) = timing.executions
    assert execution.end - execution.start == 33
    assert timing.total == 33
    assert causes(timing, "V") == {"empty": 2, "fill": 9, "busy": 8, "drain": 14}
    assert causes(timing, "S") == {"busy": 6, "empty": 27}


@pytest.mark.parametrize("repeats", [1, 4, 255])
def test_a_lone_operation_takes_head_repeats_and_tail(repeats):
    timing = simulate(singly(cast(repeats, src=0, dst=96 * KIBI)), a2a3())
    assert timing.total == 1 + 9 + 2 * repeats + 14
    (operation,) = timing.operations
    assert (operation.start, operation.end) == (1, timing.total)
    assert operation.causes == {"fill": 9, "busy": 2 * repeats, "drain": 14}


TWO = {"fill": 18, "busy": 4}
TIMES = {
    # Issued in 0..3, arriving in 1, 2, 3; repeats at 10, 12, 14 ... one every 2 cycles without a gap.
    "back to back they pay the head once and overlap the tail": Timed(
        [cast(3), cast(2), cast(1)], 1 + 9 + 2 * 6 + 14, spans=[(1, 10 + 6 + 14), (16, 16 + 4 + 14), (20, 20 + 2 + 14)]
    ),
    # First: repeat at 10..12. Second: 12 + 9 = 21..23, end 23 + 14.
    "a head that is always paid": Timed(
        [cast(), cast()], 37, {"V": {"empty": 1, **TWO, "drain": 14}}, target={"vector_head": "always"}
    ),
    # The first ends in 26. Arriving in 25 the pipe still drains: no head, 25 + 2 + 14.
    "no head before all has ended": Timed(
        [cast(), *[ARITHMETIC] * 23, cast()], 41, {"V": {"empty": 1, "fill": 9, "busy": 4, "drain": 13 + 14}}
    ),
    # Arriving in 26 it is idle: 26 + 9 + 2 + 14.
    "a head where all has ended": Timed(
        [cast(), *[ARITHMETIC] * 24, cast()], 51, {"V": {"empty": 1, **TWO, "drain": 28}}
    ),
    # Arriving in 30: four empty cycles more.
    "a head later": Timed([cast(), *[ARITHMETIC] * 28, cast()], 55, {"V": {"empty": 5, **TWO, "drain": 28}}),
    # vector_dup (repeat 1, tail set to 1) ends in 12 + 1 + 1 = 14, the cast before it in 26: that drain lasts longer.
    "a shorter tail may end before the operation ahead": Timed(
        [cast(), cast(timing="vector_dup")], 26, {"V": {"empty": 1, "fill": 9, "busy": 3, "drain": 13}},
        [(1, 26), (12, 14)], {"vector_dup": (11, 1, 1)},
    ),
    "no sources": Timed([DUPLICATE], 1 + 11 + 4 * 1 + 13),
    "no active lanes": Timed([cast(4, mask=0)], 1 + 9 + 4 * 2 + 14),
    # 128 bytes at 16.36 per cycle: 7.82, rounded 8; then 107.
    "a store streams first and waits for memory then": Timed(
        [store(0, 128)], 1 + 8 + 107, {"MTE3": {"empty": 1, "busy": 8, "memory latency": 107}}
    ),
    # 32 bursts of 240 bytes are 7680 bytes: 60 cycles at 128, whatever the pitch as long as groups differ.
    "bursts take whole blocks": Timed([load(0, 240, bursts=32, pitch=256)], 1 + 264 + 60),
    # 8 blocks, 512 bytes apart, all in group 0; four ask per cycle, one passes: 8 cycles instead of 2.
    "bursts in one bank group wait for its port": Timed(
        [load(0, 32, bursts=8, pitch=512)], 1 + 264 + 8,
        {"MTE2": {"empty": 1, "memory latency": 264, "busy": 2, "bank conflict": 6}},
    ),
    # A store asks for one block every other cycle at most, so the port is no limit.
    "bursts that are stored from one": Timed([store(0, 32, bursts=8, pitch=512)], 1 + 16 + 107),
    # 512 bytes: load 264 + 4, from 1 and then from 269. Store: 512 / 16.36 = 31.3, 31 + 107, issued third.
    "transfers of one pipe never overlap and those of two do": Timed(
        [load(0, 512), load(512, 512), store(8192, 512)], 537, spans=[(1, 269), (269, 537), (3, 3 + 31 + 107)]
    ),
    "scalar facts are what the scalar unit spends": Timed(
        [control(), ARITHMETIC, ScalarWork("loop"), cast()], 26 + 25,
        {"S": {"busy": 5 + 7 + 3, "loop turnaround": 11, "empty": 25}}, [(0, 5), (5, 12), (12, 23), (26, 51)],
        {"issue_cycles": 3, "control_write_cycles": 5, "arithmetic_cycles": 7, "loop_turnaround_cycles": 11},
    ),
}  # fmt: skip


@pytest.mark.parametrize("name", TIMES)
def test_times_of_operations(name):
    TIMES[name].check()


def test_two_sources_in_the_same_groups_share_their_read_ports():
    # Two times 8 blocks; the second source in the same 8 groups takes a second cycle, which repeat_cycles 2 hides,
    # repeat_cycles 1 does not.
    def both(second):
        operation = cast(4, repeat_strides=(16, 16))
        other = Stream(second, operation.sources[0].format, 1, 16)
        return StridedInstruction(
            "vand", "vand", 4, 64, FULL, operation.destination, (operation.sources[0], other), operation.action
        )

    for second, excess in ((32 * KIBI, 1), (32 * KIBI + 256, 0)):
        assert simulate(singly(both(second)), a2a3()).total == 1 + 8 + 4 * 2 + 12
        fast = simulate(singly(both(second)), a2a3(vand=(8, 1, 12)))
        assert fast.total == 1 + 8 + 4 * (1 + excess) + 12
        assert causes(fast, "V").get("bank conflict", 0) == 4 * excess


def test_an_instruction_without_operations_takes_no_time():
    timing = simulate(program(lowered(0, control()), lowered(1), lowered(2, control())), a2a3())
    assert [(execution.start, execution.end) for execution in timing.executions] == [(0, 1), (1, 1), (1, 2)]


def test_simultaneous_requests_are_served_in_operation_order():
    # One block of a load and the first block of a cast ask for the same bank in cycle 2.
    recorder = Recorder()
    simulate(singly(load(0, 32), cast()), a2a3(load=(1, "128"), vconv=(0, 2, 14)), recorder)
    contested = [(cycle, pipe) for cycle, pipe, _, address, *_, asked in recorder.blocks if (address, asked) == (0, 2)]
    assert contested == [(2, "MTE2"), (3, "V")]
    recorder = Recorder()
    simulate(singly(cast(), load(0, 32)), a2a3(load=(0, "128"), vconv=(1, 2, 14)), recorder)
    contested = [(cycle, pipe) for cycle, pipe, _, address, *_, asked in recorder.blocks if (address, asked) == (0, 2)]
    assert contested == [(2, "V"), (3, "MTE2")]


def test_bank_facts_decide():
    # With half as many groups of twice as many banks, 8 blocks 8 blocks apart fall into one group.
    target = a2a3()
    banks = target.banks.model_copy(update={"groups": 8, "banks_per_group": 6})
    narrow = target.model_copy(update={"banks": banks})
    tree = singly(cast(4, block_stride=8, repeat_strides=(1, 4)))
    assert simulate(tree, narrow).total - simulate(tree, target).total == 4 * (8 - 4)


@pytest.mark.parametrize(
    ("transfers", "size", "measured", "tolerance"),
    [
        (1, 65536, 776, 0),
        (1, 65024, 773, 1),  # 264 + 508 = 772
        (1, 32512, 519, 1),
        (1, 16256, 392, 1),
        (8, 8192, 2624, 0),
        (32, 512, 8576, 0),
        (32, 1024, 8704, 0),
    ],
)
def test_loads_take_the_measured_cycles(transfers, size, measured, tolerance):
    timing = simulate(singly(*[load(0, size) for _ in range(transfers)]), a2a3())
    assert abs(timing.total - 1 - measured) <= tolerance  # one cycle to issue the first
    assert causes(timing, "MTE2") == {"empty": 1, "memory latency": 264 * transfers, "busy": transfers * size // 128}


@pytest.mark.parametrize("rate", ["0.64", "12.8", "16.36", "31.99", "64", "128", "594.3"])
@pytest.mark.parametrize("size", [1, 32, 33, 96, 160, 1000, 4096])
def test_durations_are_exact_and_rounded_half_up(rate, size):
    blocks = -(-size // 32)
    last = floor((blocks - 1) * 32 / Fraction(rate))  # cycle of the last block, which needs it whole
    stream = max(floor(size / Fraction(rate) + Fraction(1, 2)), last + 1)
    for transfer, target, pipe in (
        (load(0, size), a2a3(load=(5, rate)), "MTE2"),
        (store(0, size), a2a3(store=(5, rate)), "MTE3"),
    ):
        timing = simulate(singly(transfer), target)
        conflict = causes(timing, pipe).get("bank conflict", 0)  # above 512 bytes per cycle ports are the limit
        assert conflict == (max(0, -(-blocks // 16) - stream) if rate == "594.3" else 0)
        assert timing.total == 1 + 5 + stream + conflict
        assert causes(timing, pipe)["busy"] == stream


def reads(start, end, space="ub"):
    return Access(space, start, end, write=False)


def writes(start, end, space="ub"):
    return Access(space, start, end, write=True)


def run(*parts, interlocked=True):
    items = [lowered(number, *operations, accesses=accesses) for number, (operations, accesses) in enumerate(parts)]
    return simulate(program(*items, interlocked=interlocked), a2a3())


CAST = ((cast(),), (reads(0, 256), writes(64 * KIBI, 64 * KIBI + 128)))
LOAD = ((load(0, 512),), (reads(0, 512, GlobalSpace.of("x")), writes(0, 512)))
STORE = ((store(64 * KIBI, 128),), (reads(64 * KIBI, 64 * KIBI + 128), writes(0, 128, GlobalSpace.of("y"))))


def test_load_cast_store_wait_for_each_other():
    # Load 1..269, cast 269..294, store 294..409; without interlock all start as they arrive.
    timing = run(LOAD, CAST, STORE)
    assert [(operation.start, operation.end) for operation in timing.operations] == [(1, 269), (269, 294), (294, 409)]
    assert causes(timing, "V") == {"empty": 2 + 115, "operand wait": 267, "fill": 9, "busy": 2, "drain": 14}
    assert [operation.start for operation in run(LOAD, CAST, STORE, interlocked=False).operations] == [1, 2, 3]


AFTER = ((load(64 * KIBI, 512),), (writes(64 * KIBI, 64 * KIBI + 512),))
THEN = ((cast(1, 64 * KIBI, 96 * KIBI),), (reads(64 * KIBI, 64 * KIBI + 256), writes(96 * KIBI, 96 * KIBI + 128)))
OTHER = ((load(8 * KIBI, 512),), (writes(8 * KIBI, 8 * KIBI + 512),))
BOTH = ((cast(1, 8 * KIBI),), (reads(8 * KIBI, 8 * KIBI + 256), writes(64 * KIBI, 64 * KIBI + 128)))
PUT = ((store(64 * KIBI, 128),), (writes(0, 128, GlobalSpace.of("y")),))
GET = ((load(0, 512),), (reads(0, 512, GlobalSpace.of("y")),))
INTERLOCKED = {
    "a write waits for earlier reads": (
        (CAST, LOAD), 26 + 268, {"MTE2": {"empty": 2, "operand wait": 24, "memory latency": 264, "busy": 4}},
    ),
    "a write waits for earlier writes": ((CAST, AFTER), 26 + 268, {}),
    "instructions of one pipe wait too": (
        (CAST, THEN), 26 + 25, {"V": {"empty": 1, "fill": 18, "busy": 4, "operand wait": 14, "drain": 14}},
    ),
    # The last reads what the load wrote (2..270) and writes where the first cast (26) wrote.
    "the last of several needs decides": ((CAST, OTHER, BOTH), 270 + 25, {}),
    "operations of one instruction do not wait for each other": (
        (((cast(), cast()), CAST[1]),), 1 + 9 + 4 + 14, {},
    ),
    # Store 1..116 to y; a load of y waits for it, a second store of y does so anyway.
    "global memory that is written and read": ((PUT, GET), 116 + 268, {}),
    "global memory that is written twice": ((PUT, PUT), 116 + 115, {}),
}  # fmt: skip


@pytest.mark.parametrize("name", INTERLOCKED)
def test_who_waits_for_whose_bytes(name):
    parts, total, expected = INTERLOCKED[name]
    timing = run(*parts)
    assert timing.total == total
    assert {pipe: causes(timing, pipe) for pipe in expected} == expected


@pytest.mark.parametrize(
    "accesses",
    [
        (reads(0, 256), writes(96 * KIBI, 96 * KIBI + 128)),  # reads what the first reads
        (reads(256, 512), writes(64 * KIBI + 128, 64 * KIBI + 256)),  # touches it, no byte in common
        (reads(64 * KIBI, 64 * KIBI + 128, "l1"), writes(0, 256, "l1")),  # another space
        (reads(64 * KIBI + 32, 64 * KIBI + 32), writes(96 * KIBI, 96 * KIBI + 128)),  # nothing at all
    ],
)
def test_nobody_waits_without_a_conflict(accesses):
    assert run(CAST, ((cast(),), accesses)).total == 1 + 9 + 4 + 14


def test_loops_move_the_accesses():
    # Each trip loads 512 bytes further on, and casts what the trip before loaded: trip k's cast needs load k only.
    items = (
        lowered(0, load(0, 512), accesses=(writes(0, 512),)),
        lowered(1, cast(1, 0), accesses=(reads(0, 512), writes(64 * KIBI, 64 * KIBI + 128))),
    )
    body = program(*items).root
    steps = ((512,), (512, 0), (512, 128), (128, 512))
    timing = simulate(program(Loop(3, body, steps), interlocked=True), a2a3())
    starts = [operation.start for operation in timing.operations]
    assert starts == [1, 269, 269, 537, 537, 805]


# ----------------------------------------------------------------------------------- the scoreboard by itself


access = st.builds(
    lambda space, start, size, write: Access(space, start, start + size, write),
    st.sampled_from(["ub", "l1"]),
    st.integers(0, 12),
    st.integers(0, 6),
    st.booleans(),
)


def conflict(first, second):
    return any(
        a.space == b.space and max(a.start, b.start) < min(a.end, b.end) and (a.write or b.write)
        for a in first
        for b in second
    )


@settings(max_examples=300, deadline=None)
@given(st.lists(st.lists(access, max_size=3), max_size=25), st.sets(st.integers(0, 24)), st.booleans())
def test_needs_are_conflicts_and_leave_none_out(executions, ended, sweeping):
    # An execution may have ended once all it needs has; nobody may then need it any more, and everybody else that
    # conflicts must be needed, directly or through somebody needed.
    tree = program(*(lowered(0, accesses=tuple(accesses)) for accesses in executions))
    scoreboard = Scoreboard(tree)
    if sweeping:
        for space in scoreboard._spaces.values():
            space._sweep_at = 0
    records: list[ExecutionRecord] = []
    behind: list[set[int]] = []  # all that execution k waits for, through others too
    for k, accesses in enumerate(executions):
        record = ExecutionRecord(end=0)
        needs = {records.index(need) for need in scoreboard.enter(record, tuple(accesses), 1)}
        assert all(conflict(executions[need], accesses) for need in needs)
        assert not any(records[need].over(1) for need in needs)
        behind.append(needs.union(*(behind[need] for need in needs)))
        earlier = {j for j in range(k) if conflict(executions[j], accesses) and not records[j].over(1)}
        assert earlier <= behind[k]
        records.append(record)
        if k in ended and not needs:
            record.settle()
