"""Loads and stores between a part of a view and a valid region of another size, by the target's option."""

# A `.pto` statement stays on one line.
# ruff: noqa: E501

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from kit.execution_programs import kernel, kernel_file
from kit.pto_text import moved

from castsim import run
from castsim.isa.errors import TileError, WarningKind, of_kind
from castsim.targets.description import with_options
from castsim.targets.loader import load_target

WIDTH = 64
"""Columns (rows of `dn`) of the view; the part begins at its line 1, element 3."""


def text(part: tuple[int, int], valid: tuple[int, int], *, load: bool, dn: bool) -> str:
    """A transfer of %x, seen as 16 lines of 64 elements, and a tile of 8 x 64 (64 x 8 of `dn`)."""
    shape, layout = ("64x8", ", blayout=col_major") if dn else ("8x64", "")
    tile = f"!pto.tile_buf<vec, {shape}xf32, valid=?x?{layout}>"
    whole = f"!pto.tile_buf<vec, {shape}xf32{layout}>"
    extents, strides = ("%c64, %c16", "%c1, %c64") if dn else ("%c16, %c64", "%c64, %c1")
    offsets = "%o3, %c1" if dn else "%c1, %o3"
    form = " {layout = #pto.layout<dn>}" if dn else ""
    kind = "!pto.partition_tensor_view<?x?xf32>"
    ends = [f"%p : {kind}", f"%t : {tile}"]
    src, dst = ends if load else reversed(ends)
    down, across = shape.replace("x", ", %c").split(", ")
    name, other = ("%x", "%y") if load else ("%y", "%x")
    whole_part = f"!pto.partition_tensor_view<{shape}xf32>"
    move = f"pto.{'tload' if load else 'tstore'} ins({src}) outs({dst})"
    ends = [f"%q : {whole_part}", f"%w : {whole}"]
    around = f"pto.tstore ins({ends[1]}) outs({ends[0]})" if load else f"pto.tload ins({ends[0]}) outs({ends[1]})"
    return kernel(f"""\
%a = arith.constant 0 : i64
%o3 = arith.constant 3 : index
%vr = arith.constant {valid[0]} : index
%vc = arith.constant {valid[1]} : index
%pr = arith.constant {part[0]} : index
%pc = arith.constant {part[1]} : index
%t = pto.alloc_tile addr = %a valid_row = %vr valid_col = %vc : {tile}
%w = pto.alloc_tile addr = %a : {whole}
%v = pto.make_tensor_view {name}, shape = [{extents}], strides = [{strides}]{form} : !pto.tensor_view<?x?xf32>
%u = pto.make_tensor_view {other}, shape = [%c{down}, {across}], strides = [{'%c1, %c64' if dn else '%c64, %c1'}]{form} : !pto.tensor_view<?x?xf32>
%q = pto.partition_view %u, offsets = [%c0, %c0], sizes = [%c{down}, {across}] : !pto.tensor_view<?x?xf32> -> {whole_part}
%p = pto.partition_view %v, offsets = [{offsets}], sizes = [%pr, %pc] : !pto.tensor_view<?x?xf32> -> {kind}
{move if load else around}
{around if load else move}""", "%x: !pto.ptr<f32>, %y: !pto.ptr<f32>")  # fmt: skip


def model(
    x: np.ndarray, part: tuple[int, int], valid: tuple[int, int], *, load: bool, how: str, skewed: bool
) -> np.ndarray:
    """Move element by element; sizes are lines and elements of a line, places are of flat memory."""
    lines = part[0] if how == "library" else valid[0]
    step = valid[1] + WIDTH - part[1] if how == "library" and skewed else WIDTH
    made = np.zeros(8 * WIDTH if load else 16 * WIDTH, np.float32)
    for line in range(lines if part[1] and valid[1] else 0):
        for element in range(valid[1]):
            far, near = WIDTH + 3 + line * step + element, line * WIDTH + element
            made[near if load else far] = x.flat[far if load else near]
    return made


CASES = [
    ((5, 20), (5, 16)), ((5, 20), (3, 20)), ((7, 32), (2, 5)), ((4, 9), (1, 9)), ((6, 8), (0, 8)), ((6, 8), (6, 0)),
]  # fmt: skip


@pytest.mark.parametrize("target", ["a2a3", "a5"])
@pytest.mark.parametrize("how", ["tile", "library"])
@pytest.mark.parametrize("load", [True, False])
@pytest.mark.parametrize("dn", [False, True])
@pytest.mark.parametrize(("part", "valid"), CASES)
def test_what_is_moved(part, valid, dn, load, how, target, tmp_path) -> None:
    file = tmp_path / "k.pto"
    turned = [pair[::-1] if dn else pair for pair in (part, valid)]
    file.write_text(text(turned[0], turned[1], load=load, dn=dn))
    x = np.random.default_rng(4).uniform(-9, 9, (16 if load else 8) * WIDTH).astype(np.float32)
    chip = with_options(load_target(target), {"transfer_region": how})
    found = run(file, chip, inputs={"x": x}, races="ignore")
    expected = model(x, part, valid, load=load, how=how, skewed=target == "a2a3")
    got = found.outputs["y"]
    np.testing.assert_array_equal(
        (got.T if dn and got.ndim == 2 else got).reshape(-1)[: expected.size], expected[: got.size]
    )
    warnings = of_kind(found.warnings, WarningKind.REGION)
    assert len(warnings) == 1
    assert f"the view's part is {turned[0][0]} x {turned[0][1]}" in warnings[0]
    assert str(file) in warnings[0]


@pytest.mark.parametrize("target", ["a2a3", "a5"])
@pytest.mark.parametrize(
    ("how", "part", "valid", "message"),
    [
        ("refuse", (5, 20), (5, 16), "the view's part is 5 x 20, the valid region of %t is 5 x 16"),
        ("tile", (5, 20), (6, 20), "which exceeds the part"),
        ("tile", (5, 20), (5, 24), "which exceeds the part"),
        ("library", (9, 20), (5, 20), "the part's lines exceed the tile"),
    ],
)
def test_what_is_refused(how, part, valid, message, target, tmp_path) -> None:
    file = kernel_file(tmp_path, text(part, valid, load=True, dn=False))
    chip = with_options(load_target(target), {"transfer_region": how})
    with pytest.raises(TileError) as caught:
        run(file, chip, timing_only=True)
    assert message in caught.value.message
    assert caught.value.span is not None


@pytest.mark.parametrize("how", ["refuse", "tile", "library"])
def test_equal_sizes_ask_nobody(how: str, tmp_path: Path):
    file = kernel_file(tmp_path, text((5, 20), (5, 20), load=True, dn=False))
    for target in ("a2a3", "a5"):
        chip = with_options(load_target(target), {"transfer_region": how})
        found = run(file, chip, timing_only=True, races="ignore")
        assert not of_kind(found.warnings, WarningKind.REGION)


TARGETS = ("a2a3", "a5")
ARGUMENTS = "%x: !pto.ptr<f32>, %w: !pto.ptr<f32>, %y: !pto.ptr<f32>"


def moves(rows: int, cols: int, tile: str, name: str, kind: str) -> str:
    return "\n".join(moved(name, (tile, kind), "f32", rows, cols, load=name != "y")) + "\n"


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
    path = kernel_file(folder, text)
    random = np.random.default_rng(3)
    x, w = (random.integers(-99, 99, (16, 64)).astype(np.float32) for _ in range(2))
    found = run(path, target, inputs={"x": x, "w": w})
    assert not found.undefined
    return x, w, found.outputs["y"], of_kind(found.warnings, WarningKind.OPERATION)


@pytest.mark.parametrize("target", TARGETS)
@pytest.mark.parametrize("dynamic", [False, True])
@pytest.mark.parametrize(("first", "second"), [((12, 60), (16, 64)), ((16, 64), (5, 48)), ((12, 48), (12, 48))])
def test_maximum_runs_over_the_destination(first, second, dynamic, target, tmp_path) -> None:
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


def broadcast(address: int) -> str:
    """x (16 x 64) times a column whose 16 elements lie from a byte of the destination on."""
    whole, column = "!pto.tile_buf<vec, 16x64xf32>", "!pto.tile_buf<vec, 16x1xf32, blayout=col_major>"
    body = f"%at = arith.constant {address} : i64\n"
    body += "%zero = arith.constant 0 : i64\n%far = arith.constant 65536 : i64\n"
    body += f"%a = pto.alloc_tile addr = %far : {whole}\n%d = pto.alloc_tile addr = %zero : {whole}\n"
    body += f"%b = pto.alloc_tile addr = %at : {column}\n" + moves(16, 64, "%a", "x", whole)
    body += "\n".join(moved("w", ("%b", column), "f32", 16, 1, dn=True)) + "\n"
    body += f"pto.trowexpandadd ins(%a, %b : {whole}, {column}) outs(%d : {whole})\n" + moves(16, 64, "%d", "y", whole)
    return kernel(body, ARGUMENTS)


@pytest.mark.parametrize("target", TARGETS)
@pytest.mark.parametrize(("row", "address"), [(15, 15 * 256), (15, 15 * 256 + 96), (14, 14 * 256), (0, 0), (7, 1792)])
def test_rows_run_in_order(row: int, address: int, target: str, tmp_path: Path) -> None:
    """The column lies in one row of the destination; only in the last one is it read before it is overwritten."""
    path = kernel_file(tmp_path, broadcast(address))
    x, w = np.arange(16 * 64, dtype=np.float32).reshape(16, 64), np.arange(16, dtype=np.float32)[:, None] * 1000
    if row < 15:
        with pytest.raises(TileError, match="share bytes"):
            run(path, target, inputs={"x": x, "w": w})
        return
    found = run(path, target, inputs={"x": x, "w": w})
    np.testing.assert_array_equal(found.outputs["y"], x + w)
