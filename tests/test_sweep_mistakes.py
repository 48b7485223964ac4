"""What is easily typed wrong for `castsim sweep` and its relatives: each is refused, or means what it says."""

from __future__ import annotations

import json
from pathlib import Path

import pyarrow.parquet as pq
import pytest
from test_sweeps import GRID, TILES

import castsim
from castsim.__main__ import main
from castsim.exploration.sweep_specification import read_specification
from castsim.isa.errors import ReadError

Capture = pytest.CaptureFixture[str]
PROGRAM = f'[sweep]\nkind = "program"\nmode = "simulate"\n[grid]\nprogram = "{TILES}"\ntarget = "a2a3"\nargs.C = 128\n'


def rows(specification: object, tmp_path: Path) -> list[dict[str, object]]:
    """Sweep, and return the rows."""
    path, out = tmp_path / "s.toml", tmp_path / "r.parquet"
    if isinstance(specification, str):
        path.write_text(specification)
    castsim.sweep(path if isinstance(specification, str) else specification, out, workers=1)  # type: ignore[arg-type]
    return pq.read_table(out).to_pylist()


@pytest.mark.parametrize(
    ("grid", "excluded", "key", "left"),
    [
        ('dst = ["f16", "bf16"]', 'dst = "float16"', "dst", ["bf16"]),
        ('dst = ["float16", "bf16"]', 'dst = "F16"', "dst", ["bf16"]),
        ('saturation = ["on", "off"]', 'saturation = "ON"', "saturation", ["off"]),
        ('rounding = ["default", "rint"]', 'rounding = "RINT"', "rounding", [None]),
        ("rows = [8, 16]", "rows = { from = 1, to = 9 }", "rows", [16]),
    ],
)
def test_what_is_excluded_may_be_spelt_otherwise(
    grid: str, excluded: str, key: str, left: list[object], tmp_path: Path
) -> None:
    lines = [line for line in GRID.splitlines() if not line.startswith(f"{key} =")]
    found = rows("\n".join([*lines, grid, "[[exclude]]", excluded]), tmp_path)
    assert [row[key] for row in found] == left


def test_options_are_excluded_as_words_and_as_numbers() -> None:
    grid = {"program": str(TILES), "option": {"a": [1, 2]}}
    for excluded in (1, "1"):
        found = read_specification({
            "sweep": {"kind": "program", "mode": "simulate"}, "grid": grid, "exclude": [{"option": {"a": excluded}}],
        })  # fmt: skip
        assert found.grid.kept(0, 2).tolist() == [1]


def test_roundings_that_differ_in_capitals_are_one_point(tmp_path: Path) -> None:
    assert len(rows(f'{GRID}rounding = ["rint", "RINT"]\n', tmp_path)) == 1


def test_a_number_in_quotes_is_the_number(tmp_path: Path) -> None:
    found = rows(f'{PROGRAM}args.R = ["16", 16, "0x10"]\n', tmp_path)
    assert [(row["args.R"], row["status"]) for row in found] == [(16, "ok")]


@pytest.mark.parametrize(
    ("value", "said"),
    [("args.R = 0.5", "parameter R takes integers"), ('args.Q = "five"', "'five' is not a number")],
)
def test_an_argument_that_a_program_cannot_take_fails_its_point(value: str, said: str, tmp_path: Path) -> None:
    """Not: it is left out, and the row has the cycles of the default."""
    (found,) = rows(f"{PROGRAM}{value}\n", tmp_path)
    assert found["status"] == "failed"
    assert found["cycles"] is None
    assert said in str(found["error"])


@pytest.mark.parametrize(
    ("text", "line", "said"),
    [
        ("", 1, "the table [sweep] is missing"),
        (f'{PROGRAM}"args.R" = 16\nargs.R = 17\n', 8, "grid.args.R is given twice"),
        (f'{PROGRAM}"args." = 16\n', 8, "no NAME behind the point"),
        (f"{PROGRAM}args.R = [9007199254740993, 0.5]\n", 8, "9007199254740993 beside fractions"),
        (f'{PROGRAM}args.R = 0.5\n[[exclude]]\nwhere = "args.R > 1"\n', 10, "args.R has fractions, such as 0.5"),
        (f'{PROGRAM}args.R = 1\n[[exclude]]\nargs.R = 1\n"args.R" = 1\n', 11, "exclude.args.R is given twice"),
        (
            f'{GRID}row_stride = "default"\n[[exclude]]\nwhere = "row_stride > 1"\n',
            12,
            "exclude.where: 'default' and 1",
        ),
        (f"{GRID}row_stride = 8.5\n", 10, "8.5 is not a value"),
        (f"{GRID}row_stride = true\n", 10, "true is not a value"),
        (f"{GRID}row_stride = {{ from = 1, to = 9, step = 2, times = 2 }}\n", 10, "both 'step' and 'times'"),
    ],
)
def test_a_wrong_specification(text: str, line: int, said: str, tmp_path: Path, capsys: Capture) -> None:
    path = tmp_path / "s.toml"
    path.write_text(text)
    assert main(["sweep", str(path), "--out", str(tmp_path / "r.parquet"), "--quiet"]) == 2
    told = capsys.readouterr().err
    assert told.startswith(f"error: {path}:{line}:"), told
    assert said in told


@pytest.mark.parametrize("value", [10**30, -(10**400), {"from": 1, "to": 1 << 63}, float("nan"), float("inf")])
def test_a_number_from_python_that_no_column_holds(value: object, tmp_path: Path) -> None:
    grid = {"program": str(TILES), "target": "a2a3", "args": {"R": value}}
    with pytest.raises(ReadError, match=r"grid\.args\.R: .*(64 bits|is not a value)"):
        castsim.sweep({"sweep": {"kind": "program", "mode": "simulate"}, "grid": grid}, tmp_path / "r.parquet")


def test_no_file_that_is_read_or_written_besides_is_replaced(
    tmp_path: Path, capsys: Capture, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "p.pto").write_bytes(TILES.read_bytes())
    (tmp_path / "p.toml").write_text(PROGRAM.replace(str(TILES), "p.pto"))
    (tmp_path / "s.toml").write_text(GRID)
    (tmp_path / "r.parquet.ledger").write_text("of another sweep")
    for words, said in (
        ("s.toml --out r.parquet --json r.parquet", "--out and --json name the same file"),
        ("s.toml --out r.parquet --json r.parquet.ledger", "the ledger beside --out and --json name the same file"),
        ("s.toml --out -", "--out takes a file"),
        ("s.toml --out .", "--out .: cannot be written"),
        ("s.toml --out nosuch/r.parquet", "--out nosuch/r.parquet: cannot be written"),
        ("s.toml --out s.toml", "which is the specification"),
        ("p.toml --out p.pto", "which is the program 'p.pto'"),
    ):
        before = {path.name: path.read_bytes() for path in tmp_path.iterdir()}
        assert main(["sweep", *words.split(), "--workers", "1"]) == 2, words
        assert said in capsys.readouterr().err
        assert {name: (tmp_path / name).read_bytes() for name in before} == before
    for path in tmp_path.glob("r.*"):
        path.unlink()
    assert main(["sweep", "s.toml", "--out", "r.parquet", "--workers", "1"]) == 0
    held = (tmp_path / "r.parquet").read_bytes()
    assert main(["sweep", "--report", "r.parquet", "--html", "r.parquet"]) == 2
    assert (tmp_path / "r.parquet").read_bytes() == held
    assert main(["sweep", "--report", "nosuch.parquet", "--html", "p.html"]) == 2
    assert "error: --report nosuch.parquet: No such file or directory" in capsys.readouterr().err
    with pytest.raises(ReadError, match="is a folder"):
        castsim.sweep("s.toml", tmp_path, workers=1)


@pytest.mark.parametrize("count", ["0", "-1", "1025", "99999999999"])
def test_so_many_processes_there_cannot_be(count: str, tmp_path: Path, capsys: Capture) -> None:
    (tmp_path / "s.toml").write_text(GRID)
    for words in (
        f"sweep {tmp_path}/s.toml --out {tmp_path}/r.parquet",
        "conform --spec tosa --target a5 --src f32 --dst f16",
        "verify f16 e4m3fn --samples 10",
        "accuracy --target a5",
        "lower --spec tosa --target a5",
    ):
        assert main([*words.split(), "--workers", count]) == 2, words
        assert f"--workers {count}: not " in capsys.readouterr().err


def test_a_record_is_resumed_for_what_it_is_about(tmp_path: Path, capsys: Capture) -> None:
    """Other casts, codes or specifications than those of the record are refused, not passed over."""
    path = tmp_path / "record.json"
    kept = ["--record", str(path), "--quiet"]
    verify = ["verify", "--lowering"]
    assert main([*verify, "f16", "i8", "--target", "a5", "--samples", "10", *kept]) == 0
    for words, other in (
        ("f16 i16 --target a5", "casts or targets"),
        ("f16 i8 --target a2a3", "casts or targets"),
        ("--samples 11", "samples"),
        ("--seed 1", "samples"),
        ("--spec onnx", "specifications or versions"),
        ("--spec tosa@1.0", "specifications or versions"),
    ):
        assert main([*verify, *words.split(), "--resume", *kept]) == 2, words
        assert f"about other {other}" in capsys.readouterr().err
    for words in ("f16 i8 --target a5", "--samples 10 --seed 0", "--spec tosa", ""):
        assert main([*verify, *words.split(), "--resume", *kept]) == 0, words
    assert json.loads(path.read_text())["complete"]
