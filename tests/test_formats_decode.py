"""Every code of every format of up to 16 bits, decoded by the product (an exact cast to f64) and by four others."""

from __future__ import annotations

import csv
from collections import defaultdict
from fractions import Fraction

import en_dtypes
import gfloat
import ml_dtypes
import numpy as np
import oracle
import pytest
from golden import VECTORS, product_cast
from libraries import GFLOAT, LIBRARY

NARROW = [name for name in (*oracle.FLOATS, *oracle.INTS) if oracle.fmt(name).bits <= 16]
SPECIFIED = {
    "HiF8": "hif8", "E4M3": "e4m3fn", "E5M2": "e5m2", "E3M2": "e3m2", "E2M3": "e2m3", "E8M0": "e8m0",
    "E2M1X2": "e2m1", "E1M2X2": "e1m2",
}  # fmt: skip
"""Formats of the PTO specification's table. HiF4X2 is left out: a matrix scale element that castsim does not have."""
INTEGER_LIBRARY = {"i2": ml_dtypes.int2, "u2": ml_dtypes.uint2, "i4": ml_dtypes.int4, "u4": ml_dtypes.uint4}


def every_code(name: str) -> np.ndarray:
    return np.array(oracle.codes(name), dtype=oracle.storage(name))


def decoded(name: str) -> np.ndarray:
    """Return the float64 of every code; all formats of up to 16 bits are exact in it."""
    return product_cast(every_code(name), name, "f64", "rint", "special").view(np.float64)


def assert_same_numbers(ours: np.ndarray, theirs: np.ndarray) -> None:
    """Compare values and signs of zero; NaN equals NaN."""
    assert np.array_equal(ours, theirs, equal_nan=True)
    numbers = ~np.isnan(theirs)
    assert np.array_equal(np.signbit(ours[numbers]), np.signbit(theirs[numbers]))


@pytest.mark.parametrize("name", NARROW)
def test_oracle(name: str) -> None:
    for number, code in zip(decoded(name).tolist(), oracle.codes(name), strict=True):
        value = oracle.decode(code, name)
        if value.kind == "nan":
            assert np.isnan(number), hex(code)
        elif value.kind == "inf":
            assert number == (-np.inf if value.negative else np.inf), hex(code)
        else:
            assert abs(Fraction(number)) == value.magnitude, hex(code)
            assert np.signbit(number) == value.negative, hex(code)


@pytest.mark.parametrize("name", LIBRARY)
def test_dtype_libraries(name: str) -> None:
    assert_same_numbers(decoded(name), every_code(name).view(LIBRARY[name]).astype(np.float32).astype(np.float64))


@pytest.mark.parametrize("name", INTEGER_LIBRARY)
def test_narrow_integers_of_ml_dtypes(name: str) -> None:
    assert_same_numbers(decoded(name), every_code(name).view(INTEGER_LIBRARY[name]).astype(np.int32).astype(np.float64))


@pytest.mark.parametrize("name", ["i8", "u8", "i16", "u16"])
def test_integers_of_numpy(name: str) -> None:
    native = np.dtype(f"{name[0]}{int(name[1:]) // 8}")
    assert_same_numbers(decoded(name), every_code(name).view(native).astype(np.float64))


@pytest.mark.parametrize("name", ["e8m0", "e2m1"])
def test_second_dtype_library(name: str) -> None:
    """Formats that en_dtypes has besides ml_dtypes."""
    dtype = {"e8m0": en_dtypes.float8_e8m0, "e2m1": en_dtypes.float4_e2m1}[name]
    assert_same_numbers(decoded(name), every_code(name).view(dtype).astype(np.float32).astype(np.float64))


@pytest.mark.parametrize("name", [name for name in GFLOAT if oracle.fmt(name).bits <= 16])
def test_gfloat(name: str) -> None:
    assert_same_numbers(
        decoded(name), np.array([gfloat.decode_float(GFLOAT[name], code).fval for code in oracle.codes(name)])
    )


@pytest.fixture(scope="module")
def specification() -> dict[str, list[dict[str, str]]]:
    rows = defaultdict(list)
    with (VECTORS / "pto_spec_format_decode.csv").open(newline="") as file:
        for row in csv.DictReader(file):
            rows[row["format"]].append(row)
    return rows


@pytest.mark.parametrize("title", SPECIFIED)
def test_pto_specification(title: str, specification: dict[str, list[dict[str, str]]]) -> None:
    """Left out: InvalidEncoding rows, six-bit codes with one of the two top bits set, which are no codes here."""
    numbers = decoded(SPECIFIED[title])
    rows = [row for row in specification[title] if row["class"] != "InvalidEncoding"]
    assert len(rows) == len(numbers)
    for row in rows:
        number = numbers[int(row["code"], 16)]
        if row["class"].endswith("NaN"):
            assert np.isnan(number), row
        elif row["class"].endswith("Infinity"):
            assert number == (-np.inf if row["class"].startswith("Negative") else np.inf), row
        else:
            exact = int(row["significand"]) * Fraction(2) ** int(row["exponent"])
            assert abs(Fraction(number)) == exact, row
            assert np.signbit(number) == (row["sign"] == "1"), row
