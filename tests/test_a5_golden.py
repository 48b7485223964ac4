"""A5 casts against the golden scripts of the PTO library: the oracle's lanes and the product's, in 1D and 2D."""

from __future__ import annotations

import numpy as np
import oracle
import oracle_a5
import pytest
from a5_cases import Shape, fill, lowerer, make_cast, run
from golden import assert_same
from golden_pto import DATA, arrays, unpack

AS_THE_SCRIPTS = oracle_a5.Doubt(bits=frozenset(), off="exact")
"""What the scripts expect where the chip's defaults differ: fp8 does not clamp, infinity with OFF gives 0."""
OPTIONS: dict[str, int | str] = {"ctrl_60_at_start": 0, "native_off_intermediate": "exact"}
KEYS = [key for key in DATA if key.startswith("a5__") and "__out" in key]
NATIVE = {"f32": np.float32, "f16": np.float16, "i64": np.int64}


def numbers(source: np.ndarray, src: str) -> np.ndarray:
    if src == "bf16":
        return (source.astype(np.uint32) << 16).view(np.float32).astype(np.float64)
    return source.view(NATIVE[src]).astype(np.float64) if src in NATIVE else np.zeros(source.shape)


def artefacts(src: str, dst: str, mode: str, source: np.ndarray) -> np.ndarray:
    """Return the elements on which the script does what a correct model must not (tests/vectors/README.md)."""
    values = numbers(source, src)
    bad = np.zeros(source.shape, dtype=bool)
    if dst == "f32":
        infinite = [src in oracle.FLOATS and oracle.decode(code, src).kind == "inf" for code in source.tolist()]
        bad |= np.array(infinite)  # clamped to the largest finite number
    if dst == "f16":
        bad |= np.isnan(values)  # kept, although CTRL[48] clamps
    if mode == "round":
        bad |= np.abs(values) % 1 == 0.5  # the script rounds ties to even
    if (src, dst) == ("i64", "f32"):
        bad |= np.abs(values) > 2.0**53  # passes through float64 and rounds twice
    if dst in oracle_a5.FP4:
        bad |= (values == 0) & np.signbit(values)
        bad |= np.abs(values) > 1e8
        bad |= np.isnan(values)  # "NaN input: not defined"
    return bad


@pytest.mark.parametrize("key", KEYS)
def test_oracle(key: str) -> None:
    src, dst, mode, source, expected, undefined = arrays(key)
    mode = mode.lower()
    keep = ~undefined & ~artefacts(src, dst, mode, source)
    assert keep.sum() >= 14
    for multi_step in (False, True):
        got = oracle_a5.lanes(src, dst, source[keep], mode, None, multi_step=multi_step, doubt=AS_THE_SCRIPTS)
        got = got.astype(expected.dtype)
        assert_same(expected[keep], got, source[keep], src, dst)


@pytest.mark.parametrize("key", KEYS)
def test_product(key: str) -> None:
    src, dst, mode, source, expected, undefined = arrays(key)
    mode = mode.lower()
    keep = ~undefined & ~artefacts(src, dst, mode, source)
    cols = -(-source.size // 64) * 64
    even = source.size - source.size % 2
    for shape in (Shape(1, cols, 1, even), Shape(2, cols + 64, 2, even)):
        for shortcuts in (False, True):
            cast = make_cast(src, dst, shape, mode)
            buffer, _ = fill(cast, source[:even].astype(np.uint64))
            run(lowerer(**OPTIONS).cast(cast), buffer, shortcuts=shortcuts)
            start = cast.dst.address + (shape.valid_rows - 1) * cast.dst.row_pitch
            raw = buffer[start : start + even * oracle_a5.size(dst) // 8]
            got = unpack(raw) if oracle_a5.size(dst) == 4 else raw.view(expected.dtype)
            assert_same(expected[:even][keep[:even]], got[keep[:even]], source[:even][keep[:even]], src, dst)


def test_the_file_covers_most_pairs() -> None:
    assert len({tuple(key.split("__")[1:3]) for key in KEYS}) == 32
