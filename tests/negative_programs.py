"""Programs that the vendor's assembler or library must refuse, each with the reason and the place of the refusal.

A case is some lines behind a common beginning; `§` stands before the place that the refusal names (line and column).
Sources: docs/reference/pto.md sections 2 to 7, by the heading of each group.
"""

# A `.pto` statement stays on one line.
# ruff: noqa: E501

from __future__ import annotations

from negative_cases import COLUMN, NAMES, PART, RAGGED, S8, VIEW, Case, H, T, dps, tile

TYPES_AND_TILES = (
    Case("zero rows", f"%a = §pto.alloc_tile : {tile(rows=0)}", "0 rows and 64 columns has no element"),
    Case("zero columns", f"%a = §pto.alloc_tile : {tile(cols=0)}", "16 rows and 0 columns has no element"),
    Case(
        "fractal of boxes",
        "%a = pto.alloc_tile : !pto.tile_buf<§mat, 16x64xf32, slayout=row_major, fractal=100>",
        "boxes of 100 bytes",
    ),
    Case(
        "fractal without boxes",
        "%a = pto.alloc_tile : !pto.tile_buf<§vec, 16x64xf32, fractal=100>",
        "boxes of 100 bytes",
    ),
    Case("negative fractal", "%a = pto.alloc_tile : !pto.tile_buf<vec, 16x64xf32, fractal=§-1>", "whole number"),
    Case("unknown location", "%a = pto.alloc_tile : !pto.tile_buf<§ub, 16x64xf32>", "unknown loc: ub"),
    Case("unknown pad", "%a = pto.alloc_tile : !pto.tile_buf<vec, 16x64xf32, pad=§4>", "unknown pad: 4"),
    Case("unknown layout", "%a = pto.alloc_tile : !pto.tile_buf<vec, 16x64xf32, blayout=§diagonal>", "unknown blayout"),
    Case("key twice", "%a = pto.alloc_tile : !pto.tile_buf<vec, 16x64xf32, pad=1, §pad=1>", "given twice"),
    Case(
        "order of keys",
        "%a = pto.alloc_tile : !pto.tile_buf<loc=vec, dtype=f32, rows=16, cols=64, §blayout=row_major>",
        "order of the keys",
    ),
    Case(
        "more valid rows than rows",
        "%a = pto.alloc_tile : !pto.tile_buf<§vec, 16x64xf32, valid=17x64>",
        "17 valid rows",
    ),
    Case(
        "open rows without operand",
        f"%a = pto.alloc_tile : §{tile(valid='?x64')}",
        "valid_row operand is required because result type v_row is ?",
    ),
    Case("operand for stated rows", f"%a = pto.alloc_tile valid_row = §%c8 : {T}", "valid_row operand is not allowed"),
    Case("i4", "%a = pto.alloc_tile : !pto.tile_buf<vec, 16x64x§i4>", "not an element type"),
    Case("index elements", "%a = pto.alloc_tile : !pto.tile_buf<vec, 16x64x§index>", "not an element type"),
    Case("row that is no whole block", f"%a = §pto.alloc_tile : {tile(cols=5)}", "not a multiple of 32"),
    Case(
        "column that is no whole block",
        f"%a = §pto.alloc_tile : {tile(rows=5, cols=1, blayout='col_major')}",
        "not a multiple of 32",
    ),
    Case("buffer too small", f"%a = §pto.alloc_tile : {tile(rows=2048)}", "bytes"),
)
PROGRAMS = (
    Case(
        "entry with a result",
        "func.func §@k(%n: i32) -> i32 attributes {pto.entry} {\nreturn %n : i32\n}\n",
        "must return nothing",
    ),
    Case(
        "entry that calls itself",
        "func.func @k(%n: i32) attributes {pto.entry} {\n§func.call @k(%n) : (i32) -> ()\nreturn\n}\n",
        "calls are recursive",
    ),
    Case(
        "some tiles with addresses",
        f"%a = arith.constant 0 : i64\n%s = pto.alloc_tile addr = %a : {T}\n%r = §pto.alloc_tile : {T}",
        "needs one too",
    ),
    Case(
        "address beyond the buffer",
        f"%a = arith.constant 400000 : i64\n%s = §pto.alloc_tile addr = %a : {T}",
        "bytes past the end",
    ),
    Case(
        "misaligned address",
        f"%a = arith.constant 16 : i64\n%s = §pto.alloc_tile addr = %a : {T}",
        "not 32-byte aligned",
    ),
    Case("undefined value", "%r = arith.addi %c1, §%nothing : index", "not defined"),
    Case("defined twice", "§%c1 = arith.constant 1 : index", "redefinition"),
    Case("used under another type", f"pto.texp ins(%t : {T}) outs(%u : §{H})", "is defined as"),
    Case("event of eight", "pto.set_flag[<PIPE_V>, <PIPE_MTE3>, <§EVENT_ID8>]", "EVENT_ID8"),
    Case("blocks", "§^bb1:", "jumps between blocks"),
)
VIEWS = (
    Case(
        "view of other elements",
        "%w = pto.make_tensor_view %p, shape = [%c16, %c64], strides = [%c64, %c1] : §!pto.tensor_view<?x?xf16>",
        "a view of f16 elements on a pointer to f32",
    ),
    Case(
        "layout of a view",
        f"%w = §pto.make_tensor_view %p, shape = [%c16, %c64], strides = [%c64, %c1] {{layout = #pto.layout<dn>}} : {VIEW}",
        "layout",
    ),
    Case(
        "extent of a view",
        "%w = §pto.make_tensor_view %p, shape = [%c16, %c64], strides = [%c64, %c1] : !pto.tensor_view<8x64xf32>",
        "16",
    ),
    Case(
        "part of other elements",
        f"%w = pto.partition_view %view, offsets = [%c0, %c0], sizes = [%c16, %c64] : {VIEW} -> §!pto.partition_tensor_view<16x64xf16>",
        "a part of f16 elements",
    ),
    Case(
        "part of another size",
        f"%w = §pto.partition_view %view, offsets = [%c0, %c0], sizes = [%c8, %c64] : {VIEW} -> {PART}",
        "8",
    ),
    Case(
        "part behind its view",
        f"%w = §pto.partition_view %view, offsets = [%c8, %c0], sizes = [%c16, %c64] : {VIEW} -> {PART}",
        "beyond the view",
    ),
    Case("store of another count", f"§pto.tstore ins(%ragged : {RAGGED}) outs(%part : {PART})", "elements"),
    Case("load of another type", f"§pto.tload ins(%part : {PART}) outs(%h : {H})", "the view holds f32"),
    Case(
        "row-major load of a column-major tile",
        f"§pto.tload ins(%part : {PART}) outs(%a : {tile(blayout='col_major')})".replace(
            "§", f"%a = pto.alloc_tile : {tile(blayout='col_major')}\n§"
        ),
        "needs a row_major tile",
    ),
)
CASTS = (
    Case(
        "shapes of a cast",
        f"§pto.tcvt ins(%t : {T}) outs(%a : {tile('f16', 16, 32)})".replace(
            "§", f"%a = pto.alloc_tile : {tile('f16', 16, 32)}\n§"
        ),
        "shape",
    ),
    Case(
        "valid regions of a cast",
        f"§pto.tcvt ins(%t : {T}) outs(%a : {tile('f16', valid='8x64')})".replace(
            "§", f"%a = pto.alloc_tile : {tile('f16', valid='8x64')}\n§"
        ),
        "valid",
    ),
    Case("cast of a part", f"pto.tcvt ins(%part : §{PART}) outs(%t : {T})", "tiles"),
    Case(
        "mode that is none",
        f"pto.tcvt ins(%t {{rmode = #pto<round_mode §NEAR>}} : {T}) outs(%h : {H})".replace(
            "#pto<round_mode §NEAR>", "§#pto<round_mode NEAR>"
        ),
        "NEAR",
    ),
    Case("mode that is a number", f"pto.tcvt ins(%t {{rmode = §1 : i32}} : {T}) outs(%h : {H})", "round_mode"),
    Case(
        "saturation that is none",
        f"pto.tcvt ins(%t {{sat_mode = §#pto<saturation_mode MAYBE>}} : {T}) outs(%h : {H})",
        "MAYBE",
    ),
)
PARTS = (
    Case("part without size", f"%a = pto.subview %t[%c0, %c0] sizes §[0, 64] : {T}", "from 1"),
    Case("part of three dimensions", f"%a = pto.subview %t[%c0, %c0] sizes §[1, 1, 64] : {T}", "rows and columns"),
    Case(
        "part with one valid extent",
        f"%a = pto.subview %t[%c0, %c0] sizes [8, 64] valid §[%c8] : {T}",
        "a row and a column",
    ),
    Case(
        "part with too many valid rows",
        f"%a = pto.subview %t[%c0, %c0] sizes [8, 64] valid [§%c16, %c64] : {T}",
        "16 valid rows of a part of 8",
    ),
    Case(
        "part of another type",
        f"%a = pto.subview %t[%c0, %c0] sizes [8, 64] : {T} -> §{tile('f16', 8)}",
        "the result of pto.subview is",
    ),
    Case(
        "part of another shape",
        f"%a = pto.subview %t[%c0, %c0] sizes [8, 64] : {T} -> §{tile(rows=4)}",
        "the result of pto.subview is",
    ),
    Case(
        "part with another pad",
        f"%a = pto.subview %t[%c0, %c0] sizes [8, 64] : {T} -> §{tile(rows=8, pad=1)}",
        "the result of pto.subview is",
    ),
    Case(
        "valid rows of a part",
        f"%a = pto.subview %t[%c0, %c0] sizes [8, 64] valid [%c3, %c64] : {T} -> §{tile(rows=8, valid='4x64')}",
        "the type says 4 valid rows",
    ),
    Case(
        "open rows of a part",
        f"%a = pto.subview %t[%c0, %c0] sizes [8, 64] : {T} -> §{tile(rows=8, valid='?x64')}",
        "leaves the valid rows open",
    ),
    Case("part behind its tile", f"%a = pto.subview %t[§%c16, %c0] sizes [8, 64] : {T}", "of a tile of 16 rows"),
    Case("part beside its tile", f"%a = pto.subview %t[%c0, §%c8] sizes [8, 64] : {T}", "of a tile of 64 columns"),
    Case("part of boxes", f"%a = §pto.subview %acc[%c8, %c0] sizes [8, 64] : {NAMES['acc']}", "whole boxes"),
    Case(
        "misaligned part",
        f"%a = pto.subview %t[%c0, %c3] sizes [16, 8] : {T}\n§pto.texp ins(%a : {tile(rows=16, cols=8)}) outs(%a : {tile(rows=16, cols=8)})",
        "32-byte aligned",
    ),
    Case(
        "part as another shape",
        f"%a = pto.subview %t[%c0, %c0] sizes [8, 16] : {T}\n%r = §pto.treshape %a : {tile(rows=8, cols=16)} -> {tile(rows=4, cols=32)}",
        "treshape",
    ),
    Case(
        "slot behind the last",
        "%m = pto.alloc_multi_tile : !pto.multi_tile_buf<vec, 16x64xf32, count=2>\n"
        f"%a = pto.multi_tile_get %m[§%c2] : !pto.multi_tile_buf<vec, 16x64xf32, count=2> -> {T}",
        "slot 2 of 2",
    ),
    Case("bytes of a reshape", f"%a = §pto.treshape %t : {T} -> {tile(rows=8)}", "keeps the size"),
    Case("reshape of boxes", f"%a = §pto.treshape %t : {T} -> {NAMES['boxed']}", "boxed"),
    Case("wider bits", f"%a = §pto.bitcast %h : {H} -> {T}", "wider"),
    Case("bits of another shape", f"%a = §pto.bitcast %t : {T} -> {tile('i32', rows=8)}", "the element type alone"),
    Case("reshape in brackets", f"pto.treshape §ins(%t : {T}) outs(%u : {T})", "no ins/outs form"),
)
SCALARS = (
    Case("loaded under another type", "%a = pto.load_scalar %q[%c0] : !pto.ptr<i32> -> §f32", "element type i32"),
    Case("stored under another type", "pto.store_scalar %x, %q[%c0] : !pto.ptr<i32>, §f32", "element type i32"),
    Case(
        "element before its tensor",
        "%m = arith.constant -1 : index\n%a = §pto.load_scalar %q[%m] : !pto.ptr<i32> -> i32",
        "outside the tensor",
    ),
    Case(
        "element behind its tensor",
        "§pto.store_scalar %x, %p[%m] : !pto.ptr<f32>, f32".replace("§", "%m = arith.constant 1024 : index\n§"),
        "outside the tensor",
    ),
    Case(
        "element of a tile under another type",
        f"%a = pto.tgetval ins(%t, %c0 : {T}, index) outs : §i32",
        "element type",
    ),
    Case("element of a matrix tile", f"%a = pto.tgetval ins(%acc, %c0 : §{NAMES['acc']}, index) outs : f32", "vec"),
    Case(
        "element behind a buffer",
        f"%m = arith.constant 1000000 : index\n%a = §pto.tgetval ins(%t, %m : {T}, index) outs : f32",
        "buffer",
    ),
    Case(
        "element written under another type", f"pto.tsetval ins(%c0, %n : index, §i32) outs(%t : {T})", "element type"
    ),
    Case("division by zero", "%m = arith.constant 0 : i32\n%a = §arith.divsi %n, %m : i32", "zero"),
    Case("loop that does not move", "scf.for %k = %c0 to %c16 step §%c0 {\n}", "must be positive"),
)
OPERATIONS = (
    Case("type of an operation", dps("tadd", "s8 s8", "s8"), "i8", ("a2a3",)),
    Case("bf16 sums", dps("tadd", "b b", "b"), "bf16", ("a2a3",)),
    Case("valid regions", dps("tadd", "t ragged", "u"), "valid region"),
    Case("operands of two types", dps("tadd", "t h", "u"), "f16"),
    Case(
        "boxed operand",
        "%boxed2 = pto.alloc_tile : " + NAMES["boxed"] + f"\n§pto.texp ins(%boxed2 : {NAMES['boxed']}) outs(%t : {T})",
        "slayout=row_major",
    ),
    Case("column-major operand", dps("texp", "column", "column"), "column-major"),
    Case("reciprocal in place", dps("trecip", "t", "t"), "in place", ("a2a3",)),
    Case("scalar of another type", dps("tadds", "t n", "u"), "i32"),
    Case("scalar of texpands", dps("texpands", "n", "t"), "i32"),
    Case(
        "tile where a scalar stands",
        f"pto.tadds ins(%t, %u : §{T}, {T}) outs(%v : {T})",
        "not written with these operands",
    ),
    Case("two results", f"pto.tadd ins(%t, %u : {T}, {T}) outs(%v, %t : {T}, §{T})", "writes one tile"),
    Case("fill without a value", dps("tfillpad", "ragged", "t"), "declares no pad value"),
    Case("fill in place elsewhere", dps("tfillpad_inplace", "ragged", "zero"), "must be the same bytes"),
    Case("fill of a smaller tile", dps("tfillpad_expand", "wide", "zero"), "smaller"),
    Case(
        "comparison of the manual",
        dps("tcmp", "t u", "s8", "{cmpMode = #pto<cmp less_than>}").replace("§", "").replace("#pto<cmp", "§#pto<cmp"),
        "less_than",
    ),
    Case("comparison to a float tile", dps("tcmp", "t u", "v", "{cmpMode = #pto<cmp lt>}"), "tcmp"),
    Case(
        "choice without tmp",
        f"§pto.tsel ins(%s8, %t, %u : {S8}, {T}, {T}) outs(%v : {T})",
        "not written with these operands",
    ),
    Case("row sum to a full tile", dps("trowsum", "t u", "v"), "one valid column"),
    Case("row sum of other rows", dps("trowsum", "small u", "column"), "rows"),
    Case("scratch of another type", dps("trowmin", "t i", "column"), "tmp"),
    Case("row maximum with tmp", dps("trowexpandmax", "t column u", "v"), "tmp", ("a5",)),
    Case("row difference with tmp", dps("trowexpandexpdif", "t column u", "v"), "tmp", ("a5",)),
    Case(
        "row sum with tmp",
        f"pto.trowexpandadd ins(%t, %column, %u : §{T}, {COLUMN}, {T}) outs(%v : {T})",
        "not written with these operands",
    ),
    Case("broadcast of half a block", dps("trowexpandmul", "t u", "v"), "one full block"),
    Case(
        "column sum with tmp alone",
        f"§pto.tcolsum ins(%t, %u : {T}, {T}) outs(%one2 : {tile(rows=1)})".replace(
            "§", f"%one2 = pto.alloc_tile : {tile(rows=1)}\n§"
        ),
        "isBinary if and only if",
    ),
    Case(
        "column sum by pairs without tmp",
        f"§pto.tcolsum ins(%t {{isBinary = true}} : {T}) outs(%one2 : {tile(rows=1)})".replace(
            "§", f"%one2 = pto.alloc_tile : {tile(rows=1)}\n§"
        ),
        "isBinary if and only if",
    ),
    Case("column broadcast of other columns", dps("tcolexpandmul", "t wide", "u"), "columns"),
    Case("move to another shape", dps("tmov", "small", "t"), "shape", ("a2a3",)),
    Case("ramp of another type", dps("tci", "x", "one"), "f32"),
    Case(
        "ramp of one column",
        f"%a = pto.alloc_tile : {tile('i32', 1, 8, valid='1x1')}\n%r = pto.subview %a[%c0, %c0] sizes [1, 1] : {tile('i32', 1, 8, valid='1x1')}\npto.tci ins(%n : i32) outs(%r : §{tile('i32', 1, 1)})",
        "column",
    ),
    Case("ramp of floats", f"§pto.tci ins(%x : f32) outs(%t : {T})", "f32"),
    Case("ramp of two rows", dps("tci", "n", "i"), "row"),
    Case(
        "small scratch of a ramp",
        f"%a = pto.alloc_tile : {tile('f32', 1, 64)}\n§pto.tci ins(%n, %a : i32, {tile('f32', 1, 64)}) outs(%one : {NAMES['one']})",
        "768",
        ("a2a3",),
    ),
    Case("gather without tmp", dps("tgather", "t i", "u"), "tmp", ("a2a3",)),
    Case("gather by 16 bits", dps("tgather", "t i16 i16", "u"), "i16", ("a2a3",)),
    Case("gather onto its source", dps("tgather", "t i j", "t"), "tgather", ("a2a3",)),
    Case("transposition of two types", dps("ttrans", "t u", "h"), "f16"),
    Case("concatenation of two types", dps("tconcat", "t h", "wide"), "f16"),
    Case("concatenation of other rows", dps("tconcat", "t small", "wide"), "rows"),
    Case("concatenation that does not fit", dps("tconcat", "wide wide", "u"), "columns"),
    Case("bitwise on floats", dps("tand", "t t", "u"), "f32"),
    Case("bitwise scalar on 32 bits", dps("tands", "i n", "j"), "i32", ("a2a3",)),
    Case("not on 32 bits", dps("tnot", "i", "j"), "i32", ("a2a3",)),
    Case("remainder of halves", dps("trem", "h h h", "h"), "f16", ("a2a3",)),
    Case("choice of slopes on integers", dps("tprelu", "i i u8", "j"), "i32"),
    Case("quotients of integers", dps("tcolexpanddiv", "i j", "i"), "i32", ("a2a3",)),
    Case(
        "8-bit fills",
        f"§pto.texpands ins(%m : i8) outs(%s8 : {S8})".replace("§", "%m = arith.constant 1 : i8\n§"),
        "i8",
        ("a2a3",),
    ),
)
NAMED = (
    Case("misspelt", f"§pto.tad ins(%t, %u : {T}, {T}) outs(%v : {T})", "unknown operation pto.tad"),
    Case("known", f"§pto.tpow ins(%t, %u : {T}, {T}) outs(%v : {T})", "known, not modelled"),
    Case("no operation", "§pto.tlaod %t", "unknown operation"),
    Case("number of the core", "%a = pto.get_block_idx -> §i32", "i64"),
    Case("array of the scalar unit", "%a = §pto.declare_local_array", "no text at hand"),
)
GROUPS = {
    "types": TYPES_AND_TILES, "programs": PROGRAMS, "views": VIEWS, "casts": CASTS, "parts": PARTS, "scalars": SCALARS,
    "operations": OPERATIONS, "names": NAMED,
}  # fmt: skip
CASES = tuple(case for group in GROUPS.values() for case in group)
