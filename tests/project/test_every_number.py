"""Every number of the shipped descriptions is used, or no other value is taken.

Each is changed in a derived description with a source and a status of its own. Loading it is refused with a reason, or
something that can be observed is another: cycles, values, refusals, code, findings, distances. What a table marks as
informational changes nothing.
"""

from __future__ import annotations

import os
import random
from collections.abc import Iterator
from dataclasses import replace
from functools import cache
from itertools import islice
from pathlib import Path
from types import ModuleType

import pytest
from project import number_observations, specification_observations, tpc_observations
from project.description_numbers import (
    Number,
    cells,
    derived,
    heirs,
    is_informational,
    numbers,
    others,
    plain,
    row_of,
    sampled,
    tables,
)  # fmt: skip
from project.number_observations import outcome

from castsim.isa.errors import TargetDataError
from castsim.targets.loader import load_specification, load_target, specification_names, target_names
from castsim.targets.vliw_latency import StageRow

THOROUGH = "CASTSIM_THOROUGH" in os.environ
PER_TABLE, PER_COLUMN, SEED = 2, (10**6 if THOROUGH else 1), 20_260_101
MOST = 4
"""Other values of a number that are tried."""
TILES = ("a2a3", "a5")
BUNDLES = tuple(name for name in target_names() if name not in TILES)


def of(name: str) -> list[Number]:
    """Return the numbers of a description that are tried."""
    found = numbers(name) if THOROUGH else _some(numbers(name))
    for table, file in tables(name).items():
        if not table.startswith("measured"):
            found += sampled([number for number in cells(name, table, file) if _is_read(number)], PER_COLUMN, SEED)
    return found


def _some(found: list[Number]) -> list[Number]:
    """Return numbers of every table."""
    source, chosen = random.Random(SEED), []
    for table in dict.fromkeys(number.keys[:1] for number in found):
        among = [number for number in found if number.keys[:1] == table]
        chosen += source.sample(among, min(PER_TABLE, len(among)))
    return chosen


def _is_read(number: Number) -> bool:
    """Whether a number is not of a row of the stage tables that no instruction has (the note of the table)."""
    return number.keys != ("stages",) or _is_row_read(replace(number, value=0, column="", place=0))


@cache
def _is_row_read(number: Number) -> bool:
    """Whether an instruction has the row of the stage tables in which a number stands."""
    key = StageRow.model_validate({**row_of(number), "opcode": int(row_of(number)["opcode"])}).key
    return any(key in tpc_observations.rows_read(heir.target) for heir in heirs(number))


NUMBERS = [number for name in (*target_names(), *specification_names()) for number in of(name)]
MARKED = [number for number in NUMBERS if is_informational(number)]


def seen_of(name: str) -> ModuleType:
    """Return the module that observes a description."""
    if name in specification_names():
        return specification_observations
    return tpc_observations if name in BUNDLES else number_observations


def loaded(name: str | Path, of: str) -> object:
    """Load a description that is shipped, or derived from one."""
    return load_specification(name) if of in specification_names() else load_target(name)


@cache
def usual(name: str, index: int) -> object:
    """Return what is seen of a shipped description."""
    return outcome(seen_of(name).observations(name)[index][1], loaded(name, name))


def taken(number: Number, folder: Path) -> Iterator[object]:
    """Yield descriptions in which the number is another, as far as other values are taken."""
    for value in others(number.value):
        try:
            yield loaded(derived(number, value, folder), number.target)
        except TargetDataError as error:
            assert str(error).strip()


def is_seen(number: Number, changed: object) -> bool:
    """Whether some observation of what the number is about differs."""
    module = seen_of(number.target)
    groups, known = module.groups_of(number.keys), module.observations(number.target)
    about = sorted((groups.index(group), index) for index, (group, _) in enumerate(known) if group in groups)
    return any(outcome(known[index][1], changed) != usual(number.target, index) for _, index in about)


def fate(number: Number, folder: Path, most: int = MOST) -> str:
    """Return `used` or `unused`, or `refused` where no other value is taken; `most` others are tried.

    A number of a description on which others build may decide something there only.
    """
    found = "refused"
    for heir in heirs(number):
        for changed in islice(taken(heir, folder), most):
            if is_seen(heir, changed):
                return "used"
            found = "unused"
    return found


@pytest.mark.parametrize("number", [number for number in NUMBERS if number not in MARKED], ids=str)
def test_a_number_is_used_or_refused(number: Number, tmp_path: Path) -> None:
    assert fate(number, tmp_path) != "unused", f"{number}: nothing reads {number.value}"


@pytest.mark.parametrize("number", MARKED, ids=str)
def test_a_number_that_is_marked_informational_decides_nothing(number: Number, tmp_path: Path) -> None:
    assert fate(number, tmp_path, MOST if THOROUGH else 1) == "unused"


def test_every_kind_of_description_is_tried() -> None:
    assert {number.target for number in NUMBERS} == {*target_names(), *specification_names()}
    assert {"stages", "entry_ports", "converts", "placements"} <= {number.keys[0] for number in NUMBERS}
    assert all(plain(name) for name in BUNDLES)
