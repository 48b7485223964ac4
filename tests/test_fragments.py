"""`castsim run -e`: fragments made whole, and run to the values that NumPy and ml_dtypes give."""

from __future__ import annotations

import json
from pathlib import Path

import ml_dtypes
import numpy as np
import pytest

from castsim.__main__ import main
from castsim.isa.errors import CastsimError
from castsim.isa.pto.pto_parser import parse
from castsim.running.fragments import OPERATIONS, whole
from castsim.targets import load_target

A2A3, A5 = load_target("a2a3"), load_target("a5")


def run(folder: Path, text: str, target: str, **inputs: np.ndarray) -> dict[str, np.ndarray]:
    """Return the outputs of a fragment by name."""
    given = []
    for name, array in inputs.items():
        np.save(folder / f"{name}_in.npy", array)
        given += ["--in", f"{name}={folder / f'{name}_in.npy'}"]
    assert main(["run", "-e", text, "--target", target, "--out", str(folder / "out"), "--quiet", *given]) == 0
    return {path.stem: np.load(path) for path in (folder / "out").glob("*.npy")}


@pytest.mark.parametrize("cols", [1, 31, 64, 100, 512])
def test_a_cast_gives_the_values_of_numpy(cols: int, tmp_path: Path) -> None:
    src = np.random.default_rng(1).normal(0, 100, (3, cols)).astype(np.float32)
    out = run(tmp_path, f"tcvt f32 -> f16 3x{cols}", "a2a3", src=src)
    assert out["dst"].tobytes() == src.astype(np.float16).tobytes()


def test_a_chain_takes_what_the_statement_before_gives(tmp_path: Path) -> None:
    src = np.random.default_rng(2).integers(-100, 100, (4, 64)).astype(np.float32)
    text = "tcvt f32 -> f16 4x64; tmuls f16 4x64 2; tcvt f16 -> f32 4x64"
    out = run(tmp_path, text, "a2a3", src=src)
    assert list(out) == ["dst"]
    assert np.array_equal(out["dst"], (src.astype(np.float16) * np.float16(2)).astype(np.float32))


def test_the_case_of_the_help(tmp_path: Path) -> None:
    src = np.random.default_rng(3).normal(0, 10, (16, 512)).astype(np.float32)
    out = run(tmp_path, "tcvt f32 -> e4m3fn 16x512 sat", "a5", src=src)
    assert out["dst"].tobytes() == src.astype(ml_dtypes.float8_e4m3fn).tobytes()


def test_two_inputs_and_two_outputs_are_numbered(tmp_path: Path) -> None:
    rng = np.random.default_rng(4)
    arrays = {f"src{n}": rng.normal(size=(2, 64)).astype(np.float32) for n in range(3)}
    out = run(tmp_path, "tadd f32 2x64\ntexpands".replace("\ntexpands", "; tcvt f32 -> i32 4x64 rint"), "a2a3",
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
    assert main(command) == 0
    document = json.loads(capsys.readouterr().out)
    assert document["total_cycles"] > 0 and [one["name"] for one in document["outputs"]] == ["dst"]


def test_bundles_of_assembly(capsys: pytest.CaptureFixture[str]) -> None:
    text = "mov.f32 V1, V2\nnop\nnop\nnop\nhalt"
    assert main(["run", "-e", text, "--target", "gaudi2", "--json", "-"]) == 0
    assert json.loads(capsys.readouterr().out)["target"] == "gaudi2"


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
        ("tadd f32 4x64 3", 2, (1, 15), "not written as tadd"),
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


@pytest.mark.parametrize(
    "words", [["-e", "tadd f32 4x64"], ["k.pto", "-e", "tadd f32 4x64"], ["-e", "tadd f32 4x64", "--all-entries"]]
)
def test_options_that_do_not_go_together(words: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["run", *words]) == 2
    assert "error: " in capsys.readouterr().err
