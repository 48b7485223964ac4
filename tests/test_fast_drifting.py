"""Loops whose pipes drift apart: skipped group by group, and the same in everything as the event engine."""

from __future__ import annotations

import os

import pytest
from drifting_programs import drifting
from engine_outcome import outcome, plain
from engine_trees import KIBI, a2a3, cast, control, load, lowered, program, store
from fast_programs import strided

from castsim.engines import simulate
from castsim.engines.fast_dataflow.drift_skipping import DriftSkipper, TripRun, Weave
from castsim.engines.fast_dataflow.records import Jump, RecordShift
from castsim.engines.fast_dataflow.tile_simulation import Attempt
from castsim.execution.tree import Block, Loop, Lowered, elements
from castsim.isa.errors import EngineError
from castsim.machines.strided.operations import Barrier, ScalarWork, SetFlag, WaitFlag
from castsim.timing import repeated

THOROUGH = bool(os.environ.get("CASTSIM_THOROUGH"))
SEEDS = {False: range(10_000), True: range(2_500)} if THOROUGH else {False: (17, 22, 36), True: (4, 14, 16)}
"""By whether there are vector functions; the short ones are some of those where pipes drift apart."""
BY_EVENTS = 10 if THOROUGH else 2
LIMIT = 10**7

TURN = lowered(0, ScalarWork("loop"))
LOAD = lowered(1, load(0, 2048))
CAST = lowered(2, control(), cast(8, 32 * KIBI))
FLAGGED = lowered(3, SetFlag("V", "MTE3", 0), WaitFlag("MTE3", "V", 0))
STORE = lowered(4, store(64 * KIBI, 1024))
BACK = lowered(6, SetFlag("MTE3", "V", 1), WaitFlag("V", "MTE3", 1))
BODIES = {
    "load, cast": (TURN, LOAD, CAST),
    "cast, store": (TURN, CAST, STORE),
    "load; cast and store tied": (TURN, LOAD, CAST, FLAGGED, STORE, BACK),
}


def looped(trips: int, *items: Lowered) -> Loop:
    body = Block(items)
    return Loop(trips, body, tuple((0,) * len(element.addresses) for element in elements(body)))


@pytest.fixture
def jumps(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """Counts loops of which trips were skipped group by group, and not done again."""
    done: list[int] = []
    rejoin = DriftSkipper._rejoin

    def note(self: DriftSkipper, m: object, *others: object) -> None:
        rejoin(self, m, *others)  # type: ignore[arg-type]
        done.extend([1] * (not m.late))  # type: ignore[attr-defined]

    monkeypatch.setattr(DriftSkipper, "_rejoin", note)
    return done


def test_random_loops_agree_in_everything(jumps: list[int]) -> None:
    for functions, seeds in SEEDS.items():
        for seed in seeds:
            tree, target = drifting(seed, functions=functions)
            before = len(jumps)
            found = outcome(tree, target, max_cycles=LIMIT)
            if len(jumps) == before:
                continue  # nothing that other tests do not look at
            reference = {"engine": "event"} if seed % BY_EVENTS == 0 else {"skip": False}
            assert found == outcome(tree, target, max_cycles=LIMIT, **reference), (seed, functions)
    assert jumps


@pytest.mark.parametrize("name", BODIES)
def test_records_are_those_of_the_event_engine(name: str, jumps: list[int]) -> None:
    tree = program(CAST, LOAD, looped(700, *BODIES[name]), lowered(5, Barrier("ALL")), CAST)
    found, expected = simulate(tree, a2a3(), record_operations=False), simulate(tree, a2a3(), engine="event")
    assert jumps
    assert {**plain(found), "operations": expected.operations} == plain(expected)
    executions = expected.executions
    assert [found.executions[k] for k in range(len(executions))] == list(executions)
    assert sum(times for _, _, times in repeated(found.executions)) == len(executions)
    spans = sum(n * (a.end - a.start + b.end - b.start) for a, b, n in repeated(found.executions))
    assert spans == 2 * sum(each.end - each.start for each in executions)
    assert plain(simulate(tree, a2a3())) == plain(expected)


def test_operations_are_recorded_though_queues_grow_too_long_for_patience(
    jumps: list[int], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(
        "castsim.engines.fast_dataflow.tile_simulation._PATIENCE", 128
    )  # as 4096 is for some 9000 trips
    tree = program(looped(400, *BODIES["load, cast"]), lowered(5, Barrier("ALL")), CAST)
    found, expected = simulate(tree, a2a3()), simulate(tree, a2a3(), engine="event")
    assert jumps
    assert found.total == expected.total
    assert tuple(found.operations) == expected.operations


@pytest.mark.parametrize("name", BODIES)
def test_a_thousand_million_trips_take_what_the_slowest_pipe_takes(name: str) -> None:
    """The slowest pipe waits for nothing, so that from some trip on each of its trips adds the same."""
    trips = 10**9

    def total(count: int) -> int:
        tree = program(looped(count, *BODIES[name]))
        return simulate(tree, a2a3(), max_cycles=10**15, record_operations=False).total

    slowest = (LOAD,) if "load" in name else (STORE,)
    alone = [simulate(program(looped(n, *slowest)), a2a3(), engine="event") for n in (60, 90)]
    period, rest = divmod(alone[1].total - alone[0].total, 30)
    assert rest == 0
    assert abs(total(trips) - trips * period) < 10 * period
    assert total(2 * trips) - total(trips) == trips * period


def test_what_follows_at_once_is_not_late(jumps: list[int]) -> None:
    """The faster pipe goes on behind the loop while the slower one is still at it: all is done again, unskipped."""
    tree = program(looped(400, TURN, LOAD, CAST), CAST, STORE)
    assert plain(simulate(tree, a2a3())) == plain(simulate(tree, a2a3(), engine="event"))


@pytest.mark.parametrize("flags", ["only set", "only awaited"])
def test_flags_of_pipes_without_work_in_the_loop(flags: str) -> None:
    """Signals pile up or are used up: what is tied to such a pipe is in no trip where it was before."""
    flag = {"only set": SetFlag("V", "MTE3", 0), "only awaited": WaitFlag("V", "MTE3", 0)}[flags]
    before = looped(200, lowered(1, SetFlag("MTE3", "V", 0)))
    after = looped(200, lowered(1, WaitFlag("MTE3", "V", 0)), STORE)
    loop = looped(200, TURN, LOAD, lowered(3, flag), CAST)
    tree = program(loop, after) if flags == "only set" else program(before, loop)
    assert plain(simulate(tree, a2a3())) == plain(simulate(tree, a2a3(), engine="event"))


def test_the_limit_strikes_where_it_does_without_skipping() -> None:
    tree = program(looped(5_000, TURN, LOAD, CAST), interlocked=False)
    for limit in (10_000, 900_000):
        with pytest.raises(EngineError) as skipped:
            simulate(tree, a2a3(), max_cycles=limit)
        with pytest.raises(EngineError) as stepped:
            simulate(tree, a2a3(), max_cycles=limit, skip=False)
        assert str(skipped.value) == str(stepped.value)


def test_trips_are_woven_in_the_order_of_the_program() -> None:
    # Two trips of a, b, b, then one of b, b alone: rows 10 to 18.
    runs = (TripRun(10, 16, (0, 1, 1)), TripRun(16, 18, (1, 1)))
    assert [run.before(99, 1) for run in runs] == [4, 2]
    # a is executed twice and stands for three trips; b has executed all three.
    weave = Weave(runs, (0, 1, 1), ((Jump(1, 2, 1, RecordShift(pipes=5)),), ()), 7, 5)
    part = weave.part(RecordShift())
    rows = [10, 11, 12, 13, 14, 15, 13, 16, 17]
    assert [row for row, _ in part.walk(RecordShift())] == rows
    assert [part.find(k, RecordShift())[0] for k in range(part.length)] == rows
    assert part.find(6, RecordShift())[1] == RecordShift(5, 0, 0, (10, 14))
    assert weave.total() == RecordShift(5, 5, 1)


def test_looks_read_no_more_than_a_share_of_what_is_executed(monkeypatch: pytest.MonkeyPatch) -> None:
    """Loops of some dozen trips behind queues of thousands of entries, in which nothing repeats."""
    tree, target = strided(5_016_277)
    read: list[tuple[int, int]] = []
    end = Attempt._end

    def note(self: Attempt, code: int) -> object:
        read.append((self._skipper.read, self._memory.machine.finished))
        return end(self, code)

    monkeypatch.setattr(Attempt, "_end", note)
    assert plain(simulate(tree, target)) == plain(simulate(tree, target, engine="event"))
    assert all(rows <= 32 * finished for rows, finished in read)
    assert any(rows for rows, _ in read)
