"""The conversions of the PTO specification's executable model: integers, the rounding rules, and the E8M0 rule."""

from __future__ import annotations

import csv
from collections import defaultdict
from fractions import Fraction

import numpy as np
import oracle
import pytest
from golden import SUBJECTS, VECTORS, assert_same

# The smoke tests judge castsim, not its oracle.
WHO = [pytest.param(name, marks=pytest.mark.smoke if name == "product" else ()) for name in SUBJECTS]

TYPE = {
    **{f"S{bits}": f"i{bits}" for bits in (8, 16, 32, 64)},
    **{f"U{bits}": f"u{bits}" for bits in (8, 16, 32, 64)},
    "S4X2": "i4", "U4X2": "u4", "FP32": "f32", "FP16": "f16", "BF16": "bf16", "E8M0": "e8m0",
}  # fmt: skip
MODE = {
    "RNE": "rint", "RNA": "round", "RTM": "floor", "RTP": "ceil", "RTZ": "trunc", "RTO": "odd", "RHB": "half_up",
    "-": None,
}  # fmt: skip


def rows(kind: str) -> list[dict[str, str]]:
    with (VECTORS / "pto_spec_tcvt_vectors.csv").open(newline="") as file:
        return [row for row in csv.DictReader(file) if row["kind"] == kind]


def grouped(to_e8m0: bool) -> dict[tuple, list[tuple[int, int]]]:
    """Group the conversions by (src, dst, mode, sat)."""
    groups = defaultdict(list)
    for row in rows("tcvt"):
        if (row["dst_type"] == "E8M0") == to_e8m0:
            key = (TYPE[row["src_type"]], TYPE[row["dst_type"]], MODE[row["rounding"]], row["sat"])
            groups[key].append((int(row["src"], 16), int(row["dst"], 16)))
    return groups


INTEGERS = grouped(to_e8m0=False)
E8M0 = grouped(to_e8m0=True)
ROUNDING = rows("round_to_int")


def test_the_file_is_complete() -> None:
    assert sum(map(len, INTEGERS.values())) == 3996 + 6
    assert sum(map(len, E8M0.values())) == 9548 + 25
    assert len(ROUNDING) == 20


def converted(pairs: list[tuple[int, int]], src: str, dst: str, subject: str, *how: str, **rule: str) -> None:
    source = np.array([one for one, _ in pairs], dtype=oracle.storage(src))
    expected = np.array([other for _, other in pairs], dtype=oracle.storage(dst))
    assert_same(expected, SUBJECTS[subject](source, src, dst, *how, **rule), source, src, dst)


@pytest.mark.parametrize("subject", WHO)
@pytest.mark.parametrize("key", INTEGERS, ids=str)
def test_integer_conversions(key: tuple, subject: str) -> None:
    src, dst, _, saturation = key
    converted(INTEGERS[key], src, dst, subject, "rint", {"0": "wrap", "1": "saturate"}[saturation])


@pytest.mark.parametrize("subject", WHO)
@pytest.mark.parametrize("row", ROUNDING, ids=lambda row: f"{row['rounding']}({row['src']})")
def test_rounding_rules(row: dict[str, str], subject: str) -> None:
    """Each mode's worked numbers, put as a cast of f32, f64 and f16 to i8."""
    assert Fraction(row["src"]) == Fraction(float(np.float32(row["src"]))) or row["src"] in ("2.1", "-2.1")
    for src, native in (("f32", np.float32), ("f64", np.float64), ("f16", np.float16)):
        source = np.array([row["src"]], dtype=native).view(oracle.storage(src))
        got = SUBJECTS[subject](source, src, "i8", MODE[row["rounding"]], "saturate")
        assert got.view(np.int8).tolist() == [int(row["dst"])]


@pytest.mark.parametrize("subject", WHO)
@pytest.mark.parametrize("key", E8M0, ids=str)
def test_e8m0_rule(key: tuple, subject: str) -> None:
    src, dst, mode, saturation = key
    converted(E8M0[key], src, dst, subject, mode, {"0": "special", "1": "saturate"}[saturation], e8m0="asl")
