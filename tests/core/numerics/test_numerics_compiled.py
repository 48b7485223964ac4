"""The compiled tiers are the reference, bit for bit: families of kernels, kernels of one cast, look-ups, shortcuts."""

from __future__ import annotations

import os
from dataclasses import replace

import numpy as np
import pytest
from kit.numerics_samples import samples

from castsim.isa.errors import IllegalError
from castsim.isa.formats import DETERMINISTIC, FORMATS, Format, Overflow, Rounding, format_named
from castsim.numerics.cast import cast_codes
from castsim.numerics.policy import (
    E8M0Rule,
    InfinityWrap,
    NanToFloat,
    NanToInteger,
    Policy,
    abstract_policy,
    legal_overflows,
    legal_roundings,
)
from castsim.numerics.tiers import Tier, convert_codes

pytest.importorskip("numba")

THOROUGH = "CASTSIM_THOROUGH" in os.environ
"""Compiling takes all the time: of kernels alike, some are left to CASTSIM_THOROUGH=1."""

COUNT = 1500
SAMPLES = {name: samples(fmt, count=COUNT) for name, fmt in FORMATS.items()}
SAMPLES["bool"] = np.arange(256, dtype=np.uint8)
RINT, SPECIAL, SATURATE, WRAP = Rounding.RINT, Overflow.SPECIAL, Overflow.SATURATE, Overflow.WRAP


def words_for(policy: Policy, codes: np.ndarray) -> np.ndarray | None:
    if policy.rounding is not Rounding.STOCHASTIC:
        return None
    words = np.random.default_rng(7).integers(0, 1 << 32, codes.shape, dtype=np.uint32)
    words[::5] = 0
    words[1::5] = 0xFFFFFFFF
    return words


def same(tier: Tier, codes: np.ndarray, src: Format, dst: Format, policy: Policy) -> None:
    words = words_for(policy, codes)
    got = convert_codes(codes, src, dst, policy, random=words, tier=tier)
    wrong = np.flatnonzero(got != cast_codes(codes, src, dst, policy, random=words))
    assert wrong.size == 0, (tier, src.name, dst.name, policy, [hex(int(codes[i])) for i in wrong[:5]])


FAMILIES = ("f64", "f32", "e5m2fnuz", "e8m0", "hif8", "i4", "i48", "bool")
"""Of each way to unpack and each width of words at least one; compiling for all formats would take minutes."""


@pytest.mark.parametrize("src", FAMILIES)
def test_generic_kernel_in_every_mode(src: str) -> None:
    """Formats of one storage width share a kernel: an eighth of the destinations, others for every source."""
    for number, destination in enumerate(FORMATS.values()):
        if (number + FAMILIES.index(src)) % (4 if THOROUGH else 8):
            continue
        for overflow in legal_overflows(destination):
            for mode in legal_roundings(FORMATS[src], destination):
                if mode in (*DETERMINISTIC, Rounding.HYBRID):
                    policy = abstract_policy(FORMATS[src], destination, mode, overflow)
                    same(Tier.GENERIC, SAMPLES[src], FORMATS[src], destination, policy)


POLICIES = [
    ("f32", "f16", Policy(RINT, SATURATE, nan_to_float=NanToFloat.ZERO)),  # A2/A3 with saturation
    ("f32", "f16", Policy(RINT, SATURATE, nan_to_float=NanToFloat.FIXED, nan_code=0x7FFF)),
    ("f32", "f16", Policy(RINT, SPECIAL, nan_to_float=NanToFloat.PAYLOAD)),
    ("f16", "f32", Policy(RINT, SPECIAL, nan_to_float=NanToFloat.PAYLOAD)),
    ("f32", "bf16", Policy(RINT, SPECIAL, flush_source=True, flush_result=True)),
    ("f16", "bf16", Policy(RINT, SPECIAL, flush_source=True)),
    ("f64", "f32", Policy(RINT, SPECIAL)),
    ("f64", "f32", Policy(RINT, SPECIAL, subnormal_rounding=Rounding.TRUNC)),
    ("f64", "f32", Policy(RINT, SPECIAL, infinity_to_max=True)),
    ("f32", "bf16", Policy(RINT, SATURATE, keep_infinity=True)),
    ("f32", "f16", Policy(RINT, SPECIAL, infinity_to_max=True, drop_negative_zero=True)),
    ("f32", "e4m3fn", Policy(RINT, SPECIAL, drop_negative_zero=True)),
    ("f32", "e5m2", Policy(Rounding.TRUNC, SPECIAL, subnormal_rounding=Rounding.CEIL)),
    ("f32", "f32", Policy(RINT, SATURATE, drop_negative_zero=True)),
    ("f32", "i8", Policy(Rounding.TRUNC, WRAP, wrap_bits=9, infinity_wrap=InfinityWrap.CLAMP)),
    ("f32", "i16", Policy(RINT, WRAP, wrap_bits=32, infinity_wrap=InfinityWrap.EXTREME)),
    ("f32", "i16", Policy(RINT, WRAP, wrap_bits=64, infinity_wrap=InfinityWrap.CLAMP)),
    ("f32", "i32", Policy(RINT, SATURATE, nan_to_integer=NanToInteger.MAXIMUM)),
    ("f16", "u8", Policy(Rounding.FLOOR, SATURATE, nan_to_integer=NanToInteger.MINIMUM)),
    ("f16", "i8", Policy(RINT, WRAP, infinity_wrap=InfinityWrap.EXTREME)),
    ("f16", "u16", Policy(Rounding.FLOOR, WRAP, wrap_bits=64, nan_to_integer=NanToInteger.MAXIMUM)),
    ("f16", "i8", Policy(Rounding.CEIL, WRAP, wrap_bits=16, infinity_wrap=InfinityWrap.CLAMP)),
    ("i32", "i8", Policy(RINT, WRAP, wrap_bits=16)),
    ("i32", "f32", Policy(Rounding.FLOOR, SPECIAL)),
    ("f32", "e8m0", Policy(RINT, SATURATE, e8m0_rule=E8M0Rule.ASL)),
    ("f32", "e8m0", Policy(Rounding.ODD, SPECIAL, e8m0_rule=E8M0Rule.ASL)),
    ("f32", "e8m0", Policy(Rounding.ROUND, SPECIAL, nan_to_float=NanToFloat.FIXED, nan_code=3)),
    ("f32", "hif8", Policy(Rounding.HYBRID, SATURATE)),
    ("f16", "hif8", Policy(Rounding.HYBRID, SPECIAL)),
    ("f32", "e5m2", Policy(Rounding.STOCHASTIC, SPECIAL, stochastic_guard=False, stochastic_far_zero=True)),
    ("f32", "bf16", Policy(Rounding.STOCHASTIC, SATURATE, stochastic_far_zero=True)),
    ("e5m2", "f32", Policy(Rounding.STOCHASTIC, SPECIAL, stochastic_guard=False)),
    ("i32", "f16", Policy(Rounding.STOCHASTIC, SPECIAL)),
    ("f32", "i16", Policy(Rounding.STOCHASTIC, SATURATE)),
    ("f32", "i16", Policy(Rounding.STOCHASTIC, SATURATE, stochastic_guard=False)),
    ("i32", "i16", Policy(Rounding.STOCHASTIC, WRAP, stochastic_guard=False)),
]


@pytest.mark.parametrize(("src", "dst", "policy"), POLICIES)
def test_every_field_of_a_policy(src: str, dst: str, policy: Policy) -> None:
    codes = samples(FORMATS[src], seed=5, count=20_000)
    same(Tier.COMPILED, codes, FORMATS[src], FORMATS[dst], policy)
    if policy.stochastic_guard or dst.startswith(("f", "e")):
        same(Tier.GENERIC, codes, FORMATS[src], FORMATS[dst], policy)
        return
    with pytest.raises(IllegalError, match="exact values that move"):
        convert_codes(codes, FORMATS[src], FORMATS[dst], policy, random=words_for(policy, codes), tier=Tier.GENERIC)


SHORTCUTS = [
    *(("f32", dst, RINT) for dst in ("e4m3fn", "e4m3fnuz", "e5m2", "e2m3", "e2m1", "e1m2")),
    *(("f32", dst, RINT) for dst in ("f8_143@0", "f8_152", "bf16", "f16", "f32")),
    *(("f32", dst, mode) for dst, mode in (("i8", RINT), ("u8", Rounding.CEIL), ("i16", Rounding.FLOOR))),
    *(("f32", dst, mode) for dst, mode in (("i32", RINT), ("u32", RINT), ("i4", Rounding.TRUNC), ("u2", RINT))),
    *((src, "f32", RINT) for src in ("e4m3fn", "e4m3fnuz", "e5m2", "e2m1", "e3m2", "f8_143@15", "bf16", "f16")),
    *((src, "f32", RINT) for src in ("i4", "i16", "u32", "f64")),
    *(("f16", dst, RINT) for dst in ("i8", "e4m3fn", "f64")),
    *(("bf16", dst, RINT) for dst in ("f16", "e5m2")),
    *((src, "f16", RINT) for src in ("i8", "u16", "e5m2")),
]


@pytest.mark.parametrize(("src", "dst", "mode"), SHORTCUTS)
def test_shortcuts(src: str, dst: str, mode: Rounding) -> None:
    """Narrow sources in full; wide ones by specials, edges, every result and midpoint, and random codes."""
    source, destination = format_named(src), format_named(dst)
    codes = samples(source, seed=11, count=200_000)
    if src == "f32":
        codes = np.concatenate([codes, _near_results(destination)])
    for overflow in legal_overflows(destination):
        same(Tier.COMPILED, codes, source, destination, abstract_policy(source, destination, mode, overflow))


def _near_results(dst: Format) -> np.ndarray:
    """Return the f32 codes of every number of a format of up to 16 bits, of the midpoints, and their neighbours."""
    if dst.bits > 16:
        return np.zeros(0, np.uint32)
    f32 = FORMATS["f32"]
    exact = cast_codes(samples(dst), dst, f32, abstract_policy(dst, f32)).view(np.float32)
    finite = np.unique(exact[np.isfinite(exact)])
    middle = ((finite[1:].astype(np.float64) + finite[:-1]) / 2).astype(np.float32)
    centres = np.concatenate([finite, middle, -middle]).view(np.uint32)
    return (centres[:, None] + np.array([-2, -1, 0, 1, 2], np.int64)).astype(np.uint32).ravel()


@pytest.mark.parametrize(("src", "dst"), [("f32", "hif8"), ("hif8", "f32"), ("hif8", "e2m1"), ("f16", "i4")])
def test_look_ups(src: str, dst: str) -> None:
    codes = samples(FORMATS[src], seed=17, count=100_000)
    for mode in legal_roundings(FORMATS[src], FORMATS[dst]):
        if mode not in (Rounding.STOCHASTIC, Rounding.HYBRID):
            policy = abstract_policy(FORMATS[src], FORMATS[dst], mode)
            same(Tier.COMPILED, codes, FORMATS[src], FORMATS[dst], policy)


@pytest.mark.parametrize(("src", "dst"), [("i32", "i16"), ("i16", "u4"), ("u8", "i64"), ("i8", "u32")])
def test_low_bits_and_clamps_of_integers(src: str, dst: str) -> None:
    for overflow in (WRAP, SATURATE):
        policy = abstract_policy(FORMATS[src], FORMATS[dst], None, overflow)
        same(Tier.COMPILED, SAMPLES[src], FORMATS[src], FORMATS[dst], policy)


def test_small_formats_do_not_depend_on_the_floating_point_tail() -> None:
    """Numbers just beyond the largest, where the addition that rounds must not lose its last place."""
    for dst in ("e4m3fn", "e5m2", "e2m1"):
        fmt = FORMATS[dst]
        largest = cast_codes(
            np.array([fmt.max_finite_code], np.uint8), fmt, FORMATS["f32"], abstract_policy(fmt, FORMATS["f32"])
        )
        codes = np.concatenate([largest + np.arange(1 << 21, dtype=np.uint32), np.arange(1 << 12, dtype=np.uint32)])
        for policy in (Policy(RINT, SPECIAL), replace(Policy(RINT, SATURATE), keep_infinity=True)):
            same(Tier.COMPILED, codes, FORMATS["f32"], fmt, policy)
