"""The vector pipe: head, repeats, tail. Expected cycles are sums of the target's facts, derived beside each test.

With the shipped facts (issue 1, head 9, repeat 2, tail 14) an operation issued first starts its first repeat in
cycle 1 + 9 = 10.
"""

from __future__ import annotations

import pytest
from engine_trees import FULL, KIBI, a2a3, cast, causes, control, lowered, program, singly

from castsim.engines import simulate
from castsim.machines.strided.operations import ScalarWork, Stream, StridedInstruction


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


def test_operations_back_to_back_pay_the_head_once_and_overlap_the_tail():
    # Issued in 0..3, arriving in 1, 2, 3; repeats at 10, 12, 14 ... one every 2 cycles without a gap.
    timing = simulate(singly(cast(3), cast(2), cast(1)), a2a3())
    assert timing.total == 1 + 9 + 2 * 6 + 14
    assert [(operation.start, operation.end) for operation in timing.operations] == [
        (1, 10 + 6 + 14),
        (16, 16 + 4 + 14),
        (20, 20 + 2 + 14),
    ]


def test_head_always_is_paid_by_every_operation():
    # First: repeat at 10..12. Second: 12 + 9 = 21..23, end 23 + 14.
    timing = simulate(singly(cast(), cast()), a2a3(vector_head="always"))
    assert timing.total == 37
    assert causes(timing, "V") == {"empty": 1, "fill": 18, "busy": 4, "drain": 14}


@pytest.mark.parametrize(
    ("scalar_work", "total", "expected"),
    [
        # The first ends in 26. Arriving in 25 the pipe still drains: no head, 25 + 2 + 14.
        (23, 41, {"empty": 1, "fill": 9, "busy": 4, "drain": 13 + 14}),
        # Arriving in 26 it is idle: 26 + 9 + 2 + 14.
        (24, 51, {"empty": 1, "fill": 18, "busy": 4, "drain": 28}),
        # Arriving in 30: four empty cycles more.
        (28, 55, {"empty": 5, "fill": 18, "busy": 4, "drain": 28}),
    ],
)
def test_the_head_is_paid_when_everything_before_has_ended(scalar_work, total, expected):
    timing = simulate(singly(cast(), *[ScalarWork("arithmetic")] * scalar_work, cast()), a2a3())
    assert timing.total == total
    assert causes(timing, "V") == expected


def test_a_shorter_tail_may_end_before_the_operation_ahead():
    # vector_dup (repeat 1, tail set to 1) ends in 12 + 1 + 1 = 14, the cast before it in 26: that drain lasts longer.
    target = a2a3(vector_dup=(11, 1, 1))
    timing = simulate(singly(cast(), cast(timing="vector_dup")), target)
    assert [operation.end for operation in timing.operations] == [26, 14]
    assert timing.total == 26
    assert causes(timing, "V") == {"empty": 1, "fill": 9, "busy": 3, "drain": 13}


def test_operations_without_sources_or_active_lanes_take_their_intervals():
    destination = cast().destination
    duplicate = StridedInstruction("vector_dup", "vector_dup", 4, 64, FULL, destination, (), cast().action)
    assert simulate(singly(duplicate), a2a3()).total == 1 + 11 + 4 * 1 + 13
    assert simulate(singly(cast(4, mask=0)), a2a3()).total == 1 + 9 + 4 * 2 + 14


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


def test_scalar_facts_are_what_the_scalar_unit_spends():
    target = a2a3(issue_cycles=3, control_write_cycles=5, arithmetic_cycles=7, loop_turnaround_cycles=11)
    timing = simulate(singly(control(), ScalarWork("arithmetic"), ScalarWork("loop"), cast()), target)
    assert causes(timing, "S") == {"busy": 5 + 7 + 3, "loop turnaround": 11, "empty": 25}
    assert timing.total == 26 + 25
    assert [execution.start for execution in timing.executions] == [0, 5, 12, 23]
    assert timing.executions[-1].end == 51


def test_an_instruction_without_operations_takes_no_time():
    timing = simulate(program(lowered(0, control()), lowered(1), lowered(2, control())), a2a3())
    assert [(execution.start, execution.end) for execution in timing.executions] == [(0, 1), (1, 1), (1, 2)]
