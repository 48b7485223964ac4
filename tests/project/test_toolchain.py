"""What the version of the assembler decides: saturation that a tcvt does not name, and tmp tiles that it does not have.

Expected values are NumPy's or the oracle's; sizes of tmp tiles are those of docs/reference/pto.md section 1.3.
"""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from kit.cast_kernels import FLOATS, INTEGERS, OFF, ON, chip, codes, given, integer_result, kernel, outputs
from kit.command_output import document_of, err_of, file_of, out_of

from castsim import run

VERSIONS = ("older", "2026-05", "2026-07", "2026-08")
OFF_BY_DEFAULT = ("2026-05", "2026-07")
MATTER_A5 = {("f32", "i32"), ("f32", "i64"), ("f16", "i32"), ("bf16", "i32"), ("i16", "ui8"), ("i32", "ui16"),
             ("i32", "ui8"), ("ui32", "ui16"), ("ui32", "i16"), ("ui32", "ui8")}  # fmt: skip
"""Pairs whose library default is ON and that obey OFF (docs/reference/a5.md section 4)."""
DEFAULT_OFF = (("f32", "i16"), ("f16", "i16"), ("f16", "i8"), ("f16", "ui8"), ("i32", "i16"), ("i64", "i32"))


# ------------------------------------------------------------------------------------------------------- saturation


@pytest.mark.parametrize("pair", sorted(MATTER_A5))
@pytest.mark.parametrize("version", VERSIONS)
@pytest.mark.parametrize("words", ["", ON, OFF])
def test_an_absent_saturation_on_a5(pair: tuple[str, str], version: str, words: str, tmp_path: Path) -> None:
    file = tmp_path / "k.pto"
    trunc = "" if pair[0] in INTEGERS else "rmode = #pto<round_mode TRUNC>"
    file.write_text(kernel(pair, ((4, 64), (4, 64)), ", ".join(filter(None, (trunc, words)))))
    x = given(pair[0], (4, 64))
    result, found = outputs(file, chip("a5", toolchain=version), {"x": x})
    wraps = words == OFF or (not words and version in OFF_BY_DEFAULT)
    assert np.array_equal(found["y"], integer_result(x, pair[1], wraps=wraps))
    choices = [choice for choice, _ in result.choices]
    assert [(choice.option, choice.value) for choice in choices] == ([] if words else [("toolchain", version)])


@pytest.mark.parametrize("pair", [*DEFAULT_OFF, ("f32", "f16"), ("f32", "f32"), ("i16", "i32")])
@pytest.mark.parametrize("version", [each for each in VERSIONS if each != "2026-08"])
def test_where_both_mean_the_same_nothing_changes_and_nothing_is_said(
    pair: tuple[str, str], version: str, tmp_path: Path
) -> None:
    file = tmp_path / "k.pto"
    file.write_text(kernel(pair, ((4, 64), (4, 64))))
    x = given(pair[0], (4, 64))
    result, found = outputs(file, chip("a5", toolchain=version), {"x": x})
    older, values = outputs(file, chip("a5"), {"x": x})
    assert np.array_equal(found["y"], values["y"])
    assert result.timing == older.timing
    assert result.warnings == older.warnings
    assert not result.choices


@pytest.mark.parametrize("version", ["older", "2026-05"])
@pytest.mark.parametrize("pair", [("f32", "i32"), ("f16", "i32"), ("f32", "i16"), ("f32", "f16")])
def test_a2a3_obeys_off_without_tmp_in_the_narrowing_pairs_alone(
    pair: tuple[str, str], version: str, tmp_path: Path
) -> None:
    file = file_of(tmp_path / "k.pto", kernel(pair, ((4, 64), (4, 64)), arch="a3"))
    x = given(pair[0], (4, 64))
    result, found = outputs(file, chip("a2a3", toolchain=version), {"x": x})
    _, values = outputs(file, chip("a2a3"), {"x": x})
    assert np.array_equal(found["y"], values["y"])
    assert not result.choices
    without_tmp = [each for each in result.warnings if "saturation" in each]  # f32 -> i16 has a path with tmp
    assert len(without_tmp) == (pair == ("f32", "i16"))
    assert all("f32 -> i16 with saturation OFF" in each for each in without_tmp)


@pytest.mark.parametrize(("version", "wraps"), [("older", False), ("2026-05", True)])
def test_with_tmp_a2a3_obeys_off_everywhere(version: str, wraps: bool, tmp_path: Path) -> None:
    text = kernel(("f32", "i32"), ((4, 64), (4, 64)), "rmode = #pto<round_mode TRUNC>", arch="a3")
    tmp = "!pto.tile_buf<vec, 1x1024xi8>"
    text = text.replace("pto.tcvt ins(%xt {", f"%t = pto.alloc_tile : {tmp}\npto.tcvt ins(%xt, %t {{")
    text = text.replace("} : !pto.tile_buf<vec, 4x64xf32>)", f"}} : !pto.tile_buf<vec, 4x64xf32>, {tmp})")
    file = file_of(tmp_path / "k.pto", text)
    x = np.where(np.arange(256) % 2, 3.7e9, -7.5).astype(np.float32).reshape(4, 64)
    result, found = outputs(file, chip("a2a3", toolchain=version), {"x": x})
    assert np.array_equal(found["y"], integer_result(x, "i32", wraps=wraps))
    ((choice, span),) = result.choices
    assert (choice.option, choice.value) == ("toolchain", version)
    assert "tcvt" in span.text


@pytest.mark.parametrize("pair", DEFAULT_OFF)
def test_the_assembler_of_august_saturates_by_default(pair: tuple[str, str], tmp_path: Path) -> None:
    """Where the library's own default is OFF, values change; the report says so."""
    file = tmp_path / "k.pto"
    trunc = "" if pair[0] in INTEGERS else "rmode = #pto<round_mode TRUNC>"
    file.write_text(kernel(pair, ((4, 64), (4, 64)), trunc))
    x = given(pair[0], (4, 64))
    result, found = outputs(file, chip("a5", toolchain="2026-08"), {"x": x})
    assert np.array_equal(found["y"], integer_result(x, pair[1], wraps=False))
    assert "which is ON" in result.choices[0][0].effect


@pytest.mark.parametrize(("version", "word"), [("2026-08", OFF), ("2026-07", OFF)])
def test_bf16_to_f16_is_left_without_saturation(version: str, word: str, tmp_path: Path) -> None:
    """As if the text said OFF, also where option `ctrl_60_at_start` makes the saturation of this pair count."""
    x = (np.exp2(np.arange(256, dtype=np.float32).reshape(4, 64) - 128)).astype(FLOATS["bf16"])
    found = []
    for toolchain, words in ((version, ""), ("older", word)):
        file = file_of(tmp_path / "k.pto", kernel(("bf16", "f16"), ((4, 64), (4, 64)), words))
        target = chip("a5", toolchain=toolchain, ctrl_60_at_start=1)
        found.append(outputs(file, target, {"x": x})[1]["y"])
    assert np.array_equal(*found)
    assert np.isinf(found[0].view(np.float16)).any()


# ---------------------------------------------------------------------------------------------------------- reports


def test_the_report_says_what_was_decided(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    file = tmp_path / "k.pto"
    text = kernel(("f32", "i32"), ((8, 64), (8, 64)))
    file.write_text(text)
    line = next(number for number, each in enumerate(text.splitlines(), 1) if "tcvt" in each)
    words = ["run", str(file), "--timing-only", "--toolchain", "2026-05"]
    assert "toolchain = 2026-05 (also older, 2026-07, 2026-08: --toolchain)" in out_of(
        capsys, [*words, "--report", "full"]
    )
    assert "results depend on --toolchain 2026-05" in out_of(capsys, words)
    (choice,) = document_of(capsys, *words)["choices"]
    assert choice == {
        "option": "toolchain",
        "value": "2026-05",
        "legal": list(VERSIONS),
        "effect": "f32 -> i32 does not set saturation, which is OFF: OFF since 2026-05, ON since 2026-08, the "
        "library's default before",
        "lines": [line],
    }


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["--toolchain", "2025"], "option toolchain cannot be '2025'"),
        (["--toolchain", "2026-05", "--option", "toolchain=older"], "contradict each other"),
        (["--backend", "vpto", "--target", "a2a3"], "a2a3 has no option 'backend'"),
    ],
)
def test_options_that_are_refused(
    words: list[str], message: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    file = tmp_path / "k.pto"
    file.write_text(kernel(("f32", "i32"), ((8, 64), (8, 64))))
    assert message in err_of(capsys, ["run", str(file), "--timing-only", *words])


def test_older_is_the_default(tmp_path: Path) -> None:
    file = file_of(tmp_path / "k.pto", kernel(("f32", "i32"), ((8, 64), (8, 64))))
    x = given("f32", (8, 64))
    plain, older = (run(file, inputs={"x": x}, **more).outputs["y"] for more in ({}, {"toolchain": "older"}))
    assert codes(plain).tolist() == codes(older).tolist()
