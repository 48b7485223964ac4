"""Users' arrays to codes and back, and sub-byte packing against the published bytes and onnx' rule."""

from __future__ import annotations

import math
import subprocess
import sys
from decimal import Decimal
from fractions import Fraction
from typing import Any

import ml_dtypes
import numpy as np
import pytest
from kit.numerics_samples import samples

from castsim.isa.errors import IllegalError, ReadError
from castsim.isa.formats import FORMATS, Overflow, Rounding
from castsim.numerics import blocks, codec, pack, rounding
from castsim.numerics.blocks import code_dtype
from castsim.numerics.cast import cast_codes
from castsim.numerics.codec import (
    array_from_codes,
    codes_from_array,
    decode_to_float64,
    encode_value,
    is_codes,
    native_dtype,
    pack_codes,
    parse_number,
    unpack_codes,
    value_of,
)
from castsim.numerics.policy import Policy, abstract_policy
from castsim.numerics.tiers import cast_array


def cast(array: np.ndarray, src: str, dst: str, out: np.ndarray | None = None) -> np.ndarray:
    return cast_array(array, FORMATS[src], FORMATS[dst], abstract_policy(FORMATS[src], FORMATS[dst]), out=out)


def test_native_arrays_come_back_native() -> None:
    numbers = np.array([1.0, -2.5, 1e6, np.inf], np.float32)
    half = cast(numbers, "f32", "f16")
    assert half.dtype == np.float16
    assert half.tolist() == [1.0, -2.5, np.inf, np.inf]
    small = cast(numbers, "f32", "e4m3fn")
    assert small.dtype == ml_dtypes.float8_e4m3fn
    assert cast(small, "e4m3fn", "bf16").dtype == ml_dtypes.bfloat16
    assert cast(numbers, "f32", "i8").tolist() == [1, -2, 127, 127]
    assert cast(numbers, "f32", "bool").tolist() == [True, True, True, True]
    assert cast(np.array([True, False]), "bool", "f32").tolist() == [1.0, 0.0]
    assert cast(numbers, "f32", "hif8").dtype == np.uint8


def test_codes_come_back_as_codes() -> None:
    codes = np.array([0x3F800000, 0xC0200000], np.uint32)
    for dst, want in (("f16", [0x3C00, 0xC100]), ("i8", [1, 0xFE]), ("e4m3fn", [0x38, 0xC2])):
        got = cast(codes, "f32", dst)
        assert got.dtype == code_dtype(FORMATS[dst])
        assert got.tolist() == want
    assert is_codes(codes, FORMATS["f32"])
    assert not is_codes(codes, FORMATS["u32"])
    assert not is_codes(codes, FORMATS["f16"])


def test_integers_narrower_than_their_storage() -> None:
    assert cast(np.array([-8, 7], np.int8), "i4", "f32").tolist() == [-8.0, 7.0]
    assert cast(np.array([0x8, 0x7], np.uint8), "i4", "f32").tolist() == [-8.0, 7.0]
    assert cast(np.array([-8, 7], ml_dtypes.int4), "i4", "f32").tolist() == [-8.0, 7.0]
    assert cast(np.array([3, 2], ml_dtypes.uint2), "u2", "i32").tolist() == [3, 2]
    got = cast(np.array([-3.0, 9.0], np.float32), "f32", "i4")
    assert got.dtype == ml_dtypes.int4
    assert got.astype(np.int8).tolist() == [-3, 7]
    wide = np.array([-(2**47), 2**47 - 1, -1], np.int64)
    assert cast(wide, "i48", "i64").tolist() == wide.tolist()
    assert cast(wide, "i64", "i48").tolist() == wide.tolist()
    assert cast(wide, "i48", "f64").tolist() == [float(number) for number in wide]
    assert cast(np.array([2, 0, -1], np.int8), "bool", "i8").tolist() == [1, 0, 1]


@pytest.mark.parametrize("name", FORMATS)
def test_codes_survive_the_native_dtype(name: str) -> None:
    fmt = FORMATS[name]
    codes = samples(fmt)[:1000]
    native = array_from_codes(codes, fmt)
    assert native.dtype == (native_dtype(fmt) or code_dtype(fmt))
    assert np.array_equal(codes_from_array(native, fmt), codes)


@pytest.mark.parametrize(
    ("dst", "dtype"),
    [
        ("f16", np.float16), ("f16", np.uint16), ("f16", ">f2"), ("i48", np.int64), ("i4", np.int8),
        ("i4", ml_dtypes.int4), ("bool", np.bool_), ("e4m3fn", ml_dtypes.float8_e4m3fn), ("e2m1", np.uint8),
    ],
)  # fmt: skip
def test_out_takes_either_dtype(dst: str, dtype: object) -> None:
    numbers = np.array([1.0, -1.0, 3.0], np.float32)
    out = np.zeros(3, dtype)  # type: ignore[call-overload]
    assert cast(numbers, "f32", dst, out=out) is out
    want = array_from_codes(cast(numbers.view(np.uint32), "f32", dst), FORMATS[dst])
    assert np.array_equal(codes_from_array(out, FORMATS[dst]), codes_from_array(want, FORMATS[dst]))


@pytest.mark.parametrize(
    ("array", "name"),
    [
        (np.zeros(2, np.float64), "f32"), (np.zeros(2, np.uint16), "f32"), (np.zeros(2, np.int32), "f32"),
        (np.zeros(2, np.uint8), "i8"), (np.zeros(2, np.int8), "u8"), (np.zeros(2, np.float32), "i8"),
        (np.zeros(2, np.float32), "hif8"), (np.zeros(2, ml_dtypes.bfloat16), "f16"), (np.array([8], np.int8), "i4"),
        (np.array([-9], np.int8), "i4"), (np.array([16], np.uint8), "u4"), (np.array([2**47], np.int64), "i48"),
        (np.array([-(2**47) - 1], np.int64), "i48"), (np.array([16], np.uint8), "e2m1"), (np.zeros(2, object), "f64"),
    ],
)  # fmt: skip
def test_other_arrays_are_refused(array: np.ndarray, name: str) -> None:
    with pytest.raises(ReadError):
        codes_from_array(array, FORMATS[name])


def test_wrong_out_is_refused() -> None:
    for out in (np.zeros(3, np.float32), np.zeros(3, np.int16), np.zeros(2, np.float16)):
        with pytest.raises(ReadError):
            cast(np.zeros(3, np.float32), "f32", "f16", out=out)


@pytest.mark.parametrize(
    ("name", "codes", "packed"),
    [
        # docs/reference/formats.md section 1, checked there with onnx.numpy_helper.
        ("i4", [1, 0xE, 7], [0xE1, 0x07]),
        ("e2m1", [1, 7, 0xA], [0x71, 0x0A]),
        ("i2", [1, 2, 0, 3, 1], [0xC9, 0x01]),
        # Four 6-bit elements fill three bytes, the first in the lowest bits.
        ("e3m2", [0x3F, 0, 0, 0], [0x3F, 0x00, 0x00]),
        ("e3m2", [0, 0x3F, 0, 0x20], [0xC0, 0x0F, 0x80]),
        ("e2m3", [1], [0x01]),
    ],
)
def test_packed_bytes(name: str, codes: list[int], packed: list[int]) -> None:
    assert pack_codes(np.array(codes, np.uint8), FORMATS[name]).tolist() == packed
    assert unpack_codes(np.array(packed, np.uint8), FORMATS[name], len(codes)).tolist() == codes


@pytest.mark.parametrize("name", ["i2", "u4", "e2m1", "e3m2"])
def test_rows_are_packed_separately(name: str) -> None:
    fmt = FORMATS[name]
    rng = np.random.default_rng(5)
    for count in (0, 1, 3, 4, 7, 64):
        codes = rng.integers(0, 1 << fmt.bits, (3, count), dtype=np.uint8)
        packed = pack_codes(codes, fmt)
        assert packed.shape == (3, -(-count * fmt.bits // 8))
        assert np.array_equal(unpack_codes(packed, fmt, count), codes)
        assert np.array_equal(packed[1], pack_codes(codes[1], fmt))


def test_packing_refuses_full_bytes_wide_codes_and_short_input() -> None:
    for name in ("i8", "hif8", "f16", "bool"):
        with pytest.raises(ReadError, match="not packed"):
            pack_codes(np.zeros(2, code_dtype(FORMATS[name])), FORMATS[name])
        with pytest.raises(ReadError, match="not packed"):
            unpack_codes(np.zeros(2, np.uint8), FORMATS[name], 1)
    with pytest.raises(ReadError):
        pack_codes(np.array([16], np.uint8), FORMATS["i4"])
    for count in (5, -1):
        with pytest.raises(ReadError, match="do not hold"):
            unpack_codes(np.zeros(2, np.uint8), FORMATS["i4"], count)


def test_importing_numerics_imports_no_other_library() -> None:
    program = "import sys, castsim.numerics; print([m for m in ('ml_dtypes', 'numba', 'simpy') if m in sys.modules])"
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"


# docs/reference/formats.md section 1: largest finite, smallest normal and smallest subnormal number, with their codes.
LIMITS = {
    "f64": (
        (0x7FEFFFFFFFFFFFFF, 2**1024 - 2**971),
        (0x0010000000000000, Fraction(2) ** -1022),
        (1, Fraction(2) ** -1074),
    ),
    "f32": ((0x7F7FFFFF, 2**128 - 2**104), (0x00800000, Fraction(2) ** -126), (1, Fraction(2) ** -149)),
    "f16": ((0x7BFF, 65504), (0x0400, Fraction(2) ** -14), (1, Fraction(2) ** -24)),
    "bf16": ((0x7F7F, 2**128 - 2**120), (0x0080, Fraction(2) ** -126), (1, Fraction(2) ** -133)),
    "e4m3fn": ((0x7E, 448), (0x08, Fraction(2) ** -6), (1, Fraction(2) ** -9)),
    "e4m3fnuz": ((0x7F, 240), (0x08, Fraction(2) ** -7), (1, Fraction(2) ** -10)),
    "e5m2": ((0x7B, 57344), (0x04, Fraction(2) ** -14), (1, Fraction(2) ** -16)),
    "e5m2fnuz": ((0x7F, 57344), (0x04, Fraction(2) ** -15), (1, Fraction(2) ** -17)),
    "e8m0": ((0xFE, 2**127), (0, Fraction(2) ** -127), (0, Fraction(2) ** -127)),
    "e2m1": ((7, 6), (2, 1), (1, Fraction(1, 2))),
    "e1m2": ((7, Fraction(7, 4)), (4, 1), (1, Fraction(1, 4))),
    "e2m3": ((0x1F, Fraction(15, 2)), (8, 1), (1, Fraction(1, 8))),
    "e3m2": ((0x1F, 28), (4, Fraction(1, 4)), (1, Fraction(1, 16))),
    "hif8": ((0x6E, 32768), (0x7E, Fraction(2) ** -15), (1, Fraction(2) ** -22)),
}


@pytest.mark.parametrize("name", LIMITS)
def test_limits_decode_and_encode(name: str) -> None:
    for code, value in LIMITS[name]:
        assert value_of(code, FORMATS[name]) == value
        encoded = encode_value(Fraction(value), FORMATS[name])
        assert (encoded.code, encoded.inexact) == (code, False)


def test_value_lists_of_the_four_bit_formats() -> None:
    e2m1 = [value_of(code, FORMATS["e2m1"]) for code in range(8)]
    e1m2 = [value_of(code, FORMATS["e1m2"]) for code in range(8)]
    assert e2m1 == [0, 0.5, 1, 1.5, 2, 3, 4, 6]
    assert e1m2 == [0, 0.25, 0.5, 0.75, 1, 1.25, 1.5, 1.75]


# --------------------------------------- numbers to codes and back: published value lists, exact ratios, decimal text


@pytest.mark.parametrize("name", [name for name, fmt in FORMATS.items() if fmt.bits <= 16])
def test_value_of_and_decode_agree(name: str) -> None:
    fmt = FORMATS[name]
    codes = np.arange(1 << fmt.bits, dtype=f"u{fmt.storage_bits // 8}")[:: max(1, (1 << fmt.bits) // 4096)]
    decoded = decode_to_float64(codes, fmt)
    exact = np.array([float(value_of(int(code), fmt)) for code in codes])
    assert np.array_equal(decoded, exact, equal_nan=True)
    assert np.array_equal(np.signbit(decoded[exact == 0]), np.signbit(exact[exact == 0]))


@pytest.mark.parametrize(
    ("text", "name", "code", "inexact"),
    [
        ("1", "f32", 0x3F800000, False),
        ("0.1", "f64", 0x3FB999999999999A, True),
        ("0.1", "f32", 0x3DCCCCCD, True),
        ("-1.5e0", "f16", 0xBE00, False),
        (".5", "f16", 0x3800, False),
        ("5.", "f16", 0x4500, False),
        ("1/3", "f32", 0x3EAAAAAB, True),
        ("65519.99", "f16", 0x7BFF, True),
        ("65520", "f16", 0x7C00, True),
        ("-0", "f32", 0x80000000, False),
        ("-0", "hif8", 0x00, False),
        ("nan", "f16", 0x7E00, False),
        ("-NaN", "f16", 0xFE00, False),
        ("+inf", "f16", 0x7C00, False),
        ("-Infinity", "e5m2", 0xFC, False),
        ("inf", "e4m3fn", 0x7F, True),
        ("nan", "e2m1", 0, True),
        ("1.5", "e8m0", 0x80, True),
        ("300", "i8", 127, True),
        ("-129", "i8", 0x80, True),
        ("2.5", "i8", 2, True),
        ("18446744073709551615", "u64", (1 << 64) - 1, False),
        ("18446744073709551614.5", "u64", (1 << 64) - 2, True),
        ("18446744073709551614.500001", "u64", (1 << 64) - 1, True),
        ("1e400", "i64", (1 << 63) - 1, True),
        ("1e999999999999", "f64", 0x7FF0000000000000, True),
        ("-1e-999999999999", "f64", 1 << 63, True),
        ("0e999999999999", "i8", 0, False),
        ("0.25", "bool", 1, True),
        # The exact halfway point between 1 and the next float32, then just above it: one rounding from all digits.
        ("1.000000059604644775390625", "f32", 0x3F800000, True),
        ("1.0000000596046447753906250000000000000000000000000000001", "f32", 0x3F800001, True),
    ],
)
def test_text_becomes_the_nearest_code(text: str, name: str, code: int, inexact: bool) -> None:
    encoded = encode_value(text, FORMATS[name])
    assert (encoded.code, encoded.inexact) == (code, inexact)


def test_every_kind_of_number_is_exact() -> None:
    f64 = FORMATS["f64"]
    for number in (
        0.1,
        Fraction(0.1),
        Decimal.from_float(0.1),
        "0.1000000000000000055511151231257827021181583404541015625",
    ):
        assert encode_value(number, f64).code == 0x3FB999999999999A
        assert not encode_value(number, f64).inexact
    assert encode_value(-0.0, f64).code == encode_value(Decimal("-0"), f64).code == 1 << 63
    assert encode_value(math.nan, f64).code == 0x7FF8000000000000
    assert encode_value(-math.inf, f64).code == 0xFFF0000000000000
    assert encode_value(12, FORMATS["i8"]).code == 12


def test_a_policy_rounds_and_wraps() -> None:
    i8 = FORMATS["i8"]
    assert encode_value("2.5", i8, Policy(Rounding.ROUND, Overflow.SATURATE)).code == 3
    assert encode_value(f"{10**30 + 7}", i8, Policy(Rounding.TRUNC, Overflow.WRAP)).code == (10**30 + 7) % 256
    assert encode_value("1e30", i8, Policy(Rounding.TRUNC, Overflow.WRAP, wrap_bits=32)).code == 255
    assert encode_value("1e6", FORMATS["f16"], Policy(Rounding.FLOOR, Overflow.SPECIAL)).code == 0x7BFF
    with pytest.raises(IllegalError, match="stochastic"):
        encode_value("1", FORMATS["f16"], Policy(Rounding.STOCHASTIC, Overflow.SPECIAL))


@pytest.mark.parametrize("text", ["", "abc", "0x10", "1_000", "1e", "--1", "1/0", "1.5/2", "\u0661", "9" * 5000])
def test_what_is_no_number_is_refused(text: str) -> None:
    with pytest.raises(ReadError, match="is not a number"):
        parse_number(text)


def test_no_code_of_the_format() -> None:
    for code in (-1, 256, 16):
        with pytest.raises(ReadError):
            value_of(code, FORMATS["e2m1"])


# ------------------------------------------------------------------------------------- NumPy whose integers are 32 bits


class NarrowNumpy:
    """NumPy as on a 32-bit machine, a browser for instance: results of Python integers alone are int32."""

    def __getattr__(self, name: str) -> Any:
        function = getattr(np, name)
        if isinstance(function, type) or not callable(function):
            return function

        def narrow(*args: Any, **options: Any) -> Any:
            result = function(*args, **options)
            typed = any(hasattr(argument, "dtype") for argument in (*args, *options.values()))
            if typed or not isinstance(result, np.ndarray | np.generic) or result.dtype != np.int64:
                return result
            return np.asarray(result, np.int32)

        return narrow


@pytest.mark.parametrize("dst", ["f32", "f16", "hif8", "e4m3fn", "e8m0", "i8", "i32", "u32", "bool"])
@pytest.mark.parametrize("src", ["i8", "i32", "u16", "bool", "f32", "hif8", "e5m2"])
def test_casts_need_no_64_bit_default_integers(src: str, dst: str, monkeypatch: pytest.MonkeyPatch) -> None:
    source, destination = FORMATS[src], FORMATS[dst]
    policy = abstract_policy(source, destination)
    codes = np.arange(min(1 << source.bits, 256)).astype(code_dtype(source))
    texts = ("0", "0.25", "3", "inf")
    want = cast_codes(codes, source, destination, policy), [encode_value(text, FORMATS["f16"]) for text in texts]
    for module in (blocks, codec, pack, rounding):
        monkeypatch.setattr(module, "np", NarrowNumpy())
    assert np.maximum(pack.np.array(1), 0).dtype == np.int32  # what `view(np.uint64)` fails on
    got = cast_codes(codes, source, destination, policy), [encode_value(text, FORMATS["f16"]) for text in texts]
    assert np.array_equal(got[0], want[0])
    assert got[1] == want[1]
