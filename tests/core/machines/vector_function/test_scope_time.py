"""Cycles of launches against sums of the facts, worked out by hand: the formula stands beside each."""

from __future__ import annotations

import csv
import os
from collections import Counter
from decimal import Decimal
from random import Random

import pytest
from kit.a5_cases import A5, SPAN
from kit.paths import VECTORS
from kit.scope_works import LOAD, STORE, barrier, compute, random_scope

from castsim.engines import simulate
from castsim.execution.pipe_operations import FlagSignal, FlagWait, PipeBarrier, Transfer
from castsim.execution.timing import Cause, Timing
from castsim.execution.tree import Access, Block, Instruction, Lowered, Operation, Tree
from castsim.isa.errors import IllegalError
from castsim.isa.formats import IntFormat, format_named
from castsim.machines.vector_function.front_end import time_scope
from castsim.machines.vector_function.function_launches import MicroFunction
from castsim.machines.vector_function.launched_scope import Scope, ScopeInstruction, TimingKind
from castsim.targets.description import with_options
from castsim.targets.vector_function import VectorFunctionTarget

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


@pytest.mark.parametrize(
    ("mnemonics", "cycles_between"),
    [
        # Two ports start two instructions a cycle: eight additions in cycles 28 to 31; 4 on, the last is stored.
        (["vadd"] * 8, 3 + 4),
        # A port returns one result a cycle: the products in cycle 36; an addition behind one in cycle 29 would, too, so
        # it starts in cycle 30.
        (["vmul", "vmul", "vadd"], 2 + 4),
        # Other instructions start behind a special function.
        (["vexp", "vexp", "vadd"], 1 + 4),
        # Converts pass the serial port in order: the last starts 3 cycles behind the first; 4.5 on it is there.
        (["vcvt"] * 4, 3 + 5),
    ],
    ids=["two ports", "one result a cycle", "behind a special function", "the serial port"],
)
def test_ports(mnemonics: list[str], cycles_between: int) -> None:
    assert cycles(parallel(*mnemonics)) == FILL + LOAD_USE + cycles_between + STORED + DRAIN


FAMILIES = list(csv.DictReader((VECTORS / "a5_instruction_families.csv").read_text().splitlines()))
"""Latency, interval on a port and ports of instructions, as published (docs/reference/micro.md 6)."""


def of_family(row: dict[str, str]) -> ScopeInstruction:
    formats = [format_named(name) for name in row["types"].split()]
    integers, width = isinstance(formats[0], IntFormat), formats[0].bits
    named = {"vcvt": lambda: A5.conversion_row(*formats), "vintlv": lambda: "vintlv_lanes"}.get(row["mnemonic"], str)()
    masks = row["mnemonic"] == "vcmp"
    return ScopeInstruction(row["mnemonic"], TimingKind.COMPUTE, width, integers=integers, row=named, masks=masks)


@pytest.mark.parametrize("row", FAMILIES, ids=lambda row: f"{row['mnemonic']} {row['types']}")
def test_instructions_take_the_published_latencies_and_intervals(row: dict[str, str]) -> None:
    """A store takes a result 3 cycles before the latency has passed; many take their interval by ports each."""
    instruction = of_family(row)
    scope = Scope()
    (name,) = scope.issue(instruction, (load(scope),), 1)
    assert cycles(stored(scope, name)) == FILL + LOAD_USE + int(row["latency"]) - 3 + STORED + DRAIN
    if row["ports"] == "-":
        return
    many = []
    for count in (20, 60):
        scope = Scope()
        for _ in range(count):
            (name,) = scope.issue(instruction, (), 1)
        many.append(cycles(stored(scope, name)))
    assert many[1] - many[0] == 40 * int(row["interval"]) / int(row["ports"])


@pytest.mark.parametrize(("logic", "more"), [(0, 0), (1, 4), (2, 8)])
def test_logic_of_masks_takes_its_latency(logic: int, more: int) -> None:
    """A compare and a select, between them masks that are made of masks: 7 cycles each, of which forwarding saves 3."""
    scope = Scope()
    value = load(scope)
    (mask,) = scope.issue(ScopeInstruction("vcmp", TimingKind.COMPUTE, masks=True), (value,), 1)
    for _ in range(logic):
        (mask,) = scope.issue(ScopeInstruction("pand", TimingKind.PREDICATE, masks=True), (mask,), 1)
    (name,) = scope.issue(compute("vsel"), (value, mask), 1)
    assert cycles(stored(scope, name)) == FILL + LOAD_USE + 3 + more + 3 + STORED + DRAIN


BARRIERS = [
    # 16 cycles from the start of the store, in which it completes, and 16 for each further barrier.
    *(
        (f"load store {f'{word} ' * count}load store", FILL + LOAD_USE + 16 * count + LOAD_USE + STORED + DRAIN)
        for word in ("VST_VLD", "VV_ALL")
        for count in (1, 2, 8)
    ),
    ("load VLD_VST store", FILL + 16 + STORED + DRAIN),
    ("load store VST_VST VST_VST store", FILL + LOAD_USE + 25 + STORED + DRAIN),
    ("load store VST_VST store", FILL + LOAD_USE + 13 + STORED + DRAIN),  # 12.5, rounded up at the end
]


def with_barriers(steps: str) -> Scope:
    """Loads, stores of what was loaded last, and barriers by their words, each access at bytes of its own."""
    scope, name = Scope(), 0
    for number, step in enumerate(steps.split()):
        if step == "load":
            name = load(scope, number)
        elif step == "store":
            stored(scope, name, start=8192 + 256 * number)
        else:
            scope.issue(barrier(step))
    return scope


@pytest.mark.parametrize(("steps", "exact"), BARRIERS)
def test_barriers(steps: str, exact: int) -> None:
    assert cycles(with_barriers(steps)) == exact


def test_what_waits_is_named_with_its_line() -> None:
    scope = Scope()
    name = load(scope)
    for _ in range(400):
        (name,) = scope.issue(ScopeInstruction("vadd", TimingKind.COMPUTE, line=7), (name,), 1)
    timing = time_scope(stored(scope, name), A5)
    # 400 accumulations of one line, of which no more than 68 find a register: the front end waits for them.
    assert timing.cycles == FILL + LOAD_USE + 399 * 2 + 4 + STORED + DRAIN
    assert timing.by_line[7, Cause.DEPENDENCE] > 500


def test_ten_reductions_are_in_flight() -> None:
    scope = Scope()
    (total,) = scope.issue(compute("vbr"), (), 1)
    scope.begin_loop(12)
    for trip in range(12):
        (part,) = scope.issue(compute("vcadd"), (load(scope, trip),), 1)
        (total,) = scope.issue(ScopeInstruction("vadd", TimingKind.COMPUTE, line=7), (total, part), 1)
        scope.end_trip()
    # The eleventh is sent as the first is read, 6 + 19 cycles behind its load; the last load goes with it.
    assert cycles(stored(scope, total)) == FILL + SETUP + 2 * (LOAD_USE + 19) + 4 + STORED + DRAIN


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
            name, *_ = [scope.issue(instruction, (), results, trip * 2048 + at)[0] for at in (0, 512, 768)]
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


PROGRAMS = 1000 if "CASTSIM_THOROUGH" in os.environ else 60
"""Seeded programs of a run."""


def program(rng: Random) -> Tree:
    """Launches between transfers, with flags or, without, waiting for each other's bytes."""
    flags = rng.random() < 0.5
    items: list[tuple[Operation, tuple[Access, ...]]] = []
    for _ in range(rng.randint(1, 4)):
        start = rng.randrange(0, 4096, 32)
        load = Transfer("MTE2", True, "x", 0, 256, start, 256, rng.randint(1, 4), 256)
        items.append((load, (Access("ub", start, start + 1024, write=True),)))
        if flags:
            items += [(FlagSignal("MTE2", "V", 0), ()), (FlagWait("V", "MTE2", 0), ())]
        touched = (Access("ub", 0, 8192, write=False), Access("ub", 0, 8192, write=True))
        items.append((MicroFunction("m", random_scope(rng), "V"), touched))
        if rng.random() < 0.3:
            items.append((PipeBarrier("V"), ()))
    instructions = tuple(Instruction(type(each).__name__, each.pipe, SPAN) for each, _ in items)
    nodes = tuple(Lowered(number, Block((each,)), bytes_) for number, (each, bytes_) in enumerate(items))
    return Tree(Block(nodes), instructions, interlocked=not flags)


def same(one: Timing, other: Timing) -> bool:
    return (
        (one.total, one.pipes, one.facts) == (other.total, other.pipes, other.facts)
        and list(one.executions) == list(other.executions)
        and list(one.operations) == list(other.operations)
    )


@pytest.mark.parametrize("seed", range(PROGRAMS))
def test_the_engines_agree(seed: int) -> None:
    tree = program(Random(seed))
    event, fast = (simulate(tree, A5, engine=name) for name in ("event", "fast"))
    assert same(event, fast)
    for pipe in event.pipes.values():
        assert sum(pipe.causes.values()) == event.total


@pytest.mark.parametrize("seed", range(PROGRAMS))
def test_the_causes_of_a_launch_add_up_and_so_do_its_lines(seed: int) -> None:
    timing = time_scope(random_scope(Random(seed)), A5)
    assert sum(timing.causes.values()) == timing.cycles
    lines: Counter[Cause] = Counter()
    for (_, cause), cycles in timing.by_line.items():
        lines[cause] += cycles
    assert lines == timing.causes


@pytest.mark.parametrize(("width", "occupied", "latency"), [(32, 4, 16), (16, 8, 21)])
def test_special_functions_hold_their_port(width: int, occupied: int, latency: int) -> None:
    scope = parallel("vexp", "vexp", "vexp", width=width)
    assert cycles(scope) == FILL + LOAD_USE + occupied + latency - 3 + STORED + DRAIN


@pytest.mark.parametrize(("choice", "text", "kernel"), [("texts", 9, 8), ("all", 9, 9), ("none", 8, 8)])
def test_whether_disputed_families_hold_is_an_option(choice: str, text: int, kernel: int) -> None:
    """`vaxpy` takes 9 cycles by its family, 8 in published kernels; a `vcvt` has a row of its own or 7.5."""
    chip = with_options(A5, {"instruction_families": choice})
    for profiled, latency in ((False, text), (True, kernel)):
        scope = Scope()
        instruction = ScopeInstruction("vaxpy", TimingKind.COMPUTE, profiled=profiled)
        (name,) = scope.issue(instruction, (load(scope),), 1)
        assert cycles(stored(scope, name), chip) == FILL + LOAD_USE + latency - 3 + STORED + DRAIN
        row = chip.conversion_row(format_named("f32"), format_named("f16"), kernel=profiled)
        assert row == ("vcvt_short" if latency == 9 else "")


def test_an_instruction_without_a_latency_is_refused() -> None:
    scope = Scope()
    scope.issue(compute("vnothing"), (), 1)
    tree = Tree(
        Block((Lowered(0, Block((MicroFunction("m", scope, "V"),))),)),
        (Instruction("m", "V", SPAN),),
        interlocked=False,
    )
    for engine in ("event", "fast"):
        with pytest.raises(IllegalError, match="no latency for 'vnothing'") as error:
            simulate(tree, A5, engine=engine)
        assert "vadd" in error.value.legal
