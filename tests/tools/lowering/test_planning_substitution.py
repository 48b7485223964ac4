"""Trying all codes with functions that stand in for instructions: what that proves, and the record of their proofs."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from kit.command_output import Capture, document_of, err_of, out_of
from kit.paths import ROOT

import castsim.machines.vliw.semantics
from castsim.isa.formats import FORMATS, Codes
from castsim.numerics.policy import abstract_policy
from castsim.targets.description import with_options
from castsim.targets.loader import load_target
from castsim.tools.lowering import proof as exhaustive_module
from castsim.tools.lowering.catalogue import catalogue_of
from castsim.tools.lowering.demand import CastRequest, Verdict, settle
from castsim.tools.lowering.proof import Method, judge
from castsim.tools.lowering.samples import RECORD, Substitute, disagreeing, recorded, substitute_of, telling_codes
from castsim.tools.lowering.steps import ConstantArithmetic, FormatCast, LoweringStep, VectorForm
from castsim.tools.lowering.vector_steps import ARITHMETIC_OPTIONS
from castsim.tools.verify import lowering
from castsim.tools.verify.lowering import SubstitutionRecord, needed

U32, U8 = FORMATS["u32"], FORMATS["u8"]
ODD_ONE = 0x00B5_7A31
"""A code of no distinction."""


def wrong_at_one_code(codes: Codes) -> Codes:
    """The low byte, but for one code."""
    return np.where(codes == ODD_ONE, np.uint32(0), codes & np.uint32(0xFF))


def chain(primitive: ConstantArithmetic) -> tuple[LoweringStep, ...]:
    """The low byte of u32 as u8, which is the cast u32 -> u8 of ONNX."""
    masked = LoweringStep(U32, U32, (primitive,), (VectorForm("and.u32"),), "and")
    convert = FormatCast(U32, U8, abstract_policy(U32, U8))
    return masked, LoweringStep(U32, U8, (convert,), (VectorForm("convert.u32"),), "convert")


def arithmetic(target: str, src: str, dst: str, **options: str) -> list[ConstantArithmetic]:
    catalogue = catalogue_of(with_options(load_target(target), options), FORMATS[src], FORMATS[dst])
    steps = [step for name in catalogue.pairs for step in catalogue.from_format(FORMATS[name])]
    return [primitive for step in steps for primitive in step.primitives if isinstance(primitive, ConstantArithmetic)]


def test_an_instruction_that_differs_from_its_substitute_at_one_code_is_not_proven() -> None:
    pytest.importorskip("numba")
    assert ODD_ONE not in telling_codes(U32, (), 1 << 12)
    primitive = ConstantArithmetic("made up and.u32 0xff", U32, wrong_at_one_code, constant=0xFF)
    demand = settle(CastRequest("u32", "u8", "gaudi2", spec="onnx"))
    found = judge(demand, chain(primitive))
    assert not demand.satisfied(np.array([ODD_ONE], np.uint32), np.array([0], np.uint8)).any()
    assert not found.evidence.proves
    assert found.evidence.method not in (Method.EXHAUSTIVE, Method.BREAKPOINTS)
    assert "made up and.u32 0xff" in found.evidence.argument
    assert "no proof of the instruction" in found.evidence.argument


def test_a_proven_substitute_makes_a_proof_and_a_wrong_one_refutes_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    pytest.importorskip("numba")
    monkeypatch.setattr(exhaustive_module, "_CODES", 1 << 27)  # of all codes the ones nearest to either end
    demand = settle(CastRequest("u32", "u8", "gaudi2", spec="onnx"))
    right = ConstantArithmetic("right", U32, lambda codes: codes & np.uint32(0xFF), constant=0xFF)

    def stand_in(run: Any, *, proven: bool) -> None:
        monkeypatch.setattr(
            exhaustive_module, "substitute_of", lambda one: Substitute(one, "made up", run, 100, proven=proven)
        )

    stand_in(right.run, proven=True)
    proof = judge(demand, chain(right))
    assert (proof.verdict, proof.evidence.method) == (Verdict.EXACT, Method.EXHAUSTIVE)
    stand_in(wrong_at_one_code, proven=False)
    doubt = judge(demand, chain(right))
    assert (doubt.verdict, doubt.evidence.method) == (Verdict.EXACT, Method.SAMPLED)
    assert "gives different results" in doubt.evidence.argument
    wrong = ConstantArithmetic("wrong", U32, wrong_at_one_code, constant=0xFF)
    refuted = judge(demand, chain(wrong))
    assert (refuted.verdict, refuted.failing.tolist()) == (Verdict.DIFFERS, [ODD_ONE])


def test_up_to_16_bits_a_table_holds_what_the_machine_gives() -> None:
    for primitive in arithmetic("gaudi2", "i32", "bool") + arithmetic("a2a3", "f32", "u8"):
        if primitive.src.storage_bits <= 16:
            substitute = substitute_of(primitive)
            assert substitute is not None
            assert substitute.proven
            codes = np.random.default_rng(1).integers(0, 1 << primitive.src.storage_bits, 999)
            codes = codes.astype(f"u{primitive.src.storage_bits // 8}")
            assert (substitute.run(codes) == primitive.run(codes)).all()


def test_all_codes_that_differ_are_found() -> None:
    primitive = ConstantArithmetic("made up", U32, wrong_at_one_code, constant=0xFF)
    substitute = Substitute(primitive, "and", lambda codes: codes & np.uint32(0xFF), 1, proven=False)
    assert disagreeing(substitute, ODD_ONE - 100_000, ODD_ONE + 1).tolist() == [ODD_ONE]
    assert disagreeing(substitute, ODD_ONE + 1, ODD_ONE + 100_000).size == 0


def test_other_facts_are_another_instruction() -> None:
    """NaN of A2/A3's maximum is an option, and so is that of the vector units: one name, two functions."""
    for target, option, value in (("a2a3", "maximum_of_nan", "number"), ("goya", "min_max_nan", "number")):
        usual, other = (arithmetic(target, "f32", "u16", **given) for given in ({}, {option: value}))
        assert [one.name for one in usual] == [one.name for one in other]
        changed = [one for one, two in zip(usual, other, strict=True) if one != two]
        assert any("max" in one.name and one.src.name == "f32" for one in changed)


def test_options_of_arithmetic_are_all_among_its_facts() -> None:
    folder = Path(castsim.machines.vliw.semantics.__file__).parent
    modules = ("elementwise",)
    read = {name for one in modules for name in re.findall(r'option\("(\w+)"\)', (folder / f"{one}.py").read_text())}
    assert read == set(ARITHMETIC_OPTIONS)


def test_the_shipped_record_is_about_the_sources_as_they_are() -> None:
    changed = SubstitutionRecord.load(RECORD).changed_files()
    assert not changed, (
        f"stale, because these have changed: {', '.join(changed)}. Prove it again:"
        f" rm {RECORD}; castsim verify --substitutions --record {RECORD}"
    )


def test_the_shipped_record_proves_what_the_shipped_specifications_need() -> None:
    record = SubstitutionRecord.load(RECORD)
    assert record.mismatches == 0
    assert {one.identity for one in needed()} == {trial.identity for trial in record.trials}
    assert {trial.identity for trial in record.trials if trial.done} == recorded()
    waiting = [trial.identity.name for trial in record.trials if not trial.done]
    if waiting:
        pytest.skip(f"pending: {', '.join(waiting)}")


@pytest.mark.parametrize("specification", ["tosa", "onnx"])
def test_lowered_casts_rest_on_no_other_arithmetic_of_32_bits(specification: str) -> None:
    folder = ROOT / "docs"
    results = json.loads((folder / f"lowering-{specification}.json").read_text())["results"]
    held = {" ".join(trial.identity.name.split()[:2]) for trial in SubstitutionRecord.load(RECORD).trials}
    for row in results:
        steps = [] if row["result"] is None else row["result"]["chain"]
        for step in steps:
            name = step.split()[0]
            wide = re.search(r"32\b", step.removeprefix("tcvt"))
            if row["src"] in ("f32", "i32", "u32") and wide and name.split(".")[0] in ("and", "sel_neq", "tcmps+tsels"):
                assert f"{row['target']} {name}" in held


def test_the_command_keeps_a_record_and_goes_on_with_it(
    capsys: Capture, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(lowering, "CODES", 1 << 18)
    monkeypatch.setattr(lowering, "_PIECE", 1 << 16)
    path = tmp_path / "record.json"
    arguments = ["verify", "--substitutions", "--target", "goya", "--record", str(path)]
    assert "7 of 7 substitutions tried on all codes, 0 results differ" in out_of(capsys, arguments)
    held = json.loads(path.read_text())
    assert held["complete"]
    held["parts"][0]["tried"] = 1 << 16
    path.write_text(json.dumps(held))
    assert "continue it with --resume" in err_of(capsys, arguments)
    assert document_of(capsys, *arguments, "--resume")["codes_checked"] == 7 << 18
    held["sources"]["files"]["simulator/tools/lowering/samples.py"] = "0" * 64
    path.write_text(json.dumps(held))
    assert "stale" in err_of(capsys, [*arguments, "--resume"])


def test_a_substitute_that_is_wrong_ends_with_exit_code_1(capsys: Capture, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(lowering, "CODES", 1 << 16)
    monkeypatch.setattr(lowering, "_PIECE", 1 << 16)
    primitive = ConstantArithmetic("made up", U32, lambda codes: codes ^ np.uint32(codes[0] == 0), constant=0xFF)
    wrong = Substitute(primitive, "and", lambda codes: codes, 1, proven=False)
    monkeypatch.setattr(lowering, "needed", lambda _: [wrong])
    assert "65,536 results differ" in out_of(capsys, ["verify", "--substitutions"], 1)


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (("f32",), "--substitutions takes both SRC and DST"),
        (("--tier", "table"), "not --tier"),
        (("f16", "f17"), "unknown format"),
    ],
)
def test_what_is_typed_wrongly(capsys: Capture, arguments: tuple[str, ...], said: str) -> None:
    assert said in err_of(capsys, ["verify", "--substitutions", *arguments])
