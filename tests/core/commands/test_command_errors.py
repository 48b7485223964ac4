"""Every wrong input has its own message and exit code, and none a traceback."""

from __future__ import annotations

import json
import shlex
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
from kit.cli_programs import NARROW, SLIM, TCVT, TLOAD, WIDE, before, changed, written
from kit.command_output import err_of, file_of, refusal
from kit.paths import PROGRAMS

from castsim.__main__ import main
from castsim.commands.feature import COMMANDS
from castsim.targets.loader import SHIPPED

Capture = pytest.CaptureFixture[str]


# --------------------------------------------------------------------------------------------------- what was typed


@pytest.mark.parametrize(
    ("argv", "code", "message"),
    [
        ("rum kernel.pto", 2, "unknown command 'rum' (see `castsim --help`)\n  legal: "),
        ("help rum", 2, "unknown command 'rum' (see `castsim --help`)\n  legal: "),
        ("xyzzy", 2, f"unknown command 'xyzzy' (see `castsim --help`)\n  legal: {', '.join([*COMMANDS][:5])}, ... ("),
        ("--bogus run", 2, "unrecognized arguments: --bogus"),
        ("run a.pto --timing-onyl", 2, "arguments: --timing-onyl (see `castsim run --help`)\n  help: --timing-only"),
        ("run a.pto --max-walks=5", 2, "arguments: --max-walks=5 (see `castsim run --help`)\n  help: --max-walk"),
        ("run", 2, "nothing to run"),
        ("run nowhere.pto", 2, "program 'nowhere.pto': No such file"),
        ("run a.pto b.pto", 2, "unrecognized arguments: b.pto"),
        ("run a.pto --engine quick", 2, "engine 'quick' is not available\n  legal: fast, event"),
        ("run a.pto --max-cycles -5", 2, "--max-cycles -5: must be a positive integer"),
        ("run a.pto --max-cycles 0", 2, "--max-cycles 0: must be a positive integer"),
        ("run a.pto --in x", 2, "--in x: expected NAME=VALUE"),
        ("run a.pto --in x=zeros --in x=random:1", 2, "--in x=... is given twice"),
        ("run a.pto --arg n=many", 2, "--arg n=many: not a number"),
        ("run a.pto --timing-only --out results", 2, "--timing-only computes no values"),
        ("scratch a.pto --rows 4", 2, "--rows applies to two formats"),
        ("scratch a.pto --audit", 2, "--audit applies to two formats"),
        ("builtin --emit", 2, "--emit needs the name of a builtin"),
        ("builtin --in x=zeros", 2, "--in needs the name of a builtin"),
        ("targets nowhere", 2, "unknown target 'nowhere'\n  legal: "),
        ("targets nowhere.toml", 2, "target file 'nowhere.toml' does not exist"),
        ("targets a2a3 f32", 2, "expected no argument, a name, or a name and two formats"),
        ("targets a2a3 f32 f33", 2, "unknown format 'f33'"),
        ("targets a2a3 f32 e5m2", 1, "a2a3 has no cast f32 -> e5m2; from f32 it has: f16, f32, bf16, i16, i32, i64"),
        ("targets a2a3 e5m2 f32", 1, "a2a3 has no cast from e5m2; it casts from: f32, f16, bf16"),
        ("cast f32 f16", 2, "required: VALUE"),
        ("cast f33 f16 1", 2, "unknown format 'f33'"),
        ("cast f32 f16 one", 2, "'one' is not a number"),
        ("cast f32 f16 0xzz", 2, "'0xzz' is not a hexadecimal number"),
        ("cast f16 f32 0x10000", 2, "0x10000 is not a code of f16\n  legal: 0x0 to 0xffff"),
        ("cast e2m1 f32 0x10", 2, "0x10 is not a code of e2m1\n  legal: 0x0 to 0xf"),
        ("cast f32 f16 1 --rounding up", 2, "unknown rounding 'up'\n  legal: "),
        ("cast f32 f16 1 --rounding hybrid", 1, "rounding 'hybrid' is not defined for f32 -> f16\n  legal: rint"),
        ("cast f32 f16 1 --rounding stochastic", 1, "'stochastic' needs random words; use it on arrays"),
        ("cast f32 hif8 1 --rounding rint", 1, "legal: round, floor, ceil, trunc, hybrid"),
        ("cast f32 f16 1 --overflow clip", 2, "unknown overflow 'clip'\n  legal: saturate, wrap, special"),
        ("cast f32 f16 1 --overflow wrap", 1, "overflow 'wrap' is not defined for destination f16"),
        ("cast f32 f16 1 --saturation on", 2, "options of a target"),
        ("cast f32 f16 1 --scratch", 2, "options of a target"),
        ("cast f32 i16 1 --target a2a3 --saturation half", 2, "unknown saturation 'half'\n  legal: on, off"),
        ("cast f32 i16 1 --target a2a3 --overflow wrap", 2, "the target determines overflow behaviour"),
        ("cast f32 i16 1 --target a2a3 --rounding up", 2, "unknown rounding mode 'up'"),
        ("cast f32 i16 1 --target a2a3 --rounding stochastic", 1, "a2a3 has no rounding mode stochastic"),
        ("cast f32 i16 1 --target a4", 2, "unknown target 'a4'"),
        ("cast bf16 f16 1 --target a2a3", 1, "a2a3 has no cast bf16 -> f16; from bf16 it has: f32, i32"),
        ("cast f64 f32 1 --target all", 1, "no target casts f64 -> f32 with these options; tried: a2a3"),
        ("cast f32 f16 1 --target all --rounding up", 2, "unknown rounding mode 'up'"),
        ("cast f32 f16 1 --target all --overflow saturate", 2, "the target determines overflow behaviour"),
        ("cast f32 f16 1 --target abstract --saturation on", 2, "options of a target"),
        ("cast f32 f16 1 --target all --saturation half", 2, "unknown saturation 'half'"),
        ("cast f32 f16 1 --target every", 2, "unknown target 'every'"),
        ("tosa reciprocal 3", 2, "reciprocal_scale"),
        ("tosa apply_scale_32 1 2", 2, "three numbers"),
        ("tosa apply_scale_32 1 2 three", 2, "'three' is not an integer"),
        ("tosa apply_scale_32 1 1 63", 1, "unpredictable: shift 63"),
        ("tosa TABLE 3", 2, "needs --table"),
        ("tosa reciprocal_scale 3 --double-round", 2, "--double-round applies only to apply_scale_32"),
        ("scratch all", 2, "the size of the tile is missing"),
        ("scratch all --rows 1 --cols 2 --audit", 2, "--audit does not apply to all casts"),
        ("verify", 2, "verify takes two formats, not 0 arguments"),
        ("verify f32", 2, "verify takes two formats, not 1"),
        ("verify f32 f16 f16", 2, "verify takes two formats, not 3"),
        ("verify f33 f16", 2, "unknown format 'f33'; did you mean 'f32'?\n  legal: f32, "),
        ("verify f16 e4m3fn --rounding up", 2, "unknown rounding 'up'\n  legal: "),
        ("verify f16 e4m3fn --overflow clip", 2, "unknown overflow 'clip'\n  legal: saturate, wrap, special"),
        ("verify f16 e4m3fn --overflow wrap", 1,
         "overflow 'wrap' is not defined for destination e4m3fn\n  legal: satur"),
        ("verify f16 hif8 --rounding rint", 1, "rounding 'rint' is not defined for f16 -> hif8\n  legal: round, floor"),
        ("verify f16 e4m3fn --tier fast", 2, "unknown tier 'fast'\n  legal: "),
        ("verify f16 e4m3fn --against fast", 2, "unknown tier 'fast'\n  legal: "),
        ("verify f16 e4m3fn --tier table --against table", 2, "tier 'table' against itself proves nothing"),
        ("verify f32 i32 --tier table --samples 5 --rounding rint", 1, "has no table"),
        ("verify f16 e4m3fn --exhaustive --structured", 2, "--exhaustive and --structured cannot be combined"),
        ("verify f16 e4m3fn --structured --samples 3", 2, "--structured and --samples cannot be combined"),
        ("verify f16 e4m3fn --structured", 1, "those of f16 are few\n  help: --exhaustive"),
        ("verify f64 f16 --exhaustive", 1, "too many codes to try them all\n  help: --structured, --samples N"),
        ("verify f64 f32 --structured", 1, "help: --samples N"),
        ("verify f32 hif8 --rounding hybrid --structured", 1, "sees more than kept bits"),
        ("verify f16 e4m3fn --samples 0", 2, "--samples 0: must be an integer of at least 1"),
        ("verify f16 e4m3fn --samples many", 2, "--samples many: must be an integer"),
        ("verify f16 e4m3fn --samples 3 --seed -1", 2, "--seed -1: must be an integer of at least 0"),
        ("verify f16 e4m3fn --workers 0", 2, "--workers 0: must be an integer of at least 1"),
        ("verify f16 e4m3fn --resume", 2, "--resume continues a record; name it with --record FILE"),
        ("verify f16 e4m3fn --resume --record none.json", 2, "record 'none.json' does not exist"),
        ("verify f16 e4m3fn --record nowhere/r.json", 2, "cannot write record 'nowhere/r.json'"),
        ("verify --matrix f32 f16", 2, "--matrix already determines what is compared; leave out SRC DST"),
        ("verify --matrix --rounding rint --exhaustive", 2, "leave out --rounding, --exhaustive"),
        ("conform", 2, "--spec"),
        ("conform --spec nope", 2, "nope"),
        ("conform --spec tosa --target a9", 2, "unknown target"),
        ("conform --spec tosa@7", 2, "no version '7'"),
        ("conform --spec tosa --src zz", 2, "unknown format"),
        ("conform --spec tosa --src hif8", 1, "no cast hif8"),
        ("conform --spec tosa --workers 0", 2, "--workers 0"),
        ("conform --spec onnx:saturate=0", 2, "all attributes"),
        ("lower f32 mxfp8 --cols 40 --target a5", 2, "whole blocks of 32"),
        ("lower f32 mxfp8 --spec tosa --target a5", 2, "is a block format"),
        ("lower i8 mxfp8 --target a5", 1, "cannot be quantised to blocks"),
        ("lower f32 mxfp9 --target a5", 2, "unknown format"),
        ("targets --diff a2a3 a6", 2, "unknown target"),
        ("targets a5 --diff a2a3 a5", 2, "and nothing else"),
        ("scratch f32", 2, "takes two formats or one .pto file"),
        ("scratch f32 i16 i8 --rows 1 --cols 1", 2, "takes two formats or one .pto file"),
        ("scratch f32 i16", 2, "the size of the tile is missing"),
        ("scratch x.pto", 2, "program 'x.pto': No such file"),
        ("scratch f32 i16 --rows 4 --cols 4 --entry f", 2, "--entry applies only to a program"),
        ("scratch f32 i16 --rows 4 --cols 4 --arg rows=2", 2, "--arg applies only to a program"),
        ("accuracy --target a5 --cross-validate rows", 2, "legal: pair, "),
        ("accuracy --cross-validate pair", 2, "needs --target"),
        ("accuracy --target gaudi2 --cross-validate pair", 2, "gaudi2 has no free facts"),
        (f"accuracy --target a2a3 --data {SHIPPED / 'a2a3_measured_casts.csv'} --cross-validate operation", 2,
         "has only one operation"),
        ("targets --template tosa", 1, "tosa is a specification"),
        ("targets --template a9", 2, "unknown target 'a9'"),
        ("targets a5 --template a5", 2, "and nothing else"),
        ("verify f16 i8 --spec tosa", 2, "--lowering"),
        ("--quiet targets nowhere", 2, "error: unknown target"),
        (f"tune {PROGRAMS}/f32_to_f16.pto", 2, "// castsim: parameter"),
        (f"run {PROGRAMS}/tpc_f32_f8_143_gaudi2.tpc --timing-only --report kernel", 2,
         "which assembly does not have"),
        ("run -e 'tadd f32 4x64'", 2, "a fragment does not declare a target"),
        ("run k.pto -e 'tadd f32 4x64'", 2, "-e runs a fragment instead of 'k.pto'"),
        ("run -e 'tadd f32 4x64' --all-entries", 2, "a fragment does not declare a target"),
        (f"run {PROGRAMS}/quantise_block.onnx", 2, "--target T"),
        (f"run {PROGRAMS}/quantise_block.onnx --target a5 --timing-only", 2, "--timing-only applies to programs"),
        (f"graph {PROGRAMS}/quantise_block.onnx --target a6", 2, "a6"),
        (f"graph {PROGRAMS}/quantise_block.onnx --target a5 --tosa-version 1.0", 2, "already declares its opset"),
        (f"graph {PROGRAMS}/casts_and_rescales.mlir --target a5", 2, "no input given for arg0, arg1"),
        ("graph nothing.onnx --target a5", 2, "No such file"),
        (f"graph {PROGRAMS}/quantise_block.onnx --target a5 --in x=zeros --arg rows=0x", 2, "not a number"),
        ("lower f32 f16", 2, "--target"),
        ("lower f32 f16 --target a9", 2, "unknown target 'a9'"),
        ("lower f32 f99 --target a5", 2, "unknown format 'f99'"),
        ("lower f32 f16 --target a5 --spec nope", 2, "nope"),
        ("lower f32 f16 --target a5 --spec onnx@99", 2, "no version '99'"),
        ("lower f32 u16 --target a5 --spec tosa", 1, "no cast f32 -> u16"),
        ("lower f32 i8 --target a5 --spec tosa --rounding trunc", 1, "unsatisfiable"),
        ("lower f32 i8 --target a5 --rounding nearest", 2, "unknown rounding mode"),
        ("lower f32 i8 --target a5 --via bf16 q3", 2, "unknown format 'q3'"),
        ("lower f32 i8 --target a5 --via i64", 1, "no chain f32 -> i64"),
        ("lower f32 i8 --target a5 --steps 7", 2,
         "--steps 7: chains have up to 4 instructions; "
         "each further step multiplies the search by the number of casts of the target\n  legal: 1, 2, 3, 4"),
        ("lower f32 i8 --target a5 --rows 0", 2, "--rows 0"),
        ("lower f32 i8 --target a5 --cols -3", 2, "--cols -3: must be"),
        ("lower f16 i8 --target a5 --rows 100000", 1, "bytes at 0; the buffer has 253952"),
        ("lower f16 i8 --target a5 --out /nowhere/x.pto", 2, "cannot write program"),
        ("verify --lowering f16", 2, "SRC and DST"),
        ("verify --lowering f16 i8 --rounding rint", 2, "--rounding"),
        ("verify --lowering f16 i8 --spec nope", 2, "nope"),
        ("verify --lowering f16 i8 --target a9", 2, "unknown target"),
        ("verify --lowering f16 i8 --samples 0", 2, "--samples 0"),
        ("disasm kernel.tpc --target goya", 2, "castsim disasm takes a TPC binary; 'kernel.tpc'"),
        ("disasm kernel.pto --target goya", 2, "castsim disasm takes a TPC binary; 'kernel.pto'"),
        ("disasm model.mlir --target goya", 2, "castsim disasm takes a TPC binary; 'model.mlir'"),
        ("debug", 2, "castsim debug needs a program"),
        ("debug -", 2, "standard input carries the commands"),
        ("debug k.onnx", 2, "debug steps through programs"),
        (f"debug {PROGRAMS}/f32_to_f16.pto --port 1", 2, "--port requires --dap"),
        (f"debug {PROGRAMS}/f32_to_f16.pto", 2, "no input was given"),
        (f"debug {PROGRAMS}/f32_to_f16.pto --in src=zeros --engine slow", 2, "engine 'slow' is not available"),
        (f"debug {PROGRAMS}/f32_to_f16.pto --in z=zeros", 2, "no tensor argument 'z'"),
        ("debug --dap --port 70000", 2, "not a port number"),
        ("debug nowhere.pto", 2, "nowhere.pto"),
        # The same wrong value twice, or two of them.
        ("compiled f32 u16 1 --target gaudi --form zz --order zz", 2, "--form: unknown form 'zz'"),
        ("cast f32 zz 1 --rounding zz", 2, "error: unknown format 'zz'"),
        ("cast f32 f16 1 --rounding zz --target zz", 2, "error: --target: unknown target 'zz'"),
        ("cast zz zz 1", 2, "error: unknown format 'zz'"),
    ],
)  # fmt: skip
def test_command_lines(
    argv: str, code: int, message: str, tmp_path: Path, capsys: Capture, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    found, err = refusal(capsys, *shlex.split(argv))
    assert (found, message in err) == (code, True), err
    assert list(tmp_path.iterdir()) == []


# ------------------------------------------------------------------------------------------------------ programs


def moved(address: int, name: str = "a_slim") -> str:
    return changed("%a_slim = arith.constant 1024", f"%{name} = arith.constant {address}")


TMP = "!pto.tile_buf<vec, 1x56xi32>"
WITH_TMP = before(
    "pto.tcvt",
    f"%tmp = pto.alloc_tile addr = %a_tmp : {TMP}",
    before("%vx =", "%a_tmp = arith.constant 4096 : i64", changed("f16", "i16")),
).replace(
    f"%wide {{rmode = #pto<round_mode RINT>}} : {WIDE}",
    f"%wide, %tmp {{sat_mode = #pto<saturation_mode OFF>}} : {WIDE}, {TMP}",
)
"""f32 -> i16 through a tmp tile of 56 int32. Every row is one whole repeat of 64 lanes: 256 bytes are needed."""

STUCK = before("pto.tcvt", "pto.wait_flag[<PIPE_MTE3>, <PIPE_V>, <EVENT_ID3>]")


@pytest.mark.parametrize(
    ("text", "code", "place", "message"),
    [
        (changed("pto.tcvt ins(", "pto.tcvt in("), 2, f":{TCVT}:", "found 'in'"),
        (changed("    return", "    return &"), 2, ":18:", "&"),
        (changed("%wide {rmode", "%wyde {rmode"), 2, f":{TCVT}:", "%wyde"),
        (before("%rows =", "%c1 = arith.constant 2 : index"), 2, ":5:", "%c1"),
        (changed("round_mode RINT", "round_mode UP"), 2, f":{TCVT}:", "RINT"),
        (changed("f16", "f17"), 2, ":2:", "f17"),
        (changed("f16", "i8"), 1, f":{TCVT}:", "a2a3 has no cast f32 -> i8; from f32 it has: f16, f32"),
        (changed("pto.tcvt ins(%wide {rmode = #pto<round_mode RINT>}", "pto.tbas ins(%wide"), 1, f":{TCVT}:",
         "unknown operation pto.tbas"),
        (before("pto.tcvt", "pto.barrier <PIPE_MTE5>"), 1, f":{TCVT}:", "a2a3 has no pipe MTE5"),
        (moved(1030), 1, ":14:", "tile %slim starts at byte 1030, which is not 32-byte aligned"),
        (moved(196608 - 256), 1, ":14:", "the buffer has 196608: 256 bytes past the end"),
        (moved(512), 1, f":{TCVT}:", "partly overlaps its source %wide"),
        (changed(SLIM, "!pto.tile_buf<vec, 4x128xf16, valid=4x64>"), 1, f":{TCVT}:", "src has 4x64, dst has 4x128"),
        (changed(SLIM, "!pto.tile_buf<vec, 4x64xf16, valid=3x64>"), 1, f":{TCVT}:",
         "the same valid region: src has 4x64, dst has 3x64"),
        (changed("sizes = [%rows, %cols]", "sizes = [%c1, %cols]"), 1, ":11:",
         "dimension 0 is 4 in the type but 1 in sizes"),
        (WITH_TMP, 1, ":18:", "32 bytes too few"),
        (STUCK, 1, f":{TCVT}:", "deadlock: V waits for flag MTE3 -> V id 3"),
        (changed('"a3"', '"a9"'), 2, ":1:", "the program is for 'a9', which castsim does not simulate"),
    ],
)  # fmt: skip
def test_programs(text: str, code: int, place: str, message: str, tmp_path: Path, capsys: Capture) -> None:
    path = written(tmp_path, text)
    found, err = refusal(capsys, "run", path, "--in", "x=zeros")
    assert found == code, err
    assert message in err
    if place:
        assert err.startswith(f"error: {path}{place}")
        number = int(place.strip(":"))
        quoted, caret = err.splitlines()[1:3]
        assert quoted == "  " + text.splitlines()[number - 1]
        assert caret.strip(" \t") == "^" * len(caret.strip(" \t"))


@pytest.mark.parametrize(
    ("extra", "code", "message"),
    [
        ("", 2, "the program loads %x before storing to it; no input was given\n  help: --in x=FILE.npy"),
        ("--in x=zeros --in z=zeros", 2, "the program has no tensor argument 'z'\n  legal: x, y"),
        ("--in x=random:one", 2, "'random:one' has no seed"),
        ("--in x=zeros --arg n=1", 2, "@narrow has no scalar argument 'n'"),
        ("--in x=zeros --entry wide", 2, "no function @wide\n  legal: @narrow"),
        ("--in x=zeros --target a4", 2, "unknown target 'a4'"),
        ("--in x=zeros --option vector_tail=1", 2,
         "a2a3 has no option 'vector_tail'; did you mean 'vector_head'?\n  legal: vector_head, "),
        ("--in x=zeros --option vector_head=never", 2, "vector_head cannot be 'never'\n  legal: idle, always"),
        ("--in x=zeros --max-cycles 100", 1, "cycle limit of 100 reached"),
        ("--in x=zeros --max-cycles 100 --engine event", 1, "cycle limit of 100 reached"),
        ("--timing-only --in z=zeros", 2, "no tensor argument 'z'"),
        ("--in x=zeros --out=", 2, "--out needs a folder name"),
        ("--in x=zeros --out y=y.npy", 2, "needs a folder"),
    ],
)  # fmt: skip
def test_options_of_a_program(extra: str, code: int, message: str, tmp_path: Path, capsys: Capture) -> None:
    found, err = refusal(capsys, "run", written(tmp_path), *extra.split())
    assert (found, message in err) == (code, True), err
    assert err.count(".pto:") <= 1, "a place is named once"


def test_a_scalar_argument_needs_a_value(tmp_path: Path, capsys: Capture) -> None:
    text = changed("%y: !pto.ptr<f16>)", "%y: !pto.ptr<f16>, %n: index)")
    code, err = refusal(capsys, "run", written(tmp_path, text), "--in", "x=zeros")
    assert (code, "scalar argument %n of @narrow needs a value" in err, "--arg n=VALUE" in err) == (2, True, True)


# -------------------------------------------------------------------------------------------------------- arrays


ARRAYS: list[tuple[Callable[[Path], object], str]] = [
    (lambda path: path.write_text("1 2 3"), "is not a .npy file"),
    (lambda path: np.save(path, np.zeros((4, 32), np.float32)), "has shape [4, 32], 128 elements; its views (4x64)"),
    (lambda path: np.save(path, np.zeros((4, 64), np.float64)), "cannot have dtype float64\n  legal: float32, uint32"),
]


@pytest.mark.parametrize(("make", "message"), ARRAYS)
def test_arrays(make: Callable[[Path], object], message: str, tmp_path: Path, capsys: Capture) -> None:
    make(tmp_path / "x.npy")
    code, err = refusal(capsys, "run", written(tmp_path), "--in", f"x={tmp_path / 'x.npy'}")
    assert (code, "input 'x'" in err) == (2, True)
    assert message in err


def test_a_folder_that_cannot_be_made(tmp_path: Path, capsys: Capture) -> None:
    (tmp_path / "file").touch()
    out = str(tmp_path / "file" / "results")
    code, err = refusal(capsys, "run", written(tmp_path), "--in", "x=zeros", "--out", out)
    assert (code, err) == (2, f"error: --out {out}: Not a directory\n  help: --out DIR\n")


def test_an_output_that_cannot_be_replaced(tmp_path: Path, capsys: Capture) -> None:
    (tmp_path / "y.npy" / "in_the_way").mkdir(parents=True)
    code, err = refusal(capsys, "run", written(tmp_path), "--in", "x=zeros", "--out", str(tmp_path))
    assert (code, f"cannot write '{tmp_path / 'y.npy'}'" in err) == (2, True)


# ---------------------------------------------------------------------------------------------------------- JSON


def test_failures_are_also_written_as_json(tmp_path: Path, capsys: Capture) -> None:
    path = written(tmp_path, changed("f16", "i8"))
    assert main(["run", path, "--in", "x=zeros", "--json", "-"]) == 1
    out, err = capsys.readouterr()
    document = json.loads(out)
    assert list(document) == ["schema_version", "errors"]
    (entry,) = document["errors"]
    assert list(entry) == ["kind", "message", "file", "line", "column", "legal"]
    assert (entry["kind"], entry["file"], entry["line"]) == ("not legal on this target", path, TCVT)
    assert entry["column"] == NARROW.splitlines()[TCVT - 1].index("pto.tcvt") + 1
    assert "f32 -> f16" in entry["legal"]
    assert entry["message"] in err


@pytest.mark.parametrize("argv", [["rum"], ["run"], ["--bogus"], ["cast", "f32", "f17", "1"]])
def test_usage_errors_are_also_written_as_json(argv: list[str], tmp_path: Path, capsys: Capture) -> None:
    file = tmp_path / "report.json"
    assert main([*argv, "--json", str(file)]) == 2
    (entry,) = json.loads(file.read_text())["errors"]
    assert (entry["kind"], entry["file"], entry["line"]) == ("cannot be read", None, None)
    assert capsys.readouterr().out == ""


def test_a_deadlock_is_an_error_of_the_engine(tmp_path: Path, capsys: Capture) -> None:
    assert main(["run", written(tmp_path, STUCK), "--timing-only", "--json", "-"]) == 1
    (entry,) = json.loads(capsys.readouterr().out)["errors"]
    assert (entry["kind"], entry["line"], entry["legal"]) == ("engine cannot go on", TLOAD + 1, [])


# ------------------------------------------------------------------------------------------ interruption, own faults


def test_interruption(tmp_path: Path, capsys: Capture, monkeypatch: pytest.MonkeyPatch) -> None:
    def interrupted(*_: object, **__: object) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr("castsim.running.program_runs.run_loaded", interrupted)
    assert err_of(capsys, ["run", written(tmp_path), "--timing-only"], 130) == "interrupted\n"


@pytest.mark.parametrize("debug", [False, True])
def test_an_internal_error(*, debug: bool, tmp_path: Path, capsys: Capture, monkeypatch: pytest.MonkeyPatch) -> None:
    def broken(*_: object, **__: object) -> None:
        raise ZeroDivisionError("oh")

    monkeypatch.setattr("castsim.running.program_runs.run_loaded", broken)
    monkeypatch.setenv("CASTSIM_DEBUG", "1" if debug else "")
    assert main(["run", written(tmp_path), "--timing-only", "--json", "-"]) == 1
    out, err = capsys.readouterr()
    assert err.endswith(
        "error: internal error: ZeroDivisionError: oh; please report it (CASTSIM_DEBUG=1 shows where)\n"
    )
    assert ("Traceback" in err) is debug
    assert json.loads(out)["errors"][0]["kind"] == "internal error"


# ------------------------------------------------------------------------------------------------ options of a run

ASSEMBLY = "// castsim: target goya\nnop; halt; halt; nop\n"


@pytest.mark.parametrize(
    ("words", "message"),
    [
        ("--stale-reads stop", "--stale-reads applies only to assembly"),
        ("--max-cycles \u0663", "must be a positive integer"),
        ("--trace -", "--trace needs a file"),
        ("--kanata K", "--kanata is gone: use `--trace FILE`"),
        ("--kanata=K --timeline", "--kanata is gone: use `--trace FILE`"),
        ("--trace T --html T", "--trace and --html name the same file"),
        ("--json T --trace ./T", "--json and --trace name the same file"),
        ("--trace P.pto", "PROGRAM and --trace name the same file"),
        ("--json ./P.pto", "--json would overwrite './P.pto'"),
        ("--timeline --window -5:5", "--window -5:5: expected A:B"),
        ("--timeline --window 5", "expected A:B"),
        ("--timeline --window 9:9", "nothing happens between"),
        ("--timeline --window 0:99999", "the run ends at cycle"),
        ("--timeline --window 9999:", "the run ends at cycle"),
        ("--window 0:9", "nothing to show"),
        ("--trace /nowhere/at/all.json", "cannot be written"),
        ("--trace /", "cannot be written"),
        ("--trace ''", "--trace '': an empty string is not a file name"),
        ("--arg eps=1_0", "--arg eps=1_0: not a number"),
        ("--arg eps=\u0663.5", "not a number"),
    ],
)
def test_options_of_a_run(
    words: str, message: str, tmp_path: Path, capsys: Capture, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    program = written(tmp_path, name="P.pto")
    code, err = refusal(capsys, "run", program, "--timing-only", *shlex.split(words))
    assert (code, message in err) == (2, True), err
    assert Path(program).read_text() == NARROW
    assert [path.name for path in tmp_path.iterdir() if path.suffix != ".pto"] in ([], ["T"])


@pytest.mark.parametrize("words", ["--sync interlock", "--show-sync", "--races report", "--unsafe-scratch"])
def test_options_that_mean_nothing_for_assembly(words: str, tmp_path: Path, capsys: Capture) -> None:
    path = file_of(tmp_path / "k.tpc", ASSEMBLY)
    code, err = refusal(capsys, "run", str(path), *words.split())
    assert (code, "applies only to tile programs" in err) == (2, True), err


def test_a_number_beyond_the_type_of_its_argument(tmp_path: Path, capsys: Capture) -> None:
    path = written(tmp_path, changed("(%x:", "(%eps: f32, %x:"))
    code, err = refusal(capsys, "run", path, "--timing-only", "--arg", f"eps={10**400}")
    assert (code, "%eps is f32; a number of 401 digits is out of range" in err) == (2, True), err
