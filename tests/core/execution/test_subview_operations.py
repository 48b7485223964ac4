"""Every vector operation on parts of tiles: the values that it has on tiles of their own."""

# A `.pto` statement stays on one line.
# ruff: noqa: E501

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from kit.execution_programs import kernel
from kit.pto_text import moved

from castsim import run
from castsim.isa.pto.vector_operations import VECTOR_OPERATIONS, Kind, Role
from castsim.targets.loader import load_target
from castsim.targets.strided_repeat import STRUCTURES

ROWS, COLS = 8, 64
REARRANGING = (Kind.RAMP, Kind.GATHER, Kind.TRANSPOSE, Kind.CONCATENATE, Kind.COUNTED_CONCATENATE)
REARRANGING += (Kind.PATTERN_GATHER, Kind.COMPARE_GATHER, Kind.SORT, Kind.MERGE)
REARRANGING += (Kind.QUANTISE, Kind.DEQUANTISE, Kind.PACK, Kind.BLOCK_QUANTISE, Kind.BOX)  # in test_tile_quantisation
REARRANGING += STRUCTURES["combination"].kinds  # in test_combined_operations
"""Operations whose operands have shapes of their own; see `test_rearranging_work`."""
FORMS = [
    (name, form)
    for name, operation in VECTOR_OPERATIONS.items()
    for form in operation.forms
    if not operation.in_place and form and operation.kind not in REARRANGING
]


class Writer:
    """A program of one operation; its tiles are parts of larger ones, or tiles of their own."""

    def __init__(self, *, parts: bool) -> None:
        self.parts = parts
        self.count = 0
        self.lines = [
            "%f = arith.constant 2.0 : f32",
            "%n = arith.constant 1024 : index",
            "%o24 = arith.constant 24 : index",
        ]
        view = "!pto.tensor_view<?x?xf32>"
        self.lines.append(f"%v = pto.make_tensor_view %x, shape = [%n, %c64], strides = [%c64, %c1] : {view}")

    def tile(
        self, rows: int, cols: int, element: str = "f32", *, column: bool = False, pad: int = 0, load: bool = True
    ) -> tuple[str, str]:
        """A tile, loaded with lines of %x of its own."""
        self.count += 1
        number = self.count
        layout = (", blayout=col_major" if column else "") + (f", pad={pad}" if pad else "")
        valid = f", valid={rows}x{cols}" if rows < ROWS or (cols < COLS and not column) else ""
        shape = (ROWS, 1) if column else (ROWS, COLS)
        kind = f"!pto.tile_buf<vec, {shape[0]}x{shape[1]}x{element}{valid}{layout}>"
        if self.parts:
            whole = f"!pto.tile_buf<vec, {3 * shape[0]}x{shape[1] if column else 3 * shape[1]}x{element}{layout}>"
            self.lines.append(f"%w{number} = pto.alloc_tile : {whole}")
            offsets = "%c8, %c0" if column else "%c8, %c64"
            self.lines.append(
                f"%t{number} = pto.subview %w{number}[{offsets}] sizes [{shape[0]}, {shape[1]}] : {whole} -> {kind}"
            )
        else:
            self.lines.append(f"%t{number} = pto.alloc_tile : {kind}")
        if load and element == "f32" and not column:
            part = f"!pto.partition_tensor_view<{rows}x{cols}xf32>"
            self.lines.append(f"%r{number} = arith.constant {8 * number} : index")
            sizes = f"%c{rows}, %c{cols}"
            self.lines.append(
                f"%p{number} = pto.partition_view %v, offsets = [%r{number}, %c0], sizes = [{sizes}] : !pto.tensor_view<?x?xf32> -> {part}"
            )
            self.lines.append(f"pto.tload ins(%p{number} : {part}) outs(%t{number} : {kind})")
        return f"%t{number}", kind


def text(name: str, form: tuple[Role, ...], target: str, *, parts: bool) -> str:
    """The operation on tiles of 8 x 64; its result goes to %y."""
    operation, kind = VECTOR_OPERATIONS[name], VECTOR_OPERATIONS[name].kind
    out = Writer(parts=parts)
    operands: list[tuple[str, str]] = []
    for role in form:
        if role is Role.SCALAR:
            operands.append(("%f", "f32"))
        elif role is Role.MASK:
            bits, source = out.tile(ROWS, COLS, "i8"), operands[0] if operands else out.tile(ROWS, COLS)
            out.lines.append(f"pto.tcmps ins({source[0]}, %f : {source[1]}, f32) outs({bits[0]} : {bits[1]})")
            operands.append(bits)
        elif kind is Kind.ROW_BROADCAST and len(operands) == 1:
            vector, source, tmp = out.tile(ROWS, 1, column=True), out.tile(ROWS, COLS), out.tile(ROWS, COLS, load=False)
            out.lines.append(
                f"pto.trowmax ins({source[0]}, {tmp[0]} : {source[1]}, {tmp[1]}) outs({vector[0]} : {vector[1]})"
            )
            operands.append(vector)
        elif kind is Kind.COLUMN_BROADCAST and len(operands) == 1:
            operands.append(out.tile(1, COLS))
        else:
            operands.append(out.tile(ROWS, COLS, load=role is Role.SOURCE))
    by_rows = kind in (Kind.ROW_REDUCE, Kind.ROW_ARGUMENT)
    rows, cols = (1 if kind in (Kind.COLUMN_REDUCE, Kind.COLUMN_ARGUMENT) else ROWS), (1 if by_rows else COLS)
    element = "i8" if kind is Kind.COMPARE else "i32" if kind.gives_places else "f32"
    dst = out.tile(rows, cols, element, column=by_rows, pad=1 if kind is Kind.FILL else 0, load=False)
    flag = " {isBinary = true}" if operation.attribute == "isBinary" and len(operands) > 1 else ""
    names, types = (", ".join(each) for each in zip(*operands, strict=True))
    out.lines.append(f"pto.{name} ins({names}{flag} : {types}) outs({dst[0]} : {dst[1]})")
    if kind is Kind.COMPARE:
        bits, source, tmp = dst, operands[0], out.tile(ROWS, COLS, load=False)
        dst = out.tile(ROWS, COLS, load=False)
        other = out.tile(ROWS, COLS)
        out.lines.append(
            f"pto.tsel ins({bits[0]}, {source[0]}, {other[0]}, {tmp[0]} : {bits[1]}, {source[1]}, {other[1]}, {tmp[1]}) outs({dst[0]} : {dst[1]})"
        )
    stored = "i32" if kind.gives_places else "f32"
    out.lines += moved("y", dst, stored, rows, cols, load=False, dn=by_rows)
    return kernel("\n".join(out.lines), f"%x: !pto.ptr<f32>, %y: !pto.ptr<{stored}>")


@pytest.mark.parametrize("target", ["a2a3", "a5"])
@pytest.mark.parametrize(("name", "form"), FORMS, ids=lambda part: part if isinstance(part, str) else "".join(part))
def test_values_are_those_of_tiles_of_their_own(name: str, form: tuple[Role, ...], target: str, tmp_path: Path):
    rule = load_target(target).tile_operation(name)
    if rule is None or (rule.tmp == "refused" and Role.TMP in form) or "f32" not in rule.types:
        pytest.skip(f"{target} does not take it")
    x = np.random.default_rng(5).uniform(0.5, 4, (1024, 64)).astype(np.float32)
    found = []
    for parts in (False, True):
        file = tmp_path / "k.pto"
        file.write_text(text(name, form, target, parts=parts))
        made = run(file, target, inputs={"x": x}, races="ignore")
        assert made.cycles == run(file, target, inputs={"x": x}, races="ignore", engine="event").cycles
        found.append(made.outputs["y"])
    assert found[0].any()
    np.testing.assert_array_equal(found[0], found[1])
