"""Every number of the descriptions of Ascend chips is used, or no other value is taken.

Each is changed in a derived description with a source and a status of its own. Loading it is refused with a reason, or
something that can be observed is another: cycles, values, refusals, code, findings, distances.
"""

from __future__ import annotations

import os
import random
from functools import cache
from pathlib import Path

import pytest
from description_numbers import Number, cells, derived, numbers, others, sampled, tables
from number_observations import groups_of, observations, outcome

from castsim.isa.errors import TargetDataError
from castsim.targets import Target, load_target

THOROUGH = "CASTSIM_THOROUGH" in os.environ
PER_TABLE, PER_COLUMN, SEED = 3, (10**6 if THOROUGH else 2), 20_260_101
MOST = 4
"""Other values of a number that are tried together."""


def of(name: str) -> list[Number]:
    """Return the numbers of a description that are tried."""
    found = numbers(name) if THOROUGH else _some(numbers(name))
    for table, file in tables(name).items():
        if not table.startswith("measured"):
            found += sampled(cells(name, table, file), PER_COLUMN, SEED)
    return found


def _some(found: list[Number]) -> list[Number]:
    """Return numbers of every table."""
    source, chosen = random.Random(SEED), []
    for table in dict.fromkeys(number.keys[:1] for number in found):
        among = [number for number in found if number.keys[:1] == table]
        chosen += source.sample(among, min(PER_TABLE, len(among)))
    return chosen


TARGETS = ("a2a3", "a5")
"""Chips that run tile programs. What the others state is tried by test_tpc_stages.py and the encoding tests."""
NUMBERS = [number for name in TARGETS for number in of(name)]


@cache
def usual(name: str, index: int) -> object:
    """Return what is seen of a shipped target."""
    return outcome(observations(name)[index][1], load_target(name))


def taken(number: Number, folder: Path) -> list[Target]:
    """Return targets in which the number is another, as far as other values are taken."""
    found = []
    for value in others(number.value):
        try:
            found.append(load_target(derived(number, value, folder)))
        except TargetDataError as error:
            assert str(error).strip()
        if len(found) == MOST:
            break
    return found


def is_used(number: Number, changed: list[Target]) -> bool:
    """Whether some observation of what the number is about differs for one of the changed targets."""
    groups, known = groups_of(number.keys), observations(number.target)
    about = sorted((groups.index(group), index) for index, (group, _) in enumerate(known) if group in groups)
    return any(
        outcome(known[index][1], target) != usual(number.target, index) for _, index in about for target in changed
    )


@pytest.mark.parametrize("number", NUMBERS, ids=str)
def test_a_number_is_used_or_refused(number: Number, tmp_path: Path) -> None:
    changed = taken(number, tmp_path)
    assert not changed or is_used(number, changed), f"{number}: nothing reads {number.value}"
