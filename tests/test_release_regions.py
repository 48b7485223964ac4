"""What the library refuses in debug builds only runs over the destination's region; overlap of rows that run in order.

Expected values are NumPy's on the physical tiles.
"""

# A `.pto` statement stays on one line.
# ruff: noqa: E501

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from execution_programs import kernel

from castsim import run
from castsim.isa.errors import TileError
from castsim.isa.warning_text import WarningKind, of_kind

TARGETS = ("a2a3", "a5")
ARGUMENTS = "%x: !pto.ptr<f32>, %w: !pto.ptr<f32>, %y: !pto.ptr<f32>"


def moves(rows: int, cols: int, load: str, part: str, kind: str) -> str:
    view = f"%v{part} = pto.make_tensor_view %{part}, shape = [%n{rows}, %n{cols}], strides = [%n{cols}, %c1] : !pto.tensor_view<?x?xf32>\n"
    there = f"!pto.partition_tensor_view<{rows}x{cols}xf32>"
    view += f"%p{part} = pto.partition_view %v{part}, offsets = [%c0, %c0], sizes = [%n{rows}, %n{cols}] : !pto.tensor_view<?x?xf32> -> {there}\n"
    if part == "y":
        return view + f"pto.tstore ins({load} : {kind}) outs(%p{part} : {there})\n"
    return view + f"pto.tload ins(%p{part} : {there}) outs({load} : {kind})\n"


def program(mnemonic: str, first: tuple[int, int], second: tuple[int, int] | None, *, dynamic: bool) -> str:
    """Both tiles are loaded in full; the operation sees less of them, and all of its destination."""
    whole = "!pto.tile_buf<vec, 16x64xf32>"
    body = "".join(f"%n{each} = arith.constant {each} : index\n" for each in (5, 12, 16, 48, 60, 64))
    body += f"%a = pto.alloc_tile : {whole}\n%b = pto.alloc_tile : {whole}\n%d = pto.alloc_tile : {whole}\n"
    body += moves(16, 64, "%a", "x", whole) + moves(16, 64, "%b", "w", whole)
    kinds = []
    for name, shape in zip(("a", "b"), (first, second), strict=True):
        if shape is None:
            continue
        kinds.append(f"!pto.tile_buf<vec, 16x64xf32, valid={'?x?' if dynamic else 'x'.join(map(str, shape))}>")
        body += f"%{name}s = pto.subview %{name}[%c0, %c0] sizes [16, 64]"
        body += f" valid [%n{shape[0]}, %n{shape[1]}]" if dynamic else ""
        body += f" : {whole} -> {kinds[-1]}\n"
    names = ", ".join(f"%{name}s" for name in ("a", "b")[: len(kinds)])
    body += f"pto.{mnemonic} ins({names} : {', '.join(kinds)}) outs(%d : {whole})\n" + moves(16, 64, "%d", "y", whole)
    return kernel(body, ARGUMENTS)


def computed(text: str, target: str, folder: Path) -> tuple[np.ndarray, np.ndarray, np.ndarray, tuple[str, ...]]:
    path = folder / "k.pto"
    path.write_text(text)
    random = np.random.default_rng(3)
    x, w = (random.integers(-99, 99, (16, 64)).astype(np.float32) for _ in range(2))
    found = run(path, target, inputs={"x": x, "w": w})
    assert not found.undefined
    return x, w, found.outputs["y"], of_kind(found.warnings, WarningKind.OPERATION)


@pytest.mark.parametrize("target", TARGETS)
@pytest.mark.parametrize("dynamic", [False, True])
@pytest.mark.parametrize(("first", "second"), [((12, 60), (16, 64)), ((16, 64), (5, 48)), ((12, 48), (12, 48))])
def test_maximum_runs_over_the_destination(
    first: tuple[int, int], second: tuple[int, int], dynamic: bool, target: str, tmp_path: Path
) -> None:
    x, w, y, warnings = computed(program("tmax", first, second, dynamic=dynamic), target, tmp_path)
    np.testing.assert_array_equal(y, np.maximum(x, w))
    assert len(warnings) == sum(shape != (16, 64) for shape in (first, second))
    assert all("debug builds" in warning for warning in warnings)


@pytest.mark.parametrize("target", TARGETS)
def test_a_part_of_neither_size_runs_over_the_destination(target: str, tmp_path: Path) -> None:
    x, w, y, warnings = computed(program("tpartadd", (12, 64), (16, 48), dynamic=False), target, tmp_path)
    np.testing.assert_array_equal(y, x + w)
    assert len(warnings) == 2


@pytest.mark.parametrize("target", TARGETS)
def test_a_row_is_expanded_over_the_columns_of_the_destination(target: str, tmp_path: Path) -> None:
    x, _, y, warnings = computed(program("tcolexpand", (5, 48), None, dynamic=False), target, tmp_path)
    np.testing.assert_array_equal(y, np.broadcast_to(x[0], (16, 64)))
    assert len(warnings) == 1


@pytest.mark.parametrize("target", TARGETS)
def test_extents_that_only_the_run_knows_are_not_compared(target: str, tmp_path: Path) -> None:
    """The assembler compares what both types state; the rest is the library's, in debug builds."""
    x, w, y, warnings = computed(program("tmul", (12, 60), (16, 64), dynamic=True), target, tmp_path)
    np.testing.assert_array_equal(y, x * w)
    assert len(warnings) == 1
    with pytest.raises(TileError, match="valid region"):
        computed(program("tmul", (12, 60), (16, 64), dynamic=False), target, tmp_path)


# ------------------------------------------------------------------------------------------------- rows that overlap


def broadcast(address: int) -> str:
    """x (16 x 64) times a column whose 16 elements lie from a byte of the destination on."""
    whole, column = "!pto.tile_buf<vec, 16x64xf32>", "!pto.tile_buf<vec, 16x1xf32, blayout=col_major>"
    body = f"%n16 = arith.constant 16 : index\n%n64 = arith.constant 64 : index\n%at = arith.constant {address} : i64\n"
    body += "%zero = arith.constant 0 : i64\n%far = arith.constant 65536 : i64\n"
    body += f"%a = pto.alloc_tile addr = %far : {whole}\n%d = pto.alloc_tile addr = %zero : {whole}\n"
    body += f"%b = pto.alloc_tile addr = %at : {column}\n" + moves(16, 64, "%a", "x", whole)
    body += "%vw = pto.make_tensor_view %w, shape = [%n16, %c1], strides = [%c1, %n16] {layout = #pto.layout<dn>} : !pto.tensor_view<?x?xf32>\n"
    body += "%pw = pto.partition_view %vw, offsets = [%c0, %c0], sizes = [%n16, %c1] : !pto.tensor_view<?x?xf32> -> !pto.partition_tensor_view<16x1xf32>\n"
    body += f"pto.tload ins(%pw : !pto.partition_tensor_view<16x1xf32>) outs(%b : {column})\n"
    body += f"pto.trowexpandadd ins(%a, %b : {whole}, {column}) outs(%d : {whole})\n" + moves(16, 64, "%d", "y", whole)
    return kernel(body, ARGUMENTS)


@pytest.mark.parametrize("target", TARGETS)
@pytest.mark.parametrize(("row", "address"), [(15, 15 * 256), (15, 15 * 256 + 96), (14, 14 * 256), (0, 0), (7, 1792)])
def test_rows_run_in_order(row: int, address: int, target: str, tmp_path: Path) -> None:
    """The column lies in one row of the destination; only in the last one is it read before it is overwritten."""
    path = tmp_path / "k.pto"
    path.write_text(broadcast(address))
    x, w = np.arange(16 * 64, dtype=np.float32).reshape(16, 64), np.arange(16, dtype=np.float32)[:, None] * 1000
    if row < 15:
        with pytest.raises(TileError, match="share bytes"):
            run(path, target, inputs={"x": x, "w": w})
        return
    found = run(path, target, inputs={"x": x, "w": w})
    np.testing.assert_array_equal(found.outputs["y"], x + w)
