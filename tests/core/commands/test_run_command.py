"""'castsim run': outputs, cycles, options, JSON; all entries; fragments; stale reads."""

from __future__ import annotations

import hashlib
import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import ml_dtypes
import numpy as np
import pytest
from kit.cli_programs import LOOP, TCVT, TLOAD, TSTORE, changed, written
from kit.command_output import document_of, err_of, file_of, out_of
from kit.tpc_machine import END, nops

from castsim import run
from castsim.__main__ import main
from castsim.isa.errors import CastsimError, ReadError, StaleReadError
from castsim.isa.pto.pto_parser import parse
from castsim.languages.fragments import OPERATIONS, whole
from castsim.targets.loader import load_target

Capture = pytest.CaptureFixture[str]
A2A3, A5 = load_target("a2a3"), load_target("a5")


def document(capsys: Capture, *argv: str) -> dict[str, Any]:
    return document_of(capsys, "run", *argv)


def inputs(folder: Path) -> np.ndarray[Any, np.dtype[np.float32]]:
    array = np.random.default_rng(7).normal(0, 300, (4, 64)).astype(np.float32)
    np.save(folder / "x.npy", array)
    return array


# ------------------------------------------------------------------------------------------------------- outputs


def test_outputs_are_written_and_their_digest_is_that_of_the_file(tmp_path: Path, capsys: Capture) -> None:
    expected = inputs(tmp_path).astype(np.float16)  # NumPy converts to nearest even, as RINT does
    found = document(capsys, written(tmp_path), "--in", f"x={tmp_path / 'x.npy'}", "--out", str(tmp_path / "out"))
    (output,) = found["outputs"]
    assert list(output) == ["name", "file", "format", "shape", "sha256"]
    assert (output["name"], output["format"], output["shape"]) == ("y", "f16", [4, 64])
    assert output["file"] == str(tmp_path / "out" / "y.npy")
    written_array = np.load(output["file"])
    assert written_array.dtype == np.float16
    np.testing.assert_array_equal(written_array, expected)
    assert output["sha256"] == hashlib.sha256(expected.astype("<f2").tobytes()).hexdigest()
    assert [path.name for path in (tmp_path / "out").iterdir()] == ["y.npy"]


def test_without_out_nothing_is_written_and_the_report_says_how(
    tmp_path: Path, capsys: Capture, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = written(tmp_path)
    monkeypatch.chdir(tmp_path)
    assert "not written (--out DIR writes it)" in out_of(capsys, ["run", path, "--in", "%x=zeros"])
    assert [file.name for file in tmp_path.iterdir()] == ["kernel.pto"]
    assert document(capsys, path, "--in", "x=zeros")["outputs"][0]["file"] is None


def test_codes_of_formats_without_a_dtype_are_unsigned_integers(tmp_path: Path, capsys: Capture) -> None:
    path = written(tmp_path, changed("f16", "bf16"))
    values = np.array([1.0, -2.0, 0.5, 3.0] * 64, np.float32).reshape(4, 64)
    np.save(tmp_path / "x.npy", values)
    document(capsys, path, "--in", f"x={tmp_path / 'x.npy'}", "--out", str(tmp_path))
    codes = np.load(tmp_path / "y.npy")
    np.testing.assert_array_equal(codes, (values.view(np.uint32) >> 16).astype(np.uint16))  # exact in bf16


def test_random_inputs_are_reproducible(tmp_path: Path, capsys: Capture) -> None:
    path = written(tmp_path)
    digests = [document(capsys, path, "--in", f"x=random:{s}")["outputs"][0]["sha256"] for s in (1, 1, 2)]
    assert digests[0] == digests[1] != digests[2]
    drawn = np.random.default_rng(2).uniform(-100, 100, (4, 64)).astype(np.float32).astype(np.float16)
    assert digests[2] == hashlib.sha256(drawn.tobytes()).hexdigest()


def test_timing_only_computes_nothing_and_changes_no_cycle(tmp_path: Path, capsys: Capture) -> None:
    path = written(tmp_path)
    full, timed = document(capsys, path, "--in", "x=zeros"), document(capsys, path, "--timing-only")
    assert timed["outputs"] == []
    assert "casts" not in timed
    del full["casts"]
    assert {**timed, "outputs": None, "facts_assumed": None} == {**full, "outputs": None, "facts_assumed": None}


# --------------------------------------------------------------------------------------------------------- JSON


def test_the_document_names_what_was_run(tmp_path: Path, capsys: Capture) -> None:
    path = written(tmp_path)
    found = document(capsys, path, "--in", "x=zeros")
    assert (found["program"], found["entry"], found["target"]) == (path, "narrow", "a2a3")
    assert (found["engine"], found["warnings"]) == ("fast", [])
    assert found["seconds"] == pytest.approx(found["total_cycles"] / (A2A3.frequency.megahertz * 1e6))
    assert all(sum(pipe["causes"].values()) == found["total_cycles"] for pipe in found["pipes"].values())


def test_instructions_are_executions_of_tile_instructions(tmp_path: Path, capsys: Capture) -> None:
    found = document(capsys, written(tmp_path), "--in", "x=zeros")
    assert all(list(entry) == ["line", "op", "pipe", "start_cycle", "end_cycle"] for entry in found["instructions"])
    assert [(entry["line"], entry["op"], entry["pipe"]) for entry in found["instructions"]] == [
        (TLOAD, "tload", "MTE2"),
        (TCVT, "tcvt", "V"),
        (TSTORE, "tstore", "MTE3"),
    ]
    cast = found["instructions"][1]
    # Published: 33 by pto-isa tests/costmodel/st tcvt, f32->f16 4x64, of which 10 are of measuring it from outside.
    outside = A2A3.measured_conventions["complete"].added_cycles_of["tcvt"]
    assert cast["end_cycle"] - cast["start_cycle"] == pytest.approx(33 - outside, abs=1)
    assert found["total_cycles"] == max(entry["end_cycle"] for entry in found["instructions"])


def test_loops_and_index_arithmetic_are_no_instructions(tmp_path: Path, capsys: Capture) -> None:
    found = document(capsys, written(tmp_path, LOOP), "--timing-only")
    assert [entry["op"] for entry in found["instructions"]] == ["tload", "tcvt"] * 4 + ["tstore"]
    assert found["pipes"]["S"]["causes"]["loop_turnaround"] == 4 * A2A3.timing.scalar.loop_turnaround_cycles


# ------------------------------------------------------------------------------------------------------ options


def test_an_option_changes_the_run_and_only_that_run(tmp_path: Path, capsys: Capture) -> None:
    values = np.full((4, 64), np.nan, np.float32)
    np.save(tmp_path / "x.npy", values)
    path = written(tmp_path, changed("f16", "i32"))

    def result(*extra: str) -> int:
        document(capsys, path, "--in", f"x={tmp_path / 'x.npy'}", "--out", str(tmp_path), *extra)
        return int(np.load(tmp_path / "y.npy")[0, 0])

    assert result("--option", "nan_to_integer=maximum") == 2**31 - 1
    assert result("--option", "nan_to_integer=minimum") == -(2**31)
    assert result() == 0  # the default, as options.nan_to_integer in a2a3.toml says


def test_options_with_numbers(tmp_path: Path, capsys: Capture) -> None:
    np.save(tmp_path / "x.npy", np.full((4, 64), np.inf, np.float32))
    path = written(tmp_path)
    for value, expected in (("0", 65504.0), ("1", np.inf)):  # CTRL[48]: 0 clamps infinities of f16 results, 1 keeps
        option = f"float_saturation_off_at_start={value}"
        document(capsys, path, "--in", f"x={tmp_path / 'x.npy'}", "--out", str(tmp_path), "--option", option)
        assert np.load(tmp_path / "y.npy")[0, 0] == expected


def test_assumed_facts_are_those_the_run_rested_on(tmp_path: Path, capsys: Capture) -> None:
    floats = {fact["name"]: fact for fact in document(capsys, written(tmp_path), "--timing-only")["facts_assumed"]}
    whole = {
        f["name"] for f in document(capsys, written(tmp_path, changed("f16", "i32")), "--timing-only")["facts_assumed"]
    }
    assert all(list(fact) == ["name", "status", "value", "source", "note"] for fact in floats.values())
    assert {fact["status"] for fact in floats.values()} <= {"assumed", "fitted", "vendor-model"}
    assert floats["timing.load"]["value"]["startup_cycles"] == A2A3.timing.load.startup_cycles
    assert floats["timing.load"]["source"] == A2A3.timing.load.source
    assert "timing.load" in floats
    assert "timing.vector.vconv_f322f16" not in floats | dict.fromkeys(whole)  # measured, not assumed
    assert "options.nan_to_integer" in whole - set(floats)  # only a cast to an integer reads it


# -------------------------------------------------------------------------------------------------- scalar arguments

ROWS = changed("    %rows = arith.constant 4 : index\n", "").replace(
    "%y: !pto.ptr<f16>)", "%y: !pto.ptr<f16>, %rows: index)"
)


@pytest.mark.parametrize("value", ["4", "0x4", "+4"])
def test_scalar_arguments(value: str, tmp_path: Path, capsys: Capture) -> None:
    found = document(capsys, written(tmp_path, ROWS), "--in", "x=zeros", "--arg", f"rows={value}")
    assert found["outputs"][0]["shape"] == [4, 64]


def test_a_wrong_scalar_argument_is_refused_at_its_use(tmp_path: Path, capsys: Capture) -> None:
    assert main(["run", written(tmp_path, ROWS), "--in", "x=zeros", "--arg", "rows=-4"]) == 1
    assert "%vx: shape [-4, 64] has a negative entry" in capsys.readouterr().err


def test_standard_input_as_program(tmp_path: Path) -> None:
    with Path(written(tmp_path)).open() as file:
        command = [sys.executable, "-m", "castsim", "run", "-", "--timing-only", "--json", "-"]
        done = subprocess.run(command, stdin=file, capture_output=True, text=True, check=True)
    assert json.loads(done.stdout)["entry"] == "narrow"


GOOD = "func.func @good() {\npto.barrier <PIPE_ALL>\nreturn\n}\n"
CALLS = "func.func @calls(%n: index) {\nfunc.call @helper() : () -> ()\nreturn\n}\n"
HELPER = "func.func @helper() {\npto.barrier <PIPE_V>\nreturn\n}\n"
BAD = "func.func @bad() {\nnonsense\nreturn\n}\n"


def entries(
    text: str, folder: Path, capsys: pytest.CaptureFixture[str], *more: str
) -> tuple[int, list[dict[str, object]]]:
    file = file_of(folder / "k.pto", text)
    code = main(["run", str(file), "--all-entries", "--timing-only", "--json", "-", *more])
    return code, json.loads(capsys.readouterr().out)["entries"]


def test_every_function_that_no_other_calls(tmp_path: Path, capsys: pytest.CaptureFixture[str]):
    code, found = entries(GOOD + CALLS + HELPER, tmp_path, capsys, "--arg", "n=2")
    assert code == 0
    file = tmp_path / "k.pto"
    runs = (("good", {}), ("calls", {"n": 2}))
    expected = [run(file, entry=name, args=args, timing_only=True).cycles for name, args in runs]
    assert found == [
        {"entry": "good", "cycles": expected[0], "error": None},
        {"entry": "calls", "cycles": expected[1], "error": None},
    ]


def test_failures_do_not_keep_the_others_from_running(tmp_path: Path, capsys: pytest.CaptureFixture[str]):
    code, found = entries(BAD + CALLS + GOOD + HELPER, tmp_path, capsys)
    assert code == 1
    assert {one["entry"]: one["error"] is None for one in found} == {"calls": False, "good": True, "bad": False}
    errors = {one["entry"]: str(one["error"]) for one in found}
    assert "k.pto:5:18: scalar argument %n of @calls needs a value" in errors["calls"]
    assert "k.pto:2:1: unknown operation 'nonsense'" in errors["bad"]
    assert main(["run", str(tmp_path / "k.pto"), "--all-entries", "--timing-only"]) == 1
    assert "3 functions, 2 failed" in capsys.readouterr().out


@pytest.mark.parametrize("option", [["--entry", "good"], ["--timeline"], ["--show-sync"], ["--trace", "t.json"]])
def test_what_is_about_one_function(option: list[str], tmp_path: Path, capsys: pytest.CaptureFixture[str]):
    file = file_of(tmp_path / "k.pto", GOOD)
    assert "--all-entries runs several" in err_of(capsys, ["run", str(file), "--all-entries", "--timing-only", *option])


def run_fragment(folder: Path, text: str, target: str, **inputs: np.ndarray) -> dict[str, np.ndarray]:
    given = []
    for name, array in inputs.items():
        np.save(folder / f"{name}_in.npy", array)
        given += ["--in", f"{name}={folder / f'{name}_in.npy'}"]
    assert main(["run", "-e", text, "--target", target, "--out", str(folder / "out"), "--quiet", *given]) == 0
    return {path.stem: np.load(path) for path in (folder / "out").glob("*.npy")}


@pytest.mark.parametrize("cols", [1, 31, 64, 100, 512])
def test_a_cast_gives_the_values_of_numpy(cols: int, tmp_path: Path) -> None:
    src = np.random.default_rng(1).normal(0, 100, (3, cols)).astype(np.float32)
    out = run_fragment(tmp_path, f"tcvt f32 -> f16 3x{cols}", "a2a3", src=src)
    assert out["dst"].tobytes() == src.astype(np.float16).tobytes()


def test_a_chain_takes_what_the_statement_before_gives(tmp_path: Path) -> None:
    src = np.random.default_rng(2).integers(-100, 100, (4, 64)).astype(np.float32)
    text = "tcvt f32 -> f16 4x64; tmuls f16 4x64 2; tcvt f16 -> f32 4x64"
    out = run_fragment(tmp_path, text, "a2a3", src=src)
    assert list(out) == ["dst"]
    assert np.array_equal(out["dst"], (src.astype(np.float16) * np.float16(2)).astype(np.float32))


def test_the_case_of_the_help(tmp_path: Path) -> None:
    src = np.random.default_rng(3).normal(0, 10, (16, 512)).astype(np.float32)
    out = run_fragment(tmp_path, "tcvt f32 -> e4m3fn 16x512 sat", "a5", src=src)
    assert out["dst"].tobytes() == src.astype(ml_dtypes.float8_e4m3fn).tobytes()


def test_two_inputs_and_two_outputs_are_numbered(tmp_path: Path) -> None:
    rng = np.random.default_rng(4)
    arrays = {f"src{n}": rng.normal(size=(2, 64)).astype(np.float32) for n in range(3)}
    out = run_fragment(tmp_path, "tadd f32 2x64\ntexpands".replace("\ntexpands", "; tcvt f32 -> i32 4x64 rint"), "a2a3",
              **{**arrays, "src2": rng.normal(size=(4, 64)).astype(np.float32)})  # fmt: skip
    assert np.array_equal(out["dst0"], arrays["src0"] + arrays["src1"])
    assert set(out) == {"dst0", "dst1"}


@pytest.mark.parametrize("name", OPERATIONS)
def test_every_operation_makes_a_program_that_parses(name: str) -> None:
    number = " 2" if name.endswith("s") and name not in ("tabs",) else ""
    try:
        made = whole(f"{name} f32 4x64{number}", A5)
    except CastsimError:
        made = whole(f"{name} f32 4x64 2", A5)
    assert parse(made.source.text).functions


def test_without_inputs_they_are_random(capsys: pytest.CaptureFixture[str]) -> None:
    command = ["run", "-e", "tcvt f32 -> f16 4x64", "--target", "a5", "--json", "-"]
    document = json.loads(out_of(capsys, command))
    assert document["total_cycles"] > 0 and [one["name"] for one in document["outputs"]] == ["dst"]


def test_bundles_of_assembly(capsys: pytest.CaptureFixture[str]) -> None:
    text = "mov.f32 V1, V2\nnop\nnop\nnop\nhalt"
    assert document_of(capsys, "run", "-e", text, "--target", "gaudi2")["target"] == "gaudi2"


@pytest.mark.parametrize(
    ("text", "code", "place", "words"),
    [
        (" ; ", 2, None, "empty"),
        ("tcvvt f32 -> f16 4x64", 2, (1, 1), "tcvt"),
        ("tcvt f32 f16 4x64", 2, (1, 10), "tcvt SRC -> DST"),
        ("tcvt f32 -> f17 4x64", 2, (1, 13), "unknown format 'f17'"),
        ("tcvt f32 -> f16 4by64", 2, (1, 17), "not a shape"),
        ("tcvt f32 -> f16 0x64", 2, (1, 17), "not a shape"),
        ("tcvt f32 -> f16 4x64 sideways", 2, (1, 22), "'sideways' cannot be used here"),
        ("tadd f32 4x64 3", 2, (1, 15), "expected tadd"),
        ("tmuls f32 4x64 many", 2, (1, 16), "not a number"),
        ("tadd f32 4x64; tcvt f32 -> f64 4x64", 1, (1, 16), "has no cast f32 -> f64"),
        ("tadd f32 4x64\ntcvt f32 -> f64 4x64", 1, (2, 1), "has no cast f32 -> f64"),
    ],
)
def test_wrong_fragments(
    text: str, code: int, place: tuple[int, int] | None, words: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["run", "-e", text, "--target", "a2a3", "--timing-only", "--json", "-"]) == code
    (error,) = json.loads(capsys.readouterr().out)["errors"]
    assert words in error["message"] + " ".join(error["legal"])
    assert (error["line"], error["column"]) == (place or (None, None))


# ------------------------------------------------------------------------------------ what a run does about stale reads


EARLY = (
    "// castsim: target gaudi2\n// castsim: vlm 0x0 y out i32 [64]\nnop; nop; mov.i32 V0, 0x7; nop\n"
    f"nop; nop; mov V1, V0; nop\n{nops(5)}nop; nop; mov V2, V1; st_l_v 0x0, V1\n{END}"
)
FRESH = EARLY.replace("0x7; nop\n", f"0x7; nop\n{nops(3)}")
OVERTAKEN = (
    "// castsim: target gaudi2\n// castsim: reg S1 = 1\nnop; nop; nop; st_l 0x0, S1\nld_l SP1, 0x0; nop; nop; nop\n"
    f"nop; mov SP1, S1; nop; nop\n{nops(5)}{END}"
)


def assembled(folder: Path, text: str) -> str:
    path = file_of(folder / "kernel.tpc", text)
    return str(path)


def test_the_report_begins_with_them(tmp_path: Path, capsys: Capture) -> None:
    path = assembled(tmp_path, EARLY)
    out = out_of(capsys, ["run", path])
    answer, _, head = " ".join(out.partition(" limits (")[0].split()).partition(" warning: ")
    assert answer.startswith(f"{path} on gaudi2: ")
    assert head.startswith("1 stale read: this instruction reads an old value, as on the chip; ")
    assert "'mov V1, V0' (line 4, bundle 1) reads the old value of V0" in head
    assert "distance 1, needed 4, 3 missing" in head
    assert "--stale-reads stop" in head


def test_a_fresh_run_does_not_mention_them_above(tmp_path: Path, capsys: Capture) -> None:
    path = assembled(tmp_path, FRESH)
    out = out_of(capsys, ["run", path])
    assert out.startswith(f"{path} on gaudi2: ")
    assert "warning: " not in out


def test_json_names_them_among_the_warnings(tmp_path: Path, capsys: Capture) -> None:
    path = assembled(tmp_path, EARLY)
    found = document_of(capsys, "run", path)
    (warning,) = found["warnings"]
    assert "1 stale read" in warning
    assert "line 4, bundle 1" in warning
    assert [entry["kind"] for entry in found["stale_reads"]] == ["early"]


@pytest.mark.parametrize(("text", "place"), [(EARLY, ":4:11:"), (OVERTAKEN, ":5:6:")])
def test_stop_ends_at_the_first(text: str, place: str, tmp_path: Path, capsys: Capture) -> None:
    path = assembled(tmp_path, text)
    assert main(["run", path, "--stale-reads", "stop"]) == 1
    captured = capsys.readouterr()
    assert f"{path}{place}" in captured.err
    assert captured.out == ""
    assert main(["run", path, "--stale-reads", "stop", "--timing-only"]) == 1
    (error,) = document_of(capsys, "run", path, "--stale-reads", "stop", code=1)["errors"]
    assert error["kind"] == "stale read"
    with pytest.raises(StaleReadError):
        run(path, stale_reads="stop")


def test_stop_lets_pass_what_is_no_stale_read(tmp_path: Path) -> None:
    beside = "// castsim: target gaudi2\nld_l_v V0, 0x0; nop; mov V1, V0; nop\n" + END
    for text in (FRESH, beside):
        assert main(["run", assembled(tmp_path, text), "--stale-reads", "stop"]) == 0


def test_ignore_says_nothing(tmp_path: Path, capsys: Capture) -> None:
    path = assembled(tmp_path, EARLY)
    found = document_of(capsys, "run", path, "--stale-reads", "ignore")
    assert "stale_reads" not in found
    assert found["warnings"] == []
    assert "stale" not in out_of(capsys, ["run", path, "--stale-reads", "ignore"])


def test_values_are_old_ones_in_every_mode(tmp_path: Path) -> None:
    path = assembled(tmp_path, EARLY)
    results = [run(path), run(path, stale_reads="ignore")]
    for found in results:
        np.testing.assert_array_equal(found.outputs["y"], np.zeros(64, np.int32))  # V0 was zero before
    assert [found.stale_reads is None for found in results] == [False, True]
    assert run(path, stale_reads="report").stale_reads


def test_words_that_mean_nothing(tmp_path: Path) -> None:
    with pytest.raises(ReadError, match="unknown treatment of stale reads 'never'"):
        run(assembled(tmp_path, FRESH), stale_reads="never")  # type: ignore[arg-type]
