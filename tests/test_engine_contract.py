"""What holds for every run: sums, partitions, order, determinism; and what the entry point refuses."""

from __future__ import annotations

import subprocess
import sys
from itertools import pairwise

import pytest
from engine_trees import FULL, KIBI, Recorder, a2a3, cast, causes, control, load, lowered, program, singly, store
from hypothesis import given, settings
from hypothesis import strategies as st

from castsim.engines import simulate
from castsim.engines.event_strided import EventSimulation
from castsim.execution.tree import Access, Block, GlobalSpace, Loop, elements
from castsim.isa.errors import IllegalError, ReadError
from castsim.machines.strided.operations import FlagSignal, FlagWait, PipeBarrier, ScalarWork

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
holds = st.lists(st.tuples(st.integers(0, 15), st.booleans(), st.integers(0, 40), st.integers(0, 30)), max_size=3)


@settings(max_examples=300, deadline=None)
@given(trees(), st.sampled_from(TARGETS), holds)
def test_every_cycle_has_one_cause_and_pipes_work_in_order(tree, target, held):
    recorder = Recorder()
    simulation = EventSimulation(tree, target, recorder)
    for hold in held:
        simulation.hold_port(*hold)
    timing = simulation.run(LIMIT)
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
    _replay_ports(recorder, held)


def _check_operations(timing, pipe, tree):
    own = [operation for operation in timing.operations if operation.pipe == pipe]
    assert [operation.start for operation in own] == sorted(operation.start for operation in own)
    transfers = [operation for operation in own if operation.name.startswith(("load ", "store "))]
    assert all(first.end <= second.start for first, second in pairwise(transfers))
    if pipe != "S":  # the scalar unit also works for the operations of others
        for cause, cycles in causes(timing, pipe).items():
            assert cause == "empty" or cycles == sum(operation.causes.get(cause, 0) for operation in own)


def _replay_ports(recorder, held):
    """Serve all blocks again, first come first served, with the mapping of docs/reference/a2a3.md section 8 written
    anew.
    """
    free: dict[object, int] = {}
    for cycle, _, _, address, write, asked in sorted(recorder.blocks, key=lambda block: (block[5], block[2])):
        row, group = divmod(address // 32, GROUPS)
        port, bank = (group, write), (group, row // ROWS % BANKS)
        expected = max(asked, free.get(port, 0), free.get(bank, 0))
        while any((group, write) == hold[:2] and hold[2] <= expected < hold[2] + hold[3] for hold in held):
            expected += 1
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


def test_progress_is_told():
    recorder = Recorder()
    timing = simulate(singly(*[control()] * 1000), a2a3(), recorder)
    assert len(recorder.progressed) > 1
    assert recorder.progressed[-1] == (timing.total, 1000)
    assert recorder.progressed == sorted(recorder.progressed)


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
    with pytest.raises(ReadError, match="engine 'fast' tells nobody of segments"):
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


def test_an_empty_program_takes_no_time():
    timing = simulate(program(), a2a3())
    assert timing.total == 0
    assert set(timing.pipes) == {"S", "V", "MTE2", "MTE3"}


def test_simpy_is_imported_by_who_simulates_only():
    script = "import sys, castsim.engines; print('simpy' in sys.modules)"
    result = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True)
    assert result.stdout.strip() == "False"
