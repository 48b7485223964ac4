"""Flags, barriers, deadlock and the cycle limit.

Shipped facts: issuing or synchronising costs the scalar unit 1 cycle each; a lone one-repeat cast that arrives in
cycle t ends in t + 9 + 2 + 14 = t + 25; a 512-byte load takes 264 + 4, a 128-byte store 8 + 107.
"""

from __future__ import annotations

import pytest
from counted_work import at_most
from engine_trees import a2a3, cast, causes, control, load, lowered, program, singly, store

from castsim.engines import simulate
from castsim.execution.tree import Block, Loop
from castsim.isa.errors import EngineError
from castsim.machines.strided.operations import FlagSignal, FlagWait, PipeBarrier, ScalarWork

LOADED, CONVERTED = ("MTE2", "V"), ("V", "MTE3")


def signal(pair, event=0):
    return FlagSignal(pair[0], pair[1], event)


def wait(pair, event=0):
    return FlagWait(pair[1], pair[0], event)


def spans(timing):
    return [(operation.start, operation.end) for operation in timing.operations]


def test_load_convert_store_in_a_chain():
    # Load 1..269; cast 269..294; store 294..409. The waits arrive in 3 and 6.
    tree = singly(
        load(0, 512), signal(LOADED), wait(LOADED), cast(), signal(CONVERTED), wait(CONVERTED), store(65536, 128)
    )
    timing = simulate(tree, a2a3())
    assert timing.total == 409
    assert causes(timing, "V") == {"empty": 3 + 115, "flag wait": 266, "fill": 9, "busy": 2, "drain": 14}
    assert causes(timing, "MTE3") == {"empty": 6, "flag wait": 288, "busy": 8, "memory latency": 107}
    # The second set_flag stands at the head when the last repeat is over, 14 cycles before it fires.
    assert spans(timing) == [(1, 269), (269, 269), (3, 269), (269, 294), (280, 294), (6, 294), (294, 409)]


def test_a_set_flag_delays_nothing_behind_it():
    # Repeats in 10 and 12: the second cast does not wait for the end of the first, but the flag does.
    timing = simulate(singly(cast(), signal(CONVERTED), cast()), a2a3())
    assert [operation.end for operation in timing.operations] == [26, 26, 28]


def test_a_flag_back_to_the_loading_pipe_frees_its_buffer():
    # Cast 269..294; second load 294..562. MTE2 waits from the end of its first load.
    back = ("V", "MTE2")
    tree = singly(load(0, 512), signal(LOADED), wait(LOADED), cast(), signal(back), wait(back), load(0, 512))
    timing = simulate(tree, a2a3())
    assert timing.total == 294 + 268
    assert causes(timing, "MTE2") == {"empty": 1, "memory latency": 528, "busy": 8, "flag wait": 25}


def test_flags_are_counters():
    # Both signals (26, 28) come before the second wait (141): it finds its own. Stores 26..141 and 141..256.
    tree = singly(
        cast(), signal(CONVERTED), cast(), signal(CONVERTED),
        wait(CONVERTED), store(65536, 128), wait(CONVERTED), store(65536, 128),
    )  # fmt: skip
    assert simulate(tree, a2a3()).total == 256


def test_one_signal_serves_one_wait():
    tree = singly(cast(), signal(CONVERTED), wait(CONVERTED), wait(CONVERTED), store(65536, 128))
    with pytest.raises(EngineError, match="MTE3 waits for flag V -> MTE3 id 0") as caught:
        simulate(tree, a2a3())
    assert caught.value.span.line == 4


@pytest.mark.parametrize("other", [FlagSignal("MTE3", "V", 0), FlagSignal("V", "MTE3", 1), FlagSignal("V", "MTE2", 0)])
def test_direction_and_id_matter(other):
    with pytest.raises(EngineError, match="which nothing sets again"):
        simulate(singly(cast(), other, wait(CONVERTED)), a2a3())


def test_the_scalar_unit_waits_for_flags_itself():
    # Cast ends in 26; the wait is issued in 2..3.
    timing = simulate(singly(cast(), signal(("V", "S")), wait(("V", "S")), ScalarWork("arithmetic")), a2a3())
    assert timing.total == 27
    assert causes(timing, "S") == {"busy": 4, "flag wait": 23}


def test_the_scalar_unit_signals_when_it_gets_there():
    # Signal issued in 7..8, long after the wait and the cast were: cast 8..33.
    work = [ScalarWork("arithmetic")] * 5
    timing = simulate(singly(wait(("S", "V")), cast(), *work, signal(("S", "V"))), a2a3())
    assert timing.total == 33
    assert causes(timing, "V") == {"empty": 1, "flag wait": 7, "fill": 9, "busy": 2, "drain": 14}


def test_a_flag_from_the_scalar_unit_to_itself():
    timing = simulate(singly(signal(("S", "S")), wait(("S", "S")), control()), a2a3())
    assert timing.total == 3


def test_other_pipes_appear_when_flags_name_them():
    timing = simulate(singly(FlagSignal("M", "V", 0), wait(("M", "V")), cast()), a2a3())
    assert set(timing.pipes) == {"S", "V", "MTE2", "MTE3", "M"}
    assert causes(timing, "M") == {"empty": timing.total}


def test_a_flag_wait_during_a_drain_is_drain_first():
    # V drains 12..26 and waits for the load (2..270) behind that.
    tree = singly(cast(), load(0, 512), signal(LOADED), wait(LOADED), cast())
    timing = simulate(tree, a2a3())
    assert causes(timing, "V") == {"empty": 1, "fill": 18, "busy": 4, "drain": 28, "flag wait": 270 - 26}


# ------------------------------------------------------------------------------------------------------- barriers


def test_a_barrier_exposes_tail_and_head():
    # Second cast 26..51; the pipe stands at the barrier from 12 to 26.
    timing = simulate(singly(cast(), PipeBarrier("V"), cast()), a2a3())
    assert timing.total == 51
    assert causes(timing, "V") == {"empty": 1, "fill": 18, "busy": 4, "barrier": 14, "drain": 14}


def test_a_barrier_holds_up_its_own_pipe_only():
    timing = simulate(singly(cast(), PipeBarrier("V"), load(0, 512)), a2a3())
    assert spans(timing)[2] == (3, 271)
    serial = simulate(singly(load(0, 512), PipeBarrier("MTE2"), load(0, 512)), a2a3())
    assert causes(serial, "MTE2") == {"empty": 1, "memory latency": 528, "busy": 8}


def test_a_barrier_over_all_pipes_stops_the_scalar_unit():
    # Load 1..269, cast 2..27; barrier issued in 2..3, over in 269.
    timing = simulate(singly(load(0, 512), cast(), PipeBarrier("ALL"), control(), cast()), a2a3())
    assert causes(timing, "S") == {"busy": 5, "barrier": 266, "empty": 25}
    assert timing.total == 271 + 25
    assert [(operation.pipe, operation.name) for operation in timing.operations][2] == ("S", "barrier ALL")


def test_a_barrier_over_all_pipes_waits_for_waiting_pipes():
    # V waits for the load, so its cast (269..294) is what the barrier waits for.
    tree = singly(load(0, 512), signal(LOADED), wait(LOADED), cast(), PipeBarrier("ALL"), control())
    assert simulate(tree, a2a3()).total == 295


def test_barriers_on_idle_pipes_and_on_the_scalar_unit_cost_their_issue():
    tree = singly(PipeBarrier("S"), PipeBarrier("ALL"), PipeBarrier("V"), PipeBarrier("M"))
    assert simulate(tree, a2a3()).total == 4


# ------------------------------------------------------------------------------------------------------- failures


def test_deadlock_names_the_flag_and_the_place():
    with pytest.raises(EngineError) as caught:
        simulate(singly(cast(), wait(CONVERTED), store(65536, 128)), a2a3())
    assert caught.value.message == (
        "deadlock: MTE3 waits for flag V -> MTE3 id 0 (k.pto:2:3), which nothing sets again"
    )
    assert str(caught.value.span) == "k.pto:2:3"


def test_deadlock_of_two_pipes_names_both():
    back = ("MTE3", "V")
    with pytest.raises(EngineError) as caught:
        simulate(singly(wait(back), signal(CONVERTED), wait(CONVERTED), signal(back)), a2a3())
    assert caught.value.message == (
        "deadlock: V waits for flag MTE3 -> V id 0 (k.pto:1:3), set after what MTE3 waits for (k.pto:4:3); "
        "MTE3 waits for flag V -> MTE3 id 0 (k.pto:3:3), set after what V waits for (k.pto:2:3)"
    )


def test_deadlock_of_the_scalar_unit():
    with pytest.raises(EngineError) as caught:
        simulate(singly(wait(("V", "S")), signal(("V", "S"))), a2a3())
    assert caught.value.message == (
        "deadlock: S waits for flag V -> S id 0 (k.pto:1:3), not issued yet because S waits"
    )
    with pytest.raises(EngineError, match=r"V waits for flag .*; S waits for all pipes to drain \(k.pto:2:3\)"):
        simulate(singly(wait(LOADED), PipeBarrier("ALL")), a2a3())


def test_the_limit_is_inclusive_and_names_the_instruction():
    tree = singly(control(), cast(4))
    assert simulate(tree, a2a3(), max_cycles=33).total == 33
    with pytest.raises(EngineError) as caught:
        simulate(tree, a2a3(), max_cycles=32)
    assert caught.value.message == "cycle limit of 32 reached at 'instruction 1' (k.pto:2:3)"
    for limit in (1, 2, 11, 18, 19, 31):
        with pytest.raises(EngineError, match=f"cycle limit of {limit} reached at"):
            simulate(tree, a2a3(), max_cycles=limit)


def test_the_limit_names_what_still_runs():
    # The cast has ended in 26, the load runs from 2 to 270.
    with pytest.raises(EngineError, match=r"at 'instruction 1' \(k.pto:2:3\)"):
        simulate(singly(cast(), load(0, 512)), a2a3(), max_cycles=200)


def test_the_limit_ends_long_programs_early():
    body = Block((lowered(0, ScalarWork("loop")),))
    with at_most(200_000), pytest.raises(EngineError, match="cycle limit of 1000 reached at 'instruction 0'"):
        simulate(program(Loop(10**12, body, ((), ()))), a2a3(), max_cycles=1000)
    body = Block((lowered(1, load(0, 512)),))
    with at_most(200_000), pytest.raises(EngineError, match="cycle limit of 100000 reached at 'instruction 1'"):
        simulate(program(Loop(10**12, body, ((), (0, 0)))), a2a3(), max_cycles=10**5)
