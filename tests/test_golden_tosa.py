"""TOSA's CAST as run by its reference model, against the abstract cast.

TOSA rounds to nearest even; float to integer saturates, integer to integer wraps, floats overflow to infinity or NaN.
"""

from __future__ import annotations

import numpy as np
import oracle
import pytest
from golden import SUBJECTS, as_codes, assert_same, format_name, load

DATA = load("golden_tosa_cast.npz")
PAIRS = [key.removesuffix("__in") for key in DATA if key.endswith("__in")]
DOUBLE_ROUNDING = 14
"""int32 to bf16: elements on which the model itself breaks TOSA's half-ulp rule (semantics_tosa_onnx.md 1.4)."""


@pytest.mark.parametrize("subject", SUBJECTS)
@pytest.mark.parametrize("pair", PAIRS)
def test_cast(pair: str, subject: str) -> None:
    src, dst = map(format_name, pair.split("__"))
    overflow = "special" if dst in oracle.FLOATS else "saturate" if src in oracle.FLOATS else "wrap"
    source, expected = as_codes(DATA[f"{pair}__in"], src), as_codes(DATA[f"{pair}__out"], dst)
    keep = np.ones(source.shape, dtype=bool)
    if src in oracle.FLOATS and dst in oracle.INTS and dst != "bool":
        keep = ~oracle.is_nan(source, src)  # NaN to an integer: any result conforms; the model gives 0 or -2**31
    if (src, dst) == ("i32", "bf16"):
        keep = ~double_rounded(source)
        assert (~keep).sum() == DOUBLE_ROUNDING
    got = SUBJECTS[subject](source[keep], src, dst, "rint", overflow)
    assert_same(expected[keep], got, source[keep], src, dst)


def double_rounded(source: np.ndarray) -> np.ndarray:
    """Return where rounding an int32 to float32 first changes its bfloat16, by numpy integers alone."""
    values = source.view(np.int32).astype(np.int64)
    single = values.astype(np.float32).astype(np.float64).astype(np.int64)
    return nearest_bf16(values) != nearest_bf16(single)


def nearest_bf16(values: np.ndarray) -> np.ndarray:
    """Round integers to 8 significant bits, ties to even."""
    out = []
    for value in values.tolist():
        shift = max(0, abs(value).bit_length() - 8)
        kept, dropped = divmod(abs(value), 1 << shift)
        half = (1 << shift) >> 1
        kept += bool(half) and (dropped > half or (dropped == half and kept & 1))
        out.append((kept << shift) * (-1 if value < 0 else 1))
    return np.array(out)
