"""Control state that a kernel finds or a description changes: count masks, the dequantisation scale."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from castsim import cast, run
from castsim.isa.errors import IllegalError
from castsim.targets import load_target
from castsim.targets.description import with_options

PROGRAMS = Path(__file__).resolve().parent.parent / "programs"


def test_casts_are_refused_while_masks_are_counts():
    target = with_options(load_target("a2a3"), {"count_mask_at_start": "1"})
    with pytest.raises(IllegalError, match="read as counts") as error:
        run(PROGRAMS / "f32_to_f16.pto", target, timing_only=True)
    assert error.value.span is not None


@pytest.mark.parametrize(
    ("code", "scale"), [(0x3800, 0.5), (0x4200, 3.0), (0x2E66, float(np.float16(0.1))), (0xBC00, -1.0)]
)
def test_a_dequantisation_scale_other_than_one(code, scale, tmp_path):
    path = tmp_path / "scaled.toml"
    path.write_text(
        f'base = "a2a3"\nname = "scaled"\n[dequantisation_scale]\ncode = {code}\nsource = "test"\nstatus = "assumed"\n'
    )
    target = load_target(path)
    values = np.array([0, 1, -7, 2049, 100_000, -(2**31), 2**31 - 1, 65519, 65520, 131_039], np.int32)
    # The product of a 32-bit integer and a half is exact in float64; one rounding, to infinity if need be.
    exact = values.astype(np.float64) * scale
    with np.errstate(over="ignore"):
        wanted = exact.astype(np.float16)
        wanted_of_array = (np.resize(values, (8, 128)) * scale).astype(np.float16)
    assert cast(values, "i32", "f16", target=target).tolist() == wanted.tolist()
    array = np.resize(values, (8, 128)).astype(np.int32)
    result = run(PROGRAMS / "i32_to_f16_deq.pto", target, inputs={"src": array})
    assert np.array_equal(result.outputs["dst"], wanted_of_array)
