"""The named state of the fast engine: one set of rows for interpreted and compiled runs, snapshots by their types."""

from __future__ import annotations

from typing import get_type_hints

import pytest

from castsim.engines.fast_dataflow.execution_rows import MachineMemory, parts_of_machine
from castsim.engines.fast_dataflow.function_state import (
    Cycle,
    Due,
    EntryNumber,
    RecentCycle,
    RecentTick,
    StateRow,
    Tick,
    Value,
    aged,
    names_of,
    relative,
    shift,
)
from castsim.engines.fast_dataflow.state import AccessRow, AccountRow, EntryRow, MachineState, chain
from castsim.engines.fast_dataflow.state_codes import NEVER, NO_TIME, NONE
from castsim.execution.dataflow.transfer_timing import NO_TICK


class Sample(StateRow):
    plain: int = 7
    value: Value = 7
    cycle: Cycle = 120
    due: Due = 90
    recent: RecentCycle = 90
    tick: Tick = 12_050
    recent_tick: RecentTick = 3
    entry: EntryNumber = 4


def test_rows_are_made_like_dataclasses() -> None:
    assert names_of(Sample) == ("plain", "value", "cycle", "due", "recent", "tick", "recent_tick", "entry")
    assert [getattr(Sample(1, 2, entry=3), name) for name in names_of(Sample)] == [1, 2, 120, 90, 90, 12_050, 3, 3]
    assert not hasattr(Sample(), "__dict__")
    with pytest.raises(TypeError, match="missing 4 required"):
        AccessRow()
    with pytest.raises(TypeError, match="unexpected keyword"):
        AccountRow(nothing=1)


def since(number: int) -> int:
    return NONE if number == NONE else 10 - number


def test_what_is_compared_follows_from_the_types_of_fields() -> None:
    assert relative(Sample(), Sample, 100, since) == (7, 20, 0, -1, 2050, -100, 6)
    absent = Sample(cycle=NO_TIME, due=NEVER, tick=NO_TICK, entry=NONE)
    assert relative(absent, Sample, 100, since) == (7, NO_TIME, NEVER, -1, NO_TICK, -100, NONE)


def test_a_row_looks_the_same_when_all_times_have_moved() -> None:
    later = Sample(plain=8, cycle=150, due=120, recent=120, tick=15_050, recent_tick=2_000, entry=6)
    assert relative(later, Sample, 130, lambda number: 12 - number) == relative(Sample(), Sample, 100, since)


@pytest.mark.parametrize("account", [AccountRow(), AccountRow(90, 95, 3, 80, 2), AccountRow(5, NO_TIME, NONE, 4, 2)])
def test_a_row_that_has_not_changed_has_aged(account: AccountRow) -> None:
    before = relative(account, AccountRow, 100, lambda number: NONE if number == NONE else 10 - number)
    after = relative(account, AccountRow, 130, lambda number: NONE if number == NONE else 17 - number)
    assert aged(before, AccountRow, 30, 7) == after
    shift(account, AccountRow, -30)
    moved = relative(account, AccountRow, 130, lambda number: NONE if number == NONE else 10 - number)
    assert moved == before


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
    m.first_execution, m.front_end.phase, m.pipes[2].wake = 2, 4, NEVER
    memory.put_tokens([4, 8, 12])
    return memory


def test_both_forms_hold_the_same_under_the_same_names() -> None:
    pytest.importorskip("numpy")
    objects, bare = filled(), filled()
    bare.compile()
    assert bare.is_compiled
    assert not objects.is_compiled
    assert contents(bare) == contents(objects)


def test_both_forms_grow_alike() -> None:
    objects, bare = filled(), filled()
    bare.compile()
    for memory in (objects, bare):
        m = memory.machine
        assert memory.append("accesses", [AccessRow(1, 2, 3, 1) for _ in range(30)]) == 20
        assert memory.take("registers", 100, NO_TICK) == 0
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


def test_a_list_ends_where_nothing_follows() -> None:
    entries = [EntryRow(next=2), EntryRow(next=NONE), EntryRow(next=1)]
    assert list(chain(entries, 0)) == [entries[0], entries[2], entries[1]]
    assert not list(chain(entries, NONE))


def test_every_field_of_the_state_is_an_integer_so_that_it_can_be_compiled() -> None:
    _, rows, tables = parts_of_machine()
    assert {*names_of(MachineState)} == {*parts_of_machine()[0], *rows, *tables}
    for kind in {*rows.values(), *tables.values()} - {int}:
        assert set(get_type_hints(kind).values()) == {int}, kind
        assert tuple(get_type_hints(kind)) == names_of(kind)


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
