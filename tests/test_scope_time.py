"""Cycles of launches against sums of the facts, worked out by hand: the formula stands beside each."""

from __future__ import annotations

from decimal import Decimal

import pytest
from a5_cases import A5
from scope_works import LOAD, STORE, barrier, compute

from castsim.machines.vector_function.function_launches import time_scope
from castsim.machines.vector_function.launched_scope import Scope, ScopeInstruction, TimingKind
from castsim.targets.vector_function import VectorFunctionTarget
from castsim.timing import Cause

FILL, SETUP, LOAD_USE, STORED, DRAIN = 22, 2, 6, 9, 12
"""Start of the first load, setting up a loop, load to use, store to its end, end to end."""


def cycles(scope: Scope, target: VectorFunctionTarget = A5) -> int:
    return time_scope(scope, target).cycles


def load(scope: Scope, line: int = 0) -> int:
    return scope.issue(LOAD, (), 1, 256 * line)[0]


def stored(scope: Scope, *names: int, start: int = 8192) -> Scope:
    for number, name in enumerate(names):
        scope.issue(STORE, (name,), 0, start + 256 * number)
    return scope


def chain(*mnemonics: str, width: int = 32, scope: Scope | None = None) -> Scope:
    """One load, instructions each of which needs the one before, one store; added to a scope if there is one."""
    scope = scope or Scope()
    name = load(scope)
    for mnemonic in mnemonics:
        (name,) = scope.issue(compute(mnemonic, width), (name,), 1)
    return stored(scope, name)


def parallel(*mnemonics: str, width: int = 32, last: int = -1) -> Scope:
    """One load, instructions that each need it alone, a store of one."""
    scope = Scope()
    name = load(scope)
    return stored(scope, [scope.issue(compute(each, width), (name,), 1)[0] for each in mnemonics][last])


def test_copy() -> None:
    assert cycles(chain()) == FILL + LOAD_USE + STORED + DRAIN


@pytest.mark.parametrize(
    ("mnemonics", "waits"),
    [
        (("vcvt",), Decimal("4.5")),  # 7.5 less 3 of forwarding
        (("vadd",), 7 - 3),
        (("vadd",) * 4, 3 * 3 + 4),  # forwarding of the table, then to the store
        (("vmul", "vadd", "vmax", "vabs"), 4 + 3 + 2 + (5 - 3)),
        (("vmax", "vsel"), 4 + (6 - 3)),  # a pair of its own
        (("vexp", "vcvt"), (16 - 3) + Decimal("4.5")),
        (("vdup", "vmul"), 8 + (8 - 3)),
    ],
)
def test_chains(mnemonics: tuple[str, ...], waits: Decimal) -> None:
    assert cycles(chain(*mnemonics)) == int(FILL + LOAD_USE + waits + STORED + DRAIN + Decimal("0.5"))


@pytest.mark.parametrize("trips", [2, 10, 100])
def test_a_loop_adds_a_cycle_a_trip(trips: int) -> None:
    scope = Scope()
    scope.begin_loop(trips)
    for trip in range(trips):
        (made,) = scope.issue(compute("vcvt"), (load(scope, trip),), 1)
        stored(scope, made, start=65536 + 256 * trip)
        scope.end_trip()
    # 64.5 cycles at ten trips, rounded up
    assert cycles(scope) == FILL + SETUP + LOAD_USE + 5 + STORED + DRAIN + trips - 1


def test_two_ports_start_two_instructions_a_cycle() -> None:
    # Eight additions start in cycles 28 to 31; four cycles on, the last is stored.
    assert cycles(parallel(*["vadd"] * 8)) == FILL + LOAD_USE + 3 + 4 + STORED + DRAIN


def test_a_port_returns_one_result_a_cycle() -> None:
    # The products return in cycle 36; an addition behind one in cycle 29 would, too, so it starts in cycle 30.
    assert cycles(parallel("vmul", "vmul", "vadd")) == FILL + LOAD_USE + 2 + 4 + STORED + DRAIN


@pytest.mark.parametrize(("width", "held", "latency"), [(32, 4, 16), (16, 8, 21)])
def test_special_functions_hold_their_port(width: int, held: int, latency: int) -> None:
    scope = parallel("vexp", "vexp", "vexp", width=width)
    assert cycles(scope) == FILL + LOAD_USE + held + latency - 3 + STORED + DRAIN


def test_other_instructions_start_behind_a_special_function() -> None:
    assert cycles(parallel("vexp", "vexp", "vadd")) == FILL + LOAD_USE + 1 + 4 + STORED + DRAIN


def test_converts_pass_the_serial_port_in_order() -> None:
    # The last of four starts three cycles behind the first; 4.5 cycles on its result is there.
    assert cycles(parallel(*["vcvt"] * 4)) == FILL + LOAD_USE + 3 + 5 + STORED + DRAIN


def test_five_instructions_are_dispatched_in_a_cycle() -> None:
    scope = Scope()
    made = [scope.issue(compute("vbr"), (), 1)[0] for _ in range(12)]
    # Dispatched five a cycle, they start two a cycle: the twelfth in cycle 27; 3 cycles on it is stored.
    assert cycles(stored(scope, made[-1])) == FILL + 5 + 3 + STORED + DRAIN


def test_registers_return_with_their_last_reader() -> None:
    one = A5.timing.micro.registers.model_copy(update={"physical": 1})
    micro = A5.timing.micro.model_copy(update={"registers": one})
    few = A5.model_copy(update={"timing": A5.timing.model_copy(update={"micro": micro})})
    scope = Scope()
    for line in range(2):
        stored(scope, load(scope, line), start=8192 + 256 * line)
    assert cycles(scope) == FILL + 1 + LOAD_USE + STORED + DRAIN  # a second load takes a cycle more
    assert cycles(scope, few) == FILL + (LOAD_USE + STORED) + LOAD_USE + STORED + DRAIN


def test_a_load_behind_a_barrier_waits_for_the_stores() -> None:
    scope = Scope()
    stored(scope, load(scope))
    scope.issue(barrier("VST_VLD"))
    stored(scope, load(scope, 1), start=16384)
    assert cycles(scope) == FILL + 2 * (LOAD_USE + STORED) + DRAIN


def test_stores_behind_a_barrier_stand_apart() -> None:
    scope = Scope()
    name = load(scope)
    stored(scope, name)
    scope.issue(barrier("VST_VST"))
    stored(scope, name, start=16384)
    assert cycles(scope) == FILL + LOAD_USE + 13 + STORED + DRAIN  # 12.5, rounded up at the end


@pytest.mark.parametrize("trips", [2, 3, 7])
def test_a_select_in_a_loop_branches(trips: int) -> None:
    scope = Scope()
    scope.begin_loop(trips)
    for trip in range(trips):
        scope.issue(ScopeInstruction("select", TimingKind.SELECT))
        stored(scope, load(scope, trip), start=32768 + 256 * trip)
        scope.end_trip()
    branches = Decimal("39.5") * (2 * trips + 1)
    timing = time_scope(scope, A5)
    assert timing.cycles == int(FILL + SETUP + branches + STORED + DRAIN + Decimal("0.5"))
    assert timing.causes[Cause.SERIALISING_BRANCH] >= int(branches) - trips


def test_stores_of_two_registers_take_longer() -> None:
    scope = Scope()
    names = [load(scope), load(scope, 1)]
    scope.issue(ScopeInstruction("vstsx2", TimingKind.STORE, word="INTLV_B32", size=512), names, 0, 8192)
    # Two blocks of each bank group, one written a cycle; then 12 cycles, where a store of one register takes 9.
    assert cycles(scope) == FILL + 1 + LOAD_USE + 1 + 12 + DRAIN


def test_an_unpacking_load_delays_the_start() -> None:
    scope = Scope()
    names = scope.issue(ScopeInstruction("vlds", TimingKind.LOAD, size=128, unpacks=True), (), 1)
    head = 2 * Decimal("12.5")  # two waits of a store at a barrier, below 512 bytes
    assert cycles(stored(scope, *names)) == FILL + head + LOAD_USE + STORED + DRAIN


def test_what_waits_is_named_with_its_line() -> None:
    scope = Scope()
    name = load(scope)
    for _ in range(400):
        (name,) = scope.issue(ScopeInstruction("vadd", TimingKind.COMPUTE, line=7), (name,), 1)
    timing = time_scope(stored(scope, name), A5)
    # A chain of 400 additions, of which no more than 68 find a register: the front end waits for them.
    assert timing.cycles == FILL + LOAD_USE + 399 * 3 + 4 + STORED + DRAIN
    assert timing.by_line[7, Cause.DEPENDENCE] > 800


def test_trips_written_out_overlap_as_those_of_a_loop() -> None:
    """A body that is busiest at the serial port: its converts keep their order within a trip, not between trips."""
    body, trips = 12 * ("vcvt", "vadd", "vcvt"), 40
    looped, written = Scope(), Scope()
    looped.begin_loop(trips)
    for _ in range(trips):
        chain(*body, scope=looped)
        looped.end_trip()
        chain(*body, scope=written)
    assert trips * body.count("vcvt") < cycles(written) < 1.1 * cycles(looped) < 1.21 * cycles(written)
