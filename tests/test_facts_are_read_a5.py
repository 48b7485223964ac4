"""Every timing fact of A5 that is not marked informational changes the cycles of some sample program."""

from __future__ import annotations

from functools import lru_cache

import expected_reports
import function_times
import pytest

from castsim import run
from castsim.targets import load_target
from castsim.targets.vector_function import VectorFunctionTarget

TARGET = load_target("a5")
PROGRAMS = sorted(
    (name for name in expected_reports.names() if expected_reports.target_of(name) == "a5"),
    key=expected_reports.derived_total,
)
RATES = ("bytes_per_cycle",)
# The geometry of the head penalty: what makes one of the measured sizes fall under another case.
GEOMETRY = {"step_bytes": 64, "line_bytes": 128, "bank_bit": 7}


# What only rows that lie apart, several cores or several transfers show: see test_transfers_measured.py.
OF_TRANSFERS = ("transaction_bytes", "overlaps", "shared_startup_cycles", "shared_bytes_per_cycle")
ABOUT = ("source", "status", "evidence", "informational", "note")


# Tables of operations other than casts: see test_function_work_facts.py, test_every_number.py.
OTHER_OPERATIONS = (
    "loads", "division", "special_function", "memory_floor", "scalar_access", "micro", "sharing", "paced",
)  # fmt: skip


def facts() -> dict[tuple[str, ...], object]:
    """Return every number of the timing tables that casts have; latencies and occupancies one by one."""
    found: dict[tuple[str, ...], object] = {}
    for name, table in TARGET.timing:
        if name in OTHER_OPERATIONS:
            continue
        for key, value in table:
            if isinstance(value, dict):
                found |= {(name, key, mnemonic): inner for mnemonic, inner in value.items()}
            elif key not in (*ABOUT, *OF_TRANSFERS):
                found[name, key] = value
    return found


FACTS = facts()


def changed(path: tuple[str, ...]) -> VectorFunctionTarget:
    """Return the target with another value of a fact."""
    name, key, *mnemonic = path
    value = FACTS[path]
    if key in GEOMETRY:
        value = GEOMETRY[key]
    elif key in RATES:
        value /= 2
    else:
        value += 20
    table = getattr(TARGET.timing, name)
    held = {**getattr(table, key), mnemonic[0]: value} if mnemonic else value
    timing = TARGET.timing.model_copy(update={name: table.model_copy(update={key: held})})
    return TARGET.model_copy(update={"timing": timing})


@lru_cache
def cycles(name: str) -> int:
    return run(expected_reports.PROGRAMS / f"{name}.pto", TARGET, timing_only=True).cycles


def test_there_are_facts_and_programs() -> None:
    assert len(FACTS) >= 30
    assert len(PROGRAMS) >= 5


@pytest.mark.parametrize("path", FACTS, ids=".".join)
def test_timing_fact_is_read(path: tuple[str, ...]) -> None:
    target = changed(path)
    paths = ((name, expected_reports.PROGRAMS / f"{name}.pto") for name in PROGRAMS)
    shape = function_times.padded(10, 128)  # rows of one trip, which no sample has of 4-bit elements
    assert any(run(program, target, timing_only=True).cycles != cycles(name) for name, program in paths) or (
        function_times.cycles("e2m1", "bf16", shape, target=target) != function_times.cycles("e2m1", "bf16", shape)
    )


def test_no_timing_table_is_informational() -> None:
    assert not [name for name, table in TARGET.timing if getattr(table, "informational", False)]


@pytest.mark.parametrize(
    "change", [{"reads_per_group": 1}, {"reads_beside_write": 2}, {"groups": 4, "bank_bytes": 32_768}], ids=str
)
def test_ports_are_read(change: dict[str, int]) -> None:
    target = TARGET.model_copy(update={"banks": TARGET.banks.model_copy(update=change)})
    assert any(
        run(expected_reports.PROGRAMS / f"{name}.pto", target, timing_only=True).cycles != cycles(name)
        or function_times.cycles("f32", "f16", shape, target=target) != function_times.cycles("f32", "f16", shape)
        for name, shape in (("a5_f32_to_i16_both_routes", function_times.padded(3, 384)),)
    )


def test_the_profiled_sequence_is_read() -> None:
    option = TARGET.options["profiled_sequences"].model_copy(update={"value": "text"})
    target = TARGET.model_copy(update={"options": {**TARGET.options, "profiled_sequences": option}})
    name = "a5_hif8_round_trip"
    assert run(expected_reports.PROGRAMS / f"{name}.pto", target, timing_only=True).cycles != cycles(name)
