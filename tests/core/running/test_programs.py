"""Every sample program against its expected report: cycles derived by hand, digests by the test oracle."""

from __future__ import annotations

import numpy as np
import pytest
from makers import expected_reports

from castsim import run
from castsim.isa.formats import format_named
from castsim.numerics.codec import codes_from_array

pytestmark = pytest.mark.smoke

NAMES = sorted(path.stem for path in expected_reports.PROGRAMS.glob("*.pto"))


@pytest.fixture(scope="module", params=NAMES)
def sample(request):
    name = request.param
    return name, run(expected_reports.PROGRAMS / f"{name}.pto", inputs={"src": f"random:{expected_reports.SEED}"})


def test_every_program_has_an_expected_report():
    assert expected_reports.names() == NAMES
    assert len(NAMES) >= 8


def test_cycles_follow_from_the_facts_by_hand(sample):
    name, result = sample
    assert result.cycles == expected_reports.derived_total(name)


def test_outputs_are_the_oracles(sample):
    name, result = sample
    expected = expected_reports.oracle_digests(name)
    found = {
        argument: expected_reports.digest(codes_from_array(array, result.loaded.arguments[argument].format))
        for argument, array in result.outputs.items()
    }
    assert found == expected == expected_reports.read(name).digests


def test_causes_of_every_pipe_add_up_to_the_total(sample):
    _, result = sample
    for pipe in result.pipes.values():
        assert sum(pipe.causes.values()) == result.cycles


def test_the_report_is_the_expected_one(sample):
    name, _ = sample
    assert expected_reports.report(name) == expected_reports.read(name).report


def test_values_do_not_alter_timing_nor_timing_values(sample):
    name, result = sample
    path = expected_reports.PROGRAMS / f"{name}.pto"
    assert run(path, timing_only=True).timing == result.timing
    zeros = run(path, inputs={"src": "zeros"})
    assert zeros.timing == result.timing
    assert all(
        not np.any(
            codes_from_array(a, format_named("f32") if a.dtype == np.float32 else zeros.loaded.arguments[n].format)
        )
        for n, a in zeros.outputs.items()
    )
