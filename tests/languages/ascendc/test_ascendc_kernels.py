"""AscendC kernels against NumPy: the samples, and those written for tests."""

from __future__ import annotations

import numpy as np
import pytest
from kit.ascendc_runs import KERNELS, TEST_KERNELS
from kit.pto_cpp_runs import needs_compiler
from languages.ascendc import ascendc_models

from castsim.languages.ascendc import run

pytestmark = needs_compiler


def sample(name, inputs=None, args=None, **how):
    return run(KERNELS / f"{name}.cpp", "a2a3", inputs=inputs, args=args, **how)


@pytest.mark.smoke
def test_sums():
    x, y = np.random.default_rng(0).normal(size=(2, 4096)).astype(np.float32)
    found = sample("add", {"x": x, "y": y}, {"total": 4096, "tile": 512})
    assert not found.races
    np.testing.assert_array_equal(found.outputs["z"], x + y)
    half = sample("add", {"x": x, "y": y}, {"total": 4096, "tile": 512}, block=1, blocks=2)
    np.testing.assert_array_equal(half.outputs["z"][2048:], (x + y)[2048:])


@pytest.mark.parametrize(("total", "tile"), [(1000, 256), (512, 256), (7, 64)])
def test_a_tail_comes_and_goes_by_padded_copies(total, tile):
    x = np.random.default_rng(total).normal(size=total).astype(np.float32)
    found = sample("cast_tail", {"x": x}, {"total": total, "tile": tile})
    codes = x.view(np.uint32)
    expected = ((codes + 0x7FFF + (codes >> 16 & 1)) >> 16).astype(np.uint16)
    np.testing.assert_array_equal(found.outputs["y"].view(np.uint16), expected)


def test_a_structure_with_a_default():
    x = np.random.default_rng(1).normal(0, 8, 1024).astype(np.float16)
    found = sample("quantise", {"x": x}, {"tiling.total": 1024, "tiling.scale": 20})
    product = (x * np.float16(20)).astype(np.float16)
    np.testing.assert_array_equal(
        found.outputs["y"].view(np.int8), np.clip(np.rint(product), -128, 127).astype(np.int8)
    )


def test_rows_by_what_the_scalar_unit_reads():
    x = np.random.default_rng(2).normal(size=(5, 104)).astype(np.float32)
    x[3] = 0
    found = sample("scale_rows", {"x": x.ravel()}, {"tiling.rows": 5, "tiling.cols": 104})
    top = np.abs(x).max(axis=1)
    factor = np.divide(np.float32(1), top, out=np.zeros_like(top), where=top > 0)
    np.testing.assert_array_equal(found.outputs["top"], top)
    np.testing.assert_array_equal(
        found.outputs["y"].reshape(5, 104), np.where(top[:, None] > 0, x * factor[:, None], x)
    )
    assert any("pairs of flags are added" in warning.text for warning in found.warnings)


def test_masks_repeats_and_strides():
    generator = np.random.default_rng(3)
    x, limit = generator.normal(size=(16, 64)).astype(np.float32), generator.normal(size=16).astype(np.float32)
    found = sample("clip_rows", {"x": x.ravel(), "limit": limit}, {"rows": 16})
    expected = np.maximum(x, limit[:, None])
    expected[:, 1::2] += np.float32(1)
    np.testing.assert_array_equal(found.outputs["y"].reshape(16, 64), expected)


def test_gather_compare_select():
    generator = np.random.default_rng(4)
    table, index = generator.normal(size=256).astype(np.float32), generator.integers(0, 256, 128).astype(np.int32)
    given = {"table": table, "index": index}
    found = sample("pick", given, {"size": 256, "count": 128, "least": 0.5, "other": -1})
    picked = table[index]
    np.testing.assert_array_equal(found.outputs["y"], np.where(picked > 0.5, picked, np.float32(-1)))


@pytest.mark.parametrize("number", range(len(ascendc_models.CASES)))
def test_kernels_written_for_tests(number):
    case = ascendc_models.CASES[number]
    inputs = case.inputs(np.random.default_rng(number))
    args = {**case.args, **{f"tiling.{name}": value for name, value in case.tiling.items()}}
    args |= {"tiling_key": case.tiling_key} if case.tiling_key else {}
    expected = case.model(inputs)
    held = {name: np.zeros(size, kind) for name, (kind, size) in case.outputs.items()}
    for block in range(case.blocks):
        found = run(
            TEST_KERNELS / f"{case.kernel}.cpp", "a2a3", inputs={**inputs, **held}, args=args, block=block,
            blocks=case.blocks,
        )  # fmt: skip
        assert not found.races
        for name, (kind, size) in case.outputs.items():
            if name in found.outputs:
                part = np.ascontiguousarray(found.outputs[name]).view(kind).ravel()
                held[name][: part.size] = part[:size]
    for name, (kind, _) in case.outputs.items():
        if case.tolerance == (0, 0):
            wanted = np.ascontiguousarray(expected[name].ravel().astype(kind))
            np.testing.assert_array_equal(held[name].view(np.uint8), wanted.view(np.uint8))
        else:
            absolute, relative = case.tolerance
            wide = expected[name].ravel().astype(np.float64)
            np.testing.assert_allclose(held[name].astype(np.float64), wide, relative, absolute)
