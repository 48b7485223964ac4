from __future__ import annotations

import pytest
from pto_text import compact, function, key_value

from castsim.isa.errors import ReadError, TileError
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


@pytest.mark.parametrize("location", ["vec", "mat", "left", "right", "acc", "bias", "scaling"])
def test_every_location(location: str) -> None:
    kind = parse_type(f"!pto.tile_buf<{location}, 16x64xf32>")
    assert isinstance(kind, TileType)
    assert kind.location == location


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
        ("!pto.tile_buf<vec, 16x64xf32, fractal=-1>", "whole number", ()),
        ("!pto.tile_buf<vec, 16xf32>", "expected a shape", ()),
        ("!pto.tile_buf<vec, ?x64xf32>", "expected a shape", ()),
        ("!pto.tile_buf<vec>", "lacks its shape", ()),
        ("!pto.tile_buf<>", "unknown loc", None),
        ("!pto.tile_buf", "needs parameters", ()),
        (key_value("f32", 16, 64).replace("rows=16, cols=64", "cols=64, rows=16"), "expected key 'rows'", ("rows",)),
        (key_value("f32", 16, 64).replace(", pad=0", ""), "lacks 'pad'", ("pad",)),
        (key_value("f32", 16, 64).replace(">", ", compact=0, more=1>"), "unexpected 'more'", ()),
        (key_value("f32", 16, 64).replace("dtype=", "type="), "expected key 'dtype'", ("dtype",)),
        (key_value("f32", 16, 64).replace("rows=16", "rows=-16"), "whole number", ()),
        (key_value("f32", 16, 64).replace("rows=16", "rows=" + "9" * 5000), "whole number", ()),
        ("!pto.tile<f32, 16, 64, RowMajor>", "found 4 parameters", None),
        ("!pto.tile<f32, 16, 64, row_major, NoneBox, None, Zero>", "unknown block layout", ("RowMajor", "ColMajor")),
        ("!pto.tile<f32, 16, 64, RowMajor, NoneBox, None, Nil>", "unknown pad", ("Null", "Zero", "Max", "Min")),
        ("!pto.tilebuf<vec, 16x64xf32>", "unknown type", None),
        ("!pto.eventid_array", "not supported", None),
        ("!pto.async_session", "not supported", None),
        ("!pto.ptr<f32, gm, gm>", "at most a memory space", ()),
        ("!pto.ptr<f32, l1>", "unknown memory space", ("gm", "ub")),
        ("!pto.tensor_view<f32>", "no dimensions", ()),
        ("!pto.tensor_view<1x1x1x1x1x1xf32>", "6 dimensions", ()),
        ("!pto.tensor_view<" + "9" * 5000 + "xf32>", "beyond any memory", ()),
        ("!pto.tensor_view<4xf32, nd>", "nothing more", ()),
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
    with pytest.raises(ReadError, match="'e3m2' has no spelling"):
        format_type(PointerType("e3m2"))
