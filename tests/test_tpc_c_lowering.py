"""Calls of the vendor's tests and the instructions that they expect: at least 95 % of the rows give theirs."""

from __future__ import annotations

import os

from tpc_c_calls import lowered
from tpc_text import table

STEP = 1 if os.environ.get("CASTSIM_THOROUGH") else 5


def test_rows_give_the_expected_instruction() -> None:
    """Each row on the newest generation that it names; 3,468 of all 3,575 do (97.0 %)."""
    rows = table("tpc_c_lowering.csv")[::STEP]
    missed = {}
    for number, row in enumerate(rows):
        agrees, found = lowered(row, row["generations"].split()[-1])
        if not agrees:
            missed[number, row["intrinsic"], row["expected_instruction"]] = found
    assert len(rows) > 700
    assert len(missed) <= 0.05 * len(rows), missed
