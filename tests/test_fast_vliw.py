"""The fast engine of bundles against the event engine: cycle for cycle, cause for cause, with and without skipping."""

from __future__ import annotations

import os
from pathlib import Path
from random import Random

import pytest
from bundle_trees import NOWHERE, Mix, by_events, fast, random_bundle, random_row, random_target, random_tree
from engine_outcome import outcome, plain

from castsim.engines.fast_vliw import simulate_bundles
from castsim.execution.tree import Block, Instruction, Loop, Lowered, Tree, elements
from castsim.isa.errors import IllegalError
from castsim.running import load
from castsim.running.loaded import RunOptions
from castsim.targets import load_target, target_names
from castsim.targets.vliw import VliwTarget

PROGRAMS = Path(__file__).parent.parent / "programs"
THOROUGH = bool(os.environ.get("CASTSIM_THOROUGH"))
SEEDS = 4000 if THOROUGH else 250
LIMIT = 20_000
"""Cycles after which both engines must give up, with the same words: the event engine is slow."""


def chips() -> list[VliwTarget]:
    found = [load_target(name) for name in target_names()]
    return [target for target in found if isinstance(target, VliwTarget)]


@pytest.mark.parametrize("chip", chips(), ids=lambda chip: chip.name)
@pytest.mark.parametrize("depth", [0, 1, 2, 3])
def test_random_programs_take_the_same_cycles_for_the_same_reasons(chip: VliwTarget, depth: int) -> None:
    random = Random(f"{chip.name} {depth}")
    for number in range(SEEDS // 4):
        mix = Mix(
            kinds=random.randint(1, 6),
            items=random.choice((2, 5, 9)),
            depth=depth,
            trips=random.choice((2, 7, 30)),
            memory=random.choice((0, 0.3, 0.8)),
        )
        tree, target = random_tree(random, mix), random_target(random, chip)
        expected = outcome(tree, target, LIMIT, run=by_events)
        assert outcome(tree, target, LIMIT, run=fast) == expected, number
        assert outcome(tree, target, LIMIT, skip=False, run=fast) == expected, number


@pytest.mark.parametrize("chip", chips(), ids=lambda chip: chip.name)
def test_bundles_that_repeat_in_a_row_take_the_same_cycles(chip: VliwTarget) -> None:
    random = Random(chip.name)
    for number in range(SEEDS // 25):
        mix = Mix(kinds=random.randint(1, 4), items=3, trips=3, memory=random.choice((0, 0.3, 0.8)))
        tree, target = random_row(random, mix), random_target(random, chip)
        expected = outcome(tree, target, LIMIT, run=by_events)
        assert outcome(tree, target, LIMIT, run=fast) == expected, number
        assert outcome(tree, target, LIMIT, skip=False, run=fast) == expected, number


@pytest.mark.parametrize("path", sorted(PROGRAMS.glob("*.tpc")), ids=lambda path: path.stem)
def test_sample_programs_take_the_same_cycles(path: Path) -> None:
    loaded = load(path, None, None, {})
    target = loaded.target
    assert isinstance(target, VliwTarget)
    tree = loaded.issue({}, RunOptions(values=False, max_cycles=10**6)).loaded.tree
    assert plain(fast(tree, target)) == plain(by_events(tree, target))


@pytest.mark.parametrize("trips", [3, 10, 1000, 10**9])
def test_items_can_be_asked_for_in_any_order(trips: int) -> None:
    """Single items of a long run are those of iterating, and of a run that is shifted by whole periods."""
    random = Random(trips)
    target = chips()[0]
    kinds = [Lowered(number, Block((random_bundle(random, Mix()),))) for number in range(4)]
    inner = Block((kinds[0], kinds[1]))
    body = Block((kinds[2], Loop(5, inner, ((),) * 4), kinds[3]))
    instructions = tuple(Instruction(str(number), "VPU", NOWHERE) for number in range(4))
    tree = Tree(Block((Loop(trips, body, tuple(() for _ in elements(body))),)), instructions, interlocked=False)
    timing = simulate_bundles(tree, target, 10**15)
    assert len(timing.executions) == trips * 12
    if trips <= 1000:
        assert [timing.executions[k] for k in range(trips * 12)] == list(timing.executions)
        assert [timing.operations[k] for k in range(len(timing.operations))] == list(timing.operations)
        assert timing.executions[-1] == list(timing.executions)[-1]
        assert timing.executions[2:9] == tuple(timing.executions)[2:9]
        with pytest.raises(IndexError):
            timing.executions[trips * 12]
    causes = timing.pipes["VPU"].causes
    assert sum(causes.values()) == timing.total
    assert timing.executions[len(timing.executions) - 1].end <= timing.total


def test_causes_add_up_to_the_total() -> None:
    random = Random(3)
    for _ in range(50):
        tree, target = random_tree(random, Mix(trips=1000)), random_target(random, random.choice(chips()))
        timing = simulate_bundles(tree, target, 10**15)
        assert all(sum(pipe.causes.values()) == timing.total for pipe in timing.pipes.values())


def test_operations_of_other_mechanisms_are_refused() -> None:
    loaded = load(PROGRAMS / "f32_to_f16.pto", None, None, {})
    assert loaded.tree is not None
    with pytest.raises(IllegalError, match="issues bundles"):
        simulate_bundles(loaded.tree, chips()[0], 10**9)


def test_a_listener_hears_of_the_end() -> None:
    heard: list[tuple[int, int]] = []

    class Ear:
        def progress(self, cycle: int, operations: int) -> None:
            heard.append((cycle, operations))

    random = Random(1)
    timing = simulate_bundles(random_tree(random, Mix(trips=100)), chips()[0], 10**9, Ear())
    assert heard[-1] == (timing.total, len(timing.operations))
