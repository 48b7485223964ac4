"""The table of what only the long run tests is about tests that there are, and all of it has passed."""

from __future__ import annotations

import json

import long_run


def test_every_row_has_passed_as_the_test_is() -> None:
    """After a change of such a test: `pytest --long-record tests/test_of_it.py`."""
    held = json.loads(long_run.RECORD.read_text(encoding="utf-8"))
    rows = long_run.rows()
    assert not [test for test in rows if long_run.digest(test) is None], "no such tests"
    assert not [test for test in rows if held.get(test, {}).get("source") != long_run.digest(test)], "not passed since"
    assert not [test for test, cases in rows.items() if held[test]["passed"] <= cases], "rows that leave nothing out"
    assert [*held] == sorted(rows)
