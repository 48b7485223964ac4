"""Every TPC sample program against its expected report: cycles derived by hand, digests by the test oracle."""

from __future__ import annotations

import numpy as np
import pytest
from kit import tpc_programs_oracle
from makers import expected_files
from makers import tpc_expected_reports as expected_reports

from castsim import run
from castsim.execution.timing import Cause
from castsim.isa.tpc.parser import parse
from castsim.machines.vliw.findings import StaleReadKind
from castsim.numerics.codec import codes_from_array
from castsim.running.program_runs import Result
from castsim.targets.loader import load_target
from castsim.targets.vliw import VliwTarget
from castsim.tools.tpc_lint.lint_checking import lint

pytestmark = pytest.mark.smoke

NAMES = expected_reports.names()
PIPELINED, STALE = "tpc_f32_i32_pipelined_goya", "tpc_f32_i32_pipelined_stale_goya"


def result(name: str, **keywords: object) -> Result:
    inputs = {source: f"random:{expected_reports.SEED}" for source, _, _ in tpc_programs_oracle.INPUTS[name]}
    return run(expected_reports.PROGRAMS / f"{name}.tpc", inputs=inputs, **keywords)  # type: ignore[arg-type]


@pytest.fixture(scope="module", params=NAMES)
def sample(request: pytest.FixtureRequest) -> tuple[str, Result]:
    return request.param, result(request.param)


def test_every_program_has_inputs_and_an_expected_report() -> None:
    assert sorted(tpc_programs_oracle.INPUTS) == NAMES
    assert all((expected_reports.PROGRAMS / f"{name}.expected").exists() for name in NAMES)
    assert {expected_reports.target_of(name) for name in NAMES} == {"goya", "gaudi", "gaudib", "greco", "gaudi2"}


def test_cycles_follow_from_the_facts_by_hand(sample: tuple[str, Result]) -> None:
    name, found = sample
    assert found.cycles == expected_reports.derived_total(name)


def test_outputs_are_the_oracles(sample: tuple[str, Result]) -> None:
    name, found = sample
    expected = tpc_programs_oracle.outputs(name, expected_reports.SEED)
    for output, codes in expected.items():
        fmt = found.loaded.arguments[output].format
        np.testing.assert_array_equal(codes_from_array(found.outputs[output], fmt), codes)
    written = {line.split()[0]: line.split()[2] for line in expected_files.sections(name)["outputs"] if line.strip()}
    assert expected_reports.oracle_digests(name) == written


def test_inputs_are_those_of_the_product(sample: tuple[str, Result]) -> None:
    name, found = sample
    given = tpc_programs_oracle.sources(name, expected_reports.SEED)
    again = run(expected_reports.PROGRAMS / f"{name}.tpc", inputs=given)
    assert all(np.array_equal(again.outputs[o], found.outputs[o], equal_nan=False) for o in found.outputs)


def test_the_report_is_the_expected_one(sample: tuple[str, Result]) -> None:
    name, _ = sample
    assert expected_reports.report(name) == expected_files.sections(name)["report"]


def test_only_the_stale_twin_reads_stale_values(sample: tuple[str, Result]) -> None:
    name, found = sample
    inferred = ("mov_dg.pack: the parts taken are those that PACK fills, which is inferred",)
    assert all(each.endswith(inferred) for each in found.warnings)
    assert bool(found.warnings) is (name == "tpc_bf16_f8_143_parts_gaudi2")
    assert (found.stale_reads != ()) is (name == STALE)


@pytest.mark.parametrize("name", NAMES)
def test_programs_are_clean(name: str) -> None:
    target = load_target(expected_reports.target_of(name))
    assert isinstance(target, VliwTarget)
    text = (expected_reports.PROGRAMS / f"{name}.tpc").read_text()
    found = lint(parse(text, target.dialect), target)
    if name != STALE:
        assert found == ()
        return
    assert {(each.rule, each.certain) for each in found} == {("stale read", True)}
    early = [each for each in result(name).stale_reads or () if each.kind is StaleReadKind.EARLY]
    assert [each.bundle for each in found] == sorted(each.reader.bundle for each in early)


def test_the_pipelined_loop_reaches_one_convert_per_cycle() -> None:
    found = result(PIPELINED)
    converts = sorted(op.start for op in found.timing.operations if op.name.startswith("convert"))
    longest = max(np.split(converts, np.flatnonzero(np.diff(converts) > 1) + 1), key=len)
    assert len(converts) == 48
    assert len(longest) == 41  # from the delay bundle of the loop on, one in every cycle
    for slot, others in (("LOAD", 0), ("VPU", 1), ("STORE", 0)):  # the VPU also takes its HALT
        assert found.pipes[slot].busy == 48 + others
        assert not found.pipes[slot].causes.get(Cause.MEMORY_BANDWIDTH)


def test_the_stale_twin_is_reported_store_by_store() -> None:
    found = result(STALE)
    assert found.stale_reads is not None
    early = [f for f in found.stale_reads if f.kind is StaleReadKind.EARLY]
    assert {(f.distance, f.needed, f.missing) for f in early} == {(6, 7, 1)}
    assert {f.reader.instruction.mnemonic for f in early} == {"st_l_v"}
    assert all(f.writer is not None and f.writer.instruction.mnemonic == "convert" for f in early)
    assert sum(f.times for f in early) == 48 - len(tpc_programs_oracle.LOOP_BETWEEN)


def test_hardware_mode_gives_the_same_values_and_no_report() -> None:
    checked, hardware = result(STALE), result(STALE, stale_reads="ignore")
    np.testing.assert_array_equal(checked.outputs["y"], hardware.outputs["y"])
    assert hardware.stale_reads is None
    assert hardware.cycles == checked.cycles
