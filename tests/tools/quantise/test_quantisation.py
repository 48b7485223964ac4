"""Block quantisation against exact arithmetic, gfloat, ml_dtypes and published examples."""

from __future__ import annotations

import itertools
import json
import math
import os
import tracemalloc
from fractions import Fraction
from pathlib import Path
from typing import Any

import ml_dtypes
import numpy as np
import pytest
from gfloat import BlockFormatInfo, compute_scale_amax, formats, quantize_block
from hypothesis import given, settings
from hypothesis import strategies as st
from kit.command_output import out_of
from kit.libraries import GFLOAT, LIBRARY
from tools.quantise.quantisation_campaign import (
    CASES,
    ELEMENTS,
    RECORD,
    SCALES,
    SIZES,
    TOTAL,
    campaign,
    differences,
    numbers,
)

import castsim
from castsim.__main__ import main
from castsim.isa.errors import IllegalError, ReadError
from castsim.numerics.codec import codes_from_array
from castsim.tools.quantise.quantisation import (
    BLOCK_FORMATS,
    RULES,
    Quantised,
    block_format,
    dequantise,
    quantise,
    quotient,
)

MX = {
    name: getattr(formats, f"format_info_{name}")
    for name in ("mxfp8_e4m3", "mxfp8_e5m2", "mxfp6_e3m2", "mxfp6_e2m3", "mxfp4_e2m1")
}


def codes(made: Quantised) -> tuple[list[int], list[int]]:
    both = (made.elements, made.format.element), (made.scales, made.format.scale)
    elements, scales = (codes_from_array(array, fmt).reshape(-1).tolist() for array, fmt in both)
    return elements, scales


GROUP = [1000, -3, 0.1, 2**-10, 457, 480]
HALF = [7, -2.5, 5, 1.25, 0.5, 0.875]


@pytest.mark.parametrize(
    ("values", "name", "rule", "scale", "elements"),
    [  # docs/tools/quantise.md, worked examples
        (GROUP, "mxfp8_e4m3", "floor", 128, [0x7E, 0xBC, 0x15, 0x00, 0x76, 0x77]),
        (GROUP, "mxfp8_e4m3", "rceil", 129, [0x78, 0xB4, 0x0D, 0x00, 0x6E, 0x6F]),
        (HALF, "mxfp4_e2m1", "floor", 127, [7, 12, 6, 2, 1, 2]),
        (HALF, "mxfp4_e2m1", "rceil", 128, [6, 10, 4, 1, 0, 1]),
        ([448], "mxfp8", "floor", 127, [0x7E]),
        ([449], "mxfp8", "rceil", 128, [0x76]),
        ([449], "mxfp8", "floor", 127, [0x7E]),
        ([2**-149, 2**-130], "mxfp8", "floor", 0, None),
        ([3.4e38], "mxfp8", "floor", 246, None),
        ([3.4e38], "mxfp8", "rceil", 247, None),
        ([math.inf, 1.0], "mxfp8", "floor", 247, [0x7E, 0x00]),
        ([math.inf], "mxfp4", "floor", 253, [7]),
        ([math.nan, 1.0], "mxfp8", "floor", 255, [0x7F, 0x7F]),
        ([0.0, -0.0], "mxfp8", "floor", 0, [0x00, 0x80]),
        ([6.0], "mxfp4", "rceil", 127, None),
        ([3.5], "mxfp4", "floor", 126, [7]),
        ([3.5], "mxfp4", "rceil", 127, [6]),
        ([8.0], "mxfp4", "rceil", 128, [6]),
    ],
)
def test_published_groups(values: Any, name: str, rule: str, scale: int, elements: list[int] | None) -> None:
    found, scales = codes(quantise(np.array(values, np.float32), name, scale=rule))
    assert scales == [scale]
    assert elements is None or found == elements


@pytest.mark.parametrize("element", ELEMENTS)
def test_every_pair_rule_and_size_is_exact(element: str) -> None:
    generator = np.random.default_rng(5)
    for _, scale, rule, size in (case for case in CASES if case[0] == element):
        blocks, wrong = differences(numbers(generator, element, 24, size), element, scale, rule, size)
        assert (blocks, wrong) == (72, 0), (scale, rule, size)


def test_the_record_of_ten_million_blocks() -> None:
    held = json.loads(RECORD.read_text(encoding="utf-8"))
    assert held["differences"] == 0
    assert held["blocks"] == sum(held["blocks_by_element"].values()) >= TOTAL
    assert tuple(held["blocks_by_element"]) == ELEMENTS
    assert (tuple(held["scales"]), tuple(held["rules"]), tuple(held["block_sizes"])) == (SCALES, RULES, SIZES)
    assert held["cases"] == len(CASES)


@pytest.mark.skipif("CASTSIM_THOROUGH" not in os.environ, reason="runs for minutes: set CASTSIM_THOROUGH=1")
def test_ten_million_blocks_of_another_seed() -> None:
    found = list(campaign(TOTAL, seed=1))
    assert sum(done for _, done, _ in found) >= TOTAL
    assert [(case, bad) for case, _, bad in found if bad] == []


floats = st.floats(width=32, allow_nan=False, allow_infinity=False)


@given(st.floats(allow_nan=False, allow_infinity=False), st.floats(width=32, min_value=2.0**-149, max_value=2.0**127))
@settings(max_examples=300, deadline=None)
def test_quotients_are_rounded_to_odd(number: float, divisor: float) -> None:
    exact = abs(Fraction(number) / Fraction(divisor))
    if not Fraction(2) ** -390 < exact < Fraction(2) ** 390:
        return
    found = quotient(np.array([number]), np.array([divisor]))
    below = Fraction(abs(float(found[0])))
    if below != exact:
        assert found.view(np.uint64)[0] % 2 == 1
        assert abs(below - exact) < Fraction(math.ulp(float(below)))
    assert math.copysign(1, found[0]) == math.copysign(1, number)


def test_doubles_are_rounded_once() -> None:
    """1 + 2**-4 + 2**-52 lies above a midpoint of e4m3fn by less than f32 sees; over 3 so does three times that."""
    x = np.array([1.0625 + 2**-52, 448.0])
    assert codes(quantise(x, "e4m3fn", scale="floor"))[0][0] == 0x39
    assert codes(quantise(3 * x, "e4m3fn"))[0][0] == 0x39


@pytest.mark.parametrize("name", MX)
def test_gfloat_quantises_alike(name: str) -> None:
    info: BlockFormatInfo = MX[name]
    x = np.random.default_rng(3).standard_normal((200, 32)).astype(np.float32) * 2.0 ** np.arange(-100, 100)[:, None]
    made = quantise(x.astype(np.float32), name)
    for row, values in zip(x.astype(np.float32).astype(float), made.dequantise("f64"), strict=True):
        assert values.tolist() == quantize_block(info, row, compute_scale_amax).tolist()


@pytest.mark.parametrize("element", ["e4m3fn", "e5m2", "e3m2", "e2m3", "e2m1", "e4m3fnuz", "e5m2fnuz"])
@pytest.mark.parametrize("rule", ["rceil", "even", "nearest"])
def test_ml_dtypes_rounds_alike(element: str, rule: str) -> None:
    """Elements are its casts of the quotient by a power of two, which f32 holds, clamped beforehand."""
    x = np.random.default_rng(4).standard_normal((64, 48)).astype(np.float32)
    made = quantise(x, element, block=16, scale=rule, scale_format="e8m0")
    scales = np.repeat(made.scales.astype(np.float32), 16, axis=1)
    top = np.float32(GFLOAT[element].max)
    expected = np.clip(x / scales, -top, top).astype(LIBRARY[element])
    assert made.elements.dtype == expected.dtype
    assert made.elements.tobytes() == expected.tobytes()
    back = (made.elements.astype(np.float32) * scales).astype(ml_dtypes.bfloat16)
    assert made.dequantise("bf16").tobytes() == back.tobytes()


def test_integers_per_token() -> None:
    """f32 scales are the correctly rounded quotients of the largest magnitude and 127, as NumPy divides."""
    x = np.random.default_rng(6).uniform(-2, 2, (64, 128)).astype(np.float32)
    made = quantise(x, "i8")
    scales = np.abs(x).max(axis=1, keepdims=True) / np.float32(127)
    assert made.scales.tobytes() == scales.tobytes()
    assert made.elements.tolist() == np.rint(x.astype(float) / scales).astype(int).tolist()
    assert made.dequantise().tobytes() == (made.elements.astype(np.float32) * scales).tobytes()


def test_mxint8_counts_in_64ths() -> None:
    made = quantise(np.array([1.5, -1.984375, 1 / 64, -1.999]), "mxint8")
    assert codes(made) == ([96, 0x81, 1, 0x80], [127])
    assert made.dequantise("f64").tolist() == [1.5, -1.984375, 1 / 64, -2.0]


@pytest.mark.parametrize(
    ("options", "scales", "blocks"),
    [
        ({}, (6, 10, 3), (1, 1, 32)), ({"block": 16}, (6, 10, 5), (1, 1, 16)),
        ({"block": 16, "per": "group", "axis": 1}, (6, 1, 70), (1, 16, 1)),
        ({"per": "token"}, (6, 10, 1), (1, 1, 70)), ({"per": "channel"}, (1, 1, 70), (6, 10, 1)),
        ({"per": "channel", "axis": 0}, (6, 1, 1), (1, 10, 70)), ({"per": "tensor"}, (1, 1, 1), (6, 10, 70)),
        ({"block": (4, 64)}, (6, 3, 2), (1, 4, 64)),
    ],
)  # fmt: skip
def test_what_shares_a_scale(options: dict[str, Any], scales: tuple[int, ...], blocks: tuple[int, ...]) -> None:
    x = np.random.default_rng(7).standard_normal((6, 10, 70)).astype(np.float32)
    made = quantise(x, "mxfp8_e4m3", scale="rceil", **options)
    assert (made.scales.shape, made.blocks) == (scales, blocks)
    for place in np.ndindex(scales):
        part = x[tuple(slice(at * size, (at + 1) * size) for at, size in zip(place, blocks, strict=True))]
        code = int(made.scales[place].view(np.uint8))
        assert 2.0 ** (code - 127) * 448 >= np.abs(part).max() > 2.0 ** (code - 128) * 448
    again = dequantise(made.elements, made.scales, "mxfp8_e4m3", "f64", **options)
    assert again.tobytes() == castsim.dequantise(made, dst="f64").tobytes()


def test_statistics() -> None:
    x = np.array([[1000.0, -3, 0.1, 2**-10, 457, 480], [np.nan, 1, 1, 1, 1, 1], [np.inf, 1, 2, 4, 0, 0]], np.float32)
    found = quantise(x, "mxfp8_e4m3").statistics
    values = np.array([896, -3, 0.1015625, 0, 448, 480, 0, 0, 0, 0, 0])
    given_ = np.array([*x[0].astype(float), *x[2, 1:].astype(float)])
    assert (found.elements, found.compared, found.nan_blocks) == (18, 11, 1)
    assert (found.clamped, found.to_zero) == (2, 4)
    error = values - given_
    assert found.largest_error == 104
    assert found.root_mean_square_error == pytest.approx(math.sqrt(np.mean(error**2)), rel=1e-12)
    assert found.signal_to_noise_db == pytest.approx(10 * math.log10(np.mean(given_**2) / np.mean(error**2)), rel=1e-12)
    exact = quantise(np.array([1.0, 2.0]), "mxfp8_e4m3").statistics
    assert (exact.signal_to_noise_db, exact.largest_error) == (None, 0)
    assert quantise(np.zeros((0, 3)), "mxfp4").statistics.elements == 0


def test_zeros_have_the_scale_that_is_asked_for() -> None:
    x = np.zeros(4, np.float32)
    assert quantise(x, "mxfp8_e4m3").scales.view(np.uint8).tolist() == [0]
    assert quantise(x, "mxfp8_e4m3", zero_scale="one").scales.view(np.uint8).tolist() == [127]
    assert quantise(x, "i8").scales.tolist() == [0]
    assert quantise(x, "i8", zero_scale="one").scales.tolist() == [1]
    assert quantise(-x, "i8").dequantise().tolist() == [0, 0, 0, 0]


def test_formats_by_name() -> None:
    assert [block_format(name.upper()).name for name in BLOCK_FORMATS] == list(BLOCK_FORMATS)
    assert block_format("mxfp4").element.name == "e2m1"
    assert (block_format("nvfp4").block, block_format("nvfp4").scale.name) == (16, "e4m3fn")


@pytest.mark.parametrize(
    ("options", "error", "text"),
    [
        ({"dst": "mxfp9"}, ReadError, "unknown block format"), ({"dst": "u8"}, IllegalError, "no sign"),
        ({"dst": "f16"}, IllegalError, "more than 8 bits"), ({"scale": "up"}, ReadError, "unknown scale rule"),
        ({"scale_format": "i8"}, IllegalError, "scales cannot be i8"),
        ({"scale_format": "e2m1"}, IllegalError, "scales cannot be e2m1"),
        ({"per": "row"}, ReadError, "unknown span"), ({"axis": 2}, ReadError, "no axis 2"),
        ({"block": 0}, ReadError, "a block of 0"), ({"block": "32"}, ReadError, "block has type str"),
        ({"block": True}, ReadError, "a block of True"), ({"block": (8, "a")}, ReadError, "blocks of"),
        ({"axis": 1.5}, ReadError, "axis has type float"), ({"scale": 3}, ReadError, "scale has type int"),
        ({"block": (1, 2, 3)}, ReadError, "blocks of"), ({"rounding": "stochastic"}, IllegalError, "stochastic"),
        ({"zero_scale": "none"}, ReadError, "scale of zeros"), ({"src": "i32"}, IllegalError, "not i32"),
    ],
)  # fmt: skip
def test_what_cannot_be(options: dict[str, Any], error: type[Exception], text: str) -> None:
    given_ = {"src": "f32", "dst": "mxfp8_e4m3", **options}
    x = np.ones((2, 40), np.int32 if given_["src"] == "i32" else np.float32)
    with pytest.raises(error, match=text):
        quantise(x, **given_)


def test_the_command(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    shown = out_of(capsys, ["quantise", "f32", "mxfp8_e4m3", "1000", "-3", "0.1", "457", "480"])
    assert "0x7e" in shown and "0xbc" in shown and "scales e8m0 by floor" in shown
    assert max(map(len, shown.splitlines())) <= 80
    x = np.random.default_rng(8).standard_normal((8, 70)).astype(np.float32)
    np.save(tmp_path / "x.npy", x)
    out, report = tmp_path / "out", tmp_path / "r.json"
    line = ["quantise", "f32", "mxfp4_e2m1", "--in", str(tmp_path / "x.npy"), "--scale", "even", "--block", "16"]
    assert main([*line, "--out", str(out), "--quiet", "--json", str(report)]) == 0
    made = quantise(x, "mxfp4_e2m1", scale="even", block=16)
    assert np.load(out / "elements.npy").tobytes() == made.elements.tobytes()
    assert np.load(out / "scales.npy").tobytes() == made.scales.tobytes()
    assert np.load(out / "values.npy").tobytes() == made.dequantise().tobytes()
    held = json.loads(report.read_text())
    assert (held["blocks"], held["block"], held["elements"]) == (40, [1, 16], [])
    assert held["error"]["root_mean_square_error"] == made.statistics.root_mean_square_error


@pytest.mark.parametrize(
    ("line", "text"),
    [
        ("f32 mxfp8_e4m3", "nothing to quantise"),
        ("f32 mxfp8_e4m3 1 --in x.npy", "both VALUEs and --in"),
        ("f32 mxfp8_e4m3 1 --block x", "--block 'x' is not a block size"),
        ("f32 mxfp8_e4m3 1 --axis one", "--axis 'one' is not an integer"),
        ("f32 mxfp8_e4m3 one", "'one' is not a number"),
        ("f32 mxfp8_e4m3 --in nosuch.npy", "nosuch.npy"),
    ],
)
def test_mistyped_commands(line: str, text: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["quantise", *line.split()]) in (1, 2)
    assert text in capsys.readouterr().err


TOPS = {
    "i8": (127, 1, -128), "i4": (7, 1, -8), "e4m3fn": (448, 32, -448), "e2m1": (6, 2, -6), "e3m2": (28, 4, -28),
    "e5m2": (57344, 8192, -57344),
}  # fmt: skip
"""The largest element, its distance from the one below it, and the smallest: docs/reference/formats.md."""


@pytest.mark.parametrize("fmt", TOPS)
@pytest.mark.parametrize("rule", ["floor", "ceil", "nearest"])
def test_clamped_counts_the_elements_that_clamping_changes(fmt: str, rule: str) -> None:
    top, step, least = TOPS[fmt]
    x = np.random.default_rng(7).standard_normal((40, 32)).astype(np.float32)
    x[0] = np.linspace(1, 2, 32)
    found = castsim.quantise(x, "f32", fmt, per="token", scale=rule)
    beyond = 0
    for row, scale in zip(x, found.scales.reshape(-1), strict=True):
        for value in row:
            rounded = round(Fraction(float(value)) / Fraction(float(scale)) / step) * step
            beyond += not least <= rounded <= top
    assert found.statistics.clamped == beyond


@pytest.mark.parametrize("name", [row for row in BLOCK_FORMATS if row != "nvfp4"])
def test_powers_of_two_give_what_quotients_give(name: str) -> None:
    """Scaling f32 by powers of two, odd tails included, gives the bits that exact quotients in f64 give."""
    x = numbers(np.random.default_rng(5), block_format(name).element.name, 60, 64)
    given_ = (x.reshape(-1)[:700], x[:, :97], x[:, :128].reshape(2, 30, 128), x[:5, :0], x[:0])
    modes = (("floor", "ceil", "even", "rceil"), (None, "round", "trunc"), ("smallest", "one"), (32, 7))
    for part, (scale, rounding, zero_scale, block) in itertools.product(given_, itertools.product(*modes)):
        options = {"scale": scale, "rounding": rounding, "zero_scale": zero_scale, "block": block}
        with np.errstate(over="ignore", invalid="ignore"):  # signalling NaN
            fast, exact = (castsim.quantise(each, name, **options) for each in (part, part.astype(np.float64)))
        np.testing.assert_array_equal(fast.elements.view(np.uint8), exact.elements.view(np.uint8))
        np.testing.assert_array_equal(fast.scales.view(np.uint8), exact.scales.view(np.uint8))
    assert fast.source.format.name == "f32"
    assert exact.source.format.name == "f64"


def test_arrays_that_do_not_belong_together_are_refused() -> None:
    x = np.ones((2, 40), np.float32)
    made = quantise(x, "mxfp8_e4m3")
    with pytest.raises(ReadError, match="4 scales for 6 blocks"):
        dequantise(made.elements, made.scales, "mxfp8_e4m3", block=16)
    x *= 2
    with pytest.raises(ReadError, match="has changed"):
        _ = made.statistics


def test_memory_is_that_of_the_result() -> None:
    numbers = np.ones((1024, 1024), np.float32)
    castsim.quantise(numbers, "mxfp8")
    tracemalloc.start()
    made = castsim.quantise(numbers, "mxfp8")
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    result = made.elements.nbytes + made.scales.nbytes
    assert peak + numbers.nbytes <= 2 * (numbers.nbytes + result)
    assert peak <= 2 * result
