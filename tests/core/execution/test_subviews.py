"""Parts of tiles: what operations, loads and stores do to the bytes of the whole."""

# A `.pto` statement stays on one line.
# ruff: noqa: E501

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path

import numpy as np
import pytest
from kit.execution_programs import kernel, kernel_file, walk

from castsim import run
from castsim.execution.interpreter.tile_allocation import lifetimes_of
from castsim.isa.errors import CastsimError
from castsim.isa.pto.pto_parser import parse
from castsim.isa.pto.pto_printer import print_program
from castsim.machines.mechanisms import compute_of
from castsim.running.program_loading import load_program

ROWS, COLS = 16, 64
NAMES = {"f32": ("a", "b"), "f16": ("h",)}


def tile_type(element: str, rows: int, cols: int, valid: tuple[int, int] | None = None) -> str:
    shown = "" if valid is None or valid == (rows, cols) else f", valid={valid[0]}x{valid[1]}"
    return f"!pto.tile_buf<vec, {rows}x{cols}x{element}{shown}>"


@dataclass
class Part:
    """A part of a tile: its name in the program, and the same elements of the model's array."""

    name: str
    type: str
    array: np.ndarray


@dataclass
class Program:
    """A program being written, and what it has done so far to arrays of the tiles' shape."""

    seed: int
    target: str
    lines: list[str] = field(default_factory=list)
    count: int = 0
    constants: set[int] = field(default_factory=lambda: {0, 1, ROWS, COLS})

    def __post_init__(self) -> None:
        self.random = np.random.default_rng(self.seed)
        self.x = self.random.integers(-900, 900, (ROWS, COLS)).astype(np.float32) / 8
        self.arrays = {"a": self.x.copy(), "b": self.x.copy(), "h": self.x.astype(np.float16)}
        self.y = self.x.copy()

    def constant(self, value: int) -> str:
        self.constants.add(value)
        return f"%c{value}"

    def box(self, element: str, *, ragged: bool) -> tuple[int, int, int, int, int, int]:
        """Offsets, sizes and valid extents of a part that begins on a block."""
        pick = self.random.integers
        i, j = int(pick(ROWS)), int(pick(COLS // 16)) * 16
        rows, cols = int(pick(1, ROWS - i + 1)), int(pick(1, (COLS - j) // 16 + 1)) * 16
        valid = (int(pick(1, rows + 1)), int(pick(1, cols + 1))) if ragged else (rows, cols)
        return i, j, rows, cols, *valid

    def part(self, tile: str, box: tuple[int, int, int, int, int, int]) -> Part:
        """A part with these extents, its valid region stated by the type, by constants, or at run time."""
        i, j, rows, cols, down, across = box
        element = "f16" if tile == "h" else "f32"
        whole = tile_type(element, ROWS, COLS)
        offsets = f"{self.constant(i)}, {self.constant(j)}"
        self.count += 1
        name, way = f"%s{self.count}", int(self.random.integers(4))
        kind = tile_type(element, rows, cols, (down, across))
        array = self.arrays[tile][i : i + down, j : j + across]
        if way == 0:
            self.lines.append(f"{name} = pto.subview %{tile}[{offsets}] sizes [{rows}, {cols}] : {whole} -> {kind}")
        elif way == 1:
            valid = f"{self.constant(down)}, {self.constant(across)}"
            self.lines.append(
                f"{name} = pto.subview %{tile}[{offsets}] sizes [{rows}, {cols}] valid [{valid}] : {whole}"
            )
        elif way == 2:  # of a part that has the columns alone
            half = tile_type(element, ROWS, COLS - j)
            self.lines.append(
                f"{name}w = pto.subview %{tile}[%c0, {self.constant(j)}] sizes [{ROWS}, {COLS - j}] : {whole}"
            )
            self.lines.append(
                f"{name} = pto.subview {name}w[{self.constant(i)}, %c0] sizes [{rows}, {cols}] : {half} -> {kind}"
            )
        else:
            kind = f"!pto.tile_buf<vec, {rows}x{cols}x{element}, valid=?x?>"
            self.lines.append(f"{name}i = arith.addi %zero, {self.constant(i)} : index")
            for axis, extent in (("r", down), ("c", across)):
                self.lines.append(f"{name}{axis} = arith.addi %zero, {self.constant(extent)} : index")
            self.lines.append(
                f"{name} = pto.subview %{tile}[{name}i, {self.constant(j)}] sizes [{rows}, {cols}] valid [{name}r, {name}c] : {whole} -> {kind}"
            )
        return Part(name, kind, array)

    def step(self) -> None:
        which = int(self.random.integers(7))
        source, dst = (str(self.random.choice(NAMES["f32"])) for _ in range(2))
        if which in (0, 1) and source != dst:
            self.two_operands(source, dst, add=which == 0)
        elif which == 2:
            self.scalar(dst)
        elif which == 3:
            self.cast(source)
        elif which == 4 and source != dst:
            self.move(source, dst)
        elif which == 5:
            self.load(dst)
        else:
            self.store(source)

    def two_operands(self, source: str, dst: str, *, add: bool) -> None:
        box = self.box("f32", ragged=True)
        one, two = self.part(source, box), self.part(dst, box)
        name = "tadd" if add else "tmax"
        self.lines.append(
            f"pto.{name} ins({one.name}, {two.name} : {one.type}, {two.type}) outs({two.name} : {two.type})"
        )
        two.array[...] = one.array + two.array if add else np.maximum(one.array, two.array)

    def scalar(self, dst: str) -> None:
        one = self.part(dst, self.box("f32", ragged=True))
        self.lines.append(f"pto.tmuls ins({one.name}, %half : {one.type}, f32) outs({one.name} : {one.type})")
        one.array[...] = one.array * np.float32(0.5)

    def cast(self, source: str) -> None:
        box = self.box("f16", ragged=True)
        one, two = self.part(source, box), self.part("h", box)
        mode = "{rmode = #pto<round_mode RINT>}"
        self.lines.append(f"pto.tcvt ins({one.name} {mode} : {one.type}) outs({two.name} : {two.type})")
        two.array[...] = one.array.astype(np.float16)

    def move(self, source: str, dst: str) -> None:
        box = self.box("f32", ragged=False)
        one, two = self.part(source, box), self.part(dst, box)
        self.lines.append(f"pto.tmov ins({one.name} : {one.type}) outs({two.name} : {two.type})")
        two.array[...] = one.array

    def load(self, dst: str) -> None:
        box = self.box("f32", ragged=True)
        one = self.part(dst, box)
        view, there = self.view("vx", box), self.x[self.there(box)]
        self.lines.append(f"pto.tload ins({view}) outs({one.name} : {one.type})")
        one.array[...] = there

    def store(self, source: str) -> None:
        box = self.box("f32", ragged=True)
        one = self.part(source, box)
        view = self.view("vy", box)
        self.lines.append(f"pto.tstore ins({one.name} : {one.type}) outs({view})")
        self.y[self.there(box)] = one.array

    def there(self, box: tuple[int, int, int, int, int, int]) -> tuple[slice, slice]:
        i, j, _, _, down, across = box
        return slice(i, i + down), slice(j, j + across)

    def view(self, name: str, box: tuple[int, int, int, int, int, int]) -> str:
        """A partition of the valid extents at the offsets of the part, and its type."""
        i, j, _, _, down, across = box
        self.count += 1
        at, kind = f"{self.constant(i)}, {self.constant(j)}", f"!pto.partition_tensor_view<{down}x{across}xf32>"
        self.lines.append(
            f"%p{self.count} = pto.partition_view %{name}, offsets = [{at}], sizes = [{self.constant(down)}, {self.constant(across)}] : !pto.tensor_view<?x?xf32> -> {kind}"
        )
        return f"%p{self.count} : {kind}"

    def text(self) -> str:
        """The program: x goes to all tiles and to y, the steps follow, the tiles are stored at the end."""
        whole, part = tile_type("f32", ROWS, COLS), f"!pto.partition_tensor_view<{ROWS}x{COLS}x"
        rows = [
            f'module attributes {{pto.target_arch = "{self.target}"}} {{',
            "func.func @k(%x: !pto.ptr<f32>, %y: !pto.ptr<f32>, %oa: !pto.ptr<f32>, %ob: !pto.ptr<f32>, %oh: !pto.ptr<f16>, %zero: index) {",
        ]
        rows += [f"%c{value} = arith.constant {value} : index" for value in sorted(self.constants)]
        rows.append("%half = arith.constant 0.5 : f32")
        for name, element in (("x", "f32"), ("y", "f32"), ("oa", "f32"), ("ob", "f32"), ("oh", "f16")):
            rows.append(
                f"%v{name} = pto.make_tensor_view %{name}, shape = [%c{ROWS}, %c{COLS}], strides = [%c{COLS}, %c1] : !pto.tensor_view<?x?x{element}>"
            )
            rows.append(
                f"%w{name} = pto.partition_view %v{name}, offsets = [%c0, %c0], sizes = [%c{ROWS}, %c{COLS}] : !pto.tensor_view<?x?x{element}> -> {part}{element}>"
            )
        half = tile_type("f16", ROWS, COLS)
        rows += [f"%a = pto.alloc_tile : {whole}", f"%b = pto.alloc_tile : {whole}", f"%h = pto.alloc_tile : {half}"]
        rows += [f"pto.tload ins(%wx : {part}f32>) outs(%{name} : {whole})" for name in "ab"]
        rows.append(f"pto.tcvt ins(%a {{rmode = #pto<round_mode RINT>}} : {whole}) outs(%h : {half})")
        rows.append(f"pto.tstore ins(%a : {whole}) outs(%wy : {part}f32>)")
        rows += self.lines
        rows += [f"pto.tstore ins(%{name} : {whole}) outs(%wo{name} : {part}f32>)" for name in "ab"]
        rows.append(f"pto.tstore ins(%h : {half}) outs(%woh : {part}f16>)")
        return "\n".join([*rows, "return", "}", "}", ""])


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
    assert parse(print_program(parse(text))) == parse(text)
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
    loaded = load_program(kernel_file(tmp_path, program.text()), None, None, {"zero": 0})
    buffer = np.zeros(loaded.target.memories["ub"].capacity_bytes, np.uint8)
    memory = {name: np.zeros(program.x.nbytes, np.uint8) for name in loaded.arguments}
    memory["x"] = program.x.view(np.uint8).reshape(-1).copy()
    compute_of(loaded.target)(loaded.tree, buffer, memory, shortcuts=False)
    np.testing.assert_array_equal(
        memory["oh"].view("<f2")[: program.x.size].reshape(program.x.shape), program.arrays["h"]
    )


HALVES = """
%f = arith.constant 2.0 : f32
%t = pto.alloc_tile : !pto.tile_buf<vec, 8x64xf32>
%v = pto.make_tensor_view %x, shape = [%c8, %c64], strides = [%c64, %c1] : !pto.tensor_view<?x?xf32>
%w = pto.make_tensor_view %y, shape = [%c8, %c64], strides = [%c64, %c1] : !pto.tensor_view<?x?xf32>
%p = pto.partition_view %v, offsets = [%c0, %c0], sizes = [%c8, %c64] : !pto.tensor_view<?x?xf32> -> !pto.partition_tensor_view<8x64xf32>
%q = pto.partition_view %w, offsets = [%c0, %c0], sizes = [%c8, %c32] : !pto.tensor_view<?x?xf32> -> !pto.partition_tensor_view<8x32xf32>
%l = pto.subview %t[%c0, %c0] sizes [8, 32] : !pto.tile_buf<vec, 8x64xf32>
%r = pto.subview %t[%c0, %c32] sizes [8, 32] : !pto.tile_buf<vec, 8x64xf32>
pto.tload ins(%p : !pto.partition_tensor_view<8x64xf32>) outs(%t : !pto.tile_buf<vec, 8x64xf32>)
pto.set_flag[<PIPE_MTE2>, <PIPE_V>, <EVENT_ID0>]
pto.wait_flag[<PIPE_MTE2>, <PIPE_V>, <EVENT_ID0>]
pto.set_flag[<PIPE_MTE2>, <PIPE_MTE3>, <EVENT_ID0>]
pto.wait_flag[<PIPE_MTE2>, <PIPE_MTE3>, <EVENT_ID0>]
pto.tmuls ins({0}, %f : !pto.tile_buf<vec, 8x32xf32>, f32) outs({0} : !pto.tile_buf<vec, 8x32xf32>)
pto.tstore ins(%r : !pto.tile_buf<vec, 8x32xf32>) outs(%q : !pto.partition_tensor_view<8x32xf32>)
pto.barrier <PIPE_ALL>
"""


@pytest.mark.parametrize("target", TARGETS)
def test_only_halves_that_share_bytes_race(target: str, tmp_path: Path):
    file = tmp_path / "k.pto"
    x = np.arange(512, dtype=np.float32).reshape(8, 64)
    file.write_text(kernel(HALVES.format("%l"), "%x: !pto.ptr<f32>, %y: !pto.ptr<f32>"))
    found = run(file, target, inputs={"x": x})
    np.testing.assert_array_equal(found.outputs["y"].reshape(-1)[:32], x[0, 32:])
    file.write_text(kernel(HALVES.format("%r"), "%x: !pto.ptr<f32>, %y: !pto.ptr<f32>"))
    with pytest.raises(CastsimError, match=r"ub bytes 128 \.\. 255"):
        run(file, target, inputs={"x": x})


def test_a_tile_is_in_use_as_long_as_its_parts_are():
    text = """
%t = pto.alloc_tile : !pto.tile_buf<vec, 8x64xf32>
%m = pto.alloc_multi_tile : !pto.multi_tile_buf<vec, 8x32xf32, count=2>
%u = pto.alloc_tile : !pto.tile_buf<vec, 8x32xf32>
%l = pto.subview %t[%c0, %c0] sizes [8, 32] : !pto.tile_buf<vec, 8x64xf32>
%k = pto.subview %l[%c0, %c0] sizes [4, 32] : !pto.tile_buf<vec, 8x32xf32>
%s = pto.multi_tile_get %m[%c1] : !pto.multi_tile_buf<vec, 8x32xf32, count=2> -> !pto.tile_buf<vec, 8x32xf32>
pto.tabs ins(%l : !pto.tile_buf<vec, 8x32xf32>) outs(%u : !pto.tile_buf<vec, 8x32xf32>)
pto.tabs ins(%u : !pto.tile_buf<vec, 8x32xf32>) outs(%s : !pto.tile_buf<vec, 8x32xf32>)
pto.tabs ins(%k : !pto.tile_buf<vec, 4x32xf32>) outs(%k : !pto.tile_buf<vec, 4x32xf32>)
"""
    (function,) = parse(kernel(text)).functions
    found = lifetimes_of(function.body or ())
    first = found[0].first
    assert first is not None
    assert [(one.first, one.last) for one in found] == [(first, first + 2), (first + 1, first + 1), (first, first + 1)]


def test_valid_extents_belong_to_a_value_not_to_its_bytes():
    kind = "!pto.tile_buf<vec, 8x64xf32, valid=?x?>"
    part = "!pto.tile_buf<vec, 4x64xf32, valid=?x?>"
    text = f"""
%zero = arith.subi %n, %n : index
%four = arith.addi %zero, %c4 : index
%t = pto.alloc_tile valid_row = %c8 valid_col = %c64 : {kind}
%s = pto.subview %t[%c0, %c0] sizes [4, 64] valid [%four, %n] : {kind} -> {part}
pto.set_validshape %t, %c2, %c32 : {kind}
pto.tabs ins(%s : {part}) outs(%s : {part})
pto.set_validshape %s, %c1, %c16 : {part}
pto.tabs ins(%t : {kind}) outs(%t : {kind})
pto.tabs ins(%s : {part}) outs(%s : {part})
"""
    found = walk(kernel(text, "%n: index"), {"n": 64})
    names = [one.text for one in found.tree.instructions if one.text.startswith("tabs")]
    assert names == ["tabs f32 4 x 64", "tabs f32 2 x 32", "tabs f32 1 x 16"]
    with pytest.raises(CastsimError, match="5 valid rows exceed the 4 of the tile"):
        walk(
            kernel(text.replace("%s, %c1", "%s, %n"), "%n: index").replace("valid [%four, %n]", "valid [%four, %c64]"),
            {"n": 5},
        )
