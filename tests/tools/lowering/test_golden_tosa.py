"""TOSA's CAST and RESCALE as run by the reference model.

CAST rounds to nearest even; float to integer saturates, integer to integer wraps, floats overflow to infinity or NaN.
RESCALE is judged for SINGLE and DOUBLE rounding; INEXACT permits an interval and is left out
(docs/reference/semantics.md section 2.3).
"""

from __future__ import annotations

import numpy as np
import oracle
import pytest
from kit.golden import SUBJECTS, as_codes, assert_same, format_name, load, nearest_bf16

from castsim.isa.formats import Overflow, Rounding, format_named
from castsim.numerics.cast import Scale, scaled_cast_codes
from castsim.numerics.policy import Policy

pytestmark = pytest.mark.smoke

DATA = load("golden_tosa_cast.npz")
PAIRS = [key.removesuffix("__in") for key in DATA if key.endswith("__in")]
DOUBLE_ROUNDING = 14
"""int32 to bf16: elements on which the model itself breaks TOSA's half-ulp rule.

Source: docs/reference/semantics.md section 1.4.
"""


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


RESCALE = load("golden_tosa_rescale.npz")
CASES = [dict(zip(RESCALE["meta_cols"].tolist(), row, strict=True)) for row in RESCALE["meta"].tolist()]
EXACT = [case for case in CASES if case["rounding_mode"] in (1, 3)]
"""Cases of SINGLE (1) and DOUBLE (3) rounding."""


def rescale_arrays(case: dict[str, int]) -> tuple[np.ndarray, np.ndarray, list[tuple[int, int]]]:
    """Return input minus zero point and output, channel last, and (multiplier, shift) per channel."""
    count, channels = case["rows"] * case["channels"], case["channels"]
    where = slice(case["io_offset"], case["io_offset"] + count)
    factors = slice(case["mult_offset"], case["mult_offset"] + channels)
    scales = list(zip(RESCALE["mult"][factors].tolist(), RESCALE["shift"][factors].tolist(), strict=True))
    shape = (case["rows"], channels)
    return RESCALE["inp"][where].reshape(shape) - case["input_zp"], RESCALE["out"][where].reshape(shape), scales


def finish(scaled: int, case: dict[str, int]) -> int:
    """Add the output zero point, saturating in 32 bits, and clip to the output type."""
    bits = case["out_bits"]
    low, high = (0, (1 << bits) - 1) if case["out_unsigned"] else (-(1 << bits - 1), (1 << bits - 1) - 1)
    sum32 = max(-(1 << 31), min((1 << 31) - 1, scaled + case["output_zp"]))
    return max(low, min(high, sum32))


def test_rescale_formula_of_the_oracle() -> None:
    assert len(EXACT) > 300
    for case in EXACT:
        values, outputs, scales = rescale_arrays(case)
        for row, out in zip(values.tolist(), outputs.tolist(), strict=True):
            got = [
                finish(oracle.apply_scale(value, *scale, double=case["rounding_mode"] == 3), case)
                for value, scale in zip(row, scales, strict=True)
            ]
            assert got == out, case


def test_rescale_is_a_scaled_cast_rounding_half_up() -> None:
    """SINGLE, and DOUBLE up to shift 31, where its extra term does not act."""
    tried = 0
    policy = Policy(rounding=Rounding.HALF_UP, overflow=Overflow.SATURATE)
    for case in EXACT:
        values, outputs, scales = rescale_arrays(case)
        name = "i48" if case["in_bits"] == 48 else "i32"
        for channel, (multiplier, shift) in enumerate(scales):
            if case["rounding_mode"] == 3 and shift > 31:
                continue
            tried += 1
            codes = values[:, channel].astype(np.int64 if name == "i48" else np.int32).view(oracle.storage(name))
            scaled = scaled_cast_codes(
                codes, format_named(name), format_named("i32"), Scale(multiplier, -shift), policy
            ).view(np.int32)
            assert [finish(value, case) for value in scaled.tolist()] == outputs[:, channel].tolist(), case
    assert tried > 500
