"""The codes that casts are tried on: the structured set has every case there is, any stretch of any set can be made."""

from __future__ import annotations

from fractions import Fraction
from itertools import pairwise

import numpy as np
import oracle
import pytest
from oracle_scalar import neighbours

from castsim.evidence.verification import Exhaustive, Samples, Structured, VerificationPart, input_set
from castsim.evidence.verification.structured import LARGEST
from castsim.isa import IllegalError, Overflow, ReadError, Rounding, format_named
from castsim.numerics.blocks import check_codes, code_dtype

WIDE = ["f32", "f64", "i32", "u32", "i48", "i64", "u64"]


def structured(src: str, dst: str, overflow: str) -> Structured:
    return Structured(format_named(src), format_named(dst), Overflow(overflow))


def part(src: str, dst: str, inputs: str, count: int = 0, rounding: Rounding = Rounding.RINT) -> VerificationPart:
    return VerificationPart(src, dst, rounding, Overflow.SATURATE, "table", "reference", inputs, count)


# ------------------------------------------------------------------------------------------------ the structured set


Case = tuple[bool, Fraction, str]


def cases_of(codes: np.ndarray, src: str, between: list[Fraction]) -> set[Case]:
    """Where numbers lie: sign, the destination's number below, and exact, below, at or above the middle to the next."""
    found = set()
    for code in codes.tolist():
        value = oracle.decode(code, src)
        if value.kind != "finite" or value.magnitude >= between[-1]:
            continue
        index = np.searchsorted(np.array(between, object), value.magnitude, side="right") - 1
        low, high = between[index], between[index + 1]
        middle = (low + high) / 2
        size = value.magnitude
        side = "exact" if size == low else "below" if size < middle else "middle" if size == middle else "above"
        found.add((value.negative, low, side))
    return found


@pytest.mark.parametrize("src", ["f32", "f64"])
@pytest.mark.parametrize("dst", ["e4m3fn", "e5m2", "e2m1", "e1m2", "e3m2", "hif8", "e5m2fnuz"])
def test_every_case_of_a_float_destination_is_there(src: str, dst: str) -> None:
    """Every number of the destination, from exactly on it to almost the next, of both signs, in all four positions."""
    numbers = [number for number, _ in oracle.codebook(dst)]
    inputs = structured(src, dst, "special")
    found = cases_of(inputs.codes(0, inputs.size), src, numbers)
    wanted = {
        (negative, low, side)
        for negative in (False, True)
        for low in numbers[:-1]
        for side in ("exact", "below", "middle", "above")
    }
    assert wanted <= found


@pytest.mark.parametrize(("src", "overflow"), [("f32", "saturate"), ("f32", "wrap"), ("f64", "saturate")])
def test_every_case_of_an_integer_destination_is_there(src: str, overflow: str) -> None:
    inputs = structured(src, "i8", overflow)
    small = np.concatenate([stretch for stretch in stretches(inputs) if stretch.size])
    integers = [Fraction(number) for number in range(257 if overflow == "saturate" else 130)]
    magnitude = abs(small.view(np.float32 if src == "f32" else np.float64))
    found = cases_of(small[magnitude < float(integers[-1])], src, integers)
    assert {
        (negative, low, side)
        for negative in (False, True)
        for low in integers[:-1]
        for side in ("exact", "below", "middle", "above")
    } <= found


def stretches(inputs: Structured) -> list[np.ndarray]:
    """The codes of numbers below 2**8, without making the others."""
    found, start = [], 0
    for segment in inputs.segments:
        field = segment.first >> format_named(inputs.src.name).fraction_bits  # type: ignore[union-attr]
        stop = start + segment.size
        if field < format_named(inputs.src.name).bias + 9:  # type: ignore[union-attr]
            found += [inputs.codes(start, stop), inputs.codes(start + inputs.size // 2, stop + inputs.size // 2)]
        start = stop
    return found


@pytest.mark.parametrize(("src", "dst"), [("i32", "e4m3fn"), ("u32", "e5m2"), ("i64", "hif8"), ("u64", "e2m1")])
def test_every_case_of_an_integer_source_is_there(src: str, dst: str) -> None:
    inputs = structured(src, dst, "special")
    found = cases_of(inputs.codes(0, inputs.size), src, [number for number, _ in oracle.codebook(dst)])
    numbers = [number for number, _ in oracle.codebook(dst) if number.denominator == 1]
    gaps = {low: high - low for low, high in pairwise(number for number, _ in oracle.codebook(dst))}
    for low in numbers[:-1]:
        for negative in (False, True) if src[0] == "i" and low else (False,):
            assert (negative, low, "exact") in found
            if gaps[low] >= 4:
                assert {(negative, low, side) for side in ("below", "middle", "above")} <= found


def test_wide_destinations_have_neighbours_too() -> None:
    """f64 -> bf16 near 1: each of the 128 numbers of the binade, in all four positions."""
    inputs = structured("f64", "bf16", "special")
    codes = inputs.codes(0, inputs.size)
    near = codes[(codes >= 0x3FF0000000000000) & (codes < 0x4000000000000000)]
    row = oracle.fmt("bf16")
    seen = set()
    for code in near.tolist():
        size = oracle.decode(code, "f64").magnitude
        low, low_code, high, _ = neighbours(size, row)
        seen.add((low_code, (size > low) + (2 * size >= low + high) + (2 * size > low + high)))
    assert len(seen) == 128 * 4


@pytest.mark.parametrize("src", WIDE)
def test_specials_and_extremes_are_there(src: str) -> None:
    inputs = structured(src, "e5m2", "special")
    codes = set(inputs.codes(0, inputs.size).tolist())
    bits = format_named(src).storage_bits
    if src == "f32":
        wanted = [0, 1 << 31, 1, 0x7F800000, 0xFF800000, 0x7FC00000, 0x7F7FFFFF, 0xFF7FFFFF, 0x7F800001, 0x7FFFFFFF]
    elif src == "f64":
        wanted = [0, 1 << 63, 1, 0x7FF0 << 48, 0xFFF0 << 48, 0x7FF8 << 48, (0x7FF0 << 48) - 1, (0x7FF0 << 48) + 1]
    elif src[0] == "u":
        wanted = [0, 1, (1 << bits) - 1, 1 << (bits - 1)]
    else:
        top = int(src[1:]) - 1
        wanted = [0, 1, (1 << bits) - 1, (1 << top) - 1, ((1 << bits) - 1) ^ ((1 << top) - 1)]
    assert codes >= set(wanted)


@pytest.mark.parametrize(("src", "dst", "overflow"), [("f64", "f32", "special"), ("f64", "i32", "wrap")])
def test_sets_that_are_too_large(src: str, dst: str, overflow: str) -> None:
    with pytest.raises(IllegalError, match=f"(?s)structured set of {src} -> {dst}.*--samples N") as refusal:
        structured(src, dst, overflow)
    assert f"{LARGEST:.1e}" in str(refusal.value)


def test_narrow_sources_need_no_structured_set() -> None:
    for src in ("f16", "hif8", "i8"):
        with pytest.raises(IllegalError, match="--exhaustive"):
            structured(src, "e4m3fn", "special")


@pytest.mark.parametrize("rounding", [Rounding.HYBRID, Rounding.STOCHASTIC])
def test_modes_that_see_more_are_not_decided_by_a_structured_set(rounding: Rounding) -> None:
    dst = "hif8" if rounding is Rounding.HYBRID else "f16"
    with pytest.raises(IllegalError, match="sees more than kept bits"):
        part("f32", dst, "structured", rounding=rounding).check()


# ---------------------------------------------------------------------------------------------------- all of the sets


@pytest.mark.parametrize("name", ["e2m1", "e3m2", "hif8", "u4", "i8", "f16", "u16", "bool"])
def test_all_codes_are_all_codes(name: str) -> None:
    inputs = Exhaustive(format_named(name))
    codes = inputs.codes(0, inputs.size)
    wanted = 256 if name == "bool" else 1 << oracle.fmt(name).bits
    assert codes.tolist() == list(range(wanted))  # any byte is a bool


def test_the_last_codes_of_32_bits() -> None:
    inputs = Exhaustive(format_named("f32"))
    assert inputs.size == 1 << 32
    assert inputs.codes(inputs.size - 2, inputs.size).tolist() == [0xFFFFFFFE, 0xFFFFFFFF]


@pytest.mark.parametrize("src", ["f64", "i64", "u64", "i48"])
def test_wider_sources_cannot_be_tried_on_all_codes(src: str) -> None:
    with pytest.raises(IllegalError, match=r"--structured, --samples N"):
        Exhaustive(format_named(src))


@pytest.mark.parametrize(
    ("src", "kind"),
    [(src, kind) for kind in ("structured", "samples") for src in WIDE]
    + [(src, "samples") for src in ("f16", "hif8", "e2m1", "i4", "bool")],
)
def test_stretches_and_legal_codes(src: str, kind: str) -> None:
    inputs = input_set(part(src, "e5m2", kind, 20_000 if kind == "samples" else 0))
    row = format_named(src)
    whole = inputs.codes(0, inputs.size)
    assert len(whole) == inputs.size
    assert whole.dtype == code_dtype(row)
    check_codes(whole, row)
    edges = sorted(
        {0, 1, 2, 4095, 4096, 4097, inputs.size // 2 - 1, inputs.size // 2 + 3, inputs.size - 1, inputs.size}
    )
    edges = [edge for edge in edges if 0 <= edge <= inputs.size]
    pieces = [inputs.codes(start, stop) for start, stop in pairwise(edges)]
    assert np.array_equal(np.concatenate(pieces), whole)


def test_samples_depend_on_the_seed_alone_and_reach_everything() -> None:
    first, again, other = (
        Samples(format_named("f32"), format_named("e4m3fn"), Overflow.SPECIAL, 1 << 14, seed).codes(0, 1 << 14)
        for seed in (5, 5, 6)
    )
    assert np.array_equal(first, again)
    assert not np.array_equal(first, other)
    assert len(set((first >> 23).tolist())) == 512  # every sign and exponent
    ties = np.count_nonzero(first & 0xFFFFF == 0x80000)  # half, under three kept bits
    assert ties > 200  # of 8192 near boundaries one in six is a tie, if the number is in range


def test_every_word_of_a_part_is_checked() -> None:
    good = part("f32", "e4m3fn", "samples", 5)
    good.check()
    for change, message in [
        ({"tier": "fastest"}, "unknown tier 'fastest'"),
        ({"against": "fastest"}, "legal: default, reference, table.*, oracle"),
        ({"against": "table"}, "tier 'table' against itself"),
        ({"inputs": "some"}, "unknown kind of input set 'some'"),
        ({"count": 0}, "0 samples"),
        ({"src": "f33"}, "unknown format 'f33'"),
    ]:
        values = {name: getattr(good, name) for name in good.__dataclass_fields__}
        with pytest.raises(ReadError, match=message):
            VerificationPart(**{**values, **change}).check()
