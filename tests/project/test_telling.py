"""Segments told by the fast engine are those of the event engine: pipes, cycles, causes, operations."""

from __future__ import annotations

import os
from random import Random

import pytest
from kit import fast_programs
from kit.engine_trees import a2a3, cast, singly

from castsim.engines import observe, simulate
from castsim.engines.fast_dataflow import tile_simulation
from castsim.engines.fast_dataflow.machine_steps import run
from castsim.engines.fast_dataflow.tile_simulation import Driver
from castsim.execution.timing import Cause, IgnoresBlocks
from castsim.execution.tree import Tree
from castsim.isa.errors import EngineError
from castsim.targets.loader import Target

THOROUGH = os.environ.get("CASTSIM_THOROUGH") == "1"
SEEDS = 4000 if THOROUGH else 60
LONGEST = 20_000

Told = tuple[str, int, int, Cause, int | None]


class Ears(IgnoresBlocks):
    """Keeps all segments that begin before a cycle, which may become earlier while it listens."""

    def __init__(self, until: int | None, most: int | None = None) -> None:
        self.until = until
        self.most = most
        self.told: list[Told] = []

    def progress(self, cycle: int, operations: int) -> None:
        """Nobody asks."""

    def segment(self, pipe: str, start: int, end: int, cause: Cause, operation: int | None) -> None:
        self.told.append((pipe, start, end, cause, operation))
        if self.most is not None and len(self.told) > self.most:
            self.until = min(start, LONGEST if self.until is None else self.until)

    def block(self, cycle: int, pipe: str, operation: int, address: int, write: bool, asked: int) -> None:
        raise AssertionError("it does not listen to blocks")

    def before(self, end: int) -> list[Told]:
        cut = [(each[0], each[1], min(each[2], end), *each[3:]) for each in self.told if each[1] < end]
        return sorted(cut, key=lambda each: each[:3])


def told(tree: Tree, target: Target, until: int | None, engine: str | None) -> tuple[list[Told], int]:
    ears = Ears(until)
    issued = observe(tree, target, ears, engine=engine)
    return ears.before(1 << 60 if until is None else until), issued


def program(kind: str, seed: int) -> tuple[Tree, Target, int] | None:
    """A random program and its cycles, None of one that is too long or never ends."""
    tree, target = getattr(fast_programs, kind)(9 * 10**6 + seed, small=seed % 8 != 0)
    try:
        return tree, target, simulate(tree, target, max_cycles=LONGEST, record_operations=False).total
    except EngineError:
        return None


@pytest.mark.parametrize("kind", ["strided", "functions"])
def test_both_engines_tell_the_same(kind: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(tile_simulation, "_ROOM", 7)  # the table is full every now and then
    compared = 0
    for seed in range(SEEDS):
        made = program(kind, seed)
        if made is None:
            continue
        tree, target, total = made
        random = Random(seed)
        for until in (None, 0, random.randint(0, total + 2), random.randint(0, min(50, total))):
            assert told(tree, target, until, None) == told(tree, target, until, "event"), (seed, until)
            compared += bool(total)
    assert compared > SEEDS


@pytest.mark.parametrize("operations", [tile_simulation._PROGRESS_INTERVAL - 1, tile_simulation._PROGRESS_INTERVAL])
def test_all_is_told_where_the_run_ends_as_progress_is_told(operations: int) -> None:
    tree = singly(*[cast()] * operations)
    assert told(tree, a2a3(), None, None) == told(tree, a2a3(), None, "event")


@pytest.mark.parametrize("kind", ["strided", "functions"])
def test_it_goes_no_further_once_nobody_listens(kind: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """A listener that has heard enough is told of all that begins before the cycle that it names then."""
    monkeypatch.setattr(tile_simulation, "_ROOM", 7)
    ended = 0
    for seed in range(SEEDS // 2):
        made = program(kind, seed)
        if made is None:
            continue
        tree, target, total = made
        whole, _ = told(tree, target, None, "event")
        ears = Ears(None, most=len(whole) // 2)
        observe(tree, target, ears)
        end = total if ears.until is None else ears.until
        expected = sorted(
            ((*each[:2], min(each[2], end), *each[3:]) for each in whole if each[1] < end), key=lambda each: each[:3]
        )
        assert ears.before(end) == expected, seed
        ended += end < total
    assert ended > 3


@pytest.mark.skipif(not THOROUGH, reason="it compiles: set CASTSIM_THOROUGH=1")
def test_compiled_code_tells_the_same(monkeypatch: pytest.MonkeyPatch) -> None:
    pytest.importorskip("numba")
    monkeypatch.setattr(Driver, "pays_to_compile", lambda driver, remaining: driver.step is run)
    for kind in ("strided", "functions"):
        for seed in range(0, 400, 8):
            made = program(kind, seed)
            if made is not None:
                assert told(*made[:2], None, None) == told(*made[:2], None, "event"), (kind, seed)
