"""tmov of column-major tiles: values against a model of the bytes, cycles against published rows."""

# A `.pto` statement stays on one line.
# ruff: noqa: E501

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from castsim import run
from castsim.engines import simulate
from castsim.execution.dataflow.tile_lowering import DataflowLowerer
from castsim.execution.tiles import ResolvedTileOp, Tile
from castsim.execution.tree import Block, Instruction, Lowered, Tree
from castsim.execution.vector_operations import TileEffect
from castsim.isa.errors import Span, TileError
from castsim.isa.formats import format_named
from castsim.isa.pto.types import parse_type
from castsim.machines.mechanisms import lowerer_of
from castsim.targets import load_target

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


def test_one_short_column_is_one_block_on_a2a3():
    src, dst = (tile(name, "f32", 8, 1, (8, 1), place) for name, place in (("a", 0), ("b", 256)))
    row = [tile(name, "f32", 1, 8, (1, 8), place, "row_major") for name, place in (("a", 0), ("b", 256))]
    assert cycles("a2a3", ResolvedTileOp("tmov", dst, (src,), HERE)) == cycles(
        "a2a3", ResolvedTileOp("tmov", row[1], (row[0],), HERE)
    )


@pytest.mark.parametrize("valid", [(64, 128), (63, 125), (5, 3)])
def test_on_a5_it_takes_what_the_exchanged_tile_takes(valid: tuple[int, int]):
    one = [tile(name, "f32", 64, 128, valid, place) for name, place in (("a", 0), ("b", 65536))]
    other = [tile(name, "f32", 128, 64, valid[::-1], place, "row_major") for name, place in (("a", 0), ("b", 65536))]
    assert cycles("a5", ResolvedTileOp("tmov", one[1], (one[0],), HERE)) == cycles(
        "a5", ResolvedTileOp("tmov", other[1], (other[0],), HERE)
    )


@pytest.mark.parametrize("target", ["a2a3", "a5"])
def test_a_move_from_one_layout_to_the_other_is_refused(target: str):
    src, dst = tile("a", "f32", 64, 64, (64, 64), 0), tile("b", "f32", 64, 64, (64, 64), 65536, "row_major")
    with pytest.raises(TileError, match="%a is column-major"):
        lowered(target, ResolvedTileOp("tmov", dst, (src,), HERE))


PROGRAM = """module attributes {{pto.target_arch = "{arch}"}} {{
func.func @k(%x: !pto.ptr<f32>, %y: !pto.ptr<f32>) attributes {{pto.entry}} {{
%c0 = arith.constant 0 : index
%c1 = arith.constant 1 : index
%r = arith.constant 8 : index
%c = arith.constant 4 : index
%vx = pto.make_tensor_view %x, shape = [%r, %c], strides = [%c1, %r] {{layout = #pto.layout<dn>}} : !pto.tensor_view<8x4xf32>
%vy = pto.make_tensor_view %y, shape = [%r, %c], strides = [%c1, %r] {{layout = #pto.layout<dn>}} : !pto.tensor_view<8x4xf32>
%px = pto.partition_view %vx, offsets = [%c0, %c0], sizes = [%r, %c] : !pto.tensor_view<8x4xf32> -> !pto.partition_tensor_view<8x4xf32>
%py = pto.partition_view %vy, offsets = [%c0, %c0], sizes = [%r, %c] : !pto.tensor_view<8x4xf32> -> !pto.partition_tensor_view<8x4xf32>
%a = pto.alloc_tile : {tile}
%b = pto.alloc_tile : {tile}
pto.tload ins(%px : !pto.partition_tensor_view<8x4xf32>) outs(%a : {tile})
pto.tmov ins(%a : {tile}) outs(%b : {tile})
pto.tstore ins(%b : {tile}) outs(%py : !pto.partition_tensor_view<8x4xf32>)
return
}}
}}
"""


@pytest.mark.parametrize("arch", ["a3", "a5"])
def test_a_program_moves_columns(arch: str, tmp_path: Path):
    path = tmp_path / "k.pto"
    path.write_text(PROGRAM.format(arch=arch, tile="!pto.tile_buf<vec, 8x4xf32, blayout=col_major>"))
    values = np.arange(32, dtype=np.float32)
    found = run(path, inputs={"x": values})
    np.testing.assert_array_equal(found.outputs["y"].reshape(-1), values)
    assert any(each.mnemonic == "tmov" for each in found.loaded.tree.instructions)
