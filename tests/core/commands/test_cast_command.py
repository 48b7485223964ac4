"""`castsim cast`: values in, bits and numbers out."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import ml_dtypes
import numpy as np
import oracle
import oracle_a2a3
import pytest
from kit.cast_kernels import kernel
from kit.command_output import document_of, out_of

import castsim
from castsim.__main__ import main
from castsim.isa.formats import format_named
from castsim.numerics.blocks import code_dtype
from castsim.numerics.codec import encode_value

Capture = pytest.CaptureFixture[str]


def results(capsys: Capture, *argv: str) -> list[dict[str, Any]]:
    return document_of(capsys, "cast", *argv)["results"]


def test_a_row_has_the_cast_and_its_outcome(capsys: Capture) -> None:
    (row,) = results(capsys, "f32", "f16", "1.5")
    assert row == {
        "target": None, "forms": [], "rounding": "rint", "overflow": "special", "saturation": None,
        "input_bits": "0x3fc00000", "output_bits": "0x3e00", "value": 1.5, "inexact": False, "outcome": "exact",
        "ulps_from_abstract": 0, "accepted_by": {},
    }  # fmt: skip


@pytest.mark.parametrize(
    "text", ["-1.5", "-.5", "-3e5", "-1/3", "-inf", "-nan", "-0", "-infinity", "inf", "nan", "0.1"]
)
@pytest.mark.parametrize("separator", [(), ("--",)])
def test_negative_numbers_are_no_options(text: str, separator: tuple[str, ...], capsys: Capture) -> None:
    (row,) = results_behind(capsys, separator, text)
    number = -1 / 3 if text == "-1/3" else float(text)
    with np.errstate(over="ignore"):
        expected = np.float32(number).astype(np.float16)
    if text in ("nan", "-nan"):
        assert (row["value"], row["output_bits"][-3:]) == ("nan", "e00")
    else:
        assert row["output_bits"] == f"0x{int(expected.view(np.uint16)):04x}"
        assert float(row["value"]) == float(expected)


def results_behind(capsys: Capture, separator: tuple[str, ...], text: str) -> list[dict[str, Any]]:
    assert main(["cast", "--json", "-", "f32", "f16", *separator, text]) == 0
    found: list[dict[str, Any]] = json.loads(capsys.readouterr().out)["results"]
    return found


def test_options_may_stand_between_values(capsys: Capture) -> None:
    rows = results(capsys, "f32", "f16", "1", "--rounding", "rint", "-2", "--overflow", "special", "3")
    assert [row["value"] for row in rows] == [1, -2, 3]


def test_every_value_under_every_mode(capsys: Capture) -> None:
    rows = results(capsys, "f32", "i8", "1.5", "300", "--rounding", "floor,ceil", "--overflow", "saturate,wrap")
    assert [(r["rounding"], r["overflow"], r["value"], r["inexact"]) for r in rows] == [
        ("floor", "saturate", 1, True), ("floor", "wrap", 1, True),
        ("ceil", "saturate", 2, True), ("ceil", "wrap", 2, True),
        ("floor", "saturate", 127, True), ("floor", "wrap", 300 - 256, True),
        ("ceil", "saturate", 127, True), ("ceil", "wrap", 300 - 256, True),
    ]  # fmt: skip


@pytest.mark.parametrize("dst", ["e4m3fn", "e5m2", "bf16", "f16", "e4m3fnuz", "e5m2fnuz"])
def test_source_bits_against_ml_dtypes(dst: str, capsys: Capture) -> None:
    names = {"e4m3fn": "float8_e4m3fn", "e5m2": "float8_e5m2", "bf16": "bfloat16", "f16": "float16"}
    dtype = np.dtype(getattr(ml_dtypes, names.get(dst, f"float8_{dst}"), np.float16))
    codes = np.array([0x3F800000, 0x40490FDB, 0xBF000001, 0x38D1B717, 0x00000001, 0x80000000], np.uint32)
    rows = results(capsys, "f32", dst, *(f"0x{code:08X}" for code in codes))
    expected = codes.view(np.float32).astype(dtype)
    bits = expected.view(f"u{dtype.itemsize}")
    assert [int(row["output_bits"], 16) for row in rows] == bits.tolist()
    assert [row["value"] for row in rows] == expected.astype(np.float64).tolist()
    exact = expected.astype(np.float64) == codes.view(np.float32).astype(np.float64)
    assert [row["inexact"] for row in rows] == (~exact).tolist()


@pytest.mark.parametrize(
    ("words", "row"),
    [
        # e2m1 5 is 3.0; bits have the digits of the format
        ("e2m1 i64 0x5", {"input_bits": "0x5", "output_bits": "0x0000000000000003", "value": 3}),
        ("u64 u64 18446744073709551615", {"value": 2**64 - 1}),
        # TCVT f32 -> i16 runs ODD as TRUNC: 2.5 becomes 2 where rounding to odd gives 3
        ("f32 i16 2.5 --target a2a3 --rounding odd", {"value": 2, "ulps_from_abstract": -1}),
        ("i48 i48 0xffffffffffff", {"input_bits": "0xffffffffffff", "output_bits": "0xffffffffffff", "value": -1}),
        ("i48 i48 0x7fffffffffff",
         {"input_bits": "0x7fffffffffff", "output_bits": "0x7fffffffffff", "value": 2**47 - 1}),
        ("i48 i48 -2", {"input_bits": "0xfffffffffffe", "output_bits": "0xfffffffffffe", "value": -2}),
    ],
)  # fmt: skip
def test_bits_and_values(words: str, row: dict[str, object], capsys: Capture) -> None:
    (found,) = results(capsys, *words.split())
    assert row.items() <= found.items()


def test_a_target_has_its_own_defaults_and_says_what_is_in_force(capsys: Capture) -> None:
    # TCVT f32 -> i16 wraps unless told to saturate (pto-isa TCvt.hpp), and runs unknown modes as TRUNC.
    plain, odd = results(capsys, "f32", "i16", "40000.75", "--target", "a2a3", "--rounding", "rint,odd")
    assert (plain["target"], plain["rounding"], plain["saturation"]) == ("a2a3", "rint", "off")
    assert (plain["overflow"], plain["value"]) == ("wrap", 40001 - 65536)
    assert (odd["rounding"], odd["value"]) == ("trunc", 40000 - 65536)
    (clamped,) = results(capsys, "f32", "i16", "40000.75", "--target", "a2a3", "--saturation", "ON")
    assert (clamped["saturation"], clamped["overflow"], clamped["value"]) == ("on", "saturate", 32767)


def test_a_scratch_tile_changes_what_infinity_becomes(capsys: Capture) -> None:
    # Through int32 the low bits of its clamped extreme remain: -1 for plus infinity, 0 for minus
    # (docs/reference/a2a3.md section 3.4).
    off = ("--target", "a2a3", "--saturation", "off")
    assert [row["value"] for row in results(capsys, "f32", "i16", "inf", "-inf", *off)] == [0, 0]
    assert [row["value"] for row in results(capsys, "f32", "i16", "inf", "-inf", *off, "--scratch")] == [-1, 0]


def test_a_mode_without_effect_is_a_warning(capsys: Capture) -> None:
    out = out_of(capsys, ["cast", "f32", "i32", "1.5", "--target", "a2a3", "--rounding", "odd", "--saturation", "off"])
    assert "odd -> trunc" in out
    assert "warning: a2a3: rounding ODD becomes TRUNC" in out
    assert "warning: a2a3: saturation OFF is ignored" in out


def test_the_text_marks_what_is_not_exact(capsys: Capture) -> None:
    lines = out_of(capsys, ["cast", "f32", "f16", "0.1", "1.5", "65520"]).splitlines()
    tenth, half, large = (next(line for line in lines if line.startswith(text)) for text in ("0.1 *", "1.5", "65520"))
    assert "~0.100000001" in tenth  # 0.1 as f32 is 0.100000001490116...
    assert tenth.split()[-1] == "rounded"
    assert half.split()[-1] == "1.5"
    assert large.split()[-2:] == ["inf", "overflow"]
    assert "* not representable in f32: rounded to nearest first" in lines


# --------------------------------------------------------------------------------------------- targets side by side


def place(code: int, name: str) -> int | None:
    """Place among the sorted numbers of the oracle; infinities at the ends, None for NaN."""
    value = oracle.decode(code, name)
    if value.kind == "nan":
        return None
    first_special = oracle.FLOATS[name].first_special  # the codebook goes one step beyond the largest number
    numbers = sorted({float(number) for number, code in oracle.codebook(name) if code != first_special})
    if value.kind == "inf":
        index = len(numbers)
    else:
        index = numbers.index(float(value.magnitude))
    return -index if value.negative else index


@pytest.mark.parametrize("mode", ["rint", "floor", "odd"])
def test_all_targets_side_by_side(mode: str, capsys: Capture) -> None:
    """Against the lane oracle of one chip and the oracle of the abstract cast, distances counted in sorted numbers."""
    texts = ["0.1", "65520", "-inf", "nan", "-1e-8", "1.0009765"]
    codes = [int(np.float32(text).view(np.uint32)) for text in texts]
    document = document_of(capsys, "cast", "f32", "f16", *texts, "--target", "all", "--rounding", mode)
    for code in codes:
        rows = [row for row in document["results"] if row["input_bits"] == f"0x{code:08x}"]
        assert [row["target"] for row in rows][:2] == [None, "a2a3"]
        ideal = oracle.cast(code, "f32", "f16", mode, "special")
        chip = oracle_a2a3.lane("f32", "f16", code, mode, None, tmp=False)
        assert [int(row["output_bits"], 16) for row in rows[:2]] == [ideal, chip]
        ends = [place(result, "f16") for result in (ideal, chip)]
        distance = ends[1] - ends[0] if None not in ends else 0 if ideal == chip else None  # type: ignore[operator]
        assert (rows[0]["ulps_from_abstract"], rows[1]["ulps_from_abstract"]) == (0, distance)


def test_differences_are_listed_and_highlighted(capsys: Capture, monkeypatch: pytest.MonkeyPatch) -> None:
    argv = ["f32", "f16", "65520", "1.5", "nan", "--target", "abstract,a5"]
    document = document_of(capsys, "cast", *argv)
    assert document["differences"] == [
        {"input_bits": "0x477ff000", "rounding_asked": None, "output_bits": {"abstract": "0x7c00", "a5": "0x7bff"},
         "max_ulps_apart": 1},
        {"input_bits": "0x7fc00000", "rounding_asked": None, "output_bits": {"abstract": "0x7e00", "a5": "0x0000"},
         "max_ulps_apart": None},
    ]  # fmt: skip
    out = out_of(capsys, ["cast", *argv])
    assert "differ: 65520: 1 ulp apart" in out
    assert "differ: nan: NaN and numbers" in out
    assert "differ: 1.5" not in out
    (clamped,) = [line.split() for line in out.splitlines() if "0x7bff" in line]
    assert clamped == ["0x477ff000", "a5", "rint", "saturate", "clamps", "0x7bff", "65504", "-1", "clamped"]


def test_what_does_not_take_part_is_named(capsys: Capture) -> None:
    document = document_of(capsys, "cast", "f32", "e4m3fn", "1", "--target", "all")
    reasons = {entry["target"]: entry["reason"] for entry in document["skipped"]}
    assert "a2a3 has no cast f32 -> e4m3fn" in reasons["a2a3"]
    assert "a2a3" not in {row["target"] for row in document["results"]}
    assert "not shown: a2a3: a2a3 has no cast" in out_of(capsys, ["cast", "f32", "e4m3fn", "1", "--target", "all"])


@pytest.mark.parametrize(("switch", "overflow"), [("on", "saturate"), ("off", "wrap")])
def test_the_abstract_cast_follows_the_switch(switch: str, overflow: str, capsys: Capture) -> None:
    ideal, chip = results(capsys, "f32", "i16", "40000", "--target", "a2a3,abstract", "--saturation", switch)
    assert (ideal["target"], ideal["overflow"], chip["overflow"]) == (None, overflow, overflow)
    assert (ideal["value"], chip["value"], chip["ulps_from_abstract"]) == (chip["value"], ideal["value"], 0)


EXACT = {"native_off_intermediate": "exact"}
FORMS = (None, "1d", "2D")


def test_both_forms_are_shown_where_they_differ(capsys: Capture) -> None:
    # Contiguous tiles go from f32 to i16 by way of i32, whose extremes end in 16 ones and 16 zeros; padded rows take
    # one step, whose infinities are 0 in the ordinary golden class of pto-isa (docs/reference/a5.md section 5).
    argv = ["f32", "i16", "inf", "-inf", "1.5", "--target", "a5", "--saturation", "off"]
    document = document_of(capsys, "cast", *argv, "--option", "native_off_intermediate=exact")
    assert [(row["forms"], row["value"]) for row in document["results"]] == [
        (["1d"], -1),
        (["2d"], 0),
        (["1d", "2d"], 0),
        (["1d", "2d"], 2),
    ]
    (apart,) = document["differences"]
    assert apart["output_bits"] == {"a5_1d": "0xffff", "a5_2d": "0x0000"}
    out = out_of(capsys, ["cast", *argv, "--option", "native_off_intermediate=exact"])
    assert out.count("a5 2d") == 1
    assert "1d: tiles of full rows" in out
    infinity = np.array([np.inf], np.float32)
    chosen = {"target": "a5", "saturation": "off", "options": EXACT}
    assert [int(castsim.cast(infinity, "i16", form=form, **chosen)[0]) for form in FORMS] == [-1, -1, 0]


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ({"target": "a5", "form": "3d"}, "unknown form '3d' of a cast"),
        ({"target": "a2a3", "form": "2d"}, "a2a3 casts tiles of all shapes the same way"),
        ({"form": "2d"}, "need a target"),
        ({"options": EXACT}, "need a target"),
        ({"target": "a5", "options": {"nothing": 1}}, "a5 has no option 'nothing'"),
    ],
)
def test_forms_and_options_are_those_of_the_target(given: dict[str, Any], message: str) -> None:
    with pytest.raises(castsim.ReadError, match=message):
        castsim.cast(np.ones(1, np.float32), "i16", **given)


@pytest.mark.parametrize("src", ["f32", "f16", "bf16", "i64", "i32"])
@pytest.mark.parametrize("saturation", ["on", "off"])
def test_forms_give_what_tiles_of_their_shapes_give(src: str, saturation: str, tmp_path: Path) -> None:
    fmt, chip = format_named(src), castsim.load_target("a5")
    texts = ("0", "1", "-2", *(("nan", "inf", "-inf", "1.5", "40000", "-300") if src[0] != "i" else ("300", "-70000")))
    values = np.array([encode_value(text, fmt).code for text in texts], code_dtype(fmt))
    codes = np.resize(values if src[0] != "i" else values.view(f"i{values.itemsize}"), (2, 64))
    for dst in (row.dst for row in chip.casts if row.src == src and format_named(row.dst).bits >= 8):
        for form, cols in (("1d", 64), ("2d", 128)):
            path = tmp_path / f"{dst}_{form}.pto"
            path.write_text(_tile_program(src, dst, cols, saturation))
            given = castsim.cast(codes, src, dst, target="a5", saturation=saturation, form=form)
            (ran,) = castsim.run(path, target="a5", inputs={"x": codes}).outputs.values()
            assert np.array_equal(np.asarray(ran).view(given.dtype), given), (dst, form)


def _tile_program(src: str, dst: str, cols: int, saturation: str) -> str:
    types = (_WORDS.get(src, src), _WORDS.get(dst, dst))
    modes = f"rmode = #pto<round_mode RINT>, sat_mode = #pto<saturation_mode {saturation.upper()}>"
    return kernel(types, ((2, cols), (2, cols)), modes, valid=None if cols == 64 else ((2, 64), (2, 64)))


_WORDS = {"e4m3fn": "f8E4M3FN", "e5m2": "f8E5M2", "hif8": "!pto.hif8", "u8": "ui8", "u16": "ui16", "u32": "ui32"}
