"""ONNX string casts: the literals of the operator's text, and decimals that lead back to their code."""

from __future__ import annotations

import numpy as np
import pytest
from numerics_samples import samples

from castsim.isa.errors import ReadError
from castsim.isa.formats import FORMATS, IntFormat
from castsim.isa.modes import Overflow, Rounding
from castsim.numerics import Policy, codes_from_strings, decode_to_float64, strings_from_codes

FLOATS = [name for name, fmt in FORMATS.items() if not isinstance(fmt, IntFormat)]


def test_decimals_and_scientific_notation() -> None:
    texts = ["3.14", "1000", "1e-5", "1E8", "-0", "+2.5", ".5", "1e400"]
    got = codes_from_strings(texts, FORMATS["f32"]).view(np.float32)
    assert got.tolist() == np.array([float(text) for text in texts]).astype(np.float32).tolist()
    assert np.signbit(got[4])


def test_special_literals_in_any_case() -> None:
    got = codes_from_strings(["INF", "+inf", "-Inf", "NaN", "nan"], FORMATS["f16"])
    assert got.tolist() == [0x7C00, 0x7C00, 0xFC00, 0x7E00, 0x7E00]


def test_integers_and_bool() -> None:
    assert codes_from_strings(["-128", "127", "+0"], FORMATS["i8"]).view(np.int8).tolist() == [-128, 127, 0]
    assert codes_from_strings(["18446744073709551615"], FORMATS["u64"]).tolist() == [(1 << 64) - 1]
    assert codes_from_strings(["0", "1", "2", "INF"], FORMATS["bool"]).tolist() == [0, 1, 1, 1]
    assert codes_from_strings(["100.0", "1e2"], FORMATS["i8"]).tolist() == [100, 100]


@pytest.mark.parametrize("text", ["2.718", "128", "-129", "NaN", "INF", "1e300"])
def test_what_onnx_leaves_undefined_is_refused_without_a_policy(text: str) -> None:
    with pytest.raises(ReadError, match=text):
        codes_from_strings([text], FORMATS["i8"])


def test_a_policy_settles_it() -> None:
    policy = Policy(Rounding.TRUNC, Overflow.SATURATE)
    got = codes_from_strings(["2.718", "-300", "NaN", "INF"], FORMATS["i8"], policy)
    assert got.view(np.int8).tolist() == [2, -128, 0, 127]


OTHER = ["Hello World!", "", " 1", "0x10", "1_000", "1/3", "infinity", "-nan", "1e", "x" * 100]


@pytest.mark.parametrize("text", OTHER)
def test_other_text_is_refused(text: str) -> None:
    with pytest.raises(ReadError, match="is not a number"):
        codes_from_strings([text], FORMATS["f32"])


def test_shapes_and_kinds_of_text_arrays() -> None:
    assert codes_from_strings(np.array([["1", "2"], ["3", "4"]]), FORMATS["i8"]).tolist() == [[1, 2], [3, 4]]
    assert codes_from_strings(np.array([b"1.5", b"-1"]), FORMATS["f16"]).tolist() == [0x3E00, 0xBC00]
    assert codes_from_strings(np.array(["1", b"2"], object), FORMATS["u8"]).tolist() == [1, 2]
    assert codes_from_strings(np.array("7"), FORMATS["i8"]).shape == ()
    assert codes_from_strings(np.zeros((0, 2), "U1"), FORMATS["f32"]).shape == (0, 2)
    for wrong in (np.zeros(2), np.array([1, None], object)):
        with pytest.raises(ReadError):
            codes_from_strings(wrong, FORMATS["f32"])


def test_numbers_become_plain_decimals() -> None:
    numbers = np.array([464.01, 1e6, 1e-7, -0.0, np.nan, np.inf, -np.inf], np.float32)
    got = strings_from_codes(numbers.view(np.uint32), FORMATS["f32"])
    assert got.tolist() == ["464.01", "1000000.0", "0.0000001", "-0.0", "NaN", "INF", "-INF"]
    assert strings_from_codes(np.array([[0xFF, 5]], np.uint8), FORMATS["i8"]).tolist() == [["-1", "5"]]
    assert strings_from_codes(np.array([0, 1], np.uint8), FORMATS["bool"]).tolist() == ["0", "1"]
    assert strings_from_codes(np.array([0xF, 1], np.uint8), FORMATS["i4"]).tolist() == ["-1", "1"]
    assert strings_from_codes(np.array(0x7E, np.uint8), FORMATS["e4m3fn"]).item() == "448.0"
    assert strings_from_codes(np.array([0x3F80, 0x3F81], np.uint16), FORMATS["bf16"]).tolist() == ["1.0", "1.0078125"]


@pytest.mark.parametrize("name", FORMATS)
def test_text_leads_back_to_the_code(name: str) -> None:
    fmt = FORMATS[name]
    codes = samples(fmt)
    codes = codes[:: max(1, codes.size // 300)]
    if name in FLOATS:
        codes = codes[~np.isnan(decode_to_float64(codes, fmt))]
    # ONNX rounds up to e8m0; the shortest decimal of a power of two may lie above it.
    policy = Policy(Rounding.ROUND, Overflow.SPECIAL) if name == "e8m0" else None
    back = codes_from_strings(strings_from_codes(codes, fmt), fmt, policy)
    assert np.array_equal(back, codes)
