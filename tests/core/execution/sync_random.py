"""Random kernels with loops and branches in each other, for inserted synchronisation."""

from __future__ import annotations

import random

TILE = "!pto.tile_buf<vec, {0}xf32>"
VIEW, PART = "!pto.tensor_view<{0}xf32>", "!pto.partition_tensor_view<{0}xf32>"
SMALL, LARGE = "1x16", "16x64"
"""Extents of a tile: of 64 bytes, or of the 4 KiB that a dense result needs to be read without a barrier."""


def head(extents: str) -> str:
    """Arguments, views and four tiles, of which the second and the third share half their bytes."""
    rows, cols = extents.split("x")
    size = int(rows) * int(cols) * 4
    tile, view, part = (kind.format(extents) for kind in (TILE, VIEW, PART))
    lines = [
        "func.func @k(%p: !pto.ptr<f32>, %q: !pto.ptr<f32>, %n: index, %m: index, %c: i1, %d: i1)",
        "attributes {pto.entry} {",
        "%c0 = arith.constant 0 : index",
        "%c1 = arith.constant 1 : index",
        f"%rows = arith.constant {rows} : index",
        f"%cols = arith.constant {cols} : index",
        "%one = arith.constant 1.0 : f32",
    ]
    for name in "pq":
        lines.append(
            f"%v{name} = pto.make_tensor_view %{name}, shape = [%rows, %cols], strides = [%cols, %c1] : {view}"
        )
        sizes = "offsets = [%c0, %c0], sizes = [%rows, %cols]"
        lines.append(f"%p{name} = pto.partition_view %v{name}, {sizes} : {view} -> {part}")
    for number, halves in enumerate((0, 2, 3, 5)):
        lines.append(f"%a{number} = arith.constant {halves * size // 2} : i64")
        lines.append(f"%t{number} = pto.alloc_tile addr = %a{number} : {tile}")
    return "\n".join(lines)


class Maker:
    def __init__(self, seed: int, extents: str) -> None:
        self.draw = random.Random(seed)
        self.extents = extents
        self.names = 0

    def text(self) -> str:
        return "\n".join([head(self.extents), *self.body(3, ()), "return", "}", ""])

    def body(self, depth: int, variables: tuple[str, ...]) -> list[str]:
        found: list[str] = []
        for _ in range(self.draw.randint(1, 4)):
            kind = self.draw.random()
            if depth and kind < 0.22:
                name = self.name("i")
                inner = self.body(depth - 1, (*variables, name))
                found += [f"scf.for {name} = %c0 to %{self.draw.choice('nm')} step %c1 {{", *inner, "}"]
            elif depth and kind < 0.42:
                found += self.branch(depth, variables)
            else:
                found.append(self.operation())
        return found

    def branch(self, depth: int, variables: tuple[str, ...]) -> list[str]:
        condition, found = f"%{self.draw.choice('cd')}", []
        if variables and self.draw.random() < 0.5:
            condition = self.name("k")
            other = f"%c{self.draw.randint(0, 1)}"
            found.append(f"{condition} = arith.cmpi eq, {self.draw.choice(variables)}, {other} : index")
        found += [f"scf.if {condition} {{", *self.body(depth - 1, variables)]
        if self.draw.random() < 0.4:
            found += ["} else {", *self.body(depth - 1, variables)]
        return [*found, "}"]

    def operation(self) -> str:
        # Tiles that overlap in part are refused within one operation.
        avoided = self.draw.choice([1, 2])
        one, two, three = (self.draw.choice([k for k in range(4) if k != avoided]) for _ in range(3))
        tile, part, far = TILE.format(self.extents), PART.format(self.extents), self.draw.choice("pq")
        return self.draw.choice(
            [
                f"pto.tload ins(%p{far} : {part}) outs(%t{one} : {tile})",
                f"pto.tstore ins(%t{one} : {tile}) outs(%p{far} : {part})",
                f"pto.tadds ins(%t{one}, %one : {tile}, f32) outs(%t{two} : {tile})",
                f"pto.tadd ins(%t{one}, %t{two} : {tile}, {tile}) outs(%t{three} : {tile})",
            ]
        )

    def name(self, letter: str) -> str:
        self.names += 1
        return f"%{letter}{self.names}"
