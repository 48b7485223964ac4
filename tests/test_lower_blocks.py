"""`castsim lower` to a block format: every way's program against exact arithmetic, costs, and why not."""

from __future__ import annotations

import json
from pathlib import Path

import ml_dtypes
import numpy as np
import pytest
from quantisation_oracle import element_codes, scale_values

import castsim
from castsim.__main__ import main
from castsim.isa.formats import format_named
from castsim.numerics.quantisation import BLOCK_FORMATS
from castsim.running.block_lowering import BlockWay, lower_blocks
from castsim.targets import load_target

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
    path = tmp_path / "k.pto"
    path.write_text(way.program)
    found = castsim.run(path, chip, inputs={"x": x})
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
        ("a5", "f32", "mxfp4_e2m1", "takes elements of 16 bits"),
        ("a5", "bf16", "nvfp4", "nvfp4 has 16 and e4m3fn"),
        ("a2a3", "f16", "mxfp8_e4m3", "no operation that shares exponents"),
        ("gaudi2", "f32", "mxfp8_e4m3", "castsim writes chains for tiles only"),
    ],
)
def test_why_not(chip: str, src: str, name: str, reason: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["lower", src, name, "--target", chip]) == 1
    told = " ".join(capsys.readouterr().out.split())
    assert "no way" in told
    assert reason in told


def test_the_command(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    out = tmp_path / "blocks.pto"
    assert main(["lower", "f32", "mxfp8", "--target", "a5", "--out", str(out), "--rows", "4", "--cols", "64"]) == 0
    assert "program written to" in capsys.readouterr().out
    assert main(["run", str(out), "--target", "a5", "--in", "x=random:1"]) == 0
    capsys.readouterr()
    assert main(["lower", "f32", "mxint8", "--target", "a5", "--json", "-"]) == 0
    found = json.loads(capsys.readouterr().out)
    assert (found["format"], found["ways"][0]["kind"]) == ("mxint8", "chain")
    assert "tquant" in found["ways"][0]["operations"]


@pytest.mark.parametrize(
    ("words", "told"),
    [
        (["f32", "mxfp8", "--cols", "40"], "whole blocks of 32"),
        (["f32", "mxfp8", "--spec", "tosa"], "is a block format"),
        (["i8", "mxfp8"], "is not quantised to blocks"),
        (["f32", "mxfp9"], "unknown format"),
    ],
)
def test_inputs(words: list[str], told: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["lower", *words, "--target", "a5"]) in (1, 2)
    assert told in " ".join(capsys.readouterr().err.split())


def test_sizes_that_do_not_fit_are_said(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["lower", "f32", "mxfp8", "--target", "a5", "--rows", "4096"]) == 1
    assert "buffer" in capsys.readouterr().out
