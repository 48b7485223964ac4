from __future__ import annotations

import csv

import pytest
from kit.pto_text import VECTORS, asked, compact, function, key_value

from castsim.isa.errors import ReadError, TileError
from castsim.isa.formats import Saturation
from castsim.isa.pto.program import RoundMode, Tcvt, TileType
from castsim.isa.pto.pto_parser import parse

SRC = TileType("vec", "f32", 16, 16, 16, 16)
DST = TileType("vec", "f16", 16, 16, 16, 16)
TMP = TileType("vec", "i8", 1, 32, 1, 32)
T0, T1, TT = (compact("f32", 16, 16), compact("f16", 16, 16), compact("i8", 1, 32))
ALLOC = f"%s = pto.alloc_tile : {T0}\n%d = pto.alloc_tile : {T1}\n%t = pto.alloc_tile : {TT}\n"

# Spelling number -> text with places for the attributes; 6 and 7 define the destination themselves.
SPELLINGS = {
    "1 ins/outs": "pto.tcvt ins(%s {A} : T0) outs(%d : T1)",
    "1 without blanks": "pto.tcvt ins(%s{A}:T0)outs(%d:T1)",
    "4 attributes after outs": "pto.tcvt ins(%s : T0) outs(%d : T1) {A}",
    "5 dotted attribute": "pto.tcvt ins(%s {A}: T0) outs(%d : T1)",
    "6 SSA": "%d = pto.tcvt %s {A} : T0 -> T1",
    "6 SSA, parentheses": "%d = pto.tcvt %s {A} : (T0) -> T1",
    "7 bare": "%d = tcvt %s {A} : T0 -> T1",
    "9 generic": '"pto.tcvt"(%s, %d) {A} : (T0, T1) -> ()',
    "9 generic, properties": '"pto.tcvt"(%s, %d) <{A}> : (T0, T1) -> ()',
}
WITH_TMP = {
    "2 ins/outs": "pto.tcvt ins(%s, %t {A} : T0, TT) outs(%d : T1)",
    "4 attributes after outs": "pto.tcvt ins(%s, %t : T0, TT) outs(%d : T1) {A}",
    "6 SSA": "%d = pto.tcvt %s, %t {A} : T0, TT -> T1",
    "6 SSA, parentheses": "%d = pto.tcvt %s, %t {A} : (T0, TT) -> T1",
    "7 bare": "%d = tcvt %s, %t {A} : T0, TT -> T1",
    "9 generic": '"pto.tcvt"(%s, %d, %t) {A} : (T0, T1, TT) -> ()',
}
ONE_LINE = {
    "source type": "tcvt %d, %s : T0",
    "destination type": "tcvt %d, %s : T1",
    "both types": "tcvt %d, %s : T1, T0",
    "documented type": "tcvt %d, %s : !pto.tile<f32, 16, 16>",
    "full name": "pto.tcvt %d, %s : T0",
}
MODES = [
    ("#pto<round_mode FLOOR>", RoundMode.FLOOR),
    ("#pto.round_mode<FLOOR>", RoundMode.FLOOR),
    ("#pto<round_mode CAST_FLOOR>", RoundMode.FLOOR),
    ("#pto.round_mode<CAST_FLOOR>", RoundMode.FLOOR),
    ("#pto< round_mode  FLOOR >", RoundMode.FLOOR),
]


def fill(text: str, attributes: str = "") -> str:
    """A function with this tcvt; tiles it needs are allocated, its destination only if it does not define it."""
    text = text.replace("{A}", f"{{{attributes}}}" if attributes else "").replace("<>", "")
    text = text.replace("T0", T0).replace("T1", T1).replace("TT", TT)
    alloc = "\n".join(line for line in ALLOC.splitlines() if not (text.startswith("%d") and line.startswith("%d")))
    return function(f"{alloc}\n{text}")


def tcvt_of(text: str) -> Tcvt:
    (node,) = (node for node in parse(text).functions[0].body or () if isinstance(node, Tcvt))
    return node


@pytest.mark.parametrize("spelling", SPELLINGS)
@pytest.mark.parametrize(("mode", "rounding"), MODES)
def test_every_spelling_gives_the_same_cast(spelling: str, mode: str, rounding: RoundMode) -> None:
    node = tcvt_of(fill(SPELLINGS[spelling], f"rmode = {mode}, sat_mode = #pto<saturation_mode OFF>"))
    assert node == Tcvt(dst="d", src="s", dst_type=DST, src_type=SRC, rounding=rounding, saturation=Saturation.OFF)
    assert node.defines_dst is SPELLINGS[spelling].startswith("%d")


@pytest.mark.parametrize("spelling", SPELLINGS)
def test_without_attributes_nothing_is_chosen(spelling: str) -> None:
    assert tcvt_of(fill(SPELLINGS[spelling])) == Tcvt(dst="d", src="s", dst_type=DST, src_type=SRC)


@pytest.mark.parametrize("spelling", WITH_TMP)
def test_scratch_in_every_spelling_that_has_it(spelling: str) -> None:
    node = tcvt_of(fill(WITH_TMP[spelling], "rmode = #pto<round_mode TRUNC>"))
    assert node == Tcvt(dst="d", src="s", dst_type=DST, src_type=SRC, tmp="t", tmp_type=TMP, rounding=RoundMode.TRUNC)


@pytest.mark.parametrize("spelling", ONE_LINE)
@pytest.mark.parametrize(
    "attributes",
    ["#rmode=FLOOR #sat_mode=ON", "#sat_mode=ON #rmode=CAST_FLOOR",
     "#rmode = #pto<round_mode FLOOR> #sat_mode = #pto.saturation_mode<ON>"],
)  # fmt: skip
def test_the_one_line_form_takes_missing_types_from_the_definitions(spelling: str, attributes: str) -> None:
    node = tcvt_of(fill(f"{ONE_LINE[spelling]} {attributes}"))
    assert node == Tcvt(
        dst="d", src="s", dst_type=DST, src_type=SRC, rounding=RoundMode.FLOOR, saturation=Saturation.ON
    )


def test_the_one_line_form_with_scratch_and_without_attributes() -> None:
    expected = Tcvt(dst="d", src="s", dst_type=DST, src_type=SRC, tmp="t", tmp_type=TMP)
    assert tcvt_of(fill("tcvt %d, %s, %t : T1, T0, TT")) == expected
    assert tcvt_of(fill("tcvt %d, %s, %t : T1")) == expected


@pytest.mark.parametrize("mode", RoundMode)
@pytest.mark.parametrize("form", ["#pto<round_mode {}>", "#pto.round_mode<{}>"])
@pytest.mark.parametrize("prefix", ["", "CAST_"])
def test_every_rounding_mode(mode: RoundMode, form: str, prefix: str) -> None:
    assert tcvt_of(fill(SPELLINGS["1 ins/outs"], f"rmode = {form.format(prefix + mode.name)}")).rounding is mode


@pytest.mark.parametrize("mode", Saturation)
@pytest.mark.parametrize("spelling", ["1 ins/outs", "4 attributes after outs", "6 SSA", "7 bare", "9 generic"])
def test_satmode_is_the_newer_name_of_sat_mode(spelling: str, mode: Saturation) -> None:
    node = tcvt_of(fill(SPELLINGS[spelling], f"satmode = #pto<saturation_mode {mode.name}>"))
    assert node.saturation == mode


@pytest.mark.parametrize(
    ("attributes", "message", "legal"),
    [
        ("satMode = #pto<saturation_mode ON>", "no attribute 'satMode'", "sat_mode"),
        ("satmode = #pto<saturation_mode YES>", "unknown saturation_mode 'YES'", "OFF"),
        ("satmode = #pto<saturation_mode ON>, sat_mode = #pto<saturation_mode ON>", "same attribute", "sat_mode"),
        ("sat = #pto<saturation_mode ON>", "no attribute 'sat'", "sat_mode"),
        ("saturation = #pto<saturation_mode ON>", "no attribute 'saturation'", "sat_mode"),
        ("round = #pto<round_mode RINT>", "no attribute 'round'", "rmode"),
        ("round_mode = #pto<round_mode RINT>", "no attribute 'round_mode'", "rmode"),
        ("rmod = #pto<round_mode RINT>", "no attribute 'rmod'", "rmode"),
        ("xyzzy", "no attribute 'xyzzy'", "rmode"),
        ("pto.rmode = #pto<round_mode RINT>", "no attribute 'pto.rmode'", "rmode"),
        ("rmode = 1 : i32", "found 1 : i32", "#pto<round_mode RINT>"),
        ("rmode = 1", "found 1", "#pto<round_mode RINT>"),
        ('rmode = "FLOOR"', 'found "FLOOR"', "#pto<round_mode FLOOR>"),
        ("rmode = FLOOR", "found FLOOR", "#pto<round_mode FLOOR>"),
        ("rmode", "no value is given", "#pto<round_mode FLOOR>"),
        ("rmode = #pto<saturation_mode ON>", "found #pto<saturation_mode ON>", "#pto<round_mode RINT>"),
        ("sat_mode = #pto<round_mode RINT>", "found #pto<round_mode RINT>", "#pto<saturation_mode ON>"),
        ("sat_mode = true", "found true", "#pto<saturation_mode ON>"),
        ("rmode = #pto<round_mode FLOR>", "unknown round_mode 'FLOR'", "FLOOR"),
        ("rmode = #pto<round_mode rint>", "unknown round_mode 'rint'", "RINT"),
        ("rmode = #pto<round_mode CAST_CAST_RINT>", "unknown round_mode", "RINT"),
        ("sat_mode = #pto<saturation_mode YES>", "unknown saturation_mode 'YES'", "OFF"),
        ("rmode = #pto<round_mode RINT>, rmode = #pto<round_mode ODD>", "given twice", None),
    ],
)  # fmt: skip
@pytest.mark.parametrize("spelling", ["1 ins/outs", "4 attributes after outs", "6 SSA", "7 bare", "9 generic"])
def test_wrong_attributes_name_the_real_spelling(spelling, attributes, message, legal) -> None:
    with pytest.raises(ReadError) as caught:
        parse(fill(SPELLINGS[spelling], attributes))
    assert message in caught.value.message
    assert legal is None or legal in caught.value.legal


def test_an_attribute_in_both_places_is_given_twice() -> None:
    text = "pto.tcvt ins(%s {rmode = #pto<round_mode ODD>} : T0) outs(%d : T1) {rmode = #pto<round_mode ODD>}"
    with pytest.raises(ReadError, match="'rmode' is given twice"):
        parse(fill(text))


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("tcvt %d, %s : T0 #round=FLOOR", "no attribute 'round'"),
        ("tcvt %d, %s : T0 #rmode=1", "expected a value of rmode"),
        ("tcvt %d, %s : T0 #rmode=FLOR", "unknown round_mode 'FLOR'"),
        ("tcvt %d, %s : T0 #rmode=FLOOR #rmode=ODD", "given twice"),
        ("tcvt %d, %s : TT", "%d is defined as"),
        ("tcvt %d, %s : T0, T1", "%d is defined as"),
        ("tcvt %d, %s : T1, T0, TT", "2 operands, but 3 types"),
        ("tcvt %d : T1", "takes dst, src"),
        ("tcvt %d, %s, %t, %t : T1", "takes dst, src"),
        ("tcvt %d, %s", "expected ':'"),
        ("tcvt %nowhere, %s : T0", "%nowhere is not defined"),
        ("tcvt : T0", "expected 'ins' or a value"),
        ("pto.tcvt outs(%d : T1)", "expected 'ins' or a value"),
        ("pto.tcvt ins(%s : T0)", "expected 'outs'"),
        ("pto.tcvt ins(%s : T0) out(%d : T1)", "expected 'outs', found 'out'"),
        ("pto.tcvt ins() outs(%d : T1)", "expected a value"),
        ("pto.tcvt ins(%s, %t : T0) outs(%d : T1)", "2 operands, but 1 types"),
        ("pto.tcvt ins(%s, %t, %t : T0, TT, TT) outs(%d : T1)", "at most one scratch tile"),
        ("pto.tcvt ins(%s : T0) outs(%d, %t : T1, TT)", "writes one tile"),
        ("pto.tcvt ins(%s : T0) outs(%d {rmode = #pto<round_mode ODD>} : T1)", "expected ',' or ':'"),
        ("%x = pto.tcvt ins(%s : T0) outs(%d : T1)", "has no result"),
        ("%x = pto.tcvt %s : T1 -> T1", "%s is defined as"),
        ("%x = pto.tcvt %s, %t : T0, T0 -> T1", "%t is defined as"),
        ("%x, %y = pto.tcvt %s : T0 -> T1", "has 1 result, 2 named"),
        ("%x:2 = pto.tcvt %s : T0 -> T1", "has 1 result, 2 named"),
        ("%s = pto.tcvt %s : T0 -> T1", "redefinition of %s"),
        ("%x = pto.tcvt %s, %t, %t : T0, TT, TT -> T1", "expected ':'"),
        ("%x = pto.tcvt %s : T0 -> !pto.tile_buf<vec, 16x16xf16, valid=?x16>", "static valid extents"),
        ('%x = "pto.tcvt"(%s, %d) : (T0, T1) -> ()', "has no result"),
        ('"pto.tcvt"(%s) : (T0) -> ()', "takes src, dst"),
        ('"pto.tcvt"(%d, %s) : (T0, T1) -> ()', "%d is defined as"),
        ('"pto.tcvt"(%s, %d) : (T0, T1) -> (T1)', "expected ')'"),
        ("pto.tcvt ins(%s : T1) outs(%d : T1)", "%s is defined as"),
        ("pto.tcvt ins(%s : T0) outs(%d : T0)", "%d is defined as"),
        ("pto.tcvt ins(%sx : T0) outs(%d : T1)", "%sx is not defined"),
        ("tcvtt %d, %s : T0", "unknown operation 'tcvtt'"),
    ],
)  # fmt: skip
def test_malformed_casts_are_refused(text: str, message: str) -> None:
    with pytest.raises(ReadError) as caught:
        parse(fill(text))
    assert message in caught.value.message
    assert caught.value.span is not None
    assert caught.value.exit_code == 2


def test_the_place_is_that_of_the_word_at_fault() -> None:
    text = function(f"{ALLOC}  pto.tcvt ins(%s {{satMode = #pto<saturation_mode ON>}} : {T0}) outs(%d : {T1})")
    with pytest.raises(ReadError) as caught:
        parse(text, "k.pto")
    span = caught.value.span
    assert span is not None
    assert (span.file, span.line, span.length) == ("k.pto", 5, len("satMode"))
    assert span.text[span.column - 1 :].startswith("satMode")


@pytest.mark.parametrize(
    ("src", "dst", "message"),
    [
        (compact("f32", 16, 32), compact("f16", 16, 16), "the same shape: src has 16x32, dst has 16x16"),
        (compact("f32", 8, 32), compact("f16", 16, 32), "the same shape"),
        (compact("f32", 16, 32, 8, 32), compact("f16", 16, 32), "same valid region: src has 8x32, dst has 16x32"),
        (compact("f32", 16, 32, 16, 32), compact("f16", 16, 32, 16, 31), "same valid region"),
    ],
)
@pytest.mark.parametrize("spelling", SPELLINGS)
def test_shapes_and_valid_regions_must_agree(spelling: str, src: str, dst: str, message: str) -> None:
    text = fill(SPELLINGS[spelling]).replace(T0, src).replace(T1, dst)
    with pytest.raises(TileError) as caught:
        parse(text)
    assert message in caught.value.message
    assert caught.value.exit_code == 1
    assert caught.value.span is not None


@pytest.mark.parametrize(
    ("src", "dst"),
    [
        (compact("f32", 16, 5), compact("f16", 16, 5)),  # columns off the 32-byte grid
        (compact("f32", 16, 32, 0, 0), compact("f16", 16, 32, 0, 0)),
        ("!pto.tile_buf<mat, 16x32xf32>", "!pto.tile_buf<vec, 16x32xf16, blayout=col_major, pad=1, fractal=1024>"),
        (compact("i64", 16, 32), compact("f8E5M2", 16, 32)),  # whether a pair exists is the target's affair
        (compact("f64", 16, 32), compact("f64", 16, 32)),
    ],
)
def test_what_the_front_end_accepts_is_accepted(src: str, dst: str) -> None:
    tcvt_of(fill(SPELLINGS["1 ins/outs"]).replace(T0, src).replace(T1, dst))


def test_a_tile_may_be_converted_in_place() -> None:
    node = tcvt_of(fill("pto.tcvt ins(%s : T0) outs(%s : T0)"))
    assert (node.src, node.dst) == ("s", "s")


def test_a_dynamic_valid_region_agrees_with_any() -> None:
    dynamic = compact("f32", 16, 16, "?", 16)
    text = function(
        f"%n = arith.constant 4 : index\n%s = pto.alloc_tile valid_row = %n : {dynamic}\n"
        f"%d = pto.alloc_tile : {T1}\npto.tcvt ins(%s : {dynamic}) outs(%d : {T1})"
    )
    assert tcvt_of(text).src_type.valid_rows is None


def test_only_tiles_are_converted() -> None:
    part = "!pto.partition_tensor_view<16x16xf32>"
    text = f"func.func @f(%s: {part}, %d: {part}) {{\n{{}}\nreturn }}"
    for form in (
        f"pto.tcvt ins(%s : {part}) outs(%d : {part})",
        f"tcvt %d, %s : {part}",
        f"%x = tcvt %s : {part} -> {T1}",
    ):
        with pytest.raises(ReadError, match="tcvt converts tiles"):
            parse(text.replace("{}", form))


FORMATS = {"si8": "i8", "si16": "i16", "ui8": "u8", "ui16": "u16", "ui32": "u32"}


INSTANCES = list(csv.DictReader((VECTORS / "pto_tcvt_instances_dev.csv").read_text().splitlines()))


@pytest.mark.parametrize("tile", [key_value, compact])
def test_every_public_instance_reads_as_what_it_says(tile: object) -> None:
    assert callable(tile)
    for row in INSTANCES:
        shape = [int(row[key]) for key in ("rows", "cols", "valid_rows", "valid_cols")]
        src, dst = tile(row["src_dtype"], *shape), tile(row["dst_dtype"], *shape)
        scratch = row["line_form"] == "dps+tmp"
        tmp = (", %t", f", {TT}") if scratch else ("", "")
        text = function(
            f"%s = pto.alloc_tile : {src}\n%d = pto.alloc_tile : {dst}\n%t = pto.alloc_tile : {TT}\n"
            f"pto.tcvt ins(%s{tmp[0]}{asked(row['round_mode'], row['sat'])} : {src}{tmp[1]}) outs(%d : {dst})"
        )
        src_type, dst_type = (
            TileType("vec", FORMATS.get(row[key], row[key]), *shape) for key in ("src_dtype", "dst_dtype")
        )
        rounding = None if row["round_mode"] == "default" else RoundMode[row["round_mode"]]
        saturation = None if row["sat"] == "default" else Saturation[row["sat"]]
        more = {"tmp": "t", "tmp_type": TMP} if scratch else {}
        expected = Tcvt(
            "d", "s", src_type=src_type, dst_type=dst_type, rounding=rounding, saturation=saturation, **more
        )
        assert tcvt_of(text) == expected, row["file"]
