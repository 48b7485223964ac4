"""Random kernels in C against a direct interpreter of the semantics of C."""

from __future__ import annotations

import os

import numpy as np
import pytest
from random_kernels import kernel

from castsim.isa.sources import Language, Source
from castsim.running import load, run_loaded
from castsim.tpc_c.launching import LaunchRequest, tensor_given

pytest.importorskip("pcpp")
COUNT = int(os.environ.get("CASTSIM_RANDOM_KERNELS", "12"))
TENSORS = {"numbers": "i32[64,5]", "floats": "f32[64,5]", "results": "out:i32[64,10]", "float_results": "out:f32[64,5]"}


@pytest.mark.parametrize("seed", range(700000, 700000+COUNT))
def test_a_kernel_computes_what_c_says(seed: int) -> None:
    text, run = kernel(seed, pragmas=seed % 2 == 0)
    target = ("gaudi2", "gaudi", "greco", "goya", "gaudib")[seed % 5]
    rng = np.random.default_rng(seed)
    numbers = rng.integers(-(1 << 31), 1 << 31, (5, 64)).astype(np.int32)
    floats = (rng.integers(-64, 64, (5, 64)) * 1024).astype(np.float32)
    a, b = (int(each) for each in rng.integers(-500, 500, 2))
    request = LaunchRequest({name: tensor_given(name, each) for name, each in TENSORS.items()}, (1,))
    program = load(Source("k.c", Language.KERNEL, text), target, None, {"a_in": a, "b_in": b}, launch=request)
    result = run_loaded(program, {"numbers": numbers, "floats": floats}, stale_reads="stop")
    assert not result.stale_reads
    given = {"v": numbers[0], "w": numbers[1], "u": numbers[2].view(np.uint32), "f": floats[3], "g": floats[4]}
    wanted = run({"a": a, "b": b, **given})
    found, found_floats = (np.asarray(result.outputs[name]) for name in ("results", "float_results"))
    for row, name in enumerate(("v", "w", "u")):
        assert np.array_equal(found[row], np.asarray(wanted[name]).view(np.int32)), (name, text)
    for row, name in ((3, "f"), (4, "g")):
        assert np.array_equal(found_floats[row], np.asarray(wanted[name])), (name, text)
    for row, name in enumerate("abcde", start=5):
        number = int(wanted[name])  # type: ignore[call-overload]
        assert (found[row] == np.array(number & 0xFFFFFFFF, np.uint32).view(np.int32)).all(), (name, number, text)
