"""What holds for every run: flags, barriers, deadlock, the cycle limit, pipes one by one, waits for bytes."""

from __future__ import annotations

import subprocess
import sys
from fractions import Fraction
from itertools import pairwise
from math import floor

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from kit.counted_work import at_most
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
from castsim.engines.event_strided import EventSimulation
from castsim.execution.pipe_operations import FlagSignal, FlagWait, PipeBarrier, ScalarWork
from castsim.execution.tree import Access, Block, GlobalSpace, Loop, elements
from castsim.isa.errors import EngineError, IllegalError, ReadError
from castsim.machines.strided.strided_instructions import Stream, StridedInstruction

GROUPS, BANKS, ROWS = 16, 3, 128  # docs/reference/a2a3.md section 8
LIMIT = 10**6


@st.composite
def trees(draw):
    """Programs that cannot deadlock, as every wait_flag comes behind its set_flag in program order."""
    place = st.integers(0, 5).map(lambda block: block * 4 * KIBI)
    block = st.integers(0, 600).map(lambda number: number * 32)
    pipe = st.sampled_from(["V", "MTE2", "MTE3", "S", "M"])
    event = st.integers(0, 1)
    operation = st.one_of(
        st.builds(
            cast,
            st.integers(1, 5),
            st.one_of(place, block),
            st.one_of(place, block),
            formats=st.sampled_from([("f32", "f16"), ("f16", "f32"), ("f32", "i32")]),
            block_stride=st.sampled_from([1, 1, 2, 8, 16]),
            mask=st.sampled_from([FULL, 1, 0, 0xFF00]),
            timing=st.sampled_from(["vconv", "vand", "vector_dup"]),
        ),
        st.builds(load, block, st.integers(1, 300), bursts=st.integers(1, 4), pitch=st.sampled_from([512, 320])),
        st.builds(store, block, st.integers(1, 300), bursts=st.integers(1, 4), pitch=st.sampled_from([512, 320])),
        st.just(control()),
        st.sampled_from([ScalarWork("loop"), ScalarWork("arithmetic")]),
        st.builds(PipeBarrier, st.sampled_from(["V", "MTE2", "MTE3", "ALL", "S"])),
        st.builds(FlagSignal, pipe, pipe, event),
    )
    access = st.builds(
        lambda space, start, size, write: Access(space, start, start + size, write),
        st.sampled_from(["ub", GlobalSpace.of("x")]), block, st.integers(1, 4 * KIBI), st.booleans(),
    )  # fmt: skip
    items, open_flags = [], []
    for number in range(draw(st.integers(0, 12))):
        operations = draw(st.lists(operation, max_size=4))
        open_flags += [o for o in operations if isinstance(o, FlagSignal)]
        if open_flags and draw(st.booleans()):
            flag = open_flags.pop(draw(st.integers(0, len(open_flags) - 1)))
            operations.append(FlagWait(flag.waiter, flag.pipe, flag.event))
        items.append(lowered(number, *operations, accesses=tuple(draw(st.lists(access, max_size=2)))))
    return program(*items, interlocked=draw(st.booleans()))


TARGETS = (
    a2a3(),
    a2a3(vector_head="always"),
    a2a3(vconv=(0, 1, 0), vand=(3, 2, 20), vector_dup=(1, 1, 1), load=(0, "594.3"), store=(2, "64")),
    a2a3(issue_cycles=0, control_write_cycles=0, synchronisation_cycles=0, load=(3, "16.36"), vconv=(2, 3, 5)),
)


@settings(max_examples=300, deadline=None)
@given(trees(), st.sampled_from(TARGETS))
def test_every_cycle_has_one_cause_and_pipes_work_in_order(tree, target):
    recorder = Recorder()
    timing = simulate(tree, target, recorder, max_cycles=LIMIT)
    for pipe, account in timing.pipes.items():
        assert sum(account.causes.values()) == timing.total
        position = 0
        summed: dict[object, int] = {}
        for start, end, cause, _ in recorder.segments.get(pipe, []):
            assert start == position < end
            position = end
            summed[cause] = summed.get(cause, 0) + end - start
        assert position == timing.total
        assert summed == {cause: cycles for cause, cycles in account.causes.items() if cycles}
        _check_operations(timing, pipe, tree)
    ends = [operation.end for operation in timing.operations]
    assert timing.total == max(ends, default=0)
    assert [operation.index for operation in timing.operations] == list(range(len(ends)))
    for number, execution in enumerate(timing.executions):
        own = [operation for operation in timing.operations if operation.execution == number]
        assert execution.end == max([execution.start, *(operation.end for operation in own)])
        # What its first pipe operation waits for is not the instruction's own time: the start moves up to that work.
        on_pipes = [
            op.start for op in own if op.pipe != "S" and not op.name.startswith(("set_flag", "wait_flag", "barrier"))
        ]
        assert 0 <= execution.start <= execution.end
        assert all(execution.start <= start for start in on_pipes)
    _replay_ports(recorder)


def _check_operations(timing, pipe, tree):
    own = [operation for operation in timing.operations if operation.pipe == pipe]
    assert [operation.start for operation in own] == sorted(operation.start for operation in own)
    transfers = [operation for operation in own if operation.name.startswith(("load ", "store "))]
    assert all(first.end <= second.start for first, second in pairwise(transfers))
    if pipe != "S":  # the scalar unit also works for the operations of others
        for cause, cycles in causes(timing, pipe).items():
            assert cause == "empty" or cycles == sum(operation.causes.get(cause, 0) for operation in own)


def _replay_ports(recorder):
    """Serve all blocks again, first come first served, with the mapping of docs/reference/a2a3.md section 8 written
    anew.
    """
    free: dict[object, int] = {}
    for cycle, _, _, address, write, asked in sorted(recorder.blocks, key=lambda block: (block[5], block[2])):
        row, group = divmod(address // 32, GROUPS)
        port, bank = (group, write), (group, row // ROWS % BANKS)
        expected = max(asked, free.get(port, 0), free.get(bank, 0))
        assert cycle == expected
        free[port] = free[bank] = cycle + 1


@settings(max_examples=60, deadline=None)
@given(trees(), st.sampled_from(TARGETS))
def test_runs_are_reproducible_and_observers_alter_nothing(tree, target):
    timing = simulate(tree, target)
    assert simulate(tree, target) == timing
    assert simulate(tree, target, Recorder()) == timing
    brief = simulate(tree, target, record_operations=False)
    assert brief.operations == ()
    assert (brief.total, brief.pipes, brief.executions) == (timing.total, timing.pipes, timing.executions)


def test_rolled_and_unrolled_loops_take_the_same_time():
    def trip(k):
        return (
            lowered(0, load(512 * k, 512), accesses=(Access("ub", 512 * k, 512 * k + 512, True),)),
            lowered(1, control(), cast(2, 512 * k, 64 * KIBI), accesses=(Access("ub", 512 * k, 512 * k + 512, False),)),
            lowered(2, ScalarWork("loop")),
        )

    body = Block(trip(0))
    moved = {"Transfer": (512, 0), "StridedInstruction": (0, 512)}
    steps = tuple(
        moved.get(type(element).__name__, tuple(512 for _ in element.addresses)) for element in elements(body)
    )
    rolled = simulate(program(Loop(9, body, steps), interlocked=True), a2a3())
    unrolled = simulate(program(*(item for k in range(9) for item in trip(k)), interlocked=True), a2a3())
    assert rolled == unrolled


def test_long_loops_are_not_held_in_memory():
    # A million operations would be the first thing to fill the queues if the scalar unit ran ahead without need.
    body = Block((lowered(0, cast(255, repeat_strides=(0, 0))),))
    steps = tuple((0,) * len(element.addresses) for element in elements(body))
    simulation = EventSimulation(program(Loop(10**9, body, steps)), a2a3(), record_operations=False)
    with pytest.raises(Exception, match="cycle limit"):
        simulation.run(10**4)
    assert len(simulation._pipes["V"].queue) < 10


def test_facts_are_those_that_were_used():
    assert simulate(singly(control()), a2a3()).facts == {"timing.scalar"}
    assert simulate(singly(load(0, 32)), a2a3()).facts == {"timing.scalar", "timing.load", "banks"}
    timing = simulate(singly(cast(), store(0, 32)), a2a3())
    own = {"timing.vector.vconv", "timing.vector_pipe", "options.vector_head"}
    assert timing.facts == {"timing.scalar", "timing.store", "banks", *own}
    assert simulate(program(), a2a3()).facts == frozenset()


def test_what_is_refused():
    with pytest.raises(ReadError, match="unknown engine 'quick'") as caught:
        simulate(program(), a2a3(), engine="quick")
    assert caught.value.legal == ("fast", "event")
    with pytest.raises(ReadError, match="engine 'fast' does not report segments"):
        simulate(program(), a2a3(), Recorder(), engine="fast")
    with pytest.raises(ReadError, match="cycle limit 0 is not positive"):
        simulate(program(), a2a3(), max_cycles=0)


@pytest.mark.parametrize(
    ("operation", "message"),
    [
        (cast(timing="vnone"), "no vector timing 'vnone'"),
        (PipeBarrier("MTE9"), "no pipe 'MTE9'"),
        (FlagSignal("V", "ALL", 0), "no pipe 'ALL'"),
        (FlagWait("V", "X", 0), "no pipe 'X'"),
        (ScalarWork("loop", pipe="V"), "no pipe 'V'"),
    ],
)
def test_what_the_target_lacks_is_refused_before_the_run(operation, message):
    with pytest.raises(IllegalError, match=message) as caught:
        simulate(singly(control(), operation), a2a3())
    assert caught.value.span.line == 2
    assert caught.value.legal


LOADED, CONVERTED = ("MTE2", "V"), ("V", "MTE3")
ARITHMETIC = ScalarWork("arithmetic")


def signal(pair, event=0):
    return FlagSignal(pair[0], pair[1], event)


def wait(pair, event=0):
    return FlagWait(pair[1], pair[0], event)


LOADS, CONVERTS = load(0, 512), (signal(CONVERTED), wait(CONVERTED))
TIMES = {
    # Load 1..269; cast 269..294; store 294..409. The waits arrive in 3 and 6. The second set_flag stands at the head
    # when the last repeat is over, 14 cycles before it fires.
    "load, convert, store in a chain": Timed(
        [LOADS, signal(LOADED), wait(LOADED), cast(), *CONVERTS, store(65536, 128)], 409,
        {
            "V": {"empty": 3 + 115, "flag wait": 266, "fill": 9, "busy": 2, "drain": 14},
            "MTE3": {"empty": 6, "flag wait": 288, "busy": 8, "memory latency": 107},
        },
        [(1, 269), (269, 269), (3, 269), (269, 294), (280, 294), (6, 294), (294, 409)],
    ),
    # Repeats in 10 and 12: the second cast does not wait for the end of the first, but the flag does.
    "a set_flag delays nothing behind it": Timed(
        [cast(), signal(CONVERTED), cast()], 28, spans=[(1, 26), (12, 26), (12, 28)]
    ),
    # Cast 269..294; second load 294..562. MTE2 waits from the end of its first load.
    "a flag back to the loading pipe frees its buffer": Timed(
        [LOADS, signal(LOADED), wait(LOADED), cast(), signal(("V", "MTE2")), wait(("V", "MTE2")), LOADS], 294 + 268,
        {"MTE2": {"empty": 1, "memory latency": 528, "busy": 8, "flag wait": 25}},
    ),
    # Both signals (26, 28) come before the second wait (141): it finds its own. Stores 26..141 and 141..256.
    "flags are counters": Timed(
        [*[cast(), signal(CONVERTED)] * 2, *[wait(CONVERTED), store(65536, 128)] * 2], 256
    ),
    # Cast ends in 26; the wait is issued in 2..3.
    "the scalar unit waits for flags itself": Timed(
        [cast(), signal(("V", "S")), wait(("V", "S")), ARITHMETIC], 27, {"S": {"busy": 4, "flag wait": 23}}
    ),
    # Signal issued in 7..8, long after the wait and the cast were: cast 8..33.
    "the scalar unit signals when it gets there": Timed(
        [wait(("S", "V")), cast(), *[ARITHMETIC] * 5, signal(("S", "V"))], 33,
        {"V": {"empty": 1, "flag wait": 7, "fill": 9, "busy": 2, "drain": 14}},
    ),
    "a flag from the scalar unit to itself": Timed([signal(("S", "S")), wait(("S", "S")), control()], 3),
    # V drains 12..26 and waits for the load (2..270) behind that.
    "a flag wait during a drain is drain first": Timed(
        [cast(), LOADS, signal(LOADED), wait(LOADED), cast()], 295,
        {"V": {"empty": 1, "fill": 18, "busy": 4, "drain": 28, "flag wait": 270 - 26}},
    ),
    # Second cast 26..51; the pipe stands at the barrier from 12 to 26.
    "a barrier exposes tail and head": Timed(
        [cast(), PipeBarrier("V"), cast()], 51, {"V": {"empty": 1, "fill": 18, "busy": 4, "barrier": 14, "drain": 14}}
    ),
    "a barrier does not hold up another pipe": Timed(
        [cast(), PipeBarrier("V"), LOADS], 271, spans=[(1, 26), (12, 26), (3, 271)]
    ),
    "a barrier costs a serial pipe nothing": Timed(
        [LOADS, PipeBarrier("MTE2"), LOADS], 537, {"MTE2": {"empty": 1, "memory latency": 528, "busy": 8}}
    ),
    # Load 1..269, cast 2..27; barrier issued in 2..3, over in 269.
    "a barrier over all pipes stops the scalar unit": Timed(
        [LOADS, cast(), PipeBarrier("ALL"), control(), cast()], 271 + 25,
        {"S": {"busy": 5, "barrier": 266, "empty": 25}},
    ),
    # V waits for the load, so its cast (269..294) is what the barrier waits for.
    "a barrier over all pipes waits for waiting pipes": Timed(
        [LOADS, signal(LOADED), wait(LOADED), cast(), PipeBarrier("ALL"), control()], 295
    ),
    "barriers on idle pipes and on the scalar unit cost their issue": Timed(
        [*map(PipeBarrier, ("S", "ALL", "V", "M"))], 4
    ),
}  # fmt: skip


@pytest.mark.parametrize("name", TIMES)
def test_times_of_flags_and_barriers(name):
    TIMES[name].check()


BACK = ("MTE3", "V")


@pytest.mark.parametrize(
    ("operations", "message", "line"),
    [
        (
            [cast(), wait(CONVERTED), store(65536, 128)],
            "MTE3 waits for flag V -> MTE3 id 0 (k.pto:2:3), which nothing sets again", 2,
        ),
        (
            [wait(BACK), signal(CONVERTED), wait(CONVERTED), signal(BACK)],
            "V waits for flag MTE3 -> V id 0 (k.pto:1:3), set after what MTE3 waits for (k.pto:4:3); "
            "MTE3 waits for flag V -> MTE3 id 0 (k.pto:3:3), set after what V waits for (k.pto:2:3)", 1,
        ),
        (
            [wait(("V", "S")), signal(("V", "S"))],
            "S waits for flag V -> S id 0 (k.pto:1:3), not issued yet because S waits", 1,
        ),
    ],
)  # fmt: skip
def test_a_deadlock_names_flags_and_places(operations, message, line):
    with pytest.raises(EngineError) as caught:
        simulate(singly(*operations), a2a3())
    assert caught.value.message == f"deadlock: {message}"
    assert str(caught.value.span) == f"k.pto:{line}:3"


def test_the_limit_is_inclusive_and_names_the_instruction():
    tree = singly(control(), cast(4))
    assert simulate(tree, a2a3(), max_cycles=33).total == 33
    with pytest.raises(EngineError) as caught:
        simulate(tree, a2a3(), max_cycles=32)
    assert caught.value.message == "cycle limit of 32 reached at 'instruction 1' (k.pto:2:3)"
    for limit in (1, 2, 11, 18, 19, 31):
        with pytest.raises(EngineError, match=f"cycle limit of {limit} reached at"):
            simulate(tree, a2a3(), max_cycles=limit)


def test_the_limit_ends_long_programs_early():
    for number, work, steps, limit in ((0, ScalarWork("loop"), ((), ()), 1000), (1, LOADS, ((), (0, 0)), 10**5)):
        tree = program(Loop(10**12, Block((lowered(number, work),)), steps))
        message = f"cycle limit of {limit} reached at 'instruction {number}'"
        with at_most(200_000), pytest.raises(EngineError, match=message):
            simulate(tree, a2a3(), max_cycles=limit)


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


TWO = {"fill": 18, "busy": 4}
OPERATION_TIMES = {
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


@pytest.mark.parametrize("name", OPERATION_TIMES)
def test_times_of_operations(name):
    OPERATION_TIMES[name].check()


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


def test_simpy_is_imported_by_who_simulates_only():
    script = "import sys, castsim.engines; print('simpy' in sys.modules)"
    result = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True)
    assert result.stdout.strip() == "False"


def test_one_signal_serves_one_wait():
    tree = singly(cast(), signal(CONVERTED), wait(CONVERTED), wait(CONVERTED), store(65536, 128))
    with pytest.raises(EngineError, match="MTE3 waits for flag V -> MTE3 id 0") as caught:
        simulate(tree, a2a3())
    assert caught.value.span.line == 4


@pytest.mark.parametrize("other", [FlagSignal("MTE3", "V", 0), FlagSignal("V", "MTE3", 1), FlagSignal("V", "MTE2", 0)])
def test_direction_and_id_matter(other):
    with pytest.raises(EngineError, match="which nothing sets again"):
        simulate(singly(cast(), other, wait(CONVERTED)), a2a3())


def test_deadlock_of_the_scalar_unit():
    with pytest.raises(EngineError, match=r"V waits for flag .*; S waits for all pipes to drain \(k.pto:2:3\)"):
        simulate(singly(wait(LOADED), PipeBarrier("ALL")), a2a3())


def test_the_limit_names_what_still_runs():
    # The cast has ended in 26, the load runs from 2 to 270.
    with pytest.raises(EngineError, match=r"at 'instruction 1' \(k.pto:2:3\)"):
        simulate(singly(cast(), load(0, 512)), a2a3(), max_cycles=200)


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
