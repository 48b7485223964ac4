"""The tmp tiles that newer assemblers give operations: their sizes, what they change, and who refuses.

Sizes are those of docs/reference/pto.md section 1.3.
"""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest
from kit.cast_kernels import OFF, ON, chip, given, integer_result, kernel, outputs
from kit.execution_programs import kernel_file
from kit.pto_text import module, moved

from castsim import run
from castsim.__main__ import main
from castsim.execution.tree import Lowered, elements
from castsim.isa.errors import IllegalError, ReadError
from castsim.machines.strided.strided_instructions import StridedInstruction
from castsim.running.program_runs import Result


def conversions(result: Result) -> list[str]:
    """The conversion instructions that the tree issues, each once."""
    found: dict[str, None] = {}
    for each in elements(result.loaded.tree.root):
        if isinstance(each, StridedInstruction):
            found[each.mnemonic] = None
        elif isinstance(each, Lowered):
            found |= {one.mnemonic: None for one in elements(each.body) if isinstance(one, StridedInstruction)}
    return [name for name in found if name.startswith("vconv")]


@pytest.mark.parametrize("pair", [("f32", "i16"), ("f16", "i16"), ("f16", "i8")])
@pytest.mark.parametrize("words", ["", OFF])
@pytest.mark.parametrize(
    ("shape", "valid"), [((8, 64), None), ((8, 64), (5, 50)), ((3, 192), (3, 130)), ((1, 64), (0, 1))]
)
def test_an_implicit_tmp_is_as_good_as_one_in_the_text(pair, words, shape, valid, tmp_path) -> None:
    """The sequence through tmp runs, its values are the oracle's, and the tile is one that the sizing formula fills."""
    file = tmp_path / "k.pto"
    region = None if valid is None else (valid, valid)
    file.write_text(kernel(pair, (shape, shape), words, valid=region, arch="a3"))
    x = given(pair[0], valid or shape)
    result, found = outputs(file, chip("a2a3", toolchain="2026-07"), {"x": x})
    _, without = outputs(file, chip("a2a3"), {"x": x})
    assert found["y"].shape == without["y"].shape
    ((choice, _),) = result.choices
    assert choice.value == "2026-07"
    assert "has no tmp tile; castsim adds one of 1 x" in choice.effect
    size = int(choice.effect.split(" x ")[1].split()[0])
    assert size % 32 == 0 < size
    explicit = kernel(pair, (shape, shape), words or OFF, valid=region, arch="a3")
    tmp = f"!pto.tile_buf<vec, 1x{size}xi8>"
    explicit = explicit.replace("pto.tcvt ins(%xt {", f"%t = pto.alloc_tile : {tmp}\npto.tcvt ins(%xt, %t {{")
    head, source, tail = explicit.partition("} : ")
    kind, behind = tail.split(")", 1)
    file.write_text(f"{head}{source}{kind}, {tmp}){behind}")
    other, same = outputs(file, chip("a2a3"), {"x": x})
    assert np.array_equal(found["y"], same["y"])
    assert result.timing.total == other.timing.total
    assert conversions(result) == conversions(other)


def test_values_of_the_sequence_are_the_oracles(tmp_path: Path) -> None:
    file = kernel_file(
        tmp_path, kernel(("f32", "i16"), ((8, 64), (8, 64)), "rmode = #pto<round_mode TRUNC>", arch="a3")
    )
    x = given("f32", (8, 64))
    x = np.clip(x, -(2.0**31) + 256, 2.0**31 - 256).astype(np.float32)
    result, found = outputs(file, chip("a2a3", toolchain="2026-07"), {"x": x})
    assert np.array_equal(found["y"], integer_result(x, "i16", wraps=True))
    assert len(conversions(result)) > 1


def test_a_tmp_tile_takes_place(tmp_path: Path) -> None:
    """The cast of 8 x 64 f32 to i16 needs 1 x 256 bytes per chunk of a row; tiles behind it move up by so many."""
    file = kernel_file(tmp_path, kernel(("f32", "i16"), ((8, 64), (8, 64)), arch="a3"))
    before, after = (
        run(file, chip("a2a3", toolchain=version, tile_placement="consecutive"), timing_only=True)
        for version in ("older", "2026-07")
    )
    ends = [max(access.end for each in elements(one.loaded.tree.root) if isinstance(each, Lowered)
                for access in each.accesses if access.space == "ub") for one in (before, after)]  # fmt: skip
    assert ends[1] - ends[0] == 256  # a whole repeat of 64 numbers of 4 bytes
    assert after.cycles > before.cycles


@pytest.mark.parametrize("pair", [("f32", "i16"), ("f16", "i8")])
def test_at_level_3_a2a3_wants_tmp(pair: tuple[str, str], tmp_path: Path) -> None:
    file = tmp_path / "k.pto"
    file.write_text(kernel(pair, ((8, 64), (8, 64)), level3=True, arch="a3"))
    with pytest.raises(IllegalError, match="needs an explicit tmp tile") as caught:
        run(file, "a2a3", timing_only=True, toolchain="2026-07")
    assert caught.value.span is not None
    assert "pto.tcvt" in caught.value.span.text
    assert any("--toolchain" in each for each in caught.value.legal)
    for version in ("older", "2026-05"):
        run(file, "a2a3", timing_only=True, toolchain=version)
    file.write_text(kernel(pair, ((8, 64), (8, 64)), ON, level3=True, arch="a3"))
    run(file, "a2a3", timing_only=True, toolchain="2026-07")


def test_the_a5_needs_no_tmp(tmp_path: Path) -> None:
    file = tmp_path / "k.pto"
    x = given("f32", (8, 64))
    for level3 in (False, True):
        file.write_text(kernel(("f32", "i16"), ((8, 64), (8, 64)), level3=level3))
        newer, found = outputs(file, chip("a5", toolchain="2026-07"), {"x": x})
        older, values = outputs(file, chip("a5"), {"x": x})
        assert newer.timing == older.timing
        assert np.array_equal(found["y"], values["y"])


F = "!pto.tile_buf<vec, 8x64xf32>"
COLUMN = "!pto.tile_buf<vec, 8x1xf32, blayout=col_major>"
PLACES = "!pto.tile_buf<vec, 8x1xi32, blayout=col_major>"
HALF = "!pto.tile_buf<vec, 8x64xi16>"
ROW = "!pto.tile_buf<vec, 1x64xf32>"
WORDS = "!pto.tile_buf<vec, 1x64xi32>"
BITS = "!pto.tile_buf<vec, 8x32xi8, valid=8x8>"
BLOCKS = "!pto.tile_buf<vec, 16x16xf32>"
OPERATIONS = {
    "trowmax": (f"ins(%a : {F}) outs(%d : {COLUMN})", [F, COLUMN], "8 x 64 f32"),
    "trowmin": (f"ins(%a : {F}) outs(%d : {COLUMN})", [F, COLUMN], "8 x 64 f32"),
    "trowsum": (f"ins(%a : {F}) outs(%d : {COLUMN})", [F, COLUMN], "8 x 64 f32"),
    "trowprod": (f"ins(%a : {F}) outs(%d : {COLUMN})", [F, COLUMN], "8 x 64 f32"),
    "trowargmax": (f"ins(%a : {F}) outs(%d : {PLACES})", [F, PLACES], "8 x 64 f32"),
    "tcolsum": (f"ins(%a {{isBinary = true}} : {F}) outs(%d : {ROW})", [F, ROW], "8 x 64 f32"),
    "trowexpandmul": (f"ins(%a, %b : {F}, {COLUMN}) outs(%d : {F})", [F, COLUMN, F], "1 x 256 i8"),
    "txor": (f"ins(%a, %b : {HALF}, {HALF}) outs(%d : {HALF})", [HALF, HALF, HALF], "8 x 64 i16"),
    "txors": (f"ins(%a, %s : {HALF}, i16) outs(%d : {HALF})", [HALF, HALF], "8 x 64 i16"),
    "tpow": (f"ins(%a, %b : {F}, {F}) outs(%d : {F})", [F, F, F], "8 x 64 f32"),
    "tpows": (f"ins(%a, %f : {F}, f32) outs(%d : {F})", [F, F], "8 x 64 f32"),
    "trem": (f"ins(%a, %b : {F}, {F}) outs(%d : {F})", [F, F, F], "2 x 64 f32"),
    "trems": (f"ins(%a, %f : {F}, f32) outs(%d : {F})", [F, F], "1 x 64 f32"),
    "tprelu": (f"ins(%a, %b : {F}, {F}) outs(%d : {F})", [F, F, F], "9 x 32 u8"),
    "tci": (f"ins(%w : i32) outs(%d : {WORDS})", [WORDS], "1 x 192 i32"),
    "ttrans": (f"ins(%a : {BLOCKS}) outs(%d : {BLOCKS})", [BLOCKS, BLOCKS], "16 x 16 f32"),
    "tsel": (f"ins(%m, %a, %b : {BITS}, {F}, {F}) outs(%d : {F})", [F, F, F], "1 x 8 f32"),
    "tsels": (f"ins(%m, %a, %f : {BITS}, {F}, f32) outs(%d : {F})", [F, F], "1 x 8 f32"),
}
"""Operands, the tiles %a, %b and %d, and the tile that docs/reference/pto.md section 1.3 gives."""
REQUIRED = ("trowargmax", "trowmax", "trowmin", "trowsum", "trowprod", "tcolsum", "tsel", "tsels")


def program(mnemonic: str, arch: str, *, level3: bool = False) -> str:
    """Load %a, %b (and the mask), do it, store %d; a column is seen as rows of a block for that."""
    operands, kinds, _ = OPERATIONS[mnemonic]
    names = [*"ab"[: len(kinds) - 1], "d"]
    tiles = [*zip(names, kinds, strict=True), *([("m", BITS)] if "%m" in operands else [])]
    lines = ["%c8 = arith.constant 8 : index", "%s = arith.constant 5 : i16"]
    lines += ["%w = arith.constant 7 : i32", "%f = arith.constant 2.5 : f32"]
    arguments = []
    for place, (name, kind) in enumerate(tiles):
        shape, element = kind.split(", ")[1].rstrip(">").rsplit("x", 1)
        rows, cols = (kind.split("valid=")[1].rstrip(">") if "valid" in kind else shape).split("x")
        arguments.append(f"%p{name}: !pto.ptr<{element}>")
        lines.append(f"%q{name} = arith.constant {8192 * place} : i64")
        lines.append(f"%{name} = pto.alloc_tile{f' addr = %q{name}' if level3 else ''} : {kind}")
        move = moved(f"p{name}", (f"%{name}", kind), element, rows, cols, load=name != "d", dn="col_major" in kind)
        if name != "d":
            lines += move
        else:
            last = move
    return module(arch, arguments, [*lines, f"pto.{mnemonic} {operands}", *last])


@pytest.mark.parametrize("loop", ["for", "while"])
def test_operations_in_loops_get_their_tmp_too(loop: str, tmp_path: Path) -> None:
    text = program("txor", "a3")
    operation = next(line.strip() for line in text.splitlines() if "pto.txor" in line)
    counted = f"scf.for %i = %c0 to %c1 step %c1 {{\n{operation}\n}}"
    asked = f"""%end = scf.while (%i = %c0) : (index) -> (index) {{
  %go = arith.cmpi slt, %i, %c1 : index
  scf.condition(%go) %i : index
}} do {{
^bb0(%i: index):
  {operation}
  %n = arith.addi %i, %c1 : index
  scf.yield %n : index
}}"""
    file = kernel_file(tmp_path, text.replace(operation, counted if loop == "for" else asked))
    ((choice, _),) = run(file, timing_only=True, toolchain="2026-07").choices
    assert choice.effect == f"txor has no tmp tile; castsim adds one of {OPERATIONS['txor'][2]}"


@pytest.mark.parametrize("mnemonic", OPERATIONS)
def test_operations_get_their_tmp_on_a2a3(mnemonic: str, tmp_path: Path) -> None:
    file = kernel_file(tmp_path, program(mnemonic, "a3"))
    ((choice, span),) = run(file, timing_only=True, toolchain="2026-07").choices
    assert choice.effect == f"{mnemonic} has no tmp tile; castsim adds one of {OPERATIONS[mnemonic][2]}"
    assert f"pto.{mnemonic}" in span.text


@pytest.mark.parametrize("mnemonic", OPERATIONS)
@pytest.mark.parametrize("level3", [False, True])
def test_the_a5_ignores_tmp(mnemonic: str, level3: bool, tmp_path: Path) -> None:
    file = kernel_file(tmp_path, program(mnemonic, "a5", level3=level3))
    assert not run(file, timing_only=True, toolchain="2026-07").choices


@pytest.mark.parametrize("mnemonic", OPERATIONS)
def test_level_3_is_refused_with_the_tools_reason(mnemonic: str, tmp_path: Path) -> None:
    with pytest.raises(IllegalError, match="needs an explicit tmp tile") as caught:
        run(kernel_file(tmp_path, program(mnemonic, "a3", level3=True)), timing_only=True, toolchain="2026-07")
    assert caught.value.span is not None
    assert f"pto.{mnemonic}" in caught.value.span.text
    assert caught.value.legal[0].startswith("ins(")


@pytest.mark.parametrize("mnemonic", REQUIRED)
@pytest.mark.parametrize("arch", ["a3", "a5"])
@pytest.mark.parametrize("version", ["older", "2026-05"])
def test_older_assemblers_want_tmp_in_the_text(mnemonic: str, arch: str, version: str, tmp_path: Path) -> None:
    with pytest.raises(ReadError, match="assemblers since 2026-07 add a tmp tile") as caught:
        run(kernel_file(tmp_path, program(mnemonic, arch)), timing_only=True, toolchain=version)
    assert caught.value.span is not None
    assert caught.value.span.column > 0
    assert "--toolchain 2026-07" in caught.value.legal


def warned(capsys: pytest.CaptureFixture[str], text: str, target: str) -> list[str]:
    assert main(["run", "-e", text, "--target", target, "--json", "-"]) == 0
    return [str(one) for one in json.loads(capsys.readouterr().out)["warnings"] if "tmp tile" in str(one)]


def test_a_cast_whose_sequence_lacks_its_tmp_tile_says_what_differs(capsys: pytest.CaptureFixture[str]) -> None:
    # docs/reference/a2a3.md section 3.4: with tmp the number is clamped to int32 first, so that 2^31 gives -1; one step
    # keeps the low bits of 2^31, which are 0. What infinity gives in one step is an option.
    text = "tcvt f32 -> i16 4x64 nosat"
    (found,) = warned(capsys, text, "a2a3")
    assert "2147483648 gives 0, with tmp -1" in found
    for other in (f"{text} tmp", "tcvt f32 -> i16 4x64 sat", "tcvt f32 -> f16 4x64"):
        assert not warned(capsys, other, "a2a3")


@pytest.mark.parametrize("operation", ["txor i16", "trem f32", "tprelu f32"])
def test_an_operation_without_the_tmp_tile_that_its_call_needs_says_so(operation, capsys) -> None:
    (found,) = warned(capsys, f"{operation} 4x64", "a2a3")
    assert "has no tmp tile, which" in found
    assert not warned(capsys, f"{operation} 4x64", "a5")
