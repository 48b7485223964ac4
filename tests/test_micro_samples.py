"""The sample programs of vector instructions against NumPy and ml_dtypes."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import ml_dtypes
import numpy as np
import pytest
from numpy.typing import NDArray

from castsim.running import run

PROGRAMS = Path(__file__).parents[1] / "programs" / "micro"
Array = NDArray[np.generic]
RNG = np.random.default_rng(23)
FLOATS = RNG.uniform(-600, 600, 512).astype(np.float32)
FLOATS[:8] = [np.nan, np.inf, -np.inf, 0.0, -0.0, 1e6, -1e6, 2.0**-12]


def saturated(values: Array, kind: type) -> Array:
    """Clamped to the range, NaN as +0, and rounded to nearest even by the library."""
    top = float(ml_dtypes.finfo(kind).max)
    return np.where(np.isnan(values), 0, np.clip(values, -top, top)).astype(np.float32).astype(kind)


def toward_zero(values: Array) -> Array:
    """f16 toward zero: the neighbour of the nearest where that is too large; beyond the range the largest."""
    near = values.astype(np.float16)
    far = np.abs(near.astype(np.float64)) > np.abs(values.astype(np.float64))
    return np.where(far, np.nextafter(near, np.float16(0)), near)


def bytes_of_pairs(values: Array) -> Array:
    """e2m1, two elements in a byte, the first in its low half; clamped, the sign of zero kept."""
    codes = np.clip(values.astype(np.float32), -6, 6).astype(ml_dtypes.float4_e2m1fn).view(np.uint8)
    return codes[::2] | codes[1::2] << 4


BRAINS = np.concatenate((np.linspace(-8, 8, 448), RNG.uniform(-3, 3, 64))).astype(ml_dtypes.bfloat16)
WORDS = RNG.integers(-32768, 32768, 256).astype(np.int16)
CASES: dict[str, tuple[Array, dict[str, float], Callable[[Array], Array]]] = {
    "f32_to_f16_parts": (FLOATS, {}, lambda x: saturated(x, np.float16)),
    "f32_to_e4m3fn_quarters": (FLOATS, {}, lambda x: saturated(x, ml_dtypes.float8_e4m3fn)),
    "i8_to_f32_unpacked": (np.resize(np.arange(-128, 128), 512).astype(np.int8), {}, lambda x: x.astype(np.float32)),
    "masked_tail": (FLOATS[8:208], {}, toward_zero),
    "dequantise": (WORDS, {"scale": 2.5}, lambda x: saturated(x.astype(np.float32) * np.float32(2.5), np.float16)),
    "bf16_to_e2m1": (BRAINS, {}, bytes_of_pairs),
}


@pytest.mark.parametrize("name", CASES)
def test_outputs_are_those_of_the_libraries(name: str) -> None:
    given, scalars, model = CASES[name]
    held = given.view(np.uint16) if given.dtype == ml_dtypes.bfloat16 else given
    result = run(PROGRAMS / f"{name}.pto", inputs={"x": held}, args=scalars)
    assert result.outputs["y"].tobytes() == model(given).tobytes()
    assert not result.loaded.executed.warnings
