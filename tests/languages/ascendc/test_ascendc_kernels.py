"""AscendC kernels against NumPy: the samples, those written for tests, and those in the style of products."""

from __future__ import annotations

import numpy as np
import pytest
from kit.ascendc_runs import KERNELS, TEST_KERNELS
from kit.pto_cpp_runs import needs_compiler
from languages.ascendc.ascendc_models import CASES, PRODUCTS

from castsim.isa.pto.value_types import StridedStatement
from castsim.languages.ascendc import Request, record, run

pytestmark = needs_compiler
TARGETS = pytest.mark.parametrize("target", ["a2a3", "a5"])


def sample(name, inputs=None, args=None, target="a2a3", **how):
    return run(KERNELS / f"{name}.cpp", target, inputs=inputs, args=args, **how)


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


@TARGETS
def test_masks_repeats_and_strides(target):
    generator = np.random.default_rng(3)
    x, limit = generator.normal(size=(16, 64)).astype(np.float32), generator.normal(size=16).astype(np.float32)
    found = sample("clip_rows", {"x": x.ravel(), "limit": limit}, {"rows": 16}, target)
    expected = np.maximum(x, limit[:, None])
    expected[:, 1::2] += np.float32(1)
    np.testing.assert_array_equal(found.outputs["y"].reshape(16, 64), expected)


@TARGETS
def test_gather_compare_select(target):
    generator = np.random.default_rng(4)
    table, index = generator.normal(size=256).astype(np.float32), generator.integers(0, 256, 128).astype(np.int32)
    given = {"table": table, "index": index}
    found = sample("pick", given, {"size": 256, "count": 128, "least": 0.5, "other": -1}, target)
    picked = table[index]
    np.testing.assert_array_equal(found.outputs["y"], np.where(picked > 0.5, picked, np.float32(-1)))


def check(case, folder, number, target="a2a3"):
    """Run all blocks of a case and compare its outputs."""
    inputs = case.inputs(np.random.default_rng(number))
    expected = case.model(**inputs)
    given = case.zeros(expected)
    path = folder / (case.kernel if "." in case.kernel else f"{case.kernel}.cpp")
    how = {"args": case.args, "blocks": case.blocks, "macros": case.macros}
    for block in range(case.blocks):
        result = run(path, target, case.entry, {**inputs, **given}, block=block, **how)
        assert not result.races
        outputs = {name: np.ascontiguousarray(array).ravel() for name, array in result.outputs.items()}
        outputs = {name: outputs[name].view(array.dtype) for name, array in expected.items()}
        given.update({name: array for name, array in outputs.items() if name in given})
    for name, wanted in expected.items():
        own = outputs[name][: wanted.size]
        if name in case.near:
            relative = 2e-3 if wanted.dtype == np.float16 else 2e-5
            absolute = (1 if wanted.dtype.kind == "i" else relative) if case.spread is None else case.spread
            wide = own.astype(np.float64), wanted.astype(np.float64)
            np.testing.assert_allclose(*wide, relative, absolute, err_msg=name)
        else:
            bits = np.ascontiguousarray(wanted).view(np.uint8)
            np.testing.assert_array_equal(own.view(np.uint8), bits, err_msg=name)


@TARGETS
@pytest.mark.parametrize("number", range(len(CASES)))
def test_kernels_written_for_tests(number, target):
    check(CASES[number], TEST_KERNELS, number, target)


@pytest.mark.parametrize("number", range(len(PRODUCTS)), ids=[case.kernel for case in PRODUCTS])
def test_product(number):
    check(PRODUCTS[number], TEST_KERNELS / "products", number)


def test_spellings_of_calls_compile_and_run():
    inputs = {"x": np.ones(8192, np.float32)}
    (recording,) = record(Request(TEST_KERNELS / "spellings.cpp", None, {}, inputs, "a2a3"))
    statements = [node for node in recording.program.functions[0].body if isinstance(node, StridedStatement)]
    assert len(statements) > 200
