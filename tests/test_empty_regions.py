"""Valid regions without elements: every operation is legal and does nothing."""

# A `.pto` statement stays on one line.
# ruff: noqa: E501

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from execution_programs import kernel, touched

from castsim import run
from castsim.isa.pto.vector_operations import VECTOR_OPERATIONS, Kind, Role
from castsim.isa.warning_text import WarningKind, of_kind
from castsim.running.program_loading import load_program
from castsim.targets import load_target

EMPTY = ((0, 32), (8, 0), (0, 0))
TARGETS = ("a2a3", "a5")


def tile(element: str = "f32", pad: int = 0) -> str:
    return f"!pto.tile_buf<vec, 8x32x{element}, valid=?x?{f', pad={pad}' if pad else ''}>"


COLUMN = "!pto.tile_buf<vec, 8x1xf32, valid=?x?, blayout=col_major>"


def written(name: str, form: tuple[Role, ...], rows: int, cols: int) -> str:
    """One operation on tiles of so many valid rows and columns."""
    operation = VECTOR_OPERATIONS[name]
    kind = operation.kind
    lines = [
        "%f = arith.constant 2.0 : f32",
        f"%r = arith.constant {rows} : index",
        f"%q = arith.constant {cols} : index",
    ]
    operands: list[tuple[str, str]] = []

    def add(kind: str, valid_row: str = "%r", valid_col: str = "%q") -> tuple[str, str]:
        lines.append(f"%t{len(lines)} = pto.alloc_tile valid_row = {valid_row} valid_col = {valid_col} : {kind}")
        return f"%t{len(lines) - 1}", kind

    for role in form:
        if role is Role.SCALAR:
            operands.append(("%f", "f32"))
        elif role is Role.MASK:
            operands.append(add(tile("i8")))
        elif kind is Kind.ROW_BROADCAST and len(operands) == 1:
            operands.append(add(COLUMN, "%r", "%c1"))
        else:
            operands.append(add(tile()))
    match kind:
        case Kind.ROW_REDUCE | Kind.ROW_ARGUMENT:
            dst = add(COLUMN.replace("f32", "i32") if kind.gives_places else COLUMN, "%r", "%c1")
        case Kind.COLUMN_REDUCE | Kind.COLUMN_ARGUMENT:
            dst = add(tile("i32" if kind.gives_places else "f32"), "%c1", "%q")
        case Kind.COMPARE:
            dst = add(tile("i8"))
        case _:
            dst = add(tile())
    flag = " {isBinary = true}" if operation.attribute == "isBinary" and len(operands) > 1 else ""
    names, types = (", ".join(each) for each in zip(*operands, strict=True)) if operands else ("", "")
    return "\n".join([*lines, f"pto.{name} ins({names}{flag} : {types}) outs({dst[0]} : {dst[1]})"])


REARRANGING = (Kind.RAMP, Kind.GATHER, Kind.TRANSPOSE, Kind.CONCATENATE, Kind.COUNTED_CONCATENATE)
REARRANGING += (Kind.PATTERN_GATHER, Kind.COMPARE_GATHER, Kind.SORT, Kind.MERGE)
REARRANGING += (Kind.QUANTISE, Kind.DEQUANTISE, Kind.PACK, Kind.BLOCK_QUANTISE, Kind.BOX)  # in test_tile_quantisation
"""Operations whose operands have shapes of their own; `test_rearranging_work` has them without elements too."""

# A fill has work to do where its source is empty; its rows are those of the destination.
FORMS = [
    (name, form)
    for name, operation in VECTOR_OPERATIONS.items()
    for form in operation.forms
    if operation.kind not in (Kind.FILL, *REARRANGING) and form
]


@pytest.mark.parametrize("target", TARGETS)
@pytest.mark.parametrize(("name", "form"), FORMS, ids=lambda part: part if isinstance(part, str) else "".join(part))
def test_no_element_no_work(name: str, form: tuple[Role, ...], target: str, tmp_path: Path):
    rule = load_target(target).tile_operation(name)
    if rule is None or (rule.tmp == "refused" and Role.TMP in form) or "f32" not in rule.types:
        pytest.skip(f"{target} does not take it")
    for rows, cols in EMPTY:
        file = tmp_path / "k.pto"
        file.write_text(kernel(written(name, form, rows, cols), "%x: !pto.ptr<f32>"))
        found = load_program(file, target, None, {})
        assert not touched(found.executed), (rows, cols)
        nothing = of_kind(found.executed.warnings, WarningKind.OPERATION)
        by_rows = VECTOR_OPERATIONS[name].kind in (Kind.ROW_REDUCE, Kind.ROW_ARGUMENT)
        reduces = by_rows or VECTOR_OPERATIONS[name].kind in (Kind.COLUMN_REDUCE, Kind.COLUMN_ARGUMENT)
        kept = reduces and (rows if by_rows else cols)
        assert ("stays as it is" in "".join(nothing)) is bool(kept)


MOVES = """
%a = pto.alloc_tile valid_row = %r valid_col = %q : !pto.tile_buf<vec, 8x32xf32, valid=?x?>
%b = pto.alloc_tile valid_row = %r valid_col = %q : !pto.tile_buf<vec, 8x32xf16, valid=?x?>
%vx = pto.make_tensor_view %x, shape = [%c8, %c32], strides = [%c32, %c1] : !pto.tensor_view<?x?xf32>
%vy = pto.make_tensor_view %y, shape = [%c8, %c32], strides = [%c32, %c1] : !pto.tensor_view<?x?xf16>
%px = pto.partition_view %vx, offsets = [%c0, %c0], sizes = [%r, %q] : !pto.tensor_view<?x?xf32> -> !pto.partition_tensor_view<?x?xf32>
%py = pto.partition_view %vy, offsets = [%c0, %c0], sizes = [%r, %q] : !pto.tensor_view<?x?xf16> -> !pto.partition_tensor_view<?x?xf16>
pto.tload ins(%px : !pto.partition_tensor_view<?x?xf32>) outs(%a : !pto.tile_buf<vec, 8x32xf32, valid=?x?>)
pto.tcvt ins(%a : !pto.tile_buf<vec, 8x32xf32, valid=?x?>) outs(%b : !pto.tile_buf<vec, 8x32xf16, valid=?x?>)
pto.tstore ins(%b : !pto.tile_buf<vec, 8x32xf16, valid=?x?>) outs(%py : !pto.partition_tensor_view<?x?xf16>)
"""


@pytest.mark.parametrize("target", TARGETS)
@pytest.mark.parametrize(("rows", "cols"), [*EMPTY, (3, 5)])
def test_loads_casts_and_stores_of_nothing(target: str, rows: int, cols: int, tmp_path: Path):
    file = tmp_path / "k.pto"
    file.write_text(kernel(MOVES, "%x: !pto.ptr<f32>, %y: !pto.ptr<f16>, %r: index, %q: index"))
    x = np.arange(256, dtype=np.float32).reshape(8, 32)
    found = run(file, target, inputs={"x": x}, args={"r": rows, "q": cols})
    expected = np.zeros_like(x, np.float16)
    expected[:rows, :cols] = x[:rows, :cols]
    np.testing.assert_array_equal(found.outputs["y"], expected)
    slow = run(file, target, inputs={"x": x}, args={"r": rows, "q": cols}, engine="event")
    assert slow.cycles == found.cycles
    assert (found.cycles < 100) == (rows * cols == 0)
