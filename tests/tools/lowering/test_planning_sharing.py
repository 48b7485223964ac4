"""Findings that requests share, and functions that stand in for instructions when all codes are tried."""

from __future__ import annotations

import json
import os
import pickle
import re
from collections import Counter
from collections.abc import Callable
from itertools import combinations, product
from pathlib import Path
from threading import Thread
from typing import Any

import numpy as np
import pytest
from kit.command_output import Capture, document_of, err_of, out_of
from kit.paths import ROOT

import castsim.machines.vliw.semantics
from castsim.isa.formats import FORMATS, Codes, Format
from castsim.numerics.policy import abstract_policy
from castsim.running.loaded import LoadedProgram
from castsim.targets.description import with_options
from castsim.targets.loader import Target, load_specification, load_target, target_names
from castsim.tools.lowering import catalogue as written
from castsim.tools.lowering import planner as planning
from castsim.tools.lowering import proof as exhaustive_module
from castsim.tools.lowering.catalogue import arithmetic_between, catalogue_of, nearest
from castsim.tools.lowering.conformance import conform
from castsim.tools.lowering.demand import CastRequest, Verdict, settle
from castsim.tools.lowering.planner import plan
from castsim.tools.lowering.proof import Method, judge
from castsim.tools.lowering.samples import RECORD, Substitute, disagreeing, recorded, substitute_of, telling_codes
from castsim.tools.lowering.sharing import Equals, Kept, Numbers, Shared, forget, unshared
from castsim.tools.lowering.steps import ConstantArithmetic, Constants, FormatCast, LoweringStep, VectorForm, run_chain
from castsim.tools.lowering.tile_casts import tile_arithmetic, tile_choices
from castsim.tools.lowering.vector_steps import ARITHMETIC_OPTIONS, vector_arithmetic
from castsim.tools.verify import substitutions
from castsim.tools.verify.substitutions import SubstitutionRecord, needed

SLICES = [("onnx", "a5", "i8", "e5m2"), ("tosa", "gaudi2", "i8", "f16"), ("tosa", "a2a3", "i16", "i8")]
THOROUGH = [(spec, target, None, None) for spec in ("tosa", "onnx") for target in target_names()]


@pytest.fixture(autouse=True)
def _forgotten() -> None:
    forget()


@pytest.mark.parametrize(
    ("spec", "target", "src", "dst"), THOROUGH if os.environ.get("CASTSIM_THOROUGH") == "1" else SLICES
)
def test_shared_and_unshared_calculation_agree(spec: str, target: str, src: str | None, dst: str | None) -> None:
    together = conform(spec, [target], src=src, dst=dst).entries
    again = conform(spec, [target], src=src, dst=dst).entries
    with unshared():
        alone = conform(spec, [target], src=src, dst=dst).entries
    assert together == again == alone


def test_each_program_is_timed_once_and_each_pair_has_its_codes_chosen_once(monkeypatch: pytest.MonkeyPatch) -> None:
    timed: Counter[tuple[int, str]] = Counter()
    cells: Counter[tuple[str, str]] = Counter()
    load, telling = written.load_text, planning.telling_codes

    def loaded(text: str, name: str, target: Target) -> LoadedProgram:
        timed[id(target), text.partition("\n")[2]] += 1  # the first line is a comment
        return load(text, name, target)

    def told(src: Format, others: tuple[Format, ...], count: int) -> Codes:
        cells[src.name, others[0].name] += 1
        return telling(src, others, count)

    monkeypatch.setattr(written, "recorded_cycles", lambda _: {})
    monkeypatch.setattr(written, "load_text", loaded)
    monkeypatch.setattr(planning, "telling_codes", told)
    conform("tosa", ["a2a3"], src="i8")
    assert timed
    assert max(timed.values()) == 1
    assert cells
    assert max(cells.values()) == 1
    before = timed.total(), cells.total()
    with unshared():
        conform("tosa", ["a2a3"], src="i8", dst="f16")
    assert timed.total() > before[0]
    assert cells.total() > before[1]


@pytest.mark.parametrize("name", target_names())
def test_arithmetic_made_in_parts_is_that_made_at_once(name: str) -> None:
    target = load_target(name)
    pairs = [("f32", "u8"), ("u8", "f32"), ("i32", "i8"), ("f16", "bool"), ("i16", "u8"), ("bool", "i16"), ("u8", "u8")]
    for src, dst in pairs:
        found = arithmetic_between(target, FORMATS[src], FORMATS[dst])
        assert found == _at_once(target, Constants(FORMATS[src], FORMATS[dst])), (src, dst)


def _at_once(target: Target, constants: Constants) -> dict[str, tuple[LoweringStep, ...]]:
    if target.mechanism == "vliw":
        steps = list(vector_arithmetic(target, constants))
    else:
        steps = [*tile_arithmetic(target, constants), *tile_choices(target, constants)]
    found: dict[str, list[LoweringStep]] = {}
    for step in dict.fromkeys(steps):
        found.setdefault(step.src.name, []).append(step)
    return {source: tuple(listed) for source, listed in found.items()}


@pytest.mark.parametrize(
    ("src", "dst", "target"), [("f16", "u8", "a2a3"), ("bf16", "i8", "gaudi"), ("f32", "i8", "goya")]
)
def test_the_nearest_chain_is_that_of_all_chains(src: str, dst: str, target: str) -> None:
    demand = settle(CastRequest(src, dst, target, spec="exact"))
    catalogue = catalogue_of(load_target(target), demand.src, demand.dst)
    codes = telling_codes(demand.src, (demand.dst,), 4)
    found = nearest(catalogue, demand, codes)

    def ends(names: tuple[str, ...]) -> list[tuple[LoweringStep, ...]]:
        """All chains of up to two instructions, rereads before, between and behind them where they may be."""
        grown: list[tuple[LoweringStep, ...]] = [()]
        for place in range(3):
            here = demand.src if place == 0 else None
            grown += [(*one, step) for one in grown if not one or one[-1].is_instruction
                      for step in catalogue.rereads_of(here or one[-1].dst)
                      if place == 0 or catalogue.rereads_inside or step.dst == demand.dst]  # fmt: skip
            everything.extend(one for one in grown if one and one[-1].dst == demand.dst)
            grown = [(*one, step) for one in grown
                     for step in catalogue.from_format(one[-1].dst if one else demand.src)]  # fmt: skip
        return everything

    everything: list[tuple[LoweringStep, ...]] = []
    fewest = min(int((~demand.satisfied(codes, run_chain(one, codes))).sum()) for one in ends(()))
    assert found[0][1] == fewest
    assert int((~demand.satisfied(codes, run_chain(found[0][0], codes))).sum()) == fewest


def test_of_too_many_findings_the_one_not_asked_for_longest_goes() -> None:
    kept: Kept[int] = Kept(2)
    made: list[str] = []

    def make(name: str) -> int:
        made.append(name)
        return len(made)

    for name in ("a", "b", "a", "c", "a", "b"):
        kept.of(name, lambda name=name: make(name))
    assert made == ["a", "b", "c", "b"]
    assert len(kept) == 2


class _Slow:
    """A key that gives another thread its turn in the middle of being looked up."""

    def __init__(self) -> None:
        self.meanwhile: Callable[[], object] | None = None
        self.looks = 0

    def __hash__(self) -> int:
        self.looks += 1
        if self.meanwhile is not None and self.looks == 2:  # it was found, and is to become the latest
            other = Thread(target=self.meanwhile)
            other.start()
            other.join(0.1)
        return 1


def test_threads_share_findings() -> None:
    kept: Kept[str] = Kept(2)
    key = _Slow()
    assert kept.of(key, lambda: "first") == "first"
    kept.of("latest", str)
    key.looks, key.meanwhile = 0, lambda: kept.of("other", str)
    assert kept.of(key, lambda: "second") == "first"


def test_an_error_is_not_kept() -> None:
    shared: Shared[float] = Shared(2)
    with pytest.raises(ZeroDivisionError):
        shared.of("key", lambda: 1 / 0)
    assert shared.of("key", lambda: 1.0) == 1.0


def test_sharing_is_on_again_after_an_error() -> None:
    shared: Shared[object] = Shared(2)
    with pytest.raises(KeyError), unshared(), unshared():
        raise KeyError
    assert shared.of("key", object) is shared.of("key", object)
    with unshared():
        assert shared.of("key", object) is not shared.of("key", object)


def test_numbers_tell_apart_what_differs() -> None:
    numbers = Numbers(4)
    things = [(a, b) for a, b in product("abc", repeat=2)]
    for one, other in combinations(things, 2):
        assert numbers.of(one) != numbers.of(other)
        assert numbers.of(one) == numbers.of((*one,))


def test_a_copy_from_another_process_shares_with_the_first() -> None:
    spec, chip = load_specification("tosa"), load_target("a5")
    for thing in (spec, chip):
        known: Equals[object] = Equals(2)
        copy = pickle.loads(pickle.dumps(thing))
        assert known.first(thing) is thing
        assert copy is not thing
        assert known.first(copy) is thing
    changed = chip.model_copy(update={"clock_mhz": None} if "clock_mhz" in type(chip).model_fields else {"name": "b5"})
    assert known.first(changed) is changed


def test_codes_that_are_shared_stay_as_they_are(monkeypatch: pytest.MonkeyPatch) -> None:
    handed: list[Codes] = []
    of = Shared.of

    def sealed(self: Shared[object], key: object, make: Callable[[], object], held: object = None) -> object:
        found = of(self, key, make, held)
        if isinstance(found, np.ndarray):
            found.setflags(write=False)
            handed.append(found)
        return found

    monkeypatch.setattr(Shared, "of", sealed)
    for src, dst, target in (("f16", "i8", "a5"), ("f32", "i8", "a2a3"), ("i8", "e5m2", "gaudi2")):
        plan(CastRequest(src, dst, target, spec="tosa" if dst == "i8" else "onnx"))
    assert len(handed) > 3


def test_objects_are_given_up_by_age_and_all_at_once() -> None:
    chip = load_target("a5")
    copies = [pickle.loads(pickle.dumps(chip)) for _ in range(2)]
    known: Equals[object] = Equals(1)
    assert known.first(copies[0]) is copies[0]
    assert known.first(chip) is copies[0]
    forget()
    assert known.first(copies[1]) is copies[1]
    for number in (2, 3):
        known.first([number])
    assert known.first(chip) is chip


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
    """The samples cannot tell it from a mask; with all codes of the mask tried, it was called exact and exhaustive."""
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
    folder = ROOT / "docs" / "tools"
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
    monkeypatch.setattr(substitutions, "CODES", 1 << 18)
    monkeypatch.setattr(substitutions, "_PIECE", 1 << 16)
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
    monkeypatch.setattr(substitutions, "CODES", 1 << 16)
    monkeypatch.setattr(substitutions, "_PIECE", 1 << 16)
    primitive = ConstantArithmetic("made up", U32, lambda codes: codes ^ np.uint32(codes[0] == 0), constant=0xFF)
    wrong = Substitute(primitive, "and", lambda codes: codes, 1, proven=False)
    monkeypatch.setattr(substitutions, "needed", lambda _: [wrong])
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
