"""Options and arguments that cannot be what they are given: errors name them, the value, and what would be legal."""

from __future__ import annotations

import json
import re
from argparse import Action
from collections.abc import Mapping
from pathlib import Path

import numpy as np
import pytest
from kit.command_output import err_of, file_of
from kit.paths import PROGRAMS

import castsim
from castsim.__main__ import main
from castsim.commands.command_line import parser_of
from castsim.commands.feature import COMMANDS
from castsim.isa.errors import CastsimError, ReadError

Capture = pytest.CaptureFixture[str]
TILES, ASSEMBLY = str(PROGRAMS / "f32_to_f16.pto"), str(PROGRAMS / "tpc_f32_f8_143_gaudi2.tpc")
TUNED = str(PROGRAMS / "tuning" / "f32_to_bf16_tiles.pto")
TIMED = [TILES, "--timing-only"]
GRAPH = ["casts.mlir", "--target", "a5", "--in", "arg0=zeros"]
CASTS = """func.func @main(%arg0: tensor<4x64xi8>) -> tensor<4x64xi16> {
  %0 = tosa.cast %arg0 : (tensor<4x64xi8>) -> tensor<4x64xi16>
  return %0 : tensor<4x64xi16>
}
"""

USUAL = {
    "run": TIMED,
    "diff": [TILES, TILES, "--timing-only"],
    "view": [TILES, "--no-open"],
    "debug": [TILES, "--in", "src=zeros"],
    "advise": [TILES],
    "calibrate": ["--target", "a2a3", "--data", str(PROGRAMS / "measure" / "rows.csv"), "--out", "mine.toml"],
    "record": [str(PROGRAMS / "pto_cpp" / "f32_to_i32_barriers.cpp")],
    "expand": [str(PROGRAMS / "a5_f32_to_e4m3fn_padded.pto")],
    "targets": [],
    "cast": ["f32", "f16", "1"],
    "compare": ["f32", "f16", "mine.py:to_f16"],
    "quantise": ["f32", "mxfp8_e4m3", "1"],
    "estimate": ["f32", "i16", "4x64", "--target", "a2a3"],
    "formats": [],
    "verify": ["e2m1", "i8", "--against", "reference"],
    "scratch": ["f32", "i16", "--rows", "4", "--cols", "64", "--row-stride", "64"],
    "lower": ["f32", "f16", "--target", "a5"],
    "conform": ["--spec", "tosa", "--target", "a5", "--src", "f16", "--dst", "f32"],
    "graph": GRAPH,
    "tosa": ["reciprocal_scale", "3"],
    "accuracy": ["--target", "a2a3"],
    "check": [TILES],
    "tune": [TUNED],
    "sweep": [str(PROGRAMS / "sweeps" / "f32_to_bf16_shapes.toml"), "--out", "shapes.parquet"],
    "lint": [ASSEMBLY],
    "latency": ["mac.f32 V6, V1, V2", "add.f32 V7, V6, V3", "--target", "gaudi2"],
    "asm": [ASSEMBLY],
    "disasm": ["k.bin", "--target", "gaudi2"],
    "schedule": [str(PROGRAMS / "sequential" / "f32_i16_quantise_gaudi2.tpc")],
    "builtin": ["f32_to_u8_lin_order", "--target", "greco"],
    "compiled": ["f32", "u16", "1", "--target", "gaudi"],
    "unswizzle": [str(PROGRAMS / "tpc_bf16_scale_linear_gaudi.tpc")],
    "lsp": [],
    "completion": ["bash"],
    "manual": [],
    "schema": [],
}
"""Words with which a command succeeds, or gets far enough to read any option."""

SPECIAL = {
    "run --backend": ["-e", "tcvt f32 -> e4m3fn 16x512 sat", "--target", "a5"],
    "run --execute": ["--target", "a5"],
    "run --window": [*TIMED, "--timeline"],
    "run --declare": ["k.bin", "--target", "gaudi2"],
    "debug --declare": ["k.bin", "--target", "gaudi2"],
    "debug --port": ["--dap"],
    "advise --out": [str(PROGRAMS / "a5_f32_to_e4m3fn_padded.pto"), "--apply", "1"],
    "run --out": [TILES, "--in", "src=zeros"],
    "run --in": [TILES],
    "quantise --in": ["f32", "mxfp8_e4m3"],
    "cast --saturation": ["f32", "f16", "1", "--target", "a5"],
    "lower --ledger": ["--spec", "tosa", "--target", "a5"],
    "lower --scheduler": ["--spec", "tosa", "--target", "a5"],
    "lower --workers": ["--spec", "tosa", "--target", "a5"],
    "verify --spec": ["f16", "i8", "--lowering"],
    "verify --target": ["f16", "i8", "--lowering"],
    **{f"scratch {option}": [TILES] for option in ("--entry", "--arg", "--max-walk", "--max-statements")},
    "compare --option": ["f32", "f16", "mine.py:to_f16", "--target", "a5"],
    "compare --saturation": ["f32", "f16", "mine.py:to_f16", "--target", "a5"],
    "accuracy --record": [],
    "graph --in": GRAPH[:3],
    "tosa --table": ["TABLE", "3"],
    "tosa --target": ["TABLE", "3", "--table", "entries.npy"],
    "builtin --out": ["f32_to_u8_lin_order", "--target", "greco", "--in", "x=zeros"],
    "builtin --arg": ["i32_to_i16_lin_order", "--target", "gaudi2", "--in", "x=random:1"],
}
"""Words that give an option a meaning where the usual ones do not."""

IN_A_FILE = "taken/x"
"""A path that cannot be: `taken` is a file."""

ALONE = {
    "record --define": "1zz",
    "lsp --define": "1zz",
    "run --execute": "zzq",
    "quantise --axis": "zzq",
    "check --arg": "zzq",
}
"""Options that take nearly everything, with what is wrong all the same."""


def wrong(action: Action) -> list[str]:
    """Return values that an option cannot take, as its form in the help tells what it takes."""
    form = str(action.metavar)
    if action.option_strings[-1] == "--in":
        return ["zzq", "zz=zeros"]
    if "=" in form:
        return ["zzq", "zz=zzq"]
    return [IN_A_FILE] if form.startswith(("FILE", "DIR")) else ["zzq", "-1"]


def cases() -> list[tuple[str, str, str, int]]:
    """Return command, option, wrong value and how many values the option takes."""
    found = []
    for name in COMMANDS:
        for action in parser_of(name)._actions:
            if not action.option_strings or action.nargs == 0:
                continue
            option = action.option_strings[-1]
            only = ALONE.get(f"{name} {option}")
            number = action.nargs if isinstance(action.nargs, int) else 1
            found += [(name, option, bad, number) for bad in ([only] if only else wrong(action))]
            found.append((name, option, "", number))
    return found


CASES = [case for case in cases() if case[:3] != ("lsp", "--json", IN_A_FILE)]  # a server writes no document


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Return the current folder: a binary, and a file where folders are looked for."""
    monkeypatch.chdir(tmp_path)
    assert main(["asm", ASSEMBLY, "--out", "k.bin", "--quiet"]) == 0
    (tmp_path / "taken").write_text("")
    (tmp_path / "casts.mlir").write_text(CASTS)
    np.save(tmp_path / "entries.npy", np.arange(256).astype(np.int8))
    (tmp_path / "mine.py").write_text("def to_f16(x):\n    return x.astype('float16')\n")
    return tmp_path


@pytest.mark.parametrize(("name", "option", "value", "number"), CASES)
def test_a_wrong_value_is_told_with_its_option_and_what_is_legal(
    name: str, option: str, value: str, number: int, folder: Path, capsys: Capture
) -> None:
    words = SPECIAL.get(f"{name} {option}", USUAL[name])
    typed = [f"{option}={value}"] if number == 1 else [option, *[value] * number]
    code = main([name, *words, *typed])
    told = capsys.readouterr().err
    assert code in {1, 2}, told
    if option == "--execute" and value:  # the fragment is shown itself, with a caret
        assert told.startswith("error: <fragment>:1:1:")
        assert f"\n  {value}\n  ^" in told
    else:
        assert re.search(rf"{option}(?![\w-])", told), told
    assert value in told
    assert "\n  legal: " in told or "\n  help: " in told, told
    assert "internal error" not in told


def test_the_walk_meets_every_command_and_every_kind_of_value() -> None:
    assert {name for name, *_ in CASES} == set(COMMANDS) == set(USUAL)
    assert {value for _, _, value, _ in CASES} >= {"", "zzq", "-1", IN_A_FILE, "zz=zzq"}
    assert [key for key in (*SPECIAL, *ALONE) if not any(f"{n} {o}" == key for n, o, *_ in CASES)] == []


@pytest.mark.parametrize(
    ("words", "option", "near"),
    [
        ("run P.pto --timing-only --engine fsat", "--engine", "fast"),
        ("run P.pto --timing-only --sync insrt", "--sync", "insert"),
        ("run P.pto --timing-only --entry f32_to_f61", "--entry", "@f32_to_f16"),
        ("run P.pto --timing-only --option vector_hed=always", "--option", "vector_head"),
        ("run P.pto --timing-only --what-if all,instant-load", "--what-if", "instant-loads"),
        ("cast f32 f16 1 --target a2a4", "--target", "a2a3"),
        ("cast f32 f16 1 --rounding TRUNK", "--rounding", "trunc"),
        ("cast f32 e4m3nf 1", "", "e4m3fn"),
        ("lower f32 i8 --target a5 --spec tsoa", "--spec", "tosa"),
        ("lower f32 i8 --target a5 --via f17", "--via", "f16"),
        ("verify f16 i8 --tier compild", "--tier", "compiled"),
        ("accuracy --data mime.csv", "--data", "mine.csv"),
        ("run Q.pto", "", "P.pto"),
        ("run P.pto --in src=sorce.npy", "--in", "source.npy"),
        ("check P.pto --format jsn", "--format", "json"),
    ],
)
def test_what_was_probably_meant(words: str, option: str, near: str, folder: Path, capsys: Capture) -> None:
    (folder / "P.pto").write_text(Path(TILES).read_text())
    for name in ("mine.csv", "source.npy"):
        (folder / name).write_text("")
    assert main([*words.split(), "--json", "-"]) in {1, 2}
    (error,) = json.loads(capsys.readouterr().out)["errors"]
    assert error["message"].startswith(option)
    assert error["message"].endswith(f"; did you mean '{near}'?")


def test_what_stands_in_a_file_is_told_by_its_place_alone(tmp_path: Path, capsys: Capture) -> None:
    path = file_of(tmp_path / "my.toml", 'base = "a5"\nname = "my"\nzzq = 1\n')
    assert err_of(capsys, ["targets", str(path)]).startswith(f"error: {path}:3:1: ")


PROGRAM = "programs/f32_to_f16.pto"
ROWS: list[tuple[str, Mapping[str, object], str]] = [
    ("run", {"program": 3}, "program"),
    ("run", {"program": None}, "program"),
    ("run", {"program": PROGRAM, "inputs": np.ones(3)}, "inputs"),
    ("run", {"program": PROGRAM, "inputs": [("src", "zeros")]}, "inputs"),
    ("run", {"program": PROGRAM, "inputs": {1: "zeros"}}, "inputs"),
    ("run", {"program": PROGRAM, "args": 3}, "args"),
    ("run", {"program": PROGRAM, "target": 3}, "target"),
    ("run", {"program": PROGRAM, "max_cycles": "many"}, "max_cycles"),
    ("run", {"program": PROGRAM, "opaque": {1: 2}}, "opaque"),
    ("cast", {"array": [1.0], "src": "f32", "dst": "f16", "options": 3}, "options"),
    ("cast", {"array": [1.0], "src": "f32", "dst": "f16", "policy": 3}, "policy"),
    ("estimate", {"src": "f32", "dst": "f16", "rows": 16, "cols": 64, "target": 3}, "target"),
    ("estimate", {"src": "f32", "dst": "f16", "rows": 16, "cols": 64, "target": "a5", "rounding": 3}, "rounding"),
    ("lower", {"src": "f32", "dst": "f16", "target": "a5", "via": np.ones(2)}, "via"),
    ("check", {"path": 3}, "path"),
    ("check_text", {"name": 3, "text": "x"}, "name"),
    ("diff", {"a": 3}, "a"),
    ("compare", {"x": [1.0], "given": [1.0], "src": "f32", "dst": "f16", "target": 3}, "target"),
    ("conform", {"spec": 3}, "spec"),
    ("conform", {"spec": "tosa", "targets": 3}, "targets"),
    ("quantise", {"array": [1.0], "src": "f32", "dst": 3}, "dst"),
    ("dequantise", {"elements": [1], "scales": [1], "src": 3}, "src"),
    ("sweep", {"specification": 3, "out": "x"}, "specification"),
    ("tune", {"program": PROGRAM, "tile": 3}, "tile"),
    ("accuracy", {"data": 3}, "data"),
    ("advise", {"program": 3}, "program"),
    ("builtin", {"name": 3, "target": "gaudi2", "x": [1.0]}, "name"),
    ("load_target", {"name": 3}, "name"),
]


@pytest.mark.parametrize(("function", "arguments", "wrong"), ROWS)
def test_an_argument_of_another_type_is_refused(function: str, arguments: Mapping[str, object], wrong: str) -> None:
    with pytest.raises(ReadError) as refused:
        getattr(castsim, function)(**arguments)
    assert isinstance(refused.value, CastsimError)
    assert str(refused.value).startswith(f"{function}: {wrong} has type {type(arguments[wrong]).__name__}")
    assert refused.value.legal
