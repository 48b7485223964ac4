"""Users' arrays to codes and back, and sub-byte packing against the published bytes and onnx' rule."""

from __future__ import annotations

import subprocess
import sys

import ml_dtypes
import numpy as np
import pytest
from numerics_samples import samples

from castsim.isa.errors import ReadError
from castsim.isa.formats import FORMATS, IntFormat
from castsim.numerics import (
    abstract_policy,
    array_from_codes,
    cast_array,
    code_dtype,
    codes_from_array,
    is_codes,
    native_dtype,
    pack_codes,
    unpack_codes,
)


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


def test_every_integer_row_has_a_native_dtype() -> None:
    assert all(native_dtype(fmt) is not None for fmt in FORMATS.values() if isinstance(fmt, IntFormat))
