"""The table of what only the long run tests is about tests that there are, and all of it has passed."""

from __future__ import annotations

import json

import long_run
import pytest


def test_every_row_has_passed_as_the_test_is() -> None:
    """After a change of such a test: `pytest --long-record tests/test_of_it.py`."""
    held = json.loads(long_run.RECORD.read_text(encoding="utf-8"))
    rows = long_run.rows()
    assert not [test for test in rows if long_run.digest(test) is None], "no such tests"
    assert not [test for test in rows if held.get(test, {}).get("source") != long_run.digest(test)], "not passed since"
    assert not [test for test, cases in rows.items() if held[test]["passed"] <= cases], "rows that leave nothing out"
    assert [*held] == sorted(rows)


@pytest.mark.parametrize(("number", "cases"), [(1, 1), (7, 1), (7, 3), (80, 10), (5, 5)])
def test_cases_are_spread_evenly(number: int, cases: int) -> None:
    found = long_run.chosen("test_x.py::test_y", number, cases)
    assert len(found) == cases
    around = [*found[1:], found[0] + number]
    assert {after - before for before, after in zip(found, around, strict=True)} <= {
        number // cases,
        -(-number // cases),
    }


def test_all_cases_but_those_of_rows_stay() -> None:
    test = next(test for test, cases in long_run.rows().items() if cases == 1)
    nodes = [f"tests/{test}[{k}]" for k in range(9)]
    assert len(long_run.left_out([*nodes, "tests/project/test_long_run.py::test_other"])) == 8
    assert long_run.in_full([nodes[0]])
