"""`castsim lower --option`, and the search for options that software sets: what is chosen, what is never chosen.

Expected results are those of docs/reference/semantics.md sections 1.2 and 6 on the boundaries, worked out by hand, and
of the oracle, in exact fractions, on further inputs.
"""

import json
import re
from pathlib import Path

import numpy as np
import oracle
import oracle_acceptance
import pytest
from kit.command_output import ended, err_of
from kit.paths import ROOT

from castsim.__main__ import main
from castsim.targets.loader import load_target, target_names
from castsim.tools.lowering.demand import CastRequest, Verdict
from castsim.tools.lowering.lowering_answers import answer, answer_through, choices, settable
from castsim.tools.lowering.planner import PlanKind

F32_OF_F16 = {  # TOSA: overflow after rounding gives infinity, whose bound is 65520; NaN gives NaN
    0x477FE000: 0x7BFF,  # 65504
    0x477FEFFF: 0x7BFF,  # right below 65520
    0x47800000: 0x7C00,  # 65536
    0x7F800000: 0x7C00,
    0xFF800000: 0xFC00,
    0x47C35000: 0x7C00,  # 100000
    0x3F800000: 0x3C00,
    0x80000000: 0x8000,
}
F32_OF_E4M3FN = {  # ONNX, saturate=1: overflow and infinity give 448
    0x43E00000: 0x7E,  # 448
    0x43E80000: 0x7E,  # 464, the tie to what would be 480
    0x43E80001: 0x7E,
    0xC3E80001: 0xFE,
    0x43F00000: 0x7E,  # 480
    0x7F7FFFFF: 0x7E,
    0x7F800000: 0x7E,
    0xFF800000: 0xFE,
    0x3F800000: 0x38,
    0x80000000: 0x80,
}
NANS = (0x7FC00000, 0xFFC00000, 0x7F800001)


def further_codes(count: int, exponents: tuple[int, int]) -> np.ndarray:
    """Random f32 of both signs whose biased exponents lie in a range."""
    rng = np.random.default_rng(11)
    exponent = rng.integers(*exponents, count, dtype=np.uint32)
    return (
        rng.integers(0, 2, count, dtype=np.uint32) << 31 | exponent << 23 | rng.integers(0, 1 << 23, count, np.uint32)
    )


def run_command(shown: str, folder: Path, codes: np.ndarray) -> np.ndarray:
    """Run the command that the report shows, on codes; return what it writes."""
    found = re.search(r"run it with: castsim (run .*) --in src=random:0", " ".join(shown.split()))
    assert found
    np.save(folder / "in.npy", np.resize(codes, 4096).view(np.float32).reshape(16, 256))
    command = [*found[1].split(), "--in", f"src={folder / 'in.npy'}", "--out", str(folder), "--quiet"]
    assert main(command) == 0
    return np.load(folder / "dst.npy").reshape(-1).view(np.uint8).reshape(4096, -1)


def whole(codes: np.ndarray) -> np.ndarray:
    return codes.astype(np.uint32) @ (1 << 8 * np.arange(codes.shape[1], dtype=np.uint32))


def lower(capsys: pytest.CaptureFixture[str], *arguments: str) -> tuple[int, str, str]:
    return ended(capsys, "lower", *arguments)


def test_f32_to_f16_under_tosa_on_a5(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = tmp_path / "q.pto"
    code, out, _ = lower(capsys, "f32", "f16", "--spec", "tosa", "--target", "a5", "--out", str(path))
    assert code == 0
    # f32 -> f16 writes CTRL[60] itself and obeys CTRL[48] as it finds it (docs/reference/a5.md section 4.1).
    assert "native with options: ctrl_48_at_start=1, exact" in out
    assert "not without these options" in out
    assert "correct: inf (0x7c00)" in out
    further = further_codes(1000, (100, 146))
    codes = np.concatenate((np.array([*F32_OF_F16, *NANS], np.uint32), further))
    results = whole(run_command(out, tmp_path, codes))
    assert results[: len(F32_OF_F16)].tolist() == list(F32_OF_F16.values())
    first = len(F32_OF_F16) + len(NANS)
    assert (results[len(F32_OF_F16) : first] & 0x7FFF > 0x7C00).all()
    for source, result in zip(further.tolist(), results[first : first + 1000].tolist(), strict=True):
        assert oracle_acceptance.accepts(source, result, "f32", "f16"), hex(source)


def test_f32_to_e4m3fn_under_onnx_on_a5(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = tmp_path / "q.pto"
    code, out, _ = lower(capsys, "f32", "e4m3fn", "--spec", "onnx", "--target", "a5", "--out", str(path))
    assert code == 0
    # CTRL[60]=1 (at start) makes it saturate, CTRL[50]=1 keeps NaN (docs/reference/semantics.md sections 4.1 and 6).
    assert "native with options: ctrl_50_at_start=1, exact" in " ".join(out.split())
    further = further_codes(400, (110, 140))
    codes = np.concatenate((np.array([*F32_OF_E4M3FN, *NANS], np.uint32), further))
    results = whole(run_command(out, tmp_path, codes))
    assert results[: len(F32_OF_E4M3FN)].tolist() == list(F32_OF_E4M3FN.values())
    first = len(F32_OF_E4M3FN) + len(NANS)
    assert (results[len(F32_OF_E4M3FN) : first] & 0x7F == 0x7F).all()
    wanted = oracle.cast_array(further, "f32", "e4m3fn", "rint", "saturate")
    assert results[first : first + 400].tolist() == wanted.tolist()


def test_the_program_says_what_it_needs(capsys: pytest.CaptureFixture[str]) -> None:
    _, out, _ = lower(capsys, "f32", "f16", "--spec", "tosa", "--target", "a5", "--out", "-")
    assert out.splitlines()[0] == "// castsim run --option ctrl_48_at_start=1"
    _, out, _ = lower(capsys, "f32", "f16", "--spec", "tosa", "--target", "a5", "--json", "-")
    found = json.loads(out)
    assert (found["way"], found["verdict"]) == ("native with options", "exact")
    assert found["options"] == {"ctrl_48_at_start": 1}
    assert found["options_chosen"] == ["ctrl_48_at_start"]
    assert found["without_options"]["counterexample"]["required"]["lowest"]["value"] == "inf"


def test_given_options_hold_and_are_not_searched(capsys: pytest.CaptureFixture[str]) -> None:
    cast = ("f32", "e4m3fn", "--spec", "onnx", "--target", "a5")
    both = ("--option", "ctrl_50_at_start=1", "--option", "ctrl_60_at_start=1")
    found = json.loads(lower(capsys, *cast, *both, "--json", "-")[1])
    assert (found["way"], found["options_chosen"]) == ("native", [])
    assert found["options"] == {"ctrl_50_at_start": 1, "ctrl_60_at_start": 1}
    found = json.loads(lower(capsys, *cast, *both[2:], "--json", "-")[1])
    assert (found["way"], found["options_chosen"]) == ("native with options", ["ctrl_50_at_start"])
    # With CTRL[60] held at 0 nothing saturates, and bounds lose NaN.
    held = ("--option", "ctrl_60_at_start=0", "--option", "maximum_of_nan=number")
    code, out, _ = lower(capsys, *cast, *held, "--json", "-")
    assert code == 1
    assert json.loads(out)["way"] == "none found"


def test_a_doubtful_point_can_be_given_but_is_never_chosen() -> None:
    request = CastRequest("f32", "e4m3fn", "a5", spec="onnx")
    found = answer(request, options={"eight_bit_float_overflow": "saturate", "ctrl_50_at_start": "1"})
    assert (found.kind, found.given) == (
        PlanKind.NATIVE, (("ctrl_50_at_start", 1), ("eight_bit_float_overflow", "saturate")),
    )  # fmt: skip
    assert not {"eight_bit_float_overflow"} & {name for name, _ in answer(request).chosen}


@pytest.mark.parametrize("name", target_names())
def test_only_options_that_software_sets_are_searched(name: str) -> None:
    target = load_target(name)
    searched = {option for choice in choices(target) for option, _ in choice.setting}
    assert searched <= set(settable(target))
    assert all(target.options[option].set_by for option in searched)
    for choice in choices(target):
        assert choice.pairs
        assert [choice.target.option(option) for option, _ in choice.setting] == [value for _, value in choice.setting]
        others = set(target.options) - {option for option, _ in choice.setting}
        assert all(choice.target.options[option] is target.options[option] for option in others)


def test_which_options_software_sets() -> None:
    """Bits of CTRL, which software writes, and nothing else.

    Source: docs/reference/a2a3.md section 3.1, docs/reference/a5.md section 4.1.
    """
    found = {name: settable(load_target(name)) for name in target_names()}
    assert found["a5"] == tuple(f"ctrl_{bit}_at_start" for bit in (48, 50, 53, 59, 60))
    assert found["a2a3"] == (
        "float_saturation_off_at_start", "integer_saturation_off_at_start", "count_mask_at_start",
    )  # fmt: skip
    assert not any(found[name] for name in ("gaudi", "gaudi2", "gaudib", "goya", "greco"))


def test_what_conforms_as_it_stands_stays() -> None:
    for src, dst, kind in (("f16", "f32", PlanKind.NATIVE), ("f16", "i8", PlanKind.OPTIONS)):
        found = answer(CastRequest(src, dst, "a5", spec="tosa"))
        assert (found.kind, found.chosen, found.native, found.refuted) == (kind, (), None, None)


def test_a_chain_with_options() -> None:
    """A5 has no i32 -> f16; on the way through f32 overflow must become infinity."""
    found = answer(CastRequest("i32", "f16", "a5", spec="tosa"), quick=True)
    assert (found.kind, found.chosen) == (PlanKind.CHAIN, (("ctrl_48_at_start", 1),))
    assert [step.dst.name for step in found.plan.chain] == ["f32", "f16"]
    assert found.refuted.kind is PlanKind.NONE_FOUND


HELD = ("ctrl=hivm", "ctrl_48_at_start=0")


def test_a_single_instruction_with_options_beside_a_chain(capsys: pytest.CaptureFixture[str]) -> None:
    """Bounds before the conversion saturate as well as CTRL does, if maximum and minimum leave NaN as it is."""
    cast = ("f32", "e4m3fn", "--spec", "onnx", "--target", "a5", *(f"--option={each}" for each in HELD))
    code, out, _ = lower(capsys, *cast)
    assert code == 0
    held = {"ctrl": "hivm", "ctrl_48_at_start": 0}
    assert ": chain, exact" in out
    assert "also native with options: ctrl_50_at_start=1, ctrl_60_at_start=1, 0." in " ".join(out.split())
    found = json.loads(lower(capsys, *cast, "--json", "-")[1])
    assert (found["way"], found["options"], found["options_chosen"]) == ("chain", held, [])
    assert [step["instruction"].split()[0] for step in found["chain"][:-1]] in (["tmins", "tmaxs"], ["tmaxs", "tmins"])
    native = found["native_with_options"]
    assert native["options"] == {**held, "ctrl_50_at_start": 1, "ctrl_60_at_start": 1}
    assert [step["instruction"] for step in native["chain"]] == ["tcvt f32 -> e4m3fn"]
    assert native["cycles_per_element"] < found["cost"]["cycles_per_element"]


def test_via_takes_the_options_given() -> None:
    request = CastRequest("f32", "f16", "a5", spec="tosa")
    assert answer_through(request, ["f16"]).plan.verdict is Verdict.DIFFERS
    assert answer_through(request, ["f16"], options={"ctrl_48_at_start": 1}).plan.verdict is Verdict.EXACT


@pytest.mark.parametrize("command", ["run", "lower", "conform"])
@pytest.mark.parametrize(
    ("option", "message"),
    [
        ("nope=1", "a5 has no option 'nope'\n  legal: "),
        ("ctrl_48_at_start=7", "option ctrl_48_at_start cannot be '7'\n  legal: set, 0, 1"),
        ("ctrl_48_at_start", "--option ctrl_48_at_start: expected NAME=VALUE"),
    ],
)
def test_bad_options_are_refused_as_in_run(
    command: str, option: str, message: str, capsys: pytest.CaptureFixture[str]
) -> None:
    arguments = {
        "run": ["programs/f32_to_f16.pto"],
        "lower": ["f32", "f16", "--spec", "tosa"],
        "conform": ["--spec", "tosa", "--src", "f32", "--dst", "f16"],
    }[command]
    if command == "run":
        arguments[0] = str(ROOT / arguments[0])
    assert message in err_of(capsys, [command, *arguments, "--target", "a5", "--option", option])
