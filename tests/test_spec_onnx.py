"""ONNX Cast: types by opset, attributes, e8m0, text.

Expected: the operator page's version history and tables, docs/reference/semantics.md section 3, copied by hand.
"""

from __future__ import annotations

import numpy as np
import pytest

from castsim.isa.errors import IllegalError, ReadError
from castsim.specifications import acceptance, accepts, accepts_text, specified_cast, text_acceptance

OPSET_1 = {"bool", "f64", "f32", "f16", "i8", "i16", "i32", "i64", "u8", "u16", "u32", "u64"}
ADDED = {
    1: OPSET_1, 6: set(), 9: {"string"}, 13: {"bf16"}, 19: {"e4m3fn", "e4m3fnuz", "e5m2", "e5m2fnuz"},
    21: {"i4", "u4"}, 23: {"e2m1"}, 24: {"e8m0"}, 25: {"i2", "u2"}, 28: {"e2m3", "e3m2"},
}  # fmt: skip
"""Types that each version added; 25 and 28 from the schemas of onnx 1.23.2."""

EVERY_TYPE = sorted(set().union(*ADDED.values()))


@pytest.mark.parametrize("opset", range(1, 29))
def test_types_by_opset(opset: int) -> None:
    version = max(known for known in ADDED if known <= opset)
    types = set().union(*(added for known, added in ADDED.items() if known <= opset))
    for name in EVERY_TYPE:
        for src, dst in ((name, "f32"), ("f32", name)):
            if name in types:
                assert specified_cast("onnx", src, dst, version=opset).version == str(version)
            else:
                with pytest.raises(IllegalError, match=f"onnx {version} has no cast {src} -> {dst}; it came with"):
                    specified_cast("onnx", src, dst, version=opset)


def test_every_pair_is_legal_in_the_newest_version() -> None:
    for src in EVERY_TYPE:
        for dst in EVERY_TYPE:
            specified_cast("onnx", src, dst)
    with pytest.raises(IllegalError, match="onnx 28 has no cast f32 -> hif8"):
        specified_cast("onnx", "f32", "hif8")


@pytest.mark.parametrize("opset", ["0", "29", "-1", "1.5", "nineteen"])
def test_unknown_opsets(opset: str) -> None:
    with pytest.raises(ReadError, match="onnx has no version"):
        specified_cast("onnx", "f32", "f16", version=opset)


@pytest.mark.parametrize(("name", "opset"), [("saturate", 18), ("round_mode", 23)])
def test_attributes_have_a_first_version(name: str, opset: int) -> None:
    value = {"saturate": 0, "round_mode": "down"}[name]
    with pytest.raises(IllegalError, match=f"has no attribute {name}; it came with {opset + 1}"):
        specified_cast("onnx", "f32", "f16", version=opset, attributes={name: value})
    cast = specified_cast("onnx", "f32", "f16", version=opset + 1, attributes={name: value})
    assert cast.label == f"onnx@{opset + 1}:{name}={value}"


def floats(*numbers: float) -> np.ndarray:
    return np.array(numbers, np.float32).view(np.uint32)


FP8_TABLES = [
    # the operator page's two tables: 0, -0, NaN, Inf, -Inf, beyond the largest, below the lowest
    ("e4m3fn", 1, [0x00, 0x80, None, 0x7E, 0xFE, 0x7E, 0xFE]),
    ("e4m3fnuz", 1, [0x00, 0x00, None, 0x7F, 0xFF, 0x7F, 0xFF]),
    ("e5m2", 1, [0x00, 0x80, None, 0x7B, 0xFB, 0x7B, 0xFB]),
    ("e5m2fnuz", 1, [0x00, 0x00, None, 0x7F, 0xFF, 0x7F, 0xFF]),
    ("e4m3fn", 0, [0x00, 0x80, None, None, None, None, None]),
    ("e4m3fnuz", 0, [0x00, 0x00, None, None, None, None, None]),
    ("e5m2", 0, [0x00, 0x80, None, 0x7C, 0xFC, 0x7C, 0xFC]),
    ("e5m2fnuz", 0, [0x00, 0x00, None, None, None, None, None]),
]


@pytest.mark.parametrize(("dst", "saturate", "expected"), FP8_TABLES)
def test_fp8_tables(dst: str, saturate: int, expected: list[int | None]) -> None:
    source = floats(0.0, -0.0, np.nan, np.inf, -np.inf, 1e9, -1e9)
    sets = acceptance("onnx", "f32", dst, source, attributes={"saturate": saturate})
    got = [int(code) if alone else None for code, alone in zip(sets.lowest, sets.single, strict=True)]
    assert got == expected
    assert sets.nan.tolist() == [code is None for code in expected]
    assert not (sets.numbers & sets.nan).any()


@pytest.mark.parametrize(
    ("saturate", "mode", "expected"),
    [
        # the operator page's table: 0, NaN, Inf, x > E8M0_MAX, x < E8M0_MIN
        (1, "up", [0x00, 0xFF, 0xFE, 0xFE, 0x00]),
        (0, "nearest", [0xFF, 0xFF, 0xFF, 0xFF, 0xFF]),
    ],
)
def test_e8m0_table(saturate: int, mode: str, expected: list[int]) -> None:
    source = np.array([0.0, np.nan, np.inf, 2.0**128, 2.0**-128]).view(np.uint64)
    attributes = {"saturate": saturate, "round_mode": mode}
    sets = acceptance("onnx", "f64", "e8m0", source, attributes=attributes)
    every = np.arange(256, dtype=np.uint8)
    for index, code in enumerate(expected):
        accepted = accepts("onnx", "f64", "e8m0", np.full(256, source[index]), every, attributes=attributes)
        assert np.flatnonzero(accepted).tolist() == [code]
    assert not sets.anything.any()
    unspecified = np.array([-0.0, -1.0, -np.inf, -1e-300]).view(np.uint64)
    assert acceptance("onnx", "f64", "e8m0", unspecified, attributes=attributes).anything.all()


def test_rounding_to_e8m0() -> None:
    source = floats(1.0, 1.25, 1.5, 1.75)
    for mode, expected in (("up", [127, 128, 128, 128]), ("down", [127] * 4), ("nearest", [127, 127, 128, 128])):
        sets = acceptance("onnx", "f32", "e8m0", source, attributes={"round_mode": mode})
        assert sets.single.all()
        assert sets.lowest.tolist() == expected


def test_small_integers_accept_truncation_and_rounding() -> None:
    """The evaluator gives 0, 1, 2, 7 for 0.5, 1.5, 2.5, 7.5, onnxruntime 1, 2, 3, -8."""
    source = floats(0.5, 1.5, 2.5, 7.5)
    for results in ([0, 1, 2, 7], [1, 2, 3, 8]):
        assert accepts("onnx", "f32", "i4", source, np.array(results, np.uint8)).all()
    assert accepts("onnx", "f32", "i4", source, np.array([2, 3, 1, 5], np.uint8)).tolist() == [False] * 3 + [True]


# ------------------------------------------------------------------------------------------------------------- text


def test_text_to_floats() -> None:
    texts = ["3.14", "1e-5", "1E8", "-1000", "+INF", "inf", "-Inf", "nAn", "16777217", "-0.0"]
    sets = text_acceptance("onnx", texts, "f32")
    expected = np.array([float(text) for text in texts], np.float64).astype(np.float32).view(np.uint32)
    assert sets.contains(expected).all()
    assert not sets.anything.any()
    assert not sets.contains(expected ^ 1)[[0, 1, 2, 3, 4, 5, 6, 8, 9]].any()
    assert text_acceptance("onnx", ["Hello World!", "0x10", "1e400", "", "1_000"], "f32").anything.all()
    assert not sets.contains(np.full(len(texts), 0x7FC00000, np.uint32))[:7].any()


def test_text_rounds_once() -> None:
    """2**60 + 2**36 + 1 is just above a midpoint of float32; float64 in between would make it a tie."""
    (code,) = text_acceptance("onnx", [str(2**60 + 2**36 + 1)], "f32").lowest.view(np.float32).tolist()
    assert code == 2.0**60 + 2.0**37


def test_text_to_integers_and_others() -> None:
    sets = text_acceptance("onnx", ["255", "+7", "-1", "256", "2.718", "1e2", "INF"], "u8")
    assert sets.anything.tolist() == [False, False, True, True, True, True, True]
    assert sets.lowest[:2].tolist() == [255, 7]
    assert text_acceptance("onnx", ["1", "x"], "bool").anything.all()
    narrow = text_acceptance("onnx", ["448", "464.5", "INF", "nan", "-1e-9"], "e4m3fn")
    assert narrow.anything.tolist() == [False, True, True, False, False]
    assert (int(narrow.lowest[0]), bool(narrow.nan[3]), int(narrow.lowest[4])) == (0x7E, True, 0x80)
    assert text_acceptance("onnx", ["6", "6.5", "nan"], "e2m1").anything.tolist() == [False, True, True]


def test_numbers_to_text() -> None:
    """Both implementations' spelling of 464.01 conforms; another number, or too few digits, does not."""
    source = floats(464.01, 464.01, 464.01, 464.01, 1.0, -0.0, -0.0, 0.0)
    texts = ["464.01", "464.01001", "464", "464.02", "1/1", "-0", "0", "0.0"]
    assert accepts_text("onnx", "f32", source, texts).tolist() == [True, True, False, False, False, True, False, True]
    special = floats(np.nan, np.inf, -np.inf, -np.inf, 1.0)
    assert accepts_text("onnx", "f32", special, ["NaN", "INF", "-inf", "INF", "one"]).tolist() == [
        True, True, True, False, False
    ]  # fmt: skip
    whole = np.array([-56], np.int8).view(np.uint8)
    assert accepts_text("onnx", "i8", whole, ["-56"]).all()
    assert not accepts_text("onnx", "i8", whole, ["200"]).any()
    assert accepts_text("onnx", "bool", np.array([1], np.uint8), ["1"]).all()


def test_refusals_of_text() -> None:
    with pytest.raises(IllegalError, match="tosa 1.1 has no cast string -> f32".replace(".", r"\.")):
        text_acceptance("tosa", ["1"], "f32")
    with pytest.raises(IllegalError, match="onnx 6 has no cast string -> f32; it came with 9"):
        text_acceptance("onnx", ["1"], "f32", version=6)
    assert accepts_text("onnx", "string", ["a", "1.0"], ["a", "1"]).tolist() == [True, False]
    with pytest.raises(IllegalError, match="text to text has no codes"):
        text_acceptance("onnx", ["1"], "string")
    with pytest.raises(IllegalError, match="no codes on one side"):
        acceptance("onnx", "f32", "string", floats(1.0))
    with pytest.raises(ReadError, match="is not text"):
        text_acceptance("onnx", [1.5], "f32")
    with pytest.raises(ReadError, match=r"texts of shape \(1,\) for codes of shape \(2,\)"):
        accepts_text("onnx", "f32", floats(1.0, 2.0), ["1"])
