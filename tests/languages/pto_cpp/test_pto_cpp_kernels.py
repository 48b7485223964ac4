"""Kernels in C++ against NumPy: every operation that public vector kernels use, values and paths that rest on them."""

from __future__ import annotations

import itertools

import numpy as np
import pytest
from kit.pto_cpp_runs import needs_compiler, ran, same_bits, written

from castsim.isa.errors import CastsimError
from castsim.languages.pto_cpp import run

pytestmark = needs_compiler

F32 = np.float32


def blocks(array, shape):
    return np.asarray(array).reshape(-1, *shape)


@pytest.fixture
def generator():
    return np.random.default_rng(7)


def test_elementwise_f32(generator):
    a, b = (generator.normal(size=(4, 64)).astype(F32) for _ in range(2))
    s = F32(0.75)
    out = blocks(ran("elementwise", entry="floats", inputs={"a": a, "b": b}, args={"s": 0.75}).outputs["out"], (4, 64))
    m = np.abs(a)
    exact = [
        a + b, a - b, a * b, a / b, np.maximum(a, b), np.minimum(a, b), a + s, a - s, a * s, a / s, s / a,
        np.maximum(a, s), np.minimum(a, s), np.full_like(a, s), m, -a, np.maximum(a, 0),
    ]  # fmt: skip
    for number, wanted in enumerate(exact):
        np.testing.assert_array_equal(out[number], wanted, err_msg=str(number))
    near = [a * s + F32(1), np.sqrt(m), 1 / np.sqrt(m), 1 / m, np.log(m), np.exp(a), a]
    for number, wanted in enumerate(near, len(exact)):
        np.testing.assert_allclose(out[number], wanted, rtol=2e-6, atol=2e-7, err_msg=str(number))
    assert len(out) == len(exact) + len(near)


def test_elementwise_i16(generator):
    a, b = (generator.integers(-300, 300, (4, 64)).astype(np.int16) for _ in range(2))
    run = ran("elementwise", entry="integers", inputs={"a": a, "b": b}, args={"s": -29})
    s = np.int16(-29)
    wanted = [
        a & b, a | b, a ^ b, ~a, a & s, a | s, a ^ s, a + b, (a.astype(int) * b).astype(np.int16), np.maximum(a, b),
    ]  # fmt: skip
    np.testing.assert_array_equal(blocks(run.outputs["out"], (4, 64)), wanted)


def test_shifts_masks_and_unsigned_scalars(generator):
    a = generator.integers(0, 1 << 16, (4, 64)).astype(np.uint16)
    b = generator.integers(0, 16, (4, 64)).astype(np.uint16)
    c = generator.normal(size=(2, 4, 64)).astype(F32)
    run = ran("elementwise", entry="shifts_and_masks", inputs={"a": a, "b": b, "c": c})
    np.testing.assert_array_equal(blocks(run.outputs["out"], (4, 64)), [a << b, a >> b, a & np.uint16(0xF00F)])
    x, y = c
    chosen = blocks(run.outputs["chosen"], (4, 64))
    np.testing.assert_array_equal(chosen, [np.where(x < y, x, y), np.where(x >= 0.5, x, F32(-1))])


def test_remainders_and_slopes(generator):
    a, b = (generator.normal(size=(4, 64)).astype(F32) * 5 for _ in range(2))
    run = ran("elementwise", entry="remainders", inputs={"a": a, "b": b}, args={"s": 0.5})
    out = blocks(run.outputs["out"], (4, 64))
    np.testing.assert_allclose(out[0], np.fmod(a, F32(0.5)), atol=1e-5)
    np.testing.assert_allclose(out[1], np.fmod(a, b), atol=1e-4)
    np.testing.assert_array_equal(out[2], np.where(a > 0, a, a * b))
    np.testing.assert_array_equal(out[3], np.where(a > 0, a, a * F32(0.5)))


def test_reductions_and_expansions_along_rows(generator):
    x = generator.uniform(0.5, 1.5, (16, 64)).astype(F32)
    run = ran("rows_and_columns", entry="along_rows", inputs={"x": x, "row": x[0]})
    out = run.outputs["out"].reshape(-1)
    rows = out[:64].reshape(4, 16)
    np.testing.assert_array_equal(rows[:2], [x.max(1), x.min(1)])
    np.testing.assert_allclose(rows[2:], [x.prod(1), x.sum(1)], rtol=1e-5)
    total = rows[3][:, None]
    wanted = [x - total, x * total, x / total, x + total, np.minimum(x, total), np.maximum(x, total)]
    found = blocks(out[64:], (16, 64))
    np.testing.assert_array_equal(found[:6], wanted)
    np.testing.assert_array_equal(found[6], np.broadcast_to(total, x.shape))


def test_reductions_and_expansions_along_columns(generator):
    x = generator.uniform(0.5, 1.5, (16, 64)).astype(F32)
    row = generator.normal(size=64).astype(F32)
    run = ran("rows_and_columns", entry="along_columns", inputs={"x": x, "row": row})
    out = run.outputs["out"].reshape(-1)
    lines = out[: 5 * 64].reshape(5, 64)
    np.testing.assert_allclose(lines[:2], [x.sum(0)] * 2, rtol=1e-5)
    np.testing.assert_array_equal(lines[2:4], [x.max(0), x.min(0)])
    np.testing.assert_allclose(lines[4], x.prod(0), rtol=1e-5)
    last = lines[4]
    wanted = [np.broadcast_to(last, x.shape)] * 2
    wanted += [x * last, x + last, np.maximum(x, last), np.minimum(x, last)]
    np.testing.assert_array_equal(blocks(out[5 * 64 :], (16, 64)), wanted)
    np.testing.assert_array_equal(run.outputs["places"].reshape(-1), x.argmax(0))


def test_parts_where_both_or_one_operand_is_valid(generator):
    x = generator.uniform(-1, 1, (16, 64)).astype(F32)
    run = ran("rows_and_columns", entry="parts", inputs={"x": x, "row": x[0]}, args={"rows": 5})
    both = [x + 2 * x, x * (2 * x), np.maximum(x, 2 * x), np.minimum(x, 2 * x)]
    within = np.arange(16)[:, None] < 5
    np.testing.assert_array_equal(blocks(run.outputs["out"], (16, 64)), [np.where(within, each, x) for each in both])


def test_gathers_and_ramps(generator):
    x = generator.normal(size=(8, 32)).astype(F32)
    places = generator.integers(0, 256, (8, 32)).astype(np.uint32)
    run = ran("rearranging", entry="gathers", inputs={"x": x, "places": places})
    out = run.outputs["out"].reshape(-1)
    np.testing.assert_array_equal(out[:256].reshape(8, 32), x.reshape(-1)[places])
    np.testing.assert_array_equal(out[256:384].reshape(8, 16), x[:, 0::2])
    np.testing.assert_array_equal(out[384:].reshape(8, 16), x[:, 1::2])
    np.testing.assert_array_equal(run.outputs["numbers"].reshape(-1), np.arange(5, 69))


def test_sorting_and_merging(generator):
    x = generator.permutation(128).astype(F32)
    pairs = ran("rearranging", entry="largest", inputs={"x": x}).outputs["pairs"].reshape(-1, 2)
    order = np.argsort(-x)[:32]
    np.testing.assert_array_equal(pairs[:, 0], x[order])
    np.testing.assert_array_equal(np.ascontiguousarray(pairs[:, 1]).view(np.uint32), order)
    x = generator.permutation(64).astype(F32)
    pairs = ran("rearranging", entry="merged", inputs={"x": x}).outputs["pairs"].reshape(-1, 2)
    np.testing.assert_array_equal(pairs[:, 0], np.sort(x)[::-1])


def test_padding_transposition_and_parts_of_tiles(generator):
    x = generator.normal(size=(9, 24)).astype(F32)
    run = ran("rearranging", entry="moves", inputs={"x": x}, args={"rows": 9, "cols": 24})
    filled = np.full((16, 32), np.inf, F32)
    filled[:9, :24] = x
    out = run.outputs["out"].reshape(-1)
    np.testing.assert_array_equal(out[:512].reshape(16, 32), filled)
    np.testing.assert_array_equal(out[512:1024].reshape(32, 16), filled.T)
    joined = np.hstack([filled, filled])
    changed = joined.copy()
    changed[8:16, 32:48] = joined[:8, :16]
    np.testing.assert_array_equal(out[1024:2048].reshape(16, 64), changed)
    np.testing.assert_array_equal(out[2048:].reshape(16, 64), joined)


def test_paths_by_lengths_in_global_memory_and_elements_of_tiles(generator):
    starts = np.array([0, 5, 5, 37, 60], np.int32)
    x = generator.normal(size=60).astype(F32)
    x[5:37] = -np.abs(x[5:37])
    run = ran("scalars", entry="by_lengths", inputs={"x": x, "starts": starts}, args={"sequences": 4})
    wanted = np.zeros(60, F32)
    for first, last in itertools.pairwise(starts):
        if last > first and x[first:last].max() > 0:
            wanted[first:last] = x[first:last] * (F32(1) / x[first:last].max())
    np.testing.assert_array_equal(run.outputs["y"].reshape(-1)[:60], wanted)


def test_loops_by_values_and_elements_written_by_assignment(generator):
    x = generator.uniform(1, 2, 64).astype(np.float16)
    x[0] = 100
    run = ran("scalars", entry="until", inputs={"x": x, "counts": np.zeros(4, np.int32)}, args={"limit": 3.0})
    times = 6  # 100 / 2^6 < 3
    wanted = (x.astype(F32) * F32(2.0**-times)).astype(np.float16)
    wanted[1] = times
    assert same_bits(run.outputs["y"], wanted)
    np.testing.assert_array_equal(run.outputs["counts"].reshape(-1), [times, 0, 0, times + 1])


@pytest.mark.parametrize(("target", "into"), [("a2a3", "half"), ("a5", "half"), ("a2a3", "int16_t"), ("a5", "int32_t")])
def test_all_overloads_of_tcvt(generator, target, into):
    x = generator.normal(size=(4, 64)).astype(F32) * 100
    run = ran("casts", entry=f"cast_tile<float, {into}, 4, 64>", target=target, inputs={"src": x})
    out = blocks(run.outputs["dst"], (4, 64))
    rounded = [np.rint(x), np.floor(x), np.ceil(x), np.trunc(x)]
    if into == "half":
        np.testing.assert_array_equal(out[0], x.astype(np.float16))
        assert (out[1] <= x).all() and (out[2] >= x).all() and (np.abs(out[3]) <= np.abs(x)).all()
    else:
        np.testing.assert_array_equal(out, np.stack(rounded).astype(out.dtype))


@pytest.mark.parametrize(("block", "blocks"), [(0, 1), (1, 4), (3, 4)])
def test_one_core_of_several(generator, block, blocks):
    x = generator.normal(size=(6, 40)).astype(F32)
    how = {"args": {"rows": 6, "cols": 40, "scale": 2.0}, "inputs": {"x": x, "y": np.zeros_like(x)}}
    run = ran("cores", entry="scaled_rows", block=block, blocks=blocks, **how)
    wanted = x * F32(2) * np.arange(1, 7, dtype=F32)[:, None]
    wanted[np.arange(6) % blocks != block] = 0
    np.testing.assert_array_equal(run.outputs["y"].reshape(6, 40), wanted)


HALVES = "GlobalTensor<half, Shape<1, 1, 1, 16, 64>, Stride<1, 1, 1, 64, 1>>"
COMBINED = f"""
extern "C" __global__ AICORE void k(__gm__ half *x, __gm__ half *y, __gm__ half *out, __gm__ int8_t *bytes,
                                    __gm__ int32_t *places)
{{
    using G = {HALVES};
    using T = Tile<TileType::Vec, half, 16, 64>;
    using I = Tile<TileType::Vec, int32_t, 16, 64, BLayout::RowMajor, -1, -1>;
    T a, b, c, d;
    Tile<TileType::Vec, int8_t, 16, 64> e;
    I i(16, 64), j(16, 64), m(16, 64);
    TASSIGN(a, 0x0); TASSIGN(b, 0x1000); TASSIGN(c, 0x2000); TASSIGN(d, 0x3000); TASSIGN(e, 0x4000);
    TASSIGN(i, 0x5000); TASSIGN(j, 0x7000); TASSIGN(m, 0x9000);
    int at = 0;
    auto store = [&](T &t) {{
        set_flag(PIPE_V, PIPE_MTE3, EVENT_ID0); wait_flag(PIPE_V, PIPE_MTE3, EVENT_ID0);
        G to(out + at++ * 1024); TSTORE(to, t);
        set_flag(PIPE_MTE3, PIPE_V, EVENT_ID0); wait_flag(PIPE_MTE3, PIPE_V, EVENT_ID0);
    }};
    G gx(x), gy(y);
    TLOAD(a, gx); TLOAD(b, gy);
    set_flag(PIPE_MTE2, PIPE_V, EVENT_ID0); wait_flag(PIPE_MTE2, PIPE_V, EVENT_ID0);
    TSUBRELU(c, a, b); store(c);
    TFUSEDMULADDRELU(c, a, b); store(c);
    TMULADDDST(c, a, b); store(c);
    TPOW<PowAlgorithm::DEFAULT>(c, a, b, d); store(c);
    TPOWS(c, a, (half)2.0f, d); store(c);
    TINTERLEAVE(c, d, a, b); store(c); store(d);
    TDEINTERLEAVE(c, d, a, b); store(c); store(d);
    TEXPANDS(i, 7); TEXPANDS(j, 9);
    pipe_barrier(PIPE_ALL);
    TPARTARGMIN(c, a, b, m, i, j); store(c);
    GlobalTensor<int32_t, Shape<1, 1, 1, 16, 64>, Stride<1, 1, 1, 64, 1>> gm(places);
    TSTORE(gm, m);
    TADDRELUCONV(e, a, b);
    set_flag(PIPE_V, PIPE_MTE3, EVENT_ID0); wait_flag(PIPE_V, PIPE_MTE3, EVENT_ID0);
    GlobalTensor<int8_t, Shape<1, 1, 1, 16, 64>, Stride<1, 1, 1, 64, 1>> ge(bytes);
    TSTORE(ge, e);
}}
"""


@pytest.mark.parametrize("target", ["a2a3", "a5"])
def test_combined_operations_of_the_library(tmp_path, target, generator):
    """Destinations first: two of an interleaving, elements and numbers of a part's better element."""
    x, y = (generator.integers(0, 4, (16, 64)).astype(np.float16) for _ in range(2))
    result = run(written(tmp_path, COMBINED), target, inputs={"x": x, "y": y})
    out = blocks(result.outputs["out"], (16, 64))
    turns = np.stack([x, y], axis=2).reshape(16, 128)
    joined = np.concatenate([x, y], axis=1)
    fused = x * np.maximum(x - y, 0) + y
    wanted = [
        np.maximum(x - y, 0), fused, x * y + fused, x**y, x * x, turns[:, :64], turns[:, 64:], joined[:, ::2],
        joined[:, 1::2], np.minimum(x, y),
    ]  # fmt: skip
    np.testing.assert_array_equal(out, wanted)
    np.testing.assert_array_equal(result.outputs["bytes"].reshape(16, 64), x + y)
    np.testing.assert_array_equal(result.outputs["places"].reshape(16, 64), np.where(x < y, 7, 9))


WIDE = """
extern "C" __global__ AICORE void k(__gm__ int64_t *x, __gm__ uint8_t *bits, __gm__ int64_t *out)
{
    GlobalTensor<int64_t, Shape<1, 1, 1, 4, 24>, Stride<1, 1, 1, 24, 1>> gx(x), sum(out), product(out + 96);
    GlobalTensor<uint8_t, Shape<1, 1, 1, 4, 3>, Stride<1, 1, 1, 3, 1>> gb(bits);
    using T = Tile<TileType::Vec, int64_t, 4, 24>;
    T a, b, c;
    Tile<TileType::Vec, int32_t, 4, 48, BLayout::RowMajor, 4, 24> low;
    Tile<TileType::Vec, uint8_t, 4, 32, BLayout::RowMajor, 4, 3> m;
    TASSIGN(a, 0x0); TASSIGN(b, 0x1000); TASSIGN(c, 0x2000); TASSIGN(low, 0x0); TASSIGN(m, 0x3000);
    TLOAD(a, gx);
    set_flag(PIPE_MTE2, PIPE_V, EVENT_ID0); wait_flag(PIPE_MTE2, PIPE_V, EVENT_ID0);
    TADDS(b, a, (int64_t)1 << 40); TMULS(c, a, (int64_t)-3); TCMPS(m, low, 5, CmpMode::GT);
    set_flag(PIPE_V, PIPE_MTE3, EVENT_ID0); wait_flag(PIPE_V, PIPE_MTE3, EVENT_ID0);
    TSTORE(sum, b); TSTORE(product, c); TSTORE(gb, m);
}
"""


def test_wide_integers_and_packed_bits_of_a5(tmp_path, generator):
    """64-bit sums and products wrap; a mask tile's valid columns are bytes, eight comparisons each."""
    x = generator.integers(-(2**63), 2**63 - 1, (4, 24), dtype=np.int64)
    result = run(written(tmp_path, WIDE), "a5", inputs={"x": x})
    with np.errstate(over="ignore"):
        np.testing.assert_array_equal(blocks(result.outputs["out"], (4, 24)), [x + (1 << 40), x * -3])
    low = np.ascontiguousarray(x).view(np.int32)[:, :24]
    np.testing.assert_array_equal(result.outputs["bits"].reshape(4, 3), np.packbits(low > 5, axis=1, bitorder="little"))
    with pytest.raises(CastsimError, match="does not take i64"):
        run(written(tmp_path, WIDE), "a2a3", inputs={"x": x})


SPREAD = """
extern "C" __global__ AICORE void k(__gm__ float *x, __gm__ float *v, __gm__ float *out, __gm__ int32_t *bits)
{
    GlobalTensor<float, Shape<1, 1, 1, 16, 64>, Stride<1, 1, 1, 64, 1>> gx(x);
    GlobalTensor<float, Shape<1, 1, 1, 16, 1>, Stride<1, 1, 1, 1, 16>, Layout::DN> gv(v);
    Tile<TileType::Vec, float, 16, 64> a, d;
    Tile<TileType::Vec, float, 16, 1, BLayout::ColMajor> c;
    Tile<TileType::Vec, float, 16, 8> t;
    Tile<TileType::Vec, int32_t, 16, 64> i, o;
    TASSIGN(a, 0x0); TASSIGN(c, 0x1000); TASSIGN(t, 0x2000); TASSIGN(d, 0x3000); TASSIGN(i, 0x0); TASSIGN(o, 0x4000);
    int at = 0;
    auto store = [&]() {
        set_flag(PIPE_V, PIPE_MTE3, EVENT_ID0); wait_flag(PIPE_V, PIPE_MTE3, EVENT_ID0);
        GlobalTensor<float, Shape<1, 1, 1, 16, 64>, Stride<1, 1, 1, 64, 1>> to(out + at++ * 1024); TSTORE(to, d);
        set_flag(PIPE_MTE3, PIPE_V, EVENT_ID0); wait_flag(PIPE_MTE3, PIPE_V, EVENT_ID0);
    };
    TLOAD(a, gx); TLOAD(c, gv);
    set_flag(PIPE_MTE2, PIPE_V, EVENT_ID0); wait_flag(PIPE_MTE2, PIPE_V, EVENT_ID0);
    TROWEXPANDADD(d, a, c, t); store(); TROWEXPANDMAX(d, a, c, t); store(); TROWEXPANDMIN(d, a, c, t); store();
    TROWEXPANDEXPDIF(d, a, c, t); store(); TROWEXPANDSUB(d, c, a, t); store();
    TEXPANDS(c, 2.5f);
    pipe_barrier(PIPE_ALL);
    TROWEXPANDMUL(d, a, c, t); store();
    TORS(o, i, 0x55);
    set_flag(PIPE_V, PIPE_MTE3, EVENT_ID0); wait_flag(PIPE_V, PIPE_MTE3, EVENT_ID0);
    GlobalTensor<int32_t, Shape<1, 1, 1, 16, 64>, Stride<1, 1, 1, 64, 1>> gb(bits); TSTORE(gb, o);
}
"""


@pytest.mark.parametrize("target", ["a2a3", "a5"])
def test_row_broadcasts_with_tmp_and_fills_of_columns(tmp_path, target, generator):
    """A tmp tile that the A5's library ignores is taken; `TORS` of 32 bits is the library's on both."""
    x, v = generator.normal(size=(16, 64)).astype(F32), generator.normal(size=(16, 1)).astype(F32)
    result = run(written(tmp_path, SPREAD), target, inputs={"x": x, "v": v})
    out = blocks(result.outputs["out"], (16, 64))
    wanted = [x + v, np.maximum(x, v), np.minimum(x, v), np.exp((x - v).astype(np.float64)), v - x, x * F32(2.5)]
    for found, exact in zip(out, wanted, strict=True):
        np.testing.assert_allclose(found, exact, rtol=1e-7)
    np.testing.assert_array_equal(result.outputs["bits"].reshape(16, 64), x.view(np.int32) | 0x55)
    assert not [one for one in result.warnings if "scratch" in str(one)]
