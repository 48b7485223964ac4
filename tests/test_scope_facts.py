"""Every timing fact of micro programs changes the cycles of some launch."""

from __future__ import annotations

from random import Random

import pytest
from a5_cases import A5
from scope_works import LOAD, STORE, random_scope

from castsim.machines.vector_function.function_launches import time_scope
from castsim.machines.vector_function.launched_scope import Scope, ScopeInstruction, TimingKind


def test_a_launch_names_the_facts_it_rests_on() -> None:
    used = set()
    for seed in range(60):
        used |= time_scope(random_scope(Random(seed)), A5).facts
    assert {"timing.micro.dispatch", "timing.branch", "timing.unpack_head", "timing.store_barrier"} <= used


def trips(instruction: ScopeInstruction, count: int, results: int = 1) -> int:
    """Cycles of a loop of so many trips, each of that instruction between a load and a store if it is neither."""
    scope = Scope()
    scope.begin_loop(count)
    for trip in range(count):
        if instruction.kind is TimingKind.COMPUTE:
            (name,) = scope.issue(LOAD, (), 1, 0)
            names = [scope.issue(instruction, (name,), 1)[0] for _ in range(8)]
            scope.issue(STORE, names[-1:], 0, 65536 + trip * 256)
        elif instruction.kind is TimingKind.STORE:
            (name,) = scope.issue(LOAD, (), 1, trip * 256)
            scope.issue(instruction, (name,), 0, 65536 + trip * 256)
        else:
            name, *_ = [scope.issue(instruction, (), results, trip * 2048 + at)[0] for at in (0, 512, 1024)]
            scope.issue(STORE, (name,), 0, 65536 + trip * 256)
        scope.end_trip()
    return time_scope(scope, A5).cycles


@pytest.mark.parametrize(
    ("instruction", "paces"),
    [
        (ScopeInstruction("vlds", TimingKind.LOAD, size=256), 2.06),  # and by the memory path of two
        (ScopeInstruction("vldsx2", TimingKind.LOAD, size=256), 3.5),
        (ScopeInstruction("vlds", TimingKind.LOAD, word="DS_B8", size=256), 3.5),
        (ScopeInstruction("vsldb", TimingKind.LOAD, size=256), 6.5),
        (STORE, 1),
        (ScopeInstruction("vsstb", TimingKind.STORE, size=256), 2),
        (ScopeInstruction("vadd", TimingKind.COMPUTE), 4),  # eight on two ports
        (ScopeInstruction("vadd", TimingKind.COMPUTE, integers=True), 8),
        (ScopeInstruction("vmax", TimingKind.COMPUTE, integers=True), 4),
        (ScopeInstruction("vmul", TimingKind.COMPUTE, 16, integers=True), 8),
        (ScopeInstruction("vci", TimingKind.COMPUTE), 4),
        (ScopeInstruction("vci", TimingKind.COMPUTE, integers=True), 8),
    ],
)
def test_trips_take_what_the_throughput_table_says(instruction: ScopeInstruction, paces: float) -> None:
    """Three loads and a store, one of each, or eight computations a trip; 950 throughput table of asc-devkit."""
    results = 2 if instruction.mnemonic == "vldsx2" else 1
    assert trips(instruction, 400, results) - trips(instruction, 200, results) == pytest.approx(200 * paces, rel=0.02)
