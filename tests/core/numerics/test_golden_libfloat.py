"""Published conversions: gfloat's, en_dtypes', the vendor's model of HiFloat8, the PTO specification, the PTO library.

They judge the oracle as well as castsim; the scripts of the library judge the A2/A3 oracle.
"""

from __future__ import annotations

import csv
from collections import defaultdict
from fractions import Fraction

import numpy as np
import oracle
import pytest
from kit.golden import SUBJECTS, VECTORS, as_codes, assert_same, format_name, load
from kit.golden_pto import DATA, arrays
from oracle_a2a3 import TMP_BACKED, Doubt, lane

PUBLISHED = load("golden_libfloat.npz")
MODE = {"TZ": "trunc", "DN": "floor", "UP": "ceil", "RNE": "rint", "RNA": "round"}
OVERFLOW = {"sat0": "special", "sat1": "saturate"}
DETERMINISTIC = [key for key in PUBLISHED if key.count("__") == 3 and key.split("__")[1] in MODE]
STOCHASTIC = [key for key in PUBLISHED if key.count("__") == 3 and key.split("__")[1] in ("SR8", "SR16")]


@pytest.mark.parametrize("subject", SUBJECTS)
@pytest.mark.parametrize("key", DETERMINISTIC)
def test_deterministic_modes(key: str, subject: str) -> None:
    identifier, mode, saturation, _ = key.split("__")
    dst = format_name(identifier)
    source = PUBLISHED[f"{identifier}__in"]
    got = SUBJECTS[subject](source, "f32", dst, MODE[mode], OVERFLOW[saturation])
    assert_same(as_codes(PUBLISHED[key], dst), got, source, "f32", dst)


@pytest.mark.parametrize("subject", SUBJECTS)
def test_hif8_ties_away(subject: str) -> None:
    source = PUBLISHED["hif8__in"]
    got = SUBJECTS[subject](source, "f32", "hif8", "round", "special")
    assert_same(PUBLISHED["hif8__TA__sat0__out"], got, source, "f32", "hif8")
    every = np.arange(65536, dtype=np.uint16)
    got = SUBJECTS[subject](every, "f16", "hif8", "round", "special")
    assert_same(PUBLISHED["hif8_from_fp16__TA__sat0__out"], got, every, "f16", "hif8")


@pytest.mark.parametrize("subject", SUBJECTS)
def test_hif8_decodes_to_f32(subject: str) -> None:
    every = np.arange(256, dtype=np.uint8)
    got = SUBJECTS[subject](every, "hif8", "f32", "rint", "special")
    assert_same(PUBLISHED["hif8__decode_fp32"], got, every, "hif8", "f32")


@pytest.mark.parametrize("subject", SUBJECTS)
@pytest.mark.parametrize("key", STOCHASTIC)
def test_stochastic(key: str, subject: str) -> None:
    """docs/reference/formats.md section 6: gfloat's n bits correspond to r = 2**32 - bits * 2**(32-n).

    Left out: bits = 0, which means never up and has no 32-bit word; non-finite inputs, invalid in the file.
    """
    identifier, form, _, _ = key.split("__")
    dst = format_name(identifier)
    width = int(form[2:])
    bits = PUBLISHED[f"{identifier}__{form}__bits"].astype(np.int64)
    keep = (PUBLISHED[f"{identifier}__SR__finite"] == 1) & (bits > 0)
    assert keep.sum() > 600
    source, expected = PUBLISHED[f"{identifier}__in"][keep], as_codes(PUBLISHED[key], dst)[keep]
    words = (2**32 - (bits[keep] << (32 - width))).astype(np.uint32)
    got = SUBJECTS[subject](source, "f32", dst, "stochastic", "saturate", random=words)
    assert_same(expected, got, source, "f32", dst)


HIF8 = load("golden_hif8_vendor.npz")


def usable(codes: np.ndarray, mode: str, overflow: str) -> np.ndarray:
    """Return which f32 elements the vendor's arrays are right about."""
    size = np.abs(codes.view(np.float32))
    keep = ~((size >= 2.0**-23) & (size < 2.0**-22))
    if mode == "hybrid":
        keep &= ~((size >= 40960) & (size < 65536))
    if overflow == "sat":
        keep &= ~np.isnan(size)
    return keep


@pytest.mark.parametrize("subject", SUBJECTS)
@pytest.mark.parametrize(
    ("bits", "mode", "overflow"),
    [(32, "round", "inf"), (32, "round", "sat"), (32, "hybrid", "inf"), (16, "round", "inf"), (16, "hybrid", "inf")],
)
def test_vendor_model(bits: int, mode: str, overflow: str, subject: str) -> None:
    source, src = HIF8[f"fp{bits}__in"], f"f{bits}"
    keep = usable(source, mode, overflow) if bits == 32 else HIF8[f"fp16__{mode}__valid"] == 1
    assert keep.sum() > (1800 if bits == 32 else 2000)
    got = SUBJECTS[subject](source[keep], src, "hif8", mode, {"inf": "special", "sat": "saturate"}[overflow])
    assert_same(HIF8[f"fp{bits}__{mode}__{overflow}"][keep], got, source[keep], src, "hif8")


@pytest.mark.parametrize("subject", SUBJECTS)
@pytest.mark.parametrize(("identifier", "src"), [("fp32", "f32"), ("fp16", "f16")])
def test_en_dtypes(identifier: str, src: str, subject: str) -> None:
    source = HIF8[f"{identifier}__in"]
    got = SUBJECTS[subject](source, src, "hif8", "round", "special")
    assert_same(HIF8[f"en__{identifier}"], got, source, src, "hif8")


# ----------------------------------------- conversions of the PTO specification's model: integers, rounding rules, E8M0


# The smoke tests judge castsim, not its oracle.
WHO = [pytest.param(name, marks=pytest.mark.smoke if name == "product" else ()) for name in SUBJECTS]

TYPE = {
    **{f"S{bits}": f"i{bits}" for bits in (8, 16, 32, 64)},
    **{f"U{bits}": f"u{bits}" for bits in (8, 16, 32, 64)},
    "S4X2": "i4", "U4X2": "u4", "FP32": "f32", "FP16": "f16", "BF16": "bf16", "E8M0": "e8m0",
}  # fmt: skip
SPEC_MODE = {
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
            key = (TYPE[row["src_type"]], TYPE[row["dst_type"]], SPEC_MODE[row["rounding"]], row["sat"])
            groups[key].append((int(row["src"], 16), int(row["dst"], 16)))
    return groups


INTEGERS = grouped(to_e8m0=False)
E8M0 = grouped(to_e8m0=True)
ROUNDING = rows("round_to_int")


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
        got = SUBJECTS[subject](source, src, "i8", SPEC_MODE[row["rounding"]], "saturate")
        assert got.view(np.int8).tolist() == [int(row["dst"])]


@pytest.mark.parametrize("subject", WHO)
@pytest.mark.parametrize("key", E8M0, ids=str)
def test_e8m0_rule(key: tuple, subject: str) -> None:
    src, dst, mode, saturation = key
    converted(E8M0[key], src, dst, subject, mode, {"0": "special", "1": "saturate"}[saturation], e8m0="asl")


# -------------------------------------------- the A2/A3 oracle against the golden scripts of the PTO library and worked


REGULAR = [key for key in DATA if key.startswith("a2a3__") and "__out" in key]
TMP = [key for key in DATA if key.startswith("a2a3ns__") and key.endswith("__out_truncated")]


def numbers(source: np.ndarray, src: str) -> np.ndarray:
    native = {"f32": np.float32, "f16": np.float16, "i64": np.int64}
    return source.view(native[src]).astype(np.float64) if src in native else np.zeros(source.shape)


def artefacts(src: str, dst: str, mode: str, source: np.ndarray) -> np.ndarray:
    """Return the elements on which the script does what a correct model must not (formats and golden notes)."""
    values = numbers(source, src)
    bad = np.zeros(source.shape, dtype=bool)
    if dst in ("f32", "f16"):
        bad |= np.isinf(values) & (dst == "f32")  # clamped to the largest finite number
        bad |= np.isnan(values) & (dst == "f16")  # kept, although CTRL[48] is 0
    if mode == "ROUND":
        bad |= np.abs(values) % 1 == 0.5  # the script rounds ties to even
    if (src, dst) == ("i64", "f32"):
        bad |= np.abs(values) > 2.0**53  # passes through float64 and rounds twice
    if (src, dst) == ("f16", "i4"):
        bad |= ~(np.abs(values) <= 127)  # passes through int8
    return bad


@pytest.mark.parametrize("key", REGULAR)
def test_golden_scripts(key: str) -> None:
    src, dst, mode, source, expected, undefined = arrays(key)
    name, _, saturation = mode.partition("_")
    keep = ~undefined & ~artefacts(src, dst, name, source)
    assert keep.sum() >= 14
    asked = "on" if saturation == "SATON" else None
    doubt = Doubt(ctrl48=False)  # the scripts clamp: float_saturation_off_at_start = 0
    got = [lane(src, dst, code, name.lower(), asked, tmp=False, doubt=doubt) for code in source[keep].tolist()]
    assert_same(expected[keep], np.array(got, dtype=expected.dtype), source[keep], src, dst)


@pytest.mark.parametrize("key", TMP)
def test_golden_of_the_sequences_with_a_tmp_tile(key: str) -> None:
    """Infinity and NaN included. Left out: f32 to i16 of 2**31 <= |x| < infinity, where the sequence's int32 clamps
    and the script takes low bits of an int64 (docs/reference/a2a3.md section 4.3); infinity to u8, which has no
    sequence and is unspecified.
    """
    src, dst, mode, source, expected, _ = arrays(key)
    values = numbers(source, src)
    keep = np.isinf(values) | np.isnan(values) | (np.abs(values) < 2.0**31)
    if (src, dst) not in TMP_BACKED:
        keep &= ~np.isinf(values)
    got = [lane(src, dst, code, mode.lower(), "off", tmp=True) for code in source[keep].tolist()]
    assert_same(expected[keep], np.array(got, dtype=expected.dtype), source[keep], src, dst)


def test_the_files_are_complete() -> None:
    assert (len(DETERMINISTIC), len(STOCHASTIC)) == (61, 8)
    assert sum(map(len, INTEGERS.values())) == 3996 + 6
    assert sum(map(len, E8M0.values())) == 9548 + 25
    assert len(ROUNDING) == 20
