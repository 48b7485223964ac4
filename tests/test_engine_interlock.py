"""Programs that synchronise nothing themselves: an instruction waits for earlier ones whose bytes it needs.

A one-repeat cast that is issued first ends in 26, a 512-byte load in 269.
"""

from __future__ import annotations

import pytest
from engine_trees import KIBI, a2a3, cast, causes, load, lowered, program, store
from hypothesis import given, settings
from hypothesis import strategies as st

from castsim.engines import simulate
from castsim.engines.event_dataflow import Scoreboard
from castsim.engines.event_pipes import ExecutionRecord
from castsim.execution.tree import Access, GlobalSpace, Loop


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


def test_a_write_waits_for_earlier_reads():
    timing = run(CAST, LOAD)
    assert timing.total == 26 + 268
    assert causes(timing, "MTE2") == {"empty": 2, "operand wait": 24, "memory latency": 264, "busy": 4}


def test_a_write_waits_for_earlier_writes():
    other = ((load(64 * KIBI, 512),), (writes(64 * KIBI, 64 * KIBI + 512),))
    assert run(CAST, other).total == 26 + 268


def test_instructions_of_one_pipe_wait_too():
    second = ((cast(1, 64 * KIBI, 96 * KIBI),), (reads(64 * KIBI, 64 * KIBI + 256), writes(96 * KIBI, 96 * KIBI + 128)))
    timing = run(CAST, second)
    assert timing.total == 26 + 25
    assert causes(timing, "V") == {"empty": 1, "fill": 18, "busy": 4, "operand wait": 14, "drain": 14}


def test_the_last_of_several_needs_decides():
    # The second cast reads what the load wrote (269) and writes where the first cast (26) wrote.
    timing = run(CAST, ((load(8 * KIBI, 512),), (writes(8 * KIBI, 8 * KIBI + 512),)), (
        (cast(1, 8 * KIBI),), (reads(8 * KIBI, 8 * KIBI + 256), writes(64 * KIBI, 64 * KIBI + 128)),
    ))  # fmt: skip
    assert timing.operations[2].start == 270  # the load was issued second: 2..270


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


def test_operations_of_one_instruction_do_not_wait_for_each_other():
    assert run(((cast(), cast()), CAST[1])).total == 1 + 9 + 4 + 14


def test_global_memory_counts_if_it_is_both_written_and_read():
    # Store 1..116 to y; a load of y waits for it, a second store of y does so anyway.
    put = ((store(64 * KIBI, 128),), (writes(0, 128, GlobalSpace.of("y")),))
    get = ((load(0, 512),), (reads(0, 512, GlobalSpace.of("y")),))
    assert run(put, get).total == 116 + 268
    assert run(put, put).total == 116 + 115


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
