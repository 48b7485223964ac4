"""`castsim lower`: reports, files that run, JSON, exit codes; block formats against exact arithmetic."""

from __future__ import annotations

import re
from pathlib import Path

import ml_dtypes
import numpy as np
import oracle
import pytest
from kit.command_output import answer_of, document_of, ended, file_of, out_of
from kit.quantisation_oracle import element_codes, scale_values

import castsim
from castsim import run
from castsim.__main__ import main
from castsim.isa.formats import format_named
from castsim.targets.loader import load_target
from castsim.tools.lowering.block_lowering import BlockWay, lower_blocks
from castsim.tools.lowering.demand import CastRequest
from castsim.tools.lowering.planner import plan
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


def test_a_destination_without_a_way(capsys: pytest.CaptureFixture[str]) -> None:
    code, out, _ = lower(capsys, "f64", "f16", "--target", "a5")
    assert code == 1
    said = " ".join(out.split())
    assert "no chain of up to 4 instructions leads from f64 to f16" in said
    assert "a5 has no instruction for elements of f64" in said


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


def test_programs_name_their_target(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    for target, suffix in (("a5", ".pto"), ("greco", ".tpc")):
        path = tmp_path / f"{target}{suffix}"
        lower(capsys, "f32", "i16", "--target", target, "--out", str(path))
        assert run(path, inputs={"src": "zeros"}).loaded.target.name == target


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


# ------------------------------------------------------------------------------------ `castsim lower` to a block format


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
    ],
)
def test_why_not(chip: str, src: str, name: str, reason: str, capsys: pytest.CaptureFixture[str]) -> None:
    told = " ".join(out_of(capsys, ["lower", src, name, "--target", chip], 1).split())
    assert "no way" in told
    assert reason in told


def test_the_command(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    out = tmp_path / "blocks.pto"
    assert main(["lower", "f32", "mxfp8", "--target", "a5", "--out", str(out), "--rows", "4", "--cols", "64"]) == 0
    assert "program written to" in capsys.readouterr().out
    assert main(["run", str(out), "--target", "a5", "--in", "x=random:1"]) == 0
    capsys.readouterr()
    found = document_of(capsys, "lower", "f32", "mxint8", "--target", "a5")
    assert (found["format"], found["ways"][0]["kind"]) == ("mxint8", "chain")
    assert "tquant" in found["ways"][0]["operations"]


def test_sizes_that_do_not_fit_are_said(capsys: pytest.CaptureFixture[str]) -> None:
    assert "buffer" in out_of(capsys, ["lower", "f32", "mxfp8", "--target", "a5", "--rows", "4096"], 1)
