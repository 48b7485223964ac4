"""The fast engine of tile programs against the event engine: programs, loops, records, rows given up, named state."""

from __future__ import annotations

import gc
import json
import os
import subprocess
import sys
import tracemalloc
from pathlib import Path

import pytest
from campaigns import engine_campaign
from kit import fast_programs
from kit.engine_outcome import outcome, plain
from kit.engine_trees import KIBI, a2a3, cast, control, load, lowered, mask_write, program, store
from kit.execution_programs import walk
from kit.loop_programs import Maker
from kit.paths import PROGRAMS
from kit.sample_arguments import scalars

from castsim.engines import simulate
from castsim.engines.fast_dataflow import execution_rows, tile_simulation
from castsim.engines.fast_dataflow.execution_rows import (
    Jump,
    MachineMemory,
    Records,
    RecordShift,
    RunRecords,
    parts_of_machine,
)
from castsim.engines.fast_dataflow.skipping import Skipper, rows_of
from castsim.engines.fast_dataflow.state import (
    NEVER,
    NO_TIME,
    NONE,
    AccessRow,
    AccountRow,
    Cycle,
    OperationIndex,
    StateRow,
    Tick,
    Value,
    aged,
    names_of,
    relative,
    shift,
)
from castsim.engines.fast_dataflow.tile_simulation import Attempt
from castsim.execution.pipe_operations import FlagSignal, FlagWait, PipeBarrier, ScalarWork
from castsim.execution.timing import repeated
from castsim.execution.transfer_timing import NO_TICK
from castsim.execution.tree import Access, Block, GlobalSpace, Loop, Tree, elements
from castsim.isa.errors import CastsimError, EngineError
from castsim.running.program_loading import load_program
from castsim.targets.loader import load_target


@pytest.mark.parametrize(
    "path", sorted({*PROGRAMS.rglob("*.pto")} - {*PROGRAMS.rglob("micro/**/*.pto")}), ids=lambda path: path.stem
)
def test_sample_programs_take_the_same_cycles(path: Path) -> None:
    loaded = load_program(path, None, None, scalars(path))
    expected = outcome(loaded.tree, loaded.target, engine="event")
    assert outcome(loaded.tree, loaded.target, engine="fast") == expected
    assert outcome(loaded.tree, loaded.target, engine="fast", skip=False) == expected


def test_simpy_is_not_needed() -> None:
    program = PROGRAMS / "f32_to_f16.pto"
    code = (
        "import sys; from castsim import run\n"
        f"run({str(program)!r}, timing_only=True, engine='fast')\n"
        "print('simpy' in sys.modules)"
    )
    found = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=True, cwd=PROGRAMS.parent
    )
    assert found.stdout.strip() == "False"


THOROUGH = bool(os.environ.get("CASTSIM_THOROUGH"))
SEEDS, LARGE, SMALL = (3000, 2_000, 20_000) if THOROUGH else (80, 30, 1_500)
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


@pytest.mark.parametrize(
    ("make", "small", "seeds"),
    [
        (fast_programs.strided, False, range(SEEDS)),
        (fast_programs.functions, False, range(LARGE)),
        (fast_programs.strided, True, range(10**6, 10**6 + SMALL)),
        (fast_programs.functions, True, range(10**6, 10**6 + SMALL)),
    ],
)
def test_random_programs_take_the_same_cycles_for_the_same_reasons(make, small, seeds):
    for seed in seeds:
        tree, target = make(seed, small=small)
        expected = outcome(tree, target, engine="event", max_cycles=LIMIT)
        assert outcome(tree, target, engine="fast", max_cycles=LIMIT) == expected, seed
        if not small:
            assert outcome(tree, target, engine="fast", max_cycles=LIMIT, skip=False) == expected, seed


@pytest.mark.parametrize("make", [fast_programs.strided, fast_programs.functions])
def test_the_limit_strikes_at_the_same_instruction(make):
    for seed in range(2 * 10**6, 2 * 10**6 + SMALL // 8):
        tree, target = make(seed, small=True)
        for limit in (1, 20, 100, 700):
            expected = outcome(tree, target, engine="event", max_cycles=limit)
            assert outcome(tree, target, engine="fast", max_cycles=limit) == expected, (seed, limit)


@pytest.mark.parametrize("name", engine_campaign.MECHANISMS)
def test_the_campaign_compares_programs_of_every_mechanism(name):
    first = json.loads(engine_campaign.RECORD.read_text())[name]
    assert first > 1000
    assert all(engine_campaign.agree(name, seed) for seed in range(first, first + 3))


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


def test_records_of_jumps_in_jumps():
    # Rows 0 to 9. Rows 2 and 3 stand for three times themselves, 10 cycles apart; rows 1 to 5, with these inside, for
    # twice themselves, 100 apart.
    inner = Jump(2, 4, 2, RecordShift(10, 7, 2))
    jumps = [Jump(1, 6, 1, RecordShift(100, 50, 9), (inner,))]
    records = Records(lambda: RunRecords(10, jumps, lambda x, shift: (x + shift.executions, x, shift.pipes)))
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


ROOMS = (2, 4, 16)


@pytest.fixture(params=ROOMS)
def room(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> int:
    """How many executions there is room for at first."""
    monkeypatch.setattr(execution_rows, "_FIRST_ROOM", request.param)
    return int(request.param)


@pytest.mark.usefixtures("room")
@pytest.mark.parametrize("make", [fast_programs.strided, fast_programs.functions])
def test_random_trees_agree(make) -> None:
    for seed in range(3 * 10**6, 3 * 10**6 + 150):
        tree, target = make(seed, small=seed % 10 != 0)
        expected = outcome(tree, target, engine="event", max_cycles=LIMIT)
        assert outcome(tree, target, engine="fast", max_cycles=LIMIT) == expected, seed


@pytest.mark.parametrize("account", [AccountRow(), AccountRow(90, 95, 3, 80, 2), AccountRow(5, NO_TIME, NONE, 4, 2)])
def test_a_row_that_has_not_changed_has_aged(account: AccountRow) -> None:
    before = relative(account, AccountRow, 100, lambda number: NONE if number == NONE else 10 - number)
    after = relative(account, AccountRow, 130, lambda number: NONE if number == NONE else 17 - number)
    assert aged(before, AccountRow, 30, 7) == after
    shift(account, AccountRow, -30)
    moved = relative(account, AccountRow, 130, lambda number: NONE if number == NONE else 10 - number)
    assert moved == before


class Sample(StateRow):
    plain: int = 7
    value: Value = 7
    cycle: Cycle = 120
    tick: Tick = 12_050
    entry: OperationIndex = 4


def test_what_is_compared_follows_from_the_types_of_fields() -> None:
    absent = Sample(cycle=NO_TIME, tick=NO_TICK, entry=NONE)
    for row, expected in (
        (Sample(), (7, 20, 2050, 6)),
        (absent, (7, NO_TIME, NO_TICK, NONE)),
        (Sample(cycle=NEVER), (7, NEVER, 2050, 6)),
    ):
        assert relative(row, Sample, 100, lambda number: NONE if number == NONE else 10 - number) == expected


def contents(memory: MachineMemory) -> dict[str, object]:
    """Everything in a state, as plain numbers."""
    numbers, rows, tables = parts_of_machine()
    m = memory.machine
    found: dict[str, object] = {name: getattr(m, name) for name in numbers}
    for name, kind in rows.items():
        found[name] = [getattr(getattr(m, name), field) for field in names_of(kind)]
    for name, kind in tables.items():
        known = [getattr(m, name)[place] for place in range(memory.size(name))]
        members = () if kind is int else names_of(kind)
        found[name] = known if kind is int else [[getattr(row, member) for member in members] for row in known]
    return found


def filled() -> MachineMemory:
    memory = MachineMemory()
    m = memory.machine
    memory.take("pipes", 3)
    memory.take("causes", 40, 5)
    memory.append("accesses", [AccessRow(0, 10 * k, 10 * k + 4, k & 1) for k in range(20)])
    memory.append("numbers", [3, -1, 1 << 60])
    memory.make_room()
    memory.lengthen_executions(8)
    for x in range(6):
        m.issuer.execution += 1
        m.executions[x & m.execution_mask].start = 100 + x
    m.first_execution, m.ports.launched, m.pipes[2].wake = 2, 4, NEVER
    memory.put_tokens([4, 8, 12])
    return memory


def test_both_forms_grow_alike() -> None:
    objects, bare = filled(), filled()
    bare.compile()
    for memory in (objects, bare):
        m = memory.machine
        assert memory.append("accesses", [AccessRow(1, 2, 3, 1) for _ in range(30)]) == 20
        assert memory.take("bank_free", 100, NONE) == 0
        memory.lengthen_executions(64)
        assert [m.executions[x & m.execution_mask].start for x in range(2, 6)] == [102, 103, 104, 105]
        m.entry_spare = 0
        memory.make_room()
        memory.put_tokens([*range(500)])
        m.accesses[49].end = 77
        m.numbers[2] -= 1
        m.issuer.clock += 9
    grown = [{name: held for name, held in contents(each).items() if name != "executions"} for each in (bare, objects)]
    assert grown[0] == grown[1]  # rows of the ring that are not in use hold anything
    assert list(bare.columns("accesses", 18, 21)["start"]) == list(objects.columns("accesses", 18, 21)["start"])


def test_compiled_code_sees_every_field_where_python_does() -> None:
    """numba's records and ctypes' lie alike: the names, in order, eight bytes each."""
    pytest.importorskip("numba")
    from castsim.engines.fast_dataflow.compiled_machine import _FIELDS  # noqa: PLC0415 - needs numba
    from castsim.engines.fast_dataflow.execution_rows import record_of  # noqa: PLC0415 - as above

    _, rows, tables = parts_of_machine()
    for name, kind in {**rows, **tables}.items():
        if kind is not int:
            record = getattr(_FIELDS[name], "row", _FIELDS[name])
            seen = {member: record.offset(member) for member in record.fields}
            assert seen == {name: getattr(record_of(kind), name).offset for name in names_of(kind)}


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


def test_the_limit_strikes_inside_a_loop_that_would_be_skipped():
    tree = program(looped(10**9, TURN, LOAD, CAST, STORE), interlocked=True)
    with pytest.raises(EngineError, match=r"cycle limit of 10000000 reached at 'instruction \d' \(k.pto:\d:3\)"):
        simulate(tree, a2a3(), max_cycles=10**7)


def test_a_pipe_that_works_while_a_long_loop_runs_is_not_served_late():
    # Nothing orders the store behind the casts, so it begins long before they end: other than a look ahead suggests.
    tree = program(looped(400, TURN, CAST), STORE, CAST, STORE)
    assert plain(simulate(tree, a2a3())) == plain(simulate(tree, a2a3(), engine="event"))


@pytest.mark.usefixtures("room")
def test_random_loops_agree() -> None:
    timed = 0
    for seed in range(1, 100, 4):
        target = load_target("a5" if seed % 5 == 0 else "a2a3")
        try:
            tree = walk(Maker(seed, narrow=seed % 3 == 0).text(), target=target).tree
        except CastsimError:
            continue
        fast, event = (simulate(tree, target, engine=name) for name in ("fast", "event"))
        assert (fast.total, fast.pipes) == (event.total, event.pipes), seed
        assert list(fast.executions) == list(event.executions), seed
        timed += 1
    assert timed > 12
