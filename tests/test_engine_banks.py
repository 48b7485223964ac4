"""Ports and banks: published conflict costs, service order, held ports."""

from __future__ import annotations

import pytest
from engine_trees import KIBI, Recorder, a2a3, cast, causes, load, singly

from castsim.engines import simulate
from castsim.engines.event_strided import EventSimulation

LIMIT = 10**6


def held(tree, target, holds, observer=None):
    simulation = EventSimulation(tree, target, observer)
    for hold in holds:
        simulation.hold_port(*hold)
    return simulation.run(LIMIT)


@pytest.mark.parametrize(("block_stride", "cycles"), [(16, 8), (8, 4), (4, 2), (1, 2), (17, 2)])
def test_published_cost_of_source_block_strides(block_stride, cycles):
    # docs/reference/a2a3.md section 8: 8 blocks in one group take 8 cycles per repeat, in two groups 4. Four
    # groups take 2, which
    # is what a repeat takes anyway.
    timing = simulate(singly(cast(4, block_stride=block_stride, repeat_strides=(1, 4))), a2a3())
    assert timing.total == 1 + 9 + 4 * cycles + 14
    assert causes(timing, "V").get("bank conflict", 0) == 4 * (cycles - 2)


@pytest.mark.parametrize(("source", "total"), [(0, 9), (96, 9), (512, 9), (128, 8), (64 * KIBI, 8), (128 * KIBI, 8)])
def test_a_read_waits_for_a_write_in_the_same_bank_only(source, total):
    # Head 0, repeat 1, tail 3: operation k repeats in cycle 1 + k, its blocks are written in 4 + k. Operation 3 reads
    # in 4, when operation 0 writes blocks 0 to 3 (groups 0 to 3, bank 0): it is one cycle late if it reads bank 0 of
    # one of these groups (its own blocks start at `source`; at 128 they are 4 to 11). End: 4 + 1 (+ 1) + 3.
    target = a2a3(vconv=(0, 1, 3))
    others = [cast(1, 64 * KIBI + 256 * k, 160 * KIBI + 128 * k) for k in range(2)]
    first, last = cast(1, 65 * KIBI, 0), cast(1, source, 170 * KIBI)
    timing = simulate(singly(first, *others, last), target)
    assert timing.total == total
    assert causes(timing, "V").get("bank conflict", 0) == total - 8


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


def test_holding_a_read_port_delays_exactly_the_blocks_behind_it():
    # The first repeat reads in cycle 10. Group 3 (bytes 96..128) is held in [10, 20): that block passes in 20, the
    # others in 10; the second repeat (groups 8 to 15) starts in 21 instead of 12.
    recorder = Recorder()
    timing = held(singly(cast(2)), a2a3(), [(3, False, 10, 10)], recorder)
    reads = {address: (asked, cycle) for cycle, _, _, address, write, asked in recorder.blocks if not write}
    expected = {32 * k: (10, 10) for k in range(8)} | {256 + 32 * k: (21, 21) for k in range(8)}
    assert reads == expected | {96: (10, 20)}
    assert timing.total == 21 + 2 + 14
    assert causes(timing, "V") == {"empty": 1, "fill": 9, "busy": 4, "port": 9, "drain": 14}


def test_holding_a_write_port_delays_the_end_only():
    # Two one-repeat casts to the same place write in 25 and 27. Group 0 is held in [20, 30): its blocks pass in 30
    # and 31, so the second ends in 32 instead of 28; 3 of these cycles it stood before the held port, then behind
    # the first block.
    recorder = Recorder()
    timing = held(singly(cast(), cast()), a2a3(), [(0, True, 20, 10)], recorder)
    writes = [(operation, cycle) for cycle, _, operation, address, write, _ in recorder.blocks if write]
    assert sorted(writes) == [(0, 25)] * 3 + [(0, 30)] + [(1, 27)] * 3 + [(1, 31)]
    assert [operation.end for operation in timing.operations] == [31, 32]
    assert causes(timing, "V") == {"empty": 1, "fill": 9, "busy": 4, "drain": 14, "port": 3, "bank conflict": 1}


def test_holding_a_port_that_nobody_needs_changes_nothing():
    target = a2a3()
    free = simulate(singly(cast(2)), target)
    assert held(singly(cast(2)), target, [(3, True, 0, 20), (9, False, 0, 12), (9, False, 13, 50)]) == free


def test_a_held_port_delays_loads():
    # Blocks ask in 265 (four of them: groups 0 to 3) and 266. Group 1 held in [260, 270): end 271 instead of 267.
    timing = held(singly(load(0, 256)), a2a3(), [(1, True, 260, 10)])
    assert timing.total == 271
    assert causes(timing, "MTE2") == {"empty": 1, "memory latency": 264, "busy": 2, "port": 4}


def test_bank_facts_decide():
    # With half as many groups of twice as many banks, 8 blocks 8 blocks apart fall into one group.
    target = a2a3()
    banks = target.banks.model_copy(update={"groups": 8, "banks_per_group": 6})
    narrow = target.model_copy(update={"banks": banks})
    tree = singly(cast(4, block_stride=8, repeat_strides=(1, 4)))
    assert simulate(tree, narrow).total - simulate(tree, target).total == 4 * (8 - 4)


def test_hold_refuses_groups_that_do_not_exist():
    with pytest.raises(ValueError, match=r"bank group 16 is not in 0\.\.15"):
        held(singly(cast()), a2a3(), [(16, False, 0, 1)])
