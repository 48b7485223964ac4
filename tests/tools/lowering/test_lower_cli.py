"""`castsim lower`: reports, files that run, exit codes, block formats, and options that software sets."""

from __future__ import annotations

import json
import re
from pathlib import Path

import ml_dtypes
import numpy as np
import oracle
import oracle_acceptance
import pytest
from kit.command_output import answer_of, document_of, ended, err_of, file_of, out_of
from kit.paths import ROOT
from kit.quantisation_oracle import element_codes, scale_values

import castsim
from castsim import run
from castsim.__main__ import main
from castsim.isa.formats import format_named
from castsim.targets.loader import load_target, target_names
from castsim.tools.lowering.block_lowering import BlockWay, lower_blocks
from castsim.tools.lowering.demand import CastRequest, Verdict
from castsim.tools.lowering.lowering_answers import answer, answer_through, choices, settable
from castsim.tools.lowering.planner import PlanKind, plan
from castsim.tools.lowering.sharing import forget
from castsim.tools.quantise.quantisation import BLOCK_FORMATS


def lower(capsys: pytest.CaptureFixture[str], *arguments: str) -> tuple[int, str, str]:
    return ended(capsys, "lower", *arguments)


def document(capsys: pytest.CaptureFixture[str], *arguments: str) -> dict:
    return answer_of(capsys, "lower", *arguments)[1]


def test_a_native_cast_with_an_option(capsys: pytest.CaptureFixture[str]) -> None:
    code, out, _ = lower(capsys, "f16", "i8", "--spec", "tosa", "--target", "a5")
    assert code == 0
    assert "native with saturation ON, exact" in out
    assert "saturation ON" in out
    assert "all 65536 codes" in out
    assert "not unchanged" in out
    assert "127.5" in out
    assert "-128" in out


def test_a_cast_that_nothing_found_does_says_why(capsys: pytest.CaptureFixture[str]) -> None:
    """CTRL[48] is held at 0, with which f16 results clamp."""
    code, out, _ = lower(capsys, "f32", "f16", "--spec", "tosa", "--target", "a5", "--option", "ctrl_48_at_start=0")
    assert code == 1
    assert "does not conform to TOSA 1.1: of chains of up to 4 instructions each fails" in out
    assert "65504" in out
    assert "correct: inf" in out


@pytest.mark.parametrize(
    ("src", "dst", "target", "suffix"),
    [
        ("f16", "i8", "a5", ".pto"),
        ("f16", "u8", "a2a3", ".pto"),
        ("f16", "i8", "gaudib", ".tpc"),
        ("i8", "f32", "goya", ".tpc"),
    ],
)
def test_the_program_runs_as_it_is(
    src: str, dst: str, target: str, suffix: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = tmp_path / f"lowered{suffix}"
    assert lower(capsys, src, dst, "--target", target, "--out", str(path))[0] == 0
    rng = np.random.default_rng(4)
    codes = rng.integers(0, 1 << oracle.fmt(src).bits, 4096).astype(oracle.storage(src))
    native = codes.view({"f16": np.float16, "i8": np.int8}[src]).reshape(16, 256)
    np.save(tmp_path / "in.npy", native)
    assert main(["run", str(path), "--in", f"src={tmp_path / 'in.npy'}", "--out", str(tmp_path), "--quiet"]) == 0
    capsys.readouterr()
    found = np.load(tmp_path / "dst.npy").reshape(-1)
    expected = oracle.cast_array(codes, src, dst)
    assert (found.view(expected.dtype) == expected).all()


def test_out_to_standard_output_is_the_program_alone(capsys: pytest.CaptureFixture[str]) -> None:
    _, out, _ = lower(capsys, "f16", "f32", "--target", "a5", "--out", "-")
    assert out.startswith("// f16 -> f32\n")
    assert out.rstrip().endswith("}")
    assert max(map(len, out.splitlines())) > 100


def test_json(capsys: pytest.CaptureFixture[str]) -> None:
    found = document(capsys, "f16", "i8", "--spec", "tosa", "--target", "greco", "--via", "bf16:rhne", "i8:rhne")
    assert found["schema_version"] == 2
    assert (found["specification"], found["target"], found["verdict"]) == ("tosa@1.1", "greco", "differs")
    assert [step["dst"] for step in found["chain"]] == ["bf16", "i8"]
    values = found["counterexample"]["values"]
    assert [value["format"] for value in values] == ["f16", "bf16", "i8"]
    # 0.5 + 2**-11 is nearest to 1, but bf16 has only 0.5, a tie.
    assert [value["value"] for value in values] == [0.50048828125, 0.5, 0]
    assert found["counterexample"]["required"]["lowest"] == {"bits": "0x01", "value": 1}
    assert found["program"] is None
    found = document(capsys, "f16", "i8", "--target", "a5")
    assert found["program"].startswith("// f16 -> i8")
    cost = found["cost"]
    assert cost["cycles_per_element"] == cost["cycles"] / cost["elements"]
    assert found["evidence"] == {
        "method": "exhaustive", "codes": 65536, "proves": True, "argument": "all 65536 codes of f16",
    }  # fmt: skip


def test_a_version_in_force_that_is_not_the_one_asked_for_is_explained(capsys: pytest.CaptureFixture[str]) -> None:
    cast = ("f32", "f16", "--target", "gaudi2")
    assert "as ONNX 1 asks (ONNX 5 has the cast of version 1): native" in lower(capsys, *cast, "--spec", "onnx@5")[1]
    assert "as ONNX 13 asks: native" in lower(capsys, *cast, "--spec", "onnx@13")[1]
    assert "as ONNX 28 asks: native" in lower(capsys, *cast, "--spec", "onnx")[1]


def test_cost_is_that_of_the_run(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    for target, suffix in (("a2a3", ".pto"), ("gaudi2", ".tpc")):
        path = tmp_path / f"{target}{suffix}"
        found = document(capsys, "f16", "i16", "--target", target, "--out", str(path))
        assert run(path, timing_only=True).cycles == found["cost"]["cycles"]


@pytest.mark.parametrize(("target", "rows", "cols"), [("a5", 16, 1), ("a2a3", 20, 3100), ("a5", 2, 10**9)])
def test_a_shape_that_does_not_go_is_refused_by_the_options_with_the_largest_that_goes(
    target: str, rows: int, cols: int, capsys: pytest.CaptureFixture[str]
) -> None:
    cast = ("f32", "i8", "--spec", "tosa", "--target", target)
    code, _, err = lower(capsys, *cast, "--rows", str(rows), "--cols", str(cols))
    assert code == 1
    assert err.startswith(f"error: --rows {rows} --cols {cols}: ")
    assert "lowered.pto" not in err
    found = re.search(r"--cols: a multiple of (\d+) up to (\d+), --rows with --cols (\d+): up to (\d+)", err)
    assert found
    block, widest, wide, most = map(int, found.groups())
    assert wide == min(-(-cols // block) * block, widest)
    trials = [(most, wide, 0), (most + 1, wide, 1), (1, widest, 0), (1, widest + block, 1), (1, block // 2, 1)]
    for rows_, cols_, expected in trials:
        shape = ("--rows", str(rows_), "--cols", str(cols_))
        assert lower(capsys, *cast, *shape, "--quiet")[0] == expected, shape


@pytest.mark.parametrize("size", ["5000000", "1" + "0" * 30])
def test_a_tensor_that_would_take_minutes_to_simulate_is_refused(size: str, capsys: pytest.CaptureFixture[str]) -> None:
    code, _, err = lower(capsys, "f32", "i8", "--target", "gaudi2", "--cols", size)
    assert code == 2
    assert f"--cols {size}: more than" in err
    most = re.search(r"--cols up to (\d+)", err)
    assert most
    assert 16 * int(most[1]) <= int(re.findall(r"more than (\d+)", err)[0]) < 16 * (int(most[1]) + 1)


def test_progress_is_told() -> None:
    forget()  # what tests before found out takes no time again
    told: list[tuple[str, int, int]] = []

    def listen(stage: str, done: int, total: int) -> None:
        told.append((stage, done, total))

    plan(CastRequest("f32", "i16", "a5", spec="tosa"), listen)
    assert {stage for stage, _, _ in told} >= {"1 steps", "breakpoints"}
    assert all(0 <= done <= total for stage, done, total in told if total)


DTYPES = {"f32": np.float32, "f16": np.float16, "bf16": ml_dtypes.bfloat16}
ROWS, COLS = 6, 128


def ways(src: str, name: str, chip: str) -> tuple[BlockWay, ...]:
    return lower_blocks(format_named(src), BLOCK_FORMATS[name], load_target(chip), ROWS, COLS).ways


FOUND = [
    (chip, name, src, way)
    for chip in ("a2a3", "a5")
    for name in BLOCK_FORMATS
    for src in DTYPES
    for way in ways(src, name, chip)
]


def test_what_there_is() -> None:
    """The operation of the A5 for two formats; chains for those whose elements a cast from f32 makes."""
    kinds = {(chip, name, src, way.kind, way.rule) for chip, name, src, way in FOUND}
    assert {(chip, name) for chip, name, *_ in kinds} == {
        ("a2a3", "mxint8"), ("a5", "mxint8"), ("a5", "mxfp8_e4m3"), ("a5", "mxfp8_e5m2"), ("a5", "mxfp4_e2m1")
    }  # fmt: skip
    assert ("a5", "mxfp8_e4m3", "f32", "operation", "rceil") in kinds
    assert ("a5", "mxfp4_e2m1", "f16", "operation", "floor") in kinds
    assert not any(way.rule == "rceil" and src != "f32" for _, _, src, way in FOUND)  # the assembler refuses it


@pytest.mark.parametrize(
    ("chip", "name", "src", "way"), FOUND, ids=lambda one: one.rule if isinstance(one, BlockWay) else one
)
def test_programs_against_exact_arithmetic(chip: str, name: str, src: str, way: BlockWay, tmp_path: Path) -> None:
    generator = np.random.default_rng(7)
    x = np.ldexp(generator.uniform(-2, 2, (ROWS, COLS)), generator.integers(-9, 4, (ROWS, COLS)))
    x = (x * np.exp2(generator.integers(-8, 8, (ROWS, 1)))).astype(DTYPES[src])
    x[0, :3] = 0, -0.0, 1
    path = file_of(tmp_path / "k.pto", way.program)
    found = castsim.run(path, chip, inputs={"x": x.reshape(-1)})
    wide = x.astype(np.float64).reshape(-1, 32)
    element, unit = BLOCK_FORMATS[name].element.name, BLOCK_FORMATS[name].unit_exponent
    scales = scale_values(np.abs(wide).max(axis=1), element, unit, "e8m0", way.rule)
    assert found.outputs["exponents"].reshape(-1).tolist() == (np.log2(scales) + 127).astype(int).tolist()
    codes = element_codes(wide, np.repeat(scales[:, None], 32, axis=1), element, unit).reshape(-1)
    held = found.outputs["codes"].reshape(-1).view(np.uint8)
    if name == "mxfp4_e2m1" and held.size < codes.size:
        held = np.stack((held & 15, held >> 4), axis=1).reshape(-1)
    assert held.tolist() == codes.tolist()
    assert found.cycles == way.cycles


@pytest.mark.parametrize(
    ("chip", "src", "name", "reason"),
    [
        ("a5", "f32", "mxfp6_e3m2", "no cast from f32 to e3m2"),
        ("a5", "f32", "mxfp4_e2m1", "takes 16-bit elements"),
        ("a5", "bf16", "nvfp4", "nvfp4 has 16 and e4m3fn"),
        ("a2a3", "f16", "mxfp8_e4m3", "no operation for shared exponents"),
        ("gaudi2", "f32", "mxfp8_e4m3", "castsim writes chains for tiles only"),
        ("a5", "f64", "f16", "no chain of up to 4 instructions leads from f64 to f16"),
        ("a5", "f64", "f16", "a5 has no instruction for elements of f64"),
        ("a5", "f32", "mxfp8 --rows 4096", "buffer"),
    ],
)
def test_why_not(chip: str, src: str, name: str, reason: str, capsys: pytest.CaptureFixture[str]) -> None:
    words = ["lower", src, *name.split(), "--target", chip]
    assert reason in " ".join(out_of(capsys, words, 1).split())


def test_the_command(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    out = tmp_path / "blocks.pto"
    assert main(["lower", "f32", "mxfp8", "--target", "a5", "--out", str(out), "--rows", "4", "--cols", "64"]) == 0
    assert "program written to" in capsys.readouterr().out
    assert main(["run", str(out), "--target", "a5", "--in", "x=random:1"]) == 0
    capsys.readouterr()
    found = document_of(capsys, "lower", "f32", "mxint8", "--target", "a5")
    assert (found["format"], found["ways"][0]["kind"]) == ("mxint8", "chain")
    assert "tquant" in found["ways"][0]["operations"]


PUBLISHED = {
    "f16": {  # TOSA: overflow after rounding gives infinity, whose bound is 65520; NaN gives NaN
        0x477FE000: 0x7BFF,  # 65504
        0x477FEFFF: 0x7BFF,  # right below 65520
        0x47800000: 0x7C00,  # 65536
        0x7F800000: 0x7C00,
        0xFF800000: 0xFC00,
        0x47C35000: 0x7C00,  # 100000
        0x3F800000: 0x3C00,
        0x80000000: 0x8000,
    },
    "e4m3fn": {  # ONNX, saturate=1: overflow and infinity give 448
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
    },
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
    results = np.load(folder / "dst.npy").reshape(4096)
    return results.view(f"u{results.itemsize}")


@pytest.mark.parametrize(
    ("dst", "spec", "words", "nan", "exponents"),
    [
        # f32 -> f16 writes CTRL[60] itself and obeys CTRL[48] as it finds it (docs/reference/a5.md section 4.1).
        ("f16", "tosa", ("native with options: ctrl_48_at_start=1, exact", "not without these options",
                         "correct: inf (0x7c00)"), 0x7C01, (100, 146)),
        # CTRL[60]=1 (at start) makes it saturate, CTRL[50]=1 keeps NaN (docs/reference/semantics.md 4.1 and 6).
        ("e4m3fn", "onnx", ("native with options: ctrl_50_at_start=1, exact",), 0x7F, (110, 140)),
    ],
)  # fmt: skip
def test_options_are_found_and_the_program_runs_with_them(
    dst: str, spec: str, words: tuple[str, ...], nan: int, exponents: tuple[int, int], tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
) -> None:  # fmt: skip
    code, out, _ = lower(capsys, "f32", dst, "--spec", spec, "--target", "a5", "--out", str(tmp_path / "q.pto"))
    assert code == 0
    assert all(each in " ".join(out.split()) for each in words)
    further, known = further_codes(1000, exponents), PUBLISHED[dst]
    results = run_command(out, tmp_path, np.concatenate((np.array([*known, *NANS], np.uint32), further)))
    first = len(known) + len(NANS)
    assert results[: len(known)].tolist() == list(known.values())
    assert (results[len(known) : first] & (0x7FFF if dst == "f16" else 0x7F) >= nan).all()
    for source, result in zip(further.tolist(), results[first : first + 1000].tolist(), strict=True):
        if dst == "f16":
            assert oracle_acceptance.accepts(source, result, "f32", "f16"), hex(source)
        else:
            assert result == oracle.cast(source, "f32", "e4m3fn", "rint", "saturate"), hex(source)


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
