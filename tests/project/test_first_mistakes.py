"""Mistakes that a first program has: the message names the mistake, and what is legal is what the author may mean."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from kit.paths import PROGRAMS

from castsim.__main__ import main
from castsim.isa.errors import Severity
from castsim.tools.check.checking import check_text

TILES, ASSEMBLY = PROGRAMS / "f32_to_f16.pto", PROGRAMS / "tpc_f32_i16_quantise_greco.tpc"
PADDED = PROGRAMS / "a5_f32_to_e4m3fn_padded.pto"


@pytest.mark.parametrize(
    ("program", "right", "wrong", "code", "words", "legal"),
    [
        (TILES, "pto.tcvt", "pto.tcast", 1, "unknown operation pto.tcast", "pto.tcvt"),
        (TILES, "%dst: !pto.ptr<f16>", "%dst: !pto.ptr<f8>", 2, "unknown element type 'f8'", "hif8, f8E5M2"),
        (TILES, '"a3"', '"a6"', 2, ":2:38: error: the program is for 'a6', which castsim does not", "a2a3, a2, a3, a5"),
        (TILES, "pto.tload ins", "pto.tload {a = 1} ins", 2, "'{'; attributes {...} come after all", "ins, outs"),
        (ASSEMBLY, "target greco", "target grecco", 2, ":3:13: error: unknown target 'grecco'", "greco, a2a3, a5"),
        (ASSEMBLY, "target greco", "target a5", 1, ":3:13: error: a5 does not run .tpc programs", "gaudi, gaudi2"),
        (
            ASSEMBLY,
            "target greco",
            "target tosa",
            1,
            ":3:13: error: tosa is a specification",
            "a2a3, a5, gaudi, gaudi2",
        ),
        (ASSEMBLY, "st_tnsr 0x1", "st_tnsr 0x3", 1, "tensor 3 is not declared", "0 (x), 1 (y)"),
    ],
)
def test_check_names_the_mistake(
    program: Path,
    right: str,
    wrong: str,
    code: int,
    words: str,
    legal: str,
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
) -> None:
    text = program.read_text()
    assert right in text
    broken = tmp_path / program.name
    broken.write_text(text.replace(right, wrong))
    assert main(["check", str(broken)]) == code
    said = capsys.readouterr().out
    assert words in said
    assert f"legal: {legal}" in said or f", {legal}" in said


SCALES = """\
func.func @k(%x: !pto.ptr<f32>, %s: !pto.ptr<f32>, %y: !pto.ptr<f32>) attributes {pto.entry} {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %n = arith.constant ROWS : index
  %c64 = arith.constant 64 : index
  %vx = pto.make_tensor_view %x, shape = [%n, %c64], strides = [%c64, %c1] : !pto.tensor_view<?x?xf32>
  %vs = pto.make_tensor_view %s, shape = [%n, %c1], strides = [%c1, %c1] : !pto.tensor_view<?x?xf32>
  %px = pto.partition_view %vx, offsets = [%c0,%c0], sizes = [%n,%c64] : !pto.tensor_view<?x?xf32> -> PART<ROWSx64xf32>
  %ps = pto.partition_view %vs, offsets = [%c0,%c0], sizes = [%n,%c1] : !pto.tensor_view<?x?xf32> -> PART<ROWSx1xf32>
  %t = pto.alloc_tile : WIDE
  %u = pto.alloc_tile : COLUMN
  pto.tload ins(%px : PART<ROWSx64xf32>) outs(%t : WIDE)
  pto.tload ins(%ps : PART<ROWSx1xf32>) outs(%u : COLUMN)
  pto.trowexpandmul ins(%t, %u : WIDE, COLUMN) outs(%t : WIDE)
  return
}
""".replace("PART", "!pto.partition_tensor_view").replace("WIDE", "!pto.tile_buf<vec, ROWSx64xf32>")


@pytest.mark.parametrize("target", ["a2a3", "a5"])
@pytest.mark.parametrize("rows", [16, 5])
def test_a_column_of_scales_is_told_all_that_it_needs_at_once(rows: int, target: str) -> None:
    column = f"!pto.tile_buf<vec, {rows}x1xf32>"
    text = SCALES.replace("COLUMN", column).replace("ROWS", str(rows))
    (found,) = check_text("k.pto", text, target=target)
    needed = next(each for each in found.legal if "blayout=col_major" in each)
    kind, _, layout = needed.partition(" with ")
    cured = text.replace(column, kind)
    cured = cured.replace("strides = [%c1, %c1]", f"strides = [%c1, %c1] {layout.partition(' at ')[0]}")
    assert [one for one in check_text("k.pto", cured, target=target) if one.severity is Severity.ERROR] == []
    without_layout = text.replace(column, kind)
    (found,) = check_text("k.pto", without_layout, target=target)
    assert found.legal[0].startswith("{layout = #pto.layout<dn>} at the make_tensor_view")


@pytest.mark.parametrize(
    ("words", "code", "said"),
    [
        ("run empty.pto --timing-only", 2, "empty.pto: no function to run\n  legal: func.func @NAME"),
        ("run nofile.pto", 2, "No such file or directory\n"),  # folder.pto is a folder: nobody meant to run that
        ("run TILES --timing-only --html folder.pto", 2, "--html folder.pto: cannot be written: it is a folder"),
        ("run TILES --timing-only --html gone/x.html", 2, "cannot be written: no such folder: gone"),
        ("expand copy.pto --out copy.pto", 2, "--out copy.pto would overwrite its own input"),
        ("advise padded.pto --apply 1 -o padded.pto", 2, "--out padded.pto would overwrite its own input"),
        ("advise padded.pto --range src=5:1", 2, "LO is above HI\n  help: --range src=1:5"),
        (
            "lower f16 i8 --spec tosa --target a5 --out x.tpc",
            2,
            "programs for a5 are .pto files\n  help: --out FILE.pto",
        ),
        ("lower f16 i8 --spec tosa --target goya --out x.pto", 2, "are .tpc files\n  help: --out FILE.tpc"),
        ("lower f16 i8 --spec gone.toml --target a5", 2, "specification file 'gone.toml' does not exist"),
        ("conform --spec tosa --src f64", 1, "no cast f64 -> any\n  legal: bool, i8, "),
        ("diff - -", 2, "both sides are standard input, which can be read only once"),
        ("diff noise.json copy.pto", 2, "'noise.json' is not readable JSON"),
        ("view torn.json --no-open", 2, "torn.json:1:4: not JSON: "),
        ("view huge.json --no-open", 2, "'huge.json' is not readable JSON"),
        ("diff huge.json copy.pto", 2, "'huge.json' is not readable JSON"),
        ("targets noise.toml", 2, "noise.toml: is not UTF-8 text"),
        ("targets folder.toml", 2, "'folder.toml' is a folder"),
        ("check empty.toml", 2, "mechanism or base is missing\n  legal: mechanism = "),
        ("run x.npy --target a2a3", 2, "'x.npy' is an array, not a program\n  help: castsim run PROGRAM --in NAME="),
        (
            "graph copy.pto --target a5",
            2,
            "takes an ONNX model or TOSA text; 'copy.pto' is a program\n  help: castsim run",
        ),
        ("graph ASSEMBLY --target a5", 2, "takes an ONNX model or TOSA text; '"),
        ("run TILES --in src=nofile.npy", 2, "file 'nofile.npy' does not exist\n  legal: FILE.npy, random:SEED, zeros"),
        ("tune TILES", 2, "\n  help: // castsim: parameter R = 16 in 8..64"),
        ("view TILES --port 8000 --no-open", 2, "--port 8000: only traces are served"),
        ("disasm empty.bin --target gaudi2", 2, "'empty.bin' is empty\n"),
    ],
)
def test_a_mistake_on_the_command_line_is_named(
    words: str,
    code: int,
    said: str,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    monkeypatch.chdir(tmp_path)
    np.save("x.npy", np.zeros(4, np.float32))
    for name in ("empty.pto", "empty.toml", "empty.bin"):
        Path(name).touch()
    for name in ("folder.pto", "folder.toml"):
        Path(name).mkdir()
    for name in ("noise.json", "noise.toml"):
        Path(name).write_bytes(b"\xab\xff\xfe noise")
    Path("torn.json").write_text("[1,")
    Path("huge.json").write_text('{"seconds": 2e999}')
    Path("copy.pto").write_bytes(TILES.read_bytes())
    Path("padded.pto").write_bytes(PADDED.read_bytes())
    before = {each.name for each in tmp_path.iterdir()}
    assert main(words.replace("TILES", str(TILES)).replace("ASSEMBLY", str(ASSEMBLY)).split()) == code
    found = capsys.readouterr()
    assert said in found.err + found.out
    assert {each.name for each in tmp_path.iterdir()} == before
    assert Path("copy.pto").read_bytes() == TILES.read_bytes()
    assert Path("padded.pto").read_bytes() == PADDED.read_bytes()
