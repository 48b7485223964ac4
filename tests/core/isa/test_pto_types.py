from __future__ import annotations

import pytest
from kit.pto_text import compact, function, key_value

from castsim.isa.errors import CastsimError, ReadError, TileError
from castsim.isa.formats import FORMATS, format_named
from castsim.isa.pto.program import PartitionType, PointerType, ScalarType, TileType, ViewType
from castsim.isa.pto.pto_parser import parse
from castsim.isa.pto.types import format_type, parse_type

# Spelling -> format, from the table of element types of the front end and castsim's extension of it.
ELEMENTS = {
    "f32": "f32", "f16": "f16", "bf16": "bf16", "f64": "f64", "i8": "i8", "si8": "i8", "ui8": "u8", "i16": "i16",
    "si16": "i16", "ui16": "u16", "i32": "i32", "si32": "i32", "ui32": "u32", "i64": "i64", "si64": "i64",
    "ui64": "u64", "f8E4M3FN": "e4m3fn", "f8E5M2": "e5m2",
}  # fmt: skip
WARNED = {
    "f8E4M3": "e4m3fn", "f8E4M3FNUZ": "e4m3fn", "f8E4M3B11FNUZ": "e4m3fn", "f8E5M2FNUZ": "e5m2",
    "hif8": "hif8", "f4E2M1x2": "e2m1", "f4E1M2x2": "e1m2", "s4": "i4",
}  # fmt: skip
TILE = TileType("vec", "f32", 16, 64, 16, 64)


@pytest.mark.parametrize(("spelling", "name"), [*ELEMENTS.items(), *WARNED.items()])
def test_every_element_in_every_type(spelling: str, name: str) -> None:
    assert name in FORMATS
    tile = TileType("vec", name, 16, 64, 16, 64)
    assert parse_type(key_value(spelling, 16, 64)) == tile
    assert parse_type(compact(spelling, 16, 64)) == tile
    assert parse_type(f"!pto.ptr<{spelling}>") == PointerType(name)
    assert parse_type(f"!pto.tensor_view<?x8x{spelling}>") == ViewType((None, 8), name)
    assert parse_type(f"!pto.partition_tensor_view<1x1x1x16x64x{spelling}>") == PartitionType((1, 1, 1, 16, 64), name)


@pytest.mark.parametrize(("spelling", "name"), WARNED.items())
def test_spellings_that_mislead_or_that_only_castsim_knows_bring_a_warning(spelling: str, name: str) -> None:
    (warning,) = parse(function("", f"%p: !pto.ptr<{spelling}>, %q: !pto.ptr<{spelling}>")).warnings
    assert warning.startswith("<string>:1:")
    assert f"element type {spelling} is" in warning
    assert ("castsim" if spelling in ("hif8", "f4E2M1x2", "f4E1M2x2", "s4") else name) in warning


@pytest.mark.parametrize("spelling", ELEMENTS)
def test_the_vendors_own_spellings_bring_none(spelling: str) -> None:
    assert parse(function("", f"%p: !pto.ptr<{spelling}>")).warnings == ()


@pytest.mark.parametrize("spelling", ["i2", "i4", "si4", "ui4", "i128", "index", "i1", "tf32", "u8", "F32", "f8", ""])
@pytest.mark.parametrize("form", ["!pto.ptr<{}>", "!pto.tensor_view<4x{}>", "!pto.tile_buf<vec, 4x32x{}>"])
def test_what_is_no_element_type_is_refused(spelling: str, form: str) -> None:
    with pytest.raises(ReadError, match="element type"):
        parse_type(form.format(spelling))


@pytest.mark.parametrize("spelling", ["i4", "si4"])
def test_four_bit_integers_are_pointed_to_their_spelling(spelling: str) -> None:
    with pytest.raises(ReadError) as caught:
        parse_type(compact(spelling, 16, 64))
    assert caught.value.legal == ("s4",)


@pytest.mark.parametrize(
    ("one", "other"),
    [
        (key_value("f32", 16, 64), compact("f32", 16, 64)),
        (key_value("f32", 16, 64, 8, 33), compact("f32", 16, 64, 8, 33)),
        (key_value("f32", 16, 64, "?", 33), compact("f32", 16, 64, "?", 33)),
        (key_value("f32", 16, 64, -1, 33), compact("f32", 16, 64, "?", 33)),
        (key_value("si16", 16, 64), compact("i16", 16, 64)),
        (compact("f32", 16, 64), "!pto.tile_buf< vec ,16x64xf32,\n  pad = 0 , valid=16x64 >"),
        (compact("f32", 16, 64), "!pto.tile_buf<vec, // the usual\n 16x64xf32>"),
        (compact("f32", 16, 64), "!pto.tile<f32, 16, 64>"),
        (compact("f32", 16, 64), "!pto.tile_buf<f32, 16, 64>"),
        (compact("f32", 16, 64), "!pto.tile<16x64xf32>"),
        ("!pto.tile_buf<vec, 16x64xf32, pad=1>", "!pto.tile<loc=vec, f32, 16, 64, RowMajor, NoneBox, None, Zero>"),
        (key_value("f32", 16, 64).replace("pad=0", "pad=2, compact=1"),
         "!pto.tile_buf<vec, 16x64xf32, compact=1, pad=2>"),
        ("!pto.tile_buf<mat, 16x64xf32, slayout=row_major, blayout=col_major>",
         "!pto.tile_buf<mat, 16x64xf32, blayout=col_major, fractal=512, slayout=row_major>"),
    ],
)  # fmt: skip
def test_two_spellings_of_one_type_are_equal(one: str, other: str) -> None:
    assert parse_type(one) == parse_type(other)


def test_all_fields_of_a_tile() -> None:
    text = (
        "!pto.tile_buf<acc, 4x256xf16, valid=4x?, blayout=col_major, slayout=row_major, fractal=1024, pad=3, compact=2>"
    )
    assert parse_type(text) == TileType("acc", "f16", 4, 256, 4, None, "col_major", "row_major", 1024, 3, 2)
    assert format_type(parse_type(text)) == text


@pytest.mark.parametrize(
    ("text", "message", "legal"),
    [
        ("!pto.tile_buf<ub, 16x64xf32>", "unknown loc: ub", ("vec",)),
        (key_value("f32", 16, 64).replace("loc=vec", "loc=ub"), "unknown loc: ub", ("vec",)),
        ("!pto.tile_buf<vac, 16x64xf32>", "unknown loc: vac", None),
        ("!pto.tile_buf<vec, 16x64xf32, pad=4>", "unknown pad: 4", None),
        ("!pto.tile_buf<vec, 16x64xf32, compact=3>", "unknown compact: 3", None),
        ("!pto.tile_buf<vec, 16x64xf32, blayout=none_box>", "unknown blayout", ("row_major", "col_major")),
        ("!pto.tile_buf<vec, 16x64xf32, slayout=nz>", "unknown slayout", None),
        ("!pto.tile_buf<vec, 16x64xf32, bleyout=row_major>", "unknown key 'bleyout'", None),
        ("!pto.tile_buf<vec, 16x64xf32, pad=0, pad=1>", "given twice", ()),
        ("!pto.tile_buf<vec, 16x64xf32, pad>", "key=value", ()),
        ("!pto.tile_buf<vec, 16x64xf32, valid=16>", "ROWSxCOLS", ()),
        ("!pto.tile_buf<vec, 16x64xf32, fractal=-1>", "integer", ()),
        ("!pto.tile_buf<vec, 16xf32>", "expected a shape", ()),
        ("!pto.tile_buf<vec, ?x64xf32>", "expected a shape", ()),
        ("!pto.tile_buf<vec>", "the shape of the tile type is missing", ()),
        ("!pto.tile_buf<>", "unknown loc", None),
        ("!pto.tile_buf", "needs parameters", ()),
        (key_value("f32", 16, 64).replace("rows=16, cols=64", "cols=64, rows=16"), "expected key 'rows'", ("rows",)),
        (key_value("f32", 16, 64).replace(", pad=0", ""), "lacks 'pad'", ("pad",)),
        (key_value("f32", 16, 64).replace(">", ", compact=0, more=1>"), "unexpected 'more'", ()),
        (key_value("f32", 16, 64).replace("dtype=", "type="), "expected key 'dtype'", ("dtype",)),
        (key_value("f32", 16, 64).replace("rows=16", "rows=-16"), "integer", ()),
        (key_value("f32", 16, 64).replace("rows=16", "rows=" + "9" * 5000), "integer", ()),
        ("!pto.tile<f32, 16, 64, RowMajor>", "found 4 parameters", None),
        ("!pto.tile<f32, 16, 64, row_major, NoneBox, None, Zero>", "unknown block layout", ("RowMajor", "ColMajor")),
        ("!pto.tile<f32, 16, 64, RowMajor, NoneBox, None, Nil>", "unknown pad", ("Null", "Zero", "Max", "Min")),
        ("!pto.tilebuf<vec, 16x64xf32>", "unknown type", None),
        ("!pto.eventid_array", "not supported", None),
        ("!pto.async_session", "not supported", None),
        ("!pto.ptr<f32, gm, gm>", "optionally a memory space", ()),
        ("!pto.ptr<f32, l1>", "unknown memory space", ("gm", "ub")),
        ("!pto.tensor_view<f32>", "no dimensions", ()),
        ("!pto.tensor_view<1x1x1x1x1x1xf32>", "6 dimensions", ()),
        ("!pto.tensor_view<" + "9" * 5000 + "xf32>", "larger than any memory", ()),
        ("!pto.tensor_view<4xf32, nd>", "takes only a shape", ()),
        ("int", "unknown type 'int'", None),
        ("i128", "unknown type", None),
    ],
)
def test_refusals_name_the_place_and_what_is_legal(text: str, message: str, legal: tuple[str, ...] | None) -> None:
    with pytest.raises(ReadError) as caught:
        parse_type(text)
    assert message in caught.value.message
    assert caught.value.span is not None
    assert caught.value.legal if legal is None else caught.value.legal == legal


SPELT = {
    "e4m3fn": ("f8E4M3FN",), "e5m2": ("f8E5M2",), "e8m0": ("!pto.f8E8M0",), "hif8": ("hif8", "!pto.hif8"),
    "e2m1": ("f4E2M1x2",), "e1m2": ("f4E1M2x2",), "i4": ("s4",),
    **{name: (name,) for name in ("f16", "bf16", "f32", "f64")},
    **{f"i{bits}": (f"i{bits}", f"si{bits}") for bits in (8, 16, 32, 64)},
    **{f"u{bits}": (f"ui{bits}",) for bits in (8, 16, 32, 64)},
}  # fmt: skip
"""Format -> its element types in `.pto`, after docs/reference/pto.md sections 2.1, 2.2 and 2.4."""
FORMAT_WORDS = [
    *SPELT, "e4m3", "float8_e4m3fn", "fp8_e5m2", "hifloat8", "h8", "bfloat16", "fp16", "half", "float16", "float",
    "fp32", "double", "int8", "s8", "uint8", "int32", "uint64", "fp4_e2m1", "float8_e8m0fnu", "int4",
]  # fmt: skip


@pytest.mark.parametrize("word", FORMAT_WORDS)
def test_a_format_by_its_name_elsewhere_is_told_its_spelling_here(word: str) -> None:
    """Whatever `castsim cast` takes for a format, a program is told how the text form spells it."""
    try:
        kind = parse_type(f"!pto.tile_buf<vec, 16x64x{word}>")
    except ReadError as error:
        assert error.legal == SPELT[format_named(word).name]
    else:
        assert isinstance(kind, TileType)
        assert kind.element == format_named(word).name


@pytest.mark.parametrize("word", ["f8_143", "e3m2", "e5m2fnuz", "u4", "i48", "bool"])
def test_a_format_that_the_text_form_lacks_is_said_to_be_lacking(word: str) -> None:
    with pytest.raises(ReadError, match=f"{word} is not an element type of a tile, view or pointer: ") as caught:
        parse_type(f"!pto.ptr<{word}>")
    assert caught.value.legal


@pytest.mark.parametrize(
    ("misspelt", "meant"),
    [
        ("!pto.tilebuf<vec, 16x64xf32>", "!pto.tile_buf"), ("!pto.tensor_veiw<4xf32>", "!pto.tensor_view"),
        ("!pto.tile_buf<vac, 16x64xf32>", "vec"), ("!pto.tile_buf<vec, 16x64xf32, bleyout=row_major>", "blayout"),
        ("!pto.tile_buf<vec, 16x64xbf61>", "bf16"), ("!pto.tile_buf<vec, 16x64xf8E4M3fn>", "f8E4M3FN"),
        ("!pto.tile_buf<vec, 16x64xF32>", "f32"), ("indx", "index"),
    ],
)  # fmt: skip
def test_the_nearest_real_spelling_comes_first(misspelt: str, meant: str) -> None:
    with pytest.raises(ReadError) as caught:
        parse_type(misspelt)
    assert caught.value.legal[0] == meant


@pytest.mark.parametrize("text", [key_value("f32", 16, 64, 17, 64), compact("f32", 16, 64, 16, 65)])
def test_a_valid_region_beyond_the_tile_does_not_fit(text: str) -> None:
    with pytest.raises(TileError, match=r"17 valid rows|65 valid columns"):
        parse_type(text)


@pytest.mark.parametrize("rows", [0, 16])
def test_empty_tiles_and_valid_regions_are_legal(rows: int) -> None:
    assert parse_type(key_value("f32", rows, 64, 0, 0)) == TileType("vec", "f32", rows, 64, 0, 0)


@pytest.mark.parametrize(
    ("text", "kind"),
    [
        ("index", ScalarType("index")), ("i1", ScalarType("i1")), ("si32", ScalarType("i32")),
        ("ui8", ScalarType("u8")), ("bf16", ScalarType("bf16")), ("!pto.ptr<f32, ub>", PointerType("f32", "ub")),
    ],
)  # fmt: skip
def test_scalars_and_pointers(text: str, kind: object) -> None:
    assert parse_type(text) == kind


@pytest.mark.parametrize(
    ("kind", "text"),
    [
        (TILE, "!pto.tile_buf<vec, 16x64xf32>"),
        (TileType("vec", "i4", 16, 64, None, 3), "!pto.tile_buf<vec, 16x64xs4, valid=?x3>"),
        (TileType("vec", "u8", 16, 64, 16, 64, pad=1), "!pto.tile_buf<vec, 16x64xui8, pad=1>"),
        (PointerType("e4m3fn", "gm"), "!pto.ptr<f8E4M3FN, gm>"),
        (ViewType((None, 3), "e2m1"), "!pto.tensor_view<?x3xf4E2M1x2>"),
        (PartitionType((4,), "hif8"), "!pto.partition_tensor_view<4xhif8>"),
        (ScalarType("u16"), "ui16"),
    ],
)
def test_canonical_spelling(kind: TileType, text: str) -> None:
    assert format_type(kind) == text
    assert parse_type(text) == kind


def test_a_format_without_a_spelling_is_refused() -> None:
    with pytest.raises(ReadError, match="'e3m2' cannot be written"):
        format_type(PointerType("e3m2"))


ARGUMENTS = "%p: !pto.ptr<f32>, %n: index, %w: i32, %q: i64, %x: f32, %c: i1"
CONSTANTS = "".join(f"%c{n} = arith.constant {n} : index\n" for n in (0, 1, 8, 16, 32, 64, 128, 512)) + (
    "%minus = arith.constant -1 : index\n"
)
T = compact("f32", 16, 64)
DYNAMIC_ROWS = compact("f32", 16, 64, "?", 64)
DYNAMIC_COLS = compact("f32", 16, 64, 16, "?")
VIEW = "%v = pto.make_tensor_view %p, shape = [%c16, %c64], strides = [%c64, %c1] : !pto.tensor_view<?x?xf32>\n"


def program(body: str) -> str:
    return function(CONSTANTS + body, ARGUMENTS)


def refused(kind: type[CastsimError], body: str, message: str) -> CastsimError:
    with pytest.raises(kind) as caught:
        parse(program(body), "p.pto")
    assert message in caught.value.message
    span = caught.value.span
    assert span is not None
    assert span.file == "p.pto"
    # The place is the word at fault or the operation's name, never a blank.
    assert span.text[span.column - 1 : span.column].strip()
    return caught.value


# ---------------------------------------------------------------------------------------------------------- views
def view(shape: str, strides: str, kind: str, layout: str = "") -> str:
    attribute = f" {{layout = #pto.layout<{layout}>}}" if layout else ""
    lists = f"shape = [{shape}], strides = [{strides}]"
    return f"%v = pto.make_tensor_view %p, {lists}{attribute} : !pto.tensor_view<{kind}>\n"


GOOD = view("%c16, %c64", "%c64, %c1", "?x?xf32")
GOOD_ND = view("%c16, %c64", "%c64, %c1", "?x?xf32", "nd")


# ----------------------------------------------------------------------------------------------------- partitions
def part(offsets: str, sizes: str, kind: str, source: str = "?x?xf32") -> str:
    return (
        f"{VIEW}%s = pto.partition_view %v, offsets = [{offsets}], sizes = [{sizes}] : "
        f"!pto.tensor_view<{source}> -> !pto.partition_tensor_view<{kind}>\n"
    )


def test_the_extents_of_a_view_from_elsewhere_are_those_of_its_type() -> None:
    def read(offset: str) -> None:
        line = f"%s = pto.partition_view %e, offsets = [{offset}], sizes = [%c8] : !pto.tensor_view<16xf32> -> "
        parse(function(CONSTANTS + line + "!pto.partition_tensor_view<8xf32>", "%e: !pto.tensor_view<16xf32>"))

    read("%c8")
    with pytest.raises(TileError, match="exceed the view's extent of 16"):
        read("%c16")


# ------------------------------------------------------------------------------------------------ loads and stores
@pytest.mark.parametrize("mnemonic", ["tload", "tstore"])
@pytest.mark.parametrize(("rows", "fits"), [(16, True), (8, False)])
def test_a_store_moves_the_valid_region(mnemonic: str, rows: int, fits: bool) -> None:
    size, kind = ("%c16", "16x64xf32") if fits else ("%c8", "8x64xf32")
    ends = [f"%s : !pto.partition_tensor_view<{kind}>", f"%t : {T}"]
    src, dst = ends if mnemonic == "tload" else reversed(ends)
    body = f"{part('%c0, %c0', f'{size}, %c64', kind)}%t = pto.alloc_tile : {T}\npto.{mnemonic} ins({src}) outs({dst})"
    if fits or mnemonic == "tload":  # what a load moves is the target's affair
        parse(program(body))
    else:
        refused(TileError, body, "a part of 512 elements and a tile whose valid region 16x64 has 1024")


@pytest.mark.parametrize(
    ("expression", "value"),
    [
        ("arith.addi %c8, %c8 : index", 16), ("arith.subi %c64, %c1 : index", 63),
        ("arith.muli %c8, %c16 : index", 128), ("arith.minsi %c8, %minus : index", -1),
        ("arith.maxsi %c8, %c64 : index", 64), ("arith.andi %minus, %c64 : index", 64),
        ("arith.ori %c8, %c16 : index", 24), ("arith.xori %c8, %c8 : index", 0),
        ("arith.divsi %c64, %c8 : index", None), ("arith.addi %n, %c8 : index", None),
    ],
)  # fmt: skip
def test_numbers_follow_from_constants(expression: str, value: int | None) -> None:
    # A step that is known to be negative or zero is refused, so a loop shows what is known.
    body = f"%y = {expression}\n%u = arith.constant {value if value is not None else 0} : index\n"
    body += "%z = arith.subi %u, %y : index\nscf.for %i = %c0 to %c1 step %z { }"
    if value is None:
        parse(program(body))
    else:
        refused(ReadError, body, "must be positive, not 0")


@pytest.mark.parametrize(
    ("mnemonic", "result"),
    [
        ("treshape", compact("f32", 64, 16)),
        ("treshape", compact("f16", 16, 128)),
        ("treshape", compact("s4", 16, 256)),  # 4-bit rows: for the target to judge
        ("bitcast", compact("i32", 16, 64)),
        ("bitcast", compact("f16", 16, 64)),
    ],
)
def test_new_types_for_the_same_bytes(mnemonic: str, result: str) -> None:
    parse(program(f"%t = pto.alloc_tile : {T}\n%r = pto.{mnemonic} %t : {T} -> {result}"))


PACKED = "%b = pto.make_tensor_view %z, shape = [%c16, %c64], strides = [{}] : !pto.tensor_view<?x?x{}>\n"
PACKED_PART = (
    "%s = pto.partition_view %b, offsets = [%c1, {0}], sizes = [%c8, %c32] : "
    "!pto.tensor_view<?x?x{1}> -> !pto.partition_tensor_view<8x32x{1}>"
)


@pytest.mark.parametrize("element", ["s4", "f4E2M1x2", "f4E1M2x2"])
def test_two_elements_share_a_byte(element: str) -> None:
    def read(body: str) -> None:
        parse(function(CONSTANTS + "%c65 = arith.constant 65 : index\n" + body, f"%z: !pto.ptr<{element}>"))

    read(PACKED.format("%c64, %c1", element) + PACKED_PART.format("%c8", element))
    for strides in ("%c65, %c1", "%c64, %c65", "%c1, %c16"):
        with pytest.raises(TileError, match="must be even"):
            read(PACKED.format(strides, element))
    with pytest.raises(TileError, match="begins at column 1; it must be even"):
        read(PACKED.format("%c64, %c1", element) + PACKED_PART.format("%c1", element))


REFUSED = [
    (ReadError, [  # values and types
        ("%y = arith.addi %c61, %c1 : index", "%c61 is not defined here", "%c64"),
        ("%y = arith.addi %y, %c1 : index", "%y is not defined here"),
        ("%c1 = arith.constant 1 : index", "redefinition of %c1, defined at line 3"),
        ("%n = arith.constant 1 : index", "redefinition of %n, defined at line 1"),
        ("%y = arith.addi %w, %c1 : index", "%w is defined as i32 but used as index", "i32"),
        (f"pto.tabs ins(%n : {T}) outs(%n : {T})", "%n is defined as index", "index"),
        (f"%t = pto.alloc_tile : {T}\npto.tabs ins(%t : {T}) outs(%t : {DYNAMIC_ROWS})", "%t is defined as", T),
        (f"%t = pto.alloc_tile addr = %n : {T}", "%n is defined as index but used as i64", "index"),
        (f"%t = pto.alloc_tile adr = %q : {T}", "expected addr, valid_row", "addr"),
        (f"%t = pto.alloc_tile valid_row = %n addr = %q : {T}", "expected addr, valid_row"),
        (f"pto.alloc_tile : {T}", "has 1 result, 0 named"),
        ("%t = pto.alloc_tile : !pto.tensor_view<4xf32>", "takes "),
        (f"%t = pto.alloc_tile {{hint = 1}} : {T}", "no attribute 'hint'"),
        (f"scf.if %c {{\n%t = pto.alloc_tile : {T}\n}}\npto.tabs ins(%t : {T}) outs(%t : {T})", "%t is not defined"),
        ("%r:2 = scf.if %c -> (i32, i32) {\nscf.yield %w, %w : i32, i32\n} else {\nscf.yield %w, %w : i32, i32\n}\n"
         "%y = arith.addi %r#2, %r : i32", "%r#2 is not defined"),
        ("%y = arith.addi %c1:2, %c1 : index", "write a result count only"),
        ("%c1:2 = scf.if %c -> (i32, i32) {\nscf.yield %w, %w : i32, i32\n} else {\nscf.yield %w, %w : i32, i32\n}",
         "redefinition of %c1"),
    ]),
    (ReadError, [  # valid operands go with dynamic extents
        (f"%t = pto.alloc_tile : {DYNAMIC_ROWS}", "valid_row operand is required because result type v_row is ?"),
        (f"%t = pto.alloc_tile : {DYNAMIC_COLS}", "valid_col operand is required because result type v_col is ?"),
        (f"%t = pto.alloc_tile valid_row = %n : {compact('f32', 16, 64, '?', '?')}", "valid_col operand is required"),
        (f"%t = pto.alloc_tile valid_row = %n : {T}", "valid_row operand is not allowed because result type"),
        (f"%t = pto.alloc_tile valid_row = %n valid_col = %n : {DYNAMIC_ROWS}", "valid_col operand is not allowed"),
        (f"%t = pto.alloc_tile valid_row = %w : {DYNAMIC_ROWS}", "%w is defined as i32"),
        (f"%t = pto.alloc_tile : {T}\n%r = pto.treshape %t : {T} -> {DYNAMIC_ROWS}", "static valid extents"),
    ]),
    (TileError, [  # known valid extents must fit the tile
        (f"%t = pto.alloc_tile valid_row = %c32 : {DYNAMIC_ROWS}", "32 valid rows in a tile of 16"),
        (f"%t = pto.alloc_tile valid_col = %minus : {DYNAMIC_COLS}", "-1 valid columns"),
        (f"%d = arith.addi %c64, %c1 : index\n%t = pto.alloc_tile valid_col = %d : {DYNAMIC_COLS}",
         "65 valid columns"),
        (f"%t = pto.alloc_tile valid_row = %n : {DYNAMIC_ROWS}\n"
         f"pto.set_validshape %t, %c32, %c64 : {DYNAMIC_ROWS}", "32 valid rows"),
    ]),
    (ReadError, [  # views
        (view("%c16, %c64", "%c64, %c1", "?x?xf16"), "the view has f16 elements, its pointer f32"),
        (view("%c16", "%c64, %c1", "?x?xf32"), "1 shape operands for a view of 2 dimensions"),
        (view("%c16, %c64", "%c1", "?x?xf32"), "1 stride operands for a view of 2 dimensions"),
        (view("%w, %c64", "%c64, %c1", "?x?xf32"), "%w is defined as i32 but used as index"),
        (GOOD.replace("%p", "%n"), "%n is not a pointer"),
        (GOOD.replace("tensor_view<", "partition_tensor_view<"), "expected a view type"),
        (GOOD.replace("shape", "shpe"), "expected 'shape', found 'shpe'"),
        (GOOD.replace("%c1]", "%c1"), "expected ',' or ']'"),
        (view("%c16, %c64", "%c64, %c1", "?x?xf32", "dnn"), "unknown layout 'dnn'"),
        (GOOD_ND.replace("layout =", "layuot ="), "no attribute 'layuot'"),
        (GOOD_ND.replace("#pto.layout<nd>", '"nd"'), "expected a value of layout"),
    ]),
    (TileError, [  # views that contradict themselves
        (view("%c16, %c64", "%c64, %c1", "16x32xf32"), "extent 1 of the view is 32 in the type but 64 in shape"),
        (view("%minus, %c64", "%c64, %c1", "?x?xf32"), "extent 0 of the view is -1"),
        (view("%c16, %c64", "%c64, %c1", "?x?xf32", "dn"), "layout mismatch: dn is declared"),
        (view("%c16, %c64", "%c1, %c16", "?x?xf32", "nd"), "layout mismatch: nd is declared"),
    ]),
    (ReadError, [  # partitions
        (part("%c0, %c0", "%c8, %c64", "8x64xf16"), "the part has f16 elements, its view f32"),
        (part("%c0", "%c8, %c64", "8x64xf32"), "1 offsets for a view of 2 dimensions"),
        (part("%c0, %c0", "%c8", "8x64xf32"), "1 sizes for a view of 2 dimensions"),
        (part("%c0, %c0", "%c8, %c64", "8x64xf32", "16x64xf32"), "%v is defined as !pto.tensor_view<?x?xf32>"),
        (part("%c0, %w", "%c8, %c64", "8x64xf32"), "%w is defined as i32"),
        (part("%c0, %c0", "%c8, %c64", "8x64xf32").replace(" : !pto.tensor_view<?x?xf32> ->", " : index ->"),
         "expected a view type, found index"),
        (part("%c0, %c0", "%c8, %c64", "8x64xf32").replace("sizes", "size"), "expected 'sizes', found 'size'"),
        (part("%c0, %c0", "%c8, %c64", "8x64xf32").replace("partition_tensor", "tensor"), "expected a partition type"),
    ]),
    (TileError, [  # partitions that do not fit
        (part("%c0, %c0", "%c8, %c64", "16x64xf32"), "dimension 0 is 16 in the type but 8 in sizes"),
        (part("%c0, %c0", "%c8, %c64", "8x32xf32"), "dimension 1 is 32 in the type but 64 in sizes"),
        (part("%c16, %c0", "%c8, %c64", "8x64xf32"), "offset 16 and size 8 exceed the view's extent of 16"),
        (part("%c0, %c1", "%c8, %c64", "8x64xf32"), "exceed the view's extent of 64"),
        (part("%minus, %c0", "%c8, %c64", "8x64xf32"), "both must be 0 or more"),
        (part("%c0, %c0", "%c8, %c64", "256xf32"), "256 elements in the type but 512 in sizes"),
        (part("%c0, %c0", "%c8, %c64", "1x8x64xf32"), "the part has 3 dimensions, the view has 2"),
    ]),
    (ReadError, [  # operations on tiles
        (f"%t = pto.alloc_tile : {T}\npto.tadd ins(%t, %t : {T}) outs(%t : {T})", "2 operands, but 1 types"),
        (f"%t = pto.alloc_tile : {T}\npto.tadd ins(%t, %t : {T}, {T} outs(%t : {T})", "expected ',' or ')'"),
        (f"%t = pto.alloc_tile : {T}\n%r = pto.tadd ins(%t, %t : {T}, {T}) outs(%t : {T})", "has no result"),
        (f"%t = pto.alloc_tile : {T}\npto.tadd ins(%t, %t : {T}, {T})", "expected 'outs'"),
        (f"%t = pto.alloc_tile : {T}\npto.set_validshape %t, %w, %n : {T}", "%w is defined as i32"),
        (f"%t = pto.alloc_tile : {T}\npto.set_validshape %n, %n, %n : {T}", "%n is defined as index"),
        (f"%t = pto.alloc_tile : {T}\npto.set_validshape %t, %n : {T}", "expected ','"),
        (f"%t = pto.alloc_tile : {T}\n%r = pto.treshape %n : index -> {T}", "takes "),
        (f"%t = pto.alloc_tile : {T}\npto.treshape %t : {T} -> {T}", "has 1 result, 0 named"),
    ]),
    (ReadError, [  # numbers that follow from constants wrap at the width of their type, casts of them stay known
        ("%a = arith.constant 127 : i8\n%b = arith.addi %a, %a : i8\nscf.for %i = %a to %a step %b : i8 { }",
         "must be positive, not -2"),
    ]),
    (TileError, [
        ("%w8 = arith.constant 32 : i32\n%i = arith.index_cast %w8 : i32 to index\n"
         f"%t = pto.alloc_tile valid_row = %i : {DYNAMIC_ROWS}", "32 valid rows"),
    ]),
    (TileError, [  # a new type must name the same bytes
        *((f"%t = pto.alloc_tile : {T}\n%r = pto.{name} %t : {T} -> {kind}", message) for name, kind, message in (
            ("treshape", "!pto.tile_buf<acc, 16x64xf32>", "cannot change the location from vec to acc"),
            ("treshape", compact("f16", 16, 64), "cannot change the size from 4096 to 2048 bytes"),
            ("treshape", "!pto.tile_buf<vec, 16x64xf32, slayout=row_major>", "boxed"),
            ("bitcast", compact("f32", 32, 32), "can change only the element type"),
            ("bitcast", compact("i64", 16, 64), "cannot widen elements from f32 to i64"),
        )),
    ]),
]  # fmt: skip


@pytest.mark.parametrize(
    ("kind", "body", "message", "legal"), [(kind, *row[:2], row[2:]) for kind, rows in REFUSED for row in rows]
)
def test_what_is_refused(kind: type[CastsimError], body: str, message: str, legal: tuple[str, ...]) -> None:
    assert set(legal) <= set(refused(kind, body, message).legal)


@pytest.mark.parametrize(
    "body",
    [
        *(f"%t = pto.alloc_tile valid_row = {rows} : {DYNAMIC_ROWS}" for rows in ("%c0", "%c1", "%c16", "%n")),
        view("%c16, %c64", "%c64, %c1", "16x64xf32", "nd"),
        view("%c16, %c64", "%c1, %c16", "16x64xf32", "dn"),
        view("%n, %c64", "%n, %c1", "16x64xf32", "dn"),  # dynamic: taken as given
        view("%c1, %c64", "%c1, %c1", "1x64xf32", "dn"),  # one row: both
        view("%c64", "%c1", "64xf32", "nd"),
        view("%c16, %c64", "%c512, %c8", "?x?xf32"),
        part("%c8, %c0", "%c8, %c64", "8x64xf32"),
        part("%n, %c0", "%c8, %c64", "8x64xf32"),  # bounds that depend on a run are not decided here
        part("%c0, %c0", "%n, %c64", "?x64xf32"),
        part("%c0, %c0", "%c8, %c64", "512xf32"),  # fewer dimensions, same number of elements
        part("%c0, %c0", "%n, %c64", "8x64xf32"),
    ],
)
def test_what_fits(body: str) -> None:
    parse(program(body))
