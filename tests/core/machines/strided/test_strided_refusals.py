"""Tiles that a cast refuses."""

from __future__ import annotations

import dataclasses

import pytest
from kit.strided_cases import LOWERER, SPAN, tile

from castsim.execution.tree import TileCast
from castsim.isa.errors import TileError
from castsim.isa.formats import Saturation


# ------------------------------------------------------------------------------------------------------- refusals
def cast(src: object, dst: object, tmp: object = None, **asked: object) -> None:
    LOWERER.cast(TileCast(src, dst, tmp, asked.get("mode"), asked.get("saturation"), SPAN))


@pytest.mark.parametrize(
    ("src", "dst", "message"),
    [
        (tile("a", "f32", 2, 20, 0), tile("b", "f16", 2, 20, 4096), "80 bytes per line, not a multiple of 32"),
        (tile("a", "f32", 2, 32, 16), tile("b", "f16", 2, 32, 4096), "byte 16, which is not 32-byte aligned"),
        (tile("a", "f32", 2, 32, 196_608 - 224), tile("b", "f16", 2, 32, 0), "32 bytes past the end"),
        (tile("a", "f32", 2, 32, -32), tile("b", "f16", 2, 32, 4096), "takes bytes -32"),
        (tile("a", "f32", 2, 32, 0, (3, 32)), tile("b", "f16", 2, 32, 4096, (3, 32)), "3 x 32 exceeds 2 x 32"),
        (tile("a", "f32", 2, 32, 0), tile("b", "f16", 2, 64, 4096), "valid region of %a is 2 x 32, of %b 2 x 64"),
        (tile("a", "f32", 2, 32, 0, (1, 32)), tile("b", "f16", 2, 32, 4096), "valid region of %a is 1 x 32"),
        (tile("a", "f16", 2, 32, 0, (2, 31)), tile("b", "i4", 2, 32, 4096, (2, 31)), "must be even"),
        (tile("a", "f32", 2, 32, 0), tile("b", "f16", 2, 32, 128), "partly overlaps"),
        (tile("a", "f16", 2, 32, 0), tile("b", "f32", 2, 32, 0), "partly overlaps"),
    ],
)
def test_tiles_that_do_not_fit(src: object, dst: object, message: str) -> None:
    with pytest.raises(TileError, match=message):
        cast(src, dst)


def test_layouts_that_do_not_fit() -> None:
    good = tile("b", "f16", 32, 32, 8192)
    for field, value in (("location", "mat"), ("scatter_layout", "row_major"), ("block_layout", "col_major")):
        bad = tile("a", "f32", 32, 32, 0)
        bad = dataclasses.replace(bad, type=dataclasses.replace(bad.type, **{field: value}))
        with pytest.raises(TileError, match=f"%a.*{value}"):
            cast(bad, good)


@pytest.mark.parametrize("at", [0, 4064, 65536])
def test_scratch_may_not_overlap_the_operands(at: int) -> None:
    src, dst = tile("a", "f32", 2, 512, 0), tile("b", "i16", 2, 512, 65536)
    with pytest.raises(TileError, match="overlaps"):
        cast(src, dst, tile("t", "i32", 1, 512, at), saturation=Saturation.OFF)
