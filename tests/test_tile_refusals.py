"""Tiles and entries that no program may have: each refusal with its place and what would be legal."""

# A `.pto` statement stays on one line.
# ruff: noqa: E501

from __future__ import annotations

import pytest
from execution_programs import kernel, walk

from castsim.isa.errors import CastsimError
from castsim.isa.pto.pto_parser import parse

VEC = "!pto.tile_buf<vec, {}>"


def alloc(kind: str) -> str:
    return kernel(f"%t = pto.alloc_tile : {VEC.format(kind)}")


@pytest.mark.parametrize(
    ("kind", "message", "legal"),
    [
        ("0x64xf32", "tile %t of 0 rows and 64 columns has no element", None),
        ("8x0xf32", "tile %t of 8 rows and 0 columns has no element", None),
        ("8x64xf32, valid=9x64", "9 valid rows in a tile of 8 rows", None),
        ("16x64xf32, slayout=row_major, fractal=100", "no tile has boxes of 100 bytes", "fractal=512"),
        ("0x64xf32, slayout=row_major", "tile %t of 0 rows and 64 columns has no element", None),
        ("2048x64xf32, slayout=row_major", "the buffer has 196608: 327680 bytes missing", None),
        ("8x4xf32", "8 x f32 is 16 bytes per line, not a multiple of 32", None),
        ("4x8xf32, blayout=col_major", "is 16 bytes per line", None),
    ],
)
def test_tiles_that_cannot_be(kind: str, message: str, legal: str | None):
    with pytest.raises(CastsimError) as caught:
        walk(alloc(kind))
    assert message.removeprefix("8 x f32 is ") in caught.value.message
    assert caught.value.span is not None
    assert caught.value.span.line == 13
    assert legal is None or legal in caught.value.legal


T = VEC.format("8x64xf32")


@pytest.mark.parametrize(
    ("body", "message", "line"),
    [
        (f"%p = arith.constant 0 : i64\n%a = pto.alloc_tile addr = %p : {T}\n%b = pto.alloc_tile : {T}", "this one needs one too", 15),
        (f"%p = arith.constant 16 : i64\n%a = pto.alloc_tile addr = %p : {T}", "not 32-byte aligned", 14),
        (f"%p = arith.constant 196608 : i64\n%a = pto.alloc_tile addr = %p : {T}", "the buffer has 196608", 14),
        (f"%p = arith.constant 64 : i64\n%a = pto.alloc_tile addr = %p : {T}\n%m = pto.alloc_multi_tile : !pto.multi_tile_buf<vec, 8x64xf32, count=2>", "this one needs one too", 15),
        ("return %c0 : index", "declares 0 results and returns 1", 14),
    ],
)  # fmt: skip
def test_addresses_and_results_that_cannot_be(body: str, message: str, line: int):
    text = kernel(body)
    if body.startswith("return"):
        text = text.replace("\nreturn\n}", "\n}")
    with pytest.raises(CastsimError) as caught:
        walk(text)
    assert message in caught.value.message
    assert caught.value.span is not None
    assert caught.value.span.line == line


def test_an_entry_has_no_results():
    text = "func.func @k() -> index attributes {pto.entry} {\n%c = arith.constant 1 : index\nreturn %c : index\n}\n"
    with pytest.raises(CastsimError, match="entry function @k must return nothing") as caught:
        parse(text)
    assert caught.value.span is not None
