"""The fast engine of tile programs beyond single programs: vector functions, long loops, records, compiled code."""

from __future__ import annotations

import gc
import os
import tracemalloc
from itertools import islice

import fast_programs
import pytest
from engine_outcome import outcome, plain
from engine_trees import KIBI, a2a3, cast, control, load, lowered, mask_write, program, store

from castsim.engines import simulate
from castsim.engines.fast_dataflow import tile_simulation
from castsim.engines.fast_dataflow.records import Jump, Records, RecordShift
from castsim.engines.fast_dataflow.skipping import Skipper, rows_of
from castsim.engines.fast_dataflow.tile_simulation import Attempt
from castsim.execution.tree import Access, Block, GlobalSpace, Loop, Tree, elements
from castsim.isa.errors import EngineError
from castsim.machines.strided.operations import FlagSignal, FlagWait, PipeBarrier, ScalarWork
from castsim.timing import repeated

THOROUGH = bool(os.environ.get("CASTSIM_THOROUGH"))
SMALL, LARGE = (20_000, 2_000) if THOROUGH else (1_500, 30)
LIMIT = 10**6


def reads(start, end, space="ub"):
    return Access(space, start, end, write=False)


def writes(start, end, space="ub"):
    return Access(space, start, end, write=True)


def looped(trips, *items):
    """A loop that moves nothing."""
    body = Block(items)
    return Loop(trips, body, tuple((0,) * len(element.addresses) for element in elements(body)))


TURN = lowered(0, ScalarWork("loop"))
LOAD = lowered(1, load(0, 2048), accesses=(reads(0, 2048, GlobalSpace.of("x")), writes(0, 2048)))
CAST = lowered(2, control(), cast(8), accesses=(reads(0, 2048), writes(64 * KIBI, 65 * KIBI)))
STORE = lowered(3, store(64 * KIBI, 1024), accesses=(reads(64 * KIBI, 65 * KIBI), writes(0, 1024, GlobalSpace.of("y"))))
MASK = lowered(7, mask_write())


def flag(signaller, waiter):
    return lowered(4, FlagSignal(signaller, waiter, 0)), lowered(5, FlagWait(waiter, signaller, 0))


# ------------------------------------------------------------------------------------------------ random programs


@pytest.mark.parametrize("make", [fast_programs.strided, fast_programs.functions])
def test_small_random_programs_agree_in_everything(make):
    for seed in range(10**6, 10**6 + SMALL):
        tree, target = make(seed, small=True)
        expected = outcome(tree, target, engine="event", max_cycles=LIMIT)
        assert outcome(tree, target, engine="fast", max_cycles=LIMIT) == expected, seed


def test_random_vector_functions_in_loops_agree_in_everything():
    for seed in range(LARGE):
        tree, target = fast_programs.functions(seed)
        expected = outcome(tree, target, engine="event", max_cycles=LIMIT)
        assert outcome(tree, target, engine="fast", max_cycles=LIMIT) == expected, seed


@pytest.mark.parametrize("make", [fast_programs.strided, fast_programs.functions])
def test_the_limit_strikes_at_the_same_instruction(make):
    for seed in range(2 * 10**6, 2 * 10**6 + SMALL // 8):
        tree, target = make(seed, small=True)
        for limit in (1, 20, 100, 700):
            expected = outcome(tree, target, engine="event", max_cycles=limit)
            assert outcome(tree, target, engine="fast", max_cycles=limit) == expected, (seed, limit)


# ----------------------------------------------------------------------------------------------------- long loops


UNTIED = {
    "load, cast": (TURN, lowered(1, load(0, 2048)), lowered(2, control(), cast(8, 32 * KIBI))),
    "cast, store": (TURN, lowered(2, control(), cast(8, 32 * KIBI)), lowered(3, store(64 * KIBI, 1024))),
    "a flag only set": (TURN, lowered(1, load(0, 2048)), lowered(4, FlagSignal("V", "MTE3", 0)), lowered(2, cast(8))),
}
"""Trips whose pipes nothing synchronises: one runs further and further ahead of another, and every trip is executed."""


@pytest.mark.parametrize("name", UNTIED)
def test_pipes_that_drift_apart_in_a_loop_agree_in_everything(name):
    tree = program(CAST, looped(400, *UNTIED[name]), lowered(5, PipeBarrier("ALL")), CAST)
    assert plain(simulate(tree, a2a3())) == plain(simulate(tree, a2a3(), engine="event"))


def test_looks_read_no_more_than_a_share_of_what_is_executed(monkeypatch):
    """Loops of some dozen trips behind queues of thousands of entries, in which nothing repeats."""
    tree, target = fast_programs.strided(5_016_277)
    read, done = [], []
    snapshot, end = Skipper._snapshot, Attempt._end
    monkeypatch.setattr(
        Skipper, "_snapshot", lambda self, m, frame: (read.append(rows_of(m)), snapshot(self, m, frame))[1]
    )
    monkeypatch.setattr(
        Attempt, "_end", lambda self, code: (done.append(self._memory.machine.finished), end(self, code))[1]
    )
    assert plain(simulate(tree, target)) == plain(simulate(tree, target, engine="event"))
    assert 0 < sum(read) <= 32 * sum(done)


LOOPS = {
    "casts": (False, lambda n: (looped(n, TURN, CAST),)),
    "load, cast, store": (True, lambda n: (looped(n, TURN, LOAD, CAST, STORE),)),
    "with flags": (
        False,
        lambda n: (looped(n, TURN, LOAD, *flag("MTE2", "V"), CAST, *flag("V", "MTE3"), STORE, *flag("MTE3", "MTE2")),),
    ),
    "loaded once, stored at the end": (True, lambda n: (LOAD, looped(n, TURN, CAST), STORE)),
    "masks": (False, lambda n: (looped(n, TURN, MASK), CAST)),
    "masks and loads": (True, lambda n: (looped(n, MASK, LOAD, *flag("MTE2", "S")), CAST)),
    "masks and casts": (True, lambda n: (looped(n, TURN, MASK, CAST, STORE),)),
    "scalar work": (False, lambda n: (looped(n, TURN), CAST)),
    "barriers": (False, lambda n: (looped(n, TURN, LOAD, CAST, lowered(6, PipeBarrier("ALL"))),)),
    "loops in a loop": (True, lambda n: (looped(n, TURN, looped(50, TURN, CAST), LOAD, CAST, STORE),)),
    "inside an instruction": (False, lambda n: (lowered(7, control(), looped(n, cast(3), cast(2, 8 * KIBI))),)),
    "the global memory moves": (
        True,
        lambda n: (
            Loop(
                n,
                Block((TURN, LOAD, CAST, STORE)),
                ((), (), (2048, 0), (0, 2048), (0, 0), (), (0, 0), (0, 1024), (0, 1024)),
            ),
        ),
    ),
    "unrolled": (True, lambda n: (LOAD, CAST, STORE) * min(n, 40_000)),
}


@pytest.mark.parametrize("name", LOOPS)
def test_loops_take_what_few_trips_of_the_event_engine_extend_to(name):
    # From some trip on, every trip adds the same cycles and causes; so two counts of trips give all others.
    interlocked, make = LOOPS[name]
    trips = 40_000 if name == "unrolled" else 10**9

    def tree(count):
        return program(*make(count), interlocked=interlocked)

    first, second = (simulate(tree(count), a2a3(), engine="event") for count in (60, 90))
    found = simulate(tree(trips), a2a3(), max_cycles=10**15, record_operations=False)
    assert len(list(found.executions.repeated())) < 2_000  # of up to 1e11; the rest is said to repeat them
    times, rest = divmod(trips - 60, 30)
    if rest:
        first = simulate(tree(60 + rest), a2a3(), engine="event")
        second = simulate(tree(90 + rest), a2a3(), engine="event")
    assert found.total == first.total + times * (second.total - first.total)
    for pipe, account in found.pipes.items():
        one, two = first.pipes[pipe].causes, second.pipes[pipe].causes
        grown = {cause: one.get(cause, 0) + times * (two[cause] - one.get(cause, 0)) for cause in two}
        assert dict(account.causes) == {cause: cycles for cause, cycles in grown.items() if cycles}, pipe
    more = len(second.executions) - len(first.executions)
    assert len(found.executions) == len(first.executions) + times * more


@pytest.mark.parametrize("name", LOOPS)
def test_what_was_skipped_is_reported_as_if_it_had_been_executed(name):
    interlocked, make = LOOPS[name]
    for trips in (70, 301) if name != "unrolled" else (5_000,):
        tree = program(*make(trips), interlocked=interlocked)
        skipped, stepped = simulate(tree, a2a3()), simulate(tree, a2a3(), skip=False)
        assert plain(skipped) == plain(stepped)
        last = skipped.executions[-1]
        assert last == skipped.executions[len(skipped.executions) - 1] == stepped.executions[-1]
        summed = sum(times for _, _, times in repeated(skipped.executions))
        assert summed == len(skipped.executions)
        spans = sum(n * (a.end - a.start + b.end - b.start) // 2 for a, b, n in repeated(skipped.executions))
        assert spans == sum(execution.end - execution.start for execution in stepped.executions)


def test_the_limit_strikes_inside_a_loop_that_would_be_skipped():
    tree = program(looped(10**9, TURN, LOAD, CAST, STORE), interlocked=True)
    with pytest.raises(EngineError, match=r"cycle limit of 10000000 reached at 'instruction \d' \(k.pto:\d:3\)"):
        simulate(tree, a2a3(), max_cycles=10**7)


def test_a_pipe_that_works_while_a_long_loop_runs_is_not_served_late():
    # Nothing orders the store behind the casts, so it begins long before they end: other than a look ahead suggests.
    tree = program(looped(400, TURN, CAST), STORE, CAST, STORE)
    assert plain(simulate(tree, a2a3())) == plain(simulate(tree, a2a3(), engine="event"))


@pytest.mark.parametrize("trips", [3, 20, 300])
@pytest.mark.parametrize("inside", [False, True])
def test_a_mask_that_was_written_before_skipped_trips_holds_behind_them(trips, inside):
    # Its change takes 16 cycles, as long as a few of these trips; what comes behind all of them need not wait for it.
    quick = a2a3(load=(0, "128"), issue_cycles=0, synchronisation_cycles=0)
    trip = (lowered(1, load(0, 128)), *flag("MTE2", "S"))
    outer = looped(9, MASK, looped(trips, *trip)) if inside else looped(trips, *trip)
    tree = program(MASK, outer, CAST, instructions=9)
    found = outcome(tree, quick, max_cycles=LIMIT)
    assert found == outcome(tree, quick, engine="event", max_cycles=LIMIT)


@pytest.mark.parametrize("before", range(4))
@pytest.mark.parametrize("between", range(4))
def test_two_pipes_wait_for_the_same_bytes_when_one_of_them_is_served_late(before: int, between: int) -> None:
    # V and MTE2 have nothing to do in the loop. However the barriers shift it, V does not wait for MTE3.
    barriers = [lowered(5, PipeBarrier("MTE2"))] * before
    first = lowered(6, PipeBarrier("MTE2"), accesses=(writes(0, 256),))
    more = [lowered(7, PipeBarrier("MTE3"))] * between
    second = lowered(8, cast(), store(64 * KIBI, 512), accesses=(reads(0, 256),))
    busy = [lowered(9, cast(200))] * 3
    tree = program(looped(100, STORE), *barriers, first, *more, second, *busy, interlocked=True)
    assert plain(simulate(tree, a2a3())) == plain(simulate(tree, a2a3(), engine="event"))


# -------------------------------------------------------------------------------------------------------- records


def test_records_of_jumps_in_jumps():
    # Rows 0 to 9. Rows 2 and 3 stand for three times themselves, 10 cycles apart; rows 1 to 5, with these inside, for
    # twice themselves, 100 apart.
    inner = Jump(2, 4, 2, RecordShift(10, 7, 2))
    records = Records(
        10, [Jump(1, 6, 1, RecordShift(100, 50, 9), (inner,))], lambda row, shift, number: (number, row, shift.pipes)
    )
    once = [(1, 0), (2, 0), (3, 0), (2, 10), (3, 10), (2, 20), (3, 20), (4, 20), (5, 20)]
    expected = [(0, 0), *once, *((row, cycles + 100) for row, cycles in once), *((row, 120) for row in range(6, 10))]
    assert [record[1:] for record in records] == expected
    assert [records[k] for k in range(len(records))] == list(records)
    assert records[-1] == (22, 9, 120)
    assert records[3:6] == tuple(records)[3:6]
    assert records == tuple(records)
    assert records != tuple(records)[1:]
    copies = {first[1]: (first, last, times) for first, last, times in records.repeated()}
    assert copies[2] == ((2, 2, 0), (15, 2, 120), 6)
    assert copies[5] == ((9, 5, 20), (18, 5, 120), 2)
    assert copies[0] == ((0, 0, 0), (0, 0, 0), 1)
    with pytest.raises(IndexError, match="record 23 of 23"):
        records[23]


def test_operations_are_worked_out_when_somebody_reads_them():
    tree = program(looped(10**9, TURN, CAST))
    timing = simulate(tree, a2a3(), max_cycles=10**12)
    assert len(timing.operations) == 3 * 10**9
    few = simulate(program(looped(30, TURN, CAST)), a2a3(), engine="event")
    assert tuple(islice(timing.operations, 60)) == few.operations[:60]
    ahead = timing.operations[3 * 10**8 + 2]
    assert (ahead.index, ahead.name, ahead.execution) == (3 * 10**8 + 2, "vconv", 2 * 10**8 + 1)
    assert ahead.start - few.operations[32].start == 16 * (10**8 - 10)  # eight repeats every two cycles
    assert simulate(tree, a2a3(), max_cycles=10**12, record_operations=False).operations == ()


# ------------------------------------------------------------------------------------------------ how it is driven


def test_progress_is_told_of_fast_runs_too(monkeypatch):
    # By a clock that stands still no run is long enough for compiled code, which tells of progress less often.
    monkeypatch.setattr(tile_simulation, "perf_counter", lambda: 0.0)

    class Listener:
        def __init__(self):
            self.told = []

        def progress(self, cycle, operations):
            self.told.append((cycle, operations))

    listener = Listener()
    timing = simulate(program(*[LOAD, CAST] * 300), a2a3(), listener, skip=False)
    assert len(listener.told) == 4  # after 256, 512, 768 of 900 operations, and at the end
    assert listener.told == sorted(listener.told)
    assert listener.told[-1] == (timing.total, 900)


@pytest.mark.skipif(not THOROUGH, reason="compiling takes longer than all other tests: set CASTSIM_THOROUGH=1")
@pytest.mark.parametrize("make", [fast_programs.strided, fast_programs.functions])
def test_compiled_code_does_the_same(make, monkeypatch):
    pytest.importorskip("numba")
    monkeypatch.setattr(tile_simulation.Driver, "pays_to_compile", lambda self, _: self.step is tile_simulation.run)
    monkeypatch.setattr("castsim.engines.fast_dataflow.tile_simulation._PROGRESS_INTERVAL", 3)
    for seed in range(400):
        tree, target = make(seed, small=seed % 3 > 0)
        expected = outcome(tree, target, engine="event", max_cycles=LIMIT)
        assert outcome(tree, target, max_cycles=LIMIT) == expected, seed


def test_compiled_code_is_not_asked_for_in_vain(monkeypatch):
    def refuse():
        raise ImportError("no compiler here")

    monkeypatch.setattr(tile_simulation, "_LOADED", (0, 0))
    monkeypatch.setattr(tile_simulation, "_ON_DISK", (0, 0))
    monkeypatch.setattr(tile_simulation, "_TO_COMPILE", (0, 0))
    monkeypatch.setitem(__import__("sys").modules, "castsim.engines.fast_dataflow.compiled_machine", None)
    tree = program(*[LOAD, CAST, STORE] * 700, interlocked=True)
    assert simulate(tree, a2a3(), skip=False).total == simulate(tree, a2a3()).total


def test_what_is_kept_of_an_execution_is_small(monkeypatch):
    # 21 bytes for each execution beside the 8 of the tree and a few of the run; a list of records would take hundreds.
    # On a busy machine a run may last until it pays to import the compiler, which would be counted as well.
    monkeypatch.setattr(tile_simulation.Driver, "pays_to_compile", lambda self, _: False)

    def held(count):
        tree = Tree(Block((CAST,) * count), program().instructions, interlocked=False)
        tracemalloc.start()
        timing = simulate(tree, a2a3(), record_operations=False, skip=False)
        gc.collect()
        held, _ = tracemalloc.get_traced_memory()
        tracemalloc.stop()
        assert len(timing.executions) == count
        assert timing.executions[-1].end == timing.total
        return held

    held(1000)  # what is made once and kept
    assert held(5000) - held(1000) < 45 * 4000
