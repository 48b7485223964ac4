"""Every timing fact of micro programs changes the cycles of some launch."""

from __future__ import annotations

from collections.abc import Mapping
from decimal import Decimal
from random import Random

import pytest
from a5_cases import A5
from scope_works import LOAD, STORE, compute, dense, pair, random_scope, wide

from castsim.machines.vector_function.function_launches import time_scope
from castsim.machines.vector_function.launched_scope import Scope, ScopeInstruction, TimingKind
from castsim.targets.vector_function import VectorFunctionTarget

ABOUT = ("source", "status", "evidence", "informational", "note")
OF_TEXTS = ("unrolling", "single_access")
"""What the text of a program decides (test_micro_time.py), and what has a test of its own."""
SPECIAL_LATENCIES = [name for name, row in A5.arithmetic.items() if row.port in ("any", "serial", "special")]


def facts() -> list[tuple[str, ...]]:
    """Paths of the facts below `timing.micro`; entries of tables one by one."""
    found: list[tuple[str, ...]] = []

    def walk(path: tuple[str, ...], value: object) -> None:
        if isinstance(value, Mapping):
            for key, inner in value.items():
                walk((*path, key), inner)
        elif hasattr(value, "model_fields_set"):
            for key, inner in value:
                if key not in (*ABOUT, *OF_TEXTS):
                    walk((*path, key), inner)
        else:
            found.append(path)

    walk((), A5.timing.micro)
    return found


def changed(path: tuple[str, ...]) -> VectorFunctionTarget:
    """A5 with another value of a fact: fewer places, ports and registers, more cycles."""

    def edit(value: object, rest: tuple[str, ...]) -> object:
        if not rest:
            if isinstance(value, Decimal):
                return value + 20
            return 1 if isinstance(value, int) else ()
        key, *more = rest
        if isinstance(value, Mapping):
            return {**value, key: edit(value[key], tuple(more))}
        return value.model_copy(update={key: edit(getattr(value, key), tuple(more))})  # type: ignore[attr-defined]

    return A5.model_copy(update={"timing": edit(A5.timing, ("micro", *path))})


@pytest.mark.parametrize("path", facts(), ids=".".join)
def test_the_fact_changes_cycles(path: tuple[str, ...]) -> None:
    target = changed(path)
    consumer = path[1] if path[0] == "forwarding_to" else "vadd"
    scopes = [wide(), dense()]
    if path[0].startswith("forwarding"):
        scopes = [pair(path[-1], consumer)]
    assert any(time_scope(scope, A5).cycles != time_scope(scope, target).cycles for scope in scopes)


@pytest.mark.parametrize("mnemonic", SPECIAL_LATENCIES)
@pytest.mark.parametrize("width", [16, 32])
def test_the_latency_of_an_instruction_changes_cycles(mnemonic: str, width: int) -> None:
    row = A5.arithmetic[mnemonic]
    key = "latency_32" if width == 32 else "latency_16"
    slower = row.model_copy(update={key: row.latency(width) + 20})
    target = A5.model_copy(update={"arithmetic": {**A5.arithmetic, mnemonic: slower}})
    scope = Scope()
    (name,) = scope.issue(LOAD, (), 1)
    (name,) = scope.issue(compute(mnemonic, width), (name,), 1)
    scope.issue(STORE, (name,), 0, 8192)
    expected = 0 if mnemonic in A5.timing.chain.latency_cycles else 20
    assert time_scope(scope, target).cycles - time_scope(scope, A5).cycles == expected


@pytest.mark.parametrize("mnemonic", [name for name in SPECIAL_LATENCIES if A5.arithmetic[name].held is not None])
def test_the_time_for_which_the_port_is_held_changes_cycles(mnemonic: str) -> None:
    row = A5.arithmetic[mnemonic].model_copy(update={"held": Decimal(9)})
    target = A5.model_copy(update={"arithmetic": {**A5.arithmetic, mnemonic: row}})
    scope = Scope()
    (name,) = scope.issue(LOAD, (), 1)
    names = [scope.issue(compute(mnemonic), (name,), 1)[0] for _ in range(2)]
    scope.issue(STORE, (names[-1],), 0, 8192)
    assert time_scope(scope, target).cycles == time_scope(scope, A5).cycles + 9 - int(A5.arithmetic[mnemonic].held or 0)


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
