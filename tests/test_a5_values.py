"""Values of A5 casts: every pair, mode, saturation and code variant against the oracle, on both execution paths."""

from __future__ import annotations

import oracle_a5
import pytest
from a5_cases import A5, Shape, check, make_cast, source_codes

from castsim.machines.vector_function.values import WholeTile

MODES = (None, "none", "rint", "round", "floor", "ceil", "trunc", "odd")
SATURATIONS = (None, "on", "off")
IDS = [f"{src}-{dst}" for src, dst in oracle_a5.LEGAL]


def granule(src: str, dst: str) -> int:
    """Columns in which both tiles have whole blocks per row."""
    return 256 // min(oracle_a5.size(src), oracle_a5.size(dst))


def full_shape(src: str, dst: str, elements: int) -> Shape:
    """Two full rows of at least `elements` together."""
    unit = granule(src, dst)
    cols = -(-elements // 2 // unit) * unit
    return Shape(2, cols, 2, cols)


@pytest.mark.parametrize(("src", "dst"), oracle_a5.LEGAL, ids=IDS)
def test_every_mode_and_saturation_in_both_default_variants(src: str, dst: str) -> None:
    codes = source_codes(src, dst)
    full = full_shape(src, dst, codes.size)
    padded = Shape(2, full.cols + granule(src, dst), 2, full.cols - 1)
    for mode in MODES:
        for saturation in SATURATIONS:
            for shape in (full, padded):
                # The register path converts the same lanes by the same policies: once per shape and saturation.
                paths = (False, True) if mode in (None, "floor") else (True,)
                check(make_cast(src, dst, shape, mode, saturation), codes, paths=paths)
            check(make_cast(src, dst, padded, mode, saturation), codes[::-1], kind=2, paths=(True,))


@pytest.mark.parametrize(("src", "dst"), oracle_a5.LEGAL, ids=IDS)
def test_odd_and_ragged_shapes_in_every_variant(src: str, dst: str) -> None:
    codes = source_codes(src, dst)
    unit = granule(src, dst)
    wide = -(-520 // unit) * unit
    shapes = [
        Shape(1, unit, 1, 1),
        Shape(1, wide, 1, 513),
        Shape(3, unit, 3, unit),
        Shape(3, unit, 2, unit - 1),
        Shape(3, wide, 3, 257),
        Shape(5, wide, 2, 65),
        Shape(2, wide, 2, wide, dynamic=True),
        Shape(4, unit, 4, 0),
        Shape(4, unit, 0, unit),
    ]
    for shape in shapes:
        for kind in range(5):
            for saturation in ("on", "off"):
                lowered = check(make_cast(src, dst, shape, "rint", saturation), codes, kind=kind)
                odd_nibbles = dst in oracle_a5.FP4 and shape.valid_cols % 2
                empty = not shape.valid_rows or not shape.valid_cols
                assert isinstance(lowered.shortcut, WholeTile) == (not odd_nibbles and not empty)


@pytest.mark.parametrize(("src", "dst"), [("f32", "i32"), ("bf16", "f16"), ("f16", "i16"), ("f32", "e4m3fn")])
def test_in_place(src: str, dst: str) -> None:
    codes = source_codes(src, dst)
    for shape in (Shape(3, 256, 3, 256), Shape(3, 256, 2, 255)):
        lowered = check(make_cast(src, dst, shape, places=(512, 512)), codes)
        assert isinstance(lowered.shortcut, WholeTile) == (oracle_a5.size(src) == oracle_a5.size(dst))


def test_the_pairs_of_the_descriptor_are_those_of_the_sheet() -> None:
    assert sorted((rule.src, rule.dst) for rule in A5.casts) == sorted(oracle_a5.LEGAL)
    assert len(oracle_a5.LEGAL) == 45
