"""What the vendor's assembler or library must refuse is refused, with the reason, the line and the column.

Sources: docs/reference/pto.md sections 2 to 7, by the heading of each group.
"""

# A `.pto` statement stays on one line.
# ruff: noqa: E501

from __future__ import annotations

import re
from dataclasses import dataclass
from pathlib import Path

import pytest

from castsim import run
from castsim.__main__ import main
from castsim.isa.errors import CastsimError


@dataclass(frozen=True)
class Case:
    """Lines that are refused on some targets, with what the message says."""

    name: str
    body: str
    reason: str
    targets: tuple[str, ...]


def tile(element: str = "f32", rows: int = 16, cols: int = 64, **keys: object) -> str:
    """A tile type in the compact spelling."""
    location = keys.pop("loc", "vec")
    more = "".join(f", {key}={value}" for key, value in keys.items())
    return f"!pto.tile_buf<{location}, {rows}x{cols}x{element}{more}>"


NAMES = {
    "t": tile(), "u": tile(), "v": tile(), "h": tile("f16"), "b": tile("bf16"), "i": tile("i32"), "j": tile("i32"),
    "s8": tile("i8"), "u8": tile("ui8"), "small": tile(rows=8), "wide": tile(cols=128), "ragged": tile(valid="8x64"),
    "column": tile(rows=16, cols=1, blayout="col_major"), "boxed": tile(slayout="row_major", blayout="col_major"),
    "acc": tile(loc="acc", rows=16, cols=64, slayout="row_major", blayout="col_major", fractal=1024),
    "zero": tile(pad=1), "one": tile("i32", 1, 64), "tall": tile(rows=64, cols=16), "i16": tile("i16"),
}  # fmt: skip
VIEW, PART = "!pto.tensor_view<?x?xf32>", "!pto.partition_tensor_view<16x64xf32>"
CONSTANTS = (0, 1, 2, 3, 8, 16, 64, 100)
ROWS = """
## types
zero rows | %a = §pto.alloc_tile : !pto.tile_buf<vec, 0x64xf32> | 0 rows and 64 columns is empty
zero columns | %a = §pto.alloc_tile : !pto.tile_buf<vec, 16x0xf32> | 16 rows and 0 columns is empty
fractal of boxes | %a = pto.alloc_tile : !pto.tile_buf<§mat, 16x64xf32, slayout=row_major, fractal=100> | boxes of 100 bytes
more valid rows than rows | %a = pto.alloc_tile : !pto.tile_buf<§vec, 16x64xf32, valid=17x64> | 17 valid rows
row that is no whole block | %a = §pto.alloc_tile : !pto.tile_buf<vec, 16x5xf32> | not a multiple of 32
column that is no whole block | %a = §pto.alloc_tile : !pto.tile_buf<vec, 5x1xf32, blayout=col_major> | not a multiple of 32
buffer too small | %a = §pto.alloc_tile : !pto.tile_buf<vec, 2048x64xf32> | bytes
## programs
entry that calls itself | func.func @k(%n: i32) attributes {pto.entry} { ; §func.call @k(%n) : (i32) -> () ; return ; } | calls are recursive
some tiles with addresses | %a = arith.constant 0 : i64 ; %s = pto.alloc_tile addr = %a : $T ; %r = §pto.alloc_tile : $T | missing address
address beyond the buffer | %a = arith.constant 400000 : i64 ; %s = §pto.alloc_tile addr = %a : $T | bytes past the end
misaligned address | %a = arith.constant 16 : i64 ; %s = §pto.alloc_tile addr = %a : $T | not 32-byte aligned
blocks | §^bb1: | jumps between blocks
## views
store of another count | §pto.tstore ins(%ragged : $RAGGED) outs(%part : $PART) | elements
load of another type | §pto.tload ins(%part : $PART) outs(%h : $H) | the view holds f32
row-major load of a column-major tile | %a = pto.alloc_tile : !pto.tile_buf<vec, 16x64xf32, blayout=col_major> ; §pto.tload ins(%part : $PART) outs(%a : !pto.tile_buf<vec, 16x64xf32, blayout=col_major>) | needs a row_major tile
## casts
## parts
part without size | %a = pto.subview %t[%c0, %c0] sizes §[0, 64] : $T | positive integer
part of three dimensions | %a = pto.subview %t[%c0, %c0] sizes §[1, 1, 64] : $T | (rows, columns)
part with one valid extent | %a = pto.subview %t[%c0, %c0] sizes [8, 64] valid §[%c8] : $T | (row, column)
part with too many valid rows | %a = pto.subview %t[%c0, %c0] sizes [8, 64] valid [§%c16, %c64] : $T | 16 valid rows of a part of 8
part of another type | %a = pto.subview %t[%c0, %c0] sizes [8, 64] : $T -> §!pto.tile_buf<vec, 8x64xf16> | the result of pto.subview is
part of another shape | %a = pto.subview %t[%c0, %c0] sizes [8, 64] : $T -> §!pto.tile_buf<vec, 4x64xf32> | the result of pto.subview is
part with another pad | %a = pto.subview %t[%c0, %c0] sizes [8, 64] : $T -> §!pto.tile_buf<vec, 8x64xf32, pad=1> | the result of pto.subview is
valid rows of a part | %a = pto.subview %t[%c0, %c0] sizes [8, 64] valid [%c3, %c64] : $T -> §!pto.tile_buf<vec, 8x64xf32, valid=4x64> | the type has 4 valid rows
open rows of a part | %a = pto.subview %t[%c0, %c0] sizes [8, 64] : $T -> §!pto.tile_buf<vec, 8x64xf32, valid=?x64> | the number of valid rows is missing
part behind its tile | %a = pto.subview %t[§%c16, %c0] sizes [8, 64] : $T | of a tile of 16 rows
part beside its tile | %a = pto.subview %t[%c0, §%c8] sizes [8, 64] : $T | of a tile of 64 columns
part of boxes | %a = §pto.subview %acc[%c8, %c0] sizes [8, 64] : $ACC | whole boxes
misaligned part | %a = pto.subview %t[%c0, %c3] sizes [16, 8] : $T ; §pto.texp ins(%a : !pto.tile_buf<vec, 16x8xf32>) outs(%a : !pto.tile_buf<vec, 16x8xf32>) | 32-byte aligned
part as another shape | %a = pto.subview %t[%c0, %c0] sizes [8, 16] : $T ; %r = §pto.treshape %a : !pto.tile_buf<vec, 8x16xf32> -> !pto.tile_buf<vec, 4x32xf32> | treshape
part with one offset | %a = pto.subview %t§[%c0] sizes [1, 64] : $T | 2 indices (row, column), found 1
part of other valid columns | %a = pto.subview %t[%c0, %c0] sizes [8, 64] valid [%c8, %c8] : $T -> §!pto.tile_buf<vec, 8x64xf32, valid=8x16> | the type has 16 valid columns, but the operand is 8
open rows under a stated type | %m = arith.index_cast %n : i32 to index ; %a = pto.subview %t[%c0, %c0] sizes [8, 64] valid [%m, %c8] : $T -> §!pto.tile_buf<vec, 8x64xf32, valid=4x8> | but the operand is known when the program runs
part that leaves its tile when it runs | %m = arith.index_cast %n : i32 to index ; %a = §pto.subview %t[%m, %c0] sizes [16, 64] : $T | 16 valid rows from row 3 on leave %t
valid rows that outgrow a part when it runs | %m = arith.index_cast %n : i32 to index ; %a = §pto.subview %t[%c0, %c0] sizes [2, 64] valid [%m, %c8] : $T | 3 valid rows of a part of 2
parts that overlap | %a = pto.subview %t[%c0, %c0] sizes [16, 32] : $T ; %r = pto.subview %t[%c0, %c8] sizes [16, 32] : $T ; §pto.tadds ins(%a, %x : !pto.tile_buf<vec, 16x32xf32>, f32) outs(%r : !pto.tile_buf<vec, 16x32xf32>) | share bytes
slot behind the last | %m = pto.alloc_multi_tile : !pto.multi_tile_buf<vec, 16x64xf32, count=2> ; %a = pto.multi_tile_get %m[§%c2] : !pto.multi_tile_buf<vec, 16x64xf32, count=2> -> $T | no slot 2
## scalars
element before its tensor | %m = arith.constant -1 : index ; %a = §pto.load_scalar %q[%m] : !pto.ptr<i32> -> i32 | outside the tensor
element behind its tensor | %m = arith.constant 1024 : index ; §pto.store_scalar %x, %p[%m] : !pto.ptr<f32>, f32 | outside the tensor
element of a matrix tile | %a = pto.tgetval ins(%acc, %c0 : §$ACC, index) outs : f32 | vec
element behind a buffer | %m = arith.constant 1000000 : index ; %a = §pto.tgetval ins(%t, %m : $T, index) outs : f32 | buffer
element written under another type | pto.tsetval ins(%c0, %n : index, §i32) outs(%t : $T) | element type
division by zero | %m = arith.constant 0 : i32 ; %a = §arith.divsi %n, %m : i32 | zero
## operations
type of an operation | tadd s8 s8 -> s8 | i8 | a2a3
bf16 sums | tadd b b -> b | bf16 | a2a3
valid regions | tadd t ragged -> u | valid region
operands of two types | tadd t h -> u | f16
boxed operand | %boxed2 = pto.alloc_tile : $BOXED ; §pto.texp ins(%boxed2 : $BOXED) outs(%t : $T) | slayout=row_major
column-major operand | texp column -> column | column-major
reciprocal in place | trecip t -> t | in place | a2a3
scalar of another type | tadds t n -> u | i32
scalar of texpands | texpands n -> t | i32
tile where a scalar stands | pto.tadds ins(%t, %u : §$T, $T) outs(%v : $T) | does not take these operands
two results | pto.tadd ins(%t, %u : $T, $T) outs(%v, %t : $T, §$T) | writes one tile
fill without a value | tfillpad ragged -> t | does not declare a pad value
fill in place elsewhere | tfillpad_inplace ragged -> zero | must be at the same address
fill of a smaller tile | tfillpad_expand wide -> zero | smaller
comparison of the manual | pto.tcmp ins(%t, %u {cmpMode = §#pto<cmp less_than>} : $T, $T) outs(%s8 : $S8) | less_than
comparison to a float tile | tcmp t u {cmpMode = #pto<cmp lt>} -> v | tcmp
choice without tmp | §pto.tsel ins(%s8, %t, %u : $S8, $T, $T) outs(%v : $T) | does not take these operands
row sum to a full tile | trowsum t u -> v | one valid column
row sum of other rows | trowsum small u -> column | rows
scratch of another type | trowmin t i -> column | tmp
row maximum with tmp | trowexpandmax t column u -> v | tmp | a5
row difference with tmp | trowexpandexpdif t column u -> v | tmp | a5
broadcast of half a block | trowexpandmul t u -> v | one full block
column sum with tmp alone | %one2 = pto.alloc_tile : !pto.tile_buf<vec, 1x64xf32> ; §pto.tcolsum ins(%t, %u : $T, $T) outs(%one2 : !pto.tile_buf<vec, 1x64xf32>) | isBinary and tmp only together
column sum by pairs without tmp | %one2 = pto.alloc_tile : !pto.tile_buf<vec, 1x64xf32> ; §pto.tcolsum ins(%t {isBinary = true} : $T) outs(%one2 : !pto.tile_buf<vec, 1x64xf32>) | isBinary and tmp only together
column broadcast of other columns | tcolexpandmul t wide -> u | columns
move to another shape | tmov small -> t | shape | a2a3
ramp of another type | tci x -> one | f32
ramp of one column | %a = pto.alloc_tile : !pto.tile_buf<vec, 1x8xi32, valid=1x1> ; %r = pto.subview %a[%c0, %c0] sizes [1, 1] : !pto.tile_buf<vec, 1x8xi32, valid=1x1> ; pto.tci ins(%n : i32) outs(%r : §!pto.tile_buf<vec, 1x1xi32>) | column
ramp of floats | §pto.tci ins(%x : f32) outs(%t : $T) | f32
ramp of two rows | tci n -> i | row
small scratch of a ramp | %a = pto.alloc_tile : !pto.tile_buf<vec, 1x64xf32> ; §pto.tci ins(%n, %a : i32, !pto.tile_buf<vec, 1x64xf32>) outs(%one : !pto.tile_buf<vec, 1x64xi32>) | 768 | a2a3
gather without tmp | tgather t i -> u | tmp | a2a3
gather by 16 bits | tgather t i16 i16 -> u | i16 | a2a3
gather onto its source | tgather t i j -> t | tgather | a2a3
transposition of two types | ttrans t u -> h | f16
concatenation of two types | tconcat t h -> wide | f16
concatenation of other rows | tconcat t small -> wide | rows
concatenation that does not fit | tconcat wide wide -> u | columns
bitwise on floats | tand t t -> u | f32
bitwise scalar on 32 bits | tands i n -> j | i32 | a2a3
not on 32 bits | tnot i -> j | i32 | a2a3
remainder of halves | trem h h h -> h | f16 | a2a3
choice of slopes on integers | tprelu i i u8 -> j | i32
quotients of integers | tcolexpanddiv i j -> i | i32 | a2a3
8-bit fills | %m = arith.constant 1 : i8 ; §pto.texpands ins(%m : i8) outs(%s8 : $S8) | i8 | a2a3
## names
misspelt | §pto.tad ins(%t, %u : $T, $T) outs(%v : $T) | unknown operation pto.tad
known | §pto.tsubc ins(%t, %u : $T, $T) outs(%v : $T) | is not modelled
no operation | §pto.tlaod %t | unknown operation
number of the core | %a = pto.get_block_idx -> §i32 | i64
array of the scalar unit | %a = §pto.declare_local_array | no source documents
"""
"""A case a row: name | lines behind a common beginning, ` ; ` between them | reason | targets, where not all.

`§` stands before the place that the refusal names (line and column), `$T` for the type of %t and so on; lines such as
`tadd t u -> v` are operations on the tiles of `NAMES`, and on the scalars x (f32) and n (i32).
"""


def text(case: Case) -> tuple[str, int, int]:
    """Return the program of a case, and line and column of what is refused."""
    allocated = "".join(
        f"%{name} = pto.alloc_tile : {kind}\n" for name, kind in NAMES.items() if f"%{name}" in case.body
    )
    constants = "".join(f"%c{value} = arith.constant {value} : index\n" for value in CONSTANTS)
    head = "func.func @k(%p: !pto.ptr<f32>, %q: !pto.ptr<i32>, %x: f32, %n: i32) attributes {pto.entry} {\n"
    view = (
        f"%view = pto.make_tensor_view %p, shape = [%c16, %c64], strides = [%c64, %c1] : {VIEW}\n"
        f"%part = pto.partition_view %view, offsets = [%c0, %c0], sizes = [%c16, %c64] : {VIEW} -> {PART}\n"
    )
    whole = case.body.startswith("func.func")
    body = f"{case.body}\n" if whole else f"{head}{constants}{view}{allocated}{case.body}\nreturn\n}}\n"
    before = body[: body.index("§")]
    return body.replace("§", ""), before.count("\n") + 1, len(before) - before.rfind("\n")


def _operation(line: str) -> str:
    """Return an operation on tiles of the table; other lines as they are."""
    if not re.match("t[a-z_]+ ", line):
        return line
    kinds = {**NAMES, "x": "f32", "n": "i32"}
    words, output = line.split(" -> ")
    words, brace, attributes = words.partition(" {")
    name, *names = words.split()
    reads = f"{', '.join(f'%{each}' for each in names)}{brace}{attributes} : {', '.join(kinds[each] for each in names)}"
    return f"§pto.{name} ins({reads}) outs(%{output} : {kinds[output]})"


def _case(row: str) -> Case:
    name, body, reason, *targets = row.split(" | ")
    kinds = {"VIEW": VIEW, "PART": PART, **{key.upper(): kind for key, kind in NAMES.items()}}
    body = re.sub(r"\$([A-Z0-9]+)", lambda found: kinds[found[1]], body)
    body = "\n".join(map(_operation, body.split(" ; ")))
    return Case(name, body, reason, tuple(targets[0].split()) if targets else ("a2a3", "a5"))


CASES = tuple(_case(row) for row in ROWS.strip().split("\n") if not row.startswith("## "))


Capture = pytest.CaptureFixture[str]
RUNS = [(case, target) for case in CASES for target in case.targets]


@pytest.mark.parametrize(("case", "target"), RUNS, ids=[f"{case.name}, {target}" for case, target in RUNS])
def test_refused_with_reason_and_place(case: Case, target: str, tmp_path: Path):
    program, line, column = text(case)
    path = tmp_path / "k.pto"
    path.write_text(program)
    with pytest.raises(CastsimError) as caught:
        run(path, target, args={"x": 1.5, "n": 3}, timing_only=True)
    assert case.reason in caught.value.message
    span = caught.value.span
    assert (span.file, span.line, span.column) == (str(path), line, column)


ADDRESSED = "%a = arith.constant 0 : i64\n%t = pto.alloc_tile addr = %a : !pto.tile_buf<vec, 16x64xf32>\n"
PLACED = "%t = pto.alloc_tile : !pto.tile_buf<vec, 16x64xf32>\n"


@pytest.mark.parametrize(
    ("body", "level", "message"),
    [
        (ADDRESSED, "2", "unexpected 'addr' operand: the tool places tiles at level 2"),
        (ADDRESSED, "1", "unexpected 'addr' operand: the tool places tiles at level 1"),
        (PLACED, "3", "%t has no address; every tile needs one at level 3"),
        (ADDRESSED, "3", None),
        (PLACED, "2", None),
        (PLACED, "4", "--level 4: not a placement level"),
    ],
)
def test_placement_levels(body: str, level: str, message: str | None, tmp_path: Path, capsys: Capture):
    path = tmp_path / "k.pto"
    path.write_text(f"func.func @k() attributes {{pto.entry}} {{\n{body}return\n}}\n")
    code = main(["run", str(path), "--target", "a5", "--timing-only", "--level", level])
    error = capsys.readouterr().err
    assert (code == 0) is (message is None)
    assert (message or "") in error
    if message and "--level" not in message:
        assert f"{path}:{2 + (body is ADDRESSED)}:6: " in error


def test_cases_cover_the_nearest_names(tmp_path: Path):
    path = tmp_path / "k.pto"
    for case, near in (("misspelt", "pto.tadd"), ("no operation", "pto.tload")):
        path.write_text(text(next(each for each in CASES if each.name == case))[0])
        with pytest.raises(CastsimError) as caught:
            run(path, "a5", args={"x": 1.5, "n": 3}, timing_only=True)
        assert near in caught.value.legal
