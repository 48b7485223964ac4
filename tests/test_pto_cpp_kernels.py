"""Kernels in C++ against NumPy: every operation that public vector kernels use, values and paths that rest on them."""

from __future__ import annotations

import itertools

import numpy as np
import pytest
from pto_cpp_runs import needs_compiler, ran, same_bits

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
