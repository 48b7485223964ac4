"""The oracle for arrays of wide sources against the scalar one, on codes near everything that matters to the pair."""

from __future__ import annotations

from itertools import product

import oracle
import pytest
from boundaries import hard_codes

SOURCES = ["f32", "f64", "i32", "u32", "i48"]
DESTINATIONS = ["f64", "f32", "f16", "bf16", "e4m3fn", "e2m1", "hif8", "e8m0", "i8", "u16", "i32", "i48", "u64", "bool"]


@pytest.mark.parametrize("src", SOURCES)
@pytest.mark.parametrize("dst", DESTINATIONS)
def test_arrays_equal_single_casts(src: str, dst: str) -> None:
    source = hard_codes(src, dst, points=12, reach=2, random=60, seed=3)
    tried = 0
    for mode, overflow in product((*oracle.MODES, "up", "down", "nearest"), oracle.OVERFLOWS):
        try:
            oracle.check(src, dst, mode, overflow)
        except oracle.Refused:
            continue
        tried += 1
        expected = [oracle.cast(code, src, dst, mode, overflow) for code in source.tolist()]
        got = oracle.cast_array(source, src, dst, mode, overflow)
        assert got.dtype == oracle.storage(dst)
        assert got.tolist() == expected, (mode, overflow)
    assert tried >= 3


@pytest.mark.parametrize("mode", oracle.MODES)
@pytest.mark.parametrize("overflow", ["saturate", "special"])
def test_powers_of_two_by_the_exponent(mode: str, overflow: str) -> None:
    source = hard_codes("f32", "e8m0", points=30, reach=2, random=200, seed=4)
    expected = [oracle.cast(code, "f32", "e8m0", mode, overflow, e8m0="asl") for code in source.tolist()]
    assert oracle.cast_array(source, "f32", "e8m0", mode, overflow, e8m0="asl").tolist() == expected
