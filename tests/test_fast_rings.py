"""The fast engine gives up rows of executions that nothing refers to any more, however few there is room for."""

from __future__ import annotations

from dataclasses import replace

import fast_programs
import pytest
from engine_outcome import outcome
from engine_trees import KIBI, a2a3, cast, load, lowered, program, store
from execution_programs import walk
from loop_programs import Maker

from castsim.engines import simulate
from castsim.engines.fast_dataflow import execution_rows
from castsim.execution.tree import Access, Tree
from castsim.isa.errors import CastsimError
from castsim.machines.strided.operations import FlagSignal, FlagWait, ScalarWork
from castsim.targets import load_target

ROOMS = (2, 4, 16)
LIMIT = 10**6
SUPPLIED = execution_rows._FIRST_ROOM


@pytest.fixture(params=ROOMS)
def room(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> int:
    """How many executions there is room for at first."""
    monkeypatch.setattr(execution_rows, "_FIRST_ROOM", request.param)
    return int(request.param)


@pytest.mark.usefixtures("room")
def test_random_loops_agree() -> None:
    timed = 0
    for seed in range(1, 100, 4):
        target = load_target("a5" if seed % 5 == 0 else "a2a3")
        try:
            tree = walk(Maker(seed, narrow=seed % 3 == 0).text(), target=target).tree
        except CastsimError:
            continue
        one, other = (simulate(tree, target, engine=name) for name in ("fast", "event"))
        assert (one.total, one.pipes) == (other.total, other.pipes), seed
        assert list(one.executions) == list(other.executions), seed
        timed += 1
    assert timed > 12


@pytest.mark.usefixtures("room")
@pytest.mark.parametrize("make", [fast_programs.strided, fast_programs.functions])
def test_random_trees_agree(make) -> None:
    for seed in range(3 * 10**6, 3 * 10**6 + 150):
        tree, target = make(seed, small=seed % 10 != 0)
        expected = outcome(tree, target, engine="event", max_cycles=LIMIT)
        assert outcome(tree, target, engine="fast", max_cycles=LIMIT) == expected, seed


def overwriting(latest: int) -> Tree:
    """The execution `latest` waits for its pipe and overwrites what the first one wrote, which ended long before.

    The next one waits for it, so that nothing goes on if it takes the row of the first one while that is needed.
    """
    global_bytes = Access("gm:y", 0, 256, write=True)
    short = lowered(0, store(0, 256), accesses=(global_bytes,))
    long = lowered(1, store(0, 128 * KIBI))
    apart = lowered(2, cast(40), accesses=(Access("ub", 0, 40 * 256, write=False),))
    waiting = lowered(3, cast(), accesses=(replace(global_bytes, write=False),))
    return program(short, *[apart] * (latest - 2), long, short, waiting, *[apart] * 4, interlocked=True)


@pytest.mark.parametrize("first", [*ROOMS[1:], SUPPLIED])
def test_what_the_latest_execution_waits_for_is_kept(first: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(execution_rows, "_FIRST_ROOM", first)
    tree = overwriting(first - 1)
    expected = outcome(tree, a2a3(), engine="event", max_cycles=LIMIT)
    assert outcome(tree, a2a3(), engine="fast", max_cycles=LIMIT) == expected


@pytest.mark.parametrize("first", [*ROOMS, SUPPLIED])
def test_what_ends_as_rows_are_given_up_is_not_forgotten_by_who_waits_for_it(
    first: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The cast waits for the bytes of the flag wait; in the cycle in which that ends the store wants rows to spare."""
    monkeypatch.setattr(execution_rows, "_FIRST_ROOM", first)
    waiting = lowered(2, FlagWait("MTE3", "MTE2", 0), accesses=(Access("ub", 0, 256, write=True),))
    reading = lowered(3, cast(), accesses=(Access("ub", 0, 256, write=False),))
    flagging = (lowered(0, load(0, 2048)), lowered(1, FlagSignal("MTE2", "MTE3", 0)))
    loose = [lowered(4, ScalarWork("arithmetic"))] * (2 * first)
    tree = program(*flagging, waiting, reading, *loose, lowered(5, store(64 * KIBI, 512)), interlocked=True)
    expected = outcome(tree, a2a3(), engine="event", max_cycles=LIMIT)
    for skip in (True, False):
        assert outcome(tree, a2a3(), engine="fast", max_cycles=LIMIT, skip=skip) == expected
