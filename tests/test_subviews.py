"""Parts of tiles: what operations, loads and stores do to the bytes of the whole."""

# A `.pto` statement stays on one line.
# ruff: noqa: E501

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from execution_programs import kernel
from subview_programs import Program

from castsim import run
from castsim.isa import pto
from castsim.isa.errors import CastsimError
from castsim.machines.mechanisms import compute_of
from castsim.running.loading import load_program

TARGETS = ("a2a3", "a5")


@pytest.mark.parametrize("target", TARGETS)
@pytest.mark.parametrize("seed", range(12))
def test_random_programs_do_what_slices_of_arrays_do(target: str, seed: int, tmp_path: Path):
    program = Program(seed, target)
    for _ in range(12):
        program.step()
    file = tmp_path / "k.pto"
    text = program.text()
    file.write_text(text)
    assert pto.parse(pto.print_program(pto.parse(text))) == pto.parse(text)
    found = run(file, inputs={"x": program.x}, args={"zero": 0})
    for name, expected in program.arrays.items():
        np.testing.assert_array_equal(found.outputs[f"o{name}"], expected)
    np.testing.assert_array_equal(found.outputs["y"], program.y)
    reference = run(file, inputs={"x": program.x}, args={"zero": 0}, engine="event")
    assert found.cycles == reference.cycles


@pytest.mark.parametrize("target", TARGETS)
@pytest.mark.parametrize("seed", range(20, 24))
def test_values_without_whole_tile_conversions(target: str, seed: int, tmp_path: Path):
    program = Program(seed, target)
    for _ in range(8):
        program.cast("a")
        program.scalar("a")
    file = tmp_path / "k.pto"
    file.write_text(program.text())
    loaded = load_program(file, None, None, {"zero": 0})
    buffer = np.zeros(loaded.target.memories["ub"].capacity_bytes, np.uint8)
    memory = {name: np.zeros(program.x.nbytes, np.uint8) for name in loaded.arguments}
    memory["x"] = program.x.view(np.uint8).reshape(-1).copy()
    compute_of(loaded.target)(loaded.tree, buffer, memory, shortcuts=False)
    np.testing.assert_array_equal(
        memory["oh"].view("<f2")[: program.x.size].reshape(program.x.shape), program.arrays["h"]
    )


LOOP = """
%a = pto.alloc_tile : !pto.tile_buf<vec, 16x64xf32>
%b = pto.alloc_tile : !pto.tile_buf<vec, 16x64xf16>
%vx = pto.make_tensor_view %x, shape = [%c16, %c64], strides = [%c64, %c1] : !pto.tensor_view<?x?xf32>
%vy = pto.make_tensor_view %y, shape = [%c16, %c64], strides = [%c64, %c1] : !pto.tensor_view<?x?xf16>
%px = pto.partition_view %vx, offsets = [%c0, %c0], sizes = [%c16, %c64] : !pto.tensor_view<?x?xf32> -> !pto.partition_tensor_view<16x64xf32>
%py = pto.partition_view %vy, offsets = [%c0, %c0], sizes = [%c16, %c64] : !pto.tensor_view<?x?xf16> -> !pto.partition_tensor_view<16x64xf16>
pto.tload ins(%px : !pto.partition_tensor_view<16x64xf32>) outs(%a : !pto.tile_buf<vec, 16x64xf32>)
scf.for %i = %c0 to %c16 step %c1 {
  %n = arith.addi %i, %c1 : index
  %r = pto.subview %a[%i, %c0] sizes [1, 64] valid [%c1, %n] : !pto.tile_buf<vec, 16x64xf32> -> !pto.tile_buf<vec, 1x64xf32, valid=1x?>
  %s = pto.subview %b[%i, %c0] sizes [1, 64] valid [%c1, %n] : !pto.tile_buf<vec, 16x64xf16> -> !pto.tile_buf<vec, 1x64xf16, valid=1x?>
  pto.tcvt ins(%r : !pto.tile_buf<vec, 1x64xf32, valid=1x?>) outs(%s : !pto.tile_buf<vec, 1x64xf16, valid=1x?>)
}
pto.tstore ins(%b : !pto.tile_buf<vec, 16x64xf16>) outs(%py : !pto.partition_tensor_view<16x64xf16>)
"""


@pytest.mark.parametrize("target", TARGETS)
def test_a_row_that_moves_with_the_loop(target: str, tmp_path: Path):
    file = tmp_path / "k.pto"
    file.write_text(kernel(LOOP))
    x = np.arange(1024, dtype=np.float32).reshape(16, 64)
    found = run(file, target, inputs={"x": x}, races="ignore")  # elements right of the diagonal stay zero
    rows, cols = np.indices(x.shape)
    np.testing.assert_array_equal(found.outputs["y"], np.where(cols <= rows, x, 0).astype(np.float16))
    assert found.cycles == run(file, target, inputs={"x": x}, races="ignore", engine="event").cycles


WHOLE = "!pto.tile_buf<vec, 8x64xf32>"


def refused(
    body: str, target: str, tmp_path: Path, extra: str = "", args: dict[str, int] | None = None
) -> CastsimError:
    file = tmp_path / "k.pto"
    file.write_text(kernel(f"%t = pto.alloc_tile : {WHOLE}\n{body}", f"%x: !pto.ptr<f32>{extra}"))
    with pytest.raises(CastsimError) as caught:
        run(file, target, timing_only=True, args=args)
    assert caught.value.span is not None
    return caught.value


@pytest.mark.parametrize(
    ("body", "message"),
    [
        (f"%s = pto.subview %t[%c0] sizes [1, 64] : {WHOLE}", "a row and a column, 1 values"),
        (f"%s = pto.subview %t[%c0, %c0] sizes [1] : {WHOLE}", "rows and columns, 1 sizes"),
        (f"%s = pto.subview %t[%c0, %c0] sizes [0, 64] : {WHOLE}", "a size is a whole number from 1, not 0"),
        (f"%s = pto.subview %t[%c8, %c0] sizes [1, 64] : {WHOLE}", "1 valid rows from row 8 on of a tile of 8 rows"),
        (f"%s = pto.subview %t[%c0, %c32] sizes [8, 64] : {WHOLE}", "64 valid columns from column 32 on of a tile of 64"),
        (f"%s = pto.subview %t[%c0, %c0] sizes [4, 32] valid [%c8, %c8] : {WHOLE}", "8 valid rows of a part of 4"),
        (f"%s = pto.subview %t[%c0, %c0] sizes [4, 32] : {WHOLE} -> !pto.tile_buf<vec, 4x64xf32>", "the result of pto.subview is !pto.tile_buf<vec, 4x32xf32>"),
        (f"%s = pto.subview %t[%c0, %c0] sizes [4, 32] : {WHOLE} -> !pto.tile_buf<vec, 4x32xf16>", "the result of pto.subview is"),
        (f"%s = pto.subview %t[%c0, %c0] sizes [4, 32] valid [%c4, %c8] : {WHOLE} -> !pto.tile_buf<vec, 4x32xf32, valid=4x16>", "the type says 16 valid columns, the operand is 8"),
        (f"%s = pto.subview %t[%c0, %c0] sizes [4, 32] : {WHOLE} -> !pto.tile_buf<vec, 4x32xf32, valid=?x32>", "leaves the valid rows open"),
        (f"%s = pto.subview %t[%c0, %c0] sizes [4, 32] valid [%n, %c8] : {WHOLE} -> !pto.tile_buf<vec, 4x32xf32, valid=4x8>", "the type says 4 valid rows, the operand is known when the program runs"),
        (f"%s = pto.subview %t[%n, %c0] sizes [4, 32] : {WHOLE}", "%s: 4 valid rows from row 5 on leave %t, a tile of 8 rows"),
        (f"%s = pto.subview %t[%c0, %c0] sizes [4, 32] valid [%n, %c8] : {WHOLE}", "%s: 5 valid rows of a part of 4"),
        (f"%s = pto.subview %t[%c0, %c4] sizes [8, 32] : {WHOLE}\npto.tmuls ins(%s, %f : !pto.tile_buf<vec, 8x32xf32>, f32) outs(%s : !pto.tile_buf<vec, 8x32xf32>)", "starts at byte 16, which is not 32-byte aligned"),
        (f"%s = pto.subview %t[%c0, %c8] sizes [8, 32] : {WHOLE}\n%r = pto.treshape %s : !pto.tile_buf<vec, 8x32xf32> -> !pto.tile_buf<vec, 4x64xf32>", "a part whose lines are 256 bytes apart"),
        (f"%s = pto.subview %t[%c0, %c0] sizes [8, 32] : {WHOLE}\n%r = pto.subview %t[%c0, %c8] sizes [8, 32] : {WHOLE}\npto.tadds ins(%s, %f : !pto.tile_buf<vec, 8x32xf32>, f32) outs(%r : !pto.tile_buf<vec, 8x32xf32>)", "%r and %s share bytes"),
        ("%m = pto.alloc_tile : !pto.tile_buf<acc, 32x32xf32, blayout=col_major, slayout=row_major, fractal=1024>\n%s = pto.subview %m[%c0, %c0] sizes [8, 16] : !pto.tile_buf<acc, 32x32xf32, blayout=col_major, slayout=row_major, fractal=1024>", "whole boxes of 16 rows: size 8, offset 0"),
    ],
)  # fmt: skip
@pytest.mark.parametrize("target", TARGETS)
def test_parts_that_cannot_be(body: str, message: str, target: str, tmp_path: Path):
    error = refused(f"%f = arith.constant 2.0 : f32\n{body}", target, tmp_path, ", %n: index", {"n": 5})
    assert message in error.message


def test_a_part_can_have_no_elements_and_lies_anywhere(tmp_path: Path):
    body = f"%s = pto.subview %t[%c8, %c0] sizes [8, 64] valid [%c0, %c0] : {WHOLE}\n%f = arith.constant 2.0 : f32\n"
    kind = "!pto.tile_buf<vec, 8x64xf32, valid=0x0>"
    file = tmp_path / "k.pto"
    file.write_text(
        kernel(f"%t = pto.alloc_tile : {WHOLE}\n{body}pto.tmuls ins(%s, %f : {kind}, f32) outs(%s : {kind})")
    )
    for target in TARGETS:
        assert run(file, target, timing_only=True).cycles < 20
