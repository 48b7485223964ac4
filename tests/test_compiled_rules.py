"""Rules of C-level casts: numbers of elements, promotions, modes, reinterpretation, and what is refused."""

from __future__ import annotations

import json

import numpy as np
import pytest

from castsim.__main__ import main
from castsim.isa.errors import IllegalError, ReadError
from castsim.tpc_compiler.c_table import vector_type
from castsim.tpc_compiler.compiled_casts import compile_cast, compiled_cast

PROMOTIONS = ("char", "short", "int", "uint", "float")
"""The order that the vendor's document lists, as far as TPC has the types."""


@pytest.mark.parametrize(
    ("text", "element", "count"),
    [
        ("float64", "f32", 64),
        ("short128", "i16", 128),
        ("uchar256", "u8", 256),
        ("bfloat128", "bf16", 128),
        ("half256", "f16", 256),
        ("minifloat256", "f8_143", 256),
        ("minihalf256", "f8_152", 256),
        ("bool64", "i1", 64),
        ("bf16", "bf16", None),
        ("i1", "i1", None),
        ("half", "f16", None),
    ],
)
def test_types_go_by_their_c_names_and_by_formats(text: str, element: str, count: int | None) -> None:
    found = vector_type(text)
    assert (found.element, found.elements) == (element, count)


def test_a_missing_number_of_elements_fills_a_register_of_the_narrower_type() -> None:
    cast = compile_cast("f32", "i8", "gaudi")
    assert (cast.src.name, cast.dst.name) == ("float256", "char256")
    assert compile_cast("float128", "i16", "gaudi").dst.name == "short128"


def test_numbers_of_elements_must_agree() -> None:
    with pytest.raises(IllegalError, match="float64 has 64, short128 128") as caught:
        compile_cast("float64", "short128", "gaudi")
    assert caught.value.legal == ("float128 -> short128",)
    with pytest.raises(IllegalError, match="do not fill vector registers"):
        compile_cast("float64", "short64", "gaudi")


@pytest.mark.parametrize("place", range(len(PROMOTIONS)))
def test_implicit_conversions_follow_the_order_of_promotions(place: int) -> None:
    src = PROMOTIONS[place]
    for later in PROMOTIONS[place + 1 :]:
        assert compile_cast(f"{src}256", f"{later}256", "gaudi", form="implicit").mode in (None, "rhne")
    for earlier in PROMOTIONS[:place]:
        with pytest.raises(IllegalError, match="only by an explicit cast"):
            compile_cast(f"{src}256", f"{earlier}256", "gaudi", form="implicit")
        assert compile_cast(f"{src}256", f"{earlier}256", "gaudi", form="explicit").path.hops


def test_bf16_promotes_to_f32_and_bool_to_everything() -> None:
    assert compile_cast("bfloat128", "float128", "gaudi", form="implicit").mode == "rhne"
    assert compiled_cast([0, 7], "bool64", "int64", target="gaudi", form="implicit").tolist() == [0, 1]
    with pytest.raises(IllegalError, match="promotes bfloat128 to: float"):
        compile_cast("bfloat128", "short128", "gaudi", form="implicit")


def test_explicit_and_implicit_conversions_take_no_mode() -> None:
    for form in ("implicit", "explicit", "ir"):
        with pytest.raises(IllegalError, match="round to nearest even"):
            compile_cast("bf16", "f32", "gaudi", form=form, rounding="SW_RZ")


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


def test_a_path_of_integers_has_no_modes() -> None:
    with pytest.raises(IllegalError, match="integer steps take none"):
        compile_cast("i32", "i16", "gaudi", rounding="SW_RZ")


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


def test_reinterpretation_needs_equal_sizes_and_takes_no_mode() -> None:
    with pytest.raises(IllegalError, match="float64 has 2048, short64 1024") as caught:
        compile_cast("float64", "short64", "gaudi", form="reinterpret")
    assert caught.value.legal == ("short128",)
    with pytest.raises(IllegalError, match="takes no rounding mode"):
        compile_cast("float64", "int64", "gaudi", form="reinterpret", rounding="SW_RZ")


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
        (("i32", "u32", "--target", "gaudi", "--form", "ir"), 1, "one type in LLVM IR"),
        (("f32", "i16", "many", "--target", "gaudi"), 2, "many"),
        (("short128", "float64", "1", "--form", "reinterpret", "--target", "gaudi"), 2, "not a whole number of f32"),
    ],
)
def test_bad_command_lines(
    arguments: tuple[str, ...], code: int, text: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["compiled", *arguments]) == code
    assert text in capsys.readouterr().err


def test_the_command_shows_both_answers(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["compiled", "f32", "u16", "40000", "--target", "gaudi"]) == 0
    out = capsys.readouterr().out
    assert "40000 (0x9c40)  32767 (0x7fff)  differs" in out
    assert "compiler: f32 -> i32 -> u32 -> u16" in out
    assert "document: f32 -> i32 -> u32 ~ i32 -> i16 ~ u16" in out


def test_the_command_as_json(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["compiled", "f32", "u16", "40000", "--target", "gaudi", "--json", "-", "--quiet"]) == 0
    found = json.loads(capsys.readouterr().out)
    results = {each["account"]: each["values"] for each in found["results"]}
    assert results["compiler"] == [[{"bits": "0x9c40", "value": 40000}]]
    assert results["document"] == [[{"bits": "0x7fff", "value": 32767}]]
    assert found["path"]["types"] == ["f32", "i32", "u32", "u16"]


def test_emitted_assembly_is_what_runs(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["compiled", "bf16", "i32", "--target", "gaudi", "--emit"]) == 0
    assert capsys.readouterr().out == compile_cast("bf16", "i32", "gaudi").kernel.text()
