"""Random programs on parts of tiles, and a NumPy model of them that knows slices of arrays only."""

# A `.pto` statement stays on one line.
# ruff: noqa: E501

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np

ROWS, COLS = 16, 64
NAMES = {"f32": ("a", "b"), "f16": ("h",)}
STEP = {"f32": 8, "f16": 16}  # columns of a block of 32 bytes


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
        """Write one operation and do it."""
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
