"""Kernels in the style of products, against NumPy: every family of operators with its calls and idioms."""

from __future__ import annotations

import numpy as np
import pytest
from kit.ascendc_runs import TEST_KERNELS
from kit.pto_cpp_runs import needs_compiler
from languages.ascendc import ascendc_product_models

from castsim.isa.pto.value_types import StridedStatement
from castsim.languages.ascendc import Request, record, run

pytestmark = needs_compiler
PRODUCTS = ascendc_product_models.PRODUCTS


@pytest.mark.parametrize("number", range(len(PRODUCTS)), ids=[each.kernel for each in PRODUCTS])
def test_product(number):
    case = PRODUCTS[number]
    inputs = case.inputs(np.random.default_rng(number))
    expected = case.model(**inputs)
    held = {
        name: np.zeros(array.size, array.dtype)
        for name, array in expected.items()
        if case.blocks > 1 or name in case.fresh
    }
    path = TEST_KERNELS / "products" / (case.kernel if "." in case.kernel else f"{case.kernel}.cpp")
    for block in range(case.blocks):
        found = run(
            path, "a2a3", case.entry, {**held, **inputs}, case.args, block=block, blocks=case.blocks, macros=case.macros
        )
        assert not found.races
        outputs = {name: np.ascontiguousarray(found.outputs[name]).view(expected[name].dtype) for name in expected}
        held.update({name: array for name, array in outputs.items() if name in held})
    for name, wanted in expected.items():
        own = outputs[name][: wanted.size]
        if name in case.near:
            narrow = wanted.dtype == np.float16
            spread = 1 if wanted.dtype.kind == "i" else 2e-3 if narrow else 2e-5
            np.testing.assert_allclose(
                own.astype(np.float64), wanted.astype(np.float64), 2e-3 if narrow else 2e-5, spread, err_msg=name
            )
        else:
            np.testing.assert_array_equal(own, wanted, err_msg=name)


def test_spellings_of_calls_compile_and_run():
    inputs = {"x": np.ones(8192, np.float32)}
    (recording,) = record(Request(TEST_KERNELS / "spellings.cpp", None, {}, inputs, "a2a3"))
    issued = [each for each in recording.program.functions[0].body if isinstance(each, StridedStatement)]
    assert len(issued) > 200
