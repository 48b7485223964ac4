"""The curve of programs of vector instructions: read, timed, within the error of the best public model."""

from __future__ import annotations

from pathlib import Path

import pytest

from castsim.evidence.accuracy_assessment import assess
from castsim.evidence.measured_rows import read_table
from castsim.isa.errors import CastsimError, ReadError
from castsim.targets import load_target
from castsim.targets.loader import SHIPPED

A5 = load_target("a5")
FILE = SHIPPED / "a5_measured_scopes.csv"
PUBLIC_MEAN = 4.64
"""Percent by which VfSimulator is off in the mean over its 21 programs, of which these are 11."""

HEADER = "case,dtype,loops,trips,unroll,measured_cycles,program\n"


def test_the_mean_error_is_below_that_of_the_public_model() -> None:
    found = assess(A5, read_table(FILE))
    (curve,) = found.curves
    assert curve.simulated.rows == 11
    assert curve.simulated.mean < PUBLIC_MEAN
    assert all(row.reason for row in found.rows if abs(row.error) > 4.64)


def test_a_table_of_ones_own(tmp_path: Path) -> None:
    file = tmp_path / "mine.csv"
    file.write_text(HEADER + "copy,fp32,1,10,1,60,a=vlds A; b=vcvt a; vsts B b\n")
    (row,) = assess(A5, read_table(file)).rows
    # start 22, loop 2, load 6, vcvt 4.5, store 9, drain 12, nine more trips; rounded half up
    assert row.simulated_cycles == 65


@pytest.mark.parametrize(
    ("program", "message"),
    [("a=vlds A; ?", "is not an instruction"), ("a=vlds", "names no buffer"), ("a=vlds A; b=vnothing a", "no latency")],
)
def test_refusals_name_the_cell(tmp_path: Path, program: str, message: str) -> None:
    file = tmp_path / "mine.csv"
    file.write_text(HEADER + f"bad,fp32,1,10,1,60,{program}\n")
    with pytest.raises(CastsimError, match=message) as error:
        assess(A5, read_table(file))
    span = error.value.span
    assert span and (span.line, span.column) == (2, len("bad,fp32,1,10,1,60,") + 1)


def test_a_missing_column_is_named(tmp_path: Path) -> None:
    file = tmp_path / "mine.csv"
    file.write_text("case,dtype,program\nx,fp32,a=vlds A\n")
    with pytest.raises(ReadError, match="no column trips, measured_cycles"):
        read_table(file)
