"""C-level casts and casts of LLVM IR: types, modes, refusals; definition and compiler; texts of the vendor's tests."""

from __future__ import annotations

import re
from math import trunc
from pathlib import Path

import numpy as np
import oracle_compiled as oracle
import pytest
from kit.command_output import Capture, document_of, err_of, out_of
from kit.tpc_text import phrases, target
from oracle_formats import INTS, decode, fmt
from oracle_scalar import encode
from tools.compiled import compiled_cases as cases
from tools.compiled.compiled_cases import compiled_cast

from castsim.commands.cast import read_value
from castsim.isa.errors import CastsimError, IllegalError, ReadError
from castsim.isa.formats import FORMATS
from castsim.numerics.codec import codes_from_array
from castsim.tools.compiled.cast_comparison import casts_of_text, compare, defined, inputs_of, opcodes
from castsim.tools.compiled.compiled_casts import compile_cast
from castsim.tools.tpc_compiler.c_table import vector_type

PROMOTIONS = ("char", "short", "int", "uint", "float")
"""The order that the vendor's document lists, as far as TPC has the types."""


TYPES = """
    float64 = f32 64; short128 = i16 128; uchar256 = u8 256; bfloat128 = bf16 128; half256 = f16 256; bool64 = i1 64;
    minifloat256 = f8_143 256; minihalf256 = f8_152 256; bf16 = bf16 None; i1 = i1 None; half = f16 None
"""


@pytest.mark.parametrize("row", phrases(TYPES))
def test_types_go_by_their_c_names_and_by_formats(row: str) -> None:
    text, expected = row.split(" = ")
    found = vector_type(text)
    assert f"{found.element} {found.elements}" == expected


@pytest.mark.parametrize(
    ("cast", "options", "message", "legal"),
    [
        ("float64 short128", {}, "float64 has 64, short128 128", ("float128 -> short128",)),
        ("float64 short64", {}, "do not fill vector registers", None),
        *(
            ("bf16 f32", {"form": form, "rounding": "SW_RZ"}, "round to nearest even", None)
            for form in ("implicit", "explicit", "ir")
        ),
        ("bfloat128 short128", {"form": "implicit"}, "promotes bfloat128 implicitly to float", None),
        ("i32 i16", {"rounding": "SW_RZ"}, "integer steps take none", None),
        ("float64 short64", {"form": "reinterpret"}, "float64 has 2048, short64 1024", ("short128",)),
        ("float64 int64", {"form": "reinterpret", "rounding": "SW_RZ"}, "takes no rounding mode", None),
    ],
)
def test_refused_casts(cast: str, options: dict[str, str], message: str, legal: tuple[str, ...] | None) -> None:
    with pytest.raises(IllegalError, match=message) as caught:
        compile_cast(*cast.split(), "gaudi", **options)  # type: ignore[misc, arg-type]
    assert legal is None or caught.value.legal == legal


@pytest.mark.parametrize("place", range(len(PROMOTIONS)))
def test_implicit_conversions_follow_the_order_of_promotions(place: int) -> None:
    src = PROMOTIONS[place]
    for later in PROMOTIONS[place + 1 :]:
        assert compile_cast(f"{src}256", f"{later}256", "gaudi", form="implicit").mode in (None, "rhne")
    for earlier in PROMOTIONS[:place]:
        with pytest.raises(IllegalError, match="only with an explicit cast"):
            compile_cast(f"{src}256", f"{earlier}256", "gaudi", form="implicit")
        assert compile_cast(f"{src}256", f"{earlier}256", "gaudi", form="explicit").path.hops


@pytest.mark.parametrize(
    ("generation", "mode", "legal"),
    [
        ("goya", "SW_RHAZ", {"rhne", "rz", "ru", "rd", "csr"}),
        ("goya", "SW_SR", {"rhne", "rz", "ru", "rd", "csr"}),
        ("gaudi", "SR_RNE", {"rhne", "rz", "ru", "rd", "sr", "csr", "rhaz"}),
        ("greco", "sr_rhne", {"rhne", "rz", "ru", "rd", "sr", "csr", "rhaz"}),
    ],
)
def test_an_undefined_mode_names_those_of_the_path(generation: str, mode: str, legal: set[str]) -> None:
    with pytest.raises(IllegalError, match=r"path f32 -> i32 -> u32 -> u16 .* has no rounding mode") as caught:
        compile_cast("f32", "u16", generation, rounding=mode)
    assert set(caught.value.legal) == {f"SW_{word.upper()}" for word in legal}


def test_sw_spellings_and_aliases_are_accepted() -> None:
    for word in ("SW_RZ", "rz", "RZ"):
        assert compile_cast("f32", "i16", "gaudi", rounding=word).mode == "rz"
    assert compile_cast("f32", "i16", "gaudi", rounding="SW_RNE").mode == "rhne"
    assert compile_cast("f32", "f8_143", "gaudi2", rounding="SR_RHNE").mode == "sr_rne"
    with pytest.raises(ReadError, match="unknown rounding mode 'nearest'") as caught:
        compile_cast("f32", "i16", "gaudi", rounding="nearest")
    assert "SW_RHNE" in caught.value.legal


def test_a_mode_stands_on_every_conversion_and_on_no_integer_step() -> None:
    instructions = compile_cast("f32", "u16", "gaudi", rounding="SW_RU").kernel.vector_instructions
    converts = [text for text in instructions if text.startswith("convert.")]
    narrowing = [text for text in instructions if text.startswith("convert_uint32")]
    assert len(converts) == 4
    assert all(" ru " in text for text in converts)
    assert len(narrowing) == 2
    assert all(" rhne " in text and text.endswith("0x0") for text in narrowing)


def test_stochastic_rounding_runs_on_the_generator_at_rest() -> None:
    # From reset the generator is 0 and stays 0: discarded bits are never below it, magnitudes round up (section 5).
    codes = np.array([1.25, -1.25, 3.0], np.float32).view(np.uint32)
    found = compiled_cast(codes, "f32", "i32", target="gaudi", rounding="SW_SR").view(np.int32)
    assert found.tolist() == [2, -2, 3]


def test_reinterpretation_keeps_bits_and_takes_no_instruction() -> None:
    cast = compile_cast("float64", "short128", "gaudi", form="reinterpret")
    codes = np.array([0x3F80ABCD, 0x12345678], np.uint32)
    assert cast.values(codes).tolist() == [0xABCD, 0x3F80, 0x5678, 0x1234]
    assert cast.kernel.vector_instructions == ()
    back = compile_cast("short128", "float64", "gaudi", form="reinterpret")
    assert back.values(cast.values(codes)).tolist() == codes.tolist()


@pytest.mark.parametrize(
    ("arguments", "code", "text"),
    [
        (("f32", "f16", "--target", "goya"), 1, "goya has no elements of f16"),
        (("f32", "quux", "--target", "goya"), 2, "neither a vector type of TPC-C"),
        (("float0", "short128", "--target", "goya"), 2, "has no elements"),
        (("f32", "i16", "--target", "a5"), 1, "a5 is not a TPC"),
        (("f32", "i16", "--target", "gaudi", "--form", "static"), 2, "unknown form 'static'"),
        (("f32", "i16", "--target", "gaudi", "--reading", "mine"), 2, "unknown reading 'mine'"),
        (("f32", "i16", "--target", "gaudi", "--order", "up"), 2, "unknown order 'up'"),
        (("f32", "--target", "gaudi"), 2, "SRC and DST are needed"),
        (("f32", "i16", "--target", "gaudi", "--table"), 2, "leave out SRC and DST"),
        (("i32", "u32", "--target", "gaudi", "--form", "ir"), 1, "the same type in LLVM IR"),
        (("f32", "i16", "many", "--target", "gaudi"), 2, "many"),
        (("short128", "float64", "1", "--form", "reinterpret", "--target", "gaudi"), 2, "not a whole number of f32"),
    ],
)
def test_bad_command_lines(arguments: tuple[str, ...], code: int, text: str, capsys: Capture) -> None:
    assert text in err_of(capsys, ["compiled", *arguments], code)


def test_the_command_shows_both_answers(capsys: Capture) -> None:
    words = ["compiled", "f32", "u16", "40000", "--target", "gaudi"]
    text = out_of(capsys, words)
    assert "40000 (0x9c40)  32767 (0x7fff)  differs" in text
    assert "compiler: f32 -> i32 -> u32 -> u16" in text
    assert "document: f32 -> i32 -> u32 ~ i32 -> i16 ~ u16" in text
    found = document_of(capsys, *words, "--quiet")
    results = {each["account"]: each["values"] for each in found["results"]}
    assert results["compiler"] == [[{"bits": "0x9c40", "value": 40000}]]
    assert results["document"] == [[{"bits": "0x7fff", "value": 32767}]]
    assert found["path"]["types"] == ["f32", "i32", "u32", "u16"]


def test_emitted_assembly_is_what_runs(capsys: Capture) -> None:
    text = out_of(capsys, ["compiled", "bf16", "i32", "--target", "gaudi", "--emit"])
    assert text == compile_cast("bf16", "i32", "gaudi").kernel.text()


OPCODES = {
    ("f32", "bf16"): ["fptrunc"], ("bf16", "f32"): ["fpext"], ("f16", "bf16"): ["fpext", "fptrunc"],
    ("i32", "f32"): ["sitofp"], ("u16", "bf16"): ["uitofp"], ("f32", "i8"): ["fptosi"], ("f16", "u32"): ["fptoui"],
    ("u32", "i8"): ["trunc"], ("i8", "u16"): ["sext"], ("u8", "i32"): ["zext"], ("i32", "u32"): [],
}  # fmt: skip


def by_definition(code: int, src: str, dst: str) -> int | None:
    """Return the code that the language reference gives, None for poison; -1 for any NaN."""
    value, row = decode(code, src), fmt(dst)
    number = -value.magnitude if value.negative else value.magnitude
    if dst in INTS:
        if src in INTS:
            return int(number) % (1 << row.bits)
        if value.kind != "finite" or not row.low <= trunc(number) <= row.high:
            return None
        return trunc(number) % (1 << row.bits)
    if value.kind == "nan":
        return -1
    if value.kind == "inf":
        return row.inf | (row.sign_code if value.negative else 0)
    return encode(value, row, "rint", "special")


@pytest.mark.parametrize(("src", "dst"), sorted(OPCODES))
def test_instructions_by_types(src: str, dst: str) -> None:
    assert [each.value for each in opcodes(src, dst)] == OPCODES[src, dst]


@pytest.mark.parametrize(("src", "dst"), [pair for pair in cases.pairs("gaudib") if opcodes(*pair)])
def test_the_definition_is_the_languages(src: str, dst: str) -> None:
    codes = cases.sample(src, dst, points=8, random=20)
    found, poison = defined(codes, src, dst)
    for code, result, free in zip(codes.tolist(), found.tolist(), poison.tolist(), strict=True):
        wanted = by_definition(code, src, dst)
        assert free is (wanted is None), hex(code)
        if wanted == -1:
            assert decode(result, dst).kind == "nan"
        elif wanted is not None:
            assert result == wanted, hex(code)


@pytest.mark.parametrize("generation", ["gaudi"])
def test_a_witness_is_shown_exactly_where_the_compiler_differs(generation: str) -> None:
    for src, dst in cases.pairs(generation):
        if not opcodes(src, dst) or (fmt(src).bits == 16 and dst not in ("u8", "bf16")):
            continue
        found = compare(compile_cast(src, dst, generation, form="ir"), [])
        codes = inputs_of(src)[:: 1 if fmt(src).bits <= 8 else 197]
        made = oracle.expected(codes, src, dst, generation)
        differing = [
            code
            for code, ours in zip(codes.tolist(), made.tolist(), strict=True)
            if by_definition(code, src, dst) not in (None, -1, ours)
        ]
        assert bool(found.differences) or not differing, (src, dst, differing[:3])
        for difference in found.differences:
            witness = difference.witness
            assert witness.other == by_definition(witness.code, src, dst) != witness.ours
            ours = oracle.expected(np.array([witness.code], cases.storage(src)), src, dst, generation)
            assert witness.ours == ours[0]


@pytest.mark.parametrize(
    ("src", "dst", "code", "ours", "defined_code"),
    [
        ("f32", "i32", 0x3F400000, 1, 0),  # 0.75: fptosi rounds to nearest even
        ("i32", "i16", 40000, 0x7FFF, 40000),  # trunc saturates
        ("u32", "f32", 2**31 + 129, 0x4F000000, 0x4F000001),  # halving rounds twice
        ("i8", "u16", 0xFF, 0, 0xFFFF),  # the table's sext to an unsigned type converts the number
    ],
)
def test_known_differences_on_gaudi(src: str, dst: str, code: int, ours: int, defined_code: int) -> None:
    results = compare(compile_cast(src, dst, "gaudi", form="ir"), [read_value(f"{code:#x}", FORMATS[src])])
    assert [column.codes[0, 0] for column in results.columns] == [ours, defined_code]
    assert results.differences


def test_extensions_of_integers_leave_the_mode_to_the_register() -> None:
    text = compile_cast("i16", "i32", "gaudi", form="ir").kernel.vector_instructions
    assert any(each.startswith("convert.i16 target_type=int32 V") or " csr " in each for each in text)
    text = compile_cast("f32", "i32", "gaudi", form="ir").kernel.vector_instructions
    assert all(" rhne " in each for each in text)


def test_the_command_shows_poison_and_the_witness(capsys: Capture) -> None:
    out = out_of(capsys, ["compiled", "f32", "i32", "0.75", "nan", "--target", "gaudi", "--form", "ir"])
    assert "LLVM IR fptosi" in out
    assert "1 (0x00000001)  0 (0x00000000)  differs" in out
    assert "poison" in out
    assert "differs from LLVM IR: 0.625" in out


TEXT = """; casts of a kernel
declare <128 x bfloat> @llvm.tpc.fptrunc.swch.v128bf16.v128f32(<128 x float>, i32)
define void @main(<128 x float> %x, <256 x i8> %n) {
  %a = tail call <128 x bfloat> @llvm.tpc.fptrunc.swch.v128bf16.v128f32(<128 x float> %x, i32 MODE)
  %s = fadd <128 x float> %x, %x ; not a cast: fptrunc
  %b = fptoui fast <128 x float> %x to <128 x i32>, !dbg !3
  %c = trunc <128 x i32> %b to <128 x i16>
  %d = zext nneg <256 x i8> %n to <256 x i16>
}
"""
MODES = {0: "rhne", 1: "rz", 2: "ru", 3: "rd"}
"""Source: the switches of conversions in docs/languages/tpc_c.md, rounding << 16."""


@pytest.mark.parametrize("mode", MODES)
def test_calls_round_as_their_switches_say_and_results_keep_their_signs(mode: int) -> None:
    found = casts_of_text(TEXT.replace("MODE", str(mode << 16 | 1 << 24)), "t.ll", target("gaudi2"))
    kinds = [(each.span.line, each.cast.src.element, each.cast.dst.element) for each in found]
    assert kinds == [(4, "f32", "bf16"), (6, "f32", "u32"), (7, "u32", "u16"), (8, "u8", "u16")]
    x = np.random.default_rng(mode).uniform(-100, 100, 128).astype(np.float32)
    codes = codes_from_array(x, FORMATS["f32"]).astype(np.int64)
    up = {"rz": 0, "ru": np.where(x > 0, 0xFFFF, 0), "rd": np.where(x < 0, 0xFFFF, 0)}
    added = up.get(MODES[mode], 0x7FFF + (codes >> 16 & 1))
    assert np.array_equal(found[0].cast.values(codes.astype(np.uint32)), (codes + added >> 16).astype(np.uint16))


@pytest.mark.parametrize(
    ("text", "place", "message"),
    [
        ("%y = fptrunc <128 x float> %x", "1:6", "cannot be read"),
        ("\n %y = fptrunc <128 x double> %x to <128 x float>", "2:15", "double> is not one that TPC converts"),
        ("%y = fptrunc <128 x float> %x to <64 x bfloat>", "1:6", "different numbers of elements"),
        ("%y = fpext <128 x float> %x to <128 x bfloat>", "1:6", "does not lead from"),
        ("%y = zext <64 x i32> %x to <64 x i32>", "1:6", "does not lead from"),
        ("%y = fptosi <96 x float> %x to <96 x i32>", "1:6", "96 elements of f32 do not fill"),
        ("%y = call <128 x i32> @llvm.tpc.convert.swch(<128 x float> %x, i32 0)", "1:23", "unknown intrinsic @llvm"),
        ("%y = call <128 x bfloat> @llvm.tpc.fptrunc.swch(<128 x float> %x)", "1:26", "cannot be read"),
        ("%y = call <128 x bfloat> @llvm.tpc.fptrunc.swch(<128 x float> %x, i32 %s)", "1:71", "not a constant"),
        ("%y = call <128 x bfloat> @llvm.tpc.fptrunc.swch(<128 x float> %x, i32 1)", "1:71", "more than a rounding"),
        ("%y = call <128 x bfloat> @llvm.tpc.fptrunc.swch(<128 x float> %x, i32 458752)", "1:71", "no rounding mode 7"),
        ("%y = fadd <128 x float> %x, %x", "", "contains no LLVM IR cast"),
    ],
)  # fmt: skip
def test_refusals_name_their_place(text: str, place: str, message: str) -> None:
    with pytest.raises(CastsimError, match=re.escape(message)) as caught:
        casts_of_text(text, "t.ll", target("goya" if "458752" in text else "gaudi"))
    assert str(caught.value.span or "t.ll:") == f"t.ll:{place}"
    assert caught.value.legal


def test_the_command_shows_each_cast_with_its_place(tmp_path: Path, capsys: Capture) -> None:
    path = tmp_path / "casts.ll"
    path.write_text(TEXT.replace("MODE", "65536").replace("%d =", "%d = add"), encoding="utf-8")
    shown = "".join(out_of(capsys, ["compiled", str(path), "3", "--target", "gaudi2"]).split())  # long paths wrap
    assert f"{path}:6:8:fptoui128xf32tou32" in shown
    casts = document_of(capsys, "compiled", str(path), "3", "--target", "gaudi2", "--quiet")["casts"]
    assert [each["line"] for each in casts] == [4, 6, 7]
    assert all(each["results"][0]["values"][0][0]["value"] == 3 for each in casts)
    text = out_of(capsys, ["compiled", str(path), "--emit", "--target", "gaudi2"])
    assert text.count("// castsim: target gaudi2") == 3
    error = err_of(capsys, ["compiled", str(path), "--form", "as_is", "--target", "gaudi2"])
    assert "--form does not apply to LLVM IR text" in error
