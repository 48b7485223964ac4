"""Programs of one vector operation between loads and a store, for what `castsim expand` makes of them."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
from kit.pto_text import module, moved
from kit.work_model import special
from kit.work_programs import NATIVE

from castsim.isa.pto.vector_operations import VECTOR_OPERATIONS, Kind, Role

FLOATS = ("f16", "bf16", "f32")


@dataclass(frozen=True)
class Operand:
    """A tile of a program: element, physical and valid extents, further fields of its type."""

    element: str
    rows: int
    cols: int
    valid: tuple[int, int]
    fields: str = ""
    column: bool = False
    """Whether the operation takes it as a column-major tile of one column."""

    @property
    def kind(self) -> str:
        if self.column:
            return f"!pto.tile_buf<vec, {self.cols}x1x{self.element}, valid={self.valid[1]}x1, blayout=col_major>"
        return self.row_kind

    @property
    def row_kind(self) -> str:
        valid = "" if self.valid == (self.rows, self.cols) else f", valid={self.valid[0]}x{self.valid[1]}"
        return f"!pto.tile_buf<vec, {self.rows}x{self.cols}x{self.element}{valid}{self.fields}>"

    @property
    def part(self) -> str:
        return f"{self.valid[0]}x{self.valid[1]}x{self.element}"


@dataclass(frozen=True)
class Case:
    """An operation on tiles of `rows` x `cols` elements, of which so many are valid.

    `form` is the number of its operand list, `word` its comparison, `column` says that the vector of a row broadcast is
    a column, `first` that it stands before the tile.
    """

    mnemonic: str
    element: str
    shape: tuple[int, int, int, int]
    form: int = 0
    word: str = "lt"
    column: bool = False
    first: bool = False
    scalar: str = ""
    pad: int = 1
    options: tuple[str, ...] = ()

    def operands(self) -> tuple[dict[str, Operand], Operand]:
        """The tiles by their letters, and the destination."""
        rows, cols, *valid = self.shape
        size = NATIVE[self.element].itemsize
        whole = Operand(self.element, rows, cols, (valid[0], valid[1]))
        operation = VECTOR_OPERATIONS[self.mnemonic]
        tiles, dst = dict.fromkeys("abc", whole), whole
        vector = Operand(self.element, 1, -(-cols * size // 32) * 32 // size, (1, valid[1]))
        match operation.kind:
            case Kind.ROW_REDUCE:
                dst = Operand(self.element, rows, 32 // size, (valid[0], 1))
            case Kind.ROW_ARGUMENT:
                dst = Operand("i32", rows, 8, (valid[0], 1))
            case Kind.COLUMN_REDUCE | Kind.RAMP:
                dst = vector
            case Kind.COLUMN_ARGUMENT:
                dst = replace(vector, element="i32")
            case Kind.COMPARE:
                dst = Operand("i8", rows, max(cols, 32), (valid[0], valid[1]))
            case Kind.ROW_EXPAND:
                tiles["a"] = Operand(self.element, rows, 32 // size, (valid[0], 32 // size))
            case Kind.ROW_BROADCAST:
                return self._row_broadcast(tiles, dst)
            case Kind.COLUMN_EXPAND | Kind.COLUMN_BROADCAST:
                tiles["a" if operation.kind is Kind.COLUMN_EXPAND else "b"] = vector
            case Kind.FILL:
                dst = Operand(self.element, rows, cols, (rows, cols), f", pad={self.pad}")
            case Kind.PART:
                tiles["b"] = replace(whole, valid=(max(1, valid[0] - 1), max(1, valid[1] - 3)))
            case _:
                pass
        return tiles, dst

    def _row_broadcast(self, tiles: dict[str, Operand], dst: Operand) -> tuple[dict[str, Operand], Operand]:
        """A tile with a block or, in a column, an element per row: of as many rows as fill blocks."""
        rows, cols, *valid = self.shape
        size = NATIVE[self.element].itemsize
        place = "a" if self.first else "b"
        if not self.column:
            return {**tiles, place: Operand(self.element, rows, 32 // size, (valid[0], 32 // size))}, dst
        wide = -(-rows * size // 32) * 32 // size
        tall = Operand(self.element, wide, cols, (wide, valid[1]))
        return {**dict.fromkeys("abc", tall), place: Operand(self.element, 1, wide, (1, wide), column=True)}, tall

    def program(self) -> str:
        """The text: every source loaded, the destination too where not all of it is written."""
        operation = VECTOR_OPERATIONS[self.mnemonic]
        form = operation.forms[self.form]
        tiles, dst = self.operands()
        rows, cols = self.shape[:2]
        extra = {Role.MASK: Operand("i8", rows, cols, (rows, cols)), Role.TMP: self._tmp(tiles["a"])}
        letters, loaded, names, kinds = iter("abc"), [], [], []
        for role in form:
            if role is Role.SCALAR:
                names.append("%s")
                kinds.append(self.element)
                continue
            name = next(letters) if role is Role.SOURCE else role.value
            one = tiles.get(name) or extra[role]
            loaded += [] if role is Role.TMP else [(name, one)]
            names.append(f"%{name}")
            kinds.append(one.kind)
        lines, arguments = [], []
        for name, one in [*loaded, ("d", dst)]:
            lines += self._moved(name, one)
            arguments.append(f"%x{name}: !pto.ptr<{one.element}>")
        if Role.TMP in form:
            lines.append(f"%t = pto.alloc_tile : {extra[Role.TMP].kind}")
        if operation.in_place:
            lines = [each for each in lines if not each.startswith(("%d = ", "pto.tload ins(%pxd"))]
            lines.append(f"%d = pto.treshape %a : {tiles['a'].kind} -> {dst.kind}")
        if operation.attribute == "isBinary" and Role.TMP in form:
            names[-1] += " {isBinary = true}"
        given = {"cmpMode": f" {{cmpMode = #pto<cmp {self.word}>}}"}.get(operation.attribute or "", "")
        ins = f"ins({', '.join(names)}{given} : {', '.join(kinds)})"
        lines.append(f"pto.{operation.name} {ins} outs(%d : {dst.kind})")
        lines.append(f"pto.tstore ins(%d : {dst.kind}) outs(%pxd : !pto.partition_tensor_view<{dst.part}>)")
        scalar = self.scalar or {"f16": "1.5", "f32": "-2.25", "bf16": "3.0"}.get(self.element, "5")
        chosen = "".join(f"// castsim: option {each}\n" for each in self.options)
        return chosen + module("a5", arguments, [f"%s = arith.constant {scalar} : {self.element}", *lines])

    def _tmp(self, source: Operand) -> Operand:
        if self.mnemonic == "tsel":
            return Operand("ui32", 1, 16, (1, 16))
        return source

    def _moved(self, name: str, one: Operand) -> list[str]:
        """Lines that allocate a tile and load it; a column is loaded as a row."""
        kind, tile = one.row_kind, f"%{name}" if not one.column else f"%row_{name}"
        lines = [f"{tile} = pto.alloc_tile : {kind}", *moved(f"x{name}", (tile, kind), one.element, *one.valid)]
        return [*lines, f"%{name} = pto.treshape {tile} : {kind} -> {one.kind}"] if one.column else lines

    def inputs(self, seed: int) -> dict[str, np.ndarray]:
        tiles, dst = self.operands()
        form = VECTOR_OPERATIONS[self.mnemonic].forms[self.form]
        letters, found = iter("abc"), {"xd": special(dst.element, dst.valid, seed)}
        for role in form:
            if role is Role.SOURCE:
                name = next(letters)
                found[f"x{name}"] = special(self.element, tiles[name].valid, seed + ord(name))
            elif role is Role.MASK:
                found["xm"] = special("i8", self.shape[:2], seed + 9)
        return found
