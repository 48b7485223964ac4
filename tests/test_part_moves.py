"""textract and tinsert between tiles of the vector unit's buffer: copies of a part, with values by NumPy's slices."""

# A `.pto` statement stays on one line.
# ruff: noqa: E501

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from castsim import run
from castsim.isa.errors import ReadError, TileError
from castsim.isa.pto.pto_parser import parse

TARGETS = ("a2a3", "a5")
WHOLE = "!pto.tile_buf<vec, 16x128xf32, valid=?x?>"


def view(name: str, rows: int, cols: int) -> str:
    kind, part = "!pto.tensor_view<?x?xf32>", f"!pto.partition_tensor_view<{rows}x{cols}xf32>"
    return (
        f"%v{name} = pto.make_tensor_view %{name}, shape = [%c{rows}, %c{cols}], strides = [%c{cols}, %c1] : {kind}\n"
        f"%p{name} = pto.partition_view %v{name}, offsets = [%c0, %c0], sizes = [%c{rows}, %c{cols}] : {kind} -> {part}\n"
    )


def program(body: str, rows: int = 8, cols: int = 64, element: str = "f32") -> str:
    """A kernel that loads x to %a (16 x 128) and w to %b, does something and stores %b to y and %a to z."""
    small = f"!pto.tile_buf<vec, {rows}x{cols}x{element}>"
    part = f"!pto.partition_tensor_view<{rows}x{cols}xf32>"
    whole = "!pto.partition_tensor_view<16x128xf32>"
    numbers = {0, 1, 8, 16, 64, 128, rows, cols}
    return (
        "func.func @k(%x: !pto.ptr<f32>, %w: !pto.ptr<f32>, %y: !pto.ptr<f32>, %z: !pto.ptr<f32>, %r: index, %c: index) attributes {pto.entry} {\n"
        + "".join(f"%c{number} = arith.constant {number} : index\n" for number in sorted(numbers))
        + view("x", 16, 128) + view("w", rows, cols) + view("y", rows, cols) + view("z", 16, 128)
        + f"%a = pto.alloc_tile valid_row = %c16 valid_col = %c128 : {WHOLE}\n%b = pto.alloc_tile : {small}\n"
        + f"pto.tload ins(%px : {whole}) outs(%a : {WHOLE})\npto.tload ins(%pw : {part}) outs(%b : {small})\n"
        + body.replace("WHOLE", WHOLE).replace("SMALL", small)
        + f"pto.tstore ins(%b : {small}) outs(%py : {part})\npto.tstore ins(%a : {WHOLE}) outs(%pz : {whole})\nreturn\n}}\n"
    )  # fmt: skip


EXTRACT = "pto.textract ins(%a, %r, %c : WHOLE, index, index) outs(%b : SMALL)\n"
INSERT = "pto.tinsert ins(%b, %r, %c : SMALL, index, index) outs(%a : WHOLE)\n"


@pytest.mark.parametrize("target", TARGETS)
@pytest.mark.parametrize(
    ("rows", "cols", "row", "column"), [(8, 64, 3, 64), (1, 64, 15, 0), (16, 32, 0, 96), (16, 128, 0, 0), (4, 8, 9, 8)]
)
def test_values_are_those_of_a_slice(rows: int, cols: int, row: int, column: int, target: str, tmp_path: Path) -> None:
    x = np.arange(16 * 128, dtype=np.float32).reshape(16, 128)
    w = -np.arange(rows * cols, dtype=np.float32).reshape(rows, cols)
    for body in (EXTRACT, INSERT):
        path = tmp_path / "k.pto"
        path.write_text(program(body, rows, cols))
        found = run(path, target, inputs={"x": x, "w": w}, args={"r": row, "c": column})
        part, whole = w, x.copy()
        if body == EXTRACT:
            part = x[row : row + rows, column : column + cols]
        else:
            whole[row : row + rows, column : column + cols] = w
        np.testing.assert_array_equal(found.outputs["y"], part)
        np.testing.assert_array_equal(found.outputs["z"], whole)
        assert not found.partial
        moves = [each for each in found.loaded.tree.instructions if each.mnemonic in ("textract", "tinsert")]
        assert [each.pipe for each in moves] == ["V"]


@pytest.mark.parametrize("target", TARGETS)
@pytest.mark.parametrize(("row", "column"), [(9, 0), (0, 72), (-1, 0)])
def test_a_part_that_leaves_its_tile_is_refused(row: int, column: int, target: str, tmp_path: Path) -> None:
    for body in (EXTRACT, INSERT):
        path = tmp_path / "k.pto"
        path.write_text(program(body))
        with pytest.raises(TileError, match="leave %a") as caught:
            run(path, target, args={"r": row, "c": column}, timing_only=True)
        assert caught.value.span is not None
        assert caught.value.span.text.startswith(body[:8])


def test_operands_of_another_kind_are_refused() -> None:
    with pytest.raises(ReadError, match="not written with these operands") as caught:
        parse(program("pto.textract ins(%a : WHOLE) outs(%b : SMALL)\n"))
    assert "ins(%tile, %row, %column : T, index, index) outs(%tile : T)" in caught.value.legal
    with pytest.raises(ReadError, match="copies elements of one type: %a holds f32, %b f16"):
        parse(program(EXTRACT, element="f16"))
