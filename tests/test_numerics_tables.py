"""The table tier is the reference, bit for bit, in every pair, mode and layout that has a table."""

from __future__ import annotations

import numpy as np
import pytest
from numerics_samples import samples

from castsim.isa.errors import IllegalError
from castsim.isa.formats import FORMATS, format_named
from castsim.isa.modes import Overflow, Rounding
from castsim.numerics import (
    E8M0Rule,
    InfinityWrap,
    NanToFloat,
    Policy,
    Tier,
    abstract_policy,
    cast_codes,
    code_dtype,
    convert_codes,
    legal_overflows,
    legal_roundings,
)
from castsim.numerics.tables import LARGEST_INDEX_BITS, cast_by_table, dropped_bits, table_of, table_size

NARROW = [name for name, fmt in FORMATS.items() if fmt.bits <= 16]


def same(codes: np.ndarray, src: str, dst: str, policy: Policy) -> None:
    args = (codes, format_named(src), format_named(dst), policy)
    assert np.array_equal(cast_by_table(*args), cast_codes(*args)), (src, dst, policy)


@pytest.mark.parametrize("src", ["e4m3fn", "i4", "bool", "bf16", "hif8", "u16"])
def test_every_code_of_narrow_sources(src: str) -> None:
    fmt = FORMATS[src]
    codes = np.arange(256, dtype=np.uint8) if src == "bool" else samples(fmt)
    for dst in FORMATS:
        policy = abstract_policy(fmt, FORMATS[dst])
        same(codes, src, dst, policy)


@pytest.mark.parametrize("dst", [*NARROW, "f8_143@0", "f8_143@15"])
@pytest.mark.parametrize("src", ["f32", "f64"])
def test_wide_floats_in_every_mode(src: str, dst: str) -> None:
    source, destination = format_named(src), format_named(dst)
    codes = samples(source, count=30_000)
    # Near the destination's numbers and midpoints, with every pattern of half and sticky bits below them.
    near = samples(destination)[:: max(1, (1 << destination.bits) // 2048)]
    wide = cast_codes(near, destination, source, abstract_policy(destination, source)).astype(np.uint64)
    step = np.uint64(1 << max(source.fraction_bits - getattr(destination, "fraction_bits", 3) - 1, 0))
    around = [wide + np.uint64(k) * step + np.uint64(delta) for k in (0, 1) for delta in (0, 1, 2)]
    around += [wide + step - np.uint64(1), wide - np.uint64(1)]
    codes = np.concatenate([codes, *(array.astype(codes.dtype) for array in around)])
    for rounding in legal_roundings(source, destination):
        for overflow in legal_overflows(destination):
            policy = abstract_policy(source, destination, rounding, overflow)
            if dropped_bits(source, destination, policy) is not None and destination.bits <= 8:
                same(codes, src, dst, policy)
    policy = abstract_policy(source, destination)
    if dropped_bits(source, destination, policy) is not None:
        same(codes, src, dst, policy)


@pytest.mark.parametrize(
    ("src", "dst", "policy"),
    [
        ("f32", "i8", Policy(Rounding.TRUNC, Overflow.WRAP, wrap_bits=9, infinity_wrap=InfinityWrap.CLAMP)),
        ("f32", "i4", Policy(Rounding.RINT, Overflow.WRAP, wrap_bits=1)),
        ("f32", "bf16", Policy(Rounding.RINT, Overflow.SATURATE, nan_to_float=NanToFloat.ZERO)),
        ("f32", "f16", Policy(Rounding.RINT, Overflow.SPECIAL, flush_source=True, flush_result=True)),
        ("f32", "e4m3fn", Policy(Rounding.TRUNC, Overflow.SPECIAL, subnormal_rounding=Rounding.CEIL)),
        ("f16", "hif8", Policy(Rounding.HYBRID, Overflow.SPECIAL)),
        ("f16", "f32", Policy(Rounding.RINT, Overflow.SPECIAL, nan_to_float=NanToFloat.PAYLOAD)),
        ("bf16", "e8m0", Policy(Rounding.RINT, Overflow.SATURATE, e8m0_rule=E8M0Rule.ASL)),
    ],
)
def test_other_policies(src: str, dst: str, policy: Policy) -> None:
    same(samples(FORMATS[src]), src, dst, policy)


@pytest.mark.parametrize(
    ("src", "dst", "policy"),
    [
        ("f32", "i8", Policy(Rounding.RINT, Overflow.WRAP)),
        ("f32", "i32", Policy(Rounding.RINT, Overflow.SATURATE)),
        ("f32", "f64", Policy(Rounding.RINT, Overflow.SPECIAL)),
        ("i32", "f16", Policy(Rounding.RINT, Overflow.SPECIAL)),
        ("f32", "hif8", Policy(Rounding.HYBRID, Overflow.SPECIAL)),
        ("f32", "e8m0", Policy(Rounding.RINT, Overflow.SATURATE, e8m0_rule=E8M0Rule.ASL)),
        ("f32", "bf16", Policy(Rounding.RINT, Overflow.SPECIAL, nan_to_float=NanToFloat.PAYLOAD)),
        ("f16", "e5m2", Policy(Rounding.STOCHASTIC, Overflow.SPECIAL)),
    ],
)
def test_casts_that_need_all_bits_have_no_table(src: str, dst: str, policy: Policy) -> None:
    assert table_size(FORMATS[src], FORMATS[dst], policy) is None
    with pytest.raises(IllegalError, match="no table"):
        cast_by_table(np.zeros(1, code_dtype(FORMATS[src])), FORMATS[src], FORMATS[dst], policy)


def test_tables_are_shared_and_cannot_be_written() -> None:
    policy = abstract_policy(FORMATS["f32"], FORMATS["e4m3fn"])
    table = table_of(FORMATS["f32"], FORMATS["e4m3fn"], policy)
    assert table is not None
    assert table is table_of(FORMATS["f32"], FORMATS["e4m3fn"], policy)
    assert table.entries.size == 1 << 14 <= 1 << LARGEST_INDEX_BITS  # 16 KiB: it stays in the first-level cache
    with pytest.raises(ValueError, match="read-only"):
        table.entries[0] = 1


def test_the_tier_is_chosen_or_asked_for() -> None:
    f32, f16 = FORMATS["f32"], FORMATS["f16"]
    codes = samples(f32, count=1000)
    policy = abstract_policy(f32, f16)
    want = cast_codes(codes, f32, f16, policy)
    for tier in (None, *Tier):
        assert np.array_equal(convert_codes(codes, f32, f16, policy, tier=tier), want)
    stochastic = abstract_policy(f32, f16, Rounding.STOCHASTIC)
    words = np.zeros(codes.size, np.uint32)
    assert np.array_equal(
        convert_codes(codes, f32, f16, stochastic, random=words), cast_codes(codes, f32, f16, stochastic, random=words)
    )
    with pytest.raises(IllegalError, match="random words"):
        convert_codes(codes, f32, f16, stochastic, random=words, tier=Tier.TABLE)
