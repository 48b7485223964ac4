"""`castsim builtin` and `castsim.builtin`: what they print, write and refuse."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import builtin_oracle
import numpy as np
import pytest
from tpc_text import GENERATIONS, table, target

from castsim import builtin, run
from castsim.__main__ import main
from castsim.isa.errors import IllegalError, ReadError
from castsim.isa.tpc import parse
from castsim.isa.tpc.encoding import assemble
from castsim.targets.tpc_encoding import encoding_of

Capture = pytest.CaptureFixture[str]

NARROW = "__builtin_cast_i32_to_i16_lin_order"
X = np.random.default_rng(3).integers(-(1 << 31), 1 << 31, 128).astype(np.int32)


def shown(capsys: Capture, *argv: str, code: int = 0) -> str:
    assert main(["builtin", *argv]) == code, capsys.readouterr().err
    out, err = capsys.readouterr()
    assert err == ""
    return out


def refused(capsys: Capture, *argv: str) -> tuple[int, str]:
    code = main(["builtin", *argv])
    out, err = capsys.readouterr()
    assert out == ""
    assert err.startswith("error: ")
    assert "Traceback" not in err
    return code, err


def expected(shift: int) -> np.ndarray:
    codes = builtin_oracle.results(NARROW, "goya", shift, "RHNE", X.view(np.uint32))
    return codes.astype(np.uint16).view(np.int16)


# ------------------------------------------------------------------------------------------------------------ python


@pytest.mark.parametrize("generation", ["goya", "gaudi", "gaudib", "gaudi2"])
def test_the_function(generation: str) -> None:
    found = builtin(NARROW, generation, X, args={"shift": -9})
    np.testing.assert_array_equal(found.outputs["y"], expected(-9))
    published = next(
        row for row in table("tpc_builtin_casts.csv") if (row["device"], row["builtin"]) == (generation, NARROW)
    )
    assert found.vector_operations == int(published["vpu_ops"])
    assert (found.calls, found.stale_reads, found.warnings) == (1, (), ())
    twice = builtin("i32_to_i16_lin_order", target(generation), np.stack([X, X]), args={"shift": -9})
    np.testing.assert_array_equal(twice.outputs["y"], [expected(-9)] * 2)
    assert twice.cycles > found.cycles


def test_bad_arguments_of_the_function() -> None:
    for x, args, words in (
        (X[:100], {"shift": 0}, "x has 100 elements; a call of __builtin_cast_i32_to_i16_lin_order takes 128"),
        (X[:0], {"shift": 0}, "x has 0 elements"),
        (X.astype(np.float64), {"shift": 0}, "float64"),
        (X, {}, "no value for shift"),
        (X, {"scale": 1.0}, "no scalar 'scale'"),
        (X, {"shift": 1.5}, "not an integer of 32 bits|is not an integer"),
        (X, {"shift": 1 << 40}, "is not an integer"),
    ):
        with pytest.raises(ReadError, match=words):
            builtin(NARROW, "gaudi", x, args=args)


# -------------------------------------------------------------------------------------------------------------- text


def test_the_report(capsys: Capture) -> None:
    text = shown(capsys, "i32_to_i16_lin_order", "--target", "goya")
    assert "signature: short128 (int64, int64, int)" in text
    assert "result order: linear" in text
    assert "VPU operations: 13 counted in the run, 13 documented" in text
    assert "  nop; nop; pack.i16 source_group=0 element_stride=2 V4, V1; nop\n" in text
    assert "// S0 holds shift (i32)" in text
    assert "values: not computed" in text


def test_values_and_files(tmp_path: Path, capsys: Capture) -> None:
    np.save(tmp_path / "x.npy", X)
    options = [NARROW, "--target", "gaudi2", f"--in=x={tmp_path / 'x.npy'}", "--out", str(tmp_path / "out")]
    for scalar in (["--arg", "shift=-9"], ["--in", "shift=-9"]):
        text = shown(capsys, *options, *scalar)
        assert "stale reads: none" in text
        np.testing.assert_array_equal(np.load(tmp_path / "out" / "y.npy"), expected(-9))
    document = json.loads(shown(capsys, *options, "--arg", "shift=-9", "--json", "-", "--quiet"))
    assert document["vpu_operations"] == {"counted": 10, "documented": 10}
    assert (document["result_order"], document["calls"], document["stale_reads"]) == ("linear", 1, [])
    assert document["outputs"][0] | {"sha256": ""} == {
        "name": "y",
        "file": str(tmp_path / "out" / "y.npy"),
        "format": "i16",
        "shape": [128],
        "sha256": "",
    }


def test_the_assembly_runs_by_itself_and_as_a_binary(tmp_path: Path, capsys: Capture) -> None:
    for generation in ("goya", "gaudi"):
        text = shown(capsys, NARROW, "--target", generation, "--emit")
        source, binary = tmp_path / "narrow.tpc", tmp_path / "narrow.bin"
        source.write_text(text)
        chip = target(generation)
        binary.write_bytes(assemble(parse(text, chip.dialect), encoding_of(chip)).code)
        for path, keywords in ((source, {}), (binary, {"declare": source})):
            found = run(path, inputs={"x": X}, args={"S0": -9}, **keywords)  # type: ignore[arg-type]
            np.testing.assert_array_equal(found.outputs["y"], [expected(-9)])
            assert found.stale_reads == ()


def test_the_list(capsys: Capture) -> None:
    rows = table("tpc_builtin_signatures.csv")
    every = shown(capsys)
    for row in rows:
        assert f"{row['builtin']} " in every
        assert row["signature"] in every
    document = json.loads(shown(capsys, "--target", "greco", "--json", "-", "--quiet"))
    (greco,) = document["targets"]
    assert [each["name"] for each in greco["builtins"]] == [r["builtin"] for r in rows if r["device"] == "greco"]


@pytest.mark.parametrize("generation", GENERATIONS)
def test_targets_lists_special_functions_with_signatures(generation: str, capsys: Capture) -> None:
    assert main(["targets", generation]) == 0
    text = " ".join(capsys.readouterr().out.split())
    special = [row for row in table("tpc_builtin_signatures.csv") if not row["device"]]
    assert all(f"{row['builtin']} {row['signature']}" in text for row in special)
    assert main(["targets", generation, "--json", "-", "--quiet"]) == 0
    document = json.loads(capsys.readouterr().out)
    found = document["special_functions"]
    assert [(each["name"], each["signature"]) for each in found] == [(r["builtin"], r["signature"]) for r in special]
    assert {each["name"] for each in found if not each["modelled"]} == {
        f"__builtin_v_{name}" for name in ("recip_i16", "tanh_i16", "sigmoid_i16", "exp_i8", "exp_i16")
    }
    assert [sum(each["kind"] == kind for each in found) for kind in ("sequence", "table", "descriptor")] == [1, 7, 10]


def test_special_functions_say_whose_values_they_are(tmp_path: Path, capsys: Capture) -> None:
    x = np.linspace(0.5, 4, 70, dtype=np.float32)
    np.save(tmp_path / "x.npy", x)
    options = ["--in", f"x={tmp_path / 'x.npy'}", "--out", str(tmp_path)]
    text = shown(capsys, "cos", "--target", "gaudi", *options)
    assert "values: correctly rounded, not claimed to be the chip's" in text
    np.testing.assert_array_equal(np.load(tmp_path / "y.npy"), np.cos(x.astype(np.float64)).astype(np.float32))
    document = json.loads(shown(capsys, "cos", "--target", "gaudi", *options, "--json", "-", "--quiet"))
    assert (document["claimed"], document["values"], document["calls"]) == (False, "correctly rounded", 2)
    assert document["tables"] == [{"name": "sin_cos", "function": 130, "entries": 128, "public": False}]
    assert "not claimed" in json.dumps(document["warnings"])
    np.save(tmp_path / "rcp.npy", np.zeros((128, 3), np.float32) + np.float32([1, 0, 0]))
    given = ["reciprocal", "--target", "gaudi", *options, "--in", f"rcp={tmp_path / 'rcp.npy'}"]
    document = json.loads(shown(capsys, *given, "--json", "-", "--quiet"))
    assert (document["claimed"], document["values"], document["warnings"]) == (True, "instructions", [])
    powers = 2.0 ** -np.floor(np.log2(x))
    np.testing.assert_array_equal(np.load(tmp_path / "y.npy"), powers.astype(np.float32))
    document = json.loads(shown(capsys, "log", "--target", "gaudi2", "--json", "-", "--quiet"))
    assert (document["claimed"], document["operations"]) == (None, {"counted": 35, "documented": 35})


def test_a_function_runs_as_its_assembly(tmp_path: Path, capsys: Capture) -> None:
    source = tmp_path / "log.tpc"
    source.write_text(shown(capsys, "log", "--target", "gaudi", "--emit"))
    x = np.linspace(0.5, 40, 64, dtype=np.float32)
    np.save(tmp_path / "x.npy", x)
    shown(capsys, "log", "--target", "gaudi", "--in", f"x={tmp_path / 'x.npy'}", "--out", str(tmp_path))
    found = run(source, inputs={"x": x})
    np.testing.assert_array_equal(found.outputs["y"].reshape(-1), np.load(tmp_path / "y.npy"))
    text = shown(capsys, "get_pad_value_char", "--target", "gaudi", "--arg", "tensor=1", "--arg", "word=0x80")
    assert "configuration word 0x440: read" in text
    assert "result: -128" in text


def test_other_chips_have_none(capsys: Capture) -> None:
    assert main(["targets", "a5"]) == 0
    assert "__builtin" not in capsys.readouterr().out


# ---------------------------------------------------------------------------------------------------------- refusals


@pytest.mark.parametrize(
    ("argv", "code", "words"),
    [
        (["i32_to_i16_lin_ordre", "--target", "gaudi"], 2, f"legal: {NARROW}"),
        (["__builtin_v_sin_f33", "--target", "goya"], 2, "legal: __builtin_v_sin_f32"),
        (["f16_to_f32", "--target", "greco"], 1, "legal: gaudi, gaudi2"),
        (["__builtin_v_tanh_i16", "--target", "goya"], 1, "is not modelled: its instructions and number formats"),
        (["get_dim_stride", "--target", "goya"], 2, "takes tensor, dimension"),
        (["get_pad_value", "--target", "goya"], 2, "several builtins are called 'get_pad_value'"),
        (["coz", "--target", "goya"], 2, "__builtin_v_cos_f32"),
        (["cos", "--target", "goya", "--rounding", "rz"], 2, "--rounding is for casts"),
        (["pow", "--target", "goya", "--in", "x=zeros"], 2, "takes y too"),
        (["cos", "--target", "goya", "--in", "sin_cos=zeros"], 2, "without operands nothing is computed"),
        ([NARROW, "--target", "a5"], 1, "a5 has no builtins"),
        ([NARROW, "--target", "gaudi7"], 2, "unknown target"),
        ([NARROW], 2, "name the generation by --target"),
        ([NARROW, "--target", "gaudi", "--in", "x=zeros"], 2, "no value for shift"),
        ([NARROW, "--target", "gaudi", "--in", "z=zeros"], 2, "no tensor argument 'z'"),
        ([NARROW, "--target", "gaudi", "--in", "x=nothing.npy", "--arg", "shift=0"], 2, "does not exist"),
        ([NARROW, "--target", "gaudi", "--arg", "shift=x"], 2, "not a number"),
        ([NARROW, "--target", "gaudi", "--arg", "scale=1"], 2, "no scalar 'scale'"),
        ([NARROW, "--target", "gaudi", "--out", "y"], 2, "--out has nothing to write"),
        ([NARROW, "--target", "goya", "--rounding", "rhaz"], 1, "legal: rhne, rd, ru, rz"),
        ([NARROW, "--target", "gaudib", "--rounding", "up"], 1, "has no rounding mode 'up'"),
        ([NARROW, "--target", "gaudib", "--option", "lanes=1"], 2, "has no option 'lanes'"),
        (["i16_to_32bits", "--target", "gaudib", "--in", "x=zeros"], 1, "option unpacked_lane_order=every_second"),
    ],
)
def test_refusals(argv: list[str], code: int, words: str, capsys: Capture) -> None:
    found, message = refused(capsys, *argv)
    assert found == code
    assert words in message


def test_halves_in_wide_lanes_say_what_their_upper_bits_must_be(tmp_path: Path, capsys: Capture) -> None:
    command = ["f16_to_f32", "--target", "gaudi2"]
    assert "elements of x: u32 with the code of f16 in the lower 16 bits, 0 above" in shown(capsys, *command)
    codes = np.arange(64, dtype=np.uint32) * 1024
    np.save(tmp_path / "x.npy", codes)
    command += ["--in", f"x={tmp_path / 'x.npy'}"]
    assert "warning" not in shown(capsys, *command)
    codes[[7, 9]] += np.array([0x10000, 0x80000000], np.uint32)
    np.save(tmp_path / "x.npy", codes)
    text = " ".join(shown(capsys, *command).split())
    assert "warning: x: 2 of 64 elements have bits above the 16 of f16, the first element 7, 0x11c00;" in text
    assert "elements of x" not in shown(capsys, NARROW, "--target", "gaudi2")
    (warning,) = json.loads(shown(capsys, *command, "--json", "-", "--quiet"))["warnings"]
    assert "2 of 64 elements" in warning


def test_the_undocumented_builtin_is_emitted_and_counted(capsys: Capture) -> None:
    text = shown(capsys, "i16_to_32bits", "--target", "gaudib")
    assert "VPU operations: 4 counted in the run, 4 documented" in text
    assert "result order: undefined" in text
    option = ["--in", "x=zeros", "--option", "unpacked_lane_order=every_second"]
    assert "which source element reaches which lane" in shown(capsys, "i16_to_32bits", "--target", "gaudib", *option)


def test_a_target_of_the_users_own_inherits_builtins(tmp_path: Path, capsys: Capture) -> None:
    path = tmp_path / "mine.toml"
    path.write_text('base = "gaudi2"\nname = "mine"\n')
    assert "VPU operations: 10 counted in the run, 10 documented" in shown(capsys, NARROW, "--target", str(path))


def test_errors_have_their_classes() -> None:
    cases: tuple[tuple[str, str, type[Any]], ...] = (
        ("nothing_like_it", "goya", ReadError),
        ("u16_to_u8_lin_order", "goya", IllegalError),
    )
    for name, chip, kind in cases:
        with pytest.raises(kind):
            builtin(name, chip, X)
