"""What a refused program is made of: a common beginning, lines behind it, the reason and the place of the refusal."""

# A `.pto` statement stays on one line.
# ruff: noqa: E501

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Case:
    """Lines that are refused on some targets, with what the message says."""

    name: str
    body: str
    reason: str
    targets: tuple[str, ...] = ("a2a3", "a5")
    arguments: str = ""


def tile(element: str = "f32", rows: int = 16, cols: int = 64, **keys: object) -> str:
    """A tile type in the compact spelling."""
    location = keys.pop("loc", "vec")
    more = "".join(f", {key}={value}" for key, value in keys.items())
    return f"!pto.tile_buf<{location}, {rows}x{cols}x{element}{more}>"


T, H, B, I32, S8, U8 = (tile(element) for element in ("f32", "f16", "bf16", "i32", "i8", "ui8"))
SMALL, WIDE = tile(rows=8), tile(cols=128)
RAGGED = tile(valid="8x64")
COLUMN = tile(rows=16, cols=1, blayout="col_major")
VIEW, PART = "!pto.tensor_view<?x?xf32>", "!pto.partition_tensor_view<16x64xf32>"
NAMES = {
    "t": T, "u": T, "v": T, "h": H, "b": B, "i": I32, "j": I32, "s8": S8, "u8": U8, "small": SMALL, "wide": WIDE,
    "ragged": RAGGED, "column": COLUMN, "boxed": tile(slayout="row_major", blayout="col_major"),
    "acc": tile(loc="acc", rows=16, cols=64, slayout="row_major", blayout="col_major", fractal=1024),
    "zero": tile(pad=1), "one": tile("i32", 1, 64), "tall": tile(rows=64, cols=16), "i16": tile("i16"),
}  # fmt: skip
CONSTANTS = (0, 1, 2, 3, 8, 16, 64, 100)


def text(case: Case) -> tuple[str, int, int]:
    """Return the program of a case, and line and column of what is refused."""
    allocated = "".join(
        f"%{name} = pto.alloc_tile : {kind}\n" for name, kind in NAMES.items() if f"%{name}" in case.body
    )
    constants = "".join(f"%c{value} = arith.constant {value} : index\n" for value in CONSTANTS)
    head = f"func.func @k(%p: !pto.ptr<f32>, %q: !pto.ptr<i32>, %x: f32, %n: i32{case.arguments}) attributes {{pto.entry}} {{\n"
    view = (
        f"%view = pto.make_tensor_view %p, shape = [%c16, %c64], strides = [%c64, %c1] : {VIEW}\n"
        f"%part = pto.partition_view %view, offsets = [%c0, %c0], sizes = [%c16, %c64] : {VIEW} -> {PART}\n"
    )
    body = (
        case.body
        if case.body.startswith("func.func")
        else f"{head}{constants}{view}{allocated}{case.body}\nreturn\n}}\n"
    )
    before = body[: body.index("§")]
    return body.replace("§", ""), before.count("\n") + 1, len(before) - before.rfind("\n")


def dps(name: str, inputs: str, output: str, attributes: str = "") -> str:
    """An operation on tiles of the table, by their names; scalars `x` (f32) and `n` (i32)."""
    kinds = {**NAMES, "x": "f32", "n": "i32"}
    names = inputs.split()
    given = attributes and f" {attributes}"
    reads = f"{', '.join(f'%{each}' for each in names)}{given} : {', '.join(kinds[each] for each in names)}"
    return f"§pto.{name} ins({reads}) outs(%{output} : {kinds[output]})"
