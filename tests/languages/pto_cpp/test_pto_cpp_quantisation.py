"""Quantisation in C++: the spellings of TQUANT, TDEQUANT and TPACK, with worked examples of docs/reference/pto.md."""

from __future__ import annotations

import numpy as np
import pytest
from kit.pto_cpp_runs import needs_compiler, same_bits, written

import castsim
from castsim.languages.pto_cpp import Request, record, run

pytestmark = needs_compiler

QUANTISED = """
extern "C" __global__ AICORE void k(__gm__ float *x, __gm__ float *f, __gm__ float *o, __gm__ CODE *y) {
  using Wide = Tile<TileType::Vec, float, 1, 64>;
  using Rows = Tile<TileType::Vec, float, 8, 1, BLayout::ColMajor, 1, 1>;
  Wide wide, tmp; Rows factor, offset; Tile<TileType::Vec, CODE, 1, 64> codes;
  TASSIGN(wide, 0); TASSIGN(tmp, 0x1000); TASSIGN(factor, 0x2000); TASSIGN(offset, 0x3000); TASSIGN(codes, 0x4000);
  GlobalTensor<float, Shape<1, 1, 1, 1, 64>, Stride<1, 1, 1, 64, 1>> from(x);
  GlobalTensor<float, Shape<1, 1, 1, 1, 1>, Stride<1, 1, 1, 1, 1>, Layout::DN> factors(f), offsets(o);
  GlobalTensor<CODE, Shape<1, 1, 1, 1, 64>, Stride<1, 1, 1, 64, 1>> into(y);
  TLOAD(wide, from); TLOAD(factor, factors); TLOAD(offset, offsets);
  set_flag(PIPE_MTE2, PIPE_V, EVENT_ID0); wait_flag(PIPE_MTE2, PIPE_V, EVENT_ID0);
  TQUANT<QuantType::CALL;
  set_flag(PIPE_V, PIPE_MTE3, EVENT_ID0); wait_flag(PIPE_V, PIPE_MTE3, EVENT_ID0);
  TSTORE(into, codes);
}
"""
SYMMETRIC = ({2: 127, -2: -127, 0.5: 32, -1.004: -64, 2.1: 127, 3000: 127, 0: 0}, 63.5, 0)
ASYMMETRIC = ({-2: 0, 0: 128, 0.01: 129, 0.04: 131, 2: 255, -2.01: 0}, 63.75, 128)
"""Values and codes, a factor and an offset: product and sum rounded to f32, then to nearest even, then clamped."""


@pytest.mark.parametrize(
    ("target", "call", "code", "worked"),
    [
        ("a5", "INT8_SYM>(codes, wide, factor)", "int8_t", SYMMETRIC),
        ("a5", "INT8_ASYM, decltype(codes), Wide, Rows>(codes, wide, factor, &offset)", "uint8_t", ASYMMETRIC),
        ("a2a3", "INT8_SYM>(codes, wide, factor, tmp)", "int8_t", SYMMETRIC),
        ("a2a3", "INT8_ASYM>(codes, wide, factor, tmp, &offset)", "uint8_t", ASYMMETRIC),
    ],
)
def test_quantisation_to_bytes(tmp_path, target, call, code, worked):
    values, factor, offset = worked
    path = written(tmp_path, QUANTISED.replace("CALL", call).replace("CODE", code))
    x = np.zeros(64, np.float32)
    x[: len(values)] = [*values]
    inputs = {"x": x, "f": np.float32([factor]), "o": np.float32([offset])}
    found = run(path, target=target, inputs=inputs)
    assert found.outputs["y"].reshape(-1)[: len(values)].tolist() == [*values.values()]
    text = tmp_path / "again.pto"
    text.write_text(record(Request(path, inputs=inputs, target=target))[0].pto_text())
    assert same_bits(castsim.run(text, target, inputs=inputs).outputs["y"], found.outputs["y"])


BLOCKS = """
extern "C" __global__ AICORE void k(__gm__ float *x, __gm__ uint8_t *y, __gm__ uint8_t *e) {
  Tile<TileType::Vec, float, 1, 32> wide; Tile<TileType::Vec, uint8_t, 1, 32> codes;
  Tile<TileType::Vec, uint8_t, 1, 32, BLayout::RowMajor, 1, 1> exponents;
  Tile<TileType::Vec, float, 1, 64, BLayout::RowMajor, 1, 1> maxima, scaling;
  TASSIGN(wide, 0); TASSIGN(codes, 0x1000); TASSIGN(exponents, 0x2000);
  TASSIGN(maxima, 0x3000); TASSIGN(scaling, 0x4000);
  GlobalTensor<float, Shape<1, 1, 1, 1, 32>, Stride<1, 1, 1, 32, 1>> from(x);
  GlobalTensor<uint8_t, Shape<1, 1, 1, 1, 32>, Stride<1, 1, 1, 32, 1>> into(y);
  GlobalTensor<uint8_t, Shape<1, 1, 1, 1, 1>, Stride<1, 1, 1, 1, 1>> powers(e);
  TLOAD(wide, from);
  set_flag(PIPE_MTE2, PIPE_V, EVENT_ID0); wait_flag(PIPE_MTE2, PIPE_V, EVENT_ID0);
  TQUANT<CALL>(codes, wide, &exponents, &maxima, &scaling);
  set_flag(PIPE_V, PIPE_MTE3, EVENT_ID0); wait_flag(PIPE_V, PIPE_MTE3, EVENT_ID0);
  TSTORE(into, codes); TSTORE(powers, exponents);
}
"""
OLDER = "QuantType::MXFP8, decltype(codes), decltype(wide), decltype(exponents), decltype(maxima), decltype(scaling)"


@pytest.mark.parametrize(
    ("call", "exponent", "codes"),
    [  # worked examples of docs/reference/pto.md section 7.12
        ("1, MxQuantAlg::OcpMxFp8E4M3", 128, [0x7E, 0xBC, 0x15, 0x00, 0x76, 0x77]),
        ("1, MxQuantAlg::NvMxFp8E4M3, false", 129, [0x78, 0xB4, 0x0D, 0x00, 0x6E, 0x6F]),
        ("QuantType::MXFP8", 128, [0x7E, 0xBC, 0x15, 0x00, 0x76, 0x77]),
        (f"{OLDER}, QuantScaleAlg::NV", 129, [0x78, 0xB4, 0x0D, 0x00, 0x6E, 0x6F]),
    ],
)
def test_quantisation_of_blocks(tmp_path, call, exponent, codes):
    x = np.zeros(32, np.float32)
    x[:6] = 1000, -3, 0.1, 2.0**-10, 457, 480
    found = run(written(tmp_path, BLOCKS.replace("CALL", call)), target="a5", inputs={"x": x}).outputs
    assert (found["e"].reshape(-1).tolist(), found["y"].reshape(-1)[:6].tolist()) == ([exponent], codes)


PAIRS = """
extern "C" __global__ AICORE void k(__gm__ half *x, __gm__ uint8_t *y, __gm__ uint8_t *e) {
  using Groups = Tile<TileType::Vec, half, 2, 64>;
  Tile<TileType::Vec, half, 64, 64> wide; Tile<TileType::Vec, float4_e2m1x2_t, 64, 64> codes;
  Tile<TileType::Vec, uint8_t, 64, 32> bytes; Tile<TileType::Vec, uint8_t, 1, 128> exponents; Groups maxima, scaling;
  TASSIGN(wide, 0); TASSIGN(codes, 0x4000); TASSIGN(bytes, 0x4000); TASSIGN(exponents, 0x6000);
  TASSIGN(maxima, 0x7000); TASSIGN(scaling, 0x8000);
  GlobalTensor<half, Shape<1, 1, 1, 64, 64>, Stride<1, 1, 1, 64, 1>> from(x);
  GlobalTensor<uint8_t, Shape<1, 1, 1, 64, 32>, Stride<1, 1, 1, 32, 1>> into(y);
  GlobalTensor<uint8_t, Shape<1, 1, 1, 1, 128>, Stride<1, 1, 1, 128, 1>> powers(e);
  TLOAD(wide, from);
  set_flag(PIPE_MTE2, PIPE_V, EVENT_ID0); wait_flag(PIPE_MTE2, PIPE_V, EVENT_ID0);
  TQUANT<0, MxQuantAlg::RULE, true>(codes, wide, &exponents, &maxima, &scaling);
  set_flag(PIPE_V, PIPE_MTE3, EVENT_ID0); wait_flag(PIPE_V, PIPE_MTE3, EVENT_ID0);
  TSTORE(into, bytes); TSTORE(powers, exponents);
}
"""


@pytest.mark.parametrize(
    ("rule", "exponent", "codes"),
    [("OcpMxFp4E2M1", 127, [7, 12, 6, 2, 1, 2]), ("NvMxFp4E2M1", 128, [6, 10, 4, 1, 0, 1])],
)
def test_pairs_of_groups_of_rows(tmp_path, rule, exponent, codes):
    """Worked examples of docs/reference/pto.md section 7.12, down a column; exponents of two groups side by side."""
    x = np.zeros((64, 64), np.float16)
    x[:6, 5] = 7, -2.5, 5, 1.25, 0.5, 0.875
    path = written(tmp_path, PAIRS.replace("RULE", rule))
    found = run(path, target="a5", inputs={"x": x}).outputs
    assert (found["y"].reshape(64, 32)[:6, 2] >> 4).tolist() == codes
    assert found["e"].reshape(-1)[10:12].tolist() == [exponent, 0]
    text = tmp_path / "again.pto"
    text.write_text(record(Request(path, inputs={"x": x}, target="a5"))[0].pto_text())
    assert same_bits(castsim.run(text, "a5", inputs={"x": x}).outputs["y"], found["y"])


BOXES = """
extern "C" __global__ AICORE void k(__gm__ uint8_t *x, __gm__ uint8_t *y, __gm__ uint8_t *n) {
  Tile<TileType::Vec, uint8_t, 4, 32> exponents; Tile<TileType::Vec, uint8_t, 1, 128> bytes, tmp;
  Tile<TileType::Vec, uint8_t, 32, 4, BLayout::RowMajor, 32, 4, SLayout::RowMajor, 32> boxes;
  Tile<TileType::Vec, uint8_t, 16, 32, BLayout::ColMajor, 4, 32, SLayout::RowMajor, 512> columns;
  TASSIGN(exponents, 0); TASSIGN(bytes, 0x1000); TASSIGN(boxes, 0x1000); TASSIGN(tmp, 0x2000); TASSIGN(columns, 0x3000);
  Tile<TileType::Vec, uint8_t, 1, 128> first; TASSIGN(first, 0x3000);
  GlobalTensor<uint8_t, Shape<1, 1, 1, 4, 32>, Stride<1, 1, 1, 32, 1>> from(x);
  GlobalTensor<uint8_t, Shape<1, 1, 1, 1, 128>, Stride<1, 1, 1, 128, 1>> into(y), codes(n);
  TLOAD(exponents, from);
  set_flag(PIPE_MTE2, PIPE_V, EVENT_ID0); wait_flag(PIPE_MTE2, PIPE_V, EVENT_ID0);
  TMOV<0>(boxes, exponents, tmp); TMOV(columns, exponents);
  set_flag(PIPE_V, PIPE_MTE3, EVENT_ID0); wait_flag(PIPE_V, PIPE_MTE3, EVENT_ID0);
  TSTORE(into, bytes); TSTORE(codes, first);
}
"""


def test_moves_into_boxes(tmp_path):
    """Worked places of docs/reference/pto.md section 7.12; 32 codes of four rows are one column of boxes."""
    x = np.arange(128, dtype=np.uint8).reshape(4, 32)
    found = run(written(tmp_path, BOXES), target="a5", inputs={"x": x}).outputs
    boxes = found["y"].reshape(-1)
    assert (boxes[1], boxes[32], boxes[99]) == (x[1, 0], x[2, 0], x[3, 17])
    assert found["n"].reshape(-1).tolist() == x.reshape(-1).tolist()


DEQUANTISED = """
extern "C" __global__ AICORE void k(__gm__ int8_t *q, __gm__ float *s, __gm__ float *o, __gm__ float *y,
                                    __gm__ uint8_t *low) {
  using Rows = Tile<TileType::Vec, float, 8, 1, BLayout::ColMajor, 1, 1>;
  Tile<TileType::Vec, int8_t, 1, 32> codes; Tile<TileType::Vec, uint8_t, 1, 32> bytes; Rows scale, offset;
  Tile<TileType::Vec, float, 1, 32> wide;
  TASSIGN(codes, 0); TASSIGN(scale, 0x1000); TASSIGN(offset, 0x2000); TASSIGN(wide, 0x3000); TASSIGN(bytes, 0x4000);
  GlobalTensor<int8_t, Shape<1, 1, 1, 1, 32>, Stride<1, 1, 1, 32, 1>> from(q);
  GlobalTensor<float, Shape<1, 1, 1, 1, 1>, Stride<1, 1, 1, 1, 1>, Layout::DN> scales(s), offsets(o);
  GlobalTensor<float, Shape<1, 1, 1, 1, 32>, Stride<1, 1, 1, 32, 1>> into(y);
  GlobalTensor<uint8_t, Shape<1, 1, 1, 1, 32>, Stride<1, 1, 1, 32, 1>> packed(low);
  TLOAD(codes, from); TLOAD(scale, scales); TLOAD(offset, offsets);
  set_flag(PIPE_MTE2, PIPE_V, EVENT_ID0); wait_flag(PIPE_MTE2, PIPE_V, EVENT_ID0);
  TDEQUANT(wide, codes, scale, offset);
  pipe_barrier(PIPE_V);
  TPACK(bytes, wide);
  set_flag(PIPE_V, PIPE_MTE3, EVENT_ID0); wait_flag(PIPE_V, PIPE_MTE3, EVENT_ID0);
  TSTORE(into, wide); TSTORE(packed, bytes);
}
"""


@pytest.mark.parametrize(("q", "offset", "scale", "code"), [(-128, 3.5, 0.1, 0xC1526667), (127, 0.3, 0.7, 0x42B16147)])
def test_dequantisation_and_packing(tmp_path, q, offset, scale, code):
    """The difference and the product rounded to f32; packing keeps the low byte of each."""
    inputs = {"q": np.full(32, q, np.int8), "s": np.float32([scale]), "o": np.float32([offset])}
    found = run(written(tmp_path, DEQUANTISED), target="a5", inputs=inputs).outputs
    assert set(found["y"].reshape(-1).view(np.uint32).tolist()) == {code}
    assert set(found["low"].reshape(-1).tolist()) == {code & 0xFF}
