"""The sample kernels against their expected reports."""

from __future__ import annotations

import json

import kernels_expected
import pytest
from expected_files import PROGRAMS, printed, sections
from kernels_model import FILES

SAMPLES = [(target, name) for target, files in FILES.items() for name in files]


def test_every_kernel_has_an_expected_report() -> None:
    named = sorted(file for files in FILES.values() for file in files.values())
    for ending in ("pto", "expected"):
        assert sorted(f"kernels/{path.stem}" for path in (PROGRAMS / "kernels").glob(f"*.{ending}")) == named


@pytest.mark.parametrize(("target", "name"), SAMPLES)
def test_pipes_work_as_the_facts_say(target: str, name: str) -> None:
    values = kernels_expected.derived(target, FILES[target][name])
    assert {"load_pipe", "store_pipe", "total_at_least"} <= set(values)
    line = kernels_expected.words(target, name)
    document = json.loads("\n".join(printed([*line, "--timing-only", "--json", "-", "--quiet"])))
    assert not kernels_expected.contradictions(values, document)
    assert document["total_cycles"] < 4 * values["total_at_least"]


@pytest.mark.parametrize(("target", "name"), SAMPLES)
def test_digests_are_the_models_and_the_report_is_the_expected_one(target: str, name: str) -> None:
    found = sections(FILES[target][name])
    digests = {line.split()[0]: line.split()[2] for line in found["outputs"] if line.strip()}
    assert digests == kernels_expected.digests(target, name)
    report = printed(kernels_expected.words(target, name))
    assert report == found["report"]
    text = " ".join(report)  # long lines are wrapped
    for output, digest in digests.items():
        assert f"sha256 {digest} " in text.split(f"output {output}: ")[1].split("output ")[0]
