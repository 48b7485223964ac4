"""Moves by layout or part, and top-k, against models of bytes; the matrix unit beside them costs nothing."""

# A `.pto` statement stays on one line.
# ruff: noqa: E501

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from kit.command_output import file_of

from castsim import run
from castsim.engines import simulate
from castsim.execution.tile_lowering import DataflowLowerer
from castsim.execution.tree import Block, Instruction, Lowered, ResolvedTileOp, Tile, Tree
from castsim.execution.vector_operations.effect import TileEffect
from castsim.isa.errors import ReadError, Span, TileError
from castsim.isa.formats import format_named
from castsim.isa.pto.pto_parser import parse
from castsim.isa.pto.types import parse_type
from castsim.machines.mechanisms import lowerer_of
from castsim.targets.loader import load_target

HERE = Span("k.pto", 1, 1)
BYTES = {"f32": 4, "f16": 2, "i8": 1}
SHAPES = [(8, 1), (64, 128), (32, 3), (64, 5)]


def tile(
    name: str, fmt: str, rows: int, cols: int, valid: tuple[int, int], address: int, layout: str = "col_major"
) -> Tile:
    text = f"!pto.tile_buf<vec, {rows}x{cols}x{fmt}, valid={valid[0]}x{valid[1]}, blayout={layout}>"
    return Tile(name, format_named(fmt), parse_type(text), address, *valid, 8 * BYTES[fmt])


def lowered(target: str, work: ResolvedTileOp) -> Lowered:
    lowerer = lowerer_of(load_target(target))
    assert isinstance(lowerer, DataflowLowerer)
    made = lowerer.work(work)
    return Lowered(0, made.body, made.accesses, made.shortcut)


def cycles(target: str, work: ResolvedTileOp) -> int:
    node = lowered(target, work)
    tree = Tree(Block((node,)), (Instruction("tmov", "V", HERE),), interlocked=True)
    found = simulate(tree, load_target(target), None, engine="event", max_cycles=10**6)
    fast = simulate(tree, load_target(target), None, engine="fast", max_cycles=10**6)
    assert found.total == fast.total
    return found.total


def moved(buffer: np.ndarray, size: int, src: Tile, dst: Tile, unit: int | None) -> np.ndarray:
    """Copy element by element: (i, j) of a column-major tile lies at j * rows + i; `unit`: ends of columns too."""
    made = buffer.copy()
    rows, cols = min(src.valid_rows, dst.valid_rows), min(src.valid_cols, dst.valid_cols)
    length = rows * size if unit is None else -(-rows * size // unit) * unit
    for column in range(cols):
        to, origin = (each.address + column * each.type.rows * size for each in (dst, src))
        made[to : to + length] = buffer[origin : origin + length]
    return made


@pytest.mark.parametrize("target", ["a2a3", "a5"])
@pytest.mark.parametrize("fmt", ["f32", "f16", "i8"])
@pytest.mark.parametrize(("rows", "cols"), SHAPES)
@pytest.mark.parametrize("less", [0, 1, 3])
def test_every_element_goes_to_its_place(target: str, fmt: str, rows: int, cols: int, less: int):
    size = BYTES[fmt]
    rows = max(rows, 32 // size)
    valid = (rows - less, max(1, cols - less))
    src, dst = (tile(name, fmt, rows, cols, valid, place) for name, place in (("a", 0), ("b", 65536)))
    buffer = np.random.default_rng(rows * cols + less).integers(0, 256, 131072, dtype=np.uint8)
    expected = moved(buffer, size, src, dst, 32 if target == "a2a3" else None)
    node = lowered(target, ResolvedTileOp("tmov", dst, (src,), HERE))
    assert isinstance(node.shortcut, TileEffect)
    node.shortcut.apply(buffer)
    np.testing.assert_array_equal(buffer, expected)
    written = next(access for access in node.accesses if access.write)
    assert (written.start, written.end <= 65536 + rows * cols * size) == (65536, True)


@pytest.mark.parametrize(
    ("rows", "cols", "valid", "published"), [(64, 128, (64, 128), 1029), (64, 128, (63, 125), 1323)]
)
@pytest.mark.parametrize("layout", ["col_major", "row_major"])
def test_published_cycles_of_a2a3(rows: int, cols: int, valid: tuple[int, int], published: int, layout: str):
    """Rows c03, c11 and c01 of pto-isa tests/costmodel/st tmov: the same whatever the layout (c10 to c12).

    Where rows are copied one by one the model is a cycle per row short of the published number, in either layout.
    """
    src, dst = (tile(name, "f32", rows, cols, valid, place, layout) for name, place in (("a", 0), ("b", 65536)))
    short = 0 if valid == (rows, cols) else valid[0]
    assert 0 <= published - cycles("a2a3", ResolvedTileOp("tmov", dst, (src,), HERE)) <= short


@pytest.mark.parametrize(
    ("target", "rows", "cols", "valid", "second"),
    [("a2a3", 8, 1, (8, 1), 256), *(("a5", 64, 128, valid, 65536) for valid in ((64, 128), (63, 125), (5, 3)))],
)
def test_it_takes_what_the_exchanged_tile_takes(
    target: str, rows: int, cols: int, valid: tuple[int, int], second: int
) -> None:
    """On A2/A3 one short column is one block; on A5 every tile."""
    one = [tile(name, "f32", rows, cols, valid, place) for name, place in (("a", 0), ("b", second))]
    other = [
        tile(name, "f32", cols, rows, valid[::-1], place, "row_major") for name, place in (("a", 0), ("b", second))
    ]
    taken = [cycles(target, ResolvedTileOp("tmov", dst, (src,), HERE)) for src, dst in (one, other)]
    assert taken[0] == taken[1]


@pytest.mark.parametrize("target", ["a2a3", "a5"])
def test_a_move_from_one_layout_to_the_other_is_refused(target: str):
    src, dst = tile("a", "f32", 64, 64, (64, 64), 0), tile("b", "f32", 64, 64, (64, 64), 65536, "row_major")
    with pytest.raises(TileError, match="%a is column-major"):
        lowered(target, ResolvedTileOp("tmov", dst, (src,), HERE))


# ------------------------------------------------------------------------------------------------- textract and tinsert


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
        path = file_of(tmp_path / "k.pto", program(body, rows, cols))
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
        path = file_of(tmp_path / "k.pto", program(body))
        with pytest.raises(TileError, match="leave %a") as caught:
            run(path, target, args={"r": row, "c": column}, timing_only=True)
        assert caught.value.span.text.startswith(body[:8])


def test_operands_of_another_kind_are_refused() -> None:
    with pytest.raises(ReadError, match="does not take these operands") as caught:
        parse(program("pto.textract ins(%a : WHOLE) outs(%b : SMALL)\n"))
    assert "ins(%tile, %row, %column : T, index, index) outs(%tile : T)" in caught.value.legal
    with pytest.raises(ReadError, match="cannot change the element type: %a holds f32, %b f16"):
        parse(program(EXTRACT, element="f16"))


# ------------------------------------------------------------------------------- programs that also use the matrix unit


VEC, MAT, ACC = (f"!pto.tile_buf<{place}, 64x64xf32>" for place in ("vec", "mat", "acc"))
PART = "!pto.partition_tensor_view<64x64xf32>"
VIEW = "!pto.tensor_view<?x?xf32>"


def beside_matrix(matrix: bool) -> str:
    extra = f"""
    %m = pto.alloc_tile : {MAT}
    %a = pto.alloc_tile : {ACC}
    pto.tload ins(%p : {PART}) outs(%m : {MAT})
    pto.tmatmul ins(%m, %m : {MAT}, {MAT}) outs(%a : {ACC})
    pto.tmov ins(%a : {ACC}) outs(%m : {MAT})
"""
    return f"""
module attributes {{pto.target_arch = "a3"}} {{
  func.func @k(%x: !pto.ptr<f32>) attributes {{pto.entry}} {{
    %c0 = arith.constant 0 : index
    %c1 = arith.constant 1 : index
    %c64 = arith.constant 64 : index
    %v = pto.make_tensor_view %x, shape = [%c64, %c64], strides = [%c64, %c1] : {VIEW}
    %p = pto.partition_view %v, offsets = [%c0, %c0], sizes = [%c64, %c64] : {VIEW} -> {PART}
    %t = pto.alloc_tile : {VEC}
    pto.tload ins(%p : {PART}) outs(%t : {VEC}){extra if matrix else ""}
    pto.texp ins(%t : {VEC}) outs(%t : {VEC})
    pto.tstore ins(%t : {VEC}) outs(%p : {PART})
    return
  }}
}}
"""


def written(folder: Path, *, matrix: bool) -> Path:
    return file_of(folder / f"{matrix}.pto", beside_matrix(matrix))
