"""Every timing fact of a target is read by some model: changing it changes the cycles of some sample program."""

from __future__ import annotations

from decimal import Decimal
from functools import lru_cache

import expected_reports
import pytest
import strided_works
from pydantic import BaseModel

from castsim import run
from castsim.targets import load_target

TARGET = load_target("a2a3")
# Small ones first: the first program that changes settles a fact.
PROGRAMS = sorted(
    (name for name in expected_reports.names() if expected_reports.target_of(name) == "a2a3"),
    key=expected_reports.derived_total,
)
# That results may come at once is no number: test_what_if.py reads it.
NOT_NUMBERS = ("source", "status", "evidence", "informational", "note", "validated", "results_at_once")


def numbers(table: BaseModel, path: tuple[str, ...] = ()):
    """Yield (path, value) of every number of a table and the tables inside it."""
    for name in type(table).model_fields:
        value = getattr(table, name)
        if isinstance(value, BaseModel):
            yield from numbers(value, (*path, name))
        elif isinstance(value, dict):
            for key, inner in value.items():
                yield from numbers(inner, (*path, name, key))
        elif name not in NOT_NUMBERS and not getattr(table, "informational", False):
            yield (*path, name), value


def with_number(table: BaseModel, path: tuple[str, ...], value: object) -> BaseModel:
    """Return a copy of the table in which one number is another."""
    name, *rest = path
    held = getattr(table, name)
    if isinstance(held, dict):
        key, *inner = rest
        return table.model_copy(update={name: {**held, key: with_number(held[key], tuple(inner), value)}})
    return table.model_copy(update={name: with_number(held, tuple(rest), value) if rest else value})


@lru_cache
def cycles(name: str) -> int:
    return run(expected_reports.PROGRAMS / f"{name}.pto", TARGET, timing_only=True).cycles


@lru_cache
def work_cycles(mnemonic: str) -> int:
    return strided_works.cycles(TARGET, strided_works.example(mnemonic))


@lru_cache
def works_with(row: str) -> tuple[str, ...]:
    """Vector operations on tiles that issue an instruction of a timing row."""
    return tuple(
        name
        for name in strided_works.MNEMONICS
        if any(operation.timing == row for operation in strided_works.vectors(strided_works.example(name)))
    )


def some_work_changes(target: BaseModel, names: tuple[str, ...]) -> bool:
    """Whether a vector operation, as a program of its own, takes another time."""
    return any(strided_works.cycles(target, strided_works.example(name)) != work_cycles(name) for name in names)


def some_program_changes(target: BaseModel) -> bool:
    paths = ((name, expected_reports.PROGRAMS / f"{name}.pto") for name in PROGRAMS)
    return any(run(path, target, timing_only=True).cycles != cycles(name) for name, path in paths)


# Accesses of the scalar unit: test_scalar_memory.py reads their facts; what several cores share, and what only A5 has
# of transfers: test_transfers_measured.py.
# Of vector instructions the two numbers that every row has, where some operation issues it without an option.
_ELSEWHERE = ("shared_startup_cycles", "shared_bytes_per_cycle", "descriptor_cycles", "transaction_bytes")
FACTS = {
    path: value
    for path, value in numbers(TARGET.timing, ("timing",))
    if path[1] != "scalar_access"
    and path[-1] not in _ELSEWHERE
    and (path[1] != "vector" or (path[3] in ("startup_cycles", "repeat_cycles") and works_with(path[2])))
}


def test_there_are_facts_to_change():
    assert len(FACTS) >= 18


@pytest.mark.parametrize("path", FACTS, ids=".".join)
def test_timing_fact_is_read(path):
    value = FACTS[path]
    changed = value + 3 if path[1] == "vector" else value / 2 if isinstance(value, Decimal) else value + 1
    target = with_number(TARGET, path, changed)
    works = works_with(path[2]) if path[1] == "vector" else ("trowexpand",)
    assert some_work_changes(target, works) or some_program_changes(target)


@pytest.mark.parametrize(
    ("groups", "banks_per_group", "bank_bytes"),
    [
        (2, 3, 32768),  # a repeat's eight blocks crowd into two groups
        (16, 12, 1024),  # the load of bank_conflict.pto gets a bank of its own
    ],
)
def test_banks_are_read(groups, banks_per_group, bank_bytes):
    banks = {"groups": groups, "banks_per_group": banks_per_group, "bank_bytes": bank_bytes}
    target = TARGET.model_copy(update={"banks": TARGET.banks.model_copy(update=banks)})
    assert type(TARGET).model_validate(target.model_dump()).banks == target.banks
    assert some_program_changes(target)


def test_the_head_option_is_read():
    head = TARGET.options["vector_head"].model_copy(update={"value": "always"})
    assert some_program_changes(TARGET.model_copy(update={"options": {**TARGET.options, "vector_head": head}}))
